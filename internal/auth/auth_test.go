package auth_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/principal"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/auth"
	"github.com/parlor-games/parlor/internal/games"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/internal/users"
	"github.com/parlor-games/parlor/internal/wallet"
	"github.com/parlor-games/parlor/scripts"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

const adminKey = "operator-key-of-at-least-thirty-two-bytes"

var signingKey = []byte("signing-key-of-at-least-thirty-two-bytes")

// grants counts what the wallet was asked to give; it fails while err is set.
type grants struct {
	mu    sync.Mutex
	err   error
	given map[int64]wallet.Units
	calls int
}

func (g *grants) Grant(_ context.Context, _ principal.Caller, in wallet.GrantInput) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls++
	if g.err != nil {
		return g.err
	}
	if g.given == nil {
		g.given = map[int64]wallet.Units{}
	}
	g.given[in.UserID] = in.Units // once per player, as the wallet does it
	return nil
}

func (g *grants) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err = err
}

// house is one installation with a game that welcomes its players.
type house struct {
	*auth.Service
	db     *redisdb.DB
	users  *users.Service
	games  *games.Service
	grants *grants
	game   games.Game
	key    string
	ahead  atomic.Int64 // how far the clock of the service is ahead
}

func open(t *testing.T, db *redisdb.DB, options ...auth.Options) *house {
	t.Helper()
	o := auth.Options{SigningKeys: [][]byte{signingKey}, AdminKey: adminKey, LoopbackIssuers: true}
	for _, given := range options {
		o = given
	}
	h := &house{db: db, users: users.New(db), games: games.New(db, games.Options{LoopbackIssuers: true}), grants: &grants{}}
	h.Service = auth.New(db, h.users, h.games, h.grants, o)
	h.SetClock(func() time.Time { return time.Now().Add(time.Duration(h.ahead.Load())) })
	var err error
	h.game, h.key, err = h.games.Create(t.Context(), games.Definition{Name: "Chess", WelcomeGrant: &games.Grant{TokenID: "GOLD", Units: 100}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *house) guest(t *testing.T) auth.Session {
	t.Helper()
	s, err := h.Guest(t.Context(), auth.GuestInput{GameID: h.game.ID})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (h *house) server() principal.Caller {
	return principal.Caller{Role: principal.Server, Game: h.game.ID}
}

func TestAGuestSignsInAndIsKnown(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		h := open(t, db)
		s, err := h.Guest(t.Context(), auth.GuestInput{GameID: h.game.ID, Username: new(" Ada ")})
		if err != nil || s.User.Username != "Ada" || s.User.Kind != users.Guest || s.ExpiresIn != 15*time.Minute || !s.User.GrantGiven {
			t.Fatalf("%+v, %v", s, err)
		}
		c, err := h.Credential(t.Context(), s.AccessToken)
		if err != nil || c.Caller != (principal.Caller{Role: principal.Player, User: s.User.ID, Game: h.game.ID}) || c.Session == "" {
			t.Errorf("%+v, %v", c, err)
		}
		if left := time.Until(c.Expires); left < 14*time.Minute+58*time.Second || left > 15*time.Minute+time.Second {
			t.Errorf("it expires in %v", left)
		}
		if h.grants.given[s.User.ID] != 100 {
			t.Errorf("given %v", h.grants.given)
		}
		for caller, bearer := range map[principal.Caller]string{{Role: principal.Server, Game: h.game.ID}: h.key, {Role: principal.Operator}: adminKey} {
			if got, err := h.Authenticate(t.Context(), bearer); err != nil || got != caller {
				t.Errorf("%+v, %v; want %+v", got, err, caller)
			}
		}
		for _, bearer := range []string{"", adminKey + "x", adminKey[1:], h.key + "x", "psk_", s.RefreshToken, strings.Repeat("x", 1<<20)} {
			if _, err := h.Authenticate(t.Context(), bearer); !errors.Is(err, apierror.Unauthenticated) {
				t.Errorf("%.40q: %v", bearer, err)
			}
		}
		if _, err := h.Guest(t.Context(), auth.GuestInput{GameID: 99}); !errors.Is(err, apierror.GameNotFound) {
			t.Errorf("an unknown game: %v", err)
		}
		_, err = h.Guest(t.Context(), auth.GuestInput{GameID: h.game.ID, Username: new(""), DeviceSecret: new("short")})
		if refusal, ok := apierror.As(err); !ok || len(refusal.FieldErrors) != 2 {
			t.Errorf("two wrong fields: %v", err)
		}
	})
}

func TestNobodyIsTheOperatorWithoutAnAdminKey(t *testing.T) {
	h := open(t, redistest.Single(t), auth.Options{SigningKeys: [][]byte{signingKey}})
	for _, bearer := range []string{"", adminKey, " "} {
		if c, err := h.Authenticate(t.Context(), bearer); !errors.Is(err, apierror.Unauthenticated) {
			t.Errorf("%q: %+v, %v", bearer, c, err)
		}
	}
}

func TestAHundredGuestsWithOneSecretAreOnePlayer(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		h := open(t, db)
		secret := "a secret of one device"
		var mu sync.Mutex
		seen := map[int64]bool{}
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				s, err := h.Guest(t.Context(), auth.GuestInput{GameID: h.game.ID, DeviceSecret: &secret})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				seen[s.User.ID] = true
				mu.Unlock()
			})
		}
		wg.Wait()
		if len(seen) != 1 || len(h.grants.given) != 1 {
			t.Errorf("players %v, grants %v", seen, h.grants.given)
		}
		calls := h.grants.calls
		s, err := open(t, db).Guest(t.Context(), auth.GuestInput{GameID: h.game.ID, DeviceSecret: &secret}) // another node
		if err != nil || !seen[s.User.ID] || h.grants.calls != calls {
			t.Errorf("%+v, %v", s.User, err)
		}
		other := open(t, db)
		s, err = other.Guest(t.Context(), auth.GuestInput{GameID: other.game.ID, DeviceSecret: &secret})
		if err != nil || seen[s.User.ID] {
			t.Errorf("in another game: %+v, %v", s.User, err)
		}
		if strings.Contains(redistest.Dump(t, db), secret) {
			t.Error("the store holds the secret")
		}
	})
}

func TestAWelcomeThatFailedIsGivenAtTheNextSignIn(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		h := open(t, db)
		in := auth.GuestInput{GameID: h.game.ID, DeviceSecret: new("a secret of one device")}
		h.grants.fail(apierror.StoreUnavailable)
		if _, err := h.Guest(t.Context(), in); !errors.Is(err, apierror.StoreUnavailable) {
			t.Errorf("without a store: %v", err)
		}
		h.grants.fail(apierror.TokenNotFound)
		s, err := h.Guest(t.Context(), in)
		if err != nil || s.User.GrantGiven {
			t.Errorf("without the token: %+v, %v", s.User, err)
		}
		h.grants.fail(nil)
		s, err = h.Guest(t.Context(), in)
		if err != nil || !s.User.GrantGiven || h.grants.given[s.User.ID] != 100 || s.User.ID != 1 {
			t.Errorf("%+v, %v", s.User, err)
		}
	})
}

func TestExchangeKnowsThePlayerAgain(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		h := open(t, db)
		first, err := h.Exchange(t.Context(), h.server(), auth.ExchangeInput{ExternalID: "ü-1", Username: new("Ada"), Avatar: new(new("https://a.example/x"))})
		if err != nil || first.User.Username != "Ada" || first.User.Avatar == nil || first.User.Kind != users.External {
			t.Fatalf("%+v, %v", first, err)
		}
		again, err := h.Exchange(t.Context(), h.server(), auth.ExchangeInput{ExternalID: "ü-1"})
		if err != nil || again.User.ID != first.User.ID || again.User.Username != "Ada" || again.User.Avatar == nil {
			t.Errorf("%+v, %v", again.User, err)
		}
		again, err = h.Exchange(t.Context(), h.server(), auth.ExchangeInput{ExternalID: "ü-1", Username: new("Bob"), Avatar: new((*string)(nil))})
		if err != nil || again.User.ID != first.User.ID || again.User.Username != "Bob" || again.User.Avatar != nil {
			t.Errorf("%+v, %v", again.User, err)
		}
		for _, caller := range []principal.Caller{{Role: principal.Player, User: 1, Game: h.game.ID}, {Role: principal.Operator}, {}} {
			if _, err := h.Exchange(t.Context(), caller, auth.ExchangeInput{ExternalID: "x"}); !errors.Is(err, apierror.Forbidden) {
				t.Errorf("%+v: %v", caller, err)
			}
		}
		for _, id := range []string{"", strings.Repeat("x", 256)} {
			if _, err := h.Exchange(t.Context(), h.server(), auth.ExchangeInput{ExternalID: id}); !errors.Is(err, apierror.InvalidRequest) {
				t.Errorf("%.10q: %v", id, err)
			}
		}
	})
}

func TestARefreshTokenRotatesAndItsReuseRevokesTheFamily(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		h := open(t, db)
		first := h.guest(t)
		second, err := h.Refresh(t.Context(), first.RefreshToken)
		if err != nil || second.RefreshToken == first.RefreshToken || second.User.ID != first.User.ID {
			t.Fatalf("%+v, %v", second, err)
		}
		third, err := h.Refresh(t.Context(), second.RefreshToken)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Authenticate(t.Context(), third.AccessToken); err != nil {
			t.Error(err)
		}
		other := h.guest(t)
		for range 2 {
			for _, used := range []auth.Session{first, second, third} {
				if _, err := h.Refresh(t.Context(), used.RefreshToken); !errors.Is(err, apierror.RefreshReused) {
					t.Errorf("after a reuse: %v", err)
				}
			}
		}
		if _, err := h.Refresh(t.Context(), other.RefreshToken); err != nil {
			t.Errorf("another family: %v", err)
		}
		for _, text := range []string{
			"", "prt_", "prt_1_x", "prt_0_x_y", "prt_99_AAAA_BBBB", first.AccessToken, "prt_1_}:user_x", "prt_1__x", "prt_1_a_b_c", strings.Repeat("p", 5000),
		} {
			if _, err := h.Refresh(t.Context(), text); !errors.Is(err, apierror.Unauthenticated) {
				t.Errorf("%.40q: %v", text, err)
			}
		}
		if text := redistest.Dump(t, db); strings.Contains(text, secretOf(third)) || strings.Contains(text, secretOf(other)) {
			t.Error("the store holds a refresh token")
		}
	})
}

func secretOf(s auth.Session) string {
	return s.RefreshToken[strings.LastIndex(s.RefreshToken, "_")+1:]
}

func TestTwoRefreshesAtOnceAreAReuse(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		h := open(t, db)
		for range 20 {
			s := h.guest(t)
			var won, lost atomic.Int32
			var winner atomic.Pointer[auth.Session]
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() {
					next, err := h.Refresh(t.Context(), s.RefreshToken)
					switch {
					case err == nil:
						won.Add(1)
						winner.Store(&next)
					case errors.Is(err, apierror.RefreshReused):
						lost.Add(1)
					default:
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if won.Load() != 1 || lost.Load() != 1 {
				t.Fatalf("%d won, %d lost", won.Load(), lost.Load())
			}
			if _, err := h.Refresh(t.Context(), winner.Load().RefreshToken); !errors.Is(err, apierror.RefreshReused) {
				t.Fatalf("the winner's next: %v", err)
			}
		}
	})
}

// go-redis sends a script again when its reply was lost. The player must not be logged out by that.
func TestAResendOfOneRefreshIsNotAReuse(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		h := open(t, db)
		s := h.guest(t)
		family := keys.Refresh(s.User.ID, strings.Split(s.RefreshToken, "_")[2])
		shown := db.Client.HGet(t.Context(), family, "current").Val()
		for _, call := range []struct{ nonce, want string }{{"7", "ok"}, {"7", "ok"}, {"8", "refresh_reused"}, {"7", "refresh_reused"}} {
			word, _, err := db.Run(t.Context(), scripts.RefreshRotate, []string{family}, shown, "next", call.nonce, 60_000)
			if err != nil || word != call.want {
				t.Errorf("nonce %s: %s, %v; want %s", call.nonce, word, err, call.want)
			}
		}
	})
}

func TestAFamilyEndsWhenItIsIdleOrTooOld(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		h := open(t, db, auth.Options{SigningKeys: [][]byte{signingKey}, IdleTTL: time.Hour, FamilyTTL: 90 * time.Minute})
		s := h.guest(t)
		family := keys.Refresh(s.User.ID, strings.Split(s.RefreshToken, "_")[2])
		near := func(want time.Duration) {
			t.Helper()
			if got := db.Client.PTTL(t.Context(), family).Val(); got > want || got < want-30*time.Second {
				t.Errorf("the family lives %v, want %v", got, want)
			}
		}
		near(time.Hour)
		// As if 80 of its 90 minutes were over.
		ends := time.Now().Add(10 * time.Minute).UnixMilli()
		if err := db.Client.HSet(t.Context(), family, "until", ends).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Refresh(t.Context(), s.RefreshToken); err != nil {
			t.Fatal(err)
		}
		near(10 * time.Minute)
	})
}

func TestLogoutRevokesTheFamily(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		h := open(t, db)
		for name, logout := range map[string]func(auth.Session) error{
			"by access token":  func(s auth.Session) error { return h.Logout(t.Context(), s.AccessToken, "") },
			"by refresh token": func(s auth.Session) error { return h.Logout(t.Context(), "", s.RefreshToken) },
		} {
			s := h.guest(t)
			for range 2 {
				if err := logout(s); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if _, err := h.Refresh(t.Context(), s.RefreshToken); !errors.Is(err, apierror.Unauthenticated) {
				t.Errorf("%s: refresh answers %v", name, err)
			}
		}
		for _, bad := range [][2]string{{"", ""}, {"x", ""}, {"", "x"}} {
			if err := h.Logout(t.Context(), bad[0], bad[1]); !errors.Is(err, apierror.Unauthenticated) {
				t.Errorf("%q: %v", bad, err)
			}
		}
	})
}

func TestLinkMakesAGuestComeBack(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		h := open(t, db)
		s := h.guest(t)
		me, _ := h.Authenticate(t.Context(), s.AccessToken)
		secret := "a secret of one device"
		if u, err := h.Link(t.Context(), me, auth.LinkInput{DeviceSecret: &secret}); err != nil || u.Kind != users.Device || u.ID != me.User {
			t.Fatalf("%+v, %v", u, err)
		}
		if back, err := h.Guest(t.Context(), auth.GuestInput{GameID: h.game.ID, DeviceSecret: &secret}); err != nil || back.User.ID != me.User {
			t.Errorf("%+v, %v", back.User, err)
		}
		other, _ := h.Authenticate(t.Context(), h.guest(t).AccessToken)
		if _, err := h.Link(t.Context(), other, auth.LinkInput{DeviceSecret: &secret}); !errors.Is(err, apierror.AlreadyLinked) {
			t.Errorf("another's secret: %v", err)
		}
		if u, err := h.Link(t.Context(), h.server(), auth.LinkInput{UserID: &me.User, ExternalID: new("ada")}); err != nil || u.Kind != users.External {
			t.Errorf("by the server: %+v, %v", u, err)
		}
		if back, err := h.Exchange(t.Context(), h.server(), auth.ExchangeInput{ExternalID: "ada"}); err != nil || back.User.ID != me.User {
			t.Errorf("%+v, %v", back.User, err)
		}
		stranger := open(t, db)
		for _, test := range []struct {
			name   string
			caller principal.Caller
			in     auth.LinkInput
			want   *apierror.Error
		}{
			{"nothing", me, auth.LinkInput{}, apierror.InvalidRequest},
			{"both", me, auth.LinkInput{DeviceSecret: &secret, ExternalToken: &secret}, apierror.InvalidRequest},
			{"short", me, auth.LinkInput{DeviceSecret: new("short")}, apierror.InvalidRequest},
			{"a player's word", me, auth.LinkInput{UserID: &other.User, ExternalID: new("x")}, apierror.Forbidden},
			{"no token", me, auth.LinkInput{ExternalToken: new("a.b.c")}, apierror.Unauthenticated},
			{"the operator", principal.Caller{Role: principal.Operator}, auth.LinkInput{DeviceSecret: &secret}, apierror.Forbidden},
			{"a server without an id", h.server(), auth.LinkInput{UserID: &me.User}, apierror.InvalidRequest},
			{"a server of another game", stranger.server(), auth.LinkInput{UserID: &me.User, ExternalID: new("x")}, apierror.UserNotFound},
		} {
			if _, err := h.Link(t.Context(), test.caller, test.in); !errors.Is(err, test.want) {
				t.Errorf("%s: %v, want %v", test.name, err, test.want)
			}
		}
	})
}

func TestATicketIsGoodOnce(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		h := open(t, db)
		c, err := h.Credential(t.Context(), h.guest(t).AccessToken)
		if err != nil {
			t.Fatal(err)
		}
		ticket, err := h.Ticket(t.Context(), c)
		if err != nil || ticket.ExpiresIn != time.Minute || strings.Contains(redistest.Dump(t, db), ticket.Ticket) {
			t.Fatalf("%+v, %v", ticket, err)
		}
		var won atomic.Int32
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				got, err := h.RedeemTicket(t.Context(), ticket.Ticket)
				switch {
				case err == nil && got.Caller == c.Caller && got.Session == c.Session && got.Expires.Equal(c.Expires):
					won.Add(1)
				case !errors.Is(err, apierror.Unauthenticated):
					t.Errorf("%+v, %v", got, err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Errorf("%d redeemed it", won.Load())
		}
		h.ahead.Store(int64(15*time.Minute + 2*time.Second))
		if _, err := h.Ticket(t.Context(), c); !errors.Is(err, apierror.TokenExpired) {
			t.Errorf("a ticket for what is over: %v", err)
		}
		h.ahead.Store(int64(14*time.Minute + 50*time.Second))
		ticket, err = h.Ticket(t.Context(), c)
		if err != nil || ticket.ExpiresIn > 12*time.Second {
			t.Errorf("a ticket outlives what it is for: %v, %v", ticket.ExpiresIn, err)
		}
	})
}

func TestWithoutAStoreASignInFailsAndATokenStillHolds(t *testing.T) {
	server := redistest.StartFor(t)
	db, err := redisdb.Open(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	h := open(t, db)
	s := h.guest(t)
	server.Kill()
	if _, err := h.Guest(t.Context(), auth.GuestInput{GameID: h.game.ID}); !errors.Is(err, apierror.StoreUnavailable) {
		t.Errorf("a sign-in: %v", err)
	}
	if _, err := h.Refresh(t.Context(), s.RefreshToken); !errors.Is(err, apierror.StoreUnavailable) {
		t.Errorf("a refresh: %v", err)
	}
	if _, err := h.Authenticate(t.Context(), s.AccessToken); err != nil {
		t.Errorf("a token: %v", err)
	}
}
