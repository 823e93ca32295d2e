package ratelimit

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// Limiter limits how often requests of a class may come from a caller. The state is one number in
// Redis for each class and caller. It is safe for concurrent use.
//
// A node allows the first requests of a caller without a call of Redis, from its share of the
// bucket: a quarter of the burst, at least 1, none for SignIn and SignUp. Run reports them
// afterwards, in some pipelines each 200 ms: those of a caller who has used more than half of the
// share, or three quarters of it, and else within 3 s, of a quota of a day within 15 s. How much
// and when is drawn at random, so callers who begin at the same time are not reported at the same
// time. Reported permits belong to the share again.
//
// Only when the share is used up does a request wait for Redis. It then reports what was used and
// leases permits, more at a time while the caller is busy.
//
// A node also computes from each reply when the bucket has its next permit, and refuses by itself
// until then.
//
// While the store can be reached, all nodes together allow in any time t at most
//
//	burst + rate × t + nodes × share
//
// because every permit is charged in Redis, even one that was not there: what the shares gave too
// much is missing afterwards. Over several windows the rate is therefore the limit. Three events
// let a caller exceed this by one more share each: a node dies without its last report, a report
// fails, or a node forgets a bucket because 16,384 other callers came before it was full again.
//
// While the store cannot be reached, each node counts by itself and reports nothing. A store that
// is slow opens nothing: beyond its share a caller gets one permit of a node each time that
// leaseTimeout is over. The caller's other requests wait no longer than their contexts.
type Limiter struct {
	store            *store
	limits           atomic.Pointer[Limits]
	storeDownUntilUS atomic.Int64 // the store is not asked before, µs since 1970

	// Two generations of at most maxGeneration buckets, not package cache: finding a bucket or making
	// it must be one step, because two buckets of one caller would each have a share.
	mu              sync.RWMutex
	currentBuckets  map[bucketKey]*bucket
	previousBuckets map[bucketKey]*bucket

	// With permits that were used and not reported.
	unreportedMu sync.Mutex
	tick         int64                   // of the next report; it is each reportInterval
	waiting      [waitingTicks][]*bucket // at the tick, modulo waitingTicks, when each is looked at
	urgent       []*bucket               // much of the share is used; they are in waiting, too
}

type bucketKey struct {
	class Class
	actor string
}

const (
	storeDownPause       = time.Second // for which a store that failed is not asked
	maxGenerationBuckets = 16384
)

// bucket is this node's part of one caller's bucket.
type bucket struct {
	key bucketKey

	mu     sync.Mutex
	asking chan struct{} // closed when a request that asks the store has its reply; nil: none asks
	state
	listed      bool  // in Limiter.waiting, or in the report under way
	urgent      bool  // the same of Limiter.urgent
	urgentAbove int64 // permits that are not reported, of the share
	reportTick  int64 // when it is reported; 0: it is not in Limiter.waiting; under Limiter.unreportedMu, too
}

// New returns a limiter; without limits it allows everything and never asks the store. It panics on
// limits for which Check returns an error. Without Run the share of a caller is reported when it is
// used up.
func New(db *redisdb.DB, limits Limits) *Limiter {
	if err := limits.Check(); err != nil {
		panic("ratelimit: " + err.Error())
	}
	l := &Limiter{store: &store{db: db}, currentBuckets: map[bucketKey]*bucket{}}
	l.limits.Store(&limits)
	return l
}

// SetLimits replaces the limits. Classes that stay keep their used permits. It panics on limits for
// which Check returns an error.
func (l *Limiter) SetLimits(limits Limits) {
	if err := limits.Check(); err != nil {
		panic("ratelimit: " + err.Error())
	}
	l.limits.Store(&limits)
}

// limitOf returns the limit of a class, and whether it has one.
func (l *Limiter) limitOf(class Class) (limit Limit, limited bool) {
	limit, limited = (*l.limits.Load())[class]
	return limit, limited
}

// ScopeOf returns by what a class is counted; "" when it has no limit.
func (l *Limiter) ScopeOf(class Class) Scope {
	limit, _ := l.limitOf(class)
	return limit.Scope
}

// Allow takes one permit of a class for an actor: a caller's ActorID or an AddressKey, by the
// class's scope. It returns rate_limited when there is none; the decision is for the response
// headers in either case. A store that cannot be reached is no error: the node then counts by
// itself. Allow returns store_unavailable if the deadline of ctx passes while other requests of the
// actor wait for a store that hangs.
func (l *Limiter) Allow(ctx context.Context, class Class, actor string) (Decision, error) {
	limit, limited := l.limitOf(class)
	if !limited {
		return Decision{Class: class, Allowed: true}, nil
	}
	b := l.bucketOf(bucketKey{class, actor})
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.waitForReply(ctx); err != nil {
		d, _ := b.decisionAt(time.Now(), class, limit, false)
		return d, err
	}
	now := time.Now()
	switch decide(now, b.state, class, limit, l.isStoreDown(now)) {
	case refuse:
		return b.decisionAt(now, class, limit, false)
	case useLease:
		b.permits--
	case useShare:
		b.use(now, limit, 1)
		l.reportLater(b, limit, 1)
	case countHere:
		b.use(now, limit, 1)
	case askStore:
		return l.takeLease(ctx, now, b, limit)
	}
	return b.decisionAt(now, class, limit, true)
}

// takeLease reports the used permits, leases new ones and takes one of them. b.mu must be held;
// takeLease unlocks it during the call to the store.
func (l *Limiter) takeLease(ctx context.Context, now time.Time, b *bucket, limit Limit) (Decision, error) {
	b.leasePermits = nextLease(now, b.state, limit)
	used, wanted := b.unreported-b.reporting, b.leasePermits
	b.unreported -= used
	granted, err := b.ask(func() (lease, error) { return l.store.takePermits(ctx, b.key, limit, wanted, used) })
	now = time.Now()
	b.settle(used, err)
	if err != nil {
		l.noteStoreError(now, err)
		b.use(now, limit, 1)
		return b.decisionAt(now, b.key.class, limit, true)
	}
	return b.decisionAt(now, b.key.class, limit, b.addLease(now, granted))
}

// waitForReply waits while another request of the caller asks the store. mu must be held; it is
// free meanwhile.
func (b *bucket) waitForReply(ctx context.Context) error {
	for b.asking != nil {
		if ctx.Err() != nil {
			return redisdb.WrapError("wait for a permit", ctx.Err())
		}
		asking := b.asking
		b.mu.Unlock()
		select {
		case <-asking:
		case <-ctx.Done():
		}
		b.mu.Lock()
	}
	return nil
}

// ask calls take, and lets the caller's other requests wait for its result. mu must be held; it is
// free meanwhile.
func (b *bucket) ask(take func() (lease, error)) (lease, error) {
	b.asking = make(chan struct{})
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		close(b.asking)
		b.asking = nil
	}()
	return take()
}

// Charge takes permits in addition to that of Allow, even if none are left. It is for a request
// whose cost is known only when it is done. They are reported like those of the share and may
// exceed it.
func (l *Limiter) Charge(class Class, actor string, permits int64) Decision {
	limit, limited := l.limitOf(class)
	if !limited {
		return Decision{Class: class, Allowed: true}
	}
	b := l.bucketOf(bucketKey{class, actor})
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.use(now, limit, permits)
	if !l.isStoreDown(now) {
		l.reportLater(b, limit, permits)
	}
	d, _ := b.decisionAt(now, class, limit, true)
	return d
}

func (l *Limiter) isStoreDown(now time.Time) bool { return now.UnixMicro() < l.storeDownUntilUS.Load() }

// noteStoreError stops asking the store for a moment after an error, except after a timeout: nodes
// that count by themselves because the store is slow would each allow the whole limit.
func (l *Limiter) noteStoreError(now time.Time, err error) {
	if errors.Is(err, context.DeadlineExceeded) {
		return
	}
	l.storeDownUntilUS.Store(now.Add(storeDownPause).UnixMicro())
}

// bucketOf returns the bucket of a caller and makes it when there is none. A bucket that falls out
// of both generations loses its leased permits; its used permits are still reported.
func (l *Limiter) bucketOf(key bucketKey) *bucket {
	l.mu.RLock()
	b := l.currentBuckets[key]
	l.mu.RUnlock()
	if b != nil {
		return b
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if b = l.currentBuckets[key]; b != nil {
		return b
	}
	if b = l.previousBuckets[key]; b == nil {
		b = &bucket{key: key}
	}
	if len(l.currentBuckets) >= maxGenerationBuckets {
		l.previousBuckets, l.currentBuckets = l.currentBuckets, make(map[bucketKey]*bucket, maxGenerationBuckets)
	}
	l.currentBuckets[key] = b
	return b
}
