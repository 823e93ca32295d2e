package prizes

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// store reads and writes prizes in Redis.
type store struct {
	db          *redisdb.DB
	linesAtOnce int // that one script plans or pays
}

// prizeFields are the fields of keys.Prize that make a Prize, in the order in which it is decoded.
var prizeFields = []string{
	keys.PrizeTokenField, keys.PrizePoolField, keys.PrizePaidField, keys.PrizeStateField, keys.PrizeNextField,
	keys.PrizeLinesField,
}

func (s store) read(ctx context.Context, gameID int64, source string) (Prize, error) {
	reply, err := s.db.Client.HMGet(ctx, keys.Prize(gameID, source), prizeFields...).Result()
	if err != nil {
		return Prize{}, redisdb.WrapError("read the prizes of "+source, err)
	}
	f := redisdb.NewFieldsFromHMGet("the prizes of "+source, prizeFields, reply)
	p := Prize{
		Source: source, TokenCode: f.Text(keys.PrizeTokenField), PoolUnits: wallet.Units(f.Int(keys.PrizePoolField)),
		PaidUnits: wallet.Units(f.Int(keys.PrizePaidField)), State: State(f.Text(keys.PrizeStateField)),
		Next: int(f.Int(keys.PrizeNextField)), Lines: int(f.Int(keys.PrizeLinesField)),
	}
	switch {
	case p.State != "":
	case f.Has(keys.PrizePoolField):
		p.State = StateFunded
	default:
		p.State = StateNone
	}
	return p, f.Err()
}

// fundCall is one run of prize_fund.
type fundCall struct {
	gameID int64
	source string
	token  wallet.Token
	units  wallet.Units
	from   Funds
	// dayLimit is what the server keys of the game may mint in a day; nil unless one of them mints.
	dayLimit *wallet.Units
	budget   Budget
	nonce    string
}

// maxEntriesParsed bounds how many ledger entries a script reads to know what the house has.
const maxEntriesParsed = 200

// fund funds the source, once, and reports whether it has its prizes. It has none when the house
// has too little, the budget is spent, or the source was voided or paid. It returns
// redisdb.ErrStale when too many entries of the ledger are not folded; also limit_reached and
// invalid_amount.
func (s store) fund(ctx context.Context, c fundCall) (bool, error) {
	names := []string{
		keys.Prize(c.gameID, c.source), keys.Totals(c.gameID), keys.Ledger(c.gameID), keys.LedgerBase(c.gameID),
		keys.PrizeBudgets(c.gameID),
	}
	until := ""
	if c.budget.UntilMS != 0 {
		until = strconv.FormatInt(c.budget.UntilMS, 10)
	}
	var limit []any
	if c.dayLimit != nil {
		names, limit = append(names, keys.ServerMints(c.gameID)), []any{c.dayLimit.String()}
	}
	reply, err := s.db.RunScript(ctx, scripts.PrizeFund, names, scripts.PrizeFundArgs{
		Nonce: c.nonce, Source: c.source, Token: c.token.Code, Decimals: c.token.Decimals, Units: c.units.String(),
		From: string(c.from), MostEntries: maxEntriesParsed, Board: c.budget.Board, FundedAt: c.budget.AtMS, UntilMS: until,
	}.List(limit...)...)
	if err != nil {
		return false, err
	}
	switch reply.Status {
	case scripts.OK:
		return len(reply.Values) == 0 || reply.Values[0] == "1", nil
	case scripts.Stale:
		if len(reply.Values) > 0 { // the budget is spent
			return false, nil
		}
		return false, redisdb.ErrStale
	case apierror.InsufficientFunds.Code:
		return false, nil
	case apierror.LimitReached.Code:
		return false, apierror.LimitReached.WithReason("the game's server has minted as much today as it may").
			WithMember("limit", "mintLimitPerDay").WithMember("max", c.token.AmountOf(*c.dayLimit))
	case apierror.InvalidAmount.Code:
		return false, apierror.InvalidAmount.WithReason("too many units would exist")
	}
	return false, reply.Err(scripts.PrizeFund)
}

// plan stores a plan. It returns redisdb.ErrStale when another plan came between.
func (s store) plan(ctx context.Context, gameID int64, source string, lines []string) error {
	for first := 0; first == 0 || first < len(lines); first += s.linesAtOnce {
		if err := s.planFrom(ctx, gameID, source, lines, first); err != nil {
			return err
		}
	}
	return nil
}

// planFrom stores the lines of a plan from one on, as many as one script takes.
func (s store) planFrom(ctx context.Context, gameID int64, source string, lines []string, first int) error {
	next := redisdb.Args(lines[first:min(first+s.linesAtOnce, len(lines))])
	reply, err := s.db.RunScript(ctx, scripts.PrizePlan,
		[]string{keys.Prize(gameID, source), keys.PrizePlan(gameID, source)},
		scripts.PrizePlanArgs{Digest: digestOf(lines), Lines: len(lines), Before: first}.List(next...)...)
	switch {
	case err != nil:
		return err
	case reply.Status == apierror.InvalidAmount.Code:
		return apierror.InvalidAmount.WithReason("the plan of %s pays more than its pool", source)
	}
	return reply.Err(scripts.PrizePlan)
}

// pay pays the next lines of a plan, and returns the state of the prizes after that, or an older
// one if others pay too, without PaidUnits. It returns redisdb.ErrStale when others have paid some
// of the lines.
func (s store) pay(ctx context.Context, gameID int64, p Prize) (Prize, error) {
	lines, err := s.db.Client.LRange(ctx, keys.PrizePlan(gameID, p.Source),
		int64(p.Next), int64(p.Next+s.linesAtOnce-1)).Result()
	if err != nil {
		return p, redisdb.WrapError("read the plan of "+p.Source, err)
	}
	if len(lines) == 0 && p.Next < p.Lines {
		return p, fmt.Errorf("the plan of %s ends before line %d of %d", p.Source, p.Next, p.Lines)
	}
	names := []string{
		keys.Prize(gameID, p.Source), keys.PrizePlan(gameID, p.Source), keys.Totals(gameID), keys.Ledger(gameID),
	}
	for i, line := range lines {
		user, asset, err := parseLine(line)
		if err != nil {
			return p, fmt.Errorf("read line %d of the plan of %s: %w", p.Next+i, p.Source, err)
		}
		if user == 0 {
			continue
		}
		walletKey, linesKey := keys.WalletWithLines(gameID, user)
		names = append(names, walletKey, linesKey)
		if asset != 0 {
			names = append(names, keys.Inventory(gameID, user), keys.Asset(gameID, asset))
		}
	}
	reply, err := s.db.RunScript(ctx, scripts.PrizePay, names,
		scripts.PrizePayArgs{
			Publish: s.db.PublishCommand, Nonce: idempotency.NewNonce(), Source: p.Source, NextLine: p.Next,
			Wanted: len(lines), GivenLines: strings.Join(lines, ","),
		}.List()...)
	switch {
	case err != nil:
		return p, err
	case reply.Status != scripts.OK:
		return p, reply.Err(scripts.PrizePay)
	}
	if p.Next += len(lines); p.Next >= p.Lines {
		p.State = StatePaid
	}
	return p, nil
}

var errBadLine = errors.New("it does not have its form")

// parseLine returns the player and the asset, 0 for none, of a line of a plan.
func parseLine(line string) (user, asset int64, err error) {
	parts := strings.Split(line, ":")
	if len(parts) != 5 {
		return 0, 0, errBadLine
	}
	if user, err = strconv.ParseInt(parts[0], 10, 64); err == nil && parts[3] != "" {
		asset, err = strconv.ParseInt(parts[3], 10, 64)
	}
	return user, asset, err
}

// void returns the token of the source.
func (s store) void(ctx context.Context, gameID int64, source, reason string) (tokenCode string, err error) {
	reply, err := s.db.RunScript(ctx, scripts.PrizeVoid,
		[]string{keys.Prize(gameID, source), keys.Totals(gameID), keys.Ledger(gameID)},
		scripts.PrizeVoidArgs{
			Nonce: idempotency.NewNonce(), Source: source, Reason: events.Escape(reason),
		}.List()...)
	switch {
	case err != nil:
		return "", err
	case reply.Status == scripts.Stale:
		return "", ErrPaying
	case reply.Status != scripts.OK:
		return "", reply.Err(scripts.PrizeVoid)
	}
	p, err := s.read(ctx, gameID, source)
	return p.TokenCode, err
}

// forgetBudget removes the budget of a leaderboard.
func (s store) forgetBudget(ctx context.Context, gameID int64, board string) error {
	return redisdb.WrapError("forget the budget of prizes",
		s.db.Client.HDel(ctx, keys.PrizeBudgets(gameID), board).Err())
}

// forgetPlan removes the plan of a source that is over.
func (s store) forgetPlan(ctx context.Context, gameID int64, source string) error {
	p, err := s.read(ctx, gameID, source)
	if err != nil || p.State != StatePaid && p.State != StateVoid {
		return err
	}
	return redisdb.WrapError("remove a plan", s.db.Client.Unlink(ctx, keys.PrizePlan(gameID, source)).Err())
}

// stateLife is longer than a leader that was replaced can still be at work.
const stateLife = time.Minute

// forget removes a source that is over.
func (s store) forget(ctx context.Context, gameID int64, source string) error {
	p, err := s.read(ctx, gameID, source)
	if err != nil || p.State != StatePaid && p.State != StateVoid {
		return err
	}
	if err := s.forgetPlan(ctx, gameID, source); err != nil {
		return err
	}
	return redisdb.WrapError("forget prizes", s.db.Client.Expire(ctx, keys.Prize(gameID, source), stateLife).Err())
}

// promiseAsset notes that an asset is a prize, so that it is never removed. It returns
// asset_not_found.
func (s store) promiseAsset(ctx context.Context, gameID, assetID int64) error {
	reply, err := s.db.RunScript(ctx, scripts.AssetPromise, []string{keys.Asset(gameID, assetID)})
	if err != nil {
		return err
	}
	return reply.Err(scripts.AssetPromise)
}

var assetPacked = redisdb.PackedLayout{Name: "an asset", Separator: '|', Layout: scripts.AssetLive}

// assetHasStock reports whether an asset has a stock. It returns asset_not_found.
func (s store) assetHasStock(ctx context.Context, gameID, assetID int64) (bool, error) {
	text, err := s.db.Client.HGet(ctx, keys.Asset(gameID, assetID), keys.AssetLiveField).Result()
	if errors.Is(err, redis.Nil) {
		return false, apierror.AssetNotFound
	}
	if err != nil {
		return false, redisdb.WrapError("read an asset", err)
	}
	live := assetPacked.Split(text)
	return live.Text("stock") != "", live.Err()
}
