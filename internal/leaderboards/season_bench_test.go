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

	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
)

// newBoardBench returns a store of its own and the board "top" there, as many entries in its first
// season as the benchmarks want.
func newBoardBench(b *testing.B, d Definition) (*fixture, *storeBench) {
	b.Helper()
	server := redistest.StartFor(b)
	db, err := redisdb.Open(server.URL())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	p := &people{gameID: 1}
	f := &fixture{b, New(db, p, p, Options{}), p, p.gameID, db}
	d.MaxEntries = new(2 * *benchEntries) // so that the first season has buckets for as many
	f.create(d)
	board, err := f.read(b.Context(), f.gameID, "top")
	if err != nil {
		b.Fatal(err)
	}
	s := &storeBench{b, server, db, board.shard(&board.seasons[0], 0)}
	s.fill()
	return f, s
}

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
	players := min(*benchEntries, 999_999) // people has no more
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

// BenchmarkSeasonChange reports the longest time that a score takes while 50 write a thousand a
// second on two nodes whose leader seals what is over: in the second after the end of a season and
// in the second before it, of seasons that end by the clock one after the other.
func BenchmarkSeasonChange(b *testing.B) {
	f, _ := newBoardBench(b, Definition{Schedule: &Schedule{EverySeconds: minSeasonSeconds}})
	const changes = 8
	for b.Loop() {
		nodes := []*Service{f.newNode(), f.newNode()}
		now, err := f.store.now(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		var ends []int64 // ms
		for n := range int64(changes) {
			ends = append(ends, now+2000*(n+1))
		}
		f.setBoundaries(ends...)
		ctx, stop := context.WithCancel(b.Context())
		var leaders sync.WaitGroup
		for _, node := range nodes {
			leaders.Go(func() { _ = node.Run(ctx) })
		}
		samples := f.writeUntil(b, time.UnixMilli(ends[changes-1]).Add(time.Second), nodes...)
		stop()
		leaders.Wait()

		var before, after, differences []time.Duration // the longest of each change
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
			differences = append(differences, after[len(after)-1]-before[len(before)-1])
		}
		slices.Sort(differences)
		reportMS(b, slices.Max(before), "ms-longest-before")
		reportMS(b, slices.Max(after), "ms-longest-in-the-second")
		reportMS(b, slices.Max(after)-slices.Max(before), "ms-over")
		reportMS(b, differences[changes/2], "ms-over-in-the-median-change")
	}
}

// longestPing returns the longest time that a PING takes while do runs, and how long that was.
func longestPing(b *testing.B, server *redistest.Server, do func()) (longest, whole time.Duration) {
	client := redistest.Dial(b, server)
	stop, stopped := make(chan struct{}), make(chan struct{})
	ping := func() time.Duration {
		began := time.Now()
		if err := client.Ping(b.Context()).Err(); err != nil {
			b.Error(err)
		}
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
	text, err := s.db.Client.Info(s.b.Context(), "commandstats").Result()
	if err != nil {
		s.b.Fatal(err)
	}
	var calls, sum int
	_, line, _ := strings.Cut(text, "cmdstat_"+command+":")
	if _, err := fmt.Sscanf(line, "calls=%d,usec=%d,", &calls, &sum); err != nil {
		s.b.Fatal(err)
	}
	return float64(sum) / float64(calls)
}

func waitFor(d time.Duration) { <-time.After(d) }

// BenchmarkRemoval reports the longest PING while a season that is not kept is removed, until the
// store has freed it, beside the longest one in as much time without it. Both depend on what else
// the machine does, the mean time of a command of the removal less so.
func BenchmarkRemoval(b *testing.B) {
	for b.Loop() {
		f, s := newBoardBench(b, Definition{KeepSeasons: new(int64(0))})
		if _, err := f.EndSeason(b.Context(), f.server(), f.gameID, "top", 1); err != nil {
			b.Fatal(err)
		}
		full := s.info("memory", "used_memory")
		removal, whole := longestPing(b, s.server, func() {
			if _, err := f.sweepGame(b.Context(), f.gameID); err != nil {
				b.Fatal(err)
			}
			redistest.Eventually(b, "the season is freed", func() bool {
				return s.info("memory", "lazyfree_pending_objects") == 0
			})
		})
		freed := full - s.info("memory", "used_memory")
		control, _ := longestPing(b, s.server, func() { waitFor(whole) })
		reportMS(b, whole, "ms-until-freed")
		reportMS(b, control, "ms-longest-PING-without")
		reportMS(b, removal, "ms-longest-PING-meanwhile")
		b.ReportMetric(s.timeOf("unlink"), "µs/UNLINK")
		b.ReportMetric(freed/float64(*benchEntries), "bytes-freed/entry")
	}
}
