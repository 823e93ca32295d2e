package redisdb

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// IsWrongType reports whether a key held another type than the command needs: somebody wrote to the
// store by hand. Only what uses that key is affected.
func IsWrongType(err error) bool { return redis.HasErrorPrefix(err, "WRONGTYPE") }

// HashRead is what was read of one hash.
type HashRead struct {
	Fields map[string]string // empty when the hash does not exist
	Err    error             // of this hash alone; store_unavailable when its server was not reached
}

// ReadHashes reads whole hashes in one round trip to each server, in the order of keys.
func (db *DB) ReadHashes(ctx context.Context, keys []string) []HashRead {
	commands := make([]*redis.MapStringStringCmd, len(keys))
	_, _ = db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			commands[i] = p.HGetAll(ctx, key)
		}
		return nil
	})
	hashes := make([]HashRead, len(keys))
	for i, command := range commands {
		hashes[i] = HashRead{command.Val(), WrapError("read "+keys[i], command.Err())}
	}
	return hashes
}
