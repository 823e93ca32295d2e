package games

import (
	"context"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	freshFor    = time.Second
	loadTimeout = 5 * time.Second
	mostCached  = 4096
)

type cached struct {
	game Game
	at   time.Time
}

// cache remembers games for a second. A version never goes back: a read that began before this node's own change
// cannot hide it.
type cache struct {
	mu      sync.RWMutex
	entries map[int64]cached
	loads   singleflight.Group
}

func (c *cache) get(ctx context.Context, id int64, load func(context.Context, int64) (Game, error)) (Game, error) {
	c.mu.RLock()
	entry, ok := c.entries[id]
	c.mu.RUnlock()
	if ok && time.Since(entry.at) < freshFor {
		return entry.game, nil
	}
	// One load serves all who wait, so it must not end with the first one's request.
	result := c.loads.DoChan(strconv.FormatInt(id, 10), func() (any, error) {
		detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
		defer cancel()
		began := time.Now()
		g, err := load(detached, id)
		if err != nil {
			return Game{}, err
		}
		return c.put(g, began), nil
	})
	select {
	case r := <-result:
		return r.Val.(Game), r.Err
	case <-ctx.Done():
		return Game{}, ctx.Err()
	}
}

// put remembers a game as it was at a time and answers the newest version that is known.
func (c *cache) put(g Game, at time.Time) Game {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if entry, ok := c.entries[g.ID]; ok && entry.game.Version > g.Version && now.Sub(entry.at) < freshFor {
		return entry.game
	}
	if len(c.entries) >= mostCached {
		for id, entry := range c.entries {
			if now.Sub(entry.at) >= freshFor {
				delete(c.entries, id)
			}
		}
	}
	c.entries[g.ID] = cached{g, at}
	return g
}
