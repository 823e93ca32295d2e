package webhooks_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
)

// Targets that have never answered have one request under way, so that 40 of them leave room.
func TestTargetsThatAreDownDelayNoOther(t *testing.T) {
	in := install(t)
	blocked := make(chan struct{})
	down := receive(t, func(delivery) int { <-blocked; return 200 })
	defer close(blocked)
	fast := receive(t, always(200))
	in.create(t, fast.URL)
	for gameID := int64(game + 1); gameID <= game+5; gameID++ {
		for range 8 {
			in.createIn(t, gameID, down.URL)
		}
		in.happenIn(t, gameID, 0, rooms(100, 1)...)
	}
	in.lead(t)
	redistest.Eventually(t, "each has its request under way", func() bool { return down.asked() >= 40 })
	in.happen(t, 0, rooms(100, 5)...)
	fast.want(t, 500)
	if down.asked() != 40 {
		t.Errorf("%d requests under way to targets that are down", down.asked())
	}
}

// A game whose targets answered fast and then not at all takes no more than its part.
func TestAGameTakesHalfOfTheRequestsAtMost(t *testing.T) {
	in := install(t)
	blocked := make(chan struct{})
	var isDown atomic.Bool
	down := receive(t, func(delivery) int {
		if isDown.Load() {
			<-blocked
		}
		return 200
	})
	defer close(blocked)
	fast := receive(t, always(200))
	in.create(t, fast.URL)
	for range 8 {
		in.createIn(t, game+1, down.URL)
	}
	in.lead(t)
	in.happenIn(t, game+1, 0, "first")
	redistest.Eventually(t, "each is proven", func() bool { return down.asked() == 8 })
	isDown.Store(true)
	in.happenIn(t, game+1, 0, rooms(100, 1)...)
	redistest.Eventually(t, "they have all that they may", func() bool { return down.asked() >= 8+32 })
	in.happen(t, 0, rooms(100, 5)...)
	fast.want(t, 500)
	if down.asked() != 8+32 {
		t.Errorf("%d requests under way", down.asked()-8)
	}
}

func TestFewTestsAreUnderWay(t *testing.T) {
	in := install(t)
	blocked := make(chan struct{})
	r := receive(t, func(delivery) int { <-blocked; return 200 })
	w := in.create(t, r.URL)
	results := make(chan error, 9)
	for range 9 {
		go func() {
			_, err := in.Test(t.Context(), operator, game, w.ID)
			results <- err
		}()
	}
	if err := <-results; !errors.Is(err, apierror.RateLimited) {
		t.Errorf("the ninth test: %v", err)
	}
	close(blocked)
	for range 8 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}
