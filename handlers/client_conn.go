package handlers

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
)

// clientConn is the connection of a client. net/http reads one byte of it while a request is
// handled, to learn that the client goes away. A change goes on then (limitTime), so clientConn
// spares it that read, and what interrupts it. docs/cost.md has the figures.
type clientConn struct {
	*net.TCPConn
	inChange atomic.Bool // a change is handled: no other read of one byte can come
}

// Read returns no byte and no error instead of waiting for the client of a change. net/http takes
// that as a client that is still there.
func (c *clientConn) Read(p []byte) (int, error) {
	if len(p) == 1 && c.inChange.Load() {
		return 0, nil
	}
	return c.TCPConn.Read(p)
}

type clientListener struct{ net.Listener }

func (l clientListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		return &clientConn{TCPConn: tcp}, nil
	}
	return conn, err
}

type clientConnKey struct{}

// SetConnContext makes a server pass the connection of each request to its handler. It must be
// called before Serve.
func SetConnContext(server *http.Server) {
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, clientConnKey{}, conn)
	}
}

// Serve serves clients at a listener until the server is shut down. A server may have several. It
// returns what http.Server.Serve returns.
func Serve(server *http.Server, listener net.Listener) error {
	return server.Serve(clientListener{listener})
}

// clientConnOf returns the connection of a request, or nil if it is a GET or has a body of unknown
// length. Only a body of known length works, because net/http may read a chunked one to the last
// byte of a buffer.
func clientConnOf(r *http.Request) *clientConn {
	if r.Method == http.MethodGet || r.ContentLength < 0 {
		return nil
	}
	conn, _ := r.Context().Value(clientConnKey{}).(*clientConn)
	return conn
}
