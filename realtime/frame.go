package realtime

import (
	"fmt"
	"strconv"
	"strings"
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

// ephemeralPrefix begins the payload of an ephemeral message on a topic's channel:
// "!<connection>.<seq>|<user>,<user>…|<frame>". The payload of an event begins with a digit, so the
// two cannot be confused.
const ephemeralPrefix = "!"

// ephemeralMessage goes to some or all clients of a topic, at most once, and is never stored.
type ephemeralMessage struct {
	senderID         string  // connection id
	seq              uint64  // ascending per sender, so that a message that was published twice is delivered once
	recipientUserIDs []int64 // user ids; empty: every client of the topic
	frame            []byte
}

// encode returns the message as a channel payload.
func (m ephemeralMessage) encode() string {
	var b strings.Builder
	b.Grow(len(m.senderID) + len(m.frame) + 16*len(m.recipientUserIDs) + 24)
	b.WriteString(ephemeralPrefix)
	b.WriteString(m.senderID)
	b.WriteByte('.')
	b.WriteString(strconv.FormatUint(m.seq, 10))
	b.WriteByte('|')
	for i, user := range m.recipientUserIDs {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(user, 10))
	}
	b.WriteByte('|')
	b.Write(m.frame)
	return b.String()
}

// parseEphemeral parses a payload that begins with ephemeralPrefix.
func parseEphemeral(payload string) (m ephemeralMessage, ok bool) {
	parts := strings.SplitN(strings.TrimPrefix(payload, ephemeralPrefix), "|", 3)
	if len(parts) != 3 {
		return m, false
	}
	sender, seq, ok := strings.Cut(parts[0], ".")
	if !ok {
		return m, false
	}
	var err error
	if m.seq, err = strconv.ParseUint(seq, 10, 64); err != nil {
		return m, false
	}
	if parts[1] != "" {
		for text := range strings.SplitSeq(parts[1], ",") {
			user, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return m, false
			}
			m.recipientUserIDs = append(m.recipientUserIDs, user)
		}
	}
	m.senderID, m.frame = sender, []byte(parts[2])
	return m, true
}
