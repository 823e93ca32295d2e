package redistest

import (
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Proxy forwards TCP connections to a server until it is cut. It stands between a replica and its
// master.
type Proxy struct {
	Addr string // host:port on loopback

	listener net.Listener
	target   string
	mu       sync.Mutex
	mended   chan struct{} // closed while bytes pass
	conns    map[net.Conn]bool
	all      sync.WaitGroup
}

// StartProxy starts a proxy of an address that ends with the test.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	return StartProxyAt(t, "127.0.0.1:0", target)
}

// StartProxyAt is StartProxy on an address of its own.
func StartProxyAt(t testing.TB, addr, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{
		Addr: listener.Addr().String(), listener: listener, target: target, mended: make(chan struct{}),
		conns: map[net.Conn]bool{},
	}
	close(p.mended)
	p.all.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		p.mu.Lock()
		for conn := range p.conns {
			_ = conn.Close()
		}
		p.conns = nil
		p.mu.Unlock()
		p.Mend()
		p.all.Wait()
	})
	return p
}

// Cut lets no byte pass any more. Connections stay open, as when a cable is pulled.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.mended:
		p.mended = make(chan struct{})
	default:
	}
}

// Mend lets bytes pass again, those first that were held back.
func (p *Proxy) Mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.mended:
	default:
		close(p.mended)
	}
}

// Retarget sends new connections to another server and ends those that there are, as when an
// address moves.
func (p *Proxy) Retarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
	for conn := range p.conns {
		_ = conn.Close()
	}
	clear(p.conns)
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		target := p.target
		p.mu.Unlock()
		server, err := net.Dial("tcp", target)
		if err != nil {
			_ = client.Close()
			continue
		}
		if !p.keep(client, server) {
			return
		}
		p.all.Go(func() { p.forward(client, server) })
		p.all.Go(func() { p.forward(server, client) })
	}
}

// keep remembers connections, to close them in the end. It returns false after the end.
func (p *Proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		if p.conns == nil {
			_ = conn.Close()
			continue
		}
		p.conns[conn] = true
	}
	return p.conns != nil
}

func (p *Proxy) forward(from, to net.Conn) {
	defer func() { _, _ = from.Close(), to.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		mended := p.mended
		p.mu.Unlock()
		<-mended
		if _, writeErr := to.Write(buffer[:n]); err != nil || writeErr != nil {
			return
		}
	}
}

// ReplicaOf returns the arguments that make a server the replica of what listens at host:port.
func ReplicaOf(addr string) []string {
	host, port, _ := strings.Cut(addr, ":")
	return []string{"--replicaof", host + " " + port}
}

// StartReplica starts a replica of the server at host:port, and waits until it is in sync.
func StartReplica(t testing.TB, addr string, args ...string) *Server {
	t.Helper()
	replica := StartForTest(t, append(ReplicaOf(addr), args...)...)
	WaitForReplica(t, addr)
	return replica
}

// WaitForReplica waits until a replica of the server at host:port has what was written so far. A
// test that cuts the replication must wait for what the replica needs: on a busy machine it may be
// behind by seconds, and lack the record of the installation.
func WaitForReplica(t testing.TB, addr string) {
	t.Helper()
	master := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = master.Close() }()
	Eventually(t, "the replica follows its master", func() bool { return isFollowed(t, master) })
}

// isFollowed reports whether a replica confirms current writes. A replica may begin to do so only a
// second after it is online.
func isFollowed(t testing.TB, master *redis.Client) bool {
	t.Helper()
	const limitMS = 200
	conn := master.Conn()
	defer func() { _ = conn.Close() }()
	if conn.Set(t.Context(), "{redistest}:followed", 1, 0).Err() != nil {
		return false
	}
	n, err := conn.Do(t.Context(), "WAIT", 1, limitMS).Int()
	_ = conn.Del(t.Context(), "{redistest}:followed").Err()
	return err == nil && n > 0
}
