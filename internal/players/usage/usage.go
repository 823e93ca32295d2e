package usage

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/cache"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// Games returns the quotas of games. *games.Service implements it.
type Games interface {
	Find(ctx context.Context, id int64) (games.Game, error)
}

const (
	interval    = time.Second
	keysAtOnce  = 300         // of each server in one interval
	windowKeys  = 3_000       // of each server from which the estimate is made: the newest
	windowAge   = time.Minute // and none that is older
	leastKeys   = 200         // of a server before its part is estimated
	shareOfGame = 4           // games fit on a server: the share of each is its memory by that number
	maxListed   = 1_000       // games of which an estimate is published: those with most bytes
	maxMeasured = 100         // games whose ledger is measured, and that may be over their share

	maxCachedOwners = 65_536
)

// Service estimates, and admits what is new. It is safe for concurrent use.
type Service struct {
	store  store
	games  Games
	memory *redisdb.Watermark
	log    *slog.Logger

	windows map[string]*window // by the name of a server; of the goroutine of Run
	over    atomic.Pointer[overShare]
}

// window is the newest part of the sample of one server.
type window struct {
	drawn []drawnKey // oldest first
	keys  int64      // that the server has
	limit int64      // bytes of its memory, 0 when that is not known
}

// drawnKey is a key of the sample.
type drawnKey struct {
	gameID int64 // 0: none
	bytes  int64
	at     time.Time
}

// overShare is the part of an estimate that all nodes need.
type overShare struct {
	games   []int64         // over their share, the one that is most over it first
	bounded map[int64]int64 // over a quota that the operator set, with it, in bytes
}

// estimate is the use of the store by one game.
type estimate struct {
	gameID int64
	bytes  int64
	share  float64 // 1 is the share of the game; more is over it
	isOver bool    // over a quota that the operator set
	quota  int64   // bytes; 0: none
}

// New returns a service on a store that tells the watermark which games are over their share.
func New(db *redisdb.DB, games Games, memory *redisdb.Watermark, log *slog.Logger) *Service {
	s := &Service{
		store: store{db: db, games: cache.New[int64, int64]("owners", maxCachedOwners, 0)},
		games: games, memory: memory, log: log, windows: map[string]*window{},
	}
	s.over.Store(&overShare{})
	return s
}

// AdmitNew returns nil if a game may store something new. It returns limit_reached if the game uses
// more bytes than the operator allows, and store_full as redisdb.Watermark does. It does not call
// the store.
func (s *Service) AdmitNew(gameID int64) error {
	if most, isOver := s.over.Load().bounded[gameID]; isOver {
		return games.Quotas{Bytes: most}.Reached(games.QuotaBytes)
	}
	return s.memory.AdmitNew(gameID)
}

// Run estimates, and reads what another node has estimated, once a second until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for failing := false; ; {
		err := errors.Join(s.EstimateOnce(ctx), s.Read(ctx))
		if err != nil && !failing && ctx.Err() == nil && !errors.Is(err, apierror.StoreUnavailable) {
			s.log.WarnContext(ctx, "the use of the store by games is not estimated", "error", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Read reads which games are over their share, as some node has published it.
func (s *Service) Read(ctx context.Context) error {
	over, err := s.store.readOver(ctx)
	if err != nil {
		return err
	}
	s.over.Store(&over)
	s.memory.SetOverShare(over.games)
	return nil
}

// EstimateOnce draws keys and publishes the estimate, unless another node does it at this moment.
func (s *Service) EstimateOnce(ctx context.Context) error {
	return s.store.lead(ctx, func(ctx context.Context) error {
		drawn, err := s.store.draw(ctx)
		if err != nil {
			return err
		}
		s.addToWindows(drawn, time.Now())
		list, err := s.estimate(ctx)
		if err != nil || list == nil {
			return err
		}
		return s.store.publish(ctx, list)
	})
}

// addToWindows adds what was drawn now and drops what is too old.
func (s *Service) addToWindows(drawn map[string]window, now time.Time) {
	maps.DeleteFunc(s.windows, func(name string, _ *window) bool { _, ok := drawn[name]; return !ok })
	for name, d := range drawn {
		w := s.windows[name]
		if w == nil {
			w = &window{}
			s.windows[name] = w
		}
		w.keys, w.limit = d.keys, d.limit
		for _, key := range d.drawn {
			key.at = now
			w.drawn = append(w.drawn, key)
		}
		w.drawn = slices.DeleteFunc(w.drawn, func(k drawnKey) bool { return now.Sub(k.at) > windowAge })
		if extra := len(w.drawn) - windowKeys; extra > 0 {
			w.drawn = slices.Delete(w.drawn, 0, extra)
		}
	}
}

// estimate returns what each game has, the one with most bytes first; nil while too little is
// known.
func (s *Service) estimate(ctx context.Context) ([]estimate, error) {
	byGame := map[int64]*estimate{}
	of := func(gameID int64) *estimate {
		e := byGame[gameID]
		if e == nil {
			e = &estimate{gameID: gameID}
			byGame[gameID] = e
		}
		return e
	}
	isKnown := false
	for _, w := range s.windows {
		if len(w.drawn) < leastKeys && w.keys > leastKeys {
			continue
		}
		isKnown = true
		for gameID, bytes := range w.bytesByGame() {
			e := of(gameID)
			e.bytes += bytes
			if w.limit > 0 {
				e.share = max(e.share, float64(bytes)*shareOfGame/float64(w.limit))
			}
		}
	}
	if !isKnown {
		return nil, nil
	}
	list := sortedByBytes(byGame)
	if err := s.addLedgers(ctx, list[:min(len(list), maxMeasured)]); err != nil {
		return nil, err
	}
	list = sortedByBytes(byGame)
	for _, e := range list[:min(len(list), maxMeasured)] {
		game, err := s.games.Find(ctx, e.gameID)
		if errors.Is(err, apierror.GameNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if e.quota = game.Settings.Quotas.Bytes; e.quota > 0 {
			e.share, e.isOver = float64(e.bytes)/float64(e.quota), e.bytes > e.quota
		}
	}
	result := make([]estimate, 0, min(len(list), maxListed))
	for _, e := range list[:min(len(list), maxListed)] {
		result = append(result, *e)
	}
	return result, nil
}

// addLedgers adds the ledgers of games to what the sample has of them.
func (s *Service) addLedgers(ctx context.Context, list []*estimate) error {
	sizes, err := s.store.measureLedgers(ctx, list)
	if err != nil {
		return err
	}
	largest := int64(0) // memory of a server, of which a ledger takes a part
	for _, w := range s.windows {
		largest = max(largest, w.limit)
	}
	for i, e := range list {
		e.bytes += sizes[i]
		if largest > 0 {
			e.share += float64(sizes[i]) * shareOfGame / float64(largest)
		}
	}
	return nil
}

func sortedByBytes(byGame map[int64]*estimate) []*estimate {
	return slices.SortedFunc(maps.Values(byGame), func(a, b *estimate) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.gameID, b.gameID))
	})
}

// bytesByGame returns what each game has on a server.
func (w *window) bytesByGame() map[int64]int64 {
	drawn := map[int64]int64{}
	for _, key := range w.drawn {
		if key.gameID != 0 {
			drawn[key.gameID] += key.bytes
		}
	}
	for gameID, bytes := range drawn {
		drawn[gameID] = int64(float64(bytes) / float64(len(w.drawn)) * float64(w.keys))
	}
	return drawn
}

// overShareOf returns the part of an estimate that all nodes need.
func overShareOf(list []estimate) overShare {
	over := overShare{bounded: map[int64]int64{}}
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b estimate) int { return cmp.Compare(b.share, a.share) })
	for _, e := range sorted {
		if e.share > 1 && len(over.games) < maxMeasured {
			over.games = append(over.games, e.gameID)
		}
		if e.isOver {
			over.bounded[e.gameID] = e.quota
		}
	}
	return over
}
