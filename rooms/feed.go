package rooms

import (
	"context"
	"time"

	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/store/feed"
	"github.com/parlor-games/parlor/internal/store/keys"
)

// Feed is one of the feeds of a game: what happens to its rooms in one economy or shard.
type Feed struct {
	Name  string    // on the wire
	Topic string    // the list and the channel
	Since time.Time // when its first event was written; zero: it has none yet
}

// ListFeeds returns the feeds of the game of a server. It returns forbidden.
func (s *Service) ListFeeds(ctx context.Context, caller principal.Caller) ([]Feed, error) {
	if err := caller.Authorize(caller.GameID, principal.Server); err != nil {
		return nil, err
	}
	shards := feed.Shards(caller.GameID, s.store.freeShardCount)
	heads, err := feed.ReadHeads(ctx, s.store.db, caller.GameID, shards)
	if err != nil {
		return nil, err
	}
	feeds := make([]Feed, len(shards))
	for i, shard := range shards {
		feeds[i] = Feed{feed.Name(shard), keys.Feed(shard, caller.GameID), heads[i].Since}
	}
	return feeds, nil
}
