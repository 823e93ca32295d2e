package rooms

import (
	"context"
	"time"

	"github.com/parlor-games/parlor/internal/money/wallet"
)

// The result consumers of rooms, as the value feeds of scripts.RoomSettings names them.
const (
	BoardsConsumer      = "boards" // the leaderboards of the game
	MatchConsumerPrefix = "t."     // a match: "t.<tournament>.<match>.<attempt>"
)

// Ended is a room that has ended and whose result a consumer waits for.
type Ended struct {
	RoomID        string
	GameID        int64
	Consumer      string    // BoardsConsumer, or a match: "t.<tournament>.<match>.<attempt>"
	Status        Status    // Finished or Cancelled
	Reason        string    // why it was cancelled; "" when it was not
	SettledBy     SettledBy //
	TokenDecimals int       // of the payouts
	StartedAt     time.Time // by the store's clock, to the millisecond; zero when it was not started
	EndedAt       time.Time // likewise
	Places        []Place   // the result, best place first; nil of a cancelled room
	Applied       string    // of a dead letter: what its consumer had applied, see PartlyApplied
}

// Place is the result of one player of a room that has ended.
type Place struct {
	UserID int64
	Place  int          // from 1; 0 for a forfeited seat
	Score  string       // a JSON number, as it was reported; "" for none
	Payout wallet.Units // minor units of the room's token; 0 in a free room
}

// ResultConsumer applies an ended room. It may get the same room again and must apply it once. It
// returns nil when it has applied the room or has nothing to do. After an error for which
// apierror.IsFinal is true the room becomes a dead letter, which delays no other. After any other
// error it comes again.
type ResultConsumer func(ctx context.Context, e Ended) error

// PartlyApplied is the error of a consumer that has applied only part of a room's result. That part
// is stored with the dead letter and passed to the next attempt, because staff may retry long after
// every receipt has expired.
type PartlyApplied struct {
	Applied string // in a form of the consumer, without tabs
	Err     error
}

func (e *PartlyApplied) Error() string { return e.Err.Error() }

func (e *PartlyApplied) Unwrap() error { return e.Err }

// DeadLetterCount returns how many dead letters this node has made.
func (s *Service) DeadLetterCount() int64 { return s.store.deadLetterCount.Load() }
