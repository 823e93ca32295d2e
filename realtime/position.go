package realtime

import (
	"strconv"
	"strings"
	"unique"
)

// position identifies one event of a topic: its number and the nonce of the call that wrote it. The
// zero position is before the first event.
type position struct{ seq, nonce uint64 }

// String returns the position as clients send it and as entries begin: the nonce has 8 digits of
// base 36. That before the first event is "0-0".
func (p position) String() string {
	nonce := strconv.FormatUint(p.nonce, nonceBase)
	if p.nonce != 0 {
		nonce = strings.Repeat("0", max(0, nonceDigits-len(nonce))) + nonce
	}
	return strconv.FormatUint(p.seq, 10) + "-" + nonce
}

const (
	nonceBase   = 36
	nonceDigits = 8
)

// parsePosition parses "<seq>-<nonce>".
func parsePosition(text string) (position, bool) {
	seqText, nonceText, ok := strings.Cut(text, "-")
	if !ok {
		return position{}, false
	}
	seq, err := strconv.ParseUint(seqText, 10, 64)
	if err != nil {
		return position{}, false
	}
	nonce, err := strconv.ParseUint(nonceText, nonceBase, 64)
	return position{seq, nonce}, err == nil
}

// includes reports whether a state at p contains everything that a state at q does. Two
// events with the same number and different nonces belong to diverged histories: neither includes
// the other.
func (p position) includes(q position) bool { return p == q || p.seq > q.seq }

// entry is one event, encoded once for all clients. Its bytes must not be changed.
type entry struct {
	pos       position
	eventType string // such as "room.left"
	eventJSON []byte // the event as JSON
}

func newEntry(pos position, eventType, event string) entry {
	// The type is interned: a substring would keep the whole payload alive.
	return entry{pos, unique.Make(eventType).Value(), []byte(event)}
}

// parseEntry parses what scripts publish: "<seq>-<nonce>|<type>|<event>".
func parseEntry(payload string) (entry, bool) {
	posText, rest, ok := strings.Cut(payload, "|")
	if !ok {
		return entry{}, false
	}
	eventType, event, ok := strings.Cut(rest, "|")
	if !ok {
		return entry{}, false
	}
	pos, ok := parsePosition(posText)
	if !ok || pos.seq == 0 {
		return entry{}, false
	}
	return newEntry(pos, eventType, event), true
}
