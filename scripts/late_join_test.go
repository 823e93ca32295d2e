package scripts_test

import (
	"testing"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
)

// wantTour compares values of the tournament that change.
func (f *fixture) wantTour(want map[string]string) {
	f.t.Helper()
	for name, value := range want {
		if got := f.tourLive(name); got != value {
			f.t.Errorf("%s is %s; want %s", name, got, value)
		}
	}
}

// comeBack lets player 7 leave a tournament that runs, and join it again.
func (f *fixture) comeBack() {
	f.t.Helper()
	f.tour(scripts.TourLeave, nil).want(scripts.OK)
	f.tour(scripts.TourJoin, nil).want(scripts.OK)
}

// A player who left after the start comes back in the last round for it, though the tournament is
// full: the fee was kept, and the place is the one of before.
func TestWhoComesBackAfterTheStartPaysAndCountsOnce(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.startTour(values{"late_rounds": 1, "max": 2})
	f.beginRound(1).want(scripts.OK)
	for range 2 {
		f.comeBack()
		f.wantTour(map[string]string{"entrants": "2", "escrow": "500", "cursor": "2", "checked_in": "1"})
		f.wantBalance(7, "750", "250")
	}
	f.tour(scripts.TourJoin, values{"user": 9}).want("tournament_full")
	f.setTourLive("round", 2)
	f.tour(scripts.TourLeave, nil).want(scripts.OK)
	f.tour(scripts.TourJoin, nil).want("registration_closed")
}

func TestWhoComesBackAfterTheFeeWasReturnedPaysAgain(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.openCheckIn(values{"no_check_in": "refund", "late_rounds": 1}, 7, 8)
	f.tour(scripts.TourCheckIn, values{"user": 8}).want(scripts.OK)
	f.tour(scripts.TourStart, values{"fence": ""}).want(scripts.OK)
	f.tour(scripts.TourSettle, nil).want(scripts.OK)
	f.wantBalance(7, "1000", "0")
	f.tour(scripts.TourJoin, nil).want(scripts.OK)
	f.wantBalance(7, "750", "250")
	f.wantTour(map[string]string{"entrants": "2", "escrow": "500", "checked_in": "2"})
}

// The entrants up to the cursor were looked at. Who joins late is not looked at: neither when all
// others were, nor in the place of one who was not.
func TestWhoJoinsLateIsNotTakenForOneWhoDidNotCheckIn(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.startTour(values{"late_rounds": 1})
	f.joinTour(9)
	f.wantTour(map[string]string{"entrants": "3", "cursor": "3", "checked_in": "1"})

	f = newFixture(t, redistest.Single(t))
	f.openCheckIn(values{"no_check_in": "refund", "late_rounds": 1}, 7, 8)
	f.tour(scripts.TourCheckIn, values{"user": 8}).want(scripts.OK)
	f.tour(scripts.TourStart, values{"fence": ""}).want(scripts.OK)
	f.joinTour(9)
	f.wantTour(map[string]string{"entrants": "3", "cursor": "0", "checked_in": "2"})
}

func TestNobodyChecksInFromTheStartOn(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.openCheckIn(nil, 7)
	started := f.tourSettings(values{"checks_in": 2, "min": 1, "starts": 3}) // but no leader has started it
	f.set(keys.Tour(f.id, tourID), "settings", started)
	f.tour(scripts.TourCheckIn, nil).want("check_in_closed")
}

func TestWhoHasLeftHasNoAttempts(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.startTour(values{"ends": farAway})
	f.tour(scripts.TourAttempt, values{"most": 9}).want(scripts.OK)
	f.tour(scripts.TourLeave, nil).want(scripts.OK)
	f.tour(scripts.TourAttempt, values{"most": 9}).want("not_entrant")
}

// Who did not check in plays nothing, also before tour_settle has come to them.
func TestWhoDidNotCheckInHasNoAttempts(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.openCheckIn(values{"ends": farAway}, 7, 8)
	f.tour(scripts.TourCheckIn, values{"user": 8}).want(scripts.OK)
	f.tour(scripts.TourStart, values{"fence": ""}).want(scripts.OK)
	f.tour(scripts.TourAttempt, values{"most": 9}).want("not_entrant")
	f.tour(scripts.TourAttempt, values{"most": 9, "user": 8}).want(scripts.OK)
}
