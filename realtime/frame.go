package realtime

import (
	"strconv"
	"strings"
	"time"
)

// One frame carries at most this much; what is left waits for the next.
const (
	maxFrameEvents = 128
	maxFrameBytes  = 32 << 10
)

// encodeArray makes one frame of several events: a JSON array.
func encodeArray(entries []entry) []byte {
	size := 1
	for i := range entries {
		size += len(entries[i].event) + 1
	}
	frame := append(make([]byte, 0, size), '[')
	for i := range entries {
		if i > 0 {
			frame = append(frame, ',')
		}
		frame = append(frame, entries[i].event...)
	}
	return append(frame, ']')
}

// isoTime is how every event spells a time.
func isoTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// encodeHello is the first frame of a socket that greets.
func encodeHello(p *Client, l Limits, subscriptions int) []byte {
	now := isoTime(time.Now())
	return []byte(`{"type":"hello","at":"` + now + `","data":{"connectionId":"` + p.id + `","userId":` + strconv.FormatInt(p.session.User, 10) +
		`,"serverTime":"` + now + `","protocol":1,"limits":{"frameBytes":` + strconv.FormatInt(l.MaxFrame, 10) +
		`,"framesPerSecond":` + strconv.Itoa(l.Rate) + `,"burst":` + strconv.Itoa(l.Burst) +
		`,"subscriptions":` + strconv.Itoa(subscriptions) + `}}}`)
}

// encodeDraining tells a client when to come back.
func encodeDraining(in time.Duration) []byte {
	return []byte(`{"type":"server.draining","at":"` + isoTime(time.Now()) + `","data":{"reconnectInMs":` + strconv.FormatInt(in.Milliseconds(), 10) + `}}`)
}

// A relayed message travels on the topic's channel as "!<connection>.<number>|<user>,<user>…|<frame>". An event begins
// with a digit, so that neither can be taken for the other.
const ephemeralPrefix = '!'

// ephemeralMessage is a relayed message: to some or all sessions of a topic, at most once, never stored.
type ephemeralMessage struct {
	sender   string // connection id of the sender
	seq uint64 // ascending per sender: a message that Redis was sent twice is heard once
	recipients     []int64
	frame  []byte
}

func (w ephemeralMessage) encode() string {
	var b strings.Builder
	b.Grow(len(w.sender) + len(w.frame) + 16*len(w.recipients) + 24)
	b.WriteByte(ephemeralPrefix)
	b.WriteString(w.sender)
	b.WriteByte('.')
	b.WriteString(strconv.FormatUint(w.seq, 10))
	b.WriteByte('|')
	for i, user := range w.recipients {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(user, 10))
	}
	b.WriteByte('|')
	b.Write(w.frame)
	return b.String()
}

// parseEphemeral reads a payload that begins with relayMark.
func parseEphemeral(payload string) (w ephemeralMessage, ok bool) {
	parts := strings.SplitN(payload[1:], "|", 3)
	if len(parts) != 3 {
		return w, false
	}
	from, number, ok := strings.Cut(parts[0], ".")
	if !ok {
		return w, false
	}
	var err error
	if w.seq, err = strconv.ParseUint(number, 10, 64); err != nil {
		return w, false
	}
	if parts[1] != "" {
		for text := range strings.SplitSeq(parts[1], ",") {
			user, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return w, false
			}
			w.recipients = append(w.recipients, user)
		}
	}
	w.sender, w.frame = from, []byte(parts[2])
	return w, true
}
