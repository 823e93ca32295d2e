package redistest

import (
	"context"
	"io"

	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/redis/go-redis/v9"
)

// FailCommands makes every command of the store's client fail as in an outage, while enabled
// returns true.
func FailCommands(db *redisdb.DB, enabled func() bool) { db.Client.AddHook(commandFailer{enabled}) }

type commandFailer struct{ enabled func() bool }

func (commandFailer) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f commandFailer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if f.enabled() {
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		return next(ctx, cmd)
	}
}

func (f commandFailer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if f.enabled() {
			for _, cmd := range cmds {
				cmd.SetErr(io.EOF)
			}
			return io.EOF
		}
		return next(ctx, cmds)
	}
}
