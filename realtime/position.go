package realtime

import (
	"strconv"
	"strings"

	"github.com/parlor-games/parlor/internal/store/events"
)

// position identifies one event of a topic: its number and the nonce of the call that wrote it. The
// zero position is before the first event. A nonce of 0 is an unknown one: no event has it.
type position struct{ seq, nonce uint64 }

const (
	nonceBase   = 36
	nonceDigits = 8
	startText   = "0-0" // the zero position as a text
)

// String returns the position as clients send it and as entries begin: the nonce has 8 digits of
// base 36. That before the first event is "0-0".
func (p position) String() string {
	if p == (position{}) {
		return startText
	}
	nonce := strconv.FormatUint(p.nonce, nonceBase)
	return strconv.FormatUint(p.seq, 10) + "-" + strings.Repeat("0", max(0, nonceDigits-len(nonce))) + nonce
}

// parsePosition parses "<seq>-<nonce>". It accepts only what String returns, so two texts are the
// same position exactly when they are equal.
func parsePosition(text string) (position, bool) {
	if text == startText {
		return position{}, true
	}
	seqText, nonceText, ok := strings.Cut(text, "-")
	if !ok || strings.HasPrefix(seqText, "0") || len(nonceText) != nonceDigits || strings.ToLower(nonceText) != nonceText {
		return position{}, false
	}
	seq, seqErr := strconv.ParseUint(seqText, 10, 64)
	nonce, nonceErr := strconv.ParseUint(nonceText, nonceBase, 64)
	return position{seq, nonce}, seqErr == nil && nonceErr == nil && nonce != 0
}

// includes reports whether a state at p contains everything that a state at q does. Two
// events with the same number and different nonces belong to diverged histories: neither includes
// the other.
func (p position) includes(q position) bool { return p == q || p.seq > q.seq }

// entry is an entry of a topic's list, not rendered yet. It stands for the events from the number
// first to the one at pos, which all have the nonce of pos.
type entry struct {
	first uint64
	pos   position
	text  string // as it is stored and published
}

// parseEntry parses the header of what scripts store and publish.
func parseEntry(text string) (entry, bool) {
	h, ok := events.ParseHeader(text)
	if !ok {
		return entry{}, false
	}
	pos, ok := parsePosition(h.Position)
	return entry{first: uint64(h.Seq-int64(h.EventCount)) + 1, pos: pos, text: text}, ok
}

// event is one event, framed once for all clients. Its bytes must not be changed.
type event struct {
	pos   position
	kind  string // its type, such as "room.left"
	tag   uint32 // of a feed: what Feed.Render returned
	frame frame  // the whole event
}

func (e *event) json() []byte { return e.frame.payload() }
