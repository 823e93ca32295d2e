package tournaments

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// One entrant changes a tournament as often as it can, and others read the standings as often.
func TestStandingsAreMadeFourTimesASecondAtMost(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	id := f.start(f.swiss(func(in *CreateInput) {
		in.EntryTokenID, in.EntryFee, in.Payout, in.Rounds, in.LateJoinRounds = 0, "", nil, new(3), new(2)
	}), 1, 2, 3, 4)
	var made atomic.Int64
	redistest.ObserveCommands(f.db, func(commands []redis.Cmder) {
		for _, c := range commands {
			if c.Name() == "hgetall" && c.Args()[1] == keys.TourEntrants(f.gameID, id) {
				made.Add(1)
			}
		}
	})
	start := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 3*tableInterval)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	var reads atomic.Int64
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				if _, _, err := f.Standings(t.Context(), operator, f.gameID, id, "", 10); err != nil {
					t.Errorf("%v", err)
				}
				reads.Add(1)
			}
		})
	}
	changes := 0
	for ctx.Err() == nil {
		testkit.Must(f.Join(t.Context(), f.player(5), f.gameID, id, idempotency.Receipt{}))(t)
		testkit.Must(f.Leave(t.Context(), f.player(5), f.gameID, id, idempotency.Receipt{}))(t)
		changes += 2
	}
	all.Wait()
	most := 1 + int64(time.Since(start)/tableInterval)
	if got := made.Load(); got > most || got < 2 || reads.Load() < got {
		t.Errorf("%d tables were made for %d changes and %d readers, at most %d may be", got, changes, reads.Load(), most)
	}

	// Who reads after a change sees it: the seat of a fifth player.
	testkit.Must(f.Join(t.Context(), f.player(5), f.gameID, id, idempotency.Receipt{}))(t)
	if list := f.standings(id); len(list) != 5 {
		t.Errorf("after a fifth player has joined the standings have %d", len(list))
	}
}
