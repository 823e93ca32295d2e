package ratelimit

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
)

const (
	leaseTimeout  = 250 * time.Millisecond
	reportTimeout = time.Second
)

type store struct{ db *redisdb.DB }

// lease is a number of permits that a node got from a bucket in Redis.
type lease struct {
	permits   int64         // that the node may use, 0 when there was none
	untilFull time.Duration // until the bucket is full
}

// takePermits takes up to wanted permits, and charges those that this node used already. It waits
// less for the store than other calls do, since a request waits for it.
func (s *store) takePermits(ctx context.Context, key bucketKey, limit Limit, wanted, used int64) (lease, error) {
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTimeout)
	defer cancel()
	call := scriptCall(key, limit, wanted, used, s.db.Clock.NowMS())
	reply, err := s.db.RunScript(detached, scripts.RateLimitTake, call.Keys, call.Args...)
	if err != nil {
		return lease{}, err
	}
	return decodeLease(reply)
}

// charge charges the permits of all reports in one pipeline. The i-th result is of the i-th report,
// zero when that one failed. The error is store_unavailable, or redisdb.ErrSkewed, when one could
// not be charged for that reason; a bucket that cannot be read is logged and concerns nobody else.
func (s *store) charge(ctx context.Context, reports []usageReport) ([]lease, error) {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	calls := make([]redisdb.ScriptCall, len(reports))
	for i, r := range reports {
		calls[i] = scriptCall(r.bucket.key, r.limit, 0, r.used, s.db.Clock.NowMS())
	}
	leases := make([]lease, len(reports))
	for i, result := range s.db.RunScriptPipelined(ctx, scripts.RateLimitTake, calls) {
		err := result.Failure
		if err == nil {
			leases[i], err = decodeLease(result.Reply)
		}
		switch {
		case errors.Is(err, apierror.StoreUnavailable), errors.Is(err, redisdb.ErrSkewed), errors.Is(err, context.Canceled):
			return leases, err
		case err != nil:
			slog.WarnContext(ctx, "a rate limit cannot be charged", "key", calls[i].Keys[0], "error", err)
		}
	}
	return leases, nil
}

func scriptCall(key bucketKey, limit Limit, wanted, used, nodeMS int64) redisdb.ScriptCall {
	return redisdb.ScriptCall{
		Keys: []string{keys.RateLimit(string(key.class), key.actor)},
		Args: scripts.RateLimitTakeArgs{
			Interval: limit.microsPerPermit(), Burst: limit.Burst, Wanted: wanted, Used: used, NodeMS: nodeMS,
		}.List(),
	}
}

func decodeLease(reply redisdb.Reply) (lease, error) {
	if reply.IsSkewed() {
		return lease{}, redisdb.ErrSkewed
	}
	if reply.Status != scripts.OK && reply.Status != apierror.RateLimited.Code {
		return lease{}, reply.Err(scripts.RateLimitTake)
	}
	values := redisdb.NewValues("a rate limit", reply.Values)
	l := lease{permits: values.NextInt(), untilFull: time.Duration(values.NextInt()) * time.Microsecond}
	return l, values.Err()
}
