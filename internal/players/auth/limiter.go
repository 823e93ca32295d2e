package auth

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// Limiter limits how often requests of a class may come from a caller. The state is one number in
// Redis for each class and caller. It is safe for concurrent use.
//
// A node allows the first requests of a caller without a call of Redis, from its share of the
// bucket: a quarter of the burst, at least 1, none for SignIn. Run reports them afterwards, in some
// pipelines each 200 ms: those of a caller who has used more than half of the share, or three
// quarters of it, and else within 3 s, of a quota of a day within 15 s. How much and when is drawn
// at random, so callers who begin at the same time are not reported at the same time. Reported
// permits belong to the share again.
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
	leaseTTL             = 2 * time.Second // unused permits expire after it
	firstLeasePermits    = 4               // permits for a caller that is not busy
	leaseGrowthFactor    = 4               // factor by which the next lease of a busy caller is larger
	leaseTimeout         = 250 * time.Millisecond
	reportInterval       = 200 * time.Millisecond // of all callers
	callerReportTicks    = 10                     // reports, on average, until a caller is reported
	dailyReportTicks     = 50                     // the same of a quota of a day: its share lasts for longer
	waitingTicks         = 3*dailyReportTicks/2 + 1
	reportTimeout        = time.Second
	minReports           = 64          // in one pipeline, if there are so many
	maxPipelines         = 16          // for one report
	storeDownPause       = time.Second // for which a store that failed is not asked
	maxGenerationBuckets = 16384
)

// bucket is what this node has for one caller.
type bucket struct {
	key bucketKey

	mu            sync.Mutex
	asking        chan struct{} // closed when a request that asks the store has its reply; nil: none asks
	permits       int64         // leased and not used yet
	leaseExpires  time.Time     // when the permits expire
	leasePermits  int64         // permits of the last lease
	fullInRedisAt time.Time     // when the bucket in Redis is full, as far as this node knows
	unreported    int64         // permits used from the share, without a reply to their report
	reporting     int64         // of these, how many are in the report under way
	unknown       int64         // permits whose report timed out, until the store replies
	listed        bool          // in Limiter.waiting, or in the report under way
	urgent        bool          // the same of Limiter.urgent
	urgentAbove   int64         // permits that are not reported, of the share
	reportTick    int64         // when it is reported; 0: it is not in Limiter.waiting; under Limiter.unreportedMu, too
}

// usageReport is how many permits of a bucket are reported.
type usageReport struct {
	bucket *bucket
	limit  Limit
	used   int64 // permits
}

// NewLimiter returns a limiter; without limits it allows everything and never asks the store. It
// panics on limits for which Check returns an error. Without Run the share of a caller is reported
// when it is used up.
func NewLimiter(db *redisdb.DB, limits Limits) *Limiter {
	if err := limits.Check(); err != nil {
		panic("auth: " + err.Error())
	}
	l := &Limiter{store: &store{db: db}, currentBuckets: map[bucketKey]*bucket{}}
	l.limits.Store(&limits)
	return l
}

// SetLimits replaces the limits. What was used is remembered for the classes that stay. It panics
// on limits for which Check returns an error.
func (l *Limiter) SetLimits(limits Limits) {
	if err := limits.Check(); err != nil {
		panic("auth: " + err.Error())
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
		d, _ := b.decide(limit, time.Now(), false)
		return d, err
	}
	now := time.Now()
	hasLease := now.Before(b.leaseExpires)
	switch {
	case hasLease && b.permits > 0:
		b.permits--
		return b.decide(limit, now, true)
	case b.available(limit, now) < 1:
		return b.decide(limit, now, false)
	case l.isStoreDown(now):
		b.use(limit, now, 1)
		return b.decide(limit, now, true)
	case b.unreported+b.unknown < limit.share(class):
		b.use(limit, now, 1)
		l.reportLater(b, limit, 1)
		return b.decide(limit, now, true)
	}
	if hasLease {
		b.leasePermits = min(b.leasePermits*leaseGrowthFactor, limit.maxLeasePermits())
	} else {
		b.leasePermits = min(firstLeasePermits, limit.maxLeasePermits())
	}
	used, wanted := b.unreported-b.reporting, b.leasePermits
	b.unreported -= used
	granted, err := b.ask(func() (lease, error) { return l.store.takePermits(ctx, b.key, limit, wanted, used) })
	now = time.Now()
	b.settle(used, err)
	if err != nil {
		l.noteStoreError(now, err)
		b.use(limit, now, 1)
		return b.decide(limit, now, true)
	}
	return b.decide(limit, now, b.addLease(granted, now))
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

// Charge takes permits beside the one that Allow took, whether there are any or not: for a request
// whose cost is known when it is done. They are reported like those of the share and may exceed it.
func (l *Limiter) Charge(class Class, actor string, permits int64) Decision {
	limit, limited := l.limitOf(class)
	if !limited {
		return Decision{Class: class, Allowed: true}
	}
	b := l.bucketOf(bucketKey{class, actor})
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.use(limit, now, permits)
	if !l.isStoreDown(now) {
		l.reportLater(b, limit, permits)
	}
	d, _ := b.decide(limit, now, true)
	return d
}

// available returns how many permits the bucket in Redis has at most.
func (b *bucket) available(limit Limit, now time.Time) int64 {
	perPermit := time.Duration(limit.microsPerPermit()) * time.Microsecond
	return int64((limit.refillTime() - max(0, b.fullInRedisAt.Sub(now))) / perPermit)
}

// use takes n permits from what this node knows of the bucket in Redis.
func (b *bucket) use(limit Limit, now time.Time, n int64) {
	if b.fullInRedisAt.Before(now) {
		b.fullInRedisAt = now
	}
	b.fullInRedisAt = b.fullInRedisAt.Add(time.Duration(n*limit.microsPerPermit()) * time.Microsecond)
}

// settle records what became of permits that were reported, and that unreported has no more. After
// an error they are not reported again, because the script may have run. They belong to the share
// again at the next reply of the store, or when it cannot be reached.
func (b *bucket) settle(used int64, err error) {
	if b.unknown += used; !errors.Is(err, context.DeadlineExceeded) {
		b.unknown = 0
	}
}

// setFullAt records a reply of Redis. The time at which the bucket is full only grows there, so the
// latest one is right whatever the order of the replies.
func (b *bucket) setFullAt(at time.Time) {
	if at.After(b.fullInRedisAt) {
		b.fullInRedisAt = at
	}
}

// addLease adds leased permits, takes one of them, and reports whether there was one.
func (b *bucket) addLease(granted lease, now time.Time) bool {
	b.setFullAt(now.Add(granted.untilFull))
	if granted.permits == 0 {
		b.permits, b.leaseExpires = 0, time.Time{}
		return false
	}
	b.permits, b.leaseExpires = granted.permits-1, now.Add(leaseTTL)
	return true
}

func (b *bucket) decide(limit Limit, now time.Time, allowed bool) (Decision, error) {
	d := Decision{
		Class: b.key.class, Allowed: allowed, Burst: limit.Burst, RefillTime: limit.refillTime(),
		UntilFull: max(0, b.fullInRedisAt.Sub(now)),
	}
	if allowed {
		if d.Remaining = max(0, b.available(limit, now)); now.Before(b.leaseExpires) {
			d.Remaining += b.permits
		}
		return d, nil
	}
	perPermit := time.Duration(limit.microsPerPermit()) * time.Microsecond
	d.RetryAfter = max(time.Millisecond, b.fullInRedisAt.Add(perPermit-limit.refillTime()).Sub(now))
	return d, apierror.RateLimited.WithMember("retryAfterSeconds", d.RetryAfterSeconds())
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

// reportLater lists permits of a bucket, whose mutex the caller holds, for a report.
func (l *Limiter) reportLater(b *bucket, limit Limit, permits int64) {
	if !b.listed {
		b.urgentAbove = limit.urgentAbove(b.key.class)
	}
	b.unreported += permits
	isUrgent := !b.urgent && b.unreported > b.urgentAbove
	if b.listed && !isUrgent {
		return
	}
	l.unreportedMu.Lock()
	defer l.unreportedMu.Unlock()
	if !b.listed {
		b.reportTick = l.tick + limit.ticksUntilReport()
		l.waitLocked(b)
		b.listed = true
	}
	if isUrgent {
		l.urgent = append(l.urgent, b)
		b.urgent = true
	}
}

// waitLocked lets a bucket wait for its tick. Limiter.unreportedMu must be held.
func (l *Limiter) waitLocked(b *bucket) {
	list := &l.waiting[b.reportTick%waitingTicks]
	*list = append(*list, b)
}

// urgentAbove returns how many permits of the share of a class need no report.
func (l Limit) urgentAbove(class Class) int64 {
	if l.isDaily() {
		return math.MaxInt64
	}
	share := l.share(class)
	return (share-1)/2 + rand.Int64N(share/4+1)
}

// ticksUntilReport returns after how many ticks a caller is reported who uses little.
func (l Limit) ticksUntilReport() int64 {
	ticks := int64(callerReportTicks)
	if l.isDaily() {
		ticks = dailyReportTicks
	}
	return ticks/2 + rand.Int64N(ticks+1)
}

// Run reports used permits to Redis until ctx ends, and then once more. There must be at most one
// Run of a limiter.
func (l *Limiter) Run(ctx context.Context) error {
	tick := time.NewTicker(reportInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			l.report(ctx, true)
			return nil
		case <-tick.C:
			l.report(ctx, false)
		}
	}
}

// report reports what was used before it was called, of the buckets for which it is time, in the
// last report of all. A report that fails is not repeated, because the script may have run.
//
// It takes half of reportInterval if there is much to report: what else the node and the store do
// would wait some ten milliseconds for a thousand callers at once.
func (l *Limiter) report(ctx context.Context, isLast bool) {
	due := l.takeDue(isLast)
	var timedOut error // of a part; the others, up to maxPipelines of them, are not sent then
	first := true
	for chunk := range slices.Chunk(due, max(minReports, (len(due)+maxPipelines-1)/maxPipelines)) {
		if !first && !isLast && timedOut == nil {
			pause(ctx, reportInterval/2/maxPipelines)
		}
		first = false
		reports := make([]usageReport, 0, len(chunk))
		for _, b := range chunk {
			if r := l.startReport(b); r.used > 0 {
				reports = append(reports, r)
			}
		}
		if len(reports) == 0 {
			continue
		}
		var leases []lease
		err := timedOut
		switch {
		case err != nil:
		case l.isStoreDown(time.Now()):
			err = apierror.StoreUnavailable
		default:
			if leases, err = l.store.charge(context.WithoutCancel(ctx), reports); err != nil {
				l.noteStoreError(time.Now(), err)
			}
			if errors.Is(err, context.DeadlineExceeded) {
				timedOut = err
			}
		}
		for i, r := range reports {
			r.bucket.mu.Lock()
			r.bucket.unreported -= r.used
			r.bucket.reporting = 0
			r.bucket.settle(r.used, err)
			if err == nil {
				r.bucket.setFullAt(time.Now().Add(leases[i].untilFull))
			}
			r.bucket.mu.Unlock()
		}
	}
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// takeDue returns the buckets to report at the next tick, or all: those of waiting first.
func (l *Limiter) takeDue(all bool) []*bucket {
	l.unreportedMu.Lock()
	defer l.unreportedMu.Unlock()
	l.tick++
	first, last := l.tick, l.tick
	if all {
		last += waitingTicks - 1
	}
	var due []*bucket
	for tick := first; tick <= last; tick++ {
		looked := l.waiting[tick%waitingTicks]
		l.waiting[tick%waitingTicks] = nil
		for _, b := range looked {
			if b.reportTick > l.tick && !all { // it was reported meanwhile
				l.waitLocked(b)
				continue
			}
			b.reportTick = 0
			due = append(due, b)
		}
	}
	due = append(due, l.urgent...)
	l.urgent = nil
	return due
}

// startReport returns the permits of a bucket to report. There are none when a request, or this
// report, has reported them.
func (l *Limiter) startReport(b *bucket) usageReport {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reporting > 0 { // it was due, and urgent
		return usageReport{}
	}
	b.urgent, b.listed = false, b.reportTick > 0
	limit, limited := l.limitOf(b.key.class)
	if !limited { // any more
		b.unreported = 0
		return usageReport{}
	}
	if b.listed { // the next report is not needed before
		b.urgentAbove = limit.urgentAbove(b.key.class)
		l.unreportedMu.Lock()
		b.reportTick = l.tick + limit.ticksUntilReport()
		l.unreportedMu.Unlock()
	}
	b.reporting = b.unreported
	return usageReport{bucket: b, limit: limit, used: b.reporting}
}

// bucketOf returns the bucket of a caller and makes it when there is none. A bucket that falls out
// of both generations loses the permits that it leased, and what it used is still reported.
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
