package realtime

import (
	"context"
	"slices"
	"sync"
	"time"
)

// topic is a stream that somebody on this node follows: the end of its log and the cursors in it.
//
// It lives as long as it has users and a while longer, so that a reload or a reconnection finds it warm.
// Lock order: Peer.mu before topic.mu, Hub.mu before neither.
type topic struct {
	hub  *Hub
	name string

	// Under Hub.mu.
	refs     int
	idleSince time.Time

	conn    *pubsubConn // under board.mu
	changed bool  // of the worker that delivers the topic: there is something to tell

	mu      sync.RWMutex
	buffer     ringBuffer
	pending []entry // arrived while something before them was missing
	cursors []*cursor
	lastActivity   time.Time         // when the last event or repair came
	lastSeq map[string]uint64 // number of the last whisper of each sender
	ready  chan struct{}     // closed when the log is loaded

	queuedJob    *backfillJob // asked for, not begun
	backfilling bool
	failedBackfills int // repairs in a row that left a gap

	batchMu sync.Mutex
	batches  []cachedBatch // the last few
	oldestBatch    int

	snapshots snapshotCache
}

const (
	maxPendingEvents = 1024
	maxCachedBatches    = 4
)

// cachedBatch is a frame of several events, kept because many sessions wait for the same ones.
type cachedBatch struct {
	from, to position
	frame    []byte
}

func newTopic(h *Hub, name string) *topic {
	return &topic{hub: h, name: name, ready: make(chan struct{})}
}

// addEvent hands an event from the channel to the log. It answers whether there is something to deliver.
func (t *topic) addEvent(e entry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastActivity = time.Now()
	switch t.buffer.append(e) {
	case appendOK:
		return true
	case appendGap:
		if len(t.pending) < maxPendingEvents {
			t.pending = append(t.pending, e)
		} else {
			t.pending = nil // they stand in the stream
			t.requestBackfillLocked(false)
		}
		if !t.backfilling {
			t.requestBackfillLocked(false)
		}
	case appendForked:
		t.requestBackfillLocked(false)
	}
	return false
}

// drainPending takes up what arrived during a repair, and asks for another where something is still missing.
func (t *topic) drainPending() {
	for i, e := range t.pending {
		if v := t.buffer.append(e); v == appendGap || v == appendForked {
			t.pending = slices.Delete(t.pending, 0, i)
			if t.failedBackfills++; t.failedBackfills > 2 {
				t.pending, t.failedBackfills = nil, 0 // the stream does not know it either
				t.hub.counters.unfilledGaps.Add(1)
				return
			}
			t.requestBackfillLocked(t.failedBackfills > 1)
			return
		}
	}
	t.pending, t.failedBackfills = nil, 0
}

// batch is what one frame carries.
type batch struct {
	frame   []byte
	last      position // of its last event
	count  int      // none: there is nothing new
	needsReauthorization bool     // the last event is one that Subscription.Doubt pointed out
}

// nextBatch answers the frame that follows at, up to and with the first event that is doubted, where doubt is not nil. It answers
// false when the log no longer holds at.
func (t *topic) nextBatch(at position, doubt func([]byte) bool) (s batch, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if at.seq > t.buffer.head().seq {
		return s, true // a snapshot that was ahead of the channel
	}
	if !t.buffer.contains(at) {
		return s, false
	}
	entries := t.buffer.entriesAfter(at)
	if doubt != nil {
		if i := slices.IndexFunc(entries, func(e entry) bool { return doubt(e.event) }); i >= 0 {
			entries, s.needsReauthorization = entries[:i+1], true
		}
	}
	if s.count = len(entries); s.count == 0 {
		return s, true
	}
	s.last = entries[s.count-1].pos
	s.frame = t.encodeBatch(at, s.last, entries)
	return s, true
}

func (t *topic) encodeBatch(at, to position, entries []entry) []byte {
	if len(entries) == 1 {
		return entries[0].event
	}
	t.batchMu.Lock()
	defer t.batchMu.Unlock()
	for i := range t.batches {
		if j := &t.batches[i]; j.from == at && j.to == to {
			return j.frame
		}
	}
	frame := encodeArray(entries)
	if len(t.batches) < maxCachedBatches {
		t.batches = append(t.batches, cachedBatch{at, to, frame})
	} else {
		t.batches[t.oldestBatch] = cachedBatch{at, to, frame}
		t.oldestBatch = (t.oldestBatch + 1) % maxCachedBatches
	}
	return frame
}

// notifyCursors tells every cursor that there may be something new. After a log began anew, anew makes them prove their position.
func (t *topic) notifyCursors(anew bool) {
	t.mu.RLock()
	cursors := t.cursors
	t.mu.RUnlock()
	for _, c := range cursors {
		c.client.notify(c, anew)
	}
}

func (t *topic) addCursor(c *cursor) {
	t.mu.Lock()
	t.cursors = append(slices.Clip(t.cursors), c)
	t.mu.Unlock()
}

func (t *topic) removeCursor(c *cursor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.cursors, c); i >= 0 {
		left := make([]*cursor, 0, len(t.cursors)-1)
		t.cursors = append(append(left, t.cursors[:i]...), t.cursors[i+1:]...)
	}
}

func (t *topic) head() position {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.buffer.head()
}

// contains tells whether the log holds at, and if not, whether at is ahead of it.
func (t *topic) contains(at position) (held, ahead bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.buffer.contains(at), at.seq > t.buffer.head().seq
}

// backfillTo makes the log hold at, if the stream does: it reads the stream once for all that ask at the same time.
func (t *topic) backfillTo(ctx context.Context, at position) (bool, error) {
	held, ahead := t.contains(at)
	if held {
		return true, nil
	}
	if err := t.requestBackfill(!ahead).wait(ctx); err != nil {
		return false, err
	}
	held, _ = t.contains(at)
	return held, nil
}

// deliverEphemeral takes a whisper and hands it to the sessions it is for. A message that Redis got twice, because the answer
// to the first was lost, is heard once.
func (t *topic) deliverEphemeral(w ephemeralMessage) {
	t.mu.Lock()
	if t.lastSeq == nil || len(t.lastSeq) > 1024 {
		t.lastSeq = map[string]uint64{}
	}
	if t.lastSeq[w.sender] >= w.seq {
		t.mu.Unlock()
		return
	}
	t.lastSeq[w.sender] = w.seq
	cursors := t.cursors
	t.mu.Unlock()
	for _, c := range cursors {
		p := c.client
		if p.id != w.sender && (len(w.recipients) == 0 || slices.Contains(w.recipients, p.session.User)) {
			p.enqueueEphemeral(c, w.frame)
		}
	}
}

// shrink drops what only a busy topic needs.
func (t *topic) shrink() {
	t.batchMu.Lock()
	t.batches, t.oldestBatch = nil, 0
	t.batchMu.Unlock()
}

// A Snapshot is the whole state of a topic at a position. It is shared by all who follow the topic and must hold
// nothing that only some may see.
type Snapshot struct {
	Position string // of the last event that the state contains: "<seq>-<nonce>", "0-0" before the first
	State    []byte // a JSON value, for the reply to a subscription
	Frame    []byte // the event that stands for everything up to Position, for a session that lost its place
}

// snapshotCache keeps the last snapshot for a moment and lets only one be taken at a time.
type snapshotCache struct {
	mu      sync.Mutex
	last    Snapshot
	pos      position
	takenAt   time.Time
	inFlight chan struct{} // closed when the one under way is done
	err     error
	generation   int // grows when the log begins anew: a snapshot from before is worth nothing
}

// snapshot answers a snapshot that is younger than Options.SnapshotTTL; fresh wants one that is taken from now on.
func (t *topic) snapshot(ctx context.Context, fresh bool, takeOne func(context.Context) (Snapshot, error)) (Snapshot, position, error) {
	s := &t.snapshots
	for {
		s.mu.Lock()
		if !fresh && time.Since(s.takenAt) < t.hub.options.SnapshotTTL {
			defer s.mu.Unlock()
			return s.last, s.pos, nil
		}
		if done := s.inFlight; done != nil {
			s.mu.Unlock()
			select {
			case <-done:
			case <-ctx.Done():
				return Snapshot{}, position{}, ctx.Err()
			}
			s.mu.Lock()
			err := s.err
			s.mu.Unlock()
			if err != nil {
				return Snapshot{}, position{}, err
			}
			continue // fresh: the one that ran may have begun before
		}
		done, epoch := make(chan struct{}), s.generation
		s.inFlight = done
		s.mu.Unlock()

		last, at, err := callSnapshot(ctx, takeOne)
		t.hub.counters.snapshots.Add(1)
		s.mu.Lock()
		s.inFlight, s.err = nil, err
		if ctx.Err() != nil {
			s.err = nil // it failed because its caller left: the next one tries for itself
		}
		if err == nil && s.generation == epoch {
			s.last, s.pos, s.takenAt = last, at, time.Now()
		}
		s.mu.Unlock()
		close(done)
		return last, at, err
	}
}

// invalidate makes the kept snapshot worthless.
func (s *snapshotCache) invalidate() {
	s.mu.Lock()
	s.generation++
	s.last, s.takenAt = Snapshot{}, time.Time{}
	s.mu.Unlock()
}
