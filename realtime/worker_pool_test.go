package realtime

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
)

func (w *workerPool) idleCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.idle)
}

func TestACrewUsesItsGoroutinesAgainUntilTheyAreIdle(t *testing.T) {
	var w workerPool
	for range 50 {
		var done sync.WaitGroup
		done.Add(1)
		w.start(done.Done)
		done.Wait()
		waitUntil(t, "it is idle", func() bool { return w.idleCount() > 0 })
	}
	if got := w.idleCount(); got != 1 {
		t.Errorf("%d goroutines did one task after the other", got)
	}
	w.endIdle(time.Now().Add(-time.Hour))
	if w.idleCount() == 0 {
		t.Error("goroutines were ended that had a task a moment ago")
	}
	waitUntil(t, "the idle ones are ended", func() bool {
		w.endIdle(time.Now().Add(time.Second))
		return w.idleCount() == 0
	})
	var finished atomic.Bool
	started, release := make(chan struct{}), make(chan struct{})
	w.start(func() { close(started); <-release; finished.Store(true) })
	<-started
	go func() {
		waitUntil(t, "stop was called", func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.stopped
		})
		close(release)
	}()
	w.stop()
	if !finished.Load() {
		t.Error("stop did not wait for a task")
	}
}

// allocatedBy returns how many bytes a function allocates.
func allocatedBy(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A list that is copied for each of its members costs the square of its length.
func TestAttachDetachAndBackfillAreLinear(t *testing.T) {
	h := New(redistest.Single(t), Options{})
	room := newTopic(h, "room")
	const n = 20_000
	cursors := make([]*cursor, n)
	for i := range cursors {
		cursors[i] = &cursor{topic: room}
	}
	if bytes := allocatedBy(func() {
		for _, cur := range cursors {
			room.addCursor(cur)
		}
	}); bytes > 100*n {
		t.Errorf("%d subscriptions allocate %d bytes", n, bytes)
	}
	if got := len(room.listCursors()); got != n {
		t.Errorf("%d cursors are listed, want %d", got, n)
	}
	room.removeCursor(cursors[0])
	room.removeCursor(cursors[0]) // no longer there
	room.removeCursor(&cursor{topic: room})
	if list := room.listCursors(); len(list) != n-1 || list[0] != cursors[n-1] {
		t.Errorf("%d cursors are listed, want %d, the last one in the first place", len(list), n-1)
	}
	if bytes := allocatedBy(func() {
		for _, cur := range cursors {
			room.removeCursor(cur)
		}
	}); bytes > 100*n || len(room.listCursors()) != 0 {
		t.Errorf("the end of %d subscriptions allocates %d bytes and leaves %d", n, bytes, len(room.cursors))
	}

	for i := range n {
		h.backfiller.enqueue(newTopic(h, fmt.Sprint(i)))
	}
	taken := 0
	if bytes := allocatedBy(func() {
		for batch := h.backfiller.takeBatch(); len(batch) > 0; batch = h.backfiller.takeBatch() {
			if batch[0].name != fmt.Sprint(taken) {
				t.Fatalf("got %s, want the topics in their order", batch[0].name)
			}
			taken += len(batch)
		}
	}); taken != n || bytes > 100*n {
		t.Errorf("%d of %d topics were taken, which allocates %d bytes", taken, n, bytes)
	}
}

// A server that has many topics to read must not delay those of another.
func TestBackfillsOfServersTakeTurns(t *testing.T) {
	h := New(redistest.Single(t), Options{})
	enqueue := func(server string, n int) {
		for range n {
			topic := newTopic(h, server)
			topic.pubsubConn = &pubsubConn{server: server}
			h.backfiller.enqueue(topic)
		}
	}
	enqueue("a", 2*backfillBatchTopics)
	enqueue("b", 1)
	var order []string
	for batch := h.backfiller.takeBatch(); len(batch) > 0; batch = h.backfiller.takeBatch() {
		order = append(order, fmt.Sprint(batch[0].name, len(batch)))
	}
	want := fmt.Sprintf("[a%d b1 a%d]", backfillBatchTopics, backfillBatchTopics)
	if fmt.Sprint(order) != want {
		t.Errorf("the batches are %v, want %s", order, want)
	}
}

func TestOnlyRoomsAreComparedWithTheirListsOften(t *testing.T) {
	h := New(redistest.Single(t), Options{GapCheckInterval: time.Second, UserGapCheckInterval: time.Hour})
	for name, want := range map[string]time.Duration{
		"{r1}:room:00000000-0000-8000-8000-000000000001:events": time.Second,
		"{e:1}:wallet:7:lines":    time.Hour,
		"{u:7}:user:saves:events": time.Hour,
	} {
		if got := newTopic(h, name).gapCheckInterval; got != want {
			t.Errorf("%s is compared every %v, want %v", name, got, want)
		}
	}
}

// Events that all clients have are not kept for ever, and a client that resumes later gets them all
// the same: from the list.
func TestOldEventsLeaveTheNodeAndCanBeResumed(t *testing.T) {
	db := redistest.Single(t)
	n := startNode(t, db, Options{EventLifetime: 40 * time.Millisecond})
	name := "{r1}:room:old:events"
	c := dial(t, n, "user=1").listen()
	_, start := c.subscribe(name, "")
	const events = 60
	for range events {
		emit(t, db, name, "x")
	}
	for range events {
		c.nextEvent()
	}
	v, _ := n.topics.Load(name)
	kept := func() (count, bytes int) {
		room := v.(*topic)
		room.mu.RLock()
		defer room.mu.RUnlock()
		for i := range room.buffer.events {
			bytes += len(room.buffer.events[i].json())
		}
		if bytes != room.buffer.byteCount {
			t.Errorf("%d bytes are counted as %d", bytes, room.buffer.byteCount)
		}
		return len(room.buffer.events), bytes
	}
	waitUntil(t, "old events are dropped", func() bool { count, _ := kept(); return count == keptOldEvents })
	back := dial(t, n, "user=2").listen()
	if mode, _ := back.subscribe(name, start); mode != string(ModeResume) {
		t.Fatalf("the subscription begins with a %s", mode)
	}
	for want := range uint64(events) {
		if e := back.nextEvent(); e.Seq != want+1 {
			t.Fatalf("got %d, want %d", e.Seq, want+1)
		}
	}
	emit(t, db, name, "x")
	for _, client := range []*testClient{c, back} {
		if e := client.nextEvent(); e.Seq != events+1 {
			t.Errorf("got %d, want %d", e.Seq, events+1)
		}
	}
}
