// Package redisdb opens the store and runs scripts on it: a single Redis, one behind Sentinel, a
// Cluster, or the embedded store, each behind a URL. It also checks the store before a node serves
// and while it serves, and has the lock with which package leader elects leaders.
//
// It knows no domain. Of keys it uses the records of the installation (keys.Meta, keys.Nodes) and
// its own probes; others come from its callers, and their hash tag shows whether a script is about
// money. WatchEvents, which is for a terminal, also recognizes the topics of rooms and wallets.
//
// A store that does not serve is store_unavailable, one without memory store_full, and a change
// that the required replicas did not confirm outcome_unknown. All other errors are internal.
package redisdb
