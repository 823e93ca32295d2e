package rooms

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"time"
	"unicode/utf8"

	"github.com/parlor-games/parlor/internal/principal"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/games"
	"github.com/parlor-games/parlor/internal/wallet"
)

// MaxRoomPlayers bounds maxPlayers, so that settling a room stays a matter of a millisecond.
const MaxRoomPlayers = 256

// longestMetadata bounds metadata, in bytes without white space.
const longestMetadata = 4 << 10

// newRoom is a room to be made: CreateInput with everything decided.
type newRoom struct {
	game                   int64
	token                  wallet.Token // the zero Token for a free room
	entryToken             string       // the same as JSON
	entry                  wallet.Units
	maxPlayers, minPlayers int
	friendsOnly, autoStart bool
	visibility             Visibility
	settlement             string
	rakeBps                int
	payout                 []int
	tie                    Tie
	metadata               string
	profile                string
	idle, age, match, keep time.Duration
}

// plan decides what is left open and refuses, all at once, what cannot work.
func (s *Service) plan(ctx context.Context, caller principal.Caller, in CreateInput) (newRoom, error) {
	if in.GameID != 0 && in.GameID != caller.Game {
		return newRoom{}, apierror.GameNotFound
	}
	game, err := s.games.Find(ctx, caller.Game)
	if err != nil {
		return newRoom{}, err
	}
	set := game.Settings
	n := newRoom{
		game: caller.Game, maxPlayers: in.MaxPlayers, friendsOnly: in.FriendsOnly, autoStart: in.AutoStart,
		visibility: in.Visibility, settlement: in.Settlement, rakeBps: set.RakeBps, payout: in.Payout, tie: in.Tie,
		idle: set.IdleTimeout, age: set.MaxAge, match: set.MatchTimeout, keep: s.retention,
	}
	var f apierror.FieldErrors
	amountErr := s.planEntry(ctx, in, &n, &f)
	n.planSeats(in, set, &f)
	n.planSettlement(in, set, &f)
	n.planMetadata(in, &f)
	if err := f.Err(); err != nil {
		return newRoom{}, err
	}
	return n, amountErr
}

// planEntry reads the token and the amount. What is wrong with the amount itself is answered, to be refused as
// invalid_amount where nothing else is wrong.
func (s *Service) planEntry(ctx context.Context, in CreateInput, n *newRoom, f *apierror.FieldErrors) error {
	if in.EntryTokenID == 0 {
		amount, err := exact(in.RoomEntry)
		if err == nil && amount.Sign() > 0 {
			f.Add("entryTokenId", "required", "is required with an entry")
		}
		return err
	}
	token, err := s.tokens.TokenByID(ctx, in.EntryTokenID)
	if err != nil {
		return err
	}
	if in.RoomEntry == "" {
		f.Add("roomEntry", "required", "is required with an entry token")
		return nil
	}
	text, err := json.Marshal(token)
	if err != nil {
		return err
	}
	n.token, n.entryToken = token, string(text)
	if n.entry, err = in.RoomEntry.Positive(token.Decimals); err != nil {
		return err
	}
	if n.entry > wallet.MaxUnits/wallet.Units(max(in.MaxPlayers, 1)) {
		return apierror.InvalidAmount.WithReason("the entries of %d players are more than %d minor units", in.MaxPlayers, wallet.MaxUnits)
	}
	return nil
}

func (n *newRoom) planSeats(in CreateInput, set games.Settings, f *apierror.FieldErrors) {
	most := min(MaxRoomPlayers, set.MaxPlayers)
	if in.MaxPlayers < 1 || in.MaxPlayers > most {
		f.Add("maxPlayers", "range", fmt.Sprintf("must be 1 to %d", most))
	}
	n.minPlayers = 1
	if in.EntryTokenID != 0 {
		n.minPlayers = 2
	}
	switch {
	case in.MinPlayers != nil && (*in.MinPlayers < 1 || *in.MinPlayers > max(in.MaxPlayers, 1)):
		f.Add("minPlayers", "range", "must be at least 1 and at most maxPlayers")
	case in.MinPlayers != nil:
		n.minPlayers = *in.MinPlayers
	case n.minPlayers > in.MaxPlayers && in.MaxPlayers == 1:
		f.Add("maxPlayers", "range", "must be at least 2 where there is an entry, unless minPlayers is 1")
	}
	switch n.visibility {
	case "":
		n.visibility = Public
	case Public, Unlisted, Private:
	default:
		f.Add("visibility", "unknown", "must be public, unlisted or private")
	}
}

func (n *newRoom) planSettlement(in CreateInput, set games.Settings, f *apierror.FieldErrors) {
	switch n.settlement {
	case "":
		n.settlement = "server"
	case "server":
	case "consensus":
		f.Add("settlement", "unsupported", "consensus is not offered yet")
	default:
		f.Add("settlement", "unknown", "must be server")
	}
	switch n.tie {
	case "":
		n.tie = TieSplit
	case TieSplit, TieRefund:
	default:
		f.Add("tie", "unknown", "must be split or refund")
	}
	if in.RakeBps != nil {
		n.rakeBps = *in.RakeBps
		if n.rakeBps < set.MinRakeBps || n.rakeBps > whole {
			f.Add("rakeBps", "range", fmt.Sprintf("must be %d to %d basis points", set.MinRakeBps, whole))
		}
	}
	if in.Payout == nil {
		n.payout = []int{whole}
		return
	}
	sum := 0
	for i, bps := range in.Payout {
		if bps < 0 || bps > whole {
			f.Add(fmt.Sprintf("payout[%d]", i), "range", "must be 0 to 10000 basis points")
			return
		}
		sum += bps
	}
	if sum != whole {
		f.Add("payout", "sum", "must sum to 10000 basis points")
	}
	if len(in.Payout) > max(in.MaxPlayers, 1) {
		f.Add("payout", "range", "must not have more places than there are players")
	}
}

func (n *newRoom) planMetadata(in CreateInput, f *apierror.FieldErrors) {
	n.metadata = "{}"
	if len(in.Metadata) == 0 || string(in.Metadata) == "null" {
		return
	}
	var compact bytes.Buffer
	switch {
	case !utf8.Valid(in.Metadata) || json.Compact(&compact, in.Metadata) != nil || compact.Bytes()[0] != '{':
		f.Add("metadata", "type", "must be a JSON object")
	case compact.Len() > longestMetadata:
		f.Add("metadata", "length", "must be at most 4 KiB")
	default:
		n.metadata = compact.String()
	}
}

// exact reads an amount whose token is not known; none is 0. It refuses invalid_amount.
func exact(l wallet.AmountInput) (*big.Rat, error) {
	if l == "" {
		return new(big.Rat), nil
	}
	var err error
	scale := big.NewInt(1)
	for decimals := range wallet.MaxDecimals + 1 {
		var u wallet.Units
		if u, err = l.Units(decimals); err == nil {
			return new(big.Rat).SetFrac(big.NewInt(int64(u)), scale), nil
		}
		scale = new(big.Int).Mul(scale, big.NewInt(10))
	}
	return nil, err
}
