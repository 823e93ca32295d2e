package realtime

import (
	"encoding/binary"
	"errors"
	"io"
	"math/bits"
	"os"
	"sync"
	"syscall"
)

// The hub reads messages past gorilla and melody, too: gorilla allocates half a kilobyte for each,
// on the goroutine that reads the socket. While garbage is collected, a goroutine that allocates
// marks 64 KiB first, however little it wants. With thousands of sockets, each of which reads a
// message, that made the collections (docs/performance.md).
//
// directConn.Read takes the whole messages out of what the client sends. gorilla gets the rest:
// control frames, parts of messages, messages of more than readChunkBytes, and what is no valid
// frame, with everything behind it.

const (
	readChunkBytes = 4 << 10 // read at once
	everything     = 1 << 62 // of directConn.passedOn: more bytes than will ever come
)

// readChunk is data that was read from a socket. Only a socket with a part of a frame holds one.
type readChunk struct {
	bytes      [readChunkBytes]byte
	start, end int // of what is not handled yet
}

var readChunks = sync.Pool{New: func() any { return new(readChunk) }}

// Read is called by gorilla. It returns what gorilla has to handle, and waits for that.
func (d *directConn) Read(p []byte) (int, error) {
	for {
		d.takeMessages()
		switch {
		case d.passedOn == 0:
			if err := d.readChunk(); err != nil {
				return 0, err
			}
		case d.chunk == nil:
			n, err := d.Conn.Read(p[:min(int64(len(p)), d.passedOn)])
			d.passedOn -= int64(n)
			return n, err
		default:
			c := d.chunk
			n := copy(p, c.bytes[c.start:min(int64(c.end), int64(c.start)+d.passedOn)])
			d.passedOn -= int64(n)
			d.consume(n)
			return n, nil
		}
	}
}

// takeMessages handles the complete messages at the start of the bytes that were read. It sets
// passedOn when something else follows.
func (d *directConn) takeMessages() {
	for d.passedOn == 0 && d.chunk != nil {
		c := d.chunk
		unread := c.bytes[c.start:c.end]
		h, ok := parseClientHeader(unread)
		size := int64(h.bytes) + h.payloadBytes
		switch {
		case !ok: // more of it has to be read
		case !h.valid || h.payloadBytes > d.client.socketKind.limits.MaxFrameBytes:
			d.passedOn = everything // gorilla ends the connection, or joins the parts
			return
		case h.opcode >= opClose || size > readChunkBytes:
			d.passedOn = size
			return
		case int64(len(unread)) >= size:
			d.client.socketKind.takeMessage(d.client, h, unread[h.bytes:size])
			d.consume(int(size))
			continue
		}
		c.end = copy(c.bytes[:], unread)
		c.start = 0
		return
	}
}

// consume drops bytes at the front of what was read.
func (d *directConn) consume(n int) {
	if d.chunk.start += n; d.chunk.start == d.chunk.end {
		d.chunk.start, d.chunk.end = 0, 0
		readChunks.Put(d.chunk)
		d.chunk = nil
	}
}

// readChunk waits until there is something to read, and reads it.
func (d *directConn) readChunk() error {
	d.readErr = nil
	if err := d.raw.Read(d.readInto); err != nil {
		return err
	}
	return d.readErr
}

// readFromFile reads what there is into the chunk. It returns false when there is nothing.
func (d *directConn) readFromFile(fd uintptr) (done bool) {
	c := d.chunk
	if c == nil { // a socket that only waits holds none
		c = readChunks.Get().(*readChunk)
		defer func() {
			if d.chunk == nil {
				readChunks.Put(c)
			}
		}()
	}
	for {
		n, err := readFile(fd, c.bytes[c.end:])
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EAGAIN):
			return false
		case err != nil:
			d.readErr = os.NewSyscallError("read", err)
		case n == 0:
			d.readErr = io.EOF
		default:
			c.end += n
			d.chunk = c
		}
		return true
	}
}

// clientHeader is the header of a frame from a client.
type clientHeader struct {
	opcode       byte
	valid        bool // of a whole message or a control frame
	bytes        int  // of the header
	payloadBytes int64
	mask         [4]byte
}

const (
	maskBit      = 0x80
	maskBytes    = 4
	maxControl   = 125 // bytes in a control frame
	opPong       = 10
	opcodeBits   = 0x0f
	shortHeader  = 2 + maskBytes
	mediumHeader = shortHeader + 2 // the length has 16 bits
	longHeader   = shortHeader + 8 // the length has 64 bits
)

// parseClientHeader returns the header at the front of b. It returns false when b does not have all
// of it.
func parseClientHeader(b []byte) (h clientHeader, ok bool) {
	if len(b) < 2 {
		return h, false
	}
	h.opcode, h.bytes, h.payloadBytes = b[0]&opcodeBits, shortHeader, int64(b[1]&^maskBit)
	switch h.payloadBytes {
	case 126:
		h.bytes = mediumHeader
	case 127:
		h.bytes = longHeader
	}
	if len(b) < h.bytes {
		return h, false
	}
	switch h.bytes {
	case mediumHeader:
		h.payloadBytes = int64(binary.BigEndian.Uint16(b[2:]))
	case longHeader:
		h.payloadBytes = int64(binary.BigEndian.Uint64(b[2:]))
	}
	isData := h.opcode == opText || h.opcode == opBinary
	isControl := h.opcode >= opClose && h.opcode <= opPong && h.payloadBytes <= maxControl
	isWhole := b[0]&^opcodeBits == finalBit // and no bit of an extension
	h.valid = isWhole && b[1]&maskBit != 0 && (isData || isControl) && h.payloadBytes >= 0
	copy(h.mask[:], b[h.bytes-maskBytes:])
	return h, true
}

// unmask writes the payload of a frame as the client meant it (RFC 6455, section 5.3).
func unmask(to, masked []byte, mask [4]byte) {
	both := uint64(binary.LittleEndian.Uint32(mask[:]))
	both |= both << 32
	i := 0
	for ; i+8 <= len(masked); i += 8 {
		binary.LittleEndian.PutUint64(to[i:], binary.LittleEndian.Uint64(masked[i:])^both)
	}
	for ; i < len(masked); i++ {
		to[i] = masked[i] ^ mask[i%maskBytes]
	}
}

// takeMessage handles a message that was read past gorilla.
func (s *SocketKind) takeMessage(c *Client, h clientHeader, masked []byte) {
	defer func() {
		if r := recover(); r != nil {
			s.hub.logPanic(r)
			_ = c.directConn.Close()
		}
	}()
	m := newInboundMessage(len(masked))
	unmask(m.payload, masked, h.mask)
	m.isText = h.opcode == opText
	s.onMessage(c, m)
}

// inboundMessage is a message of a client that waits for its handler, or another call that has to
// wait for its turn.
type inboundMessage struct {
	payload []byte
	isText  bool
	call    func()          // instead of the handler; nil: the handler
	next    *inboundMessage // in Client.inbox
	class   int             // of the pool; 0: none
}

// The memory of messages is used again. Each pool has messages of twice the bytes of the one
// before.
const (
	smallestMessageBits = 9  // 512 bytes
	largestMessageBits  = 12 // readChunkBytes
)

var inboundMessages [1 + largestMessageBits - smallestMessageBits]sync.Pool

// newInboundMessage returns a message of so many bytes.
func newInboundMessage(size int) *inboundMessage {
	class := max(0, bits.Len(uint(max(size, 1)-1))-smallestMessageBits)
	m, ok := inboundMessages[class].Get().(*inboundMessage)
	if !ok {
		m = &inboundMessage{payload: make([]byte, 0, 1<<(class+smallestMessageBits)), class: class + 1}
	}
	m.payload = m.payload[:size]
	return m
}

// release allows the memory of a message to be used again.
func (m *inboundMessage) release() {
	if m.class > 0 {
		m.next = nil
		inboundMessages[m.class-1].Put(m)
	}
}
