// Package ratelimit decides how often a caller may call, on all nodes together, with few calls of
// the store.
//
// A rate limit is one number in Redis for each class of requests and caller. A node lets the first
// requests pass and reports them afterwards, and leases permits for a busy caller, so that few
// requests wait for Redis. While the store is down, each node limits by itself.
//
// The function decide has the rules for one request. Limiter asks it, and does what it returns.
package ratelimit
