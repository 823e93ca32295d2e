package redisdb

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// timeLimit ends a command or a pipeline after commandTimeout, with all its tries: those of
// go-redis add up to several times the limit of a single one.
type timeLimit struct{}

func (timeLimit) DialHook(next redis.DialHook) redis.DialHook { return next }

func (timeLimit) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		ctx, cancel := context.WithTimeout(ctx, commandTimeout)
		defer cancel()
		return next(ctx, command)
	}
}

func (timeLimit) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		ctx, cancel := context.WithTimeout(ctx, commandTimeout)
		defer cancel()
		return next(ctx, commands)
	}
}
