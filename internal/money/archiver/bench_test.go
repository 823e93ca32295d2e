package archiver_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/money/archive"
	"github.com/parlor-games/parlor/internal/money/archiver"
	"github.com/parlor-games/parlor/internal/money/moneytest"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// BenchmarkArchive measures a hundredth of a large installation, a million entries of ten thousand
// players: how fast they leave, what the deep audit and the verification of the whole cost, and how
// long a page of old lines takes. Run it with -benchtime 1x.
func BenchmarkArchive(b *testing.B) {
	const entries, playerCount, step = 1_000_000, 10_000, 10_000
	server := testkit.Must(redistest.Start())(b)
	defer server.Remove()
	db := testkit.Must(redisdb.Open(server.URL()))(b)
	defer func() { _ = db.Close() }()
	moneytest.MakeGames(db)
	dir := b.TempDir()
	open := func() node {
		a := testkit.Must(archive.Open("file://"+dir, archive.S3Options{}))(b)
		return newNode(db, a, archiver.Options{})
	}
	s := open()
	testkit.Check(b, db.Client.HSet(b.Context(), keys.Token("GOLD"), "id", 1, "decimals", 0, "name", "Gold", "logo", "",
		"asset", "", "policy", "", "games", "").Err())
	for b.Loop() {
		random := rand.New(rand.NewPCG(1, 2))
		balances, seqs := make([]int64, playerCount+1), make([]int64, playerCount+1)
		var archiving time.Duration
		for range entries / step {
			testkit.Must(db.Client.Pipelined(b.Context(), func(p redis.Pipeliner) error {
				for range step {
					user := 1 + int64(random.IntN(playerCount))
					if random.IntN(4) == 0 { // one player has many lines
						user = 1
					}
					balances[user]++
					seqs[user]++
					p.RPush(b.Context(), keys.Ledger(game), fmt.Sprintf("17%011d|%08x|GOLD|reward|op|m:-1;w%d:1",
						random.Int64N(1e11), random.Uint32(), user))
					p.RPush(b.Context(), keys.WalletLines(game, user),
						fmt.Sprintf("%d-%08x|user.balance|17%011d|GOLD|0|1|%d|0|reward|op", seqs[user], random.Uint32(),
							random.Int64N(1e11), balances[user]))
					p.HSet(b.Context(), keys.Wallet(game, user), "GOLD", fmt.Sprintf("%d|0", balances[user]),
						keys.WalletSeqField, seqs[user])
				}
				p.HIncrBy(b.Context(), keys.Totals(game), "minted:GOLD", step)
				return nil
			}))(b)
			testkit.Check(b, s.Fold(b.Context(), game))
			started := time.Now()
			testkit.Check(b, s.archiver.Archive(b.Context(), game))
			archiving += time.Since(started)
		}
		b.ReportMetric(entries/archiving.Seconds(), "archived-entries/s")
		measure(b, "deep-audit", func() error { _, err := open().AuditDeep(b.Context(), game); return err })
		measure(b, "full-audit", func() error { _, err := open().AuditFromFirstEntry(b.Context(), game); return err })
		measure(b, "verify", func() error {
			r, err := open().VerifyLedger(b.Context(), game, func(int64) {})
			if len(r.Problems) > 0 {
				b.Errorf("%+v", r)
			}
			return err
		})
		const pages = 200
		measure(b, "200-pages-of-old-lines", func() error {
			reader := open() // whose cache is empty
			for n := range int64(pages) {
				before := 2 + (n*7919)%(seqs[1]-2000)
				page, err := reader.Ledger(b.Context(), game, 1, wallet.LedgerQuery{BeforeLine: before, Limit: 20})
				if err != nil || page.Lines[0].ID != before-1 {
					return fmt.Errorf("before %d: %+v, %w", before, page, err)
				}
			}
			return nil
		})
	}
}

// measure reports the time of one run, and the memory that it took beside what the process had.
func measure(b *testing.B, what string, run func() error) {
	b.Helper()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	started := time.Now()
	testkit.Check(b, run())
	took := time.Since(started)
	runtime.ReadMemStats(&after)
	b.ReportMetric(took.Seconds()*1000, what+"-ms")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/(1<<20), what+"-MiB-allocated")
}
