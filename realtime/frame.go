package realtime

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/parlor-games/parlor/internal/wire"
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

// separator is what stands before a value of a JSON array.
func separator(i int) byte {
	if i == 0 {
		return '['
	}
	return ','
}

// encodeHello returns the first frame of a socket whose Limits.SendHello is set.
func encodeHello(c *Client, l Limits, o Options) []byte {
	now := wire.FormatTime(time.Now())
	return fmt.Appendf(nil, `{"type":"hello","at":"%s","data":{"connectionId":"%s","userId":%d,`+
		`"serverTime":"%s","protocol":1,"limits":{"frameBytes":%d,"framesPerSecond":%d,"burst":%d,`+
		`"subscriptions":%d,"roomsPerSubscribe":%d,"sockets":%d,"boards":%d}}}`,
		now, c.id, c.options.UserID, now, l.MaxFrameBytes, l.FramesPerSecond, l.BurstFrames,
		o.TopicsPerConnection, o.TopicsPerConnection, o.ConnectionsPerUser, l.StateTopics)
}

// encodeDraining returns the frame that asks a client to reconnect after a delay.
func encodeDraining(reconnectIn time.Duration) []byte {
	return fmt.Appendf(nil, `{"type":"server.draining","at":"%s","data":{"reconnectInMs":%d}}`,
		wire.FormatTime(time.Now()), reconnectIn.Milliseconds())
}

// encodeStale returns the frame that tells a client that the node has heard nothing from the store
// for so long, or, with 0, that it hears the store again.
func encodeStale(silence time.Duration) []byte {
	return fmt.Appendf(nil, `{"type":"server.stale","at":"%s","data":{"sinceMs":%d}}`,
		wire.FormatTime(time.Now()), silence.Milliseconds())
}
