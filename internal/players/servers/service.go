package servers

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/feed"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// Share is a part of the rooms of a game, see feed.ShareOf.
type Share struct {
	Of    int // 1 for all rooms, 0 for none
	Index int // below Of
}

// has reports whether a room belongs to the share.
func (s Share) has(roomID string) bool {
	return s.Of > 0 && feed.ShareOf(roomID, s.Of) == s.Index
}

// Options are the settings of a node. A zero field means the default, which its comment ends with.
type Options struct {
	Log     *slog.Logger  // slog.Default()
	Channel string        // of the node, for what others send to its servers: a name that no node has
	Lease   time.Duration // how long a lease lasts after a renewal; it is renewed four times as often: 8 s
}

const (
	storeTimeout = 2 * time.Second        // of one round trip
	retryDelay   = 500 * time.Millisecond // after a failure
	forgetAfter  = time.Minute            // an old lease stays for as long, and one node looks as often
)

// errNotOpen is returned for a connection that was closed meanwhile.
var errNotOpen = errors.New("the connection of the server is closed")

// Service has the servers that are connected to this node, and finds those of all nodes. It is safe
// for concurrent use.
type Service struct {
	store   store
	options Options
	known   *directory
	wakeup  chan struct{}

	mu     sync.Mutex
	conns  map[string]*connection
	queue  []*connection // have something to store, in this order
	waited []chan error  // who waits for what is queued
}

// connection is a server on this node.
type connection struct {
	gameID      int64
	id          string
	connectedMS int64
	share       Share
	rooms       map[string]struct{}
	changed     map[string]bool // rooms that are to be stored: listened to, or not any more
	reset       bool            // all rooms are to be stored
	queued      bool
	isStored    bool // the store may have a lease
	isClosed    bool
}

// New returns the servers of a node. It stores nothing until Run is called.
func New(db *redisdb.DB, o Options) *Service {
	o.Log, o.Lease = cmp.Or(o.Log, slog.Default()), cmp.Or(o.Lease, 8*time.Second)
	o.Channel = cmp.Or(o.Channel, newChannel())
	st := store{db}
	return &Service{
		store: st, options: o, known: newDirectory(st), wakeup: make(chan struct{}, 1), conns: map[string]*connection{},
	}
}

// Channel returns the channel of the node.
func (s *Service) Channel() string { return s.options.Channel }

// Open notes a connection of a server of a game. It gets nothing until it listens.
func (s *Service) Open(gameID int64, connectionID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[connectionID] = &connection{
		gameID: gameID, id: connectionID, connectedMS: s.store.db.Clock.NowMS(), rooms: map[string]struct{}{},
		changed: map[string]bool{},
	}
}

// Close ends what Open began. It waits for nothing.
func (s *Service) Close(connectionID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.conns[connectionID]; c != nil {
		delete(s.conns, connectionID)
		c.isClosed = true
		s.enqueue(c)
	}
}

// Listen makes a connection listen to a share of the rooms of its game, in place of the share
// before; the zero Share ends it. When it returns, every node finds the connection within a second.
// It returns store_unavailable.
func (s *Service) Listen(ctx context.Context, connectionID string, share Share) error {
	return s.change(ctx, connectionID, func(c *connection) { c.share = share })
}

// ListenToRooms makes a connection listen to single rooms of its game, too. It returns
// store_unavailable.
func (s *Service) ListenToRooms(ctx context.Context, connectionID string, roomIDs ...string) error {
	return s.change(ctx, connectionID, func(c *connection) {
		for _, roomID := range roomIDs {
			c.rooms[roomID], c.changed[roomID] = struct{}{}, true
		}
	})
}

// LeaveRoom ends ListenToRooms for a room. It waits for nothing.
func (s *Service) LeaveRoom(connectionID, roomID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.conns[connectionID]
	if c == nil {
		return
	}
	if _, listens := c.rooms[roomID]; listens {
		delete(c.rooms, roomID)
		c.changed[roomID] = false
		s.enqueue(c)
	}
}

// change changes a connection and waits until the store has it.
func (s *Service) change(ctx context.Context, connectionID string, apply func(*connection)) error {
	s.mu.Lock()
	c := s.conns[connectionID]
	if c == nil {
		s.mu.Unlock()
		return errNotOpen
	}
	apply(c)
	s.enqueue(c)
	done := make(chan error, 1)
	s.waited = append(s.waited, done)
	s.mu.Unlock()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return redisdb.WrapError("store the lease of a server", ctx.Err())
	}
}

// enqueue has a connection stored. Service.mu must be held.
func (s *Service) enqueue(c *connection) {
	if !c.queued {
		c.queued = true
		s.queue = append(s.queue, c)
	}
	select {
	case s.wakeup <- struct{}{}:
	default:
	}
}

// Find returns the server that gets the calls of a room of a game. It returns no_server and
// store_unavailable.
func (s *Service) Find(ctx context.Context, gameID int64, roomID string) (Server, error) {
	found, err := s.known.find(ctx, gameID, roomID)
	if err != nil {
		return Server{}, err
	}
	if found.ConnectionID == "" {
		return Server{}, apierror.NoServer
	}
	return found, nil
}

// Suspect notes that a server did not get what its node was sent. It is not returned again before
// it has renewed its lease.
func (s *Service) Suspect(gameID int64, server Server) { s.known.suspect(gameID, server) }

// Run renews the leases of the node's servers and stores changes until ctx ends. Then it removes
// the leases that are left, since no server is connected any more.
func (s *Service) Run(ctx context.Context) error {
	renewal := time.NewTicker(s.options.Lease / 4)
	defer renewal.Stop()
	retry := time.NewTimer(time.Hour)
	defer retry.Stop()
	forgotten := time.Now()
	for {
		select {
		case <-ctx.Done():
			s.mu.Lock()
			for id, c := range s.conns {
				delete(s.conns, id)
				c.isClosed = true
				s.enqueue(c)
			}
			s.mu.Unlock()
			s.storeQueued(context.WithoutCancel(ctx))
			return nil
		case now := <-renewal.C:
			if now.Sub(forgotten) >= forgetAfter {
				forgotten = now
				s.forgetOld(ctx)
			}
			s.mu.Lock()
			for _, c := range s.conns {
				if c.isStored {
					s.enqueue(c)
				}
			}
			s.mu.Unlock()
		case <-s.wakeup:
		case <-retry.C:
		}
		if !s.storeQueued(ctx) {
			retry.Reset(retryDelay)
		}
	}
}

// storeQueued stores what is queued. After a failure it is queued again, and false is returned.
func (s *Service) storeQueued(ctx context.Context) (stored bool) {
	conns, writes, waited := s.takeQueue()
	if len(writes) == 0 {
		finish(waited, nil)
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	differ, err := s.store.save(ctx, writes, s.options.Lease)
	s.mu.Lock()
	for i, c := range conns {
		switch {
		case err != nil && !c.isClosed:
			c.reset = true // it is not known what the store has
			s.requeue(c)
		case err != nil && writes[i].gone: // the lease ends by itself
		case slices.Contains(differ, c.id):
			c.reset = true
			s.enqueue(c)
		}
	}
	s.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		s.options.Log.WarnContext(ctx, "the leases of the node's servers cannot be stored", slog.Any("error", err))
	}
	finish(waited, err)
	return err == nil
}

// requeue queues a connection without waking Run, which tries again later.
func (s *Service) requeue(c *connection) {
	if !c.queued {
		c.queued = true
		s.queue = append(s.queue, c)
	}
}

func finish(waited []chan error, err error) {
	for _, done := range waited {
		done <- err
	}
}

// takeQueue returns what is to be stored, and who waits for it.
func (s *Service) takeQueue() (conns []*connection, writes []write, waited []chan error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	expiresMS := s.store.db.Clock.NowMS() + s.options.Lease.Milliseconds()
	for _, c := range s.queue {
		c.queued = false
		if w, needed := c.takeWrite(s.options.Channel, expiresMS); needed {
			conns, writes = append(conns, c), append(writes, w)
		}
	}
	waited = s.waited
	s.queue, s.waited = nil, nil
	return conns, writes, waited
}

// takeWrite returns what is to be stored of the connection, and false for nothing. Service.mu must
// be held.
func (c *connection) takeWrite(channel string, expiresMS int64) (w write, needed bool) {
	w = write{gameID: c.gameID, server: Server{
		ConnectionID: c.id, Channel: channel, connectedMS: c.connectedMS, share: c.share, expiresMS: expiresMS,
		rooms: len(c.rooms),
	}}
	if w.gone = c.isClosed || c.share.Of == 0 && len(c.rooms) == 0; w.gone {
		needed, c.isStored = c.isStored, false
		clear(c.changed)
		return w, needed
	}
	if w.reset = c.reset; w.reset {
		for roomID := range c.rooms {
			w.added = append(w.added, roomID)
		}
	} else {
		for roomID, listens := range c.changed {
			if listens {
				w.added = append(w.added, roomID)
			} else {
				w.ended = append(w.ended, roomID)
			}
		}
	}
	clear(c.changed)
	c.reset, c.isStored = false, true
	return w, true
}

// forgetOld removes leases that were over a while ago, of the games that have servers here. Those
// of other games go with their key.
func (s *Service) forgetOld(ctx context.Context) {
	games := map[int64]struct{}{}
	s.mu.Lock()
	for _, c := range s.conns {
		games[c.gameID] = struct{}{}
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	for gameID := range games {
		if err := s.store.forget(ctx, gameID, s.store.db.Clock.NowMS()-forgetAfter.Milliseconds()); err != nil {
			s.options.Log.WarnContext(ctx, "old leases of servers cannot be removed yet", slog.Any("error", err))
			return
		}
	}
}
