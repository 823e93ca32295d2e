package realtime

// The log of a topic is bounded: what is older is read again from the stream, or replaced by a snapshot.
const (
	maxBufferEvents = 256
	maxBufferBytes  = 64 << 10
)

// entry is one event, encoded once for all sessions. Its bytes are never changed.
type entry struct {
	pos    position
	event []byte
}

// ringBuffer is the end of a topic's history: a run of entries without a gap, and the position just before them.
//
//	base │ entries[0] … entries[n-1] = head
//
// Until it is loaded it knows nothing. A base whose nonce is 0 is known by number only, so that nobody can
// prove to stand there; the exception is the beginning, 0-0.
type ringBuffer struct {
	loaded  bool
	base    position
	entries []entry
	bytes   int
	// sinceEmpty tells that the stream was empty when it was read and that nothing was dropped since: whoever
	// stood before the first event, whatever its number, has missed nothing that entries does not hold.
	sinceEmpty bool
	// conflicted tells that an event came whose number another one has: nothing is taken before the stream has been read.
	conflicted bool
}

// appendResult is what the log says to an event that comes in.
type appendResult int

const (
	appendOK appendResult = iota // it was the next
	appendDuplicate                   // it was there before
	appendGap                     // something before it is missing
	appendForked                  // another event has its number
)

func (l *ringBuffer) head() position {
	if n := len(l.entries); n > 0 {
		return l.entries[n-1].pos
	}
	return l.base
}

// append takes the next event.
func (l *ringBuffer) append(e entry) appendResult {
	head := l.head()
	switch {
	case !l.loaded || l.conflicted:
		return appendGap
	case l.sinceEmpty && len(l.entries) == 0:
		l.base = position{seq: e.pos.seq - 1}
	case e.pos.seq <= head.seq:
		if at, ok := l.positionAt(e.pos.seq); ok && at != e.pos {
			l.conflicted = true
			return appendForked
		}
		return appendDuplicate
	case e.pos.seq != head.seq+1:
		return appendGap
	}
	l.entries = append(l.entries, e)
	l.bytes += len(e.event)
	for len(l.entries) > maxBufferEvents || l.bytes > maxBufferBytes && len(l.entries) > 1 {
		l.base, l.sinceEmpty = l.entries[0].pos, false
		l.bytes -= len(l.entries[0].event)
		l.entries[0] = entry{}
		l.entries = l.entries[1:]
	}
	return appendOK
}

// positionAt finds the position with a number; it answers false for what the log does not know.
func (l *ringBuffer) positionAt(seq uint64) (position, bool) {
	switch {
	case seq == l.base.seq:
		return l.base, l.base.nonce != 0 || seq == 0
	case seq > l.base.seq && seq <= l.head().seq:
		return l.entries[seq-l.base.seq-1].pos, true
	}
	return position{}, false
}

// contains tells whether whoever stands at p can be served from here.
func (l *ringBuffer) contains(p position) bool {
	if !l.loaded {
		return false
	}
	if l.sinceEmpty && p == (position{}) {
		return true
	}
	at, ok := l.positionAt(p.seq)
	return ok && at == p
}

// entriesAfter answers the entries that follow p, which the log must hold, within the bounds of one frame.
func (l *ringBuffer) entriesAfter(p position) []entry {
	first := 0
	if p.seq > l.base.seq {
		first = int(p.seq - l.base.seq)
	}
	rest := l.entries[first:]
	size := 0
	for i := range rest {
		size += len(rest[i].event) + 1
		if i > 0 && (i >= maxFrameEvents || size > maxFrameBytes) {
			return rest[:i]
		}
	}
	return rest
}

// appendRange takes what the stream holds from asked on, asked being the head when the stream was asked. It answers
// false when the stream does not know that position: the history has forked or was trimmed.
func (l *ringBuffer) appendRange(asked position, found []entry) bool {
	if len(found) == 0 || found[0].pos != asked {
		return false
	}
	l.conflicted = false
	for _, e := range found[1:] {
		if v := l.append(e); v == appendForked || v == appendGap {
			return false
		}
	}
	return true
}

// mergeTail takes the end of the stream, asked being the head when the stream was asked (zero when there was none).
// It answers true when the log had to begin anew, so that not everybody's position is still in it.
func (l *ringBuffer) mergeTail(asked position, tail []entry) (anew bool) {
	tail = contiguousTail(tail)
	l.conflicted = false
	if !l.loaded {
		l.reset(tail)
		l.sinceEmpty = len(tail) == 0
		return false
	}
	if len(tail) == 0 {
		return false // the stream has expired: whatever happens next writes it again
	}
	last, head := tail[len(tail)-1].pos, l.head()
	if l.sinceEmpty && len(l.entries) == 0 {
		for _, e := range tail {
			l.append(e)
		}
		return false
	}
	joint := min(last.seq, head.seq)
	mine, ok := l.positionAt(joint)
	if last.seq < asked.seq || !ok || joint < tail[0].pos.seq || tail[joint-tail[0].pos.seq].pos != mine {
		l.reset(tail)
		return true
	}
	for _, e := range tail {
		if e.pos.seq > head.seq {
			l.append(e)
		}
	}
	l.prepend(tail)
	return false
}

// reset forgets everything and starts from a run of entries.
func (l *ringBuffer) reset(tail []entry) {
	*l = ringBuffer{loaded: true}
	if len(tail) > 0 {
		l.base.seq = tail[0].pos.seq - 1
	}
	for _, e := range tail {
		l.append(e)
	}
}

// prepend takes from a run of entries what is older than the log, as far as there is room.
func (l *ringBuffer) prepend(run []entry) {
	if run[0].pos.seq > l.base.seq || l.base.seq-run[0].pos.seq >= uint64(len(run)) {
		return
	}
	older := run[:l.base.seq-run[0].pos.seq+1]
	first, bytes := len(older), l.bytes
	for first > 0 && len(older)-first+len(l.entries) < maxBufferEvents && bytes+len(older[first-1].event) <= maxBufferBytes {
		first--
		bytes += len(older[first].event)
	}
	l.bytes = bytes
	if first > 0 {
		l.base = older[first-1].pos
	} else {
		l.base = position{seq: older[0].pos.seq - 1}
	}
	l.entries = append(append(make([]entry, 0, len(older)-first+len(l.entries)), older[first:]...), l.entries...)
	l.sinceEmpty = false
}

// contiguousTail answers the longest end of a run that has no gap. A stream has none; a damaged one must not
// become a wrong log.
func contiguousTail(run []entry) []entry {
	for i := len(run) - 1; i > 0; i-- {
		if run[i-1].pos.seq+1 != run[i].pos.seq {
			return run[i:]
		}
	}
	return run
}
