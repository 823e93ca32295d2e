package redistest

import (
	"context"
	"sync/atomic"

	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/redis/go-redis/v9"
)

// CountCommands counts the commands that the store's client sends from now on.
func CountCommands(db *redisdb.DB) *atomic.Int64 {
	sent := new(atomic.Int64)
	ObserveCommands(db, func(commands []redis.Cmder) { sent.Add(int64(len(commands))) })
	return sent
}

// ObserveCommands calls observe before the store's client sends a command or a pipeline, from now
// on. Calls may overlap.
func ObserveCommands(db *redisdb.DB, observe func(commands []redis.Cmder)) {
	db.Client.AddHook(commandObserver(observe))
}

type commandObserver func(commands []redis.Cmder)

func (commandObserver) DialHook(next redis.DialHook) redis.DialHook { return next }

func (o commandObserver) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		o([]redis.Cmder{cmd})
		return next(ctx, cmd)
	}
}

func (o commandObserver) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		o(commands)
		return next(ctx, commands)
	}
}
