package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"

	"github.com/parlor-games/parlor/internal/config"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
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
		if got := (&gcPacer{minPercent: c.setting}).percentFor(c.live); got != c.want {
			t.Errorf("%d MiB live with %d %%: got %d %%, want %d %%", c.live/mib, c.setting, got, c.want)
		}
	}
}

func TestTheGCIsPacedUntilItIsStopped(t *testing.T) {
	percent := func() uint64 {
		sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	before, beforeLimit := percent(), debug.SetMemoryLimit(-1)
	stop := startGCPacing(config.Settings{GCPercent: 30, MemoryLimitMiB: 2048})
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
		return percent() > 2*30 && percent() <= maxGCPercent
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
