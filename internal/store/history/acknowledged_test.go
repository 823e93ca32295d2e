package history_test

import (
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
)

// BenchmarkAcknowledge is what a node does beside each call that moves money, with the clock that
// redisdb reads for it.
func BenchmarkAcknowledge(b *testing.B) {
	w := start(b, redistest.Single(b), "")
	for b.Loop() {
		w.Acknowledge(7, "abcdefgh", time.Now())
	}
}
