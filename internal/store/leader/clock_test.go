package leader_test

import (
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/leader"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/internal/store/storeclock"
	"github.com/parlor-games/parlor/tests/testkit"
)

// One node of two has a wrong clock. It takes no lead of what ends by time, so that the other one
// has it, and goes on with the rest.
func TestANodeWhoseClockIsWrongLeavesTheLeadToOthers(t *testing.T) {
	server := redistest.StartForTest(t)
	open := func() *redisdb.DB {
		db := testkit.Must(redisdb.Open(server.URL()))(t)
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	right, wrong := open(), open()
	machine, ahead := storeclock.SystemSource(), time.Hour
	wrong.Clock = storeclock.New(storeclock.Source{
		Wall: func() time.Time { return machine.Wall().Add(ahead) }, Elapsed: machine.Elapsed,
	})
	redistest.LookAtClocks(t, right)
	redistest.LookAtClocks(t, wrong)
	var here, there, anytime recorder
	first := leader.New(right, "test", leader.EndsByTime, here.handle)
	second := leader.New(wrong, "test", leader.EndsByTime, there.handle)
	other := leader.New(wrong, "other", leader.EndsNothing, anytime.handle)
	for range 3 {
		second.Changed(7)
		there.want(t, second)
		here.want(t, first, 7) // what the node with the wrong clock has changed
	}
	other.Changed(7)
	anytime.want(t, other, 7)
}

// A leader whose script was refused gives the lead up, names its games again and reports no error:
// the node's monitor does.
func TestALeaderThatMeetsAJumpGivesUp(t *testing.T) {
	db := redistest.Single(t)
	r := recorder{err: redisdb.ErrSkewed}
	w := leader.New(db, "test", leader.EndsByTime, r.handle)
	w.Changed(7)
	if err := w.RunOnce(t.Context()); err != nil || len(r.calls) != 1 {
		t.Errorf("%v after the calls %v", err, r.calls)
	}
	r.err = nil
	r.want(t, w, 7)
}
