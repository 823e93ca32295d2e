package redisdb

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// ReadHashes reads whole hashes in one round trip, in the order of keys; one that does not exist is empty.
// It returns store_unavailable when the store cannot be reached.
func (db *DB) ReadHashes(ctx context.Context, keys []string) ([]map[string]string, error) {
	commands := make([]*redis.MapStringStringCmd, len(keys))
	_, err := db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			commands[i] = p.HGetAll(ctx, key)
		}
		return nil
	})
	if err != nil {
		return nil, WrapError("read hashes", err)
	}
	hashes := make([]map[string]string, len(keys))
	for i, command := range commands {
		hashes[i] = command.Val()
	}
	return hashes, nil
}
