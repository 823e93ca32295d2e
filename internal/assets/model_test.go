package assets_test

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/assets"
	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/principal"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/internal/wallet"
	"github.com/parlor-games/parlor/internal/wire"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
)

// The model is what the money scripts promise, in big integers and without a store. Every result,
// and after every step every balance, total, stock, inventory and ledger entry, must be the
// model's.

func TestMoneyScriptsAgreeWithTheModel(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		hundreds := 6
		if db.Kind() == redisdb.KindCluster { // the same scripts, at three times the price
			hundreds = 2
		}
		playCases(t, db, hundreds, false)
	})
}

func TestMoneyScriptsAgreeWithTheModelOnTheEmbeddedStore(t *testing.T) {
	t.Parallel()
	db, err := redisdb.Open(redisdb.EmbeddedURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	playCases(t, db, 1, false)
}

// The store's client resends a script when its reply was lost. Here it loses the reply of every
// script.
func TestMoneyScriptsAgreeWithTheModelWhenEveryReplyIsLostOnce(t *testing.T) {
	t.Parallel()
	db := redistest.Single(t)
	redistest.LoseReplies(db, nil)
	playCases(t, db, 1, true)
}

// playCases plays hundreds of cases on one database, with new players and a new token each.
func playCases(t *testing.T, db *redisdb.DB, hundreds int, resent bool) {
	wallets := wallet.New(db, anyPlayer{}, wallet.Options{})
	catalogue := assets.New(db, wallets, assets.Options{})
	for range hundreds {
		rapid.Check(t, func(rt *rapid.T) {
			m := newModel(rt, db, wallets, catalogue)
			actions := map[string]func(*rapid.T){
				"credit": m.credit, "debit": m.debit, "grant": m.grant,
				"buy": m.buy, "buy more": m.buy, "patch": m.patch,
				"resend": m.resend, "other request": m.reuseKey, "stake": m.stake, "payout": m.payout, "": m.check,
			}
			if resent { // the scripts that stand in for rooms keep no receipt
				delete(actions, "stake")
				delete(actions, "payout")
			}
			rt.Repeat(actions)
			m.checkEvents(rt)
		})
	}
	d, err := wallets.AuditDeep(t.Context(), game)
	if err != nil || !d.Balanced || !d.HeldCounted || d.Wallets == 0 || d.Entries == 0 {
		t.Fatalf("after all cases the audit returned %+v, %v", d, err)
	}
}

const players = 3 // the last one is of the other game

type model struct {
	db        *redisdb.DB
	wallets   *wallet.Service
	catalogue *assets.Service

	token    string
	decimals int
	users    [players]int64
	free     [players]*big.Int
	held     [players]*big.Int
	granted  [players]bool
	assets   []*modelAsset
	minted   *big.Int
	house    *big.Int
	sequence int64 // number of the last ledger entry
	requests []*request

	checkedTo int64               // number of the last ledger entry that check has read
	accounts  map[string]*big.Int // sums of the postings by account
}

type modelAsset struct {
	id           int64
	price        int64
	stock, limit *int64
	active       bool
	sold         int64
	version      int64
	owned        [players]int64
}

// outcome is what a request returned.
type outcome struct {
	summary  string // what the model predicts
	body     string // everything, as JSON
	replayed bool
}

func outcomeOf(result any, summary string, replayed bool, err error) outcome {
	if err != nil {
		text := describeError(err)
		return outcome{text, text, replayed}
	}
	body, err := wire.Marshal(result)
	return outcome{summary, fmt.Sprint(string(body), err), replayed}
}

// request is a request that was made under a key, with its first outcome.
type request struct {
	send func(idempotency.Receipt) outcome
	key  string
	body string
}

var lastID atomic.Int64

func newID() int64 { return lastID.Add(1) }

func newModel(t *rapid.T, db *redisdb.DB, wallets *wallet.Service, catalogue *assets.Service) *model {
	m := &model{
		db: db, wallets: wallets, catalogue: catalogue, token: "T" + strconv.FormatInt(newID(), 10),
		decimals: rapid.IntRange(0, wallet.MaxDecimals).Draw(t, "decimals"),
		minted:   new(big.Int), house: new(big.Int), accounts: map[string]*big.Int{},
	}
	for i := range players {
		m.users[i], m.free[i], m.held[i] = newID(), new(big.Int), new(big.Int)
	}
	_, err := wallets.CreateToken(t.Context(), operator, wallet.TokenDefinition{
		Code: m.token, Name: "Gold & <Silver> \"π\"",
		Metadata: wallet.Metadata{AssetName: "ab", Decimals: strconv.Itoa(m.decimals)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		a := &modelAsset{
			price: drawPrice(t), stock: drawLimit(t, "stock", 0), limit: drawLimit(t, "limit", 1), active: true, version: 1,
		}
		created, err := catalogue.Create(t.Context(), server, game, assets.CreateInput{
			Name: "Sword / \\ \"π\"", TokenCode: m.token, Price: m.amountInput(a.price), Stock: a.stock, PerUserLimit: a.limit,
			Metadata: wire.RawJSON(`{"note": "a\u0000\"/π"}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		a.id = created.ID
		m.assets = append(m.assets, a)
	}
	m.sequence, _ = db.Client.HGet(t.Context(), keys.Totals(game), "seq").Int64()
	m.checkedTo = m.sequence
	return m
}

func drawUnits(t *rapid.T, label string) int64 {
	const limit = int64(wallet.MaxUnits)
	return rapid.OneOf(
		rapid.Int64Range(1, 20), rapid.Int64Range(limit-5, limit), rapid.Int64Range(1, limit), rapid.Just(limit/2),
	).Draw(t, label)
}

func drawPrice(t *rapid.T) int64 {
	const limit = int64(wallet.MaxUnits)
	return rapid.OneOf(
		rapid.Int64Range(0, 9), rapid.Int64Range(1, 9), rapid.Just(limit), rapid.Int64Range(1, limit), rapid.Just(limit/3),
	).Draw(t, "price")
}

func drawLimit(t *rapid.T, label string, least int64) *int64 {
	switch rapid.IntRange(0, 2).Draw(t, label+" kind") {
	case 0:
		return nil
	case 1:
		return new(rapid.Int64Range(least, 5).Draw(t, label))
	default:
		return new(rapid.Int64Range(assets.MaxQuantity, assets.MaxStock).Draw(t, label))
	}
}

func (m *model) amountInput(units int64) wallet.AmountInput {
	return wallet.AmountInput(wallet.Units(units).Decimal(m.decimals))
}

// run sends a request under a new key, or without one, and compares its outcome with the model's.
func (m *model) run(t *rapid.T, want string, send func(idempotency.Receipt) outcome) {
	t.Helper()
	var receipt idempotency.Receipt
	if rapid.IntRange(0, 4).Draw(t, "keyed") > 0 {
		receipt = idempotency.Receipt{KeyDigest: "k" + strconv.FormatInt(newID(), 10), Fingerprint: "f"}
	}
	got := send(receipt)
	if receipt.KeyDigest != "" {
		m.requests = append(m.requests, &request{send: send, key: receipt.KeyDigest, body: got.body})
	}
	if got.summary != want || got.replayed {
		t.Fatalf("the outcome is\n%s (replayed: %v); the model has\n%s", got.summary, got.replayed, want)
	}
}

// resend sends a request again, whatever has happened since: the outcome must be the first one, to
// the letter.
func (m *model) resend(t *rapid.T) {
	if len(m.requests) == 0 {
		t.Skip("no request was made yet")
	}
	r := rapid.SampledFrom(m.requests).Draw(t, "request")
	got := r.send(idempotency.Receipt{KeyDigest: r.key, Fingerprint: "f"})
	if got.body != r.body || !got.replayed {
		t.Fatalf("sent again (replayed: %v):\n%s\nthe first outcome:\n%s", got.replayed, got.body, r.body)
	}
}

// reuseKey sends another request under the key of an earlier one.
func (m *model) reuseKey(t *rapid.T) {
	if len(m.requests) == 0 {
		t.Skip("no request was made yet")
	}
	r := rapid.SampledFrom(m.requests).Draw(t, "request")
	got := r.send(idempotency.Receipt{KeyDigest: r.key, Fingerprint: "other"})
	if got.summary != apierror.IdempotencyKeyReused.Code {
		t.Fatalf("another request under the key returned %s", got.summary)
	}
}

// describeError returns the code of an error with its members as JSON, or the text of an internal
// error.
func describeError(err error) string {
	e, ok := apierror.As(err)
	if !ok {
		return "internal: " + err.Error()
	}
	if len(e.ExtraMembers) == 0 {
		return e.Code
	}
	members, err := wire.Marshal(e.ExtraMembers)
	if err != nil {
		return err.Error()
	}
	return e.Code + " " + string(members)
}

func (m *model) amount(n *big.Int) string {
	return wallet.Units(n.Int64()).Decimal(m.decimals)
}

func (m *model) insufficient(available, required *big.Int) string {
	const format = `insufficient_funds {"available":%s,"availableAmount":"%s",` +
		`"required":%s,"requiredAmount":"%s","tokenId":"%s"}`
	return fmt.Sprintf(format, m.amount(available), available, m.amount(required), required, m.token)
}

func (m *model) balance(player int) string {
	return fmt.Sprintf("ok free %s held %s", m.free[player], m.held[player])
}

var maxUnits = big.NewInt(int64(wallet.MaxUnits))

func (m *model) drawPlayer(t *rapid.T) int { return rapid.IntRange(0, players-1).Draw(t, "player") }

func (m *model) creditInput(player int, units int64) wallet.CreditInput {
	return wallet.CreditInput{
		UserID: m.users[player], TokenCode: m.token, Amount: m.amountInput(units), Reason: `because "π"/`,
	}
}

func changeOutcome(r wallet.ChangeResult, err error) outcome {
	return outcomeOf(r, fmt.Sprintf("ok free %s held %s", r.Balance.SpendableUnits, r.Balance.HeldUnits), r.Replayed, err)
}

// fits reports whether units more in the wallet are within bounds. No case reaches the bound of the
// supply.
func (m *model) fits(player int, units *big.Int) bool {
	sum := new(big.Int).Add(m.free[player], m.held[player])
	return sum.Add(sum, units).Cmp(maxUnits) <= 0
}

func (m *model) credit(t *rapid.T) {
	p, units := m.drawPlayer(t), drawUnits(t, "units")
	n := big.NewInt(units)
	want := "invalid_amount"
	if m.fits(p, n) {
		m.free[p].Add(m.free[p], n)
		m.minted.Add(m.minted, n)
		m.sequence++
		want = m.balance(p)
	}
	ctx, in := t.Context(), m.creditInput(p, units)
	m.run(t, want, func(receipt idempotency.Receipt) outcome {
		return changeOutcome(m.wallets.Credit(ctx, operator, in, receipt))
	})
}

func (m *model) debit(t *rapid.T) {
	p, units := m.drawPlayer(t), drawUnits(t, "units")
	n := big.NewInt(units)
	want := m.insufficient(m.free[p], n)
	if m.free[p].Cmp(n) >= 0 {
		m.free[p].Sub(m.free[p], n)
		m.minted.Sub(m.minted, n)
		m.sequence++
		want = m.balance(p)
	}
	ctx, in := t.Context(), wallet.DebitInput(m.creditInput(p, units))
	m.run(t, want, func(receipt idempotency.Receipt) outcome {
		return changeOutcome(m.wallets.Debit(ctx, operator, in, receipt))
	})
}

func (m *model) grant(t *rapid.T) {
	p, units := m.drawPlayer(t), drawUnits(t, "units")
	n := big.NewInt(units)
	err := m.wallets.Grant(t.Context(), system, wallet.GrantInput{
		UserID: m.users[p], GameID: game, TokenCode: m.token, Units: wallet.Units(units),
	})
	switch {
	case m.granted[p]:
	case !m.fits(p, n):
		if !errors.Is(err, apierror.InvalidAmount) {
			t.Fatalf("a grant that does not fit returned %v", err)
		}
		return
	default:
		m.granted[p] = true
		m.free[p].Add(m.free[p], n)
		m.minted.Add(m.minted, n)
		m.sequence++
	}
	if err != nil {
		t.Fatalf("the grant returned %v", err)
	}
}

func (m *model) buy(t *rapid.T) {
	p := m.drawPlayer(t)
	a := rapid.SampledFrom(m.assets).Draw(t, "asset")
	few, many := rapid.Int64Range(1, 3), rapid.Int64Range(1, assets.MaxQuantity)
	quantity := rapid.OneOf(few, few, many).Draw(t, "quantity")
	in := assets.PurchaseInput{Quantity: quantity}
	expected := a.price
	switch rapid.IntRange(0, 5).Draw(t, "expected price") {
	case 0, 1:
		in.ExpectedPrice = m.amountInput(expected)
	case 2:
		if expected++; expected > int64(wallet.MaxUnits) {
			expected -= 2
		}
		in.ExpectedPrice = m.amountInput(expected)
	}
	caller := principal.Caller{Role: principal.Player, UserID: m.users[p], GameID: game}
	if p == 2 {
		caller.GameID = otherGame
	}

	total := new(big.Int).Mul(big.NewInt(a.price), big.NewInt(quantity))
	var want string
	switch {
	case !a.active || caller.GameID != game:
		want = "asset_not_found"
	case expected != a.price:
		want = fmt.Sprintf(`price_changed {"price":%s,"priceAmount":"%d"}`, m.amountInput(a.price), a.price)
	case a.stock != nil && *a.stock < quantity:
		want = fmt.Sprintf(`sold_out {"stock":%d}`, *a.stock)
	case a.limit != nil && a.owned[p]+quantity > *a.limit:
		want = fmt.Sprintf(`already_owned {"owned":%d,"perUserLimit":%d}`, a.owned[p], *a.limit)
	case total.Cmp(maxUnits) > 0:
		want = "invalid_amount"
	case m.free[p].Cmp(total) < 0:
		want = m.insufficient(m.free[p], total)
	default:
		m.free[p].Sub(m.free[p], total)
		m.house.Add(m.house, total)
		m.sequence++
		a.owned[p] += quantity
		a.sold += quantity
		if a.stock != nil {
			a.stock = new(*a.stock - quantity)
		}
		want = fmt.Sprintf("%s purchase %d total %s owned %d price %d left %s sold %d version %d exist %s",
			m.balance(p), m.sequence, total, a.owned[p], a.price, describeLimit(a.stock), a.sold, a.version, m.minted)
	}
	ctx := t.Context()
	m.run(t, want, func(receipt idempotency.Receipt) outcome {
		bought, err := m.catalogue.Purchase(ctx, caller, a.id, in, receipt)
		return outcomeOf(bought, describePurchase(bought), bought.Replayed, err)
	})
}

func describePurchase(p assets.PurchaseResult) string {
	return fmt.Sprintf("ok free %s held %s purchase %d total %s owned %d price %s left %s sold %d version %d exist %s",
		p.Balance.SpendableUnits, p.Balance.HeldUnits, p.PurchaseID, p.TotalUnits, p.OwnedAfter, p.PriceUnits,
		describeLimit(p.Asset.Stock), p.Asset.Sold, p.Asset.Version, p.EntryToken.Supply.Units)
}

func describeLimit(n *int64) string {
	if n == nil {
		return "no limit"
	}
	return strconv.FormatInt(*n, 10)
}

func (m *model) patch(t *rapid.T) {
	a := rapid.SampledFrom(m.assets).Draw(t, "asset")
	var p assets.PatchInput
	switch rapid.IntRange(0, 3).Draw(t, "part") {
	case 0:
		a.price = drawPrice(t)
		p.Price = new(m.amountInput(a.price))
	case 1:
		a.stock = drawLimit(t, "stock", 0)
		p.Stock = &a.stock
	case 2:
		a.limit = drawLimit(t, "limit", 1)
		p.PerUserLimit = &a.limit
	default:
		a.active = !a.active
		p.Active = &a.active
	}
	a.version++
	got, err := m.catalogue.Patch(t.Context(), server, game, a.id, p)
	if err != nil {
		t.Fatal(err)
	}
	want := got
	want.PriceUnits, want.Price.Units = wallet.Units(a.price), wallet.Units(a.price)
	want.Stock, want.PerUserLimit, want.Active, want.Version = a.stock, a.limit, a.active, a.version
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("the patched asset (-model +got)\n%s", diff)
	}
}

// Rooms move money by scripts of their own; these two stand in for them.
const (
	stakeScript = `
local wallet, totals, ledger, token, units, postings = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2], ARGV[3]
redis.call('HINCRBY', wallet, 'free:' .. token, '-' .. units); redis.call('HINCRBY', wallet, 'held:' .. token, units)
redis.call('HINCRBY', totals, 'wallets:' .. token, '-' .. units)
redis.call('HINCRBY', totals, 'escrow:' .. token, units)
local number = string.format('%.0f', redis.call('HINCRBY', totals, 'seq', 1))
redis.call('XADD', ledger, number .. '-0', 'tok', token, 'post', postings); return 1`
	payoutScript = `
local from, to, totals, ledger, token = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1]
local units, postings = ARGV[2], ARGV[3]
redis.call('HINCRBY', from, 'held:' .. token, '-' .. units); redis.call('HINCRBY', to, 'free:' .. token, units)
redis.call('HINCRBY', totals, 'wallets:' .. token, units)
redis.call('HINCRBY', totals, 'escrow:' .. token, '-' .. units)
local number = string.format('%.0f', redis.call('HINCRBY', totals, 'seq', 1))
redis.call('XADD', ledger, number .. '-0', 'tok', token, 'post', postings); return 1`
)

func (m *model) stake(t *rapid.T) {
	p := m.drawPlayer(t)
	if m.free[p].Sign() == 0 {
		t.Skip("nothing to stake")
	}
	n := new(big.Int).Set(m.free[p])
	if rapid.Bool().Draw(t, "half") && n.BitLen() > 1 {
		n.Rsh(n, 1)
	}
	names := []string{keys.Wallet(m.users[p]), keys.Totals(game), keys.Ledger(game)}
	postings := fmt.Sprintf("w:%d:-%s;e:r:%s", m.users[p], n, n)
	if err := m.db.Client.Eval(t.Context(), stakeScript, names, m.token, n.String(), postings).Err(); err != nil {
		t.Fatal(err)
	}
	m.free[p].Sub(m.free[p], n)
	m.held[p].Add(m.held[p], n)
	m.sequence++
}

// payout may carry a balance past 2^53-1, where it must stay exact.
func (m *model) payout(t *rapid.T) {
	from, to := m.drawPlayer(t), m.drawPlayer(t)
	if m.held[from].Sign() == 0 {
		t.Skip("nothing to pay out")
	}
	n := new(big.Int).Set(m.held[from])
	names := []string{keys.Wallet(m.users[from]), keys.Wallet(m.users[to]), keys.Totals(game), keys.Ledger(game)}
	postings := fmt.Sprintf("e:r:-%s;w:%d:%s", n, m.users[to], n)
	if err := m.db.Client.Eval(t.Context(), payoutScript, names, m.token, n.String(), postings).Err(); err != nil {
		t.Fatal(err)
	}
	m.held[from].SetInt64(0)
	m.free[to].Add(m.free[to], n)
	m.sequence++
}

// stored is everything that the store has about one model.
type stored struct {
	wallets     [players]*redis.SliceCmd
	inventories [players]*redis.SliceCmd
	assets      []*redis.SliceCmd
	totals      *redis.SliceCmd
	ledger      *redis.XMessageSliceCmd
}

// read reads everything in one round trip.
func (m *model) read(t *rapid.T) stored {
	ctx := t.Context()
	var s stored
	_, err := m.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		var assetIDs []string
		for _, a := range m.assets {
			assetIDs = append(assetIDs, strconv.FormatInt(a.id, 10))
			s.assets = append(s.assets, p.HMGet(ctx, keys.Asset(a.id), "stock", "sold"))
		}
		for i, userID := range m.users {
			s.wallets[i] = p.HMGet(ctx, keys.Wallet(userID), keys.FreeField(m.token), keys.HeldField(m.token))
			s.inventories[i] = p.HMGet(ctx, keys.Inventory(userID), assetIDs...)
		}
		s.totals = p.HMGet(ctx, keys.Totals(game), keys.TotalsSequenceField,
			"minted:"+m.token, "wallets:"+m.token, "escrow:"+m.token, "house:"+m.token)
		s.ledger = p.XRange(ctx, keys.Ledger(game), "("+strconv.FormatInt(m.checkedTo, 10), "+")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wantStored fails the test unless a stored value is the model's. A value that is not stored is
// "0".
func wantStored(t *rapid.T, name string, value any, want string) {
	t.Helper()
	if value == nil {
		value = "0"
	}
	if value != want {
		t.Fatalf("%s is %v; the model has %s", name, value, want)
	}
}

// check compares everything that is stored with the model.
func (m *model) check(t *rapid.T) {
	s := m.read(t)
	wallets, escrow := new(big.Int), new(big.Int)
	for i := range players {
		wantStored(t, "a free balance", s.wallets[i].Val()[0], m.free[i].String())
		wantStored(t, "a held balance", s.wallets[i].Val()[1], m.held[i].String())
		wallets.Add(wallets, m.free[i])
		escrow.Add(escrow, m.held[i])
		for j, a := range m.assets {
			wantStored(t, "the number owned", s.inventories[i].Val()[j], strconv.FormatInt(a.owned[i], 10))
		}
	}
	for j, a := range m.assets {
		stock := ""
		if a.stock != nil {
			stock = strconv.FormatInt(*a.stock, 10)
		}
		wantStored(t, "the stock", s.assets[j].Val()[0], stock)
		wantStored(t, "the number sold", s.assets[j].Val()[1], strconv.FormatInt(a.sold, 10))
	}
	wantStored(t, "the number of the last entry", s.totals.Val()[0], strconv.FormatInt(m.sequence, 10))
	for i, n := range []*big.Int{m.minted, wallets, escrow, m.house} {
		wantStored(t, "a total", s.totals.Val()[1+i], n.String())
	}
	m.checkLedger(t, s.ledger.Val(), escrow)
}

// checkLedger adds the postings of new entries to the accounts, which must then be the model's.
func (m *model) checkLedger(t *rapid.T, entries []redis.XMessage, escrow *big.Int) {
	for _, e := range entries {
		m.checkedTo++
		wantStored(t, "the id of an entry", e.ID, strconv.FormatInt(m.checkedTo, 10)+"-0")
		wantStored(t, "the token of an entry", e.Values["tok"], m.token)
		sum := new(big.Int)
		for _, posting := range strings.Split(e.Values["post"].(string), ";") {
			if posting == "" {
				continue
			}
			colon := strings.LastIndex(posting, ":")
			n, ok := new(big.Int).SetString(posting[colon+1:], 10)
			if !ok {
				t.Fatalf("the ledger has the posting %s", posting)
			}
			sum.Add(sum, n)
			account := m.account(posting[:colon])
			account.Add(account, n)
		}
		wantStored(t, "the sum of an entry", sum.String(), "0")
	}
	wantStored(t, "the last entry", strconv.FormatInt(m.checkedTo, 10), strconv.FormatInt(m.sequence, 10))
	for i, userID := range m.users {
		name := "w:" + strconv.FormatInt(userID, 10)
		wantStored(t, "account "+name, m.account(name).String(), m.free[i].String())
	}
	wantStored(t, "account e:r", m.account("e:r").String(), escrow.String())
	wantStored(t, "account h", m.account("h").String(), m.house.String())
	wantStored(t, "account m", m.account("m").String(), new(big.Int).Neg(m.minted).String())
}

func (m *model) account(name string) *big.Int {
	if m.accounts[name] == nil {
		m.accounts[name] = new(big.Int)
	}
	return m.accounts[name]
}

// checkEvents fails the test unless the events of every player are numbered without a gap.
func (m *model) checkEvents(t *rapid.T) {
	for _, userID := range m.users {
		entries, err := m.db.Client.XRange(t.Context(), keys.WalletEvents(userID), "-", "+").Result()
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range entries {
			var event struct {
				Position string         `json:"position"`
				Seq      int64          `json:"seq"`
				Data     map[string]any `json:"data"`
			}
			err := wire.Unmarshal([]byte(e.Values["e"].(string)), &event)
			if err != nil || event.Position != e.ID || event.Data == nil {
				t.Fatalf("the event %v: %v", e, err)
			}
			first, _, _ := strings.Cut(entries[0].ID, "-")
			if strconv.FormatInt(event.Seq-int64(i), 10) != first {
				t.Fatalf("event %d of player %d has number %d after %s", i, userID, event.Seq, first)
			}
		}
	}
}
