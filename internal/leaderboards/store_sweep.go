package leaderboards

import (
	"context"
	"slices"

	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/scripts"
)

// seal seals a season on every shard. It reports whether all are sealed: a shard whose clock is
// behind is sealed later.
func (s *store) seal(ctx context.Context, b *board, one *season) (bool, error) {
	calls := make([]redisdb.ScriptCall, b.definitionOf(one).Shards)
	for n := range calls {
		calls[n] = redisdb.ScriptCall{Keys: []string{b.shard(one, n).stateKey()}, Args: []any{one.sealsAt()}}
	}
	sealed := true
	for _, r := range s.db.RunScriptPipelined(ctx, scripts.BoardSeal, calls) {
		if r.Failure != nil {
			return false, r.Failure
		}
		sealed = sealed && r.Status == scripts.OK
	}
	return sealed, nil
}

// keysAtOnce is how many keys one command removes: buckets are freed at once, and 512 of their keys
// held the store for 0.25 ms.
const keysAtOnce = 128

// removeSeason removes all keys of a season. The store frees the large ones in the background:
// UNLINK takes no longer for ten million entries than for ten.
func (s *store) removeSeason(ctx context.Context, b *board, one *season) error {
	for n := range b.definitionOf(one).Shards {
		at := b.shard(one, n)
		state, err := s.db.Client.HGetAll(ctx, at.stateKey()).Result()
		if err != nil {
			return redisdb.WrapError("remove a season", err)
		}
		names := []string{at.rankKey()}
		for field := range state {
			if segment, value, ok := keys.ParseBoardSegmentField(field); ok {
				names = append(names, keys.BoardSegmentRank(at.BoardShard, at.season, segment, value))
			}
		}
		if league := b.definitionOf(one).League; league != nil {
			cohorts, err := at.cohortKeys(state, league.Size)
			if err != nil {
				return err
			}
			names = append(names, cohorts...)
		}
		buckets := at.buckets
		if state[keys.BoardClockField] == "" { // no entry has ever come
			buckets = 0
		}
		for bucket := range buckets {
			names = append(names, keys.BoardEntries(at.BoardShard, at.season, bucket),
				keys.BoardDetails(at.BoardShard, at.season, bucket))
		}
		names = append(names, at.stateKey()) // last, since it names the segments
		for chunk := range slices.Chunk(names, keysAtOnce) {
			if err := s.db.Client.Unlink(ctx, chunk...).Err(); err != nil {
				return redisdb.WrapError("remove a season", err)
			}
		}
	}
	return nil
}

// removeBoard removes a board that was deleted, with all its keys.
func (s *store) removeBoard(ctx context.Context, b *board) error {
	for i := range b.seasons {
		if err := s.removeSeason(ctx, b, &b.seasons[i]); err != nil {
			return err
		}
	}
	// The index last: a node that dies before it does all of this again.
	if err := s.db.Client.Unlink(ctx, keys.Board(b.gameID, b.key)).Err(); err != nil {
		return redisdb.WrapError("remove a leaderboard", err)
	}
	err := s.db.Client.SRem(ctx, keys.Boards(b.gameID), b.key).Err()
	return redisdb.WrapError("remove a leaderboard", err)
}
