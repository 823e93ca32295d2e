package tournaments

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// BenchmarkSwissRoundOf1000 reports what a round of 1,000 players takes: the longest pairing on the
// node in ten rounds, and what the leader does in the store until each match of a round has its
// room, for a match, beside plain commands of the same run.
func BenchmarkSwissRoundOf1000(b *testing.B) {
	const players, rounds = 1000, 10
	for b.Loop() {
		var longest time.Duration
		e := newEvent(rand.New(rand.NewPCG(1, 2)), FormatSwiss, players)
		for e.round = 1; e.round <= rounds; e.round++ {
			began := time.Now()
			pairs := pairRound(FormatSwiss, e.round, e.players, e.decided)
			longest = max(longest, time.Since(began))
			e.play(pairs)
		}

		f := newFixture(b, redistest.Single(b))
		testkit.Check(b, f.db.Client.Set(b.Context(), keys.GameIDCounter(), f.gameID, 0).Err())
		id := f.create(f.swiss(func(in *CreateInput) { in.MaxEntrants = players }))
		for user := range int64(players) {
			f.enter(id, user+1)
		}
		testkit.Must(f.Start(b.Context(), operator, f.gameID, id, idempotency.Receipt{}))(b)
		before, began, open := redistest.CPUTime(b, f.db), time.Now(), 0
		for open < players/2 {
			f.lead()
			open = 0
			for _, m := range f.currentMatches(id) {
				if m.Status == MatchReady {
					open++
				}
			}
		}
		perMatch := (redistest.CPUTime(b, f.db) - before) / float64(open)
		b.ReportMetric(float64(longest.Microseconds())/1000, "ms-longest-pairing")
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms-until-all-rooms-are-open")
		floors := redistest.Floors{DB: f.db, Members: players, AtOnce: 1}
		floors.Compare(b, "match", 1, func() float64 { return perMatch })
	}
}
