package realtime

import (
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/events"
)

// BinarySubprotocol is the WebSocket subprotocol of clients that send and receive messages as
// binary frames. All other frames stay text.
//
// A binary frame is, big-endian: u8 kind, u16 index of the room, u16 op, u64 sender, payload. The
// index is Client-wide and comes with the subscription. In frames from clients the sender is 0.
const BinarySubprotocol = "parlor.v1.bin"

// The kinds of binary frames. Clients send KindBytes only, perhaps with FlagLatest.
const (
	KindBytes  = 1    // the payload as it was sent
	KindJSON   = 2    // the payload is JSON: the sender sent text
	FlagLatest = 0x80 // see EphemeralMessage.Latest
)

const binaryHeaderBytes = 13

// BinaryMessage is a message as a client sends it in a binary frame.
type BinaryMessage struct {
	TopicIndex uint16 // of SubscribeResult
	Op         uint16
	Latest     bool
	Payload    []byte
}

// ParseBinaryMessage parses a binary frame of a client. It returns invalid_request.
func ParseBinaryMessage(raw []byte) (m BinaryMessage, err error) {
	if len(raw) < binaryHeaderBytes {
		return m, apierror.InvalidRequest.WithReason("a binary frame has at least %d bytes", binaryHeaderBytes)
	}
	if raw[0]&^FlagLatest != KindBytes || binary.BigEndian.Uint64(raw[5:]) != 0 {
		return m, apierror.InvalidRequest.
			WithReason("a binary frame from a client is of kind %d, and its sender is 0", KindBytes)
	}
	return BinaryMessage{
		TopicIndex: binary.BigEndian.Uint16(raw[1:]), Op: binary.BigEndian.Uint16(raw[3:]),
		Latest: raw[0]&FlagLatest != 0, Payload: raw[binaryHeaderBytes:],
	}, nil
}

// wantsBinary reports whether a request offers BinarySubprotocol.
func wantsBinary(r *http.Request) bool {
	return slices.Contains(websocket.Subprotocols(r), BinarySubprotocol)
}

// newBinaryFrame returns a message for a client that knows the topic by an index.
func newBinaryFrame(kind byte, index, op uint16, sender int64, payload []byte) frame {
	size := binaryHeaderBytes + len(payload)
	b := appendHeader(make([]byte, 0, maxHeaderBytes+size), opBinary, size)
	b = append(b, kind)
	b = binary.BigEndian.AppendUint16(b, index)
	b = binary.BigEndian.AppendUint16(b, op)
	b = binary.BigEndian.AppendUint64(b, uint64(sender))
	return append(b, payload...)
}

// parseOp returns the number of an op, if its text is that of one.
func parseOp(text string) (op uint16, ok bool) {
	n, err := strconv.ParseUint(text, 10, 16)
	return uint16(n), err == nil && strconv.FormatUint(n, 10) == text
}

// bodyForBinary is a message as binary clients get it.
type bodyForBinary struct {
	ready   bool
	kind    byte // 0: it has no number as its op, so it stays text
	op      uint16
	payload []byte
}

// frameFor returns the message as a client gets it. It is called by one goroutine at a time.
func (m *EphemeralMessage) frameFor(cur *cursor) frame {
	if cur.client.binary {
		if body := m.bodyForBinary(); body.kind != 0 {
			return newBinaryFrame(body.kind, cur.number, body.op, m.SenderUserID, body.payload)
		}
	}
	return m.textFrame(cur.topic)
}

// textFrame returns the message as text, which is encoded once for all clients.
func (m *EphemeralMessage) textFrame(t *topic) frame {
	if m.frame == nil {
		m.frame = newFrame(opText, events.AppendMessage(nil, events.Message{
			RoomID: listID(t.name), At: m.sentAt, From: m.SenderUserID, Op: m.Op,
			Payload: wire.AppendString(nil, base64.StdEncoding.EncodeToString(m.Bytes)), Encoding: events.EncodingBase64,
		}))
	}
	return m.frame
}

// bodyForBinary returns the message as binary clients get it, which is decoded once for all.
func (m *EphemeralMessage) bodyForBinary() bodyForBinary {
	b := &m.body
	if b.ready {
		return *b
	}
	b.ready = true
	if m.isBinary {
		op, _ := parseOp(m.Op)
		*b = bodyForBinary{true, KindBytes, op, m.Bytes}
		return *b
	}
	parsed, err := events.ParseMessage(m.frame.payload())
	if op, ok := parseOp(parsed.Op); ok && err == nil {
		m.SenderUserID = parsed.From
		*b = bodyForBinary{true, KindJSON, op, parsed.Payload}
	}
	return *b
}

// nextNumber returns an index that no other topic of the client has. Client.mu must be held.
func (c *Client) nextNumber() uint16 {
	for {
		c.lastNumber++
		taken := func(cur *cursor) bool { return cur.number == c.lastNumber }
		if c.lastNumber != 0 && !slices.ContainsFunc(c.cursors.list, taken) {
			return c.lastNumber
		}
	}
}

// numberFor returns the index of a topic: the one that it has, or a new one.
func (c *Client) numberFor(t *topic) uint16 {
	if !c.binary {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if cur := c.cursors.find(t.name); cur != nil {
		return cur.number
	}
	return c.nextNumber()
}

// parseSentAt parses the time of a message in milliseconds.
func parseSentAt(text string) (time.Time, error) {
	ms, err := strconv.ParseInt(text, 10, 64)
	return time.UnixMilli(ms), err
}
