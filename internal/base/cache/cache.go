// Package cache keeps a bounded number of values in memory, each for a bounded time. It evicts the
// least recently used value first, and counts hits and misses by the name of the cache.
package cache

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Cache maps keys to values. It is safe for concurrent use.
//
// Expiry is checked when a value is read. The library's own expiring cache is not used: it starts a
// goroutine for each cache and has no way to stop it.
type Cache[K comparable, V any] struct {
	entries *lru.Cache[K, entry[V]]
	ttl     time.Duration
	counts  *counts
}

type entry[V any] struct {
	value     V
	expiresAt time.Time // zero: never
}

type counts struct{ hits, misses atomic.Int64 }

var (
	registryMu   sync.Mutex
	countsByName = map[string]*counts{}
	purges       []func() (inUse bool) // of every cache
)

// New returns an empty cache of at most size values. A value expires after ttl, or never if ttl is
// 0. Caches with the same name share their counters. New panics when size is not positive.
func New[K comparable, V any](name string, size int, ttl time.Duration) *Cache[K, V] {
	entries, err := lru.New[K, entry[V]](size)
	if err != nil {
		panic("cache " + name + ": " + err.Error())
	}
	registryMu.Lock()
	defer registryMu.Unlock()
	if countsByName[name] == nil {
		countsByName[name] = &counts{}
	}
	c := &Cache[K, V]{entries: entries, ttl: ttl, counts: countsByName[name]}
	reference := weak.Make(c) // a cache ends with what has it
	purges = append(purges, func() bool {
		c := reference.Value()
		if c != nil {
			c.entries.Purge()
		}
		return c != nil
	})
	return c
}

// Get returns the value of a key and reports whether it is there and has not expired.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	e, ok := c.entries.Get(key)
	if ok && (e.expiresAt.IsZero() || time.Now().Before(e.expiresAt)) {
		c.counts.hits.Add(1)
		return e.value, true
	}
	c.counts.misses.Add(1)
	var none V
	return none, false
}

// Add keeps a value for the time to live of the cache.
func (c *Cache[K, V]) Add(key K, value V) {
	var expires time.Time
	if c.ttl > 0 {
		expires = time.Now().Add(c.ttl)
	}
	c.entries.Add(key, entry[V]{value, expires})
}

// AddUntil is Add for a value that expires at until, or after the cache's ttl if that is earlier.
func (c *Cache[K, V]) AddUntil(key K, value V, until time.Time) {
	if c.ttl > 0 {
		if limit := time.Now().Add(c.ttl); limit.Before(until) {
			until = limit
		}
	}
	c.entries.Add(key, entry[V]{value, until})
}

// Remove drops the value of a key.
func (c *Cache[K, V]) Remove(key K) { c.entries.Remove(key) }

// Purge drops all values.
func (c *Cache[K, V]) Purge() { c.entries.Purge() }

// Len returns the number of values, expired ones included.
func (c *Cache[K, V]) Len() int { return c.entries.Len() }

// PurgeAll empties every cache of the process. It is called when the store was replaced by another
// one.
func PurgeAll() {
	registryMu.Lock()
	defer registryMu.Unlock()
	purges = slices.DeleteFunc(purges, func(purge func() bool) bool { return !purge() })
}

// Stats is how often the caches of one name were read since the process started.
type Stats struct {
	Name         string
	Hits, Misses int64
}

// AllStats returns the counters of all caches, ordered by name.
func AllStats() []Stats {
	registryMu.Lock()
	defer registryMu.Unlock()
	list := make([]Stats, 0, len(countsByName))
	for _, name := range slices.Sorted(maps.Keys(countsByName)) {
		list = append(list, Stats{Name: name, Hits: countsByName[name].hits.Load(), Misses: countsByName[name].misses.Load()})
	}
	return list
}
