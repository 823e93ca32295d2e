// Package redisdb opens the store and runs scripts on it: a single Redis, one behind Sentinel, a
// Cluster, or the embedded store, each behind a URL. It also checks the store before a node serves,
// and elects leaders.
//
// It knows no domain, and no key but that of the installation itself. A store that cannot be
// reached is apierror.StoreUnavailable; all other errors are internal.
package redisdb
