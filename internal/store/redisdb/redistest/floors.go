package redistest

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/redis/go-redis/v9"
)

// Floors are the plain commands to which benchmarks compare the cost of a call: PING, and ZADD of a
// new score and ZRANK in a sorted set.
type Floors struct {
	DB      *redisdb.DB
	Members int // of the sorted set
	AtOnce  int // commands that share a round trip, as those do that are compared with them
}

// plainSet has a score for each member.
const plainSet = "plain"

// Fill makes the sorted set, unless it is there.
func (f Floors) Fill(t testing.TB) {
	t.Helper()
	count, err := f.DB.Client.ZCard(t.Context(), plainSet).Result()
	if err != nil {
		t.Fatal(err)
	}
	if int(count) != f.Members {
		SendAll(t, f.DB, f.Members, 500, func(p redis.Cmdable, i int) {
			p.ZAdd(t.Context(), plainSet, redis.Z{Score: float64(rand.IntN(10 * f.Members)), Member: i})
		})
	}
}

// Compare measures the CPU time of the store for a call and for the plain commands, in turns. It
// reports the medians: µs of the call, and the call as a multiple of each command.
func (f Floors) Compare(b *testing.B, call string, turns int, measure func() float64) {
	b.Helper()
	f.Fill(b)
	commands := map[string]func(p redis.Cmdable, i int){
		"ZADD": func(p redis.Cmdable, _ int) {
			p.ZAdd(b.Context(), plainSet, redis.Z{Score: float64(rand.IntN(10 * f.Members)), Member: rand.IntN(f.Members)})
		},
		"ZRANK": func(p redis.Cmdable, _ int) {
			p.ZRank(b.Context(), plainSet, strconv.Itoa(rand.IntN(f.Members)))
		},
		"PING": func(p redis.Cmdable, _ int) { p.Ping(b.Context()) },
	}
	sent := 5_000
	if f.AtOnce > 1 {
		sent = 20_000
	}
	var own []float64
	floors := map[string][]float64{}
	for range turns {
		own = append(own, measure())
		for name, send := range commands {
			floors[name] = append(floors[name], SendAll(b, f.DB, sent, f.AtOnce, send))
		}
	}
	median := func(all []float64) float64 { return slices.Sorted(slices.Values(all))[len(all)/2] }
	b.ReportMetric(median(own), "store-µs/"+call)
	for name, all := range floors {
		b.ReportMetric(median(own)/median(all), call+"/"+name)
	}
}

// SendAll sends so many commands, atOnce of them in a round trip, and returns the CPU time of the
// store for each, in µs.
func SendAll(t testing.TB, db *redisdb.DB, count, atOnce int, send func(p redis.Cmdable, i int)) float64 {
	t.Helper()
	before := CPUTime(t, db)
	for first := 0; first < count; first += atOnce {
		if atOnce == 1 {
			send(db.Client, first)
			continue
		}
		if _, err := db.Client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			for i := range min(atOnce, count-first) {
				send(p, first+i)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return (CPUTime(t, db) - before) / float64(count)
}
