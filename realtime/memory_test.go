package realtime

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// newDirectPairs returns so many clients that follow one topic from its start.
func newDirectPairs(t *testing.T, h *Hub, room *topic, n int) (pairs []*directPair) {
	t.Helper()
	for range n {
		p := newDirectPairOf(t, h)
		pairs = append(pairs, p)
		c := p.directConn.client
		c.writesEnabled, c.id = true, fmt.Sprint("client", len(room.cursors))
		cur := &cursor{client: c, topic: room, active: true}
		c.cursors.put(cur)
		room.addCursor(cur)
	}
	return pairs
}

// discardFrame reads a frame of less than 64 KiB, and allocates nothing.
func (p *directPair) discardFrame(t *testing.T) {
	head := testkit.Must(p.reader.Peek(4))(t)
	size := 2 + int(head[1])
	if head[1] == 126 {
		size = 4 + int(binary.BigEndian.Uint16(head[2:]))
	}
	testkit.Must(p.reader.Discard(size))(t)
}

// What an event or a message allocates on its way from the channel to four clients: of an event
// mostly its frame, which stays in the topic's buffer. The frame of a message does not stay.
func TestWhatADeliveryAllocates(t *testing.T) {
	h := New(redistest.Single(t), Options{})
	room := newTopic(h, "{r1}:room:00000000-0000-8000-8000-000000000000:events")
	room.buffer.merge(tail{isLong: true, isAll: true}, room.render)
	h.topics.Store(room.name, room)
	clients := newDirectPairs(t, h, room, 4)

	const messages = 500
	var entries, texts []channelMessage
	now := time.Now().UnixMilli()
	for i := range 2 * messages {
		values := valuesOf(testEvent, strings.Repeat("x", 190))
		entry := fmt.Sprintf("%d-%08d|%s|%d|%s", i+1, i+1, testEvent, now, values)
		entries = append(entries, channelMessage{room.name, entry})
		m := EphemeralMessage{senderID: "sender", seq: uint64(i + 1), Text: []byte(`{"type":"room.message","op":"m"}`)}
		texts = append(texts, channelMessage{room.name, string(m.appendPayload(nil))})
	}
	for name, c := range map[string]struct {
		messages []channelMessage
		handle   func(channelMessage)
		most     uint64 // bytes for each message
	}{
		"an event": {entries, func(m channelMessage) {
			changed, replaced := h.handleMessage(m)
			if changed == nil {
				t.Fatal("the event is not the next one")
			}
			changed.notifyCursors(replaced)
		}, 1200},
		"a message": {texts, func() func(m channelMessage) {
			var batch ephemeralBatch
			return func(m channelMessage) {
				h.handleEphemeral(m, &batch)
				batch.flush()
			}
		}(), 400},
	} {
		t.Run(name, func(t *testing.T) {
			handle := func(messages []channelMessage) {
				for _, m := range messages {
					c.handle(m)
					for _, client := range clients {
						client.discardFrame(t)
					}
				}
			}
			handle(c.messages[:messages])
			before := h.Stats().FramesSent
			bytes := allocatedBy(func() { handle(c.messages[messages:]) }) / messages
			if sent := h.Stats().FramesSent - before; sent != 4*messages {
				t.Fatalf("%d frames were sent, want %d", sent, 4*messages)
			}
			t.Logf("%d bytes for 4 clients", bytes)
			if bytes > c.most {
				t.Errorf("%d bytes, more than %d", bytes, c.most)
			}
		})
	}
}
