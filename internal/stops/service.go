package stops

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
)

// AllGames is the GameID of a stop of every game.
const AllGames = 0

// Stop is a reason why the money of a game does not move.
type Stop struct {
	GameID int64 // AllGames for all of them
	Cause  string
	At     time.Time // UTC
	Detail string    // a sentence for operators
}

const readInterval = time.Second

// Service has the stops of all games. It is safe for concurrent use.
type Service struct {
	db    *redisdb.DB
	log   *slog.Logger
	stops atomic.Pointer[[]Stop]
}

// New returns a service that knows of no stop until it runs.
func New(db *redisdb.DB, log *slog.Logger) *Service {
	s := &Service{db: db, log: log}
	s.stops.Store(&[]Stop{})
	return s
}

// Run reads the stops once a second until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(readInterval)
	defer tick.Stop()
	for failing := false; ; {
		err := s.Read(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			s.log.WarnContext(ctx, "the stopped games cannot be read", "error", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Read reads the stops once.
func (s *Service) Read(ctx context.Context) error {
	fields, err := s.db.Client.HGetAll(ctx, keys.MoneyStops()).Result()
	if err != nil {
		return redisdb.WrapError("read the stopped games", err)
	}
	list := make([]Stop, 0, len(fields))
	for field, text := range fields {
		game, cause, _ := strings.Cut(field, ":")
		at, detail, _ := strings.Cut(text, "|")
		v := redisdb.NewValues("the stop "+field, []string{game, at})
		stop := Stop{GameID: v.NextInt(), At: v.NextTime(), Cause: cause, Detail: detail}
		if v.Err() != nil {
			return v.Err()
		}
		list = append(list, stop)
	}
	slices.SortFunc(list, func(a, b Stop) int {
		return cmp.Or(cmp.Compare(a.GameID, b.GameID), cmp.Compare(a.Cause, b.Cause))
	})
	s.stops.Store(&list)
	return nil
}

// List returns the stops by game, as far as this node knows them.
func (s *Service) List() []Stop { return *s.stops.Load() }

// Check returns store_unavailable when the money of a game is stopped. It costs next to nothing.
func (s *Service) Check(gameID int64) error {
	for _, stop := range s.List() {
		if stop.GameID == gameID || stop.GameID == AllGames {
			return apierror.StoreUnavailable.
				WithReason("the money of this game is stopped until an operator has looked at it").
				WithMember("stopped", stop.Cause)
		}
	}
	return nil
}

// Add stops the money of a game. The first stop of a cause counts, and is logged once.
func (s *Service) Add(ctx context.Context, gameID int64, cause, detail string) error {
	now, err := s.db.Client.Time(ctx).Result()
	if err != nil {
		return redisdb.WrapError("read the store's clock", err)
	}
	value := strconv.FormatInt(now.UnixMilli(), 10) + "|" + detail
	isNew, err := s.db.Client.HSetNX(ctx, keys.MoneyStops(), fieldOf(gameID, cause), value).Result()
	if err != nil {
		return redisdb.WrapError("stop the money of a game", err)
	}
	if isNew {
		s.log.ErrorContext(ctx, "the money of a game is stopped until an operator has looked at it",
			"game", gameID, "cause", cause, "detail", detail)
	}
	return s.Read(ctx)
}

// Lift ends a stop of a game. Without one it changes nothing.
func (s *Service) Lift(ctx context.Context, gameID int64, cause string) error {
	if err := s.db.Client.HDel(ctx, keys.MoneyStops(), fieldOf(gameID, cause)).Err(); err != nil {
		return redisdb.WrapError("lift the stop of a game", err)
	}
	return s.Read(ctx)
}

func fieldOf(gameID int64, cause string) string { return strconv.FormatInt(gameID, 10) + ":" + cause }
