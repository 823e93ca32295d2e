package assets_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/assets"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// Every buyer repeats a purchase under the same key until it succeeds. Each must be made exactly
// once.
func TestPurchasesAreMadeOnceWhenTheStoreIsKilledInTheMiddle(t *testing.T) {
	store := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "always")
	db := testkit.Must(redisdb.Open(store.URL()))(t)
	defer func() { _ = db.Close() }()
	f := newFixture(t, db)
	gem := f.createAsset(assets.CreateInput{Price: "0.01"})
	const buyers, each = 8, 150
	for userID := range int64(buyers) {
		f.money.Credit("100", userID+1)
	}
	done, outages := make(chan struct{}, buyers*each), make(chan struct{}, 1)
	var workers sync.WaitGroup
	for userID := range int64(buyers) {
		workers.Go(func() {
			for i := range each {
				key := fmt.Sprint("k", i)
				for {
					_, err := f.buy(userID+1, gem.ID, 1, key)
					if err == nil {
						done <- struct{}{}
						break
					}
					if !errors.Is(err, apierror.StoreUnavailable) {
						t.Errorf("a purchase returned %v", err)
						return
					}
					select {
					case outages <- struct{}{}:
					default:
					}
				}
			}
		})
	}
	go func() {
		workers.Wait()
		close(done)
		close(outages)
	}()
	for range 2 {
		for range buyers * each / 3 {
			<-done
		}
		store.Kill()
		<-outages // a buyer has noticed
		testkit.Check(t, store.Restart())
	}
	for range done { // until all workers have ended
	}
	a, err := f.Get(t.Context(), server, game, gem.ID)
	if err != nil || a.Sold != buyers*each {
		t.Fatalf("sold %d, %v; want %d", a.Sold, err, buyers*each)
	}
	for userID := range int64(buyers) {
		f.money.WantBalance(userID+1, 10000-each, 0)
	}
	f.money.Audit()
}
