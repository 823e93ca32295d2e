package redisdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/parlor-games/parlor/fault"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// Run runs a script and answers its word and what follows it. A word that is in the vocabulary of
// package fault is still an answer, not an error: the caller knows what its details mean.
func (db *DB) Run(ctx context.Context, s *scripts.Script, keys []string, args ...any) (word string, rest []string, err error) {
	command := make([]any, 3, 3+len(keys)+len(args))
	command[0], command[1], command[2] = "evalsha", &s.SHA, len(keys)
	for i := range keys {
		command = append(command, &keys[i]) // a pointer needs no copy of the text
	}
	cmd := redis.NewCmd(ctx, append(command, args...)...)
	cmd.SetFirstKeyPos(3)
	_ = db.scripts.Process(ctx, cmd)
	reply, err := cmd.StringSlice()
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = db.Shared.Eval(ctx, s.Source, keys, args...).StringSlice()
	}
	if err != nil {
		return "", nil, Fail("run "+s.Name, err)
	}
	if len(reply) == 0 {
		return "", nil, fmt.Errorf("run %s: the answer is empty", s.Name)
	}
	return reply[0], reply[1:], nil
}

// Refused turns a script's word into its refusal; a word outside the vocabulary is a failure.
func Refused(s *scripts.Script, word string) error {
	if r, ok := fault.Lookup(word); ok {
		return r
	}
	return fmt.Errorf("run %s: unknown answer %q", s.Name, word)
}

// Fail wraps what go wrong with the store, and nil into nil. doing names the operation in a few words: "read the wallet".
// An outage becomes fault.StoreUnavailable; redis.Nil is passed on as it is.
func Fail(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, redis.Nil):
		return redis.Nil
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", doing, err)
	case outage(err):
		return fmt.Errorf("%s: %w (%w)", doing, fault.StoreUnavailable, err)
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
}

// outage tells whether the store could not be reached or does not serve, so that the same request may succeed later.
func outage(err error) bool {
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
