package wallet

import (
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/cache"
)

const (
	tokenCacheTTL   = time.Second // how late a node sees a change that another node made
	maxCachedTokens = 4096
)

// tokenCache keeps tokens that exist, by code, for a short time.
type tokenCache struct {
	entries *cache.Cache[string, Token]

	mu       sync.Mutex // held while entries are added or removed
	removals uint64     // counts removals: a token that was read before one may be out of date
}

func newTokenCache() *tokenCache {
	return &tokenCache{entries: cache.New[string, Token]("tokens", maxCachedTokens, tokenCacheTTL)}
}

// get adds the cached tokens to found. It returns the codes that are not cached, and the number of
// changes to pass to add once they are read.
func (c *tokenCache) get(codes []string, found map[string]Token) (missing []string, changes uint64) {
	c.mu.Lock()
	changes = c.removals
	c.mu.Unlock()
	for _, code := range codes {
		if !isCode(code) {
			continue
		}
		if t, ok := c.entries.Get(code); ok {
			found[code] = t
		} else {
			missing = append(missing, code)
		}
	}
	return missing, changes
}

// add keeps tokens that were read when the number of changes was the given one, unless it has
// grown.
func (c *tokenCache) add(tokens []Token, changes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.removals != changes {
		return
	}
	for _, t := range tokens {
		c.entries.Add(t.Code, t)
	}
}

// remove drops a token that has changed.
func (c *tokenCache) remove(code string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removals++
	c.entries.Remove(code)
}
