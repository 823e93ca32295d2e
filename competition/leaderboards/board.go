package leaderboards

import (
	"cmp"
	"slices"
	"time"

	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/users"
)

// board is a board as it is stored. All readers share it.
type board struct {
	gameID      int64
	key         string
	version     string // of the record
	createdAt   time.Time
	isDeleted   bool // hidden; its keys go in the background
	definitions map[int64]*Definition
	seasons     []season // oldest first; at least one

	bucketsOfNext int64 // of a season that is added now
}

// newest returns the definition of the seasons to come, and its version.
func (b *board) newest() (version int64, d *Definition) {
	for v, one := range b.definitions {
		if v > version {
			version, d = v, one
		}
	}
	return version, d
}

// definitionOf returns the definition that a season has.
func (b *board) definitionOf(s *season) *Definition { return b.definitions[s.definition] }

// seasonAt returns the season that takes scores at a time (ms), nil for none.
func (b *board) seasonAt(ms int64) *season {
	for i := range b.seasons {
		if b.seasons[i].isOpenAt(ms) {
			return &b.seasons[i]
		}
	}
	return nil
}

// currentAt returns the season of a time (ms): the one that is open, else the first one to come,
// else the last one.
func (b *board) currentAt(ms int64) *season {
	for i := range b.seasons {
		if s := &b.seasons[i]; s.closes == 0 || ms < s.closes {
			return s
		}
	}
	return &b.seasons[len(b.seasons)-1]
}

// find returns a season by its number, nil when it is not kept.
func (b *board) find(number int64) *season {
	i, found := slices.BinarySearchFunc(b.seasons, number, func(s season, n int64) int { return cmp.Compare(s.number, n) })
	if !found {
		return nil
	}
	return &b.seasons[i]
}

// Leaderboard is a board as it is on the wire.
type Leaderboard struct {
	GameID int64 `json:"gameId"`
	Definition
	CreatedAt time.Time `json:"createdAt"`
	Season    Season    `json:"season"` // the current one

	// Next is for staff: the settings that change with the next season, and when it begins. It is
	// nil until staff ends the season.
	Next     *Definition `json:"next,omitzero"`
	NextFrom *time.Time  `json:"effectiveFrom,omitzero"`
}

// Season is a season as it is on the wire.
type Season struct {
	Season   int64        `json:"season"`
	Status   SeasonStatus `json:"status"`
	OpensAt  time.Time    `json:"opensAt"`
	ClosesAt *time.Time   `json:"closesAt"` // nil: staff ends it
	Entries  int64        `json:"entries"`  // that are not hidden

	PrizesFunded *bool   `json:"prizesFunded"`              // nil: the season has no prizes
	PromisedBy   *string `json:"prizesPromisedBy,omitzero"` // operator or server; nil: the season has no prizes
}

func (s *season) view(d *Definition, nowMS, entries int64) Season {
	v := Season{
		Season: s.number, Status: s.statusAt(nowMS), OpensAt: time.UnixMilli(s.opens).UTC(), Entries: entries,
	}
	if s.closes != 0 {
		v.ClosesAt = new(time.UnixMilli(s.closes).UTC())
	}
	if d.Prizes != nil {
		v.PrizesFunded = new(s.isFunded && s.outcome != voided)
		v.PromisedBy = new(string(principal.Server))
		if d.isPromisedByOperator() {
			v.PromisedBy = new(string(principal.Operator))
		}
	}
	return v
}

// Entry is a player's entry in a season as it is on the wire.
type Entry struct {
	Rank        int64             `json:"rank"`  // from 1, in the strict order
	Place       int64             `json:"place"` // the rank, or the same for equal entries
	User        users.Profile     `json:"user"`
	Score       Score             `json:"score"`
	Subscore    *Score            `json:"subscore"` // nil on a board without one
	ReachedAt   time.Time         `json:"reachedAt"`
	Submissions int64             `json:"submissions"`
	Percentile  Percent           `json:"percentile"` // percent of the entries that are behind
	Metadata    wire.RawJSON      `json:"metadata"`
	Evidence    *Evidence         `json:"evidence"`
	Segments    map[string]string `json:"segments"`
	Hidden      bool              `json:"hidden,omitzero"` // for staff and the player
}

// Evidence is the room, the address or the digest by which a score can be checked.
type Evidence struct {
	RoomID string `json:"roomId,omitzero"`
	URL    string `json:"url,omitzero"`
	Digest string `json:"digest,omitzero"`
}

// details has the values that few entries have.
type details struct {
	Metadata wire.RawJSON `json:"metadata,omitzero"`
	Evidence *Evidence    `json:"evidence,omitzero"`
}
