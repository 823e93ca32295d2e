package realtime

import (
	"fmt"
	"time"

	"github.com/parlor-games/parlor/internal/wire"
)

// The bounds of one frame. What does not fit waits for the next frame.
const (
	maxBatchEvents = 128
	maxBatchBytes  = 32 << 10
)

// encodeEventArray returns several events as one frame: a JSON array.
func encodeEventArray(events []event) []byte {
	size := 1
	for i := range events {
		size += len(events[i].json) + 1
	}
	frame := append(make([]byte, 0, size), '[')
	for i := range events {
		if i > 0 {
			frame = append(frame, ',')
		}
		frame = append(frame, events[i].json...)
	}
	return append(frame, ']')
}

// encodeHello returns the first frame of a socket whose Limits.SendHello is set.
func encodeHello(c *Client, l Limits, o Options) []byte {
	now := wire.FormatTime(time.Now())
	return fmt.Appendf(nil, `{"type":"hello","at":"%s","data":{"connectionId":"%s","userId":%d,`+
		`"serverTime":"%s","protocol":1,"limits":{"frameBytes":%d,"framesPerSecond":%d,"burst":%d,`+
		`"subscriptions":%d,"roomsPerSubscribe":%d,"sockets":%d}}}`,
		now, c.id, c.options.UserID, now, l.MaxFrameBytes, l.FramesPerSecond, l.BurstFrames,
		o.TopicsPerConnection, o.TopicsPerConnection, o.ConnectionsPerUser)
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
