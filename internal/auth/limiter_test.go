package auth_test

import (
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/auth"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
)

func TestABurstIsAllowedThenRefusedThenRefilled(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		l := auth.NewLimiter(db, auth.Limits{auth.Money: {PerSecond: 10, Burst: 40, Scope: auth.ByUser}})
		began := time.Now()
		allowed := int64(0)
		var last auth.Decision
		for {
			d, err := l.Allow(t.Context(), auth.Money, "u1")
			if err != nil {
				if !errors.Is(err, apierror.RateLimited) || d.Allowed || d.RetryAfter <= 0 || d.RetryAfter > 100*time.Millisecond ||
					d.RetryAfterSeconds() != 1 ||
					d.Remaining != 0 {
					t.Fatalf("%+v, %v", d, err)
				}
				break
			}
			if d.Limit != 40 || d.Remaining < 0 || d.Remaining > 40 {
				t.Fatalf("%+v", d)
			}
			last = d
			allowed++
		}
		if grown := int64(time.Since(began)/(100*time.Millisecond)) + 1; allowed < 40 || allowed > 40+grown {
			t.Errorf("%d were allowed at once", allowed)
		}
		if last.Reset < 3500*time.Millisecond || last.Reset > 4*time.Second || last.Policy() != `"money";q=40;w=4` ||
			last.Header() != `"money";r=0;t=4` {
			t.Errorf("%+v %s %s", last, last.Policy(), last.Header())
		}
		if _, err := l.Allow(t.Context(), auth.Money, "u2"); err != nil {
			t.Errorf("another caller: %v", err)
		}
		for { // it is refilled by itself
			if _, err := l.Allow(t.Context(), auth.Money, "u1"); err == nil {
				break
			}
			if time.Since(began) > 10*time.Second {
				t.Fatal("nothing was refilled")
			}
		}
	})
}

func TestTwoNodesShareALimit(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		limit := auth.Limit{PerSecond: 100, Burst: 500, Scope: auth.ByUser}
		nodes := []*auth.Limiter{
			auth.NewLimiter(db, auth.Limits{auth.Read: limit}),
			auth.NewLimiter(db, auth.Limits{auth.Read: limit}),
		}
		var allowed atomic.Int64
		began := time.Now()
		deadline := began.Add(time.Second)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for time.Now().Before(deadline) {
					if _, err := nodes[i%2].Allow(t.Context(), auth.Read, "u1"); err == nil {
						allowed.Add(1)
					}
				}
			})
		}
		wg.Wait()
		most := limit.Burst + int64(time.Since(began).Seconds()*100) + 1
		if n := allowed.Load(); n > most || n < most-2*limit.PerSecond/2 {
			t.Errorf("%d were allowed, at most %d may", n, most)
		}
	})
}

func TestABusyOrRefusedCallerCostsFewRoundTrips(t *testing.T) {
	db := redistest.Single(t)
	sent := redistest.CountCommands(db)
	l := auth.NewLimiter(db, auth.DefaultLimits())
	allowed := int64(0)
	for range 1000 {
		if _, err := l.Allow(t.Context(), auth.Money, "u1"); err == nil {
			allowed++
		}
	}
	if allowed != 1000 || sent.Load() > 24 {
		t.Errorf("%d allowed with %d commands", allowed, sent.Load())
	}
	slow := auth.NewLimiter(db, auth.Limits{auth.Read: {PerSecond: 1, Burst: 10, Scope: auth.ByUser}})
	before := sent.Load()
	for range 1000 {
		_, _ = slow.Allow(t.Context(), auth.Read, "abuser")
	}
	if n := sent.Load() - before; n > 24 {
		t.Errorf("a refused caller cost %d commands", n)
	}
}

func TestWithoutAStoreEachNodeLimitsByItself(t *testing.T) {
	server := redistest.StartFor(t)
	db, err := redisdb.Open(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	l := auth.NewLimiter(db, auth.Limits{auth.Read: {PerSecond: 1, Burst: 50, Scope: auth.ByUser}})
	if _, err := l.Allow(t.Context(), auth.Read, "u1"); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	began := time.Now()
	allowed, refused := 0, 0
	for range 200 {
		if _, err := l.Allow(t.Context(), auth.Read, "u2"); err == nil {
			allowed++
		} else if errors.Is(err, apierror.RateLimited) {
			refused++
		}
	}
	if allowed < 50 || allowed > 52 || allowed+refused != 200 || time.Since(began) > 2*time.Second {
		t.Errorf("%d allowed, %d refused in %v", allowed, refused, time.Since(began))
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	for d := (auth.Decision{}); d.Remaining != 49; { // the store is asked again: a new caller's bucket is full there
		if d, err = l.Allow(t.Context(), auth.Read, "u3-"+time.Now().String()); err != nil {
			t.Fatal(err)
		}
		if time.Since(began) > 20*time.Second {
			t.Fatalf("the store is not asked again: %+v", d)
		}
	}
}

func TestAClassWithoutALimitDoesNotAskTheStore(t *testing.T) {
	db := redistest.Single(t)
	sent := redistest.CountCommands(db)
	off := auth.NewLimiter(db, nil)
	for range 10 {
		if d, err := off.Allow(t.Context(), auth.Money, "u1"); err != nil || !d.Allowed || d.Limit != 0 {
			t.Errorf("%+v, %v", d, err)
		}
	}
	if sent.Load() != 0 || off.Scope(auth.Money) != "" {
		t.Error("the store was asked")
	}
}

func TestCheckRejectsLimitsOutOfRange(t *testing.T) {
	if err := auth.DefaultLimits().Check(); err != nil {
		t.Error(err)
	}
	for _, bad := range []auth.Limit{
		{},
		{PerSecond: 0, Burst: 1, Scope: auth.ByUser},
		{PerSecond: 1, Burst: 0, Scope: auth.ByUser},
		{PerSecond: 1, Burst: 1, Scope: "moon"},
		{PerSecond: 2_000_000, Burst: 1, Scope: auth.ByUser},
	} {
		if (auth.Limits{auth.Read: bad}).Check() == nil {
			t.Errorf("Check accepts %+v", bad)
		}
	}
}

func TestAddressKey(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.7":            "ip:192.0.2.7",
		"::ffff:192.0.2.7":     "ip:192.0.2.7",
		"2001:db8:1:2:3:4:5:6": "ip:2001:db8:1:2::/64",
		"2001:db8:1:2:ffff::":  "ip:2001:db8:1:2::/64",
		"fe80::1%eth0":         "ip:fe80::/64",
	} {
		if got := auth.AddressKey(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is %s, want %s", address, got, want)
		}
	}
}

func BenchmarkAllowOfABusyCaller(b *testing.B) {
	l := auth.NewLimiter(
		redistest.Single(b),
		auth.Limits{auth.Read: {PerSecond: 1_000_000, Burst: 1_000_000_000, Scope: auth.ByUser}},
	)
	for b.Loop() {
		if _, err := l.Allow(b.Context(), auth.Read, "u1"); err != nil {
			b.Fatal(err)
		}
	}
}
