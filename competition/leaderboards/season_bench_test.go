package leaderboards

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// reportMS reports a time in milliseconds.
func reportMS(b *testing.B, d time.Duration, unit string) {
	b.ReportMetric(float64(d.Microseconds())/1000, unit)
}

// timed is when a call began and how long it took.
type timed struct {
	began time.Time
	took  time.Duration
}

// writeUntil lets boundaryWriters write a thousand scores a second on the nodes until a time and
// returns the time of each.
func (f *fixture) writeUntil(b *testing.B, until time.Time, nodes ...*Service) []timed {
	const interval = boundaryWriters * time.Second / 1000 // between two scores of a writer
	samples := make([][]timed, boundaryWriters)
	players := min(*benchEntries, maxPerson)
	var writers sync.WaitGroup
	for w := range boundaryWriters {
		writers.Go(func() {
			tick := time.NewTicker(interval)
			defer tick.Stop()
			for ; time.Now().Before(until); <-tick.C {
				in := SubmitInput{UserID: 1 + rand.Int64N(players), Score: ScoreInput(strconv.Itoa(rand.IntN(1e9)))}
				node, began := nodes[rand.IntN(len(nodes))], time.Now()
				if _, err := node.Submit(b.Context(), f.server(), f.gameID, "top", in, idempotency.Receipt{}); err != nil {
					b.Error(err)
					return
				}
				samples[w] = append(samples[w], timed{began, time.Since(began)})
			}
		})
	}
	writers.Wait()
	return slices.Concat(samples...)
}

// askUntil sends each plain command once in a millisecond on a connection of its own until a time
// and returns the time of each, by command.
func askUntil(b *testing.B, server *redistest.Server, until time.Time) map[string][]timed {
	ctx := b.Context()
	commands := map[string]func(c *redis.Client) error{
		"PING": func(c *redis.Client) error { return c.Ping(ctx).Err() },
		"ZADD": func(c *redis.Client) error {
			return c.ZAdd(ctx, "asked", redis.Z{Score: rand.Float64(), Member: 1}).Err()
		},
		"ZRANK": func(c *redis.Client) error { return c.ZRank(ctx, "asked", "1").Err() },
	}
	var mu sync.Mutex
	samples := map[string][]timed{}
	var askers sync.WaitGroup
	for name, ask := range commands {
		client := redistest.Dial(b, server)
		testkit.Check(b, commands["ZADD"](client)) // connects, and makes the set
		askers.Go(func() {
			var own []timed
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for ; time.Now().Before(until); <-tick.C {
				began := time.Now()
				if err := ask(client); err != nil {
					b.Error(err)
					return
				}
				own = append(own, timed{began, time.Since(began)})
			}
			mu.Lock()
			defer mu.Unlock()
			samples[name] = own
		})
	}
	askers.Wait()
	return samples
}

// longestAround returns the longest time in the second before each of some instants (ms), and in
// the second after it.
func longestAround(samples []timed, ends []int64) (before, after []time.Duration) {
	for _, end := range ends {
		longest := func(from, to time.Duration) (most time.Duration) {
			for _, s := range samples {
				if done := s.began.Add(s.took).Sub(time.UnixMilli(end)); done >= from && done < to {
					most = max(most, s.took)
				}
			}
			return most
		}
		before, after = append(before, longest(-time.Second, 0)), append(after, longest(0, time.Second))
	}
	return before, after
}

// BenchmarkSeasonChange reports the longest time that a score takes while 50 write a thousand a
// second on two nodes whose leader seals what is over: in the second after the end of a season and
// in the second before it, of seasons that end by the clock one after the other. Beside them are
// the longest times of plain commands in the same seconds, and the longest command of the store,
// which other load of the machine changes less. A board that keeps no season removes the first one,
// with all entries, in such a second.
func BenchmarkSeasonChange(b *testing.B) {
	for name, keepSeasons := range map[string]int64{"kept": defaultKeepSeasons, "removed-at-once": 0} {
		b.Run(name, func(b *testing.B) {
			d := Definition{Schedule: &Schedule{EverySeconds: minSeasonSeconds}, KeepSeasons: new(keepSeasons)}
			f, s := newBoardBench(b, d)
			for b.Loop() {
				measureSeasonChange(b, f, s)
			}
		})
	}
}

func measureSeasonChange(b *testing.B, f *fixture, s *storeBench) {
	const changes = 8
	nodes := []*Service{f.newNode(), f.newNode()}
	now := testkit.Must(f.store.now(b.Context()))(b)
	var ends []int64 // ms
	for n := range int64(changes) {
		ends = append(ends, now+2000*(n+1))
	}
	f.setBoundaries(ends...)
	until := time.UnixMilli(ends[changes-1]).Add(time.Second)
	var scores []timed
	var plain map[string][]timed
	command, slowest := s.longestCommand(func() {
		ctx, stop := context.WithCancel(b.Context())
		var leaders, askers sync.WaitGroup
		for _, node := range nodes {
			leaders.Go(func() { _ = node.Run(ctx) })
		}
		askers.Go(func() { plain = askUntil(b, s.server, until) })
		scores = f.writeUntil(b, until, nodes...)
		askers.Wait()
		stop()
		leaders.Wait()
	})
	before, after := longestAround(scores, ends)
	reportMS(b, slices.Max(before), "ms-longest-before")
	reportMS(b, slices.Max(after), "ms-longest-in-the-second")
	reportMS(b, slices.Max(after)-slices.Max(before), "ms-over")
	var differences []time.Duration
	for i := range ends {
		differences = append(differences, after[i]-before[i])
	}
	slices.Sort(differences)
	reportMS(b, differences[changes/2], "ms-over-in-the-median-change")
	for name, samples := range plain {
		before, after := longestAround(samples, ends)
		reportMS(b, slices.Max(before), "ms-longest-"+name+"-before")
		reportMS(b, slices.Max(after), "ms-longest-"+name+"-in-the-second")
	}
	reportMS(b, slowest, "ms-longest-command:"+command)
}

// longestCommand returns the command that held the store for the longest time while do runs, ""
// when none took 100 µs.
func (s *storeBench) longestCommand(do func()) (name string, took time.Duration) {
	s.b.Helper()
	ctx, client := s.b.Context(), s.db.Client
	for setting, value := range map[string]string{"slowlog-log-slower-than": "100", "slowlog-max-len": "100000"} {
		testkit.Check(s.b, client.ConfigSet(ctx, setting, value).Err())
	}
	testkit.Check(s.b, client.SlowLogReset(ctx).Err())
	do()
	slow := testkit.Must(client.SlowLogGet(ctx, -1).Result())(s.b)
	for _, one := range slow {
		if one.Duration > took {
			name, took = one.Args[0], one.Duration
		}
	}
	return name, took
}

// longestPing returns the longest time that a PING takes while do runs, and how long that was.
func longestPing(b *testing.B, server *redistest.Server, do func()) (longest, whole time.Duration) {
	client := redistest.Dial(b, server)
	stop, stopped := make(chan struct{}), make(chan struct{})
	ping := func() time.Duration {
		began := time.Now()
		testkit.Report(b, client.Ping(b.Context()).Err())
		return time.Since(began)
	}
	ping() // connects
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				longest = max(longest, ping())
			}
		}
	}()
	began := time.Now()
	do()
	whole = time.Since(began)
	close(stop)
	<-stopped
	return longest, whole
}

// timeOf returns the mean time in µs of a command since the store began.
func (s *storeBench) timeOf(command string) float64 {
	s.b.Helper()
	text := testkit.Must(s.db.Client.Info(s.b.Context(), "commandstats").Result())(s.b)
	var calls, sum int
	_, line, _ := strings.Cut(text, "cmdstat_"+command+":")
	testkit.Must(fmt.Sscanf(line, "calls=%d,usec=%d,", &calls, &sum))(s.b)
	return float64(sum) / float64(calls)
}

func waitFor(d time.Duration) { <-time.After(d) }

// BenchmarkRemoval reports the longest PING while a season that is not kept is removed, until the
// store has freed it, beside the longest one in as much time without it. Both depend on what else
// the machine does. The mean and the longest time of a command of the removal do so less.
func BenchmarkRemoval(b *testing.B) {
	for b.Loop() {
		f, s := newBoardBench(b, Definition{KeepSeasons: new(int64(0))})
		testkit.Must(f.EndSeason(b.Context(), f.server(), f.gameID, "top", 1))(b)
		full := s.info("memory", "used_memory")
		var removal, whole time.Duration
		command, slowest := s.longestCommand(func() {
			removal, whole = longestPing(b, s.server, func() {
				testkit.Must(f.sweepGame(b.Context(), f.gameID))(b)
				redistest.Eventually(b, "the season is freed", func() bool {
					return s.info("memory", "lazyfree_pending_objects") == 0
				})
			})
		})
		freed := full - s.info("memory", "used_memory")
		control, _ := longestPing(b, s.server, func() { waitFor(whole) })
		reportMS(b, whole, "ms-until-freed")
		reportMS(b, control, "ms-longest-PING-without")
		reportMS(b, removal, "ms-longest-PING-meanwhile")
		reportMS(b, slowest, "ms-longest-command:"+command)
		b.ReportMetric(s.timeOf("unlink"), "µs/UNLINK")
		b.ReportMetric(freed/float64(*benchEntries), "bytes-freed/entry")
	}
}
