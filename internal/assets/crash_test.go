package assets_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/assets"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
)

// Every buyer goes on under the same key until there is an answer: then every purchase was made exactly once.
func TestPurchasesAreMadeOnceWhenTheStoreIsKilledInTheMiddle(t *testing.T) {
	server := redistest.StartFor(t, "--appendonly", "yes", "--appendfsync", "always")
	db, err := redisdb.Open(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	s := open(t, db)
	gem := s.asset(assets.CreateInput{Price: "0.01"})
	const buyers, each = 8, 150
	for user := range int64(buyers) {
		s.credit(user+1, "100")
	}
	done, outages := make(chan struct{}, buyers*each), make(chan struct{}, 1)
	var all sync.WaitGroup
	for user := range int64(buyers) {
		all.Go(func() {
			for i := range each {
				key := fmt.Sprint("k", i)
				for {
					_, err := s.buy(user+1, gem.ID, 1, key)
					if err == nil {
						done <- struct{}{}
						break
					}
					if !errors.Is(err, apierror.StoreUnavailable) {
						t.Errorf("a purchase answers %v", err)
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
		all.Wait()
		close(done)
		close(outages)
	}()
	for range 2 {
		for range buyers * each / 3 {
			<-done
		}
		server.Kill()
		<-outages // somebody has noticed
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	for range done { // until all have ended
	}
	a, err := s.Get(t.Context(), here, gem.ID)
	if err != nil || a.Sold != buyers*each {
		t.Fatalf("sold %d, %v; want %d", a.Sold, err, buyers*each)
	}
	for user := range int64(buyers) {
		s.wantGold(user+1, 10000-each)
	}
	s.wantBalanced()
}
