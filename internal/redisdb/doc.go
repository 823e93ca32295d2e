// Package redisdb opens the store and runs scripts on it: a single Redis, one behind Sentinel,
// a Cluster, or the embedded store, all behind one URL. It also holds the locks that elect a
// leader and tells whether the store can be reached.
//
// It knows no domain, and no key but that of the installation itself. A store that cannot be reached is the refusal
// apierror.StoreUnavailable; every other trouble is a failure.
package redisdb
