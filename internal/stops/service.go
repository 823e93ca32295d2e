package stops

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
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

	reading sync.Mutex // held while the stops are read: what was read later is kept
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
