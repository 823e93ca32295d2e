package leader

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// retriesPerInterval is how many times more often the store is asked while it cannot be reached.
const retriesPerInterval = 5

// logEvery is the time between two lines about work that goes on failing.
const logEvery = time.Minute

// allInterval is the time between two looks at every game.
const allInterval = time.Minute

// Timing is how often a kind of work is done.
type Timing struct {
	Interval time.Duration // between two elections
	Lease    time.Duration // of one election; the work waits for so long when a leader dies in it
}

// Purpose is whether a kind of work ends something for a player because its time is over.
type Purpose int

// The purposes. Work that EndsByTime waits while the clocks of the store and of this node differ;
// another node may lead it.
const (
	EndsByTime Purpose = iota + 1
	EndsNothing
)

var usualTiming = Timing{Interval: time.Second, Lease: 10 * time.Second}

// Handler does the work of some games and returns those with which it has to go on. With an error
// it returns nil for all of them, or else those with which a look in a second may help; the others
// have to wait for the next look at every game. fence is the
// fencing token of this leader; the scripts of the work must reject lower ones. ctx ends when the
// leader may have been replaced.
type Handler func(ctx context.Context, fence int64, gameIDs []int64) (unfinished []int64, err error)

// Work is one kind of work. It is safe for concurrent use.
type Work struct {
	db      *redisdb.DB
	kind    string
	purpose Purpose
	timing  Timing
	handle  Handler

	mu      sync.Mutex
	changed map[int64]struct{} // game ids to name to the leader
}

// New returns a kind of work, named by a word that no other kind has.
func New(db *redisdb.DB, kind string, purpose Purpose, handle Handler) *Work {
	return NewTimed(db, kind, purpose, usualTiming, handle)
}

// NewTimed is New for work that is done more or less often than once a second.
func NewTimed(db *redisdb.DB, kind string, purpose Purpose, timing Timing, handle Handler) *Work {
	return &Work{db: db, kind: kind, purpose: purpose, timing: timing, handle: handle, changed: map[int64]struct{}{}}
}

// Changed names a game to the leader, within an interval. It only takes a note.
func (w *Work) Changed(gameID int64) {
	w.mu.Lock()
	w.changed[gameID] = struct{}{}
	w.mu.Unlock()
}

// Name names games to the leader at once. A handler that takes long names those with which it has
// to go on first: they are named to nobody while it runs.
func (w *Work) Name(ctx context.Context, gameIDs []int64) error {
	for _, id := range gameIDs {
		w.Changed(id)
	}
	return w.nameChanged(ctx)
}

// Run names games and competes for the lead until ctx ends. Without the store it tries more often
// than it works: work that became due in the meantime is late already.
func (w *Work) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var loggedAt time.Time // of the failure that lasts, zero while there is none
	for isAway := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		began := time.Now()
		err := w.RunOnce(ctx)
		wasAway := isAway
		isAway = errors.Is(err, apierror.StoreUnavailable)
		switch {
		case err == nil:
			loggedAt = time.Time{}
		case ctx.Err() == nil && !(isAway && wasAway) && time.Since(loggedAt) >= logEvery:
			slog.WarnContext(ctx, "background work failed", "kind", w.kind, "error", err)
			loggedAt = time.Now()
		}
		next := w.timing.Interval
		if isAway {
			next /= retriesPerInterval
		}
		timer.Reset(next - time.Since(began))
	}
}

// RunOnce names the changed games and, when no other node leads at this moment, does the work that
// there is. A node whose clock differs from the store's does not lead what ends by time.
func (w *Work) RunOnce(ctx context.Context) error {
	if err := w.nameChanged(ctx); err != nil {
		return err
	}
	if !w.mayLead() {
		return nil
	}
	_, err := w.db.RunAsLeader(ctx, keys.Lock(w.kind), keys.FenceCounter(w.kind), w.timing.Lease, w.lead)
	return err
}

func (w *Work) mayLead() bool { return w.purpose == EndsNothing || w.db.Clock.AllowsEnding() }

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
	for chunk := range slices.Chunk(members, maxNamedAtOnce) {
		if _, err := w.db.RunScript(ctx, scripts.WorkName, []string{keys.GamesWithWork(w.kind)}, chunk...); err != nil {
			for id := range changed {
				w.Changed(id)
			}
			return err
		}
	}
	return nil
}

func (w *Work) lead(ctx context.Context, fence int64) error {
	named, err := w.takeNamed(ctx)
	if err != nil {
		return err
	}
	games, err := w.listGames(ctx, fence, named)
	if err != nil || len(games) == 0 {
		return err
	}
	unfinished, err := w.handle(ctx, fence, games)
	if err != nil && unfinished == nil { // some may be done; to look again is harmless
		unfinished = games
	}
	if errors.Is(err, redisdb.ErrSkewed) { // the node's monitor logs it
		err = nil
	}
	nameErr := w.Name(ctx, unfinished)
	if nameErr == nil {
		nameErr = w.putAway(ctx, named)
	}
	return errors.Join(err, nameErr)
}

// takeNamed moves the named games to those that are in work, and returns them together with those
// that a leader left there which died.
func (w *Work) takeNamed(ctx context.Context) ([]string, error) {
	from, to := keys.GamesWithWork(w.kind), keys.GamesInWork(w.kind)
	// One by one: in a Cluster a pipeline that fails over may write to its commands twice at once.
	named := w.db.Client.SRandMemberN(ctx, from, maxNamed)
	left := w.db.Client.SMembers(ctx, to)
	err := cmp.Or(named.Err(), left.Err())
	if err == nil && len(named.Val()) > 0 {
		_, err = w.db.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
			for _, id := range named.Val() {
				p.SMove(ctx, from, to, id)
			}
			return nil
		})
	}
	if err != nil {
		return nil, redisdb.WrapError("take the changed games", err)
	}
	return append(named.Val(), left.Val()...), nil
}

// putAway removes games from those that are in work.
func (w *Work) putAway(ctx context.Context, named []string) error {
	for chunk := range slices.Chunk(named, maxNamedAtOnce) {
		if err := w.db.Client.SRem(ctx, keys.GamesInWork(w.kind), chunk).Err(); err != nil {
			return redisdb.WrapError("remove the games that were looked at", err)
		}
	}
	return nil
}

// listGames returns the ids of the games to look at, in order: the named ones, and now and then
// every game.
func (w *Work) listGames(ctx context.Context, fence int64, named []string) ([]int64, error) {
	v := redisdb.NewValues("the changed games", named)
	var games []int64
	for v.Remaining() > 0 {
		games = append(games, v.NextInt())
	}
	if v.Err() != nil {
		return nil, v.Err()
	}
	value := strconv.FormatInt(fence, 10) // of this leader alone
	due, err := w.db.TryAcquire(ctx, keys.GamesLookedAt(w.kind), value, allInterval)
	if err != nil {
		return nil, redisdb.WrapError("time the look at every game", err)
	}
	if due {
		last, err := CountGames(ctx, w.db)
		if err != nil {
			return nil, err
		}
		for id := range last {
			games = append(games, id+1)
		}
	}
	slices.Sort(games)
	return slices.Compact(games), nil
}

const (
	maxNamed       = 10_000 // games in one read of the named ones; the rest waits for the next second
	maxNamedAtOnce = 1_000  // games that one script names
)

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
