package redistest

import (
	"context"
	"sync/atomic"

	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/redis/go-redis/v9"
)

// CountCommands counts the commands that the store's client sends from now on.
func CountCommands(db *redisdb.DB) *atomic.Int64 {
	sent := new(atomic.Int64)
	db.Client.AddHook(commandCounter{sent})
	return sent
}

type commandCounter struct{ sent *atomic.Int64 }

func (commandCounter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c commandCounter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.sent.Add(1)
		return next(ctx, cmd)
	}
}

func (c commandCounter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.sent.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}
