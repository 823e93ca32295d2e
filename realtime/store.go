package realtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/redis/go-redis/v9"
)

// backfillJob is one read of a topic's list, shared by all who requested it before it began.
type backfillJob struct {
	wholeTail bool // read the whole tail of the list, not only what follows the head
	verifies  int  // how many calls of distrustChannel wait for it
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

// requestBackfill queues a read of the topic's list that begins after the call: from the head on,
// or its whole tail.
func (t *topic) requestBackfill(wholeTail bool) *backfillJob {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.requestBackfillLocked(wholeTail)
}

// distrustChannel is called when the channel may have lost messages. If the store lost events
// meanwhile, the next message may follow one that the buffer does not have, with the number that
// follows its own. So nothing is appended until the list has been compared with the buffer as it is
// now.
func (t *topic) distrustChannel() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requestBackfillLocked(false).verifies++
	t.unverified++
}

func (t *topic) requestBackfillLocked(wholeTail bool) *backfillJob {
	if t.queuedJob == nil {
		t.queuedJob = &backfillJob{done: make(chan struct{})}
		switch {
		case t.isPolled():
			select {
			case t.readNow <- struct{}{}:
			default:
			}
		case !t.backfilling:
			t.hub.backfiller.enqueue(t)
		}
	}
	t.queuedJob.wholeTail = t.queuedJob.wholeTail || wholeTail
	return t.queuedJob
}

// backfiller reads lists: many topics in one round trip, and each topic in one round trip at a
// time.
type backfiller struct {
	hub    *Hub
	mu     sync.Mutex
	queues []*backfillQueue // those that are not empty, in turn
	wakeup chan struct{}
}

// backfillQueue has the topics of one server, so that a master that hangs delays its own topics
// only.
type backfillQueue struct {
	server string
	topics []*topic
}

const (
	backfillWorkers     = 4   // round trips at the same time
	backfillBatchTopics = 200 // topics in one round trip
	backfillTimeout     = 3 * time.Second
	backfillRetryDelay  = 100 * time.Millisecond
	backfillTailEntries = maxRingEvents // entries of a whole tail
	backfillMinEntries  = 4             // entries of a read from the head on: mostly there is nothing new
)

func (f *backfiller) enqueue(t *topic) {
	server := f.hub.pubsubManager.serverOf(t)
	f.mu.Lock()
	i := slices.IndexFunc(f.queues, func(q *backfillQueue) bool { return q.server == server })
	if i < 0 {
		i = len(f.queues)
		f.queues = append(f.queues, &backfillQueue{server: server})
	}
	f.queues[i].topics = append(f.queues[i].topics, t)
	f.mu.Unlock()
	f.wake()
}

func (f *backfiller) wake() {
	select {
	case f.wakeup <- struct{}{}:
	default:
	}
}

// takeBatch takes queued topics of one server. The rest of its queue moves behind the queues of the
// other servers.
func (f *backfiller) takeBatch() []*topic {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queues) == 0 {
		return nil
	}
	q := f.queues[0]
	f.queues = slices.Delete(f.queues, 0, 1)
	n := min(len(q.topics), backfillBatchTopics)
	batch := q.topics[:n:n]
	if q.topics = q.topics[n:]; len(q.topics) > 0 {
		f.queues = append(f.queues, q)
	}
	if len(f.queues) > 0 {
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

// backfillRead is the read of one topic's list that is under way.
type backfillRead struct {
	*topic
	job       *backfillJob
	oldHead   position // when the list was read
	wholeTail bool
	limit     int64 // how many entries are read, from the end
	cmd       *redis.StringSliceCmd
}

// backfill reads the lists of a batch. It returns the topics whose list could not be read.
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
		f.readLists(ctx, reads)
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

// readLists sends all reads in one round trip. Each read's cmd has its own error.
func (f *backfiller) readLists(ctx context.Context, reads []*backfillRead) {
	ctx, cancel := context.WithTimeout(ctx, backfillTimeout)
	defer cancel()
	pipe := f.hub.db.Client.Pipeline()
	for _, r := range reads {
		r.mu.RLock()
		r.oldHead = r.buffer.head()
		r.limit = r.countEntriesToRead()
		r.mu.RUnlock()
		r.cmd = pipe.LRange(ctx, r.name, -r.limit, -1)
	}
	_, _ = pipe.Exec(ctx)
}

// countEntriesToRead returns how many entries from the end of the list probably reach back to the
// head. A place in a list moves when the front is trimmed, so a list can only be read from its end.
// An entry stands for at least one event. topic.mu must be held.
func (r *backfillRead) countEntriesToRead() int64 {
	b := &r.buffer
	switch n := len(r.pendingEntries); {
	case r.wholeTail || b.conflicted || b.isEmpty():
		return backfillTailEntries
	case !b.loaded:
		return 1
	case n > 0:
		if newest := r.pendingEntries[n-1].pos.seq; newest > r.oldHead.seq {
			return int64(min(backfillMinEntries+newest-r.oldHead.seq, backfillTailEntries))
		}
	}
	return backfillMinEntries
}

// apply adds the events that were read to the buffer. It returns false when the whole tail of the
// list must be read.
func (r *backfillRead) apply(found []string) bool {
	hasAll := int64(len(found)) < r.limit
	read := tail{oldHead: r.oldHead, isLong: hasAll || r.limit == backfillTailEntries, isAll: hasAll}
	read.entries = make([]entry, 0, len(found))
	for _, text := range found {
		if e, ok := parseEntry(text); ok {
			read.entries = append(read.entries, e)
		} else if read.isAll = false; r.wholeTail {
			r.reportUnreadable(errNoHeader)
		}
	}
	t := r.topic
	t.mu.Lock()
	loaded := t.buffer.loaded
	result := t.buffer.merge(read, t.render)
	if result == mergeTooShort {
		r.wholeTail = true
		t.mu.Unlock()
		return false
	}
	if result == mergeReplaced {
		t.hub.counters.ringResets.Add(1)
		t.snapshots.invalidate()
		t.pages.drop()
	}
	if !loaded {
		close(t.loadDone)
	}
	t.lastActivity = time.Now()
	if r.wholeTail {
		t.eventsNeededAt = t.lastActivity
	}
	t.unverified -= r.job.verifies
	replaced := t.appendPending() || result == mergeReplaced
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
		r.job.verifies += r.queuedJob.verifies
		last := r.job
		for last.followUp != nil {
			last = last.followUp
		}
		last.followUp = r.queuedJob
	}
	r.queuedJob = r.job
}

var errNoHeader = errors.New("an entry has no position or no type")

// gapCheckInterval returns how long a topic may be silent before it is compared with its list.
func (h *Hub) gapCheckInterval(topicName string) time.Duration {
	if listID(topicName) != "" {
		return h.options.GapCheckInterval
	}
	return h.options.UserGapCheckInterval
}

// listID returns the id of the room or tournament whose events a topic has, "" for those of a
// player.
func listID(topicName string) string {
	if id, isRoom := keys.ParseRoomEvents(topicName); isRoom {
		return id
	}
	if id, isTour := keys.ParseTourEvents(topicName); isTour {
		return id
	}
	return ""
}

// renderers are used again: an event is rendered for each message of a channel.
var renderers = sync.Pool{New: func() any { return new(events.Renderer) }}

// render appends the events of an entry, none if it cannot be rendered. topic.mu must be held.
func (t *topic) render(to []event, e entry, report bool) []event {
	if t.feed != nil {
		return append(to, t.renderFeedEvent(e, &t.frames, report))
	}
	renderer := renderers.Get().(*events.Renderer)
	defer renderers.Put(renderer)
	rendered, err := renderer.Render(e.text, listID(t.name))
	if err != nil {
		if report {
			t.reportUnreadable(err)
		}
		return to
	}
	for _, r := range rendered {
		to = append(to, event{
			pos: position{uint64(r.Seq), e.pos.nonce}, kind: r.Type, frame: t.frames.add(opText, r.JSON),
		})
	}
	if report {
		t.hub.observeEvents(t, to[len(to)-len(rendered):])
	}
	return to
}

func (t *topic) reportUnreadable(err error) {
	t.hub.counters.unreadableEvents.Add(1)
	t.hub.log.Error("an event cannot be rendered", slog.String("topic", t.name), slog.Any("error", err))
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

// readRun returns up to count consecutive entries of the list, from the number from on or from the
// first one that the list has.
func (t *topic) readRun(ctx context.Context, from uint64, count int64) ([]entry, error) {
	first := max(from, 1)
	for {
		// A place in a list moves when the front is trimmed. The first entry tells the places.
		pipe := t.hub.db.Client.Pipeline()
		front := pipe.LIndex(ctx, t.name, 0)
		if _, err := pipe.Exec(ctx); err == redis.Nil { //nolint:errorlint // go-redis returns it as it is
			return nil, nil
		} else if err != nil {
			return nil, redisdb.WrapError("read a feed", err)
		}
		oldest, ok := parseEntry(front.Val())
		if !ok {
			t.reportUnreadable(errNoHeader)
			return nil, nil
		}
		if first = max(first, oldest.first); first >= from+uint64(count) {
			return nil, nil
		}
		place := int64(first - oldest.first)
		found, err := t.hub.db.Client.LRange(ctx, t.name, place, place+count-1-int64(first-from)).Result()
		if err != nil {
			return nil, redisdb.WrapError("read a feed", err)
		}
		run := make([]entry, 0, len(found))
		for _, text := range found {
			e, ok := parseEntry(text)
			if !ok || len(run) > 0 && e.first != run[len(run)-1].pos.seq+1 {
				break
			}
			run = append(run, e)
		}
		if len(run) == 0 || run[0].first == first {
			return run, nil
		}
		// The list was trimmed between the two reads.
	}
}
