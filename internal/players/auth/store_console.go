package auth

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/redis/go-redis/v9"
)

func (s *store) saveConsoleLink(ctx context.Context, digest, fingerprint string, ttl time.Duration) error {
	err := s.db.Client.Set(ctx, keys.ConsoleLink(digest), fingerprint, ttl).Err()
	return redisdb.WrapError("save a link to the console", err)
}

// consumeConsoleLink deletes a link and returns the fingerprint of the operator's key that made it.
func (s *store) consumeConsoleLink(ctx context.Context, digest string) (string, error) {
	fingerprint, err := s.db.Client.GetDel(ctx, keys.ConsoleLink(digest)).Result()
	if errors.Is(err, redis.Nil) {
		return "", apierror.Unauthenticated.WithReason("the link is used, over or unknown")
	}
	return fingerprint, redisdb.WrapError("read a link to the console", err)
}

// saveConsoleSession stores a session and removes others.
func (s *store) saveConsoleSession(
	ctx context.Context, session consoleSession, ttl time.Duration, dropped []string,
) error {
	text := strconv.FormatInt(session.startedAt.UnixMilli(), 10) + "|" +
		strconv.FormatInt(session.expiresAt.UnixMilli(), 10) + "|" + session.fingerprint
	_, err := s.db.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		if len(dropped) > 0 {
			p.HDel(ctx, keys.ConsoleSessions(), dropped...)
		}
		p.HSet(ctx, keys.ConsoleSessions(), session.digest, text)
		p.PExpire(ctx, keys.ConsoleSessions(), ttl)
		return nil
	})
	return redisdb.WrapError("save a console session", err)
}

// readConsoleSession returns a session by the digest of its secret, and whether there is one.
func (s *store) readConsoleSession(ctx context.Context, digest string) (consoleSession, bool, error) {
	text, err := s.db.Client.HGet(ctx, keys.ConsoleSessions(), digest).Result()
	if errors.Is(err, redis.Nil) {
		return consoleSession{}, false, nil
	}
	if err != nil {
		return consoleSession{}, false, redisdb.WrapError("read a console session", err)
	}
	session, err := decodeConsoleSession(digest, text)
	return session, err == nil, err
}

func (s *store) listConsoleSessions(ctx context.Context) ([]consoleSession, error) {
	all, err := s.db.Client.HGetAll(ctx, keys.ConsoleSessions()).Result()
	if err != nil {
		return nil, redisdb.WrapError("list the console sessions", err)
	}
	list := make([]consoleSession, 0, len(all))
	for digest, text := range all {
		session, err := decodeConsoleSession(digest, text)
		if err != nil {
			return nil, err
		}
		list = append(list, session)
	}
	return list, nil
}

func decodeConsoleSession(digest, text string) (consoleSession, error) {
	v := redisdb.NewValues("a console session", strings.Split(text, "|"))
	session := consoleSession{
		digest: digest, startedAt: v.NextTime(), expiresAt: v.NextTime(), fingerprint: v.NextText(),
	}
	return session, v.Err()
}

func (s *store) deleteConsoleSession(ctx context.Context, digest string) error {
	err := s.db.Client.HDel(ctx, keys.ConsoleSessions(), digest).Err()
	return redisdb.WrapError("close a console session", err)
}

func (s *store) deleteConsoleSessions(ctx context.Context) error {
	err := s.db.Client.Del(ctx, keys.ConsoleSessions()).Err()
	return redisdb.WrapError("close the console sessions", err)
}

// maxListedSessions bounds the sessions of a player that are listed: those that expire last.
const maxListedSessions = 100

// listSessions returns the sessions of a player that can be refreshed, the one that expires last
// first.
func (s *store) listSessions(ctx context.Context, user int64) ([]PlayerSession, error) {
	families, err := s.db.Client.ZRevRangeWithScores(ctx, keys.RefreshFamilies(user), 0, maxListedSessions-1).Result()
	if err != nil || len(families) == 0 {
		return []PlayerSession{}, redisdb.WrapError("list refresh tokens", err)
	}
	fields := []string{"start", "rotated", "by", "reused"}
	replies := make([]*redis.SliceCmd, len(families))
	var ended *redis.StringCmd
	_, err = s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		ended = p.HGet(ctx, keys.User(user), "ended")
		for i, family := range families {
			replies[i] = p.HMGet(ctx, keys.RefreshFamily(user, family.Member.(string)), fields...)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, redisdb.WrapError("read refresh tokens", err)
	}
	endedMS, _ := ended.Int64() // 0: none were ended
	list := make([]PlayerSession, 0, len(families))
	for i, reply := range replies {
		f := redisdb.NewFieldsFromHMGet("a family of refresh tokens", fields, reply.Val())
		if !f.Has("start") || f.Has("reused") || f.Int("start") <= endedMS {
			continue // expired, revoked or ended
		}
		session := PlayerSession{StartedAt: f.Time("start"), ExpiresAt: time.UnixMilli(int64(families[i].Score)).UTC()}
		if f.Has("rotated") {
			session.RefreshedAt = new(f.Time("rotated"))
		}
		if f.Text("by") != "" {
			session.ServerKeyID = new(f.Text("by"))
		}
		list = append(list, session)
		if f.Err() != nil {
			return nil, f.Err()
		}
	}
	return list, nil
}
