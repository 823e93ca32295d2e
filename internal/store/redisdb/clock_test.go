package redisdb_test

import (
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// A lease of a second that was taken by a node that died, while the store was an hour ahead, does
// not keep others from the lead for an hour.
func TestALeaseOfAClockThatWasAheadEnds(t *testing.T) {
	db, clock := redistest.OpenMovable(t)
	clock.Move(time.Hour)
	if ok, err := db.TryAcquire(t.Context(), "{l:x}:lock", "dead", time.Second); !ok || err != nil {
		t.Fatalf("%v, %v", ok, err)
	}
	clock.Move(0)
	redistest.Eventually(t, "another one gets the lock", func() bool {
		ok, err := db.TryAcquire(t.Context(), "{l:x}:lock", "next", time.Second)
		return ok && err == nil
	})
}

func TestATimeOfTheStoreThatIsNotTheNodesEndsNothing(t *testing.T) {
	redistest.EachMovable(t, func(t *testing.T, db *redisdb.DB, clock *redistest.MovedClock) {
		testkit.Must(db.ReadClockToEnd(t.Context()))(t)
		clock.Move(-time.Hour)
		if _, err := db.ReadClockToEnd(t.Context()); err != redisdb.ErrSkewed {
			t.Errorf("an hour behind: %v", err)
		}
		clock.Move(0)
		if _, err := db.ReadClockToEnd(t.Context()); err != redisdb.ErrSkewed {
			t.Errorf("before the next look: %v", err)
		}
		redistest.LookAtClocks(t, db)
		testkit.Report(t, testkit.ErrorOf(db.ReadClockToEnd(t.Context())), "after it")
	})
}
