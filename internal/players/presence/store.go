package presence

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// leaderLock is the name of the lock of the node that ends leases.
const leaderLock = "presence"

// endedRetention is the time for which an ended lease is remembered, as a fence.
const endedRetention = 24 * time.Hour

// maxShards bounds the shards of one round trip.
const maxShards = 128

// location has the shard and the key of a room.
type location struct {
	shard              keys.Shard
	roomID, room, list string // list is the list of events, and the topic
}

// locate returns the location of the room with a topic, and false for other topics.
func locate(topic string) (location, bool) {
	roomID, ok := keys.ParseRoomEvents(topic)
	if !ok {
		return location{}, false
	}
	shard, ok := keys.RoomShard(roomID)
	if !ok {
		return location{}, false
	}
	room, list := keys.RoomWithEvents(shard, roomID)
	return location{shard, roomID, room, list}, list == topic
}

// change has the values of a room that one call stores.
type change struct {
	at         location
	here, gone []int64 // user ids
	allOthers  bool    // all players of the lease who are not here are gone
}

// shardSet has the shards on which a lease may have players, as far as the store knows.
type shardSet map[keys.Shard]struct{}

type store struct {
	db    *redisdb.DB
	grace time.Duration
}

// renewal is the outcome of a renewal.
type renewal struct {
	ended         bool     // the lease is over for good
	shardsMissing bool     // the store lacks shards of the lease
	over          []string // leases of other nodes that were not renewed in time
}

func (st store) renew(ctx context.Context, lease string, lasts time.Duration, shards int) (renewal, error) {
	reply, err := st.db.RunScript(ctx, scripts.PresenceRenew,
		[]string{keys.PresenceLeases(), keys.PresenceShards(lease)},
		scripts.PresenceRenewArgs{Lease: lease, LeaseMS: lasts.Milliseconds(), Shards: shards}.List()...)
	switch {
	case err != nil:
		return renewal{}, err
	case reply.Status == scripts.Stale:
		return renewal{ended: true}, nil
	}
	v := redisdb.NewValues("the renewal of a lease", reply.Values)
	r := renewal{shardsMissing: v.NextText() == "1"}
	for v.Remaining() > 0 {
		r.over = append(r.over, v.NextText())
	}
	return r, v.Err()
}

// addShards stores the shards on which a lease may have players.
func (st store) addShards(ctx context.Context, lease string, shards shardSet) error {
	members := make([]any, 0, len(shards))
	for shard := range shards {
		members = append(members, shard.String())
	}
	err := st.db.Client.SAdd(ctx, keys.PresenceShards(lease), members...).Err()
	return redisdb.WrapError("store the shards of a lease", err)
}

// outcome is the effect of a change.
type outcome struct {
	hasSeat    map[int64]bool // by the user ids that are here
	leaseEnded bool
	err        error // the change may have been stored
}

// change stores what changed in rooms and returns an outcome for each. A change with a number below
// that of a stored one on the same shard is not stored.
func (st store) change(
	ctx context.Context, lease string, number int64, changes []change, ofEnded bool,
) []outcome {
	calls := make([]redisdb.ScriptCall, len(changes))
	ended := 0
	if ofEnded {
		ended = 1
	}
	for i, c := range changes {
		gone := joinIDs(c.gone)
		if c.allOthers {
			gone = "*"
		}
		calls[i] = redisdb.ScriptCall{
			Keys: []string{c.at.room, c.at.list, keys.PresenceLease(c.at.shard, lease)},
			Args: scripts.PresenceSetArgs{
				Publish: st.db.PublishCommand, Nonce: idempotency.NewNonce(), Lease: lease, Number: number,
				RoomID: c.at.roomID, GraceMS: st.grace.Milliseconds(), OfEnded: ended, Here: joinIDs(c.here), Gone: gone,
			}.List(),
		}
	}
	outcomes := make([]outcome, len(changes))
	for i, result := range st.db.RunScriptPipelined(ctx, scripts.PresenceSet, calls) {
		o := &outcomes[i]
		o.err, o.leaseEnded = result.Failure, result.Status == scripts.Stale
		v := redisdb.NewValues("the players of a room", result.Values)
		o.hasSeat = make(map[int64]bool, len(result.Values))
		for v.Remaining() > 0 {
			o.hasSeat[v.NextInt()] = true
		}
		o.err = cmp.Or(o.err, v.Err())
	}
	return outcomes
}

func joinIDs(ids []int64) string {
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(id, 10))
	}
	return b.String()
}

// runAsLeader runs work unless another node ends leases at this moment.
func (st store) runAsLeader(ctx context.Context, lasts time.Duration, work func(context.Context) error) error {
	_, err := st.db.RunAsLeader(ctx, keys.Lock(leaderLock), keys.FenceCounter(leaderLock), lasts,
		func(ctx context.Context, _ int64) error { return work(ctx) })
	return err
}

// claim ends a lease that is over. It returns false when the lease was renewed after all.
func (st store) endLease(ctx context.Context, lease string) (bool, error) {
	reply, err := st.db.RunScript(ctx, scripts.PresenceClaim, []string{keys.PresenceLeases()},
		scripts.PresenceClaimArgs{Lease: lease, NodeMS: st.db.Clock.NowMS()}.List()...)
	return reply.Status == scripts.OK, err
}

// roomsOf returns the rooms in which a claimed lease has players. From then on the lease cannot
// change anything in them.
func (st store) roomsOf(ctx context.Context, lease string) ([]location, error) {
	names, err := st.db.Client.SMembers(ctx, keys.PresenceShards(lease)).Result()
	if err != nil {
		return nil, redisdb.WrapError("read the shards of a lease", err)
	}
	var rooms []location
	for len(names) > 0 {
		chunk := names[:min(maxShards, len(names))]
		names = names[len(chunk):]
		var calls []redisdb.ScriptCall
		for _, name := range chunk {
			shard, ok := keys.ParseShard(name)
			if !ok {
				return nil, errors.New("a lease has " + strconv.Quote(name) + ", which is no shard")
			}
			calls = append(calls, redisdb.ScriptCall{
				Keys: []string{keys.PresenceLease(shard, lease)},
				Args: scripts.PresenceEndArgs{EndedMS: endedRetention.Milliseconds()}.List(),
			})
		}
		for _, result := range st.db.RunScriptPipelined(ctx, scripts.PresenceEnd, calls) {
			if result.Failure != nil {
				return nil, result.Failure
			}
			for _, roomID := range result.Values {
				if shard, ok := keys.RoomShard(roomID); ok {
					room, list := keys.RoomWithEvents(shard, roomID)
					rooms = append(rooms, location{shard, roomID, room, list})
				}
			}
		}
	}
	return rooms, nil
}

// finish notes that the players of a lease that has ended are announced.
func (st store) finish(ctx context.Context, lease string) error {
	now := time.Now()
	_, err := st.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.ZAdd(ctx, keys.PresenceLeases(), redis.Z{Score: -float64(now.UnixMilli()), Member: lease})
		oldest := -now.Add(-endedRetention).UnixMilli()
		p.ZRemRangeByScore(ctx, keys.PresenceLeases(), strconv.FormatInt(oldest, 10), "(0")
		p.Del(ctx, keys.PresenceShards(lease))
		return nil
	})
	return redisdb.WrapError("finish a lease", err)
}
