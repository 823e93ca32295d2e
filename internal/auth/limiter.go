package auth

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/redisdb"
)

// Limiter counts calls. Its truth is one number in Redis for each class and caller; a node takes permits from there in slices
// that grow while a caller is busy, and gives no more than it took. It is safe for concurrent use.
type Limiter struct {
	store  *store
	limits Limits
	down   atomic.Int64 // until when the store is not asked, µs since 1970

	mu         sync.RWMutex
	young, old map[bucketKey]*bucket // two generations of a bounded number
}

type bucketKey struct {
	class Class
	who   string
}

const (
	leaseFor       = 2 * time.Second // unused permits lapse after it
	firstSlice     = 4               // of a caller that is not busy
	growth         = 4
	takeTimeout    = 250 * time.Millisecond
	downFor        = time.Second
	mostGeneration = 16384
)

// bucket is what this node holds for one caller.
type bucket struct {
	mu      sync.Mutex
	permits int64     // taken and not yet used
	lapse   time.Time // when they are worth nothing
	slice   int64     // how many were taken last
	left    int64     // in Redis, after that
	full    time.Time // when the bucket there is full
	refused time.Time // no permit before
	alone   time.Time // the same number as in Redis, for when the store is gone
}

// NewLimiter makes a limiter; without limits it allows everything and asks nobody. It panics on limits that Check refuses.
func NewLimiter(db *redisdb.DB, limits Limits) *Limiter {
	if err := limits.Check(); err != nil {
		panic("auth: " + err.Error())
	}
	return &Limiter{store: &store{db: db}, limits: limits, young: map[bucketKey]*bucket{}}
}

// Scope tells by what a class is counted; "" when it has no limit.
func (l *Limiter) Scope(class Class) Scope { return l.limits[class].Scope }

// Allow takes one permit of a class for a caller. It refuses rate_limited; the decision holds what to tell in either case. A store that
// cannot be reached is no error: the node then counts by itself.
func (l *Limiter) Allow(ctx context.Context, class Class, who string) (Decision, error) {
	limit, limited := l.limits[class]
	if !limited {
		return Decision{Class: class, Allowed: true}, nil
	}
	b := l.bucket(bucketKey{class, who})
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if now.Before(b.refused) {
		return b.decide(class, limit, now, false)
	}
	held := now.Before(b.lapse)
	if b.permits > 0 && held {
		b.permits--
		return b.decide(class, limit, now, true)
	}
	if held {
		b.slice = min(b.slice*growth, limit.slice())
	} else {
		b.slice = min(firstSlice, limit.slice())
	}
	if now.UnixMicro() >= l.down.Load() {
		t, err := l.store.take(ctx, class, who, limit, b.slice)
		now = time.Now()
		if err == nil {
			b.full = now.Add(t.full)
			b.permits, b.left, b.lapse = t.given, t.left, now.Add(leaseFor)
			if t.given > 0 {
				b.permits--
			} else {
				b.refused, b.lapse = now.Add(t.retry), time.Time{}
			}
			return b.decide(class, limit, now, t.given > 0)
		}
		l.down.Store(now.Add(downFor).UnixMicro())
	}
	return b.decide(class, limit, now, b.takeAlone(limit, now))
}

// takeAlone is rate_limit_take without Redis.
func (b *bucket) takeAlone(limit Limit, now time.Time) bool {
	each := time.Duration(limit.each()) * time.Microsecond
	if b.alone.Before(now) {
		b.alone = now
	}
	free := int64((limit.window() - b.alone.Sub(now)) / each)
	b.permits, b.left, b.lapse = 0, max(0, free-1), time.Time{}
	if free < 1 {
		b.full, b.refused = b.alone, b.alone.Add(each-limit.window())
		return false
	}
	b.alone = b.alone.Add(each)
	b.full = b.alone
	return true
}

func (b *bucket) decide(class Class, limit Limit, now time.Time, allowed bool) (Decision, error) {
	d := Decision{
		Class: class, Allowed: allowed, Limit: limit.Burst, Window: limit.window(),
		Reset: max(0, b.full.Sub(now)),
	}
	if allowed {
		d.Remaining = b.permits + b.left
		return d, nil
	}
	d.RetryAfter = max(time.Millisecond, b.refused.Sub(now))
	return d, apierror.RateLimited.WithMember("retryAfterSeconds", d.RetryAfterSeconds())
}

// bucket finds or makes what this node holds for a caller. What falls out of both generations loses permits that it had taken, never more.
func (l *Limiter) bucket(key bucketKey) *bucket {
	l.mu.RLock()
	b := l.young[key]
	l.mu.RUnlock()
	if b != nil {
		return b
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if b = l.young[key]; b != nil {
		return b
	}
	if b = l.old[key]; b == nil {
		b = &bucket{}
	}
	if len(l.young) >= mostGeneration {
		l.old, l.young = l.young, make(map[bucketKey]*bucket, mostGeneration)
	}
	l.young[key] = b
	return b
}
