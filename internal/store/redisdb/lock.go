package redisdb

import (
	"context"
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/parlor-games/parlor/scripts"
)

// RunAsLeader tries once to acquire a lock and, when it succeeds, runs work and releases the lock.
// It returns false without an error when another process holds the lock. lock and fence are keys.
//
// A lock is a lease on wall clocks: a process that was paused may still believe that it holds a
// lock which another one has acquired. Therefore work gets a fencing token, a number that grows
// with every holder, so that the scripts it runs can reject older ones; its context ends when the
// lease does. No invariant of Parlor depends on a lock being held.
func (db *DB) RunAsLeader(
	ctx context.Context, lock, fence string, lease time.Duration, work func(ctx context.Context, fence int64) error,
) (bool, error) {
	return db.runLocked(ctx, lock, fence, lease, func(ctx context.Context, m *redsync.Mutex, number int64) error {
		leased, cancel := context.WithDeadline(ctx, m.Until())
		defer cancel()
		return work(leased, number)
	})
}

// HoldLead is RunAsLeader for work that goes on until its context ends: the lease is renewed, and
// the context ends when that fails until the lease is over.
func (db *DB) HoldLead(
	ctx context.Context, lock, fence string, lease time.Duration, work func(ctx context.Context, fence int64) error,
) (bool, error) {
	return db.runLocked(ctx, lock, fence, lease, func(ctx context.Context, m *redsync.Mutex, number int64) error {
		leased, cancel := context.WithCancel(ctx)
		renewed := make(chan struct{})
		go func() {
			defer close(renewed)
			defer cancel()
			renewLock(leased, m, lease/renewalsPerLease)
		}()
		err := work(leased, number)
		cancel()
		<-renewed
		return err
	})
}

// renewalsPerLease is how many times a lease is renewed in its own time.
const renewalsPerLease = 3

// renewLock renews a lock until ctx ends or the lease is over.
func renewLock(ctx context.Context, m *redsync.Mutex, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		attempt, cancel := context.WithDeadline(ctx, m.Until())
		renewed, err := m.ExtendContext(attempt)
		cancel()
		var taken *redsync.ErrTaken
		if !renewed && (errors.As(err, &taken) || errors.Is(err, redsync.ErrExtendFailed) || !time.Now().Before(m.Until())) {
			return
		}
	}
}

// runLocked tries once to acquire a lock and, when it succeeds, runs work with a fencing token and
// releases the lock.
func (db *DB) runLocked(
	ctx context.Context, lock, fence string, lease time.Duration,
	work func(ctx context.Context, m *redsync.Mutex, number int64) error,
) (bool, error) {
	m := redsync.New(lockPool{db}).NewMutex(lock, redsync.WithExpiry(lease), redsync.WithTries(1),
		redsync.WithTimeoutFactor(lockTimeout.Seconds()/lease.Seconds()))
	if err := m.TryLockContext(ctx); err != nil {
		var taken *redsync.ErrTaken
		if errors.As(err, &taken) || errors.Is(err, redsync.ErrFailed) {
			return false, nil
		}
		return false, WrapError("lock "+lock, err)
	}
	defer releaseLock(ctx, m)

	reply, err := db.RunScript(ctx, scripts.FencingTokenIssue, []string{lock, fence},
		scripts.FencingTokenIssueArgs{Value: m.Value()}.List()...)
	if err != nil {
		return false, err
	}
	if reply.Status != scripts.OK {
		return false, nil
	}
	values := NewValues("the fence of "+lock, reply.Values)
	number := values.NextInt()
	if err := values.Err(); err != nil {
		return false, err
	}
	return true, work(ctx, m, number)
}

// lockTimeout is how long an attempt to lock waits: as long as its commands may take. With a
// shorter time, a command of an attempt that was given up could still be sent when the store is
// back, and take the lock for nobody.
const lockTimeout = 2 * commandTimeout

// releaseRetryDelay is the time between two attempts to release a lock.
const releaseRetryDelay = 50 * time.Millisecond

// releaseLock releases a lock, also after the caller's context has ended. While the store cannot be
// reached it retries until the lease expires, unless that context has ended. Without this, no node
// could lead for the rest of the lease after the store is back.
func releaseLock(ctx context.Context, m *redsync.Mutex) {
	for {
		attempt, cancel := context.WithTimeout(context.WithoutCancel(ctx), ioTimeout)
		released, err := m.UnlockContext(attempt)
		cancel()
		var failed *redsync.RedisError
		if released || !errors.As(err, &failed) || !isOutage(failed.Err) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(releaseRetryDelay, time.Until(m.Until()))):
		}
		if !time.Now().Before(m.Until()) {
			return
		}
	}
}

// TryAcquire takes a name for a time that nobody has taken; it reports whether it did. value must
// be the call's own. A full store takes it too.
func (db *DB) TryAcquire(ctx context.Context, name, value string, lease time.Duration) (bool, error) {
	reply, err := db.RunScript(ctx, scripts.LockAcquire, []string{name},
		scripts.LockAcquireArgs{Value: value, LeaseMS: lease.Milliseconds()}.List()...)
	return err == nil && reply.Status == scripts.OK, err
}

// lockPool is redsync's pool, but that a full store gives locks too: SET NX it would refuse, and
// without a leader nothing would ever be freed.
type lockPool struct{ db *DB }

func (p lockPool) Get(ctx context.Context) (redsyncredis.Conn, error) {
	conn, err := goredis.NewPool(p.db.Client).Get(ctx)
	return lockConn{conn, ctx, p.db}, err
}

type lockConn struct {
	redsyncredis.Conn
	ctx context.Context // of one use of the connection, as redsync wants it
	db  *DB
}

// SetNX does not queue its command: what waits in a queue is sent also when its caller has gone.
func (c lockConn) SetNX(name, value string, expiry time.Duration) (bool, error) {
	args := scripts.LockAcquireArgs{Value: value, LeaseMS: expiry.Milliseconds()}.List()
	call := ScriptCall{Keys: []string{name}, Args: args}
	result := c.db.RunScriptPipelined(c.ctx, scripts.LockAcquire, []ScriptCall{call})[0]
	return result.Failure == nil && result.Status == scripts.OK, result.Failure
}
