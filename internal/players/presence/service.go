package presence

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// Options are the settings of presence. A zero field means the default, which its comment ends
// with.
type Options struct {
	Log         *slog.Logger  // slog.Default()
	Grace       time.Duration // how long the others should wait for a player who is gone: 10 s
	Lease       time.Duration // how long a lease lasts after a renewal; it is renewed four times as often: 8 s
	Linger      time.Duration // after which the last socket of a player counts as lost: 2 s
	DrainLinger time.Duration // the same while the node drains: 10 s
	RepeatAfter time.Duration // after which a node repeats what it has in a room: 1 min
}

func (o Options) withDefaults() Options {
	o.Log = cmp.Or(o.Log, slog.Default())
	o.Grace = cmp.Or(o.Grace, 10*time.Second)
	o.Lease = cmp.Or(o.Lease, 8*time.Second)
	o.Linger = cmp.Or(o.Linger, 2*time.Second)
	o.DrainLinger = cmp.Or(o.DrainLinger, 10*time.Second)
	o.RepeatAfter = cmp.Or(o.RepeatAfter, time.Minute)
	return o
}

const (
	maxRooms     = 128                    // in one round trip
	maxUsers     = 256                    // in one call: as many as a room has seats
	retryDelay   = 500 * time.Millisecond // after a failure
	storeTimeout = 3 * time.Second        // of one round trip
	// settleDelay is how long a node that lost its lease waits before it stores its players again. The
	// sockets that died while the node was frozen are noticed in that time.
	settleDelay = time.Second
)

// Service has the players of one node. It is the realtime.Observer of the node's sockets. It is
// safe for concurrent use.
type Service struct {
	store   store
	options Options
	wakeup  chan struct{}
	stored  atomic.Int64 // players in rooms that the store has as connected by this node

	mu        sync.Mutex
	rooms     map[string]*room // by topic
	queue     []*room          // have something to store
	lingering []lingering      // the first ends first
	linger    time.Duration

	// Owned by Run.
	lease        string
	number       int64 // of the last round trip
	shards       shardSet
	renewedAt    time.Time // of the last renewal that succeeded
	renewedSince time.Time // since when there was no gap
	renewFails   bool
	// isLeaseStored is set when the lease was renewed once, so that others notice when it is not.
	isLeaseStored bool
	notBefore     time.Time // nothing is stored before
	sweepRunning  atomic.Bool
	sweeps        sync.WaitGroup
}

// room is a room that sockets of this node follow, or followed a moment ago.
type room struct {
	at         location
	members    map[int64]*member
	changed    []int64 // members of whom something is to be stored
	repeat     bool    // everything is to be stored
	queued     bool
	repeatedAt time.Time
}

// member is a player with sockets that follow a room, seated or not.
type member struct {
	sockets   int
	isChanged bool      // in room.changed
	isStored  bool      // the store has the player as connected by the lease, as far as is known
	isGone    bool      // the last socket counts as lost
	leavesAt  time.Time // when it will; zero while there is one
}

// lingering is a member without a socket.
type lingering struct {
	room   *room
	userID int64
	until  time.Time
}

// New returns the presence of a node. It stores nothing until Run is called.
func New(db *redisdb.DB, o Options) *Service {
	o = o.withDefaults()
	return &Service{
		store: store{db, o.Grace}, options: o, wakeup: make(chan struct{}, 1), rooms: map[string]*room{},
		linger: o.Linger, lease: idempotency.NewNonce(), shards: shardSet{},
	}
}

// Connected returns how many players in rooms the node has, as the store knows them.
func (s *Service) Connected() int { return int(s.stored.Load()) }

// Drain makes the node wait longer before it counts a socket as lost.
func (s *Service) Drain() {
	s.mu.Lock()
	s.linger = max(s.linger, s.options.DrainLinger)
	s.mu.Unlock()
}

// Subscribed counts a socket of a player. It ignores topics that are no rooms.
func (s *Service) Subscribed(topic string, userID int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rooms[topic]
	if r == nil {
		at, ok := locate(topic)
		if !ok {
			return
		}
		r = &room{at: at, members: map[int64]*member{}, repeatedAt: time.Now()}
		s.rooms[topic] = r
	}
	m := r.members[userID]
	if m == nil {
		m = &member{isGone: true}
		r.members[userID] = m
	}
	m.sockets++
	if m.leavesAt = (time.Time{}); m.isGone {
		m.isGone = false
		s.markChanged(r, userID, m)
	}
}

// Unsubscribed is called once for each call of Subscribed.
func (s *Service) Unsubscribed(topic string, userID int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rooms[topic]
	if r == nil {
		return
	}
	m := r.members[userID]
	if m.sockets--; m.sockets == 0 {
		m.leavesAt = time.Now().Add(s.linger)
		s.lingering = append(s.lingering, lingering{r, userID, m.leavesAt})
		if len(s.lingering) == 1 {
			s.wake()
		}
	}
}

// EventAdded handles the events that change who is connected: a player takes a seat, or a room
// ends.
func (s *Service) EventAdded(topic, eventType string, eventJSON []byte) {
	switch eventType {
	case events.RoomJoined.Name:
		userID, ok := events.JoinedUserID(eventJSON)
		s.mu.Lock()
		defer s.mu.Unlock()
		r := s.rooms[topic]
		if r == nil || !ok {
			return
		}
		if m := r.members[userID]; m != nil && !m.isGone {
			s.markChanged(r, userID, m)
		}
	case events.RoomFinished.Name, events.RoomCancelled.Name:
		s.mu.Lock()
		defer s.mu.Unlock()
		if r := s.rooms[topic]; r != nil {
			r.repeat = true
			s.enqueue(r)
		}
	}
}

// markChanged has a member stored. Service.mu must be held.
func (s *Service) markChanged(r *room, userID int64, m *member) {
	if !m.isChanged {
		m.isChanged = true
		r.changed = append(r.changed, userID)
	}
	s.enqueue(r)
}

// enqueue has a room stored. Service.mu must be held.
func (s *Service) enqueue(r *room) {
	if !r.queued {
		r.queued = true
		s.queue = append(s.queue, r)
	}
	s.wake()
}

func (s *Service) wake() {
	select {
	case s.wakeup <- struct{}{}:
	default:
	}
}

// setStored records what the store knows of a member. Service.mu must be held.
func (s *Service) setStored(m *member, stored bool) {
	switch {
	case stored && !m.isStored:
		s.stored.Add(1)
	case !stored && m.isStored:
		s.stored.Add(-1)
	}
	m.isStored = stored
}

// removeMember forgets a member, and the room with the last one. Service.mu must be held.
func (s *Service) removeMember(r *room, userID int64, m *member) {
	s.setStored(m, false)
	delete(r.members, userID)
	if len(r.members) == 0 && s.rooms[r.at.list] == r {
		delete(s.rooms, r.at.list)
	}
}

// Run renews the lease and stores changes until ctx ends. Then it renews the lease a last time;
// connections that remain end with it. So the players of a stopping node have that long to open a
// socket elsewhere.
func (s *Service) Run(ctx context.Context) error {
	defer s.sweeps.Wait()
	tick := time.NewTicker(s.options.Lease / 4)
	defer tick.Stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	s.renew(ctx)
	for {
		select {
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
			defer cancel()
			_, _ = s.store.renew(ctx, s.lease, s.options.Lease, len(s.shards))
			return nil
		case <-tick.C:
			s.renew(ctx)
			s.repeatSome(time.Now())
		case <-s.wakeup:
		case <-timer.C:
		}
		next := s.expireLingering(time.Now())
		if s.storeChanges(ctx) {
			next = min(next, retryDelay)
		}
		timer.Reset(next)
	}
}

// expireLingering notes the members whose last socket counts as lost now. It returns in how long
// the next one does, at most an hour.
func (s *Service) expireLingering(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, l := range s.lingering {
		if l.until.After(now) {
			s.lingering = s.lingering[i:]
			return l.until.Sub(now)
		}
		m := l.room.members[l.userID]
		if m == nil || !m.leavesAt.Equal(l.until) {
			continue // the player is back, or left again later
		}
		m.isGone = true
		if m.isStored || m.isChanged {
			s.markChanged(l.room, l.userID, m)
		} else { // without a seat: the store knows nothing of the player
			s.removeMember(l.room, l.userID, m)
		}
	}
	s.lingering = nil
	return time.Hour
}

// repeatSome has some of the rooms stored again that were not for a while, so that all are in turn.
func (s *Service) repeatSome(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := 1 + int(2*time.Duration(len(s.rooms))*(s.options.Lease/4)/s.options.RepeatAfter)
	for _, r := range s.rooms {
		if now.Sub(r.repeatedAt) >= s.options.RepeatAfter && left > 0 {
			r.repeat, r.repeatedAt = true, now
			s.enqueue(r)
			left--
		}
	}
}
