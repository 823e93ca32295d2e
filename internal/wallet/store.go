package wallet

import (
	"context"
	"errors"
	"fmt"
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

// store is all that the wallet says to Redis.
type store struct {
	db         *redisdb.DB
	receiptTTL time.Duration
}

// EventTopic names the stream of a player's user.balance and user.asset, which is the channel that tells of them too.
func (s *Service) EventTopic(user int64) string { return keys.WalletEvents(user) }

// Tokens.

// tokenFields is what a token's hash holds, in the order in which scripts answer it.
var tokenFields = []string{"id", "decimals", "name", "logo", "asset", "policy"}

// DecodeToken reads a token out of its fields, in the order id, decimals, name, logo, asset, policy, and its supply: a
// script that answers with a token answers these.
func DecodeToken(code string, fields []string, supply string) (Token, error) {
	if len(fields) != len(tokenFields) {
		return Token{}, fmt.Errorf("read the token %s: %d fields", code, len(fields))
	}
	id, err1 := strconv.ParseInt(fields[0], 10, 64)
	decimals, err2 := strconv.Atoi(fields[1])
	units, err3 := ParseUnits(supply)
	if err := errors.Join(err1, err2, err3); err != nil {
		return Token{}, fmt.Errorf("read the token %s: %w", code, err)
	}
	t := Token{
		ID: id, TokenID: code, Name: fields[2], Decimals: decimals,
		Metadata: Metadata{AssetName: fields[4], PolicyID: fields[5], Decimals: fields[1]},
	}
	t.Supply = t.Amount(units)
	if fields[3] != "" {
		t.LogoURL = &fields[3]
	}
	return t, nil
}

// ParseUnits reads an amount that the store holds; none is zero.
func ParseUnits(text string) (Units, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return Units(n), err
}

func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func (s store) createToken(ctx context.Context, d TokenDefinition, decimals int) error {
	word, _, err := s.db.Run(ctx, scripts.TokenCreate, []string{keys.Token(d.TokenID), keys.Tokens()},
		idempotency.NewNonce(), d.TokenID, decimals, d.Name, orEmpty(d.LogoURL), d.Metadata.AssetName, d.Metadata.PolicyID)
	if err != nil || word == "ok" {
		return err
	}
	return redisdb.StatusError(scripts.TokenCreate, word)
}

func (s store) patchToken(ctx context.Context, code string, p TokenPatch) error {
	var pairs []any
	for field, text := range map[string]*string{"name": p.Name, "asset": p.AssetName, "policy": p.PolicyID} {
		if text != nil {
			pairs = append(pairs, field, *text)
		}
	}
	if p.LogoURL != nil {
		pairs = append(pairs, "logo", orEmpty(*p.LogoURL))
	}
	word, _, err := s.db.Run(ctx, scripts.TokenPatch, []string{keys.Token(code)}, pairs...)
	if err != nil || word == "ok" {
		return err
	}
	return redisdb.StatusError(scripts.TokenPatch, word)
}

func (s store) tokenCode(ctx context.Context, id int64) (string, error) {
	if id < 1 {
		return "", apierror.TokenNotFound
	}
	code, err := s.db.Client.HGet(ctx, keys.Tokens(), strconv.FormatInt(id, 10)).Result()
	if errors.Is(err, redis.Nil) {
		return "", apierror.TokenNotFound
	}
	return code, redisdb.WrapError("find a token", err)
}

func (s store) tokenCodes(ctx context.Context) ([]string, error) {
	all, err := s.db.Client.HGetAll(ctx, keys.Tokens()).Result()
	if err != nil {
		return nil, redisdb.WrapError("list the tokens", err)
	}
	delete(all, "next")
	codes := make([]string, 0, len(all))
	for _, code := range all {
		codes = append(codes, code)
	}
	return codes, nil
}

// readTokens reads those of the tokens that exist.
func (s store) readTokens(ctx context.Context, codes []string) ([]Token, error) {
	fields := make([]*redis.SliceCmd, len(codes))
	minted := make([]string, len(codes))
	for i, code := range codes {
		minted[i] = "minted:" + code
	}
	var supplies *redis.SliceCmd
	_, err := s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, code := range codes {
			fields[i] = p.HMGet(ctx, keys.Token(code), tokenFields...)
		}
		supplies = p.HMGet(ctx, keys.Totals(), minted...)
		return nil
	})
	if err != nil {
		return nil, redisdb.WrapError("read tokens", err)
	}
	tokens := make([]Token, 0, len(codes))
	for i, code := range codes {
		if fields[i].Val()[0] == nil {
			continue
		}
		t, err := DecodeToken(code, texts(fields[i].Val()), texts(supplies.Val())[i])
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, t)
	}
	return tokens, nil
}

// texts turns the reply of HMGET into strings; a missing field is "".
func texts(values []any) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i], _ = v.(string)
	}
	return out
}

// Wallets.

// pocket is one token of a wallet.
type pocket struct{ free, held Units }

func (s store) purse(ctx context.Context, user int64) (map[string]pocket, error) {
	fields, err := s.db.AutoPipelined.HGetAll(ctx, keys.Wallet(user)).Result()
	if err != nil {
		return nil, redisdb.WrapError("read a wallet", err)
	}
	return readPurse(fields)
}

func readPurse(fields map[string]string) (map[string]pocket, error) {
	purse := map[string]pocket{}
	for field, text := range fields {
		side, code, ok := strings.Cut(field, ":")
		if !ok || (side != "free" && side != "held") {
			continue
		}
		units, err := ParseUnits(text)
		if err != nil {
			return nil, fmt.Errorf("read a wallet: field %s: %w", field, err)
		}
		p := purse[code]
		if side == "free" {
			p.free = units
		} else {
			p.held = units
		}
		purse[code] = p
	}
	return purse, nil
}

// A page of lines of one token is sought in this many steps of this many lines at most.
const (
	lineSteps = 10
	lineStep  = 200
)

func (s store) lines(ctx context.Context, user int64, q LedgerQuery) ([]LedgerLine, int64, error) {
	page := make([]LedgerLine, 0, q.Limit)
	before, step := q.Before, int64(lineStep)
	if q.TokenID == "" {
		step = int64(q.Limit) + 1
	}
	for range lineSteps {
		newest := "+"
		if before > 0 {
			newest = "(" + strconv.FormatInt(before, 10) + "-0"
		}
		entries, err := s.db.Client.XRevRangeN(ctx, keys.WalletLines(user), newest, "-", step).Result()
		if err != nil {
			return nil, 0, redisdb.WrapError("read a ledger", err)
		}
		for _, e := range entries {
			if q.TokenID != "" && e.Values["tok"] != q.TokenID {
				continue
			}
			if len(page) == q.Limit {
				return page, page[q.Limit-1].ID, nil
			}
			l, err := readLine(e)
			if err != nil {
				return nil, 0, err
			}
			page = append(page, l)
		}
		if int64(len(entries)) < step {
			return page, 0, nil
		}
		before, _ = entryNumber(entries[len(entries)-1].ID)
	}
	return page, before, nil
}

// entryNumber is the first half of a stream entry's id.
func entryNumber(id string) (int64, error) {
	number, _, _ := strings.Cut(id, "-")
	return strconv.ParseInt(number, 10, 64)
}

func readLine(e redis.XMessage) (LedgerLine, error) {
	text := func(field string) string { v, _ := e.Values[field].(string); return v }
	id, err1 := entryNumber(e.ID)
	at, err2 := strconv.ParseInt(text("at"), 10, 64)
	delta, err3 := ParseUnits(text("delta"))
	after, err4 := ParseUnits(text("after"))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return LedgerLine{}, fmt.Errorf("read ledger line %s: %w", e.ID, err)
	}
	return LedgerLine{
		ID: id, At: time.UnixMilli(at).UTC(), TokenID: text("tok"), DeltaAmount: delta, AfterAmount: after,
		Reason: text("why"), Ref: text("ref"),
	}, nil
}

// direction is the script that changes what exists.
type direction = *scripts.Script

var (
	credit = scripts.WalletCredit
	debit  = scripts.WalletDebit
)

// mutation is one call of a direction.
type mutation struct {
	who      string
	user     int64
	token    string
	decimals *int // in which units counts; nil while no such token is known
	units    Units
	reason   string
	receipt  idempotency.Receipt
	nonce    string
}

// change runs a direction. It answers stale when a token turned up that was not known.
func (s store) change(ctx context.Context, way direction, m mutation) (c ChangeResult, stale bool, err error) {
	receipt, ttl := m.receipt.OrPerCall(m.nonce, s.receiptTTL)
	decimals := ""
	if m.decimals != nil {
		decimals = strconv.Itoa(*m.decimals)
	}
	reply, err := s.db.RunScript(ctx, way,
		[]string{
			keys.Wallet(m.user), keys.WalletLines(m.user), keys.WalletEvents(m.user), keys.Totals(), keys.Ledger(), keys.Token(m.token),
			keys.MoneyReceipt(m.who, receipt.Key),
		},
		s.db.PublishCommand, m.nonce, receipt.Fingerprint, ttl.Milliseconds(), m.user, m.token, decimals, m.units.String(), m.reason, m.who)
	if err != nil {
		return ChangeResult{}, false, err
	}
	if reply.Status == scripts.Stale {
		return ChangeResult{}, true, nil
	}
	reply, replayed := idempotency.FirstReply(m.nonce, reply)
	word, rest := reply.Status, reply.Values
	switch {
	case word == "ok" && len(rest) == 2+len(tokenFields):
		b, err := DecodeBalance(m.token, rest[2:], "", rest[0], rest[1])
		return ChangeResult{Balance: b, Replayed: replayed}, false, err
	case word == apierror.InsufficientFunds.Code && len(rest) == 1 && m.decimals != nil:
		available, err := ParseUnits(rest[0])
		if err != nil {
			return ChangeResult{}, false, fmt.Errorf("read a balance: %w", err)
		}
		return ChangeResult{Replayed: replayed}, false, InsufficientFunds(m.token, *m.decimals, available, m.units)
	case word == apierror.InvalidAmount.Code:
		return ChangeResult{Replayed: replayed}, false, tooMuch
	default:
		return ChangeResult{Replayed: replayed}, false, redisdb.StatusError(way, word)
	}
}

// tooMuch is what keeps balances and supplies within what can be counted exactly.
var tooMuch = apierror.InvalidAmount.WithReason("the player would have more than %s minor units, or too many would exist", MaxUnits)

// DecodeBalance reads a token's entry in a wallet out of a script's answer.
func DecodeBalance(code string, fields []string, supply, free, held string) (Balance, error) {
	t, err1 := DecodeToken(code, fields, supply)
	freeUnits, err2 := ParseUnits(free)
	heldUnits, err3 := ParseUnits(held)
	return t.Balance(freeUnits, heldUnits), errors.Join(err1, err2, err3)
}

func (s store) grant(ctx context.Context, user, game int64, token string, units Units) error {
	word, _, err := s.db.Run(ctx, scripts.WalletGrant,
		[]string{keys.Wallet(user), keys.WalletLines(user), keys.WalletEvents(user), keys.Totals(), keys.Ledger(), keys.Token(token)},
		s.db.PublishCommand, idempotency.NewNonce(), user, game, token, units.String())
	switch {
	case err != nil || word == "ok":
		return err
	case word == apierror.InvalidAmount.Code:
		return tooMuch
	default:
		return redisdb.StatusError(scripts.WalletGrant, word)
	}
}

// The audit.

// totals are the running totals as they were at one instant.
type totals struct {
	seq      int64                       // of the last ledger entry
	accounts map[string]map[string]Units // token → minted, wallets, escrow, house → units
}

func (s store) totals(ctx context.Context) (totals, error) {
	fields, err := s.db.Client.HGetAll(ctx, keys.Totals()).Result()
	if err != nil {
		return totals{}, redisdb.WrapError("read the totals", err)
	}
	t := totals{accounts: map[string]map[string]Units{}}
	for field, text := range fields {
		units, err := ParseUnits(text)
		if err != nil {
			return totals{}, fmt.Errorf("read the totals: field %s: %w", field, err)
		}
		account, code, ok := strings.Cut(field, ":")
		if !ok {
			if field == "seq" {
				t.seq = int64(units)
			}
			continue
		}
		if t.accounts[code] == nil {
			t.accounts[code] = map[string]Units{}
		}
		t.accounts[code][account] = units
	}
	return t, nil
}

// scanWallets names the players of some wallets; cursor is "0" at the start and again at the end. A player may come twice.
func (s store) scanWallets(ctx context.Context, cursor string) (users []string, next string, err error) {
	prefix := strings.TrimSuffix(keys.Wallet(0), "0")
	word, rest, err := s.db.Run(ctx, scripts.WalletScan, []string{keys.Totals()}, cursor, prefix, 1000)
	if err != nil {
		return nil, "", err
	}
	if word != "ok" || len(rest) == 0 {
		return nil, "", redisdb.StatusError(scripts.WalletScan, word)
	}
	for _, name := range rest[1:] {
		users = append(users, strings.TrimPrefix(name, prefix))
	}
	return users, rest[0], nil
}

// snapshot is some wallets and the number of the last ledger entry, at one instant.
type snapshot struct {
	seq    int64
	purses map[string]map[string]pocket // user → token → units
}

func (s store) snapshot(ctx context.Context, users []string) (snapshot, error) {
	wallets := make([]*redis.MapStringStringCmd, len(users))
	var seq *redis.StringCmd
	_, err := s.db.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		seq = p.HGet(ctx, keys.Totals(), "seq")
		for i, user := range users {
			id, err := strconv.ParseInt(user, 10, 64)
			if err != nil {
				return fmt.Errorf("read the wallet of %q: %w", user, err)
			}
			wallets[i] = p.HGetAll(ctx, keys.Wallet(id))
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) { // Nil: no money has moved yet
		return snapshot{}, redisdb.WrapError("read wallets", err)
	}
	at := snapshot{purses: make(map[string]map[string]pocket, len(users))}
	at.seq, _ = seq.Int64()
	for i, user := range users {
		if at.purses[user], err = readPurse(wallets[i].Val()); err != nil {
			return snapshot{}, fmt.Errorf("wallet of %s: %w", user, err)
		}
	}
	return at, nil
}

// entry is one entry of the ledger.
type entry struct {
	seq         int64
	token, post string
}

// entries reads ledger entries after one number up to another, some at a time.
func (s store) entries(ctx context.Context, after, upTo int64) ([]entry, error) {
	read, err := s.db.Client.XRangeN(ctx, keys.Ledger(), strconv.FormatInt(after+1, 10), strconv.FormatInt(upTo, 10), 1000).Result()
	if err != nil {
		return nil, redisdb.WrapError("read the ledger", err)
	}
	all := make([]entry, len(read))
	for i, e := range read {
		if all[i].seq, err = entryNumber(e.ID); err != nil {
			return nil, fmt.Errorf("read ledger entry %s: %w", e.ID, err)
		}
		all[i].token, _ = e.Values["tok"].(string)
		all[i].post, _ = e.Values["post"].(string)
	}
	return all, nil
}
