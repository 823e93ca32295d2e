package rooms_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/testkit"
)

// feedBoards makes the rooms that are created from now on feed leaderboards.
func (f *fixture) feedBoards() {
	f.Settings.Boards = []games.BoardFeed{{Board: "wins", From: games.FromWin}}
}

// waiting returns what waits in the outbox for the end of a room, "" for nothing.
func (f *fixture) waiting(roomID string) string {
	f.t.Helper()
	shard, _ := keys.RoomShard(roomID)
	all := testkit.Must(f.db.Client.HGetAll(f.t.Context(), keys.RoomOutbox(shard)).Result())(f.t)
	return all[roomID]
}

// taker is a consumer that keeps the rooms of one game that it gets.
type taker struct {
	gameID int64
	mu     sync.Mutex
	taken  []rooms.Ended
	err    func(e rooms.Ended) error // nil takes all
	came   chan struct{}             // gets a value for each call
}

// take adds a taker to a service.
func (f *fixture) take(s *rooms.Service, err func(rooms.Ended) error) *taker {
	k := &taker{gameID: f.GameID, err: err, came: make(chan struct{}, 1024)}
	s.SetBoardsConsumer(k.apply)
	s.SetMatchConsumer(k.apply)
	return k
}

func (k *taker) apply(_ context.Context, e rooms.Ended) error {
	if e.GameID != k.gameID {
		return nil // left by another test
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.taken = append(k.taken, e)
	select {
	case k.came <- struct{}{}:
	default:
	}
	if k.err == nil {
		return nil
	}
	return k.err(e)
}

// rooms returns the ids of the rooms that came, in their order.
func (k *taker) rooms() (ids []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.taken {
		ids = append(ids, e.RoomID)
	}
	return ids
}

// sweep lets a service look once at what waits.
func (f *fixture) sweep(s *rooms.Service) {
	f.t.Helper()
	testkit.Must(s.Sweep(f.t.Context()))(f.t)
}

// startGame returns a game of two that has started.
func (f *fixture) startGame(t *testing.T, in rooms.CreateInput) (rooms.Room, principal.Caller, principal.Caller) {
	t.Helper()
	a, b := f.newPlayer(1000), f.newPlayer(1000)
	room := must(t)(f.service.Create(t.Context(), a, in, noKey))
	must(t)(f.service.Join(t.Context(), b, room.RoomID, noKey))
	return must(t)(f.service.Start(t.Context(), a, room.RoomID, noKey)), a, b
}

// finishGame plays a free game of two to its end.
func (f *fixture) finishGame(t *testing.T) rooms.Room {
	t.Helper()
	room, a, b := f.startGame(t, rooms.CreateInput{MaxPlayers: 2})
	result := []rooms.Placement{{UserID: a.UserID, Place: 1}, {UserID: b.UserID, Place: 2}}
	return must(t)(f.service.Finish(t.Context(), f.Server(), room.RoomID, result, noKey))
}

func TestTheNodeThatEndedARoomAppliesItAtOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		f.feedBoards()
		k := f.take(f.service, nil)
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- f.service.Run(ctx) }()
		room, a, b := f.startGame(t, f.paidRoom("2.5", 2))
		room = must(t)(f.service.Finish(t.Context(), f.Server(), room.RoomID, []rooms.Placement{
			{UserID: a.UserID, Place: 2}, {UserID: b.UserID, Place: 1, Score: new(9.5)},
		}, noKey))
		<-k.came
		waitUntil(t, func() bool { return f.waiting(room.RoomID) == "" })
		stop()
		testkit.Check(t, <-stopped)
		want := rooms.Ended{
			RoomID: room.RoomID, GameID: f.GameID, Consumer: "boards", Status: rooms.Finished, SettledBy: rooms.SettledByServer,
			TokenDecimals: 2, StartedAt: room.StartedAt, EndedAt: room.FinishedAt,
			Places: []rooms.Place{{UserID: b.UserID, Place: 1, Score: "9.5", Payout: 500}, {UserID: a.UserID, Place: 2}},
		}
		for _, got := range k.taken { // the sweep may have come upon it as well
			if !reflect.DeepEqual(got, want) {
				t.Errorf("the consumer got\n%+v\nwant\n%+v", got, want)
			}
		}
	})
}

// A node that was killed after the end of a room leaves it to the sweep of any other.
func TestTheSweepAppliesWhatANodeLeft(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		f.feedBoards()
		left := []string{f.finishGame(t).RoomID, f.finishGame(t).RoomID} // f.service does not run
		other := f.newService()
		k := f.take(other, nil)
		f.sweep(other)
		f.sweep(other)
		got := k.rooms()
		slices.Sort(got)
		if slices.Sort(left); !slices.Equal(got, left) {
			t.Errorf("%v came; want each of %v once", got, left)
		}
		for _, id := range left {
			if text := f.waiting(id); text != "" {
				t.Errorf("%s waits still", text)
			}
		}
	})
}

// The leader that runs in the background finds them too.
func TestTheLeaderAppliesWhatANodeLeft(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		f.feedBoards()
		room := f.finishGame(t)
		// else it waits up to a minute for the next look at every game
		testkit.Check(t, f.db.Client.Del(t.Context(), keys.GamesLookedAt("outbox")).Err())
		other := f.newService()
		k := f.take(other, nil)
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- other.Run(ctx) }()
		waitUntil(t, func() bool { return f.waiting(room.RoomID) == "" })
		stop()
		if err := <-stopped; err != nil || !slices.Equal(slices.Compact(k.rooms()), []string{room.RoomID}) {
			t.Errorf("%v came, %v", k.rooms(), err)
		}
	})
}

// A room comes until its consumer has applied it: one that dies before it is done, or before it is
// acknowledged, gets it again.
func TestARoomComesUntilItIsApplied(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		f.feedBoards()
		room := f.finishGame(t)
		failures := []error{
			errors.New("the node dies"), apierror.StoreUnavailable, apierror.VersionConflict, context.DeadlineExceeded,
		}
		for _, failure := range failures {
			node := f.newService()
			k := f.take(node, func(rooms.Ended) error { return failure })
			if _, err := node.Sweep(t.Context()); err != nil && !errors.Is(failure, apierror.StoreUnavailable) {
				t.Fatal(err)
			}
			if len(k.rooms()) != 1 || f.waiting(room.RoomID) == "" || node.DeadLetterCount() != 0 {
				t.Fatalf("after %v: %v came, and %q waits", failure, k.rooms(), f.waiting(room.RoomID))
			}
			if _, err := node.Sweep(t.Context()); err == nil && len(k.rooms()) > 1 {
				t.Errorf("after %v it comes again at once", failure)
			}
		}
		node := f.newService()
		k := f.take(node, nil)
		f.sweep(node)
		f.sweep(node)
		if len(k.rooms()) != 1 || f.waiting(room.RoomID) != "" {
			t.Errorf("%v came, and %q waits", k.rooms(), f.waiting(room.RoomID))
		}
	})
}

func TestARoomThatIsRejectedForGoodHoldsUpNoOther(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		f.feedBoards()
		bad, good := f.finishGame(t), f.finishGame(t)
		entry := f.waiting(bad.RoomID)
		node := f.newService()
		k := f.take(node, func(e rooms.Ended) error {
			if e.RoomID == bad.RoomID {
				return apierror.BoardNotFound.WithReason("the game has no leaderboard %q", "wins")
			}
			return nil
		})
		f.sweep(node)
		f.sweep(node)
		if got := k.rooms(); len(got) != 2 || !slices.Contains(got, good.RoomID) || node.DeadLetterCount() != 1 {
			t.Errorf("%v came, with %d dead letters", got, node.DeadLetterCount())
		}
		shard, _ := keys.RoomShard(bad.RoomID)
		letter := f.db.Client.HGet(t.Context(), keys.DeadLetters(shard), bad.RoomID).Val()
		if want := entry + "\tboard_not_found: the game has no leaderboard \"wins\""; letter != want {
			t.Errorf("the dead letter is %q; want %q", letter, want)
		}
		for _, room := range []rooms.Room{bad, good} {
			if text := f.waiting(room.RoomID); text != "" {
				t.Errorf("%s waits still", text)
			}
		}
	})
}

// endings are all ways in which a caller ends a room, with the room before.
var endings = map[string]func(t *testing.T, f *fixture, in rooms.CreateInput) rooms.Room{
	"finish": func(t *testing.T, f *fixture, in rooms.CreateInput) rooms.Room {
		room, a, b := f.startGame(t, in)
		return must(t)(f.service.Finish(t.Context(), f.Server(), room.RoomID, firstOf(a, b), noKey))
	},
	"reports": func(t *testing.T, f *fixture, in rooms.CreateInput) rooms.Room {
		in.SettledBy = rooms.SettledByConsensus
		room, a, b := f.startGame(t, in)
		must(t)(f.service.Finish(t.Context(), a, room.RoomID, firstOf(a, b), noKey))
		return must(t)(f.service.Finish(t.Context(), b, room.RoomID, firstOf(a, b), noKey))
	},
	"resolve": func(t *testing.T, f *fixture, in rooms.CreateInput) rooms.Room {
		room, a, b := f.dispute(t, in)
		in2 := rooms.ResolveInput{Placements: firstOf(a, b)}
		return must(t)(f.service.Resolve(t.Context(), operator, room.RoomID, in2, noKey))
	},
	"refund of a dispute": func(t *testing.T, f *fixture, in rooms.CreateInput) rooms.Room {
		room, _, _ := f.dispute(t, in)
		return must(t)(f.service.Resolve(t.Context(), operator, room.RoomID, rooms.ResolveInput{Refund: true}, noKey))
	},
	"cancel of a dispute": func(t *testing.T, f *fixture, in rooms.CreateInput) rooms.Room {
		room, _, _ := f.dispute(t, in)
		return must(t)(f.service.Cancel(t.Context(), f.Server(), room.RoomID, noKey))
	},
	"cancel": func(t *testing.T, f *fixture, in rooms.CreateInput) rooms.Room {
		room := must(t)(f.service.Create(t.Context(), f.newPlayer(1000), in, noKey))
		return must(t)(f.service.Cancel(t.Context(), f.Server(), room.RoomID, noKey))
	},
	"the last one leaves": func(t *testing.T, f *fixture, in rooms.CreateInput) rooms.Room {
		a := f.newPlayer(1000)
		room := must(t)(f.service.Create(t.Context(), a, in, noKey))
		return must(t)(f.service.Leave(t.Context(), a, room.RoomID, receiptOf(room.RoomID)))
	},
	"all leave": func(t *testing.T, f *fixture, in rooms.CreateInput) rooms.Room {
		room, a, b := f.startGame(t, in)
		room = must(t)(f.service.Leave(t.Context(), a, room.RoomID, noKey)) // the end of a paid room
		if !room.Status.Ended() {
			room = must(t)(f.service.Leave(t.Context(), b, room.RoomID, noKey))
		}
		return room
	},
	"the last one is taken out": func(t *testing.T, f *fixture, in rooms.CreateInput) rooms.Room {
		a := f.newPlayer(1000)
		room := must(t)(f.service.Create(t.Context(), a, in, noKey))
		kick := rooms.KickInput{RoomID: room.RoomID, UserID: a.UserID}
		return must(t)(f.service.Kick(t.Context(), f.Server(), kick, receiptOf(room.RoomID)))
	},
	"a turn is over": func(t *testing.T, f *fixture, in rooms.CreateInput) rooms.Room {
		f.Settings.TurnTimeout = games.TurnForfeits
		room, a, b := f.startGame(t, in)
		for _, p := range []principal.Caller{a, b} {
			turn := rooms.TurnInput{RoomID: room.RoomID, UserID: &p.UserID, Seconds: new(int64(60))}
			if _, err := f.service.SetTurn(t.Context(), f.Server(), turn, noKey); err != nil {
				break // a paid room has ended
			}
			f.setTurnBack(room.RoomID)
			room = f.sweepUntil(room, func(r rooms.Room, err error) bool {
				seat, _ := r.Seat(p.UserID)
				return err == nil && seat.State == rooms.SeatForfeited
			})
		}
		return room
	},
	"the time is over": func(t *testing.T, f *fixture, in rooms.CreateInput) rooms.Room {
		room, _, _ := f.startGame(t, in)
		f.setBack(room.RoomID, "started", f.Settings.MatchTimeout+time.Minute)
		f.makeDue(room.RoomID)
		return f.sweepUntil(room, isCancelled)
	},
}

// firstOf returns the result of a game of two.
func firstOf(first, second principal.Caller) []rooms.Placement {
	return []rooms.Placement{{UserID: first.UserID, Place: 1}, {UserID: second.UserID, Place: 2}}
}

// dispute returns a disputed game of two.
func (f *fixture) dispute(t *testing.T, in rooms.CreateInput) (rooms.Room, principal.Caller, principal.Caller) {
	t.Helper()
	in.SettledBy = rooms.SettledByConsensus
	room, a, b := f.startGame(t, in)
	must(t)(f.service.Finish(t.Context(), a, room.RoomID, firstOf(a, b), noKey))
	return must(t)(f.service.Finish(t.Context(), b, room.RoomID, firstOf(b, a), noKey)), a, b
}

// However a room ends, whoever waits for it gets it, and a room that feeds nothing leaves nothing.
func TestEveryEndOfARoomIsAppliedOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		for name, end := range endings {
			for _, in := range []rooms.CreateInput{f.paidRoom("1", 2), {MaxPlayers: 2}} {
				f.Settings.Boards = nil
				if room := end(t, f, in); !room.Status.Ended() || f.waiting(room.RoomID) != "" {
					t.Errorf("%s leaves %q without feeds: %s", name, f.waiting(room.RoomID), room.Status)
				}
				f.feedBoards()
				f.service = f.newService() // with a taker of its own; "the time is over" sweeps
				k := f.take(f.service, nil)
				room := end(t, f, in)
				f.sweep(f.service)
				if got := k.rooms(); !room.Status.Ended() || !slices.Equal(got, []string{room.RoomID}) {
					t.Errorf("%s of a room with the entry %q: %v came, want %s (%s)", name, in.RoomEntry, got, room.RoomID,
						room.Status)
					continue
				}
				e := k.taken[0]
				if e.Status != room.Status || e.Reason != room.CancelReason || !e.EndedAt.Equal(room.FinishedAt) ||
					e.SettledBy != room.SettledBy || len(e.Places) == 0 == (e.Status == rooms.Finished) {
					t.Errorf("%s: %+v came; the room is %+v", name, e, room)
				}
			}
		}
		f.requireBooksBalance()
	})
}

// A rematch feeds what its room feeds.
func TestARematchFeedsTheSame(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		f.feedBoards()
		room, a, b := f.startGame(t, rooms.CreateInput{MaxPlayers: 2})
		must(t)(f.service.Finish(t.Context(), f.Server(), room.RoomID, firstOf(a, b), noKey))
		next := must(t)(f.service.Rematch(t.Context(), a, room.RoomID, noKey))
		must(t)(f.service.Cancel(t.Context(), f.Server(), next.RoomID, noKey))
		if text := f.waiting(next.RoomID); !strings.Contains(text, "|boards|") {
			t.Errorf("the rematch leaves %q", text)
		}
	})
}

// A reply that was lost does not lose the end of a room.
func TestAnEndWhoseReplyWasLostIsApplied(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		f.feedBoards()
		room, a, b := f.startGame(t, rooms.CreateInput{MaxPlayers: 2})
		var losesReplies atomic.Bool
		redistest.LoseReplies(f.db, losesReplies.Load)
		losesReplies.Store(true)
		must(t)(f.service.Finish(t.Context(), f.Server(), room.RoomID, firstOf(a, b), noKey))
		losesReplies.Store(false)
		if text := f.waiting(room.RoomID); !strings.Contains(text, "|FINISHED|") {
			t.Errorf("%q waits", text)
		}
	})
}
