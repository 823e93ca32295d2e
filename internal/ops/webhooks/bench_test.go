//go:build unix

package webhooks_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/ops/webhooks"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// BenchmarkDeliveries sends b.N events of 1,000 rooms to one target whose response comes at once.
// The CPU is that of this process, which is the node and the receiver.
func BenchmarkDeliveries(b *testing.B) {
	in := installOn(b, redistest.Single(b), "")
	var got atomic.Int64
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		got.Add(1)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer target.Close()
	testkit.Must(in.Create(b.Context(), operator, game, webhooks.Input{URL: target.URL, Kinds: []string{"seats"}}))(b)
	in.happen(b, 0, rooms(1000, b.N/1000+1)...)
	before, began := cpuTime(), time.Now()
	b.ResetTimer()
	in.lead(b)
	redistest.Eventually(b, "all come", func() bool { return got.Load() >= int64(b.N) })
	b.StopTimer()
	b.ReportMetric(float64(got.Load())/time.Since(began).Seconds(), "events/s")
	b.ReportMetric((cpuTime()-before).Seconds()*1e6/float64(got.Load()), "µs-cpu/event")
}

func cpuTime() time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		panic(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
