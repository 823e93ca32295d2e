package handlers

import (
	"errors"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
)

// hasKeyQuota reports whether an operation refuses Idempotency-Keys above a quota. It returns false
// if the operation requires a key, gives something back, ends something or is for staff only: the
// requests of servers grow with their players.
func (rt *route) hasKeyQuota() bool {
	return (rt.idempotency == byReceipt || rt.idempotency == byStoredResponse) &&
		(rt.callers == anyone || rt.callers&player != 0)
}

// countKey counts the Idempotency-Key of a request, because a response is stored under each key for
// a day. refuseNew is limit_reached if only a repeated request may succeed. err is rate_limited if
// an operation that requires a key has had too many.
func (r *request) countKey() (refuseNew, err error) {
	switch {
	case r.caller.Role == "":
		return r.takeQuota(ratelimit.KeyedSignIns, "keyed_requests"), nil
	case r.caller.Role != principal.Player:
		return nil, nil
	case r.route.hasKeyQuota():
		return r.takeQuota(ratelimit.KeyedRequests, "keyed_requests"), nil
	}
	key, limited := r.rateLimitKey(ratelimit.RequiredKeys)
	if !limited {
		return nil, nil
	}
	_, err = r.server.Limiter.Allow(r.ctx(), ratelimit.RequiredKeys, key)
	return nil, err
}

// countNew counts a request that creates something permanent against the daily quota. It returns
// limit_reached. A repeated request with an Idempotency-Key still gets its first response.
func (r *request) countNew(class ratelimit.Class, limit string) error {
	err := r.takeQuota(class, limit)
	if err == nil || r.receipt.KeyDigest == "" {
		return err
	}
	r.receipt.RefuseNew = err
	return nil
}

// takeQuota counts a request against a quota of a day. It returns store_unavailable, and
// limit_reached with the members limit, max and retryAfterSeconds.
func (r *request) takeQuota(class ratelimit.Class, limit string) error {
	key, limited := r.rateLimitKey(class)
	if !limited {
		return nil
	}
	decision, err := r.server.Limiter.Allow(r.ctx(), class, key)
	if !errors.Is(err, apierror.RateLimited) {
		return err
	}
	return apierror.LimitReached.
		WithReason("at most %d a day; the next one in %d seconds", decision.Burst, decision.RetryAfterSeconds()).
		WithMember("limit", limit).WithMember("max", decision.Burst).
		WithMember("retryAfterSeconds", decision.RetryAfterSeconds())
}
