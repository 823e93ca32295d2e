package realtime

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// topic is a list of events that clients of this node subscribe to: its newest events and the
// cursors of the clients.
//
// It stays for Options.TopicLinger after its last reference is released, so that a page that
// reloads finds it filled. Lock order: Client.mu before topic.mu. Neither may be locked while
// Hub.mu is held.
type topic struct {
	hub              *Hub
	name             string
	gapCheckInterval time.Duration
	receive          func(message string) // of a channel of the node's own, see Hub.Receive; else nil
	feed             *Feed                // nil: every subscriber gets all events

	// Under Hub.mu.
	refCount  int
	idleSince time.Time

	pubsubConn *pubsubConn // under pubsubManager.mu
	// live is set while the channel is subscribed, and all events that were missed before are in
	// the buffer or about to be read.
	live atomic.Bool
	// Owned by the topic's worker.
	newEvents  int       // since the cursors were notified
	mustVerify bool      // the buffer was replaced since
	pauseEnd   time.Time // when the cursors may be notified again; zero: now

	mu                sync.RWMutex
	buffer            ringBuffer
	frames            frameMemory       // of the buffer's events
	pendingEntries    []entry           // arrived while an earlier event was missing
	cursors           []*cursor         // in any order
	cursorsCopy       []*cursor         // of cursors, for those who go through them without topic.mu; nil: none yet
	lastActivity      time.Time         // of the last event or backfill
	eventsNeededAt    time.Time         // when an event came, or the whole tail of the list was read
	lastEphemeralSeqs map[string]uint64 // sender → number of its last ephemeral message
	recipientsText    string            // of the last message with a long list
	recipients        []int64           // the same, parsed
	cached            cachedState       // see Hub.CacheState
	loadDone          chan struct{}     // closed when the buffer is loaded

	queuedJob       *backfillJob // requested, not begun
	backfilling     bool
	unverified      int // reads to wait for before what the channel says is appended, see distrustChannel
	failedBackfills int // in a row: reads that left a gap

	batchMu          sync.Mutex
	batches          []cachedBatch
	oldestBatchIndex int

	snapshots snapshotCache
	pages     feedPages
	readNow   chan struct{} // of a Source: it is to be read at once
	gone      chan struct{} // of a Source: closed when the topic is removed
}

const (
	maxPendingEvents = 1024
	maxCachedBatches = 4
	// Of a feed, whose subscribers each have a filter.
	maxCachedFeedBatches = 128
)

// cachedBatch is a frame of several events. It is kept because many clients wait for the same
// events.
type cachedBatch struct {
	filter   any // Filter.Key, nil for all events
	from, to position
	frame    frame
}

func newTopic(h *Hub, name string) *topic {
	return &topic{
		hub: h, name: name, gapCheckInterval: h.gapCheckInterval(name), eventsNeededAt: time.Now(),
		loadDone: make(chan struct{}),
	}
}

// addEntry adds an entry from the channel. It reports whether there is something to deliver, and
// whether the buffer was replaced.
func (t *topic) addEntry(e entry) (added, replaced bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastActivity = time.Now()
	t.eventsNeededAt = t.lastActivity
	result := appendGap
	if t.unverified == 0 {
		result = t.buffer.append(e, t.render)
	}
	switch result {
	case appendOK:
		return true, false
	case appendUnreadable:
		return true, true
	case appendGap:
		if len(t.pendingEntries) < maxPendingEvents {
			t.pendingEntries = append(t.pendingEntries, e)
		} else {
			t.pendingEntries = nil // the list has them
			t.requestBackfillLocked(false)
		}
		if !t.backfilling {
			t.requestBackfillLocked(false)
		}
	case appendDuplicate:
		// An entry from before the buffer is a late one, or one of a store that has lost the newest.
		if t.feed != nil && e.pos.seq <= t.buffer.base.seq {
			t.requestBackfillLocked(false)
		}
	case appendForked:
		t.requestBackfillLocked(false)
	}
	return false, false
}

// appendPending appends what arrived during a backfill. It requests another backfill if a gap is
// left. It reports whether the buffer was replaced.
func (t *topic) appendPending() (replaced bool) {
	if t.unverified > 0 {
		return false // the read that is queued calls it again
	}
	for i, e := range t.pendingEntries {
		switch t.buffer.append(e, t.render) {
		case appendUnreadable:
			replaced = true
		case appendGap, appendForked:
			t.pendingEntries = slices.Delete(t.pendingEntries, 0, i)
			if t.failedBackfills++; t.failedBackfills > 2 {
				t.pendingEntries, t.failedBackfills = nil, 0 // the list does not have the missing event
				t.hub.counters.unfilledGaps.Add(1)
				return replaced
			}
			t.requestBackfillLocked(t.failedBackfills > 1)
			return replaced
		}
	}
	t.pendingEntries, t.failedBackfills = nil, 0
	return replaced
}

// batch is the content of one frame.
type batch struct {
	frame                    frame
	last                     position // of its last event
	count                    int      // events; 0: there is nothing new
	lastAffectsAuthorization bool     // Subscription.AffectsAuthorization selected the last event
}

// nextBatch returns the events that follow pos. The batch ends with the first event that
// lastAffectsAuthorization selects, if that is not nil. It returns false when the buffer no longer
// contains pos.
func (t *topic) nextBatch(
	pos position, affectsAuthorization func(eventType string, event []byte) bool,
) (next batch, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if pos.seq > t.buffer.head().seq {
		return next, true // the cursor's snapshot was newer than the channel
	}
	if !t.buffer.contains(pos) {
		return next, false
	}
	following := t.buffer.eventsAfter(pos)
	if affectsAuthorization != nil {
		i := slices.IndexFunc(following, func(e event) bool { return affectsAuthorization(e.kind, e.json()) })
		if i >= 0 {
			following, next.lastAffectsAuthorization = following[:i+1], true
		}
	}
	if next.count = len(following); next.count == 0 {
		return next, true
	}
	next.last = following[next.count-1].pos
	next.frame = t.encodeBatch(pos, next.last, following)
	return next, true
}

func (t *topic) encodeBatch(from, to position, following []event) frame {
	if len(following) == 1 {
		return following[0].frame
	}
	return t.cachedFrame(cachedBatch{from: from, to: to}, func() frame {
		return newArrayFrame(len(following), func(i int) []byte { return following[i].json() })
	})
}

// cachedFrame returns the frame of a batch. It is encoded once for the clients that need it at the
// same time.
func (t *topic) cachedFrame(b cachedBatch, encode func() frame) frame {
	t.batchMu.Lock()
	defer t.batchMu.Unlock()
	for i := range t.batches {
		if known := &t.batches[i]; known.from == b.from && known.to == b.to && known.filter == b.filter {
			return known.frame
		}
	}
	b.frame = encode()
	most := maxCachedBatches
	if t.feed != nil {
		most = maxCachedFeedBatches
	}
	if len(t.batches) < most {
		t.batches = append(t.batches, b)
	} else {
		t.batches[t.oldestBatchIndex] = b
		t.oldestBatchIndex = (t.oldestBatchIndex + 1) % most
	}
	return b.frame
}

// notifyAndPause notifies every cursor of new events. Then a large topic with many events pauses
// for a quarter of the time that this took, so that events arriving in the pause share a frame.
// Measured with 1,000 cursors and 16 events under way: 5 to 22 % more deliveries of the processor's
// time (docs/decisions/0022-frames-are-written-past-melody.md).
func (t *topic) notifyAndPause() {
	begun, events, replaced := time.Now(), t.newEvents, t.mustVerify
	t.newEvents, t.mustVerify = 0, false
	if t.notifyCursors(replaced) >= minParallelCursors && events >= minEventsToPause {
		took := time.Since(begun)
		t.pauseEnd = begun.Add(took + min(took/4, maxPause))
	}
}

const (
	maxPause = 20 * time.Millisecond // what took long may have waited for a processor
	// minEventsToPause is how many events a topic must have had before it pauses. With fewer,
	// another event is unlikely to arrive in the pause.
	minEventsToPause = 4
)

// pauses reports whether the cursors may not be notified yet.
func (t *topic) pauses() bool {
	if !t.pauseEnd.IsZero() && !time.Now().Before(t.pauseEnd) {
		t.pauseEnd = time.Time{}
	}
	return !t.pauseEnd.IsZero()
}

// notifyCursors notifies every cursor that there may be something new, and returns how many there
// are. After the buffer was replaced, replaced makes each cursor check that its position is still
// there.
func (t *topic) notifyCursors(replaced bool) int {
	cursors := t.listCursors()
	if len(cursors) < minParallelCursors || runtime.GOMAXPROCS(0) == 1 {
		notifyEach(cursors, replaced)
		return len(cursors)
	}
	// Each client is written to as it is notified: that is too much for one processor.
	var others sync.WaitGroup
	for part := range slices.Chunk(cursors, minParallelCursors/2) {
		others.Add(1)
		t.hub.workers.start(func() { defer others.Done(); notifyEach(part, replaced) })
	}
	others.Wait()
	return len(cursors)
}

// minParallelCursors is from how many cursors on a topic is large: they are notified by several
// goroutines.
const minParallelCursors = 512

func notifyEach(cursors []*cursor, replaced bool) {
	for _, cur := range cursors {
		cur.client.notify(cur, replaced)
	}
}

// listCursors returns the cursors. The list must not be changed; it is made again after a change.
func (t *topic) listCursors() []*cursor {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.listCursorsLocked()
}

func (t *topic) listCursorsLocked() []*cursor {
	if t.cursorsCopy == nil {
		t.cursorsCopy = slices.Clone(t.cursors)
	}
	return t.cursorsCopy
}

func (t *topic) addCursor(cur *cursor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	cur.index = len(t.cursors)
	t.cursors = append(t.cursors, cur)
	t.cursorsCopy = nil
}

func (t *topic) removeCursor(cur *cursor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := len(t.cursors) - 1
	if cur.index > last || t.cursors[cur.index] != cur {
		return // it was not added
	}
	moved := t.cursors[last]
	t.cursors[cur.index], moved.index = moved, cur.index
	t.cursors[last] = nil
	t.cursors = t.cursors[:last]
	t.cursorsCopy = nil
}

func (t *topic) head() position {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.buffer.head()
}

// contains reports whether the buffer contains pos, and if not, whether pos is ahead of it.
func (t *topic) contains(pos position) (contained, ahead bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.buffer.contains(pos), pos.seq > t.buffer.head().seq
}

// refutes reports whether a state at pos is of a history that the list does not have.
func (t *topic) refutes(pos position) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.buffer.refutes(pos)
}

// canResume reports whether a client that was at pos before it subscribed can continue from the
// buffer. If the list was empty, though the event at notBefore is known, it reads the list again.
func (t *topic) canResume(ctx context.Context, pos, notBefore position) (bool, error) {
	contained, err := t.backfillTo(ctx, pos)
	if err != nil || !contained {
		return false, err
	}
	t.mu.RLock()
	resumable := t.buffer.canResume(pos, notBefore)
	t.mu.RUnlock()
	if resumable {
		return true, nil
	}
	if err := t.requestBackfill(true).wait(ctx); err != nil {
		return false, err
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.buffer.canResume(pos, notBefore), nil
}

// backfillTo reads the list until the buffer contains pos, if the list does. Concurrent calls share
// one read.
func (t *topic) backfillTo(ctx context.Context, pos position) (contained bool, err error) {
	contained, ahead := t.contains(pos)
	if contained {
		return true, nil
	}
	if err := t.requestBackfill(!ahead).wait(ctx); err != nil {
		return false, err
	}
	contained, _ = t.contains(pos)
	return contained, nil
}

// evictCaches drops what only a busy topic needs.
func (t *topic) evictCaches() {
	t.batchMu.Lock()
	t.batches, t.oldestBatchIndex = nil, 0
	t.batchMu.Unlock()
	t.snapshots.evictOlderThan(t.hub.options.SnapshotTTL)
	t.pages.evict(time.Now())
}

// Snapshot is the complete state of a topic at a position. It is shared by all subscribers of the
// topic, so it must hold nothing that only some of them may see.
type Snapshot struct {
	Position  string // "<seq>-<nonce>" of the last event that the state contains; "0-0" before the first
	StateJSON []byte // a JSON value, for the reply to a subscription
	// Frame is the event that replaces everything up to Position, for a client that lost its
	// position. It is empty if there is nothing to send.
	Frame []byte
}

// takenSnapshot is the result of one read of the topic's state.
type takenSnapshot struct {
	Snapshot
	pos        position
	readNumber int // number of the read, from 1
	takenAt    time.Time
}

// snapshotCache keeps the last snapshot and lets only one be taken at a time.
type snapshotCache struct {
	mu         sync.Mutex
	last       *takenSnapshot // nil: none
	readCount  int            // begun
	readDone   chan struct{}  // closed when the one that is being taken is done
	err        error
	generation int // incremented when the buffer is replaced; a snapshot of an older generation is not cached
}

// freshOrSharedSnapshot returns a snapshot that was started after the call, or one that is younger
// than Options.SnapshotTTL and not older than notBefore. If fresh is set, it returns one that was
// started after the call. A snapshot that was started after the call may be older than notBefore,
// because a failover can undo changes that the caller knows.
func (t *topic) freshOrSharedSnapshot(
	ctx context.Context, notBefore position, fresh bool, take func(context.Context) (Snapshot, error),
) (Snapshot, position, error) {
	s := &t.snapshots
	s.mu.Lock()
	callersReads := s.readCount // begun before the call
	for {
		if last := s.last; last != nil {
			recent := time.Since(last.takenAt) < t.hub.options.SnapshotTTL && last.pos.includes(notBefore)
			if last.readNumber > callersReads || recent && !fresh {
				s.mu.Unlock()
				return last.Snapshot, last.pos, nil
			}
		}
		done := s.readDone
		if done == nil {
			break
		}
		s.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			return Snapshot{}, position{}, ctx.Err()
		}
		s.mu.Lock()
		if err := s.err; err != nil {
			s.mu.Unlock()
			return Snapshot{}, position{}, err
		}
	}
	done, generation := make(chan struct{}), s.generation
	s.readCount++
	read := s.readCount
	s.readDone = done
	s.mu.Unlock()

	taken, pos, err := callTakeSnapshot(ctx, take)
	t.hub.counters.snapshots.Add(1)
	s.mu.Lock()
	s.readDone, s.err = nil, err
	if ctx.Err() != nil {
		s.err = nil // it failed because its caller left; the next caller tries for itself
	}
	if err == nil && s.generation == generation {
		s.last = &takenSnapshot{Snapshot: taken, pos: pos, readNumber: read, takenAt: time.Now()}
	}
	s.mu.Unlock()
	close(done)
	if err == nil {
		t.noteState(pos)
	}
	return taken, pos, err
}

// noteState remembers the position of a state while the list is empty.
func (t *topic) noteState(pos position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.buffer.isEmpty() && pos.seq >= t.buffer.stateWhenEmpty.seq {
		t.buffer.stateWhenEmpty = pos
	}
}

// invalidate drops the cached snapshot.
func (s *snapshotCache) invalidate() {
	s.mu.Lock()
	s.generation++
	s.last = nil
	s.mu.Unlock()
}

// evictOlderThan drops the cached snapshot if it was taken at least age ago.
func (s *snapshotCache) evictOlderThan(age time.Duration) {
	s.mu.Lock()
	if s.last != nil && time.Since(s.last.takenAt) >= age {
		s.last = nil
	}
	s.mu.Unlock()
}
