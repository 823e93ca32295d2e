package realtime

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// history models a list that grows, is trimmed, and sometimes forks.
type history struct {
	entries []entry
	nonce   uint64
	seq     uint64
}

// append adds an entry. Some stand for two events, as a purchase does.
func (h *history) append() entry {
	h.nonce++
	count := uint64(1)
	if h.nonce%5 == 0 {
		count = 2
	}
	h.seq += count
	e := entry{first: h.seq - count + 1, pos: position{h.seq, h.nonce}, text: strings.Repeat("x", int(h.nonce%700))}
	h.entries = append(h.entries, e)
	return e
}

// read returns the newest n entries.
func (h *history) read(n int) tail {
	newest := h.entries[max(0, len(h.entries)-n):]
	all := len(h.entries) < n
	return tail{entries: slices.Clone(newest), isAll: all, isLong: all || n == backfillTailEntries}
}

// head returns the position of the last event.
func (h *history) head() position { return h.entries[len(h.entries)-1].pos }

// positions returns the positions of all events.
func (h *history) positions() (list []position) {
	for _, e := range h.entries {
		for seq := e.first; seq <= e.pos.seq; seq++ {
			list = append(list, position{seq, e.pos.nonce})
		}
	}
	return list
}

const unreadable = "unreadable"

// testBuffer renders an entry as its text, and none that is unreadable.
type testBuffer struct {
	ringBuffer
	renderCounts map[position]int
}

func newTestBuffer() *testBuffer { return &testBuffer{renderCounts: map[position]int{}} }

func (b *testBuffer) render(rendered []event, e entry, _ bool) []event {
	b.renderCounts[e.pos]++
	if e.text == unreadable {
		return rendered
	}
	for seq := e.first; seq <= e.pos.seq; seq++ {
		rendered = append(rendered, event{
			pos: position{seq, e.pos.nonce}, kind: "room.joined", frame: newFrame(opText, []byte(e.text)),
		})
	}
	return rendered
}

func (b *testBuffer) append(e entry) appendResult { return b.ringBuffer.append(e, b.render) }

func (b *testBuffer) merge(read tail) mergeResult { return b.ringBuffer.merge(read, b.render) }

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
		b := newTestBuffer()
		b.merge(h.read(1))
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0, 1: // received
				for range rapid.IntRange(1, 40).Draw(t, "received") {
					b.append(h.append())
				}
			case 2: // lost
				for range rapid.IntRange(1, 20).Draw(t, "lost") {
					h.append()
				}
			case 3: // received twice
				for _, e := range h.read(3).entries {
					if v := b.append(e); v == appendForked {
						t.Fatal("a duplicate is taken for a fork")
					}
				}
			case 4: // trimmed
				h.entries = h.read(rapid.IntRange(0, 50).Draw(t, "kept")).entries
			case 5: // forked: the last entries are undone and others are written
				n := min(len(h.entries), rapid.IntRange(1, 5).Draw(t, "undone"))
				for _, e := range h.entries[len(h.entries)-n:] {
					h.seq -= e.pos.seq - e.first + 1
				}
				h.entries = slices.Clone(h.entries[:len(h.entries)-n])
				for range rapid.IntRange(0, 8).Draw(t, "rewritten") {
					h.append()
				}
			case 6: // unreadable
				h.append()
				h.entries[len(h.entries)-1].text = unreadable
				if rapid.Bool().Draw(t, "received") {
					b.append(h.entries[len(h.entries)-1])
				}
			}
			before := b.head()
			backfillBuffer(t, b, h)
			checkBuffer(t, b, h, before)
		}
	})
}

// backfillBuffer does what backfiller does.
func backfillBuffer(t *rapid.T, b *testBuffer, h *history) {
	read := h.read(rapid.SampledFrom([]int{backfillMinEntries, 30, backfillTailEntries}).Draw(t, "limit"))
	if b.isEmpty() || b.conflicted {
		read = h.read(backfillTailEntries)
	}
	read.oldHead = b.head()
	overtaken := rapid.Bool().Draw(t, "overtaken") // an event arrives before the reply to the read
	if overtaken {
		b.append(h.append())
	}
	if b.merge(read) == mergeTooShort {
		read = h.read(backfillTailEntries)
		read.oldHead = b.head()
		if rapid.Bool().Draw(t, "overtaken again") {
			overtaken = true
			b.append(h.append())
		}
		if b.merge(read) == mergeTooShort {
			t.Fatal("the whole tail is too short")
		}
	}
	if overtaken && b.head() != h.head() { // a gap or a fork, which requests another read
		read = h.read(backfillTailEntries)
		read.oldHead = b.head()
		b.merge(read)
	}
}

func checkBuffer(t *rapid.T, b *testBuffer, h *history, before position) {
	if len(b.events) > maxRingEvents || b.byteCount > maxRingBytes && len(b.events) > 1 {
		t.Fatalf("%d events, %d bytes: over the bounds", len(b.events), b.byteCount)
	}
	bytes := 0
	for i, e := range b.events {
		bytes += len(e.json())
		if e.pos.seq != b.base.seq+1+uint64(i) {
			t.Fatalf("event %d is %v on base %v", i, e.pos, b.base)
		}
	}
	if bytes != b.byteCount {
		t.Fatalf("%d bytes, counted %d", bytes, b.byteCount)
	}
	if len(h.entries) == 0 {
		return // an expired list tells nothing about the buffer
	}
	if b.head() != h.head() {
		t.Fatalf("the head is %v, want the end of the history %v (it was %v)", b.head(), h.head(), before)
	}
	positions := h.positions()
	inHistory := map[position]bool{}
	for _, pos := range positions {
		inHistory[pos] = true
	}
	for i, e := range b.events {
		if inHistory[b.events[max(i-1, 0)].pos] && !inHistory[e.pos] {
			t.Fatalf("%v is in the buffer and not in the history", e.pos)
		}
		if string(e.json()) == unreadable {
			t.Fatalf("%v is delivered, though it cannot be rendered", e.pos)
		}
	}
	for i := 0; i < len(positions); i += 1 + len(positions)/5 {
		if at := positions[i]; b.contains(at) {
			if next := b.eventsAfter(at); len(next) > 0 && next[0].pos != positions[i+1] {
				t.Fatalf("%v follows %v", next[0].pos, at)
			}
		}
	}
}

// The front of the buffer may have been dropped between the two events of an entry.
func TestTheFirstEventOfATwoIsPrependedAlone(t *testing.T) {
	h := &history{}
	for range 10 {
		h.append()
	}
	b := newTestBuffer()
	b.merge(h.read(1)) // two events
	b.byteCount -= len(b.events[0].json())
	b.base, b.events = b.events[0].pos, b.events[1:]
	read := h.read(backfillTailEntries)
	read.oldHead = b.head()
	if b.merge(read) != mergeOK || len(b.events) != len(h.positions()) {
		t.Fatalf("the buffer has %d events, want %d", len(b.events), len(h.positions()))
	}
	for i, pos := range h.positions() {
		if b.events[i].pos != pos {
			t.Errorf("event %d is %v, want %v", i, b.events[i].pos, pos)
		}
	}
}

func TestABackfilledRingBufferContainsOlderPositions(t *testing.T) {
	h := &history{}
	for range 100 {
		h.append()
	}
	b := newTestBuffer()
	b.merge(h.read(1))
	all := h.positions()
	last := len(all) - 1 // the last entry stands for two events
	if b.contains(all[40]) || !b.contains(all[last]) || !b.contains(all[last-1]) || b.contains(all[last-2]) {
		t.Fatal("a buffer of one entry must contain the positions of that entry only")
	}
	read := h.read(backfillTailEntries)
	read.oldHead = b.head()
	b.merge(read)
	if !b.contains(all[40]) || !b.contains(position{}) || len(b.eventsAfter(all[40])) != last-40 {
		t.Fatal("the tail of the list was not prepended")
	}
	if b.contains(position{41, 9999}) {
		t.Fatal("the buffer contains a position of another history")
	}
}

func TestAnEmptyListRefutesNoNewerState(t *testing.T) {
	h := &history{}
	for range 5 {
		h.append()
	}
	newer := position{h.head().seq + 1, 7}
	older := position{h.head().seq, h.head().nonce + 1}
	for _, content := range []string{"no event", "the events until the list was dropped"} {
		b := newTestBuffer()
		if content != "no event" {
			b.merge(h.read(5))
			if !b.refutes(newer) || b.refutes(h.head()) || !b.refutes(older) {
				t.Fatal("a list that was read knows which states are of its history")
			}
		}
		b.merge(tail{oldHead: b.head(), isLong: true, isAll: true})
		if b.refutes(newer) {
			t.Errorf("with %s, an empty list refutes the state of a room whose events were dropped", content)
		}
		if len(b.events) > 0 && !b.refutes(older) {
			t.Error("a state whose number another event has is not refuted")
		}
		b.merge(h.read(5))
		if !b.refutes(newer) {
			t.Errorf("with %s, a list that ends before a state does not refute it", content)
		}
	}
}
