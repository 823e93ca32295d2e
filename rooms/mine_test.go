package rooms_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/testkit"
)

// listMine returns the ids of all rooms that a player has, page by page, newest first.
func (f *fixture) listMine(t *testing.T, p principal.Caller, q rooms.ListQuery) []string {
	t.Helper()
	q.Mine = true
	var ids []string
	for {
		page := testkit.Must(f.service.List(t.Context(), p, q))(t)
		for _, r := range page.Items {
			ids = append(ids, r.RoomID)
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return ids
		}
	}
}

func TestMyRoomsAreThoseInWhichIHaveASeat(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		a, b, c := f.newPlayer(10_000), f.newPlayer(10_000), f.newPlayer(10_000)
		requireMine := func(when string, p principal.Caller, want ...rooms.Room) {
			t.Helper()
			var ids []string
			for _, r := range want {
				ids = append(ids, r.RoomID)
			}
			slices.Sort(ids)
			slices.Reverse(ids)
			for _, limit := range []int{1, 100} {
				if got := f.listMine(t, p, rooms.ListQuery{Limit: limit}); !slices.Equal(got, ids) {
					t.Fatalf("%s: in pages of %d, %s has %v, want %v", when, limit, p.ActorID(), got, ids)
				}
			}
		}
		create := func(p principal.Caller, in rooms.CreateInput) rooms.Room {
			t.Helper()
			return must(t)(f.service.Create(ctx, p, in, noKey))
		}
		free := create(a, rooms.CreateInput{MaxPlayers: 3})
		private := create(b, rooms.CreateInput{MaxPlayers: 3, Visibility: rooms.Private})
		paid := create(a, f.paidRoom("1", 3))
		requireMine("opened", a, free, paid)
		requireMine("opened", b, private)
		requireMine("opened", c)

		for _, p := range []principal.Caller{b, c} {
			must(t)(f.service.Join(ctx, p, paid.RoomID, noKey))
		}
		must(t)(f.service.Join(ctx, b, free.RoomID, noKey))
		requireMine("joined", b, private, free, paid)
		must(t)(f.service.Leave(ctx, b, free.RoomID, noKey))
		must(t)(f.service.Join(ctx, c, free.RoomID, noKey))
		must(t)(f.service.Kick(ctx, a, rooms.KickInput{RoomID: free.RoomID, UserID: c.UserID}, noKey))
		requireMine("left", b, private, paid)
		requireMine("kicked", c, paid)

		must(t)(f.service.Start(ctx, a, paid.RoomID, noKey))
		must(t)(f.service.Leave(ctx, c, paid.RoomID, noKey))
		requireMine("forfeited", c, paid)
		if got := f.listMine(t, a, rooms.ListQuery{Status: rooms.Started}); !slices.Equal(got, []string{paid.RoomID}) {
			t.Fatalf("of those that started %v", got)
		}
		if got := f.listMine(t, a, rooms.ListQuery{MaxEntry: "0"}); !slices.Equal(got, []string{free.RoomID}) {
			t.Fatalf("of those without an entry %v", got)
		}
		placements := []rooms.Placement{{UserID: a.UserID, Place: 1}, {UserID: b.UserID, Place: 2}}
		must(t)(f.service.Finish(ctx, f.Server(), paid.RoomID, placements, noKey))
		requireMine("finished", a, free)
		requireMine("finished", b, private)
		requireMine("finished", c)
		if got := f.listMine(t, a, rooms.ListQuery{Status: rooms.Finished}); got != nil {
			t.Fatalf("of those that finished %v", got)
		}

		rematch := must(t)(f.service.Rematch(ctx, b, paid.RoomID, noKey))
		requireMine("reserved", a, free, rematch)
		requireMine("reopened", b, private, rematch)
		requireMine("not reserved", c)
		must(t)(f.service.Join(ctx, c, rematch.RoomID, noKey))
		must(t)(f.service.Start(ctx, b, rematch.RoomID, noKey)) // removes the reserved seat
		requireMine("not come", a, free)
		requireMine("started", c, rematch)
		must(t)(f.service.Cancel(ctx, operator, rematch.RoomID, noKey))
		must(t)(f.service.Cancel(ctx, a, free.RoomID, noKey))
		must(t)(f.service.Leave(ctx, b, private.RoomID, noKey)) // the last one
		for _, p := range []principal.Caller{a, b, c} {
			requireMine("all ended", p)
			for _, shard := range []keys.Shard{
				keys.EconomyShard(f.GameID), keys.FreeShard(0), keys.FreeShard(1), keys.FreeShard(2),
			} {
				if n := f.db.Client.Exists(ctx, keys.PlayerRooms(shard, p.UserID)).Val(); n != 0 {
					t.Errorf("%s keeps a list in %s", p.ActorID(), shard)
				}
			}
		}
		for _, caller := range []principal.Caller{f.Server(), operator} {
			_, err := f.service.List(ctx, caller, rooms.ListQuery{Mine: true})
			if apiErr, ok := apierror.As(err); !ok || apiErr.Code != apierror.InvalidRequest.Code ||
				len(apiErr.FieldErrors) != 1 || apiErr.FieldErrors[0].Field != "mine" {
				t.Errorf("rooms of the %s: %v", caller.Role, err)
			}
		}
	})
}

// A reserved seat that is still there when a room ends or starts, in each of the ways in which that
// can happen, leaves the lists of its player.
func TestReservedSeatsLeaveTheListsOfTheirPlayers(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		a, b := f.newPlayer(10_000), f.newPlayer(10_000)
		for name, end := range map[string]func(rematch rooms.Room) rooms.Room{
			"start": func(r rooms.Room) rooms.Room { return must(t)(f.service.Start(ctx, a, r.RoomID, noKey)) },
			"ready": func(r rooms.Room) rooms.Room { return must(t)(f.service.Ready(ctx, a, r.RoomID, true, noKey)) },
			"leave": func(r rooms.Room) rooms.Room { return must(t)(f.service.Leave(ctx, a, r.RoomID, noKey)) },
			"kick": func(r rooms.Room) rooms.Room {
				return must(t)(f.service.Kick(ctx, f.Server(), rooms.KickInput{RoomID: r.RoomID, UserID: a.UserID}, noKey))
			},
			"cancel": func(r rooms.Room) rooms.Room { return must(t)(f.service.Cancel(ctx, a, r.RoomID, noKey)) },
			"sweep": func(r rooms.Room) rooms.Room {
				f.makeDue(r.RoomID)
				f.setBack(r.RoomID, "changed", f.Settings.IdleTimeout)
				return f.sweepUntil(r, isCancelled)
			},
		} {
			for _, in := range []rooms.CreateInput{{MaxPlayers: 3}, f.paidRoom("1", 3)} {
				in.AutoStart, in.MinPlayers = true, new(1)
				room := must(t)(f.service.Create(ctx, a, in, noKey))
				must(t)(f.service.Join(ctx, b, room.RoomID, noKey))
				must(t)(f.service.Start(ctx, a, room.RoomID, noKey))
				must(t)(f.service.Cancel(ctx, f.Server(), room.RoomID, noKey))
				rematch := must(t)(f.service.Rematch(ctx, a, room.RoomID, noKey))
				if got := f.listMine(t, b, rooms.ListQuery{}); !slices.Equal(got, []string{rematch.RoomID}) {
					t.Fatalf("%s: before it %v", name, got)
				}
				ended := end(rematch)
				if got := f.listMine(t, b, rooms.ListQuery{}); got != nil || ended.Status == rooms.Created {
					t.Fatalf("%s: a room that is %s has %v", name, ended.Status, got)
				}
				shard, _ := keys.RoomShard(rematch.RoomID)
				if left := f.db.Client.ZRange(ctx, keys.PlayerRooms(shard, b.UserID), 0, -1).Val(); len(left) > 0 {
					t.Fatalf("%s: the list keeps %v", name, left)
				}
				if ended.Status == rooms.Started {
					must(t)(f.service.Cancel(ctx, operator, ended.RoomID, noKey))
				}
			}
		}
		f.requireBooksBalance()
	})
}

func TestTwoGamesHaveTwoEconomies(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		g := newFixture(t, f.db)
		g.token, g.money.Token = f.token, f.token // the same in both games
		a, b, other := f.newPlayer(1000), f.newPlayer(1000), g.newPlayer(1000)
		mine := must(t)(f.service.Create(ctx, a, f.paidRoom("2", 2), noKey))
		theirs := must(t)(g.service.Create(ctx, other, g.paidRoom("3", 2), noKey))
		free := must(t)(g.service.Create(ctx, other, rooms.CreateInput{MaxPlayers: 2}, noKey))
		must(t)(f.service.Join(ctx, b, mine.RoomID, noKey))
		f.requireBalance(a, 800, 200)
		g.requireBalance(other, 700, 300)
		if mine.ID != theirs.ID {
			t.Errorf("the first rooms of two economies have the numbers %d and %d", mine.ID, theirs.ID)
		}

		// A room of another game does not exist, whichever way one asks for it.
		testkit.Fails(f.service.Get(ctx, a, theirs.RoomID))(t, apierror.RoomNotFound)
		mustFail(t, apierror.RoomNotFound)(f.service.Join(ctx, a, theirs.RoomID, noKey))
		mustFail(t, apierror.RoomNotFound)(f.service.Join(ctx, a, free.RoomID, noKey))
		mustFail(t, apierror.RoomNotFound)(f.service.Cancel(ctx, f.Server(), theirs.RoomID, noKey))
		byCode := func(caller principal.Caller, gameID int64, r rooms.Room, want *apierror.Error) {
			t.Helper()
			got, err := f.service.GetByCode(ctx, caller, gameID, r.Code)
			if want == nil && (err != nil || got.RoomID != r.RoomID) || want != nil && !errors.Is(err, want) {
				t.Errorf("code of room %s for %s in game %d: %s, %v", r.RoomID, caller.ActorID(), gameID, got.RoomID, err)
			}
		}
		byCode(a, 0, mine, nil)
		byCode(a, f.GameID, mine, nil)
		byCode(a, g.GameID, theirs, apierror.GameNotFound)
		byCode(a, 0, theirs, apierror.RoomNotFound)
		byCode(a, 0, free, apierror.RoomNotFound)
		byCode(other, 0, theirs, nil)
		byCode(g.Server(), 0, free, nil)
		byCode(operator, f.GameID, mine, nil)
		byCode(operator, g.GameID, theirs, nil)
		byCode(operator, f.GameID, theirs, apierror.RoomNotFound)
		byCode(operator, 0, theirs, apierror.InvalidRequest)
		byCode(operator, g.GameID, free, nil)

		list := func(caller principal.Caller, gameID int64) (ids []string) {
			t.Helper()
			page := testkit.Must(f.service.List(ctx, caller, rooms.ListQuery{GameID: gameID, Limit: 100}))(t)
			for _, r := range page.Items {
				if r.GameID != f.GameID && r.GameID != g.GameID {
					continue // of another test on the same store
				}
				ids = append(ids, r.RoomID)
			}
			slices.Sort(ids)
			return ids
		}
		all := []string{mine.RoomID, theirs.RoomID, free.RoomID}
		slices.Sort(all)
		for _, c := range []struct {
			caller principal.Caller
			gameID int64
			want   []string
		}{
			{operator, 0, all},
			{operator, f.GameID, []string{mine.RoomID}},
			{f.Server(), 0, []string{mine.RoomID}},
		} {
			if got := list(c.caller, c.gameID); strings.Join(got, " ") != strings.Join(c.want, " ") {
				t.Errorf("the %s sees in game %d %v, want %v", c.caller.Role, c.gameID, got, c.want)
			}
		}

		// The keys of a request are those of its game.
		rc := receiptOf("same")
		must(t)(f.service.Cancel(ctx, a, mine.RoomID, rc))
		if change, err := g.service.Cancel(ctx, other, theirs.RoomID, rc); err != nil || change.Replayed {
			t.Errorf("%+v, %v", change, err)
		}
		f.requireBalance(a, 1000, 0)
		g.requireBalance(other, 1000, 0)
		f.requireBooksBalance()
	})
}

func TestOpenRoomsAndTheirPlayersAreCounted(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		a, b := f.newPlayer(10_000), f.newPlayer(10_000)
		requireCount := func(when string, wantRooms, wantPlayers int) {
			t.Helper()
			open, players, err := f.service.CountOpen(ctx, a.GameID)
			if err != nil || open != wantRooms || players != wantPlayers {
				t.Fatalf("%s: %d rooms with %d players, %v; want %d with %d", when, open, players, err, wantRooms, wantPlayers)
			}
		}
		requireCount("before", 0, 0)
		private := must(t)(f.service.Create(ctx, a, rooms.CreateInput{MaxPlayers: 3, Visibility: rooms.Private}, noKey))
		paid := must(t)(f.service.Create(ctx, a, f.paidRoom("1", 2), noKey))
		must(t)(f.service.Join(ctx, b, paid.RoomID, noKey))
		requireCount("opened", 2, 3)
		for range 101 { // more than a page
			must(t)(f.service.Create(ctx, b, rooms.CreateInput{MaxPlayers: 2}, noKey))
		}
		requireCount("many", 103, 104)
		must(t)(f.service.Cancel(ctx, a, private.RoomID, noKey))
		requireCount("cancelled", 102, 103)
	})
}
