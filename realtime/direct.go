package realtime

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// directConn is the connection of a socket beneath gorilla and melody, which keep the handshake and
// control frames. It takes messages out of what is read (direct_read.go).
//
// The hub writes its own frames past them: without waiting, in the goroutine that has the frame, as
// long as the kernel has room. The rest of a frame that does not fit is written by a goroutine that
// is made for it; whatever comes meanwhile waits behind it. So the bytes of two frames never mix,
// and neither a worker nor melody waits for a slow client.
//
// Lock order: Client.mu before directConn.mu.
type directConn struct {
	net.Conn
	raw    syscall.RawConn
	fd     int // the file of Conn: it is not closed, and its number not used again, while err is nil
	client *Client

	// Owned by the goroutine that reads.
	readInto func(fd uintptr) (done bool) // reads into chunk; made once
	readErr  error                        // of the last read
	chunk    *readChunk                   // what was read and is not handled; nil: nothing
	passedOn int64                        // bytes at the front that gorilla gets

	mu        sync.Mutex
	unwritten []byte // waits for writeRest
	control   int    // bytes of control frames in unwritten
	hasFrame  bool   // unwritten has, or is the end of, a frame of the hub
	running   bool   // writeRest
	closeSent bool   // a close frame was written: nothing may follow
	err       error  // of the connection: it is closed
}

// maxWaitingControlBytes bounds the pongs that wait for a client that pings and does not read.
const maxWaitingControlBytes = 4 << 10

var errCloseSent = errors.New("a close frame was sent")

// newDirectConn returns nil for a connection whose bytes are not those of the socket, as with TLS,
// and on Windows.
func newDirectConn(conn net.Conn, c *Client) *directConn {
	file, ok := conn.(syscall.Conn)
	if !ok || !hasSocketFiles {
		return nil
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return nil
	}
	d := &directConn{Conn: conn, raw: raw, client: c}
	d.readInto = d.readFromFile
	if err := raw.Control(func(fd uintptr) { d.fd = int(fd) }); err != nil {
		d.err = err
	}
	return d
}

// Close closes the connection. Nobody closes it otherwise, because its file may be written to until
// then.
func (d *directConn) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closeFor(net.ErrClosed)
}

// closeFor closes the connection because of an error. directConn.mu must be held.
func (d *directConn) closeFor(err error) error {
	if d.err == nil {
		d.err = err
	}
	return d.Conn.Close()
}

// writeToFile writes as much of b as the kernel takes, and returns the rest. directConn.mu must be
// held, and err be nil. RawConn.Write would fail once a write deadline has passed, and wait
// otherwise; RawConn.Control costs 5 % more for each frame than the file itself.
func (d *directConn) writeToFile(b []byte) (rest []byte, err error) {
	for len(b) > 0 {
		n, err := writeFile(d.fd, b)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			return b, nil
		case err != nil:
			return b, err
		default:
			b = b[n:]
		}
	}
	return nil, nil
}

// writeNow writes b as far as the kernel takes it, and leaves the rest to writeRest. directConn.mu
// must be held.
func (d *directConn) writeNow(b []byte) (all bool) {
	if !d.running && d.err == nil {
		rest, err := d.writeToFile(b)
		switch {
		case err != nil:
			_ = d.closeFor(err)
		case len(rest) == 0:
			return true
		}
		b = rest
	}
	if d.err != nil {
		return false
	}
	d.unwritten = append(d.unwritten, b...)
	if !d.running {
		d.running = d.client.hub.startTask(d.writeRest)
		if !d.running {
			_ = d.closeFor(net.ErrClosed)
		}
	}
	return false
}

// writeFrame writes a frame without waiting. When it returns false, Client.onFrameSent is called
// once the frame is written, or never when the connection is lost.
func (d *directConn) writeFrame(f frame) (sent bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closeSent {
		return false
	}
	if d.writeNow(f) {
		return true
	}
	d.hasFrame = true
	return false
}

// writeRest writes what had to wait, until nothing does.
func (d *directConn) writeRest() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.unwritten) > 0 && d.err == nil {
		b, hasFrame := d.unwritten, d.hasFrame
		d.unwritten, d.control, d.hasFrame = nil, 0, false
		d.mu.Unlock()
		_ = d.Conn.SetWriteDeadline(time.Now().Add(d.client.hub.writeTimeout(len(b))))
		_, err := d.Conn.Write(b)
		if err == nil && hasFrame {
			d.client.onFrameSent() // may leave another frame
		}
		d.mu.Lock()
		if err != nil {
			_ = d.closeFor(err)
		}
	}
	d.unwritten, d.running = nil, false
}

// Write is called by gorilla, for the response to the upgrade and for control frames. It does not
// wait.
func (d *directConn) Write(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	isClose := len(b) > 0 && b[0] == finalBit|opClose
	switch {
	case d.err != nil:
		return 0, d.err
	case d.closeSent:
		return 0, errCloseSent
	case d.control+len(b) > maxWaitingControlBytes && !isClose:
		return len(b), nil // a pong to a client that does not read
	}
	d.closeSent = isClose
	if !d.writeNow(b) {
		d.control += len(b)
	}
	return len(b), d.err
}

// SetWriteDeadline does nothing: Write does not wait, and writeRest has deadlines of its own.
func (d *directConn) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline sets the deadline of reads.
func (d *directConn) SetDeadline(t time.Time) error { return d.Conn.SetReadDeadline(t) }
