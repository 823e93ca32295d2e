//go:build unix

package assets_test

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/money/assets"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// BenchmarkPurchase reports the purchases per second of CPU time of this process, without the
// store's.
func BenchmarkPurchase(b *testing.B) {
	for _, buyers := range []int64{1, 64} {
		b.Run(fmt.Sprintf("%d wallets", buyers), func(b *testing.B) {
			f := newFixture(b, redistest.Single(b))
			gem := f.createAsset(assets.CreateInput{Price: "0.01"})
			for userID := range buyers {
				f.money.Credit("90000000000000", userID+1)
			}
			var n atomic.Int64
			before := cpuTime()
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					i := n.Add(1)
					testkit.Report(b, testkit.ErrorOf(f.buy(1+i%buyers, gem.ID, 1, fmt.Sprint("k", i))))
				}
			})
			b.ReportMetric(float64(b.N)/(cpuTime()-before).Seconds(), "purchases/cpu-s")
		})
	}
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
