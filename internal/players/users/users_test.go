package users_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/users"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/domaintest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// newPlayer makes a guest of a game and returns them as a caller.
func newPlayer(t *testing.T, s *users.Service, game int64) principal.Caller {
	t.Helper()
	u := testkit.Must(s.Create(t.Context(), game, users.KindGuest, users.ProfileInput{}))(t)
	return principal.Caller{Role: principal.Player, UserID: u.ID, GameID: game}
}

var operator = principal.Caller{Role: principal.Operator}

func TestAPlayerIsReadAsCreatedAndChanged(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := users.New(db, users.Options{})
		u, err := s.Create(t.Context(), 3, users.KindGuest, users.ProfileInput{
			Username: new("  Ada 👩‍🚀 "), Avatar: new("https://a.example/ada.png"),
		})
		if err != nil || u.ID != 1 || u.Username != "Ada 👩‍🚀" ||
			*u.Avatar != "https://a.example/ada.png" || u.GameID != 3 ||
			u.Kind != users.KindGuest ||
			u.GrantGiven {
			t.Fatalf("%+v, %v", u, err)
		}
		nameless, err := s.Create(t.Context(), 3, users.KindGuest, users.ProfileInput{})
		if err != nil || nameless.Username != "Player-2" || nameless.Avatar != nil {
			t.Errorf("%+v, %v", nameless, err)
		}
		u, err = s.Patch(t.Context(), operator, 1, users.PatchInput{Username: new("Bob")})
		if err != nil || u.Username != "Bob" || u.Avatar == nil {
			t.Errorf("%+v, %v", u, err)
		}
		u, err = s.Patch(t.Context(), operator, 1, users.PatchInput{Avatar: wire.Given[string](nil)})
		if err != nil || u.Username != "Bob" || u.Avatar != nil {
			t.Errorf("%+v, %v", u, err)
		}
		testkit.Report(t, s.MarkGrantGiven(t.Context(), 1))
		if u, err := s.Get(t.Context(), operator, 1); err != nil || !u.GrantGiven {
			t.Errorf("%+v, %v", u, err)
		}
		testkit.Fails(s.Get(t.Context(), operator, 9))(t, apierror.UserNotFound, "an unknown player")
		testkit.Fails(s.Patch(t.Context(), operator, 9, users.PatchInput{Username: new("x")}))(
			t, apierror.UserNotFound, "an unknown player")
		profiles, err := s.Profiles(t.Context(), 1, 2, 9, 1)
		if err != nil || len(profiles) != 2 || profiles[2].Username != "Player-2" {
			t.Errorf("%v, %v", profiles, err)
		}
	})
}

func TestInvalidNamesAndAvatarsAreRefused(t *testing.T) {
	s := users.New(redistest.Single(t), users.Options{})
	for _, name := range []string{
		" ", strings.Repeat("ä", 33), "a\nb", "a\x00", "\u202eevil", "a\u200bb", "\xff", "\u200d", "a\u2028b", "\ue000",
		"a\u200db", "a\u200cb", "م\u200da", "a\u200dم", "م\u200c", "\u200cم", "م\u200c\u200cم", "👩\u200da", // joiners
		"\u3164", "a\u3164b", "\uffa0", "\u115f", "\u1160", "a\u2800b", "\u2800", "a\u00a0b", "a\u2003b", "a\u3000b",
		"a\u034fb", "a\ufe0fb", "a\U000e0100b", "a\u180bb", "a\u00adb", "a\u2060b",
	} {
		testkit.Fails(s.Create(t.Context(), 1, users.KindGuest, users.ProfileInput{Username: &name}))(
			t, apierror.InvalidRequest, "the name %q", name)
	}
	for _, avatar := range []string{
		"", "javascript:alert(1)", "//a.example", "https://", "https://u:p@a.example/",
		"https://a.example/" + strings.Repeat("x", 500), "data:image/png,x", "http://a.example/x", "https://127.0.0.1/x",
		"https://[::1]/x", "https://169.254.169.254/", "https://2130706433/", "https://0x7f.1/", "https://localhost/x",
		"https://a.localhost/", "https://db.internal/", "https://printer/", "https://a.example:8080/x", "https://a.example./",
	} {
		testkit.Fails(s.Create(t.Context(), 1, users.KindGuest, users.ProfileInput{Avatar: &avatar}))(
			t, apierror.InvalidRequest, "the avatar %q", avatar)
	}
	ada := newPlayer(t, s, 1)
	_, err := s.Patch(t.Context(), ada, ada.UserID, users.PatchInput{Username: new(""), Avatar: wire.Given(new(""))})
	if e, ok := apierror.As(err); !ok || len(e.FieldErrors) != 2 {
		t.Errorf("a patch with two wrong fields: %v", err)
	}
}

func TestAHundredSignInsAtOnceMakeOnePlayer(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		identity := users.Identity{GameID: 1, Kind: users.KindDevice, Digest: "d"}
		var mu sync.Mutex
		seen := map[int64]bool{}
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				u, _, err := users.New(db, users.Options{}).SignIn(t.Context(), identity, users.ProfileInput{})
				testkit.Report(t, err)
				mu.Lock()
				seen[u.ID] = true
				mu.Unlock()
			})
		}
		wg.Wait()
		if len(seen) != 1 {
			t.Errorf("players %v", seen)
		}
		profiles, err := users.New(db, users.Options{}).Profiles(t.Context(), numbers(100)...)
		if err != nil || len(profiles) != 1 {
			t.Errorf("%d players were stored, %v", len(profiles), err)
		}
		other, _, err := users.New(db, users.Options{}).
			SignIn(t.Context(), users.Identity{GameID: 2, Kind: users.KindDevice, Digest: "d"}, users.ProfileInput{})
		if err != nil || seen[other.ID] {
			t.Errorf("in another game: %+v, %v", other, err)
		}
	})
}

func numbers(n int64) (list []int64) {
	for i := range n {
		list = append(list, i+1)
	}
	return list
}

func TestASignInThatCrashedHalfwayIsCompletedByTheNext(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := users.New(db, users.Options{})
		identity := users.Identity{GameID: 1, Kind: users.KindExternal, Digest: "d"}
		u, _ := testkit.Must2(s.SignIn(t.Context(), identity, users.ProfileInput{Username: new("Ada")}))(t)
		// What a crash between the two steps leaves: an identity whose player was never stored.
		testkit.Check(t, db.Client.Del(t.Context(), keys.User(u.ID)).Err())
		again, _, err := s.SignIn(t.Context(), identity, users.ProfileInput{Username: new("Bob")})
		if err != nil || again.ID != u.ID || again.Username != "Bob" || again.Kind != users.KindExternal {
			t.Errorf("%+v, %v", again, err)
		}
	})
}

func TestLinkTurnsAGuestIntoALastingAccount(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := users.New(db, users.Options{})
		device := func(d string) users.Identity { return users.Identity{GameID: 1, Kind: users.KindDevice, Digest: d} }
		external := func(d string) users.Identity { return users.Identity{GameID: 1, Kind: users.KindExternal, Digest: d} }
		me, other := newPlayer(t, s, 1), newPlayer(t, s, 1)
		for range 2 { // twice is once
			if u, err := s.Link(t.Context(), me, me.UserID, device("a")); err != nil || u.Kind != users.KindDevice {
				t.Fatalf("%+v, %v", u, err)
			}
		}
		if u, _, err := s.SignIn(t.Context(), device("a"), users.ProfileInput{}); err != nil || u.ID != me.UserID {
			t.Errorf("%+v, %v", u, err)
		}
		testkit.Fails(s.Link(t.Context(), me, me.UserID, device("b")))(t, apierror.AlreadyLinked, "a second device")
		testkit.Fails(s.Link(t.Context(), other, other.UserID, device("a")))(t, apierror.AlreadyLinked, "another's device")
		if u, err := s.Link(t.Context(), me, me.UserID, external("x")); err != nil || u.Kind != users.KindExternal {
			t.Errorf("%+v, %v", u, err)
		}
		testkit.Fails(s.Link(t.Context(), me, me.UserID, external("y")))(t, apierror.AlreadyLinked, "a second external id")
		testkit.Fails(s.Link(t.Context(), me, me.UserID, users.Identity{
			GameID: 2, Kind: users.KindDevice,
			Digest: "z",
		}))(t, apierror.UserNotFound, "of another game")
		for _, id := range []users.Identity{device("b"), external("y")} { // what was refused is free
			if u, _, err := s.SignIn(t.Context(), id, users.ProfileInput{}); err != nil || u.ID == me.UserID {
				t.Errorf("%+v, %v", u, err)
			}
		}
	})
}

// relationOf returns the relation of two players as each of them sees it: "outgoing incoming", "-"
// for none.
func relationOf(t *testing.T, s *users.Service, a, b principal.Caller) string {
	t.Helper()
	side := func(me, other principal.Caller) string {
		list, _ := testkit.Must2(s.Friends(t.Context(), me, 0, 100))(t)
		for _, f := range list {
			if f.ID == other.UserID {
				return string(f.State)
			}
		}
		return "-"
	}
	both := side(a, b) + " " + side(b, a)
	are, err := s.AreFriends(t.Context(), a.UserID, b.UserID)
	if err != nil || are[b.UserID] != (both == "friend friend") {
		t.Errorf("AreFriends returned %v for %s (%v)", are[b.UserID], both, err)
	}
	return both
}

func TestEverySequenceOfFriendVerbsOfTwoPlayers(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := users.New(db, users.Options{})
		for _, test := range []struct{ verbs, want string }{
			{"", "- -"},
			{"a+", "outgoing incoming"},
			{"a+ a+", "outgoing incoming"},
			{"a+ b+", "friend friend"},
			{"a+ b+ a+ b+", "friend friend"},
			{"a+ a-", "- -"},
			{"a+ b-", "- -"}, // declined
			{"a+ b+ a-", "- -"},
			{"a+ b+ b- b+", "incoming outgoing"},
			{"a-", "- -"},
			{"a!", "blocked -"},
			{"a! a!", "blocked -"},
			{"a! b+", "blocked outgoing"}, // b cannot tell
			{"a! b+ b-", "blocked -"},
			{"a! b-", "blocked -"}, // another's block is not taken back
			{"a! a+", "blocked -"}, // one takes one's own block back first
			{"a! b+ a+", "blocked outgoing"},
			{"a! a- b+", "incoming outgoing"},
			{"a! b+ a-", "- -"},
			{"a+ a!", "blocked -"},
			{"b+ a!", "blocked -"},
			{"a+ b+ a!", "blocked -"},
			{"a+ b+ a! a-", "- -"},
			{"a! b!", "blocked blocked"},
			{"a! b! a-", "- blocked"},
			{"a! b! a- a+", "outgoing blocked"},
			{"a! b! a- a+ b- b+", "incoming outgoing"},
		} {
			a, b := newPlayer(t, s, 1), newPlayer(t, s, 1)
			for verb := range strings.FieldsSeq(test.verbs) {
				me, other := a, b
				if verb[0] == 'b' {
					me, other = b, a
				}
				var err error
				switch verb[1] {
				case '+':
					_, err = s.AddFriend(t.Context(), me, other.UserID)
				case '-':
					err = s.RemoveFriend(t.Context(), me, other.UserID)
				case '!':
					_, err = s.Block(t.Context(), me, other.UserID)
				}
				if err != nil && !errors.Is(err, apierror.Forbidden) {
					t.Fatalf("%s: %s: %v", test.verbs, verb, err)
				}
			}
			if got := relationOf(t, s, a, b); got != test.want {
				t.Errorf("after %q they see %q, want %q", test.verbs, got, test.want)
			}
		}
	})
}

func TestFriendVerbsRejectOneselfAndPlayersOfOtherGames(t *testing.T) {
	s := users.New(redistest.Single(t), users.Options{})
	me, stranger := newPlayer(t, s, 1), newPlayer(t, s, 2)
	for name, call := range map[string]func(int64) error{
		"AddFriend":    func(other int64) error { _, err := s.AddFriend(t.Context(), me, other); return err },
		"RemoveFriend": func(other int64) error { return s.RemoveFriend(t.Context(), me, other) },
		"Block":        func(other int64) error { _, err := s.Block(t.Context(), me, other); return err },
	} {
		testkit.WantError(t, call(me.UserID), apierror.InvalidRequest, "%s oneself", name)
		for _, other := range []int64{stranger.UserID, 99, 0, -1} {
			testkit.WantError(t, call(other), apierror.UserNotFound, "%s %d", name, other)
		}
	}
}

func TestTwoRequestsAtOnceMakeFriends(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := users.New(db, users.Options{})
		for range 20 {
			a, b := newPlayer(t, s, 1), newPlayer(t, s, 1)
			var wg sync.WaitGroup
			for _, pair := range [][2]principal.Caller{{a, b}, {b, a}} {
				wg.Go(func() {
					testkit.Report(t, testkit.ErrorOf(s.AddFriend(t.Context(), pair[0], pair[1].UserID)))
				})
			}
			wg.Wait()
			if got := relationOf(t, s, a, b); got != "friend friend" {
				t.Fatalf("they see %q", got)
			}
		}
	})
}

func TestTheIndexOfFriendsNeverMissesARelation(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := users.New(db, users.Options{})
		a, b := newPlayer(t, s, 1), newPlayer(t, s, 1)
		for range 50 {
			var wg sync.WaitGroup
			wg.Go(func() { _, _ = s.AddFriend(t.Context(), a, b.UserID) })
			wg.Go(func() { _ = s.RemoveFriend(t.Context(), b, a.UserID) })
			wg.Wait()
			got := relationOf(t, s, a, b)
			// returns the state of the pair itself; the index must agree
			again := testkit.Must(s.AddFriend(t.Context(), a, b.UserID))(t)
			if got != "- -" && got != "outgoing incoming" {
				t.Fatalf("they see %q", got)
			}
			if again.State != users.StateOutgoing || relationOf(t, s, a, b) != "outgoing incoming" {
				t.Fatalf("after the request: %v, %q", again, relationOf(t, s, a, b))
			}
		}
	})
}

// TestWhichRoleMayCallWhat calls each method as every role, on a player and on another player of
// the same game.
func TestWhichRoleMayCallWhat(t *testing.T) {
	s := users.New(redistest.Single(t), users.Options{})
	ada, bob := newPlayer(t, s, 1), newPlayer(t, s, 1)
	callers := []principal.Caller{
		{},
		ada,
		bob,
		newPlayer(t, s, 2),
		{Role: principal.Player, UserID: ada.UserID, GameID: 2}, // ada's id with the token of another game
		{Role: principal.Server, GameID: 1},
		{Role: principal.Server, GameID: 2},
		operator,
		{Role: principal.System},
	}
	const (
		self    = "forbidden ok forbidden forbidden user_not_found ok user_not_found ok forbidden"
		friends = "forbidden ok %s %s ok forbidden forbidden forbidden forbidden"
	)
	for _, verb := range []struct {
		name string
		call func(principal.Caller) error
		want string // one code for each caller
	}{
		{"Get", func(c principal.Caller) error { _, err := s.Get(t.Context(), c, ada.UserID); return err }, self},
		{"Patch", func(c principal.Caller) error {
			_, err := s.Patch(t.Context(), c, ada.UserID, users.PatchInput{Username: new("Ada")})
			return err
		}, self},
		{"Link", func(c principal.Caller) error {
			_, err := s.Link(t.Context(), c, ada.UserID, users.Identity{GameID: 1, Kind: users.KindExternal, Digest: "x"})
			return err
		}, self},
		{
			"Friends", func(c principal.Caller) error { _, _, err := s.Friends(t.Context(), c, 0, 20); return err },
			fmt.Sprintf(friends, "ok", "ok"),
		},
		{
			"AddFriend", func(c principal.Caller) error { _, err := s.AddFriend(t.Context(), c, bob.UserID); return err },
			fmt.Sprintf(friends, "invalid_request", "user_not_found"),
		},
		{
			"RemoveFriend", func(c principal.Caller) error { return s.RemoveFriend(t.Context(), c, bob.UserID) },
			fmt.Sprintf(friends, "invalid_request", "user_not_found"),
		},
		{
			"Block", func(c principal.Caller) error { _, err := s.Block(t.Context(), c, bob.UserID); return err },
			fmt.Sprintf(friends, "invalid_request", "user_not_found"),
		},
	} {
		domaintest.WantCodes(t, verb.name, callers, strings.Fields(verb.want), verb.call)
	}
}
