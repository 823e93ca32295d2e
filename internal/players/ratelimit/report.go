package ratelimit

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
)

const (
	reportInterval    = 200 * time.Millisecond // of all callers
	callerReportTicks = 10                     // reports, on average, until a caller is reported
	dailyReportTicks  = 50                     // the same of a quota of a day: its share lasts for longer
	waitingTicks      = 3*dailyReportTicks/2 + 1
	minReports        = 64 // in one pipeline, if there are so many
	maxPipelines      = 16 // for one report
)

// usageReport has the used permits of a bucket.
type usageReport struct {
	bucket *bucket
	limit  Limit
	used   int64 // permits
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

// report reports the permits used before the call, of the buckets that are due; the last report
// covers all buckets. A report that fails is not repeated, because the script may have run.
//
// A large report is spread over half of reportInterval. Sent at once, a report of a thousand
// callers would delay other work of the node and the store by some ten milliseconds.
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

// startReport returns the permits of a bucket to report. It returns none if a request or this
// report has reported them already.
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
