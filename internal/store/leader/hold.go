package leader

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// Hold competes for the lead of one kind of work until ctx ends, and runs work for as long as this
// node leads. It is for work that goes on all the time, where Work looks at games once a second. A
// node that dies leads until its lease is over. The context of work ends when another node may
// lead; work must reject older leaders by its fence, as a Handler does.
func Hold(
	ctx context.Context, db *redisdb.DB, kind string, lease time.Duration,
	work func(ctx context.Context, fence int64) error,
) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var loggedAt time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		_, err := db.HoldLead(ctx, keys.Lock(kind), keys.FenceCounter(kind), lease, work)
		if err != nil && ctx.Err() == nil && !errors.Is(err, apierror.StoreUnavailable) && time.Since(loggedAt) >= logEvery {
			slog.WarnContext(ctx, "background work failed", "kind", kind, "error", err)
			loggedAt = time.Now()
		}
		timer.Reset(usualTiming.Interval / retriesPerInterval)
	}
}
