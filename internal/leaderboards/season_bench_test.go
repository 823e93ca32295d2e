package leaderboards

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
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
