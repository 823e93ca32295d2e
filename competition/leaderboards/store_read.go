package leaderboards

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/redis/go-redis/v9"
)

// ranking is the order of a season, or of one of its segments, over all shards.
type ranking struct {
	board          *board
	season         *season
	definition     *Definition
	segment, value string // "" for all players
}

func (b *board) ranking(s *season) ranking {
	return ranking{board: b, season: s, definition: b.definitionOf(s)}
}

// rankKeys returns the zset of each shard.
func (r *ranking) rankKeys() []string {
	names := make([]string, r.definition.Shards)
	for n := range names {
		at := r.board.shard(r.season, n)
		if r.segment == "" {
			names[n] = at.rankKey()
		} else {
			names[n] = segmentKey(at.BoardShard, at.season, r.segment, r.value)
		}
	}
	return names
}

// countEntries returns how many entries each ranking has.
func (s *store) countEntries(ctx context.Context, rankings ...ranking) ([]int64, error) {
	counts, err := s.countByShard(ctx, rankings...)
	if err != nil {
		return nil, err
	}
	sums := make([]int64, len(rankings))
	for i, ofShards := range counts {
		for _, count := range ofShards {
			sums[i] += count
		}
	}
	return sums, nil
}

// countByShard returns how many entries each ranking has on each shard.
func (s *store) countByShard(ctx context.Context, rankings ...ranking) ([][]int64, error) {
	replies := make([][]*redis.IntCmd, len(rankings))
	_, err := s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, r := range rankings {
			for _, key := range r.rankKeys() {
				replies[i] = append(replies[i], p.ZCard(ctx, key))
			}
		}
		return nil
	})
	if err != nil {
		return nil, redisdb.WrapError("count entries", err)
	}
	counts := make([][]int64, len(rankings))
	for i, ofShards := range replies {
		for _, reply := range ofShards {
			counts[i] = append(counts[i], reply.Val())
		}
	}
	return counts, nil
}

// countAhead returns for each bound, a member or what equal members start with, how many entries
// are before it, and how many entries there are.
func (s *store) countAhead(ctx context.Context, r ranking, bounds []string) (ahead []int64, entries int64, err error) {
	names := r.rankKeys()
	counts := make([]*redis.IntCmd, 0, len(bounds)*len(names))
	sizes := make([]*redis.IntCmd, len(names))
	_, err = s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range names {
			sizes[i] = p.ZCard(ctx, key)
		}
		for _, bound := range bounds {
			for _, key := range names {
				counts = append(counts, p.ZLexCount(ctx, key, "-", "("+bound))
			}
		}
		return nil
	})
	if err != nil {
		return nil, 0, redisdb.WrapError("count the entries ahead", err)
	}
	ahead = make([]int64, len(bounds))
	for i, count := range counts {
		ahead[i/len(names)] += count.Val()
	}
	for _, size := range sizes {
		entries += size.Val()
	}
	return ahead, entries, nil
}

// slice returns up to limit members from one on, or behind it, best first.
func (s *store) slice(ctx context.Context, r ranking, from string, limit int) ([]string, error) {
	return s.mergeRanges(ctx, r, limit, false, &redis.ZRangeBy{Min: from, Max: "+", Count: int64(limit)})
}

// sliceBefore returns up to limit members before one, the nearest first.
func (s *store) sliceBefore(ctx context.Context, r ranking, member string, limit int) ([]string, error) {
	return s.mergeRanges(ctx, r, limit, true, &redis.ZRangeBy{Min: "-", Max: "(" + member, Count: int64(limit)})
}

func (s *store) mergeRanges(
	ctx context.Context, r ranking, limit int, reverse bool, by *redis.ZRangeBy,
) ([]string, error) {
	if limit == 0 {
		return nil, nil
	}
	var parts []*redis.StringSliceCmd
	_, err := s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, key := range r.rankKeys() {
			if reverse {
				parts = append(parts, p.ZRevRangeByLex(ctx, key, by))
			} else {
				parts = append(parts, p.ZRangeByLex(ctx, key, by))
			}
		}
		return nil
	})
	if err != nil {
		return nil, redisdb.WrapError("read a leaderboard", err)
	}
	var members []string
	for _, part := range parts {
		members = append(members, part.Val()...)
	}
	slices.Sort(members)
	if reverse {
		slices.Reverse(members)
	}
	return members[:min(limit, len(members))], nil
}

// holds reports for each member whether it is in the ranking.
func (s *store) holds(ctx context.Context, r ranking, places []standing) ([]bool, error) {
	names := r.rankKeys()
	scores := make([]*redis.FloatCmd, len(places))
	_, err := s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, place := range places {
			scores[i] = p.ZScore(ctx, names[r.definition.shardOf(place.userID)], place.member)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, redisdb.WrapError("look up entries", err)
	}
	held := make([]bool, len(places))
	for i, score := range scores {
		held[i] = score.Err() == nil
	}
	return held, nil
}

// usersByKey groups players by the hash that has something of each, in the order of the players.
func usersByKey(userIDs []int64, keyOf func(id int64) string) (names []string, ids map[string][]int64) {
	ids = map[string][]int64{}
	for _, id := range userIDs {
		name := keyOf(id)
		if ids[name] == nil {
			names = append(names, name)
		}
		ids[name] = append(ids[name], id)
	}
	return names, ids
}

// readRecordTexts returns the records of those players who have one, as they are stored.
func (s *store) readRecordTexts(ctx context.Context, r ranking, userIDs []int64) (map[int64]string, error) {
	names, ids := usersByKey(userIDs, func(id int64) string { return r.board.shardOf(r.season, id).entriesKey(id) })
	replies := make([]*redis.SliceCmd, len(names))
	_, err := s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, name := range names {
			fields := make([]string, len(ids[name]))
			for j, id := range ids[name] {
				fields[j] = strconv.FormatInt(id, 10)
			}
			replies[i] = p.HMGet(ctx, name, fields...)
		}
		return nil
	})
	if err != nil {
		return nil, redisdb.WrapError("read entries", err)
	}
	texts := map[int64]string{}
	for i, name := range names {
		for j, value := range replies[i].Val() {
			if text, ok := value.(string); ok {
				texts[ids[name][j]] = text
			}
		}
	}
	return texts, nil
}

// readRecords returns the records of those players who have one, by user id.
func (s *store) readRecords(ctx context.Context, r ranking, userIDs []int64) (map[int64]record, error) {
	if len(userIDs) == 0 {
		return nil, nil
	}
	texts, err := s.readRecordTexts(ctx, r, userIDs)
	if err != nil {
		return nil, err
	}
	records := make(map[int64]record, len(texts))
	for id, text := range texts {
		if records[id], err = decodeRecord(r.definition, id, text); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// entryDetails has the values of an entry that its record lacks.
type entryDetails struct {
	details
	segments string
}

// readDetails returns the details of those records that have some, by user id.
func (s *store) readDetails(ctx context.Context, r ranking, records map[int64]record) (map[int64]entryDetails, error) {
	var having []int64
	for id, one := range records {
		if one.hasDetails || one.hasSegments {
			having = append(having, id)
		}
	}
	if len(having) == 0 {
		return nil, nil
	}
	names, ids := usersByKey(having, func(id int64) string { return r.board.shardOf(r.season, id).detailsKey(id) })
	replies := make([]*redis.SliceCmd, len(names))
	_, err := s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, name := range names {
			fields := make([]string, 0, 2*len(ids[name]))
			for _, id := range ids[name] {
				fields = append(fields, strconv.FormatInt(id, 10), keys.BoardUserSegmentsField(id))
			}
			replies[i] = p.HMGet(ctx, name, fields...)
		}
		return nil
	})
	if err != nil {
		return nil, redisdb.WrapError("read the details of entries", err)
	}
	found := make(map[int64]entryDetails, len(having))
	for i, name := range names {
		v := redisdb.NewValuesFromHMGet("the details of entries", replies[i].Val())
		for _, id := range ids[name] {
			text, more := v.NextText(), entryDetails{}
			more.segments = v.NextText()
			if text != "" {
				if err := wire.Unmarshal([]byte(text), &more.details); err != nil {
					return nil, err
				}
			}
			found[id] = more
		}
	}
	return found, nil
}
