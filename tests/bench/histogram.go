package main

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// histogram counts durations in steps of at most 3 %. It is safe for concurrent use.
type histogram struct{ counts [64 * 32]atomic.Int64 }

// bucketOf returns the place of a duration: its highest bit and the five bits that follow.
func bucketOf(d time.Duration) int {
	micros := uint64(max(d.Microseconds(), 0))
	if micros < 32 {
		return int(micros)
	}
	high := bits.Len64(micros) - 1
	return high*32 + int(micros>>(high-5))&31
}

// startOf returns the smallest duration of a place.
func startOf(bucket int) time.Duration {
	high := bucket / 32
	if high == 0 {
		return time.Duration(bucket) * time.Microsecond
	}
	return time.Duration(1<<high|(bucket&31)<<(high-5)) * time.Microsecond
}

func (h *histogram) add(d time.Duration) { h.counts[bucketOf(d)].Add(1) }

func (h *histogram) reset() {
	for i := range h.counts {
		h.counts[i].Store(0)
	}
}

// quantile returns the duration that a share of all is below, 0 when there are none.
func (h *histogram) quantile(share float64) time.Duration {
	var total int64
	for i := range h.counts {
		total += h.counts[i].Load()
	}
	want, seen := int64(share*float64(total)), int64(0)
	for i := range h.counts {
		if seen += h.counts[i].Load(); seen > want {
			return startOf(i)
		}
	}
	return 0
}
