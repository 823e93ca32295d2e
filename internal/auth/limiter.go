package auth

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/redisdb"
)

// Limiter limits how often requests of a class may come from a caller. The state is one number in
// Redis for each class and caller. A node leases permits from there, more at a time while a caller
// is busy, and never allows more than it leased. It is safe for concurrent use.
type Limiter struct {
	store            *store
	limits           Limits
	storeDownUntilUS atomic.Int64 // the store is not asked before, µs since 1970

	// Two generations of at most maxGeneration buckets, not package cache: finding a bucket or making
	// it must be one step, because two buckets of one caller would each lease permits.
	mu       sync.RWMutex
	current  map[bucketKey]*bucket
	previous map[bucketKey]*bucket
}

type bucketKey struct {
	class Class
	actor string
}

const (
	leaseTTL      = 2 * time.Second // unused permits expire after it
	firstLease    = 4               // permits for a caller that is not busy
	leaseGrowth   = 4               // factor by which the next lease of a busy caller is larger
	leaseTimeout  = 250 * time.Millisecond
	storeDownTime = time.Second // for which a store that failed is not asked
	maxGeneration = 16384
)

// bucket is what this node has for one caller.
type bucket struct {
	mu           sync.Mutex
	permits      int64     // leased and not used yet
	leaseExpires time.Time // when the permits expire
	leaseSize    int64     // permits of the last lease
	storeLeft    int64     // permits left in Redis after the last lease
	fullAt       time.Time // when the bucket in Redis is full
	refusedUntil time.Time // there is no permit before
	localFullAt  time.Time // when the bucket of this node is full, for while the store is down
}

// NewLimiter returns a limiter; without limits it allows everything and never asks the store. It
// panics on limits for which Check returns an error.
func NewLimiter(db *redisdb.DB, limits Limits) *Limiter {
	if err := limits.Check(); err != nil {
		panic("auth: " + err.Error())
	}
	return &Limiter{store: &store{db: db}, limits: limits, current: map[bucketKey]*bucket{}}
}

// Scope returns by what a class is counted; "" when it has no limit.
func (l *Limiter) Scope(class Class) Scope { return l.limits[class].Scope }

// Allow takes one permit of a class for an actor: a caller's ActorID or an AddressKey, by the
// class's scope. It returns rate_limited when there is none; the decision is for the response
// headers in either case. A store that cannot be reached is no error: the node then counts by
// itself.
func (l *Limiter) Allow(ctx context.Context, class Class, actor string) (Decision, error) {
	limit, limited := l.limits[class]
	if !limited {
		return Decision{Class: class, Allowed: true}, nil
	}
	b := l.bucket(bucketKey{class, actor})
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if now.Before(b.refusedUntil) {
		return b.decide(class, limit, now, false)
	}
	hasLease := now.Before(b.leaseExpires)
	if b.permits > 0 && hasLease {
		b.permits--
		return b.decide(class, limit, now, true)
	}
	if hasLease {
		b.leaseSize = min(b.leaseSize*leaseGrowth, limit.maxLease())
	} else {
		b.leaseSize = min(firstLease, limit.maxLease())
	}
	if now.UnixMicro() >= l.storeDownUntilUS.Load() {
		granted, err := l.store.lease(ctx, class, actor, limit, b.leaseSize)
		now = time.Now()
		if err == nil {
			return b.decide(class, limit, now, b.add(granted, now))
		}
		l.storeDownUntilUS.Store(now.Add(storeDownTime).UnixMicro())
	}
	return b.decide(class, limit, now, b.takeLocally(limit, now))
}

// add adds leased permits, takes one of them, and reports whether there was one.
func (b *bucket) add(granted lease, now time.Time) bool {
	b.fullAt = now.Add(granted.untilFull)
	b.permits, b.storeLeft, b.leaseExpires = granted.permits, granted.left, now.Add(leaseTTL)
	if granted.permits == 0 {
		b.refusedUntil, b.leaseExpires = now.Add(granted.retryAfter), time.Time{}
		return false
	}
	b.permits--
	return true
}

// takeLocally takes one permit as rate_limit_take does in Redis, and reports whether there was one.
func (b *bucket) takeLocally(limit Limit, now time.Time) bool {
	perPermit := time.Duration(limit.microsPerPermit()) * time.Microsecond
	if b.localFullAt.Before(now) {
		b.localFullAt = now
	}
	available := int64((limit.window() - b.localFullAt.Sub(now)) / perPermit)
	b.permits, b.storeLeft, b.leaseExpires = 0, max(0, available-1), time.Time{}
	if available < 1 {
		b.fullAt, b.refusedUntil = b.localFullAt, b.localFullAt.Add(perPermit-limit.window())
		return false
	}
	b.localFullAt = b.localFullAt.Add(perPermit)
	b.fullAt = b.localFullAt
	return true
}

func (b *bucket) decide(class Class, limit Limit, now time.Time, allowed bool) (Decision, error) {
	d := Decision{
		Class: class, Allowed: allowed, Limit: limit.Burst, Window: limit.window(),
		Reset: max(0, b.fullAt.Sub(now)),
	}
	if allowed {
		d.Remaining = b.permits + b.storeLeft
		return d, nil
	}
	d.RetryAfter = max(time.Millisecond, b.refusedUntil.Sub(now))
	return d, apierror.RateLimited.WithMember("retryAfterSeconds", d.RetryAfterSeconds())
}

// bucket returns the bucket of a caller and makes it when there is none. A bucket that falls out of
// both generations loses the permits that it leased; it never gains any.
func (l *Limiter) bucket(key bucketKey) *bucket {
	l.mu.RLock()
	b := l.current[key]
	l.mu.RUnlock()
	if b != nil {
		return b
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if b = l.current[key]; b != nil {
		return b
	}
	if b = l.previous[key]; b == nil {
		b = &bucket{}
	}
	if len(l.current) >= maxGeneration {
		l.previous, l.current = l.current, make(map[bucketKey]*bucket, maxGeneration)
	}
	l.current[key] = b
	return b
}
