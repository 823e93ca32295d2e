package redisdb

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// timeLimit ends a command or a pipeline after commandTimeout, with all its tries: those of
// go-redis add up to several times the limit of a single one.
type timeLimit struct{ shared *sharedLimit }

func (timeLimit) DialHook(next redis.DialHook) redis.DialHook { return next }

func (timeLimit) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		ctx, cancel := context.WithTimeout(ctx, commandTimeout)
		defer cancel()
		return next(ctx, command)
	}
}

func (l timeLimit) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if ctx == context.Background() { // of a batchQueue
			return next(l.shared.context(), commands)
		}
		ctx, cancel := context.WithTimeout(ctx, commandTimeout)
		defer cancel()
		return next(ctx, commands)
	}
}

// sharedLimit returns contexts that batches started at the same moment share. A context and a timer
// for each batch were an eighth of the bytes that a relayed message allocated.
type sharedLimit struct {
	mu     sync.Mutex
	ctx    context.Context
	cancel context.CancelFunc // of ctx; never called, because others still use it: it ends by its deadline
	madeAt time.Time
}

const limitSharedFor = 100 * time.Millisecond

// context returns a context that ends after commandTimeout, or up to limitSharedFor earlier.
func (l *sharedLimit) context() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); l.ctx == nil || now.Sub(l.madeAt) >= limitSharedFor {
		l.madeAt = now
		l.ctx, l.cancel = context.WithTimeout(context.Background(), commandTimeout)
	}
	return l.ctx
}
