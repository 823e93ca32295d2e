package leaderboards

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// seal seals a season on every shard. It reports whether all are sealed: a shard whose clock is
// behind is sealed later.
func (s *store) seal(ctx context.Context, b *board, one *season) (bool, error) {
	calls := make([]redisdb.ScriptCall, b.definitionOf(one).Shards)
	for n := range calls {
		calls[n] = redisdb.ScriptCall{
			Keys: []string{b.shard(one, n).stateKey()},
			Args: scripts.BoardSealArgs{To: one.sealsAt(), NodeMS: s.db.Clock.NowMS()}.List(),
		}
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
	_, err := s.db.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.ZRem(ctx, keys.BoardsDue(b.gameID), b.key)
		p.SRem(ctx, keys.TournamentBoards(b.gameID), b.key)
		p.SRem(ctx, keys.Boards(b.gameID), b.key)
		return nil
	})
	return redisdb.WrapError("remove a leaderboard", err)
}

// setDue makes the leader look at a board at a time (ms), unless it does so before. An error is
// harmless: the leader looks at each board in turn.
func (s *store) setDue(ctx context.Context, gameID int64, key string, ms int64) {
	if err := s.addDue(ctx, gameID, []dueBoard{{key, ms}}); err != nil {
		slog.WarnContext(ctx, "a leaderboard is looked at later", "game", gameID, "board", key, "error", err)
	}
}

// dueBoard is a board and when the leader looks at it (ms).
type dueBoard struct {
	key string
	ms  int64
}

// addDue makes the leader look at boards at these times, unless it does so before.
func (s *store) addDue(ctx context.Context, gameID int64, list []dueBoard) error {
	members := make([]redis.Z, len(list))
	for i, b := range list {
		members[i] = redis.Z{Score: float64(b.ms), Member: b.key}
	}
	if len(members) == 0 {
		return nil
	}
	err := s.db.Client.ZAddLT(ctx, keys.BoardsDue(gameID), members...).Err()
	return redisdb.WrapError("set when leaderboards are due", err)
}

// takeDue returns boards of a game that are due at a time (ms), the one that is due longest first,
// and makes them due again at another time, in case that the leader dies.
func (s *store) takeDue(ctx context.Context, gameID, nowMS, againMS int64, most int) ([]string, error) {
	due := keys.BoardsDue(gameID)
	boardKeys, err := s.db.Client.ZRangeByScore(ctx, due, &redis.ZRangeBy{
		Min: "-inf", Max: strconv.FormatInt(nowMS, 10), Count: int64(most),
	}).Result()
	if err != nil || len(boardKeys) == 0 {
		return nil, redisdb.WrapError("list the leaderboards that are due", err)
	}
	members := make([]redis.Z, len(boardKeys))
	for i, key := range boardKeys {
		members[i] = redis.Z{Score: float64(againMS), Member: key}
	}
	return boardKeys, redisdb.WrapError("take leaderboards that are due", s.db.Client.ZAddXX(ctx, due, members...).Err())
}

// schedule says when boards that were taken until a time (ms) are due next.
func (s *store) schedule(ctx context.Context, gameID, takenMS int64, list []dueBoard) error {
	var times []any
	for _, b := range list {
		times = append(times, b.key, b.ms)
	}
	reply, err := s.db.RunScript(ctx, scripts.BoardSchedule, []string{keys.BoardsDue(gameID)},
		scripts.BoardScheduleArgs{Taken: takenMS}.List(times...)...)
	if err != nil {
		return err
	}
	return reply.Err(scripts.BoardSchedule)
}

// firstDue returns when the first board of a game is due (ms). It returns false for none.
func (s *store) firstDue(ctx context.Context, gameID int64) (ms int64, ok bool, err error) {
	first, err := s.db.Client.ZRangeWithScores(ctx, keys.BoardsDue(gameID), 0, 0).Result()
	if err != nil || len(first) == 0 {
		return 0, false, redisdb.WrapError("find the leaderboard that is due first", err)
	}
	return int64(first[0].Score), true, nil
}

// markTournamentBoards notes which boards belong to tournaments: a release before did not.
func (s *store) markTournamentBoards(ctx context.Context, gameID int64, boardKeys []string) error {
	var members []any
	for _, key := range boardKeys {
		if strings.HasPrefix(key, tournamentPrefix) {
			members = append(members, key)
		}
	}
	if len(members) == 0 {
		return nil
	}
	err := s.db.Client.SAdd(ctx, keys.TournamentBoards(gameID), members...).Err()
	return redisdb.WrapError("note the leaderboards of tournaments", err)
}
