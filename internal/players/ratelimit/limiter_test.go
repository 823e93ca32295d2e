package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/internal/store/storeclock"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// limiterTraffic is what limiters send.
type limiterTraffic struct {
	inLine  atomic.Int64 // scripts that take permits: a request waits for them
	reports atomic.Int64 // scripts that only charge
	batches atomic.Int64 // pipelines with reports
}

func observeLimiters(db *redisdb.DB) *limiterTraffic {
	seen := &limiterTraffic{}
	redistest.ObserveCommands(db, func(commands []redis.Cmder) {
		reports := int64(0)
		for _, cmd := range commands {
			switch args := cmd.Args(); {
			case len(args) < 8 || args[1] != scripts.RateLimitTake.SHA:
			case args[6] == int64(0):
				reports++
			default:
				seen.inLine.Add(1)
			}
		}
		if seen.reports.Add(reports); reports > 0 {
			seen.batches.Add(1)
		}
	})
	return seen
}

// startLimiter returns a limiter whose Run ends with the test.
func startLimiter(t *testing.T, db *redisdb.DB, limits ratelimit.Limits) *ratelimit.Limiter {
	t.Helper()
	l := ratelimit.New(db, limits)
	ctx, stop := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { _ = l.Run(ctx) })
	t.Cleanup(func() { stop(); run.Wait() })
	return l
}

func TestABurstIsAllowedThenRefusedThenRefilled(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		l := ratelimit.New(db, ratelimit.Limits{ratelimit.Money: {PerSecond: 10, Burst: 40, Scope: ratelimit.ScopeUser}})
		began := time.Now()
		allowed := int64(0)
		var last ratelimit.Decision
		for {
			d, err := l.Allow(t.Context(), ratelimit.Money, "u1")
			if err != nil {
				if !errors.Is(err, apierror.RateLimited) || d.Allowed || d.RetryAfter <= 0 || d.RetryAfter > 100*time.Millisecond ||
					d.RetryAfterSeconds() != 1 ||
					d.Remaining != 0 {
					t.Fatalf("%+v, %v", d, err)
				}
				break
			}
			if d.Burst != 40 || d.Remaining < 0 || d.Remaining > 40 {
				t.Fatalf("%+v", d)
			}
			last = d
			allowed++
		}
		if grown := int64(time.Since(began)/(100*time.Millisecond)) + 1; allowed < 40 || allowed > 40+grown {
			t.Errorf("%d were allowed at once", allowed)
		}
		if last.UntilFull < 3500*time.Millisecond || last.UntilFull > 4*time.Second ||
			last.PolicyHeader() != `"money";q=40;w=4` ||
			last.RateLimitHeader() != `"money";r=0;t=4` {
			t.Errorf("%+v %s %s", last, last.PolicyHeader(), last.RateLimitHeader())
		}
		testkit.Report(t, testkit.ErrorOf(l.Allow(t.Context(), ratelimit.Money, "u2")), "another caller")
		for { // it is refilled by itself
			if _, err := l.Allow(t.Context(), ratelimit.Money, "u1"); err == nil {
				break
			}
			if time.Since(began) > 10*time.Second {
				t.Fatal("nothing was refilled")
			}
		}
	})
}

// attack calls Allow for an actor on all nodes at once and as fast as it can, for a time, and
// returns how many requests were allowed. It calls allowed for each.
func attack(
	t *testing.T, nodes []*ratelimit.Limiter, class ratelimit.Class, actor string, duration time.Duration, allowed func(),
) int64 {
	t.Helper()
	var n atomic.Int64
	deadline := time.Now().Add(duration)
	var wg sync.WaitGroup
	for i := range 2 * len(nodes) {
		wg.Go(func() {
			for time.Now().Before(deadline) {
				if _, err := nodes[i%len(nodes)].Allow(t.Context(), class, actor); err == nil {
					n.Add(1)
					allowed()
				} else {
					runtime.Gosched()
				}
			}
		})
	}
	wg.Wait()
	return n.Load()
}

// The worst case of the shares: one node uses the bucket up, then each other node allows its share
// before it learns of that. After it the excess is missing, so the rate is the limit again.
//
// A busy machine gives the attackers too little time to use all that they may have, so the lower
// bounds must hold for one caller of several; the upper ones hold for each.
func TestNodesTogetherExceedALimitByAtMostAShareEach(t *testing.T) {
	const tries = 5
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		limits := ratelimit.Limits{ratelimit.Read: {PerSecond: attackRate, Burst: attackBurst, Scope: ratelimit.ScopeUser}}
		nodes := []*ratelimit.Limiter{startLimiter(t, db, limits), startLimiter(t, db, limits)}
		for try := 1; ; try++ {
			tooFew := attackTogether(t, nodes, fmt.Sprint("u", try))
			if tooFew == "" || t.Failed() {
				return
			}
			if try == tries {
				t.Fatalf("%d callers got too little, the last one: %s", tries, tooFew)
			}
			t.Log(tooFew)
		}
	})
}

const attackRate, attackBurst, attackShare = 200, 200, 50 // a window of 1 s

// attackTogether uses up what two nodes allow an actor. It fails the test when that is too much,
// and returns what was too little, or "".
func attackTogether(t *testing.T, nodes []*ratelimit.Limiter, actor string) (tooFew string) {
	t.Helper()
	began := time.Now()
	refill := func() int64 { return int64(time.Since(began).Seconds()*attackRate) + 1 }
	var allowed, excess atomic.Int64 // excess: the most that was ever allowed beyond burst and refill
	check := func() {
		over := allowed.Add(1) - attackBurst - refill()
		for most := excess.Load(); over > most && !excess.CompareAndSwap(most, over); {
			most = excess.Load()
		}
	}
	attack(t, nodes[:1], ratelimit.Read, actor, 200*time.Millisecond, check)
	first := attack(t, nodes[1:], ratelimit.Read, actor, 100*time.Millisecond, check)
	if first < attackShare {
		tooFew = fmt.Sprintf("the second node allowed %d, less than its share", first)
	}
	attack(t, nodes, ratelimit.Read, actor, 500*time.Millisecond, check)
	steadySince := time.Now()
	n := attack(t, nodes, ratelimit.Read, actor, 3*time.Second, check)
	// The excess at both ends of the time may differ.
	most := int64(len(nodes)) * attackShare
	switch want := int64(time.Since(steadySince).Seconds() * attackRate); {
	case n > want+most:
		t.Errorf("over three windows %d were allowed, want %d", n, want)
	case n < want-most:
		tooFew = fmt.Sprintf("over three windows %d were allowed, want %d", n, want)
	}
	switch over := excess.Load(); {
	case over > most:
		t.Errorf("%d more than the limit were allowed, at most %d may be", over, most)
	case over < attackShare/2:
		tooFew = fmt.Sprintf("%d more than the limit were allowed, want about a share", over)
	}
	return tooFew
}

func TestASlowStoreDoesNotOpenTheLimits(t *testing.T) {
	server := redistest.StartForTest(t)
	db := testkit.Must(redisdb.Open(server.URL()))(t)
	t.Cleanup(func() { _ = db.Close() })
	const burst, share = 200, 50
	limits := ratelimit.Limits{ratelimit.Read: {PerSecond: 1, Burst: burst, Scope: ratelimit.ScopeUser}}
	seen := observeLimiters(db)
	l := startLimiter(t, db, limits)
	allow := func(times int, user string) {
		t.Helper()
		for range times {
			testkit.Must(l.Allow(t.Context(), ratelimit.Read, user))(t)
		}
	}
	allow(1, "u1")
	server.Pause()
	defer server.Resume()
	allow(share-1, "u2") // a report of so many is due at once, and times out after a second
	// The rest of the share at once, then one each quarter of a second, and two that wait at the end.
	n := attack(t, []*ratelimit.Limiter{l}, ratelimit.Read, "u1", 1600*time.Millisecond, func() {})
	if n < share-1 || n > share+9 {
		t.Errorf("%d requests were allowed while the store did not respond, want about the share of %d", n, share)
	}
	server.Resume()
	redistest.Eventually(t, "the store replies in time", func() bool {
		began := time.Now()
		allow(1, "u1")
		return time.Since(began) < 100*time.Millisecond
	})
	before := seen.inLine.Load()
	allow(share/2, "u1")
	if asked := seen.inLine.Load() - before; asked > 1 {
		t.Errorf("%d of %d requests asked a store that is fast again, want those beyond the share", asked, share/2)
	}
}

// Store and node had the same wrong clock, as on one machine, until somebody put it right: nobody
// is refused for as long as it was ahead.
func TestAClockThatWasAheadRefusesNobodyForLong(t *testing.T) {
	db, clock := redistest.OpenMovable(t)
	machine, ahead := storeclock.SystemSource(), time.Hour
	db.Clock = storeclock.New(storeclock.Source{
		Wall: func() time.Time { return machine.Wall().Add(ahead) }, Elapsed: machine.Elapsed,
	})
	limits := ratelimit.Limits{ratelimit.SignIn: {PerSecond: 10, Burst: 20, Scope: ratelimit.ScopeAddress}}
	take := func() (ratelimit.Decision, error) {
		return ratelimit.New(db, limits).Allow(t.Context(), ratelimit.SignIn, "ip:192.0.2.7")
	}
	clock.Move(ahead)
	testkit.Must(take())(t)
	ahead = 0
	clock.Move(0)
	db.Clock = storeclock.New(storeclock.SystemSource())
	if d, err := take(); err == nil || d.UntilFull > 3*time.Second {
		t.Errorf("after the clock is right the bucket is not empty: %+v, %v", d, err)
	}
	redistest.Eventually(t, "there are permits again", func() bool {
		_, err := take()
		return err == nil
	})
	left, err := db.Client.PTTL(t.Context(), keys.RateLimit(string(ratelimit.SignIn), "ip:192.0.2.7")).Result()
	if err != nil || left > 3*time.Second {
		t.Errorf("the bucket in Redis is full in %v, %v", left, err)
	}
}

// A bucket without a share asks the store for each permit. While that hangs, one request after the
// other would wait for it, in a row that grows.
func TestNoRequestWaitsLongerThanItsContextForAStoreThatHangs(t *testing.T) {
	const requests, patience = 40, 700 * time.Millisecond
	server := redistest.StartForTest(t)
	db := testkit.Must(redisdb.Open(server.URL()))(t)
	t.Cleanup(func() { _ = db.Close() })
	l := startLimiter(t, db, ratelimit.DefaultLimits())
	server.Pause()
	defer server.Resume()
	var allowed, refused atomic.Int64
	began := time.Now()
	var wg sync.WaitGroup
	for range requests {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			switch _, err := l.Allow(ctx, ratelimit.SignIn, "ip:192.0.2.7"); {
			case err == nil:
				allowed.Add(1)
			case errors.Is(err, apierror.StoreUnavailable):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	if took > 2*patience || allowed.Load() < 1 || allowed.Load() > 5 || allowed.Load()+refused.Load() != requests {
		t.Errorf("in %v %d were allowed and %d refused", took, allowed.Load(), refused.Load())
	}
	server.Resume()
	redistest.Eventually(t, "the store gives permits again", func() bool {
		began := time.Now()
		_, err := l.Allow(t.Context(), ratelimit.SignIn, "ip:192.0.2.7")
		return err == nil && time.Since(began) < 100*time.Millisecond
	})
}

// The first use of a bucket must cost no round trip: not in a request, and all together few.
func TestAtHumanPaceNoRequestWaitsForTheStore(t *testing.T) {
	db := redistest.Single(t)
	seen := observeLimiters(db)
	l := startLimiter(t, db, ratelimit.DefaultLimits())
	began := time.Now()
	const players, rounds = 50, 2
	for round := range rounds {
		for i := range players {
			d, err := l.Allow(t.Context(), ratelimit.Read, "u"+strconv.Itoa(i))
			if err != nil || d.Remaining < 1990 || d.Remaining > 1999 {
				t.Fatalf("%+v, %v", d, err)
			}
		}
		redistest.Eventually(t, "every use is reported", func() bool {
			return seen.reports.Load() == int64((round+1)*players)
		})
	}
	ticks := int64(time.Since(began)/(200*time.Millisecond)) + 1
	if seen.inLine.Load() != 0 || seen.batches.Load() > ticks+1 {
		t.Errorf("%d requests cost %d scripts in line, %d reports in %d pipelines", rounds*players, seen.inLine.Load(),
			seen.reports.Load(), seen.batches.Load())
	}
}

// A sign-in is a chance to guess a credential: no node may add any to the limit.
func TestSignInsHaveNoShare(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		limits := ratelimit.Limits{ratelimit.SignIn: {PerSecond: 1, Burst: 20, Scope: ratelimit.ScopeAddress}}
		nodes := []*ratelimit.Limiter{
			startLimiter(t, db, limits), startLimiter(t, db, limits), startLimiter(t, db, limits), startLimiter(t, db, limits),
		}
		began := time.Now()
		n := int64(0)
		for _, node := range nodes {
			n += attack(t, []*ratelimit.Limiter{node}, ratelimit.SignIn, "u1", 100*time.Millisecond, func() {})
		}
		if most := 20 + int64(time.Since(began).Seconds()) + 1; n < 20 || n > most {
			t.Errorf("%d sign-ins were allowed, at most %d may", n, most)
		}
	})
}

func TestSmallBurstsAreExactOnANode(t *testing.T) {
	for burst := int64(1); burst <= 4; burst++ {
		db := redistest.Single(t)
		l := startLimiter(t, db, ratelimit.Limits{ratelimit.Write: {PerSecond: 1, Burst: burst, Scope: ratelimit.ScopeUser}})
		began := time.Now()
		for i := range burst + 3 {
			d, err := l.Allow(t.Context(), ratelimit.Write, "u1")
			if time.Since(began) > time.Second {
				t.Skip("too slow: a permit has grown back")
			}
			if (err == nil) != (i < burst) || d.Remaining != max(0, burst-1-i) {
				t.Errorf("with a burst of %d, request %d: %+v, %v", burst, i+1, d, err)
			}
		}
	}
}

func TestChargedPermitsAreMissingAfterwards(t *testing.T) {
	db := redistest.Single(t)
	l := startLimiter(t, db, ratelimit.Limits{ratelimit.Read: {PerSecond: 1, Burst: 40, Scope: ratelimit.ScopeUser}})
	if d := l.Charge(ratelimit.Money, "u1", 4); d.Burst != 0 {
		t.Errorf("a class without a limit: %+v", d)
	}
	if d := l.Charge(ratelimit.Read, "u1", 45); d.Remaining != 0 { // more than there are
		t.Errorf("%+v", d)
	}
	d, err := l.Allow(t.Context(), ratelimit.Read, "u1")
	if err == nil || d.RetryAfter < 4*time.Second || d.RetryAfter > 6*time.Second {
		t.Errorf("%+v, %v", d, err)
	}
	redistest.Eventually(t, "another node refuses, too", func() bool {
		other := ratelimit.New(db, ratelimit.Limits{ratelimit.Read: {PerSecond: 1, Burst: 40, Scope: ratelimit.ScopeUser}})
		n := 0
		for range 40 {
			if _, err := other.Allow(t.Context(), ratelimit.Read, "u1"); err == nil {
				n++
			}
		}
		return n <= 10 // its share
	})
}

func TestRunReportsTheRestWhenItEnds(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		limits := ratelimit.Limits{ratelimit.Money: {PerSecond: 1, Burst: 40, Scope: ratelimit.ScopeUser}}
		l := ratelimit.New(db, limits)
		for range 7 {
			testkit.Must(l.Allow(t.Context(), ratelimit.Money, "u1"))(t)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		testkit.Check(t, l.Run(ended))
		other := ratelimit.New(db, limits)
		n := int64(0)
		for range 100 {
			if _, err := other.Allow(t.Context(), ratelimit.Money, "u1"); err == nil {
				n++
			}
		}
		if n < 33 || n > 34+10 { // at most the share of the other node too much
			t.Errorf("another node allowed %d after 7 of 40 were reported", n)
		}
		left, err := db.Client.PTTL(t.Context(), keys.RateLimit(string(ratelimit.Money), "u1")).Result()
		if err != nil || left < 35*time.Second {
			t.Errorf("the bucket in Redis is full in %v, %v", left, err)
		}
	})
}

// A node that stops while the store hangs has its last report to send, in parts.
func TestTheLastReportToAStoreThatHangsTimesOutOnce(t *testing.T) {
	server := redistest.StartForTest(t)
	db := testkit.Must(redisdb.Open(server.URL()))(t)
	t.Cleanup(func() { _ = db.Close() })
	l := ratelimit.New(db, ratelimit.DefaultLimits())
	for i := range 300 {
		testkit.Must(l.Allow(t.Context(), ratelimit.Read, "u"+strconv.Itoa(i)))(t)
	}
	server.Pause()
	defer server.Resume()
	ended, end := context.WithCancel(t.Context())
	end()
	began := time.Now()
	if err := l.Run(ended); err != nil || time.Since(began) > 2*time.Second {
		t.Errorf("Run ended after %v: %v", time.Since(began), err)
	}
}

// What else the node and the store do would wait for a thousand callers at once.
func TestManyCallersAreReportedInPartsWithPauses(t *testing.T) {
	const callers, mostInOne = 1024, 64
	db := redistest.Single(t)
	var mu sync.Mutex
	var first, last time.Time // pipelines with reports
	largest, reports := 0, 0
	redistest.ObserveCommands(db, func(commands []redis.Cmder) {
		n := 0
		for _, cmd := range commands {
			if args := cmd.Args(); len(args) > 1 && args[1] == scripts.RateLimitTake.SHA {
				n++
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if n > 0 && first.IsZero() {
			first = time.Now()
		}
		if n > 0 {
			last = time.Now()
		}
		largest, reports = max(largest, n), reports+n
	})
	l := startLimiter(t, db, ratelimit.DefaultLimits())
	for i := range callers {
		testkit.Must(l.Allow(t.Context(), ratelimit.Read, "u"+strconv.Itoa(i)))(t)
	}
	redistest.Eventually(t, "all are reported", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return reports >= callers
	})
	mu.Lock()
	defer mu.Unlock()
	if took := last.Sub(first); largest > mostInOne || took < 50*time.Millisecond {
		t.Errorf("%d reports in %v, with %d in one pipeline; want %d at most", reports, took, largest, mostInOne)
	}
}

func TestABusyOrRefusedCallerCostsFewRoundTrips(t *testing.T) {
	db := redistest.Single(t)
	sent := redistest.CountCommands(db)
	l := ratelimit.New(db, ratelimit.DefaultLimits())
	allowed := int64(0)
	for range 1000 {
		if _, err := l.Allow(t.Context(), ratelimit.Money, "u1"); err == nil {
			allowed++
		}
	}
	if allowed != 1000 || sent.Load() > 24 {
		t.Errorf("%d allowed with %d commands", allowed, sent.Load())
	}
	slow := ratelimit.New(db, ratelimit.Limits{ratelimit.Read: {PerSecond: 1, Burst: 10, Scope: ratelimit.ScopeUser}})
	before := sent.Load()
	for range 1000 {
		_, _ = slow.Allow(t.Context(), ratelimit.Read, "abuser")
	}
	if n := sent.Load() - before; n > 24 {
		t.Errorf("a refused caller cost %d commands", n)
	}
}

func TestWithoutAStoreEachNodeLimitsByItself(t *testing.T) {
	server := redistest.StartForTest(t)
	db := testkit.Must(redisdb.Open(server.URL()))(t)
	defer func() { _ = db.Close() }()
	l := ratelimit.New(db, ratelimit.Limits{ratelimit.Read: {PerSecond: 1, Burst: 50, Scope: ratelimit.ScopeUser}})
	testkit.Must(l.Allow(t.Context(), ratelimit.Read, "u1"))(t)
	server.Kill()
	began := time.Now()
	allowed, refused := 0, 0
	for range 200 {
		if _, err := l.Allow(t.Context(), ratelimit.Read, "u2"); err == nil {
			allowed++
		} else if errors.Is(err, apierror.RateLimited) {
			refused++
		}
	}
	if allowed < 50 || allowed > 52 || allowed+refused != 200 || time.Since(began) > 2*time.Second {
		t.Errorf("%d allowed, %d refused in %v", allowed, refused, time.Since(began))
	}
	testkit.Check(t, server.Restart())
	redistest.Eventually(t, "the store is asked again", func() bool {
		for range 20 { // more than the share of a node
			if _, err := l.Allow(t.Context(), ratelimit.Read, "u3-"+strconv.FormatInt(time.Now().Unix(), 10)); err != nil {
				break
			}
		}
		names, err := db.Client.Keys(t.Context(), "*").Result()
		return err == nil && len(names) > 0
	})
}

func TestAClassWithoutALimitDoesNotAskTheStore(t *testing.T) {
	db := redistest.Single(t)
	sent := redistest.CountCommands(db)
	off := ratelimit.New(db, nil)
	for range 10 {
		if d, err := off.Allow(t.Context(), ratelimit.Money, "u1"); err != nil || !d.Allowed || d.Burst != 0 {
			t.Errorf("%+v, %v", d, err)
		}
	}
	if sent.Load() != 0 || off.ScopeOf(ratelimit.Money) != "" {
		t.Error("the store was asked")
	}
}

func TestCheckRejectsLimitsOutOfRange(t *testing.T) {
	testkit.Report(t, ratelimit.DefaultLimits().Check())
	for _, bad := range []ratelimit.Limit{
		{},
		{PerSecond: 0, Burst: 1, Scope: ratelimit.ScopeUser},
		{PerSecond: 1, Burst: 0, Scope: ratelimit.ScopeUser},
		{PerSecond: 1, Burst: 1, Scope: "moon"},
		{PerSecond: 2_000_000, Burst: 1, Scope: ratelimit.ScopeUser},
	} {
		if (ratelimit.Limits{ratelimit.Read: bad}).Check() == nil {
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
		if got := ratelimit.AddressKey(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is %s, want %s", address, got, want)
		}
	}
}

func BenchmarkAllowOfABusyCaller(b *testing.B) {
	l := ratelimit.New(
		redistest.Single(b),
		ratelimit.Limits{ratelimit.Read: {PerSecond: 1_000_000, Burst: 1_000_000_000, Scope: ratelimit.ScopeUser}},
	)
	for b.Loop() {
		testkit.Must(l.Allow(b.Context(), ratelimit.Read, "u1"))(b)
	}
}

func TestAQuotaOfADayIsSharedByNodesAndRefilledSlowly(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		limits := ratelimit.Limits{ratelimit.KeyedRequests: {PerDay: 40, Burst: 40, Scope: ratelimit.ScopeUser}}
		take := func(l *ratelimit.Limiter) (allowed int, last ratelimit.Decision) {
			for {
				d, err := l.Allow(t.Context(), ratelimit.KeyedRequests, "u1")
				if err != nil {
					return allowed, d
				}
				allowed++
			}
		}
		l := ratelimit.New(db, limits)
		allowed, last := take(l)
		if allowed != 40 || last.RetryAfter > 36*time.Minute || last.RetryAfter < 35*time.Minute {
			t.Errorf("%d were allowed; the next one in %s", allowed, last.RetryAfter)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		_ = l.Run(ended) // the last report of a node
		if more, _ := take(ratelimit.New(db, limits)); more > 10 {
			t.Errorf("another node allows %d more; its share is 10", more)
		}
	})
}
