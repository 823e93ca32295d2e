package realtime

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// testFeed has events whose tag is the value of their entry: "<seq>-<nonce>|fed|<tag>".
var testFeed = Feed{
	Render: func(b []byte, text string) ([]byte, string, uint32, error) {
		renderedEntries.Add(1)
		e, _ := parseEntry(text)
		value := text[strings.LastIndexByte(text, '|')+1:]
		tag, err := strconv.ParseUint(value, 10, 32)
		if err != nil {
			return fmt.Appendf(b, `{"type":"gap","position":"%s"}`, e.pos), "gap", 0, errors.New("no number")
		}
		return fmt.Appendf(b, `{"type":"fed","position":"%s","seq":%d}`, e.pos, tag), "fed", uint32(tag), nil
	},
	EncodePosition: func(position string) []byte {
		return fmt.Appendf(nil, `{"type":"position","position":"%s"}`, position)
	},
	EncodeGap: func(position string) []byte { return fmt.Appendf(nil, `{"type":"gap","position":"%s"}`, position) },
}

var renderedEntries atomic.Int64

// feedWriter appends entries to a feed, as the scripts do.
type feedWriter struct {
	t     testing.TB
	db    *redisdb.DB
	topic string
	last  int
}

// write appends as many entries, whose tags are their numbers, and returns the last position.
func (w *feedWriter) write(count int) (last string) {
	w.t.Helper()
	for count > 0 {
		batch := min(count, 500)
		count -= batch
		testkit.Must(w.db.Client.Pipelined(w.t.Context(), func(p redis.Pipeliner) error {
			for range batch {
				w.last++
				last = fmt.Sprintf("%d-%s", w.last, idempotency.NewNonce())
				text := fmt.Sprintf("%s|fed|%d", last, w.last)
				p.RPush(w.t.Context(), w.topic, text)
				p.Do(w.t.Context(), w.db.PublishCommand, w.topic, text)
			}
			return nil
		}))(w.t)
	}
	return last
}

// follow subscribes to a feed and returns the mode and the position of the reply.
func (c *testClient) follow(topic, after string, share ...uint32) (mode, pos string) {
	c.t.Helper()
	m := request{ID: "f", Type: "feed", Topic: topic, After: after}
	if len(share) > 0 {
		m.Of, m.Index = share[0], share[1]
	}
	c.send(m)
	for {
		e := c.next()
		if e.ReplyTo != "f" {
			continue
		}
		var d startData
		testkit.Check(c.t, wire.Unmarshal(e.Data, &d))
		return d.Mode, d.Position
	}
}

// expectFed requires the events with the tags from one to another, in order, of a share.
func (c *testClient) expectFed(from, to int, share ...uint32) (last string) {
	c.t.Helper()
	for tag := from; tag <= to; tag++ {
		if len(share) > 0 && uint32(tag)%share[0] != share[1] {
			continue
		}
		e := c.next()
		for e.Type == "position" || e.Type == "hello" {
			e = c.next()
		}
		if e.Type != "fed" || e.Seq != uint64(tag) {
			c.t.Fatalf("got %s %d at %s, want %d", e.Type, e.Seq, e.Position, tag)
		}
		last = e.Position
	}
	return last
}

func TestFeedIsResumedFromAnyEntryThatTheListHas(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		n, other := startNode(t, db, Options{}), startNode(t, db, Options{})
		w := &feedWriter{t: t, db: db, topic: "{r1}:feed:1"}
		follower := dial(t, n, "user=1").listen()
		if mode, pos := follower.follow(w.topic, ""); mode != "live" || pos != "0-0" {
			t.Fatalf("an empty feed begins %s at %s", mode, pos)
		}
		first := w.write(1)
		w.write(4999)
		follower.expectFed(1, 5000)
		for name, after := range map[string]string{"the start": "0-0", "the first": first} {
			far := dial(t, other, "user=2").listen()
			mode, pos := far.follow(w.topic, after)
			if mode != "resume" || pos != after {
				t.Errorf("from %s it is %s at %s", name, mode, pos)
			}
			begin := map[string]int{"0-0": 1, first: 2}[after]
			far.expectFed(begin, w.last)
			w.write(10)
			far.expectFed(w.last-9, w.last)
		}
		follower.expectFed(5001, w.last)
		if stats := other.Stats(); stats.FeedPages > 25 {
			t.Errorf("two clients that were far behind had %d pages read", stats.FeedPages)
		}
	})
}

func TestLostPositionsOfAFeedAreGaps(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		n := startNode(t, db, Options{})
		w := &feedWriter{t: t, db: db, topic: "{r1}:feed:1"}
		w.write(600)
		testkit.Check(t, db.Client.LTrim(t.Context(), w.topic, 100, -1).Err())
		for _, after := range []string{"0-0", "5-aaaaaaaa", "300-aaaaaaaa", "600-aaaaaaaa", "700-aaaaaaaa", "x"} {
			c := dial(t, n, "user=1").listen()
			if mode, pos := c.follow(w.topic, after); mode != "gap" || !strings.HasPrefix(pos, "600-") {
				t.Errorf("after %s it is %s at %s", after, mode, pos)
			}
			w.last = 600
		}
		oldest, _ := parseEntry(db.Client.LIndex(t.Context(), w.topic, 0).Val())
		c := dial(t, n, "user=1").listen()
		if mode, _ := c.follow(w.topic, oldest.pos.String()); mode != "resume" {
			t.Errorf("after the oldest entry it is %s", mode)
		}
		c.expectFed(102, 600)

		// The store loses the newest entries while the client is subscribed.
		testkit.Check(t, db.Client.LTrim(t.Context(), w.topic, 0, -11).Err())
		w.last = 590
		w.write(3)
		for e := c.next(); e.Type != "gap"; e = c.next() {
			if e.Seq > 593 {
				t.Fatalf("got %d without a gap", e.Seq)
			}
		}
		w.write(5)
		for e := c.next(); e.Seq != 598; e = c.next() {
			if e.Type != "fed" && e.Type != "gap" {
				t.Fatalf("got %+v", e)
			}
		}
	})
}

// After a failover of the store a call that is repeated gets its number again. What came before it
// is another event, which the client must hear of.
func TestAnEntryThatComesBackDoesNotHideALostHistory(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		n := startNode(t, db, Options{})
		w := &feedWriter{t: t, db: db, topic: "{r1}:feed:1"}
		clients := []*testClient{dial(t, n, "user=1").listen(), dial(t, n, "user=2").listen()}
		for i, c := range clients {
			c.follow(w.topic, "", uint32(i+1), 0) // the second one gets every other event
		}
		w.write(10)
		for i, c := range clients {
			c.expectFed(1, 10, uint32(i+1), 0)
		}
		last := db.Client.LIndex(t.Context(), w.topic, -1).Val()
		testkit.Check(t, db.Client.LTrim(t.Context(), w.topic, 0, 6).Err())
		list := []any{"8-bbbbbbbb|fed|8", "9-bbbbbbbb|fed|9", last}
		testkit.Check(t, db.Client.RPush(t.Context(), w.topic, list...).Err())
		for _, text := range list {
			testkit.Check(t, db.Client.Do(t.Context(), db.PublishCommand, w.topic, text).Err())
		}
		for _, c := range clients {
			if e := c.next(); e.Type != "gap" || !strings.HasPrefix(last, e.Position+"|") {
				t.Errorf("got %+v, want a gap at %s", e, last)
			}
		}
		w.write(2)
		for i, c := range clients {
			c.expectFed(11, 12, uint32(i+1), 0)
		}
	})
}

// A feed whose numbers begin anew behind its old entries is a gap, not silence.
func TestAFeedThatCountsAnewIsAGap(t *testing.T) {
	db := redistest.Single(t)
	n := startNode(t, db, Options{})
	w := &feedWriter{t: t, db: db, topic: "{r1}:feed:1"}
	w.write(2)
	c := dial(t, n, "user=1").listen()
	c.follow(w.topic, "")
	w.write(8)
	c.expectFed(3, 10)
	w.last = 0
	first := w.write(1)
	if e := c.next(); e.Type != "gap" || e.Position != first {
		t.Errorf("got %+v, want a gap at %s", e, first)
	}
	w.write(1)
	c.expectFed(2, 2)
}

// Two filters may select the same first and last event, and others between them.
func TestFramesOfAFeedAreThoseOfTheirFilter(t *testing.T) {
	db := redistest.Single(t)
	n := startNode(t, db, Options{})
	w := &feedWriter{t: t, db: db, topic: "{r1}:feed:1"}
	w.write(9)
	for _, share := range [][]uint32{{1, 0}, {2, 1}, {4, 1}, {1, 0}} {
		c := dial(t, n, "user=1").listen()
		c.follow(w.topic, "0-0", share...)
		c.expectFed(1, 9, share...)
	}
}

// Who gets events knows its position by them.
func TestNoPositionIsToldBetweenEvents(t *testing.T) {
	db := redistest.Single(t)
	n := startNode(t, db, Options{})
	w := &feedWriter{t: t, db: db, topic: "{r1}:feed:1"}
	c := dial(t, n, "user=1").listen()
	c.follow(w.topic, "", 2, 0)
	w.write(1200)
	for next := uint64(2); next <= 1200; next += 2 {
		if e := c.next(); e.Seq != next {
			t.Fatalf("got %+v before the event %d", e, next)
		}
	}
	for _, next := range []uint64{1202, 1204} {
		w.write(3 - int(next-1202)) // the last one of them is not of its share
		for e := c.next(); e.Seq != next; e = c.next() {
			t.Errorf("got %+v before the event %d", e, next)
		}
	}
}

// 64 shares get each event once, in order, from one rendering; two clients of one share get the
// same frames.
func TestSharesOfAFeedDivideItsEvents(t *testing.T) {
	const shares, events = 64, 3000
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		n := startNode(t, db, Options{})
		w := &feedWriter{t: t, db: db, topic: "{r1}:feed:1"}
		w.write(1)
		var clients []*testClient
		for i := range shares + 1 {
			c := dial(t, n, fmt.Sprintf("user=%d", i+1)).listen()
			c.follow(w.topic, "", shares, uint32(i%shares))
			clients = append(clients, c)
		}
		before := renderedEntries.Load()
		w.write(events)
		var all sync.WaitGroup
		for i, c := range clients {
			all.Go(func() { c.expectFed(2, events+1, shares, uint32(i%shares)) })
		}
		all.Wait()
		if rendered := renderedEntries.Load() - before; rendered > events*12/10 {
			t.Errorf("%d events were rendered %d times", events, rendered)
		}
	})
}

func TestSubscriberOfASmallShareLearnsItsPosition(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{})
	w := &feedWriter{t: t, db: n.db, topic: "{r1}:feed:1"}
	w.write(1)
	c := dial(t, n, "user=1").listen()
	c.follow(w.topic, "", 1<<30, 1<<29) // none of them
	last := w.write(1200)
	at, _ := parsePosition(last)
	var learned position
	for learned.seq+positionAfterSkipped <= at.seq {
		e := c.next()
		if e.Type != "position" {
			t.Fatalf("got %+v", e)
		}
		learned, _ = parsePosition(e.Position)
	}
	again := dial(t, n, "user=2").listen()
	if mode, _ := again.follow(w.topic, learned.String()); mode != "resume" {
		t.Errorf("after the position it is %s", mode)
	}
	again.expectFed(int(learned.seq)+1, w.last)
}

func TestEntryOfAFeedThatCannotBeReadIsAGapForAll(t *testing.T) {
	db := redistest.Single(t)
	n := startNode(t, db, Options{})
	w := &feedWriter{t: t, db: db, topic: "{r1}:feed:1"}
	start := w.write(1)
	c := dial(t, n, "user=1").listen()
	c.follow(w.topic, "", 2, 0)
	text := "2-aaaaaaaa|fed|of a newer node"
	testkit.Check(t, db.Client.RPush(t.Context(), w.topic, text).Err())
	testkit.Check(t, db.Client.Publish(t.Context(), w.topic, text).Err())
	w.last = 2
	w.write(2)
	for _, client := range []*testClient{c, dial(t, n, "user=2").listen()} {
		if client != c {
			client.follow(w.topic, start, 2, 0)
		}
		e := client.next()
		for e.Type == "hello" {
			e = client.next()
		}
		if e.Type != "gap" || e.Position != "2-aaaaaaaa" {
			t.Errorf("got %+v", e)
		}
		client.expectFed(3, 4, 2, 0)
	}
}

// The connections to Redis break while events are written, and messages of the channel are lost.
func TestFeedHasNoGapWhenRedisIsCutOff(t *testing.T) {
	server := redistest.StartForTest(t)
	p := startProxy(t, server.Addr)
	n := startNode(t, openAt(t, "redis://"+p.listener.Addr().String()),
		Options{ProbeAfter: 100 * time.Millisecond, ProbeTimeout: 200 * time.Millisecond})
	w := &feedWriter{t: t, db: openAt(t, server.URL()), topic: "{r1}:feed:1"}
	w.write(1)
	c := dial(t, n, "user=1").listen()
	c.follow(w.topic, "")
	for range 4 {
		w.write(100)
		p.disconnect()
		w.write(1500) // more than the end of the list that is read first
		p.reconnect()
		w.write(100)
	}
	c.expectFed(2, w.last)
}

func TestSlowSubscriberOfAFeedIsClosedAndResumesWithoutAGap(t *testing.T) {
	db := redistest.Single(t)
	n := startNode(t, db, Options{WriteTimeout: time.Second})
	w := &feedWriter{t: t, db: db, topic: "{r1}:feed:1"}
	start := w.write(1)
	slow, _ := tryDial(t, n, "user=1", &websocket.Dialer{NetDial: func(network, addr string) (net.Conn, error) {
		conn, err := net.Dial(network, addr)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(16 << 10)
		}
		return conn, err
	}})
	slow.send(request{ID: "f", Type: "feed", Topic: w.topic})
	waitUntil(t, "subscribed", func() bool { return n.firstClient(t).IsSubscribed(w.topic) })
	fast, room := dial(t, n, "user=2").listen(), dial(t, n, "user=3").listen()
	fast.follow(w.topic, "")
	const roomTopic = "{r1}:room:beside:events"
	room.subscribe(roomTopic, "")
	for n.Stats().SlowCloses == 0 {
		if w.last > 200_000 {
			t.Fatal("the slow one is still connected")
		}
		from := w.last + 1
		if w.write(1); from < 30_000 { // enough for what the kernel takes
			w.write(499)
		}
		fast.expectFed(from, w.last)
		emit(t, db, roomTopic, "")
		room.nextEvent() // as before
	}
	slow.listen()
	last, position := 1, start
	for open := true; open; {
		select {
		case e := <-slow.in:
			if e.Type == "fed" {
				if e.Seq != uint64(last+1) {
					t.Fatalf("after %d came %d", last, e.Seq)
				}
				last, position = last+1, e.Position
			}
		case <-slow.end:
			open = len(slow.in) > 0
		}
	}
	if code := slow.waitCloseCode(); code != CloseTooSlow {
		t.Fatalf("it is closed with %d (%v)", code, slow.err)
	}
	back := dial(t, n, "user=1").listen()
	if mode, _ := back.follow(w.topic, position); mode != "resume" {
		t.Fatalf("it goes on %s", mode)
	}
	back.expectFed(last+1, w.last)
}

// A socket of a server follows as many rooms as it may, and none is found by a search through all.
func TestSocketOfAServerFollowsTenThousandTopics(t *testing.T) {
	const topics, each = 10_000, 1_000
	db := redistest.Single(t)
	n := startNode(t, db, Options{}, Limits{
		MaxFrameBytes: 64 << 10, FramesPerSecond: 2000, BurstFrames: 4000, TopicsPerConnection: topics,
	})
	c := dial(t, n, "user=1").listen()
	client := n.firstClient(t)
	topicOf := func(i int) string { return fmt.Sprintf("{r1}:room:%d:events", i) }
	subscriptionsFrom := func(first, count int) (list []Subscription) {
		for i := range count {
			list = append(list, Subscription{Topic: topicOf(first + i)})
		}
		return list
	}
	noReply := func(outcomes []SubscribeOutcome) []byte {
		for _, o := range outcomes {
			testkit.Report(t, o.Err)
		}
		return nil
	}
	for first := 0; first < topics; first += each {
		testkit.Check(t, client.SubscribeAll(t.Context(), subscriptionsFrom(first, each), noReply))
	}
	testkit.WantError(t, testkit.ErrorOf(client.Subscribe(t.Context(), Subscription{Topic: topicOf(topics)})),
		apierror.RateLimited)
	for _, i := range []int{0, 4_711, topics - 1} {
		want := emit(t, db, topicOf(i), "")
		if e := c.nextEvent(); e.Position != want {
			t.Errorf("got %+v, want %s of topic %d", e, want, i)
		}
	}
	for i := range topics / 2 {
		if !client.Unsubscribe(topicOf(2 * i)) {
			t.Fatalf("topic %d was not followed", 2*i)
		}
	}
	for i := range topics {
		if followed := client.IsSubscribed(topicOf(i)); followed != (i%2 == 1) {
			t.Fatalf("topic %d is followed: %v", i, followed)
		}
	}
	emit(t, db, topicOf(0), "")
	if want, e := emit(t, db, topicOf(1), ""), c.nextEvent(); e.Position != want {
		t.Errorf("got %+v, want %s", e, want)
	}
}

// testSource is a log in memory.
type testSource struct {
	mu      sync.Mutex
	first   int64 // number of the oldest entry
	entries []SourceEntry
	err     error
}

func (s *testSource) add(count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range count {
		number := s.first + int64(len(s.entries))
		e := SourceEntry{Position: fmt.Sprintf("%d-%s", number, idempotency.NewNonce()), Type: "fed", Tag: uint32(number)}
		if number%2 == 0 { // nobody gets the others
			e.JSON = fmt.Appendf(nil, `{"type":"fed","position":"%s","seq":%d}`, e.Position, number)
		}
		s.entries = append(s.entries, e)
	}
}

func (s *testSource) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *testSource) Last(context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first + int64(len(s.entries)) - 1, s.err
}

func (s *testSource) ReadFrom(_ context.Context, number int64, count int) ([]SourceEntry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	from := min(max(0, number-s.first), int64(len(s.entries)))
	return slices.Clone(s.entries[from:min(from+int64(count), int64(len(s.entries)))]), nil
}

func TestFeedOfASourceIsReadByItsNumbers(t *testing.T) {
	source := &testSource{first: 1}
	n := startNode(t, redistest.Single(t), Options{SourceInterval: 10 * time.Millisecond})
	feed := testFeed
	feed.Source = source
	follow := func(after string) (*testClient, SubscribeResult) {
		t.Helper()
		n.mu.Lock()
		n.clients = nil
		n.mu.Unlock()
		c := dial(t, n, "user=1").listen()
		s := Subscription{Topic: "log", AfterPosition: after, Feed: &feed}
		return c, testkit.Must(n.firstClient(t).Subscribe(t.Context(), s))(t)
	}
	expect := func(c *testClient, from, to int) (last string) {
		t.Helper()
		return c.expectFed(from, to, 2, 0)
	}
	c, start := follow("")
	if start.Mode != ModeLive || start.Position != "0-0" {
		t.Errorf("an empty log begins %s at %s", start.Mode, start.Position)
	}
	source.add(10)
	tenth := expect(c, 1, 10)
	source.add(3000)
	expect(c, 11, 3010)
	for _, after := range []string{"0-0", tenth} {
		far, start := follow(after)
		if start.Mode != ModeResume {
			t.Errorf("after %s it is %s", after, start.Mode)
		}
		expect(far, map[string]int{"0-0": 1, tenth: 11}[after], 3010)
	}
	if _, start := follow("10-aaaaaaaa"); start.Mode != ModeGap {
		t.Errorf("after a position of another history it is %s", start.Mode)
	}
	// The store is down for a while.
	source.change(func() { source.err = errors.New("down") })
	source.add(20)
	source.change(func() { source.err = nil })
	expect(c, 3011, 3030)
	// The archive takes what all have.
	source.change(func() { source.first, source.entries = 3031, nil })
	source.add(4)
	expect(c, 3031, 3034)
	// The store loses its newest entries.
	source.change(func() { source.entries = source.entries[:2] })
	source.add(6)
	if e := c.next(); e.Type != "gap" {
		t.Errorf("got %+v, want a gap", e)
	}
	source.add(4)
	last := 0
	for last != 3042 {
		e := c.next()
		if e.Type != "fed" || int(e.Seq) <= last {
			t.Fatalf("got %+v after %d", e, last)
		}
		last = int(e.Seq)
	}
}
