package leaderboards

import (
	"context"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/redis/go-redis/v9"
)

// liveVersion says how far a season is: of equal versions the first 100 entries are the same.
type liveVersion struct {
	top    int64 // the sum over the shards
	clock  int64 // ms of the newest entry
	hidden int64 // entries
}

// livePoll is a node's question about a watched board.
type livePoll struct {
	ranking      ranking
	wantsAll     bool // clock and hidden too
	wantsVersion bool // of the board
}

// liveReading is the reply to a livePoll.
type liveReading struct {
	version      liveVersion
	boardVersion string // "" for a board that is gone
	err          error
}

// pollVersions returns how far seasons are, for one command each and shard.
func (s *store) pollVersions(ctx context.Context, polls []livePoll) []liveReading {
	top, all := []string{keys.BoardTopField}, []string{keys.BoardTopField, keys.BoardClockField, keys.BoardHiddenField}
	seasons, boards := make([][]*redis.SliceCmd, len(polls)), make([]*redis.SliceCmd, len(polls))
	// Each command has its own error: one shard that is gone does not hold the others.
	_, _ = s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, poll := range polls {
			fields := top
			if poll.wantsAll {
				fields = all
			}
			b := poll.ranking.board
			for n := range poll.ranking.definition.Shards {
				seasons[i] = append(seasons[i], p.HMGet(ctx, b.shard(poll.ranking.season, n).stateKey(), fields...))
			}
			if poll.wantsVersion {
				boards[i] = p.HMGet(ctx, keys.Board(b.gameID, b.key), keys.BoardVersionField)
			}
		}
		return nil
	})
	readings := make([]liveReading, len(polls))
	for i := range polls {
		r := &readings[i]
		for _, one := range seasons[i] {
			v := redisdb.NewValuesFromHMGet("how far a season is", one.Val())
			if r.err = one.Err(); r.err != nil {
				break
			}
			r.version.top += orZero(v.NextOptionalInt())
			if polls[i].wantsAll {
				r.version.clock = max(r.version.clock, orZero(v.NextOptionalInt()))
				r.version.hidden += orZero(v.NextOptionalInt())
			}
			if r.err = v.Err(); r.err != nil {
				break
			}
		}
		if boards[i] != nil && r.err == nil {
			v := redisdb.NewValuesFromHMGet("the version of a board", boards[i].Val())
			if r.err = boards[i].Err(); r.err == nil {
				r.boardVersion, r.err = v.NextText(), v.Err()
			}
		}
		r.err = redisdb.WrapError("read how far a season is", r.err)
	}
	return readings
}

// orZero returns a number, 0 for one that is not there.
func orZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
