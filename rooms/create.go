package rooms

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/validate"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/players/games"
)

// MaxRoomPlayers bounds maxPlayers, so that paying out a room takes about a millisecond.
const MaxRoomPlayers = 256

// MaxConsensusPlayers bounds maxPlayers of a room that is settled by consensus: each of its players
// must report, and each report names all players.
const MaxConsensusPlayers = 32

// maxMetadataKiB bounds metadata, without white space.
const maxMetadataKiB = 4

// CreateInput is a request for a new room. An absent member has the default that its comment names.
type CreateInput struct {
	GameID       int64              `json:"gameId" given:"nonzero"` // default: the caller's, the only one
	EntryTokenID int64              `json:"entryTokenId"`           // EntryToken.id; default: none, a free room
	RoomEntry    wallet.AmountInput `json:"roomEntry"`              // each player's stake; required with a token
	MaxPlayers   int                `json:"maxPlayers"`             // 1 to the game's limit; required
	MinPlayers   *int               `json:"minPlayers"`             // default: 2 with an entry, else 1
	FriendsOnly  bool               `json:"isFriendsOnly"`
	Visibility   Visibility         `json:"visibility" given:"nonzero"` // default: public
	Metadata     wire.RawJSON       `json:"metadata"`                   // a JSON object of at most 4 KiB; default: {}
	AutoStart    bool               `json:"autoStart"`
	SettledBy    SettledBy          `json:"settlement" given:"nonzero"` // default: server
	RakeBps      *int               `json:"rakeBps"`                    // of the pot; default: the game's rake
	PayoutBps    []int              `json:"payout"`                     // basis points by place; default: [10000]
	Tie          Tie                `json:"tie" given:"nonzero"`        // default: split
}

// roomDraft is a valid CreateInput with every default filled in.
type roomDraft struct {
	gameID                                       int64
	token                                        wallet.Token // the zero Token for a free room
	entryTokenJSON                               string       // token as JSON, "" for a free room
	entry                                        wallet.Units // of each player
	maxPlayers, minPlayers                       int
	friendsOnly, autoStart                       bool
	visibility                                   Visibility
	settledBy                                    SettledBy
	rakeBps                                      int
	payoutBps                                    []int
	tie                                          Tie
	metadataJSON                                 string // JSON object
	creatorProfileJSON                           string // the creator's users.Profile as JSON
	idleTimeout, maxAge, matchTimeout, retention time.Duration
	consumer                                     string // the result consumer, "" for none
	stakes                                       string // the field of a room; "" where it follows from the settings
	hasFeed                                      bool   // its events also go to the game's server
}

// The field stakes of a room, where Room.HasStakes does not follow from its settings.
const (
	withStakes    = "1"
	withoutStakes = "0"
)

// prepareCreate fills in the defaults and validates. It returns every faulty field in one
// invalid_request.
func (s *Service) prepareCreate(ctx context.Context, caller principal.Caller, in CreateInput) (roomDraft, error) {
	if in.GameID != 0 && in.GameID != caller.GameID {
		return roomDraft{}, apierror.GameNotFound
	}
	game, err := s.games.Find(ctx, caller.GameID)
	if err != nil {
		return roomDraft{}, err
	}
	limits := game.Settings
	n := roomDraft{
		gameID: caller.GameID, maxPlayers: in.MaxPlayers, friendsOnly: in.FriendsOnly, autoStart: in.AutoStart,
		visibility: in.Visibility, settledBy: in.SettledBy, rakeBps: limits.RakeBps, payoutBps: in.PayoutBps, tie: in.Tie,
		idleTimeout: limits.IdleTimeout, maxAge: limits.MaxAge, matchTimeout: limits.MatchTimeout, retention: s.retention,
		hasFeed: game.HasFeed(),
	}
	if len(limits.Boards) > 0 {
		n.consumer = BoardsConsumer
	}
	if in.EntryTokenID == 0 {
		if n.stakes, err = s.findStakes(ctx, game); err != nil {
			return roomDraft{}, err
		}
	}
	var fieldErrors apierror.FieldErrors
	entryErr := s.prepareEntry(ctx, in, &n, &fieldErrors)
	n.prepareSeats(in, limits, &fieldErrors)
	n.prepareVisibility(&fieldErrors)
	n.prepareSettledBy(&fieldErrors)
	n.checkAllowed(limits, &fieldErrors)
	n.prepareRake(in, limits, &fieldErrors)
	n.preparePayout(in, &fieldErrors)
	n.metadataJSON = string(validate.Object(&fieldErrors, "metadata", in.Metadata, maxMetadataKiB))
	if err := fieldErrors.Err(); err != nil {
		return roomDraft{}, err
	}
	return n, entryErr
}

// findStakes returns the field stakes of a free room that is made in a game now: withStakes when it
// feeds a leaderboard with prizes.
func (s *Service) findStakes(ctx context.Context, game games.Game) (string, error) {
	for _, feed := range game.Settings.Boards {
		hasPrizes, err := s.hasPrizes(ctx, game.ID, feed.Board)
		if err != nil {
			return "", err
		}
		if hasPrizes {
			return withStakes, nil
		}
	}
	return "", nil
}

// prepareEntry reads the token and the amount. An error in the amount is returned and not
// collected: it is invalid_amount, which the caller sees only when every other field is valid.
func (s *Service) prepareEntry(
	ctx context.Context, in CreateInput, n *roomDraft, fieldErrors *apierror.FieldErrors,
) error {
	if in.EntryTokenID == 0 {
		amount, err := parseDecimal(in.RoomEntry)
		if err == nil && amount.Sign() > 0 {
			fieldErrors.Add("entryTokenId", "required", "is required with an entry")
		}
		return apierror.InField("roomEntry", err)
	}
	token, err := s.wallets.TokenByID(ctx, n.gameID, in.EntryTokenID)
	if err != nil {
		return err
	}
	if in.RoomEntry == "" {
		fieldErrors.Add("roomEntry", "required", "is required with an entry token")
		return nil
	}
	n.token, n.entryTokenJSON = token, string(wallet.AppendToken(make([]byte, 0, 256), token))
	if n.entry, err = in.RoomEntry.ToPositiveUnits(token.Decimals); err != nil {
		return apierror.InField("roomEntry", err)
	}
	if n.entry > wallet.MaxUnits/wallet.Units(max(in.MaxPlayers, 1)) {
		return apierror.InvalidAmount.WithReason("the entries of %d players are more than %d minor units",
			in.MaxPlayers, wallet.MaxUnits)
	}
	return nil
}

func (n *roomDraft) prepareSeats(in CreateInput, limits games.Settings, fieldErrors *apierror.FieldErrors) {
	largest := min(MaxRoomPlayers, limits.MaxPlayers)
	if in.MaxPlayers < 1 || in.MaxPlayers > largest {
		fieldErrors.Add("maxPlayers", "range", fmt.Sprintf("must be 1 to %d", largest))
	}
	n.minPlayers = 1
	if in.EntryTokenID != 0 {
		n.minPlayers = 2
	}
	switch {
	case in.MinPlayers != nil && (*in.MinPlayers < 1 || *in.MinPlayers > max(in.MaxPlayers, 1)):
		fieldErrors.Add("minPlayers", "range", "must be at least 1 and at most maxPlayers")
	case in.MinPlayers != nil:
		n.minPlayers = *in.MinPlayers
	case n.minPlayers > in.MaxPlayers && in.MaxPlayers == 1:
		fieldErrors.Add("maxPlayers", "range", "must be at least 2 where there is an entry, unless minPlayers is 1")
	}
}

func (n *roomDraft) prepareVisibility(fieldErrors *apierror.FieldErrors) {
	switch n.visibility {
	case "":
		n.visibility = Public
	case Public, Unlisted, Private:
	default:
		fieldErrors.Add("visibility", "unknown", "must be public, unlisted or private")
	}
}

func (n *roomDraft) prepareSettledBy(fieldErrors *apierror.FieldErrors) {
	switch n.settledBy {
	case "":
		n.settledBy = SettledByServer
	case SettledByServer:
	case SettledByConsensus:
		if n.maxPlayers > MaxConsensusPlayers {
			fieldErrors.Add("maxPlayers", "range",
				fmt.Sprintf("must be 1 to %d in a room with consensus", MaxConsensusPlayers))
		}
	default:
		fieldErrors.Add("settlement", "unknown", "must be server or consensus")
	}
	switch n.tie {
	case "":
		n.tie = TieSplit
	case TieSplit, TieRefund:
	default:
		fieldErrors.Add("tie", "unknown", "must be split or refund")
	}
}

// checkAllowed adds an error for a settlement that players of the game may not choose.
func (n *roomDraft) checkAllowed(limits games.Settings, fieldErrors *apierror.FieldErrors) {
	isKnown := n.settledBy == SettledByServer || n.settledBy == SettledByConsensus // else it has an error
	if isKnown && !slices.Contains(limits.Settlements, games.Settlement(n.settledBy)) {
		fieldErrors.Add("settlement", "forbidden", fmt.Sprintf("must be allowed by the game: %s is not", n.settledBy))
	}
}

func (n *roomDraft) prepareRake(in CreateInput, limits games.Settings, fieldErrors *apierror.FieldErrors) {
	if in.RakeBps == nil {
		return
	}
	n.rakeBps = *in.RakeBps
	if n.rakeBps < limits.MinRakeBps || n.rakeBps > limits.MaxRakeBps {
		fieldErrors.Add("rakeBps", "range",
			fmt.Sprintf("must be %d to %d basis points", limits.MinRakeBps, limits.MaxRakeBps))
	}
}

func (n *roomDraft) preparePayout(in CreateInput, fieldErrors *apierror.FieldErrors) {
	if in.PayoutBps == nil {
		n.payoutBps = []int{wallet.FullBps}
		return
	}
	sum := 0
	for i, bps := range in.PayoutBps {
		if bps < 0 || bps > wallet.FullBps {
			fieldErrors.Add(fmt.Sprintf("payout[%d]", i), "range", "must be 0 to 10000 basis points")
			return
		}
		sum += bps
	}
	if sum != wallet.FullBps {
		fieldErrors.Add("payout", "sum", "must sum to 10000 basis points")
	}
	if len(in.PayoutBps) > max(in.MaxPlayers, 1) {
		fieldErrors.Add("payout", "range", "must not have more places than there are players")
	}
}

// parseDecimal reads an amount whose token is not known; an absent one is 0. It returns
// invalid_amount.
func parseDecimal(amount wallet.AmountInput) (*big.Rat, error) {
	if amount == "" {
		return new(big.Rat), nil
	}
	var err error
	scale := big.NewInt(1)
	for decimals := range wallet.MaxDecimals + 1 {
		var units wallet.Units
		if units, err = amount.ToUnits(decimals); err == nil {
			return new(big.Rat).SetFrac(big.NewInt(int64(units)), scale), nil
		}
		scale = new(big.Int).Mul(scale, big.NewInt(10))
	}
	return nil, err
}
