package realtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	code := redistest.Main(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// emitter writes events as the scripts of the domains do, with the same Lua library.
var emitter = sync.OnceValue(func() *redis.Script {
	library, err := os.ReadFile("../scripts/lib_event.lua")
	if err != nil {
		panic(err)
	}
	return redis.NewScript(string(library) + `
local state, list = KEYS[1], KEYS[2]
local seq = string.format('%d', redis.call('HINCRBY', state, 'seq', ARGV[6]))
redis.call('HSET', state, 'position', seq .. '-' .. ARGV[2])
emit_event(ARGV[1], list, seq, ARGV[2], ARGV[3], ARGV[4], ARGV[5])
return seq .. '-' .. ARGV[2]`)
})

// testEvent is the type of most events in tests. Its data can have any size.
const testEvent = "room.joined"

// valuesOf returns the values of an entry of a type.
func valuesOf(eventType, pad string) string {
	switch eventType {
	case testEvent:
		return `1|1|0|0|{"pad":"` + pad + `"}`
	case "room.left":
		return "1|7|left|1|0|0"
	case "user.asset":
		return "GOLD|0|-40|60|0|purchase|asset:3|3|1|2|41"
	default:
		return "values that cannot be rendered"
	}
}

// emit adds one event to a topic and returns its position.
func emit(t testing.TB, db *redisdb.DB, topic, pad string) string {
	t.Helper()
	return emitType(t, db, topic, testEvent, pad)
}

func emitType(t testing.TB, db *redisdb.DB, topic, eventType, pad string) string {
	t.Helper()
	return emitWith(t, db, db.PublishCommand, topic, eventType, pad)
}

// emitWithoutPublish adds one event to a topic's list, as if its message on the channel were lost.
func emitWithoutPublish(t testing.TB, db *redisdb.DB, topic, eventType string) string {
	t.Helper()
	const publishNothing = "LPOS" // takes the same arguments
	return emitWith(t, db, publishNothing, topic, eventType, "")
}

func emitWith(t testing.TB, db *redisdb.DB, publish, topic, eventType, pad string) string {
	t.Helper()
	code, keys, count := emitter(), []string{stateKey(topic), topic}, 1
	if eventType == "user.asset" {
		count = 2
	}
	pos, err := code.Run(t.Context(), db.Client, keys, publish, idempotency.NewNonce(), time.Now().UnixMilli(), eventType,
		valuesOf(eventType, pad), count).Text()
	testkit.Check(t, err, "emit")
	return pos
}

// forkHistory removes the newest events of a topic but the first ones, as a failover does that
// loses them. The next event gets the number of one that was removed.
func forkHistory(t testing.TB, db *redisdb.DB, topic string, kept int) {
	t.Helper()
	last, _ := parseEntry(db.Client.LIndex(t.Context(), topic, int64(kept-1)).Val())
	testkit.Must(db.Client.TxPipelined(t.Context(), func(tx redis.Pipeliner) error {
		tx.LTrim(t.Context(), topic, 0, int64(kept-1))
		tx.HSet(t.Context(), stateKey(topic), "seq", last.pos.seq, "position", last.pos.String())
		return nil
	}))(t)
}

func stateKey(topic string) string { return "{" + hashTag(topic) + "}:state:" + topic }

// testNode is one hub behind an HTTP server, with handlers of a small protocol.
type testNode struct {
	*Hub
	db     *redisdb.DB
	socket *SocketKind
	url    string
	end    func()

	// authorize is Subscription.Authorize of every subscription; nil: all are allowed.
	authorize func(user int64) error

	mu      sync.Mutex
	clients []*Client
	closed  int
	noted   []string
}

type request struct {
	ID        string  `json:"id"`
	Type      string  `json:"type"`
	Topic     string  `json:"topic"`
	After     string  `json:"after"`
	NotBefore string  `json:"notBefore"`
	To        []int64 `json:"to"`
	Latest    bool    `json:"latest"`
	Payload   string  `json:"payload"`
	Of        uint32  `json:"of"`
	Index     uint32  `json:"index"`
}

func startNode(t testing.TB, db *redisdb.DB, o Options, limits ...Limits) *testNode {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if o.ConnectionsPerUser == 0 {
		o.ConnectionsPerUser = 1 << 20
	}
	l := Limits{MaxFrameBytes: 16 << 10, FramesPerSecond: 60, BurstFrames: 120, SendHello: true}
	if len(limits) > 0 {
		l = limits[0]
	}
	n := &testNode{Hub: New(db, o), db: db}
	n.socket = n.NewSocketKind(l)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = n.Run(ctx) }()
	server := httptest.NewServer(http.HandlerFunc(n.handleUpgrade))
	n.url = "ws" + strings.TrimPrefix(server.URL, "http")
	n.end = sync.OnceFunc(func() { cancel(); <-done; server.Close() })
	t.Cleanup(n.end)
	return n
}

func (n *testNode) handleUpgrade(w http.ResponseWriter, r *http.Request) {
	var user int64
	_, _ = fmt.Sscan(r.URL.Query().Get("user"), &user)
	s := ClientOptions{UserID: user, OnOpen: n.onOpen, OnMessage: n.onMessage, OnRefused: n.onRefused, OnClose: n.onClose}
	if d, err := time.ParseDuration(r.URL.Query().Get("expires")); err == nil {
		s.ExpiresAt = time.Now().Add(d)
	}
	if err := n.socket.Serve(w, r, s); err != nil {
		apiErr, _ := apierror.As(err)
		http.Error(w, err.Error(), apiErr.Status)
	}
}

func (n *testNode) onOpen(_ context.Context, c *Client) {
	n.mu.Lock()
	n.clients = append(n.clients, c)
	n.mu.Unlock()
}

func (n *testNode) onClose(*Client) {
	n.mu.Lock()
	n.closed++
	n.mu.Unlock()
}

func (n *testNode) onRefused(c *Client, _ []byte, err error) {
	apiErr, _ := apierror.As(err)
	_ = c.Send([]byte(`{"ok":false,"error":"` + apiErr.Code + `"}`))
}

func (n *testNode) onMessage(ctx context.Context, c *Client, raw []byte) {
	var m request
	if err := wire.Unmarshal(raw, &m); err != nil {
		_ = c.Send([]byte(`{"ok":false,"error":"invalid_json"}`))
		return
	}
	switch m.Type {
	case "sub":
		_, err := c.Subscribe(ctx, n.subscription(c, m))
		if err != nil && !errors.Is(err, ErrClosed) {
			_ = c.Send([]byte(`{"replyTo":"` + m.ID + `","ok":false}`))
		}
	case "feed":
		s := Subscription{Topic: m.Topic, AfterPosition: m.After, Feed: &testFeed, Implicit: true}
		s.EncodeReply = n.subscription(c, m).EncodeReply
		if m.Of > 0 {
			s.Filter = Filter{
				Key:   [2]uint32{m.Of, m.Index},
				Match: func(eventType string, tag uint32) bool { return eventType == "gap" || tag%m.Of == m.Index },
			}
		}
		if _, err := c.Subscribe(ctx, s); err != nil && !errors.Is(err, ErrClosed) {
			_ = c.Send([]byte(`{"replyTo":"` + m.ID + `","ok":false}`))
		}
	case "live":
		s := n.subscription(c, m)
		s.TakeSnapshot = nil
		_, _ = c.Subscribe(ctx, s)
	case "unsub":
		c.Unsubscribe(m.Topic)
		_ = c.Send([]byte(`{"replyTo":"` + m.ID + `","ok":true}`))
	case "broadcast":
		_ = n.BroadcastEphemeral(ctx, m.Topic, c, EphemeralMessage{
			Recipients: m.To, Op: "op", Latest: m.Latest, Text: []byte(`{"type":"room.message","data":"` + m.Payload + `"}`),
		})
	case "relay":
		_ = n.BroadcastEphemeral(ctx, m.Topic, c, EphemeralMessage{
			Op: "op", Text: []byte(`{"type":"room.message","data":"` + m.Payload + `"}`),
			OnError: func(err error) { n.note("failed: " + err.Error()) },
		})
		n.note(m.Payload)
	case "panic":
		panic("requested by the test")
	case "block":
		<-c.Done()
	case "note":
		n.note(m.Payload)
	default:
		_ = c.Send([]byte(`{"replyTo":"` + m.ID + `","ok":true,"data":"` + m.Payload + `"}`))
	}
}

func (n *testNode) note(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.noted = append(n.noted, text)
}

func (n *testNode) subscription(c *Client, m request) Subscription {
	return Subscription{
		Topic: m.Topic, AfterPosition: m.After, NotBeforePosition: m.NotBefore,
		Authorize: func(context.Context) error {
			if n.authorize == nil {
				return nil
			}
			return n.authorize(c.UserID())
		},
		AffectsAuthorization: func(eventType string, _ []byte) bool { return eventType == "room.left" },
		TakeSnapshot: func(ctx context.Context) (Snapshot, error) {
			pos, err := n.db.Client.HGet(ctx, stateKey(m.Topic), "position").Result()
			if errors.Is(err, redis.Nil) {
				pos, err = "0-0", nil
			}
			if err != nil {
				return Snapshot{}, redisdb.WrapError("snapshot", err)
			}
			seq, _, _ := strings.Cut(pos, "-")
			return Snapshot{
				Position: pos, StateJSON: []byte(`{"seq":` + seq + `}`),
				Frame: []byte(`{"type":"room.snapshot","roomId":"` + m.Topic + `","seq":` + seq + `,"position":"` + pos + `"}`),
			}, nil
		},
		EncodeReply: func(s SubscribeResult) []byte {
			return fmt.Appendf(nil, `{"replyTo":%q,"ok":true,"data":{"mode":%q,"position":%q}}`, m.ID, s.Mode, s.Position)
		},
	}
}

// received is one event, reply or direct message that a client received.
type received struct {
	Type     string       `json:"type"`
	RoomID   string       `json:"roomId"`
	Position string       `json:"position"`
	Seq      uint64       `json:"seq"`
	ReplyTo  string       `json:"replyTo"`
	OK       bool         `json:"ok"`
	Error    string       `json:"error"`
	Data     wire.RawJSON `json:"data"`
	frame    int          // number of the frame that it came in
}

// startData is the data of a reply to a subscription.
type startData struct {
	Mode     string `json:"mode"`
	Position string `json:"position"`
}

// testClient is the client's end of a socket.
type testClient struct {
	t    testing.TB
	conn *websocket.Conn
	in   chan received
	end  chan struct{} // closed when the socket has ended
	err  error         // the cause
}

func dial(t testing.TB, n *testNode, query string) *testClient {
	t.Helper()
	c, status := tryDial(t, n, query, nil)
	if c == nil {
		t.Fatalf("dial %s: status %d", n.url, status)
	}
	return c
}

func tryDial(t testing.TB, n *testNode, query string, d *websocket.Dialer) (*testClient, int) {
	t.Helper()
	if d == nil {
		d = &websocket.Dialer{HandshakeTimeout: 10 * time.Second}
	}
	conn, response, err := d.Dial(n.url+"/?"+query, nil)
	if err != nil {
		if response == nil {
			t.Fatalf("dial: %v", err)
		}
		return nil, response.StatusCode
	}
	c := &testClient{t: t, conn: conn, in: make(chan received, 4096), end: make(chan struct{})}
	t.Cleanup(func() { _ = conn.Close() })
	return c, http.StatusSwitchingProtocols
}

// listen starts to read the socket until it ends.
func (c *testClient) listen() *testClient {
	stop := make(chan struct{})
	c.t.Cleanup(func() { close(stop); _ = c.conn.Close(); <-c.end })
	go func() {
		defer close(c.end)
		for frame := 0; ; frame++ {
			_, raw, err := c.conn.ReadMessage()
			if err != nil {
				c.err = err
				return
			}
			for _, e := range parseFrame(c.t, raw) {
				e.frame = frame
				select {
				case c.in <- e:
				case <-stop:
					c.err = errors.New("stopped")
					return
				}
			}
		}
	}()
	return c
}

func parseFrame(t testing.TB, raw []byte) []received {
	var many []received
	var err error
	if raw[0] == '[' {
		err = wire.Unmarshal(raw, &many)
	} else {
		many = make([]received, 1)
		err = wire.Unmarshal(raw, &many[0])
	}
	if err != nil {
		t.Errorf("a frame is not JSON: %v: %.200s", err, raw)
	}
	return many
}

const testTimeout = 15 * time.Second

// next returns what the client receives next.
func (c *testClient) next() received {
	c.t.Helper()
	select {
	case e := <-c.in:
		return e
	case <-c.end:
		select {
		case e := <-c.in:
			return e
		default:
		}
		c.t.Fatalf("the socket ended: %v", c.err)
	case <-time.After(testTimeout):
		c.t.Fatal("received nothing")
	}
	return received{}
}

// nextEvent returns the next event of a topic.
func (c *testClient) nextEvent() received {
	c.t.Helper()
	for {
		if e := c.next(); e.Type == testEvent {
			return e
		}
	}
}

func (c *testClient) send(m request) {
	c.t.Helper()
	raw, _ := wire.Marshal(m)
	testkit.Check(c.t, c.conn.WriteMessage(websocket.TextMessage, raw), "send %s", m.Type)
}

// subscribe subscribes to a topic and returns the mode and the position of the reply.
func (c *testClient) subscribe(topic, after string) (mode, pos string) {
	c.t.Helper()
	c.send(request{ID: "s", Type: "sub", Topic: topic, After: after})
	for {
		e := c.next()
		if e.ReplyTo != "s" {
			continue
		}
		var d startData
		if err := wire.Unmarshal(e.Data, &d); err != nil || !e.OK {
			c.t.Fatalf("subscribe: %+v", e)
		}
		return d.Mode, d.Position
	}
}

// waitCloseCode waits until the socket ends and returns the close code, 1006 when there was none.
func (c *testClient) waitCloseCode() int {
	c.t.Helper()
	select {
	case <-c.end:
	case <-time.After(testTimeout):
		c.t.Fatal("the socket is still open")
	}
	var closed *websocket.CloseError
	if errors.As(c.err, &closed) {
		return closed.Code
	}
	return websocket.CloseAbnormalClosure
}

// waitUntil waits until ok returns true. condition describes that.
func waitUntil(t testing.TB, condition string, ok func() bool) {
	t.Helper()
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(testTimeout); !ok(); <-poll.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", condition)
		}
	}
}

// firstClient waits for the first client whose OnOpen was called.
func (n *testNode) firstClient(t testing.TB) *Client {
	t.Helper()
	var c *Client
	waitUntil(t, "a client is open", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		if len(n.clients) > 0 {
			c = n.clients[0]
		}
		return c != nil
	})
	return c
}

// clientOf returns the client of a user, which must be open.
func (n *testNode) clientOf(user int64) *Client {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.clients[slices.IndexFunc(n.clients, func(c *Client) bool { return c.UserID() == user })]
}

// notes returns the payloads of the "note" messages, in order.
func (n *testNode) notes() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.noted)
}

// closeCount returns how often OnClose was called.
func (n *testNode) closeCount() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.closed
}

// proxy carries the connections of a node to Redis. A test can disconnect them.
type proxy struct {
	listener     net.Listener
	target       string
	mu           sync.Mutex
	disconnected bool
	conns        map[net.Conn]struct{}
	wg           sync.WaitGroup
}

func startProxy(t testing.TB, target string) *proxy {
	l := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	p := &proxy{listener: l, target: target, conns: map[net.Conn]struct{}{}}
	p.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.forward(conn) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); p.disconnect(); p.wg.Wait() })
	return p
}

func (p *proxy) forward(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	other, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer func() { _ = other.Close() }()
	p.mu.Lock()
	if p.disconnected {
		p.mu.Unlock()
		return
	}
	p.conns[conn], p.conns[other] = struct{}{}, struct{}{}
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(other, conn); _ = other.Close(); _ = conn.Close() })
	both.Go(func() { _, _ = io.Copy(conn, other); _ = other.Close(); _ = conn.Close() })
	both.Wait()
	p.mu.Lock()
	delete(p.conns, conn)
	delete(p.conns, other)
	p.mu.Unlock()
}

func (p *proxy) disconnect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.disconnected = true
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *proxy) reconnect() {
	p.mu.Lock()
	p.disconnected = false
	p.mu.Unlock()
}

func openAt(t testing.TB, url string) *redisdb.DB {
	t.Helper()
	db := testkit.Must(redisdb.Open(url))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}
