package leaderboards

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/assets"
	"github.com/parlor-games/parlor/internal/money/moneytest"
	"github.com/parlor-games/parlor/internal/money/prizes"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/domaintest"
	"github.com/parlor-games/parlor/tests/testkit"
)

var operator = domaintest.Operator

// prizeFixture is a fixture whose boards have prizes in GOLD, a token of two decimals.
type prizeFixture struct {
	*fixture
	wallets *wallet.Service
	money   domaintest.Money
}

func newPrizeFixture(t *testing.T, db *redisdb.DB) *prizeFixture {
	t.Helper()
	base := newFixture(t, db)
	testkit.Check(t, db.Client.Set(t.Context(), keys.GameIDCounter(), base.gameID, 0).Err())
	f := &prizeFixture{fixture: base, wallets: wallet.New(db, base.people, wallet.Options{})}
	f.money = domaintest.NewMoney(t, db, f.wallets, base.gameID, wallet.TokenDefinition{Code: "GOLD"})
	f.Service = New(db, base.people, base.people, Options{Prizes: prizes.New(db, f.wallets)})
	return f
}

// node returns the service of another node on the same store.
func (f *prizeFixture) node(o Options) *Service {
	o.Prizes = prizes.New(f.db, f.wallets)
	return New(f.db, f.people, f.people, o)
}

// table returns prizes of a pool of 10 GOLD that is minted.
func table(rows ...PrizeRow) *Prizes {
	return &Prizes{TokenCode: "GOLD", Pool: "10", From: prizes.Mint, Table: rows}
}

// create makes the board "top" by the operator.
func (f *prizeFixture) create(d Definition) Leaderboard {
	f.t.Helper()
	d.Board, d.Name = "top", "Top"
	return testkit.Must(f.Create(f.t.Context(), operator, f.gameID, d))(f.t)
}

// end ends a season and lets the leader work.
func (f *prizeFixture) end(number int64) Season {
	f.t.Helper()
	testkit.Must(f.EndSeason(f.t.Context(), operator, f.gameID, "top", number))(f.t)
	f.sweep()
	return f.season(number)
}

func (f *prizeFixture) sweep() {
	f.t.Helper()
	testkit.Must(f.sweepGames(f.t.Context(), 1, []int64{f.gameID}))(f.t)
}

func (f *prizeFixture) season(number int64) Season {
	f.t.Helper()
	list, _, err := f.ListSeasons(f.t.Context(), operator, f.gameID, "top", number+1, 1)
	if err != nil || len(list) != 1 || list[0].Season != number {
		f.t.Fatalf("%+v, %v", list, err)
	}
	return list[0]
}

// wantSeason compares the status of a season, and whether its prizes are funded.
func (f *prizeFixture) wantSeason(number int64, status SeasonStatus, isFunded bool) {
	f.t.Helper()
	got := f.season(number)
	if got.Status != status || got.PrizesFunded == nil || *got.PrizesFunded != isFunded {
		f.t.Fatalf("season %d is %s, funded %v; want %s, %v", number, got.Status, got.PrizesFunded, status, isFunded)
	}
}

// wantWon compares what players have, "1:500 2:300", and audits the books.
func (f *prizeFixture) wantWon(want string) {
	f.t.Helper()
	var got []string
	for user := range int64(10) {
		if units := f.money.Balance(user + 1).SpendableUnits; units != 0 {
			got = append(got, strconv.FormatInt(user+1, 10)+":"+units.String())
		}
	}
	if text := strings.Join(got, " "); text != want {
		f.t.Fatalf("players have %q; want %q", text, want)
	}
	d, err := moneytest.NewAudit(f.db, f.wallets).AuditDeep(f.t.Context(), f.gameID)
	if err != nil || !d.Balanced || !d.HeldCounted {
		f.t.Fatalf("%+v, %v", d, err)
	}
}

// promised returns what lies in the accounts of prizes.
func (f *prizeFixture) promised() wallet.Units {
	f.t.Helper()
	r, err := moneytest.NewAudit(f.db, f.wallets).Audit(f.t.Context(), f.gameID)
	if err != nil || !r.Balanced {
		f.t.Fatalf("%+v, %v", r, err)
	}
	for _, total := range r.Tokens {
		return total.PrizesUnits
	}
	return 0
}

func TestPrizesAreCheckedWhenABoardIsDefined(t *testing.T) {
	f := newPrizeFixture(t, redistest.Single(t))
	shop := assets.New(f.db, f.wallets, assets.Options{})
	stocked, err := shop.Create(t.Context(), operator, f.gameID,
		assets.CreateInput{Name: "Rare", TokenCode: "GOLD", Price: "1", Stock: new(int64(3))})
	testkit.Check(t, err)
	row := func(from, to int, prize AmountInput) PrizeRow {
		return PrizeRow{FromPlace: from, ToPlace: to, Prize: prize}
	}
	for name, tt := range map[string]struct {
		prizes *Prizes
		fields string
	}{
		"more than the pool":      {table(row(1, 3, "3.34")), "prizes.table"},
		"shares of more than all": {table(PrizeRow{FromPlace: 1, ToPlace: 3, ShareBps: 3334}), "prizes.table"},
		"shares and units": {
			table(PrizeRow{FromPlace: 1, ToPlace: 1, ShareBps: 5010}, row(2, 2, "5")), "prizes.table",
		},
		"many of the largest": {
			&Prizes{TokenCode: "GOLD", Pool: "90071992547409.91", Table: []PrizeRow{row(1, 10000, "9007199254740.99")}},
			"prizes.table",
		},
		"places of two rows":      {table(row(1, 2, "1"), row(2, 3, "1")), "prizes.table[1].fromPlace"},
		"a row inside of another": {table(row(1, 5, "1"), row(2, 3, "1")), "prizes.table[1].fromPlace"},
		"no row":                  {table(), "prizes.table"},
		"place 0":                 {table(row(0, 1, "1")), "prizes.table[0].fromPlace"},
		"places backwards":        {table(row(3, 2, "1")), "prizes.table[0].toPlace"},
		"too many places":         {table(row(1, 10001, "0.01")), "prizes.table[0].toPlace"},
		"nothing":                 {table(row(1, 1, "")), "prizes.table[0].prize"},
		"two things": {
			table(PrizeRow{FromPlace: 1, ToPlace: 1, Prize: "1", ShareBps: 5}), "prizes.table[0].prize",
		},
		"a quantity of units": {
			table(PrizeRow{FromPlace: 1, ToPlace: 1, Prize: "1", Quantity: 5}), "prizes.table[0].quantity",
		},
		"zero":            {table(row(1, 1, "0")), "prizes.table[0].prize"},
		"too many digits": {table(row(1, 1, "0.001")), "prizes.table[0].prize"},
		"no number":       {table(row(1, 1, "NaN")), "prizes.table[0].prize"},
		"no pool":         {&Prizes{TokenCode: "GOLD", Table: []PrizeRow{row(1, 1, "1")}}, "prizes.pool"},
		"no token":        {&Prizes{Pool: "1", Table: []PrizeRow{row(1, 1, "1")}}, "prizes.tokenId"},
		"a token that is not there": {
			&Prizes{TokenCode: "NONE", Pool: "1", Table: []PrizeRow{row(1, 1, "1")}}, "prizes.tokenId",
		},
		"unknown funds": {
			&Prizes{TokenCode: "GOLD", Pool: "1", From: "bank", Table: []PrizeRow{row(1, 1, "1")}}, "prizes.from",
		},
		"a pool of nothing": {
			&Prizes{Pool: "1", Table: []PrizeRow{{FromPlace: 1, ToPlace: 1, AssetID: 1}}}, "prizes.pool",
		},
		"an asset that is not there": {
			&Prizes{Table: []PrizeRow{{FromPlace: 1, ToPlace: 1, AssetID: 999}}}, "prizes.table[0].gameAssetId",
		},
		"an asset with a stock": {
			&Prizes{Table: []PrizeRow{{FromPlace: 1, ToPlace: 1, AssetID: stocked.ID}}}, "prizes.table[0].gameAssetId",
		},
		"too long a review": {
			&Prizes{TokenCode: "GOLD", Pool: "1", Table: []PrizeRow{row(1, 1, "1")}, ReviewSeconds: 1 << 40},
			"prizes.reviewSeconds",
		},
	} {
		_, err := f.Create(t.Context(), operator, f.gameID, Definition{Board: "top", Name: "Top", Prizes: tt.prizes})
		e, _ := apierror.As(err)
		if !errors.Is(err, apierror.InvalidRequest) || len(e.FieldErrors) != 1 || e.FieldErrors[0].Field != tt.fields {
			t.Errorf("%s: %v", name, err)
		}
	}
	for field, d := range map[string]Definition{ // else any player could send the best score that there is
		"rules.max":  {Rules: &Rules{Play: true}},
		"rules.min":  {Rules: &Rules{Play: true, Max: new(ScoreInput("9"))}, Order: Ascending},
		"rules.play": {Rules: &Rules{Max: new(ScoreInput("9"))}},
	} {
		d.Board, d.Name, d.Prizes, d.Writers = "top", "Top", table(row(1, 1, "1")), Writers{WriterPlayers}
		_, err = f.Create(t.Context(), operator, f.gameID, d)
		wantError(t, err, apierror.InvalidRequest, field)
	}

	d := Definition{Board: "top", Name: "Top", Prizes: table(row(1, 3, "3.33"))}
	wantErr := func(name string, caller principal.Caller, d Definition, want *apierror.Error) {
		t.Helper()
		testkit.Fails(f.Create(t.Context(), caller, f.gameID, d))(t, want, "%s", name)
	}
	wantErr("a token that the server may not mint", f.server(), d, apierror.Forbidden)
	d.Prizes.From = ""
	wantErr("the house by the server", f.server(), d, apierror.Forbidden)
	f.Service = New(f.db, f.people, f.people, Options{})
	wantErr("a node without prizes", operator, d, apierror.InvalidRequest)
}

func TestASeasonIsFundedWhenItOpensAndPaidWhenItIsSealed(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newPrizeFixture(t, db)
		created := f.create(Definition{Prizes: table(
			PrizeRow{FromPlace: 1, ToPlace: 1, ShareBps: 5000}, PrizeRow{FromPlace: 3, ToPlace: 4, Prize: "1.50"},
		)})
		if created.Season.PrizesFunded == nil || !*created.Season.PrizesFunded || created.Prizes.Pool != "10" {
			t.Fatalf("%+v", created)
		}
		for user, score := range []string{"50", "40", "30", "20", "10"} {
			f.mustSend(int64(user+1), score)
		}
		testkit.Must(f.SetHidden(t.Context(), operator, f.gameID, "top", 1, 3, true))(t)
		if got := f.promised(); got != 1000 {
			t.Fatalf("%d are promised", got)
		}
		f.end(1)
		f.wantSeason(1, SeasonPaid, true)
		f.wantSeason(2, SeasonOpen, true)
		f.wantWon("1:500 4:150 5:150")
		for range 2 {
			f.sweep()
		}
		f.wantWon("1:500 4:150 5:150")
		if got := f.promised(); got != 1000 { // of season 2
			t.Errorf("%d are promised", got)
		}
		f.mustSend(2, "1")
		f.end(2)
		f.wantWon("1:500 2:500 4:150 5:150")
	})
}

func TestTiedPlayersDivideWhatTheirPlacesGet(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newPrizeFixture(t, db)
		shop := assets.New(db, f.wallets, assets.Options{})
		shield := testkit.Must(shop.Create(t.Context(), operator, f.gameID,
			assets.CreateInput{Name: "Shield", TokenCode: "GOLD", Price: "1"}))(t)
		f.create(Definition{Ties: TiesShared, Prizes: table(
			PrizeRow{FromPlace: 1, ToPlace: 1, Prize: "5"}, PrizeRow{FromPlace: 2, ToPlace: 2, Prize: "0.01"},
			PrizeRow{FromPlace: 3, ToPlace: 3, AssetID: shield.ID}, PrizeRow{FromPlace: 4, ToPlace: 5, Prize: "1"},
		)})
		for user, score := range []string{"9", "9", "7", "7", "5", "5", "5"} { // places 1, 1, 3, 3, 5, 5, 5
			f.mustSend(int64(user+1), score)
		}
		f.end(1)
		// 3 and 4 share place 4 and have an asset each; 5, 6 and 7 share place 5.
		f.wantWon("1:251 2:250 3:50 4:50 5:34 6:33 7:33")
		for user, want := range map[int64]int{3: 1, 4: 1, 5: 0} {
			owned, _, err := shop.ListOwned(t.Context(), f.player(user), 0, 10)
			if err != nil || len(owned) != want {
				t.Errorf("player %d owns %+v, %v", user, owned, err)
			}
		}
	})
}

// They come from no funds, so none have to be the server's.
func TestPrizesInAssetsThatAServerPromisedArePaid(t *testing.T) {
	for _, from := range []prizes.Funds{"", prizes.House, prizes.Mint} {
		f := newPrizeFixture(t, redistest.Single(t))
		shop := assets.New(f.db, f.wallets, assets.Options{})
		shield := testkit.Must(shop.Create(t.Context(), f.server(), f.gameID,
			assets.CreateInput{Name: "Shield", TokenCode: "GOLD", Price: "1"}))(t)
		testkit.Must(f.Create(t.Context(), f.server(), f.gameID, Definition{
			Board: "top", Name: "Top", Prizes: &Prizes{From: from, Table: []PrizeRow{
				{FromPlace: 1, ToPlace: 1, AssetID: shield.ID, Quantity: 3},
			}},
		}))(t)
		f.mustSend(1, "1")
		f.end(1)
		f.wantSeason(1, SeasonPaid, true)
		owned, _, err := shop.ListOwned(t.Context(), f.player(1), 0, 10)
		if err != nil || len(owned) != 1 || owned[0].Quantity != 3 {
			t.Errorf("from %q: the winner owns %+v, %v", from, owned, err)
		}
		f.wantWon("")
	}
}

func TestAHouseThatIsTooPoorFundsASeasonWhenItHasEnough(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newPrizeFixture(t, db)
		p := table(PrizeRow{FromPlace: 1, ToPlace: 1, Prize: "10"})
		p.From = prizes.House
		f.create(Definition{Prizes: p})
		f.mustSend(1, "1")
		f.wantSeason(1, SeasonOpen, false)
		f.end(1)
		f.wantSeason(1, SeasonSealed, false)
		f.wantSeason(2, SeasonOpen, false)

		credit := wallet.CreditInput{UserID: 9, TokenCode: "GOLD", Amount: "10", Reason: "test"}
		testkit.Must(f.wallets.Credit(t.Context(), operator, credit, idempotency.Receipt{}))(t)
		shop := assets.New(db, f.wallets, assets.Options{})
		gem := testkit.Must(shop.Create(t.Context(), operator, f.gameID,
			assets.CreateInput{Name: "Gem", TokenCode: "GOLD", Price: "10"}))(t)
		testkit.Must(shop.Purchase(t.Context(), f.player(9), gem.ID, assets.PurchaseInput{Quantity: 1},
			idempotency.Receipt{}))(t)
		f.sweep()
		f.wantSeason(1, SeasonSealed, false)
		f.wantSeason(2, SeasonOpen, true)
		f.mustSend(2, "1")
		f.end(2)
		f.wantWon("2:1000")
		f.wantSeason(3, SeasonOpen, false)
	})
}

func TestStaffReviewsASeasonBeforeItIsPaid(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newPrizeFixture(t, db)
		p := table(PrizeRow{FromPlace: 1, ToPlace: 1, Prize: "10"})
		p.ReviewSeconds = 3600
		f.create(Definition{Prizes: p})
		f.mustSend(1, "2")
		f.mustSend(2, "1")
		approve := func(number int64) error {
			_, err := f.ApproveSeason(t.Context(), operator, f.gameID, "top", number)
			return err
		}
		void := func(number int64) error {
			_, err := f.VoidSeason(t.Context(), operator, f.gameID, "top", number, "a fault")
			return err
		}
		testkit.WantError(t, approve(1), apierror.SeasonClosed)
		f.end(1)
		f.wantSeason(1, SeasonHeld, true)
		f.sweep()
		f.wantWon("")
		testkit.Must(f.SetHidden(t.Context(), operator, f.gameID, "top", 1, 1, true))(t)
		for range 2 {
			testkit.Check(t, approve(1))
			f.wantSeason(1, SeasonPaid, true)
			f.wantWon("2:1000")
		}
		testkit.WantError(t, void(1), apierror.SeasonClosed)
		testkit.WantError(t, approve(99), apierror.SeasonNotFound)
		testkit.WantError(t, void(99), apierror.SeasonNotFound)
		testkit.Fails(f.ApproveSeason(t.Context(), f.player(1), f.gameID, "top", 1))(t, apierror.Forbidden)
		testkit.Fails(f.VoidSeason(t.Context(), f.player(1), f.gameID, "top", 1, "x"))(t, apierror.Forbidden)

		f.mustSend(1, "2")
		f.end(2)
		for range 2 {
			testkit.Check(t, void(2))
			f.wantSeason(2, SeasonSealed, false)
			f.sweep()
			f.wantWon("2:1000")
		}
		testkit.Check(t, void(3)) // while it is open
		f.sweep()
		f.wantSeason(3, SeasonOpen, false)
		if got := f.promised(); got != 0 {
			t.Errorf("%d are promised", got)
		}
	})
}

// A void that has reached the prizes and not the board, because its node died, is noticed.
func TestAVoidThatStoppedInItsMiddleIsCompleted(t *testing.T) {
	f := newPrizeFixture(t, redistest.Single(t))
	f.create(Definition{Prizes: table(PrizeRow{FromPlace: 1, ToPlace: 1, Prize: "10"})})
	f.mustSend(1, "2")
	testkit.Check(t, f.Service.prizes.Void(t.Context(), f.gameID, "board:top:1", "x"))
	f.end(1)
	f.wantSeason(1, SeasonSealed, false)
	f.wantWon("")
}

// The review ends by the store's clock.
func TestAReviewThatIsOverPays(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newPrizeFixture(t, db)
		p := table(PrizeRow{FromPlace: 1, ToPlace: 1, Prize: "10"})
		p.ReviewSeconds = 1
		f.create(Definition{Prizes: p})
		f.mustSend(1, "2")
		if got := f.end(1); got.Status != SeasonHeld {
			t.Fatalf("%+v", got)
		}
		redistest.Eventually(t, "the season is paid", func() bool {
			f.sweep()
			return f.season(1).Status == SeasonPaid
		})
		f.wantWon("1:1000")
	})
}

// Seasons that ended while nobody worked are sealed and paid in their order.
func TestSeasonsThatEndedInAnOutageArePaidInOrder(t *testing.T) {
	f := newPrizeFixture(t, redistest.Single(t))
	f.create(Definition{Prizes: table(PrizeRow{FromPlace: 1, ToPlace: 1, Prize: "10"})})
	f.mustSend(1, "1")
	for number := range int64(3) {
		if number > 0 { // funded by the leader, then nobody works
			f.sweepFundsOnly()
			f.mustSend(1+number, "1")
		}
		testkit.Must(f.EndSeason(t.Context(), operator, f.gameID, "top", number+1))(t)
	}
	f.wantWon("")
	f.sweep()
	f.wantWon("1:1000 2:1000 3:1000")
	var order []string
	ledger := testkit.Must(f.db.Client.LRange(t.Context(), keys.Ledger(f.gameID), 0, -1).Result())(t)
	for _, entry := range ledger {
		if parts := strings.Split(entry, "|"); parts[3] == "prize" {
			order = append(order, parts[4])
		}
	}
	if !slices.Equal(order, []string{"board:top:1", "board:top:2", "board:top:3"}) {
		t.Errorf("paid in the order %v", order)
	}
}

// sweepFundsOnly funds the open season as the leader does.
func (f *prizeFixture) sweepFundsOnly() {
	f.t.Helper()
	testkit.Must(f.change(f.t.Context(), f.gameID, "top", func(b *board, now int64) (c boardChange, err error) {
		return c, f.fundOpen(f.t.Context(), b, now, &c)
	}))(f.t)
}

func TestADeletedBoardReturnsItsPool(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newPrizeFixture(t, db)
		p := table(PrizeRow{FromPlace: 1, ToPlace: 1, Prize: "10"})
		p.ReviewSeconds = 3600
		f.create(Definition{Prizes: p})
		f.mustSend(1, "1")
		f.end(1)
		if got := f.promised(); got != 2000 {
			t.Fatalf("%d are promised", got)
		}
		testkit.Check(t, f.Delete(t.Context(), operator, f.gameID, "top"))
		f.sweep()
		if got := f.promised(); got != 0 {
			t.Errorf("%d are promised", got)
		}
		f.wantWon("")
		plans, err := db.Client.Exists(t.Context(), keys.PrizePlan(f.gameID, "board:top:1")).Result()
		if err != nil || plans != 0 {
			t.Errorf("%d plans are left, %v", plans, err)
		}
	})
}

func TestASeasonThatOwesPrizesIsKept(t *testing.T) {
	f := newPrizeFixture(t, redistest.Single(t))
	p := table(PrizeRow{FromPlace: 1, ToPlace: 1, Prize: "10"})
	p.ReviewSeconds = 3600
	f.create(Definition{Prizes: p, KeepSeasons: new(int64(0))})
	f.mustSend(1, "1")
	f.end(1)
	f.end(2)
	f.wantSeason(1, SeasonHeld, true)
	for number := range int64(2) {
		testkit.Must(f.ApproveSeason(t.Context(), operator, f.gameID, "top", number+1))(t)
	}
	f.wantWon("1:1000")
	f.sweep()
	list, _, err := f.ListSeasons(t.Context(), operator, f.gameID, "top", 0, 10)
	if err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	plans, err := f.db.Client.Exists(t.Context(), keys.PrizePlan(f.gameID, "board:top:1")).Result()
	if err != nil || plans != 0 {
		t.Errorf("%d plans are left, %v", plans, err)
	}
}

// A patch changes the prizes of the seasons to come.
func TestThePrizesOfASeasonAreThoseOfItsOpening(t *testing.T) {
	f := newPrizeFixture(t, redistest.Single(t))
	f.create(Definition{Prizes: table(PrizeRow{FromPlace: 1, ToPlace: 1, Prize: "10"})})
	f.mustSend(1, "1")
	other := table(PrizeRow{FromPlace: 1, ToPlace: 1, Prize: "4"})
	testkit.Must(f.Patch(t.Context(), operator, f.gameID, "top", Patch{Prizes: wire.Given(other)}))(t)
	bad := table(PrizeRow{FromPlace: 1, ToPlace: 1, Prize: "11"})
	_, err := f.Patch(t.Context(), operator, f.gameID, "top", Patch{Prizes: wire.Given(bad)})
	wantError(t, err, apierror.InvalidRequest, "prizes.table")
	_, err = f.Patch(t.Context(), f.server(), f.gameID, "top", Patch{Prizes: wire.Given(other)})
	wantError(t, err, apierror.Forbidden, "")
	f.end(1)
	f.wantWon("1:1000")
	f.mustSend(2, "1")
	_, err = f.Patch(t.Context(), f.server(), f.gameID, "top", Patch{Prizes: wire.Given[Prizes](nil)})
	wantError(t, err, apierror.Forbidden, "prizes")
	testkit.Must(f.Patch(t.Context(), operator, f.gameID, "top", Patch{Prizes: wire.Given[Prizes](nil)}))(t)
	f.end(2)
	f.wantWon("1:1000 2:400")
	if got := f.season(3); got.PrizesFunded != nil {
		t.Errorf("%+v", got)
	}
}

// Leaders die at any command, and another one goes on: every winner is paid once.
func TestASeasonIsPaidOnceWhenItsLeaderDiesAtAnyCommand(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newPrizeFixture(t, db)
		budget := -1 // commands until the leader dies; -1: it lives
		redistest.FailCommands(db, func() bool {
			if budget > 0 {
				budget--
			}
			return budget == 0
		})
		f.create(Definition{Prizes: table(PrizeRow{FromPlace: 1, ToPlace: 3, Prize: "3"})})
		died := 0
		for number := range int64(4) {
			for user := range int64(4) {
				f.mustSend(user+1, strconv.FormatInt(9-user, 10))
			}
			testkit.Must(f.EndSeason(t.Context(), operator, f.gameID, "top", number+1))(t)
			for commands := 1; ; commands += 1 + int(number) {
				budget = commands
				_, err := f.node(Options{}).sweepGames(t.Context(), 1, []int64{f.gameID})
				budget = -1
				if err == nil {
					break
				}
				died++
			}
			f.wantSeason(number+1, SeasonPaid, true)
			paid := strconv.FormatInt(300*(number+1), 10)
			f.wantWon("1:" + paid + " 2:" + paid + " 3:" + paid)
		}
		if died < 20 {
			t.Errorf("only %d leaders died", died)
		}
	})
}

// newScheduled makes a board with a prize of 10 GOLD for the first of each week, by the operator.
func (f *prizeFixture) newScheduled(d Definition) {
	f.t.Helper()
	d.Prizes, d.Schedule = table(PrizeRow{FromPlace: 1, ToPlace: 1, Prize: "10"}), &Schedule{EverySeconds: 7 * 86_400}
	d.Prizes.ReviewSeconds = 3600
	f.create(d)
}

// With prizes of the operator, a server key decides nothing that decides who gets them, or when.
func TestAServerKeyDecidesNothingAboutPrizesOfTheOperator(t *testing.T) {
	f := newPrizeFixture(t, redistest.Single(t))
	f.newScheduled(Definition{})
	f.mustSend(1, "1")
	f.end(1) // in review
	ctx, server := t.Context(), f.server()
	patch := func(p Patch) error {
		_, err := f.Patch(ctx, server, f.gameID, "top", p)
		return err
	}
	players := Writers{WriterServer, WriterPlayers}
	for act, err := range map[string]error{
		"end": errorOnly(f.EndSeason(ctx, server, f.gameID, "top", 2)), "delete": f.Delete(ctx, server, f.gameID, "top"),
		"approve": errorOnly(f.ApproveSeason(ctx, server, f.gameID, "top", 1)),
		"void":    errorOnly(f.VoidSeason(ctx, server, f.gameID, "top", 1, "test")),
		"hide":    errorOnly(f.SetHidden(ctx, server, f.gameID, "top", 1, 1, true)),
		"remove":  errorOnly(f.Remove(ctx, server, f.gameID, "top", 1, 1)),
		"writers": patch(Patch{Writers: &players}), "rules": patch(Patch{Rules: wire.Given[Rules](nil)}),
		"now":      patch(Patch{Writers: &players, Effective: EffectiveNow}),
		"schedule": patch(Patch{Schedule: wire.Given[Schedule](nil)}), "grace": patch(Patch{GraceSeconds: new(int64(60))}),
		"entries": patch(Patch{MaxEntries: wire.Given(new(int64(1)))}),
		"prizes":  patch(Patch{Prizes: wire.Given[Prizes](nil)}),
	} {
		testkit.WantError(t, err, apierror.Forbidden, "%s", act)
	}
	testkit.Report(t, patch(Patch{Name: new("New"), KeepSeasons: new(int64(3))}))
	f.mustSend(1, "1")
	testkit.Report(t, testkit.ErrorOf(f.SetHidden(ctx, server, f.gameID, "top", 0, 1, true)), "in a season that is open")
	if got := f.season(2).PromisedBy; got == nil || *got != "operator" {
		t.Errorf("the season says %v", got)
	}
}

// Where players alone write for prizes of the operator, a server key clears no way for a friend.
func TestAServerKeyHidesNoEntryThatPlayersAloneMakeForPrizesOfTheOperator(t *testing.T) {
	f := newPrizeFixture(t, redistest.Single(t))
	f.newScheduled(Definition{
		Writers: Writers{WriterPlayers}, Rules: &Rules{Max: new(ScoreInput("100")), Play: true},
	})
	for act, err := range map[string]error{
		"hide":   errorOnly(f.SetHidden(t.Context(), f.server(), f.gameID, "top", 0, 1, true)),
		"show":   errorOnly(f.SetHidden(t.Context(), f.server(), f.gameID, "top", 0, 1, false)),
		"remove": errorOnly(f.Remove(t.Context(), f.server(), f.gameID, "top", 0, 1)),
	} {
		testkit.WantError(t, err, apierror.Forbidden, "%s", act)
	}
	testkit.Fails(f.SetHidden(t.Context(), operator, f.gameID, "top", 0, 1, true))(t, apierror.EntryNotFound)
}

func errorOnly[T any](_ T, err error) error { return err }

// A board of a release that stored no promiser has its prizes from the operator.
func TestPrizesThatNobodyIsKnownToHavePromisedAreTheOperators(t *testing.T) {
	d := Definition{Prizes: &Prizes{}}
	for by, want := range map[string]bool{"": true, "op": true, "g7": false} {
		if d.by = by; d.isPromisedByOperator() != want {
			t.Errorf("%q: %v", by, !want)
		}
	}
}

// A season that was ended by hand was funded for the time until its scheduled end. Whoever ended
// it, the house gives one pool for that time.
func TestASeasonThatIsEndedEarlyIsNotFundedAnew(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newPrizeFixture(t, db)
		f.newScheduled(Definition{KeepSeasons: new(int64(400))})
		for number := range int64(3) {
			f.mustSend(1, "1")
			f.end(number + 1)
			if number == 0 {
				f.wantSeason(1, SeasonHeld, true)
			} else {
				f.wantSeason(number+1, SeasonSealed, false)
			}
		}
		if got := f.promised(); got != 1000 {
			t.Errorf("%d are promised; want one pool", got)
		}
		testkit.Must(f.VoidSeason(t.Context(), operator, f.gameID, "top", 1, "test"))(t)
		f.sweep()
		f.wantSeason(4, SeasonOpen, false)

		// From the scheduled end on there is a pool again.
		b := f.board()
		isFunded, err := f.fund(t.Context(), b, b.find(5), b.find(5).opens)
		if err != nil || !isFunded || f.promised() != 1000 {
			t.Errorf("%v, %v, %d are promised", isFunded, err, f.promised())
		}
		testkit.Check(t, f.Delete(t.Context(), operator, f.gameID, "top"))
		f.sweep()
		if left, err := db.Client.HLen(t.Context(), keys.PrizeBudgets(f.gameID)).Result(); err != nil || left != 0 {
			t.Errorf("%d budgets of boards are left, %v", left, err)
		}
	})
}
