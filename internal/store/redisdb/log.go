package redisdb

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"
)

// SetLogger sends the messages of go-redis itself, such as every failed dial, to a log at the level
// debug. The caller of the failed command gets an error; these lines only repeat it. SetLogger
// holds for the whole process.
func SetLogger(log *slog.Logger) { redis.SetLogger(driverLog{log}) }

type driverLog struct{ log *slog.Logger }

func (d driverLog) Printf(ctx context.Context, format string, args ...any) {
	if d.log.Enabled(ctx, slog.LevelDebug) {
		d.log.LogAttrs(ctx, slog.LevelDebug, "redis driver", slog.String("message", fmt.Sprintf(format, args...)))
	}
}
