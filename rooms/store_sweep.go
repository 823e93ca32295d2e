package rooms

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/principal"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// sweepLease bounds how long one leader sweeps a shard, sweepBatch how many rooms it looks at in
// that time.
const (
	sweepLease      = 10 * time.Second
	sweepBatchRooms = 128
)

// sweep looks at the rooms that are due in each shard, as the shard's elected leader, and returns
// their number.
func (st *store) sweep(ctx context.Context) (int, error) {
	due, err := st.listDueRoomIDs(ctx)
	if err != nil {
		return 0, err
	}
	swept := 0
	var errs []error
	for _, shard := range st.allShards() {
		ids := due[shard]
		if len(ids) == 0 {
			continue
		}
		name := "rooms:" + shard.String()
		lead := func(ctx context.Context, fence int64) error {
			n, err := st.sweepShard(ctx, shard, ids, fence)
			swept += n
			return err
		}
		_, err := st.db.RunAsLeader(ctx, keys.Lock(name), keys.FenceCounter(name), sweepLease, lead)
		errs = append(errs, err)
	}
	return swept, errors.Join(errs...)
}

// listDueRoomIDs returns the ids of the rooms that are due, by shard.
func (st *store) listDueRoomIDs(ctx context.Context) (map[keys.Shard][]string, error) {
	now, err := st.db.Client.Time(ctx).Result()
	if err != nil {
		return nil, redisdb.WrapError("read the store's clock", err)
	}
	by := &redis.ZRangeBy{Min: "-inf", Max: strconv.FormatInt(now.UnixMilli(), 10), Count: sweepBatchRooms}
	shards := st.allShards()
	replies := make([]*redis.StringSliceCmd, len(shards))
	_, err = st.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, shard := range shards {
			replies[i] = p.ZRangeByScore(ctx, keys.RoomsDue(shard), by)
		}
		return nil
	})
	if err != nil {
		return nil, redisdb.WrapError("list rooms that are due", err)
	}
	due := map[keys.Shard][]string{}
	for i, shard := range shards {
		due[shard] = replies[i].Val()
	}
	return due, nil
}

// sweepShard sweeps rooms one by one and returns how many it swept. It goes on after an error, but
// not as a leader that was replaced.
func (st *store) sweepShard(ctx context.Context, shard keys.Shard, ids []string, fence int64) (swept int, err error) {
	var errs []error
	for _, id := range ids {
		err := st.sweepRoom(ctx, location{shard, id}, fence)
		if err == nil {
			swept++
			continue
		}
		errs = append(errs, fmt.Errorf("sweep room %s: %w", id, err))
		if ctx.Err() != nil || errors.Is(err, errLeaderReplaced) {
			break
		}
	}
	return swept, errors.Join(errs...)
}

// errLeaderReplaced means that another node leads the sweep of this shard now.
var errLeaderReplaced = errors.New("another leader has taken over")

func (st *store) sweepRoom(ctx context.Context, at location, fence int64) error {
	hashes, err := st.db.ReadHashes(ctx, []string{at.roomKey()})
	if err != nil {
		return err
	}
	room, err := decodeRoom(hashes[0])
	if err != nil {
		return err
	}
	system := principal.Caller{Role: principal.System}
	c := command{location: at, caller: system, gameID: room.GameID, nonce: idempotency.NewNonce()}
	for range maxScriptAttempts {
		r, err := st.runScript(ctx, scripts.RoomSweep, c, scriptInput{
			walletUserIDs: room.stakedPlayers(),
			ownKeys:       []string{keys.RoomCode(at.shard, room.Code), keys.RoomsFence(at.shard)},
			ownArgs:       []any{at.roomID, fence},
		})
		switch {
		case err != nil:
			return err
		case r.isOK():
			return nil
		case !r.hasRoom():
			return errLeaderReplaced
		}
		room = r.room // a player joined in between: try again with the wallet of each
	}
	return apierror.VersionConflict
}
