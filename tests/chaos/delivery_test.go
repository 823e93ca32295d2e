package chaos

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func openStoreOf(t *testing.T, url string) *redisdb.DB {
	t.Helper()
	db := testkit.Must(redisdb.Open(url))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// waitFor lets a fault last for d: what is tested is a time, not a condition.
func waitFor(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	<-ctx.Done()
}

// TestNoClientMissesAnEventWhileNodesAndTheirStoreFail follows rooms on three nodes, each with a
// proxy before the store, through every fault that leaves the store's data as it is. Each client
// has every event once, in order, and no snapshot.
func TestNoClientMissesAnEventWhileNodesAndTheirStoreFail(t *testing.T) {
	t.Parallel()
	server := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "everysec")
	db := openStoreOf(t, server.URL())
	var proxies []*redistest.Proxy
	var urls []string
	for range 3 {
		p := redistest.StartProxy(t, server.Addr)
		proxies, urls = append(proxies, p), append(urls, "redis://"+p.Addr)
	}
	a := newAudience(t, db, urls)
	rooms, followers := pick(2, 20), pick(6, 15)
	everyProxy := func(do func(*redistest.Proxy)) {
		for _, p := range proxies {
			do(p)
		}
	}
	cut := func(d time.Duration) {
		everyProxy((*redistest.Proxy).Cut)
		waitFor(t, d)
		everyProxy((*redistest.Proxy).Mend)
	}
	for _, fault := range []struct {
		name string
		make func(s *scene)
	}{
		{"10 × CLIENT KILL TYPE pubsub", func(s *scene) {
			for range 10 {
				testkit.Check(t, db.Client.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err())
				s.waitReceived(2)
			}
		}},
		{"3 silent cuts of 300 ms, 3 resets", func(s *scene) {
			for range 3 {
				cut(300 * time.Millisecond)
				everyProxy(func(p *redistest.Proxy) { p.Retarget(server.Addr) })
				s.waitReceived(2)
			}
		}},
		{"a silent cut of 5 s", func(s *scene) {
			cut(5 * time.Second)
			s.waitReceived(2)
		}},
		{"redis-server stopped by SIGSTOP", func(s *scene) {
			server.Pause()
			waitFor(t, pick(3*time.Second, 10*time.Second))
			server.Resume()
			s.waitReceived(2)
		}},
		{"a full output buffer", func(s *scene) {
			overflow(t, s, db, proxies[0])
			s.waitReceived(2)
		}},
		// The nodes have reported by now, and have read that there are others.
		{"a node cut off alone", func(s *scene) {
			a.setAway(1, true)
			proxies[1].Cut()
			redistest.Eventually(t, "its clients were sent to other nodes", func() bool {
				moved, connected := 0, 0
				for _, f := range s.followers {
					f.mu.Lock()
					connected += f.stale
					moved += f.closes[1012]
					f.mu.Unlock()
				}
				return connected > 0 && moved >= connected
			})
			proxies[1].Mend()
			a.setAway(1, false)
			s.waitReceived(2)
		}},
		{"a node killed", func(s *scene) {
			a.replace(0, (*nodetest.Node).Kill)
			s.waitReceived(2)
		}},
		{"a rolling restart of three nodes", func(s *scene) {
			for place := range a.nodes {
				a.replace(place, func(n *nodetest.Node) {
					if status := n.Terminate(); status != 0 {
						t.Errorf("a node ended with status %d:\n%s", status, n.Log())
					}
				})
			}
			s.waitReceived(2)
		}},
	} {
		s := a.begin(rooms, followers)
		s.waitReceived(3)
		fault.make(s)
		s.end(fault.name, false)
	}
}

// overflow has Redis disconnect the subscriber of a node whose buffer is full. What fills it is for
// nobody.
func overflow(t *testing.T, s *scene, db *redisdb.DB, p *redistest.Proxy) {
	t.Helper()
	set := func(limit string) {
		testkit.Check(t, db.Client.ConfigSet(t.Context(), "client-output-buffer-limit", limit).Err())
	}
	set("pubsub 262144 0 0")
	defer set("pubsub 33554432 8388608 60")
	subscribers := func() int {
		list, _ := db.Client.ClientList(t.Context()).Result()
		return strings.Count(list, " sub=") - strings.Count(list, " sub=0 ")
	}
	before := subscribers()
	p.Cut()
	defer p.Mend()
	shard, _ := keys.RoomShard(s.writers[0].room)
	channel := keys.RoomEvents(shard, s.writers[0].room)
	filler := "!nobody.1|1|" + strings.Repeat("x", 60_000)
	redistest.Eventually(t, "Redis has disconnected a subscriber", func() bool {
		for range 20 {
			_ = db.Client.Publish(t.Context(), channel, filler).Err()
		}
		return subscribers() < before
	})
}
