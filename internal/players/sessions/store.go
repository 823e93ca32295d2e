package sessions

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

type store struct{ db *redisdb.DB }

// The fields of an entry, which sessions_end writes.
const (
	subjectField = "what"
	beganByField = "at"
	codeField    = "code"
	untilField   = "until"
)

const (
	// retention is an hour longer than any token that an entry concerns is accepted.
	retention   = MaxTokenAge + time.Hour
	pageEntries = 1000
)

// add appends an end, and drops those that concern no token any more. Twice is harmless.
func (s store) add(ctx context.Context, e end, now time.Time) error {
	beganBy := ""
	if !e.beganBy.IsZero() {
		beganBy = strconv.FormatInt(e.beganBy.UnixMilli(), 10)
	}
	until := ""
	if !e.until.IsZero() {
		until = strconv.FormatInt(e.until.UnixMilli(), 10)
	}
	oldest := strconv.FormatInt(now.Add(-retention).UnixMilli(), 10)
	reply, err := s.db.RunScript(ctx, scripts.SessionsEnd, []string{keys.EndedSessions()},
		scripts.SessionsEndArgs{
			Subject: e.subject.String(), BeganByMS: beganBy, Code: e.code, OldestMS: oldest, UntilMS: until,
		}.List()...)
	if err != nil {
		return err
	}
	return reply.Err(scripts.SessionsEnd)
}

// readAfter returns up to pageEntries ends after a position, and the position of the last one.
func (s store) readAfter(ctx context.Context, position string) ([]end, string, error) {
	streams, err := s.db.Client.XRead(ctx, &redis.XReadArgs{
		Streams: []string{keys.EndedSessions(), position}, Count: pageEntries, Block: -1,
	}).Result()
	if errors.Is(err, redis.Nil) {
		return nil, position, nil
	}
	if err != nil {
		return nil, position, redisdb.WrapError("read the ended sessions", err)
	}
	var list []end
	for _, stream := range streams {
		for _, entry := range stream.Messages {
			e, err := decodeEnd(entry)
			if err != nil {
				return nil, position, err
			}
			list, position = append(list, e), entry.ID
		}
	}
	return list, position, nil
}

func decodeEnd(entry redis.XMessage) (end, error) {
	hash := make(map[string]string, len(entry.Values))
	for field, value := range entry.Values {
		hash[field], _ = value.(string)
	}
	f := redisdb.NewFields("the end of a session", hash)
	recorded, _, _ := strings.Cut(entry.ID, "-")
	ms, err := strconv.ParseInt(recorded, 10, 64)
	what, ok := parseSubject(f.Text(subjectField))
	if err != nil || !ok {
		return end{}, fmt.Errorf("decode the end of a session: %q at %q", f.Text(subjectField), entry.ID)
	}
	e := end{
		subject: what, beganBy: f.Time(beganByField), code: int(f.Int(codeField)),
		until: f.Time(untilField), recorded: time.UnixMilli(ms),
	}
	return e, f.Err()
}
