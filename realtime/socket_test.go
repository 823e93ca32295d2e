package realtime

import (
	"bufio"
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
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// Some of these tests guard against a trap of melody or gorilla/websocket. Their comments describe
// it.

// melody's ClientOptions.Close puts the close frame into the session's message buffer. When that is
// full, melody calls the error handler instead: a handler that closes the session recurses, and one
// that does not leaves it open.
func TestClosingASlowClientNeitherRecursesNorLeavesItOpen(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{
		WriteTimeout: 500 * time.Millisecond, CloseTimeout: 200 * time.Millisecond,
	})
	dial(t, n, "user=1") // never reads
	client := n.firstClient(t)
	frame := []byte(`"` + strings.Repeat("x", 60<<10) + `"`)
	var err error
	for range 2 * maxOutboxFrames {
		if err = client.Send(frame); err != nil {
			break
		}
	}
	if err == nil {
		t.Fatal("Send never failed although the client reads nothing")
	}
	waitUntil(t, "the session has ended", func() bool { return n.Stats().Clients == 0 })
	waitUntil(t, "OnClose was called", func() bool { return n.closeCount() == 1 })
	if n.Stats().SlowCloses != 1 {
		t.Errorf("%d slow closes are counted, want 1", n.Stats().SlowCloses)
	}
}

// melody closes the connection right after it has written a close frame, so that frames that the
// client is sending reset it before the close code arrives. gorilla refuses to write a close frame
// of more than 125 bytes.
func TestFramesBeforeACloseArriveAndTheClientsCloseFrameIsAwaited(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{})
	c := dial(t, n, "user=1").listen()
	c.next()
	client := n.firstClient(t)
	const frames = 100
	for i := range frames {
		_ = client.Send(fmt.Appendf(nil, `{"replyTo":"%d"}`, i))
	}
	client.Close(CloseExpired, strings.Repeat("long ", 100))
	for i := range frames {
		if e := c.next(); e.ReplyTo != fmt.Sprint(i) {
			t.Fatalf("got %+v, want the reply to %d", e, i)
		}
	}
	if code := c.waitCloseCode(); code != CloseExpired {
		t.Errorf("closed with %d: %v", code, c.err)
	}
	waitUntil(t, "the session has ended", func() bool { return n.Stats().Clients == 0 })
	if err := client.Send([]byte("{}")); err != ErrClosed {
		t.Errorf("Send to a closed socket: %v", err)
	}
	if _, err := client.Subscribe(t.Context(), Subscription{Topic: "{r1}:late"}); err != ErrClosed {
		t.Errorf("Subscribe on a closed socket: %v", err)
	}
}

// melody does not recover from panics of its handlers: a panic ends the process.
func TestAPanicClosesItsSocketOnly(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{})
	good, bad := dial(t, n, "user=1").listen(), dial(t, n, "user=2").listen()
	good.next()
	bad.next()
	bad.send(request{Type: "panic"})
	if code := bad.waitCloseCode(); code != CloseInternal {
		t.Errorf("closed with %d", code)
	}
	good.send(request{ID: "1"})
	if e := good.next(); e.ReplyTo != "1" {
		t.Errorf("the other client received %+v", e)
	}
	waitUntil(t, "the session with the panic has ended", func() bool { return n.Stats().Clients == 1 })
	if n.Stats().Panics != 1 {
		t.Errorf("%d panics are counted, want 1", n.Stats().Panics)
	}
}

// A panic on the goroutine that reads, if it is only recovered, leaves an open socket that nobody
// reads.
func TestAPanicOfOnRefusedOrOnCloseEndsTheSession(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = n.socket.Serve(w, r, ClientOptions{
			UserID: 1, OnMessage: n.onMessage,
			OnRefused: func(*Client, []byte, error) { panic("OnRefused") },
			OnClose:   func(*Client) { panic("OnClose") },
		})
	}))
	defer server.Close()
	conn, _ := testkit.Must2(websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(server.URL, "http"), nil))(t)
	defer func() { _ = conn.Close() }()
	_ = conn.WriteMessage(websocket.BinaryMessage, []byte{1})
	waitUntil(t, "the session has ended with two panics", func() bool {
		return n.Stats().Clients == 0 && n.Stats().Panics == 2
	})
}

// melody extends the read deadline by pongs only, and some clients do not reply to pings while they
// send.
func TestAnActiveClientThatDoesNotPongStays(t *testing.T) {
	t.Parallel()
	n := startNode(t, redistest.Single(t), Options{
		PongTimeout: 1500 * time.Millisecond, PingInterval: 200 * time.Millisecond,
	})
	active, silent := dial(t, n, "user=1"), dial(t, n, "user=2")
	for _, c := range []*testClient{active, silent} {
		c.conn.SetPingHandler(func(string) error { return nil })
		c.listen().next()
	}
	pings := dial(t, n, "user=3").listen()
	pings.conn.SetPingHandler(func(string) error { return nil })
	begun := time.Now()
	pace := time.NewTicker(50 * time.Millisecond)
	defer pace.Stop()
	for i := 0; time.Since(begun) < 3*time.Second; i++ {
		active.send(request{ID: fmt.Sprint(i)})
		if e := active.next(); e.ReplyTo != fmt.Sprint(i) {
			t.Fatalf("got %+v, want the reply to %d", e, i)
		}
		_ = pings.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second))
		<-pace.C
	}
	if code := silent.waitCloseCode(); code != websocket.CloseAbnormalClosure {
		t.Errorf("the silent client was closed with %d", code)
	}
	if n.Stats().Clients != 2 {
		t.Errorf("%d sessions are left, want 2", n.Stats().Clients)
	}
}

// melody calls the message handler on the goroutine that reads, so a slow handler delays pongs. Its
// option ConcurrentMessageHandling loses the order of messages.
func TestASlowHandlerDelaysNoPongsAndKeepsTheOrder(t *testing.T) {
	t.Parallel()
	n := startNode(t, redistest.Single(t), Options{
		PongTimeout: 1500 * time.Millisecond, PingInterval: 200 * time.Millisecond,
	})
	c := dial(t, n, "user=1").listen()
	c.next()
	c.send(request{Type: "block"})
	begun := time.Now()
	c.send(request{Type: "note", Payload: "after"})
	waitUntil(t, "twice PongTimeout has passed", func() bool { return time.Since(begun) > 3*time.Second })
	select {
	case <-c.end:
		t.Fatalf("the socket was closed while its handler was busy: %v", c.err)
	default:
	}
	// What came in before the socket closed is still handled, in order.
	for i := range 50 {
		c.send(request{Type: "note", Payload: fmt.Sprint(i)})
	}
	_ = c.conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""))
	waitUntil(t, "all notes are handled", func() bool { return len(n.notes()) == 51 })
	for i, got := range n.notes()[1:] {
		if got != fmt.Sprint(i) {
			t.Fatalf("the notes are %v", n.notes())
		}
	}
}

// melody's limit is 512 bytes by default and is the same for all clients of an instance. gorilla
// sends close code 1009 for a larger frame, but closing the connection with unread bytes resets it
// before the code arrives.
func TestFramesUpToTheLimitAndNoLarger(t *testing.T) {
	t.Parallel()
	n := startNode(t, redistest.Single(t), Options{})
	large := n.NewSocketKind(Limits{MaxFrameBytes: 256 << 10, FramesPerSecond: 10, BurstFrames: 20})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = large.Serve(w, r, ClientOptions{UserID: 1, OnMessage: n.onMessage, OnRefused: n.onRefused})
	}))
	defer server.Close()
	for _, c := range []struct {
		url   string
		limit int
	}{{n.url, 16 << 10}, {"ws" + strings.TrimPrefix(server.URL, "http"), 256 << 10}} {
		for _, over := range []int{0, 1, 4 * c.limit} {
			conn, _ := testkit.Must2(websocket.DefaultDialer.Dial(c.url, nil))(t)
			head, tail := `{"id":"x","payload":"`, `"}`
			raw := head + strings.Repeat("y", c.limit+over-len(head)-len(tail)) + tail
			_ = conn.WriteMessage(websocket.TextMessage, []byte(raw))
			var code int
			for {
				_ = conn.SetReadDeadline(time.Now().Add(testTimeout))
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
	waitUntil(t, "all sessions have ended", func() bool { return n.Stats().Clients == 0 })
}

// gorilla applies the read limit to compressed bytes, so that a small frame could unpack to any
// size.
func TestNoCompressionIsOffered(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{})
	conn, response := testkit.Must2((&websocket.Dialer{EnableCompression: true}).Dial(n.url, nil))(t)
	defer func() { _ = conn.Close() }()
	if got := response.Header.Get("Sec-Websocket-Extensions"); got != "" {
		t.Errorf("the server agreed to %s", got)
	}
}

func TestInvalidFramesGetAReplyAndTheSocketStays(t *testing.T) {
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
	c.send(request{ID: "1"})
	if e := c.next(); e.ReplyTo != "1" {
		t.Errorf("got %+v, want the reply to 1", e)
	}
}

func TestTooManyFramesCloseTheSocket(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{})
	c := dial(t, n, "user=1").listen()
	c.next()
	for i := range 120 { // the burst
		c.send(request{ID: fmt.Sprint(i)})
	}
	for i := range 120 {
		if e := c.next(); e.ReplyTo != fmt.Sprint(i) {
			t.Fatalf("got %+v, want the reply to %d", e, i)
		}
	}
	for range 200 {
		raw := []byte(`{"id":"more"}`)
		if c.conn.WriteMessage(websocket.TextMessage, raw) != nil {
			break
		}
	}
	if code := c.waitCloseCode(); code != CloseRateLimited {
		t.Errorf("closed with %d: %v", code, c.err)
	}
	if n.Stats().RateCloses != 1 {
		t.Errorf("%d rate closes are counted, want 1", n.Stats().RateCloses)
	}
}

func TestTooManyPingsCloseTheSocket(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{})
	c := dial(t, n, "user=1").listen()
	for range 1000 {
		if c.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(testTimeout)) != nil {
			break
		}
	}
	if code := c.waitCloseCode(); code != CloseRateLimited {
		t.Errorf("closed with %d: %v", code, c.err)
	}
}

func TestAnExpiredTokenEndsTheSocket(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{})
	if code := dial(t, n, "user=1&expires=50ms").listen().waitCloseCode(); code != CloseExpired {
		t.Errorf("closed with %d", code)
	}
	if code := dial(t, n, "user=1&expires=-1s").listen().waitCloseCode(); code != CloseExpired {
		t.Errorf("with an expired token: closed with %d", code)
	}
}

func TestConnectionsOfOneUserAreLimited(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{ConnectionsPerUser: 2})
	a := dial(t, n, "user=1").listen()
	dial(t, n, "user=1").listen()
	if _, status := tryDial(t, n, "user=1", nil); status != http.StatusTooManyRequests {
		t.Errorf("the third connection got status %d", status)
	}
	dial(t, n, "user=2").listen()
	_ = a.conn.Close()
	waitUntil(t, "one session has ended", func() bool { return n.Stats().Clients == 2 })
	dial(t, n, "user=1").listen()
}

func TestARequestThatIsNoUpgradeGetsAnErrorResponse(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{})
	valid := http.Header{
		"Connection": {"keep-alive, Upgrade"}, "Upgrade": {"websocket"},
		"Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="},
	}
	for name, change := range map[string]func(h http.Header){
		"no upgrade": func(h http.Header) { h.Del("Upgrade") },
		"version":    func(h http.Header) { h.Set("Sec-Websocket-Version", "8") },
		"key":        func(h http.Header) { h.Set("Sec-Websocket-Key", "short") },
		"recorder":   func(http.Header) {}, // cannot be hijacked
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header = valid.Clone()
		change(r.Header)
		err := n.socket.Serve(httptest.NewRecorder(), r, ClientOptions{})
		if e, ok := apierror.As(err); !ok || e.Code != apierror.InvalidRequest.Code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s := n.Stats(); s.Clients != 0 {
		t.Errorf("%d sessions are open", s.Clients)
	}
	// A client must wait for the response before it sends frames. Bytes that come earlier end the
	// connection.
	conn := testkit.Must(net.Dial("tcp", strings.TrimPrefix(n.url, "ws://")))(t)
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\nearly")
	_, _ = io.ReadAll(conn)
	waitUntil(t, "the session has ended", func() bool { return n.Stats().Clients == 0 })
}

// melody's Close puts one close frame into every session's buffer, without a code, and returns
// before they are closed.
func TestDrainAnnouncesThenClosesThenReturns(t *testing.T) {
	t.Parallel()
	n := startNode(t, redistest.Single(t), Options{
		DrainSpread: 300 * time.Millisecond, CloseTimeout: 300 * time.Millisecond,
	})
	var clients []*testClient
	for i := range 20 {
		c := dial(t, n, fmt.Sprint("user=", i)).listen()
		c.next()
		clients = append(clients, c)
	}
	dial(t, n, "user=99") // returns no close frame
	testkit.Check(t, n.Drain(t.Context()), "drain")
	if n.Stats().Clients != 0 {
		t.Fatalf("%d sessions are left", n.Stats().Clients)
	}
	for _, c := range clients {
		if e := c.next(); e.Type != "server.draining" || !strings.Contains(string(e.Data), "reconnectInMs") {
			t.Fatalf("got %+v, want server.draining", e)
		}
		if code := c.waitCloseCode(); code != CloseRestart {
			t.Fatalf("closed with %d", code)
		}
	}
	if _, status := tryDial(t, n, "user=1", nil); status != http.StatusServiceUnavailable {
		t.Errorf("a new connection got status %d", status)
	}
}

// sendingHijacker sends a message to every client of the hub while a connection is taken over.
type sendingHijacker struct {
	http.ResponseWriter
	hub  *Hub
	sent chan error
}

func (h *sendingHijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	for _, c := range h.hub.listClients() {
		go func() { h.sent <- c.Send([]byte(`{"type":"early"}`)) }()
	}
	return http.NewResponseController(h.ResponseWriter).Hijack()
}

// A hub that drains sends to clients in their upgrade too. The race detector must find nothing.
func TestAMessageToAClientInItsUpgradeIsDelivered(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{})
	sent := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = n.socket.Serve(&sendingHijacker{w, n.Hub, sent}, r, ClientOptions{
			UserID: 1, OnMessage: n.onMessage, OnRefused: n.onRefused,
		})
	}))
	defer server.Close()
	conn, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(server.URL, "http"), nil)
	testkit.Check(t, err)
	defer func() { _ = conn.Close() }()
	testkit.Check(t, <-sent)
	for {
		_, frame, err := conn.ReadMessage()
		testkit.Check(t, err)
		if strings.Contains(string(frame), `"early"`) {
			return
		}
	}
}

// A client whose upgrade is under way when melody is closed is not in melody's list and is never
// closed.
func TestAHubThatEndsLeavesNothingBehind(t *testing.T) {
	db := redistest.Single(t)
	n := startNode(t, db, Options{})
	// Upgrades race with the end.
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
	waitUntil(t, "some sessions are open", func() bool { return n.Stats().Clients > 10 })
	n.end()
	close(stop)
	<-racing
	if s := n.Stats(); s.Clients != 0 || s.PubSubConns != 0 {
		t.Errorf("%d sessions and %d pub/sub connections are left", s.Clients, s.PubSubConns)
	}
	waitUntil(t, "no goroutine of a socket or the hub is left", func() bool { return len(leakedGoroutines()) == 0 })
}

func TestADrainThatTakesTooLongIsCutShort(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{})
	dial(t, n, "user=1") // returns no close frame
	n.firstClient(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := n.Drain(ctx); err == nil {
		t.Error("Drain returned no error")
	}
	if n.Stats().Clients != 0 {
		t.Error("a session is left")
	}
}

// leakedGoroutines returns the stacks of goroutines that run this package's or melody's code,
// without tests.
func leakedGoroutines() []string {
	buffer := make([]byte, 4<<20)
	all := strings.Split(string(buffer[:runtime.Stack(buffer, true)]), "\n\n")
	return slices.DeleteFunc(all, func(s string) bool {
		ours := strings.Contains(s, "olahol/melody") || strings.Contains(s, "parlor/realtime")
		return !ours || strings.Contains(s, "_test.go")
	})
}
