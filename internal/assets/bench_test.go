package assets_test

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/assets"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
)

// BenchmarkPurchase tells how many purchases a second of this process' CPU is good for, the store's own not counted.
func BenchmarkPurchase(b *testing.B) {
	for _, buyers := range []int64{1, 64} {
		b.Run(fmt.Sprintf("%d wallets", buyers), func(b *testing.B) {
			s := open(b, redistest.Single(b))
			gem := s.asset(assets.CreateInput{Price: "0.01"})
			for user := range buyers {
				s.credit(user+1, "90000000000000")
			}
			var n atomic.Int64
			before := cpu()
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					i := n.Add(1)
					if _, err := s.buy(1+i%buyers, gem.ID, 1, fmt.Sprint("k", i)); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/(cpu()-before).Seconds(), "purchases/cpu-s")
		})
	}
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
