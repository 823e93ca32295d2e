package realtime

import (
	"cmp"
	"slices"
)

// The bounds of a ring buffer. Older events are read from the list again, or replaced by a
// snapshot.
const (
	maxRingEvents = 256
	maxRingBytes  = 64 << 10
	keptOldEvents = backfillMinEntries // of a silent topic: those that the next gap check reads anyway
)

// ringLimits are the bounds of a ring buffer; the zero value is those above.
type ringLimits struct{ events, bytes int }

func (l ringLimits) maxEvents() int { return cmp.Or(l.events, maxRingEvents) }
func (l ringLimits) maxBytes() int  { return cmp.Or(l.bytes, maxRingBytes) }

// minKeptEntries is how many entries a list keeps at least whenever its front is trimmed. So a
// list that is shorter has not been trimmed since it was empty.
const minKeptEntries = 32

// ringBuffer holds the newest events of a topic: consecutive events and the position just before
// them.
//
//	base │ events[0] … events[n-1] = head
//
// Until it is loaded it knows nothing. A base with nonce 0 is known by its number only, so no
// cursor can prove that it is there. The exception is the start of the list, 0-0.
type ringBuffer struct {
	limits ringLimits

	base      position
	events    []event
	byteCount int
	loaded    bool
	// completeSinceEmpty is set when the list was empty at the first read and no event has been
	// dropped since. Every event since then is in the buffer, so a cursor that was before the first
	// event needs no snapshot, whatever the number of that event.
	completeSinceEmpty bool
	// conflicted is set when an event came whose number another event has. Nothing is appended until
	// the list has been read.
	conflicted bool
	// listEmpty is set when the list was empty at the last read, and no event is known since.
	listEmpty bool
	// stateWhenEmpty is the newest snapshot's position while the list is empty. The list of a room
	// that ended is dropped before the room is: its next event follows that position.
	stateWhenEmpty position
	// forks counts how often the list was found to have another history than the buffer, and forkedAt
	// is the first number that differed at the last time. Only a feed asks for them.
	forks    int
	forkedAt uint64
}

// renderFunc appends the events of an entry. It appends none for an entry that cannot be rendered,
// and reports that if report is set.
type renderFunc func(to []event, e entry, report bool) []event

// appendResult is the effect of ringBuffer.append on an entry.
type appendResult int

const (
	appendOK         appendResult = iota // it was the next one and is in the buffer now
	appendDuplicate                      // it was in the buffer before
	appendGap                            // an earlier event is missing
	appendForked                         // another event has its number
	appendUnreadable                     // it was the next one and cannot be rendered: the buffer begins after it
)

func (b *ringBuffer) head() position {
	if n := len(b.events); n > 0 {
		return b.events[n-1].pos
	}
	return b.base
}

// isEmpty reports whether the list was empty at the first read, and no event is known since.
func (b *ringBuffer) isEmpty() bool { return b.completeSinceEmpty && len(b.events) == 0 }

// append adds the events of e if they are the next ones. In an empty buffer only number 1 is the
// next one: whether a list begins with another one, the list knows.
func (b *ringBuffer) append(e entry, render renderFunc) appendResult {
	head := b.head()
	switch {
	case !b.loaded || b.conflicted:
		return appendGap
	case e.pos.seq <= head.seq:
		if pos, ok := b.positionAt(e.pos.seq); ok && pos != e.pos {
			b.conflicted = true
			return appendForked
		}
		return appendDuplicate
	case e.first != head.seq+1:
		return appendGap // or only its last number is new: then the list has forked, as the read shows
	}
	return b.push(e, render)
}

// push adds the events of the next entry. Of an entry that cannot be rendered the number is known,
// so the events that follow it can be delivered: the buffer begins after it. A client that is not
// so far gets a snapshot.
func (b *ringBuffer) push(e entry, render renderFunc) appendResult {
	before := len(b.events)
	b.listEmpty = false
	b.events = render(b.events, e, true)
	if len(b.events) == before {
		b.base, b.events, b.byteCount = e.pos, nil, 0
		b.completeSinceEmpty = false
		return appendUnreadable
	}
	for i := before; i < len(b.events); i++ {
		b.byteCount += len(b.events[i].json())
	}
	for len(b.events) > b.limits.maxEvents() || b.byteCount > b.limits.maxBytes() && len(b.events) > 1 {
		b.base, b.completeSinceEmpty = b.events[0].pos, false
		b.byteCount -= len(b.events[0].json())
		b.events[0] = event{}
		b.events = b.events[1:]
	}
	return appendOK
}

// evictOld drops all events but the newest ones. They are in the list: a client that is before them
// reads it.
func (b *ringBuffer) evictOld() {
	dropped := len(b.events) - keptOldEvents
	if dropped <= 0 {
		return
	}
	b.base, b.completeSinceEmpty = b.events[dropped-1].pos, false
	b.events = slices.Clone(b.events[dropped:])
	b.byteCount = 0
	size := 0
	for i := range b.events {
		b.byteCount += len(b.events[i].json())
		size += len(b.events[i].frame)
	}
	own := frameMemory{free: make([]byte, 0, size)} // what they share with those that were dropped goes
	for i := range b.events {
		b.events[i].frame = own.copy(b.events[i].frame)
	}
}

// positionAt returns the position with the number seq, or false when the buffer does not know it.
func (b *ringBuffer) positionAt(seq uint64) (position, bool) {
	switch {
	case seq == b.base.seq:
		return b.base, b.base.nonce != 0 || seq == 0
	case seq > b.base.seq && seq <= b.head().seq:
		return b.events[seq-b.base.seq-1].pos, true
	}
	return position{}, false
}

// contains reports whether a cursor at pos can continue from this buffer.
func (b *ringBuffer) contains(pos position) bool {
	if !b.loaded {
		return false
	}
	if b.completeSinceEmpty && pos == (position{}) {
		return true
	}
	known, ok := b.positionAt(pos.seq)
	return ok && known == pos
}

// refutes reports whether a state at pos is of a history that the list, as it was last read, does
// not have. An empty list refutes no state that is newer than the buffer: the events of a room that
// ended are dropped before the room is.
func (b *ringBuffer) refutes(pos position) bool {
	return !b.contains(pos) && !(b.listEmpty && pos.seq > b.head().seq)
}

// canResume reports whether a client that was at pos before it subscribed can continue from this
// buffer. notBefore is the last position that is known elsewhere. An empty list proves nothing to
// that client: its events may have been dropped.
func (b *ringBuffer) canResume(pos, notBefore position) bool {
	if b.completeSinceEmpty && pos == (position{}) {
		return b.base.seq == 0 && (len(b.events) > 0 || notBefore.seq == 0)
	}
	return b.contains(pos)
}

// eventsAfter returns the events that follow pos, within the bounds of one frame. The buffer must
// contain pos.
func (b *ringBuffer) eventsAfter(pos position) []event {
	first := 0
	if pos.seq > b.base.seq {
		first = int(pos.seq - b.base.seq)
	}
	following := b.events[first:]
	size := 0
	for i := range following {
		size += len(following[i].json()) + 1
		if i > 0 && (i >= maxBatchEvents || size > maxBatchBytes) {
			return following[:i]
		}
	}
	return following
}

// tail is the end of a list, as it was read.
type tail struct {
	entries []entry  // oldest first
	oldHead position // of the buffer when the list was read; zero: there was none
	isLong  bool     // it has the newest backfillEntries, or all that there are
	isAll   bool     // it has all that there are, and each has a number
}

// mergeResult is the effect of ringBuffer.merge on the end of a list.
type mergeResult int

const (
	mergeOK       mergeResult = iota
	mergeReplaced             // the buffer was replaced: it may no longer contain every cursor's position
	mergeTooShort             // the buffer is as it was: more of the list is needed
)

// merge adds the end of the list.
func (b *ringBuffer) merge(read tail, render renderFunc) mergeResult {
	run := contiguousTail(read.entries)
	if !b.loaded {
		b.reset(run, render)
		b.completeSinceEmpty, b.listEmpty = len(run) == 0, len(run) == 0
		return mergeOK
	}
	if b.listEmpty = len(run) == 0; b.listEmpty {
		b.conflicted = false
		return mergeOK // the list has expired; the next event writes it again
	}
	if b.isEmpty() {
		return b.fill(read, run, render)
	}
	head := b.head()
	switch {
	case run[len(run)-1].pos.seq >= read.oldHead.seq && b.agreesWith(run):
	case !read.isLong:
		return mergeTooShort
	default:
		if at, forked := b.forkIn(run); forked {
			b.forks++
			b.forkedAt = at
		}
		b.reset(run, render)
		return mergeReplaced
	}
	b.conflicted = false
	result := mergeOK
	for _, e := range run {
		if e.first > head.seq && b.append(e, render) == appendUnreadable {
			result = mergeReplaced
		}
	}
	if read.isLong {
		b.prepend(run, render)
	}
	return result
}

// agreesWith reports whether the buffer and consecutive entries have some numbers in common, the
// newest of either among them, and the same events with these numbers.
func (b *ringBuffer) agreesWith(run []entry) bool {
	newest := min(run[len(run)-1].pos.seq, b.head().seq)
	if _, known := b.positionAt(newest); !known || newest < run[0].first {
		return false
	}
	for _, e := range slices.Backward(run) {
		for seq := min(e.pos.seq, newest); seq >= max(e.first, b.base.seq); seq-- {
			if ours, known := b.positionAt(seq); known && ours.nonce != e.pos.nonce {
				return false
			}
		}
	}
	return true
}

// forkIn returns the first number that has another event in consecutive entries, the end of a list,
// than in the buffer, or that they lack. It returns false when they only follow the buffer.
func (b *ringBuffer) forkIn(run []entry) (at uint64, forked bool) {
	for _, e := range run {
		for seq := max(e.first, b.base.seq); seq <= e.pos.seq; seq++ {
			if ours, known := b.positionAt(seq); known && ours.nonce != e.pos.nonce {
				return seq, true
			}
		}
	}
	last := run[len(run)-1].pos.seq
	return last + 1, last < b.head().seq
}

// fill adds the first events of a list that was empty. run is the contiguous end of what was read.
func (b *ringBuffer) fill(read tail, run []entry, render renderFunc) mergeResult {
	first := run[0].first
	if !read.isLong {
		return mergeTooShort
	}
	if len(run) < len(read.entries) || first != 1 && (!read.isAll || len(run) >= minKeptEntries) {
		b.reset(run, render)
		return mergeReplaced // something may have come and gone since the list was empty
	}
	if b.base = (position{seq: first - 1}); b.stateWhenEmpty.seq == first-1 {
		b.base = b.stateWhenEmpty
	}
	result := mergeOK
	for _, e := range run {
		if b.push(e, render) == appendUnreadable {
			result = mergeReplaced
		}
	}
	return result
}

// reset replaces the content by consecutive entries.
func (b *ringBuffer) reset(run []entry, render renderFunc) {
	*b = ringBuffer{loaded: true, limits: b.limits, forks: b.forks, forkedAt: b.forkedAt}
	if len(run) > 0 {
		b.base.seq = run[0].first - 1
	}
	for _, e := range run {
		b.push(e, render)
	}
}

// prepend adds those of the consecutive entries that are older than the buffer, as far as there is
// room.
func (b *ringBuffer) prepend(run []entry, render renderFunc) {
	if _, found := positionIn(run, b.base.seq); !found {
		return
	}
	var older []event // newest first
	byteCount := b.byteCount
	for i, e := range slices.Backward(run) {
		if e.first > b.base.seq {
			continue
		}
		b.base.nonce = e.pos.nonce
		rendered := render(nil, e, false)
		rendered = rendered[:min(uint64(len(rendered)), b.base.seq-e.first+1)] // the base may be in its middle
		for j := range rendered {
			byteCount += len(rendered[j].json())
		}
		if len(rendered) == 0 || byteCount > b.limits.maxBytes() ||
			len(older)+len(rendered)+len(b.events) > b.limits.maxEvents() {
			break
		}
		b.byteCount = byteCount
		slices.Reverse(rendered)
		older = append(older, rendered...)
		b.base = position{seq: e.first - 1}
		if i > 0 {
			b.base = run[i-1].pos
		}
	}
	if len(older) > 0 {
		slices.Reverse(older)
		b.events = append(older, b.events...)
		b.completeSinceEmpty = false
	}
}

// contiguousTail returns the longest end of a run that has no gap. A list has none, but a damaged
// list must not become a wrong buffer.
func contiguousTail(run []entry) []entry {
	for i := len(run) - 1; i > 0; i-- {
		if run[i-1].pos.seq+1 != run[i].first {
			return run[i:]
		}
	}
	return run
}

// positionIn returns the position with the number seq in consecutive entries.
func positionIn(run []entry, seq uint64) (position, bool) {
	for _, e := range slices.Backward(run) {
		if seq >= e.first && seq <= e.pos.seq {
			return position{seq, e.pos.nonce}, true
		}
	}
	return position{}, false
}
