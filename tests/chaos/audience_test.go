package chaos

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// audience is nodes, each with its own way to the store, and rooms that clients follow.
type audience struct {
	t        *testing.T
	db       *redisdb.DB // the store, without a detour
	urls     []string    // of the store, for each node
	settings []string
	mu       sync.RWMutex
	nodes    []*nodetest.Node
	away     map[int]bool // places of nodes to which nobody connects
	players  int
}

// newAudience starts a node for each address of the store.
func newAudience(t *testing.T, db *redisdb.DB, urls []string, settings ...string) *audience {
	t.Helper()
	a := &audience{
		t: t, db: db, urls: urls, away: map[int]bool{},
		settings: append([]string{"PARLOR_RATE_LIMITS=off", "PARLOR_ACCESS_TTL=1h", "PARLOR_DRAIN_DELAY=100ms"}, settings...),
	}
	for _, url := range urls {
		a.nodes = append(a.nodes, nodetest.Start(t, url, a.settings...))
	}
	a.nodes[0].Must(t, 201, "POST", "/api/v1/admin/games", nodetest.AdminKey, map[string]any{"name": "Quiz"})
	return a
}

// node returns the n-th node of those that balancers send somebody to, counted around.
func (a *audience) node(n int) *nodetest.Node {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for i := range a.nodes {
		if place := (n + i) % len(a.nodes); !a.away[place] {
			return a.nodes[place]
		}
	}
	return a.nodes[n%len(a.nodes)]
}

// setAway takes a node out of what balancers know, or puts it back.
func (a *audience) setAway(place int, away bool) {
	a.mu.Lock()
	a.away[place] = away
	a.mu.Unlock()
}

// replace ends a node and starts another one in its place.
func (a *audience) replace(place int, end func(*nodetest.Node)) {
	a.t.Helper()
	a.setAway(place, true)
	end(a.nodes[place])
	n := nodetest.Start(a.t, a.urls[place], a.settings...)
	a.mu.Lock()
	a.nodes[place] = n
	a.away[place] = false
	a.mu.Unlock()
}

func (a *audience) guest() (token string) {
	a.t.Helper()
	a.players++
	body := map[string]any{"gameId": gameID, "username": fmt.Sprintf("Player %d", a.players)}
	return a.node(a.players).Must(a.t, 201, "POST", "/api/v1/auth/guest", "", body).Body["accessToken"].(string)
}

// scene is rooms with followers on every node, while writers change the rooms.
type scene struct {
	*audience
	writers   []*writer
	followers []*follower
	stop      func() // ends the writers
}

// pace is the time between two changes of one room.
const pace = 40 * time.Millisecond

// begin opens rooms, has so many clients follow each, and changes them until stop is called.
func (a *audience) begin(rooms, followersPerRoom int) *scene {
	a.t.Helper()
	s := &scene{audience: a}
	for range rooms {
		host := a.guest()
		created := a.node(0).Must(a.t, 201, "POST", "/api/v1/game-session/create", host, map[string]any{"maxPlayers": 2})
		room := created.Body["roomId"].(string)
		s.writers = append(s.writers, &writer{audience: a, room: room, token: host})
		for i := range followersPerRoom {
			f := &follower{
				audience: a, room: room, token: a.guest(), turn: i, done: make(chan struct{}), position: "0-0",
				sinceReset: map[int64]string{}, closes: map[int]int{},
			}
			s.followers = append(s.followers, f)
			go f.run()
		}
	}
	a.t.Cleanup(func() {
		for _, f := range s.followers {
			f.stop()
		}
	})
	redistest.Eventually(a.t, "every follower has the first event", func() bool {
		return !slices.ContainsFunc(s.followers, func(f *follower) bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.received == 0
		})
	})
	ctx, cancel := context.WithCancel(a.t.Context())
	var running sync.WaitGroup
	for i, w := range s.writers {
		running.Go(func() { w.run(ctx, i, pace) })
	}
	s.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	a.t.Cleanup(s.stop)
	return s
}

// waitReceived waits until every follower has received so many events more.
func (s *scene) waitReceived(more int) {
	s.t.Helper()
	want := map[*follower]int{}
	for _, f := range s.followers {
		f.mu.Lock()
		want[f] = f.received + more
		f.mu.Unlock()
	}
	redistest.Eventually(s.t, "followers receive events", func() bool {
		return !slices.ContainsFunc(s.followers, func(f *follower) bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.received < want[f] && f.seq < maxChanges
		})
	})
}

// history returns the positions of a room's events, by seq, and the last of them.
func (s *scene) history(room string) (positions map[int64]string, last int64) {
	shard, _ := keys.RoomShard(room)
	entries, err := s.db.Client.LRange(s.t.Context(), keys.RoomEvents(shard, room), 0, -1).Result()
	if err != nil {
		return nil, 0
	}
	positions = map[int64]string{}
	for _, entry := range entries {
		rendered := testkit.Must(events.Render(entry, room))(s.t)
		for _, e := range rendered {
			positions[e.Seq] = e.Position
			last = e.Seq
		}
	}
	return positions, last
}

// end stops the writers, waits until every follower has the last event of its room, and checks what
// each has received. mayReset says that snapshots may have replaced events.
func (s *scene) end(name string, mayReset bool) {
	s.t.Helper()
	s.stop()
	total, resets, reconnects, lost := 0, 0, 0, 0
	for _, f := range s.followers {
		var positions map[int64]string
		var last int64
		testkit.Report(s.t, redistest.Poll(time.Minute, func() error {
			positions, last = s.history(f.room)
			f.mu.Lock()
			defer f.mu.Unlock()
			if last == 0 || f.position != positions[last] {
				return fmt.Errorf("a follower is at %s, and the room at %s", f.position, positions[last])
			}
			return nil
		}), "%s", name)
		f.mu.Lock()
		for _, v := range f.violations {
			lost++
			s.t.Errorf("%s: %s", name, v)
		}
		for seq, position := range f.sinceReset {
			if positions[seq] != position {
				s.t.Errorf("%s: the event %s was received, and the history has %q", name, position, positions[seq])
			}
		}
		if f.snapshots > 0 && !mayReset {
			s.t.Errorf("%s: %d snapshots replaced events that were in the list", name, f.snapshots)
		}
		if int64(f.received) != last && !mayReset {
			s.t.Errorf("%s: %d events were received of %d", name, f.received, last)
		}
		total, resets, reconnects = total+f.received, resets+f.snapshots, reconnects+f.connects-1
		f.mu.Unlock()
		f.stop()
	}
	report(s.t, "%s: %d clients, %d deliveries, %d lost, doubled or out of order, %d snapshots, %d reconnections", name,
		len(s.followers), total, lost, resets, reconnects)
}
