package realtime

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
