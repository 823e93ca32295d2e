//go:build linux

package story

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/balancertest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// balancer is a running balancer.
type balancer struct {
	*nodetest.Node        // as if it were a node
	addr, plain    string // host:port for TLS and without
	// beforeStop is what an operator does before a node stops, by its host:port; nil for nothing.
	beforeStop func(node string)
}

// startBalancer runs HAProxy in front of up to three nodes.
func startBalancer(t *testing.T, urls ...string) *balancer {
	t.Helper()
	b := balancertest.Start(t, balancertest.Options{Certificate: certificates.Both, Nodes: urls})
	return &balancer{Node: b.Node, addr: b.Addr, plain: b.Plain}
}

const readyRequests = `parlor_http_requests_total{method="POST",route="/api/v1/game-session/ready"`

// socketEnd is how a socket ended.
type socketEnd struct {
	code int // close code; 0: without a close frame
	at   time.Time
}

// openSockets opens sockets through a node and sends to the channel how each ended.
func (f *fixture) openSockets(count int, p func(i int) player) <-chan socketEnd {
	f.t.Helper()
	ends := make(chan socketEnd, count)
	for i := range count {
		c := f.openSocket("/api/v1/realtime", p(i))
		c.event() // hello
		go func() {
			for {
				_ = c.conn.SetReadDeadline(time.Now().Add(time.Minute))
				if _, _, err := c.conn.ReadMessage(); err != nil {
					end := socketEnd{at: time.Now()}
					var closed *websocket.CloseError
					if errors.As(err, &closed) && closed.Code != websocket.CloseAbnormalClosure {
						end.code = closed.Code
					}
					ends <- end
					return
				}
			}
		}()
	}
	return ends
}

func TestBehindTheBalancerANodeDrainsAndNoRequestFails(t *testing.T) {
	store := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "always")
	a, b := nodetest.Start(t, store.URL(), "PARLOR_DRAIN_DELAY=3s"), nodetest.Start(t, store.URL())
	front := startBalancer(t, a.URL, b.URL)
	front.WaitReady(200)
	f := &fixture{t: t, nodes: [2]*nodetest.Node{front.Node, front.Node}}
	op := f.setUp(nil)
	ann, bob := f.guest(op.game, "Ann"), f.guest(op.game, "Bob")
	created := f.must(201, "POST", "/api/v1/game-session/create", ann.token, map[string]any{"maxPlayers": 2})
	room := created.Body["roomId"].(string)
	subscribers := []*subscriber{
		f.subscribe(ann, room), f.subscribe(bob, room), f.subscribe(ann, room), f.subscribe(bob, room),
	}
	f.must(200, "POST", "/api/v1/game-session/join", bob.token, map[string]any{"roomId": room})
	const sockets = 6
	ends := f.openSockets(sockets, func(i int) player { return []player{ann, bob}[i%2] })

	toggle := func(times int) {
		for i := range times {
			f.must(200, "POST", "/api/v1/game-session/ready", bob.token, map[string]any{"roomId": room, "ready": i%2 == 0})
		}
	}
	toggle(50)
	if nodetest.Metric(t, a, readyRequests) == 0 || nodetest.Metric(t, b, readyRequests) == 0 {
		t.Fatal("one node got all requests: the balancer is sticky")
	}
	open := nodetest.Metric(t, b, "parlor_realtime_sessions ")

	exited := make(chan int, 1)
	go func() { exited <- a.Terminate() }()
	toggle(50) // while the node drains
	if status := <-exited; status != 0 {
		t.Fatalf("the terminated node exits with %d", status)
	}
	toggle(50)
	last := int64(2 + 150)
	for i, s := range subscribers {
		redistest.Eventually(t, "a subscriber has received every event", func() bool { return len(s.events()) >= int(last) })
		for n, e := range s.events() {
			if e.Seq != int64(n+1) {
				t.Fatalf("subscriber %d received event %d as its %dth", i, e.Seq, n+1)
			}
		}
	}

	// The sockets of the node were told to come back; those of the other one are open.
	redistest.Eventually(t, "the subscribers have come to the other node", func() bool {
		return int(nodetest.Metric(t, b, "parlor_realtime_sessions "))+len(ends) == sockets+len(subscribers)
	})
	closed := len(ends)
	if closed == 0 || closed == sockets {
		t.Fatalf("%d of %d sockets were closed, and the other node had %v", closed, sockets, open)
	}
	for range closed {
		if end := <-ends; end.code != websocket.CloseServiceRestart {
			t.Errorf("a socket of the draining node closed with %d", end.code)
		}
	}
}

func TestBehindTheBalancerTheSocketsOfAFrozenNodeAreDroppedAtOnce(t *testing.T) {
	store := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "always")
	a, b := nodetest.Start(t, store.URL()), nodetest.Start(t, store.URL())
	front := startBalancer(t, a.URL, b.URL)
	front.WaitReady(200)
	f := &fixture{t: t, nodes: [2]*nodetest.Node{front.Node, front.Node}}
	op := f.setUp(nil)
	ann, bob := f.guest(op.game, "Ann"), f.guest(op.game, "Bob")
	const sockets = 8
	ends := f.openSockets(sockets, func(i int) player { return []player{ann, bob}[i%2] })
	onA := int(nodetest.Metric(t, a, "parlor_realtime_sessions "))
	if onA == 0 || onA == sockets {
		t.Fatalf("the frozen node has %d sockets of %d", onA, sockets)
	}
	frozen := time.Now()
	testkit.Check(t, syscall.Kill(a.Pid(), syscall.SIGSTOP))
	var slowest time.Duration
	for range onA {
		slowest = max(slowest, (<-ends).at.Sub(frozen))
	}
	t.Logf("%d sockets were dropped within %v", onA, slowest.Round(time.Millisecond))
	if limit := 3 * time.Second; slowest > limit { // 1 s, and a busy machine
		t.Errorf("the last socket was dropped after %v", slowest)
	}
	for range 20 {
		f.must(200, "GET", "/api/v1/me", ann.token, nil)
	}
	if len(ends) != 0 {
		t.Error("a socket of the other node was dropped")
	}
}

// connectFrom opens a TCP connection to the balancer from an address of this machine.
func (b *balancer) connectFrom(source string) (net.Conn, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}, Timeout: 10 * time.Second}
	return dialer.Dial("tcp", b.addr)
}

// isTimeout reports whether an operation on a connection took longer than it may.
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// isRejected reports whether the balancer closed a connection instead of waiting for TLS.
func isRejected(conn net.Conn) bool {
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	_, err := conn.Read(make([]byte, 1))
	return !isTimeout(err)
}

// statusFrom returns the status of a request from an address of this machine.
func (b *balancer) statusFrom(ctx context.Context, source, path string) (int, error) {
	transport := &http.Transport{
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return b.connectFrom(source) },
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.URL+path, http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, err
	}
	_ = response.Body.Close()
	return response.StatusCode, nil
}

func TestOneAddressCannotShutOthersOut(t *testing.T) {
	front := startBalancer(t, echoNode(t))
	front.WaitReady(200)
	const limit = 200
	var open []net.Conn
	defer func() {
		for _, conn := range open {
			_ = conn.Close()
		}
	}()
	var rejected atomic.Int32
	for range limit + 100 {
		conn, err := front.connectFrom("127.0.0.2")
		switch {
		case isTimeout(err):
			t.Fatal(err)
		case err != nil:
			rejected.Add(1) // at once
		default:
			open = append(open, conn)
		}
	}
	var reads sync.WaitGroup
	for _, conn := range open {
		reads.Go(func() {
			if isRejected(conn) {
				rejected.Add(1)
			}
		})
	}
	reads.Wait()
	// Which ones is not certain: the balancer's threads accept in any order.
	if n := rejected.Load(); n != 100 {
		t.Errorf("%d of %d connections were rejected, want 100", n, limit+100)
	}
	if status, err := front.statusFrom(t.Context(), "127.0.0.2", "/x"); err == nil {
		t.Errorf("the address beyond its limit was served: %d", status)
	}
	if status, err := front.statusFrom(t.Context(), "127.0.0.3", "/x"); err != nil || status != 200 {
		t.Errorf("another address got %d, %v", status, err)
	}
	for _, conn := range open {
		_ = conn.Close()
	}
	redistest.Eventually(t, "the address is served again", func() bool {
		status, err := front.statusFrom(t.Context(), "127.0.0.2", "/x")
		return err == nil && status == 200
	})
}

func TestAFullBalancerRejectsInsteadOfWaiting(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < 18000 {
		t.Skipf("needs 18,000 open files, and this process may have %d", limit.Cur)
	}
	front := startBalancer(t, echoNode(t))
	front.WaitReady(200)
	// As many connections as fit, from addresses that are all within their own limits.
	const full, perAddress = 7500, 190
	var mu sync.Mutex
	var open []net.Conn
	defer func() {
		for _, conn := range open {
			_ = conn.Close()
		}
	}()
	var sources sync.WaitGroup
	for first := 0; first < full+perAddress; first += perAddress {
		sources.Go(func() {
			for range perAddress {
				conn, err := front.connectFrom(fmt.Sprintf("127.0.1.%d", 1+first/perAddress))
				if isTimeout(err) {
					t.Errorf("a connection waits: %v", err)
				}
				if err != nil {
					return
				}
				mu.Lock()
				open = append(open, conn)
				mu.Unlock()
			}
		})
	}
	sources.Wait()
	began := time.Now()
	status, err := front.statusFrom(t.Context(), "127.0.0.3", "/x")
	if err == nil || time.Since(began) > 5*time.Second {
		t.Errorf("a client of a full balancer got %d, %v after %v", status, err, time.Since(began))
	}
}

// echoNode starts a server that any balancer takes for a node. It returns the headers of each
// request as lines.
func echoNode(t *testing.T) (url string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, values := range r.Header {
			for _, value := range values {
				_, _ = fmt.Fprintf(w, "%s: %s\n", name, value)
			}
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestTheBalancerAloneNamesTheClient(t *testing.T) {
	front := startBalancer(t, echoNode(t))
	front.WaitReady(200)
	for _, protocol := range []string{"http/1.1", "h2"} {
		transport := &http.Transport{
			ForceAttemptHTTP2: protocol == "h2",
			TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{protocol}},
		}
		request := testkit.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, front.URL+"/x", http.NoBody))(t)
		request.Header = http.Header{
			"X-Forwarded-For": {"203.0.113.1", "203.0.113.2"}, "X-Forwarded-Proto": {"gopher"}, "X-Real-Ip": {"203.0.113.3"},
			"Forwarded": {"for=203.0.113.4"}, "X-Forwarded-Host": {"evil.example"}, "X-Forwarded-Port": {"1"},
		}
		response := testkit.Must(transport.RoundTrip(request))(t)
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		transport.CloseIdleConnections()
		testkit.Check(t, err)
		if text := string(body); strings.Contains(text, "203.0.113.") || strings.Contains(text, "gopher") ||
			strings.Contains(text, "evil.example") || strings.Contains(text, "X-Forwarded-Port") ||
			strings.Count(text, "X-Forwarded-For: 127.0.0.1\n") != 1 ||
			strings.Count(text, "X-Forwarded-Proto: https\n") != 1 {
			t.Errorf("over %s a node gets\n%s", response.Proto, text)
		}
		if got := response.Header.Get("Strict-Transport-Security"); got != "max-age=31536000" {
			t.Errorf("Strict-Transport-Security is %q", got)
		}
	}

	// Without TLS there is only the way to it.
	conn := testkit.Must(net.Dial("tcp", front.plain))(t)
	defer func() { _ = conn.Close() }()
	fmt.Fprint(conn, "POST /join?x=1 HTTP/1.1\r\nHost: play.example\r\nContent-Length: 0\r\n\r\n")
	response := testkit.Must(http.ReadResponse(bufio.NewReader(conn), nil))(t)
	defer func() { _ = response.Body.Close() }()
	if to := response.Header.Get("Location"); response.StatusCode != 308 || to != "https://play.example/join?x=1" {
		t.Errorf("plain HTTP returns %d to %q", response.StatusCode, to)
	}
}

func TestWithoutANodeTheBalancerReturnsAProblem(t *testing.T) {
	front := startBalancer(t)
	redistest.Eventually(t, "the balancer has found out", func() bool {
		r, err := front.Do(t.Context(), "GET", "/readyz", "", nil)
		return err == nil && r.Status == 503
	})
	r := front.Must(t, 503, "POST", "/join", "", nil)
	if r.Code() != "store_unavailable" || r.Header.Get("Content-Type") != "application/problem+json" ||
		r.Header.Get("Retry-After") != "1" || r.Header.Get("Strict-Transport-Security") == "" || r.Body["retryable"] != true {
		t.Errorf("%v %s", r.Header, r)
	}
}
