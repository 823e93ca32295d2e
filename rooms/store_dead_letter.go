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

// deadLetterSeparator separates the entry of the outbox, the error, and what was applied.
const deadLetterSeparator = "\t"

// encodeDeadLetter returns the stored form of an entry and its error. An earlier release reads what
// was applied as the end of the error.
func encodeDeadLetter(entry string, err error) string {
	text := entry + deadLetterSeparator + strings.ReplaceAll(err.Error(), deadLetterSeparator, " ")
	if partly, ok := errors.AsType[*PartlyApplied](err); ok && partly.Applied != "" {
		text += deadLetterSeparator + partly.Applied
	}
	return text
}

// listDeadLetters returns the dead letters of every shard.
func (st *store) listDeadLetters(ctx context.Context) ([]DeadLetter, error) {
	lastGame, err := leader.CountGames(ctx, st.db)
	if err != nil {
		return nil, err
	}
	shards := st.freeShards()
	for id := range lastGame {
		shards = append(shards, keys.EconomyShard(id+1))
	}
	list := []DeadLetter{}
	for chunk := range slices.Chunk(shards, maxPipelined) {
		stored := make([]*redis.MapStringStringCmd, len(chunk)) // of each at most maxDeadLetters
		_, err := st.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, shard := range chunk {
				stored[i] = p.HGetAll(ctx, keys.DeadLetters(shard))
			}
			return nil
		})
		if err != nil {
			return nil, redisdb.WrapError("read the parked rooms", err)
		}
		for _, rooms := range stored {
			for roomID, text := range rooms.Val() {
				letter, _ := decodeDeadLetter(roomID, text)
				list = append(list, letter)
			}
		}
	}
	slices.SortFunc(list, func(a, b DeadLetter) int {
		if c := a.EndedAt.Compare(b.EndedAt); c != 0 {
			return c
		}
		return strings.Compare(a.RoomID, b.RoomID)
	})
	return list, nil
}

// decodeDeadLetter returns a dead letter and how its room ended. One whose entry cannot be read has
// only the id of the room and the problem.
func decodeDeadLetter(roomID, text string) (DeadLetter, Ended) {
	entry, rest, _ := strings.Cut(text, deadLetterSeparator) // how a room ended has no tabs
	problem, applied, _ := strings.Cut(rest, deadLetterSeparator)
	e, err := decodeEnded(roomID, entry)
	if err != nil {
		return DeadLetter{RoomID: roomID, Problem: problem}, Ended{}
	}
	e.Applied = applied
	return DeadLetter{RoomID: roomID, GameID: e.GameID, Consumer: e.Consumer, EndedAt: e.EndedAt, Problem: problem}, e
}

// retryDeadLetter applies a dead letter and deletes it.
func (st *store) retryDeadLetter(ctx context.Context, at location) (DeadLetter, error) {
	key := keys.DeadLetters(at.shard)
	text, err := st.db.Client.HGet(ctx, key, at.roomID).Result()
	if errors.Is(err, redis.Nil) {
		return DeadLetter{}, apierror.RoomNotFound.WithReason("the room is not parked")
	}
	if err != nil {
		return DeadLetter{}, redisdb.WrapError("read a parked room", err)
	}
	letter, e := decodeDeadLetter(at.roomID, text)
	if e.RoomID == "" {
		return DeadLetter{}, fmt.Errorf("apply the parked room %s: %s", at.roomID, letter.Problem)
	}
	if err := st.apply(ctx, e); err != nil {
		partly, ok := errors.AsType[*PartlyApplied](err)
		if ok && partly.Applied != e.Applied {
			entry, _, _ := strings.Cut(text, deadLetterSeparator)
			storeErr := st.db.Client.HSet(ctx, key, at.roomID, encodeDeadLetter(entry, err)).Err()
			err = errors.Join(err, redisdb.WrapError("store what was applied of a parked room", storeErr))
		}
		return letter, err
	}
	return letter, redisdb.WrapError("forget a parked room", st.db.Client.HDel(ctx, key, at.roomID).Err())
}
