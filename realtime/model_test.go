package realtime

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"pgregory.net/rapid"
)

// modelClient follows a topic. It connects again, after its last position, when its socket ends.
type modelClient struct {
	node  *testNode
	topic string
	user  int
	done  chan struct{}

	mu         sync.Mutex
	readable   *sync.Cond // of mu: reading is not paused
	conn       *websocket.Conn
	paused     bool
	stopped    bool
	position   string
	seq        uint64
	sinceReset map[uint64]string // positions of the events since the last snapshot, by seq
	received   int
	snapshots  int
	violation  string // the first
}

func startModelClient(n *testNode, topic string, user int) *modelClient {
	c := &modelClient{
		node: n, topic: topic, user: user, done: make(chan struct{}), position: "0-0", sinceReset: map[uint64]string{},
	}
	c.readable = sync.NewCond(&c.mu)
	go func() {
		defer close(c.done)
		_ = redistest.Poll(time.Hour, func() error {
			c.mu.Lock()
			stopped := c.stopped
			c.mu.Unlock()
			if stopped {
				return nil
			}
			return errors.Join(errors.New("the socket has ended"), c.connect())
		})
	}()
	return c
}

func (c *modelClient) connect() error {
	dialer := &websocket.Dialer{NetDial: func(network, addr string) (net.Conn, error) {
		conn, err := net.Dial(network, addr)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(16 << 10) // so that one that does not read is slow soon
		}
		return conn, err
	}}
	conn, response, err := dialer.Dial(fmt.Sprintf("%s/?user=%d", c.node.url, c.user), nil)
	if response != nil {
		_ = response.Body.Close()
	}
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	c.mu.Lock()
	c.conn = conn
	after, stopped := c.position, c.stopped
	c.mu.Unlock()
	if stopped { // while it dialled, so that nobody closes this connection
		return errors.New("the client has been stopped")
	}
	raw, _ := wire.Marshal(request{ID: "s", Type: "sub", Topic: c.topic, After: after})
	if err := conn.WriteMessage(websocket.TextMessage, raw); err != nil {
		return err
	}
	for {
		c.mu.Lock()
		for c.paused && !c.stopped {
			c.readable.Wait()
		}
		c.mu.Unlock()
		_, frame, err := conn.ReadMessage()
		if err != nil {
			return err
		}
		if err := c.receive(frame); err != nil {
			return err
		}
	}
}

func (c *modelClient) receive(frame []byte) error {
	many := make([]received, 1)
	target := any(&many[0])
	if frame[0] == '[' {
		target = &many
	}
	if err := wire.Unmarshal(frame, target); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range many {
		switch {
		case e.ReplyTo != "":
			var start startData
			if err := wire.Unmarshal(e.Data, &start); err != nil || !e.OK {
				return errors.New("the subscription failed")
			}
			if start.Mode == string(ModeSnapshot) {
				c.reset(start.Position)
			}
		case e.Type == "room.snapshot":
			c.reset(e.Position)
		case e.Type == testEvent:
			if e.Seq != c.seq+1 && c.violation == "" {
				c.violation = fmt.Sprintf("after %s came %s", c.position, e.Position)
			}
			c.seq, c.position = e.Seq, e.Position
			c.sinceReset[e.Seq] = e.Position
			c.received++
		}
	}
	return nil
}

func (c *modelClient) reset(text string) {
	pos, _ := parsePosition(text)
	c.position, c.seq, c.sinceReset = text, pos.seq, map[uint64]string{}
	c.snapshots++
}

func (c *modelClient) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		_ = c.conn.NetConn().Close()
	}
}

func (c *modelClient) setPaused(paused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = paused
	c.readable.Broadcast()
}

func (c *modelClient) stop() {
	c.mu.Lock()
	c.stopped = true
	c.readable.Broadcast()
	c.mu.Unlock()
	c.drop()
	<-c.done
}

// modelHistory is what the topic's list must contain.
type modelHistory struct {
	t         *testing.T
	db        *redisdb.DB
	topic     string
	positions []string
	bytes     int // of what is padded
	forked    bool
}

func (h *modelHistory) emit(count, padBytes int) {
	pad := strings.Repeat("x", padBytes)
	h.bytes += count * padBytes
	for range count {
		h.positions = append(h.positions, emit(h.t, h.db, h.topic, pad))
	}
}

// lose removes the newest events, as a failover does, and adds another one in their place.
func (h *modelHistory) lose(count int) {
	if count = min(count, len(h.positions)-1); count < 1 {
		return
	}
	h.positions = h.positions[:len(h.positions)-count]
	forkHistory(h.t, h.db, h.topic, len(h.positions))
	h.forked = true
	h.emit(1, 0)
}

// maxModelEvents is how many events the list keeps: what is in it then is the whole history.
const maxModelEvents = 250

// TestClientsAgreeWithTheHistoryWhateverIsCut makes up events, cuts of both sides, clients that do
// not read, and failovers that lose events. A client never sees a gap, an event twice, or an event
// of a history that is gone behind one of the history that is there. In the end it is where the
// history is.
func TestClientsAgreeWithTheHistoryWhateverIsCut(t *testing.T) {
	server := redistest.StartForTest(t)
	direct := openAt(t, server.URL())
	proxy := startProxy(t, server.Addr)
	behind := openAt(t, "redis://"+proxy.listener.Addr().String())
	options := Options{
		WriteTimeout: 200 * time.Millisecond, CloseTimeout: 200 * time.Millisecond, GapCheckInterval: 200 * time.Millisecond,
		ProbeAfter: 100 * time.Millisecond, ProbeTimeout: 200 * time.Millisecond,
	}
	nodes := []*testNode{startNode(t, behind, options), startNode(t, direct, options)}
	// `make chaos` has a thousand; the default of rapid would take a minute.
	if checks := flag.Lookup("rapid.checks").Value; checks.String() == "100" {
		_ = checks.Set("20")
		defer func() { _ = checks.Set("100") }()
	}
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		h := &modelHistory{t: t, db: direct, topic: fmt.Sprintf("{r1}:room:model-%d:events", round)}
		h.emit(1, 0)
		var clients []*modelClient
		for i := range 4 {
			clients = append(clients, startModelClient(nodes[i%2], h.topic, i+1))
		}
		defer func() {
			proxy.reconnect()
			for _, c := range clients {
				c.stop()
			}
		}()
		paused := false
		one := func() *modelClient { return clients[rapid.IntRange(0, len(clients)-1).Draw(rt, "client")] }
		actions := map[string]func(){
			"emit": func() {
				count := min(rapid.IntRange(1, 30).Draw(rt, "count"), maxModelEvents-len(h.positions))
				h.emit(count, rapid.SampledFrom([]int{0, 100, 8_000}).Draw(rt, "pad"))
			},
			"kill subscribers": func() { _ = direct.Client.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err() },
			"cut the store":    proxy.disconnect,
			"mend the store":   proxy.reconnect,
			"drop a client":    func() { one().drop() },
			"pause a client":   func() { paused = true; one().setPaused(true) },
			"go on":            func() { one().setPaused(false) },
			"lose events":      func() { h.lose(rapid.IntRange(1, 20).Draw(rt, "lost")) },
		}
		names := []string{
			"emit", "emit", "emit", "emit", "kill subscribers", "cut the store", "mend the store", "drop a client",
			"pause a client", "go on", "lose events",
		}
		for range rapid.IntRange(5, 25).Draw(rt, "steps") {
			actions[rapid.SampledFrom(names).Draw(rt, "step")]()
		}
		proxy.reconnect()
		for _, c := range clients {
			c.setPaused(false)
		}
		h.emit(1, 0)
		for i, c := range clients {
			if err := c.agree(h, !h.forked && !paused && h.bytes < maxRingBytes/2); err != nil {
				rt.Fatalf("client %d: %v\n%+v", i, err, nodes[i%2].Stats())
			}
		}
	})
}

// agree waits until the client is where the history is, and has of no other one anything behind its
// last snapshot: a node that missed the first event after a failover learns from the list that the
// one before it is gone. whole says that the client must have every event.
func (c *modelClient) agree(h *modelHistory, whole bool) error {
	last := h.positions[len(h.positions)-1]
	err := redistest.Poll(testTimeout, func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.position != last {
			return fmt.Errorf("it is at %s, and the history at %s", c.position, last)
		}
		for seq, position := range c.sinceReset {
			if h.positions[seq-1] != position {
				return fmt.Errorf("it received %s, and the history has %s", position, h.positions[seq-1])
			}
		}
		return nil
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		return err
	case c.violation != "":
		return errors.New(c.violation)
	case whole && (c.received != len(h.positions) || c.snapshots > 0):
		return fmt.Errorf("it received %d events of %d, and %d snapshots", c.received, len(h.positions), c.snapshots)
	}
	return nil
}
