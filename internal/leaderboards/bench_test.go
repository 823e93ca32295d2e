package leaderboards

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// storeBench sends commands to a store of its own and reads how much CPU time its main thread took.
type storeBench struct {
	b      *testing.B
	server *redistest.Server
	db     *redisdb.DB
	at     seasonShard // where scores go
}

// benchEntries is how many entries the board has.
var benchEntries = flag.Int64("entries", 200_000, "entries of the leaderboards of benchmarks")

const (
	benchPlain  = "plain" // a sorted set with a score for each player
	benchShards = 8       // of a board whose ranks are sums
)

// info returns a number of INFO.
func (s *storeBench) info(section, name string) float64 {
	s.b.Helper()
	text, err := s.db.Client.Info(s.b.Context(), section).Result()
	if err != nil {
		s.b.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				s.b.Fatal(err)
			}
			return n
		}
	}
	s.b.Fatalf("INFO has no %s", name)
	return 0
}

// cost returns the microseconds of CPU time of the store for each of n commands, which are sent in
// pipelines.
func (s *storeBench) cost(n int, send func(p redis.Pipeliner, i int)) float64 {
	s.b.Helper()
	cpu := func() float64 {
		return s.info("cpu", "used_cpu_user_main_thread") + s.info("cpu", "used_cpu_sys_main_thread")
	}
	before := cpu()
	for first := 0; first < n; first += 500 {
		if _, err := s.db.Client.Pipelined(s.b.Context(), func(p redis.Pipeliner) error {
			for i := range min(500, n-first) {
				send(p, first+i)
			}
			return nil
		}); err != nil {
			s.b.Fatal(err)
		}
	}
	return (cpu() - before) * 1e6 / float64(n)
}

// submit adds a run of board_submit. What adds up has a receipt for each call.
func (s *storeBench) submit(p redis.Pipeliner, userID, score int64, operator Operator) {
	names := s.at.entryKeys(userID, "", "")
	nonce, fingerprint := "n0nce"+strconv.FormatUint(uint64(rand.Uint32N(900)+100), 10), ""
	if operator == Sum {
		fingerprint = "bench"
		names = append(names, keys.BoardReceipt(s.at.BoardShard, "server:1", strconv.FormatUint(rand.Uint64(), 36)))
	}
	p.EvalSha(s.b.Context(), scripts.BoardSubmit.SHA, names, nonce, fingerprint, 60_000, userID, 1, "", "desc",
		string(operator), score, "", "", "", "", "", "", "", "", "", "", 0, 0, 1)
}

// spreadScore returns the score of the i-th entry; no two are equal.
func spreadScore(i int) int64 { return int64(i) * 7919 % *benchEntries * 10 }

// fill gives as many players an entry as the benchmarks want.
func (s *storeBench) fill() {
	s.b.Helper()
	if err := s.db.Client.ScriptLoad(s.b.Context(), scripts.BoardSubmit.Source).Err(); err != nil {
		s.b.Fatal(err)
	}
	s.cost(int(*benchEntries), func(p redis.Pipeliner, i int) { s.submit(p, int64(i+1), spreadScore(i), Best) })
}

// BenchmarkStore reports what the store pays for the calls of a board, as multiples of a plain ZADD
// of the same run, and the bytes of an entry. What profiles of players cost is not in it.
func BenchmarkStore(b *testing.B) {
	server := redistest.StartFor(b)
	db, err := redisdb.Open(server.URL())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	s := &storeBench{b, server, db, seasonShard{keys.NewBoardShard(1, "top", 0), 1, 1, bucketsFor(*benchEntries)}}
	ctx := b.Context()
	entries := int(*benchEntries)
	empty := s.info("memory", "used_memory")
	s.fill()
	bytes := (s.info("memory", "used_memory") - empty) / float64(entries)
	s.cost(entries, func(p redis.Pipeliner, i int) {
		p.ZAdd(ctx, benchPlain, redis.Z{Score: float64(spreadScore(i)), Member: i + 1})
	})
	member := func(i int) string {
		d := Definition{Order: Descending}
		return encodeMember(&d, spreadScore(i), 0, time.UnixMilli(0), int64(i+1))
	}
	s.cost(entries, func(p redis.Pipeliner, i int) {
		p.ZAdd(ctx, keys.BoardRank(keys.NewBoardShard(1, "wide", i%benchShards), 1), redis.Z{Member: member(i)})
	})
	const calls = 100_000
	other := func(i int) int64 { return rand.Int64N(*benchEntries) * 10 }
	player := func() int64 { return 1 + rand.Int64N(*benchEntries) }
	best := int64(1e9)
	for b.Loop() {
		zadd := s.cost(calls, func(p redis.Pipeliner, i int) {
			p.ZAdd(ctx, benchPlain, redis.Z{Score: float64(other(i)), Member: player()})
		})
		for _, row := range []struct {
			name string
			send func(p redis.Pipeliner, i int)
		}{
			{"unchanged", func(p redis.Pipeliner, i int) { s.submit(p, player(), -1, Best) }},
			{"moved", func(p redis.Pipeliner, i int) { s.submit(p, player(), other(i), Last) }},
			{"sum", func(p redis.Pipeliner, i int) { s.submit(p, player(), 1+rand.Int64N(1000), Sum) }},
			{"into-the-first-100", func(p redis.Pipeliner, i int) { best++; s.submit(p, player(), best, Last) }},
			{"own-rank", func(p redis.Pipeliner, i int) {
				p.ZLexCount(ctx, s.at.rankKey(), "-", "("+member(rand.IntN(entries)))
			}},
			{"own-rank-over-8-shards", func(p redis.Pipeliner, i int) {
				m := member(rand.IntN(entries))
				for n := range benchShards {
					p.ZLexCount(ctx, keys.BoardRank(keys.NewBoardShard(1, "wide", n), 1), "-", "("+m)
				}
			}},
			{"top-100", func(p redis.Pipeliner, i int) {
				p.ZRangeByLex(ctx, s.at.rankKey(), &redis.ZRangeBy{Min: "-", Max: "+", Count: 100})
			}},
			{"around", func(p redis.Pipeliner, i int) {
				m := member(rand.IntN(entries))
				p.ZLexCount(ctx, s.at.rankKey(), "-", "("+m)
				p.ZRangeByLex(ctx, s.at.rankKey(), &redis.ZRangeBy{Min: "[" + m, Max: "+", Count: 6})
				p.ZRevRangeByLex(ctx, s.at.rankKey(), &redis.ZRangeBy{Min: "-", Max: "(" + m, Count: 5})
			}},
			{"PING", func(p redis.Pipeliner, i int) { p.Ping(ctx) }},
			{"ZRANK", func(p redis.Pipeliner, i int) { p.ZRank(ctx, benchPlain, fmt.Sprint(player())) }},
		} {
			b.ReportMetric(s.cost(calls, row.send)/zadd, row.name+"/ZADD")
		}
		b.ReportMetric(bytes, "bytes/entry")
	}
}
