package redisdb

import (
	"context"
	"errors"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/redis/go-redis/v9"
)

// PublishedEntry is an entry of a room's or a player's list, as it was published.
type PublishedEntry struct {
	RoomID string // of the room's list, else ""
	UserID int64  // of the player's list, else 0
	Entry  string // in the form of package events
}

// WatchEvents calls handle for the events of all rooms and wallets, one after the other, until ctx
// ends. It is for a terminal: events published while the connection is down are missed. It returns
// an error on a Cluster, where no single connection receives all events.
func (db *DB) WatchEvents(ctx context.Context, handle func(PublishedEntry)) error {
	client, ok := db.Client.(*redis.Client)
	if !ok {
		return errors.New("events can be watched on a single Redis only")
	}
	subscription := client.PSubscribe(ctx, "*:events", "*:lines")
	defer func() { _ = subscription.Close() }()
	messages := subscription.Channel()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case m, ok := <-messages:
			if !ok {
				return nil
			}
			if roomID, ok := keys.ParseRoomEvents(m.Channel); ok {
				handle(PublishedEntry{RoomID: roomID, Entry: m.Payload})
			} else if userID, ok := keys.ParseWalletLines(m.Channel); ok {
				handle(PublishedEntry{UserID: userID, Entry: m.Payload})
			}
		}
	}
}
