package redistest

import (
	"context"
	"slices"
	"strings"

	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/redis/go-redis/v9"
)

// LoseReplies makes the store's client run every script twice and return the second reply, as it
// does when the first one was lost. It does so while enabled returns true; nil is always.
func LoseReplies(db *redisdb.DB, enabled func() bool) {
	db.Client.AddHook(replyLoser{enabled})
}

type replyLoser struct{ enabled func() bool }

func (replyLoser) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l replyLoser) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if err := next(ctx, cmds); err != nil || !slices.ContainsFunc(cmds, l.loses) {
			return err
		}
		return next(ctx, cmds)
	}
}

func (l replyLoser) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := next(ctx, cmd); err != nil || !l.loses(cmd) {
			return err
		}
		return next(ctx, cmd)
	}
}

func (l replyLoser) loses(cmd redis.Cmder) bool {
	return strings.HasPrefix(cmd.Name(), "eval") && (l.enabled == nil || l.enabled())
}
