package tournaments

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/redis/go-redis/v9"
)

// BenchmarkSwissRoundOf1000 reports what a round of 1,000 players takes: the longest pairing on the
// node in ten rounds, and what the leader does in the store until each match of a round has its
// room, for a match, beside a PING, a ZADD that moves a member and a ZRANK of the same run.
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
		if err := f.db.Client.Set(b.Context(), keys.GameIDCounter(), f.gameID, 0).Err(); err != nil {
			b.Fatal(err)
		}
		id := f.create(f.swiss(func(in *CreateInput) { in.MaxEntrants = players }))
		for user := range int64(players) {
			f.enter(id, user+1)
		}
		if _, err := f.Start(b.Context(), operator, f.gameID, id, idempotency.Receipt{}); err != nil {
			b.Fatal(err)
		}
		ping := redistest.PingTime(b, f.db)
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
		b.ReportMetric(perMatch, "store-µs/match")
		b.ReportMetric(perMatch/ping, "match/PING")
		zadd, zrank := sortedSetTimes(b, f.db, players)
		b.ReportMetric(perMatch/zadd, "match/ZADD")
		b.ReportMetric(perMatch/zrank, "match/ZRANK")
	}
}

// sortedSetTimes returns the CPU time in µs of the store for a ZADD that moves a member, and for a
// ZRANK, in a sorted set of as many members.
func sortedSetTimes(b *testing.B, db *redisdb.DB, members int) (zadd, zrank float64) {
	const calls = 5000
	ctx, random, key := b.Context(), rand.New(rand.NewPCG(3, 4)), "{floor}:plain"
	add := func(member int) {
		one := redis.Z{Score: random.Float64(), Member: member}
		if err := db.Client.ZAdd(ctx, key, one).Err(); err != nil {
			b.Fatal(err)
		}
	}
	for member := range members {
		add(member)
	}
	before := redistest.CPUTime(b, db)
	for range calls {
		add(random.IntN(members))
	}
	between := redistest.CPUTime(b, db)
	for range calls {
		if err := db.Client.ZRank(ctx, key, strconv.Itoa(random.IntN(members))).Err(); err != nil {
			b.Fatal(err)
		}
	}
	return (between - before) / calls, (redistest.CPUTime(b, db) - between) / calls
}
