package redisdb_test

import (
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/storecost"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

func TestUsageHasTheCommandsAndReplyBytesOfAContext(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		const key = "usage"
		large := strings.Repeat("x", 1000)
		read := func(what string, send func(u *storecost.Cost) error, commands, bytes int64) {
			t.Helper()
			var u *storecost.Cost
			for range 2 { // the first one may have opened a connection
				u = new(storecost.Cost)
				testkit.Check(t, send(u), "%s", what)
			}
			if u.Commands() != commands || u.ReplyBytes() < bytes || u.ReplyBytes() > bytes+100 {
				t.Errorf("%s counts as %d commands and %d bytes, want %d and %d", what, u.Commands(), u.ReplyBytes(), commands,
					bytes)
			}
		}
		testkit.Check(t, db.Client.HSet(t.Context(), key, "a", large, "b", large).Err())
		t.Cleanup(func() { db.Client.Del(t.Context(), key) })
		read("a command", func(u *storecost.Cost) error {
			return db.Client.HGet(storecost.With(t.Context(), u), key, "a").Err()
		}, 1, 1000)
		read("a pipeline", func(u *storecost.Cost) error {
			ctx := storecost.With(t.Context(), u)
			_, err := db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
				p.HMGet(ctx, key, "a", "b", "c")
				p.HGetAll(ctx, key)
				return nil
			})
			return err
		}, 2, 4000)
		read("an automatic pipeline", func(u *storecost.Cost) error {
			_, err := db.AutoPipelined.HGetAll(storecost.With(t.Context(), u), key).Result()
			return err
		}, 1, 2000)
		read("another context", func(*storecost.Cost) error { return db.Client.HGet(t.Context(), key, "a").Err() }, 0, 0)
	})
}
