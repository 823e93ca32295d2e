package redisdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// RunScript runs a script. A status that is an error code is part of the reply, not an error: only the caller knows what the
// values after it mean. It returns store_unavailable when the store cannot be reached.
func (db *DB) RunScript(ctx context.Context, s *scripts.Script, keys []string, args ...any) (Reply, error) {
	command := make([]any, 3, 3+len(keys)+len(args))
	command[0], command[1], command[2] = "evalsha", s.SHA, len(keys)
	for _, key := range keys {
		command = append(command, key)
	}
	cmd := redis.NewCmd(ctx, append(command, args...)...)
	cmd.SetFirstKeyPos(3)
	_ = db.scripts.Process(ctx, cmd)
	values, err := cmd.StringSlice()
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		values, err = db.AutoPipelined.Eval(ctx, s.Source, keys, args...).StringSlice()
	}
	if err != nil {
		return Reply{}, WrapError("run "+s.Name, err)
	}
	if len(values) == 0 {
		return Reply{}, fmt.Errorf("run %s: the reply is empty", s.Name)
	}
	return Reply{Status: values[0], Values: values[1:]}, nil
}

// Run is RunScript with the reply taken apart.
func (db *DB) Run(ctx context.Context, s *scripts.Script, keys []string, args ...any) (word string, rest []string, err error) {
	reply, err := db.RunScript(ctx, s, keys, args...)
	return reply.Status, reply.Values, err
}

// StatusError returns the error of a script's status.
func StatusError(s *scripts.Script, status scripts.Status) error { return Reply{Status: status}.Err(s) }

// WrapError returns err with the operation in front of it, "read the wallet"; nil for nil. An outage is also store_unavailable;
// redis.Nil is returned as it is.
func WrapError(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, redis.Nil):
		return redis.Nil
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", doing, err)
	case isOutage(err):
		return fmt.Errorf("%s: %w (%w)", doing, apierror.StoreUnavailable, err)
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
}

// isOutage reports whether the store could not be reached or does not serve, so that the same request may succeed later.
func isOutage(err error) bool {
	var network net.Error
	if errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, redis.ErrClosed) || errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) ||
		errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	text := err.Error()
	for _, word := range []string{"LOADING", "READONLY", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "BUSY", "OOM", "NOREPLICAS", "MISCONF", "MOVED", "ASK"} {
		if strings.HasPrefix(text, word+" ") {
			return true
		}
	}
	return strings.HasPrefix(text, "redis: all sentinels")
}
