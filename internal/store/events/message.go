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
	b = growForMessage(b, &m)
	b = appendMessageHead(b, RoomMessage.Name, m.RoomID, m.At)
	b = append(b, `"from":`...)
	if m.From == 0 {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, m.From, 10)
	}
	b = appendOp(append(b, ','), &m)
	if m.Encoding != "" {
		b = append(b, `,"encoding":`...)
		b = wire.AppendString(b, m.Encoding)
	}
	return append(b, "}}"...)
}

// AppendCall appends a room.call event as JSON: a message to the game's server, with the id of the
// call.
func AppendCall(b []byte, callID string, m Message) []byte {
	b = growForMessage(b, &m)
	b = appendMessageHead(b, RoomCall.Name, m.RoomID, m.At)
	b = append(b, `"callId":`...)
	b = wire.AppendString(b, callID)
	b = append(b, `,"from":`...)
	b = strconv.AppendInt(b, m.From, 10)
	return append(appendOp(append(b, ','), &m), "}}"...)
}

// AppendUserMessage appends a user.message event as JSON: a message without a room and a sender.
func AppendUserMessage(b []byte, m Message) []byte {
	b = growForMessage(b, &m)
	b = appendMessageHead(b, UserMessage.Name, "", m.At)
	return append(appendOp(b, &m), "}}"...)
}

// growForMessage allocates memory for a message, unless it has some.
func growForMessage(b []byte, m *Message) []byte {
	if b == nil {
		b = make([]byte, 0, 200+len(m.Op)+len(m.Payload))
	}
	return b
}

// appendMessageHead appends what stands before the members of data.
func appendMessageHead(b []byte, name, roomID string, at time.Time) []byte {
	b = append(b, `{"type":"`...)
	b = append(b, name...)
	if roomID != "" {
		b = append(b, `","roomId":"`...)
		b = append(b, roomID...)
	}
	b = append(b, `","at":`...)
	b = wire.AppendTime(b, at)
	return append(b, `,"data":{`...)
}

// appendOp appends the members that every message has.
func appendOp(b []byte, m *Message) []byte {
	b = append(b, `"op":`...)
	b = wire.AppendString(b, m.Op)
	b = append(b, `,"payload":`...)
	if len(m.Payload) == 0 {
		return append(b, "null"...)
	}
	return append(b, m.Payload...)
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
