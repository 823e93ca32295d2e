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

// haproxy is where the program stands: Debian puts it where not everybody's path leads.
func haproxy() string {
	if path, err := exec.LookPath("haproxy"); err == nil {
		return path
	}
	return "/usr/sbin/haproxy"
}

// balance runs HAProxy with the file that compose.yaml uses in front of two nodes and answers it as if it were one.
func balance(t *testing.T, nodes ...*nodetest.Node) *nodetest.Node {
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
	proxy.Env = append(os.Environ(), "PARLOR_BIND="+addr, "PARLOR_NODE3="+free()) // the third node is not there
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
	return nodetest.At(t, "http://"+addr)
}

// served is how many requests for rooms a node has answered.
func served(t *testing.T, n *nodetest.Node) int {
	t.Helper()
	response, err := http.Get(n.Internal + "/metrics")
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

func TestBehindTheBalancerANodeLeavesAndNobodyNotices(t *testing.T) {
	store := redistest.StartFor(t, "--appendonly", "yes", "--appendfsync", "always")
	a, b := nodetest.Start(t, store.URL(), "PARLOR_DRAIN_DELAY=3s"), nodetest.Start(t, store.URL())
	front := balance(t, a, b)
	front.WaitReady(200)
	w := &world{t: t, nodes: [2]*nodetest.Node{front, front}}
	op := w.setUp(nil)
	ann, bob := w.guest(op.game, "Ann"), w.guest(op.game, "Bob")
	room := w.must(201, "POST", "/api/v1/game-session/create", ann.token, map[string]any{"maxPlayers": 2}).Body["roomId"].(string)
	followers := []*follower{w.follow(ann, room), w.follow(bob, room), w.follow(ann, room), w.follow(bob, room)}
	w.must(200, "POST", "/api/v1/game-session/join", bob.token, map[string]any{"roomId": room})

	toggle := func(times int) {
		for i := range times {
			w.must(200, "POST", "/api/v1/game-session/ready", bob.token, map[string]any{"roomId": room, "ready": i%2 == 0})
		}
	}
	toggle(50)
	if served(t, a) == 0 || served(t, b) == 0 {
		t.Fatal("one node got everything: the balancer is sticky")
	}

	left := make(chan int, 1)
	go func() { left <- a.Terminate() }()
	toggle(50) // while the node tells that it leaves
	if status := <-left; status != 0 {
		t.Fatalf("the node that was told to end exits with %d", status)
	}
	toggle(50)
	last := int64(2 + 150)
	for i, f := range followers {
		w.until("a follower has heard everything", func() bool { return len(f.events()) >= int(last) })
		for n, e := range f.events() {
			if e.Seq != int64(n+1) {
				t.Fatalf("follower %d heard event %d as its %dth", i, e.Seq, n+1)
			}
		}
	}
}
