package leader_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/leader"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// A lead is held for longer than its lease, by one node. When that ends or loses the lock, another
// node leads by a higher fence.
func TestALeadIsHeldByOneNodeUntilItEnds(t *testing.T) {
	db := redistest.Single(t)
	const lease = 300 * time.Millisecond
	var leading atomic.Int64 // fence of who leads
	var together atomic.Bool // two nodes did at once
	hold := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			testkit.Report(t, leader.Hold(ctx, db, "held", lease, func(ctx context.Context, fence int64) error {
				together.CompareAndSwap(false, leading.Swap(fence) != 0)
				<-ctx.Done()
				leading.CompareAndSwap(fence, 0)
				return errors.New("its end is logged")
			}))
		}()
		return func() {
			cancel()
			<-ended
		}
	}
	stopFirst := hold()
	redistest.Eventually(t, "the first leads", func() bool { return leading.Load() == 1 })
	stopSecond := hold()
	defer stopSecond()
	value := db.Client.Get(t.Context(), keys.Lock("held")).Val()
	renewals, last := 0, lease // six of them take longer than the lease
	redistest.Eventually(t, "the lease is renewed again and again", func() bool {
		left := db.Client.PTTL(t.Context(), keys.Lock("held")).Val()
		if left > last {
			renewals++
		}
		last = left
		return renewals > 5 || db.Client.Get(t.Context(), keys.Lock("held")).Val() != value
	})
	if leading.Load() != 1 || together.Load() {
		t.Fatalf("fence %d leads", leading.Load())
	}
	stopFirst()
	redistest.Eventually(t, "the second leads", func() bool { return leading.Load() == 2 })
	testkit.Check(t, db.Client.Set(t.Context(), keys.Lock("held"), "another's", 0).Err())
	redistest.Eventually(t, "who lost the lock stops", func() bool { return leading.Load() == 0 })
}
