package leaderboards

import (
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// A season of a day is not sealed by a store that is days ahead, also when its clock jumps after
// the leader has read it.
func TestAStoreWhoseClockIsWrongEndsNoSeason(t *testing.T) {
	redistest.EachMovable(t, func(t *testing.T, db *redisdb.DB, clock *redistest.MovedClock) {
		f := newFixture(t, db)
		f.create(Definition{Schedule: &Schedule{EverySeconds: 24 * 3600}, Shards: 2})
		f.mustSend(1, "10")
		requireOpen := func(when string) {
			t.Helper()
			b := testkit.Must(f.read(t.Context(), f.gameID, "top"))(t)
			if b.seasons[0].isSealed {
				t.Errorf("%s: the season is sealed", when)
			}
		}
		sweep := func() {
			if _, err := f.sweepGame(t.Context(), f.gameID); err != nil {
				t.Logf("the sweep returns %v", err)
			}
		}
		for _, ahead := range []time.Duration{72 * time.Hour, -time.Hour} {
			clock.Move(ahead)
			sweep()
			requireOpen(ahead.String())
			clock.Move(0)
			redistest.LookAtClocks(t, db)
		}
		// The season is over by the time that the leader read, and by that of no shard.
		now := testkit.Must(f.store.now(t.Context()))(t)
		f.setBoundaries(now - 1)
		jumps := true
		redistest.ObserveCommands(db, func(commands []redis.Cmder) {
			for _, c := range commands {
				if name := c.Name(); jumps && (name == "evalsha" || name == "eval") {
					clock.Move(72 * time.Hour)
				}
			}
		})
		sweep()
		requireOpen("after a jump")
		jumps = false
		clock.Move(0)
		redistest.LookAtClocks(t, db)
		sweep()
		b, err := f.read(t.Context(), f.gameID, "top")
		if err != nil || !b.seasons[0].isSealed {
			t.Errorf("the season that is over is not sealed when the clock is right: %v", err)
		}
	})
}
