package ratelimit

import (
	"strconv"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
)

// Decision is the result of Allow for one request. Burst is 0 when the class has no
// limit.
type Decision struct {
	Class      Class
	Allowed    bool
	Burst      int64         // the burst, in permits
	Remaining  int64         // permits left, as far as this node knows
	RefillTime time.Duration // in which an empty bucket is full again
	UntilFull  time.Duration // until the bucket is full
	RetryAfter time.Duration // until the next permit; 0 when allowed
}

// decisionAt returns the decision about a request at a time. It returns rate_limited unless the
// request is allowed.
func (s *state) decisionAt(now time.Time, class Class, limit Limit, allowed bool) (Decision, error) {
	d := Decision{
		Class: class, Allowed: allowed, Burst: limit.Burst, RefillTime: limit.refillTime(),
		UntilFull: max(0, s.fullInRedisAt.Sub(now)),
	}
	if allowed {
		if d.Remaining = max(0, s.available(now, limit)); s.hasLease(now) {
			d.Remaining += s.permits
		}
		return d, nil
	}
	perPermit := time.Duration(limit.microsPerPermit()) * time.Microsecond
	d.RetryAfter = max(time.Millisecond, s.fullInRedisAt.Add(perPermit-limit.refillTime()).Sub(now))
	return d, apierror.RateLimited.WithMember("retryAfterSeconds", d.RetryAfterSeconds())
}

// PolicyHeader returns the value of the RateLimit-Policy header
// (draft-ietf-httpapi-ratelimit-headers).
func (d Decision) PolicyHeader() string {
	return strconv.Quote(string(d.Class)) +
		";q=" + strconv.FormatInt(d.Burst, 10) + ";w=" + strconv.FormatInt(CeilSeconds(d.RefillTime), 10)
}

// RateLimitHeader returns the value of the RateLimit header (draft-ietf-httpapi-ratelimit-headers).
func (d Decision) RateLimitHeader() string {
	var buffer [64]byte // every response has this header: made at once
	b := strconv.AppendQuote(buffer[:0], string(d.Class))
	b = strconv.AppendInt(append(b, ";r="...), d.Remaining, 10)
	return string(strconv.AppendInt(append(b, ";t="...), CeilSeconds(d.UntilFull), 10))
}

// RetryAfterSeconds returns the value of the Retry-After header (RFC 9110), at least 1.
func (d Decision) RetryAfterSeconds() int64 { return max(1, CeilSeconds(d.RetryAfter)) }

// CeilSeconds returns a duration in whole seconds, rounded up: a Retry-After must never be too
// early.
func CeilSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
