package redisdb

import (
	"context"

	"github.com/parlor-games/parlor/internal/base/storecost"
	"github.com/redis/go-redis/v9"
)

// costHook counts commands in the storecost.Cost of their context. What AutoPipelined sends has
// another context and is counted where it is queued.
type costHook struct{}

func (costHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (costHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		err := next(ctx, command)
		if u := storecost.Of(ctx); u != nil {
			u.Add(1, replyBytes(command))
		}
		return err
	}
}

func (costHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		err := next(ctx, commands)
		if u := storecost.Of(ctx); u != nil {
			for _, command := range commands {
				u.Add(1, replyBytes(command))
			}
		}
		return err
	}
}

// valueHeadBytes is the overhead of a value in a reply: its type, its length and line ends.
const valueHeadBytes = 8

// replyBytes returns about how many bytes the reply to a command had.
func replyBytes(command redis.Cmder) int64 {
	switch c := command.(type) {
	case *redis.StringCmd:
		return bytesOf(c.Val())
	case *redis.StringSliceCmd:
		return bytesOf(c.Val())
	case *redis.SliceCmd:
		return bytesOf(c.Val())
	case *redis.MapStringStringCmd:
		size := int64(valueHeadBytes)
		for field, value := range c.Val() {
			size += bytesOf(field) + bytesOf(value)
		}
		return size
	case *redis.ZSliceCmd:
		size := int64(valueHeadBytes)
		for _, z := range c.Val() {
			size += bytesOf(z.Member) + 2*valueHeadBytes
		}
		return size
	case *redis.XMessageSliceCmd:
		size := int64(valueHeadBytes)
		for _, message := range c.Val() {
			size += bytesOf(message.ID)
			for field, value := range message.Values {
				size += bytesOf(field) + bytesOf(value)
			}
		}
		return size
	case *redis.Cmd:
		return bytesOf(c.Val())
	default:
		return valueHeadBytes
	}
}

// bytesOf returns about how many bytes a value takes in a reply.
func bytesOf(value any) int64 {
	size := int64(valueHeadBytes)
	switch v := value.(type) {
	case string:
		size += int64(len(v))
	case []string:
		for _, text := range v {
			size += bytesOf(text)
		}
	case []any:
		for _, one := range v {
			size += bytesOf(one)
		}
	}
	return size
}
