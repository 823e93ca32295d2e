package chaos

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/parlor-games/parlor/tests/testkit"
)

// balancer is a balancer in this process: it gives each connection to the next node that takes it.
// A client of its own has one that can be cut, as if the client's process were killed.
type balancer struct {
	in       *installation
	listener net.Listener

	mu    sync.Mutex
	turn  int
	conns map[net.Conn]bool
	isCut bool
}

func startBalancer(t *testing.T, in *installation) *balancer {
	t.Helper()
	listener := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	b := &balancer{in: in, listener: listener, conns: map[net.Conn]bool{}}
	var accepting sync.WaitGroup
	accepting.Go(b.accept)
	t.Cleanup(func() { b.cut(); accepting.Wait() })
	return b
}

func (b *balancer) url() string { return "http://" + b.listener.Addr().String() }

// cut ends all connections without a word, and takes no more.
func (b *balancer) cut() {
	_ = b.listener.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isCut = true
	for conn := range b.conns {
		_ = conn.Close()
	}
}

func (b *balancer) accept() {
	var forwarding sync.WaitGroup
	defer forwarding.Wait()
	for {
		conn, err := b.listener.Accept()
		if err != nil {
			return
		}
		forwarding.Go(func() { b.forward(conn) })
	}
}

// forward connects a client with a node until one of them hangs up.
func (b *balancer) forward(client net.Conn) {
	defer b.drop(client)
	node := b.dialNode()
	if node == nil || !b.keep(client) || !b.keep(node) {
		return
	}
	defer b.drop(node)
	var answers sync.WaitGroup
	answers.Go(func() {
		_, _ = io.Copy(client, node)
		_ = client.Close()
	})
	_, _ = io.Copy(node, client)
	_ = node.Close()
	answers.Wait()
}

// dialNode returns a connection to the next node that listens, nil when none does.
func (b *balancer) dialNode() net.Conn {
	b.mu.Lock()
	b.turn++
	first := b.turn
	b.mu.Unlock()
	for i := range len(b.in.nodes) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(b.in.node(first+i).URL, "http://"))
		if err == nil {
			return conn
		}
	}
	return nil
}

// keep remembers a connection for cut; false when it was cut already.
func (b *balancer) keep(conn net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isCut {
		_ = conn.Close()
		return false
	}
	b.conns[conn] = true
	return true
}

func (b *balancer) drop(conn net.Conn) {
	_ = conn.Close()
	b.mu.Lock()
	delete(b.conns, conn)
	b.mu.Unlock()
}
