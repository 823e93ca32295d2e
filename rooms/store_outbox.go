package rooms

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

const (
	// outboxWork is the kind of work that applies the ended rooms that were left, for package leader.
	outboxWork = "outbox"

	outboxWorkers    = 4                // that apply at once what this node has ended
	outboxQueueSize  = 1024             // rooms that wait for them; the sweep finds those beyond it
	outboxPage       = 256              // entries in one read of the sweep
	applyTimeout     = 10 * time.Second // of one consumer
	outboxRetryDelay = time.Minute      // until the sweep tries a room again that could not be applied
	maxDeadLetters   = 1_000            // of a shard; more are counted and logged only
)

// queueEnded queues a room that this node has ended for its result consumer, if it has one. The
// call that ended it does not wait.
func (st *store) queueEnded(at location, room *Room) {
	if room.consumer == "" {
		return
	}
	select {
	case st.endedQueue <- at:
	default:
		st.applying.Changed(at.shard.GameID())
	}
}

// runOutbox applies the rooms that this node ends, and as the leader those that nodes left, until
// ctx ends.
func (st *store) runOutbox(ctx context.Context) error {
	var workers sync.WaitGroup
	for range outboxWorkers {
		workers.Go(func() { st.applyQueued(ctx) })
	}
	err := st.applying.Run(ctx)
	workers.Wait()
	return err
}

func (st *store) applyQueued(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case at := <-st.endedQueue:
			if err := st.applyEnded(ctx, at); err != nil {
				st.applying.Changed(at.shard.GameID())
				if ctx.Err() == nil {
					slog.WarnContext(ctx, "an ended room was not applied and will be again", "room", at.roomID, "error", err)
				}
			}
		}
	}
}

// applyEnded applies a room that has ended, unless that was done.
func (st *store) applyEnded(ctx context.Context, at location) error {
	entry, err := st.db.AutoPipelined.HGet(ctx, keys.RoomOutbox(at.shard), at.roomID).Result()
	switch err = redisdb.WrapError("read the outbox", err); {
	case errors.Is(err, redis.Nil):
		return nil
	case err != nil:
		return err
	}
	return st.applyEntry(ctx, at.shard, at.roomID, entry)
}

// applyEntry gives an entry of the outbox to its consumer and removes it, as a dead letter when it
// can never be applied. It returns an error when the entry has to come again.
func (st *store) applyEntry(ctx context.Context, shard keys.Shard, roomID, entry string) error {
	e, err := decodeEnded(roomID, entry)
	isForGood := err != nil // what cannot be read now never can
	if err == nil {
		err = st.apply(ctx, e)
		isForGood = apierror.IsFinal(err)
	}
	letter := ""
	if isForGood {
		letter = encodeDeadLetter(entry, err)
	} else if err != nil {
		return fmt.Errorf("apply room %s: %w", roomID, err)
	}
	reply, err := st.db.RunScript(ctx, scripts.OutboxClose, []string{keys.RoomOutbox(shard), keys.DeadLetters(shard)},
		scripts.OutboxCloseArgs{
			RoomID: roomID, Entry: entry, ParkedEntry: letter, MostParked: maxDeadLetters,
		}.List()...)
	if err != nil {
		return err
	}
	if letter != "" {
		st.deadLetterCount.Add(1)
		slog.ErrorContext(ctx, "an ended room was parked: it feeds what does not take it", "room", roomID,
			"entry", letter)
	}
	return reply.Err(scripts.OutboxClose)
}

// apply gives a room to its consumer.
func (st *store) apply(ctx context.Context, e Ended) error {
	var consume ResultConsumer
	switch {
	case e.Consumer == BoardsConsumer:
		consume = st.boardsConsumer
	case strings.HasPrefix(e.Consumer, MatchConsumerPrefix):
		consume = st.matchConsumer
	}
	if consume == nil {
		return fmt.Errorf("no consumer takes results for %q", e.Consumer)
	}
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()
	return consume(ctx, e)
}

// applyGames applies what waits in the outboxes of games, and of the free shards, and returns the
// games that still have something. It is the leader.Handler. A leader that was replaced does no
// harm: consumers apply a room once.
func (st *store) applyGames(ctx context.Context, _ int64, gameIDs []int64) (unfinished []int64, err error) {
	waiting, err := st.applyShards(ctx, st.shardsOf(gameIDs))
	return gamesOf(waiting), err // games also with an error
}

// applyShards applies the results in the outboxes of shards. It returns the shards whose outbox is
// not empty after that.
func (st *store) applyShards(ctx context.Context, shards []keys.Shard) (waiting []keys.Shard, err error) {
	shards, waiting = st.splitStopped(shards)
	var errs []error
	for chunk := range slices.Chunk(shards, maxPipelined) {
		pages := make([]*redis.ScanCmd, len(chunk))
		_, _ = st.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, shard := range chunk {
				pages[i] = p.HScan(ctx, keys.RoomOutbox(shard), 0, "", outboxPage)
			}
			return nil
		})
		for i, shard := range chunk {
			isDone, err := st.applyShard(ctx, shard, pages[i])
			if errs = append(errs, err); !isDone {
				waiting = append(waiting, shard)
			}
		}
	}
	return waiting, errors.Join(errs...)
}

// applyShard applies the entries of an outbox, beginning with the given first page. An entry that
// cannot be applied does not hold up the others. It reports whether no entry is left.
func (st *store) applyShard(ctx context.Context, shard keys.Shard, page *redis.ScanCmd) (isDone bool, err error) {
	isDone = true
	for {
		entries, cursor, err := page.Result()
		if err = redisdb.WrapError("read the outbox of "+shard.String(), err); err != nil {
			return redisdb.IsWrongType(err), err // then a look a minute is enough
		}
		for entry := range slices.Chunk(entries, 2) { // id of the room, how it ended
			if !hasTime(ctx) {
				return false, nil
			}
			if _, isDelayed := st.delayedRooms.Get(entry[0]); isDelayed {
				isDone = false
				continue
			}
			err := st.applyEntry(ctx, shard, entry[0], entry[1])
			if isOutside(err) {
				return false, err
			}
			if err != nil {
				isDone = false
				st.delayedRooms.Add(entry[0], struct{}{})
				slog.ErrorContext(ctx, "an ended room was not applied and will be again", "room", entry[0], "error", err)
			}
		}
		if cursor == 0 {
			return isDone, nil
		}
		page = st.db.Client.HScan(ctx, keys.RoomOutbox(shard), cursor, "", outboxPage)
	}
}

var endLayout = redisdb.PackedLayout{Name: "the end of a room", Separator: '|', Layout: scripts.RoomEnd}

// decodeEnded returns the room of an entry.
func decodeEnded(roomID, entry string) (Ended, error) {
	r := endLayout.Split(entry)
	e := Ended{
		RoomID: roomID, EndedAt: r.Time("ended"), GameID: r.Int("game"), Consumer: r.Text("feeds"),
		Status: Status(r.Text("status")), Reason: r.Text("reason"), SettledBy: SettledBy(r.Text("settled_by")),
	}
	if r.Text("started") != "" {
		e.StartedAt = r.Time("started")
	}
	e.TokenDecimals = int(r.Int("decimals"))
	err := r.Err()
	if err == nil {
		e.Places, err = decodePlaces(r.Text("placements"))
	}
	if err != nil {
		return Ended{}, fmt.Errorf("room %s: %w", roomID, err)
	}
	return e, nil
}

// decodePlaces reads what encodePlacements returns.
func decodePlaces(text string) ([]Place, error) {
	var places []Place
	for one := range strings.SplitSeq(strings.TrimSuffix(text, ";"), ";") {
		parts := strings.Split(one, ":")
		if text == "" {
			break
		}
		if len(parts) != 4 {
			return nil, fmt.Errorf("decode the place %q: it has %d values", one, len(parts))
		}
		p := Place{Score: parts[3]}
		var errs [3]error
		p.UserID, errs[0] = strconv.ParseInt(parts[0], 10, 64)
		p.Place, errs[1] = strconv.Atoi(parts[1])
		if parts[2] != "" {
			var units int64
			units, errs[2] = strconv.ParseInt(parts[2], 10, 64)
			p.Payout = wallet.Units(units)
		}
		for _, err := range errs {
			if err != nil {
				return nil, fmt.Errorf("decode the place %q: %w", one, err)
			}
		}
		places = append(places, p)
	}
	return places, nil
}
