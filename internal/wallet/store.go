package wallet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// store reads and writes wallets, tokens and the ledger in Redis.
type store struct {
	db         *redisdb.DB
	receiptTTL time.Duration
}

// EventTopic returns the topic of a player's user.balance and user.asset events.
func (s *Service) EventTopic(userID int64) string { return keys.WalletEvents(userID) }

// Tokens.

// DecodeToken returns the token in the next six values: id, decimals, name, logo, asset name,
// policy id. The scripts that return a token return these. The caller must check v.Err.
func DecodeToken(code string, supply Units, v *redisdb.Values) Token {
	t := Token{ID: v.NextInt(), Code: code, Decimals: int(v.NextInt()), Name: v.NextText()}
	if logo := v.NextText(); logo != "" {
		t.LogoURL = &logo
	}
	t.Metadata = Metadata{AssetName: v.NextText(), PolicyID: v.NextText(), Decimals: strconv.Itoa(t.Decimals)}
	t.Supply = t.AmountOf(supply)
	return t
}

func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func (s store) createToken(ctx context.Context, d TokenDefinition, decimals int) error {
	reply, err := s.db.RunScript(ctx, scripts.TokenCreate, []string{keys.Token(d.Code), keys.Tokens()},
		idempotency.NewNonce(), d.Code, decimals, d.Name, orEmpty(d.LogoURL),
		d.Metadata.AssetName, d.Metadata.PolicyID)
	if err != nil {
		return err
	}
	return reply.Err(scripts.TokenCreate)
}

func (s store) patchToken(ctx context.Context, code string, p TokenPatch) error {
	changes := map[string]*string{
		keys.TokenNameField: p.Name, keys.TokenAssetNameField: p.AssetName, keys.TokenPolicyIDField: p.PolicyID,
	}
	if p.LogoURL != nil {
		changes[keys.TokenLogoField] = new(orEmpty(*p.LogoURL))
	}
	var args []any
	for field, text := range changes {
		if text != nil {
			args = append(args, field, *text)
		}
	}
	reply, err := s.db.RunScript(ctx, scripts.TokenPatch, []string{keys.Token(code)}, args...)
	if err != nil {
		return err
	}
	return reply.Err(scripts.TokenPatch)
}

func (s store) readTokenCode(ctx context.Context, id int64) (string, error) {
	if id < 1 {
		return "", apierror.TokenNotFound
	}
	code, err := s.db.Client.HGet(ctx, keys.Tokens(), strconv.FormatInt(id, 10)).Result()
	if errors.Is(err, redis.Nil) {
		return "", apierror.TokenNotFound
	}
	return code, redisdb.WrapError("find a token", err)
}

func (s store) listTokenCodes(ctx context.Context) ([]string, error) {
	byID, err := s.db.Client.HGetAll(ctx, keys.Tokens()).Result()
	if err != nil {
		return nil, redisdb.WrapError("list the tokens", err)
	}
	delete(byID, keys.TokensNextField)
	return slices.Collect(maps.Values(byID)), nil
}

// readTokens returns those of the tokens that exist.
func (s store) readTokens(ctx context.Context, codes []string) ([]Token, error) {
	replies := make([]*redis.SliceCmd, len(codes))
	supplyFields := make([]string, len(codes))
	for i, code := range codes {
		supplyFields[i] = keys.TotalField(keys.TotalMinted, code)
	}
	var supplyReply *redis.SliceCmd
	_, err := s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, code := range codes {
			replies[i] = p.HMGet(ctx, keys.Token(code), keys.TokenFields...)
		}
		supplyReply = p.HMGet(ctx, keys.Totals(), supplyFields...)
		return nil
	})
	if err != nil {
		return nil, redisdb.WrapError("read tokens", err)
	}
	supplies := redisdb.NewValuesFromHMGet("the supplies of tokens", supplyReply.Val())
	tokens := make([]Token, 0, len(codes))
	for i, code := range codes {
		supply := supplies.NextOptionalInt()
		if replies[i].Val()[0] == nil {
			continue
		}
		if supply == nil { // nothing was minted yet
			supply = new(int64)
		}
		v := redisdb.NewValuesFromHMGet("token "+code, replies[i].Val())
		tokens = append(tokens, DecodeToken(code, Units(*supply), v))
		if err := errors.Join(v.Err(), supplies.Err()); err != nil {
			return nil, err
		}
	}
	return tokens, nil
}

// Wallets.

// tokenBalance is one token of a wallet, in minor units.
type tokenBalance struct{ free, held Units }

// readWallet returns the balances of a player by the code of the token.
func (s store) readWallet(ctx context.Context, userID int64) (map[string]tokenBalance, error) {
	hash, err := s.db.AutoPipelined.HGetAll(ctx, keys.Wallet(userID)).Result()
	if err != nil {
		return nil, redisdb.WrapError("read a wallet", err)
	}
	return decodeWallet(hash)
}

func decodeWallet(hash map[string]string) (map[string]tokenBalance, error) {
	fields := redisdb.NewFields("a wallet", hash)
	balances := map[string]tokenBalance{}
	for field := range hash {
		code, isHeld := keys.ParseWalletField(field)
		if code == "" {
			continue
		}
		b := balances[code]
		if isHeld {
			b.held = Units(fields.Int(field))
		} else {
			b.free = Units(fields.Int(field))
		}
		balances[code] = b
	}
	return balances, fields.Err()
}

// Lines of one token are searched for in this many steps of this many lines at most.
const (
	maxLineSteps = 10
	lineStepSize = 200
)

// readLines returns a page whose lines lack their decimal amounts.
func (s store) readLines(ctx context.Context, userID int64, q LedgerQuery) (LedgerPage, error) {
	page := LedgerPage{Lines: make([]LedgerLine, 0, q.Limit)}
	before, stepSize := q.BeforeLine, int64(lineStepSize)
	if q.TokenCode == "" {
		stepSize = int64(q.Limit) + 1
	}
	for range maxLineSteps {
		newest := "+"
		if before > 0 {
			newest = "(" + streamEntryID(before)
		}
		entries, err := s.db.Client.XRevRangeN(ctx, keys.WalletLines(userID), newest, "-", stepSize).Result()
		if err != nil {
			return LedgerPage{}, redisdb.WrapError("read a ledger", err)
		}
		for _, e := range entries {
			if q.TokenCode != "" && e.Values[keys.LedgerTokenField] != q.TokenCode {
				continue
			}
			if len(page.Lines) == q.Limit {
				page.NextBefore = page.Lines[q.Limit-1].ID
				return page, nil
			}
			l, err := decodeLine(e)
			if err != nil {
				return LedgerPage{}, err
			}
			page.Lines = append(page.Lines, l)
		}
		if int64(len(entries)) < stepSize {
			return page, nil
		}
		if before, err = entryNumber(entries[len(entries)-1].ID); err != nil {
			return LedgerPage{}, err
		}
	}
	page.NextBefore = before
	return page, nil
}

// streamEntryID returns the id of the stream entry with this number.
func streamEntryID(number int64) string { return strconv.FormatInt(number, 10) + "-0" }

// entryNumber returns the first half of a stream entry's id.
func entryNumber(id string) (int64, error) {
	number, _, _ := strings.Cut(id, "-")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("decode the id of an entry: %w", err)
	}
	return n, nil
}

func decodeLine(e redis.XMessage) (LedgerLine, error) {
	hash := make(map[string]string, len(e.Values))
	for field, value := range e.Values {
		hash[field], _ = value.(string)
	}
	id, err := entryNumber(e.ID)
	f := redisdb.NewFields("ledger line "+e.ID, hash)
	l := LedgerLine{
		ID: id, At: f.Time(keys.LedgerTimeField), TokenCode: f.Text(keys.LedgerTokenField),
		DeltaUnits: Units(f.Int(keys.LedgerDeltaField)), BalanceAfterUnits: Units(f.Int(keys.LedgerBalanceAfterField)),
		Reason: f.Text(keys.LedgerReasonField), Ref: f.Text(keys.LedgerRefField),
	}
	return l, errors.Join(err, f.Err())
}

// entryKind is the script that writes one kind of ledger entry of a caller.
type entryKind = *scripts.Script

var (
	creditEntry = scripts.WalletCredit
	debitEntry  = scripts.WalletDebit
)

// balanceChange is one run of the script of an entryKind.
type balanceChange struct {
	actorID   string // the caller's, in receipts and in the ledger
	userID    int64
	tokenCode string // code
	decimals  *int   // in which units counts; nil while no such token is known
	units     Units
	reason    string
	receipt   idempotency.Receipt
	nonce     string
}

// change runs the script of a kind. stale reports that a token was found that was not known.
func (s store) change(
	ctx context.Context, kind entryKind, c balanceChange,
) (result ChangeResult, stale bool, err error) {
	receipt, ttl := c.receipt.OrPerCall(c.nonce, s.receiptTTL)
	decimals := ""
	if c.decimals != nil {
		decimals = strconv.Itoa(*c.decimals)
	}
	reply, err := s.db.RunScript(ctx, kind,
		[]string{
			keys.Wallet(c.userID), keys.WalletLines(c.userID), keys.WalletEvents(c.userID), keys.Totals(),
			keys.Ledger(), keys.Token(c.tokenCode), keys.MoneyReceipt(c.actorID, receipt.KeyDigest),
		},
		s.db.PublishCommand, c.nonce, receipt.Fingerprint, ttl.Milliseconds(), c.userID, c.tokenCode, decimals,
		c.units.String(), c.reason, c.actorID)
	if err != nil {
		return ChangeResult{}, false, err
	}
	if reply.Status == scripts.Stale {
		return ChangeResult{}, true, nil
	}
	reply, result.Replayed = idempotency.FirstReply(c.nonce, reply)
	if reply.Status != scripts.OK {
		return result, false, c.errorOf(kind, reply)
	}
	v := redisdb.NewValues("a balance", reply.Values)
	free, held := Units(v.NextInt()), Units(v.NextInt())
	result.Balance = DecodeToken(c.tokenCode, 0, v).BalanceOf(free, held)
	return result, false, v.Err()
}

// errorOf returns the error of a reply whose status is not ok.
func (c balanceChange) errorOf(kind entryKind, reply redisdb.Reply) error {
	switch {
	case reply.Status == apierror.InsufficientFunds.Code && c.decimals != nil:
		v := redisdb.NewValues("a balance", reply.Values)
		available := Units(v.NextInt())
		if v.Err() != nil {
			return v.Err()
		}
		return InsufficientFunds(c.tokenCode, *c.decimals, available, c.units)
	case reply.Status == apierror.InvalidAmount.Code:
		return errOverLimit
	default:
		return reply.Err(kind)
	}
}

// errOverLimit keeps balances and supplies within what can be counted exactly.
var errOverLimit = apierror.InvalidAmount.
	WithReason("the player would have more than %s minor units, or too many would exist", MaxUnits)

func (s store) grant(ctx context.Context, in GrantInput) error {
	reply, err := s.db.RunScript(ctx, scripts.WalletGrant,
		[]string{
			keys.Wallet(in.UserID), keys.WalletLines(in.UserID), keys.WalletEvents(in.UserID), keys.Totals(),
			keys.Ledger(), keys.Token(in.TokenCode),
		},
		s.db.PublishCommand, idempotency.NewNonce(), in.UserID, in.GameID, in.TokenCode, in.Units.String())
	switch {
	case err != nil:
		return err
	case reply.Status == apierror.InvalidAmount.Code:
		return errOverLimit
	default:
		return reply.Err(scripts.WalletGrant)
	}
}
