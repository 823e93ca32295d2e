package rooms

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/leader"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/redis/go-redis/v9"
)

// parkedSeparator stands between the entry of a parked room, the error, and what was applied.
const parkedSeparator = "\t"

// encodeParked returns how a room is parked after an error. A release before reads what was applied
// as the end of the error.
func encodeParked(entry string, err error) string {
	text := entry + parkedSeparator + strings.ReplaceAll(err.Error(), parkedSeparator, " ")
	if partly, ok := errors.AsType[*PartlyApplied](err); ok && partly.Applied != "" {
		text += parkedSeparator + partly.Applied
	}
	return text
}

// listParked returns what is parked in every shard.
func (st *store) listParked(ctx context.Context) ([]ParkedRoom, error) {
	lastGame, err := leader.CountGames(ctx, st.db)
	if err != nil {
		return nil, err
	}
	shards := st.freeShards()
	for id := range lastGame {
		shards = append(shards, keys.EconomyShard(id+1))
	}
	list := []ParkedRoom{}
	for chunk := range slices.Chunk(shards, maxPipelined) {
		stored := make([]*redis.MapStringStringCmd, len(chunk)) // of each at most maxParkedRooms
		_, err := st.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, shard := range chunk {
				stored[i] = p.HGetAll(ctx, keys.ParkedRooms(shard))
			}
			return nil
		})
		if err != nil {
			return nil, redisdb.WrapError("read the parked rooms", err)
		}
		for _, rooms := range stored {
			for roomID, text := range rooms.Val() {
				one, _ := decodeParked(roomID, text)
				list = append(list, one)
			}
		}
	}
	slices.SortFunc(list, func(a, b ParkedRoom) int {
		if c := a.EndedAt.Compare(b.EndedAt); c != 0 {
			return c
		}
		return strings.Compare(a.RoomID, b.RoomID)
	})
	return list, nil
}

// decodeParked returns a parked room, and how it ended. One that was parked because nobody can read
// how it ended has only its id and the problem.
func decodeParked(roomID, text string) (ParkedRoom, Ended) {
	entry, rest, _ := strings.Cut(text, parkedSeparator) // how a room ended has no tabs
	problem, applied, _ := strings.Cut(rest, parkedSeparator)
	e, err := decodeEnded(roomID, entry)
	if err != nil {
		return ParkedRoom{RoomID: roomID, Problem: problem}, Ended{}
	}
	e.Applied = applied
	return ParkedRoom{RoomID: roomID, GameID: e.GameID, Feeds: e.Feeds, EndedAt: e.EndedAt, Problem: problem}, e
}

// retryParked applies a parked room, and takes it off the parked ones.
func (st *store) retryParked(ctx context.Context, at location) (ParkedRoom, error) {
	key := keys.ParkedRooms(at.shard)
	text, err := st.db.Client.HGet(ctx, key, at.roomID).Result()
	if errors.Is(err, redis.Nil) {
		return ParkedRoom{}, apierror.RoomNotFound.WithReason("the room is not parked")
	}
	if err != nil {
		return ParkedRoom{}, redisdb.WrapError("read a parked room", err)
	}
	parked, e := decodeParked(at.roomID, text)
	if e.RoomID == "" {
		return ParkedRoom{}, fmt.Errorf("apply the parked room %s: %s", at.roomID, parked.Problem)
	}
	if err := st.apply(ctx, e); err != nil {
		partly, ok := errors.AsType[*PartlyApplied](err)
		if ok && partly.Applied != e.Applied {
			entry, _, _ := strings.Cut(text, parkedSeparator)
			storeErr := st.db.Client.HSet(ctx, key, at.roomID, encodeParked(entry, err)).Err()
			err = errors.Join(err, redisdb.WrapError("store what was applied of a parked room", storeErr))
		}
		return parked, err
	}
	return parked, redisdb.WrapError("forget a parked room", st.db.Client.HDel(ctx, key, at.roomID).Err())
}
