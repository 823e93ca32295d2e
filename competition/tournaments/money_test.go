package tournaments

import (
	"errors"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/audit"
	"github.com/parlor-games/parlor/internal/money/limits"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestAFeeIsAStakeUntilThePlayerLeaves(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		id := f.create(f.swiss(nil))
		f.enter(id, 1, 2)
		f.money.WantBalance(1, 750, 250)
		f.money.Audit()
		if v := f.get(id); v.Entrants != 2 || v.PotUnits != 500 || v.Status != Registration {
			t.Errorf("%+v", v)
		}
		version := f.get(id).Version
		r, err := f.Join(t.Context(), f.player(1), f.gameID, id, idempotency.Receipt{})
		if err != nil || r.Tournament.Version != version {
			t.Errorf("%+v, %v", r, err)
		}
		f.money.WantBalance(1, 750, 250) // a second time it costs nothing
		testkit.Report(t, testkit.ErrorOf(f.Leave(t.Context(), f.player(1), f.gameID, id, idempotency.Receipt{})))
		f.money.WantBalance(1, 1000, 0)
		f.money.Audit()
		testkit.Fails(f.Leave(t.Context(), f.player(1), f.gameID, id, idempotency.Receipt{}))(t, apierror.NotEntrant)
		if v := f.get(id); v.Entrants != 1 || v.PotUnits != 250 {
			t.Errorf("%+v", v)
		}
	})
}

func TestACallWithAKeyTakesTheFeeOnce(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		redistest.LoseReplies(f.db, nil)
		id := f.create(f.swiss(nil))
		f.give(1000, 1)
		rc := idempotency.Receipt{KeyDigest: "key", Fingerprint: "join"}
		for i := range 2 {
			r, err := f.Join(t.Context(), f.player(1), f.gameID, id, rc)
			if err != nil || r.Replayed != (i == 1) {
				t.Fatalf("%+v, %v", r, err)
			}
		}
		f.money.WantBalance(1, 750, 250)
		testkit.Must(f.Leave(t.Context(), f.player(1), f.gameID, id, idempotency.Receipt{}))(t)
		f.money.WantBalance(1, 1000, 0)
		f.money.Audit()
	})
}

func TestACancelledTournamentGivesEveryFeeBack(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		id := f.create(f.swiss(func(in *CreateInput) {
			in.AddedPrize = &AddedPrizeInput{Amount: "100", From: FromMint}
			in.MaxEntrants = 300
		}))
		players := make([]int64, 250) // three times tour_settle
		for i := range players {
			players[i] = int64(i) + 1
		}
		f.enter(id, players...)
		if v := f.get(id); v.PotUnits != 250*250+10_000 {
			t.Errorf("the pot is %d", v.PotUnits)
		}
		f.money.Audit()
		testkit.Must(f.Cancel(t.Context(), operator, f.gameID, id, idempotency.Receipt{}))(t)
		v := f.leadUntil(t, id, Cancelled)
		if *v.CancelReason != CancelledByOperator || v.EndedAt == nil || v.PotUnits != 0 {
			t.Errorf("%+v", v)
		}
		for _, id := range players {
			f.money.WantBalance(id, 1000, 0)
		}
		f.money.Audit()
		if left := f.total(func(t audit.TokenTotal) wallet.Units { return t.PrizesUnits }); left != 0 {
			t.Errorf("%d are still promised", left)
		}
		testkit.Report(t, testkit.ErrorOf(f.Cancel(t.Context(), operator, f.gameID, id, idempotency.Receipt{})),
			"cancelled again")
		testkit.Fails(f.Join(t.Context(), f.player(1), f.gameID, id, idempotency.Receipt{}))(t, apierror.TournamentClosed)
	})
}

func TestATournamentWithTooFewPlayersIsCancelledAtItsStart(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		id := f.create(f.swiss(func(in *CreateInput) { in.StartsAt = new(time.Now().Add(300 * time.Millisecond)) }))
		f.enter(id, 1)
		v := f.leadUntil(t, id, Cancelled)
		if *v.CancelReason != Undersubscribed {
			t.Errorf("the reason is %s", *v.CancelReason)
		}
		f.money.WantBalance(1, 1000, 0)
		f.money.Audit()
	})
}

func TestWhoDoesNotCheckInIsOut(t *testing.T) {
	for _, c := range []struct {
		rule       NoCheckIn
		free, held wallet.Units
	}{{NoCheckInRefund, 1000, 0}, {NoCheckInForfeit, 750, 250}} {
		t.Run(string(c.rule), func(t *testing.T) {
			onBothStores(t, func(t *testing.T, f *fixture) {
				id := f.create(f.swiss(func(in *CreateInput) {
					in.CheckInOpensAt, in.NoCheckIn = new(time.Now().Add(50*time.Millisecond)), c.rule
				}))
				f.enter(id, 1, 2, 3)
				testkit.Fails(f.CheckIn(t.Context(), f.player(1), f.gameID, id, idempotency.Receipt{}))(t, apierror.CheckInClosed)
				f.leadUntil(t, id, CheckIn)
				for _, userID := range []int64{1, 2, 2} {
					testkit.Must(f.CheckIn(t.Context(), f.player(userID), f.gameID, id, idempotency.Receipt{}))(t)
				}
				testkit.Must(f.Start(t.Context(), operator, f.gameID, id, idempotency.Receipt{}))(t)
				f.money.Audit()
				f.lead()
				f.money.WantBalance(3, c.free, c.held)
				f.money.Audit()
				if v := f.get(id); v.Status != Running || v.CheckedIn != 2 || v.Round != 1 {
					t.Errorf("%+v", v)
				}
				list, _, err := f.Entrants(t.Context(), operator, f.gameID, id, "", 10)
				if err != nil || len(list) != 3 || list[2].Status != EntrantOut || list[0].Status != EntrantPlaying {
					t.Errorf("%+v, %v", list, err)
				}
			})
		})
	}
}

func TestAHouseThatIsTooPoorHasNoTournament(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		in := f.swiss(func(in *CreateInput) { in.AddedPrize = &AddedPrizeInput{Amount: "1", From: FromHouse} })
		rc := idempotency.Receipt{KeyDigest: "key", Fingerprint: "create"}
		for range 2 {
			testkit.Fails(f.Create(t.Context(), operator, f.gameID, in, rc))(t, apierror.InsufficientFunds)
		}
		f.lead()
		list, _, err := f.List(t.Context(), operator, ListQuery{GameID: f.gameID, Limit: 10})
		if err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
		if v := f.get(1); v.Status != Cancelled {
			t.Errorf("it is %s", v.Status)
		}
		f.money.Audit()
	})
}

func TestAPlayersOwnLimitsHoldForFees(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		id, other := f.create(f.swiss(nil)), f.create(f.swiss(nil))
		f.give(1000, 1)
		one := int64(1)
		testkit.Must(f.limits.Set(t.Context(), f.player(1), limits.Input{
			UserID: 1, TokenCode: f.token.Code, MaxOpenRooms: new(&one),
		}))(t)
		testkit.Must(f.Join(t.Context(), f.player(1), f.gameID, id, idempotency.Receipt{}))(t)
		testkit.Fails(f.Join(t.Context(), f.player(1), f.gameID, other, idempotency.Receipt{}))(t, apierror.OpenRoomsLimit)
		f.people.Settings.MinStakeAge, f.people.Born = time.Hour, time.Now()
		testkit.Fails(f.Join(t.Context(), f.player(2), f.gameID, other, idempotency.Receipt{}))(t, apierror.Forbidden)
	})
}

func TestAFeeCountsAsAStakeOfAPlayerWhoSetsLimitsLater(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		id, other := f.create(f.swiss(nil)), f.create(f.swiss(nil))
		f.enter(id, 1)
		one := int64(1)
		set, err := f.limits.Set(t.Context(), f.player(1), limits.Input{
			UserID: 1, TokenCode: f.token.Code, MaxOpenRooms: new(&one),
		})
		if err != nil || *set.OpenRooms != 1 || *set.LostUnits != "250" {
			t.Fatalf("%+v, %v", set, err)
		}
		testkit.Fails(f.Join(t.Context(), f.player(1), f.gameID, other, idempotency.Receipt{}))(t, apierror.OpenRoomsLimit)
	})
}

// A prize counts as the payout of a room does. What is counted while a player plays is what is
// counted of the history of a player who sets limits later.
func TestPrizesCountAgainstTheLossOfAPlayer(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		setLimits := func(userID int64) string {
			t.Helper()
			loss := wallet.AmountInput("3")
			set, err := f.limits.Set(t.Context(), f.player(userID), limits.Input{
				UserID: userID, TokenCode: f.token.Code, MaxLoss: new(&loss),
			})
			if err != nil || *set.OpenRooms != 0 {
				t.Fatalf("%+v, %v", set, err)
			}
			return *set.LostUnits
		}
		f.give(1000, 1)
		setLimits(1)
		for opponent := int64(2); opponent <= 3; opponent++ { // 1 and 2 win a cup each, then 1 and 3
			id := f.start(f.swiss(func(in *CreateInput) { in.Payout = []int{5000, 5000} }), 1, opponent)
			f.win(f.match(id, 1), 1)
			f.leadUntil(t, id, Finished)
		}
		list, err := f.limits.Read(t.Context(), f.gameID, 1, f.token.Code)
		if err != nil || *list.Items[0].LostUnits != "24" { // the first gets 238 of 475
			t.Errorf("%s, %v; want 24, half of what the house took of two pots", *list.Items[0].LostUnits, err)
		}
		if got := setLimits(2); got != "13" {
			t.Errorf("of the history of player 2 %s units are lost; want 13, half of a rake", got)
		}
		third := f.create(f.swiss(nil))
		testkit.Report(t, testkit.ErrorOf(f.Join(t.Context(), f.player(1), f.gameID, third, idempotency.Receipt{})),
			"a third cup")
		f.money.Audit()
	})
}

func TestAbsentPlayersOfACancelledTournamentGetTheirFeeOnce(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		id := f.create(f.swiss(func(in *CreateInput) {
			in.CheckInOpensAt, in.MinEntrants = new(time.Now().Add(50*time.Millisecond)), new(2)
		}))
		f.enter(id, 1, 2, 3)
		f.leadUntil(t, id, CheckIn)
		for _, userID := range []int64{1, 2} {
			testkit.Must(f.CheckIn(t.Context(), f.player(userID), f.gameID, id, idempotency.Receipt{}))(t)
		}
		testkit.Must(f.Start(t.Context(), operator, f.gameID, id, idempotency.Receipt{}))(t)
		f.lead()
		f.money.WantBalance(3, 1000, 0)
		testkit.Must(f.Cancel(t.Context(), operator, f.gameID, id, idempotency.Receipt{}))(t)
		f.leadUntil(t, id, Cancelled)
		for user := range int64(3) {
			f.money.WantBalance(user+1, 1000, 0)
		}
		f.money.Audit()
	})
}

// Of a prize that the operator promised only the operator disposes: a server key does not cancel,
// and where the players report the results it neither decides a match nor disqualifies.
func TestAServerKeyDoesNotDisposeOfAPrizeOfTheOperator(t *testing.T) {
	newFixtureWithPrize := func(t *testing.T, by principal.Caller, settledBy rooms.SettledBy) (*fixture, int64) {
		f := newFixture(t, redistest.Single(t))
		testkit.Check(t, f.db.Client.Set(t.Context(), keys.GameIDCounter(), f.gameID, 0).Err())
		testkit.Must(f.wallet.PatchToken(t.Context(), operator, f.token.Code, wallet.TokenPatch{
			Games: &[]wallet.TokenGameInput{{GameID: f.gameID, MintLimitPerDay: "1000"}},
		}))(t)
		r := testkit.Must(f.Create(t.Context(), by, f.gameID, f.swiss(func(in *CreateInput) {
			in.AddedPrize = &AddedPrizeInput{Amount: "1", From: FromMint}
			in.Room = &RoomInput{SettledBy: settledBy}
		}), idempotency.Receipt{}))(t)
		f.enter(r.Tournament.ID, 1, 2)
		testkit.Must(f.Start(t.Context(), operator, f.gameID, r.Tournament.ID, idempotency.Receipt{}))(t)
		f.lead()
		return f, r.Tournament.ID
	}
	server := func(f *fixture) principal.Caller {
		return f.people.Server()
	}
	for name, c := range map[string]struct {
		byOperator        bool
		settledBy         rooms.SettledBy
		mayAct, mayCancel bool
	}{
		"of the operator, by consensus": {true, rooms.SettledByConsensus, false, false},
		"of the operator, by a server":  {true, rooms.SettledByServer, true, false},
		"of the server, by consensus":   {false, rooms.SettledByConsensus, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			by := operator
			if !c.byOperator {
				by = principal.Caller{Role: principal.Server, GameID: lastGame.Load() + 1}
			}
			f, id := newFixtureWithPrize(t, by, c.settledBy)
			check := func(act string, may bool, err error) {
				t.Helper()
				if errors.Is(err, apierror.Forbidden) == may || may && err != nil {
					t.Errorf("%s: %v", act, err)
				}
			}
			_, err := f.Cancel(t.Context(), server(f), f.gameID, id, idempotency.Receipt{})
			check("cancel", c.mayCancel, err)
			if c.mayCancel {
				return
			}
			_, _, err = f.Resolve(t.Context(), server(f), f.gameID, id, "r1m1", 1, idempotency.Receipt{})
			check("resolve", c.mayAct, err)
			_, err = f.Disqualify(t.Context(), server(f), f.gameID, id, 2, idempotency.Receipt{})
			check("disqualify", c.mayAct, err)
			_, err = f.Cancel(t.Context(), operator, f.gameID, id, idempotency.Receipt{})
			check("cancel by the operator", true, err)
		})
	}
}

// Where the players report the results and the operator promised the prize, a server key does not
// start a tournament that has two friends in it, and decides no match by ending its room.
func TestAServerKeyMakesNoWayToAPrizeOfTheOperator(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	testkit.Check(t, f.db.Client.Set(t.Context(), keys.GameIDCounter(), f.gameID, 0).Err())
	id := f.create(f.consensus(func(in *CreateInput) { in.AddedPrize = &AddedPrizeInput{Amount: "1", From: FromMint} }))
	f.enter(id, 1, 2, 3, 4)
	server := f.people.Server()
	testkit.Fails(f.Start(t.Context(), server, f.gameID, id, idempotency.Receipt{}))(t, apierror.Forbidden)
	testkit.Must(f.Start(t.Context(), operator, f.gameID, id, idempotency.Receipt{}))(t)
	f.lead()
	waiting := f.match(id, 3)
	testkit.Fails(f.rooms.Cancel(t.Context(), server, *waiting.RoomID, idempotency.Receipt{}))(t, apierror.Forbidden)
	played := f.playing(id, f.match(id, 1))
	won := []rooms.Placement{{UserID: 1, Place: 1}, {UserID: played.opponentOf(1), Place: 2}}
	testkit.Fails(f.rooms.Finish(t.Context(), server, *played.RoomID, won, idempotency.Receipt{}))(t, apierror.Forbidden)
	testkit.Fails(f.rooms.Cancel(t.Context(), server, *played.RoomID, idempotency.Receipt{}))(t, apierror.Forbidden)
	testkit.Must(f.rooms.Cancel(t.Context(), operator, *played.RoomID, idempotency.Receipt{}))(t)
}
