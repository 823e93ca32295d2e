package leaderboards

import (
	"flag"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// storeBench sends commands to a store of its own and reads how much CPU time its main thread took.
type storeBench struct {
	b             *testing.B
	server        *redistest.Server
	db            *redisdb.DB
	at            seasonShard // where scores go
	bytesPerEntry float64     // of the entries that it has from the beginning
}

// benchEntries is how many entries the board has.
var benchEntries = flag.Int64("entries", 200_000, "entries of the leaderboards of benchmarks")

const (
	benchShards = 8   // of a board whose ranks are sums
	benchAtOnce = 500 // commands in a round trip
)

// newBoardBench returns a store of its own and the board "top" there, as many entries in its first
// season as the benchmarks want.
func newBoardBench(b *testing.B, d Definition) (*fixture, *storeBench) {
	b.Helper()
	server := redistest.StartForTest(b)
	db := testkit.Must(redisdb.Open(server.URL()))(b)
	b.Cleanup(func() { _ = db.Close() })
	p := newPeople(1)
	f := &fixture{b, New(db, p, p, Options{}), p, p.GameID, db}
	d.MaxEntries = new(*benchEntries) // so that the first season has buckets for as many
	f.create(d)
	board := testkit.Must(f.read(b.Context(), f.gameID, "top"))(b)
	s := &storeBench{b: b, server: server, db: db, at: board.shard(&board.seasons[0], 0)}
	testkit.Check(b, db.Client.ScriptLoad(b.Context(), scripts.BoardSubmit.Source).Err())
	empty := s.info("memory", "used_memory")
	redistest.SendAll(b, db, int(*benchEntries), benchAtOnce, func(p redis.Cmdable, i int) {
		s.submit(p, int64(i+1), spreadScore(i), Best)
	})
	s.bytesPerEntry = (s.info("memory", "used_memory") - empty) / float64(*benchEntries)
	return f, s
}

// info returns a number of INFO.
func (s *storeBench) info(section, name string) float64 {
	s.b.Helper()
	text := testkit.Must(s.db.Client.Info(s.b.Context(), section).Result())(s.b)
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return testkit.Must(strconv.ParseFloat(value, 64))(s.b)
		}
	}
	s.b.Fatalf("INFO has no %s", name)
	return 0
}

// submit runs board_submit. What adds up has a receipt for each call.
func (s *storeBench) submit(p redis.Cmdable, userID, score int64, operator Operator) {
	names := s.at.entryKeys(userID, "", "")
	fingerprint := ""
	if operator == Sum {
		fingerprint = "bench"
		names = append(names, keys.BoardReceipt(s.at.BoardShard, "server:1", strconv.FormatUint(rand.Uint64(), 36)))
	}
	p.EvalSha(s.b.Context(), scripts.BoardSubmit.SHA, names, idempotency.NewNonce(), fingerprint, 60_000, userID, 1, "",
		"desc", string(operator), score, "", "", "", "", "", "", "", "", "", "", 0, 0, 1)
}

// spreadScore returns the score of the i-th entry; no two are equal.
func spreadScore(i int) int64 { return int64(i) * 7919 % *benchEntries * 10 }

// memberOf returns a member with the score of the i-th entry.
func memberOf(i int) string {
	return encodeMember(&Definition{Order: Descending}, spreadScore(i), 0, time.UnixMilli(0), int64(i+1))
}

// BenchmarkStore reports what the calls of a board cost the store, as multiples of plain commands
// of the same run, and the bytes of an entry. The first rows are the commands of a call, many in a
// round trip. The last ones are whole calls of the service, one after the other; what profiles of
// players cost is not in them.
func BenchmarkStore(b *testing.B) {
	f, s := newBoardBench(b, Definition{Operator: Last})
	ctx, entries := b.Context(), int(*benchEntries)
	full := s.info("memory", "used_memory")
	redistest.Floors{DB: s.db, Members: entries}.Fill(b)
	plainBytes := (s.info("memory", "used_memory") - full) / float64(entries)
	b.Run("memory", func(b *testing.B) {
		for b.Loop() {
			b.ReportMetric(s.bytesPerEntry, "bytes/entry")
			b.ReportMetric(plainBytes, "bytes/member-of-a-plain-zset")
		}
	})
	redistest.SendAll(b, s.db, entries, benchAtOnce, func(p redis.Cmdable, i int) {
		p.ZAdd(ctx, keys.BoardRank(keys.NewBoardShard(1, "wide", i%benchShards), 1), redis.Z{Member: memberOf(i)})
	})
	other := func() int64 { return rand.Int64N(*benchEntries) * 10 }
	player := func() int64 { return 1 + rand.Int64N(*benchEntries) }
	person := func() int64 { return 1 + rand.Int64N(min(*benchEntries, maxPerson)) }
	best := int64(1e9)
	fail := func(err error) {
		testkit.Report(b, err)
	}
	for _, row := range []struct {
		name   string
		atOnce int
		send   func(p redis.Cmdable)
	}{
		{"submit-that-does-not-improve", benchAtOnce, func(p redis.Cmdable) { s.submit(p, player(), -1, Best) }},
		{"submit-that-moves", benchAtOnce, func(p redis.Cmdable) { s.submit(p, player(), other(), Last) }},
		{"sum", benchAtOnce, func(p redis.Cmdable) { s.submit(p, player(), 1+rand.Int64N(1000), Sum) }},
		{"into-the-first-100", benchAtOnce, func(p redis.Cmdable) { best++; s.submit(p, player(), best, Last) }},
		{"own-rank", benchAtOnce, func(p redis.Cmdable) {
			p.ZLexCount(ctx, s.at.rankKey(), "-", "("+memberOf(rand.IntN(entries)))
		}},
		{"own-rank-over-8-shards", benchAtOnce, func(p redis.Cmdable) {
			m := memberOf(rand.IntN(entries))
			for n := range benchShards {
				p.ZLexCount(ctx, keys.BoardRank(keys.NewBoardShard(1, "wide", n), 1), "-", "("+m)
			}
		}},
		{"own-rank-and-11-around", benchAtOnce, func(p redis.Cmdable) {
			m := memberOf(rand.IntN(entries))
			p.ZLexCount(ctx, s.at.rankKey(), "-", "("+m)
			p.ZRangeByLex(ctx, s.at.rankKey(), &redis.ZRangeBy{Min: "[" + m, Max: "+", Count: 6})
			p.ZRevRangeByLex(ctx, s.at.rankKey(), &redis.ZRangeBy{Min: "-", Max: "(" + m, Count: 5})
		}},
		{"first-100", benchAtOnce, func(p redis.Cmdable) {
			p.ZRangeByLex(ctx, s.at.rankKey(), &redis.ZRangeBy{Min: "-", Max: "+", Count: 100})
		}},
		{"call-of-submit", 1, func(redis.Cmdable) {
			in := SubmitInput{UserID: person(), Score: ScoreInput(strconv.FormatInt(other(), 10))}
			_, err := f.Submit(ctx, f.server(), f.gameID, "top", in, idempotency.Receipt{})
			fail(err)
		}},
		{"call-of-11-around", 1, func(redis.Cmdable) {
			_, err := f.Around(ctx, f.player(person()), f.gameID, "top", Scope{}, 11)
			fail(err)
		}},
		{"call-of-the-first-100", 1, func(redis.Cmdable) {
			_, _, err := f.Entries(ctx, f.server(), f.gameID, "top", Scope{}, "", 100)
			fail(err)
		}},
	} {
		b.Run(row.name, func(b *testing.B) {
			calls := 20_000
			if row.atOnce == 1 {
				calls = 1_000
			}
			for b.Loop() {
				floors := redistest.Floors{DB: s.db, Members: entries, AtOnce: row.atOnce}
				floors.Compare(b, "call", 5, func() float64 {
					return redistest.SendAll(b, s.db, calls, row.atOnce, func(p redis.Cmdable, _ int) { row.send(p) })
				})
			}
		})
	}
}
