package rooms_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/testkit"
)

// turnOf is the input that gives a player the turn.
func turnOf(room rooms.Room, p principal.Caller, seconds int64) rooms.TurnInput {
	return rooms.TurnInput{RoomID: room.RoomID, UserID: &p.UserID, Seconds: &seconds}
}

// startedRoom returns a room in which the players play; the first one is the host.
func (f *fixture) startedRoom(t *testing.T, in rooms.CreateInput, players ...principal.Caller) rooms.Room {
	t.Helper()
	ctx := t.Context()
	room := must(t)(f.service.Create(ctx, players[0], in, noKey))
	for _, p := range players[1:] {
		must(t)(f.service.Join(ctx, p, room.RoomID, noKey))
	}
	return must(t)(f.service.Start(ctx, players[0], room.RoomID, noKey))
}

// runNodes runs the background work of several nodes on the fixture's store, and returns what stops
// each.
func (f *fixture) runNodes(t *testing.T, n int) (stop []func()) {
	t.Helper()
	for range n {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		node := f.newService()
		go func() {
			defer close(ended)
			_ = node.Run(ctx)
		}()
		stopNode := func() { cancel(); <-ended }
		stop = append(stop, stopNode)
		t.Cleanup(stopNode)
	}
	return stop
}

// turnEvents returns the room.turn events of a room, oldest first: who has the turn, by the time of
// the event.
func (f *fixture) turnEvents(room rooms.Room) (users []int64, reasons []string, at []time.Time) {
	f.t.Helper()
	list := testkit.Must(f.service.ListEvents(f.t.Context(), operator, room.RoomID, 0))(f.t)
	for _, raw := range list.Events {
		var e struct {
			Type string    `json:"type"`
			At   time.Time `json:"at"`
			Data struct {
				UserID int64  `json:"userId"`
				Reason string `json:"reason"`
			} `json:"data"`
		}
		testkit.Check(f.t, wire.Unmarshal(raw, &e))
		if e.Type == events.RoomTurn.Name {
			users, reasons, at = append(users, e.Data.UserID), append(reasons, e.Data.Reason), append(at, e.At)
		}
	}
	return users, reasons, at
}

// waitUntil polls until a condition holds.
func waitUntil(t testing.TB, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("it does not come")
		}
	}
}

// Several nodes sweep at once. Each turn ends once, and within a second of its deadline.
func TestATurnEndsOnceWithinASecondOfItsDeadline(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		var open []rooms.Room
		var all [][]int64
		for i := range 12 {
			players := []principal.Caller{f.newPlayer(1000), f.newPlayer(1000), f.newPlayer(1000)}
			in := rooms.CreateInput{MaxPlayers: 3}
			if i%2 == 0 {
				in = f.paidRoom("1", 3)
			}
			room := f.startedRoom(t, in, players...)
			must(t)(f.service.SetTurn(ctx, players[0], turnOf(room, players[1], 1), noKey))
			open = append(open, room)
			all = append(all, []int64{players[1].UserID, players[2].UserID, players[0].UserID})
		}
		f.runNodes(t, 3)
		const turns = 4 // the one that was set, and three that came of it
		waitUntil(t, func() bool {
			return !slices.ContainsFunc(open, func(r rooms.Room) bool {
				users, _, _ := f.turnEvents(r)
				return len(users) < turns
			})
		})
		var latest time.Duration
		for i, room := range open {
			users, reasons, at := f.turnEvents(room)
			for n, user := range users {
				if user != all[i][n%3] || reasons[n] != map[bool]string{true: "set", false: "skipped"}[n == 0] {
					t.Fatalf("turn %d of room %d is that of %d (%s); want %d", n, i, user, reasons[n], all[i][n%3])
				}
				if n > 0 {
					late := at[n].Sub(at[n-1]) - time.Second
					latest = max(latest, late)
					if late < 0 {
						t.Fatalf("turn %d of room %d ended %v before its time", n-1, i, -late)
					}
				}
			}
		}
		t.Logf("the latest of %d turns ended %v after its deadline", len(open)*(turns-1), latest)
		if latest > time.Second {
			t.Errorf("a turn ended %v after its deadline", latest)
		}
	})
}

// The leader is stopped, or dies with the lock in its hand; another node goes on.
func TestTurnsGoOnWhenTheirLeaderDies(t *testing.T) {
	eachStoreAtOnce(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		a, b := f.newPlayer(0), f.newPlayer(0)
		room := f.startedRoom(t, rooms.CreateInput{MaxPlayers: 2}, a, b)
		stop := f.runNodes(t, 2)
		must(t)(f.service.SetTurn(ctx, a, turnOf(room, b, 1), noKey))
		count := func() int { users, _, _ := f.turnEvents(room); return len(users) }
		waitUntil(t, func() bool { return count() >= 2 })
		stop[0]()
		// What a leader leaves behind that was killed while it waited for a deadline.
		lock := keys.Lock("turns")
		testkit.Check(t, f.db.Client.Set(ctx, lock, "a dead node", 2*time.Second).Err())
		before := count()
		waitUntil(t, func() bool { return count() >= before+2 })
		_, _, at := f.turnEvents(room)
		var longest time.Duration
		for n := 1; n < len(at); n++ {
			longest = max(longest, at[n].Sub(at[n-1])-time.Second)
		}
		t.Logf("a turn ended %v after its deadline", longest)
		if longest > 4*time.Second {
			t.Errorf("a turn ended %v after its deadline", longest)
		}
	})
}

// A forfeit at a deadline moves money as a leave does, also while nodes race for it.
func TestForfeitsAtADeadlineMoveMoneyExactly(t *testing.T) {
	eachStoreAtOnce(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		f.Settings.TurnTimeout = games.TurnForfeits
		a, b, c := f.newPlayer(1000), f.newPlayer(1000), f.newPlayer(1000)
		in := f.paidRoom("1", 3)
		in.RakeBps = new(500)
		room := f.startedRoom(t, in, a, b, c)
		f.runNodes(t, 3)
		must(t)(f.service.SetTurn(ctx, f.Server(), turnOf(room, b, 1), noKey))
		waitUntil(t, func() bool {
			now, err := f.service.Get(ctx, operator, room.RoomID)
			return err == nil && now.Status == rooms.Finished
		})
		ended, err := f.service.Get(ctx, operator, room.RoomID)
		if err != nil || ended.Pot != 300 || ended.Rake != 15 || len(ended.Placements()) != 1 ||
			ended.Placements()[0].UserID != a.UserID {
			t.Fatalf("%+v, %v", ended, err)
		}
		types := listEventTypes(t, f.db, ended)
		want := []string{"room.turn", "room.left", "room.turn", "room.left", "room.finished"}
		if len(types) < len(want) || !slices.Equal(types[len(types)-len(want):], want) {
			t.Errorf("the events are %v", types)
		}
		f.requireBalance(a, 1185, 0)
		f.requireBalance(b, 900, 0)
		f.requireBalance(c, 900, 0)
		f.requireBooksBalance()
	})
}

// A host who plays for money cannot take the others' stakes by giving them a second.
func TestTheHostOfAPaidRoomForfeitsNobody(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		f.Settings.TurnTimeout = games.TurnForfeits
		a, b := f.newPlayer(1000), f.newPlayer(1000)
		room := f.startedRoom(t, f.paidRoom("1", 2), a, b)
		must(t)(f.service.SetTurn(ctx, a, turnOf(room, b, 1), noKey))
		f.setTurnBack(room.RoomID)
		testkit.Must(f.service.Sweep(ctx))(t)
		now, err := f.service.Get(ctx, operator, room.RoomID)
		if err != nil || now.Status != rooms.Started || now.Turn.UserID != a.UserID || len(now.ActivePlayers()) != 2 {
			t.Fatalf("%+v, %v", now, err)
		}
		free := f.startedRoom(t, rooms.CreateInput{MaxPlayers: 2}, a, b)
		must(t)(f.service.SetTurn(ctx, a, turnOf(free, b, 1), noKey))
		f.setTurnBack(free.RoomID)
		testkit.Must(f.service.Sweep(ctx))(t)
		if now, err = f.service.Get(ctx, operator, free.RoomID); err != nil || now.Turn.UserID != a.UserID ||
			len(now.ActivePlayers()) != 1 {
			t.Fatalf("%+v, %v", now, err)
		}
	})
}

func TestAStateBelongsToOneGame(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f, other := newFixture(t, db), newFixture(t, db)
		ctx := t.Context()
		a := f.newPlayer(1000)
		for _, in := range []rooms.CreateInput{{MaxPlayers: 2}, f.paidRoom("1", 2)} {
			room := must(t)(f.service.Create(ctx, a, in, noKey))
			state := rooms.StateInput{RoomID: room.RoomID, Patch: map[string]wire.RawJSON{"a": wire.RawJSON("1")}}
			mustFail(t, apierror.RoomNotFound)(other.service.SetState(ctx, other.Server(), state, noKey))
			mustFail(t, apierror.RoomNotFound)(other.service.SetTurn(ctx, other.Server(), turnOf(room, a, 9), noKey))
			mustFail(t, apierror.Forbidden)(f.service.SetState(ctx, operator, state, noKey))
			mustFail(t, apierror.Forbidden)(f.service.SetState(ctx, a, state, noKey)) // no rule: the server alone
			infinite := rooms.StateInput{RoomID: room.RoomID, Patch: map[string]wire.RawJSON{"a": wire.RawJSON("[1e999]")}}
			mustFail(t, apierror.InvalidRequest)(f.service.SetState(ctx, f.Server(), infinite, noKey))
			if got := must(t)(f.service.SetState(ctx, f.Server(), state, noKey)); got.Shared.Version != 1 || got.Version != 1 {
				t.Errorf("%+v", got)
			}
		}
	})
}
