package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
)

// balancer sends connections on to a node, which can be changed.
type balancer struct {
	net.Listener
	mu sync.Mutex
	to string
}

func startBalancer(t *testing.T, to *nodetest.Node) *balancer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{Listener: l}
	b.turn(to)
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

func (b *balancer) turn(to *nodetest.Node) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.to = strings.TrimPrefix(to.URL, "http://")
}

func TestTailFollowsARoomFromNodeToNode(t *testing.T) {
	store := redistest.StartFor(t, "--appendonly", "yes").URL()
	must(t, "seed", "--redis-url", store, "--signing-key", nodetest.SigningKey)
	ada := strings.TrimSpace(must(t, "token", "--redis-url", store, "--signing-key", nodetest.SigningKey, "--game", "1", "--user", "1"))
	first, second := nodetest.Start(t, store, "PARLOR_DRAIN_DELAY=0s"), nodetest.Start(t, store)
	made := second.Must(t, http.StatusCreated, http.MethodPost, "/api/v1/game-session/create", ada, map[string]any{"maxPlayers": 2})
	ready := func(yes bool) {
		t.Helper()
		second.Must(t, http.StatusOK, http.MethodPost, "/api/v1/game-session/ready", ada, map[string]any{"roomId": made.Body["roomId"], "ready": yes})
	}

	front := startBalancer(t, first)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	read, write := io.Pipe()
	status := make(chan int, 1)
	var problems bytes.Buffer
	go func() {
		status <- run(ctx, []string{"tail", "--room", made.Body["code"].(string), "--url", "http://" + front.Addr().String(), "--token", ada}, write, &problems)
		_ = write.Close()
	}()
	lines, seq := bufio.NewScanner(read), int64(0)
	next := func(kind string) {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("tail ended: %v", lines.Err())
		}
		var e struct {
			Type string
			Seq  int64
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Type != kind || e.Seq != seq+1 {
			t.Fatalf("after %d: %v: %s; want %s", seq, err, lines.Text(), kind)
		}
		seq = e.Seq
	}
	next("room.created")
	ready(true)
	next("room.ready")
	front.turn(second)
	if got := first.Terminate(); got != 0 {
		t.Errorf("a node with an open socket ends with %d:\n%s", got, first.Log())
	}
	ready(false)
	next("room.ready")
	cancel()
	if got := <-status; got != 0 || !strings.Contains(problems.String(), "1012") {
		t.Errorf("tail exits %d: %s", got, &problems)
	}

	for want, args := range map[string][]string{
		"room_not_found":  {"--room", "NOROOM", "--token", ada},
		"unauthenticated": {"--room", made.Body["roomId"].(string), "--token", "x"},
		"--token":         {"--room", "x"},
	} {
		status, out, problems := command(t, append([]string{"tail", "--url", second.URL}, args...)...)
		if status != 1 || out != "" || !strings.Contains(problems, want) || strings.Count(problems, "\n") != 1 {
			t.Errorf("tail %v exits %d: %s%s", args, status, out, problems)
		}
	}
}
