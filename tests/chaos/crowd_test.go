package chaos

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// crowd is many sockets, some of each player, that follow a few rooms. A member that loses its
// connection comes back after a pause as the SDK makes it.
type crowd struct {
	audience *audience
	rooms    []string
	hosts    []string // access tokens of those who can change the rooms
	members  []*member
	running  context.Context

	mu       sync.Mutex
	closes   []time.Time // of sockets that were closed because their node stops, or hears nothing
	attempts []time.Time // when members tried to connect again
	refused  int         // sockets closed with 1012 at once: the store could not be reached
	other    int         // ends with another code, or none
}

// member is one of a crowd.
type member struct {
	crowd *crowd
	place int
	token string
	room  string
	done  chan struct{}

	mu     sync.Mutex
	open   bool // and subscribed
	events int  // of rooms
	stale  int  // frames server.stale with another figure than 0
	heard  int  // frames server.stale with 0
}

const socketsPerPlayer = 8

func (a *audience) newCrowd(t *testing.T, size int) *crowd {
	t.Helper()
	running, stop := context.WithCancel(context.Background())
	c := &crowd{audience: a, running: running}
	for range max(1, size/100) {
		host := a.guest()
		created := a.node(0).Must(t, 201, "POST", "/api/v1/game-session/create", host, map[string]any{"maxPlayers": 2})
		c.rooms, c.hosts = append(c.rooms, created.Body["roomId"].(string)), append(c.hosts, host)
	}
	token := ""
	for i := range size {
		if i%socketsPerPlayer == 0 {
			token = a.guest()
		}
		c.members = append(c.members, &member{
			crowd: c, place: i, token: token, room: c.rooms[i%len(c.rooms)], done: make(chan struct{}),
		})
	}
	started := 0
	t.Cleanup(func() {
		stop()
		for _, m := range c.members[:started] {
			<-m.done
		}
	})
	for some := range slices.Chunk(c.members, 200) {
		for _, m := range some {
			started++
			go m.run()
		}
		c.waitAll(t, "the crowd has subscribed", some, func(m *member) bool { return m.open })
	}
	return c
}

// waitAll waits until ok holds for all members.
func (c *crowd) waitAll(t *testing.T, condition string, members []*member, ok func(*member) bool) {
	t.Helper()
	testkit.Check(t, redistest.Poll(time.Minute, func() error {
		for _, m := range members {
			m.mu.Lock()
			holds := ok(m)
			m.mu.Unlock()
			if !holds {
				return errors.New(condition + ": not yet")
			}
		}
		return nil
	}))
}

// maxPause is the longest pause of the SDK between two attempts.
const maxPause = 15 * time.Second

func (m *member) run() {
	defer close(m.done)
	for failures := 0; ; {
		begin := time.Now()
		err := m.connect()
		m.crowd.ended(m, err)
		if time.Since(begin) > 5*time.Second {
			failures = 0
		}
		pause := rand.N(min(250*time.Millisecond<<failures, maxPause))
		failures = min(failures+1, 10)
		if !waitPause(m.crowd.running, pause) {
			return
		}
		m.crowd.mu.Lock()
		m.crowd.attempts = append(m.crowd.attempts, time.Now())
		m.crowd.mu.Unlock()
	}
}

// waitPause waits as a client does. It returns false when ctx has ended.
func waitPause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// ended notes why a connection has ended.
func (c *crowd) ended(m *member, err error) {
	m.mu.Lock()
	was := m.open
	m.open = false
	m.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	var closed *websocket.CloseError
	switch {
	case errors.As(err, &closed) && closed.Code == 1012 && closed.Text == "the store cannot be reached":
		c.refused++
	case errors.As(err, &closed) && closed.Code == 1012:
		c.closes = append(c.closes, time.Now())
	case was:
		c.other++
	}
}

// connect opens a socket, subscribes, and reads until the connection ends.
func (m *member) connect() error {
	node := m.crowd.audience.node(m.place)
	dialer := websocket.Dialer{HandshakeTimeout: 10 * time.Second, ReadBufferSize: 512, WriteBufferPool: &writeBuffers}
	url := "ws" + strings.TrimPrefix(node.URL, "http") + "/api/v1/realtime"
	header := http.Header{"Authorization": {"Bearer " + m.token}}
	conn, response, err := dialer.DialContext(m.crowd.running, url, header)
	if response != nil {
		_ = response.Body.Close()
	}
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(m.crowd.running, func() { _ = conn.Close() })()
	subscribe := []byte(`{"id":"1","type":"room.subscribe","data":{"roomId":"` + m.room + `"}}`)
	err = conn.WriteMessage(websocket.TextMessage, subscribe)
	for err == nil {
		var frame []byte
		if _, frame, err = conn.ReadMessage(); err != nil {
			break
		}
		m.count(frame)
		if bytes.Contains(frame, []byte(`"ok":false`)) && waitPause(m.crowd.running, time.Second+rand.N(time.Second)) {
			err = conn.WriteMessage(websocket.TextMessage, subscribe)
		}
	}
	return err
}

var writeBuffers sync.Pool

func (m *member) count(frame []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case bytes.Contains(frame, []byte(`"replyTo":"1","ok":true`)):
		m.open = true
	case bytes.Contains(frame, []byte(`"sinceMs":0}`)):
		m.heard++
	case bytes.Contains(frame, []byte(`"server.stale"`)):
		m.stale++
	}
	m.events += bytes.Count(frame, []byte(`"type":"room.ready"`))
}

// changeRooms makes one event in each room, and waits until every member has one more than before.
func (c *crowd) changeRooms(t *testing.T, ready bool) {
	t.Helper()
	before := map[*member]int{}
	for _, m := range c.members {
		m.mu.Lock()
		before[m] = m.events
		m.mu.Unlock()
	}
	for i, room := range c.rooms {
		body := map[string]any{"roomId": room, "ready": ready}
		redistest.Eventually(t, "a room can be changed", func() bool {
			r, err := c.audience.node(i).Do(t.Context(), "POST", "/api/v1/game-session/ready", c.hosts[i], body)
			return err == nil && r.Status == 200
		})
	}
	c.waitAll(t, "every member has the event", c.members, func(m *member) bool { return m.events > before[m] })
}

// storeCounts returns how many commands and connections the store has had.
func (c *crowd) storeCounts(t *testing.T) (commands, connections float64) {
	t.Helper()
	info := testkit.Must(redistest.ReadInfo(t.Context(), c.audience.db.Client.(*redis.Client)))(t)
	return info["total_commands_processed"], info["total_connections_received"]
}

// TestASilentStoreMakesNoStorm stops the store under a crowd, for longer than a node that is cut
// off alone keeps its sockets. Nodes that are all without a store close none. What the store has to
// do when it is back is a few commands for each socket.
func TestASilentStoreMakesNoStorm(t *testing.T) {
	size := pick(160, 5000)
	for _, nodes := range []int{1, 2} {
		// After 8 s a node would send its clients to others that have the store.
		away := pick([]time.Duration{1: 5 * time.Second, 2: 12 * time.Second}[nodes], 30*time.Second)
		t.Run([]string{"", "one node", "two nodes"}[nodes], func(t *testing.T) {
			t.Parallel()
			server := redistest.StartForTest(t, deliveryStore...)
			a := newAudience(t, openStoreOf(t, server.URL()), slices.Repeat([]string{server.URL()}, nodes))
			if nodes == 2 {
				waitFor(t, 6*time.Second) // the nodes have reported, and have read who else there is
			}
			c := a.newCrowd(t, size)
			c.changeRooms(t, true)
			commands, connections := c.storeCounts(t)
			server.Pause()
			waitFor(t, away)
			server.Resume()
			begin := time.Now()
			c.waitAll(t, "every member is subscribed", c.members, func(m *member) bool { return m.open })
			c.changeRooms(t, false)
			took := time.Since(begin)
			commandsAfter, connectionsAfter := c.storeCounts(t)
			perSocket := (commandsAfter - commands) / float64(size)
			c.mu.Lock()
			defer c.mu.Unlock()
			if n := len(c.closes) + c.other; n > 0 || len(c.attempts) > 0 {
				t.Errorf("%d of %d sockets were closed, and %d came back", n, size, len(c.attempts))
			}
			dials := connectionsAfter - connections
			// Each kind of background work tries twice a second, and every try in vain costs its connection.
			// The sockets must add next to nothing.
			triesOfNodes := 15 * away.Seconds() * float64(nodes)
			if perSocket > 15 || dials > triesOfNodes+100 {
				t.Errorf("the store had %.1f commands for each socket, and %.0f connections", perSocket, dials)
			}
			c.waitAll(t, "who was told hears that it is over", c.members, func(m *member) bool {
				return m.stale == 1 && m.heard == 1
			})
			report(t, "%d sockets, %v without a store: %d closed; all up to date %v after its return, %.1f commands for "+
				"each socket, %.0f new connections to the store", size, away, len(c.closes)+c.other,
				took.Round(10*time.Millisecond), perSocket, dials)
		})
	}
}

// inOneBurst returns how many instants are within 250 ms, at most.
func inOneBurst(at []time.Time) (most int) {
	slices.SortFunc(at, time.Time.Compare)
	first := 0
	for i := range at {
		for at[i].Sub(at[first]) > 250*time.Millisecond {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// TestANodeThatStoodStillKeepsItsSockets stops a node itself. When it goes on it has missed nothing
// by its own clock, though the store was silent for it.
func TestANodeThatStoodStillKeepsItsSockets(t *testing.T) {
	t.Parallel()
	server := redistest.StartForTest(t, deliveryStore...)
	a := newAudience(t, openStoreOf(t, server.URL()), []string{server.URL(), server.URL()})
	waitFor(t, pick(0, 6*time.Second)) // in the long form the nodes know each other
	c := a.newCrowd(t, 40)
	c.changeRooms(t, true)
	a.nodes[0].Pause()
	waitFor(t, pick(5*time.Second, 10*time.Second))
	a.nodes[0].Resume()
	c.changeRooms(t, false)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.closes)+c.other > 0 {
		t.Errorf("%d sockets were closed", len(c.closes)+c.other)
	}
	for _, m := range c.members {
		if m.mu.Lock(); m.stale > 0 {
			t.Errorf("a client was told %d times that the store is silent", m.stale)
		}
		m.mu.Unlock()
	}
}

// TestADrainOfManySocketsFailsNone drains one of two nodes under a crowd.
func TestADrainOfManySocketsFailsNone(t *testing.T) {
	t.Parallel()
	size := pick(300, 3000)
	server := redistest.StartForTest(t, deliveryStore...)
	a := newAudience(t, openStoreOf(t, server.URL()), []string{server.URL(), server.URL()})
	c := a.newCrowd(t, size)
	c.changeRooms(t, true)
	begin := time.Now()
	a.setAway(0, true)
	if status := a.nodes[0].Terminate(); status != 0 {
		t.Errorf("the node ended with status %d:\n%s", status, a.nodes[0].Log())
	}
	took := time.Since(begin)
	c.waitAll(t, "every member is on the other node", c.members, func(m *member) bool { return m.open })
	c.changeRooms(t, false)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.closes) < size/2 || c.other > 0 {
		t.Errorf("%d sockets were closed with 1012, %d otherwise", len(c.closes), c.other)
	}
	report(t, "%d sockets on two nodes, one drained in %v: %d closed with 1012, at most %d within 250 ms, 0 otherwise",
		size, took.Round(10*time.Millisecond), len(c.closes), inOneBurst(c.closes))
}
