package realtime

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// history is the truth: a stream that grows, is trimmed, and sometimes forks.
type history struct {
	events []entry
	nonce  uint64
	seq    uint64
}

func (h *history) add() entry {
	h.seq++
	h.nonce++
	e := entry{position{h.seq, h.nonce}, []byte(strings.Repeat("x", int(h.nonce%700)))}
	h.events = append(h.events, e)
	return e
}

func (h *history) from(p position) []entry {
	i := slices.IndexFunc(h.events, func(e entry) bool { return e.pos.seq > p.seq || e.pos.seq == p.seq && e.pos.nonce >= p.nonce })
	if i < 0 {
		return nil
	}
	return h.events[i:min(len(h.events), i+backfillPage)]
}

func (h *history) tail(n int) []entry { return h.events[max(0, len(h.events)-n):] }

// TestTheLogIsAlwaysARunOfTheHistory drives a log as topics do, with lost and late messages, and checks after each
// repair that it holds an unbroken run that ends where the history ends, within its bounds.
func TestTheLogIsAlwaysARunOfTheHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := &history{}
		for range rapid.IntRange(0, 300).Draw(t, "before") {
			h.add()
		}
		var l ringBuffer
		l.mergeTail(position{}, h.tail(1))
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1: // heard
				for range rapid.IntRange(1, 40).Draw(t, "heard") {
					l.append(h.add())
				}
			case 2: // lost
				for range rapid.IntRange(1, 20).Draw(t, "lost") {
					h.add()
				}
			case 3: // heard twice
				for _, e := range h.tail(3) {
					if v := l.append(e); v == appendForked {
						t.Fatal("a fork where there is none")
					}
				}
			case 4: // trimmed
				h.events = slices.Clone(h.tail(rapid.IntRange(0, 50).Draw(t, "kept")))
			case 5: // forked: the last are undone and written anew
				n := min(len(h.events), rapid.IntRange(1, 5).Draw(t, "undone"))
				h.events = slices.Clone(h.events[:len(h.events)-n])
				h.seq -= uint64(n)
				for range rapid.IntRange(0, 8).Draw(t, "anew") {
					h.add()
				}
			}
			before := l.head()
			repairLog(t, &l, h)
			checkLog(t, &l, h, before)
		}
	})
}

// repairLog does what healer does.
func repairLog(t *rapid.T, l *ringBuffer, h *history) {
	tail := rapid.Bool().Draw(t, "tail") || len(l.entries) == 0
	for i := 0; !tail && i < 50; i++ {
		asked := l.head()
		found := h.from(asked)
		if !l.appendRange(asked, found) {
			tail = true
		} else if len(found) < backfillPage {
			return
		}
	}
	asked := l.head()
	found := slices.Clone(h.tail(backfillTail))
	overtaken := rapid.Bool().Draw(t, "late") // an event overtakes the answer
	if overtaken {
		l.append(h.add())
	}
	l.mergeTail(asked, found)
	if overtaken && l.head() != h.events[len(h.events)-1].pos { // it was a gap or a fork, which asks for another repair
		l.mergeTail(l.head(), slices.Clone(h.tail(backfillTail)))
	}
}

func checkLog(t *rapid.T, l *ringBuffer, h *history, before position) {
	if len(l.entries) > maxBufferEvents || l.bytes > maxBufferBytes && len(l.entries) > 1 {
		t.Fatalf("%d entries, %d bytes", len(l.entries), l.bytes)
	}
	bytes := 0
	for i, e := range l.entries {
		bytes += len(e.event)
		if e.pos.seq != l.base.seq+1+uint64(i) {
			t.Fatalf("entry %d is %v on base %v", i, e.pos, l.base)
		}
	}
	if bytes != l.bytes {
		t.Fatalf("%d bytes, counted %d", bytes, l.bytes)
	}
	if len(h.events) == 0 {
		return // an empty stream proves nothing
	}
	if l.head() != h.events[len(h.events)-1].pos {
		t.Fatalf("the head is %v, the history ends at %v (before %v)", l.head(), h.events[len(h.events)-1].pos, before)
	}
	truth := map[position]bool{}
	for _, e := range h.events {
		truth[e.pos] = true
	}
	for i, e := range l.entries {
		if truth[l.entries[max(i-1, 0)].pos] && !truth[e.pos] {
			t.Fatalf("%v is in the log and not in the history", e.pos)
		}
	}
	for i := 0; i < len(h.events); i += 1 + len(h.events)/5 {
		if at := h.events[i].pos; l.contains(at) {
			if next := l.entriesAfter(at); len(next) > 0 && next[0].pos != h.events[i+1].pos {
				t.Fatalf("%v follows %v", next[0].pos, at)
			}
		}
	}
}

func TestABackfilledLogServesOlderPositions(t *testing.T) {
	h := &history{}
	for range 100 {
		h.add()
	}
	var l ringBuffer
	l.mergeTail(position{}, h.tail(1))
	if l.contains(h.events[40].pos) || !l.contains(h.events[99].pos) || l.contains(h.events[98].pos) {
		t.Fatal("a log of one event holds its own position only")
	}
	l.mergeTail(l.head(), h.tail(backfillTail))
	if !l.contains(h.events[40].pos) || !l.contains(position{}) || len(l.entriesAfter(h.events[40].pos)) != 59 {
		t.Fatal("the end of the stream was not put before the log")
	}
	if l.contains(position{41, 9999}) {
		t.Fatal("a position of another history is held")
	}
}

func FuzzParseMessage(f *testing.F) {
	f.Add("1-2|{}")
	f.Add("!a.1|7,8|{}")
	f.Add("|")
	f.Fuzz(func(t *testing.T, payload string) {
		if payload == "" {
			return
		}
		if payload[0] == ephemeralPrefix {
			if w, ok := parseEphemeral(payload); ok {
				again, ok := parseEphemeral(w.encode())
				if !ok || again.sender != w.sender || again.seq != w.seq || !slices.Equal(again.recipients, w.recipients) || string(again.frame) != string(w.frame) {
					t.Fatalf("%q became %q", payload, w.encode())
				}
			}
			return
		}
		if e, ok := parseMessage(payload); ok && e.pos.seq == 0 {
			t.Fatal("an event without a number")
		}
	})
}
