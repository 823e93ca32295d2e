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

// recent keeps values that were read from the store for a short time.
type recent[K comparable, V any] struct {
	mu      sync.Mutex // held while entries are added or removed
	entries *cache.Cache[K, recentEntry[V]]
}

type recentEntry[V any] struct {
	value    V
	isCached bool   // false: the value was removed
	removals uint64 // how often it was removed
}

// newRecent returns an empty cache; name is that of its counters.
func newRecent[K comparable, V any](name string, size int) *recent[K, V] {
	return &recent[K, V]{entries: cache.New[K, recentEntry[V]](name, size, tokenCacheTTL)}
}

// get adds the cached values to found. It returns the keys that are not cached, each with the
// number of its removals, to pass to add once they are read.
func (c *recent[K, V]) get(keys []K, found map[K]V) (missing map[K]uint64) {
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

// getOne returns the cached value of a key and whether there is one.
func (c *recent[K, V]) getOne(key K) (V, bool) {
	e, _ := c.entries.Get(key)
	return e.value, e.isCached
}

// add keeps values that were read after get, but for those that were removed since then: they may
// be out of date.
func (c *recent[K, V]) add(values map[K]V, missing map[K]uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, value := range values {
		if e, _ := c.entries.Get(key); e.removals == missing[key] {
			c.entries.Add(key, recentEntry[V]{value: value, isCached: true, removals: e.removals})
		}
	}
}

// remove drops a value that has changed.
func (c *recent[K, V]) remove(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, _ := c.entries.Get(key)
	c.entries.Add(key, recentEntry[V]{removals: e.removals + 1})
}
