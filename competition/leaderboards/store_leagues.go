package leaderboards

import (
	"context"
	"errors"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// segmentKey returns the zset of the players of a segment; the cohorts of a league are one, too.
func segmentKey(at keys.BoardShard, season int64, segment, value string) string {
	if segment == leagueSegment {
		return keys.BoardCohort(at, season, value)
	}
	return keys.BoardSegmentRank(at, season, segment, value)
}

// readCohort returns the segments that are stored of a player's entry, and the cohort that the
// player was given; "" for none.
func (s *store) readCohort(
	ctx context.Context, b *board, one *season, userID int64,
) (segments, cohort string, err error) {
	reply, err := s.db.Client.HMGet(ctx, b.shardOf(one, userID).detailsKey(userID),
		keys.BoardUserSegmentsField(userID), keys.BoardUserCohortField(userID)).Result()
	if err != nil {
		return "", "", redisdb.WrapError("read the cohort of a player", err)
	}
	v := redisdb.NewValuesFromHMGet("the cohort of a player", reply)
	return v.NextText(), v.NextText(), v.Err()
}

// enterCohort gives a player a place in an open cohort of a tier, once, and returns the cohort.
// draw decides which of the free places.
func (s *store) enterCohort(
	ctx context.Context, b *board, one *season, userID int64, tier, size int, draw uint32,
) (string, error) {
	at := b.shardOf(one, userID)
	reply, err := s.db.RunScript(ctx, scripts.BoardEnter, []string{at.stateKey(), at.detailsKey(userID)},
		scripts.BoardEnterArgs{
			User: userID, Tier: tier, Size: size, Shards: at.shards, Shard: at.Number(), Draw: draw,
		}.List()...)
	if err != nil {
		return "", err
	}
	if err := reply.Err(scripts.BoardEnter); err != nil {
		return "", err
	}
	v := redisdb.NewValues("a place in a cohort", reply.Values)
	return v.NextText(), v.Err()
}

// sealShard seals a season on the shard of a player, and reports whether it is.
func (s *store) sealShard(ctx context.Context, b *board, one *season, userID int64) (bool, error) {
	reply, err := s.db.RunScript(ctx, scripts.BoardSeal, []string{b.shardOf(one, userID).stateKey()},
		scripts.BoardSealArgs{To: one.sealsAt(), NodeMS: s.db.Clock.NowMS()}.List()...)
	return reply.Status == scripts.OK, err
}

// rankInCohort returns the rank of a player in a cohort, from 0, and how many players it has. It
// returns false if the player is hidden or removed.
func (s *store) rankInCohort(
	ctx context.Context, b *board, one *season, userID int64, cohort string,
) (rank, players int64, found bool, err error) {
	records, err := s.readRecords(ctx, b.ranking(one), []int64{userID})
	if err != nil {
		return 0, 0, false, err
	}
	own, ok := records[userID]
	if !ok {
		return 0, 0, false, nil
	}
	key := keys.BoardCohort(b.shardOf(one, userID).BoardShard, one.number, cohort)
	var rankReply, count *redis.IntCmd
	_, err = s.db.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		rankReply, count = p.ZRank(ctx, key, own.member), p.ZCard(ctx, key)
		return nil
	})
	if errors.Is(err, redis.Nil) {
		return 0, 0, false, nil
	}
	return rankReply.Val(), count.Val(), err == nil, redisdb.WrapError("read a cohort", err)
}

// cohortKeys returns the zsets of the cohorts of a season on a shard, by the fields of its state.
func (s seasonShard) cohortKeys(state map[string]string, size int) (names []string, err error) {
	for field, value := range state {
		tier, ok := keys.ParseBoardPlacesField(field)
		if !ok {
			continue
		}
		v := redisdb.NewValues("the places of a league", []string{tier, value})
		at, given := int(v.NextInt()), v.NextInt()
		if v.Err() != nil {
			return nil, v.Err()
		}
		for first := int64(0); first < given; first += int64(size) {
			number := first/int64(size)*s.shards + int64(s.Number())
			names = append(names, keys.BoardCohort(s.BoardShard, s.season, cohort{at, number}.String()))
		}
	}
	return names, nil
}
