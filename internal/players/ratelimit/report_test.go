package ratelimit

import (
	"context"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
)

// A report costs the store a script: a player who sends some messages a second, in a room of
// thousands, must not make one of each. Nor must thousands who come back in one second, or who send
// at the same pace, be reported together: all else waits for that.

const (
	reportedClass = Read
	reportedShare = 400
)

var (
	reportedLimit = Limit{PerSecond: 1, Burst: 4 * reportedShare, Scope: ScopeUser}
	reportedQuota = Limit{PerDay: 100, Burst: 100, Scope: ScopeUser}
)

func newReportedLimiter(limit Limit) *Limiter {
	l := new(Limiter)
	l.SetLimits(Limits{reportedClass: limit})
	return l
}

func newReportedBucket(limit Limit) (*Limiter, *bucket) {
	return newReportedLimiter(limit), &bucket{key: bucketKey{class: reportedClass}}
}

// reportNext does what report does at a tick, without the store, and returns the permits.
func (l *Limiter) reportNext(all bool) (permits int64) {
	var started []usageReport
	for _, b := range l.takeDue(all) {
		if r := l.startReport(b); r.used > 0 {
			permits += r.used
			started = append(started, r)
		}
	}
	for _, r := range started {
		r.bucket.unreported -= r.used
		r.bucket.reporting = 0
	}
	return permits
}

// reportUntil returns at which tick all permits were reported.
func (l *Limiter) reportUntil(t *testing.T, permits int64) (tick int) {
	t.Helper()
	for permits > 0 {
		if tick++; tick > 10*dailyReportTicks {
			t.Fatalf("%d permits are never reported", permits)
		}
		permits -= l.reportNext(false)
	}
	if permits < 0 {
		t.Fatalf("%d permits are reported twice", -permits)
	}
	return tick
}

func TestWhoUsesLittleIsReportedSomeTicksLater(t *testing.T) {
	for limit, ticks := range map[Limit]int{reportedLimit: callerReportTicks, reportedQuota: dailyReportTicks} {
		for range 100 {
			l, b := newReportedBucket(limit)
			for range 3 { // each time anew
				l.reportLater(b, limit, 1)
				l.reportLater(b, limit, 2)
				if tick := l.reportUntil(t, 3); tick < ticks/2 || tick > ticks+ticks/2 {
					t.Fatalf("reported after %d ticks, want about %d", tick, ticks)
				}
			}
		}
	}
}

func TestWhoUsesMuchOfAShareIsReportedAtTheNextTick(t *testing.T) {
	for range 100 {
		l, b := newReportedBucket(reportedLimit)
		l.reportLater(b, reportedLimit, reportedShare/2-1)
		if n := l.reportNext(false); n != 0 {
			t.Fatalf("%d permits of a share of %d are reported at once", n, reportedShare)
		}
		l.reportLater(b, reportedLimit, reportedShare/4+1)
		if tick := l.reportUntil(t, 3*reportedShare/4); tick != 1 {
			t.Fatalf("reported after %d ticks", tick)
		}
		// What is used afterwards waits its full time, though the bucket was in the list already.
		l.reportLater(b, reportedLimit, 1)
		if tick := l.reportUntil(t, 1); tick < callerReportTicks/2 {
			t.Fatalf("reported again after %d ticks", tick)
		}
	}
	l, b := newReportedBucket(reportedQuota)
	l.reportLater(b, reportedQuota, 100)
	if n := l.reportNext(false); n != 0 {
		t.Errorf("%d permits of a quota of a day are reported at once", n)
	}
}

func TestABucketThatIsDueAndUrgentIsReportedOnce(t *testing.T) {
	l, b := newReportedBucket(reportedLimit)
	l.reportLater(b, reportedLimit, 1)
	for l.tick+1 < b.reportTick {
		l.reportNext(false)
	}
	l.reportLater(b, reportedLimit, reportedShare)
	due := l.takeDue(false)
	if len(due) != 2 {
		t.Fatalf("%d buckets are due", len(due))
	}
	first, second := l.startReport(due[0]), l.startReport(due[1])
	if first.used != reportedShare+1 || second.used != 0 {
		t.Errorf("%d and %d permits are reported", first.used, second.used)
	}
	// What is used while the report is under way is in the next one.
	l.reportLater(b, reportedLimit, 5)
	b.unreported, b.reporting = 5, 0
	l.reportUntil(t, 5)
	if n := l.reportNext(true); n != 0 {
		t.Errorf("%d permits are reported once more", n)
	}
}

func TestTheLastReportHasAll(t *testing.T) {
	l := newReportedLimiter(reportedLimit)
	for i := range 100 {
		for range i % 40 {
			l.takeDue(false)
		}
		l.reportLater(&bucket{key: bucketKey{class: reportedClass}}, reportedLimit, 1)
	}
	waits := int64(0)
	for _, list := range l.waiting {
		waits += int64(len(list))
	}
	if n := l.reportNext(true); n != waits || n == 0 {
		t.Errorf("%d of %d permits are reported", n, waits)
	}
	if n := l.reportNext(true); n != 0 {
		t.Errorf("%d permits are reported after the last report", n)
	}
}

func TestCallersWhoBeginTogetherAreNotReportedTogether(t *testing.T) {
	const callers = 1000
	l := newReportedLimiter(reportedLimit)
	buckets := make([]*bucket, callers)
	for i := range buckets {
		buckets[i] = &bucket{key: bucketKey{class: reportedClass}}
	}
	most, all := int64(0), int64(0)
	for range 5 * reportedShare { // so many that each is urgent now and then
		for _, b := range buckets {
			l.reportLater(b, reportedLimit, 10)
		}
		due := int64(0)
		for _, b := range l.takeDue(false) {
			if r := l.startReport(b); r.used > 0 {
				due++
				b.unreported, b.reporting = 0, 0
			}
		}
		most, all = max(most, due), all+due
	}
	average := all / (5 * reportedShare)
	if most > 5*average || average == 0 {
		t.Errorf("%d reports at a tick on average, and up to %d", average, most)
	}
}

// What is in a report that hangs is not reported by a request as well, and gives no permits.
func TestAReportThatHangsIsChargedOnceAndGivesNoPermits(t *testing.T) {
	const share = 10
	db, limit := redistest.Single(t), Limit{PerSecond: 1, Burst: 4 * share, Scope: ScopeUser}
	l := New(db, Limits{reportedClass: limit})
	calls := redistest.CountCommands(db)
	allow := func(when string, asks bool) {
		t.Helper()
		before := calls.Load()
		if d, err := l.Allow(t.Context(), reportedClass, "u1"); !d.Allowed || err != nil {
			t.Fatalf("%s: %+v, %v", when, d, err)
		}
		if asked := calls.Load() > before; asked != asks {
			t.Errorf("%s a request asks the store: %v; want %v", when, asked, asks)
		}
	}
	for range share {
		allow("of the share", false)
	}
	b := l.bucketOf(bucketKey{reportedClass, "u1"})
	forgetLease := func() { b.permits, b.leaseExpires = 0, time.Time{} }
	r := l.startReport(b)
	if r.used != share || l.startReport(b).used != 0 {
		t.Fatalf("%+v", r)
	}
	allow("while the report hangs", true)
	if b.unreported != share || b.reporting != share {
		t.Errorf("%d are not reported and %d are in the report; want %d and %d", b.unreported, b.reporting, share, share)
	}
	left := time.Until(b.fullInRedisAt)
	if most := (share + firstLeasePermits + 1) * time.Second; left > most {
		t.Errorf("the bucket is full in %v; what hangs is charged twice", left)
	}

	b.unreported, b.reporting = b.unreported-r.used, 0 // it has timed out
	b.settle(r.used, context.DeadlineExceeded)
	forgetLease()
	allow("after a report that may have been made", true)
	if b.unknown != 0 {
		t.Errorf("%d are unknown after a reply", b.unknown)
	}
	forgetLease()
	allow("after a reply", false)
}

// Each sign-in is a chance to guess a credential, and each sign-up an account: nodes add none.
func TestOnlySignInsAndSignUpsHaveNoShare(t *testing.T) {
	for class, limit := range DefaultLimits() {
		want := max(1, limit.Burst/4)
		if class == SignIn || class == SignUp {
			want = 0
		}
		if got := limit.share(class); got != want {
			t.Errorf("the share of %s is %d; want %d", class, got, want)
		}
	}
	if got := (Limit{PerSecond: 1, Burst: 1}).share(Write); got != 1 {
		t.Errorf("the share of a burst of 1 is %d", got)
	}
}
