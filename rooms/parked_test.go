package rooms_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/testkit"
)

// parked returns what is parked of a room, without an id for nothing.
func (f *fixture) parked(s *rooms.Service, roomID string) (one rooms.ParkedRoom) {
	f.t.Helper()
	list := testkit.Must(s.Parked(f.t.Context(), operator))(f.t)
	for i, p := range list {
		if i > 0 && p.EndedAt.Before(list[i-1].EndedAt) {
			f.t.Fatalf("%v is listed behind %v", p, list[i-1])
		}
		if p.RoomID == roomID {
			one = p
		}
	}
	return one
}

func TestAParkedRoomIsListedAndAppliedOnceWhenItIsTriedAgain(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		f.feedBoards()
		room, a, b := f.startGame(t, f.paidRoom("2.5", 2))
		room = must(t)(f.service.Finish(t.Context(), f.Server(), room.RoomID, firstOf(a, b), noKey))
		free := f.finishGame(t)
		node := f.newService()
		gone := apierror.BoardNotFound.WithReason("the game has no leaderboard %q", "wins")
		k := f.take(node, func(rooms.Ended) error { return gone })
		f.sweep(node)
		applied := k.taken
		for _, r := range []rooms.Room{room, free} {
			want := rooms.ParkedRoom{
				RoomID: r.RoomID, GameID: f.GameID, Feeds: "boards", EndedAt: r.FinishedAt,
				Problem: `board_not_found: the game has no leaderboard "wins"`,
			}
			if got := f.parked(f.service, r.RoomID); got != want {
				t.Errorf("parked is\n%+v\nwant\n%+v", got, want)
			}
		}

		testkit.Fails(node.RetryParked(t.Context(), operator, room.RoomID))(
			t, apierror.BoardNotFound, "without the leaderboard")
		if f.parked(node, room.RoomID).RoomID == "" {
			t.Error("a room that was refused again is not parked any more")
		}
		later := f.newService()
		k = f.take(later, nil)
		got, err := later.RetryParked(t.Context(), operator, room.RoomID)
		if err != nil || got.RoomID != room.RoomID || len(k.taken) != 1 {
			t.Fatalf("%+v, %v; %d rooms came", got, err, len(k.taken))
		}
		for _, before := range applied {
			if before.RoomID == room.RoomID && !reflect.DeepEqual(k.taken[0], before) {
				t.Errorf("the consumer got\n%+v\nafter\n%+v", k.taken[0], before)
			}
		}
		if f.parked(f.service, room.RoomID).RoomID != "" || f.parked(f.service, free.RoomID).RoomID == "" {
			t.Error("the room that was applied is parked, or the other one is not")
		}
		testkit.Fails(later.RetryParked(t.Context(), operator, room.RoomID))(t, apierror.RoomNotFound, "once more")
		if len(k.taken) != 1 {
			t.Errorf("%d rooms came", len(k.taken))
		}
	})
}

func TestAParkedRoomThatNobodyCanReadIsListedAndStays(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.feedBoards()
	room := f.finishGame(t)
	shard, _ := keys.RoomShard(room.RoomID)
	testkit.Check(t, f.db.Client.HSet(t.Context(), keys.RoomOutbox(shard), room.RoomID, "nonsense").Err())
	k := f.take(f.service, nil)
	f.sweep(f.service)
	got := f.parked(f.service, room.RoomID)
	if got.Problem == "" || got.GameID != 0 || !got.EndedAt.IsZero() {
		t.Errorf("parked is %+v", got)
	}
	if _, err := f.service.RetryParked(t.Context(), operator, room.RoomID); err == nil || len(k.rooms()) != 0 {
		t.Errorf("it was applied: %v, %v", k.rooms(), err)
	}
	if f.parked(f.service, room.RoomID).RoomID == "" {
		t.Error("it is gone")
	}
}

func TestOnlyTheOperatorSeesParkedRooms(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	for _, caller := range []principal.Caller{f.Server(), f.newPlayer(0)} {
		testkit.Fails(f.service.Parked(t.Context(), caller))(t, apierror.Forbidden, "the list is")
		testkit.Fails(f.service.RetryParked(t.Context(), caller, "x"))(t, apierror.Forbidden, "a try is")
	}
	testkit.Fails(f.service.RetryParked(t.Context(), operator, "x"))(t, apierror.InvalidRequest, "no id is")
}

// What a consumer had applied of a room that is parked comes back with it, however late, and grows
// with each try.
func TestAParkedRoomRemembersWhatWasApplied(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.feedBoards()
	room := f.finishGame(t)
	applied := "wins:1"
	k := f.take(f.service, func(rooms.Ended) error {
		return &rooms.PartlyApplied{Applied: applied, Err: apierror.BoardFull}
	})
	f.sweep(f.service)
	applied = "wins:1,2"
	testkit.Fails(f.service.RetryParked(t.Context(), operator, room.RoomID))(t, apierror.BoardFull)
	if got := f.parked(f.service, room.RoomID).Problem; got != "board_full" {
		t.Errorf("the problem is %q", got)
	}
	last := f.newService()
	taken := f.take(last, nil)
	testkit.Must(last.RetryParked(t.Context(), operator, room.RoomID))(t)
	var got []string
	for _, e := range slices.Concat(k.taken, taken.taken) {
		got = append(got, e.Applied)
	}
	if want := []string{"", "wins:1", "wins:1,2"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q came; want %q", got, want)
	}
}
