package prizes

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/archive"
	"github.com/parlor-games/parlor/internal/money/archiver"
	"github.com/parlor-games/parlor/internal/money/assets"
	"github.com/parlor-games/parlor/internal/money/audit"
	"github.com/parlor-games/parlor/internal/money/ledgerstore"
	"github.com/parlor-games/parlor/internal/money/limits"
	"github.com/parlor-games/parlor/internal/money/moneytest"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/domaintest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

var (
	operator  = domaintest.Operator
	noReceipt idempotency.Receipt
)

// fixture is an empty game with GOLD of two decimals, which its server may mint up to 50 a day.
type fixture struct {
	t testkit.T
	*Service
	audits *audit.Service
	db     *redisdb.DB
	gameID int64
	money  domaintest.Money
	gold   wallet.Token
}

const source = "board:top:1"

func newFixture(t testkit.T, db *redisdb.DB) *fixture {
	t.Helper()
	f := &fixture{t: t, db: db, gameID: 1}
	const empty = "for _, key in ipairs(redis.call('KEYS', ARGV[1] .. '*')) do redis.call('DEL', key) end return 1"
	tag := strings.TrimSuffix(keys.Totals(f.gameID), "totals")
	testkit.Check(t, db.Client.Eval(t.Context(), empty, []string{tag}, tag).Err())
	testkit.Check(t, db.Client.Set(t.Context(), keys.GameIDCounter(), f.gameID, 0).Err())
	f.Service = New(db, wallet.New(db, domaintest.NewPlayers(f.gameID), wallet.Options{}))
	f.audits = moneytest.NewAudit(db, f.wallets)
	f.money = domaintest.NewMoney(t, db, f.wallets, f.gameID, wallet.TokenDefinition{
		Code: "GOLD", Games: []wallet.TokenGameInput{{GameID: f.gameID, MintLimitPerDay: "50"}},
	})
	f.gold = testkit.Must(f.Token(t.Context(), f.gameID, "GOLD"))(t)
	return f
}

// fillHouse lets a player buy something for units.
func (f *fixture) fillHouse(units wallet.Units) {
	f.t.Helper()
	const buyer = 999
	shop := assets.New(f.db, f.wallets, assets.Options{})
	price := wallet.AmountInput(units.Decimal(2))
	f.money.Credit(price, buyer)
	sold := testkit.Must(shop.Create(f.t.Context(), operator, f.gameID,
		assets.CreateInput{Name: "Gem", TokenCode: f.gold.Code, Price: price}))(f.t)
	caller := principal.Caller{Role: principal.Player, UserID: buyer, GameID: f.gameID}
	testkit.Must(shop.Purchase(f.t.Context(), caller, sold.ID, assets.PurchaseInput{Quantity: 1}, noReceipt))(f.t)
}

// mustFund funds the source by the operator.
func (f *fixture) mustFund(units wallet.Units, from Funds) {
	f.t.Helper()
	if ok, err := f.Fund(f.t.Context(), f.gameID, source, f.gold, units, from, "op"); !ok || err != nil {
		f.t.Fatalf("%v, %v", ok, err)
	}
}

func (f *fixture) mustPlan(lines ...Line) {
	f.t.Helper()
	testkit.Check(f.t, f.Plan(f.t.Context(), f.gameID, source, lines))
}

func (f *fixture) mustPay() {
	f.t.Helper()
	if done, err := f.Pay(f.t.Context(), f.gameID, source); !done || err != nil {
		f.t.Fatalf("%v, %v", done, err)
	}
}

// spendable returns what a player can spend of GOLD.
func (f *fixture) spendable(userID int64) wallet.Units {
	f.t.Helper()
	return f.money.Balance(userID).SpendableUnits
}

// wantPrize compares the source but for its name and token.
func (f *fixture) wantPrize(want Prize) {
	f.t.Helper()
	got, err := f.Read(f.t.Context(), f.gameID, source)
	want.Source, want.TokenCode = source, got.TokenCode
	if err != nil || got != want {
		f.t.Fatalf("%s%v", cmp.Diff(want, got), err)
	}
}

// wantBooks requires that the books balance, with these totals, and that what is held is the
// escrow.
func (f *fixture) wantBooks(minted, wallets, prizes, house wallet.Units) {
	f.t.Helper()
	d, err := f.audits.AuditDeep(f.t.Context(), f.gameID)
	if err != nil || !d.Balanced || !d.HeldCounted || len(d.Tokens) != 1 {
		f.t.Fatalf("%+v, %v", d, err)
	}
	got := d.Tokens[0]
	if got.MintedUnits != minted || got.WalletsUnits != wallets || got.PrizesUnits != prizes || got.HouseUnits != house {
		f.t.Fatalf("minted %d, wallets %d, prizes %d, house %d; want %d, %d, %d, %d", got.MintedUnits, got.WalletsUnits,
			got.PrizesUnits, got.HouseUnits, minted, wallets, prizes, house)
	}
}

func TestPrizesAreFundedPlannedAndPaid(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.wantPrize(Prize{State: StateNone})
		f.fillHouse(1000)
		f.mustFund(900, House)
		f.wantPrize(Prize{PoolUnits: 900, State: StateFunded})
		f.wantBooks(1000, 0, 900, 100)
		f.mustPlan(
			Line{UserID: 7, Place: 1, Units: 500}, Line{UserID: 8, Place: 2, Units: 300}, Line{Units: 40}, Line{UserID: 9},
		)
		f.wantPrize(Prize{PoolUnits: 900, State: StatePlanned, Lines: 3})
		f.wantBooks(1000, 0, 900, 100)
		for range 2 {
			f.mustPay()
			f.wantPrize(Prize{PoolUnits: 900, PaidUnits: 840, State: StatePaid, Next: 3, Lines: 3})
			f.wantBooks(1000, 800, 0, 200)
		}
		if f.spendable(7) != 500 || f.spendable(8) != 300 {
			t.Errorf("%d and %d", f.spendable(7), f.spendable(8))
		}
		f.mustPlan(Line{UserID: 8, Place: 1, Units: 900}) // too late
		f.mustPay()
		if ok, err := f.Fund(t.Context(), f.gameID, source, f.gold, 5, House, "op"); ok || err != nil {
			t.Errorf("funded again: %v, %v", ok, err)
		}
		testkit.WantError(t, f.Void(t.Context(), f.gameID, source, "late"), ErrPaying, "voided after payment")
		f.wantBooks(1000, 800, 0, 200)
		for name, forget := range map[string]func(context.Context, int64, string) error{
			"the plan": f.ForgetPlan, "all": f.Forget,
		} {
			testkit.Report(t, forget(t.Context(), f.gameID, source), "%s", name)
			f.mustPay()
			f.wantPrize(Prize{PoolUnits: 900, PaidUnits: 840, State: StatePaid, Next: 3, Lines: 3})
		}
		if left := db.Client.TTL(t.Context(), keys.Prize(f.gameID, source)).Val(); left <= 0 || left > stateLife {
			t.Errorf("the state stays for %v", left)
		}
	})
}

func TestAVoidedSourceReturnsItsPoolAndStaysSo(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		for _, from := range []Funds{House, Mint} {
			f := newFixture(t, db)
			f.fillHouse(1000)
			f.mustFund(900, from)
			f.mustPlan(Line{UserID: 7, Place: 1, Units: 900})
			for range 2 {
				testkit.Check(t, f.Void(t.Context(), f.gameID, source, "a fault | of ours"))
				f.wantPrize(Prize{PoolUnits: 900, State: StateVoid, Lines: 1})
				f.wantBooks(1000, 0, 0, 1000)
			}
			if done, err := f.Pay(t.Context(), f.gameID, source); done || err != nil {
				t.Errorf("paid: %v, %v", done, err)
			}
			if ok, err := f.Fund(t.Context(), f.gameID, source, f.gold, 5, from, "op"); ok || err != nil {
				t.Errorf("funded again: %v, %v", ok, err)
			}
			f.wantBooks(1000, 0, 0, 1000)
		}
	})
}

func TestOfAMintedPoolTheRestIsBurnt(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.mustFund(900, Mint)
		f.wantBooks(900, 0, 900, 0)
		f.mustPlan(Line{UserID: 7, Place: 1, Units: 500})
		f.mustPay()
		f.wantBooks(500, 500, 0, 0)
		f = newFixture(t, db)
		f.mustFund(900, Mint)
		f.mustPlan()
		f.mustPay()
		if got := f.spendable(7); got != 0 {
			t.Errorf("%d", got)
		}
	})
}

func TestAPoorHouseFundsNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.fillHouse(1000)
		for _, units := range []wallet.Units{1001, wallet.MaxUnits} {
			if ok, err := f.Fund(t.Context(), f.gameID, source, f.gold, units, House, "op"); ok || err != nil {
				t.Errorf("%d: %v, %v", units, ok, err)
			}
		}
		f.wantPrize(Prize{State: StateNone})
		for range maxEntriesParsed { // more entries than a script parses: they are folded first
			testkit.Must(f.wallets.Credit(t.Context(), operator, wallet.CreditInput{
				UserID: 7, TokenCode: f.gold.Code, Amount: "1", Reason: "test",
			}, noReceipt))(t)
		}
		f.mustFund(1000, House)
		f.wantBooks(21000, 20000, 1000, 0)
	})
}

func TestWhatAServerMintsForPrizesCountsAgainstItsDay(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		actor := fmt.Sprint("g", f.gameID)
		fund := func(source string, units wallet.Units, from Funds) error {
			ok, err := f.Fund(t.Context(), f.gameID, source, f.gold, units, from, actor)
			if ok != (err == nil) {
				t.Errorf("%v, %v", ok, err)
			}
			return err
		}
		testkit.Report(t, fund("tour:1", 3000, Mint))
		testkit.Report(t, fund("tour:1", 3000, Mint)) // the same
		testkit.WantError(t, fund("tour:2", 2001, Mint), apierror.LimitReached)
		server := principal.Caller{Role: principal.Server, GameID: f.gameID}
		credit := wallet.CreditInput{UserID: 7, TokenCode: f.gold.Code, Amount: "20", Reason: "test"}
		testkit.Report(t, testkit.ErrorOf(f.wallets.Credit(t.Context(), server, credit, noReceipt)))
		testkit.WantError(t, fund("tour:2", 1, Mint), apierror.LimitReached)
		testkit.WantError(t, fund("tour:2", 1, House), apierror.Forbidden)
		f.gold.Games = nil
		testkit.WantError(t, fund("tour:2", 1, Mint), apierror.Forbidden)
	})
}

func TestPrizesInAssetsAreAddedToWhatThePlayerOwns(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		shop := assets.New(db, f.wallets, assets.Options{})
		in := assets.CreateInput{Name: "Shield", TokenCode: f.gold.Code, Price: "5", PerUserLimit: new(int64(1))}
		shield := testkit.Must(shop.Create(t.Context(), operator, f.gameID, in))(t)
		in.Stock = new(int64(5))
		rare := testkit.Must(shop.Create(t.Context(), operator, f.gameID, in))(t)
		testkit.Report(t, f.CheckAsset(t.Context(), f.gameID, shield.ID))
		testkit.WantError(t, f.CheckAsset(t.Context(), f.gameID, rare.ID), apierror.InvalidRequest)
		testkit.WantError(t, f.CheckAsset(t.Context(), f.gameID+1, shield.ID), apierror.AssetNotFound)
		f.mustFund(0, House) // no unit is promised
		f.mustPlan(
			Line{UserID: 7, Place: 1, AssetID: shield.ID, Quantity: 2},
			Line{UserID: 7, Place: 1, AssetID: shield.ID, Quantity: 1},
		)
		f.mustPay()
		f.mustPay()
		caller := principal.Caller{Role: principal.Player, UserID: 7, GameID: f.gameID}
		owned, _, err := shop.ListOwned(t.Context(), caller, 0, 10)
		if err != nil || len(owned) != 1 || owned[0].Quantity != 3 || owned[0].Asset.Sold != 0 {
			t.Errorf("%+v, %v", owned, err)
		}
		d, err := f.audits.AuditDeep(t.Context(), f.gameID)
		if err != nil || !d.Balanced {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

func TestAPlayerWithTwoLinesGetsBoth(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.mustFund(900, Mint)
		f.mustPlan(
			Line{UserID: 7, Place: 1, Units: 500}, Line{UserID: 8, Place: 2, Units: 100}, Line{UserID: 7, Place: 3, Units: 300},
		)
		f.mustPay()
		if f.spendable(7) != 800 || f.spendable(8) != 100 {
			t.Errorf("%d and %d", f.spendable(7), f.spendable(8))
		}
		f.wantBooks(900, 900, 0, 0)
	})
}

// The prizes of a leaderboard count in a player's limits while they are paid as they do when they
// are counted later.
func TestPrizesOfALeaderboardCountAsPayouts(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	lost := func(userID int64) string {
		t.Helper()
		loss := wallet.AmountInput("3")
		caller := principal.Caller{Role: principal.Player, UserID: userID, GameID: f.gameID}
		set := testkit.Must(limits.New(f.db, f.wallets, domaintest.NewPlayers(f.gameID)).Set(t.Context(), caller,
			limits.Input{UserID: userID, TokenCode: "GOLD", MaxLoss: new(&loss)}))(t)
		return *set.LostUnits
	}
	lost(7)
	f.mustFund(500, Mint)
	f.mustPlan(Line{UserID: 7, Place: 1, Units: 200}, Line{UserID: 8, Place: 1, Units: 200},
		Line{UserID: 7, Place: 2, Units: 50}, Line{UserID: 8, Place: 2, Units: 50})
	f.mustPay()
	if counted, ofHistory := lost(7), lost(8); counted != "-250" || ofHistory != "-250" {
		t.Errorf("%s units are counted as lost, and %s of the history; want -250", counted, ofHistory)
	}
}

func TestLongPlansArePaidInSteps(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		const winners = 2*linesAtOnce + 1
		var lines []Line
		for i := range winners {
			lines = append(lines, Line{UserID: int64(i + 1), Place: i + 1, Units: wallet.Units(i + 1)})
		}
		f.mustFund(winners*(winners+1)/2, Mint)
		f.mustPlan(lines...)
		f.mustPay()
		f.wantBooks(winners*(winners+1)/2, winners*(winners+1)/2, 0, 0)
		for i := range winners {
			if got := f.spendable(int64(i + 1)); got != wallet.Units(i+1) {
				t.Fatalf("player %d has %d", i+1, got)
			}
		}
	})
}

func TestAPlanThatPaysMoreThanItsPoolIsRefused(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.mustFund(10, Mint)
		err := f.Plan(t.Context(), f.gameID, source, []Line{{UserID: 7, Units: 6}, {UserID: 8, Units: 5}})
		testkit.WantError(t, err, apierror.InvalidAmount)
		f.wantPrize(Prize{PoolUnits: 10, State: StateFunded})
		for _, bad := range []Line{{UserID: -1}, {UserID: 1, Units: -1}, {AssetID: 1, Quantity: 1}} {
			if err := f.Plan(t.Context(), f.gameID, source, []Line{bad}); err == nil {
				t.Errorf("%+v is planned", bad)
			}
		}
		for _, bad := range []string{"", "board:top", "board:a|b:1", "tour:x", "board:TOP:1", "x:1"} {
			if err := f.Plan(t.Context(), f.gameID, bad, nil); err == nil {
				t.Errorf("%q is a source", bad)
			}
		}
	})
}

// A plan that somebody spoiled by hand pays nobody anything wrong.
func TestASpoiledPlanPaysNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		for name, spoil := range map[string]func(key string) error{
			"cut":   func(key string) error { return db.Client.LTrim(t.Context(), key, 1, -1).Err() },
			"gone":  func(key string) error { return db.Client.Del(t.Context(), key).Err() },
			"other": func(key string) error { return db.Client.LSet(t.Context(), key, 0, "7:1:x").Err() },
			"more":  func(key string) error { return db.Client.LSet(t.Context(), key, 0, "7:1:100::").Err() },
		} {
			f := newFixture(t, db)
			f.mustFund(10, Mint)
			f.mustPlan(Line{UserID: 7, Place: 1, Units: 6}, Line{UserID: 8, Place: 2, Units: 4})
			testkit.Check(t, spoil(keys.PrizePlan(f.gameID, source)))
			done, err := f.Pay(t.Context(), f.gameID, source)
			if name == "cut" { // one line is paid, and nothing behind it
				if done || err == nil || f.spendable(7)+f.spendable(8) > 10 {
					t.Errorf("%s: %v, %v", name, done, err)
				}
				continue
			}
			if done || err == nil || strings.Contains(err.Error(), "nil") {
				t.Errorf("%s: %v, %v", name, done, err)
			}
			f.wantBooks(10, 0, 10, 0)
		}
	})
}

// What leaves the store for the archive, entries and lines of prizes included, adds up as before.
func TestTheArchiveKeepsWhatWasPromisedAndPaid(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		old := testkit.Must(archive.Open("file://"+t.TempDir(), archive.S3Options{}))(t)
		old = old.WithSizes(archive.Sizes{Entries: 5, Lines: 2, Checkpoint: 10})
		ledgers := ledgerstore.New(db, old)
		f.Service = New(db, wallet.New(db, domaintest.NewPlayers(f.gameID), wallet.Options{Ledgers: ledgers}))
		f.audits = audit.New(db, ledgers, f.wallets)
		var won wallet.Units
		for i := range 8 {
			source := fmt.Sprint("tour:", i+1)
			if ok, err := f.Fund(t.Context(), f.gameID, source, f.gold, 100, Mint, "op"); !ok || err != nil {
				t.Fatal(ok, err)
			}
			switch i % 4 {
			case 0: // it stays promised
				continue
			case 1:
				testkit.Check(t, f.Void(t.Context(), f.gameID, source, "test"))
				continue
			}
			testkit.Check(t, f.Plan(t.Context(), f.gameID, source, []Line{{UserID: 7, Place: 1, Units: 60}}))
			if done, err := f.Pay(t.Context(), f.gameID, source); !done || err != nil {
				t.Fatal(done, err)
			}
			won += 60
		}
		keep := archiver.Retention{Entries: 3, Lines: 2}
		testkit.Check(t, archiver.New(db, ledgers, archiver.Options{Keep: keep}).Archive(t.Context(), f.gameID))
		if base, err := db.Client.Get(t.Context(), keys.LedgerBase(f.gameID)).Int64(); err != nil || base < 5 {
			t.Fatalf("%d entries are in the archive, %v", base, err)
		}
		f.wantBooks(won+200, won, 200, 0)
		if full, err := f.audits.AuditFromFirstEntry(t.Context(), f.gameID); err != nil || !full.Balanced {
			t.Errorf("%+v, %v", full, err)
		}
		report, err := f.audits.VerifyLedger(t.Context(), f.gameID, func(int64) {})
		if err != nil || len(report.Problems) > 0 || report.LineObjects == 0 {
			t.Errorf("%+v, %v", report, err)
		}
	})
}

// A source is forgotten once nothing of it is owed. Whoever asks earlier changes nothing.
func TestPrizesThatAreOwedAreNotForgotten(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	forget := func(all bool) (plans int64, life time.Duration) {
		t.Helper()
		call := f.ForgetPlan
		if all {
			call = f.Forget
		}
		testkit.Check(t, call(t.Context(), f.gameID, source))
		return f.db.Client.Exists(t.Context(), keys.PrizePlan(f.gameID, source)).Val(),
			f.db.Client.PTTL(t.Context(), keys.Prize(f.gameID, source)).Val()
	}
	const forever = -1
	f.mustFund(900, Mint)
	if _, life := forget(true); life != forever {
		t.Errorf("prizes that are funded expire in %v", life)
	}
	f.mustPlan(Line{UserID: 7, Place: 1, Units: 500})
	for _, all := range []bool{false, true} {
		if plans, life := forget(all); plans != 1 || life != forever {
			t.Errorf("of prizes that are planned there are %d plans, and they expire in %v", plans, life)
		}
	}
	f.mustPay()
	if got := f.spendable(7); got != 500 {
		t.Errorf("the winner has %d", got)
	}
	if plans, life := forget(false); plans != 0 || life != forever {
		t.Errorf("without the plan there are %d plans, and the prizes expire in %v", plans, life)
	}
	// A leader that was replaced may still be at work, and must find that they are paid.
	if _, life := forget(true); life <= 10*time.Second || life > time.Minute {
		t.Errorf("prizes that are paid expire in %v", life)
	}

	f = newFixture(t, f.db)
	f.mustFund(900, Mint)
	f.mustPlan(Line{UserID: 7, Place: 1, Units: 500})
	testkit.Check(t, f.Void(t.Context(), f.gameID, source, "a test"))
	if plans, life := forget(true); plans != 0 || life <= 0 {
		t.Errorf("of prizes that are voided there are %d plans, and they expire in %v", plans, life)
	}
}
