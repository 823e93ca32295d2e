package scripts_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
)

// amountPairs are balances and amounts whose order as texts is not that as numbers, and others
// about the borders of the arithmetic.
var amountPairs = []struct {
	balance, amount string
	covers          bool // whether the balance is at least the amount
}{
	{"9", "10", false},
	{"10", "9", true},
	{"10", "10", true},
	{"99", "100", false},
	{"100", "99", true},
	{"999999999", "1000000000", false},
	{"1000000000", "999999999", true},
	{"1000000001", "1000000002", false},
	{"999999999999999", "1000000000000000", false},
	{"1000000000000000", "999999999999999", true},
	{"9007199254740991", "9007199254740991", true},
	{"9007199254740992", "9007199254740993", false}, // the same number in Lua
	{"9007199254740993", "9007199254740992", true},
	{"3999999999999999999", "4000000000000000000", false},
	{"4000000000000000000", "3999999999999999999", true},
}

func TestADebitComparesAmountsAsNumbers(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		for _, tt := range amountPairs {
			f.setBalance(7, tt.balance, "12345")
			debit := f.newCall(scripts.WalletDebit, values{"units": tt.amount})
			if !tt.covers {
				debit.want("insufficient_funds")
				f.wantBalance(7, tt.balance, "12345")
				continue
			}
			debit.want(scripts.OK)
			f.wantBalance(7, subtract(tt.balance, tt.amount), "12345")
		}
	})
}

// wantBalance compares a balance.
func (f *fixture) wantBalance(user int64, free, held string) {
	f.t.Helper()
	if gotFree, gotHeld := f.balance(user); gotFree != free || gotHeld != held {
		f.t.Errorf("player %d has %s|%s; want %s|%s", user, gotFree, gotHeld, free, held)
	}
}

// integer reads a decimal number of any size.
func integer(text string) *big.Int {
	n, ok := new(big.Int).SetString(text, 10)
	if !ok {
		panic("no number: " + text)
	}
	return n
}

func subtract(a, b string) string { return new(big.Int).Sub(integer(a), integer(b)).String() }

// What is held counts: it may come back.
func TestACreditCountsWhatIsHeld(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		for _, tt := range []struct {
			free, held, units string
			fits              bool
		}{
			{"0", "0", "9007199254740991", true},
			{"0", "0", "9007199254740992", false},
			{"0", "9007199254740990", "1", true},
			{"0", "9007199254740990", "2", false},
			{"9007199254740990", "0", "2", false},
			{"4503599627370495", "4503599627370495", "1", true},
			{"4503599627370495", "4503599627370496", "1", false},
			{"1", "4000000000000000000", "1", false},
		} {
			for _, s := range []*scripts.Script{scripts.WalletCredit, scripts.WalletGrant} {
				f := newFixture(t, db)
				f.setBalance(7, tt.free, tt.held)
				mint := f.newCall(s, values{"units": tt.units})
				if !tt.fits {
					mint.want("invalid_amount")
					f.wantBalance(7, tt.free, tt.held)
					continue
				}
				mint.want(scripts.OK)
				f.wantBalance(7, subtract(tt.units, "-"+tt.free), tt.held)
			}
		}
	})
}

func TestOfATokenExistAtMostFourQuintillionUnits(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		minted := keys.TotalField(keys.TotalMinted, "GOLD")
		f.set(keys.Totals(f.id), minted, "3999999999999999000")
		f.newCall(scripts.WalletCredit, values{"units": 1001}).want("invalid_amount")
		f.newCall(scripts.WalletCredit, values{"units": 1000}).want(scripts.OK)
		f.newCall(scripts.WalletCredit, values{"units": 1}).want("invalid_amount")
		if got := f.field(keys.Totals(f.id), minted); got != "4000000000000000000" {
			t.Errorf("minted are %s", got)
		}
		f.newCall(scripts.WalletDebit, values{"units": 1}).want(scripts.OK)
		f.newCall(scripts.WalletCredit, values{"units": 1}).want(scripts.OK)
	})
}

func TestAPurchaseKeepsStockLimitAndPrice(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		for _, tt := range []struct {
			name         string
			asset, given values
			owned        int
			want         scripts.Status
		}{
			{"all of the stock", values{"stock": 10}, values{"quantity": 10}, 0, "ok"},
			{"nine of ten", values{"stock": 10}, values{"quantity": 9}, 0, "ok"},
			{"ten of nine", values{"stock": 9}, values{"quantity": 10}, 0, "sold_out"},
			{"one of none", values{"stock": 0}, values{"quantity": 1}, 0, "sold_out"},
			{"without a stock", nil, values{"quantity": 10}, 0, "ok"},
			{"up to the limit", values{"limit": 10}, values{"quantity": 10}, 0, "ok"},
			{"up to the limit with what is owned", values{"limit": 10}, values{"quantity": 1}, 9, "ok"},
			{"above the limit", values{"limit": 9}, values{"quantity": 10}, 0, "already_owned"},
			{"above the limit with what is owned", values{"limit": 10}, values{"quantity": 2}, 9, "already_owned"},
			{"one of a limit of none", values{"limit": 0}, values{"quantity": 1}, 0, "already_owned"},
			{"the expected price", values{"price": 10}, values{"quantity": 1, "expected_price": 10}, 0, "ok"},
			{"a price that rose", values{"price": 10}, values{"quantity": 1, "expected_price": 9}, 0, "price_changed"},
			{"a price that fell", values{"price": 9}, values{"quantity": 1, "expected_price": 10}, 0, "price_changed"},
			{"all of the balance", values{"price": 100}, values{"quantity": 10}, 0, "ok"},
			{"nine tenths of the balance", values{"price": 100}, values{"quantity": 9}, 0, "ok"},
			{"more than the balance", values{"price": 1001}, values{"quantity": 1}, 0, "insufficient_funds"},
			{"the largest amount and one", values{"price": 1 << 53}, values{"quantity": 1}, 0, "invalid_amount"},
			{"a product above 2^63", values{"price": 1<<53 - 1}, values{"quantity": 1 << 20}, 0, "invalid_amount"},
		} {
			f := newFixture(t, db)
			asset := values{"price": 1, "stock": "", "limit": ""}
			maps.Copy(asset, tt.asset)
			purchase := f.newPurchase(asset, tt.given)
			if tt.owned > 0 {
				f.set(keys.Inventory(f.id, 7), "5", tt.owned)
			}
			if reply := purchase.run(); reply.Status != tt.want {
				t.Errorf("%s: %v; want %s", tt.name, reply, tt.want)
				continue
			}
			f.wantSale(tt.name, asset, purchase, tt.owned, tt.want == scripts.OK)
		}
	})
}

var assetLive = redisdb.PackedLayout{Name: "an asset", Separator: '|', Layout: scripts.AssetLive}

// wantSale compares what a purchase by a player with 1000 units left.
func (f *fixture) wantSale(name string, asset values, purchase call, owned int, sold bool) {
	f.t.Helper()
	quantity := int(purchase.number("quantity"))
	price := asset["price"].(int)
	if !sold {
		quantity = 0
	}
	f.wantBalance(7, strconv.Itoa(1000-price*quantity), "0")
	live := assetLive.Split(f.field(keys.Asset(f.id, 5), keys.AssetLiveField))
	wantStock := fmt.Sprint(asset["stock"])
	if stock, ok := asset["stock"].(int); ok {
		wantStock = strconv.Itoa(stock - quantity)
	}
	if live.Text("stock") != wantStock || live.Int("sold") != int64(quantity) {
		f.t.Errorf("%s: the stock is %q, sold are %d", name, live.Text("stock"), live.Int("sold"))
	}
	wantOwned := ""
	if owned+quantity > 0 {
		wantOwned = strconv.Itoa(owned + quantity)
	}
	if got := f.field(keys.Inventory(f.id, 7), "5"); got != wantOwned {
		f.t.Errorf("%s: owned are %q; want %q", name, got, wantOwned)
	}
}

// The reply to the first call may be lost, and the asset sold before the call is sent again.
func TestAnAssetThatIsCreatedAgainKeepsWhatWasSold(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		create := f.newAssetCall(nil)
		create.want(scripts.OK)
		f.setBalance(7, "1000", "0")
		f.newCall(scripts.AssetPurchase, values{"asset_id": 5, "quantity": 3, "expected_price": ""}).want(scripts.OK)
		create.changesNothing(scripts.OK)
	})
}

func TestALargePurchaseIsPaidExactly(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.setBalance(7, "4000000000000000000", "4000000000000000000")
		f.newPurchase(values{"price": 3_002_399_751_580_330, "stock": "", "limit": ""}, nil).want(scripts.OK)
		f.wantBalance(7, "3990992800745259010", "4000000000000000000")
	})
}

// newFold returns the call that folds a page of the fixture's ledger.
func (f *fixture) newFold(holder any, most int) call {
	f.t.Helper()
	folded, base := f.number(f.field(keys.Totals(f.id), keys.TotalsFoldedField)), 0
	if text, err := f.db.Client.Get(f.t.Context(), keys.LedgerBase(f.id)).Result(); err == nil {
		base = f.number(text)
	}
	page := f.list(keys.Ledger(f.id))[folded-base:]
	page = page[:min(most, len(page))]
	var pairs []any
	for field, sum := range sumEntries(f.t, page) {
		pairs = append(pairs, field, sum.String())
	}
	return f.newCall(scripts.LedgerFold, values{
		"fence": holder, "before": folded, "base": base, "after": folded + len(page), "last_text": page[len(page)-1],
	}, pairs...)
}

// creditAndFold makes entries that are folded.
func (f *fixture) creditAndFold(entries int) {
	f.t.Helper()
	for range entries {
		f.newCall(scripts.WalletCredit, nil).want(scripts.OK)
	}
	f.newFold("", entries).want(scripts.OK)
}

// newLedgerTrim returns the call that removes the oldest entries of the fixture's ledger as the
// first segment.
func (f *fixture) newLedgerTrim(count int, given values) call {
	f.t.Helper()
	return f.newCall(scripts.LedgerTrim, values{
		"fence": "", "before": 0, "count": count, "last_text": f.list(keys.Ledger(f.id))[count-1], "previous_sum": "",
		"sum": "sum",
	}).with(given)
}

// newLinesTrim returns the call that removes the oldest lines of player 7, and leaves one.
func (f *fixture) newLinesTrim(count int, given values) call {
	f.t.Helper()
	return f.newCall(scripts.LinesTrim, values{
		"before": 0, "count": count, "last_text": f.list(keys.WalletLines(f.id, 7))[count-1], "least": 1,
	}).with(given)
}

// number reads a number, 0 when the text is empty.
func (f *fixture) number(text string) int {
	f.t.Helper()
	return testkit.Must(strconv.Atoi(cmp.Or(text, "0")))(f.t)
}

// sumEntries returns by how much ledger entries change the totals.
func sumEntries(t testkit.T, entries []string) map[string]*big.Int {
	t.Helper()
	names := map[string]string{
		keys.AccountWallet: keys.TotalWallets, keys.AccountEscrow: keys.TotalEscrow, keys.AccountHouse: keys.TotalHouse,
		keys.AccountPrizes: keys.TotalPrizes,
	}
	sums := map[string]*big.Int{}
	for _, entry := range entries {
		token, postings := parseEntry(t, entry)
		for account, units := range postings {
			kind, _ := keys.ParseAccount(account)
			if names[kind] == "" {
				continue
			}
			field := keys.TotalField(names[kind], token)
			if sums[field] == nil {
				sums[field] = new(big.Int)
			}
			sums[field].Add(sums[field], units)
		}
	}
	return sums
}

// wantTotals compares the totals of the fixture's game with the sums of ledger entries.
func (f *fixture) wantTotals(folded int, entries ...string) {
	f.t.Helper()
	want := map[string]string{keys.TotalsFoldedField: strconv.Itoa(folded)}
	for field, sum := range sumEntries(f.t, entries) {
		want[field] = sum.String()
	}
	got := testkit.Must(f.db.Client.HGetAll(f.t.Context(), keys.Totals(f.id)).Result())(f.t)
	maps.DeleteFunc(got, func(field, _ string) bool { return strings.HasPrefix(field, keys.TotalMinted+":") })
	if !maps.Equal(got, want) {
		f.t.Errorf("the totals are %v; want %v", got, want)
	}
}

// parseEntry returns the token of a ledger entry and what it posts to each account.
func parseEntry(t testkit.T, entry string) (token string, postings map[string]*big.Int) {
	t.Helper()
	parts := strings.Split(entry, "|")
	if len(parts) != 6 {
		t.Fatalf("the ledger entry %q has %d parts", entry, len(parts))
	}
	postings = map[string]*big.Int{}
	if parts[5] == "" {
		return parts[2], postings
	}
	for posting := range strings.SplitSeq(parts[5], ";") {
		account, units, _ := strings.Cut(posting, ":")
		if postings[account] == nil {
			postings[account] = new(big.Int)
		}
		postings[account].Add(postings[account], integer(units))
	}
	return parts[2], postings
}

// ledgerOfEveryKind are entries of every kind of account, with amounts beyond what Lua's numbers
// hold.
var ledgerOfEveryKind = []string{
	"1|aaaaaaaa|GOLD|credit|why|m:-4000000000000000000;w1:4000000000000000000",
	"2|aaaaaaab|GOLD|entry|room|w1:-9007199254740991;e:9007199254740991",
	"3|aaaaaaac|GEMS|credit|a b%7Cc|m:-1;w12:1",
	"4|aaaaaaad|GOLD|payout|room|e:-9007199254740991;w2:9007199254740000;w33:1;h:990",
	"5|aaaaaaae|GOLD|purchase|asset:5|w2:-999999999;h:999999999",
	"6|aaaaaaaf|GOLD|purchase|asset:6|",
	"7|aaaaaaag|GOLD|prize|board|h:-1000000001;p:1000000001",
	"8|aaaaaaah|GOLD|prize|board|p:-1000000000;w2:1000000000",
	"9|aaaaaaai|GEMS|debit|why|m:1;w12:-1",
}

func (f *fixture) appendLedger(entries ...string) {
	f.t.Helper()
	for _, entry := range entries {
		testkit.Check(f.t, f.db.Client.RPush(f.t.Context(), keys.Ledger(f.id), entry).Err())
	}
}

func TestTheTotalsAreTheSumsOfTheLedger(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		n := len(ledgerOfEveryKind)
		for page := 1; page <= n+1; page++ { // every border of pages
			f := newFixture(t, db)
			f.appendLedger(ledgerOfEveryKind...)
			for folded := 0; folded < n; {
				folded = min(folded+page, n)
				f.newFold(1, page).want(scripts.OK)
				f.wantTotals(folded, ledgerOfEveryKind[:folded]...)
			}
		}
	})
}

func TestFoldingTwiceChangesNothing(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.appendLedger(ledgerOfEveryKind...)
		again := f.newFold(1, 100)
		f.newFold(1, 100).want(scripts.OK)
		again.changesNothing(scripts.Stale)
		f.appendLedger(ledgerOfEveryKind[1])
		f.newFold(1, 100).want(scripts.OK)
		f.wantTotals(len(ledgerOfEveryKind)+1, append(slices.Clone(ledgerOfEveryKind), ledgerOfEveryKind[1])...)
	})
}

// Entries that are folded may leave the front of the ledger. The others keep their numbers.
func TestALedgerThatLostItsFrontIsFoldedFromWhereItWas(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.appendLedger(ledgerOfEveryKind[:6]...)
		f.newFold(1, 4).want(scripts.OK)
		late := f.newFold(1, 1) // its entries are read before the ledger loses some
		testkit.Check(t, db.Client.LTrim(t.Context(), keys.Ledger(f.id), 3, -1).Err())
		testkit.Check(t, db.Client.Set(t.Context(), keys.LedgerBase(f.id), 3, 0).Err())
		late.changesNothing(scripts.Stale)
		f.wantTotals(4, ledgerOfEveryKind[:4]...)
		f.newFold(1, 1).want(scripts.OK)
		f.wantTotals(5, ledgerOfEveryKind[:5]...)
		f.appendLedger(ledgerOfEveryKind[6:]...)
		f.newFold(1, 100).want(scripts.OK)
		f.wantTotals(len(ledgerOfEveryKind), ledgerOfEveryKind...)

		purchase := f.newPurchase(values{"price": 0}, nil).want(scripts.OK)
		if id := purchase.Values[1]; id != strconv.Itoa(len(ledgerOfEveryKind)+1) {
			t.Errorf("the purchase has the number %s: %v", id, purchase)
		}
	})
}

func TestAnOlderLeaderFoldsNothing(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.appendLedger(ledgerOfEveryKind[:4]...)
		f.newFold(10, 1).want(scripts.OK)
		f.newFold(9, 10).changesNothing(scripts.Stale)
		f.newFold(10, 1).want(scripts.OK)
		f.newFold(11, 1).want(scripts.OK)
		f.newFold(10, 10).changesNothing(scripts.Stale)
		f.wantTotals(3, ledgerOfEveryKind[:3]...)
	})
}
