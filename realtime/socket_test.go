package realtime

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
)

// The numbers m1 to m19 name ways in which a careless use of melody kills, loses or leaks.

func TestClosingASlowClientNeitherRecursesNorLeavesItOpen(t *testing.T) { // m1, m2, m16
	n := startNode(t, redistest.Single(t), Options{WriteTimeout: 500 * time.Millisecond, CloseTimeout: 200 * time.Millisecond})
	c := dial(t, n, "user=1") // never reads
	p := n.peer(t)
	frame := []byte(`"` + strings.Repeat("x", 60<<10) + `"`)
	var err error
	for range 2 * maxOutboxFrames {
		if err = p.Send(frame); err != nil {
			break
		}
	}
	if err == nil {
		t.Fatal("a client that reads nothing was given everything")
	}
	until(t, "it is gone", func() bool { return n.Stats().Sessions == 0 })
	until(t, "its handler was told", func() bool { return n.closes() == 1 })
	if n.Stats().SlowCloses != 1 {
		t.Errorf("%+v", n.Stats())
	}
	_ = c
}

func TestFramesBeforeACloseArriveAndTheEchoIsAwaited(t *testing.T) { // m2, m16, m17
	n := startNode(t, redistest.Single(t), Options{})
	c := dial(t, n, "user=1").listen()
	c.next()
	p := n.peer(t)
	const frames = 100
	for i := range frames {
		_ = p.Send(fmt.Appendf(nil, `{"replyTo":"%d"}`, i))
	}
	p.Close(CloseForbidden, strings.Repeat("long ", 100))
	for i := range frames {
		if e := c.next(); e.ReplyTo != fmt.Sprint(i) {
			t.Fatalf("came %+v, want %d", e, i)
		}
	}
	if code := c.code(); code != CloseForbidden {
		t.Errorf("closed with %d: %v", code, c.err)
	}
	until(t, "it is gone", func() bool { return n.Stats().Sessions == 0 })
	if err := p.Send([]byte("{}")); err != ErrClosed {
		t.Errorf("Send to a closed socket: %v", err)
	}
	if _, err := p.Subscribe(t.Context(), Subscription{Topic: "{r1}:late"}); err != ErrClosed {
		t.Errorf("Subscribe on a closed socket: %v", err)
	}
}

func TestAPanicClosesItsSocketOnly(t *testing.T) { // m7
	n := startNode(t, redistest.Single(t), Options{})
	good, bad := dial(t, n, "user=1").listen(), dial(t, n, "user=2").listen()
	good.next()
	bad.next()
	bad.say(request{Type: "panic"})
	if code := bad.code(); code != CloseInternal {
		t.Errorf("closed with %d", code)
	}
	good.say(request{ID: "1"})
	if e := good.next(); e.ReplyTo != "1" {
		t.Errorf("the other heard %+v", e)
	}
	until(t, "the bad one is gone", func() bool { return n.Stats().Sessions == 1 })
	if n.Stats().Panics != 1 {
		t.Errorf("%d panics counted", n.Stats().Panics)
	}
}

func TestAPanicWhileAFrameIsRefusedLeavesNoZombie(t *testing.T) { // m7, on the goroutine that reads
	n := startNode(t, redistest.Single(t), Options{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = n.socket.Serve(w, r, Session{User: 1, OnMessage: n.message, OnRefused: func(*Client, []byte, error) { panic("no") }, OnClose: func(*Client) { panic("never") }})
	}))
	defer server.Close()
	conn, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(server.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.WriteMessage(websocket.BinaryMessage, []byte{1})
	until(t, "it is gone", func() bool { return n.Stats().Sessions == 0 && n.Stats().Panics == 2 })
}

func TestAnActiveClientThatDoesNotPongStays(t *testing.T) { // m8
	t.Parallel()
	n := startNode(t, redistest.Single(t), Options{PongTimeout: 1500 * time.Millisecond, PingInterval: 200 * time.Millisecond})
	active, silent := dial(t, n, "user=1"), dial(t, n, "user=2")
	for _, c := range []*client{active, silent} {
		c.conn.SetPingHandler(func(string) error { return nil })
		c.listen().next()
	}
	pings := dial(t, n, "user=3").listen()
	pings.conn.SetPingHandler(func(string) error { return nil })
	begun := time.Now()
	pace := time.NewTicker(50 * time.Millisecond)
	defer pace.Stop()
	for i := 0; time.Since(begun) < 3*time.Second; i++ {
		active.say(request{ID: fmt.Sprint(i)})
		if e := active.next(); e.ReplyTo != fmt.Sprint(i) {
			t.Fatalf("%+v", e)
		}
		_ = pings.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second))
		<-pace.C
	}
	if code := silent.code(); code != websocket.CloseAbnormalClosure {
		t.Errorf("the silent one was closed with %d", code)
	}
	if n.Stats().Sessions != 2 {
		t.Errorf("%d sessions are left, want 2", n.Stats().Sessions)
	}
}

func TestASlowHandlerHoldsUpNeitherPongsNorOrder(t *testing.T) { // m9
	t.Parallel()
	n := startNode(t, redistest.Single(t), Options{PongTimeout: 1500 * time.Millisecond, PingInterval: 200 * time.Millisecond})
	c := dial(t, n, "user=1").listen()
	c.next()
	c.say(request{Type: "block"})
	begun := time.Now()
	c.say(request{Type: "note", Payload: "after"})
	until(t, "well past the wait for a pong", func() bool { return time.Since(begun) > 3*time.Second })
	select {
	case <-c.end:
		t.Fatalf("the socket was closed while its handler was busy: %v", c.err)
	default:
	}
	// What came in before the socket closed is still handled, in order.
	for i := range 50 {
		c.say(request{Type: "note", Payload: fmt.Sprint(i)})
	}
	_ = c.conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""))
	until(t, "all is noted", func() bool { return len(n.notes()) == 51 })
	for i, got := range n.notes()[1:] {
		if got != fmt.Sprint(i) {
			t.Fatalf("noted %v", n.notes())
		}
	}
}

func TestFramesUpToTheLimitAndNoLarger(t *testing.T) { // m10, m18
	t.Parallel()
	n := startNode(t, redistest.Single(t), Options{})
	large := n.Socket(Limits{MaxFrame: 256 << 10, Rate: 10, Burst: 20})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = large.Serve(w, r, Session{User: 1, OnMessage: n.message, OnRefused: n.refuse})
	}))
	defer server.Close()
	for _, c := range []struct {
		url   string
		limit int
	}{{n.url, 16 << 10}, {"ws" + strings.TrimPrefix(server.URL, "http"), 256 << 10}} {
		for _, over := range []int{0, 1, 4 * c.limit} {
			conn, _, err := websocket.DefaultDialer.Dial(c.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			head, tail := `{"id":"x","payload":"`, `"}`
			raw := head + strings.Repeat("y", c.limit+over-len(head)-len(tail)) + tail
			_ = conn.WriteMessage(websocket.TextMessage, []byte(raw))
			var code int
			for {
				_ = conn.SetReadDeadline(time.Now().Add(patience))
				_, got, err := conn.ReadMessage()
				if err != nil {
					closed, ok := err.(*websocket.CloseError)
					if !ok {
						t.Fatalf("limit %d, %d over: %v", c.limit, over, err)
					}
					code = closed.Code
					break
				}
				if strings.Contains(string(got), `"replyTo":"x"`) {
					break
				}
			}
			if want := map[bool]int{true: 0, false: websocket.CloseMessageTooBig}[over == 0]; code != want {
				t.Errorf("limit %d, %d over: closed with %d, want %d", c.limit, over, code, want)
			}
			_ = conn.Close()
		}
	}
	until(t, "all are gone", func() bool { return n.Stats().Sessions == 0 })
}

func TestNoCompressionIsOffered(t *testing.T) { // m10, m13
	n := startNode(t, redistest.Single(t), Options{})
	conn, response, err := (&websocket.Dialer{EnableCompression: true}).Dial(n.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if got := response.Header.Get("Sec-Websocket-Extensions"); got != "" {
		t.Errorf("agreed to %s", got)
	}
}

func TestWrongFramesAreAnsweredAndTheSocketStays(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{})
	c := dial(t, n, "user=1").listen()
	c.next()
	_ = c.conn.WriteMessage(websocket.BinaryMessage, []byte{1, 2})
	if e := c.next(); e.Error != "invalid_request" {
		t.Errorf("a binary frame: %+v", e)
	}
	_ = c.conn.WriteMessage(websocket.TextMessage, []byte(`{`))
	if e := c.next(); e.Error != "invalid_json" {
		t.Errorf("a malformed frame: %+v", e)
	}
	c.say(request{ID: "1"})
	if e := c.next(); e.ReplyTo != "1" {
		t.Errorf("%+v", e)
	}
}

func TestTooManyFramesCloseTheSocket(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{})
	c := dial(t, n, "user=1").listen()
	c.next()
	for i := range 120 { // the burst
		c.say(request{ID: fmt.Sprint(i)})
	}
	for i := range 120 {
		if e := c.next(); e.ReplyTo != fmt.Sprint(i) {
			t.Fatalf("%+v", e)
		}
	}
	for range 200 {
		raw := []byte(`{"id":"more"}`)
		if c.conn.WriteMessage(websocket.TextMessage, raw) != nil {
			break
		}
	}
	if code := c.code(); code != CloseRateLimited {
		t.Errorf("closed with %d: %v", code, c.err)
	}
	if n.Stats().RateCloses != 1 {
		t.Errorf("%d sockets were counted", n.Stats().RateCloses)
	}
}

func TestTooManyPingsCloseTheSocket(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{})
	c := dial(t, n, "user=1").listen()
	for range 1000 {
		if c.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(patience)) != nil {
			break
		}
	}
	if code := c.code(); code != CloseRateLimited {
		t.Errorf("closed with %d: %v", code, c.err)
	}
}

func TestAnExpiredTokenEndsTheSocket(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{})
	if code := dial(t, n, "user=1&expires=50ms").listen().code(); code != CloseExpired {
		t.Errorf("closed with %d", code)
	}
	if code := dial(t, n, "user=1&expires=-1s").listen().code(); code != CloseExpired {
		t.Errorf("expired before: closed with %d", code)
	}
}

func TestConnectionsOfOneUserAreLimited(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{PerUser: 2})
	a := dial(t, n, "user=1").listen()
	dial(t, n, "user=1").listen()
	if _, status := tryDial(t, n, "user=1", nil); status != http.StatusTooManyRequests {
		t.Errorf("the third: %d", status)
	}
	dial(t, n, "user=2").listen()
	_ = a.conn.Close()
	until(t, "one is gone", func() bool { return n.Stats().Sessions == 2 })
	dial(t, n, "user=1").listen()
}

func TestWhatIsNoUpgradeIsRefusedWhileItCanBeAnswered(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{})
	good := http.Header{"Connection": {"keep-alive, Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}}
	for name, change := range map[string]func(h http.Header){
		"no upgrade": func(h http.Header) { h.Del("Upgrade") },
		"version":    func(h http.Header) { h.Set("Sec-Websocket-Version", "8") },
		"key":        func(h http.Header) { h.Set("Sec-Websocket-Key", "short") },
		"recorder":   func(http.Header) {}, // cannot be hijacked
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header = good.Clone()
		change(r.Header)
		err := n.socket.Serve(httptest.NewRecorder(), r, Session{})
		if refusal, ok := apierror.As(err); !ok || refusal.Code != "invalid_request" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s := n.Stats(); s.Sessions != 0 {
		t.Errorf("%+v", s)
	}
	// Bytes that come before the upgrade is answered are no frames; the connection ends.
	conn, err := net.Dial("tcp", strings.TrimPrefix(n.url, "ws://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\nearly")
	_, _ = io.ReadAll(conn)
	until(t, "it is gone", func() bool { return n.Stats().Sessions == 0 })
}

func TestDrainTellsThenClosesThenEnds(t *testing.T) { // m5, m6, m19
	t.Parallel()
	n := startNode(t, redistest.Single(t), Options{DrainSpread: 300 * time.Millisecond, CloseTimeout: 300 * time.Millisecond})
	var clients []*client
	for i := range 20 {
		c := dial(t, n, fmt.Sprint("user=", i)).listen()
		c.next()
		clients = append(clients, c)
	}
	deaf := dial(t, n, "user=99") // never echoes
	if err := n.Drain(t.Context()); err != nil {
		t.Fatalf("drain: %v", err)
	}
	if n.Stats().Sessions != 0 {
		t.Fatal("sessions are left")
	}
	for _, c := range clients {
		if e := c.next(); e.Type != "server.draining" || !strings.Contains(string(e.Data), "reconnectInMs") {
			t.Fatalf("heard %+v", e)
		}
		if code := c.code(); code != CloseRestart {
			t.Fatalf("closed with %d", code)
		}
	}
	if _, status := tryDial(t, n, "user=1", nil); status != http.StatusServiceUnavailable {
		t.Errorf("a new one: %d", status)
	}
	_ = deaf
}

func TestAHubThatEndsLeavesNothingBehind(t *testing.T) { // m6, m19
	db := redistest.Single(t)
	n := startNode(t, db, Options{})
	// Upgrades race the end.
	stop := make(chan struct{})
	racing := make(chan struct{})
	go func() {
		defer close(racing)
		for {
			select {
			case <-stop:
				return
			default:
				conn, _, err := websocket.DefaultDialer.Dial(n.url+"/?user=1", nil)
				if err == nil {
					defer func() { _ = conn.Close() }()
					_ = conn.WriteMessage(websocket.TextMessage, []byte(`{"id":"s","type":"sub","topic":"{r1}:race"}`))
				}
			}
		}
	}()
	until(t, "some are here", func() bool { return n.Stats().Sessions > 10 })
	n.end()
	close(stop)
	<-racing
	if s := n.Stats(); s.Sessions != 0 || s.PubSubConns != 0 {
		t.Errorf("left: %+v", s)
	}
	until(t, "no goroutine of a socket or the hub", func() bool { return len(stacks()) == 0 })
}

func TestADrainThatTakesTooLongIsCut(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{})
	dial(t, n, "user=1") // answers no close frame
	n.peer(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := n.Drain(ctx); err == nil {
		t.Error("the drain did not tell")
	}
	if n.Stats().Sessions != 0 {
		t.Error("a session is left")
	}
}

// stacks lists goroutines that run our or melody's code, tests apart.
func stacks() []string {
	buffer := make([]byte, 4<<20)
	all := strings.Split(string(buffer[:runtime.Stack(buffer, true)]), "\n\n")
	return slices.DeleteFunc(all, func(s string) bool {
		return strings.Contains(s, "_test.go") || !strings.Contains(s, "olahol/melody") && !strings.Contains(s, "parlor/realtime")
	})
}
