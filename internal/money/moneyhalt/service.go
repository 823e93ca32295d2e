package moneyhalt

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// AllGames is the GameID of a halt of every game.
const AllGames = 0

// Halt is a reason why the money of a game does not move.
type Halt struct {
	GameID int64     `json:"gameId"` // AllGames for all of them
	Cause  string    `json:"cause"`
	At     time.Time `json:"at"`     // UTC
	Detail string    `json:"detail"` // a sentence for operators
}

const (
	readInterval     = time.Second
	firstReadTimeout = time.Second // of a Check before the first read
)

// Service has the halts of all games. It is safe for concurrent use.
type Service struct {
	db    *redisdb.DB
	log   *slog.Logger
	halts atomic.Pointer[[]Halt] // nil before the first read

	reading sync.Mutex // held while the halts are read: what was read later is kept
}

// New returns a service that reads the halts when it runs, or at the first Check.
func New(db *redisdb.DB, log *slog.Logger) *Service { return &Service{db: db, log: log} }

// Run reads the halts once a second until ctx ends.
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

// List returns the halts by game, as far as this node knows them.
func (s *Service) List() []Halt {
	if list := s.halts.Load(); list != nil {
		return *list
	}
	return nil
}

// Check returns store_unavailable when the money of a game is halted. It costs next to nothing
// once the halts have been read. Before, it reads them: else a node that has just started would
// move money that is halted.
func (s *Service) Check(gameID int64) error {
	if s.halts.Load() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), firstReadTimeout)
		defer cancel()
		if s.readOnce(ctx) != nil {
			return apierror.StoreUnavailable.WithReason("this node cannot read yet whether money is stopped")
		}
	}
	for _, halt := range s.List() {
		if halt.GameID == gameID || halt.GameID == AllGames {
			return apierror.StoreUnavailable.
				WithReason("the money of this game is stopped until an operator has looked at it").
				WithMember("stopped", halt.Cause)
		}
	}
	return nil
}
