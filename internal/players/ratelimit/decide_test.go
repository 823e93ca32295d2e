package ratelimit

import (
	"context"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
)

// Of this limit a node has a share of 10, a permit is refilled in 100 ms and the bucket in 4 s.
var decidedLimit = Limit{PerSecond: 10, Burst: 40, Scope: ScopeUser}

var decidedNow = time.Unix(1_800_000_000, 0)

func in(d time.Duration) time.Time { return decidedNow.Add(d) }

func TestDecideAboutOneRequest(t *testing.T) {
	const down = true
	quota := Limit{PerDay: 40, Burst: 40, Scope: ScopeUser}
	oneLeased := state{permits: 1, leaseExpires: in(1)}
	empty := state{fullInRedisAt: in(4 * time.Second)}
	oneRefilled := state{fullInRedisAt: in(3900 * time.Millisecond)}
	for _, c := range []struct {
		when        string
		class       Class
		limit       Limit
		state       state
		isStoreDown bool
		want        verdict
	}{
		{"a caller is new", Read, decidedLimit, state{}, !down, useShare},
		{"a caller is new while the store is down", Read, decidedLimit, state{}, down, countHere},

		{"a permit is leased", Read, decidedLimit, oneLeased, !down, useLease},
		{"a permit is leased while the store is down", Read, decidedLimit, oneLeased, down, useLease},
		{
			"a permit of an empty bucket is leased", Read, decidedLimit,
			state{permits: 1, leaseExpires: in(1), fullInRedisAt: in(4 * time.Second)},
			!down, useLease,
		},
		{"a lease expires now", SignIn, decidedLimit, state{permits: 1, leaseExpires: in(0)}, !down, askStore},
		{"a lease is used up", SignIn, decidedLimit, state{leaseExpires: in(1)}, !down, askStore},
		{"a lease is used up, the share is not", Read, decidedLimit, state{leaseExpires: in(1)}, !down, useShare},

		{"a permit of the share is left", Read, decidedLimit, state{unreported: 9}, !down, useShare},
		{"the share is used up", Read, decidedLimit, state{unreported: 10}, !down, askStore},
		{"the share is used up and the store down", Read, decidedLimit, state{unreported: 10}, down, countHere},
		{"the share is in a report", Read, decidedLimit, state{unreported: 10, reporting: 10}, !down, askStore},
		{"a report of the share timed out", Read, decidedLimit, state{unreported: 6, unknown: 4}, !down, askStore},
		{"a report of a part timed out", Read, decidedLimit, state{unreported: 5, unknown: 4}, !down, useShare},
		{"a caller signs in", SignIn, decidedLimit, state{}, !down, askStore},
		{"a caller signs up", SignUp, decidedLimit, state{}, !down, askStore},
		{"a caller signs in while the store is down", SignIn, decidedLimit, state{}, down, countHere},
		{"a permit of the share of a day is left", Rooms, quota, state{unreported: 9}, !down, useShare},
		{"the share of a day is used up", Rooms, quota, state{unreported: 10}, !down, askStore},

		{"a bucket is empty", Read, decidedLimit, empty, !down, refuse},
		{"a bucket is empty while the store is down", Read, decidedLimit, empty, down, refuse},
		{"a caller without a share has an empty bucket", SignIn, decidedLimit, empty, !down, refuse},
		{"more was taken than there was", Read, decidedLimit, state{fullInRedisAt: in(time.Minute)}, !down, refuse},
		{
			"the next permit comes in a microsecond", Read, decidedLimit,
			state{fullInRedisAt: oneRefilled.fullInRedisAt.Add(time.Microsecond)},
			!down, refuse,
		},
		{"the next permit is there", Read, decidedLimit, oneRefilled, !down, useShare},
		{"the next permit is there to sign in", SignIn, decidedLimit, oneRefilled, !down, askStore},
		{"a bucket was full long ago", Read, decidedLimit, state{fullInRedisAt: in(-time.Hour)}, !down, useShare},
	} {
		if got := decide(decidedNow, c.state, c.class, c.limit, c.isStoreDown); got != c.want {
			t.Errorf("when %s: verdict %d; want %d", c.when, got, c.want)
		}
	}
}

func TestABusyCallerLeasesMoreEachTime(t *testing.T) {
	wide := Limit{PerSecond: 100, Burst: 3200, Scope: ScopeUser} // 100 at most: the refill of a second
	for _, c := range []struct {
		when  string
		limit Limit
		state state
		want  int64
	}{
		{"there was no lease", wide, state{}, 4},
		{"the last lease is used up before it expires", wide, state{leasePermits: 4, leaseExpires: in(1)}, 16},
		{"four times as many are too many", wide, state{leasePermits: 64, leaseExpires: in(1)}, 100},
		{"the last lease has expired", wide, state{leasePermits: 64, leaseExpires: in(0)}, 4},
		{"a sixteenth of the burst is less", decidedLimit, state{}, 2},
		{"the limit is a quota of a day", Limit{PerDay: 3200, Burst: 3200, Scope: ScopeUser}, state{}, 1},
	} {
		if got := nextLease(decidedNow, c.state, c.limit); got != c.want {
			t.Errorf("when %s, %d are leased; want %d", c.when, got, c.want)
		}
	}
}

func TestADecisionShowsWhatIsLeft(t *testing.T) {
	for _, c := range []struct {
		when    string
		state   state
		allowed bool
		want    Decision // without what is the same in all
	}{
		{"a bucket is full", state{}, true, Decision{Remaining: 40}},
		{
			"a permit is used",
			state{fullInRedisAt: in(100 * time.Millisecond)},
			true,
			Decision{Remaining: 39, UntilFull: 100 * time.Millisecond},
		},
		{
			"permits are leased",
			state{fullInRedisAt: in(time.Second), permits: 3, leaseExpires: in(1)},
			true,
			Decision{Remaining: 33, UntilFull: time.Second},
		},
		{
			"a lease has expired",
			state{fullInRedisAt: in(time.Second), permits: 3, leaseExpires: in(0)},
			true,
			Decision{Remaining: 30, UntilFull: time.Second},
		},
		{
			"more was charged than there was",
			state{fullInRedisAt: in(5 * time.Second)},
			true,
			Decision{UntilFull: 5 * time.Second},
		},
		{
			"a request is refused",
			state{fullInRedisAt: in(4 * time.Second)},
			false,
			Decision{UntilFull: 4 * time.Second, RetryAfter: 100 * time.Millisecond},
		},
		{
			"a request is refused at the last moment",
			state{fullInRedisAt: in(3900 * time.Millisecond)},
			false,
			Decision{UntilFull: 3900 * time.Millisecond, RetryAfter: time.Millisecond},
		},
	} {
		c.want.Class, c.want.Allowed, c.want.Burst, c.want.RefillTime = Read, c.allowed, 40, 4*time.Second
		got, err := c.state.decisionAt(decidedNow, Read, decidedLimit, c.allowed)
		if got != c.want || (err == nil) != c.allowed {
			t.Errorf("when %s: %+v, %v; want %+v", c.when, got, err, c.want)
		}
	}
}

func TestRepliesOfTheStoreMayComeInAnyOrder(t *testing.T) {
	var s state
	isOne := s.addLease(decidedNow, lease{permits: 4, untilFull: 3 * time.Second})
	if !isOne || s.permits != 3 || !s.hasLease(decidedNow) {
		t.Errorf("after a lease of 4: %+v", s)
	}
	s.setFullAt(in(time.Second)) // of an earlier call
	if s.fullInRedisAt != in(3*time.Second) {
		t.Errorf("the bucket is full at %v", s.fullInRedisAt)
	}
	if s.addLease(decidedNow, lease{untilFull: 4 * time.Second}) || s.permits != 0 || s.hasLease(decidedNow) {
		t.Errorf("after a lease of none: %+v", s)
	}
	if s.use(in(10*time.Second), decidedLimit, 2); s.fullInRedisAt != in(10*time.Second+200*time.Millisecond) {
		t.Errorf("a full bucket of which 2 were used is full at %v", s.fullInRedisAt)
	}
}

func TestOnlyAReportThatTimedOutIsUnknown(t *testing.T) {
	var s state
	s.settle(3, context.DeadlineExceeded)
	s.settle(4, context.DeadlineExceeded)
	if s.unknown != 7 {
		t.Errorf("%d are unknown after two timeouts", s.unknown)
	}
	for _, err := range []error{nil, apierror.StoreUnavailable} {
		s.unknown = 7
		if s.settle(2, err); s.unknown != 0 {
			t.Errorf("%d are unknown after %v", s.unknown, err)
		}
	}
}
