package assets_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/assets"
	"github.com/parlor-games/parlor/internal/money/moneytest"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
)

// The model is what the money scripts promise, in big integers and without a store, for players of
// two games. Every result, and after every step every balance, total, stock, inventory and ledger
// entry, must be the model's.

func TestMoneyScriptsAgreeWithTheModel(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		hundreds := 6
		if db.Kind() == redisdb.KindCluster { // the same scripts, at three times the price
			hundreds = 2
		}
		playCases(t, db, hundreds)
	})
}

func TestMoneyScriptsAgreeWithTheModelOnTheEmbeddedStore(t *testing.T) {
	t.Parallel()
	db := testkit.Must(redisdb.Open(redisdb.EmbeddedURL))(t)
	defer func() { _ = db.Close() }()
	playCases(t, db, 1)
}

// The store's client resends a script when its reply was lost. Here it loses the reply of every
// script.
func TestMoneyScriptsAgreeWithTheModelWhenEveryReplyIsLostOnce(t *testing.T) {
	t.Parallel()
	db := redistest.Single(t)
	redistest.LoseReplies(db, nil)
	playCases(t, db, 1)
}

// playCases plays hundreds of cases on one database, with new players and a new token each.
func playCases(t *testing.T, db *redisdb.DB, hundreds int) {
	makeGames(t, db)
	players := &gamePlayers{}
	wallets := wallet.New(db, players, wallet.Options{})
	catalogue := assets.New(db, wallets, assets.Options{})
	for range hundreds {
		rapid.Check(t, func(rt *rapid.T) {
			m := newModel(rt, db, players, wallets, catalogue)
			actions := map[string]func(*rapid.T){
				"credit": m.credit, "debit": m.debit, "grant": m.grant,
				"buy": m.buy, "buy more": m.buy, "patch": m.patch,
				"resend": m.resend, "other request": m.reuseKey, "stake": m.stake, "payout": m.payout,
				"fold": m.fold, "": m.check,
			}
			rt.Repeat(actions)
			m.checkLines(rt)
		})
	}
	for _, gameID := range []int64{game, otherGame, 0} {
		d, err := moneytest.NewAudit(db, wallets).AuditDeep(t.Context(), gameID)
		if err != nil || !d.Balanced || !d.HeldCounted || d.Wallets == 0 || d.Entries == 0 {
			t.Fatalf("after all cases the audit of game %d returned %+v, %v", gameID, d, err)
		}
	}
}

// gamePlayers has every player in the first game but those in others.
type gamePlayers struct{ others sync.Map }

func (p *gamePlayers) Game(_ context.Context, userID int64) (int64, error) {
	if _, ok := p.others.Load(userID); ok {
		return otherGame, nil
	}
	return game, nil
}

const players = 3 // the last one is of the other game

func gameOf(player int) int64 {
	if player == 2 {
		return otherGame
	}
	return game
}

type model struct {
	db        *redisdb.DB
	wallets   *wallet.Service
	catalogue *assets.Service

	token       string
	decimals    int
	users       [players]int64
	free        [players]*big.Int
	held        [players]*big.Int
	granted     [players]bool
	grantsOfDay map[int64]*big.Int // units of the day, by game
	assets      []*modelAsset
	games       map[int64]*modelGame
	requests    []*request
}

type modelGame struct {
	minted   *big.Int
	house    *big.Int
	sequence int64 // number of the last ledger entry

	checkedTo int64                    // number of the last ledger entry that check has read
	entries   map[int64][]modelPosting // by number
	accounts  map[string]*big.Int      // sums of the postings by account
}

type modelPosting struct {
	account string
	units   *big.Int
}

type modelAsset struct {
	id           int64
	gameID       int64
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
	body     string // all that a replay returns again, as JSON
	asset    string // of a purchase: the asset, which a replay returns as it is now
	bought   *modelAsset
	replayed bool
}

func outcomeOf(result any, summary string, replayed bool, err error) outcome {
	if err != nil {
		text := describeError(err)
		return outcome{summary: text, body: text, replayed: replayed}
	}
	body, err := wire.Marshal(result)
	return outcome{summary: summary, body: fmt.Sprint(string(body), err), replayed: replayed}
}

// request is a request that was made under a key, with its first outcome.
type request struct {
	send  func(idempotency.Receipt) outcome
	key   string
	body  string
	asset *modelAsset // what was bought, nil for nothing
}

var lastID atomic.Int64

func newID() int64 { return lastID.Add(1) }

func newModel(
	t *rapid.T, db *redisdb.DB, known *gamePlayers, wallets *wallet.Service, catalogue *assets.Service,
) *model {
	m := &model{
		db: db, wallets: wallets, catalogue: catalogue, token: "T" + strconv.FormatInt(newID(), 10),
		decimals: rapid.IntRange(0, wallet.MaxDecimals).Draw(t, "decimals"),
		games:    map[int64]*modelGame{},
	}
	for i := range players {
		m.users[i], m.free[i], m.held[i] = newID(), new(big.Int), new(big.Int)
		if gameOf(i) == otherGame {
			known.others.Store(m.users[i], true)
		}
	}
	for _, id := range []int64{game, otherGame} {
		length := testkit.Must(db.Client.LLen(t.Context(), keys.Ledger(id)).Result())(t)
		m.games[id] = &modelGame{
			minted: new(big.Int), house: new(big.Int), sequence: length, checkedTo: length,
			entries: map[int64][]modelPosting{}, accounts: map[string]*big.Int{},
		}
	}
	testkit.Must(wallets.CreateToken(t.Context(), operator, wallet.TokenDefinition{
		Code: m.token, Name: "Gold & <Silver> \"π\"",
		Metadata: wallet.Metadata{AssetName: "ab", Decimals: strconv.Itoa(m.decimals)},
	}))(t)
	for _, gameID := range []int64{game, game, otherGame} {
		a := &modelAsset{
			gameID: gameID, price: drawPrice(t), stock: drawLimit(t, "stock", 0), limit: drawLimit(t, "limit", 1),
			active: true, version: 1,
		}
		created := testkit.Must(catalogue.Create(t.Context(), operator, gameID, assets.CreateInput{
			Name: "Sword / \\ \"π\"", TokenCode: m.token, Price: m.amountInput(a.price), Stock: a.stock, PerUserLimit: a.limit,
			Metadata: wire.RawJSON(`{"note": "a\u0000\"/π"}`),
		}))(t)
		a.id = created.ID
		m.assets = append(m.assets, a)
	}
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
		m.requests = append(m.requests, &request{send, receipt.KeyDigest, got.body, got.bought})
	}
	if got.summary != want || got.replayed {
		t.Fatalf("the outcome is\n%s (replayed: %v); the model has\n%s", got.summary, got.replayed, want)
	}
}

// resend sends a request again, whatever has happened since: the outcome must be the first one, to
// the letter, with the asset as it is now.
func (m *model) resend(t *rapid.T) {
	if len(m.requests) == 0 {
		t.Skip("no request was made yet")
	}
	r := rapid.SampledFrom(m.requests).Draw(t, "request")
	got := r.send(idempotency.Receipt{KeyDigest: r.key, Fingerprint: "f"})
	if got.body != r.body || !got.replayed {
		t.Fatalf("sent again (replayed: %v):\n%s\nthe first outcome:\n%s", got.replayed, got.body, r.body)
	}
	if r.asset != nil && got.asset != r.asset.String() {
		t.Fatalf("sent again it has %s; the model has %s", got.asset, r.asset)
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

// mint adds units to what exists in a player's game.
func (m *model) mint(player int, units *big.Int) {
	g := m.games[gameOf(player)]
	g.minted.Add(g.minted, units)
	g.sequence++
}

func (m *model) credit(t *rapid.T) {
	p, units := m.drawPlayer(t), drawUnits(t, "units")
	n := big.NewInt(units)
	want := "invalid_amount"
	if m.fits(p, n) {
		m.free[p].Add(m.free[p], n)
		m.mint(p, n)
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
		m.mint(p, new(big.Int).Neg(n))
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
		UserID: m.users[p], GameID: gameOf(p), TokenCode: m.token, Units: wallet.Units(units),
	})
	limit := new(big.Int).Mul(n, big.NewInt(wallet.DefaultGrantsPerDay))
	if most := big.NewInt(4e18); limit.Cmp(most) > 0 {
		limit = most
	}
	if m.grantsOfDay == nil {
		m.grantsOfDay = map[int64]*big.Int{}
	}
	ofDay := m.grantsOfDay[gameOf(p)]
	if ofDay == nil {
		ofDay = new(big.Int)
	}
	ofDay = new(big.Int).Add(ofDay, n)
	switch {
	case m.granted[p]:
	case units > 0 && ofDay.Cmp(limit) > 0:
		if !errors.Is(err, apierror.LimitReached) {
			t.Fatalf("a grant above the limit of a day returned %v", err)
		}
		return
	case !m.fits(p, n):
		if !errors.Is(err, apierror.InvalidAmount) {
			t.Fatalf("a grant that does not fit returned %v", err)
		}
		return
	default:
		m.grantsOfDay[gameOf(p)] = ofDay
		m.granted[p] = true
		m.free[p].Add(m.free[p], n)
		m.mint(p, n)
	}
	testkit.Check(t, err, "the grant returned")
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
	g := m.games[gameOf(p)]
	caller := principal.Caller{Role: principal.Player, UserID: m.users[p], GameID: gameOf(p)}

	total := new(big.Int).Mul(big.NewInt(a.price), big.NewInt(quantity))
	var want string
	switch {
	case !a.active || caller.GameID != a.gameID:
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
		g.house.Add(g.house, total)
		g.sequence++
		a.owned[p] += quantity
		a.sold += quantity
		if a.stock != nil {
			a.stock = new(*a.stock - quantity)
		}
		want = fmt.Sprintf("%s purchase %d total %s owned %d price %d exist %s, %s",
			m.balance(p), g.sequence, total, a.owned[p], a.price, g.minted, a)
	}
	ctx := t.Context()
	m.run(t, want, func(receipt idempotency.Receipt) outcome {
		bought, err := m.catalogue.Purchase(ctx, caller, a.id, in, receipt)
		summary, asset := describePurchase(bought), describeAsset(bought.Asset)
		bought.Asset, bought.EntryToken = assets.Asset{}, wallet.Token{} // a replay has them as they are now
		o := outcomeOf(bought, summary, bought.Replayed, err)
		if err == nil {
			o.asset, o.bought = asset, a
		}
		return o
	})
}

func describePurchase(p assets.PurchaseResult) string {
	return fmt.Sprintf("ok free %s held %s purchase %d total %s owned %d price %s exist %s, %s",
		p.Balance.SpendableUnits, p.Balance.HeldUnits, p.PurchaseID, p.TotalUnits, p.OwnedAfter, p.PriceUnits,
		p.EntryToken.Supply.Units, describeAsset(p.Asset))
}

func describeAsset(a assets.Asset) string {
	return fmt.Sprintf("asset %d of game %d for %s left %s sold %d version %d",
		a.ID, a.GameID, a.PriceUnits, describeLimit(a.Stock), a.Sold, a.Version)
}

func (a *modelAsset) String() string {
	return fmt.Sprintf("asset %d of game %d for %d left %s sold %d version %d",
		a.id, a.gameID, a.price, describeLimit(a.stock), a.sold, a.version)
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
		p.Stock = wire.Given(a.stock)
	case 2:
		a.limit = drawLimit(t, "limit", 1)
		p.PerUserLimit = wire.Given(a.limit)
	default:
		a.active = !a.active
		p.Active = &a.active
	}
	a.version++
	got := testkit.Must(m.catalogue.Patch(t.Context(), operator, a.gameID, a.id, p))(t)
	want := got
	want.PriceUnits, want.Price.Units = wallet.Units(a.price), wallet.Units(a.price)
	want.Stock, want.PerUserLimit, want.Active, want.Version = a.stock, a.limit, a.active, a.version
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("the patched asset (-model +got)\n%s", diff)
	}
}

// Rooms move money by scripts of their own; stake and payout stand in for them.

// move writes a ledger entry and the new balances of players, with their lines.
func (m *model) move(t *rapid.T, gameID int64, postings string, moved ...int) {
	ctx := t.Context()
	entry := "1|000nonce|" + m.token + "|entry|room|" + postings
	testkit.Check(t, m.db.Client.RPush(ctx, keys.Ledger(gameID), entry).Err())
	m.games[gameID].sequence++
	for _, p := range moved {
		name := keys.Wallet(gameID, m.users[p])
		seq := testkit.Must(m.db.Client.HIncrBy(ctx, name, keys.WalletSeqField, 1).Result())(t)
		line := fmt.Sprintf("%d-000nonce|user.balance|1|%s|%d|0|%s|%s|entry|room",
			seq, m.token, m.decimals, m.free[p], m.held[p])
		testkit.Check(t, m.db.Client.RPush(ctx, keys.WalletLines(gameID, m.users[p]), line).Err())
		balance := m.free[p].String() + "|" + m.held[p].String()
		testkit.Check(t, m.db.Client.HSet(ctx, name, m.token, balance).Err())
	}
}

func (m *model) stake(t *rapid.T) {
	p := m.drawPlayer(t)
	if m.free[p].Sign() == 0 {
		t.Skip("nothing to stake")
	}
	n := new(big.Int).Set(m.free[p])
	if rapid.Bool().Draw(t, "half") && n.BitLen() > 1 {
		n.Rsh(n, 1)
	}
	m.free[p].Sub(m.free[p], n)
	m.held[p].Add(m.held[p], n)
	m.move(t, gameOf(p), fmt.Sprintf("w%d:-%s;e:%s", m.users[p], n, n), p)
}

// payout may carry a balance past 2^53-1, where it must stay exact.
func (m *model) payout(t *rapid.T) {
	from, to := m.drawPlayer(t), m.drawPlayer(t)
	if m.held[from].Sign() == 0 || gameOf(from) != gameOf(to) {
		t.Skip("nothing to pay out")
	}
	n := new(big.Int).Set(m.held[from])
	m.held[from].SetInt64(0)
	m.free[to].Add(m.free[to], n)
	m.move(t, gameOf(to), fmt.Sprintf("e:-%s;w%d:%s", n, m.users[to], n), from, to)
}

func (m *model) fold(t *rapid.T) {
	testkit.Check(t, m.wallets.Fold(t.Context(), gameOf(m.drawPlayer(t))))
}

// stored is everything that the store has about one model.
type stored struct {
	wallets     [players]*redis.SliceCmd
	inventories [players]*redis.SliceCmd
	assets      []*redis.StringCmd
	games       map[int64]storedGame
}

type storedGame struct {
	totals *redis.SliceCmd
	ledger *redis.StringSliceCmd // entries that were not checked yet
}

// read reads everything in one round trip.
func (m *model) read(t *rapid.T) stored {
	ctx := t.Context()
	s := stored{games: map[int64]storedGame{}}
	testkit.Must(m.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		var assetIDs []string
		for _, a := range m.assets {
			assetIDs = append(assetIDs, strconv.FormatInt(a.id, 10))
			s.assets = append(s.assets, p.HGet(ctx, keys.Asset(a.gameID, a.id), keys.AssetLiveField))
		}
		for i, userID := range m.users {
			s.wallets[i] = p.HMGet(ctx, keys.Wallet(gameOf(i), userID), m.token)
			s.inventories[i] = p.HMGet(ctx, keys.Inventory(gameOf(i), userID), assetIDs...)
		}
		for id, g := range m.games {
			s.games[id] = storedGame{
				p.HMGet(ctx, keys.Totals(id), keys.TotalsFoldedField,
					"minted:"+m.token, "wallets:"+m.token, "escrow:"+m.token, "house:"+m.token),
				p.LRange(ctx, keys.Ledger(id), g.checkedTo, -1),
			}
		}
		return nil
	}))(t)
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
	for i := range players {
		balance := s.wallets[i].Val()[0]
		if balance == nil {
			balance = "0|0"
		}
		wantStored(t, "a balance", balance, m.free[i].String()+"|"+m.held[i].String())
		for j, a := range m.assets {
			wantStored(t, "the number owned", s.inventories[i].Val()[j], strconv.FormatInt(a.owned[i], 10))
		}
	}
	for j, a := range m.assets {
		onSale := "0"
		if a.active {
			onSale = "1"
		}
		live := fmt.Sprintf("%d|%s|%d|%s|%s|%d",
			a.version, onSale, a.price, optionalText(a.stock), optionalText(a.limit), a.sold)
		wantStored(t, "the asset", s.assets[j].Val(), live)
	}
	for id, g := range m.games {
		m.checkLedger(t, id, s.games[id].ledger.Val())
		totals := s.games[id].totals.Val()
		folded, _ := totals[0].(string)
		number, _ := strconv.ParseInt(folded, 10, 64)
		wantStored(t, "what was minted", totals[1], g.minted.String())
		for i, kind := range []string{"w", "e", "h"} {
			wantStored(t, "the folded total of "+kind, totals[2+i], g.sumUpTo(number, kind).String())
		}
	}
}

func optionalText(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

// sumUpTo returns what the entries of the model up to a number put into a kind of accounts.
func (g *modelGame) sumUpTo(number int64, kind string) *big.Int {
	sum := new(big.Int)
	for n, postings := range g.entries {
		for _, p := range postings {
			if n <= number && p.account[:1] == kind {
				sum.Add(sum, p.units)
			}
		}
	}
	return sum
}

// checkLedger adds the postings of new entries to the accounts, which must then be the model's.
func (m *model) checkLedger(t *rapid.T, gameID int64, entries []string) {
	g := m.games[gameID]
	for _, e := range entries {
		g.checkedTo++
		parts := strings.Split(e, "|")
		if len(parts) != 6 {
			t.Fatalf("the ledger has the entry %s", e)
		}
		wantStored(t, "the token of an entry", parts[2], m.token)
		sum := new(big.Int)
		for _, text := range strings.Split(parts[5], ";") {
			if text == "" {
				continue
			}
			account, units, _ := strings.Cut(text, ":")
			n, ok := new(big.Int).SetString(units, 10)
			if !ok {
				t.Fatalf("the ledger has the posting %s", text)
			}
			sum.Add(sum, n)
			g.account(account).Add(g.account(account), n)
			g.entries[g.checkedTo] = append(g.entries[g.checkedTo], modelPosting{account, n})
		}
		wantStored(t, "the sum of an entry", sum.String(), "0")
	}
	wantStored(t, "the last entry", strconv.FormatInt(g.checkedTo, 10), strconv.FormatInt(g.sequence, 10))
	escrow := new(big.Int)
	for i, userID := range m.users {
		if gameOf(i) == gameID {
			name := "w" + strconv.FormatInt(userID, 10)
			wantStored(t, "account "+name, g.account(name).String(), m.free[i].String())
			escrow.Add(escrow, m.held[i])
		}
	}
	wantStored(t, "account e", g.account("e").String(), escrow.String())
	wantStored(t, "account h", g.account("h").String(), g.house.String())
	wantStored(t, "account m", g.account("m").String(), new(big.Int).Neg(g.minted).String())
}

func (g *modelGame) account(name string) *big.Int {
	if g.accounts[name] == nil {
		g.accounts[name] = new(big.Int)
	}
	return g.accounts[name]
}

// checkLines fails the test unless the lines of every player are rendered to events that are
// numbered without a gap, and the last one has the balance of the model.
func (m *model) checkLines(t *rapid.T) {
	for i, userID := range m.users {
		lines := testkit.Must(m.db.Client.LRange(t.Context(), keys.WalletLines(gameOf(i), userID), 0, -1).Result())(t)
		seq := int64(0)
		var last map[string]any
		for _, line := range lines {
			rendered := testkit.Must(events.Render(line, ""))(t)
			for _, r := range rendered {
				var event struct {
					Seq  int64          `json:"seq"`
					Data map[string]any `json:"data"`
				}
				if err := wire.Unmarshal(r.JSON, &event); err != nil || event.Seq != seq+1 {
					t.Fatalf("event %d of player %d is %s, %v", seq+1, i, r.JSON, err)
				}
				seq++
				if r.Type == events.UserBalance.Name {
					last = event.Data
				}
			}
		}
		if last == nil {
			last = map[string]any{"amount": "0", "heldAmount": "0"}
		}
		wantStored(t, "the free balance of the last line", last["amount"], m.free[i].String())
		wantStored(t, "the held balance of the last line", last["heldAmount"], m.held[i].String())
		stored, _ := m.db.Client.HGet(t.Context(), keys.Wallet(gameOf(i), userID), keys.WalletSeqField).Int64()
		if stored != seq {
			t.Fatalf("player %d has %d events; the wallet has the number %d", i, seq, stored)
		}
	}
}
