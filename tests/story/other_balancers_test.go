//go:build linux

package story

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
	"golang.org/x/time/rate"
)

// otherBalancers start what deploy has files for beside HAProxy, in front of two nodes.
var otherBalancers = map[string]func(t *testing.T, nodes [2]string) *balancer{
	"nginx": startNginx, "caddy": startCaddy,
}

// programIn returns the path of a program. Debian has some in a folder that is not in every PATH.
func programIn(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	return "/usr/sbin/" + name
}

// replaceExactly replaces each text, which must be there.
func replaceExactly(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the file has no %q", pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

// startNginx runs nginx with the file of deploy. Only addresses and paths are replaced.
func startNginx(t *testing.T, nodes [2]string) *balancer {
	t.Helper()
	shipped := testkit.Must(os.ReadFile("../../deploy/nginx.conf"))(t)
	b, dir := &balancer{addr: nodetest.FreeAddress(t), plain: nodetest.FreeAddress(t)}, t.TempDir()
	text := replaceExactly(t, string(shipped),
		"/tmp/", dir+"/", "/run/secrets/tls.pem", certificates.Both,
		"listen 443 ", "listen "+b.addr+" ", "listen 80;", "listen "+b.plain+";",
		"node1:8080", nodes[0], "node2:8080", nodes[1], "node3:8080", nodetest.ReserveAddress(t))
	file := filepath.Join(dir, "nginx.conf")
	write := func(text string) {
		testkit.Check(t, os.WriteFile(file, []byte(text), 0o600))
	}
	write(text)
	process := nodetest.Run(t, exec.Command(programIn("nginx"), "-p", dir, "-c", file, "-g", "daemon off;"))
	// A node that will stop is marked in the file, and nginx reads the file again.
	b.beforeStop = func(node string) {
		server := "server " + node + " "
		write(replaceExactly(t, text, server, server+"down "))
		testkit.Check(t, process.Signal(syscall.SIGHUP))
	}
	b.Node = nodetest.Remote(t, "https://"+b.addr)
	return b
}

// startCaddy runs Caddy with the file of deploy.
func startCaddy(t *testing.T, nodes [2]string) *balancer {
	t.Helper()
	b, dir := &balancer{addr: nodetest.FreeAddress(t), plain: nodetest.FreeAddress(t)}, t.TempDir()
	_, port, _ := net.SplitHostPort(b.addr)
	_, plainPort, _ := net.SplitHostPort(b.plain)
	c := exec.Command(programIn("caddy"), "run", "--config", "../../deploy/Caddyfile", "--adapter", "caddyfile")
	c.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir,
		"PARLOR_CADDY_ADMIN="+nodetest.FreeAddress(t), "PARLOR_CERTIFICATE="+certificates.Both,
		"PARLOR_HTTPS_PORT="+port, "PARLOR_HTTP_PORT="+plainPort, "PARLOR_NODES="+nodes[0]+" "+nodes[1])
	nodetest.Run(t, c)
	b.beforeStop = func(string) {} // Caddy asks the nodes
	b.Node = nodetest.Remote(t, "https://"+b.addr)
	return b
}

func TestOtherBalancersAloneNameTheClient(t *testing.T) {
	for name, start := range otherBalancers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := strings.TrimPrefix(echoNode(t), "http://")
			front := start(t, [2]string{node, nodetest.ReserveAddress(t)})
			front.WaitReady(200)
			for _, protocol := range []string{"http/1.1", "h2"} {
				front.wantOwnHeaders(t, protocol)
			}
			// Without TLS there is only the way to it.
			conn := testkit.Must(net.Dial("tcp", front.plain))(t)
			defer func() { _ = conn.Close() }()
			_, _ = fmt.Fprint(conn, "POST /join?x=1 HTTP/1.1\r\nHost: play.example\r\nContent-Length: 0\r\n\r\n")
			response := testkit.Must(http.ReadResponse(bufio.NewReader(conn), nil))(t)
			defer func() { _ = response.Body.Close() }()
			if to := response.Header.Get("Location"); response.StatusCode != 308 || to != "https://play.example/join?x=1" {
				t.Errorf("plain HTTP returns %d to %q", response.StatusCode, to)
			}
		})
	}
}

// wantOwnHeaders sends what only a balancer may say, and checks that no node believes it.
func (b *balancer) wantOwnHeaders(t *testing.T, protocol string) {
	t.Helper()
	transport := &http.Transport{
		ForceAttemptHTTP2: protocol == "h2",
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{protocol}},
	}
	defer transport.CloseIdleConnections()
	request := testkit.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, b.URL+"/x", http.NoBody))(t)
	request.Header = http.Header{
		"X-Forwarded-For": {"203.0.113.1", "203.0.113.2"}, "X-Forwarded-Proto": {"gopher"}, "X-Real-Ip": {"203.0.113.3"},
		"Forwarded": {"for=203.0.113.4"}, "X-Forwarded-Host": {"evil.example"}, "X-Forwarded-Port": {"1"},
	}
	response := testkit.Must(transport.RoundTrip(request))(t)
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	testkit.Check(t, err)
	if text := string(body); strings.Contains(text, "203.0.113.") || strings.Contains(text, "gopher") ||
		strings.Contains(text, "X-Forwarded-Host") || strings.Contains(text, "X-Forwarded-Port") ||
		strings.Count(text, "X-Forwarded-For: 127.0.0.1\n") != 1 || strings.Count(text, "X-Forwarded-Proto: https\n") != 1 {
		t.Errorf("over %s a node gets\n%s", response.Proto, text)
	}
	if got := response.Header.Get("Strict-Transport-Security"); got != "max-age=31536000" {
		t.Errorf("Strict-Transport-Security is %q", got)
	}
}

func TestWithoutANodeOtherBalancersReturnAProblem(t *testing.T) {
	for name, start := range otherBalancers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			front := start(t, [2]string{nodetest.ReserveAddress(t), nodetest.ReserveAddress(t)})
			front.WaitReady(503)
			r := front.Must(t, 503, "POST", "/join", "", nil)
			if r.Code() != "store_unavailable" || r.Header.Get("Content-Type") != "application/problem+json" ||
				r.Header.Get("Retry-After") != "1" || r.Header.Get("Strict-Transport-Security") == "" {
				t.Errorf("%v %s", r.Header, r)
			}
		})
	}
}

// The balancers say by themselves what the nodes say: every problem in their files is one of the
// list, with its title.
func TestProblemsOfBalancersAreOnTheList(t *testing.T) {
	problem := regexp.MustCompile(`\{"type":"https://parlor\.games/problems/[^}]*\}`)
	for _, file := range []string{"nginx.conf", "Caddyfile", "envoy.yaml"} {
		text := testkit.Must(os.ReadFile("../../deploy/" + file))(t)
		found := problem.FindAll(text, -1)
		if len(found) < 2 {
			t.Errorf("%s has %d problems", file, len(found))
		}
		for _, body := range found {
			var p struct {
				Type      string `json:"type"`
				Title     string `json:"title"`
				Code      string `json:"code"`
				Status    int    `json:"status"`
				Retryable bool   `json:"retryable"`
			}
			if err := wire.Unmarshal(body, &p); err != nil {
				t.Errorf("%s: %v: %s", file, err, body)
				continue
			}
			e, listed := apierror.Lookup(p.Code)
			if !listed || e.Status != p.Status || e.Title != p.Title || e.Retryable != p.Retryable ||
				!strings.HasSuffix(p.Type, "/"+p.Code) {
				t.Errorf("%s: no error of the list is %s", file, body)
			}
		}
	}
}

// A node drains while players send requests and sockets are open: no request fails, the sockets of
// the other node stay, and those of the draining one are closed with the reason.
func TestBehindOtherBalancersANodeDrainsAndNoRequestFails(t *testing.T) {
	for name, start := range otherBalancers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "always")
			settings := []string{"PARLOR_DRAIN_DELAY=3s", "PARLOR_RATE_LIMITS=off", "PARLOR_TRUSTED_PROXIES=127.0.0.1/32"}
			a, b := nodetest.Start(t, store.URL(), settings...), nodetest.Start(t, store.URL(), settings...)
			front := start(t, [2]string{strings.TrimPrefix(a.URL, "http://"), strings.TrimPrefix(b.URL, "http://")})
			front.WaitReady(200)
			f := &fixture{t: t, nodes: [2]*nodetest.Node{front.Node, front.Node}}
			op := f.setUp(nil)
			ann, bob := f.guest(op.game, "Ann"), f.guest(op.game, "Bob")
			const sockets = 8
			ends := f.openSockets(sockets, func(i int) player { return []player{ann, bob}[i%2] })
			onA, onB := nodetest.Metric(t, a, "parlor_realtime_sessions "), nodetest.Metric(t, b, "parlor_realtime_sessions ")
			if onA == 0 || onB == 0 {
				t.Fatalf("the nodes have %v and %v sockets", onA, onB)
			}
			late := f.known(op, "late")
			load := f.startLoad(op, 4)
			load.waitFor(100)
			if nodetest.Metric(t, a, readyRequests) == 0 || nodetest.Metric(t, b, readyRequests) == 0 {
				t.Error("one node got all requests: the balancer is sticky")
			}
			front.beforeStop(strings.TrimPrefix(a.URL, "http://"))
			exited := make(chan int, 1)
			go func() { exited <- a.Terminate() }()
			a.WaitReady(503)
			front.wantNoSocketsOn(f, a, late)
			if status := <-exited; status != 0 {
				t.Errorf("the terminated node exits with %d", status)
			}
			load.waitFor(100)
			load.end()
			for range int(onA) {
				if end := <-ends; end.code != websocket.CloseServiceRestart {
					t.Errorf("a socket of the draining node closed with %d", end.code)
				}
			}
			if len(ends) > 0 {
				t.Errorf("%d sockets of the other node were closed", len(ends))
			}
			t.Logf("%d requests, none failed", load.sent.Load())
		})
	}
}

// wantNoSocketsOn opens sockets while a node drains: all reach the other one, as soon as the
// balancer has noticed. A draining node refuses new ones.
func (b *balancer) wantNoSocketsOn(f *fixture, draining *nodetest.Node, p player) {
	f.t.Helper()
	var open []*websocket.Conn
	closeAll := func() {
		for _, conn := range open {
			_ = conn.Close()
		}
		open = nil
	}
	f.t.Cleanup(func() { closeAll() })
	redistest.Eventually(f.t, "the balancer sends new sockets to the other node only", func() bool {
		conn, err := dial(f.t.Context(), b.Node, "/api/v1/realtime", p)
		if err != nil {
			closeAll()
			return false
		}
		open = append(open, conn)
		return len(open) == 6 // a balancer of the fewest connections would have taken the draining node
	})
	if strings.Contains(draining.Log(), "msg=stopped") {
		f.t.Error("the sockets were opened too late to tell")
	}
}

// load are players who send requests one after the other.
type load struct {
	t       *testing.T
	sent    atomic.Int64 // that succeeded
	stop    atomic.Bool
	players sync.WaitGroup
}

// startLoad lets players set whether they are ready, each in a room of their own, fewer times a
// second than a balancer lets one address.
func (f *fixture) startLoad(op installation, count int) *load {
	f.t.Helper()
	l, pace := &load{t: f.t}, rate.NewLimiter(300, 10)
	for i := range count {
		p := f.known(op, fmt.Sprint("load-", i))
		room := f.must(201, "POST", "/api/v1/game-session/create", p.token, map[string]any{"maxPlayers": 2}).Body["roomId"]
		l.players.Go(func() {
			for ready := true; !l.stop.Load(); ready = !ready {
				if pace.Wait(f.t.Context()) != nil {
					return // the test ends
				}
				body := map[string]any{"roomId": room, "ready": ready}
				r, err := f.nodes[0].Do(f.t.Context(), "POST", "/api/v1/game-session/ready", p.token, body)
				if err != nil || r.Status != 200 {
					f.t.Errorf("after %d requests: %v %s %v", l.sent.Load(), err, r, r.Header)
					return
				}
				l.sent.Add(1)
			}
		})
	}
	return l
}

// waitFor waits until that many more requests have succeeded.
func (l *load) waitFor(more int64) {
	l.t.Helper()
	last := l.sent.Load() + more
	redistest.Eventually(l.t, "requests succeed", func() bool { return l.sent.Load() >= last || l.t.Failed() })
}

func (l *load) end() { l.stop.Store(true); l.players.Wait() }
