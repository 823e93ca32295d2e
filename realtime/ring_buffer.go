package realtime

// The bounds of a ring buffer. Older events are read from the stream again, or replaced by a
// snapshot.
const (
	maxRingEvents = 256
	maxRingBytes  = 64 << 10
)

// ringBuffer holds the newest events of a topic: consecutive entries and the position just before
// them.
//
//	base │ entries[0] … entries[n-1] = head
//
// Until it is loaded it knows nothing. A base with nonce 0 is known by its number only, so no
// cursor can prove that it is there. The exception is the start of the stream, 0-0.
type ringBuffer struct {
	loaded    bool
	base      position
	entries   []entry
	byteCount int
	// completeSinceEmpty is set when the stream was empty at the first read and no entry has been
	// dropped since. A cursor before the first event, whatever the number of that event, has missed
	// nothing but entries.
	completeSinceEmpty bool
	// conflicted is set when an event came whose number another event has. Nothing is appended until
	// the stream has been read.
	conflicted bool
}

// appendResult is what ringBuffer.append did with an event.
type appendResult int

const (
	appendOK        appendResult = iota // it was the next event and is in the buffer now
	appendDuplicate                     // it was in the buffer before
	appendGap                           // an earlier event is missing
	appendForked                        // another event has its number
)

func (b *ringBuffer) head() position {
	if n := len(b.entries); n > 0 {
		return b.entries[n-1].pos
	}
	return b.base
}

// append adds e if it is the next event.
func (b *ringBuffer) append(e entry) appendResult {
	head := b.head()
	switch {
	case !b.loaded || b.conflicted:
		return appendGap
	case b.completeSinceEmpty && len(b.entries) == 0:
		b.base = position{seq: e.pos.seq - 1}
	case e.pos.seq <= head.seq:
		if pos, ok := b.positionAt(e.pos.seq); ok && pos != e.pos {
			b.conflicted = true
			return appendForked
		}
		return appendDuplicate
	case e.pos.seq != head.seq+1:
		return appendGap
	}
	b.entries = append(b.entries, e)
	b.byteCount += len(e.eventJSON)
	for len(b.entries) > maxRingEvents || b.byteCount > maxRingBytes && len(b.entries) > 1 {
		b.base, b.completeSinceEmpty = b.entries[0].pos, false
		b.byteCount -= len(b.entries[0].eventJSON)
		b.entries[0] = entry{}
		b.entries = b.entries[1:]
	}
	return appendOK
}

// positionAt returns the position with the number seq, or false when the buffer does not know it.
func (b *ringBuffer) positionAt(seq uint64) (position, bool) {
	switch {
	case seq == b.base.seq:
		return b.base, b.base.nonce != 0 || seq == 0
	case seq > b.base.seq && seq <= b.head().seq:
		return b.entries[seq-b.base.seq-1].pos, true
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

// entriesAfter returns the entries that follow pos, within the bounds of one frame. The buffer must
// contain pos.
func (b *ringBuffer) entriesAfter(pos position) []entry {
	first := 0
	if pos.seq > b.base.seq {
		first = int(pos.seq - b.base.seq)
	}
	following := b.entries[first:]
	size := 0
	for i := range following {
		size += len(following[i].eventJSON) + 1
		if i > 0 && (i >= maxBatchEvents || size > maxBatchBytes) {
			return following[:i]
		}
	}
	return following
}

// appendRange adds what the stream holds from oldHead on. oldHead is the head at the time of the
// read. It returns false when the stream does not know oldHead: it has forked or was trimmed.
func (b *ringBuffer) appendRange(oldHead position, found []entry) bool {
	if len(found) == 0 || found[0].pos != oldHead {
		return false
	}
	b.conflicted = false
	for _, e := range found[1:] {
		if r := b.append(e); r == appendForked || r == appendGap {
			return false
		}
	}
	return true
}

// mergeTail adds the tail of the stream. oldHead is the head at the time of the read, zero when
// there was none. It reports whether the buffer was replaced, so that it may no longer contain
// every cursor's position.
func (b *ringBuffer) mergeTail(oldHead position, tail []entry) (replaced bool) {
	tail = contiguousTail(tail)
	b.conflicted = false
	if !b.loaded {
		b.reset(tail)
		b.completeSinceEmpty = len(tail) == 0
		return false
	}
	if len(tail) == 0 {
		return false // the stream has expired; the next event writes it again
	}
	last, head := tail[len(tail)-1].pos, b.head()
	if b.completeSinceEmpty && len(b.entries) == 0 {
		for _, e := range tail {
			b.append(e)
		}
		return false
	}
	// The newest number that both sides have must be the same event.
	shared := min(last.seq, head.seq)
	ours, ok := b.positionAt(shared)
	if last.seq < oldHead.seq || !ok || shared < tail[0].pos.seq || tail[shared-tail[0].pos.seq].pos != ours {
		b.reset(tail)
		return true
	}
	for _, e := range tail {
		if e.pos.seq > head.seq {
			b.append(e)
		}
	}
	b.prepend(tail)
	return false
}

// reset replaces the content by consecutive entries.
func (b *ringBuffer) reset(tail []entry) {
	*b = ringBuffer{loaded: true}
	if len(tail) > 0 {
		b.base.seq = tail[0].pos.seq - 1
	}
	for _, e := range tail {
		b.append(e)
	}
}

// prepend adds those of the consecutive entries that are older than the buffer, as far as there is
// room.
func (b *ringBuffer) prepend(run []entry) {
	if run[0].pos.seq > b.base.seq || b.base.seq-run[0].pos.seq >= uint64(len(run)) {
		return
	}
	older := run[:b.base.seq-run[0].pos.seq+1]
	first, bytes := len(older), b.byteCount
	for first > 0 && len(older)-first+len(b.entries) < maxRingEvents &&
		bytes+len(older[first-1].eventJSON) <= maxRingBytes {
		first--
		bytes += len(older[first].eventJSON)
	}
	b.byteCount = bytes
	if first > 0 {
		b.base = older[first-1].pos
	} else {
		b.base = position{seq: older[0].pos.seq - 1}
	}
	entries := make([]entry, 0, len(older)-first+len(b.entries))
	b.entries = append(append(entries, older[first:]...), b.entries...)
	b.completeSinceEmpty = false
}

// contiguousTail returns the longest end of a run that has no gap. A stream has none, but a damaged
// stream must not become a wrong buffer.
func contiguousTail(run []entry) []entry {
	for i := len(run) - 1; i > 0; i-- {
		if run[i-1].pos.seq+1 != run[i].pos.seq {
			return run[i:]
		}
	}
	return run
}
