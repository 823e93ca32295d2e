package realtime

import (
	"strconv"
	"strings"
)

// position names one event of a topic: its number and the nonce of the call that made it. The zero
// position stands before the first event.
type position struct{ seq, nonce uint64 }

// String is the position as clients see it and as the stream spells its entry.
func (p position) String() string {
	return strconv.FormatUint(p.seq, 10) + "-" + strconv.FormatUint(p.nonce, 10)
}

// parsePosition reads "<seq>-<nonce>".
func parsePosition(text string) (position, bool) {
	head, tail, ok := strings.Cut(text, "-")
	if !ok {
		return position{}, false
	}
	seq, err := strconv.ParseUint(head, 10, 64)
	if err != nil {
		return position{}, false
	}
	nonce, err := strconv.ParseUint(tail, 10, 64)
	return position{seq, nonce}, err == nil
}

// parseMessage reads what emit publishes: "<seq>-<nonce>|<event>".
func parseMessage(payload string) (entry, bool) {
	head, event, ok := strings.Cut(payload, "|")
	if !ok {
		return entry{}, false
	}
	at, ok := parsePosition(head)
	return entry{at, []byte(event)}, ok && at.seq > 0
}
