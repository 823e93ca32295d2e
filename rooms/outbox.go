package rooms

import (
	"context"
	"time"

	"github.com/parlor-games/parlor/internal/money/wallet"
)

// What rooms feed: what the value feeds of their settings begins with.
const (
	FeedsBoards = "boards" // the leaderboards of the game
	FeedsMatch  = "t."     // a match: "t.<tournament>.<match>.<attempt>"
)

// Ended is a room that has ended and for which a consumer waits.
type Ended struct {
	RoomID        string
	GameID        int64
	Feeds         string    // as in the settings of the room: "boards", "t.<tournament>.<match>.<attempt>"
	Status        Status    // Finished or Cancelled
	Reason        string    // why it was cancelled; "" when it was not
	SettledBy     SettledBy //
	TokenDecimals int       // of the payouts
	StartedAt     time.Time // by the store's clock, to the millisecond; zero when it was not started
	EndedAt       time.Time // likewise
	Places        []Place   // the result, best place first; nil of a cancelled room
	Applied       string    // of a dead letter: what its consumer had applied, see PartlyApplied
}

// Place is what a player reached in a room that has ended.
type Place struct {
	UserID int64
	Place  int          // from 1; 0 for a forfeited seat
	Score  string       // a JSON number, as it was reported; "" for none
	Payout wallet.Units // minor units of the room's token; 0 in a free room
}

// Consumer applies an ended room. It may get the same room again and must apply it once. It returns
// nil when it has applied the room or has nothing to do. After an error for which apierror.IsFinal
// is true the room becomes a dead letter, which delays no other. After any other error it comes
// again.
type Consumer func(ctx context.Context, e Ended) error

// PartlyApplied is the error of a consumer that has applied some of a room and not all. What it has
// applied is stored with the dead letter, and comes back with it: staff may try it again long after
// every receipt has expired.
type PartlyApplied struct {
	Applied string // in a form of the consumer, without tabs
	Err     error
}

func (e *PartlyApplied) Error() string { return e.Err.Error() }

func (e *PartlyApplied) Unwrap() error { return e.Err }

// consumer is who waits for the rooms whose feeds begin with a prefix.
type consumer struct {
	prefix string
	apply  Consumer
}

// SetConsumer makes a consumer get the rooms whose feeds begin with a prefix. It must be called
// before Run.
func (s *Service) SetConsumer(prefix string, c Consumer) {
	s.store.consumers = append(s.store.consumers, consumer{prefix, c})
}

// DeadLetterCount returns how many dead letters this node has made.
func (s *Service) DeadLetterCount() int64 { return s.store.deadLetterCount.Load() }
