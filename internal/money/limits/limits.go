package limits

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// The names of the limits on the wire.
const (
	limitMaxStake     = "maxStake"
	limitMaxOpenRooms = "maxOpenRooms"
	limitMaxLoss      = "maxLoss24h"
)

// Limits are what a player set for stakes of one token in a game. Nil means no limit.
type Limits struct {
	TokenCode     string         `json:"tokenId"`
	MaxStake      *wallet.Amount `json:"maxStake"` // highest stake of one room
	MaxStakeUnits *string        `json:"maxStakeAmount"`
	MaxOpenRooms  *int64         `json:"maxOpenRooms"` // rooms with a stake of the token at once
	MaxLoss       *wallet.Amount `json:"maxLoss24h"`   // stakes less payouts and refunds, within 24 hours
	MaxLossUnits  *string        `json:"maxLoss24hAmount"`
	ExcludedUntil *time.Time     `json:"excludedUntil"` // UTC; from every paid room, whatever its token

	// What the limits are compared with; nil until the player sets one for the token.
	OpenRooms *int64         `json:"openRooms"`
	Lost      *wallet.Amount `json:"lost24h"` // negative when more came back than was staked
	LostUnits *string        `json:"lost24hAmount"`

	Pending []Pending `json:"pending"` // looser limits that do not count yet; never nil
}

// Pending is a limit that was loosened less than 24 hours ago.
type Pending struct {
	Limit string         `json:"limit"`       // "maxStake", "maxOpenRooms" or "maxLoss24h"
	Value *wallet.Amount `json:"value"`       // nil: no limit
	Units *string        `json:"valueAmount"` // in minor units
	From  time.Time      `json:"from"`        // UTC, when it begins to count
}

// List are a player's limits for each token that the player has or has limits for.
type List struct {
	ExcludedUntil *time.Time `json:"excludedUntil"`
	Items         []Limits   `json:"items"` // by token id
	NextCursor    *string    `json:"nextCursor"`
}

// Input sets limits. Of each, nil keeps what is, and a pointer to nil removes it.
type Input struct {
	UserID        int64
	TokenCode     string
	MaxStake      **wallet.AmountInput // 0 or more
	MaxOpenRooms  **int64              // 0 … 1,000,000
	MaxLoss       **wallet.AmountInput // 0 or more
	ExcludedUntil **time.Time          // not in the past
}

// maxRoomsLimit bounds MaxOpenRooms.
const maxRoomsLimit = 1_000_000

// maxExclusion is the end of the last year that a time of the wire can name.
var maxExclusion = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// Service has the limits of players. It is safe for concurrent use.
type Service struct {
	db      *redisdb.DB
	wallets *wallet.Service
	players wallet.Players
}

// New returns the limits of players on an open store.
func New(db *redisdb.DB, wallets *wallet.Service, players wallet.Players) *Service {
	return &Service{db, wallets, players}
}

// Read returns a player's limits in a game, of one token unless code is "". It returns
// token_not_found.
func (s *Service) Read(ctx context.Context, gameID, userID int64, code string) (List, error) {
	if code != "" {
		if _, err := s.wallets.FindDefinition(ctx, code); err != nil {
			return List{}, err
		}
	}
	stored, err := s.readLimits(ctx, gameID, userID)
	if err != nil {
		return List{}, err
	}
	codes := []string{code}
	if code == "" {
		codes = stored.codes
	}
	tokens, err := s.wallets.FindDefinitions(ctx, codes...)
	if err != nil {
		return List{}, err
	}
	list := List{ExcludedUntil: stored.excludedUntil(), Items: make([]Limits, 0, len(codes))}
	for _, code := range codes {
		t, ok := tokens[code]
		if !ok {
			continue
		}
		limits, err := stored.view(t)
		if err != nil {
			return List{}, err
		}
		list.Items = append(list.Items, limits)
	}
	slices.SortFunc(list.Items, func(a, b Limits) int {
		return cmp.Compare(tokens[a.TokenCode].ID, tokens[b.TokenCode].ID)
	})
	return list, nil
}

// Set sets a player's own limits: a tighter one counts at once, a looser one in 24 hours, and an
// exclusion is never shortened. Only the player may call it, and the operator, who can only
// tighten. It returns the limits after it, and forbidden, user_not_found, token_not_found,
// invalid_request, invalid_amount, and self_excluded when the exclusion would end earlier.
func (s *Service) Set(ctx context.Context, caller principal.Caller, in Input) (Limits, error) {
	gameID, err := s.authorize(ctx, caller, in.UserID)
	if err != nil {
		return Limits{}, err
	}
	if in.TokenCode == "" {
		return Limits{}, apierror.InvalidRequest.WithField("tokenId", "required", "is required")
	}
	t, err := s.wallets.FindDefinition(ctx, in.TokenCode)
	if err != nil {
		return Limits{}, err
	}
	change := limitChange{gameID: gameID, userID: in.UserID, token: t, byStaff: caller.Role != principal.Player}
	if err := s.prepare(ctx, in, t, &change); err != nil {
		return Limits{}, err
	}
	if err := s.setLimits(ctx, change); err != nil {
		return Limits{}, err
	}
	list, err := s.Read(ctx, gameID, in.UserID, in.TokenCode)
	if err != nil {
		return Limits{}, err
	}
	return list.Items[0], nil
}

// authorize returns the game of a player whose limits the caller may set.
func (s *Service) authorize(ctx context.Context, caller principal.Caller, userID int64) (int64, error) {
	switch {
	case caller.Role == principal.Player && caller.UserID == userID:
		return caller.GameID, nil
	case caller.Role != principal.Operator:
		return 0, apierror.Forbidden.WithReason("only the player and an operator can set the limits of a player")
	case userID < 1:
		return 0, apierror.UserNotFound
	}
	return s.players.Game(ctx, userID)
}

// prepare reads the input into the arguments of the script.
func (s *Service) prepare(ctx context.Context, in Input, t wallet.Token, change *limitChange) error {
	var faults apierror.FieldErrors
	change.rooms, change.excluded = keepLimit, keepLimit
	if in.MaxOpenRooms != nil {
		switch rooms := *in.MaxOpenRooms; {
		case rooms == nil:
			change.rooms = noLimit
		case *rooms < 0 || *rooms > maxRoomsLimit:
			faults.Add(limitMaxOpenRooms, "range", "must be 0 to "+strconv.Itoa(maxRoomsLimit))
		default:
			change.rooms = strconv.FormatInt(*rooms, 10)
		}
	}
	if in.ExcludedUntil != nil {
		change.excluded = notExcluded
		if until := *in.ExcludedUntil; until != nil {
			now, err := s.db.ReadClock(ctx)
			if err != nil {
				return err
			}
			if !until.After(now) || until.After(maxExclusion) {
				faults.Add("excludedUntil", "range", "must be in the future, at the latest in the year 9999")
			}
			change.excluded = strconv.FormatInt(until.UnixMilli(), 10)
		}
	}
	if err := faults.Err(); err != nil {
		return err
	}
	var err error
	if change.stake, err = limitText("maxStake", in.MaxStake, t); err != nil {
		return err
	}
	change.loss, err = limitText("maxLoss24h", in.MaxLoss, t)
	return err
}

// What the script takes instead of a limit.
const (
	keepLimit   = "="
	noLimit     = ""
	notExcluded = "0"
)

// limitText returns an amount as the script takes it.
func limitText(field string, in **wallet.AmountInput, t wallet.Token) (string, error) {
	if in == nil {
		return keepLimit, nil
	}
	if *in == nil {
		return noLimit, nil
	}
	units, err := (*in).ToUnits(t.Decimals)
	return units.String(), apierror.InField(field, err)
}
