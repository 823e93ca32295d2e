package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/principal"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/users"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

type store struct {
	db     *redisdb.DB
	pepper atomic.Pointer[string]
}

// digest is the keyed digest under which a proof is known. The key is made once for the installation and stays, unlike signing keys: whoever
// replaced it would lock out everybody who signs in by what they know.
func (s *store) digest(ctx context.Context, kind users.Kind, proof string) (string, error) {
	pepper := s.pepper.Load()
	if pepper == nil {
		if err := s.db.Client.SetNX(ctx, keys.Pepper(), rand.Text()+rand.Text(), 0).Err(); err != nil {
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
	mac.Write([]byte(kind + "\x00" + proof))
	return hex.EncodeToString(mac.Sum(nil)), nil
}

func (s *store) startFamily(ctx context.Context, t refreshToken, game int64, idle, longest time.Duration) error {
	_, _, err := s.db.Run(ctx, scripts.RefreshStart, []string{keys.Refresh(t.user, t.family)},
		t.digest(), game, idle.Milliseconds(), longest.Milliseconds())
	return err
}

func (s *store) rotate(ctx context.Context, shown, following refreshToken, idle time.Duration) error {
	word, _, err := s.db.Run(ctx, scripts.RefreshRotate, []string{keys.Refresh(shown.user, shown.family)},
		shown.digest(), following.digest(), mathrand.Int64N(1<<48), idle.Milliseconds())
	if err != nil || word == "ok" {
		return err
	}
	return redisdb.StatusError(scripts.RefreshRotate, word)
}

func (s *store) dropFamily(ctx context.Context, user int64, family string) error {
	return redisdb.WrapError("revoke refresh tokens", s.db.Client.Del(ctx, keys.Refresh(user, family)).Err())
}

// storedTicket is a credential at rest.
type storedTicket struct {
	Role    principal.Role `json:"role"`
	User    int64          `json:"user,omitzero"`
	Game    int64          `json:"game,omitzero"`
	Expires time.Time      `json:"expires,omitzero"`
	Session string         `json:"session,omitzero"`
}

func (s *store) keepTicket(ctx context.Context, digest string, c Credential, ttl time.Duration) error {
	text, err := json.Marshal(storedTicket{c.Role, c.User, c.Game, c.Expires, c.Session})
	if err != nil {
		return fmt.Errorf("encode a ticket: %w", err)
	}
	return redisdb.WrapError("keep a ticket", s.db.Client.Set(ctx, keys.Ticket(digest), text, ttl).Err())
}

func (s *store) takeTicket(ctx context.Context, digest string) (Credential, error) {
	text, err := s.db.Client.GetDel(ctx, keys.Ticket(digest)).Result()
	if errors.Is(err, redis.Nil) {
		return Credential{}, apierror.Unauthenticated.WithReason("the ticket is used, over or unknown")
	}
	if err != nil {
		return Credential{}, redisdb.WrapError("take a ticket", err)
	}
	var t storedTicket
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return Credential{}, fmt.Errorf("decode a ticket: %w", err)
	}
	return Credential{Caller: principal.Caller{Role: t.Role, User: t.User, Game: t.Game}, Expires: t.Expires, Session: t.Session}, nil
}

// taken is what rate_limit_take returns.
type taken struct {
	given, left int64
	retry, full time.Duration
}

// take takes up to wanted permits. It waits less for the store than others do, since a call is waiting to begin.
func (s *store) take(ctx context.Context, class Class, who string, limit Limit, wanted int64) (taken, error) {
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeTimeout)
	defer cancel()
	word, rest, err := s.db.Run(detached, scripts.RateLimitTake, []string{keys.Rate(string(class), who)}, limit.each(), limit.Burst, wanted)
	if err != nil {
		return taken{}, err
	}
	n := make([]int64, len(rest))
	for i, text := range rest {
		if n[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return taken{}, fmt.Errorf("read a rate limit: %w", err)
		}
	}
	switch word {
	case "ok":
		return taken{given: n[0], left: n[1], full: time.Duration(n[2]) * time.Microsecond}, nil
	case "rate_limited":
		return taken{retry: time.Duration(n[0]) * time.Microsecond, full: time.Duration(n[1]) * time.Microsecond}, nil
	default:
		return taken{}, redisdb.StatusError(scripts.RateLimitTake, word)
	}
}
