package realtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"

	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// snapshotSource is a topic whose state a test changes. Its reads can be blocked.
type snapshotSource struct {
	t     testing.TB
	topic *topic
	reads atomic.Int64
	mu    sync.Mutex
	pos   string
	gate  chan struct{} // nil: reads return at once
}

func newSnapshotSource(t testing.TB) *snapshotSource {
	return &snapshotSource{t: t, topic: newTopic(New(nil, Options{}), "topic"), pos: "5-00000001"}
}

// set changes the state, and blocks the reads that begin from now on until gate is closed.
func (s *snapshotSource) set(pos string, gate chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pos, s.gate = pos, gate
}

// take reads the state and then waits, as if the store's response were slow.
func (s *snapshotSource) take(ctx context.Context) (Snapshot, error) {
	s.reads.Add(1)
	s.mu.Lock()
	pos, gate := s.pos, s.gate
	s.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return Snapshot{}, ctx.Err()
		}
	}
	return Snapshot{Position: pos}, nil
}

// wantPosition requires the position of the snapshot that a subscriber gets.
func (s *snapshotSource) wantPosition(notBefore string, fresh bool, want string) {
	s.t.Helper()
	known, _ := parsePosition(notBefore)
	if _, pos, err := s.topic.freshOrSharedSnapshot(s.t.Context(), known, fresh,
		s.take); err != nil || pos.String() != want {
		s.t.Errorf("not before %q, fresh %t: got %s (%v), want %s", notBefore, fresh, pos, err, want)
	}
}

// wantReads requires how often the state was read until now.
func (s *snapshotSource) wantReads(want int64) {
	s.t.Helper()
	if got := s.reads.Load(); got != want {
		s.t.Errorf("%d reads, want %d", got, want)
	}
}

func TestASnapshotIsSharedAsLongAsItIsNotTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSnapshotSource(t)
		want := func(notBefore string, fresh bool, pos string, reads int64) {
			t.Helper()
			s.wantPosition(notBefore, fresh, pos)
			s.wantReads(reads)
		}
		want("", false, "5-00000001", 1)
		s.set("7-00000002", nil)
		s.topic.evictCaches()
		want("", false, "5-00000001", 1)
		want("5-00000001", false, "5-00000001", 1)
		want("4-00000009", false, "5-00000001", 1)
		want("6-00000003", false, "7-00000002", 2)
		want("7-00000008", false, "7-00000002", 3)  // the number 7 of another history
		want("99-00000001", false, "7-00000002", 4) // a failover has undone it
		want("7-00000002", false, "7-00000002", 4)
		want("", true, "7-00000002", 5)
		s.set("8-00000004", nil)
		s.topic.snapshots.invalidate()
		want("", false, "8-00000004", 6)
		s.set("9-00000005", nil)
		time.Sleep(s.topic.hub.options.SnapshotTTL) // of the fake clock of synctest: time is the subject
		want("", false, "9-00000005", 7)
	})
}

// A read that was under way when a change was answered may return the state before it.
func TestASnapshotThatWasUnderWayIsUsedOnlyIfItIsNotTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSnapshotSource(t)
		first, second := make(chan struct{}), make(chan struct{})
		s.set("5-00000001", first)
		var early, late sync.WaitGroup
		early.Go(func() { s.wantPosition("", false, "5-00000001") })
		synctest.Wait()
		s.set("6-00000002", second)
		early.Go(func() { s.wantPosition("5-00000001", false, "5-00000001") })
		synctest.Wait()
		s.wantReads(1)
		close(first)
		early.Wait()
		s.wantReads(1)

		first = make(chan struct{})
		s.set("5-00000001", first)
		time.Sleep(s.topic.hub.options.SnapshotTTL) // of the fake clock of synctest: time is the subject
		early.Go(func() { s.wantPosition("", false, "5-00000001") })
		synctest.Wait()
		s.set("6-00000002", second)
		late.Go(func() { s.wantPosition("6-00000002", false, "6-00000002") })
		late.Go(func() { s.wantPosition("", true, "6-00000002") })
		synctest.Wait()
		s.wantReads(2) // one at a time
		close(first)
		early.Wait()
		close(second)
		late.Wait()
		s.wantReads(3)
	})
}

func TestAThousandSubscribersShareTwoReads(t *testing.T) {
	for name, subscriber := range map[string]struct {
		notBefore string
		fresh     bool
	}{
		"who know a later position":                      {"6-00000002", false},
		"who know a position that a failover has undone": {"99-00000001", false},
		"who need a fresh snapshot":                      {"", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSnapshotSource(t)
				first, second := make(chan struct{}), make(chan struct{})
				s.set("5-00000001", first)
				var subscribers sync.WaitGroup
				subscribers.Go(func() { s.wantPosition("", false, "5-00000001") })
				synctest.Wait()
				s.set("6-00000002", second)
				for range 1000 {
					subscribers.Go(func() { s.wantPosition(subscriber.notBefore, subscriber.fresh, "6-00000002") })
				}
				synctest.Wait()
				close(first)
				synctest.Wait()
				close(second)
				subscribers.Wait()
				s.wantReads(2)
			})
		})
	}
}

// The first subscriber may leave while it reads for the others.
func TestASubscriberThatLeavesFailsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSnapshotSource(t)
		s.set("5-00000001", make(chan struct{}))
		ctx, leave := context.WithCancel(t.Context())
		var subscribers sync.WaitGroup
		subscribers.Go(func() {
			if _, _, err := s.topic.freshOrSharedSnapshot(ctx, position{}, false, s.take); !errors.Is(err, context.Canceled) {
				t.Errorf("the subscriber that left got %v", err)
			}
		})
		synctest.Wait()
		s.set("6-00000002", nil)
		for range 10 {
			subscribers.Go(func() { s.wantPosition("6-00000002", false, "6-00000002") })
		}
		synctest.Wait()
		leave()
		subscribers.Wait()
		s.wantReads(2)
	})
}

func TestASubscriptionBeginsAtLeastWhereItsCallerOrClientIs(t *testing.T) {
	db := redistest.Single(t)
	topic := "{r1}:room:not-before:events"
	n := startNode(t, db, Options{SnapshotTTL: time.Hour})
	first := dial(t, n, "user=1").listen()
	first.subscribe(topic, "")
	known := emit(t, db, topic, "x")
	first.nextEvent()
	subscribe := func(after, notBefore string) string {
		t.Helper()
		c := dial(t, n, "user=2").listen()
		c.send(request{ID: "s", Type: "sub", Topic: topic, After: after, NotBefore: notBefore})
		var start startData
		c.next() // hello
		if reply := c.next(); wire.Unmarshal(reply.Data, &start) != nil || start.Mode != "snapshot" {
			t.Fatalf("after %q, not before %q: %+v", after, notBefore, reply)
		}
		return start.Position
	}
	if pos := subscribe("", ""); pos != "0-0" {
		t.Fatalf("a subscriber that knows nothing began at %s, not at the shared snapshot", pos)
	}
	if pos := subscribe("", known); pos != known {
		t.Errorf("a subscriber that knows %s began at %s", known, pos)
	}
	latest := emit(t, db, topic, "y")
	first.nextEvent()
	// A client may have got an event that a failover has undone.
	if pos := subscribe("2-00000001", known); pos != latest {
		t.Errorf("a client that was at event 2 began at %s, want %s", pos, latest)
	}
	if reads := n.Stats().Snapshots; reads != 3 {
		t.Errorf("%d snapshots were taken, want 3", reads)
	}
}

func TestSocketsThatSubscribeAtOnceShareASnapshot(t *testing.T) {
	db := redistest.Single(t)
	topic := "{r1}:room:storm:events"
	n := startNode(t, db, Options{SnapshotTTL: time.Hour})
	dial(t, n, "user=0").listen().subscribe(topic, "")
	known := emit(t, db, topic, "x")
	clients := make([]*testClient, 200)
	for i := range clients {
		clients[i] = dial(t, n, fmt.Sprint("user=", i+1)).listen()
		clients[i].next() // hello
	}
	for _, c := range clients {
		c.send(request{ID: "s", Type: "sub", Topic: topic, NotBefore: known})
	}
	for _, c := range clients {
		var start startData
		if reply := c.next(); wire.Unmarshal(reply.Data, &start) != nil || start.Position != known {
			t.Fatalf("got %+v, want a snapshot at %s", reply, known)
		}
	}
	if reads := n.Stats().Snapshots; reads != 2 {
		t.Errorf("%d snapshots were taken, want 2: before the change and after it", reads)
	}
}

func TestAnIdleSubscriptionKeepsNothingOfItsStart(t *testing.T) {
	db := redistest.Single(t)
	topic := "{r1}:room:idle:events"
	n := startNode(t, db, Options{SnapshotTTL: 50 * time.Millisecond})
	c := dial(t, n, "user=1").listen()
	c.subscribe(topic, "9-00000009")
	client := n.firstClient(t)
	client.mu.Lock()
	cur := client.cursors.list[0]
	sub := cur.sub
	client.mu.Unlock()
	if sub.EncodeReply != nil || sub.AfterPosition != "" || sub.NotBeforePosition != "" || sub.Topic != topic {
		t.Errorf("the cursor has %+v", sub)
	}
	waitUntil(t, "the snapshot is dropped", func() bool {
		s := &cur.topic.snapshots
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.last == nil
	})
}

// The client may have been answered a change since the shared snapshot was taken.
func TestALostPositionIsReplacedByAFreshSnapshot(t *testing.T) {
	db := redistest.Single(t)
	topic := "{r1}:room:lapsed:events"
	n := startNode(t, db, Options{SnapshotTTL: time.Hour})
	c := dial(t, n, "user=1").listen()
	c.subscribe(topic, "")
	pos := emit(t, db, topic, "x")
	c.nextEvent()
	client := n.firstClient(t)
	client.mu.Lock()
	client.replaceWithSnapshot(client.cursors.list[0], true, nil)
	client.mu.Unlock()
	if e := c.next(); e.Type != "room.snapshot" || e.Position != pos {
		t.Errorf("got %+v, want a snapshot at %s", e, pos)
	}
}

// A failover may lose the newest events between the read of a snapshot and its use.
func TestASnapshotOfALostHistoryIsReplaced(t *testing.T) {
	db := redistest.Single(t)
	topic := "{r1}:room:undone:events"
	n := startNode(t, db, Options{SnapshotTTL: time.Nanosecond})
	dial(t, n, "user=1").listen().subscribe(topic, "")
	want := emit(t, db, topic, "x")
	say := func(seq, position string) {
		t.Helper()
		testkit.Check(t, db.Client.HSet(t.Context(), stateKey(topic), "seq", seq, "position", position).Err())
	}
	say("9", "9-aaaaaaaa")
	c := dial(t, n, "user=2").listen()
	if mode, at := c.subscribe(topic, ""); mode != "snapshot" || at != "9-aaaaaaaa" {
		t.Fatalf("the subscription began with a %s at %s", mode, at)
	}
	// The first replacements are of that history, too.
	redistest.Eventually(t, "a replacement was read", func() bool { return n.Stats().Snapshots >= 4 })
	say("1", want)
	if e := c.next(); e.Type != "room.snapshot" || e.Position != want {
		t.Fatalf("got %+v, want a snapshot at %s", e, want)
	}
	if next := emit(t, db, topic, "y"); c.next().Position != next {
		t.Error("the next event did not follow")
	}
}

func TestASubscriberThatIsAheadOfTheChannelStartsABackfill(t *testing.T) {
	db := redistest.Single(t)
	topic := "{r1}:room:ahead:events"
	n := startNode(t, db, Options{})
	_, start := dial(t, n, "user=1").listen().subscribe(topic, "")
	emitWithoutPublish(t, db, topic, testEvent)
	c := dial(t, n, "user=2").listen()
	c.next() // hello
	c.send(request{ID: "s", Type: "sub", Topic: topic, After: start, NotBefore: "1-00000001"})
	if reply := c.next(); reply.ReplyTo != "s" || !reply.OK {
		t.Fatalf("got %+v, want a resumed subscription", reply)
	}
	if e := c.nextEvent(); e.Seq != 1 {
		t.Errorf("got %+v, want the event that the channel lost", e)
	}
}
