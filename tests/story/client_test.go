package story

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// socketMessage is an event or a reply from a node.
type socketMessage struct {
	Type     string         `json:"type"`
	RoomID   string         `json:"roomId"`
	Position string         `json:"position"`
	Seq      int64          `json:"seq"`
	ReplyTo  string         `json:"replyTo"`
	OK       *bool          `json:"ok"` // of a reply
	Data     map[string]any `json:"data"`
	Error    map[string]any `json:"error"`
	raw      string
}

// dial opens a socket on a node.
func dial(ctx context.Context, n *nodetest.Node, path string, p player) (*websocket.Conn, error) {
	dialer := websocket.Dialer{HandshakeTimeout: 10 * time.Second}
	header := http.Header{"Authorization": {"Bearer " + p.token}}
	conn, response, err := dialer.DialContext(ctx, "ws"+strings.TrimPrefix(n.URL, "http")+path, header)
	if err != nil && response != nil {
		body, _ := io.ReadAll(response.Body)
		err = fmt.Errorf("%w: %s %s", err, response.Status, body)
	}
	return conn, err
}

// readFrame reads one frame, which may hold several messages.
func readFrame(conn *websocket.Conn) ([]socketMessage, error) {
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	_, frame, err := conn.ReadMessage()
	if err != nil {
		return nil, err
	}
	var raws []wire.RawJSON
	if wire.Unmarshal(frame, &raws) != nil {
		raws = []wire.RawJSON{frame}
	}
	batch := make([]socketMessage, len(raws))
	for i, raw := range raws {
		if err := wire.Unmarshal(raw, &batch[i]); err != nil {
			return nil, fmt.Errorf("%w: %s", err, frame)
		}
		batch[i].raw = string(raw)
	}
	return batch, nil
}

// subscriber follows the events of a room. When its connection is lost it reconnects, to the next
// node, with the position of its last event.
type subscriber struct {
	f    *fixture
	who  player
	room string
	done chan struct{}

	mu       sync.Mutex
	conn     *websocket.Conn
	received []socketMessage
	connects int
	stopped  bool
}

// subscribe returns a subscriber that has received the first event. It is stopped when the test
// ends.
func (f *fixture) subscribe(p player, room string) *subscriber {
	f.t.Helper()
	s := &subscriber{f: f, who: p, room: room, done: make(chan struct{})}
	go s.run()
	f.t.Cleanup(func() {
		s.mu.Lock()
		s.stopped = true
		s.mu.Unlock()
		s.disconnect()
		<-s.done
	})
	redistest.Eventually(f.t, "a subscriber has received an event", func() bool { return len(s.events()) > 0 })
	return s
}

func (s *subscriber) run() {
	defer close(s.done)
	after := "0-0"
	_ = redistest.Poll(time.Hour, func() error {
		if s.isStopped() {
			return nil
		}
		after = s.receive(after)
		return errors.New("the connection was lost")
	})
}

func (s *subscriber) isStopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

// receive connects, and receives events until the connection is lost. It returns the position of
// the last event.
func (s *subscriber) receive(after string) string {
	conn, err := dial(context.Background(), s.f.node(), "/api/v1/realtime", s.who)
	if err != nil {
		return after
	}
	defer func() { _ = conn.Close() }()
	s.mu.Lock()
	s.conn = conn
	s.connects++
	s.mu.Unlock()
	subscribe := map[string]any{
		"id": "1", "type": "room.subscribe", "data": map[string]any{"roomId": s.room, "after": after},
	}
	if conn.WriteJSON(subscribe) != nil {
		return after
	}
	for {
		batch, err := readFrame(conn)
		if err != nil {
			return after
		}
		for _, m := range batch {
			switch {
			case m.OK != nil && (!*m.OK || m.Data["mode"] != "resume"):
				s.f.t.Errorf("%s cannot resume after %s: %s", s.who.name, after, m.raw)
			case m.OK == nil && m.RoomID == s.room:
				after = m.Position
				s.mu.Lock()
				s.received = append(s.received, m)
				s.mu.Unlock()
			}
		}
	}
}

// disconnect closes the connection without a close frame.
func (s *subscriber) disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		_ = s.conn.NetConn().Close()
	}
}

func (s *subscriber) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connects
}

func (s *subscriber) events() []socketMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.received)
}

// wantAll waits until the subscriber has received the last event of the room, and checks that it
// received every event once, in order, byte by byte.
func (s *subscriber) wantAll(db *redisdb.DB) {
	t := s.f.t
	t.Helper()
	stored := storedEvents(t, db, s.room)
	redistest.Eventually(t, "the last event was received", func() bool {
		received := s.events()
		return len(received) > 0 && received[len(received)-1].Position == stored[len(stored)-1].Position
	})
	received := s.events()
	if len(received) != len(stored) {
		t.Fatalf("%s received %d events of %d", s.who.name, len(received), len(stored))
	}
	for i, event := range stored {
		if received[i].raw != string(event.JSON) || received[i].Seq != int64(i+1) {
			t.Fatalf("event %d is %s and %s received %s", i+1, event.JSON, s.who.name, received[i].raw)
		}
	}
}

// socketClient is a socket with one request at a time. It keeps the events that arrive in between.
type socketClient struct {
	t      *testing.T
	conn   *websocket.Conn
	queue  []socketMessage // events that event has not returned yet
	lastID int
}

func (f *fixture) openSocket(path string, p player) *socketClient {
	f.t.Helper()
	return f.openSocketOn(f.node(), path, p)
}

func (f *fixture) openSocketOn(n *nodetest.Node, path string, p player) *socketClient {
	f.t.Helper()
	conn := testkit.Must(dial(f.t.Context(), n, path, p))(f.t, "%s", path)
	f.t.Cleanup(func() { _ = conn.Close() })
	return &socketClient{t: f.t, conn: conn}
}

// request sends a message and returns the reply.
func (c *socketClient) request(messageType string, data map[string]any) socketMessage {
	c.t.Helper()
	c.lastID++
	id := fmt.Sprint(c.lastID)
	testkit.Check(c.t, c.conn.WriteJSON(map[string]any{"id": id, "type": messageType, "data": data}))
	for {
		for _, m := range c.read() {
			if m.ReplyTo == id {
				return m
			}
			c.queue = append(c.queue, m)
		}
	}
}

func (c *socketClient) read() []socketMessage {
	c.t.Helper()
	return testkit.Must(readFrame(c.conn))(c.t)
}

// listen reads all further events at once, so that the node does not find the client too slow. The
// channel is closed with the connection.
func (c *socketClient) listen() <-chan socketMessage {
	events := make(chan socketMessage, 1<<16)
	go func() {
		defer close(events)
		for {
			batch, err := readFrame(c.conn)
			if err != nil {
				return
			}
			for _, m := range batch {
				events <- m
			}
		}
	}()
	return events
}

// event returns the next event.
func (c *socketClient) event() socketMessage {
	c.t.Helper()
	for len(c.queue) == 0 {
		c.queue = c.read()
	}
	m := c.queue[0]
	c.queue = c.queue[1:]
	return m
}
