//go:build unix

package webhooks_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/ops/webhooks"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// startReceiver starts a target in a process of its own.
func startReceiver(b *testing.B) (url string) {
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), receiverVariable+"=1")
	redistest.EndWithParent(command)
	out := testkit.Must(command.StdoutPipe())(b)
	testkit.Check(b, command.Start())
	b.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	return strings.TrimSpace(testkit.Must(bufio.NewReader(out).ReadString('\n'))(b))
}

// BenchmarkDeliveries sends b.N events of 1,000 rooms to one target whose response comes at once.
// The CPU is that of the node: the target and the store are other processes.
func BenchmarkDeliveries(b *testing.B) {
	in := installOn(b, redistest.Single(b), "")
	in.createIn(b, game, startReceiver(b))
	in.happen(b, 0, rooms(1000, b.N/1000+1)...)
	all := int64(b.N/1000+1) * 1000
	before, began := cpuTime(), time.Now()
	b.ResetTimer()
	in.lead(b)
	delivered := func() int64 { return in.CountRequests(webhooks.OutcomeDelivered) }
	redistest.Eventually(b, "all come", func() bool { return delivered() >= all })
	b.StopTimer()
	b.ReportMetric(float64(all)/time.Since(began).Seconds(), "events/s")
	b.ReportMetric((cpuTime()-before).Seconds()*1e6/float64(all), "µs-cpu/event")
}

func cpuTime() time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		panic(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// waitFor waits as a slow target does.
func waitFor(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}

// BenchmarkLagBesideOthers compares the lag of a fast target alone with that beside a target that is
// down, one that takes 9 seconds, and one that fails every other second, all with the same 500
// events a second.
func BenchmarkLagBesideOthers(b *testing.B) {
	in := installOn(b, redistest.Single(b), "")
	lags := make(chan time.Duration, 1<<20)
	target := func(answer func(w http.ResponseWriter, r *http.Request)) string {
		server := &http.Server{Handler: http.HandlerFunc(answer)}
		listener := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(b)
		go func() { _ = server.Serve(listener) }()
		b.Cleanup(func() { _ = server.Close() })
		return "http://" + listener.Addr().String()
	}
	in.createIn(b, game, target(func(_ http.ResponseWriter, r *http.Request) {
		var m struct {
			Timestamp time.Time `json:"timestamp"`
		}
		body, _ := io.ReadAll(r.Body)
		if wire.Unmarshal(body, &m) == nil {
			lags <- time.Since(m.Timestamp)
		}
	}))
	in.lead(b)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	made := 0
	// p99 makes events for a while and returns the lag of the slowest hundredth.
	p99 := func(ticks int) time.Duration {
		for range ticks {
			<-tick.C
			var rooms []string
			for range 5 {
				made++
				rooms = append(rooms, fmt.Sprintf("room-%d", made))
			}
			in.happen(b, 0, rooms...)
		}
		var all []time.Duration
		for range ticks * 5 {
			all = append(all, <-lags)
		}
		slices.Sort(all)
		return all[len(all)*99/100]
	}
	b.ResetTimer()
	p99(500) // connections and code are warm
	alone := p99(2000)
	down := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(b)
	_ = down.Close()
	in.createIn(b, game, "http://"+down.Addr().String())
	in.createIn(b, game, target(func(_ http.ResponseWriter, r *http.Request) {
		waitFor(r.Context(), 9*time.Second)
	}))
	var flaps atomic.Int64
	in.createIn(b, game, target(func(w http.ResponseWriter, _ *http.Request) {
		if flaps.Add(1); time.Now().Second()%2 == 0 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	p99(1000)
	beside := p99(2000)
	if flaps.Load() == 0 {
		b.Error("the other targets get nothing")
	}
	b.ReportMetric(float64(alone.Microseconds())/1000, "ms-p99-alone")
	b.ReportMetric(float64(beside.Microseconds())/1000, "ms-p99-beside")
	b.ReportMetric(float64(beside)/float64(alone), "times")
}
