package redisdb

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// IsWrongType reports whether a key held another type than the command needs: somebody wrote to the
// store by hand. Only what uses that key is affected.
func IsWrongType(err error) bool { return redis.HasErrorPrefix(err, "WRONGTYPE") }

// Hash has the fields of a hash and their values as the store returns them: field, value, field,
// value, … It is a list instead of a map because every change of a room reads a hash of a dozen
// fields once: making a map would cost more than searching the list.
type Hash []string

// HashOf returns the fields of a map.
func HashOf(fields map[string]string) Hash {
	h := make(Hash, 0, 2*len(fields))
	for field, value := range fields {
		h = append(h, field, value)
	}
	return h
}

// Get returns the value of a field and reports whether it is there.
func (h Hash) Get(field string) (value string, ok bool) {
	for i := 0; i+1 < len(h); i += 2 {
		if h[i] == field {
			return h[i+1], true
		}
	}
	return "", false
}

// Text returns the value of a field, "" when it is absent.
func (h Hash) Text(field string) string {
	value, _ := h.Get(field)
	return value
}

// All calls yield for each field and its value.
func (h Hash) All(yield func(field, value string) bool) {
	for i := 0; i+1 < len(h); i += 2 {
		if !yield(h[i], h[i+1]) {
			return
		}
	}
}

// HashRead is what was read of one hash.
type HashRead struct {
	Fields Hash  // empty when the hash does not exist
	Err    error // of this hash alone; store_unavailable when its server was not reached
}

// ReadHashes reads whole hashes in one round trip to each server, in the order of keys.
func (db *DB) ReadHashes(ctx context.Context, keys []string) []HashRead {
	commands := make([]*redis.StringSliceCmd, len(keys))
	_, _ = db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			commands[i] = newHGetAll(ctx, key)
			_ = p.Process(ctx, commands[i])
		}
		return nil
	})
	hashes := make([]HashRead, len(keys))
	for i, command := range commands {
		hashes[i] = HashRead{command.Val(), WrapError("read "+keys[i], command.Err())}
	}
	return hashes
}

// newHGetAll returns the command that reads a hash. Its reply is an array in RESP 2, which the
// client speaks (respVersion).
func newHGetAll(ctx context.Context, key string) *redis.StringSliceCmd {
	return redis.NewStringSliceCmd(ctx, "hgetall", key)
}
