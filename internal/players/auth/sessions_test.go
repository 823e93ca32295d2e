package auth_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/players/auth"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/players/sessions"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// run runs a service until the test ends.
func (f *fixture) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
}

// waitUntil polls until a condition holds: for the two seconds in which every node must know that a
// session has ended, and some more for a slow machine.
func waitUntil(t *testing.T, what string, condition func() bool) {
	t.Helper()
	testkit.Report(t, redistest.Poll(6*time.Second, func() error {
		if !condition() {
			return errors.New("not yet")
		}
		return nil
	}), "%s", what)
}

func isRefused(t *testing.T, f *fixture, bearer string) bool {
	t.Helper()
	_, err := f.Authenticate(t.Context(), bearer)
	if err != nil && !errors.Is(err, apierror.Unauthenticated) {
		t.Errorf("Authenticate returned %v", err)
	}
	return err != nil
}

// watch returns the close code with which a session ends on a node, 0 until then.
func (f *fixture) watch(t *testing.T, bearer string) *atomic.Int64 {
	t.Helper()
	a := testkit.Must(f.Authenticate(t.Context(), bearer))(t)
	code := new(atomic.Int64)
	t.Cleanup(f.WatchSession(a, func(c int) { code.Add(int64(c)) }))
	return code
}

func TestAnEndedSessionIsRefusedOnEveryNode(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		here := open(t, db)
		there := here.otherNode(t)
		there.run(t)
		bySignIn := func() auth.SignInResult { return here.guest(t) }
		byRefresh := func() auth.SignInResult { return mustRefresh(t, here, here.guest(t).RefreshToken) }
		byExchange := func() auth.SignInResult {
			return testkit.Must(here.Exchange(t.Context(), here.server(), auth.ExchangeInput{ServerSideID: "ada"}))(t)
		}
		for _, test := range []struct {
			name  string
			begin func() auth.SignInResult
			end   func(auth.SignInResult) error
			code  int64
		}{
			{"logout by access token", bySignIn, func(s auth.SignInResult) error {
				return here.Logout(t.Context(), s.AccessToken, "")
			}, 4001},
			{"logout by refresh token", bySignIn, func(s auth.SignInResult) error {
				return here.Logout(t.Context(), "", s.RefreshToken)
			}, 4001},
			{"logout after a refresh", byRefresh, func(s auth.SignInResult) error {
				return here.Logout(t.Context(), "", s.RefreshToken)
			}, 4001},
			{"the player's sessions", bySignIn, func(s auth.SignInResult) error {
				return here.EndUserSessions(t.Context(), s.User.ID, sessions.CloseEnded)
			}, 4001},
			{"a suspension", bySignIn, func(s auth.SignInResult) error {
				return here.EndUserSessions(t.Context(), s.User.ID, sessions.CloseForbidden)
			}, 4403},
			{"a deleted player", bySignIn, func(s auth.SignInResult) error {
				return here.EndDeletedUserSessions(t.Context(), s.User.ID)
			}, 4001},
			{"a revoked server key", byExchange, func(auth.SignInResult) error {
				return here.EndServerKeySessions(t.Context(), here.game.ID, games.ServerKeyID(here.serverKey))
			}, 4001},
		} {
			s, other := test.begin(), here.guest(t)
			hereCode, thereCode := here.watch(t, s.AccessToken), there.watch(t, s.AccessToken)
			otherCode := there.watch(t, other.AccessToken)
			for range 2 {
				if err := test.end(s); err != nil && !errors.Is(err, apierror.Unauthenticated) {
					t.Errorf("%s: %v", test.name, err)
				}
			}
			if !isRefused(t, here, s.AccessToken) || hereCode.Load() != test.code {
				t.Errorf("%s: the node that did it closes with %d", test.name, hereCode.Load())
			}
			waitUntil(t, test.name, func() bool {
				return isRefused(t, there, s.AccessToken) && thereCode.Load() == test.code
			})
			if !isRefused(t, here.otherNode(t), s.AccessToken) { // a node that starts afterwards
				t.Errorf("%s: a new node accepts the token", test.name)
			}
			if isRefused(t, there, other.AccessToken) || otherCode.Load() != 0 {
				t.Errorf("%s: another session ended, too", test.name)
			}
			called := false
			there.WatchSession(auth.Authentication{Session: sessions.Session{
				UserID: s.User.ID, GameID: here.game.ID, Family: familyOf(s), ServerKeyID: games.ServerKeyID(here.serverKey),
			}}, func(int) { called = true })()
			if !called {
				t.Errorf("%s: a watch that comes too late is not told", test.name)
			}
		}
	})
}

func TestAPlayerWhoseSessionsEndedSignsInAgain(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := open(t, db)
		in := auth.GuestInput{GameID: f.game.ID, DeviceSecret: new("a secret of one device, which is 32 bytes long")}
		first := testkit.Must(f.Guest(t.Context(), in))(t)
		testkit.Check(t, f.EndUserSessions(t.Context(), first.User.ID, sessions.CloseEnded))
		testkit.Fails(f.Refresh(t.Context(), first.RefreshToken))(t, apierror.Unauthenticated, "Refresh returned")
		again, err := f.Guest(t.Context(), in)
		if err != nil || again.User.ID != first.User.ID {
			t.Fatalf("%+v, %v", again.User, err)
		}
		if isRefused(t, f, again.AccessToken) || isRefused(t, f, mustRefresh(t, f, again.RefreshToken).AccessToken) {
			t.Error("the new session has ended")
		}
		if !isRefused(t, f, first.AccessToken) {
			t.Error("the new sign-in revives the old session")
		}
		testkit.WantError(t, f.EndUserSessions(t.Context(), 99, sessions.CloseEnded), apierror.UserNotFound,
			"an unknown player")
	})
}

// Sessions that were ended while the store's clock was ahead must not keep the player out until
// then, and those that begin meanwhile can be ended.
func TestAPlayerWhoseSessionsAClockAheadHasEndedSignsInAgain(t *testing.T) {
	db, clock := redistest.OpenMovable(t)
	f := open(t, db)
	in := auth.GuestInput{GameID: f.game.ID, DeviceSecret: new("a secret of one device, which is 32 bytes long")}
	signIn := func() auth.SignInResult {
		return testkit.Must(f.Guest(t.Context(), in))(t)
	}
	end := func(user int64) {
		testkit.Check(t, f.EndUserSessions(t.Context(), user, sessions.CloseEnded))
	}
	first := signIn()
	clock.Move(time.Hour)
	end(first.User.ID)
	clock.Move(0)
	for range 2 {
		again := signIn()
		if isRefused(t, f, again.AccessToken) || isRefused(t, f, mustRefresh(t, f, again.RefreshToken).AccessToken) {
			t.Error("the player is kept out")
		}
		end(again.User.ID)
		if _, err := f.Refresh(t.Context(), again.RefreshToken); !isRefused(t, f, again.AccessToken) || err == nil {
			t.Errorf("the new session was not ended: %v", err)
		}
	}
}

// A family whose record survives the end of the player's sessions, as after a crash in between,
// must not be refreshed.
func TestAFamilyThatBeganBeforeTheEndCannotBeRefreshed(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := open(t, db)
		s := f.guest(t)
		now := time.Now().Add(time.Second).UnixMilli()
		testkit.Check(t, db.Client.HSet(t.Context(), keys.User(s.User.ID), "ended", now).Err())
		testkit.Fails(f.Refresh(t.Context(), s.RefreshToken))(t, apierror.Unauthenticated, "Refresh returned")
	})
}

func TestTheStoreHasNoFamilyOfADeletedPlayer(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := open(t, db)
		in := auth.GuestInput{GameID: f.game.ID, DeviceSecret: new("a secret of one device, which is 32 bytes long")}
		var last auth.SignInResult
		for range 3 {
			last = testkit.Must(f.Guest(t.Context(), in))(t)
		}
		testkit.Check(t, f.EndDeletedUserSessions(t.Context(), last.User.ID))
		redistest.EachMaster(t, db, func(ctx context.Context, server *redis.Client) error {
			left, err := server.Keys(ctx, "{u:"+strconv.FormatInt(last.User.ID, 10)+"}:refresh*").Result()
			if len(left) > 0 {
				t.Errorf("%v are left", left)
			}
			return err
		})
	})
}

func TestATicketOfAnEndedSessionIsRefused(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := open(t, db)
		s := f.guest(t)
		a := testkit.Must(f.Authenticate(t.Context(), s.AccessToken))(t)
		ticket := testkit.Must(f.IssueTicket(t.Context(), a))(t)
		testkit.Check(t, f.Logout(t.Context(), "", s.RefreshToken))
		testkit.Fails(f.RedeemTicket(t.Context(), ticket.Secret))(t, apierror.Unauthenticated, "RedeemTicket returned")
	})
}

func TestANodeThatWasCutOffCatchesUp(t *testing.T) {
	server := redistest.StartForTest(t)
	db := testkit.Must(redisdb.Open(server.URL()))(t)
	defer func() { _ = db.Close() }()
	here := open(t, db)
	cutOff := testkit.Must(redisdb.Open(server.URL()))(t)
	defer func() { _ = cutOff.Close() }()
	there := open(t, cutOff)
	var isCutOff atomic.Bool
	var failed atomic.Int64
	redistest.FailCommands(cutOff, func() bool {
		if !isCutOff.Load() {
			return false
		}
		failed.Add(1)
		return true
	})
	there.run(t)
	s := here.guest(t)
	if isRefused(t, there, s.AccessToken) {
		t.Fatal("the token is refused before its session ends")
	}
	isCutOff.Store(true)
	testkit.Check(t, here.Logout(t.Context(), "", s.RefreshToken))
	waitUntil(t, "polls without a store", func() bool { return failed.Load() >= 2 })
	if isRefused(t, there, s.AccessToken) {
		t.Fatal("the node was not cut off")
	}
	isCutOff.Store(false)
	waitUntil(t, "the node is back", func() bool { return isRefused(t, there, s.AccessToken) })
}

// Tokens of an outside issuer.

func (p *provider) lasting(t *testing.T, change map[string]any) string {
	t.Helper()
	claims := map[string]any{"exp": time.Now().AddDate(1, 0, 0).Unix(), "iat": time.Now().Unix()}
	for name, value := range change {
		claims[name] = value
	}
	return p.token(t, "ed", claims)
}

func TestAnExternalTokenCountsForADay(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f, p := open(t, db), newProvider(t)
		p.accept(t, f, "/keys")
		for name, token := range map[string]string{
			"from its issue":     p.lasting(t, nil),
			"from its first use": p.lasting(t, map[string]any{"iat": nil}),
		} {
			f.ahead.Store(0)
			a, err := f.Authenticate(t.Context(), token)
			if left := time.Until(a.ExpiresAt); err != nil || left > 24*time.Hour || left < 23*time.Hour+59*time.Minute {
				t.Fatalf("%s: it expires in %v, %v", name, left, err)
			}
			f.ahead.Store(int64(24*time.Hour - time.Minute))
			testkit.Report(t, testkit.ErrorOf(f.Authenticate(t.Context(), token)), "%s, nearly a day later", name)
			f.ahead.Store(int64(24*time.Hour + time.Second))
			for _, node := range []*fixture{f, f.otherNode(t)} {
				node.ahead.Store(f.ahead.Load())
				testkit.Fails(node.Authenticate(t.Context(), token))(t, apierror.AccessTokenExpired, "%s, a day later", name)
			}
		}
		f.ahead.Store(0)
		for name, change := range map[string]map[string]any{
			"issued two days ago":   {"iat": time.Now().AddDate(0, 0, -2).Unix()},
			"issued in the future":  {"iat": time.Now().AddDate(0, 0, 2).Unix()},
			"issued a minute ahead": {"iat": time.Now().Add(time.Minute).Unix()},
		} {
			if a, err := f.Authenticate(t.Context(), p.lasting(t, change)); err == nil {
				t.Errorf("a token %s is accepted until %v", name, a.ExpiresAt)
			}
		}
	})
}

func TestSessionsOfARemovedIssuerEnd(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f, p := open(t, db), newProvider(t)
		there := f.otherNode(t)
		there.run(t)
		p.accept(t, f, "/keys")
		token, guest := p.lasting(t, nil), f.guest(t)
		code := there.watch(t, token)
		testkit.Check(t, f.EndIssuerSessions(t.Context(), f.game.ID, "https://id.example"))
		waitUntil(t, "the token on another node", func() bool { return isRefused(t, there, token) && code.Load() == 4001 })
		if isRefused(t, f, guest.AccessToken) {
			t.Error("a guest of the game is signed out, too")
		}
		other := newProvider(t) // the ends are of the issuer, not of its keys
		other.accept(t, f, "/keys")
		f.ahead.Store(int64(2 * time.Minute))
		if !isRefused(t, f, token) {
			t.Error("an old token is accepted again")
		}
	})
}

// What a watch verifies anew: that the issuer is still accepted, and still has the key.
func TestAWatchedExternalSessionIsVerifiedAnew(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		for name, change := range map[string]func(*provider) []games.Issuer{
			"the issuer is removed": func(*provider) []games.Issuer { return []games.Issuer{} },
			"the key is replaced": func(p *provider) []games.Issuer {
				p.add(t, "ed", "ec", "rsa")
				return []games.Issuer{{Issuer: "https://id.example", Audience: "chess", KeySetJSON: p.set(t)}}
			},
		} {
			t.Run(name, func(t *testing.T) {
				f, p := open(t, db, auth.Options{
					SigningKeys: [][]byte{signingKey}, ExternalCheckInterval: 20 * time.Millisecond,
				}), newProvider(t)
				set := func(issuers []games.Issuer) {
					settings := games.SettingsPatch{Issuers: &issuers}
					testkit.Must(f.games.Patch(t.Context(), operator, f.game.ID, games.PatchInput{Settings: settings}))(t)
				}
				set([]games.Issuer{{Issuer: "https://id.example", Audience: "chess", KeySetJSON: p.set(t)}})
				f.run(t)
				byToken, byTicket := f.watch(t, p.lasting(t, nil)), new(atomic.Int64)
				a := testkit.Must(f.Authenticate(t.Context(), p.lasting(t, map[string]any{"sub": "bob"})))(t)
				ticket := testkit.Must(f.IssueTicket(t.Context(), a))(t)
				redeemed := testkit.Must(f.RedeemTicket(t.Context(), ticket.Secret))(t)
				defer f.WatchSession(redeemed, func(code int) { byTicket.Store(int64(code)) })()
				checks := redistest.CountCommands(db)
				waitUntil(t, "checks", func() bool { return checks.Load() >= 4 })
				if byToken.Load() != 0 || byTicket.Load() != 0 {
					t.Errorf("closed with %d and %d though nothing changed", byToken.Load(), byTicket.Load())
				}
				set(change(p))
				waitUntil(t, "the sessions", func() bool { return byToken.Load() == 4001 && byTicket.Load() == 4001 })
				set([]games.Issuer{})
			})
		}
	})
}

// While nobody can tell whether the issuer is still accepted, a session goes on for less than an
// hour after the last check.
func TestAWatchedExternalSessionOutlivesAnOutageOfLessThanAnHour(t *testing.T) {
	f, p := open(t, redistest.Single(t), auth.Options{
		SigningKeys: [][]byte{signingKey}, ExternalCheckInterval: time.Minute,
	}), newProvider(t)
	issuers := []games.Issuer{{Issuer: "https://id.example", Audience: "chess", KeySetJSON: p.set(t)}}
	settings := games.SettingsPatch{Issuers: &issuers}
	testkit.Must(f.games.Patch(t.Context(), operator, f.game.ID, games.PatchInput{Settings: settings}))(t)
	var isDown atomic.Bool
	redistest.FailCommands(f.db, isDown.Load)
	code := f.watch(t, p.lasting(t, nil))
	verify := func(after time.Duration) int64 {
		f.ahead.Store(int64(after))
		f.VerifyWatched(t.Context())
		return code.Load()
	}
	isDown.Store(true)
	for _, minutes := range []time.Duration{2, 54} {
		if got := verify(minutes * time.Minute); got != 0 {
			t.Errorf("after an outage of %d minutes the session ends with %d", minutes, got)
		}
	}
	isDown.Store(false)
	verify(54 * time.Minute) // the hour begins anew
	isDown.Store(true)
	if got := verify(108 * time.Minute); got != 0 {
		t.Errorf("54 minutes after the last check the session ends with %d", got)
	}
	if got := verify(114 * time.Minute); got != sessions.CloseEnded {
		t.Errorf("an hour after the last check the session ends with %d", got)
	}
}

func TestATokenOfAStoreThatWasReplacedIsExpired(t *testing.T) {
	f := open(t, redistest.Single(t))
	before := f.guest(t)
	closed := f.watch(t, before.AccessToken)
	a := testkit.Must(f.Authenticate(t.Context(), before.AccessToken))(t)
	ticket := testkit.Must(f.IssueTicket(t.Context(), a))(t)
	f.SetAcceptedEpoch(3)
	if got := closed.Load(); got != sessions.CloseEnded {
		t.Errorf("the socket is closed with %d", got)
	}
	testkit.Fails(f.Authenticate(t.Context(), before.AccessToken))(
		t, apierror.AccessTokenExpired, "the access token returns")
	testkit.Fails(f.RedeemTicket(t.Context(), ticket.Secret))(t, apierror.AccessTokenExpired, "the ticket returns")
	f.SetAcceptedEpoch(2) // a late look at the store
	after := mustRefresh(t, f, before.RefreshToken)
	a, err := f.Authenticate(t.Context(), after.AccessToken)
	if err != nil || a.UserID != before.User.ID {
		t.Errorf("a token that was refreshed is of %v, %v", a.Caller, err)
	}
	testkit.Report(t, testkit.ErrorOf(f.Authenticate(t.Context(), f.guest(t).AccessToken)),
		"a token that was made since returns")
}
