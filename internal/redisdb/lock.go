package redisdb

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/parlor-games/parlor/scripts"
)

// RunAsLeader tries once to become the holder of a lock and, when it succeeds, runs work and lets the lock go.
// It answers false without an error when somebody else holds the lock.
//
// A lock is a lease on wall clocks: a process that was paused may believe in a lock that has passed on.
// So work gets a fence, a number that grows with every holder, for the scripts that it guards to refuse older
// ones; its context ends when the lease does. No invariant of Parlor rests on a lock being held.
func (db *DB) RunAsLeader(ctx context.Context, lock, fence string, lease time.Duration, work func(ctx context.Context, fence int64) error) (bool, error) {
	m := redsync.New(goredis.NewPool(db.Client)).NewMutex(lock, redsync.WithExpiry(lease), redsync.WithTries(1))
	if err := m.TryLockContext(ctx); err != nil {
		var taken *redsync.ErrTaken
		if errors.As(err, &taken) || errors.Is(err, redsync.ErrFailed) {
			return false, nil
		}
		return false, WrapError("lock "+lock, err)
	}
	// The lock must be let go even when the caller has gone: redsync's release would die with its context.
	defer func() {
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), ioTimeout)
		defer cancel()
		_, _ = m.UnlockContext(release) // a lease that ran out is somebody else's by now
	}()

	word, rest, err := db.Run(ctx, scripts.FencingTokenIssue, []string{lock, fence}, m.Value())
	if err != nil {
		return false, err
	}
	if word != "ok" {
		return false, nil
	}
	number, err := strconv.ParseInt(rest[0], 10, 64)
	if err != nil {
		return false, fmt.Errorf("read the fence of %s: %w", lock, err)
	}
	leased, cancel := context.WithDeadline(ctx, m.Until())
	defer cancel()
	return true, work(leased, number)
}
