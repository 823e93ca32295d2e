package events

import (
	"strconv"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
)

// EncodingBase64 is the encoding of a payload that its sender sent as bytes: a JSON string in
// base64 (RFC 4648, section 4).
const EncodingBase64 = "base64"

// Message is a room.message event. It is not stored, and has no number.
type Message struct {
	RoomID   string
	At       time.Time
	From     int64        // user id; 0: the game's server
	Op       string       // the game's name for the message
	Payload  wire.RawJSON // any JSON; nil: null
	Encoding string       // EncodingBase64, or "" for a payload that is JSON
}

// AppendMessage appends the event as JSON.
func AppendMessage(b []byte, m Message) []byte {
	if b == nil {
		b = make([]byte, 0, 180+len(m.Op)+len(m.Payload))
	}
	b = append(b, `{"type":"`...)
	b = append(b, RoomMessage.Name...)
	b = append(b, `","roomId":"`...)
	b = append(b, m.RoomID...)
	b = append(b, `","at":`...)
	b = wire.AppendTime(b, m.At)
	b = append(b, `,"data":{"from":`...)
	if m.From == 0 {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, m.From, 10)
	}
	b = append(b, `,"op":`...)
	b = wire.AppendString(b, m.Op)
	b = append(b, `,"payload":`...)
	if len(m.Payload) == 0 {
		b = append(b, "null"...)
	}
	b = append(b, m.Payload...)
	if m.Encoding != "" {
		b = append(b, `,"encoding":`...)
		b = wire.AppendString(b, m.Encoding)
	}
	return append(b, "}}"...)
}

// ParseMessage parses what AppendMessage has encoded: the sender, the op and the payload.
func ParseMessage(event []byte) (Message, error) {
	var parsed struct {
		Data struct {
			From    int64        `json:"from"`
			Op      string       `json:"op"`
			Payload wire.RawJSON `json:"payload"`
		} `json:"data"`
	}
	err := wire.Unmarshal(event, &parsed)
	return Message{From: parsed.Data.From, Op: parsed.Data.Op, Payload: parsed.Data.Payload}, err
}
