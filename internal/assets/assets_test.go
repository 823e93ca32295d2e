package assets_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/principal"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/assets"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/internal/wallet"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// shop is a catalogue with a token of two decimals.
type shop struct {
	*assets.Service
	t       testing.TB
	wallets *wallet.Service
}

func open(t testing.TB, db *redisdb.DB) shop {
	t.Helper()
	wallets := wallet.New(db, wallet.Options{})
	_, err := wallets.CreateToken(t.Context(), wallet.TokenDefinition{TokenID: "GOLD", Name: "Gold", Metadata: wallet.Metadata{Decimals: "2"}})
	if err != nil {
		t.Fatal(err)
	}
	return shop{Service: assets.New(db, wallets, assets.Options{}), t: t, wallets: wallets}
}

func (s shop) asset(in assets.CreateInput) assets.Asset {
	s.t.Helper()
	in.TokenID = "GOLD"
	if in.Name == "" {
		in.Name = "Sword"
	}
	a, err := s.Create(s.t.Context(), here, in)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func (s shop) credit(user int64, amount wallet.AmountInput) {
	s.t.Helper()
	if _, err := s.wallets.Credit(s.t.Context(), "op", user, "GOLD", amount, "test", idempotency.Receipt{}); err != nil {
		s.t.Fatal(err)
	}
}

func (s shop) buy(user, asset, quantity int64, key string) (assets.Purchase, error) {
	return s.Purchase(s.t.Context(), buyer(user), asset, assets.PurchaseInput{Quantity: quantity}, idempotency.Receipt{Key: key, Fingerprint: "f"})
}

func buyer(user int64) principal.Caller {
	return principal.Caller{Role: principal.Player, User: user, Game: here}
}

func (s shop) wantGold(user int64, want wallet.Units) {
	s.t.Helper()
	b, err := s.wallets.Balance(s.t.Context(), user, "GOLD")
	if err != nil || b.Amount != want {
		s.t.Fatalf("player %d has %s, %v; want %s", user, b.Amount, err, want)
	}
}

func (s shop) wantBalanced() {
	s.t.Helper()
	d, err := s.wallets.AuditDeep(s.t.Context())
	if err != nil || !d.Balanced || !d.HeldCounted {
		s.t.Fatalf("the audit says %+v, %v", d, err)
	}
}

func TestAThousandCopiesOfOnePurchaseHaveOneEffectAndOneAnswer(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := open(t, db)
		gem := s.asset(assets.CreateInput{Price: "0.07", Stock: new(int64(100))})
		s.credit(1, "100")
		var mu sync.Mutex
		var firsts atomic.Int64
		answers := map[string]int{}
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				for range 20 {
					sale, err := s.buy(1, gem.ID, 3, "once")
					if err != nil {
						t.Error(err)
						return
					}
					if !sale.Replayed {
						firsts.Add(1)
					}
					body, err := json.Marshal(sale)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					answers[string(body)]++
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if len(answers) != 1 || firsts.Load() != 1 {
			t.Fatalf("%d different answers, %d of them first: %v", len(answers), firsts.Load(), answers)
		}
		s.wantGold(1, 10000-21)
		s.wantBalanced()
	})
}

func TestThreeHundredBuyersForAHundredPieces(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := open(t, db)
		rare := s.asset(assets.CreateInput{Price: "1", Stock: new(int64(100))})
		for user := range int64(300) {
			s.credit(user+1, "5")
		}
		var sold, refused atomic.Int64
		var all sync.WaitGroup
		for user := range int64(300) {
			all.Go(func() {
				switch _, err := s.buy(user+1, rare.ID, 1, "mine"); {
				case err == nil:
					sold.Add(1)
				case errors.Is(err, apierror.SoldOut):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		a, err := s.Get(t.Context(), here, rare.ID)
		if err != nil || sold.Load() != 100 || refused.Load() != 200 || *a.Stock != 0 || a.Sold != 100 {
			t.Fatalf("%d sold, %d refused, the asset is %+v, %v", sold.Load(), refused.Load(), a, err)
		}
		s.wantBalanced()
	})
}

func TestSixtyFourWorkersOnOneWalletNeverFail(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := open(t, db)
		gem := s.asset(assets.CreateInput{Price: "0.01"})
		s.credit(1, "1000")
		var all sync.WaitGroup
		for worker := range 64 {
			all.Go(func() {
				for i := range 25 {
					if _, err := s.buy(1, gem.ID, 1, fmt.Sprint(worker, "-", i)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		s.wantGold(1, 100000-64*25)
		s.wantBalanced()
	})
}

func TestARefusedPurchaseNeverSucceedsLaterUnderItsKey(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := open(t, db)
		sword := s.asset(assets.CreateInput{Price: "7.50"})
		first, err := s.buy(1, sword.ID, 1, "k")
		if !errors.Is(err, apierror.InsufficientFunds) || first.Replayed {
			t.Fatalf("without money: %v", err)
		}
		s.credit(1, "100")
		// Another node knows nothing of the asset, and answers the same.
		other := assets.New(db, s.wallets, assets.Options{})
		for _, node := range []*assets.Service{s.Service, other} {
			sale, again := node.Purchase(t.Context(), buyer(1), sword.ID, assets.PurchaseInput{Quantity: 1}, idempotency.Receipt{Key: "k", Fingerprint: "f"})
			if told(again) != told(err) || !sale.Replayed {
				t.Fatalf("later: %s, replayed %v; first %s", told(again), sale.Replayed, told(err))
			}
		}
		s.wantGold(1, 10000)
		if _, err := s.buy(1, sword.ID, 1, "another"); err != nil {
			t.Fatal(err)
		}
	})
}

func TestPurchaseAtTheLargestAmount(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := open(t, db)
		const most = "90071992547409.91" // 2^53-1 units
		palace := s.asset(assets.CreateInput{Price: most})
		s.credit(1, most)
		sale, err := s.Purchase(t.Context(), buyer(1), palace.ID, assets.PurchaseInput{Quantity: 1, ExpectedPrice: most}, idempotency.Receipt{})
		if err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(sale.Total)
		if err != nil || string(body) != most || sale.TotalAmount != wallet.MaxUnits || sale.Balance.Amount != 0 {
			t.Fatalf("the total is %s, %v; %+v", body, err, sale)
		}
		s.credit(1, most)
		if _, err := s.buy(1, palace.ID, 2, "two"); !errors.Is(err, apierror.InvalidAmount) {
			t.Fatalf("a total past 2^53-1: %v", err)
		}
		third := s.asset(assets.CreateInput{Price: "30023997515803.31"}) // three of it are 2^53+1 units, a number that no double holds
		if _, err := s.buy(1, third.ID, 3, "three"); !errors.Is(err, apierror.InvalidAmount) {
			t.Fatalf("a total of 2^53+1: %v", err)
		}
		third = s.asset(assets.CreateInput{Price: "30023997515803.30"})
		if _, err := s.buy(1, third.ID, 3, "three less"); err != nil {
			t.Fatal(err)
		}
		s.wantGold(1, 1)
		s.wantBalanced()
	})
}

func TestWhatIsFreeOfChargeIsOwnedWithoutALineInTheLedger(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := open(t, db)
		gift := s.asset(assets.CreateInput{Price: "0", PerUserLimit: new(int64(1))})
		sale, err := s.buy(1, gift.ID, 1, "k")
		if err != nil || sale.Owned != 1 || sale.PurchaseID != 1 || sale.TotalAmount != 0 {
			t.Fatalf("%+v, %v", sale, err)
		}
		if _, err := s.buy(1, gift.ID, 1, "again"); !errors.Is(err, apierror.AlreadyOwned) {
			t.Fatalf("a second one: %v", err)
		}
		owned, next, err := s.ListOwned(t.Context(), 1, 0, 20)
		if err != nil || next != 0 || len(owned) != 1 || owned[0].Owned != 1 || owned[0].Asset.Name != "Sword" {
			t.Fatalf("%+v, %d, %v", owned, next, err)
		}
		lines, err := s.wallets.Ledger(t.Context(), 1, wallet.LedgerQuery{Limit: 20})
		if err != nil || len(lines.Lines) != 0 {
			t.Fatalf("%+v, %v", lines, err)
		}
		s.wantBalanced()
	})
}

func TestOnlyPlayersOfTheGameBuy(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := open(t, db)
		sword := s.asset(assets.CreateInput{Price: "1"})
		one := assets.PurchaseInput{Quantity: 1}
		for _, c := range []struct {
			caller principal.Caller
			asset  int64
			in     assets.PurchaseInput
			want   error
		}{
			{principal.Caller{Role: principal.Server, Game: here}, sword.ID, one, apierror.Forbidden},
			{principal.Caller{Role: principal.Player, User: 1, Game: elsewhere}, sword.ID, one, apierror.AssetNotFound},
			{buyer(1), sword.ID + 1, one, apierror.AssetNotFound},
			{buyer(1), 0, one, apierror.AssetNotFound},
			{buyer(1), sword.ID, assets.PurchaseInput{}, apierror.InvalidRequest},
			{buyer(1), sword.ID, assets.PurchaseInput{Quantity: assets.MaxQuantity + 1}, apierror.InvalidRequest},
			{buyer(1), sword.ID, assets.PurchaseInput{Quantity: 1, ExpectedPrice: "0.001"}, apierror.InvalidAmount},
			{buyer(1), sword.ID, assets.PurchaseInput{Quantity: 1, ExpectedPrice: "2"}, apierror.PriceChanged},
			{buyer(1), sword.ID, assets.PurchaseInput{Quantity: 1, ExpectedPrice: "1.00"}, apierror.InsufficientFunds},
		} {
			if _, err := s.Purchase(t.Context(), c.caller, c.asset, c.in, idempotency.Receipt{}); !errors.Is(err, c.want) {
				t.Errorf("%+v buys %d, %+v: %v; want %v", c.caller, c.asset, c.in, err, c.want)
			}
		}
	})
}

func TestTheCatalogueIsListedInPages(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := open(t, db)
		var ids []int64
		for i := range 7 {
			ids = append(ids, s.asset(assets.CreateInput{Name: "A" + strconv.Itoa(i), Price: "1"}).ID)
		}
		for _, i := range []int{0, 3, 6} {
			if _, err := s.Patch(t.Context(), here, ids[i], assets.Patch{Active: new(false)}); err != nil {
				t.Fatal(err)
			}
		}
		walk := func(all bool) (names string) {
			for after := int64(0); ; {
				page, next, err := s.List(t.Context(), here, assets.ListQuery{After: after, Limit: 2, IncludeInactive: all})
				if err != nil {
					t.Fatal(err)
				}
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
		if got := walk(false); got != "A1A2 A4A5" {
			t.Errorf("on sale: %s", got)
		}
		if got := walk(true); got != "A0A1 A2A3 A4A5 A6" {
			t.Errorf("all: %s", got)
		}
		if page, next, err := s.List(t.Context(), elsewhere, assets.ListQuery{Limit: 2, IncludeInactive: true}); err != nil || next != 0 || len(page) != 0 {
			t.Errorf("another game lists %v, %d, %v", page, next, err)
		}
	})
}

func TestAnAssetThatCannotBeMeantIsRefusedWithAllItsFaults(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := open(t, db)
		_, err := s.Create(t.Context(), here, assets.CreateInput{Stock: new(int64(-1)), PerUserLimit: new(int64(0)), Metadata: json.RawMessage(`[]`)})
		r, ok := apierror.As(err)
		if !ok || r.Code != "invalid_request" || len(r.FieldErrors) != 6 {
			t.Fatalf("%+v", err)
		}
		for price, want := range map[wallet.AmountInput]error{"-1": apierror.InvalidAmount, "0.001": apierror.InvalidAmount, "1": nil, "0": nil} {
			if _, err := s.Create(t.Context(), here, assets.CreateInput{Name: "x", TokenID: "GOLD", Price: price}); !errors.Is(err, want) {
				t.Errorf("price %s: %v", price, err)
			}
		}
		if _, err := s.Create(t.Context(), here, assets.CreateInput{Name: "x", TokenID: "LEAD", Price: "1"}); !errors.Is(err, apierror.TokenNotFound) {
			t.Errorf("an unknown token: %v", err)
		}
		a := s.asset(assets.CreateInput{Price: "1"})
		if _, err := s.Patch(t.Context(), elsewhere, a.ID, assets.Patch{Active: new(false)}); !errors.Is(err, apierror.AssetNotFound) {
			t.Errorf("a patch from another game: %v", err)
		}
	})
}
