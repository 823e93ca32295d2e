package idempotency

import (
	"context"
	"fmt"
	"time"

	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/scripts"
)

type store struct{ db *redisdb.DB }

// begin answers ok, or replay and the sealed answer.
func (s *store) begin(ctx context.Context, r *Execution, lease time.Duration) (word, sealed string, err error) {
	word, rest, err := s.db.Run(ctx, scripts.IdempotencyBegin, []string{keys.Answer(r.who, r.digest())},
		r.fingerprint, r.owner, lease.Milliseconds())
	switch {
	case err != nil:
		return "", "", err
	case word == "ok":
		return word, "", nil
	case word == "replay":
		return word, rest[0], nil
	default:
		return "", "", redisdb.StatusError(scripts.IdempotencyBegin, word)
	}
}

func (s *store) finish(ctx context.Context, r *Execution, sealed string, ttl time.Duration) error {
	word, _, err := s.db.Run(ctx, scripts.IdempotencyFinish, []string{keys.Answer(r.who, r.digest())},
		r.fingerprint, r.owner, sealed, ttl.Milliseconds())
	if err == nil && word == "stale" {
		err = fmt.Errorf("keep an answer: %w", errStale)
	}
	return err
}

func (s *store) release(ctx context.Context, r *Execution) error {
	_, _, err := s.db.Run(ctx, scripts.IdempotencyRelease, []string{keys.Answer(r.who, r.digest())}, r.owner)
	return err
}
