package rooms_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// deadlines are rooms that a clock would end: 20 that are open, and started ones.
type deadlines struct {
	open                       []rooms.Room
	match, disputed            rooms.Room
	turnSkipped, turnForfeited rooms.Room
	turnHolders                map[string]int64
}

func (f *fixture) makeDeadlines(t *testing.T) (d deadlines) {
	t.Helper()
	ctx := t.Context()
	for i := range 20 {
		in := rooms.CreateInput{MaxPlayers: 3}
		if i%2 == 0 {
			in = f.paidRoom("1", 3)
		}
		d.open = append(d.open, must(t)(f.service.Create(ctx, f.newPlayer(1000), in, noKey)))
	}
	players := func() []principal.Caller {
		return []principal.Caller{f.newPlayer(1000), f.newPlayer(1000), f.newPlayer(1000)}
	}
	d.match = f.startedRoom(t, f.paidRoom("1", 3), players()...)
	d.turnHolders = map[string]int64{}
	give := func(room rooms.Room, p principal.Caller) {
		must(t)(f.service.SetTurn(ctx, f.Server(), turnOf(room, p, 60), noKey))
		d.turnHolders[room.RoomID] = p.UserID
	}
	three := players()
	d.turnSkipped = f.startedRoom(t, f.paidRoom("1", 3), three...)
	give(d.turnSkipped, three[1])
	f.Settings.TurnTimeout = games.TurnForfeits
	three = players()
	d.turnForfeited = f.startedRoom(t, f.paidRoom("1", 3), three...)
	give(d.turnForfeited, three[1])
	f.Settings.TurnTimeout = games.TurnSkips
	room, two := f.startConsensus(2, "1")
	must(t)(f.service.Finish(ctx, two[0], room.RoomID, placesOf(two, "12"), noKey))
	d.disputed = must(t)(f.service.Finish(ctx, two[1], room.RoomID, placesOf(two, "21"), noKey))
	return d
}

func (d *deadlines) all() []rooms.Room {
	return append(slices.Clone(d.open), d.match, d.turnSkipped, d.turnForfeited, d.disputed)
}

// makeAllDue has the next sweep look at all rooms and turns.
func (f *fixture) makeAllDue(d deadlines) {
	f.t.Helper()
	for _, room := range d.all() {
		f.makeDue(room.RoomID)
	}
	for roomID := range d.turnHolders {
		shard, _ := keys.RoomShard(roomID)
		testkit.Check(f.t, f.db.Client.ZAdd(f.t.Context(), keys.RoomTurns(shard), redis.Z{Score: 1, Member: roomID}).Err())
	}
}

// requireUntouched checks that no room has ended and no turn has passed.
func (f *fixture) requireUntouched(t *testing.T, d deadlines, when string) {
	t.Helper()
	for _, was := range d.all() {
		is, err := f.service.Get(f.t.Context(), operator, was.RoomID)
		if err != nil || is.Status != was.Status {
			t.Errorf("%s, a room that was %s is %s (%s), %v", when, was.Status, is.Status, is.CancelReason, err)
			continue
		}
		if holder := d.turnHolders[was.RoomID]; holder != 0 && (is.Turn == nil || is.Turn.UserID != holder) {
			t.Errorf("%s, the turn of %d is that of %+v", when, holder, is.Turn)
		}
	}
}

func TestAStoreWhoseClockIsWrongEndsNoRoomAndNoTurn(t *testing.T) {
	redistest.EachMovable(t, func(t *testing.T, db *redisdb.DB, clock *redistest.MovedClock) {
		f := newFixture(t, db)
		d := f.makeDeadlines(t)
		for _, ahead := range []time.Duration{100 * time.Hour, -time.Hour} {
			f.makeAllDue(d)
			clock.Move(ahead)
			testkit.Fails(f.service.Sweep(t.Context()))(t, redisdb.ErrSkewed, "%v: the sweep returns", ahead)
			f.requireUntouched(t, d, ahead.String())
			if db.Clock.AllowsEnding() {
				t.Errorf("%v: the node would go on at once", ahead)
			}
			clock.Move(0)
			redistest.LookAtClocks(t, db)
		}
		// All goes on by itself, and only what is really over ends.
		idle := d.open[0]
		f.setBack(idle.RoomID, "changed", time.Hour)
		f.makeAllDue(d)
		testkit.Must(f.service.Sweep(t.Context()))(t)
		if r, err := f.service.Get(t.Context(), operator, idle.RoomID); r.CancelReason != "idle" {
			t.Errorf("the idle room is %+v, %v", r, err)
		}
		d.open = d.open[1:]
		f.requireUntouched(t, d, "after it")
		f.requireBooksBalance()
	})
}

// The clock jumps when the sweep has read it and found what is due: only the scripts can notice.
func TestAJumpJustBeforeAScriptEndsNothing(t *testing.T) {
	redistest.EachMovable(t, func(t *testing.T, db *redisdb.DB, clock *redistest.MovedClock) {
		f := newFixture(t, db)
		d := f.makeDeadlines(t)
		f.makeAllDue(d)
		var jump sync.Once
		jumped := false
		redistest.ObserveCommands(db, func(commands []redis.Cmder) {
			if slices.ContainsFunc(commands, func(c redis.Cmder) bool { return c.Name() == "zrange" }) {
				jump.Do(func() { clock.Move(100 * time.Hour); jumped = true })
			}
		})
		if _, err := f.service.Sweep(t.Context()); !errors.Is(err, redisdb.ErrSkewed) || !jumped {
			t.Errorf("the sweep returns %v, and the clock jumped: %v", err, jumped)
		}
		f.requireUntouched(t, d, "after the jump")
	})
}

// Each room is swept alone by a node that has just looked: one script that refuses must not keep
// the others from being called.
func TestEveryRoomRefusesAJumpByItself(t *testing.T) {
	db, clock := redistest.OpenMovable(t)
	f := newFixture(t, db)
	d := f.makeDeadlines(t)
	listed := "" // the index whose reading is the last command before the jump
	redistest.ObserveCommands(db, func(commands []redis.Cmder) {
		reads := func(c redis.Cmder) bool { return c.Name() == "zrange" && c.Args()[1] == listed }
		if slices.ContainsFunc(commands, reads) {
			clock.Move(100 * time.Hour)
		}
	})
	for _, room := range []rooms.Room{d.open[0], d.open[1], d.match, d.turnSkipped, d.turnForfeited, d.disputed} {
		shard, _ := keys.RoomShard(room.RoomID)
		index := keys.RoomsDue(shard)
		if d.turnHolders[room.RoomID] != 0 {
			index = keys.RoomTurns(shard)
		}
		testkit.Check(t, db.Client.ZAdd(t.Context(), index, redis.Z{Score: 1, Member: room.RoomID}).Err())
		listed = index
		testkit.Fails(f.service.Sweep(t.Context()))(t, redisdb.ErrSkewed, "%s: the sweep returns", room.Status)
		listed = ""
		clock.Move(0)
		redistest.LookAtClocks(t, db)
		testkit.Check(t, db.Client.ZRem(t.Context(), index, room.RoomID).Err())
	}
	f.requireUntouched(t, d, "after the jumps")
}
