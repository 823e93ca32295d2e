package games

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/base/cache"
	"golang.org/x/sync/singleflight"
)

const (
	cacheTTL    = time.Second
	cacheSize   = 4096
	loadTimeout = 5 * time.Second
)

// gameCache caches games for a second. The version of a cached game never goes back: a read that
// began before this node's own change cannot hide the change.
type gameCache struct {
	games *cache.Cache[int64, Game]
	loads singleflight.Group
	addMu sync.Mutex // makes comparing with the cached version and replacing it one step
}

func newGameCache() *gameCache {
	return &gameCache{games: cache.New[int64, Game]("games", cacheSize, cacheTTL)}
}

// get returns a game that was read at most cacheTTL ago.
func (c *gameCache) get(
	ctx context.Context, id int64, load func(context.Context, int64) (Game, error),
) (Game, error) {
	if g, ok := c.games.Get(id); ok {
		return g, nil
	}
	// One load serves all requests that wait, so it must not be cancelled with the first one.
	result := c.loads.DoChan(strconv.FormatInt(id, 10), func() (any, error) {
		detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
		defer cancel()
		readAt := time.Now()
		g, err := load(detached, id)
		if err != nil {
			return Game{}, err
		}
		return c.addUnlessOlder(g, readAt), nil
	})
	select {
	case r := <-result:
		return r.Val.(Game), r.Err
	case <-ctx.Done():
		return Game{}, ctx.Err()
	}
}

// addUnlessOlder caches a game that was read at a time, and returns the newest version that is
// cached.
func (c *gameCache) addUnlessOlder(g Game, readAt time.Time) Game {
	c.addMu.Lock()
	defer c.addMu.Unlock()
	if cached, ok := c.games.Get(g.ID); ok && cached.Version > g.Version {
		return cached
	}
	c.games.AddUntil(g.ID, g, readAt.Add(cacheTTL))
	return g
}
