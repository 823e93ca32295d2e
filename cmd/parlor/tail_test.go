package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// balancer forwards connections to a node, which can be changed.
type balancer struct {
	net.Listener
	mu sync.Mutex
	to string // host:port
}

func startBalancer(t *testing.T, to *nodetest.Node) *balancer {
	t.Helper()
	l := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	b := &balancer{Listener: l}
	b.forwardTo(to)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			b.mu.Lock()
			to := b.to
			b.mu.Unlock()
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
				go func() {
					_, _ = io.Copy(pair[0], pair[1])
					_ = pair[0].Close()
				}()
			}
		}
	}()
	return b
}

func (b *balancer) forwardTo(to *nodetest.Node) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.to = strings.TrimPrefix(to.URL, "http://")
}

func TestTailFollowsARoomFromNodeToNode(t *testing.T) {
	store := redistest.StartForTest(t, "--appendonly", "yes").URL()
	t.Setenv("PARLOR_SIGNING_KEY", nodetest.SigningKey)
	must(t, "seed", "--redis-url", store)
	ada := strings.TrimSpace(
		must(t, "token", "--redis-url", store, "--game", "1", "--user", "1"),
	)
	first, second := nodetest.Start(t, store, "PARLOR_DRAIN_DELAY=0s"), nodetest.Start(t, store)
	created := second.Must(
		t,
		http.StatusCreated,
		http.MethodPost,
		"/api/v1/game-session/create",
		ada,
		map[string]any{"maxPlayers": 2},
	)
	setReady := func(ready bool) {
		t.Helper()
		body := map[string]any{"roomId": created.Body["roomId"], "ready": ready}
		second.Must(t, http.StatusOK, http.MethodPost, "/api/v1/game-session/ready", ada, body)
	}

	front := startBalancer(t, first)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	read, write := io.Pipe()
	status := make(chan int, 1)
	var stderr bytes.Buffer
	go func() {
		args := []string{
			"tail", "--room", created.Body["code"].(string), "--url", "http://" + front.Addr().String(), "--token", ada,
		}
		status <- run(ctx, args, write, &stderr)
		_ = write.Close()
	}()
	lines, seq := bufio.NewScanner(read), int64(0)
	next := func(eventType string) {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("tail ended: %v", lines.Err())
		}
		var e struct {
			Type string `json:"type"`
			Seq  int64  `json:"seq"`
		}
		if err := wire.Unmarshal(lines.Bytes(), &e); err != nil || e.Type != eventType || e.Seq != seq+1 {
			t.Fatalf("after %d: %v: %s; want %s", seq, err, lines.Text(), eventType)
		}
		seq = e.Seq
	}
	next("room.created")
	next("room.connected")
	setReady(true)
	next("room.ready")
	front.forwardTo(second)
	if got := first.Terminate(); got != 0 {
		t.Errorf("a node with an open socket exits with %d:\n%s", got, first.Log())
	}
	setReady(false)
	next("room.ready")
	cancel()
	if got := <-status; got != 0 || !strings.Contains(stderr.String(), "1012") {
		t.Errorf("tail exits %d: %s", got, &stderr)
	}

	for want, args := range map[string][]string{
		"room_not_found":  {"--room", "NOROOM", "--token", ada},
		"unauthenticated": {"--room", created.Body["roomId"].(string), "--token", "x"},
		"--token":         {"--room", "x"},
	} {
		status, stdout, stderr := command(t, append([]string{"tail", "--url", second.URL}, args...)...)
		if status != 1 || stdout != "" || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("tail %v exits %d: %s%s", args, status, stdout, stderr)
		}
	}
}
