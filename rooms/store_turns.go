package rooms

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/leader"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
)

// turnWork is the kind of work that ends turns, for package leader. It is apart from the sweep,
// which may be busy for seconds.
const turnWork = "turns"

// turnTiming has another leader take over within three seconds after one died.
var turnTiming = leader.Timing{Interval: 500 * time.Millisecond, Lease: 2 * time.Second}

// minTurnWait is the shortest time between two looks at the turns of one shard, so that many
// deadlines cost few looks.
const minTurnWait = 50 * time.Millisecond

// endTurns ends the turns whose time has passed in the rooms of games, and waits for those that end
// before the next election. It is a leader.Handler and returns the games that have turns. A
// replaced leader does no harm, because the scripts check the clock themselves.
func (st *store) endTurns(ctx context.Context, _ int64, gameIDs []int64) (unfinished []int64, err error) {
	shards, stopped := st.splitStopped(st.shardsOf(gameIDs))
	until := time.Now().Add(turnTiming.Interval)
	var errs []error
	for first := true; ; first = false {
		due, err := st.listDue(ctx, keys.RoomTurns, shards, nil)
		errs = append(errs, err)
		if first { // at once: a leader that dies while it waits must leave them to the next one
			unfinished = gamesOf(slices.Concat(due.busy, stopped))
			errs = append(errs, st.timing.Name(ctx, unfinished))
		}
		_, err = st.endTurnsOf(ctx, due.rooms)
		errs = append(errs, err)
		pause := max(due.untilNext, minTurnWait)
		if due.untilNext == 0 || ctx.Err() != nil || time.Now().Add(pause).After(until) {
			return unfinished, errors.Join(errs...)
		}
		shards = due.busy
		wait(ctx, pause)
	}
}

// endTurnsOf ends the turns of rooms whose time is over. It returns how many rooms it looked at.
func (st *store) endTurnsOf(ctx context.Context, rooms []location) (ended int, err error) {
	var errs []error
	for batch := range slices.Chunk(rooms, sweepBatchRooms) {
		n, err := st.endTurnBatch(ctx, batch)
		ended += n
		errs = append(errs, err)
	}
	return ended, errors.Join(errs...)
}

func (st *store) endTurnBatch(ctx context.Context, batch []location) (ended int, err error) {
	var errs []error
	fail := func(at location, err error) {
		errs = append(errs, fmt.Errorf("end the turn of room %s: %w", at.roomID, err))
		if !isOutside(err) && !errors.Is(err, redisdb.ErrSkewed) {
			st.postpone(ctx, keys.RoomTurns, at)
		}
	}
	names := make([]string, len(batch))
	for i, at := range batch {
		names[i] = at.roomKey
	}
	var calls []redisdb.ScriptCall
	var skipped []location
	for i, hash := range st.db.ReadHashes(ctx, names) {
		at := batch[i]
		room, err := decodeRoom(at.roomID, hash.Fields)
		switch err = cmp.Or(hash.Err, err); {
		case err != nil:
			fail(at, err)
		case room.Status == Started && room.Turn != nil && room.Turn.forfeits:
			if err := st.forfeitTurn(ctx, at, *room); err != nil {
				if fail(at, err); errors.Is(err, redisdb.ErrSkewed) {
					return ended, errors.Join(errs...)
				}
				continue
			}
			ended++
		default:
			k := st.newKeyList(command{location: at, gameID: room.GameID}).addTurns()
			args := scripts.RoomTurnSkipArgs{
				Publish: st.db.PublishCommand, Nonce: idempotency.NewNonce(), RoomID: at.roomID,
				NodeMS: st.db.Clock.NowMS(), LeastMS: st.pace.leastTurn(time.Now(), room).Milliseconds(),
			}.List()
			calls, skipped = append(calls, redisdb.ScriptCall{Keys: k.names, Args: args}), append(skipped, at)
		}
	}
	if len(calls) == 0 {
		return ended, errors.Join(errs...)
	}
	for i, result := range st.db.RunScriptPipelined(ctx, scripts.RoomTurnSkip, calls) {
		if result.Failure != nil {
			fail(skipped[i], result.Failure)
			continue
		}
		if result.IsSkewed() {
			return ended, errors.Join(append(errs, redisdb.ErrSkewed)...)
		}
		ended++ // stale: it is read again at the next look
	}
	return ended, errors.Join(errs...)
}

// turnPace keeps in which rooms of a host turns go on by themselves, so that one host has at most
// one such turn a second however many rooms it opens. The leader has it in memory: a new leader
// learns of a room at the first turn that it ends there.
type turnPace struct {
	rooms map[int64]map[string]time.Time // by host and room id: until when a room counts
	next  time.Time                      // when hosts without rooms are dropped
}

// turnPaceSlack bounds how late after its deadline a turn may end so that its room still counts.
const turnPaceSlack = 5 * time.Second

// leastTurn returns how long the next turn of a room must last, if one comes of the turn that is
// over: a second for each room of its host in which turns go on.
func (p *turnPace) leastTurn(now time.Time, room *Room) time.Duration {
	if room.Turn == nil {
		return 0
	}
	if now.After(p.next) {
		p.drop(now)
	}
	of := p.rooms[room.HostID]
	if of == nil {
		of = map[string]time.Time{}
		p.rooms[room.HostID] = of
	}
	for id, until := range of {
		if now.After(until) {
			delete(of, id)
		}
	}
	of[room.RoomID] = now
	least := time.Duration(len(of)) * time.Second
	of[room.RoomID] = now.Add(max(least, room.Turn.Length) + turnPaceSlack)
	return least
}

// drop forgets rooms that count no more.
func (p *turnPace) drop(now time.Time) {
	p.next = now.Add(time.Minute)
	for host, of := range p.rooms {
		for id, until := range of {
			if now.After(until) {
				delete(of, id)
			}
		}
		if len(of) == 0 {
			delete(p.rooms, host)
		}
	}
}

// forfeitTurn forfeits the seat of the player whose turn is over, as a leave does.
func (st *store) forfeitTurn(ctx context.Context, at location, room Room) error {
	player := principal.Caller{Role: principal.Player, UserID: room.Turn.UserID, GameID: room.GameID}
	c := command{at, player, room.GameID, idempotency.Receipt{}, idempotency.NewNonce()}
	turn := *room.Turn
	_, err := retryStale(func(last scriptResult) (scriptResult, error) {
		r, err := st.leave(ctx, c, cmp.Or(last.room, &room).settleWithout(player.UserID), turn.deadlineMS)
		return st.closeIfOver(ctx, c, r, err) // as after a leave
	})
	if errors.Is(err, apierror.VersionConflict) {
		return nil // at the next look
	}
	return err // another status: the room has ended, as the next look finds
}

// shardsOf returns the shards on which rooms of these games can be: always all shards of free
// rooms, which together count as the game freeRooms, and the economy of each other game.
func (st *store) shardsOf(gameIDs []int64) []keys.Shard {
	shards := st.freeShards()
	for _, id := range gameIDs {
		if id != freeRooms {
			shards = append(shards, keys.EconomyShard(id))
		}
	}
	return shards
}

// gamesOf returns the games of shards in order, freeRooms for a free shard.
func gamesOf(shards []keys.Shard) []int64 {
	ids := []int64{}
	for _, shard := range shards {
		ids = append(ids, shard.GameID())
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
