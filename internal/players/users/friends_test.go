package users_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/players/users"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// allFriends returns a player's whole list, read in pages of limit.
func allFriends(t *testing.T, s *users.Service, me principal.Caller, limit int) (list []users.Friend) {
	t.Helper()
	for after := int64(0); ; {
		page, next, err := s.Friends(t.Context(), me, after, limit)
		if err != nil || len(page) > limit {
			t.Fatalf("a page of %d after %d has %d, %v", limit, after, len(page), err)
		}
		list = append(list, page...)
		if next == 0 {
			return list
		}
		if next <= after {
			t.Fatalf("the cursor goes from %d to %d", after, next)
		}
		after = next
	}
}

func statesOf(list []users.Friend) (text string) {
	for _, f := range list {
		text += fmt.Sprintf("%d:%s ", f.ID, f.State)
	}
	return text
}

func TestTheListOfFriendsHasPages(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := users.New(db, users.Options{})
		me := newPlayer(t, s, 1)
		want := ""
		for i := range 12 {
			other := newPlayer(t, s, 1)
			var err error
			switch i % 4 {
			case 0:
				_, err = s.AddFriend(t.Context(), me, other.UserID)
				want += fmt.Sprintf("%d:outgoing ", other.UserID)
			case 1:
				_, err = s.AddFriend(t.Context(), other, me.UserID)
				want += fmt.Sprintf("%d:incoming ", other.UserID)
			case 2:
				_, err = s.Block(t.Context(), me, other.UserID)
				want += fmt.Sprintf("%d:blocked ", other.UserID)
			default:
				_, first := s.AddFriend(t.Context(), other, me.UserID)
				_, second := s.AddFriend(t.Context(), me, other.UserID)
				err = errors.Join(first, second)
				want += fmt.Sprintf("%d:friend ", other.UserID)
			}
			testkit.Check(t, err)
		}
		for _, limit := range []int{1, 5, 12, 100} {
			if got := statesOf(allFriends(t, s, me, limit)); got != want {
				t.Errorf("in pages of %d the list is\n%s, want\n%s", limit, got, want)
			}
		}
		commands := redistest.CountCommands(db)
		if _, _, err := s.Friends(t.Context(), me, 0, 2); err != nil || commands.Load() > 8 {
			t.Errorf("a page of 2 costs %d commands, %v", commands.Load(), err)
		}
	})
}

func TestStrangersCannotFillTheListOfAPlayer(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := users.New(db, users.Options{})
		me, friend := newPlayer(t, s, 1), newPlayer(t, s, 1)
		var strangers []principal.Caller
		for range users.MaxIncomingRequests + 20 {
			stranger := newPlayer(t, s, 1)
			strangers = append(strangers, stranger)
			if f, err := s.AddFriend(t.Context(), stranger, me.UserID); err != nil || f.State != users.StateOutgoing {
				t.Fatalf("%+v, %v", f, err)
			}
		}
		incoming := allFriends(t, s, me, 100)
		if len(incoming) != users.MaxIncomingRequests || incoming[len(incoming)-1].ID != strangers[len(strangers)-1].UserID {
			t.Errorf("%d requests came in", len(incoming))
		}
		if slices.ContainsFunc(incoming, func(f users.Friend) bool { return f.ID == strangers[0].UserID }) {
			t.Error("the oldest request did not fall out")
		}
		// Whose request fell out cannot notice it, and can still be accepted.
		if got := statesOf(allFriends(t, s, strangers[0], 20)); got != fmt.Sprintf("%d:outgoing ", me.UserID) {
			t.Errorf("the oldest stranger sees %q", got)
		}
		if f, err := s.AddFriend(t.Context(), me, strangers[0].UserID); err != nil || f.State != users.StateFriends {
			t.Errorf("%+v, %v", f, err)
		}
		testkit.Report(t, testkit.ErrorOf(s.AddFriend(t.Context(), me, friend.UserID)), "a request of the player")
	})
}

// fill fills an index of a player with others who are not there.
func fill(t *testing.T, db *redisdb.DB, key string, count int) {
	t.Helper()
	members := make([]redis.Z, count)
	for i := range members {
		members[i] = redis.Z{Score: float64(1_000_000 + i), Member: 1_000_000 + i}
	}
	testkit.Check(t, db.Client.ZAdd(t.Context(), key, members...).Err())
}

func TestOnlyFriendsAndSentRequestsCount(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := users.New(db, users.Options{})
		me, a, b, c := newPlayer(t, s, 1), newPlayer(t, s, 1), newPlayer(t, s, 1), newPlayer(t, s, 1)
		fill(t, db, keys.Friends(me.UserID), users.MaxFriends-1)
		fill(t, db, keys.BlockedPlayers(me.UserID), users.MaxBlocked-1)
		testkit.Report(t, testkit.ErrorOf(s.AddFriend(t.Context(), me, a.UserID)), "the last place")
		for range 2 {
			testkit.Report(t, testkit.ErrorOf(s.AddFriend(t.Context(), me, a.UserID)), "the same again")
			testkit.Fails(s.AddFriend(t.Context(), me, b.UserID))(t, apierror.Forbidden, "one too many")
		}
		if f, err := s.AddFriend(t.Context(), b, me.UserID); err != nil || f.State != users.StateOutgoing {
			t.Errorf("a request to a player with a full list: %+v, %v", f, err)
		}
		testkit.Fails(s.AddFriend(t.Context(), me, b.UserID))(t, apierror.Forbidden, "accepting one too many")
		testkit.Report(t, testkit.ErrorOf(s.Block(t.Context(), me, b.UserID)), "the last block")
		testkit.Fails(s.Block(t.Context(), me, c.UserID))(t, apierror.Forbidden, "one block too many")
		testkit.Report(t, s.RemoveFriend(t.Context(), me, a.UserID))
		testkit.Report(t, testkit.ErrorOf(s.AddFriend(t.Context(), me, c.UserID)), "after one was removed")
	})
}

func TestARecordOfAWrongTypeHidesOneFriendOnly(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		ctx, s := t.Context(), users.New(db, users.Options{})
		me := newPlayer(t, s, 1)
		var others []int64
		want := ""
		for i := range 4 {
			other := newPlayer(t, s, 1)
			testkit.Must(s.AddFriend(ctx, me, other.UserID))(t)
			testkit.Must(s.AddFriend(ctx, other, me.UserID))(t)
			if others = append(others, other.UserID); i >= 2 {
				want += fmt.Sprintf("%d:friend ", other.UserID)
			}
		}
		for _, key := range []string{
			keys.User(others[0]), keys.PlayerPair(me.UserID, others[1]), keys.FriendRequests(me.UserID),
		} {
			testkit.Check(t, db.Client.Set(ctx, key, "?", 0).Err())
		}
		if got := statesOf(allFriends(t, s, me, 100)); got != want {
			t.Errorf("the friends are %q, want %q", got, want)
		}
		are, err := s.AreFriends(ctx, me.UserID, others...)
		if err != nil || are[others[1]] || !are[others[0]] || !are[others[3]] {
			t.Errorf("the friends are %v, %v", are, err)
		}
	})
}
