package nodes

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/redis/go-redis/v9"
)

type store struct{ db *redisdb.DB }

// write writes a report.
func (s store) write(ctx context.Context, r Report) error {
	text, err := wire.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the report of a node: %w", err)
	}
	_, err = s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, keys.Nodes(), r.ID, text)
		p.PExpire(ctx, keys.Nodes(), shownFor)
		return nil
	})
	return redisdb.WrapError("write the report of a node", err)
}

func (s store) remove(ctx context.Context, ids ...string) error {
	return redisdb.WrapError("remove the report of a node", s.db.Client.HDel(ctx, keys.Nodes(), ids...).Err())
}

// list returns the reports of the last minute, and removes older ones. The minute ends with the
// newest report: to a machine whose clock is ahead every node would look dead, and `parlor upgrade
// finish` would find none in its way.
func (s store) list(ctx context.Context) ([]Report, error) {
	all, err := s.db.Client.HGetAll(ctx, keys.Nodes()).Result()
	if err != nil {
		return nil, redisdb.WrapError("read the reports of nodes", err)
	}
	list := make([]Report, 0, len(all))
	var old []string
	var newest time.Time
	for id, text := range all {
		var r Report
		if err := wire.Unmarshal([]byte(text), &r); err != nil {
			old = append(old, id)
			continue
		}
		if r.At.After(newest) {
			newest = r.At
		}
		list = append(list, r)
	}
	now := time.Now()
	if newest.Before(now) {
		now = newest
	}
	list = slices.DeleteFunc(list, func(r Report) bool {
		isOld := now.Sub(r.At) > shownFor
		if isOld {
			old = append(old, r.ID)
		}
		return isOld
	})
	if len(old) > 0 {
		_ = s.remove(ctx, old...) // the next reader tries again
	}
	return list, nil
}
