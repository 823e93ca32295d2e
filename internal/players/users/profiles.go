package users

import (
	"context"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/base/cache"
)

const (
	profileTTL      = 5 * time.Second
	maxKeptProfiles = 8192 // profiles
)

// profileCache keeps the profiles that this node has read a moment ago. A change on this node drops
// a profile; one on another node is seen when the profile expires.
type profileCache struct {
	entries *cache.Cache[int64, Profile]

	mu      sync.Mutex
	changes int64 // dropped profiles; what was read before a change must not be kept after it
}

func newProfileCache() *profileCache {
	return &profileCache{entries: cache.New[int64, Profile]("profiles", maxKeptProfiles, profileTTL)}
}

// load returns a player and keeps the profile.
func (c *profileCache) load(ctx context.Context, s *store, id int64) (User, error) {
	c.mu.Lock()
	before := c.changes
	c.mu.Unlock()
	u, err := s.load(ctx, id)
	if err != nil {
		return User{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes == before {
		c.entries.Add(id, u.Profile)
	}
	return u, nil
}

// drop must be called after a change of a player.
func (c *profileCache) drop(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	c.entries.Remove(id)
}
