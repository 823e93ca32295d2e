package tournaments

import (
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/internal/wallet"
)

func TestAFeeIsAStakeUntilThePlayerLeaves(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		id := f.create(f.swiss(nil))
		f.enter(id, 1, 2)
		f.wantBalance(1, 750, 250)
		f.check()
		if v := f.get(id); v.Entrants != 2 || v.PotUnits != 500 || v.Status != Registration {
			t.Errorf("%+v", v)
		}
		version := f.get(id).Version
		r, err := f.Join(t.Context(), f.player(1), f.gameID, id, idempotency.Receipt{})
		if err != nil || r.Tournament.Version != version {
			t.Errorf("%+v, %v", r, err)
		}
		f.wantBalance(1, 750, 250) // a second time it costs nothing
		if _, err := f.Leave(t.Context(), f.player(1), f.gameID, id, idempotency.Receipt{}); err != nil {
			t.Error(err)
		}
		f.wantBalance(1, 1000, 0)
		f.check()
		_, err = f.Leave(t.Context(), f.player(1), f.gameID, id, idempotency.Receipt{})
		wantCode(t, err, apierror.NotEntrant)
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
		f.wantBalance(1, 750, 250)
		if _, err := f.Leave(t.Context(), f.player(1), f.gameID, id, idempotency.Receipt{}); err != nil {
			t.Fatal(err)
		}
		f.wantBalance(1, 1000, 0)
		f.check()
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
		f.check()
		if _, err := f.Cancel(t.Context(), operator, f.gameID, id, idempotency.Receipt{}); err != nil {
			t.Fatal(err)
		}
		v := f.leadUntil(t, id, Cancelled)
		if *v.CancelReason != CancelledByOperator || v.EndedAt == nil || v.PotUnits != 0 {
			t.Errorf("%+v", v)
		}
		for _, id := range players {
			f.wantBalance(id, 1000, 0)
		}
		f.check()
		if left := f.total(func(t wallet.TokenTotal) wallet.Units { return t.PrizesUnits }); left != 0 {
			t.Errorf("%d are still promised", left)
		}
		if _, err := f.Cancel(t.Context(), operator, f.gameID, id, idempotency.Receipt{}); err != nil {
			t.Errorf("cancelled again: %v", err)
		}
		_, err := f.Join(t.Context(), f.player(1), f.gameID, id, idempotency.Receipt{})
		wantCode(t, err, apierror.TournamentClosed)
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
		f.wantBalance(1, 1000, 0)
		f.check()
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
				_, err := f.CheckIn(t.Context(), f.player(1), f.gameID, id, idempotency.Receipt{})
				wantCode(t, err, apierror.CheckInClosed)
				f.leadUntil(t, id, CheckIn)
				for _, userID := range []int64{1, 2, 2} {
					if _, err := f.CheckIn(t.Context(), f.player(userID), f.gameID, id, idempotency.Receipt{}); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := f.Start(t.Context(), operator, f.gameID, id, idempotency.Receipt{}); err != nil {
					t.Fatal(err)
				}
				f.check()
				f.lead()
				f.wantBalance(3, c.free, c.held)
				f.check()
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
			_, err := f.Create(t.Context(), operator, f.gameID, in, rc)
			wantCode(t, err, apierror.InsufficientFunds)
		}
		f.lead()
		list, _, err := f.List(t.Context(), operator, ListQuery{GameID: f.gameID, Limit: 10})
		if err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
		if v := f.get(1); v.Status != Cancelled {
			t.Errorf("it is %s", v.Status)
		}
		f.check()
	})
}

func TestAPlayersOwnLimitsHoldForFees(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		id, other := f.create(f.swiss(nil)), f.create(f.swiss(nil))
		f.give(1000, 1)
		one := int64(1)
		_, err := f.wallet.SetLimits(t.Context(), f.player(1), wallet.LimitsInput{
			UserID: 1, TokenCode: f.token.Code, MaxOpenRooms: new(&one),
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Join(t.Context(), f.player(1), f.gameID, id, idempotency.Receipt{}); err != nil {
			t.Fatal(err)
		}
		_, err = f.Join(t.Context(), f.player(1), f.gameID, other, idempotency.Receipt{})
		wantCode(t, err, apierror.OpenRoomsLimit)
		f.people.minAge, f.people.born = time.Hour, time.Now()
		_, err = f.Join(t.Context(), f.player(2), f.gameID, other, idempotency.Receipt{})
		wantCode(t, err, apierror.Forbidden)
	})
}

func TestAFeeCountsAsAStakeOfAPlayerWhoSetsLimitsLater(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		id, other := f.create(f.swiss(nil)), f.create(f.swiss(nil))
		f.enter(id, 1)
		one := int64(1)
		limits, err := f.wallet.SetLimits(t.Context(), f.player(1), wallet.LimitsInput{
			UserID: 1, TokenCode: f.token.Code, MaxOpenRooms: new(&one),
		})
		if err != nil || *limits.OpenRooms != 1 || *limits.LostUnits != "250" {
			t.Fatalf("%+v, %v", limits, err)
		}
		_, err = f.Join(t.Context(), f.player(1), f.gameID, other, idempotency.Receipt{})
		wantCode(t, err, apierror.OpenRoomsLimit)
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
			if _, err := f.CheckIn(t.Context(), f.player(userID), f.gameID, id, idempotency.Receipt{}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := f.Start(t.Context(), operator, f.gameID, id, idempotency.Receipt{}); err != nil {
			t.Fatal(err)
		}
		f.lead()
		f.wantBalance(3, 1000, 0)
		if _, err := f.Cancel(t.Context(), operator, f.gameID, id, idempotency.Receipt{}); err != nil {
			t.Fatal(err)
		}
		f.leadUntil(t, id, Cancelled)
		for user := range int64(3) {
			f.wantBalance(user+1, 1000, 0)
		}
		f.check()
	})
}
