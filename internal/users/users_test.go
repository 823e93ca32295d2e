package users_test

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/internal/users"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

func player(t *testing.T, s *users.Service, game int64) int64 {
	t.Helper()
	u, err := s.Create(t.Context(), game, users.Guest, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return u.ID
}

func TestAPlayerIsReadAsItWasMadeAndChanged(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := users.New(db)
		u, err := s.Create(t.Context(), 3, users.Guest, "  Ada 👩‍🚀 ", new("https://a.example/ada.png"))
		if err != nil || u.ID != 1 || u.Username != "Ada 👩‍🚀" || *u.Avatar != "https://a.example/ada.png" || u.Game != 3 || u.Kind != users.Guest || u.GrantGiven {
			t.Fatalf("%+v, %v", u, err)
		}
		nameless, err := s.Create(t.Context(), 3, users.Guest, "", nil)
		if err != nil || nameless.Username != "Player-2" || nameless.Avatar != nil {
			t.Errorf("%+v, %v", nameless, err)
		}
		u, err = s.Patch(t.Context(), 1, users.Patch{Username: new("Bob")})
		if err != nil || u.Username != "Bob" || u.Avatar == nil {
			t.Errorf("%+v, %v", u, err)
		}
		u, err = s.Patch(t.Context(), 1, users.Patch{Avatar: new((*string)(nil))})
		if err != nil || u.Username != "Bob" || u.Avatar != nil {
			t.Errorf("%+v, %v", u, err)
		}
		if err := s.MarkGrantGiven(t.Context(), 1); err != nil {
			t.Error(err)
		}
		if u, err := s.Get(t.Context(), 1); err != nil || !u.GrantGiven {
			t.Errorf("%+v, %v", u, err)
		}
		if _, err := s.Get(t.Context(), 9); !errors.Is(err, apierror.UserNotFound) {
			t.Errorf("an unknown player: %v", err)
		}
		if _, err := s.Patch(t.Context(), 9, users.Patch{Username: new("x")}); !errors.Is(err, apierror.UserNotFound) {
			t.Errorf("an unknown player: %v", err)
		}
		profiles, err := s.Profiles(t.Context(), 1, 2, 9, 1)
		if err != nil || len(profiles) != 2 || profiles[2].Username != "Player-2" {
			t.Errorf("%v, %v", profiles, err)
		}
	})
}

func TestNamesAndAvatarsThatAreRefused(t *testing.T) {
	s := users.New(redistest.Single(t))
	for _, name := range []string{" ", strings.Repeat("ä", 33), "a\nb", "a\x00", "\u202eevil", "a\u200bb", "\xff", "\u200d", "a\u2028b", "\ue000"} {
		if _, err := s.Create(t.Context(), 1, users.Guest, name, nil); !errors.Is(err, apierror.InvalidRequest) {
			t.Errorf("the name %q: %v", name, err)
		}
	}
	for _, avatar := range []string{"", "javascript:alert(1)", "//a.example", "https://", "https://u:p@a.example/", "https://a.example/" + strings.Repeat("x", 500), "data:image/png,x"} {
		if _, err := s.Create(t.Context(), 1, users.Guest, "Ada", &avatar); !errors.Is(err, apierror.InvalidRequest) {
			t.Errorf("the avatar %q: %v", avatar, err)
		}
	}
	_, err := s.Patch(t.Context(), 1, users.Patch{Username: new(""), Avatar: new(new(""))})
	if refusal, ok := apierror.As(err); !ok || len(refusal.FieldErrors) != 2 {
		t.Errorf("both are wrong: %v", err)
	}
}

func TestAHundredSignInsAtOnceMakeOnePlayer(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		identity := users.Identity{Game: 1, Kind: users.Device, Digest: "d"}
		var mu sync.Mutex
		seen := map[int64]bool{}
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				u, err := users.New(db).SignIn(t.Context(), identity, users.NewUser{})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				seen[u.ID] = true
				mu.Unlock()
			})
		}
		wg.Wait()
		if len(seen) != 1 {
			t.Errorf("players %v", seen)
		}
		profiles, err := users.New(db).Profiles(t.Context(), numbers(100)...)
		if err != nil || len(profiles) != 1 {
			t.Errorf("%d players were stored, %v", len(profiles), err)
		}
		other, err := users.New(db).SignIn(t.Context(), users.Identity{Game: 2, Kind: users.Device, Digest: "d"}, users.NewUser{})
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

func TestASignInThatDiedHalfwayIsCompletedByTheNext(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := users.New(db)
		identity := users.Identity{Game: 1, Kind: users.External, Digest: "d"}
		u, err := s.SignIn(t.Context(), identity, users.NewUser{Username: new("Ada")})
		if err != nil {
			t.Fatal(err)
		}
		// What a crash between the two steps leaves: an identity whose player was never stored.
		if err := db.Client.Del(t.Context(), "{u:1}:user").Err(); err != nil {
			t.Fatal(err)
		}
		again, err := s.SignIn(t.Context(), identity, users.NewUser{Username: new("Bob")})
		if err != nil || again.ID != u.ID || again.Username != "Bob" || again.Kind != users.External {
			t.Errorf("%+v, %v", again, err)
		}
	})
}

func TestLinkMakesAGuestLast(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := users.New(db)
		device := func(d string) users.Identity { return users.Identity{Game: 1, Kind: users.Device, Digest: d} }
		external := func(d string) users.Identity { return users.Identity{Game: 1, Kind: users.External, Digest: d} }
		me, other := player(t, s, 1), player(t, s, 1)
		for range 2 { // twice is once
			if u, err := s.Link(t.Context(), me, device("a")); err != nil || u.Kind != users.Device {
				t.Fatalf("%+v, %v", u, err)
			}
		}
		if u, err := s.SignIn(t.Context(), device("a"), users.NewUser{}); err != nil || u.ID != me {
			t.Errorf("%+v, %v", u, err)
		}
		if _, err := s.Link(t.Context(), me, device("b")); !errors.Is(err, apierror.AlreadyLinked) {
			t.Errorf("a second device: %v", err)
		}
		if _, err := s.Link(t.Context(), other, device("a")); !errors.Is(err, apierror.AlreadyLinked) {
			t.Errorf("another's device: %v", err)
		}
		if u, err := s.Link(t.Context(), me, external("x")); err != nil || u.Kind != users.External {
			t.Errorf("%+v, %v", u, err)
		}
		if _, err := s.Link(t.Context(), me, external("y")); !errors.Is(err, apierror.AlreadyLinked) {
			t.Errorf("a second external id: %v", err)
		}
		if _, err := s.Link(t.Context(), me, users.Identity{Game: 2, Kind: users.Device, Digest: "z"}); !errors.Is(err, apierror.UserNotFound) {
			t.Errorf("of another game: %v", err)
		}
		for _, id := range []users.Identity{device("b"), external("y")} { // what was refused is free
			if u, err := s.SignIn(t.Context(), id, users.NewUser{}); err != nil || u.ID == me {
				t.Errorf("%+v, %v", u, err)
			}
		}
	})
}

// friendship is what two players see of each other.
func friendship(t *testing.T, s *users.Service, a, b int64) string {
	t.Helper()
	side := func(me, other int64) string {
		list, err := s.Friends(t.Context(), me)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			if f.ID == other {
				return string(f.State)
			}
		}
		return "-"
	}
	seen := side(a, b) + " " + side(b, a)
	are, err := s.AreFriends(t.Context(), a, b)
	if err != nil || are[b] != (seen == "friend friend") {
		t.Errorf("AreFriends is %v while they see %s (%v)", are[b], seen, err)
	}
	return seen
}

func TestEveryStoryOfTwoPlayers(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := users.New(db)
		for _, story := range []struct{ acts, want string }{
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
			a, b := player(t, s, 1), player(t, s, 1)
			for act := range strings.FieldsSeq(story.acts) {
				me, other := a, b
				if act[0] == 'b' {
					me, other = b, a
				}
				var err error
				switch act[1] {
				case '+':
					_, err = s.AddFriend(t.Context(), me, other)
				case '-':
					err = s.RemoveFriend(t.Context(), me, other)
				case '!':
					_, err = s.Block(t.Context(), me, other)
				}
				if err != nil && !errors.Is(err, apierror.Forbidden) {
					t.Fatalf("%s: %s: %v", story.acts, act, err)
				}
			}
			if got := friendship(t, s, a, b); got != story.want {
				t.Errorf("after %q they see %q, want %q", story.acts, got, story.want)
			}
		}
	})
}

func TestOthersWhomOneCannotBefriend(t *testing.T) {
	s := users.New(redistest.Single(t))
	me, stranger := player(t, s, 1), player(t, s, 2)
	for name, act := range map[string]func(int64) error{
		"befriend": func(other int64) error { _, err := s.AddFriend(t.Context(), me, other); return err },
		"unfriend": func(other int64) error { return s.RemoveFriend(t.Context(), me, other) },
		"block":    func(other int64) error { _, err := s.Block(t.Context(), me, other); return err },
	} {
		if err := act(me); !errors.Is(err, apierror.InvalidRequest) {
			t.Errorf("%s oneself: %v", name, err)
		}
		for _, other := range []int64{stranger, 99, 0, -1} {
			if err := act(other); !errors.Is(err, apierror.UserNotFound) {
				t.Errorf("%s %d: %v", name, other, err)
			}
		}
	}
}

func TestRequestsThatCrossMakeFriends(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := users.New(db)
		for range 20 {
			a, b := player(t, s, 1), player(t, s, 1)
			var wg sync.WaitGroup
			for _, pair := range [][2]int64{{a, b}, {b, a}} {
				wg.Go(func() {
					if _, err := s.AddFriend(t.Context(), pair[0], pair[1]); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if got := friendship(t, s, a, b); got != "friend friend" {
				t.Fatalf("they see %q", got)
			}
		}
	})
}

func TestListsNeverNameTooFew(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := users.New(db)
		a, b := player(t, s, 1), player(t, s, 1)
		for range 50 {
			var wg sync.WaitGroup
			wg.Go(func() { _, _ = s.AddFriend(t.Context(), a, b) })
			wg.Go(func() { _ = s.RemoveFriend(t.Context(), b, a) })
			wg.Wait()
			got := friendship(t, s, a, b)
			again, err := s.AddFriend(t.Context(), a, b) // tells the pair's own state, which the list has to agree with
			if err != nil {
				t.Fatal(err)
			}
			if got != "- -" && got != "outgoing incoming" {
				t.Fatalf("they see %q", got)
			}
			if again.State != users.Outgoing || friendship(t, s, a, b) != "outgoing incoming" {
				t.Fatalf("after the request: %v, %q", again, friendship(t, s, a, b))
			}
		}
	})
}
