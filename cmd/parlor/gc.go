package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/ops/config"
)

const (
	// minGCHeadroomBytes is how much the heap may always grow before it is collected, in bytes. A
	// node that keeps little would otherwise be collected at every few MiB, which costs a tenth of
	// its CPU.
	minGCHeadroomBytes = 32 << 20
	// maxGCHeadroomBytes is how much it may grow under a load that lasts, in bytes.
	maxGCHeadroomBytes = 128 << 20
	// smallestHeapBytes times the percentage is the smallest heap that the runtime collects, in bytes.
	smallestHeapBytes = 4 << 20

	// gcInterval is the time between two collections that a load gets, as far as
	// maxGCHeadroomBytes allows. With thousands of sockets on one processor, messages are late for a
	// tenth of a second in each collection.
	gcInterval = 10 * time.Second
	// gcLoadInterval is how often the load is measured. The headroom doubles at most once in this
	// time, so that a storm of connections, which lasts a second or two, leaves no large heap.
	gcLoadInterval = 5 * time.Second
)

// gcPacer sets the percentage by which the heap grows before it is collected, after each
// collection, from the size of the live heap and from how much is allocated. A fixed percentage is
// either too small for a node with an empty heap, or makes one with many sockets take twice the
// memory that it needs.
type gcPacer struct {
	minPercent int

	mu             sync.Mutex
	headroomBytes  uint64 // how much the heap may grow
	currentPercent int    // in effect
	stopped        bool
}

// startGCPacing applies the settings of the garbage collector, and measures the load that often. It
// returns a function that restores the settings before.
func startGCPacing(s config.Settings, every time.Duration) (stop func()) {
	p := &gcPacer{minPercent: s.GCPercent, headroomBytes: minGCHeadroomBytes}
	previousLimit := debug.SetMemoryLimit(-1) // reads it
	if s.MemoryLimitMiB > 0 {
		debug.SetMemoryLimit(int64(s.MemoryLimitMiB) << 20)
	}
	p.currentPercent = p.percentFor(liveHeapBytes())
	previousPercent := debug.SetGCPercent(p.currentPercent)
	p.adjustAfterNextGC()
	ended := make(chan struct{})
	var following sync.WaitGroup
	following.Go(func() { p.followLoad(every, ended) })
	return func() {
		close(ended)
		following.Wait()
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

// adjust is called after each collection.
func (p *gcPacer) adjust() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	p.applyLocked()
	p.adjustAfterNextGC()
}

// applyLocked sets the percentage for the heap that the last collection left. gcPacer.mu must be
// held.
func (p *gcPacer) applyLocked() {
	if percent := p.percentFor(liveHeapBytes()); percent != p.currentPercent {
		p.currentPercent = percent
		debug.SetGCPercent(percent)
	}
}

// followLoad adapts the headroom of the heap to the rate of allocation, until ended is closed.
// After a peak it returns memory to the system.
func (p *gcPacer) followLoad(every time.Duration, ended <-chan struct{}) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for before := allocatedBytes(); ; {
		select {
		case <-ended:
			return
		case <-ticker.C:
		}
		now := allocatedBytes()
		if p.follow(now-before, every) {
			debug.FreeOSMemory() // what is free may else stay with the process for minutes
		}
		before = now
	}
}

// follow sets the headroom after a time in which so many bytes were allocated. It reports whether a
// load that had made it larger has ended.
func (p *gcPacer) follow(allocated uint64, in time.Duration) (hasEnded bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.headroomBytes
	p.headroomBytes = nextHeadroom(last, allocated, in)
	p.applyLocked()
	return p.headroomBytes < last && p.headroomBytes == minGCHeadroomBytes
}

// nextHeadroom returns the headroom after a time in which so many bytes were allocated: one of a
// few steps, because each change of the percentage stops the world.
func nextHeadroom(headroom, allocated uint64, in time.Duration) uint64 {
	inGCInterval := uint64(float64(allocated) * gcInterval.Seconds() / in.Seconds())
	next := uint64(minGCHeadroomBytes)
	for next < inGCInterval && next < 2*headroom && next < maxGCHeadroomBytes {
		next *= 2
	}
	return next
}

// percentFor returns the percentage for a live heap of so many bytes.
func (p *gcPacer) percentFor(live uint64) int {
	percent := 100 * float64(p.headroomBytes) / float64(max(live, smallestHeapBytes))
	return max(p.minPercent, int(percent))
}

// liveHeapBytes returns the size of what the last collection found in use.
func liveHeapBytes() uint64 { return readMetric("/gc/heap/live:bytes") }

// allocatedBytes returns how much was allocated on the heap so far.
func allocatedBytes() uint64 { return readMetric("/gc/heap/allocs:bytes") }

func readMetric(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
