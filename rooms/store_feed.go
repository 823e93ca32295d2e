package rooms

import (
	"context"

	"github.com/parlor-games/parlor/internal/store/feed"
	"github.com/parlor-games/parlor/internal/store/keys"
)

// readFeeds returns the feeds of a game.
func (st *store) readFeeds(ctx context.Context, gameID int64) ([]Feed, error) {
	shards := feed.Shards(gameID, st.freeShardCount)
	heads, err := feed.ReadHeads(ctx, st.db, gameID, shards)
	if err != nil {
		return nil, err
	}
	feeds := make([]Feed, len(shards))
	for i, shard := range shards {
		feeds[i] = Feed{feed.Name(shard), keys.Feed(shard, gameID), heads[i].Since}
	}
	return feeds, nil
}
