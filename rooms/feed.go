package rooms

import (
	"context"
	"time"

	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/store/feed"
)

// Feed is one of the feeds of a game: what happens to its rooms in one economy or shard.
type Feed struct {
	Name  string    // on the wire
	Topic string    // the list and the channel
	Since time.Time // when its first event was written; zero: it has none yet
}

// FeedEvent is an event of a feed as servers get it.
type FeedEvent struct {
	JSON     []byte
	Type     string // "room.started"
	Position string // "<number>-<nonce>" in the feed
	Share    uint32 // ShareNumber of the room or the tournament
}

// ListFeeds returns the feeds of the game of a server. It returns forbidden.
func (s *Service) ListFeeds(ctx context.Context, caller principal.Caller) ([]Feed, error) {
	if err := caller.Authorize(caller.GameID, principal.Server); err != nil {
		return nil, err
	}
	return s.store.readFeeds(ctx, caller.GameID)
}

// AppendEvent appends the event of an entry, as it is stored and published. It returns an error for
// one that this build cannot read, with its position if that can be read.
func (f *Feed) AppendEvent(b []byte, entry string) (FeedEvent, error) {
	e, err := feed.Parse(entry)
	if err != nil {
		return FeedEvent{JSON: b, Position: e.Position}, err
	}
	return FeedEvent{e.AppendJSON(b, f.Name), e.Type, e.Position, ShareNumber(e.ID)}, nil
}

// ShareNumber returns what decides which of several servers a room, or another id, belongs to: this
// modulo their number.
func ShareNumber(id string) uint32 { return feed.ShareNumber(id) }
