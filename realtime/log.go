package realtime

// The log of a topic is bounded: what is older is read again from the stream, or replaced by a snapshot.
const (
	logEvents = 256
	logBytes  = 64 << 10
)

// entry is one event, encoded once for all sessions. Its bytes are never changed.
type entry struct {
	at    position
	event []byte
}

// log is the end of a topic's history: a run of entries without a gap, and the position just before them.
//
//	base │ entries[0] … entries[n-1] = head
//
// Until it is loaded it knows nothing. A base whose nonce is 0 is known by number only, so that nobody can
// prove to stand there; the exception is the beginning, 0-0.
type log struct {
	loaded  bool
	base    position
	entries []entry
	bytes   int
	// opened tells that the stream was empty when it was read and that nothing was dropped since: whoever
	// stood before the first event, whatever its number, has missed nothing that entries does not hold.
	opened bool
	// doubted tells that an event came whose number another one has: nothing is taken before the stream has been read.
	doubted bool
}

// verdict is what the log says to an event that comes in.
type verdict int

const (
	appended verdict = iota // it was the next
	known                   // it was there before
	gap                     // something before it is missing
	forked                  // another event has its number
)

func (l *log) head() position {
	if n := len(l.entries); n > 0 {
		return l.entries[n-1].at
	}
	return l.base
}

// append takes the next event.
func (l *log) append(e entry) verdict {
	head := l.head()
	switch {
	case !l.loaded || l.doubted:
		return gap
	case l.opened && len(l.entries) == 0:
		l.base = position{seq: e.at.seq - 1}
	case e.at.seq <= head.seq:
		if at, ok := l.at(e.at.seq); ok && at != e.at {
			l.doubted = true
			return forked
		}
		return known
	case e.at.seq != head.seq+1:
		return gap
	}
	l.entries = append(l.entries, e)
	l.bytes += len(e.event)
	for len(l.entries) > logEvents || l.bytes > logBytes && len(l.entries) > 1 {
		l.base, l.opened = l.entries[0].at, false
		l.bytes -= len(l.entries[0].event)
		l.entries[0] = entry{}
		l.entries = l.entries[1:]
	}
	return appended
}

// at finds the position with a number; it answers false for what the log does not know.
func (l *log) at(seq uint64) (position, bool) {
	switch {
	case seq == l.base.seq:
		return l.base, l.base.nonce != 0 || seq == 0
	case seq > l.base.seq && seq <= l.head().seq:
		return l.entries[seq-l.base.seq-1].at, true
	}
	return position{}, false
}

// holds tells whether whoever stands at p can be served from here.
func (l *log) holds(p position) bool {
	if !l.loaded {
		return false
	}
	if l.opened && p == (position{}) {
		return true
	}
	at, ok := l.at(p.seq)
	return ok && at == p
}

// after answers the entries that follow p, which the log must hold, within the bounds of one frame.
func (l *log) after(p position) []entry {
	first := 0
	if p.seq > l.base.seq {
		first = int(p.seq - l.base.seq)
	}
	rest := l.entries[first:]
	size := 0
	for i := range rest {
		size += len(rest[i].event) + 1
		if i > 0 && (i >= frameEvents || size > frameBytes) {
			return rest[:i]
		}
	}
	return rest
}

// extend takes what the stream holds from asked on, asked being the head when the stream was asked. It answers
// false when the stream does not know that position: the history has forked or was trimmed.
func (l *log) extend(asked position, found []entry) bool {
	if len(found) == 0 || found[0].at != asked {
		return false
	}
	l.doubted = false
	for _, e := range found[1:] {
		if v := l.append(e); v == forked || v == gap {
			return false
		}
	}
	return true
}

// merge takes the end of the stream, asked being the head when the stream was asked (zero when there was none).
// It answers true when the log had to begin anew, so that not everybody's position is still in it.
func (l *log) merge(asked position, tail []entry) (anew bool) {
	tail = unbroken(tail)
	l.doubted = false
	if !l.loaded {
		l.begin(tail)
		l.opened = len(tail) == 0
		return false
	}
	if len(tail) == 0 {
		return false // the stream has expired: whatever happens next writes it again
	}
	last, head := tail[len(tail)-1].at, l.head()
	if l.opened && len(l.entries) == 0 {
		for _, e := range tail {
			l.append(e)
		}
		return false
	}
	joint := min(last.seq, head.seq)
	mine, ok := l.at(joint)
	if last.seq < asked.seq || !ok || joint < tail[0].at.seq || tail[joint-tail[0].at.seq].at != mine {
		l.begin(tail)
		return true
	}
	for _, e := range tail {
		if e.at.seq > head.seq {
			l.append(e)
		}
	}
	l.prepend(tail)
	return false
}

// begin forgets everything and starts from a run of entries.
func (l *log) begin(tail []entry) {
	*l = log{loaded: true}
	if len(tail) > 0 {
		l.base.seq = tail[0].at.seq - 1
	}
	for _, e := range tail {
		l.append(e)
	}
}

// prepend takes from a run of entries what is older than the log, as far as there is room.
func (l *log) prepend(run []entry) {
	if run[0].at.seq > l.base.seq || l.base.seq-run[0].at.seq >= uint64(len(run)) {
		return
	}
	older := run[:l.base.seq-run[0].at.seq+1]
	first, bytes := len(older), l.bytes
	for first > 0 && len(older)-first+len(l.entries) < logEvents && bytes+len(older[first-1].event) <= logBytes {
		first--
		bytes += len(older[first].event)
	}
	l.bytes = bytes
	if first > 0 {
		l.base = older[first-1].at
	} else {
		l.base = position{seq: older[0].at.seq - 1}
	}
	l.entries = append(append(make([]entry, 0, len(older)-first+len(l.entries)), older[first:]...), l.entries...)
	l.opened = false
}

// unbroken answers the longest end of a run that has no gap. A stream has none; a damaged one must not
// become a wrong log.
func unbroken(run []entry) []entry {
	for i := len(run) - 1; i > 0; i-- {
		if run[i-1].at.seq+1 != run[i].at.seq {
			return run[i:]
		}
	}
	return run
}
