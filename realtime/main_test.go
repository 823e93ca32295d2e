package realtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
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
	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if kind := os.Getenv(benchKind); kind != "" {
		if err := benchNode(kind); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := redistest.Main(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// emitter writes events as the domains' scripts do, with the same library.
var emitter = sync.OnceValue(func() *redis.Script {
	var source strings.Builder
	for _, library := range []string{"clock", "int_to_string", "format_time", "emit_event"} {
		text, err := os.ReadFile("../scripts/lib_" + library + ".lua")
		if err != nil {
			panic(err)
		}
		source.Write(text)
	}
	source.WriteString(`
local state, stream = KEYS[1], KEYS[2]
local seq = int_to_string(redis.call('HINCRBY', state, 'seq', 1))
redis.call('HSET', state, 'position', seq .. '-' .. ARGV[2])
emit_event(ARGV[1], stream, tonumber(ARGV[3]), ARGV[2], seq, 'room.test', '"roomId":"' .. stream .. '",', '{"pad":"' .. ARGV[4] .. '"}')
return seq .. '-' .. ARGV[2]`)
	return redis.NewScript(source.String())
})

const keep = 256

// emit adds one event to a topic and answers its position.
func emit(t testing.TB, db *redisdb.DB, topic, pad string) string {
	t.Helper()
	at, err := emitter().Run(t.Context(), db.Client, []string{stateKey(topic), topic}, db.PublishCommand, mathrand.Uint64N(1<<48), keep, pad).Text()
	if err != nil {
		t.Fatalf("emit: %v", err)
	}
	return at
}

// lose adds one event to a topic and loses its message.
func lose(t testing.TB, db *redisdb.DB, topic string) {
	t.Helper()
	at := fmt.Sprintf("%d-%d", db.Client.HIncrBy(t.Context(), stateKey(topic), "seq", 1).Val(), mathrand.Uint64N(1<<48))
	event := fmt.Sprintf(`{"type":"room.test","roomId":%q,"seq":%s,"position":%q}`, topic, at[:strings.Index(at, "-")], at)
	db.Client.HSet(t.Context(), stateKey(topic), "position", at)
	if err := db.Client.XAdd(t.Context(), addArgs(topic, at, event)).Err(); err != nil {
		t.Fatal(err)
	}
}

func addArgs(topic, at string, event any) *redis.XAddArgs {
	return &redis.XAddArgs{Stream: topic, ID: at, Values: []any{"e", event}}
}

func stateKey(topic string) string { return "{" + hashTag(topic) + "}:state:" + topic }

// node is one hub behind a server, with a desk that speaks a small protocol.
type node struct {
	*Hub
	db     *redisdb.DB
	socket *Socket
	url    string
	end    func()

	mu     sync.Mutex
	peers  []*Client
	closed int
	got    []string
}

type request struct {
	ID      string  `json:"id"`
	Type    string  `json:"type"`
	Topic   string  `json:"topic"`
	After   string  `json:"after"`
	To      []int64 `json:"to"`
	Payload string  `json:"payload"`
}

func startNode(t testing.TB, db *redisdb.DB, o Options, limits ...Limits) *node {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if o.PerUser == 0 {
		o.PerUser = 1 << 20
	}
	l := Limits{MaxFrame: 16 << 10, Rate: 60, Burst: 120, Hello: true}
	if len(limits) > 0 {
		l = limits[0]
	}
	n := &node{Hub: New(db, o), db: db}
	n.socket = n.Socket(l)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = n.Run(ctx) }()
	server := httptest.NewServer(http.HandlerFunc(n.admit))
	n.url = "ws" + strings.TrimPrefix(server.URL, "http")
	n.end = sync.OnceFunc(func() { cancel(); <-done; server.Close() })
	t.Cleanup(n.end)
	return n
}

func (n *node) admit(w http.ResponseWriter, r *http.Request) {
	var user int64
	_, _ = fmt.Sscan(r.URL.Query().Get("user"), &user)
	s := Session{User: user, OnOpen: n.opened, OnMessage: n.message, OnRefused: n.refuse, OnClose: n.gone, Data: r.URL.Query().Get("value")}
	if d, err := time.ParseDuration(r.URL.Query().Get("expires")); err == nil {
		s.Expires = time.Now().Add(d)
	}
	if err := n.socket.Serve(w, r, s); err != nil {
		refusal, _ := apierror.As(err)
		http.Error(w, err.Error(), refusal.Status)
	}
}

func (n *node) opened(_ context.Context, p *Client) {
	n.mu.Lock()
	n.peers = append(n.peers, p)
	n.mu.Unlock()
}

func (n *node) gone(*Client) {
	n.mu.Lock()
	n.closed++
	n.mu.Unlock()
}

func (n *node) refuse(p *Client, _ []byte, why error) {
	refusal, _ := apierror.As(why)
	_ = p.Send([]byte(`{"ok":false,"error":"` + refusal.Code + `"}`))
}

func (n *node) message(ctx context.Context, p *Client, raw []byte) {
	var m request
	if err := json.Unmarshal(raw, &m); err != nil {
		_ = p.Send([]byte(`{"ok":false,"error":"invalid_json"}`))
		return
	}
	switch m.Type {
	case "sub":
		_, err := p.Subscribe(ctx, n.subscription(m))
		if err != nil && !errors.Is(err, ErrClosed) {
			_ = p.Send([]byte(`{"replyTo":"` + m.ID + `","ok":false}`))
		}
	case "live":
		s := n.subscription(m)
		s.Snapshot = nil
		_, _ = p.Subscribe(ctx, s)
	case "unsub":
		p.Unsubscribe(m.Topic)
		_ = p.Send([]byte(`{"replyTo":"` + m.ID + `","ok":true}`))
	case "relay":
		_ = n.Broadcast(ctx, m.Topic, p, m.To, []byte(`{"type":"room.message","data":"`+m.Payload+`"}`))
	case "panic":
		panic("as asked")
	case "block":
		<-p.Done()
	case "note":
		n.mu.Lock()
		n.got = append(n.got, m.Payload)
		n.mu.Unlock()
	default:
		_ = p.Send([]byte(`{"replyTo":"` + m.ID + `","ok":true,"data":"` + m.Payload + `"}`))
	}
}

func (n *node) subscription(m request) Subscription {
	return Subscription{
		Topic: m.Topic, After: m.After,
		Snapshot: func(ctx context.Context) (Snapshot, error) {
			at, err := n.db.Client.HGet(ctx, stateKey(m.Topic), "position").Result()
			if errors.Is(err, redis.Nil) {
				at, err = "0-0", nil
			}
			if err != nil {
				return Snapshot{}, redisdb.WrapError("snapshot", err)
			}
			seq, _, _ := strings.Cut(at, "-")
			return Snapshot{
				Position: at, State: []byte(`{"seq":` + seq + `}`),
				Frame: []byte(`{"type":"room.snapshot","roomId":"` + m.Topic + `","seq":` + seq + `,"position":"` + at + `"}`),
			}, nil
		},
		Reply: func(s SubscribeResult) []byte {
			return fmt.Appendf(nil, `{"replyTo":%q,"ok":true,"data":{"mode":%q,"position":%q}}`, m.ID, s.Mode, s.Position)
		},
	}
}

// told is anything that a client hears.
type told struct {
	Type, RoomID, Position string
	Seq                    uint64
	ReplyTo                string
	OK                     bool
	Error                  string
	Data                   json.RawMessage
	frame                  int // number of the frame it came in
}

// client is a browser, as far as we care.
type client struct {
	t    testing.TB
	conn *websocket.Conn
	in   chan told
	end  chan struct{} // closed when the socket has ended
	err  error         // why
}

func dial(t testing.TB, n *node, query string) *client {
	t.Helper()
	c, status := tryDial(t, n, query, nil)
	if c == nil {
		t.Fatalf("dial %s: status %d", n.url, status)
	}
	return c
}

func tryDial(t testing.TB, n *node, query string, d *websocket.Dialer) (*client, int) {
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
	c := &client{t: t, conn: conn, in: make(chan told, 4096), end: make(chan struct{})}
	t.Cleanup(func() { _ = conn.Close() })
	return c, http.StatusSwitchingProtocols
}

// listen reads until the socket ends.
func (c *client) listen() *client {
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

func parseFrame(t testing.TB, raw []byte) []told {
	var many []told
	var err error
	if raw[0] == '[' {
		err = json.Unmarshal(raw, &many)
	} else {
		many = make([]told, 1)
		err = json.Unmarshal(raw, &many[0])
	}
	if err != nil {
		t.Errorf("a frame that is no JSON: %v: %.200s", err, raw)
	}
	return many
}

const patience = 15 * time.Second

// next is what the client hears next.
func (c *client) next() told {
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
	case <-time.After(patience):
		c.t.Fatal("nothing was heard")
	}
	return told{}
}

// nextEvent is the next event of a topic.
func (c *client) nextEvent() told {
	c.t.Helper()
	for {
		if e := c.next(); e.Type == "room.test" {
			return e
		}
	}
}

func (c *client) say(m request) {
	c.t.Helper()
	raw, _ := json.Marshal(m)
	if err := c.conn.WriteMessage(websocket.TextMessage, raw); err != nil {
		c.t.Fatalf("say %s: %v", m.Type, err)
	}
}

// follow subscribes and answers mode and position of the reply.
func (c *client) follow(topic, after string) (mode, at string) {
	c.t.Helper()
	c.say(request{ID: "s", Type: "sub", Topic: topic, After: after})
	for {
		e := c.next()
		if e.ReplyTo != "s" {
			continue
		}
		var d struct{ Mode, Position string }
		if err := json.Unmarshal(e.Data, &d); err != nil || !e.OK {
			c.t.Fatalf("subscribe: %+v", e)
		}
		return d.Mode, d.Position
	}
}

// code waits for the end and answers the close code, 1006 when there was none.
func (c *client) code() int {
	c.t.Helper()
	select {
	case <-c.end:
	case <-time.After(patience):
		c.t.Fatal("the socket is still open")
	}
	var closed *websocket.CloseError
	if errors.As(c.err, &closed) {
		return closed.Code
	}
	return websocket.CloseAbnormalClosure
}

// until waits for a condition.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for deadline := time.Now().Add(patience); !ok(); <-look.C {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
	}
}

// peer waits for the first peer whose handler was told that it is open.
func (n *node) peer(t testing.TB) *Client {
	t.Helper()
	var p *Client
	until(t, "a peer is here", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		if len(n.peers) > 0 {
			p = n.peers[0]
		}
		return p != nil
	})
	return p
}

// notes are the payloads of "note", in order.
func (n *node) notes() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.got)
}

// closes is how often OnClose ran.
func (n *node) closes() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.closed
}

// proxy stands between a node and Redis, to be cut.
type proxy struct {
	listener net.Listener
	target   string
	mu       sync.Mutex
	cutOff   bool
	conns    map[net.Conn]struct{}
	wg       sync.WaitGroup
}

func startProxy(t testing.TB, target string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, target: target, conns: map[net.Conn]struct{}{}}
	p.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.carry(conn) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); p.cut(); p.wg.Wait() })
	return p
}

func (p *proxy) carry(conn net.Conn) {
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
	if p.cutOff {
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

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutOff = true
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *proxy) mend() {
	p.mu.Lock()
	p.cutOff = false
	p.mu.Unlock()
}

func openAt(t testing.TB, url string) *redisdb.DB {
	t.Helper()
	db, err := redisdb.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
