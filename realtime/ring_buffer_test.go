package realtime

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// history models a stream that grows, is trimmed, and sometimes forks.
type history struct {
	events []entry
	nonce  uint64
	seq    uint64
}

func (h *history) append() entry {
	h.seq++
	h.nonce++
	e := newEntry(position{h.seq, h.nonce}, "room.test", strings.Repeat("x", int(h.nonce%700)))
	h.events = append(h.events, e)
	return e
}

func (h *history) from(p position) []entry {
	i := slices.IndexFunc(h.events, func(e entry) bool {
		return e.pos.seq > p.seq || e.pos.seq == p.seq && e.pos.nonce >= p.nonce
	})
	if i < 0 {
		return nil
	}
	return h.events[i:min(len(h.events), i+backfillPageEntries)]
}

func (h *history) tail(n int) []entry { return h.events[max(0, len(h.events)-n):] }

// TestTheRingBufferIsAlwaysARunOfTheHistory drives a ring buffer as topics do, with lost and late
// messages, and checks after each backfill that it holds consecutive events, up to the end of the
// history and within its bounds.
func TestTheRingBufferIsAlwaysARunOfTheHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := &history{}
		for range rapid.IntRange(0, 300).Draw(t, "before") {
			h.append()
		}
		var b ringBuffer
		b.mergeTail(position{}, h.tail(1))
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1: // received
				for range rapid.IntRange(1, 40).Draw(t, "received") {
					b.append(h.append())
				}
			case 2: // lost
				for range rapid.IntRange(1, 20).Draw(t, "lost") {
					h.append()
				}
			case 3: // received twice
				for _, e := range h.tail(3) {
					if v := b.append(e); v == appendForked {
						t.Fatal("a duplicate is taken for a fork")
					}
				}
			case 4: // trimmed
				h.events = slices.Clone(h.tail(rapid.IntRange(0, 50).Draw(t, "kept")))
			case 5: // forked: the last events are undone and others are written
				n := min(len(h.events), rapid.IntRange(1, 5).Draw(t, "undone"))
				h.events = slices.Clone(h.events[:len(h.events)-n])
				h.seq -= uint64(n)
				for range rapid.IntRange(0, 8).Draw(t, "rewritten") {
					h.append()
				}
			}
			before := b.head()
			backfillBuffer(t, &b, h)
			checkBuffer(t, &b, h, before)
		}
	})
}

// backfillBuffer does what backfiller does.
func backfillBuffer(t *rapid.T, b *ringBuffer, h *history) {
	tail := rapid.Bool().Draw(t, "tail") || len(b.entries) == 0
	for i := 0; !tail && i < 50; i++ {
		oldHead := b.head()
		found := h.from(oldHead)
		if !b.appendRange(oldHead, found) {
			tail = true
		} else if len(found) < backfillPageEntries {
			return
		}
	}
	oldHead := b.head()
	found := slices.Clone(h.tail(backfillTailEntries))
	overtaken := rapid.Bool().Draw(t, "overtaken") // an event arrives before the reply to the read
	if overtaken {
		b.append(h.append())
	}
	b.mergeTail(oldHead, found)
	if overtaken && b.head() != h.events[len(h.events)-1].pos { // a gap or a fork, which requests another read
		b.mergeTail(b.head(), slices.Clone(h.tail(backfillTailEntries)))
	}
}

func checkBuffer(t *rapid.T, b *ringBuffer, h *history, before position) {
	if len(b.entries) > maxRingEvents || b.byteCount > maxRingBytes && len(b.entries) > 1 {
		t.Fatalf("%d entries, %d bytes: over the bounds", len(b.entries), b.byteCount)
	}
	bytes := 0
	for i, e := range b.entries {
		bytes += len(e.eventJSON)
		if e.pos.seq != b.base.seq+1+uint64(i) {
			t.Fatalf("entry %d is %v on base %v", i, e.pos, b.base)
		}
	}
	if bytes != b.byteCount {
		t.Fatalf("%d bytes, counted %d", bytes, b.byteCount)
	}
	if len(h.events) == 0 {
		return // an expired stream tells nothing about the buffer
	}
	if b.head() != h.events[len(h.events)-1].pos {
		end := h.events[len(h.events)-1].pos
		t.Fatalf("the head is %v, want the end of the history %v (it was %v)", b.head(), end, before)
	}
	inHistory := map[position]bool{}
	for _, e := range h.events {
		inHistory[e.pos] = true
	}
	for i, e := range b.entries {
		if inHistory[b.entries[max(i-1, 0)].pos] && !inHistory[e.pos] {
			t.Fatalf("%v is in the buffer and not in the history", e.pos)
		}
	}
	for i := 0; i < len(h.events); i += 1 + len(h.events)/5 {
		if at := h.events[i].pos; b.contains(at) {
			if next := b.entriesAfter(at); len(next) > 0 && next[0].pos != h.events[i+1].pos {
				t.Fatalf("%v follows %v", next[0].pos, at)
			}
		}
	}
}

func TestABackfilledRingBufferContainsOlderPositions(t *testing.T) {
	h := &history{}
	for range 100 {
		h.append()
	}
	var b ringBuffer
	b.mergeTail(position{}, h.tail(1))
	if b.contains(h.events[40].pos) || !b.contains(h.events[99].pos) || b.contains(h.events[98].pos) {
		t.Fatal("a buffer of one event must contain the position of that event only")
	}
	b.mergeTail(b.head(), h.tail(backfillTailEntries))
	if !b.contains(h.events[40].pos) || !b.contains(position{}) || len(b.entriesAfter(h.events[40].pos)) != 59 {
		t.Fatal("the tail of the stream was not prepended")
	}
	if b.contains(position{41, 9999}) {
		t.Fatal("the buffer contains a position of another history")
	}
}
