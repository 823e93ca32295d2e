package activity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb"
)

const (
	// Interval is the time between two samples of a game.
	Interval = 5 * time.Minute

	keptSamples = int(24 * time.Hour / Interval)
	gamesAtOnce = 100
)

// Sample is what was going on in a game at one moment.
type Sample struct {
	At      time.Time
	Rooms   int   // that had not ended
	Players int   // in those rooms; a player in two rooms counts twice
	Pots    []Pot // of the tokens that were at stake, ordered by code
}

// Pot is what was at stake in one token: entries of rooms and fees of tournaments.
type Pot struct {
	TokenID string
	Units   int64 // minor units
}

// Games returns what a sample is made of.
type Games struct {
	// List returns up to limit game ids above after, ordered, and the id to go on after, or 0.
	List func(ctx context.Context, after int64, limit int) (gameIDs []int64, next int64, err error)
	// CountOpen returns how many rooms of a game have not ended, and the players in them.
	CountOpen func(ctx context.Context, gameID int64) (rooms, players int, err error)
}

// Service takes samples and returns them. It is safe for concurrent use.
type Service struct {
	store store
	games Games
}

// New returns a service on a store.
func New(db *redisdb.DB, games Games) *Service { return &Service{store: store{db}, games: games} }

// Recent returns the samples of a game, oldest first. Its caller must have checked who may see the
// game. It returns store_unavailable.
func (s *Service) Recent(ctx context.Context, gameID int64) ([]Sample, error) {
	return s.store.read(ctx, gameID)
}

// Run takes samples until ctx ends. A round that fails is skipped.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	for {
		if err := s.store.lead(ctx, s.SampleAll); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "games were not sampled", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// SampleAll takes one sample of every game.
func (s *Service) SampleAll(ctx context.Context) error {
	var faults error // of single games: the others have their samples
	for after := int64(0); ; {
		gameIDs, next, err := s.games.List(ctx, after, gamesAtOnce)
		if err != nil {
			return errors.Join(faults, err)
		}
		for _, id := range gameIDs {
			if err := s.sample(ctx, id); err != nil {
				faults = errors.Join(faults, fmt.Errorf("sample game %d: %w", id, err))
			}
			if ctx.Err() != nil {
				return faults
			}
		}
		if next == 0 {
			return faults
		}
		after = next
	}
}

func (s *Service) sample(ctx context.Context, gameID int64) error {
	rooms, players, err := s.games.CountOpen(ctx, gameID)
	if err != nil {
		return err
	}
	pots, err := s.store.readPots(ctx, gameID)
	if err != nil {
		return err
	}
	return s.store.append(ctx, gameID, Sample{At: time.Now().UTC(), Rooms: rooms, Players: players, Pots: pots})
}
