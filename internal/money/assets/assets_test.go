package assets_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/assets"
	"github.com/parlor-games/parlor/internal/money/moneytest"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/domaintest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

const (
	game      = 1 // the game of the assets
	otherGame = 2
)

var (
	operator = domaintest.Operator
	server   = principal.Caller{Role: principal.Server, GameID: game}
	system   = principal.Caller{Role: principal.System}

	noReceipt idempotency.Receipt
)

// fixture is a catalogue with a token of two decimals.
type fixture struct {
	*assets.Service
	t       testing.TB
	db      *redisdb.DB
	wallets *wallet.Service
	money   domaintest.Money // GOLD
}

func newFixture(t testing.TB, db *redisdb.DB) fixture {
	t.Helper()
	makeGames(t, db)
	wallets := wallet.New(db, domaintest.NewPlayers(game), wallet.Options{})
	money := domaintest.NewMoney(t, db, wallets, game, wallet.TokenDefinition{Code: "GOLD"})
	return fixture{assets.New(db, wallets, assets.Options{}), t, db, wallets, money}
}

// makeGames gives the store the two games.
func makeGames(t testing.TB, db *redisdb.DB) {
	t.Helper()
	testkit.Check(t, db.Client.Set(t.Context(), keys.GameIDCounter(), otherGame, 0).Err())
}

// createAsset creates an asset that is priced in GOLD.
func (f fixture) createAsset(in assets.CreateInput) assets.Asset {
	f.t.Helper()
	in.TokenCode = "GOLD"
	if in.Name == "" {
		in.Name = "Sword"
	}
	return testkit.Must(f.Create(f.t.Context(), server, game, in))(f.t)
}

func (f fixture) buy(userID, assetID, quantity int64, key string) (assets.PurchaseResult, error) {
	in := assets.PurchaseInput{Quantity: quantity}
	return f.Purchase(f.t.Context(), player(userID), assetID, in, idempotency.Receipt{KeyDigest: key, Fingerprint: "f"})
}

// player returns a player of the game.
func player(userID int64) principal.Caller {
	return principal.Caller{Role: principal.Player, UserID: userID, GameID: game}
}

func TestAThousandCopiesOfOnePurchaseHaveOneEffectAndOneResult(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		gem := f.createAsset(assets.CreateInput{Price: "0.07", Stock: new(int64(100))})
		f.money.Credit("100", 1)
		var mu sync.Mutex
		var firsts atomic.Int64
		results := map[string]int{}
		var buyers sync.WaitGroup
		for range 50 {
			buyers.Go(func() {
				for range 20 {
					purchase, err := f.buy(1, gem.ID, 3, "once")
					if err != nil {
						t.Error(err)
						return
					}
					if !purchase.Replayed {
						firsts.Add(1)
					}
					body, err := wire.Marshal(purchase)
					testkit.Report(t, err)
					mu.Lock()
					results[string(body)]++
					mu.Unlock()
				}
			})
		}
		buyers.Wait()
		if len(results) != 1 || firsts.Load() != 1 {
			t.Fatalf("%d different results, %d of them first: %v", len(results), firsts.Load(), results)
		}
		f.money.WantBalance(1, 10000-21, 0)
		f.money.Audit()
	})
}

func TestThreeHundredBuyersForAHundredPieces(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		rare := f.createAsset(assets.CreateInput{Price: "1", Stock: new(int64(100))})
		for userID := range int64(300) {
			f.money.Credit("5", userID+1)
		}
		var sold, rejected atomic.Int64
		var buyers sync.WaitGroup
		for userID := range int64(300) {
			buyers.Go(func() {
				switch _, err := f.buy(userID+1, rare.ID, 1, "mine"); {
				case err == nil:
					sold.Add(1)
				case errors.Is(err, apierror.StockTooSmall):
					rejected.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		buyers.Wait()
		a, err := f.Get(t.Context(), server, game, rare.ID)
		if err != nil || sold.Load() != 100 || rejected.Load() != 200 || *a.Stock != 0 || a.Sold != 100 {
			t.Fatalf("%d sold, %d rejected, the asset is %+v, %v", sold.Load(), rejected.Load(), a, err)
		}
		f.money.Audit()
	})
}

func TestSixtyFourWorkersOnOneWalletNeverFail(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		gem := f.createAsset(assets.CreateInput{Price: "0.01"})
		f.money.Credit("1000", 1)
		var workers sync.WaitGroup
		for worker := range 64 {
			workers.Go(func() {
				for i := range 25 {
					testkit.Report(t, testkit.ErrorOf(f.buy(1, gem.ID, 1, fmt.Sprint(worker, "-", i))))
				}
			})
		}
		workers.Wait()
		f.money.WantBalance(1, 100000-64*25, 0)
		f.money.Audit()
	})
}

func TestARejectedPurchaseNeverSucceedsLaterUnderItsKey(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		sword := f.createAsset(assets.CreateInput{Price: "7.50"})
		first, err := f.buy(1, sword.ID, 1, "k")
		if !errors.Is(err, apierror.InsufficientFunds) || first.Replayed {
			t.Fatalf("without money: %v", err)
		}
		f.money.Credit("100", 1)
		otherNode := assets.New(db, f.wallets, assets.Options{}) // it has not cached the asset
		in, receipt := assets.PurchaseInput{Quantity: 1}, idempotency.Receipt{KeyDigest: "k", Fingerprint: "f"}
		for _, node := range []*assets.Service{f.Service, otherNode} {
			purchase, again := node.Purchase(t.Context(), player(1), sword.ID, in, receipt)
			if !purchase.Replayed {
				t.Error("the purchase is not replayed")
			}
			if diff := cmp.Diff(describeError(err), describeError(again)); diff != "" {
				t.Errorf("(-first +replayed)\n%s", diff)
			}
		}
		f.money.WantBalance(1, 10000, 0)
		testkit.Must(f.buy(1, sword.ID, 1, "another"))(t)
	})
}

func TestPurchaseAtTheLargestAmount(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		const maxAmount = "90071992547409.91" // 2^53-1 units
		palace := f.createAsset(assets.CreateInput{Price: maxAmount})
		f.money.Credit(maxAmount, 1)
		in := assets.PurchaseInput{Quantity: 1, ExpectedPrice: maxAmount}
		purchase := testkit.Must(f.Purchase(t.Context(), player(1), palace.ID, in, noReceipt))(t)
		body, err := wire.Marshal(purchase.Total)
		if err != nil || string(body) != maxAmount {
			t.Errorf("the total is %s, %v", body, err)
		}
		if purchase.TotalUnits != wallet.MaxUnits || purchase.Balance.SpendableUnits != 0 {
			t.Errorf("%+v", purchase)
		}
		f.money.Credit(maxAmount, 1)
		if _, err := f.buy(1, palace.ID, 2, "two"); !errors.Is(err, apierror.InvalidAmount) {
			t.Fatalf("a total past 2^53-1: %v", err)
		}
		third := f.createAsset(assets.CreateInput{Price: "30023997515803.31"}) // times 3: 2^53+1, which no double holds
		if _, err := f.buy(1, third.ID, 3, "three"); !errors.Is(err, apierror.InvalidAmount) {
			t.Fatalf("a total of 2^53+1: %v", err)
		}
		third = f.createAsset(assets.CreateInput{Price: "30023997515803.30"})
		testkit.Must(f.buy(1, third.ID, 3, "three less"))(t)
		f.money.WantBalance(1, 1, 0)
		f.money.Audit()
	})
}

func TestAFreeAssetHasALineOfNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		gift := f.createAsset(assets.CreateInput{Price: "0", PerUserLimit: new(int64(1))})
		purchase, err := f.buy(1, gift.ID, 1, "k")
		if err != nil || purchase.OwnedAfter != 1 || purchase.PurchaseID != 1 || purchase.TotalUnits != 0 {
			t.Fatalf("%+v, %v", purchase, err)
		}
		if _, err := f.buy(1, gift.ID, 1, "again"); !errors.Is(err, apierror.PerUserLimitReached) {
			t.Fatalf("a second one: %v", err)
		}
		owned, next, err := f.ListOwned(t.Context(), player(1), 0, 20)
		if err != nil || next != 0 {
			t.Fatalf("next is %d, %v", next, err)
		}
		if diff := cmp.Diff([]assets.OwnedAsset{{Asset: purchase.Asset, Quantity: 1}}, owned); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		page, err := f.wallets.Ledger(t.Context(), game, 1, wallet.LedgerQuery{Limit: 20})
		if err != nil || len(page.Lines) != 1 || page.Lines[0].DeltaUnits != 0 || page.Lines[0].Reason != "purchase" {
			t.Fatalf("%+v, %v", page, err)
		}
		f.money.Audit()
	})
}

func TestWhyAPurchaseIsRejected(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		sword := f.createAsset(assets.CreateInput{Price: "1"})
		one := assets.PurchaseInput{Quantity: 1}
		stranger := principal.Caller{Role: principal.Player, UserID: 1, GameID: otherGame}
		for _, c := range []struct {
			caller  principal.Caller
			assetID int64
			in      assets.PurchaseInput
			want    error
		}{
			{server, sword.ID, one, apierror.Forbidden},
			{stranger, sword.ID, one, apierror.AssetNotFound},
			{player(1), sword.ID + 1, one, apierror.AssetNotFound},
			{player(1), 0, one, apierror.AssetNotFound},
			{player(1), sword.ID, assets.PurchaseInput{}, apierror.InvalidRequest},
			{player(1), sword.ID, assets.PurchaseInput{Quantity: assets.MaxQuantity + 1}, apierror.InvalidRequest},
			{player(1), sword.ID, assets.PurchaseInput{Quantity: 1, ExpectedPrice: "0.001"}, apierror.InvalidAmount},
			{player(1), sword.ID, assets.PurchaseInput{Quantity: 1, ExpectedPrice: "2"}, apierror.PriceChanged},
			{player(1), sword.ID, assets.PurchaseInput{Quantity: 1, ExpectedPrice: "1.00"}, apierror.InsufficientFunds},
		} {
			testkit.Fails(f.Purchase(t.Context(), c.caller, c.assetID, c.in, noReceipt))(
				t, c.want, "%+v buys %d, %+v", c.caller, c.assetID, c.in)
		}
	})
}

func TestTheCatalogueIsListedInPages(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		var ids []int64
		for i := range 7 {
			ids = append(ids, f.createAsset(assets.CreateInput{Name: "A" + strconv.Itoa(i), Price: "1"}).ID)
		}
		for _, i := range []int{0, 3, 6} {
			testkit.Must(f.Patch(t.Context(), server, game, ids[i], assets.PatchInput{Active: new(false)}))(t)
		}
		readAll := func(includeInactive bool) (names string) {
			for after := int64(0); ; {
				q := assets.ListQuery{After: after, Limit: 2, IncludeInactive: includeInactive}
				page, next := testkit.Must2(f.List(t.Context(), server, game, q))(t)
				for _, a := range page {
					names += a.Name
				}
				if next == 0 {
					return names
				}
				names += " "
				after = next
			}
		}
		if got := readAll(false); got != "A1A2 A4A5" {
			t.Errorf("on sale: %s", got)
		}
		if got := readAll(true); got != "A0A1 A2A3 A4A5 A6" {
			t.Errorf("all: %s", got)
		}
		page, next, err := f.List(t.Context(), operator, otherGame, assets.ListQuery{Limit: 2, IncludeInactive: true})
		if err != nil || next != 0 || len(page) != 0 {
			t.Errorf("another game lists %v, %d, %v", page, next, err)
		}
	})
}

func TestAnInvalidAssetIsRejectedWithAllItsFields(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		in := assets.CreateInput{Stock: new(int64(-1)), PerUserLimit: new(int64(0)), Metadata: wire.RawJSON(`[]`)}
		_, err := f.Create(t.Context(), server, game, in)
		e, ok := apierror.As(err)
		if !ok || e.Code != apierror.InvalidRequest.Code {
			t.Fatal(err)
		}
		var fields []string
		for _, field := range e.FieldErrors {
			fields = append(fields, field.Field)
		}
		want := []string{"name", "tokenId", "price", "stock", "perUserLimit", "metadata"}
		if diff := cmp.Diff(want, fields); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		for _, c := range []struct {
			code  string
			price wallet.AmountInput
			want  error
		}{
			{"GOLD", "-1", apierror.InvalidAmount},
			{"GOLD", "0.001", apierror.InvalidAmount},
			{"GOLD", "1", nil},
			{"GOLD", "0", nil},
			{"LEAD", "1", apierror.TokenNotFound},
		} {
			in := assets.CreateInput{Name: "x", TokenCode: c.code, Price: c.price}
			testkit.Fails(f.Create(t.Context(), server, game, in))(t, c.want, "a price of %s %s", c.price, c.code)
		}
	})
}

func TestMetadataIsStoredWithoutWhiteSpace(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	for text, want := range map[string]string{
		"": `{}`,
		" { \"b\" : [ 1.50 , 1e2 ] ,\n\"a\" : \"x \\u003c\\/ π\" } ": `{"b":[1.50,1e2],"a":"x \u003c\/ π"}`,
	} {
		in := assets.CreateInput{Price: "1"}
		if text != "" {
			in.Metadata = wire.RawJSON(text)
		}
		a := f.createAsset(in)
		if diff := cmp.Diff(want, string(a.Metadata)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if text != "" && string(in.Metadata) != text {
			t.Errorf("the caller's metadata was changed: %s", in.Metadata)
		}
	}
	long := `{"a":"` + strings.Repeat("x", 4096) + `"}`
	for _, invalid := range []string{
		`null`, `[]`, `"x"`, `{"a":1,"a":2}`, `{"a":`, "{\"a\":\"\xff\"}", `{"a":1e999}`, long,
	} {
		in := assets.CreateInput{Name: "x", TokenCode: "GOLD", Price: "1", Metadata: wire.RawJSON(invalid)}
		testkit.Fails(f.Create(t.Context(), server, game, in))(t, apierror.InvalidRequest, "%.20s", invalid)
	}
}

// Two games may be on different masters.
func TestEveryGameSellsItsOwnAssets(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		const games, buyers = 6, 10
		testkit.Check(t, db.Client.Set(t.Context(), keys.GameIDCounter(), games, 0).Err())
		f.wallets = wallet.New(db, playersByID(games), wallet.Options{})
		f.money.Wallets = f.wallets
		f.Service = assets.New(db, f.wallets, assets.Options{})
		slots := map[int64]bool{}
		ids := map[int64]int64{}
		var workers sync.WaitGroup
		for gameID := int64(1); gameID <= games; gameID++ {
			if db.Kind() == redisdb.KindCluster {
				slots[db.Client.ClusterKeySlot(t.Context(), keys.Ledger(gameID)).Val()/(16384/3)] = true
			}
			in := assets.CreateInput{Name: "Sword", TokenCode: "GOLD", Price: "0.50", Stock: new(int64(buyers + 1))}
			a := testkit.Must(f.Create(t.Context(), operator, gameID, in))(t)
			ids[gameID] = a.ID
			for buyer := range int64(buyers) {
				workers.Go(func() {
					userID := gameID + games*buyer
					f.money.Credit("2", userID)
					caller := principal.Caller{Role: principal.Player, UserID: userID, GameID: gameID}
					p, err := f.Purchase(t.Context(), caller, a.ID, assets.PurchaseInput{Quantity: 1}, noReceipt)
					if err != nil || p.Asset.GameID != gameID || p.Balance.SpendableUnits != 150 {
						t.Errorf("player %d: %+v, %v", userID, p, err)
					}
					other := ids[1+gameID%games]
					if other != 0 {
						_, err = f.Purchase(t.Context(), caller, other, assets.PurchaseInput{Quantity: 1}, noReceipt)
						testkit.WantError(t, err, apierror.AssetNotFound, "an asset of another game")
					}
				})
			}
			workers.Wait()
		}
		if db.Kind() == redisdb.KindCluster && len(slots) < 2 {
			t.Fatal("all games are on one master")
		}
		var minted, house wallet.Units
		for gameID := int64(1); gameID <= games; gameID++ {
			r, err := moneytest.NewAudit(f.db, f.wallets).Audit(t.Context(), gameID)
			if err != nil || !r.Balanced || r.Tokens[0].MintedUnits != 200*buyers || r.Tokens[0].HouseUnits != 50*buyers {
				t.Fatalf("game %d: %+v, %v", gameID, r, err)
			}
			minted, house = minted+r.Tokens[0].MintedUnits, house+r.Tokens[0].HouseUnits
			a, err := f.Get(t.Context(), operator, gameID, ids[gameID])
			if err != nil || a.Sold != buyers || *a.Stock != 1 {
				t.Errorf("game %d: %+v, %v", gameID, a, err)
			}
			if gameID%2 == 0 { // some are folded and some are not
				testkit.Check(t, f.wallets.Fold(t.Context(), gameID))
			}
		}
		d, err := moneytest.NewAudit(f.db, f.wallets).AuditDeep(t.Context(), 0)
		if err != nil || !d.Balanced || !d.HeldCounted || d.Entries != 2*games*buyers || d.Wallets != games*buyers ||
			d.Tokens[0].MintedUnits != minted || d.Tokens[0].HouseUnits != house {
			t.Fatalf("all games: %+v, %v", d, err)
		}
	})
}

// playersByID is a number of games; player n is of game n, n - games, …
type playersByID int64

func (games playersByID) Game(_ context.Context, userID int64) (int64, error) {
	return 1 + (userID-1)%int64(games), nil
}

// A receipt is kept for each purchase, so its size matters.
func TestReceiptsAreSmall(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		sword := f.createAsset(assets.CreateInput{Price: "12345.67"})
		f.money.Credit("999999999.99", 1)
		receipt := idempotency.Receipt{KeyDigest: "0123456789012345678901", Fingerprint: "ABCDEFGHIJKLMNOPQRSTUV"}
		testkit.Must(f.Purchase(t.Context(), player(1), sword.ID, assets.PurchaseInput{Quantity: 1000}, receipt))(t)
		key := keys.MoneyReceipt(game, player(1).ActorID(), receipt.KeyDigest)
		if n, err := db.Client.StrLen(t.Context(), key).Result(); err != nil || n == 0 || n > 100 {
			t.Errorf("the receipt has %d bytes, %v", n, err)
		}
	})
}

func TestAReplayedPurchaseKeepsTheLifetimeOfItsReceipt(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	sword := f.createAsset(assets.CreateInput{Price: "1"})
	key := keys.MoneyReceipt(game, player(1).ActorID(), "k")
	for _, lifetime := range []time.Duration{24 * time.Hour, time.Hour} {
		if _, err := f.buy(1, sword.ID, 1, "k"); !errors.Is(err, apierror.InsufficientFunds) {
			t.Fatal(err)
		}
		if left := f.db.Client.PTTL(t.Context(), key).Val(); left > lifetime || left < lifetime-time.Minute {
			t.Errorf("the receipt is kept for %v; want %v", left, lifetime)
		}
		f.db.Client.PExpire(t.Context(), key, time.Hour) // as if most of its time had passed
	}
}

// An id can be guessed before the asset is there.
func TestAnAssetThatWasNotThereIsNotSoldLaterUnderTheSameKey(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.money.Credit("10", 1)
		if _, err := f.buy(1, 1, 1, "k"); !errors.Is(err, apierror.AssetNotFound) {
			t.Fatal(err)
		}
		if a := f.createAsset(assets.CreateInput{Price: "1"}); a.ID != 1 {
			t.Fatalf("%+v", a)
		}
		if p, err := f.buy(1, 1, 1, "k"); !errors.Is(err, apierror.AssetNotFound) || !p.Replayed {
			t.Errorf("%+v, %v", p, err)
		}
		testkit.Report(t, testkit.ErrorOf(f.buy(1, 1, 1, "k2")))
		f.money.Audit()
	})
}

// The asset may be created between the look at it and the script.
func TestAnAssetWhoseTokenTheNodeDoesNotKnowIsNotSold(t *testing.T) {
	db := redistest.Single(t)
	f := newFixture(t, db)
	gift := f.createAsset(assets.CreateInput{Price: "0"})
	reply, err := db.RunScript(t.Context(), scripts.AssetPurchase,
		[]string{
			keys.MoneyReceipt(game, "u1", "k"), keys.Asset(game, gift.ID), keys.Wallet(game, 1), keys.WalletLines(game, 1),
			keys.Inventory(game, 1), keys.Ledger(game), keys.LedgerBase(game),
		},
		scripts.AssetPurchaseArgs{
			CallWithReceiptArgs: scripts.CallWithReceiptArgs{
				Publish: db.PublishCommand, Nonce: "nonce", Fingerprint: "f", TTLMS: 1000,
			},
			User: 1, AssetID: gift.ID, Quantity: 1, ExpectedPrice: "", Token: "", Decimals: 0,
		}.List()...)
	if err != nil || reply.Status != apierror.AssetNotFound.Code {
		t.Errorf("%+v, %v", reply, err)
	}
}

// The number of an entry counts those that were removed from the ledger.
func TestThePurchaseIDIsTheNumberOfTheLedgerEntry(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		gift := f.createAsset(assets.CreateInput{Price: "0"})
		for want := int64(1); want <= 4; want++ {
			if p, err := f.buy(1, gift.ID, 1, fmt.Sprint(want)); err != nil || p.PurchaseID != want {
				t.Fatalf("%+v, %v; want %d", p, err, want)
			}
			if want == 2 {
				db.Client.Del(t.Context(), keys.Ledger(game))
				db.Client.Set(t.Context(), keys.LedgerBase(game), 2, 0)
			}
		}
	})
}

func TestTheTotalsFollowPurchases(t *testing.T) {
	db := redistest.Single(t)
	f := newFixture(t, db)
	sword := f.createAsset(assets.CreateInput{Price: "1"})
	f.money.Credit("10", 1)
	testkit.Check(t, f.wallets.Fold(t.Context(), game))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- f.wallets.Run(ctx) }()
	house := func() string { return db.Client.HGet(t.Context(), keys.Totals(game), "house:GOLD").Val() }
	for i := range 2 { // the second one is folded only when it is named: all games were looked at
		testkit.Must(f.buy(1, sword.ID, 1, fmt.Sprint(i)))(t)
		want := fmt.Sprint(100 * (i + 1))
		redistest.Eventually(t, "the purchase is in the totals", func() bool { return house() == want })
	}
	stop()
	testkit.Report(t, <-ended)
}
