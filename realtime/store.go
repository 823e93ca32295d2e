package realtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/redis/go-redis/v9"
)

// backfillJob is one read of a topic's stream, shared by all who requested it before it began.
type backfillJob struct {
	wholeTail bool // read the tail of the stream, not only what follows the head
	done      chan struct{}
	followUp  *backfillJob // requested while this one failed; finished together with it
}

func (j *backfillJob) finish() {
	for ; j != nil; j = j.followUp {
		close(j.done)
	}
}

func (j *backfillJob) wait(ctx context.Context) error {
	select {
	case <-j.done:
		return nil
	case <-ctx.Done():
		return redisdb.WrapError("read the events", ctx.Err())
	}
}

// requestBackfill queues a read of the topic's stream that begins after the call: from the head on,
// or its whole tail.
func (t *topic) requestBackfill(wholeTail bool) *backfillJob {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.requestBackfillLocked(wholeTail)
}

func (t *topic) requestBackfillLocked(wholeTail bool) *backfillJob {
	if t.queuedJob == nil {
		t.queuedJob = &backfillJob{done: make(chan struct{})}
		if !t.backfilling {
			t.hub.backfiller.enqueue(t)
		}
	}
	t.queuedJob.wholeTail = t.queuedJob.wholeTail || wholeTail
	return t.queuedJob
}

// backfiller reads streams: many topics in one round trip, and each topic in one round trip at a
// time.
type backfiller struct {
	hub    *Hub
	mu     sync.Mutex
	queue  []*topic
	wakeup chan struct{}
}

const (
	backfillWorkers     = 4   // round trips at the same time
	backfillBatchTopics = 200 // topics in one round trip
	backfillTimeout     = 3 * time.Second
	backfillRetryDelay  = 100 * time.Millisecond
	backfillTailEntries = maxRingEvents     // entries of a whole tail
	backfillPageEntries = maxRingEvents + 1 // entries from the head on, with the head
)

func (f *backfiller) enqueue(t *topic) {
	f.mu.Lock()
	f.queue = append(f.queue, t)
	f.mu.Unlock()
	f.wake()
}

func (f *backfiller) wake() {
	select {
	case f.wakeup <- struct{}{}:
	default:
	}
}

// takeBatch takes queued topics of one server, so that a master that hangs delays its own topics
// only.
func (f *backfiller) takeBatch() []*topic {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queue) == 0 {
		return nil
	}
	server := f.hub.pubsubManager.serverOf(f.queue[0])
	var batch, others []*topic
	for i, t := range f.queue {
		if len(batch) == backfillBatchTopics {
			others = append(others, f.queue[i:]...)
			break
		}
		if f.hub.pubsubManager.serverOf(t) == server {
			batch = append(batch, t)
		} else {
			others = append(others, t)
		}
	}
	f.queue = others
	if len(others) > 0 {
		f.wake()
	}
	return batch
}

func (f *backfiller) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.wakeup:
		}
		for batch := f.takeBatch(); len(batch) > 0 && ctx.Err() == nil; batch = f.takeBatch() {
			if failed := f.backfill(ctx, batch); len(failed) > 0 {
				select {
				case <-ctx.Done():
				case <-time.After(backfillRetryDelay):
				}
				for _, t := range failed {
					f.enqueue(t)
				}
			}
		}
	}
}

// backfillRead is the read of one topic's stream that is under way.
type backfillRead struct {
	*topic
	job       *backfillJob
	oldHead   position // when the stream was read
	wholeTail bool
	cmd       *redis.XMessageSliceCmd
}

// backfill reads the streams of a batch. It returns the topics whose stream could not be read.
func (f *backfiller) backfill(ctx context.Context, batch []*topic) (failed []*topic) {
	reads := make([]*backfillRead, 0, len(batch))
	for _, t := range batch {
		t.mu.Lock()
		r := &backfillRead{topic: t, job: t.queuedJob, wholeTail: t.queuedJob.wholeTail}
		t.queuedJob, t.backfilling = nil, true
		t.mu.Unlock()
		reads = append(reads, r)
	}
	for len(reads) > 0 {
		f.readStreams(ctx, reads)
		var unfinished []*backfillRead
		for _, r := range reads {
			switch found, err := r.cmd.Result(); {
			case err != nil:
				r.requeue()
				failed = append(failed, r.topic)
			case r.apply(found):
				f.hub.counters.backfillReads.Add(1)
			default:
				unfinished = append(unfinished, r)
			}
		}
		reads = unfinished
	}
	return failed
}

// readStreams sends all reads in one round trip. Each read's cmd has its own error.
func (f *backfiller) readStreams(ctx context.Context, reads []*backfillRead) {
	ctx, cancel := context.WithTimeout(ctx, backfillTimeout)
	defer cancel()
	pipe := f.hub.db.Client.Pipeline()
	for _, r := range reads {
		r.mu.RLock()
		r.oldHead = r.buffer.head()
		switch {
		case r.wholeTail:
			r.cmd = pipe.XRevRangeN(ctx, r.name, "+", "-", backfillTailEntries)
		case !r.buffer.loaded:
			r.cmd = pipe.XRevRangeN(ctx, r.name, "+", "-", 1)
		case r.buffer.completeSinceEmpty && len(r.buffer.entries) == 0:
			r.wholeTail = true
			r.cmd = pipe.XRevRangeN(ctx, r.name, "+", "-", backfillTailEntries)
		default:
			r.cmd = pipe.XRangeN(ctx, r.name, r.oldHead.String(), "+", backfillPageEntries)
		}
		r.mu.RUnlock()
	}
	_, _ = pipe.Exec(ctx)
}

// apply adds what was found to the buffer. It returns false when the stream has to be read again:
// the next page, or the whole tail.
func (r *backfillRead) apply(found []redis.XMessage) bool {
	entries := make([]entry, 0, len(found))
	for _, m := range found {
		if pos, ok := parsePosition(m.ID); ok {
			eventType, _ := m.Values["t"].(string)
			event, _ := m.Values["e"].(string)
			entries = append(entries, newEntry(pos, eventType, event))
		}
	}
	t := r.topic
	t.mu.Lock()
	replaced := false
	if r.wholeTail || !t.buffer.loaded {
		slices.Reverse(entries) // XREVRANGE returns the newest first
		loaded := t.buffer.loaded
		if replaced = t.buffer.mergeTail(r.oldHead, entries); replaced {
			t.hub.counters.ringResets.Add(1)
			t.snapshots.invalidate()
		}
		if !loaded {
			close(t.loadDone)
		}
	} else if !t.buffer.appendRange(r.oldHead, entries) {
		r.wholeTail = true
		t.mu.Unlock()
		return false
	} else if len(entries) == backfillPageEntries {
		t.mu.Unlock()
		return false
	}
	t.lastActivity = time.Now()
	t.appendPending()
	t.backfilling = false
	queued := t.queuedJob != nil
	t.mu.Unlock()
	r.job.finish()
	if queued {
		t.hub.backfiller.enqueue(t)
	}
	t.notifyCursors(replaced)
	return true
}

// requeue gives the job back to the topic, joined with the job that was requested since.
func (r *backfillRead) requeue() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.backfilling = false
	if r.queuedJob != nil {
		r.job.wholeTail = r.job.wholeTail || r.queuedJob.wholeTail
		last := r.job
		for last.followUp != nil {
			last = last.followUp
		}
		last.followUp = r.queuedJob
	}
	r.queuedJob = r.job
}

// publishToChannel publishes a message on the topic's channel without adding it to the stream.
func (h *Hub) publishToChannel(ctx context.Context, channel, payload string) error {
	var err error
	if h.db.Kind() == redisdb.KindCluster {
		err = h.db.Client.SPublish(ctx, channel, payload).Err()
	} else {
		err = h.db.Client.Publish(ctx, channel, payload).Err()
	}
	return redisdb.WrapError("publish", err)
}

// callTakeSnapshot calls Subscription.TakeSnapshot and parses the position that it returns.
func callTakeSnapshot(
	ctx context.Context, take func(context.Context) (Snapshot, error),
) (s Snapshot, pos position, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("take a snapshot: panic: %v", r)
		}
	}()
	if s, err = take(ctx); err != nil {
		return s, pos, err
	}
	pos, ok := parsePosition(s.Position)
	if !ok {
		return s, pos, errors.New("take a snapshot: invalid position " + strconv.Quote(s.Position))
	}
	return s, pos, nil
}
