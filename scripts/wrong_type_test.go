package scripts_test

import (
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
)

// endsForOthers reports whether an example gives back or pays out what is others'. An error
// half-way would be repeated with each retry, by the sweep each second, and give it back again.
func endsForOthers(e example) bool {
	switch e.script {
	case scripts.RoomFinish, scripts.RoomSweep, scripts.RoomCancel, scripts.RoomKick, scripts.RoomResolve,
		scripts.PrizeFund, scripts.PrizePlan, scripts.PrizePay, scripts.PrizeVoid, scripts.TourSettle:
		return true
	case scripts.RoomReport:
		return strings.Contains(e.name, "the last one") || strings.Contains(e.name, "against oneself")
	case scripts.RoomLeave:
		return strings.Contains(e.name, "the last one") || strings.Contains(e.name, "is won then") ||
			strings.Contains(e.name, "reported the same")
	}
	return false
}

// TestAKeyThatSetReplacedIsNoticedBeforeMoneyMoves overwrites each key of each example with a
// string, as a careless SET does.
func TestAKeyThatSetReplacedIsNoticedBeforeMoneyMoves(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		failed := map[*scripts.Script]int{}
		for _, e := range examples {
			if e.status == scripts.OK && endsForOthers(e) {
				for place, left := 0, 1; place < left; place++ {
					f := newFixture(t, db)
					c := e.prepare(f)
					names, args := c.build()
					left = len(names)
					testkit.Check(t, db.Client.Set(t.Context(), names[place], "?", 0).Err())
					before := c.snapshot()
					if _, err := db.RunScript(t.Context(), e.script, names, args...); err != nil {
						failed[e.script]++
						if diff := before.Diff(c.snapshot()); diff != "" {
							t.Errorf("%s/%s fails with %v for %s and changes\n%s", e.script.Name, e.name, err, names[place], diff)
						}
					}
					f.dropAll(c.tag())
				}
			}
		}
		if len(failed) != 12 {
			t.Errorf("wrong types stop only %v", failed)
		}
	})
}
