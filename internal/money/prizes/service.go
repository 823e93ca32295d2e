package prizes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// Service has the methods of prizes. It is safe for concurrent use. Every method also returns
// store_unavailable.
type Service struct {
	store   store
	wallets *wallet.Service
}

// New returns the methods on an open store.
func New(db *redisdb.DB, wallets *wallet.Service) *Service {
	return &Service{store: store{db, linesAtOnce}, wallets: wallets}
}

const (
	// MaxLines is the largest number of lines of a plan.
	MaxLines = 100_000
	// linesAtOnce is how many lines one script plans or pays.
	linesAtOnce = 100
	// maxAttempts bounds how often a call is made again because others did it meanwhile.
	maxAttempts = 16
)

// ErrPaying means that a line of the plan is paid, so that the source cannot be voided.
var ErrPaying = errors.New("the prizes are being paid")

var sourcePattern = regexp.MustCompile(`^(board:[a-z0-9_-]{1,64}|tour):[0-9]{1,18}$`)

func checkSource(source string) error {
	if !sourcePattern.MatchString(source) {
		return fmt.Errorf("%q is no source of prizes", source)
	}
	return nil
}

// IsServer reports whether an actor, as principal.Caller.ActorID names it, is the server of a game.
func IsServer(actor string) bool { return strings.HasPrefix(actor, "g") }

// Token returns a token by its code, for amounts of prizes in it. It returns token_not_found.
func (s *Service) Token(ctx context.Context, gameID int64, code string) (wallet.Token, error) {
	return s.wallets.FindToken(ctx, gameID, code)
}

// CheckFunds returns forbidden unless the actor may promise prizes of a token from these funds.
// Only the operator may use the house, and a server may mint only tokens that the operator has
// given its game.
func (s *Service) CheckFunds(gameID int64, token wallet.Token, from Funds, actor string) error {
	if !IsServer(actor) {
		return nil
	}
	if from == House {
		return apierror.Forbidden.WithReason("only an operator can take prizes from the house")
	}
	if _, given := token.DayLimit(gameID); !given {
		return apierror.Forbidden.WithReason("the operator has not given %s to this game", token.Code).
			WithMember("tokenId", token.Code)
	}
	return nil
}

// PromiseAsset notes that an asset is a prize, so that it is never removed. It returns
// asset_not_found.
func (s *Service) PromiseAsset(ctx context.Context, gameID, assetID int64) error {
	return s.store.promiseAsset(ctx, gameID, assetID)
}

// CheckAsset returns asset_not_found for an asset that the game does not have, and invalid_request
// without a field for one with a stock.
func (s *Service) CheckAsset(ctx context.Context, gameID, assetID int64) error {
	hasStock, err := s.store.assetHasStock(ctx, gameID, assetID)
	if err == nil && hasStock {
		err = apierror.InvalidRequest.WithReason("prizes are assets without a stock")
	}
	return err
}

// Fund moves units into the account of a source, once however often it is called. It returns false
// and changes nothing when the house has too little, or the source was voided or paid. Units that a
// server mints count against its daily limit. actor is the ActorID of the caller who promised the
// prizes.
//
// It returns the codes of CheckFunds, limit_reached, and invalid_amount when too many units would
// exist.
func (s *Service) Fund(
	ctx context.Context, gameID int64, source string, token wallet.Token, units wallet.Units, from Funds, actor string,
) (isFunded bool, err error) {
	return s.FundSeason(ctx, gameID, source, token, units, from, actor, Budget{})
}

// Budget bounds the prizes of a leaderboard: they are promised for one season until its scheduled
// end. The zero Budget bounds nothing.
type Budget struct {
	Board   string // of the game
	AtMS    int64  // ms at which the season is funded, by the store's clock
	UntilMS int64  // ms of the scheduled end of the season; 0: it has none, and spends no budget
}

// FundSeason is Fund for a season of a leaderboard, which is charged to the budget. It reports
// false also when the budget is spent: a season before this one was funded and ended before its
// time.
func (s *Service) FundSeason(
	ctx context.Context, gameID int64, source string, token wallet.Token, units wallet.Units, from Funds, actor string,
	budget Budget,
) (isFunded bool, err error) {
	if err := checkSource(source); err != nil {
		return false, err
	}
	if units < 0 || units > wallet.MaxUnits {
		return false, apierror.InvalidAmount.WithReason("prizes are at most %s minor units", wallet.MaxUnits)
	}
	hasUnits := token.Code != "" // else they are assets alone, which come from no funds
	if hasUnits {
		if err := s.CheckFunds(gameID, token, from, actor); err != nil {
			return false, err
		}
	}
	if err := s.wallets.CheckMoney(gameID); err != nil {
		return false, err
	}
	defer s.wallets.MintChanged(gameID, token.Code)
	call := fundCall{
		gameID: gameID, source: source, token: token, units: units, from: from, budget: budget,
		nonce: idempotency.NewNonce(),
	}
	if hasUnits && from == Mint && IsServer(actor) {
		limit, _ := token.DayLimit(gameID)
		call.dayLimit = &limit
	}
	return redisdb.RetryStale(maxAttempts, func() (bool, error) {
		isFunded, err := s.store.fund(ctx, call)
		if errors.Is(err, redisdb.ErrStale) { // fold, so that the script need not read much to know the house
			err = cmp.Or(s.wallets.Fold(ctx, gameID), err)
		}
		return isFunded, err
	})
}

// Plan stores the prizes of each winner. The first complete plan counts, and a later one changes
// nothing. Plan leaves out lines without a prize. The units of all lines must be at most the pool.
// It returns invalid_amount otherwise.
func (s *Service) Plan(ctx context.Context, gameID int64, source string, lines []Line) error {
	if err := checkSource(source); err != nil {
		return err
	}
	if len(lines) > MaxLines {
		return apierror.InvalidRequest.WithReason("a plan has at most %d lines", MaxLines)
	}
	texts := make([]string, 0, len(lines))
	for i, line := range lines {
		if line.UserID < 0 || line.Units < 0 || line.AssetID < 0 || line.Quantity < 0 ||
			line.UserID == 0 && line.AssetID != 0 {
			return fmt.Errorf("line %d of the plan of %s is not valid", i, source)
		}
		if line.Units > 0 || line.AssetID > 0 {
			texts = append(texts, line.encode())
		}
	}
	if err := s.wallets.CheckMoney(gameID); err != nil {
		return err
	}
	_, err := redisdb.RetryStale(maxAttempts, func() (struct{}, error) {
		return struct{}{}, s.store.plan(ctx, gameID, source, texts)
	})
	return err
}

// Pay pays the unpaid lines of the plan, and returns the rest of the pool to where it came from. It
// returns true when everything is paid, also by an earlier call, and false when there is no plan. A
// call that failed halfway is completed by the next one, of any node.
func (s *Service) Pay(ctx context.Context, gameID int64, source string) (done bool, err error) {
	if err := checkSource(source); err != nil {
		return false, err
	}
	if err := s.wallets.CheckMoney(gameID); err != nil {
		return false, err
	}
	code := ""
	defer func() { s.wallets.MintChanged(gameID, code) }()
	return redisdb.RetryStale(maxAttempts, func() (done bool, err error) {
		prize, err := s.store.read(ctx, gameID, source)
		code = prize.TokenCode
		for err == nil && prize.State == StatePlanned {
			prize, err = s.store.pay(ctx, gameID, prize)
		}
		return err == nil && prize.State == StatePaid, err
	})
}

// Void returns the whole pool to where it came from: nobody gets a prize, and the source is never
// funded again. It returns ErrPaying once a line is paid, and for a pool that has more in it than
// was funded: the fees of players go to winners.
func (s *Service) Void(ctx context.Context, gameID int64, source, reason string) error {
	if err := checkSource(source); err != nil {
		return err
	}
	if err := s.wallets.CheckMoney(gameID); err != nil {
		return err
	}
	code, err := s.store.void(ctx, gameID, source, reason)
	s.wallets.MintChanged(gameID, code)
	return err
}

// Read returns the prizes of a source.
func (s *Service) Read(ctx context.Context, gameID int64, source string) (Prize, error) {
	return s.store.read(ctx, gameID, source)
}

// ForgetPlan removes the plan of a source whose prizes are paid or voided. What was paid stays in
// the ledger.
func (s *Service) ForgetPlan(ctx context.Context, gameID int64, source string) error {
	return s.store.forgetPlan(ctx, gameID, source)
}

// ForgetBudget forgets what a leaderboard that is gone has promised.
func (s *Service) ForgetBudget(ctx context.Context, gameID int64, board string) error {
	return s.store.forgetBudget(ctx, gameID, board)
}

// Forget is ForgetPlan for a source that was removed. Its state stays for a minute, so that a
// replaced leader does not fund it again.
func (s *Service) Forget(ctx context.Context, gameID int64, source string) error {
	return s.store.forget(ctx, gameID, source)
}
