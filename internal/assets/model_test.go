package assets_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/principal"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/assets"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/internal/wallet"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
)

// The model is what the money scripts promise, in big integers and without a store. Every answer, and after every step every
// balance, total, stock, inventory and ledger entry, must be the model's.

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

// The store's client sends a script again when its reply was lost: here it loses the reply of every script.
func TestMoneyScriptsAgreeWithTheModelWhenEveryReplyIsLostOnce(t *testing.T) {
	t.Parallel()
	db := redistest.Single(t)
	db.Client.(*redis.Client).AddHook(loseReplies{})
	playCases(t, db, 1, true)
}

// loseReplies runs every script twice and hands back the second reply, as a client does that lost the first.
type loseReplies struct{}

func (loseReplies) DialHook(next redis.DialHook) redis.DialHook { return next }

func (loseReplies) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		scripts := slices.ContainsFunc(cmds, func(c redis.Cmder) bool { return strings.HasPrefix(c.Name(), "eval") })
		if err != nil || !scripts {
			return err
		}
		return next(ctx, cmds)
	}
}

func (loseReplies) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := next(ctx, cmd); err != nil || !strings.HasPrefix(cmd.Name(), "eval") {
			return err
		}
		return next(ctx, cmd)
	}
}

// playCases plays hundreds of cases on one database, with new players and a new token each.
func playCases(t *testing.T, db *redisdb.DB, hundreds int, resent bool) {
	wallets := wallet.New(db, wallet.Options{})
	catalogue := assets.New(db, wallets, assets.Options{})
	for range hundreds {
		rapid.Check(t, func(rt *rapid.T) {
			m := newModel(rt, db, wallets, catalogue)
			actions := map[string]func(*rapid.T){
				"credit": m.credit, "debit": m.debit, "grant": m.grant, "buy": m.buy, "buy more": m.buy, "patch": m.patch,
				"again": m.again, "other request": m.reuse, "stake": m.stake, "win": m.win, "": m.check,
			}
			if resent { // the moves that stand in for rooms keep no receipt
				delete(actions, "stake")
				delete(actions, "win")
			}
			rt.Repeat(actions)
			m.checkLines(rt)
		})
	}
	d, err := wallets.AuditDeep(t.Context())
	if err != nil || !d.Balanced || !d.HeldCounted || d.Wallets == 0 || d.Entries == 0 {
		t.Fatalf("after all cases the audit says %+v, %v", d, err)
	}
}

const (
	here      = 1 // the game of the assets and of players 0 and 1
	elsewhere = 2 // the game of player 2
	players   = 3
)

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
	seq      int64 // of the ledger
	calls    []*call

	replayedTo int64               // how far check has read the ledger
	accounts   map[string]*big.Int // what it says of this token
}

type modelAsset struct {
	id           int64
	price        int64
	stock, limit *int64
	on           bool
	sold, ver    int64
	owned        [players]int64
}

// call is a request that was made, with its first answer.
type call struct {
	do     func(idempotency.Receipt) (facts, body string, replayed bool)
	key    string
	facts  string
	body   string
	player int
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
	_, err := wallets.CreateToken(t.Context(), wallet.TokenDefinition{
		TokenID: m.token, Name: "Gold & <Silver> \"π\"", Metadata: wallet.Metadata{AssetName: "ab", Decimals: strconv.Itoa(m.decimals)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		a := &modelAsset{price: drawPrice(t), stock: drawCount(t, "stock", 0), limit: drawCount(t, "limit", 1), on: true, ver: 1}
		made, err := catalogue.Create(t.Context(), here, assets.CreateInput{
			Name: "Sword / \\ \"π\"", TokenID: m.token, Price: m.literal(a.price), Stock: a.stock, PerUserLimit: a.limit,
			Metadata: json.RawMessage(`{"note": "a\u0000\"/π"}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		a.id = made.ID
		m.assets = append(m.assets, a)
	}
	m.seq, _ = db.Client.HGet(t.Context(), keys.Totals(), "seq").Int64()
	m.replayedTo = m.seq
	return m
}

func drawUnits(t *rapid.T, label string) int64 {
	const most = int64(wallet.MaxUnits)
	return rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(most-5, most), rapid.Int64Range(1, most), rapid.Just(most/2)).Draw(t, label)
}

func drawPrice(t *rapid.T) int64 {
	const most = int64(wallet.MaxUnits)
	return rapid.OneOf(rapid.Int64Range(0, 9), rapid.Int64Range(1, 9), rapid.Just(most), rapid.Int64Range(1, most), rapid.Just(most/3)).Draw(t, "price")
}

func drawCount(t *rapid.T, label string, least int64) *int64 {
	switch rapid.IntRange(0, 2).Draw(t, label+" kind") {
	case 0:
		return nil
	case 1:
		return new(rapid.Int64Range(least, 5).Draw(t, label))
	default:
		return new(rapid.Int64Range(assets.MaxQuantity, assets.MaxStock).Draw(t, label))
	}
}

func (m *model) literal(units int64) wallet.AmountInput {
	return wallet.AmountInput(wallet.Units(units).Decimal(m.decimals))
}

// make runs a request under a new key, or without one, and compares its answer with the model's.
func (m *model) make(t *rapid.T, player int, want string, do func(idempotency.Receipt) (facts, body string, replayed bool)) {
	t.Helper()
	c := &call{do: do, player: player}
	rc := idempotency.Receipt{}
	if rapid.IntRange(0, 4).Draw(t, "keyed") > 0 {
		c.key = "k" + strconv.FormatInt(newID(), 10)
		rc = idempotency.Receipt{Key: c.key, Fingerprint: "f"}
		m.calls = append(m.calls, c)
	}
	var replayed bool
	c.facts, c.body, replayed = do(rc)
	if c.facts != want || replayed {
		t.Fatalf("the answer is\n%s (replayed: %v); the model says\n%s", c.facts, replayed, want)
	}
}

// again resends a request whatever has happened since: the answer is the first one to the letter.
func (m *model) again(t *rapid.T) {
	if len(m.calls) == 0 {
		t.Skip("nothing was asked yet")
	}
	c := rapid.SampledFrom(m.calls).Draw(t, "call")
	_, body, replayed := c.do(idempotency.Receipt{Key: c.key, Fingerprint: "f"})
	if body != c.body || !replayed {
		t.Fatalf("asked again (replayed: %v):\n%s\nthe first answer:\n%s", replayed, body, c.body)
	}
}

// reuse sends another request under a key.
func (m *model) reuse(t *rapid.T) {
	if len(m.calls) == 0 {
		t.Skip("nothing was asked yet")
	}
	c := rapid.SampledFrom(m.calls).Draw(t, "call")
	if facts, _, _ := c.do(idempotency.Receipt{Key: c.key, Fingerprint: "other"}); facts != "idempotency_key_reused" {
		t.Fatalf("another request under the key answers %s", facts)
	}
}

// told is a refusal with its members as JSON, or the failure.
func told(err error) string {
	r, ok := apierror.As(err)
	if !ok {
		return "failure: " + err.Error()
	}
	if len(r.Members) == 0 {
		return r.Code
	}
	members, err := json.Marshal(r.Members)
	if err != nil {
		return err.Error()
	}
	return r.Code + " " + string(members)
}

func (m *model) amount(n *big.Int) string {
	return wallet.Units(n.Int64()).Decimal(m.decimals)
}

func (m *model) insufficient(available, required *big.Int) string {
	return fmt.Sprintf(`insufficient_funds {"available":%s,"availableAmount":"%s","required":%s,"requiredAmount":"%s","tokenId":"%s"}`,
		m.amount(available), available, m.amount(required), required, m.token)
}

func (m *model) purse(player int) string {
	return fmt.Sprintf("ok free %s held %s", m.free[player], m.held[player])
}

var mostUnits = big.NewInt(int64(wallet.MaxUnits))

func (m *model) drawPlayer(t *rapid.T) int { return rapid.IntRange(0, players-1).Draw(t, "player") }

type direction func(ctx context.Context, who string, user int64, token string, amount wallet.AmountInput, reason string, rc idempotency.Receipt) (wallet.ChangeResult, error)

func (m *model) change(t *rapid.T, way direction, player int, units int64) func(idempotency.Receipt) (string, string, bool) {
	ctx, user, amount := t.Context(), m.users[player], m.literal(units)
	return func(rc idempotency.Receipt) (string, string, bool) {
		c, err := way(ctx, "op", user, m.token, amount, `because "π"/`, rc)
		if err != nil {
			return told(err), told(err), c.Replayed
		}
		body, err := json.Marshal(c)
		return fmt.Sprintf("ok free %s held %s", c.Balance.Amount, c.Balance.HeldAmount), fmt.Sprint(string(body), err), c.Replayed
	}
}

// fits tells whether units more in the wallet are within bounds; the cap on what exists is out of reach of a case.
func (m *model) fits(player int, units *big.Int) bool {
	sum := new(big.Int).Add(m.free[player], m.held[player])
	return sum.Add(sum, units).Cmp(mostUnits) <= 0
}

func (m *model) credit(t *rapid.T) {
	p, units := m.drawPlayer(t), drawUnits(t, "units")
	n := big.NewInt(units)
	want := "invalid_amount"
	if m.fits(p, n) {
		m.free[p].Add(m.free[p], n)
		m.minted.Add(m.minted, n)
		m.seq++
		want = m.purse(p)
	}
	m.make(t, p, want, m.change(t, m.wallets.Credit, p, units))
}

func (m *model) debit(t *rapid.T) {
	p, units := m.drawPlayer(t), drawUnits(t, "units")
	n := big.NewInt(units)
	want := m.insufficient(m.free[p], n)
	if m.free[p].Cmp(n) >= 0 {
		m.free[p].Sub(m.free[p], n)
		m.minted.Sub(m.minted, n)
		m.seq++
		want = m.purse(p)
	}
	m.make(t, p, want, m.change(t, m.wallets.Debit, p, units))
}

func (m *model) grant(t *rapid.T) {
	p, units := m.drawPlayer(t), drawUnits(t, "units")
	n := big.NewInt(units)
	err := m.wallets.Grant(t.Context(), m.users[p], here, m.token, wallet.Units(units))
	switch {
	case m.granted[p]:
	case !m.fits(p, n):
		if !errors.Is(err, apierror.InvalidAmount) {
			t.Fatalf("a grant that does not fit answers %v", err)
		}
		return
	default:
		m.granted[p] = true
		m.free[p].Add(m.free[p], n)
		m.minted.Add(m.minted, n)
		m.seq++
	}
	if err != nil {
		t.Fatalf("the grant answers %v", err)
	}
}

func (m *model) buy(t *rapid.T) {
	p := m.drawPlayer(t)
	a := rapid.SampledFrom(m.assets).Draw(t, "asset")
	quantity := rapid.OneOf(rapid.Int64Range(1, 3), rapid.Int64Range(1, 3), rapid.Int64Range(1, assets.MaxQuantity)).Draw(t, "quantity")
	in := assets.PurchaseInput{Quantity: quantity}
	expected := a.price
	switch rapid.IntRange(0, 5).Draw(t, "expects") {
	case 0, 1:
		in.ExpectedPrice = m.literal(expected)
	case 2:
		if expected++; expected > int64(wallet.MaxUnits) {
			expected -= 2
		}
		in.ExpectedPrice = m.literal(expected)
	}
	who := principal.Caller{Role: principal.Player, User: m.users[p], Game: here}
	if p == 2 {
		who.Game = elsewhere
	}

	total := new(big.Int).Mul(big.NewInt(a.price), big.NewInt(quantity))
	var want string
	switch {
	case !a.on || who.Game != here:
		want = "asset_not_found"
	case expected != a.price:
		want = fmt.Sprintf(`price_changed {"price":%s,"priceAmount":"%d"}`, m.literal(a.price), a.price)
	case a.stock != nil && *a.stock < quantity:
		want = fmt.Sprintf(`sold_out {"stock":%d}`, *a.stock)
	case a.limit != nil && a.owned[p]+quantity > *a.limit:
		want = fmt.Sprintf(`already_owned {"owned":%d,"perUserLimit":%d}`, a.owned[p], *a.limit)
	case total.Cmp(mostUnits) > 0:
		want = "invalid_amount"
	case m.free[p].Cmp(total) < 0:
		want = m.insufficient(m.free[p], total)
	default:
		m.free[p].Sub(m.free[p], total)
		m.house.Add(m.house, total)
		m.seq++
		a.owned[p] += quantity
		a.sold += quantity
		if a.stock != nil {
			a.stock = new(*a.stock - quantity)
		}
		want = fmt.Sprintf("%s purchase %d total %s owned %d price %d left %s sold %d version %d exist %s",
			m.purse(p), m.seq, total, a.owned[p], a.price, count(a.stock), a.sold, a.ver, m.minted)
	}
	ctx := t.Context()
	m.make(t, p, want, func(rc idempotency.Receipt) (string, string, bool) {
		sale, err := m.catalogue.Purchase(ctx, who, a.id, in, rc)
		if err != nil {
			return told(err), told(err), sale.Replayed
		}
		body, err := json.Marshal(sale)
		return fmt.Sprintf("ok free %s held %s purchase %d total %s owned %d price %s left %s sold %d version %d exist %s",
			sale.Balance.Amount, sale.Balance.HeldAmount, sale.PurchaseID, sale.TotalAmount, sale.Owned, sale.PriceAmount,
			count(sale.Asset.Stock), sale.Asset.Sold, sale.Asset.Version, sale.EntryToken.Supply.Units), fmt.Sprint(string(body), err), sale.Replayed
	})
}

func count(n *int64) string {
	if n == nil {
		return "no limit"
	}
	return strconv.FormatInt(*n, 10)
}

func (m *model) patch(t *rapid.T) {
	a := rapid.SampledFrom(m.assets).Draw(t, "asset")
	var p assets.Patch
	switch rapid.IntRange(0, 3).Draw(t, "part") {
	case 0:
		a.price = drawPrice(t)
		p.Price = new(m.literal(a.price))
	case 1:
		a.stock = drawCount(t, "stock", 0)
		p.Stock = &a.stock
	case 2:
		a.limit = drawCount(t, "limit", 1)
		p.PerUserLimit = &a.limit
	default:
		a.on = !a.on
		p.Active = &a.on
	}
	a.ver++
	now, err := m.catalogue.Patch(t.Context(), here, a.id, p)
	if err != nil || int64(now.PriceAmount) != a.price || count(now.Stock) != count(a.stock) || count(now.PerUserLimit) != count(a.limit) ||
		now.Active != a.on || now.Version != a.ver {
		t.Fatalf("the patched asset is %+v, %v; the model says %+v", now, err, a)
	}
}

// Rooms move money by scripts of their own; these two stand in for them.
const (
	stakeScript = `local wallet, totals, journal, tok, units, posts = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2], ARGV[3]
redis.call('HINCRBY', wallet, 'free:' .. tok, '-' .. units); redis.call('HINCRBY', wallet, 'held:' .. tok, units)
redis.call('HINCRBY', totals, 'wallets:' .. tok, '-' .. units); redis.call('HINCRBY', totals, 'escrow:' .. tok, units)
local seq = string.format('%.0f', redis.call('HINCRBY', totals, 'seq', 1))
redis.call('XADD', journal, seq .. '-0', 'tok', tok, 'post', posts); return 1`
	winScript = `local from, wallet, totals, journal, tok, units, posts = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1], ARGV[2], ARGV[3]
redis.call('HINCRBY', from, 'held:' .. tok, '-' .. units); redis.call('HINCRBY', wallet, 'free:' .. tok, units)
redis.call('HINCRBY', totals, 'wallets:' .. tok, units); redis.call('HINCRBY', totals, 'escrow:' .. tok, '-' .. units)
local seq = string.format('%.0f', redis.call('HINCRBY', totals, 'seq', 1))
redis.call('XADD', journal, seq .. '-0', 'tok', tok, 'post', posts); return 1`
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
	err := m.db.Client.Eval(t.Context(), stakeScript, []string{keys.Wallet(m.users[p]), keys.Totals(), keys.Ledger()},
		m.token, n.String(), fmt.Sprintf("w:%d:-%s;e:r:%s", m.users[p], n, n)).Err()
	if err != nil {
		t.Fatal(err)
	}
	m.free[p].Sub(m.free[p], n)
	m.held[p].Add(m.held[p], n)
	m.seq++
}

// win may carry a balance past 2^53-1, where it must stay exact.
func (m *model) win(t *rapid.T) {
	from, to := m.drawPlayer(t), m.drawPlayer(t)
	if m.held[from].Sign() == 0 {
		t.Skip("nothing to win")
	}
	n := new(big.Int).Set(m.held[from])
	err := m.db.Client.Eval(t.Context(), winScript, []string{keys.Wallet(m.users[from]), keys.Wallet(m.users[to]), keys.Totals(), keys.Ledger()},
		m.token, n.String(), fmt.Sprintf("e:r:-%s;w:%d:%s", n, m.users[to], n)).Err()
	if err != nil {
		t.Fatal(err)
	}
	m.held[from].SetInt64(0)
	m.free[to].Add(m.free[to], n)
	m.seq++
}

// check reads everything in one round trip.
func (m *model) check(t *rapid.T) {
	ctx := t.Context()
	var purses [players]*redis.SliceCmd
	var owned [players]*redis.SliceCmd
	var goods []*redis.SliceCmd
	var totals *redis.SliceCmd
	var journal *redis.XMessageSliceCmd
	_, err := m.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, user := range m.users {
			purses[i] = p.HMGet(ctx, keys.Wallet(user), "free:"+m.token, "held:"+m.token)
			owned[i] = p.HMGet(ctx, keys.Inventory(user), strconv.FormatInt(m.assets[0].id, 10), strconv.FormatInt(m.assets[1].id, 10))
		}
		for _, a := range m.assets {
			goods = append(goods, p.HMGet(ctx, keys.Asset(a.id), "stock", "sold"))
		}
		totals = p.HMGet(ctx, keys.Totals(), "seq", "minted:"+m.token, "wallets:"+m.token, "escrow:"+m.token, "house:"+m.token)
		journal = p.XRange(ctx, keys.Ledger(), "("+strconv.FormatInt(m.replayedTo, 10), "+")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	same := func(what string, stored any, want string) {
		t.Helper()
		if stored == nil {
			stored = "0"
		}
		if stored != want {
			t.Fatalf("%s is %v; the model says %s", what, stored, want)
		}
	}
	wallets, escrow := new(big.Int), new(big.Int)
	for i := range players {
		same("what is free", purses[i].Val()[0], m.free[i].String())
		same("what is held", purses[i].Val()[1], m.held[i].String())
		wallets.Add(wallets, m.free[i])
		escrow.Add(escrow, m.held[i])
		for j, a := range m.assets {
			same("what is owned", owned[i].Val()[j], strconv.FormatInt(a.owned[i], 10))
		}
	}
	for j, a := range m.assets {
		stock := ""
		if a.stock != nil {
			stock = count(a.stock)
		}
		same("the stock", goods[j].Val()[0], stock)
		same("what is sold", goods[j].Val()[1], strconv.FormatInt(a.sold, 10))
	}
	same("the ledger's number", totals.Val()[0], strconv.FormatInt(m.seq, 10))
	for i, n := range []*big.Int{m.minted, wallets, escrow, m.house} {
		same("a total", totals.Val()[1+i], n.String())
	}

	for _, e := range journal.Val() {
		m.replayedTo++
		same("a ledger entry's id", e.ID, strconv.FormatInt(m.replayedTo, 10)+"-0")
		same("a ledger entry's token", e.Values["tok"], m.token)
		sum := new(big.Int)
		for _, posting := range strings.Split(e.Values["post"].(string), ";") {
			if posting == "" {
				continue
			}
			at := strings.LastIndex(posting, ":")
			n, ok := new(big.Int).SetString(posting[at+1:], 10)
			if !ok {
				t.Fatalf("the ledger has the posting %s", posting)
			}
			sum.Add(sum, n)
			if m.accounts[posting[:at]] == nil {
				m.accounts[posting[:at]] = new(big.Int)
			}
			m.accounts[posting[:at]].Add(m.accounts[posting[:at]], n)
		}
		same("the sum of an entry", sum.String(), "0")
	}
	same("the last entry", strconv.FormatInt(m.replayedTo, 10), strconv.FormatInt(m.seq, 10))
	replayed := func(account string, want *big.Int) {
		t.Helper()
		n := m.accounts[account]
		if n == nil {
			n = new(big.Int)
		}
		same("account "+account+" of the ledger", n.String(), want.String())
	}
	for i, user := range m.users {
		replayed("w:"+strconv.FormatInt(user, 10), m.free[i])
	}
	replayed("e:r", escrow)
	replayed("h", m.house)
	replayed("m", new(big.Int).Neg(m.minted))
}

// checkLines holds a player's events to be gap-free, and the last one true.
func (m *model) checkLines(t *rapid.T) {
	for _, user := range m.users {
		entries, err := m.db.Client.XRange(t.Context(), keys.WalletEvents(user), "-", "+").Result()
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range entries {
			var event struct {
				Type, Position string
				Seq            int64
				Data           map[string]any
			}
			if err := json.Unmarshal([]byte(e.Values["e"].(string)), &event); err != nil || event.Position != e.ID || event.Data == nil {
				t.Fatalf("the event %v: %v", e, err)
			}
			if first, _, _ := strings.Cut(entries[0].ID, "-"); strconv.FormatInt(event.Seq-int64(i), 10) != first {
				t.Fatalf("event %d of player %d has number %d after %s", i, user, event.Seq, first)
			}
		}
	}
}
