package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"

	"github.com/parlor-games/parlor/internal/config"
)

const (
	// minGCHeadroomBytes is how much the heap may always grow before it is collected, in bytes. A
	// node that keeps little would otherwise be collected at every few MiB, which costs a tenth of
	// its CPU.
	minGCHeadroomBytes = 32 << 20
	// maxGCPercent bounds the percentage for a tiny heap: the runtime never collects a heap below
	// 4 MiB times the percentage, which is minGCHeadroomBytes here.
	maxGCPercent = 800
)

// gcPacer sets the percentage by which the heap grows before it is collected, after each
// collection, from the size of the live heap. A fixed percentage is either too small for a node
// with an empty heap, or makes one with many sockets take twice the memory that it needs.
type gcPacer struct {
	minPercent int

	mu             sync.Mutex
	currentPercent int // in effect
	stopped        bool
}

// startGCPacing applies the settings of the garbage collector. It returns a function that restores
// the ones before.
func startGCPacing(s config.Settings) (stop func()) {
	p := &gcPacer{minPercent: s.GCPercent}
	previousLimit := debug.SetMemoryLimit(-1) // reads it
	if s.MemoryLimitMiB > 0 {
		debug.SetMemoryLimit(int64(s.MemoryLimitMiB) << 20)
	}
	p.currentPercent = p.percentFor(liveHeapBytes())
	previousPercent := debug.SetGCPercent(p.currentPercent)
	p.adjustAfterNextGC()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.stopped = true
		debug.SetGCPercent(previousPercent)
		debug.SetMemoryLimit(previousLimit)
	}
}

// adjustAfterNextGC calls adjust after the next collection: the runtime cleans up an unreachable
// object then.
func (p *gcPacer) adjustAfterNextGC() {
	type sentinel struct{ _ [2]uint64 } // 16 bytes: smaller objects share an allocation with others
	runtime.AddCleanup(new(sentinel), (*gcPacer).adjust, p)
}

// adjust sets the percentage for the heap that the last collection left.
func (p *gcPacer) adjust() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	if percent := p.percentFor(liveHeapBytes()); percent != p.currentPercent {
		p.currentPercent = percent
		debug.SetGCPercent(percent)
	}
	p.adjustAfterNextGC()
}

// percentFor returns the percentage for a live heap of so many bytes.
func (p *gcPacer) percentFor(live uint64) int {
	forHeadroom := 100 * float64(minGCHeadroomBytes) / math.Max(1, float64(live))
	return max(p.minPercent, int(math.Min(forHeadroom, maxGCPercent)))
}

// liveHeapBytes returns the size of what the last collection found in use.
func liveHeapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
