package leaderboards

import (
	"context"
	"errors"
	"strconv"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/redis/go-redis/v9"
)

const (
	membersAtOnce = 1000
	bucketsAtOnce = 64
)

// scanMembers calls visit with the members of a zset, some at a time.
func (s *store) scanMembers(ctx context.Context, zset string, visit func(members []string) error) error {
	for from := "-"; ; {
		by := &redis.ZRangeBy{Min: from, Max: "+", Count: membersAtOnce}
		page, err := s.db.Client.ZRangeByLex(ctx, zset, by).Result()
		if err != nil {
			return redisdb.WrapError("read the order of a season", err)
		}
		if len(page) == 0 {
			return nil
		}
		if err := visit(page); err != nil {
			return err
		}
		from = "(" + page[len(page)-1]
	}
}

// scanRecords calls visit with the records of a shard by user id, some at a time.
func (s *store) scanRecords(ctx context.Context, at seasonShard, visit func(records map[string]string) error) error {
	for first := int64(0); first < at.buckets; first += bucketsAtOnce {
		var buckets []*redis.MapStringStringCmd
		_, err := s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for bucket := first; bucket < min(first+bucketsAtOnce, at.buckets); bucket++ {
				buckets = append(buckets, p.HGetAll(ctx, keys.BoardEntries(at.BoardShard, at.season, bucket)))
			}
			return nil
		})
		if err != nil {
			return redisdb.WrapError("read the entries of a season", err)
		}
		for _, bucket := range buckets {
			if len(bucket.Val()) == 0 {
				continue
			}
			if err := visit(bucket.Val()); err != nil {
				return err
			}
		}
	}
	return nil
}

// readSeasonState returns the state of a season on a shard: whether it is sealed, how many entries
// are hidden, and the zsets of its segments.
func (s *store) readSeasonState(
	ctx context.Context, at seasonShard,
) (sealed bool, hidden int64, zsets []string, err error) {
	read := s.db.ReadHashes(ctx, []string{at.stateKey()})[0]
	if read.Err != nil {
		return false, 0, nil, read.Err
	}
	f := redisdb.NewFieldsOfHash("the state of a season", read.Fields)
	for field := range read.Fields.All {
		if segment, value, ok := keys.ParseBoardSegmentField(field); ok {
			zsets = append(zsets, at.segmentRankKey(segment, value))
		}
	}
	if f.Has(keys.BoardHiddenField) {
		hidden = f.Int(keys.BoardHiddenField)
	}
	return f.Has(keys.BoardStateField), hidden, zsets, f.Err()
}

// place is a member of a zset.
type place struct{ zset, member string }

// areThere reports for each place whether the zset has the member.
func (s *store) areThere(ctx context.Context, places []place) ([]bool, error) {
	scores := make([]*redis.FloatCmd, len(places))
	_, err := s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, one := range places {
			scores[i] = p.ZScore(ctx, one.zset, one.member)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, redisdb.WrapError("look up entries", err)
	}
	there := make([]bool, len(places))
	for i, score := range scores {
		there[i] = score.Err() == nil
	}
	return there, nil
}

// storedEntry is all that a shard has of a player, read at one instant.
type storedEntry struct {
	record, segments string // "" for none
	isThere          []bool // of the places that were asked for
}

// inspect reads all that a shard has of a player, and whether it has the player in some places.
func (s *store) inspect(ctx context.Context, at seasonShard, userID int64, places []place) (storedEntry, error) {
	var record, segments *redis.StringCmd
	scores := make([]*redis.FloatCmd, len(places))
	_, err := s.db.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		record = p.HGet(ctx, at.entriesKey(userID), strconv.FormatInt(userID, 10))
		segments = p.HGet(ctx, at.detailsKey(userID), keys.BoardUserSegmentsField(userID))
		for i, one := range places {
			scores[i] = p.ZScore(ctx, one.zset, one.member)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return storedEntry{}, redisdb.WrapError("read an entry", err)
	}
	e := storedEntry{record: record.Val(), segments: segments.Val(), isThere: make([]bool, len(places))}
	for i, score := range scores {
		e.isThere[i] = score.Err() == nil
	}
	return e, nil
}
