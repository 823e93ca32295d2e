package ratelimit

import (
	"context"
	"errors"
	"time"
)

// This file is pure: it reads no clock, asks no store and takes no lock.

const (
	leaseTTL          = 2 * time.Second // unused permits expire after it
	firstLeasePermits = 4               // permits for a caller that is not busy
	leaseGrowthFactor = 4               // factor by which the next lease of a busy caller is larger
)

// state is a node's knowledge of the bucket of one caller.
type state struct {
	permits       int64     // leased and not used yet
	leaseExpires  time.Time // when the permits expire
	leasePermits  int64     // permits of the last lease
	fullInRedisAt time.Time // when the bucket in Redis is full, as far as this node knows
	unreported    int64     // permits used from the share, without a reply to their report
	reporting     int64     // of these, how many are in the report under way
	unknown       int64     // permits whose report timed out, until the store replies
}

// verdict is a node's decision about one request.
type verdict int

const (
	refuse    verdict = iota // the bucket in Redis has no permit yet
	useLease                 // allow it by a permit that the node has leased
	useShare                 // allow it from the share of this node, and report that later
	countHere                // allow it; only this node counts it
	askStore                 // report what was used, and lease permits
)

// decide returns what a node does about a request that comes now.
func decide(now time.Time, s state, class Class, limit Limit, isStoreDown bool) verdict {
	switch {
	case s.hasLease(now) && s.permits > 0: // charged in Redis already, so it is there in any case
		return useLease
	case s.available(now, limit) < 1:
		return refuse
	case isStoreDown:
		return countHere
	case s.unreported+s.unknown < limit.share(class):
		return useShare
	default:
		return askStore
	}
}

// nextLease returns how many permits the node asks the store for: more each time while the caller
// is so busy that it used the last ones up before they expired.
func nextLease(now time.Time, s state, limit Limit) int64 {
	if s.hasLease(now) {
		return min(s.leasePermits*leaseGrowthFactor, limit.maxLeasePermits())
	}
	return min(firstLeasePermits, limit.maxLeasePermits())
}

// hasLease reports whether the last lease is unexpired, even if its permits are used up.
func (s *state) hasLease(now time.Time) bool { return now.Before(s.leaseExpires) }

// available returns how many permits the bucket in Redis has at most.
func (s *state) available(now time.Time, limit Limit) int64 {
	perPermit := time.Duration(limit.microsPerPermit()) * time.Microsecond
	return int64((limit.refillTime() - max(0, s.fullInRedisAt.Sub(now))) / perPermit)
}

// use takes n permits from what this node knows of the bucket in Redis.
func (s *state) use(now time.Time, limit Limit, n int64) {
	if s.fullInRedisAt.Before(now) {
		s.fullInRedisAt = now
	}
	s.fullInRedisAt = s.fullInRedisAt.Add(time.Duration(n*limit.microsPerPermit()) * time.Microsecond)
}

// settle records the outcome of a report whose permits are no longer in unreported. After an error
// they are not reported again, because the script may have run. They return to the share at the
// next reply of the store, or when it cannot be reached.
func (s *state) settle(used int64, err error) {
	if s.unknown += used; !errors.Is(err, context.DeadlineExceeded) {
		s.unknown = 0
	}
}

// setFullAt records a reply of Redis. The time at which the bucket is full only grows there, so the
// latest one is right whatever the order of the replies.
func (s *state) setFullAt(at time.Time) {
	if at.After(s.fullInRedisAt) {
		s.fullInRedisAt = at
	}
}

// addLease adds leased permits, takes one of them, and reports whether there was one.
func (s *state) addLease(now time.Time, granted lease) bool {
	s.setFullAt(now.Add(granted.untilFull))
	if granted.permits == 0 {
		s.permits, s.leaseExpires = 0, time.Time{}
		return false
	}
	s.permits, s.leaseExpires = granted.permits-1, now.Add(leaseTTL)
	return true
}
