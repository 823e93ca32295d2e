package realtime

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/redis/go-redis/v9"
)

// backfillJob is one reading of a topic's stream, for all who asked before it began.
type backfillJob struct {
	wholeTail  bool // the end of the stream, not only what follows the head
	done  chan struct{}
	followUp *backfillJob // asked for while this one failed: done when it is
}

func (r *backfillJob) finish() {
	for ; r != nil; r = r.followUp {
		close(r.done)
	}
}

func (r *backfillJob) wait(ctx context.Context) error {
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return redisdb.WrapError("read the events", ctx.Err())
	}
}

// requestBackfill wants the topic's stream to be read from now on: from the head, or its whole end.
func (t *topic) requestBackfill(tail bool) *backfillJob {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.requestBackfillLocked(tail)
}

func (t *topic) requestBackfillLocked(tail bool) *backfillJob {
	if t.queuedJob == nil {
		t.queuedJob = &backfillJob{done: make(chan struct{})}
		if !t.backfilling {
			t.hub.backfiller.enqueue(t)
		}
	}
	t.queuedJob.wholeTail = t.queuedJob.wholeTail || tail
	return t.queuedJob
}

// backfiller reads streams: many topics in one round trip, each topic by one reader at a time.
type backfiller struct {
	hub   *Hub
	mu    sync.Mutex
	queue []*topic
	wakeup  chan struct{}
}

const (
	backfillWorkers      = 4   // round trips under way at the same time
	backfillBatch   = 200 // topics in one of them
	backfillTimeout  = 3 * time.Second
	backfillRetryDelay    = 100 * time.Millisecond // after a failure
	backfillTail   = maxBufferEvents
	backfillPage = maxBufferEvents + 1
)

func (h *backfiller) enqueue(t *topic) {
	h.mu.Lock()
	h.queue = append(h.queue, t)
	h.mu.Unlock()
	h.wake()
}

func (h *backfiller) wake() {
	select {
	case h.wakeup <- struct{}{}:
	default:
	}
}

// takeBatch takes topics that live at one place: a master that hangs holds up its own only.
func (h *backfiller) takeBatch() []*topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue) == 0 {
		return nil
	}
	place := h.hub.subscriptions.serverOf(h.queue[0])
	var batch, rest []*topic
	for i, t := range h.queue {
		if len(batch) == backfillBatch {
			rest = append(rest, h.queue[i:]...)
			break
		}
		if h.hub.subscriptions.serverOf(t) == place {
			batch = append(batch, t)
		} else {
			rest = append(rest, t)
		}
	}
	h.queue = rest
	if len(rest) > 0 {
		h.wake()
	}
	return batch
}

func (h *backfiller) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.wakeup:
		}
		for batch := h.takeBatch(); len(batch) > 0 && ctx.Err() == nil; batch = h.takeBatch() {
			if failed := h.backfill(ctx, batch); len(failed) > 0 {
				select {
				case <-ctx.Done():
				case <-time.After(backfillRetryDelay):
				}
				for _, t := range failed {
					h.enqueue(t)
				}
			}
		}
	}
}

// backfillRead is a topic under repair.
type backfillRead struct {
	*topic
	job *backfillJob
	head   position // when the stream was asked
	tail   bool
	cmd    *redis.XMessageSliceCmd
}

// backfill reads the streams of a batch and answers the topics whose stream could not be read.
func (h *backfiller) backfill(ctx context.Context, batch []*topic) (failed []*topic) {
	patients := make([]*backfillRead, 0, len(batch))
	for _, t := range batch {
		t.mu.Lock()
		p := &backfillRead{topic: t, job: t.queuedJob, tail: t.queuedJob.wholeTail}
		t.queuedJob, t.backfilling = nil, true
		t.mu.Unlock()
		patients = append(patients, p)
	}
	for len(patients) > 0 {
		h.readStreams(ctx, patients)
		var again []*backfillRead
		for _, p := range patients {
			switch found, err := p.cmd.Result(); {
			case err != nil:
				p.postpone()
				failed = append(failed, p.topic)
			case p.apply(found):
				h.hub.counters.backfillReads.Add(1)
			default:
				again = append(again, p)
			}
		}
		patients = again
	}
	return failed
}

// readStreams sends one round trip.
func (h *backfiller) readStreams(ctx context.Context, patients []*backfillRead) {
	ctx, cancel := context.WithTimeout(ctx, backfillTimeout)
	defer cancel()
	pipe := h.hub.db.Client.Pipeline()
	for _, p := range patients {
		p.mu.RLock()
		p.head = p.buffer.head()
		switch {
		case p.tail:
			p.cmd = pipe.XRevRangeN(ctx, p.name, "+", "-", backfillTail)
		case !p.buffer.loaded:
			p.cmd = pipe.XRevRangeN(ctx, p.name, "+", "-", 1)
		case p.buffer.sinceEmpty && len(p.buffer.entries) == 0:
			p.tail = true
			p.cmd = pipe.XRevRangeN(ctx, p.name, "+", "-", backfillTail)
		default:
			p.cmd = pipe.XRangeN(ctx, p.name, p.head.String(), "+", backfillPage)
		}
		p.mu.RUnlock()
	}
	_, _ = pipe.Exec(ctx) // every command tells its own
}

// apply puts what was found into the log. It answers false when the stream must be read further.
func (p *backfillRead) apply(found []redis.XMessage) bool {
	entries := make([]entry, 0, len(found))
	for _, m := range found {
		if at, ok := parsePosition(m.ID); ok {
			event, _ := m.Values["e"].(string)
			entries = append(entries, entry{at, []byte(event)})
		}
	}
	t := p.topic
	t.mu.Lock()
	anew := false
	if p.tail || !t.buffer.loaded {
		for i, j := 0, len(entries)-1; i < j; i, j = i+1, j-1 {
			entries[i], entries[j] = entries[j], entries[i]
		}
		loaded := t.buffer.loaded
		if anew = t.buffer.mergeTail(p.head, entries); anew {
			t.hub.counters.resets.Add(1)
			t.snapshots.invalidate()
		}
		if !loaded {
			close(t.ready)
		}
	} else if !t.buffer.appendRange(p.head, entries) {
		p.tail = true
		t.mu.Unlock()
		return false
	} else if len(entries) == backfillPage {
		t.mu.Unlock()
		return false
	}
	t.lastActivity = time.Now()
	t.drainPending()
	t.backfilling = false
	again := t.queuedJob != nil
	t.mu.Unlock()
	p.job.finish()
	if again {
		t.hub.backfiller.enqueue(t)
	}
	t.notifyCursors(anew)
	return true
}

// postpone gives the repair back, joined with what was asked for since.
func (p *backfillRead) postpone() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.backfilling = false
	if p.queuedJob != nil {
		p.job.wholeTail = p.job.wholeTail || p.queuedJob.wholeTail
		last := p.job
		for last.followUp != nil {
			last = last.followUp
		}
		last.followUp = p.queuedJob
	}
	p.queuedJob = p.job
}

// publish sends a message on the topic's channel, past the stream.
func (h *Hub) publish(ctx context.Context, channel, payload string) error {
	var err error
	if h.db.Kind() == redisdb.KindCluster {
		err = h.db.Client.SPublish(ctx, channel, payload).Err()
	} else {
		err = h.db.Client.Publish(ctx, channel, payload).Err()
	}
	return redisdb.WrapError("publish", err)
}

// callSnapshot calls the domain; what it answers must be a position.
func callSnapshot(ctx context.Context, take func(context.Context) (Snapshot, error)) (s Snapshot, at position, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("take a snapshot: panic: %v", r)
		}
	}()
	if s, err = take(ctx); err != nil {
		return s, at, err
	}
	at, ok := parsePosition(s.Position)
	if !ok {
		return s, at, errors.New("take a snapshot: its position " + strconv.Quote(s.Position) + " cannot be read")
	}
	return s, at, nil
}
