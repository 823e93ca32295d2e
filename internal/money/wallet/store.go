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

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/ledger"
	"github.com/parlor-games/parlor/internal/money/ledgerstore"
	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// store reads and writes wallets, tokens and the ledger in Redis.
type store struct {
	db         *redisdb.DB
	receiptTTL time.Duration
	ledgers    *ledgerstore.Store
}

// EventTopic returns the topic of a player's user.balance and user.asset events in a game.
func (s *Service) EventTopic(gameID, userID int64) string { return keys.WalletLines(gameID, userID) }

// EventSeq returns the number of the last event in EventTopic, 0 before the first.
func (s *Service) EventSeq(ctx context.Context, gameID, userID int64) (int64, error) {
	name := keys.Wallet(gameID, userID)
	seq, err := s.store.db.AutoPipelined.HGet(ctx, name, keys.WalletSeqField).Result()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	if err != nil {
		return 0, redisdb.WrapError("read the number of a player's last event", err)
	}
	values := redisdb.NewValues(name, []string{seq})
	return values.NextInt(), values.Err()
}

// Tokens.

// decodeToken returns the token in the values of keys.TokenFields, without its supply.
func decodeToken(code string, v *redisdb.Values) Token {
	t := Token{ID: v.NextInt(), Code: code, Decimals: int(v.NextInt()), Name: v.NextText()}
	if logo := v.NextText(); logo != "" {
		t.LogoURL = &logo
	}
	t.Metadata = Metadata{AssetName: v.NextText(), PolicyID: v.NextText(), Decimals: strconv.Itoa(t.Decimals)}
	t.Supply.Decimals = t.Decimals
	for entry := range strings.SplitSeq(v.NextText(), ",") {
		if game, limit, ok := strings.Cut(entry, ":"); ok {
			g := redisdb.NewValues("the games of token "+code, []string{game, limit})
			t.Games = append(t.Games, TokenGame{GameID: g.NextInt(), DayLimit: Units(g.NextInt())})
		}
	}
	return t
}

// encodeGames returns what decodeToken decodes.
func encodeGames(games []TokenGame) string {
	entries := make([]string, len(games))
	for i, g := range games {
		entries[i] = strconv.FormatInt(g.GameID, 10) + ":" + g.DayLimit.String()
	}
	return strings.Join(entries, ",")
}

func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func (s store) createToken(ctx context.Context, d TokenDefinition, decimals int, games []TokenGame) error {
	reply, err := s.db.RunScript(ctx, scripts.TokenCreate, []string{keys.Token(d.Code), keys.Tokens()},
		scripts.TokenCreateArgs{
			Nonce: idempotency.NewNonce(), Code: d.Code, Decimals: decimals, Name: d.Name, Logo: orEmpty(d.LogoURL),
			Asset: d.Metadata.AssetName, Policy: d.Metadata.PolicyID, Games: encodeGames(games),
		}.List()...)
	if err != nil {
		return err
	}
	return reply.Err(scripts.TokenCreate)
}

func (s store) patchToken(ctx context.Context, code string, p TokenPatch, games *[]TokenGame) error {
	changes := map[string]*string{
		keys.TokenNameField: p.Name, keys.TokenAssetNameField: p.AssetName, keys.TokenPolicyIDField: p.PolicyID,
	}
	if p.LogoURL != nil {
		changes[keys.TokenLogoField] = new(orEmpty(*p.LogoURL))
	}
	if games != nil {
		changes[keys.TokenGamesField] = new(encodeGames(*games))
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

// readTokens returns those of the tokens that exist, by code, without their supply.
func (s store) readTokens(ctx context.Context, codes []string) (map[string]Token, error) {
	replies := make([]redisdb.Pending[[]any], len(codes))
	for i, code := range codes {
		replies[i] = s.db.AutoPipelined.HMGet(ctx, keys.Token(code), keys.TokenFields...)
	}
	tokens := make(map[string]Token, len(codes))
	for i, code := range codes {
		fields, err := replies[i].Result()
		if err != nil {
			return nil, redisdb.WrapError("read a token", err)
		}
		if fields[0] == nil {
			continue
		}
		v := redisdb.NewValuesFromHMGet("token "+code, fields)
		tokens[code] = decodeToken(code, v)
		if v.Err() != nil {
			return nil, v.Err()
		}
	}
	return tokens, nil
}

// readSupplies returns what was minted of tokens in a game, in all games together when gameID is 0.
func (s store) readSupplies(ctx context.Context, gameID int64, of []supplyKey) (map[supplyKey]Units, error) {
	fields := make([]string, len(of))
	for i, key := range of {
		fields[i] = keys.TotalField(keys.TotalMinted, key.code)
	}
	games, err := s.ledgers.Games(ctx, gameID)
	if err != nil {
		return nil, err
	}
	supplies := make(map[supplyKey]Units, len(of))
	for some := range slices.Chunk(games, gamesPageSize) {
		replies := make([]redisdb.Pending[[]any], len(some))
		for i, id := range some {
			replies[i] = s.db.AutoPipelined.HMGet(ctx, keys.Totals(id), fields...)
		}
		for _, reply := range replies {
			values, err := reply.Result()
			if err != nil {
				return nil, redisdb.WrapError("read the supplies of tokens", err)
			}
			v := redisdb.NewValuesFromHMGet("the supplies of tokens", values)
			for _, key := range of {
				if units := v.NextOptionalInt(); units != nil {
					supplies[key] = ledger.AddBounded(supplies[key], Units(*units))
				}
			}
			if v.Err() != nil {
				return nil, v.Err()
			}
		}
	}
	for _, key := range of {
		supplies[key] += 0 // nothing was minted yet
	}
	return supplies, nil
}

// gamesPageSize bounds how many games one round trip reads.
const gamesPageSize = 1000

// Wallets.

// StoredBalance is one token of a wallet, in minor units: the available and the held balance.
type StoredBalance struct{ Free, Held Units }

// readWallet returns the balances of a player in a game by the code of the token.
func (s store) readWallet(ctx context.Context, gameID, userID int64) (map[string]StoredBalance, error) {
	hash, err := s.db.AutoPipelined.HGetAll(ctx, keys.Wallet(gameID, userID)).Result()
	if err != nil {
		return nil, redisdb.WrapError("read a wallet", err)
	}
	return DecodeBalances(hash)
}

// DecodeBalances decodes the balances in keys.Wallet, by code of the token.
func DecodeBalances(hash redisdb.Hash) (map[string]StoredBalance, error) {
	balances := map[string]StoredBalance{}
	for field, text := range hash.All {
		if !keys.IsTokenField(field) {
			continue
		}
		free, rest, _ := strings.Cut(text, "|")
		held, _, _ := strings.Cut(rest, "|") // a flag may follow
		v := redisdb.NewValues("a balance of "+field, []string{free, held})
		balances[field] = StoredBalance{Free: Units(v.NextInt()), Held: Units(v.NextInt())}
		if v.Err() != nil {
			return nil, v.Err()
		}
	}
	return balances, nil
}

// The ledger.

// accountNames are the kinds of accounts as the operator reads them.
var accountNames = map[string]string{
	keys.AccountWallet: "wallet", keys.AccountEscrow: "escrow", keys.AccountPrizes: "prizes",
	keys.AccountHouse: "house", keys.AccountMint: "minted",
}

// Lines.

// Lines of one token are searched for in this many steps of this many lines at most.
const (
	maxLineSteps = 10
	lineStepSize = 200
)

// readLines returns a page of a player's ledger.
func (s store) readLines(ctx context.Context, gameID, userID int64, q LedgerQuery) (LedgerPage, error) {
	page := LedgerPage{Lines: make([]LedgerLine, 0, q.Limit)}
	before, stepSize := q.BeforeLine, int64(lineStepSize)
	if q.TokenCode == "" {
		stepSize = int64(q.Limit) + 1
	}
	for range maxLineSteps {
		entries, firstID, err := s.readLinesBefore(ctx, gameID, userID, before, stepSize)
		if err != nil && len(page.Lines) > 0 { // the newest ones are there; the next page reports it
			page.NextBefore = before
			return page, nil
		}
		if err != nil {
			return LedgerPage{}, err
		}
		for i, entry := range slices.Backward(entries) {
			l, err := DecodeLine(firstID+int64(i), entry)
			if err != nil {
				return LedgerPage{}, err
			}
			if q.TokenCode != "" && l.TokenCode != q.TokenCode {
				continue
			}
			if len(page.Lines) == q.Limit {
				page.NextBefore = page.Lines[q.Limit-1].ID
				return page, nil
			}
			page.Lines = append(page.Lines, l)
		}
		if len(entries) == 0 || firstID <= 1 {
			return page, nil
		}
		before = firstID
	}
	page.NextBefore = before
	return page, nil
}

// readLinesBefore returns at most count lines, those with the highest ids below before, or the
// newest when before is 0; oldest first. They are all from the store or all from the archive, so
// there may be less than count, and some before them. firstID is the id of the first one.
func (s store) readLinesBefore(
	ctx context.Context, gameID, userID, before, count int64,
) (entries []string, firstID int64, err error) {
	for base := int64(0); ; {
		first, last := -count, int64(-1) // places in the list, from 0; negative ones count from its end
		if before > 0 {
			last = before - base - 2
			first = max(0, last+1-count)
			switch {
			case last < 0 && before == 1:
				return nil, 0, nil
			case last < 0:
				return s.ledgers.ReadArchivedLines(ctx, gameID, userID, before-1, count)
			}
		}
		var baseReply *redis.StringCmd
		var lengthReply *redis.IntCmd
		var entriesReply *redis.StringSliceCmd
		_, err := s.db.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
			baseReply = p.HGet(ctx, keys.Wallet(gameID, userID), keys.WalletBaseField)
			lengthReply = p.LLen(ctx, keys.WalletLines(gameID, userID))
			entriesReply = p.LRange(ctx, keys.WalletLines(gameID, userID), first, last)
			return nil
		})
		if err != nil && !errors.Is(err, redis.Nil) { // Nil: no line was removed yet
			return nil, 0, redisdb.WrapError("read a ledger", err)
		}
		newBase, err := redisdb.OptionalInt(baseReply)
		if err != nil {
			return nil, 0, err
		}
		entries = entriesReply.Val()
		if before == 0 {
			return entries, newBase + lengthReply.Val() - int64(len(entries)) + 1, nil
		}
		if newBase == base {
			return entries, base + first + 1, nil
		}
		base = newBase // lines were removed: the places are others
	}
}

// lineParts is the number of values in a line of type user.balance; one of type user.asset has
// more.
const lineParts = 10

// DecodeLine decodes an entry of keys.WalletLines. The line of a purchase is its part of
// user.balance.
func DecodeLine(id int64, entry string) (LedgerLine, error) {
	parts := strings.Split(entry, "|")
	if len(parts) < lineParts {
		return LedgerLine{}, fmt.Errorf("decode ledger line %d: %d values", id, len(parts))
	}
	v := redisdb.NewValues("ledger line "+strconv.FormatInt(id, 10), parts[2:])
	l := LedgerLine{ID: id, At: v.NextTime(), TokenCode: v.NextText()}
	decimals := int(v.NextInt())
	l.DeltaUnits, l.BalanceAfterUnits = Units(v.NextInt()), Units(v.NextInt())
	l.Delta = Amount{Units: l.DeltaUnits, Decimals: decimals}
	l.BalanceAfter = Amount{Units: l.BalanceAfterUnits, Decimals: decimals}
	v.NextText() // held
	l.Reason, l.Ref = events.Unescape(v.NextText()), events.Unescape(v.NextText())
	return l, v.Err()
}

// LineBalance is the balance of one token after a line.
type LineBalance struct {
	Seq  int64 // number of the event
	Code string
	StoredBalance
}

// DecodeLineBalance decodes the balance of a line in keys.WalletLines.
func DecodeLineBalance(entry string) (LineBalance, error) {
	parts := strings.Split(entry, "|")
	if len(parts) < lineParts {
		return LineBalance{}, fmt.Errorf("decode the line %q: %d values", entry, len(parts))
	}
	seq, _, _ := strings.Cut(parts[0], "-")
	v := redisdb.NewValues("the line "+entry, []string{seq, parts[6], parts[7]})
	b := LineBalance{Code: parts[3], Seq: v.NextInt()}
	b.Free, b.Held = Units(v.NextInt()), Units(v.NextInt())
	return b, v.Err()
}

// Changes of what exists.

// entryKind is the script that writes one kind of ledger entry of a caller.
type entryKind = *scripts.Script

var (
	creditEntry = scripts.WalletCredit
	debitEntry  = scripts.WalletDebit
)

// balanceChange is one run of the script of an entryKind.
type balanceChange struct {
	actorID string // the caller's, in receipts and in the ledger
	gameID  int64  // the player's
	userID  int64
	token   Token
	units   Units // more than 0
	// dayLimit is what the server keys of the game may mint in a day; nil for other callers and for
	// debits.
	dayLimit *Units
	reason   string
	receipt  idempotency.Receipt
	nonce    string
}

// change runs the script of a kind.
func (s store) change(ctx context.Context, kind entryKind, c balanceChange) (result ChangeResult, err error) {
	receipt, ttl := c.receipt.OrPerCall(c.nonce, s.receiptTTL)
	keyNames := []string{
		keys.MoneyReceipt(c.gameID, c.actorID, receipt.KeyDigest), keys.Wallet(c.gameID, c.userID),
		keys.WalletLines(c.gameID, c.userID), keys.Totals(c.gameID), keys.Ledger(c.gameID),
	}
	credit := scripts.WalletCreditArgs{
		CallWithReceiptArgs: scripts.CallWithReceiptArgs{
			Publish: s.db.PublishCommand, Nonce: c.nonce, Fingerprint: receipt.Fingerprint, TTLMS: ttl.Milliseconds(),
		},
		User: c.userID, Token: c.token.Code, Decimals: c.token.Decimals, Units: c.units.String(),
		Reason: events.Escape(c.reason), Ref: events.Escape(c.actorID),
	}
	args := credit.List()
	switch {
	case kind == debitEntry:
		args = scripts.WalletDebitArgs(credit).List()
	case c.dayLimit != nil:
		keyNames, args = append(keyNames, keys.ServerMints(c.gameID)), credit.List(c.dayLimit.String())
	}
	reply, err := s.db.RunScript(ctx, kind, keyNames, args...)
	if err != nil {
		return ChangeResult{}, err
	}
	reply, result.Replayed = idempotency.FirstReply(c.nonce, reply)
	if reply.Status != scripts.OK {
		return result, c.errorOf(kind, reply)
	}
	v := redisdb.NewValues("a balance", reply.Values)
	result.Balance = c.token.BalanceOf(Units(v.NextInt()), Units(v.NextInt()))
	return result, v.Err()
}

// errorOf returns the error of a reply whose status is not ok.
func (c balanceChange) errorOf(kind entryKind, reply redisdb.Reply) error {
	switch reply.Status {
	case apierror.InsufficientFunds.Code:
		v := redisdb.NewValues("a balance", reply.Values)
		available := Units(v.NextInt())
		if v.Err() != nil {
			return v.Err()
		}
		return InsufficientFunds(c.token.Code, c.token.Decimals, available, c.units)
	case apierror.InvalidAmount.Code:
		return errOverLimit
	case apierror.LimitReached.Code:
		limit, _ := c.token.DayLimit(c.gameID)
		return apierror.LimitReached.WithReason("the game's server has credited as much today as it may").
			WithMember("limit", "mintLimitPerDay").WithMember("max", c.token.AmountOf(limit))
	default:
		return reply.Err(kind)
	}
}

// errOverLimit keeps balances and supplies within what can be counted exactly.
var errOverLimit = apierror.InvalidAmount.
	WithReason("the player would have more than %s minor units, or too many would exist", MaxUnits)

func (s store) grant(ctx context.Context, in GrantInput, t Token) error {
	limit, err := in.dayLimit(t)
	if err != nil {
		return err
	}
	names := []string{
		keys.Wallet(in.GameID, in.UserID), keys.WalletLines(in.GameID, in.UserID), keys.Totals(in.GameID),
		keys.Ledger(in.GameID), keys.GrantMints(in.GameID),
	}
	reply, err := s.db.RunScript(ctx, scripts.WalletGrant, names, scripts.WalletGrantArgs{
		Publish: s.db.PublishCommand, Nonce: idempotency.NewNonce(), User: in.UserID, Token: t.Code,
		Decimals: t.Decimals, Units: in.Units.String(), Ref: "game:" + strconv.FormatInt(in.GameID, 10),
		Limit: limit.String(),
	}.List()...)
	switch {
	case err != nil:
		return err
	case reply.Status == apierror.LimitReached.Code:
		return apierror.LimitReached.WithReason("the grants of the game have minted as much today as they may").
			WithMember("limit", "grantLimitPerDay").WithMember("max", t.AmountOf(limit))
	case reply.Status == apierror.InvalidAmount.Code:
		return errOverLimit
	default:
		return reply.Err(scripts.WalletGrant)
	}
}
