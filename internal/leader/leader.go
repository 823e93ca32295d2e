package leader

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/redis/go-redis/v9"
)

const (
	interval    = time.Second      // between two elections
	allInterval = time.Minute      // between two looks at every game
	lease       = 10 * time.Second // of one election
)

// Handler does the work of some games and returns those with which it has to go on. fence is the
// fencing token of this leader; the scripts of the work must reject lower ones. ctx ends when the
// leader may have been replaced.
type Handler func(ctx context.Context, fence int64, gameIDs []int64) (unfinished []int64, err error)

// Work is one kind of work. It is safe for concurrent use.
type Work struct {
	db     *redisdb.DB
	kind   string
	handle Handler

	mu      sync.Mutex
	changed map[int64]struct{} // game ids to name to the leader

	// These belong to the goroutine that calls RunOnce.
	unfinished map[int64]struct{}
	lookedAt   time.Time // when every game was looked at by this node
}

// New returns a kind of work, named by a word that no other kind has.
func New(db *redisdb.DB, kind string, handle Handler) *Work {
	return &Work{
		db: db, kind: kind, handle: handle,
		changed: map[int64]struct{}{}, unfinished: map[int64]struct{}{},
	}
}

// Changed names a game to the leader, within a second. It only takes a note.
func (w *Work) Changed(gameID int64) {
	w.mu.Lock()
	w.changed[gameID] = struct{}{}
	w.mu.Unlock()
}

// Run names games and competes for the lead until ctx ends.
func (w *Work) Run(ctx context.Context) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if err := w.RunOnce(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "background work failed", "kind", w.kind, "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// RunOnce names the changed games and, when no other node leads, does the work that there is. Only
// one call may run at a time.
func (w *Work) RunOnce(ctx context.Context) error {
	if err := w.nameChanged(ctx); err != nil {
		return err
	}
	led, err := w.db.RunAsLeader(ctx, keys.Lock(w.kind), keys.FenceCounter(w.kind), lease, w.lead)
	if !led { // the leader finds by itself what this node left unfinished when it led
		w.unfinished, w.lookedAt = map[int64]struct{}{}, time.Time{}
	}
	return err
}

// nameChanged adds the changed games to the set that the leader reads.
func (w *Work) nameChanged(ctx context.Context) error {
	w.mu.Lock()
	changed := w.changed
	w.changed = map[int64]struct{}{}
	w.mu.Unlock()
	if len(changed) == 0 {
		return nil
	}
	members := make([]any, 0, len(changed))
	for id := range changed {
		members = append(members, id)
	}
	err := w.db.Client.SAdd(ctx, keys.GamesWithWork(w.kind), members...).Err()
	if err != nil {
		for id := range changed {
			w.Changed(id)
		}
	}
	return redisdb.WrapError("name the changed games", err)
}

func (w *Work) lead(ctx context.Context, fence int64) error {
	games, err := w.takeGames(ctx)
	if err != nil || len(games) == 0 {
		return err
	}
	unfinished, err := w.handle(ctx, fence, slices.Sorted(maps.Keys(games)))
	if err != nil { // some may be done; to look again is harmless
		w.unfinished = games
		return err
	}
	w.unfinished = map[int64]struct{}{}
	for _, id := range unfinished {
		w.unfinished[id] = struct{}{}
	}
	return nil
}

// takeGames returns the games to look at. What it takes out of the shared set is this node's to
// finish: when the node dies, the next leader begins with a look at every game.
func (w *Work) takeGames(ctx context.Context) (map[int64]struct{}, error) {
	games := maps.Clone(w.unfinished)
	named, err := w.db.Client.SPopN(ctx, keys.GamesWithWork(w.kind), maxNamed).Result()
	if err != nil {
		return nil, redisdb.WrapError("take the changed games", err)
	}
	v := redisdb.NewValues("the changed games", named)
	for v.Remaining() > 0 {
		games[v.NextInt()] = struct{}{}
	}
	if v.Err() != nil {
		return nil, v.Err()
	}
	w.unfinished = games
	if time.Since(w.lookedAt) < allInterval {
		return games, nil
	}
	last, err := CountGames(ctx, w.db)
	if err != nil {
		return nil, err
	}
	for id := range last {
		games[id+1] = struct{}{}
	}
	w.lookedAt = time.Now()
	return games, nil
}

// maxNamed bounds one read of the named games; the rest waits for the next second.
const maxNamed = 10_000

// CountGames returns how many games there are; their ids are 1 to that number.
func CountGames(ctx context.Context, db *redisdb.DB) (int64, error) {
	text, err := db.Client.Get(ctx, keys.GameIDCounter()).Result()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	if err != nil {
		return 0, redisdb.WrapError("count the games", err)
	}
	return strconv.ParseInt(text, 10, 64)
}
