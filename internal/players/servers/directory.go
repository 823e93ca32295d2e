package servers

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/base/cache"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

const (
	knownFor   = time.Second           // for which the servers of a game are not read again
	noneFor    = 50 * time.Millisecond // the same while none is known for a room
	maxGames   = 4_096                 // whose servers a node remembers
	maxAnswers = 16_384                // about single rooms that a node remembers
)

// directory is what this node knows of the servers of all games. It is safe for concurrent use.
type directory struct {
	store store
	games *cache.Cache[int64, *knownServers]
	rooms *cache.Cache[listener, bool] // whether a server listens to a room beside its share

	mu sync.Mutex // of games: a game has one entry
}

// listener is a connection and a room.
type listener struct{ connectionID, roomID string }

func newDirectory(st store) *directory {
	return &directory{
		store: st, games: cache.New[int64, *knownServers]("servers", maxGames, 0),
		rooms: cache.New[listener, bool]("server-rooms", maxAnswers, knownFor),
	}
}

// knownServers are the servers of one game.
type knownServers struct {
	mu       sync.Mutex
	servers  []Server // oldest first; never changed
	readAt   time.Time
	reading  *reading         // nil: nobody reads
	suspects map[string]int64 // connection id → end of the lease (ms) that it has when nothing reached it
}

// reading is a read of a game's servers that several calls wait for.
type reading struct {
	done chan struct{}
	err  error
}

func (d *directory) of(gameID int64) *knownServers {
	d.mu.Lock()
	defer d.mu.Unlock()
	known, ok := d.games.Get(gameID)
	if !ok {
		known = &knownServers{suspects: map[string]int64{}}
		d.games.Add(gameID, known)
	}
	return known
}

// find returns the server that gets the calls of a room, the zero Server for none.
func (d *directory) find(ctx context.Context, gameID int64, roomID string) (Server, error) {
	known := d.of(gameID)
	for _, maxAge := range []time.Duration{knownFor, noneFor} {
		servers, err := known.list(ctx, d.store, gameID, maxAge)
		if err != nil {
			return Server{}, err
		}
		if i := slices.IndexFunc(servers, func(s Server) bool { return s.share.has(roomID) }); i >= 0 {
			return servers[i], nil
		}
		found, err := d.listenerOf(ctx, gameID, servers, roomID, maxAge)
		if err != nil || found != nil {
			return *cmp.Or(found, &Server{}), err
		}
	}
	return Server{}, nil
}

// listenerOf returns the first of some servers that listens to a room itself, nil for none. It reads
// at most once.
func (d *directory) listenerOf(
	ctx context.Context, gameID int64, servers []Server, roomID string, maxAge time.Duration,
) (*Server, error) {
	listens := map[string]bool{}
	var unknown []string
	for i := range servers {
		if servers[i].rooms == 0 {
			continue
		}
		id := servers[i].ConnectionID
		if answer, ok := d.rooms.Get(listener{id, roomID}); ok && (answer || maxAge == knownFor) {
			listens[id] = answer
		} else {
			unknown = append(unknown, id)
		}
	}
	if len(unknown) > 0 {
		answers, err := d.store.listenToRoom(ctx, gameID, unknown, roomID)
		if err != nil {
			return nil, err
		}
		for i, id := range unknown {
			listens[id] = answers[i]
			d.rooms.Add(listener{id, roomID}, answers[i])
		}
	}
	if i := slices.IndexFunc(servers, func(s Server) bool { return listens[s.ConnectionID] }); i >= 0 {
		return &servers[i], nil
	}
	return nil, nil
}

// list returns the servers of the game as they were read at most maxAge ago, without those that
// nothing reaches. Calls at the same time share a read.
func (k *knownServers) list(ctx context.Context, st store, gameID int64, maxAge time.Duration) ([]Server, error) {
	notBefore := time.Now().Add(-maxAge)
	k.mu.Lock()
	for k.readAt.Before(notBefore) {
		r := k.reading
		if r == nil {
			r = &reading{done: make(chan struct{})}
			k.reading = r
			k.mu.Unlock()
			k.read(ctx, st, gameID, r)
		} else {
			k.mu.Unlock()
			select {
			case <-r.done:
			case <-ctx.Done():
				return nil, redisdb.WrapError("read the servers of a game", ctx.Err())
			}
		}
		if r.err != nil {
			return nil, r.err
		}
		k.mu.Lock()
	}
	defer k.mu.Unlock()
	if len(k.suspects) == 0 {
		return k.servers, nil
	}
	return slices.DeleteFunc(slices.Clone(k.servers), func(s Server) bool {
		return s.expiresMS <= k.suspects[s.ConnectionID]
	}), nil
}

// read reads the servers for all who wait. The read goes on when the one that began it gives up.
func (k *knownServers) read(ctx context.Context, st store, gameID int64, r *reading) {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	servers, err := st.list(ctx, gameID, st.db.Clock.NowMS())
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.servers, k.readAt = servers, begun
		for id, endMS := range k.suspects { // those that are gone, or were renewed
			if !slices.ContainsFunc(servers, func(s Server) bool { return s.ConnectionID == id && s.expiresMS <= endMS }) {
				delete(k.suspects, id)
			}
		}
	}
	k.reading, r.err = nil, err
	close(r.done)
}

// suspect implements Service.Suspect.
func (d *directory) suspect(gameID int64, s Server) {
	known := d.of(gameID)
	known.mu.Lock()
	defer known.mu.Unlock()
	known.suspects[s.ConnectionID] = s.expiresMS
}
