package main

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/ops/config"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
)

func TestTheGCPercentageFollowsTheLiveHeap(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		live    uint64
		setting int
		want    int
	}{
		{0, 25, 800},
		{1 * mib, 25, 800}, // not 3200
		{4 * mib, 25, 800},
		{8 * mib, 25, 400},
		{64 * mib, 25, 50},
		{128 * mib, 25, 25},
		{4096 * mib, 25, 25},
		{64 * mib, 100, 100},
		{1 * mib, 1000, 1000},
	} {
		if got := (&gcPacer{minPercent: c.setting, headroomBytes: minGCHeadroomBytes}).percentFor(c.live); got != c.want {
			t.Errorf("%d MiB live with %d %%: got %d %%, want %d %%", c.live/mib, c.setting, got, c.want)
		}
	}
}

func TestTheGCIsPacedUntilItIsStopped(t *testing.T) {
	percent := func() uint64 { return readMetric("/gc/gogc:percent") }
	before, beforeLimit := percent(), debug.SetMemoryLimit(-1)
	stop := startGCPacing(config.Settings{GCPercent: 30, MemoryLimitMiB: 2048}, time.Hour)
	small := percent()
	if limit := debug.SetMemoryLimit(-1); limit != 2048<<20 {
		t.Errorf("the memory limit is %d", limit)
	}
	live := make([]byte, 256<<20)
	redistest.Eventually(t, "a large live heap has the percentage of the setting", func() bool {
		runtime.GC()
		return percent() == 30
	})
	runtime.KeepAlive(live)
	live = nil
	redistest.Eventually(t, "a small live heap has the larger percentage again", func() bool {
		runtime.GC()
		return percent() > 2*30 && percent() <= 100*minGCHeadroomBytes/smallestHeapBytes
	})
	stop()
	if got := percent(); got != before || debug.SetMemoryLimit(-1) != beforeLimit {
		t.Errorf("it was %d %%, then %d %%, and is %d %% after the end", before, small, got)
	}
	(&gcPacer{minPercent: 30, stopped: true}).adjust() // a collection after the end
	if got := percent(); got != before {
		t.Errorf("after the end it changed to %d %%", got)
	}
	if debug.SetMemoryLimit(-1) != beforeLimit {
		t.Error("the memory limit was not restored")
	}
}

func TestTheHeadroomFollowsALoadThatLasts(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct{ headroom, allocatedPerSecond, want uint64 }{
		{32 * mib, 0, 32 * mib},
		{32 * mib, 3 * mib, 32 * mib},
		{32 * mib, 5 * mib, 64 * mib},
		{32 * mib, 1000 * mib, 64 * mib}, // perhaps a storm
		{64 * mib, 1000 * mib, 128 * mib},
		{128 * mib, 1000 * mib, 128 * mib},
		{128 * mib, 5 * mib, 64 * mib},
		{128 * mib, 0, 32 * mib}, // at once
	} {
		if got := nextHeadroom(c.headroom, 5*c.allocatedPerSecond, 5*time.Second); got != c.want {
			t.Errorf("%d MiB, and %d MiB a second: got %d MiB, want %d",
				c.headroom/mib, c.allocatedPerSecond/mib, got/mib, c.want/mib)
		}
	}
}

// The memory of a load goes back when the load has ended, although nobody asks for a collection.
func TestTheHeapIsSmallAgainAfterALoad(t *testing.T) {
	percent := func() uint64 { return readMetric("/gc/gogc:percent") }
	stop := startGCPacing(config.Settings{GCPercent: 25}, 20*time.Millisecond)
	defer stop()
	idle := percent()
	var garbage []byte
	redistest.Eventually(t, "a load gets a larger heap", func() bool {
		for range 1 << 10 {
			garbage = make([]byte, 4<<10)
		}
		return percent() > 2*idle
	})
	runtime.KeepAlive(garbage)
	forced := func() uint64 { return readMetric("/gc/cycles/forced:gc-cycles") }
	before := forced()
	redistest.Eventually(t, "without a load the heap is small, and was collected for that", func() bool {
		return percent() < 2*idle && forced() > before
	})
}
