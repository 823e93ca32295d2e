package rooms

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/leader"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

const (
	// sweepWork is the kind of the sweep's work for package leader, and the name of its lock.
	sweepWork = "rooms"
	// freeRooms stands for the free shards among the ids of games that the leader looks at.
	freeRooms = 0

	sweepLease      = 10 * time.Second // of one Sweep
	sweepBatchRooms = 128              // rooms that are swept in one round trip
	sweepIdleFactor = 4                // the store has this many times a batch's time for others: 80 %
	sweepRetryDelay = time.Minute      // until a room that cannot be swept is tried again
	// sweepReserve is the rest of a lease in which the sweep starts no other batch.
	sweepReserve = time.Second
)

// sweepAll looks once at every shard, unless another node sweeps. It returns how many rooms it
// swept.
func (st *store) sweepAll(ctx context.Context) (swept int, err error) {
	sweep := func(ctx context.Context, fence int64) error {
		last, err := leader.CountGames(ctx, st.db)
		if err != nil {
			return err
		}
		shards := st.freeShards()
		for id := range last {
			shards = append(shards, keys.EconomyShard(id+1))
		}
		running, _ := st.splitStopped(shards)
		turns, listErr := st.listDue(ctx, keys.RoomTurns, running, nil)
		ended, turnErr := st.endTurnsOf(ctx, turns.rooms)
		swept, _, err = st.sweepShards(ctx, shards, fence)
		swept += ended
		_, applyErr := st.applyShards(ctx, shards)
		return errors.Join(listErr, turnErr, err, applyErr)
	}
	_, err = st.db.RunAsLeader(ctx, keys.Lock(sweepWork), keys.FenceCounter(sweepWork), sweepLease, sweep)
	return swept, err
}

// sweepGames sweeps the economies of the given games, and always the free shards. It returns the
// games that still have rooms; the free shards together count as the game freeRooms. It is the
// leader.Handler.
func (st *store) sweepGames(ctx context.Context, fence int64, gameIDs []int64) (unfinished []int64, err error) {
	_, busy, err := st.sweepShards(ctx, st.shardsOf(gameIDs), fence)
	return gamesOf(busy), err // games also with an error
}

// sweepShards sweeps the rooms of shards that are due. It returns how many it swept, and the shards
// that had rooms, due or not. After an error it goes on with other rooms, but not as a leader that
// was replaced, and not past the end of its lease.
func (st *store) sweepShards(
	ctx context.Context, shards []keys.Shard, fence int64,
) (swept int, busy []keys.Shard, err error) {
	var errs []error
	shards, stopped := st.splitStopped(shards)
	busy = stopped
	skip := map[keys.Shard]int64{} // rooms that failed and are still first in the index
	for first := true; len(shards) > 0; first = false {
		due, err := st.listDue(ctx, keys.RoomsDue, shards, skip)
		errs = append(errs, err)
		if first {
			busy = append(due.busy, stopped...)
		}
		for batch := range slices.Chunk(due.rooms, sweepBatchRooms) {
			if swept > 0 && !hasTime(ctx) {
				return swept, busy, errors.Join(errs...)
			}
			begin := time.Now()
			done, failed, err := st.sweepBatch(ctx, batch, fence)
			swept += done
			for _, room := range failed {
				skip[room.shard]++
			}
			if errs = append(errs, err); isLeadOver(err) || ctx.Err() != nil {
				return swept, busy, errors.Join(errs...)
			}
			if len(batch) == sweepBatchRooms { // there may be more
				wait(ctx, sweepIdleFactor*time.Since(begin))
			}
		}
		shards = due.full
	}
	return swept, busy, errors.Join(errs...)
}

// splitStopped returns the shards whose money goes on and the others, whose rooms wait until it
// does.
func (st *store) splitStopped(shards []keys.Shard) (running, stopped []keys.Shard) {
	for _, shard := range shards {
		if shard.Paid() && st.checkMoney(shard.GameID()) != nil {
			stopped = append(stopped, shard)
		} else {
			running = append(running, shard)
		}
	}
	return running, stopped
}

// hasTime reports whether the lease of a leader lasts for another batch.
func hasTime(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() == nil && (!ok || time.Until(deadline) > sweepReserve)
}

// wait waits, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// dueRooms is one look at the rooms that are due.
type dueRooms struct {
	rooms []location
	busy  []keys.Shard // the shards that have rooms, due or not
	full  []keys.Shard // the shards that may have more rooms that are due

	untilNext time.Duration // until the next room is due; 0 when none was seen
}

// listDue returns the rooms that are due by the store's clock, up to sweepBatchRooms of each shard,
// behind as many as are to be skipped. index returns the key of a shard's rooms by the time when
// they are due. With an error listDue returns the rooms of the other shards; it returns ErrSkewed
// and no room when nothing may be ended.
func (st *store) listDue(
	ctx context.Context, index func(keys.Shard) string, shards []keys.Shard, skip map[keys.Shard]int64,
) (dueRooms, error) {
	now, err := st.db.ReadClockToEnd(ctx)
	if err != nil {
		return dueRooms{busy: shards}, err
	}
	var due dueRooms
	var errs []error
	for chunk := range slices.Chunk(shards, maxPipelined) {
		replies := make([]*redis.ZSliceCmd, len(chunk))
		_, _ = st.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, shard := range chunk {
				from := skip[shard]
				replies[i] = p.ZRangeWithScores(ctx, index(shard), from, from+sweepBatchRooms-1)
			}
			return nil
		})
		for i, shard := range chunk {
			if err := replies[i].Err(); err != nil {
				errs = append(errs, redisdb.WrapError("list rooms of "+shard.String()+" that are due", err))
				if !redisdb.IsWrongType(err) { // else a look a minute is enough
					due.busy = append(due.busy, shard)
				}
				continue
			}
			entries := replies[i].Val()
			if len(entries) > 0 {
				due.busy = append(due.busy, shard)
			}
			n := 0
			for n < len(entries) && int64(entries[n].Score) <= now.UnixMilli() {
				roomID, _ := entries[n].Member.(string)
				due.rooms = append(due.rooms, newLocation(shard, roomID))
				n++
			}
			if n < len(entries) {
				untilNext := time.Duration(int64(entries[n].Score)-now.UnixMilli()) * time.Millisecond
				due.untilNext = min(cmp.Or(due.untilNext, untilNext), untilNext)
			}
			if n == sweepBatchRooms {
				due.full = append(due.full, shard)
			}
		}
	}
	return due, errors.Join(errs...)
}

// errLeaderReplaced means that another node leads the sweep now.
var errLeaderReplaced = errors.New("another leader has taken over")

// isLeadOver reports whether a leader must end nothing more.
func isLeadOver(err error) bool {
	return errors.Is(err, errLeaderReplaced) || errors.Is(err, redisdb.ErrSkewed)
}

// sweepBatch reads rooms in one round trip and sweeps them in another; a room that a player joined
// in between is read again. A room that cannot be swept as it is stored is looked at again later,
// and logged then too. sweepBatch returns how many rooms it swept, which ones it could not sweep
// that are still due, and why.
func (st *store) sweepBatch(
	ctx context.Context, batch []location, fence int64,
) (swept int, failed []location, err error) {
	var errs []error
	outside := false
	fail := func(at location, err error) {
		isFirst := !outside
		if outside = outside || isOutside(err); !isOutside(err) || isFirst { // an outage once is enough
			errs = append(errs, err)
		}
		if isOutside(err) || !st.postpone(ctx, keys.RoomsDue, at) {
			failed = append(failed, at)
		}
	}
	for range maxScriptAttempts {
		if len(batch) == 0 {
			return swept, failed, errors.Join(errs...)
		}
		due := st.prepareSweep(ctx, batch, fence, fail)
		sound, feeding := due.sound, due.hasConsumer
		results := due.run(ctx, st.db)
		for _, at := range sound {
			st.changed(at.shard)
		}
		batch = nil
		for i, result := range results {
			switch {
			case result.Failure != nil:
				fail(sound[i], fmt.Errorf("sweep room %s: %w", sound[i].roomID, result.Failure))
			case result.IsSkewed():
				return swept, append(failed, sound[i:]...), errors.Join(append(errs, redisdb.ErrSkewed)...)
			case result.Status == scripts.OK:
				if swept++; feeding[i] {
					st.applying.Changed(sound[i].shard.GameID())
				}
			case result.Status == scripts.Stale && !result.IsFromReplacedLeader():
				batch = append(batch, sound[i])
			default:
				return swept, append(failed, sound[i:]...), errors.Join(append(errs, errLeaderReplaced)...)
			}
		}
	}
	if len(batch) > 0 {
		errs = append(errs, apierror.VersionConflict)
	}
	return swept, append(failed, batch...), errors.Join(errs...)
}

// postpone makes a room due later in an index. It reports whether it did.
func (st *store) postpone(ctx context.Context, index func(keys.Shard) string, at location) bool {
	now, err := st.db.ReadClockToEnd(ctx)
	if err != nil {
		return false
	}
	later := now.Add(sweepRetryDelay).UnixMilli()
	return st.db.Client.Do(ctx, "ZADD", index(at.shard), "XX", later, at.roomID).Err() == nil
}

// sweepCalls are the calls that sweep some rooms.
type sweepCalls struct {
	calls       []redisdb.ScriptCall // one for each room
	sound       []location           // the rooms
	hasConsumer []bool               // whether somebody waits for its end
	windows     int                  // how many of the first ones end a window for reports
}

// run runs the calls and returns their results in the same order.
func (c *sweepCalls) run(ctx context.Context, db *redisdb.DB) []redisdb.ScriptResult {
	var results []redisdb.ScriptResult
	if c.windows > 0 {
		results = db.RunScriptPipelined(ctx, scripts.RoomWindowClose, c.calls[:c.windows])
	}
	if c.windows < len(c.calls) {
		results = append(results, db.RunScriptPipelined(ctx, scripts.RoomSweep, c.calls[c.windows:])...)
	}
	return results
}

// add adds the call for a room.
func (c *sweepCalls) add(at location, room *Room, call redisdb.ScriptCall) {
	if keys.RoomFeeds(at.roomID) {
		call.WithFeed = true
		call.Keys = append(call.Keys, keys.FeedHead(at.shard, room.GameID), keys.Feed(at.shard, room.GameID))
	}
	i := len(c.calls)
	if room.hasWindow() {
		i = c.windows
		c.windows++
	}
	c.calls, c.sound = slices.Insert(c.calls, i, call), slices.Insert(c.sound, i, at)
	c.hasConsumer = slices.Insert(c.hasConsumer, i, room.consumer != "" && !room.Status.Ended())
}

// prepareSweep reads rooms and returns a call for each, without those that cannot be read, for
// which it calls fail. A room in which a window for reports runs is not swept: its window is closed
// when its time has come.
func (st *store) prepareSweep(
	ctx context.Context, batch []location, fence int64, fail func(location, error),
) (due sweepCalls) {
	names := make([]string, len(batch))
	for i, at := range batch {
		names[i] = at.roomKey
	}
	for i, hash := range st.db.ReadHashes(ctx, names) {
		at := batch[i]
		room, err := decodeRoom(at.roomID, hash.Fields)
		if err = cmp.Or(hash.Err, err); err != nil {
			fail(at, err)
			continue
		}
		if room.hasWindow() {
			due.add(at, room, st.windowCall(at, room))
		} else {
			due.add(at, room, st.sweepCall(at, room, fence))
		}
	}
	return due
}

// sweepCall returns the call that sweeps a room; the zero Room is one that does not exist.
func (st *store) sweepCall(at location, room *Room, fence int64) redisdb.ScriptCall {
	k := st.newKeyList(command{location: at, gameID: room.GameID})
	index, wasDisputed := startedIndexOf(room.Status)
	k.addIndexes(openIndex, createdIndex, index, finishedIndex, cancelledIndex).addDue().addIndexes(allIndex)
	k.add(keys.RoomCode(at.shard, room.Code), keys.RoomsFence(at.shard))
	if !at.shard.Paid() {
		k.add(keys.FreeRooms(at.shard))
	}
	users := room.seatedUsers()
	return redisdb.ScriptCall{
		Keys: k.addLedger().addPlayers(users).addOutbox(room.consumer).names,
		Args: scripts.RoomSweepArgs{
			Publish: st.db.PublishCommand, Nonce: idempotency.NewNonce(), RoomID: at.roomID, Users: joinInts(users),
			Fence: fence, EventsMS: eventsRetention.Milliseconds(), DisputeMS: st.disputeTimeout.Milliseconds(),
			WasDisputed: wasDisputed, NodeMS: st.db.Clock.NowMS(),
		}.List(),
	}
}
