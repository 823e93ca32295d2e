package auth_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/auth"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/players/users"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

const adminKey = "operator-key-of-at-least-thirty-two-bytes"

var signingKey = []byte("signing-key-of-at-least-thirty-two-bytes")

// grants records the signup grants; it fails while err is set.
type grants struct {
	mu    sync.Mutex
	err   error
	given map[int64]int64
	calls int
}

func (g *grants) GiveSignupGrant(_ context.Context, game games.Game, userID int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls++
	if g.err != nil {
		return g.err
	}
	if g.given == nil {
		g.given = map[int64]int64{}
	}
	g.given[userID] = game.SignupGrant.Units // once per player, as the wallet does it
	return nil
}

func (g *grants) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err = err
}

var operator = principal.Caller{Role: principal.Operator}

// validator accepts key sets as auth does, and amounts of minor units.
type validator struct{}

func (validator) CheckProgressRules([]byte) error { return nil }
func (validator) CheckKeySet(keySet []byte) error { return auth.CheckKeySet(keySet) }
func (validator) ParseAmount(_ context.Context, _, amount string) (int64, error) {
	return strconv.ParseInt(amount, 10, 64)
}

func newGames(db *redisdb.DB) *games.Service {
	return games.New(db, games.Options{Validator: validator{}, ReservedIssuer: auth.OwnIssuer, AllowLoopbackIssuers: true})
}

// fixture is one installation with a game that has a signup grant.
type fixture struct {
	*auth.Service
	db        *redisdb.DB
	users     *users.Service
	games     *games.Service
	grants    *grants
	game      games.Game
	serverKey string
	ahead     atomic.Int64 // how far the clock of the service is ahead, ns
}

func open(t *testing.T, db *redisdb.DB, options ...auth.Options) *fixture {
	t.Helper()
	o := auth.Options{SigningKeys: [][]byte{signingKey}, AdminKeys: [][]byte{[]byte(adminKey)}, AllowLoopbackIssuers: true}
	for _, given := range options {
		o = given
	}
	f := &fixture{db: db, users: users.New(db, users.Options{}), games: newGames(db), grants: &grants{}}
	f.Service = auth.New(db, f.users, f.games, f.grants, o)
	f.SetClock(func() time.Time { return time.Now().Add(time.Duration(f.ahead.Load())) })
	f.game, f.serverKey = testkit.Must2(f.games.Create(t.Context(), operator, games.Definition{
		Name: "Chess", SignupGrant: &games.SignupGrantInput{TokenCode: "GOLD", DecimalAmount: "100", For: games.GrantForAny},
	}))(t)
	return f
}

func (f *fixture) guest(t *testing.T) auth.SignInResult {
	t.Helper()
	return testkit.Must(f.Guest(t.Context(), auth.GuestInput{GameID: f.game.ID}))(t)
}

func (f *fixture) server() principal.Caller {
	return principal.Caller{Role: principal.Server, GameID: f.game.ID, ServerKeyID: games.ServerKeyID(f.serverKey)}
}

func TestAGuestSignsInAndIsAuthenticated(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := open(t, db)
		s, err := f.Guest(t.Context(), auth.GuestInput{GameID: f.game.ID, Username: new(" Ada ")})
		if err != nil || s.User.Username != "Ada" || s.User.Kind != users.KindGuest ||
			s.AccessTokenExpiresIn != 15*time.Minute ||
			!s.User.GrantGiven {
			t.Fatalf("%+v, %v", s, err)
		}
		c, err := f.Authenticate(t.Context(), s.AccessToken)
		if err != nil || c.Caller != (principal.Caller{Role: principal.Player, UserID: s.User.ID, GameID: f.game.ID}) ||
			c.Session.Family == "" {
			t.Errorf("%+v, %v", c, err)
		}
		if left := time.Until(c.ExpiresAt); left < 14*time.Minute+58*time.Second || left > 15*time.Minute+time.Second {
			t.Errorf("it expires in %v", left)
		}
		if f.grants.given[s.User.ID] != 100 {
			t.Errorf("given %v", f.grants.given)
		}
		firstOperator := principal.Caller{Role: principal.Operator, KeyID: 1}
		for caller, bearer := range map[principal.Caller]string{f.server(): f.serverKey, firstOperator: adminKey} {
			if got, err := f.Authenticate(t.Context(), bearer); err != nil || got.Caller != caller {
				t.Errorf("%+v, %v; want %+v", got, err, caller)
			}
		}
		for _, bearer := range []string{
			"", adminKey + "x", adminKey[1:], f.serverKey + "x", "psk_", s.RefreshToken, strings.Repeat("x", 1<<20),
		} {
			testkit.Fails(f.Authenticate(t.Context(), bearer))(t, apierror.Unauthenticated, "%.40q", bearer)
		}
		testkit.Fails(f.Guest(t.Context(), auth.GuestInput{GameID: 99}))(t, apierror.GameNotFound, "an unknown game")
		_, err = f.Guest(t.Context(), auth.GuestInput{GameID: f.game.ID, Username: new(""), DeviceSecret: new("short")})
		if e, ok := apierror.As(err); !ok || len(e.FieldErrors) != 2 {
			t.Errorf("two wrong fields: %v", err)
		}
	})
}

func TestNobodyIsTheOperatorWithoutAnAdminKey(t *testing.T) {
	f := open(t, redistest.Single(t), auth.Options{SigningKeys: [][]byte{signingKey}})
	for _, bearer := range []string{"", adminKey, " "} {
		if c, err := f.Authenticate(t.Context(), bearer); !errors.Is(err, apierror.Unauthenticated) {
			t.Errorf("%q: %+v, %v", bearer, c, err)
		}
	}
}

func TestEveryAdminKeyOfTheListIsValidAndHasItsPlace(t *testing.T) {
	keys := [][]byte{[]byte("new-" + adminKey), []byte(adminKey), []byte("old-" + adminKey)}
	f := open(t, redistest.Single(t), auth.Options{SigningKeys: [][]byte{signingKey}, AdminKeys: keys})
	for i, key := range keys {
		a, err := f.Authenticate(t.Context(), string(key))
		if err != nil || a.Role != principal.Operator || a.KeyID != i+1 || a.ActorID() != "op" {
			t.Errorf("key %d: %+v, %v", i+1, a, err)
		}
	}
	if a, err := f.Authenticate(t.Context(), string(keys[0])+","+adminKey); err == nil {
		t.Errorf("the whole list is a key: %+v", a)
	}
}

func TestAHundredGuestsWithOneSecretAreOnePlayer(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := open(t, db)
		secret := "a secret of one device, which is 32 bytes long"
		var mu sync.Mutex
		seen := map[int64]bool{}
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				s, err := f.Guest(t.Context(), auth.GuestInput{GameID: f.game.ID, DeviceSecret: &secret})
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
		if len(seen) != 1 || len(f.grants.given) != 1 {
			t.Errorf("players %v, grants %v", seen, f.grants.given)
		}
		calls := f.grants.calls
		s, err := open(t, db).Guest(t.Context(), auth.GuestInput{GameID: f.game.ID, DeviceSecret: &secret}) // another node
		if err != nil || !seen[s.User.ID] || f.grants.calls != calls {
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

func TestASignupGrantThatFailedIsGivenAtTheNextSignIn(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := open(t, db)
		in := auth.GuestInput{GameID: f.game.ID, DeviceSecret: new("a secret of one device, which is 32 bytes long")}
		f.grants.fail(apierror.StoreUnavailable)
		testkit.Fails(f.Guest(t.Context(), in))(t, apierror.StoreUnavailable, "without a store")
		f.grants.fail(apierror.TokenNotFound)
		s, err := f.Guest(t.Context(), in)
		if err != nil || s.User.GrantGiven {
			t.Errorf("without the token: %+v, %v", s.User, err)
		}
		f.grants.fail(nil)
		s, err = f.Guest(t.Context(), in)
		if err != nil || !s.User.GrantGiven || f.grants.given[s.User.ID] != 100 || s.User.ID != 1 {
			t.Errorf("%+v, %v", s.User, err)
		}
	})
}

func TestExchangeReturnsTheSamePlayer(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := open(t, db)
		first, err := f.Exchange(t.Context(), f.server(), auth.ExchangeInput{
			ServerSideID: "ü-1", Username: new("Ada"), Avatar: wire.Given(new("https://a.example/x")),
		})
		if err != nil || first.User.Username != "Ada" || first.User.Avatar == nil || first.User.Kind != users.KindExternal {
			t.Fatalf("%+v, %v", first, err)
		}
		again, err := f.Exchange(t.Context(), f.server(), auth.ExchangeInput{ServerSideID: "ü-1"})
		if err != nil || again.User.ID != first.User.ID || again.User.Username != "Ada" || again.User.Avatar == nil {
			t.Errorf("%+v, %v", again.User, err)
		}
		again, err = f.Exchange(t.Context(), f.server(), auth.ExchangeInput{
			ServerSideID: "ü-1", Username: new("Bob"), Avatar: wire.Given[string](nil),
		})
		if err != nil || again.User.ID != first.User.ID || again.User.Username != "Bob" || again.User.Avatar != nil {
			t.Errorf("%+v, %v", again.User, err)
		}
		for _, caller := range []principal.Caller{{Role: principal.Player, UserID: 1, GameID: f.game.ID}, operator, {}} {
			testkit.Fails(f.Exchange(t.Context(), caller, auth.ExchangeInput{ServerSideID: "x"}))(
				t, apierror.Forbidden, "%+v", caller)
		}
		for _, id := range []string{"", strings.Repeat("x", 256)} {
			testkit.Fails(f.Exchange(t.Context(), f.server(), auth.ExchangeInput{ServerSideID: id}))(
				t, apierror.InvalidRequest, "%.10q", id)
		}
	})
}

func TestARefreshTokenRotatesAndItsReuseRevokesTheFamily(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := open(t, db)
		first := f.guest(t)
		second, err := f.Refresh(t.Context(), first.RefreshToken)
		if err != nil || second.RefreshToken == first.RefreshToken || second.User.ID != first.User.ID {
			t.Fatalf("%+v, %v", second, err)
		}
		third := testkit.Must(f.Refresh(t.Context(), second.RefreshToken))(t)
		testkit.Report(t, testkit.ErrorOf(f.Authenticate(t.Context(), third.AccessToken)))
		other := f.guest(t)
		for range 2 {
			for _, used := range []auth.SignInResult{first, second, third} {
				testkit.Fails(f.Refresh(t.Context(), used.RefreshToken))(t, apierror.RefreshTokenReused, "after a reuse")
			}
		}
		testkit.Report(t, testkit.ErrorOf(f.Refresh(t.Context(), other.RefreshToken)), "another family")
		for _, text := range []string{
			"", "prt_", "prt_1_x", "prt_0_x_y", "prt_99_AAAA_BBBB", first.AccessToken,
			"prt_1_}:user_x", "prt_1__x", "prt_1_a_b_c", strings.Repeat("p", 5000),
		} {
			testkit.Fails(f.Refresh(t.Context(), text))(t, apierror.Unauthenticated, "%.40q", text)
		}
		if text := redistest.Dump(t, db); strings.Contains(text, secretOf(third)) || strings.Contains(text, secretOf(other)) {
			t.Error("the store holds a refresh token")
		}
	})
}

func secretOf(s auth.SignInResult) string {
	return s.RefreshToken[strings.LastIndex(s.RefreshToken, "_")+1:]
}

func TestAFamilyExpiresWhenItIsIdleOrTooOld(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := open(t, db, auth.Options{SigningKeys: [][]byte{signingKey}, IdleTTL: time.Hour, FamilyTTL: 90 * time.Minute})
		s := f.guest(t)
		family := keys.RefreshFamily(s.User.ID, strings.Split(s.RefreshToken, "_")[2])
		wantTTL := func(want time.Duration) {
			t.Helper()
			if got := db.Client.PTTL(t.Context(), family).Val(); got > want || got < want-30*time.Second {
				t.Errorf("the family expires in %v, want %v", got, want)
			}
		}
		wantTTL(time.Hour)
		// As if 80 of its 90 minutes had passed.
		until := time.Now().Add(10 * time.Minute).UnixMilli()
		testkit.Check(t, db.Client.HSet(t.Context(), family, "until", until).Err())
		testkit.Must(f.Refresh(t.Context(), s.RefreshToken))(t)
		wantTTL(10 * time.Minute)
	})
}

func TestLogoutRevokesTheFamily(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := open(t, db)
		for name, logout := range map[string]func(auth.SignInResult) error{
			"by access token":  func(s auth.SignInResult) error { return f.Logout(t.Context(), s.AccessToken, "") },
			"by refresh token": func(s auth.SignInResult) error { return f.Logout(t.Context(), "", s.RefreshToken) },
		} {
			s := f.guest(t)
			for range 2 {
				testkit.Report(t, logout(s), "%s", name)
			}
			testkit.Fails(f.Refresh(t.Context(), s.RefreshToken))(t, apierror.Unauthenticated, "%s: Refresh returned", name)
		}
		for _, bad := range [][2]string{{"", ""}, {"x", ""}, {"", "x"}} {
			testkit.WantError(t, f.Logout(t.Context(), bad[0], bad[1]), apierror.Unauthenticated, "%q", bad)
		}
	})
}

func TestALogoutNeedsTheSecretOfTheRefreshToken(t *testing.T) {
	f := open(t, redistest.Single(t))
	first := f.guest(t)
	second := testkit.Must(f.Refresh(t.Context(), first.RefreshToken))(t)
	third := testkit.Must(f.Refresh(t.Context(), second.RefreshToken))(t)
	forged := third.RefreshToken[:strings.LastIndex(third.RefreshToken, "_")+1] + "FORGED"
	for name, token := range map[string]string{"forged": forged, "old": first.RefreshToken} {
		testkit.WantError(t, f.Logout(t.Context(), "", token), apierror.Unauthenticated, "a token that is %s", name)
	}
	testkit.Report(t, testkit.ErrorOf(f.Authenticate(t.Context(), third.AccessToken)), "the session has ended")
	// The token before the newest one is that of a client whose reply was lost.
	testkit.Report(t, f.Logout(t.Context(), "", second.RefreshToken))
	testkit.Fails(f.Authenticate(t.Context(), third.AccessToken))(t, apierror.Unauthenticated, "after the logout")
}

func TestTheSecretOfANewDeviceIsNotMonotonous(t *testing.T) {
	f := open(t, redistest.Single(t))
	wantField := func(err error) {
		t.Helper()
		e, ok := apierror.As(err)
		if !ok || e.Code != apierror.InvalidRequest.Code || e.FieldErrors[0].Field != "deviceSecret" {
			t.Errorf("%v", err)
		}
	}
	me := testkit.Must(f.Authenticate(t.Context(), f.guest(t).AccessToken))(t)
	for _, secret := range []string{strings.Repeat("a", 32), strings.Repeat("abcd", 64)} {
		in := auth.GuestInput{GameID: f.game.ID, DeviceSecret: &secret}
		_, err := f.Guest(t.Context(), in)
		wantField(err)
		_, err = f.Link(t.Context(), me.Caller, auth.LinkInput{DeviceSecret: &secret})
		wantField(err)
		if isNew, err := f.IsNewGuest(t.Context(), in); isNew || err != nil {
			t.Errorf("it would make a player: %v, %v", isNew, err)
		}
	}
	for range 100 {
		secret := hex.EncodeToString([]byte(rand.Text()[:16]))
		testkit.Report(t, testkit.ErrorOf(f.Guest(t.Context(), auth.GuestInput{GameID: f.game.ID, DeviceSecret: &secret})),
			"%s", secret)
	}
}

// A release before this one has accepted such a secret, and such a name.
func TestAPlayerWithASecretAndANameOfBeforeStillSignsIn(t *testing.T) {
	f := open(t, redistest.Single(t))
	secret := strings.Repeat("a", 32)
	user := testkit.Must(f.SignInDevice(t.Context(), f.game.ID, secret))(t)
	name := "Ⓐdmin"
	_, err := f.Guest(t.Context(), auth.GuestInput{GameID: f.game.ID, Username: &name})
	if e, ok := apierror.As(err); !ok || len(e.FieldErrors) != 1 || e.FieldErrors[0].Field != "username" {
		t.Errorf("a new player is called %s: %v", name, err)
	}
	s, err := f.Guest(t.Context(), auth.GuestInput{GameID: f.game.ID, Username: &name, DeviceSecret: &secret})
	if err != nil || s.User.ID != user.ID {
		t.Errorf("%+v, %v", s.User, err)
	}
}

func TestALinkedGuestSignsInAgain(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := open(t, db)
		s := f.guest(t)
		me, _ := f.Authenticate(t.Context(), s.AccessToken)
		secret := "a secret of one device, which is 32 bytes long"
		if u, err := f.Link(t.Context(), me.Caller, auth.LinkInput{DeviceSecret: &secret}); err != nil ||
			u.Kind != users.KindDevice ||
			u.ID != me.UserID {
			t.Fatalf("%+v, %v", u, err)
		}
		if back, err := f.Guest(t.Context(), auth.GuestInput{GameID: f.game.ID, DeviceSecret: &secret}); err != nil ||
			back.User.ID != me.UserID {
			t.Errorf("%+v, %v", back.User, err)
		}
		other, _ := f.Authenticate(t.Context(), f.guest(t).AccessToken)
		testkit.Fails(f.Link(t.Context(), other.Caller, auth.LinkInput{DeviceSecret: &secret}))(
			t, apierror.AlreadyLinked, "another's secret")
		if u, err := f.Link(t.Context(), f.server(), auth.LinkInput{
			UserID:       &me.UserID,
			ServerSideID: new("ada"),
		}); err != nil ||
			u.Kind != users.KindExternal {
			t.Errorf("by the server: %+v, %v", u, err)
		}
		if back, err := f.Exchange(t.Context(), f.server(), auth.ExchangeInput{ServerSideID: "ada"}); err != nil ||
			back.User.ID != me.UserID {
			t.Errorf("%+v, %v", back.User, err)
		}
		otherGame, id := open(t, db), "x"
		for _, test := range []struct {
			name   string
			caller principal.Caller
			in     auth.LinkInput
			want   *apierror.Error
		}{
			{"nothing", me.Caller, auth.LinkInput{}, apierror.InvalidRequest},
			{"both", me.Caller, auth.LinkInput{DeviceSecret: &secret, ExternalToken: &secret}, apierror.InvalidRequest},
			{"short", me.Caller, auth.LinkInput{DeviceSecret: new("short")}, apierror.InvalidRequest},
			{
				"a player, an external id", me.Caller,
				auth.LinkInput{UserID: &other.UserID, ServerSideID: &id},
				apierror.Forbidden,
			},
			{"no token", me.Caller, auth.LinkInput{ExternalToken: new("a.b.c")}, apierror.Unauthenticated},
			{"the operator", operator, auth.LinkInput{DeviceSecret: &secret}, apierror.Forbidden},
			{"a server without an id", f.server(), auth.LinkInput{UserID: &me.UserID}, apierror.InvalidRequest},
			{
				"a foreign server", otherGame.server(),
				auth.LinkInput{UserID: &me.UserID, ServerSideID: &id},
				apierror.UserNotFound,
			},
		} {
			testkit.Fails(f.Link(t.Context(), test.caller, test.in))(t, test.want, "%s", test.name)
		}
	})
}

func TestATicketIsValidOnce(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := open(t, db)
		c := testkit.Must(f.Authenticate(t.Context(), f.guest(t).AccessToken))(t)
		ticket, err := f.IssueTicket(t.Context(), c)
		if err != nil || ticket.ExpiresIn != time.Minute || strings.Contains(redistest.Dump(t, db), ticket.Secret) {
			t.Fatalf("%+v, %v", ticket, err)
		}
		var won atomic.Int32
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				got, err := f.RedeemTicket(t.Context(), ticket.Secret)
				switch {
				case err == nil && got.Caller == c.Caller && got.Session.Family == c.Session.Family &&
					got.ExpiresAt.Equal(c.ExpiresAt):
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
		f.ahead.Store(int64(15*time.Minute + 2*time.Second))
		testkit.Fails(f.IssueTicket(t.Context(), c))(t, apierror.AccessTokenExpired, "a ticket for an expired token")
		f.ahead.Store(int64(14*time.Minute + 50*time.Second))
		ticket, err = f.IssueTicket(t.Context(), c)
		if err != nil || ticket.ExpiresIn > 12*time.Second {
			t.Errorf("a ticket outlives its token: %v, %v", ticket.ExpiresIn, err)
		}
	})
}

func TestWithoutAStoreSignInsFailAndTokensStayValid(t *testing.T) {
	server := redistest.StartForTest(t)
	db := testkit.Must(redisdb.Open(server.URL()))(t)
	defer func() { _ = db.Close() }()
	f := open(t, db)
	s := f.guest(t)
	testkit.Must(f.Authenticate(t.Context(), s.AccessToken))(t) // now the node knows which sessions have ended
	server.Kill()
	testkit.Fails(f.Guest(t.Context(), auth.GuestInput{GameID: f.game.ID}))(t, apierror.StoreUnavailable, "a sign-in")
	testkit.Fails(f.Refresh(t.Context(), s.RefreshToken))(t, apierror.StoreUnavailable, "a refresh")
	testkit.Report(t, testkit.ErrorOf(f.Authenticate(t.Context(), s.AccessToken)), "a token")
}
