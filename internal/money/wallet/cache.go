package wallet

import (
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/base/cache"
)

const (
	tokenCacheTTL     = time.Second // how late a node sees a change that another node made
	maxCachedTokens   = 4096
	maxCachedSupplies = 16_384
)

// supplyKey names the supply of a token in a game, in all games together when gameID is 0.
type supplyKey struct {
	gameID int64
	code   string
}

// storeCache keeps values of the store for tokenCacheTTL.
type storeCache[K comparable, V any] struct {
	mu      sync.Mutex // held while entries are added or removed
	entries *cache.Cache[K, cacheEntry[V]]
}

type cacheEntry[V any] struct {
	value    V
	isCached bool   // false: the value was removed
	removals uint64 // how often it was removed
}

// newStoreCache returns an empty cache; name is that of its counters.
func newStoreCache[K comparable, V any](name string, size int) *storeCache[K, V] {
	return &storeCache[K, V]{entries: cache.New[K, cacheEntry[V]](name, size, tokenCacheTTL)}
}

// getMany adds the cached values to found. It returns the keys that are not cached, each with the
// number of its removals, which add needs once they are read.
func (c *storeCache[K, V]) getMany(keys []K, found map[K]V) (missing map[K]uint64) {
	for _, key := range keys {
		e, _ := c.entries.Get(key)
		if e.isCached {
			found[key] = e.value
			continue
		}
		if missing == nil {
			missing = map[K]uint64{}
		}
		missing[key] = e.removals
	}
	return missing
}

// get returns the cached value of a key, and whether there is one.
func (c *storeCache[K, V]) get(key K) (V, bool) {
	e, _ := c.entries.Get(key)
	return e.value, e.isCached
}

// add keeps values that were read after getMany, except those that were removed since then: they
// may be out of date.
func (c *storeCache[K, V]) add(values map[K]V, missing map[K]uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, value := range values {
		if e, _ := c.entries.Get(key); e.removals == missing[key] {
			c.entries.Add(key, cacheEntry[V]{value: value, isCached: true, removals: e.removals})
		}
	}
}

// remove drops a value that has changed.
func (c *storeCache[K, V]) remove(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, _ := c.entries.Get(key)
	c.entries.Add(key, cacheEntry[V]{removals: e.removals + 1})
}
