package handlers

import (
	"errors"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
)

// hasKeyQuota reports whether a key too many of an operation is refused. It is not where a key is
// required, where the operation gives back or ends something, and for staff: what servers do grows
// with their players.
func (rt *route) hasKeyQuota() bool {
	return (rt.idempotency == byReceipt || rt.idempotency == byStoredResponse) &&
		(rt.callers == anyone || rt.callers&player != 0)
}

// countKey counts the Idempotency-Key of a request: what is stored under a key is there for a day.
// refuseNew is limit_reached when the request must fail unless it is a repeated one. A key that is
// never refused may have to wait: rate_limited.
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

// countNew counts a request for something that is kept, against the quota of a day. It returns
// limit_reached; a repeated request with a key still gets its first reply.
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
