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

// deadLetter returns the dead letter of a room, without an id for none.
func (f *fixture) deadLetter(s *rooms.Service, roomID string) (found rooms.DeadLetter) {
	f.t.Helper()
	list := testkit.Must(s.DeadLetters(f.t.Context(), operator))(f.t)
	for i, p := range list {
		if i > 0 && p.EndedAt.Before(list[i-1].EndedAt) {
			f.t.Fatalf("%v is listed behind %v", p, list[i-1])
		}
		if p.RoomID == roomID {
			found = p
		}
	}
	return found
}

func TestADeadLetterIsListedAndAppliedOnceWhenItIsTriedAgain(t *testing.T) {
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
			want := rooms.DeadLetter{
				RoomID: r.RoomID, GameID: f.GameID, Consumer: "boards", EndedAt: r.FinishedAt,
				Problem: `board_not_found: the game has no leaderboard "wins"`,
			}
			if got := f.deadLetter(f.service, r.RoomID); got != want {
				t.Errorf("the dead letter is\n%+v\nwant\n%+v", got, want)
			}
		}

		testkit.Fails(node.RetryDeadLetter(t.Context(), operator, room.RoomID))(
			t, apierror.BoardNotFound, "without the leaderboard")
		if f.deadLetter(node, room.RoomID).RoomID == "" {
			t.Error("a room that was refused again is no dead letter any more")
		}
		later := f.newService()
		k = f.take(later, nil)
		got, err := later.RetryDeadLetter(t.Context(), operator, room.RoomID)
		if err != nil || got.RoomID != room.RoomID || len(k.taken) != 1 {
			t.Fatalf("%+v, %v; %d rooms came", got, err, len(k.taken))
		}
		for _, before := range applied {
			if before.RoomID == room.RoomID && !reflect.DeepEqual(k.taken[0], before) {
				t.Errorf("the consumer got\n%+v\nafter\n%+v", k.taken[0], before)
			}
		}
		if f.deadLetter(f.service, room.RoomID).RoomID != "" || f.deadLetter(f.service, free.RoomID).RoomID == "" {
			t.Error("the room that was applied is a dead letter, or the other one is not")
		}
		testkit.Fails(later.RetryDeadLetter(t.Context(), operator, room.RoomID))(t, apierror.RoomNotFound, "once more")
		if len(k.taken) != 1 {
			t.Errorf("%d rooms came", len(k.taken))
		}
	})
}

func TestADeadLetterThatNobodyCanReadIsListedAndStays(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.feedBoards()
	room := f.finishGame(t)
	shard, _ := keys.RoomShard(room.RoomID)
	testkit.Check(t, f.db.Client.HSet(t.Context(), keys.RoomOutbox(shard), room.RoomID, "nonsense").Err())
	k := f.take(f.service, nil)
	f.sweep(f.service)
	got := f.deadLetter(f.service, room.RoomID)
	if got.Problem == "" || got.GameID != 0 || !got.EndedAt.IsZero() {
		t.Errorf("the dead letter is %+v", got)
	}
	if _, err := f.service.RetryDeadLetter(t.Context(), operator, room.RoomID); err == nil || len(k.rooms()) != 0 {
		t.Errorf("it was applied: %v, %v", k.rooms(), err)
	}
	if f.deadLetter(f.service, room.RoomID).RoomID == "" {
		t.Error("it is gone")
	}
}

func TestOnlyTheOperatorSeesDeadLetters(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	for _, caller := range []principal.Caller{f.Server(), f.newPlayer(0)} {
		testkit.Fails(f.service.DeadLetters(t.Context(), caller))(t, apierror.Forbidden, "the list is")
		testkit.Fails(f.service.RetryDeadLetter(t.Context(), caller, "x"))(t, apierror.Forbidden, "a try is")
	}
	testkit.Fails(f.service.RetryDeadLetter(t.Context(), operator, "x"))(t, apierror.InvalidRequest, "no id is")
}

// What a consumer had applied of a dead letter comes back with it, however late, and grows
// with each try.
func TestADeadLetterRemembersWhatWasApplied(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.feedBoards()
	room := f.finishGame(t)
	applied := "wins:1"
	k := f.take(f.service, func(rooms.Ended) error {
		return &rooms.PartlyApplied{Applied: applied, Err: apierror.BoardFull}
	})
	f.sweep(f.service)
	applied = "wins:1,2"
	testkit.Fails(f.service.RetryDeadLetter(t.Context(), operator, room.RoomID))(t, apierror.BoardFull)
	if got := f.deadLetter(f.service, room.RoomID).Problem; got != "board_full" {
		t.Errorf("the problem is %q", got)
	}
	last := f.newService()
	taken := f.take(last, nil)
	testkit.Must(last.RetryDeadLetter(t.Context(), operator, room.RoomID))(t)
	var got []string
	for _, e := range slices.Concat(k.taken, taken.taken) {
		got = append(got, e.Applied)
	}
	if want := []string{"", "wins:1", "wins:1,2"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q came; want %q", got, want)
	}
}
