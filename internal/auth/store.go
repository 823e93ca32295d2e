package auth

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/principal"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/secret"
	"github.com/parlor-games/parlor/internal/users"
	"github.com/parlor-games/parlor/internal/wire"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

type store struct {
	db     *redisdb.DB
	pepper atomic.Pointer[string]
}

// keyedDigest returns the keyed digest of a credential. Its key, the pepper, is made once for the
// installation and never changes, unlike signing keys: another one would lock out everybody who
// signs in by a credential.
func (s *store) keyedDigest(ctx context.Context, kind users.Kind, credential string) (string, error) {
	pepper := s.pepper.Load()
	if pepper == nil {
		if err := s.db.Client.SetNX(ctx, keys.Pepper(), secret.New(), 0).Err(); err != nil {
			return "", redisdb.WrapError("make the pepper", err)
		}
		text, err := s.db.Client.Get(ctx, keys.Pepper()).Result()
		if err != nil {
			return "", redisdb.WrapError("read the pepper", err)
		}
		pepper = &text
		s.pepper.Store(pepper)
	}
	mac := hmac.New(sha256.New, []byte(*pepper))
	mac.Write([]byte(kind + "\x00" + credential))
	return hex.EncodeToString(mac.Sum(nil)), nil
}

// startFamily stores the first refresh token of a family that ends when it is idle for idleTTL, at
// the latest after ttl.
func (s *store) startFamily(ctx context.Context, t refreshToken, game int64, idleTTL, ttl time.Duration) error {
	reply, err := s.db.RunScript(ctx, scripts.RefreshStart, []string{keys.RefreshFamily(t.userID, t.family)},
		t.digest(), game, idleTTL.Milliseconds(), ttl.Milliseconds())
	if err != nil {
		return err
	}
	return reply.Err(scripts.RefreshStart)
}

// rotateRefreshToken replaces the presented refresh token of a family by the next one.
func (s *store) rotateRefreshToken(ctx context.Context, presented, next refreshToken, idleTTL time.Duration) error {
	reply, err := s.db.RunScript(ctx, scripts.RefreshRotate, []string{keys.RefreshFamily(presented.userID,
		presented.family)},
		presented.digest(), next.digest(), idempotency.NewNonce(), idleTTL.Milliseconds())
	if err != nil {
		return err
	}
	return reply.Err(scripts.RefreshRotate)
}

func (s *store) deleteFamily(ctx context.Context, user int64, family string) error {
	return redisdb.WrapError("revoke refresh tokens", s.db.Client.Del(ctx, keys.RefreshFamily(user, family)).Err())
}

// storedTicket is the Authentication of a ticket in the store.
type storedTicket struct {
	Role          principal.Role `json:"role"`
	UserID        int64          `json:"user,omitzero"`
	GameID        int64          `json:"game,omitzero"`
	ExpiresAt     time.Time      `json:"expires,omitzero"`
	RefreshFamily string         `json:"session,omitzero"`
}

func (s *store) saveTicket(ctx context.Context, digest string, a Authentication, ttl time.Duration) error {
	text, err := wire.Marshal(storedTicket{a.Role, a.UserID, a.GameID, a.ExpiresAt, a.RefreshFamily})
	if err != nil {
		return fmt.Errorf("encode a ticket: %w", err)
	}
	return redisdb.WrapError("save a ticket", s.db.Client.Set(ctx, keys.Ticket(digest), text, ttl).Err())
}

// consumeTicket deletes a ticket and returns whose it was.
func (s *store) consumeTicket(ctx context.Context, digest string) (Authentication, error) {
	text, err := s.db.Client.GetDel(ctx, keys.Ticket(digest)).Result()
	if errors.Is(err, redis.Nil) {
		return Authentication{}, apierror.Unauthenticated.WithReason("the ticket is used, over or unknown")
	}
	if err != nil {
		return Authentication{}, redisdb.WrapError("read a ticket", err)
	}
	var t storedTicket
	if err := wire.Unmarshal([]byte(text), &t); err != nil {
		return Authentication{}, fmt.Errorf("decode a ticket: %w", err)
	}
	caller := principal.Caller{Role: t.Role, UserID: t.UserID, GameID: t.GameID}
	return Authentication{Caller: caller, ExpiresAt: t.ExpiresAt, RefreshFamily: t.RefreshFamily}, nil
}

// lease is what a node got from a bucket in Redis.
type lease struct {
	permits   int64         // that the node may use, 0 when there was none
	untilFull time.Duration // until the bucket is full
}

// takePermits takes up to wanted permits, and charges those that this node used already. It waits
// less for the store than other calls do, since a request waits for it.
func (s *store) takePermits(ctx context.Context, key bucketKey, limit Limit, wanted, used int64) (lease, error) {
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTimeout)
	defer cancel()
	call := rateLimitCall(key, limit, wanted, used)
	reply, err := s.db.RunScript(detached, scripts.RateLimitTake, call.Keys, call.Args...)
	if err != nil {
		return lease{}, err
	}
	return decodeLease(reply)
}

// charge charges the permits of all reports in one pipeline. The i-th result is of the i-th report;
// the error is the first one of any.
func (s *store) charge(ctx context.Context, reports []usageReport) ([]lease, error) {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	calls := make([]redisdb.ScriptCall, len(reports))
	for i, r := range reports {
		calls[i] = rateLimitCall(r.bucket.key, r.limit, 0, r.used)
	}
	leases := make([]lease, len(reports))
	replies, err := s.db.RunScriptPipelined(ctx, scripts.RateLimitTake, calls)
	if err != nil {
		return leases, err
	}
	for i, reply := range replies {
		if leases[i], err = decodeLease(reply); err != nil {
			return leases, err
		}
	}
	return leases, nil
}

func rateLimitCall(key bucketKey, limit Limit, wanted, used int64) redisdb.ScriptCall {
	return redisdb.ScriptCall{
		Keys: []string{keys.RateLimit(string(key.class), key.actor)},
		Args: []any{limit.microsPerPermit(), limit.Burst, wanted, used},
	}
}

func decodeLease(reply redisdb.Reply) (lease, error) {
	if reply.Status != scripts.OK && reply.Status != apierror.RateLimited.Code {
		return lease{}, reply.Err(scripts.RateLimitTake)
	}
	values := redisdb.NewValues("a rate limit", reply.Values)
	l := lease{permits: values.NextInt(), untilFull: time.Duration(values.NextInt()) * time.Microsecond}
	return l, values.Err()
}
