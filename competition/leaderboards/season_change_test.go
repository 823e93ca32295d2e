package leaderboards

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// setBoundaries makes the seasons of the board "top" end at given times (ms), as if these had been
// stored with the board. No node may have read the board in the last second.
func (f *fixture) setBoundaries(ends ...int64) {
	f.t.Helper()
	f.setBoundariesOf("top", ends...)
}

// setBoundariesOf is setBoundaries for a board of any key.
func (f *fixture) setBoundariesOf(key string, ends ...int64) {
	f.t.Helper()
	ctx := f.t.Context()
	b := testkit.Must(f.read(ctx, f.gameID, key))(f.t)
	var c boardChange
	for _, later := range b.seasons[1:] {
		c.removeSeason(later.number)
	}
	one := b.seasons[0]
	for _, end := range ends {
		one.closes = end
		c.setSeason(one)
		one.number, one.opens, one.isFunded = one.number+1, end, false
	}
	one.closes = 0
	c.setSeason(one)
	testkit.Check(f.t, f.store.define(ctx, f.gameID, key, b.version, c))
}

// newNode returns the leaderboards of one more node.
func (f *fixture) newNode() *Service { return New(f.db, f.people, f.people, Options{}) }

// boundaryWriters is how many write scores while a season ends.
const boundaryWriters = 50

// A season ends by the clock while 50 write on two nodes and a leader seals it: every score that
// was accepted is in one season, in that of its time, and no score is refused.
func TestScoresAroundTheEndOfASeasonAreEachInOneSeason(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		// A machine that is busy needs longer for the first scores.
		for lead := 300 * time.Millisecond; !writeAcrossABoundary(t, db, lead); lead *= 2 {
			if lead > 10*time.Second {
				t.Fatal("no score comes before the end of the season")
			}
		}
	})
}

// writeAcrossABoundary writes scores to a board whose season ends soon and checks where they are.
// It reports whether there were some before the end.
func writeAcrossABoundary(t *testing.T, db *redisdb.DB, lead time.Duration) bool {
	f := newFixture(t, db)
	f.create(Definition{Schedule: &Schedule{EverySeconds: minSeasonSeconds}, Shards: 3})
	now := testkit.Must(f.store.now(t.Context()))(t)
	end := now + lead.Milliseconds()
	f.setBoundaries(end)
	nodes := []*Service{f.newNode(), f.newNode()}

	const perWriter, afterTheEnd = 10_000, 10
	accepted := make([][]int64, boundaryWriters) // user ids; each has one score
	var writers, sweeps sync.WaitGroup
	for w := range boundaryWriters {
		writers.Go(func() {
			for i, late := 0, 0; i < perWriter && late < afterTheEnd; i++ {
				user := int64(1 + w*perWriter + i)
				in := SubmitInput{UserID: user, Score: ScoreInput(fmt.Sprint(user % 100))}
				r, err := nodes[(w+i)%2].Submit(t.Context(), f.server(), f.gameID, "top", in, idempotency.Receipt{})
				if err != nil {
					t.Errorf("player %d: %v", user, err)
					return
				}
				accepted[w] = append(accepted[w], user)
				if r.Entry.ReachedAt.UnixMilli() >= end {
					late++
				}
			}
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	sweeps.Go(func() {
		for ctx.Err() == nil {
			testkit.Report(t, testkit.ErrorOf(nodes[0].sweepGame(t.Context(), f.gameID)), "sweep")
		}
	})
	writers.Wait()
	stop()
	sweeps.Wait()

	f.Service = f.newNode() // the one that made the board has other boundaries
	seasonOf := map[int64]int64{}
	for season := int64(1); season <= 2; season++ {
		for _, e := range f.entries(Scope{Season: season}) {
			if other := seasonOf[e.User.ID]; other != 0 {
				t.Errorf("player %d is in the seasons %d and %d", e.User.ID, other, season)
			}
			seasonOf[e.User.ID] = season
			if isLate := e.ReachedAt.UnixMilli() >= end; isLate != (season == 2) || e.Submissions != 1 {
				t.Errorf("season %d has the entry %+v; the first one ended at %d", season, e, end)
			}
		}
	}
	before, sum := 0, 0
	for _, users := range accepted {
		sum += len(users)
		for _, user := range users {
			switch seasonOf[user] {
			case 0:
				t.Errorf("the score of player %d is lost", user)
			case 1:
				before++
			}
		}
	}
	if sum != len(seasonOf) {
		t.Errorf("the seasons have %d entries of %d accepted scores", len(seasonOf), sum)
	}
	list, _, err := f.ListSeasons(t.Context(), f.server(), f.gameID, "top", 0, 10)
	if err != nil || len(list) < 2 || list[len(list)-1].Status != SeasonSealed {
		t.Errorf("%+v, %v; want the first season to be sealed", list, err)
	}
	played := time.UnixMilli(end - 1)
	in := SubmitInput{UserID: 999_999, Score: "1", PlayedAt: &played}
	testkit.Fails(nodes[1].Submit(t.Context(), f.server(), f.gameID, "top", in, idempotency.Receipt{}))(
		t, apierror.SeasonClosed)
	t.Logf("%d scores before the end of the season, %d after it", before, sum-before)
	return before > 0
}
