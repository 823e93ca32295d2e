package story

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
)

// haproxy returns the path of the program. Debian puts it into a folder that is not in every PATH.
func haproxy() string {
	if path, err := exec.LookPath("haproxy"); err == nil {
		return path
	}
	return "/usr/sbin/haproxy"
}

// startBalancer runs HAProxy, with the file that compose.yaml uses, in front of two nodes. It
// returns the balancer as if it were a node.
func startBalancer(t *testing.T, nodes ...*nodetest.Node) *nodetest.Node {
	t.Helper()
	free := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		return l.Addr().String()
	}
	addr := free()
	proxy := exec.Command(haproxy(), "-db", "-f", "../../deploy/haproxy.cfg")
	proxy.Env = append(os.Environ(), "PARLOR_BIND="+addr, "PARLOR_NODE3="+free()) // the third node does not run
	for i, n := range nodes {
		proxy.Env = append(proxy.Env, fmt.Sprintf("PARLOR_NODE%d=%s", i+1, strings.TrimPrefix(n.URL, "http://")))
	}
	var log bytes.Buffer
	proxy.Stdout, proxy.Stderr = &log, &log
	proxy.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := proxy.Start(); err != nil {
		t.Fatalf("start haproxy: %v", err)
	}
	t.Cleanup(func() {
		_ = proxy.Process.Kill()
		_ = proxy.Wait()
		if t.Failed() {
			t.Logf("log of haproxy:\n%s", log.String())
		}
	})
	return nodetest.Remote(t, "http://"+addr)
}

// readyMetrics returns the number of metrics that a node has about the route of the test.
func readyMetrics(t *testing.T, n *nodetest.Node) int {
	t.Helper()
	response, err := http.Get(n.InternalURL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), `route="/api/v1/game-session/ready"`)
}

func TestBehindTheBalancerANodeDrainsAndNoRequestFails(t *testing.T) {
	store := redistest.StartFor(t, "--appendonly", "yes", "--appendfsync", "always")
	a, b := nodetest.Start(t, store.URL(), "PARLOR_DRAIN_DELAY=3s"), nodetest.Start(t, store.URL())
	front := startBalancer(t, a, b)
	front.WaitReady(200)
	f := &fixture{t: t, nodes: [2]*nodetest.Node{front, front}}
	op := f.setUp(nil)
	ann, bob := f.guest(op.game, "Ann"), f.guest(op.game, "Bob")
	created := f.must(201, "POST", "/api/v1/game-session/create", ann.token, map[string]any{"maxPlayers": 2})
	room := created.Body["roomId"].(string)
	subscribers := []*subscriber{
		f.subscribe(ann, room), f.subscribe(bob, room), f.subscribe(ann, room), f.subscribe(bob, room),
	}
	f.must(200, "POST", "/api/v1/game-session/join", bob.token, map[string]any{"roomId": room})

	toggle := func(times int) {
		for i := range times {
			f.must(200, "POST", "/api/v1/game-session/ready", bob.token, map[string]any{"roomId": room, "ready": i%2 == 0})
		}
	}
	toggle(50)
	if readyMetrics(t, a) == 0 || readyMetrics(t, b) == 0 {
		t.Fatal("one node got all requests: the balancer is sticky")
	}

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
}
