package realtime

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
)

// subscribeLive subscribes to a topic without snapshots.
func (c *testClient) subscribeLive(topic string) {
	c.t.Helper()
	c.send(request{ID: "l", Type: "live", Topic: topic})
	for c.next().ReplyTo != "l" {
	}
}

// The worker's backlog may be full when the first event of a list arrives.
func TestTheFirstEventOfAListIsMissedByNobody(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		for name, before := range map[string]int64{"a new list": 0, "a list that has expired": 16} {
			t.Run(name, func(t *testing.T) {
				topic := fmt.Sprintf("{u:7}:first:%d", before)
				db.Client.HSet(t.Context(), stateKey(topic), "seq", before)
				n := startNode(t, db, Options{})
				c := dial(t, n, "user=7").listen()
				c.subscribeLive(topic)
				emitWithoutPublish(t, db, topic, testEvent)
				emit(t, db, topic, "x")
				emit(t, db, topic, "x")
				for want := uint64(before) + 1; want <= uint64(before)+3; want++ {
					if e := c.next(); e.Seq != want {
						t.Fatalf("got %+v, want seq %d", e, want)
					}
				}
			})
		}
	})
}

func TestAListThatMayHaveBeenTrimmedSinceItWasEmptyReplacesTheBuffer(t *testing.T) {
	db := redistest.Single(t)
	topic := "{u:7}:trimmed"
	n := startNode(t, db, Options{})
	c := dial(t, n, "user=7").listen()
	c.subscribeLive(topic)
	for range minKeptEntries + 1 {
		emitWithoutPublish(t, db, topic, testEvent)
	}
	db.Client.LTrim(t.Context(), topic, -minKeptEntries, -1)
	emit(t, db, topic, "x")
	if code := c.waitCloseCode(); code != CloseTooSlow {
		t.Errorf("closed with %d (%v); an event is missing", code, c.err)
	}
}

func TestAnEntryOfTwoEventsIsDeliveredAsTwo(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		topic := "{e:1}:wallet:7:lines"
		n := startNode(t, db, Options{})
		c := dial(t, n, "user=7").listen()
		c.subscribe(topic, "")
		emitType(t, db, topic, "user.asset", "")
		emitWithoutPublish(t, db, topic, "user.asset") // a gap of two numbers
		emitType(t, db, topic, "user.asset", "")
		var got []received
		for want := range uint64(6) {
			e := c.next()
			kind := []string{"user.balance", "user.asset"}[want%2]
			if e.Seq != want+1 || e.Type != kind || !strings.HasPrefix(e.Position, fmt.Sprint(want+1, "-")) {
				t.Fatalf("got %+v, want %s with seq %d", e, kind, want+1)
			}
			got = append(got, e)
		}
		for _, node := range []*testNode{n, startNode(t, db, Options{})} {
			for i, after := range got {
				back := dial(t, node, "user=7").listen()
				if mode, _ := back.subscribe(topic, after.Position); mode != "resume" {
					t.Fatalf("after event %d: %s", i+1, mode)
				}
				for _, want := range got[i+1:] {
					if e := back.next(); e.Position != want.Position {
						t.Fatalf("after event %d came %+v, want %s", i+1, e, want.Position)
					}
				}
			}
		}
	})
}

// syncBuffer collects log lines.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestAnEntryThatCannotBeRenderedIsReplacedByASnapshot(t *testing.T) {
	for name, emitUnknown := range map[string]func(t testing.TB, db *redisdb.DB, topic string) string{
		"from the channel": func(t testing.TB, db *redisdb.DB, topic string) string {
			return emitType(t, db, topic, "room.unknown", "")
		},
		"from the list": func(t testing.TB, db *redisdb.DB, topic string) string {
			return emitWithoutPublish(t, db, topic, "room.unknown")
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := redistest.Single(t)
			topic := "{r1}:room:unknown:events"
			log := &syncBuffer{}
			n := startNode(t, db, Options{
				GapCheckInterval: 100 * time.Millisecond, Log: slog.New(slog.NewTextHandler(log, nil)),
			})
			c, other := dial(t, n, "user=1").listen(), dial(t, n, "user=2").listen()
			c.subscribe(topic, "")
			other.subscribeLive(topic)
			before := emit(t, db, topic, "x")
			if e := c.next(); e.Position != before {
				t.Fatalf("got %+v, want %s", e, before)
			}
			unknown := emitUnknown(t, db, topic)
			if e := c.next(); e.Type != "room.snapshot" || e.Position != unknown {
				t.Fatalf("got %+v, want a snapshot at %s", e, unknown)
			}
			if code := other.waitCloseCode(); code != CloseTooSlow {
				t.Errorf("a client without snapshots was closed with %d, want %d", code, CloseTooSlow)
			}
			after := emit(t, db, topic, "y")
			if e := c.next(); e.Position != after {
				t.Fatalf("got %+v, want %s", e, after)
			}
			for _, node := range []*testNode{n, startNode(t, db, Options{})} {
				for pos, want := range map[string]string{before: "snapshot", unknown: "resume", after: "resume"} {
					if mode, _ := dial(t, node, "user=3").listen().subscribe(topic, pos); mode != want {
						t.Errorf("after %s: %s, want %s", pos, mode, want)
					}
				}
			}
			if got := n.Stats().UnreadableEvents; got != 1 || !strings.Contains(log.String(), unknown) {
				t.Errorf("%d unreadable entries are counted, want 1; logged:\n%s", got, log)
			}
			for range maxSlowSnapshots + 1 { // it is not the client that is slow
				unknown := emitUnknown(t, db, topic)
				if e := c.next(); e.Type != "room.snapshot" || e.Position != unknown {
					t.Fatalf("got %+v, want a snapshot at %s", e, unknown)
				}
			}
		})
	}
}

// A text that has no position is no entry. What follows it is delivered.
func TestATextThatIsNoEntryStopsNoTopic(t *testing.T) {
	db := redistest.Single(t)
	topic := "{r1}:room:damaged:events"
	n := startNode(t, db, Options{})
	c := dial(t, n, "user=1").listen()
	c.subscribe(topic, "")
	emit(t, db, topic, "x")
	c.next()
	db.Client.RPush(t.Context(), topic, "damaged")
	db.Client.Publish(t.Context(), topic, "damaged")
	for range 3 {
		want := emit(t, db, topic, "y")
		if e := c.next(); e.Position != want {
			t.Fatalf("got %+v, want %s", e, want)
		}
	}
	if n.Stats().UnreadableEvents == 0 {
		t.Error("it is not counted")
	}
}

// The list of a room that ended is dropped before the room is.
func TestAListThatWasDroppedIsNotTakenForANewOne(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		topic := "{r1}:room:dropped:events"
		last := ""
		for range 9 {
			last = emit(t, db, topic, "x")
		}
		db.Client.Del(t.Context(), topic)
		n := startNode(t, db, Options{})
		c := dial(t, n, "user=1").listen()
		c.send(request{ID: "s", Type: "sub", Topic: topic, After: "0-0", NotBefore: last})
		c.next() // hello
		var start startData
		reply := c.next()
		if wire.Unmarshal(reply.Data, &start) != nil || start.Mode != "snapshot" || start.Position != last {
			t.Fatalf("a client that has no event: %+v, want a snapshot at %s", reply, last)
		}
		// The next event, such as room.rematch, follows what the client has.
		want := emit(t, db, topic, "y")
		if e := c.next(); e.Position != want || e.Type != testEvent {
			t.Fatalf("got %+v, want the event at %s", e, want)
		}
		late := dial(t, n, "user=2").listen()
		late.send(request{ID: "s", Type: "sub", Topic: topic, After: "0-0", NotBefore: want})
		late.next() // hello
		if reply := late.next(); wire.Unmarshal(reply.Data, &start) != nil || start.Mode != "snapshot" {
			t.Errorf("a client that has no event: %+v, want a snapshot", reply)
		}
	})
}

// The gap is larger than what is read of a silent topic, and no message tells how large.
func TestEventsThatNoMessageAnnouncedAreReadToTheLast(t *testing.T) {
	db := redistest.Single(t)
	topic := "{r1}:room:silent:events"
	n := startNode(t, db, Options{GapCheckInterval: 100 * time.Millisecond})
	c := dial(t, n, "user=1").listen()
	c.subscribe(topic, "")
	emit(t, db, topic, "x")
	const lost = 10 * backfillMinEntries
	for range lost {
		emitWithoutPublish(t, db, topic, testEvent)
	}
	for want := range uint64(1 + lost) {
		if e := c.next(); e.Seq != want+1 || e.Type != testEvent {
			t.Fatalf("got %+v, want event %d", e, want+1)
		}
	}
}

func TestANodeThatMissedMoreThanAListHoldsTakesASnapshot(t *testing.T) {
	db := redistest.Single(t)
	topic := "{r1}:room:behind:events"
	n := startNode(t, db, Options{})
	c := dial(t, n, "user=1").listen()
	c.subscribe(topic, "")
	emit(t, db, topic, "x")
	c.next()
	for range 600 {
		emitWithoutPublish(t, db, topic, testEvent)
	}
	want := emit(t, db, topic, "y")
	if e := c.next(); e.Type != "room.snapshot" || e.Position != want {
		t.Fatalf("got %+v, want a snapshot at %s", e, want)
	}
}

func TestAnEntryIsRenderedOnce(t *testing.T) {
	h, b := &history{}, newTestBuffer()
	b.merge(h.read(1))
	var late []entry
	for i := range 60 {
		e := h.append()
		if i%7 == 3 {
			late = append(late, e) // its message is lost
			continue
		}
		b.append(e)
		b.append(e)
		read := h.read(backfillMinEntries)
		read.oldHead = b.head()
		if b.merge(read) == mergeTooShort {
			t.Fatal("the gap is larger than expected")
		}
	}
	for _, e := range late {
		b.append(e)
	}
	for _, e := range h.entries {
		if count := b.renderCounts[e.pos]; count != 1 {
			t.Errorf("%v was rendered %d times", e.pos, count)
		}
	}
}

// While the channel is away a failover may undo an event and another one take its number. What
// follows it, and is heard before the list is read, must not be appended to the one that is gone.
func TestNothingIsAppendedToAHistoryThatIsGone(t *testing.T) {
	db := redistest.Single(t)
	topics := []*topic{newTopic(New(db, Options{}), "{r1}:room:away:events")}
	away := topics[0]
	read := func() { away.hub.backfiller.backfill(t.Context(), topics) }
	for range 2 {
		emitWithoutPublish(t, db, away.name, testEvent)
	}
	away.distrustChannel()
	read()
	forkHistory(t, db, away.name, 1)
	emitWithoutPublish(t, db, away.name, testEvent)
	away.distrustChannel()
	for range 3 * backfillMinEntries {
		emitWithoutPublish(t, db, away.name, testEvent)
		e, _ := parseEntry(db.Client.LIndex(t.Context(), away.name, -1).Val())
		away.addEntry(e)
	}
	away.distrustChannel() // the connection ends again
	read()
	for i, text := range db.Client.LRange(t.Context(), away.name, 0, -1).Val() {
		want, _ := parseEntry(text)
		if got, known := away.buffer.positionAt(uint64(i) + 1); !known || got != want.pos {
			t.Errorf("event %d is %v, want %v", i+1, got, want.pos)
		}
	}
	if away.unverified != 0 || len(away.pendingEntries) > 0 {
		t.Errorf("%d reads and %d events are waited for", away.unverified, len(away.pendingEntries))
	}
}

func TestOnlyWhatMayBeNewIsRead(t *testing.T) {
	h := &history{}
	for range 300 {
		h.append()
	}
	r := &backfillRead{topic: newTopic(New(nil, Options{}), "topic")}
	want := func(entries int64, when string) {
		t.Helper()
		r.oldHead = r.buffer.head()
		if got := r.countEntriesToRead(); got != entries {
			t.Errorf("%s: %d entries are read, want %d", when, got, entries)
		}
	}
	want(1, "not loaded")
	render := newTestBuffer().render
	r.buffer.merge(tail{isLong: true, isAll: true}, render)
	want(backfillTailEntries, "empty")
	r.buffer.reset(h.entries[290:], render)
	want(backfillMinEntries, "silent")
	for range 20 {
		h.append()
	}
	newest := h.append()
	r.pendingEntries = []entry{newest}
	want(int64(backfillMinEntries+newest.pos.seq-r.buffer.head().seq), "an event arrived behind a gap")
	r.pendingEntries = []entry{{first: 1 << 40, pos: position{1 << 40, 1}}}
	want(backfillTailEntries, "the gap is huge")
	r.buffer.conflicted = true
	want(backfillTailEntries, "conflicted")
	r.buffer.conflicted, r.pendingEntries, r.wholeTail = false, nil, true
	want(backfillTailEntries, "the whole tail")
}
