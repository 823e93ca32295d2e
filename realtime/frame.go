package realtime

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
)

// The bounds of one frame. What does not fit waits for the next frame.
const (
	maxBatchEvents = 128
	maxBatchBytes  = 32 << 10
)

// The opcodes of frames (RFC 6455, section 5.2).
const (
	opText   = 1
	opBinary = 2
	opClose  = 8

	finalBit       = 0x80
	maxHeaderBytes = 10 // of a frame without a mask, as servers send them
)

// frame is a whole WebSocket frame as it goes to a client, so that its header is made once for all
// clients that get it. Its bytes must not be changed.
type frame []byte

// appendHeader appends the header of a frame with a payload of so many bytes.
func appendHeader(b []byte, opcode byte, payloadBytes int) []byte {
	b = append(b, finalBit|opcode)
	switch {
	case payloadBytes < 126:
		return append(b, byte(payloadBytes))
	case payloadBytes <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, 126), uint16(payloadBytes))
	default:
		return binary.BigEndian.AppendUint64(append(b, 127), uint64(payloadBytes))
	}
}

func newFrame(opcode byte, payload []byte) frame {
	b := make([]byte, 0, maxHeaderBytes+len(payload))
	return append(appendHeader(b, opcode, len(payload)), payload...)
}

// frameMemory is where the frames of a topic's events are: many in one piece, which is cheaper to
// make and to collect than a piece for each. A frame's piece is there as long as one of its frames.
type frameMemory struct {
	free []byte // the last piece: what is used of it, and as its capacity the whole
	next int    // bytes of the next piece
}

// The sizes of pieces. The first one has room for one frame, for many topics have no more.
const (
	secondPieceBytes = 1 << 10
	maxPieceBytes    = 16 << 10
)

// reserve makes room for a frame of so many bytes and returns the place of its first one.
func (m *frameMemory) reserve(size int) (start int) {
	if cap(m.free)-len(m.free) < size {
		m.free = make([]byte, 0, max(size, m.next))
		m.next = min(max(secondPieceBytes, 2*m.next), maxPieceBytes)
	}
	return len(m.free)
}

// from returns the bytes from start on as a frame, to which nothing can be appended.
func (m *frameMemory) from(start int) frame { return frame(m.free[start:len(m.free):len(m.free)]) }

func (m *frameMemory) add(opcode byte, payload []byte) frame {
	start := m.reserve(maxHeaderBytes + len(payload))
	m.free = append(appendHeader(m.free, opcode, len(payload)), payload...)
	return m.from(start)
}

func (m *frameMemory) addText(payload string) frame {
	start := m.reserve(maxHeaderBytes + len(payload))
	m.free = append(appendHeader(m.free, opText, len(payload)), payload...)
	return m.from(start)
}

// reuse allows the last piece to be used again. No frame in it may be in use.
func (m *frameMemory) reuse() { m.free = m.free[:0] }

func (m *frameMemory) copy(f frame) frame {
	start := m.reserve(len(f))
	m.free = append(m.free, f...)
	return m.from(start)
}

// payload returns what the frame carries.
func (f frame) payload() []byte {
	switch f[1] {
	case 127:
		return f[10:]
	case 126:
		return f[4:]
	default:
		return f[2:]
	}
}

func (f frame) isBinary() bool { return f[0] == finalBit|opBinary }

// newArrayFrame returns count JSON values as one frame: a JSON array.
func newArrayFrame(count int, value func(i int) []byte) frame {
	size := 1 + count
	for i := range count {
		size += len(value(i))
	}
	b := appendHeader(make([]byte, 0, maxHeaderBytes+size), opText, size)
	for i := range count {
		b = append(b, separator(i))
		b = append(b, value(i)...)
	}
	return append(b, ']')
}

// separator precedes a value of a JSON array.
func separator(i int) byte {
	if i == 0 {
		return '['
	}
	return ','
}

// encodeHello returns the first frame of a socket whose Limits.SendHello is set.
func encodeHello(c *Client, l Limits, o Options) []byte {
	now := wire.FormatTime(time.Now())
	identity, sockets := c.options.Identity, o.ConnectionsPerUser
	if identity == "" {
		identity = fmt.Sprintf(`"userId":%d`, c.options.UserID)
	}
	if c.options.GroupID != 0 {
		sockets = l.ConnectionsPerUser
	}
	return fmt.Appendf(nil, `{"type":"hello","at":"%s","data":{"connectionId":"%s",%s,`+
		`"serverTime":"%s","protocol":1,"limits":{"frameBytes":%d,"framesPerSecond":%d,"burst":%d,`+
		`"subscriptions":%d,"roomsPerSubscribe":%d,"sockets":%d,"boards":%d}}}`,
		now, c.id, identity, now, l.MaxFrameBytes, l.FramesPerSecond, l.BurstFrames,
		l.TopicsPerConnection, l.TopicsPerMessage, sockets, l.StateTopics)
}

// encodeDraining returns the frame that asks a client to reconnect after a delay.
func encodeDraining(reconnectIn time.Duration) []byte {
	return fmt.Appendf(nil, `{"type":"server.draining","at":"%s","data":{"reconnectInMs":%d}}`,
		wire.FormatTime(time.Now()), reconnectIn.Milliseconds())
}

// encodeStale returns the frame that tells a client for how long the node has received nothing from
// the store; 0 means that it receives again.
func encodeStale(silence time.Duration) []byte {
	return fmt.Appendf(nil, `{"type":"server.stale","at":"%s","data":{"sinceMs":%d}}`,
		wire.FormatTime(time.Now()), silence.Milliseconds())
}
