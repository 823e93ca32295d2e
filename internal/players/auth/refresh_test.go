package auth_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/players/auth"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// otherNode returns a service on the same store, with the game of the fixture.
func (f *fixture) otherNode(t *testing.T, options ...auth.Options) *fixture {
	t.Helper()
	other := open(t, f.db, options...)
	other.game, other.serverKey = f.game, f.serverKey
	return other
}

func familyOf(s auth.SignInResult) string { return strings.Split(s.RefreshToken, "_")[2] }

// letRotationPass makes the last rotation of a family older, by the store's clock.
func (f *fixture) letRotationPass(t *testing.T, s auth.SignInResult, d time.Duration) {
	t.Helper()
	family := keys.RefreshFamily(s.User.ID, familyOf(s))
	testkit.Check(t, f.db.Client.HIncrBy(t.Context(), family, "rotated", -d.Milliseconds()).Err())
}

func mustRefresh(t *testing.T, f *fixture, token string) auth.SignInResult {
	t.Helper()
	return testkit.Must(f.Refresh(t.Context(), token))(t, "Refresh returned")
}

func wantReused(t *testing.T, f *fixture, token string) {
	t.Helper()
	testkit.Fails(f.Refresh(t.Context(), token))(t, apierror.RefreshTokenReused, "Refresh returned")
}

func TestTwoTabsOnTwoNodesGetTheSameSuccessor(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		here := open(t, db)
		there := here.otherNode(t)
		for range 20 {
			s := here.guest(t)
			var got [4]string
			var wg sync.WaitGroup
			for i := range got {
				node := []*fixture{here, there}[i%2]
				wg.Go(func() {
					next, err := node.Refresh(t.Context(), s.RefreshToken)
					testkit.Report(t, err)
					got[i] = next.RefreshToken
				})
			}
			wg.Wait()
			for _, token := range got {
				if token != got[0] || token == s.RefreshToken {
					t.Fatalf("the successors are %q", got)
				}
			}
			mustRefresh(t, there, got[0])
		}
	})
}

func TestAReplacedRefreshTokenIsAcceptedAgainFor30Seconds(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := open(t, db)
		s := f.guest(t)
		next := mustRefresh(t, f, s.RefreshToken)
		f.letRotationPass(t, s, 29*time.Second)
		again := mustRefresh(t, f, s.RefreshToken) // its reply was lost
		if again.RefreshToken != next.RefreshToken {
			t.Errorf("the second successor is %s, the first was %s", again.RefreshToken, next.RefreshToken)
		}
		f.letRotationPass(t, s, 2*time.Second) // what was shown again does not begin the 30 seconds anew
		wantReused(t, f, s.RefreshToken)
		wantReused(t, f, next.RefreshToken)
	})
}

func TestAReplacedRefreshTokenRevokesTheFamilyWhenItsSuccessorWasUsed(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := open(t, db)
		s := f.guest(t)
		second := mustRefresh(t, f, s.RefreshToken)
		third := mustRefresh(t, f, second.RefreshToken)
		wantReused(t, f, s.RefreshToken) // at once
		for _, token := range []string{second.RefreshToken, third.RefreshToken} {
			wantReused(t, f, token)
		}
		testkit.Fails(f.Authenticate(t.Context(), third.AccessToken))(
			t, apierror.Unauthenticated, "an access token of the revoked family")
	})
}

func TestAnUnknownTokenOfAFamilyRevokesIt(t *testing.T) {
	f := open(t, redistest.Single(t))
	s := f.guest(t)
	wantReused(t, f, strings.TrimSuffix(s.RefreshToken, secretOf(s))+"FORGED")
	wantReused(t, f, s.RefreshToken)
}

// The successor must not depend on a key that rotates, or the nodes of a rotation would disagree.
func TestNodesWithOtherSigningKeysGiveTheSameSuccessor(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		before := open(t, db)
		after := before.otherNode(t, auth.Options{SigningKeys: [][]byte{[]byte("a newer signing key, thirty-two bytes")}})
		s := before.guest(t)
		first, second := mustRefresh(t, before, s.RefreshToken), mustRefresh(t, after, s.RefreshToken)
		if first.RefreshToken != second.RefreshToken {
			t.Errorf("the successors are %s and %s", first.RefreshToken, second.RefreshToken)
		}
	})
}

func TestAResendOfARefreshIsNotAReuse(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		redistest.LoseReplies(db, nil)
		f := open(t, db)
		s := f.guest(t)
		for range 3 {
			s = mustRefresh(t, f, s.RefreshToken)
		}
	})
}

// ConfirmRefresh is asked before a stored response is sent again.
func TestAStoredRefreshIsConfirmedWhileItsSuccessorIsUnused(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := open(t, db)
		s := f.guest(t)
		next := mustRefresh(t, f, s.RefreshToken)
		f.letRotationPass(t, s, time.Hour)
		testkit.Report(t, f.ConfirmRefresh(t.Context(), s.RefreshToken), "an hour later")
		mustRefresh(t, f, next.RefreshToken)
		testkit.WantError(t, f.ConfirmRefresh(t.Context(), s.RefreshToken), apierror.RefreshTokenReused,
			"after its successor was used")
		wantReused(t, f, next.RefreshToken)
	})
}

func TestSessionsOfARevokedServerKeyCannotBeRefreshed(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := open(t, db)
		s := testkit.Must(f.Exchange(t.Context(), f.server(), auth.ExchangeInput{ServerSideID: "ada"}))(t)
		s = mustRefresh(t, f, s.RefreshToken)
		keyID := games.ServerKeyID(f.serverKey)
		testkit.Must(f.games.RevokeServerKey(t.Context(), operator, f.game.ID, keyID))(t)
		testkit.Fails(f.Refresh(t.Context(), s.RefreshToken))(t, apierror.Unauthenticated, "Refresh returned")
	})
}

func TestWhoOwnsAnIdempotencyKey(t *testing.T) {
	f := open(t, redistest.Single(t))
	s, secret := f.guest(t), strings.Repeat("s", 32)
	owner, err := f.RefreshKeyOwner(s.RefreshToken)
	next, _ := f.RefreshKeyOwner(mustRefresh(t, f, s.RefreshToken).RefreshToken)
	other, _ := f.RefreshKeyOwner(f.guest(t).RefreshToken)
	if err != nil || owner == "" || owner != next || owner == other {
		t.Errorf("refreshes are stored for %q, %q and %q, %v", owner, next, other, err)
	}
	guest := func(secret *string, game int64) string {
		owner, err := f.GuestKeyOwner(t.Context(), auth.GuestInput{GameID: game, DeviceSecret: secret})
		testkit.Report(t, err)
		return owner
	}
	if guest(nil, 1) != "" {
		t.Error("a guest without a device secret has a name for keys")
	}
	if mine := guest(&secret, 1); mine == "" || mine != guest(&secret, 1) || mine == guest(&secret, 2) ||
		mine == guest(new(secret+"x"), 1) || strings.Contains(mine, secret) {
		t.Errorf("the device is %q", mine)
	}
	_, err = f.GuestKeyOwner(t.Context(), auth.GuestInput{GameID: 1, DeviceSecret: new(secret[1:])})
	if e, ok := apierror.As(err); !ok || len(e.FieldErrors) != 1 || e.FieldErrors[0].Field != "deviceSecret" {
		t.Errorf("31 bytes: %v", err)
	}
}
