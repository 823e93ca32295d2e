package idempotency

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
)

type store struct{ db *redisdb.DB }

// begin claims a request for an execution, or returns the encrypted response of an earlier one, ""
// when there is none. It returns request_in_progress or idempotency_key_reused.
func (s *store) begin(ctx context.Context, e *Execution, lease time.Duration) (encrypted string, err error) {
	reply, err := s.db.RunScript(ctx, scripts.IdempotencyBegin, []string{e.recordKey()},
		scripts.IdempotencyBeginArgs{
			Fingerprint: e.fingerprint, Owner: e.owner, LeaseMS: lease.Milliseconds(),
		}.List()...)
	if err != nil {
		return "", err
	}
	if reply.Status == scripts.Replay {
		values := redisdb.NewValues("a stored response", reply.Values)
		return values.NextText(), values.Err()
	}
	return "", reply.Err(scripts.IdempotencyBegin)
}

// exists reports whether there is a record of a request.
func (s *store) exists(ctx context.Context, e *Execution) (bool, error) {
	n, err := s.db.Client.Exists(ctx, e.recordKey()).Result()
	return n > 0, redisdb.WrapError("find a stored response", err)
}

var errSuperseded = errors.New("another execution of the request has begun")

func (s *store) finish(ctx context.Context, e *Execution, encrypted string, ttl time.Duration) error {
	reply, err := s.db.RunScript(ctx, scripts.IdempotencyFinish, []string{e.recordKey()},
		scripts.IdempotencyFinishArgs{
			Fingerprint: e.fingerprint, Owner: e.owner, Sealed: encrypted, KeepMS: ttl.Milliseconds(),
		}.List()...)
	if err == nil && reply.Status == scripts.Stale {
		err = fmt.Errorf("store a response: %w", errSuperseded)
	}
	return err
}

func (s *store) release(ctx context.Context, e *Execution) error {
	_, err := s.db.RunScript(ctx, scripts.IdempotencyRelease, []string{e.recordKey()},
		scripts.IdempotencyReleaseArgs{Owner: e.owner}.List()...)
	return err
}

// recordKey returns the key of the request's record.
func (e *Execution) recordKey() string { return keys.StoredResponse(e.callerID, e.keyDigest()) }
