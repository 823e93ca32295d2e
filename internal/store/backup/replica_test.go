package backup

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/tests/testkit"
)

// cancelConn ends a context between two reads.
type cancelConn struct {
	net.Conn
	cancel    context.CancelFunc
	noticed   chan struct{} // closed when the end of the context has reached the connection
	notice    func()
	remaining int // reads until it ends
}

func (c *cancelConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.remaining--; c.remaining == 0 {
		c.cancel()
		<-c.noticed
	}
	return n, err
}

func (c *cancelConn) SetDeadline(at time.Time) error {
	defer c.notice()
	return c.Conn.SetDeadline(at)
}

func (c *cancelConn) Close() error {
	defer c.notice()
	return c.Conn.Close()
}

func TestACopyEndsWhenItIsCancelledBetweenTwoReads(t *testing.T) {
	for reads := 1; reads <= 5; reads++ { // three replies, the length of the copy, its first bytes
		ours, masters := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, masters) }()
		go func() { // the start of a copy, and then nothing
			for _, text := range []string{"+OK\r\n", "+OK\r\n", "+FULLRESYNC 0123 1\r\n", "$100\r\n", "REDIS"} {
				_, _ = io.WriteString(masters, text)
			}
		}()
		ctx, cancel := context.WithCancel(t.Context())
		conn := &cancelConn{Conn: ours, cancel: cancel, noticed: make(chan struct{}), remaining: reads}
		conn.notice = sync.OnceFunc(func() { close(conn.noticed) })
		ended := make(chan error, 1)
		go func() {
			_, err := receive(ctx, conn, io.Discard)
			ended <- err
		}()
		select {
		case err := <-ended:
			testkit.WantError(t, err, context.Canceled, "cancelled after read %d it returns", reads)
		case <-time.After(3 * time.Second):
			t.Errorf("cancelled after read %d it goes on", reads)
		}
		_ = masters.Close()
	}
}
