package realtime

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
)

// staleOptions notice a silent store a hundred times as fast as by default.
func staleOptions() Options {
	return Options{
		ProbeAfter: 100 * time.Millisecond, ProbeTimeout: 200 * time.Millisecond, StaleAfter: 600 * time.Millisecond,
		MoveAfter: 1200 * time.Millisecond, MoveSpread: 300 * time.Millisecond, AskEvery: 100 * time.Millisecond,
	}
}

// expectStale returns sinceMs of the next frame, which must be server.stale.
func (c *testClient) expectStale() (sinceMS int) {
	c.t.Helper()
	e := c.next()
	var data struct {
		SinceMS int `json:"sinceMs"`
	}
	if err := wire.Unmarshal(e.Data, &data); err != nil || e.Type != "server.stale" {
		c.t.Fatalf("got %+v, want server.stale: %v", e, err)
	}
	return data.SinceMS
}

func TestClientsAreToldThatTheStoreIsSilentAndMissNothing(t *testing.T) {
	t.Parallel()
	server := redistest.StartForTest(t)
	topic := "{r1}:room:stale:events"
	n := startNode(t, openAt(t, server.URL()), staleOptions())
	c := dial(t, n, "user=1").listen()
	other := dial(t, n, "user=2").listen() // subscribes to nothing
	other.next()
	c.subscribe(topic, "")
	for round := range uint64(2) {
		server.Pause()
		if since := c.expectStale(); since < 600 || since > 2000 {
			t.Errorf("told after %d ms", since)
		}
		// No other node can be asked: the sockets stay, however long it takes.
		waitUntil(t, "they would have been closed", func() bool { return n.Stats().StoreSilence > 1600*time.Millisecond })
		server.Resume()
		if since := c.expectStale(); since != 0 {
			t.Fatalf("told %d ms when the store was back", since)
		}
		emit(t, openAt(t, server.URL()), topic, "x")
		if e := c.next(); e.Seq != round+1 {
			t.Fatalf("got %+v, want seq %d", e, round+1)
		}
	}
	select {
	case e := <-other.in:
		t.Errorf("a client without a subscription got %+v", e)
	case <-other.end:
		t.Errorf("a client without a subscription was closed: %v", other.err)
	default:
	}
	if s := n.Stats(); s.StaleEpisodes != 2 || s.MovedClients != 0 || s.StoreSilence > 600*time.Millisecond {
		t.Errorf("%+v", s)
	}
}

func TestOnlyANodeThatIsCutOffAloneSendsItsClientsAway(t *testing.T) {
	t.Parallel()
	server := redistest.StartForTest(t)
	topic := "{r1}:room:away:events"
	start := func(otherServes func() bool) (*testNode, []*testClient) {
		o := staleOptions()
		o.OtherServes = func(context.Context) bool { return otherServes() }
		n := startNode(t, openAt(t, server.URL()), o)
		var clients []*testClient
		for i := range 20 {
			c := dial(t, n, fmt.Sprint("user=", i)).listen()
			c.subscribe(topic, "")
			clients = append(clients, c)
		}
		return n, clients
	}
	// One that has the store back a moment before this node is not a reason.
	var asked atomic.Int64
	together, staying := start(func() bool { return asked.Add(1)%2 == 0 })
	one, leaving := start(func() bool { return true })
	server.Pause()
	var first, last time.Time
	for _, c := range leaving {
		c.expectStale()
	}
	for i, c := range leaving {
		if code := c.waitCloseCode(); code != CloseRestart {
			t.Fatalf("client %d was closed with %d", i, code)
		}
		if last = time.Now(); i == 0 {
			first = last
		}
	}
	if d := last.Sub(first); d > 3*time.Second {
		t.Errorf("the sockets were closed over %v", d)
	}
	if s := one.Stats(); s.MovedClients != 20 {
		t.Errorf("%d sockets were closed", s.MovedClients)
	}
	// One that comes back meanwhile gets the message, and is not closed again.
	back := dial(t, one, "user=1").listen()
	back.next()
	server.Resume()
	for _, c := range staying {
		c.expectStale()
		if since := c.expectStale(); since != 0 {
			t.Fatalf("told %d ms when the store was back", since)
		}
	}
	back.subscribe(topic, "")
	if s := together.Stats(); s.MovedClients != 0 || s.Clients != 20 || asked.Load() < 4 {
		t.Errorf("a node whose peers have no store, asked %d times: %+v", asked.Load(), s)
	}
}

func TestSocketsWhoseTurnHasNotComeStayWhenTheStoreIsHeard(t *testing.T) {
	t.Parallel()
	server := redistest.StartForTest(t)
	o := staleOptions()
	o.MoveSpread, o.OtherServes = time.Hour, func(context.Context) bool { return true }
	n := startNode(t, openAt(t, server.URL()), o)
	c := dial(t, n, "user=1").listen()
	c.subscribe("{r1}:room:turn:events", "")
	server.Pause()
	c.expectStale()
	waitUntil(t, "the sockets are being closed", func() bool { return n.Stats().StoreSilence > 1300*time.Millisecond })
	server.Resume()
	if since := c.expectStale(); since != 0 {
		t.Fatalf("told %d ms when the store was back", since)
	}
	emit(t, openAt(t, server.URL()), "{r1}:room:turn:events", "x")
	c.nextEvent()
}

// A node that did not run has not listened. Its clients are not sent away for that.
func TestSilenceIsCountedWhileTheNodeRuns(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		h := New(db, Options{})
		w := h.staleWatch
		h.counters.topics.Add(1)
		w.markHeard()
		w.tick()
		for range 11 {
			w.tick()
		}
		if w.stale {
			t.Fatalf("stale after %v", w.silence())
		}
		w.tick()
		if !w.stale || w.silence() != h.options.StaleAfter {
			t.Fatalf("not stale after %v", w.silence())
		}
		w.markHeard()
		w.tick()
		if w.stale || w.silence() != 0 {
			t.Error("stale although something was heard")
		}
	})
}
