package tournaments

import (
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// The start and the no-show deadlines of a round are hours ahead of the time, and the store's clock
// is behind them for a while.
func TestAStoreWhoseClockIsWrongStartsAndDecidesNothing(t *testing.T) {
	db, clock := redistest.OpenMovable(t)
	f := newFixture(t, db)
	waiting := f.create(f.swiss(nil))
	f.enter(waiting, 1, 2)
	playing := f.create(f.swiss(nil))
	f.enter(playing, 3, 4, 5, 6)
	testkit.Must(f.Start(t.Context(), operator, f.gameID, playing, idempotency.Receipt{}))(t)
	redistest.Eventually(t, "the matches of the round wait for their players", func() bool {
		f.lead()
		matches := f.currentMatches(playing)
		return len(matches) == 2 && matches[0].Status == MatchReady && matches[1].Status == MatchReady
	})
	for _, ahead := range []time.Duration{5 * time.Hour, -time.Hour} {
		clock.Move(ahead)
		for range 3 {
			testkit.Report(t, f.RunOnce(t.Context()), "%v", ahead)
			redistest.LookAtClocks(t, db) // would let a node go on that trusts one good look
		}
		if got := f.get(waiting).Status; got != Registration {
			t.Errorf("%v: a tournament that starts in an hour is %s", ahead, got)
		}
		for _, m := range f.currentMatches(playing) {
			if m.Status != MatchReady {
				t.Errorf("%v: the match %s is %s", ahead, m.ID, m.Status)
			}
		}
		clock.Move(0)
	}
	f.money.Audit()
}
