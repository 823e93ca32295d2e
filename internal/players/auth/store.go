package auth

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/secret"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/sessions"
	"github.com/parlor-games/parlor/internal/players/users"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

type store struct {
	db     *redisdb.DB
	pepper atomic.Pointer[string]
}

// keyedDigest returns the keyed digest of a credential in 43 URL-safe characters.
func (s *store) keyedDigest(ctx context.Context, kind users.Kind, credential string) (string, error) {
	sum, err := s.keyedHash(ctx, kind, credential)
	return base64.RawURLEncoding.EncodeToString(sum), err
}

// keyedHash returns the HMAC-SHA-256 of a text. Its key, the pepper, is made once for the
// installation and never changes, unlike signing keys: another one would lock out everybody who
// signs in by a credential. The label tells uses apart.
func (s *store) keyedHash(ctx context.Context, label, text string) ([]byte, error) {
	pepper := s.pepper.Load()
	if pepper == nil {
		stored, err := s.db.Client.Get(ctx, keys.Pepper()).Result()
		if errors.Is(err, redis.Nil) { // only then: a full store refuses to write
			if err := s.db.Client.SetNX(ctx, keys.Pepper(), secret.New(), 0).Err(); err != nil {
				return nil, redisdb.WrapError("make the pepper", err)
			}
			stored, err = s.db.Client.Get(ctx, keys.Pepper()).Result()
		}
		if err != nil {
			return nil, redisdb.WrapError("read the pepper", err)
		}
		pepper = &stored
		s.pepper.Store(pepper)
	}
	mac := hmac.New(sha256.New, []byte(*pepper))
	mac.Write([]byte(label + "\x00" + text))
	return mac.Sum(nil), nil
}

// forget drops what a store that was replaced has otherwise.
func (s *store) forget() { s.pepper.Store(nil) }

// family is the stored record of a family of refresh tokens.
type family struct {
	startedAt   time.Time // by the store's clock
	serverKeyID string    // that made it, or ""
}

// startFamily stores the first refresh token of a family that ends when it is idle for idleTTL, at
// the latest after ttl. It returns user_not_found.
func (s *store) startFamily(
	ctx context.Context, t refreshToken, game int64, serverKeyID string, idleTTL, ttl time.Duration,
) (family, error) {
	reply, err := s.db.RunScript(ctx, scripts.RefreshStart, familyKeys(t),
		scripts.RefreshStartArgs{
			Digest: t.digest(), Game: game, IdleMS: idleTTL.Milliseconds(), LifeMS: ttl.Milliseconds(),
			Name: t.family, ServerKey: serverKeyID,
		}.List()...)
	if err == nil {
		err = reply.Err(scripts.RefreshStart)
	}
	if err != nil {
		return family{}, err
	}
	values := redisdb.NewValues("a family of refresh tokens", reply.Values)
	return family{values.NextTime(), serverKeyID}, values.Err()
}

// rotateRefreshToken replaces the presented refresh token of a family by the next one. The token
// that was replaced last is accepted for grace longer. It returns unauthenticated and
// refresh_reused.
func (s *store) rotateRefreshToken(
	ctx context.Context, presented, next refreshToken, idleTTL, grace time.Duration,
) (family, error) {
	reply, err := s.db.RunScript(ctx, scripts.RefreshRotate, familyKeys(presented),
		scripts.RefreshRotateArgs{
			Digest: presented.digest(), NextDigest: next.digest(), IdleMS: idleTTL.Milliseconds(),
			GraceMS: grace.Milliseconds(), Name: presented.family,
		}.List()...)
	if err == nil {
		err = reply.Err(scripts.RefreshRotate)
	}
	if err != nil {
		return family{}, err
	}
	values := redisdb.NewValues("a family of refresh tokens", reply.Values)
	_ = values.NextInt() // the game
	f := family{startedAt: values.NextTime(), serverKeyID: values.NextText()}
	return f, values.Err()
}

// findFamily reports whether the family of a refresh token exists, and whether the token is its
// current one or the one before it, which a client has whose reply was lost.
func (s *store) findFamily(ctx context.Context, presented refreshToken) (isCurrent, exists bool, err error) {
	digests, err := s.db.Client.HMGet(ctx, keys.RefreshFamily(presented.userID, presented.family), "current", "prev").
		Result()
	if err != nil {
		return false, false, redisdb.WrapError("read a family of refresh tokens", err)
	}
	return slices.Contains(digests, any(presented.digest())), digests[0] != nil, nil
}

func familyKeys(t refreshToken) []string {
	return []string{keys.RefreshFamily(t.userID, t.family), keys.User(t.userID), keys.RefreshFamilies(t.userID)}
}

func (s *store) deleteFamilies(ctx context.Context, user int64, families ...string) error {
	if len(families) == 0 {
		return nil
	}
	_, err := s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, name := range families {
			p.Del(ctx, keys.RefreshFamily(user, name))
			p.ZRem(ctx, keys.RefreshFamilies(user), name)
		}
		return nil
	})
	return redisdb.WrapError("revoke refresh tokens", err)
}

// endUserSessions makes every family of a player invalid that has begun, and returns until when
// sessions are ended. It returns user_not_found.
func (s *store) endUserSessions(ctx context.Context, user int64) (beganBy time.Time, err error) {
	reply, err := s.db.RunScript(ctx, scripts.UserEndSessions, []string{keys.User(user), keys.RefreshFamilies(user)})
	if err == nil {
		err = reply.Err(scripts.UserEndSessions)
	}
	if err != nil {
		return time.Time{}, err
	}
	values := redisdb.NewValues("the end of a player's sessions", reply.Values)
	beganBy = values.NextTime()
	families := make([]string, values.Remaining())
	for i := range families {
		families[i] = values.NextText()
	}
	if err := values.Err(); err != nil {
		return time.Time{}, err
	}
	return beganBy, s.deleteFamilies(ctx, user, families...)
}

// deleteAllFamilies deletes the refresh tokens of a player who is gone.
func (s *store) deleteAllFamilies(ctx context.Context, user int64) error {
	families, err := s.db.Client.ZRange(ctx, keys.RefreshFamilies(user), 0, -1).Result()
	if err != nil {
		return redisdb.WrapError("list refresh tokens", err)
	}
	return s.deleteFamilies(ctx, user, families...)
}

// firstUse returns when a token of an outside issuer was first used, by the store's clock. It is
// remembered for ttl.
func (s *store) firstUse(ctx context.Context, tokenDigest string, ttl time.Duration) (time.Time, error) {
	reply, err := s.db.RunScript(ctx, scripts.ExternalTokenUse, []string{keys.ExternalTokenUse(tokenDigest)},
		scripts.ExternalTokenUseArgs{TTLMS: ttl.Milliseconds()}.List()...)
	if err == nil {
		err = reply.Err(scripts.ExternalTokenUse)
	}
	if err != nil {
		return time.Time{}, err
	}
	values := redisdb.NewValues("the first use of a token", reply.Values)
	at := values.NextTime()
	return at, values.Err()
}

// storedTicket is the Authentication of a ticket in the store.
type storedTicket struct {
	Role        principal.Role `json:"role"`
	UserID      int64          `json:"user,omitzero"`
	GameID      int64          `json:"game,omitzero"`
	ServerKeyID string         `json:"key,omitzero"` // of a server, or that made the player's session
	ExpiresAt   time.Time      `json:"expires,omitzero"`
	Family      string         `json:"session,omitzero"`
	StartedAt   time.Time      `json:"started,omitzero"`
	External    *externalProof `json:"external,omitzero"`

	AcceptedEpoch int64 `json:"epoch,omitzero"`
}

func (s *store) saveTicket(ctx context.Context, digest string, a Authentication, ttl time.Duration) error {
	t := storedTicket{
		Role: a.Role, UserID: a.UserID, GameID: a.GameID, ServerKeyID: a.Session.ServerKeyID, ExpiresAt: a.ExpiresAt,
		Family: a.Session.Family, StartedAt: a.Session.StartedAt, External: a.external,
		AcceptedEpoch: a.Session.AcceptedEpoch,
	}
	text, err := wire.Marshal(t)
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
	a := Authentication{
		Caller:    principal.Caller{Role: t.Role, UserID: t.UserID, GameID: t.GameID},
		ExpiresAt: t.ExpiresAt,
		Session: sessions.Session{
			UserID: t.UserID, GameID: t.GameID, Family: t.Family, StartedAt: t.StartedAt, ServerKeyID: t.ServerKeyID,
			AcceptedEpoch: t.AcceptedEpoch,
		},
		external: t.External,
	}
	if t.Role == principal.Server {
		a.Caller.ServerKeyID = t.ServerKeyID
	}
	if t.External != nil {
		a.Session.Issuer = t.External.Issuer
	}
	return a, nil
}
