package handlers_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// issuer makes tokens for the game of a fixture, as a provider of identities.
type issuer struct {
	t   *testing.T
	key ed25519.PrivateKey
}

func newIssuer(t *testing.T) issuer {
	t.Helper()
	_, key := testkit.Must2(ed25519.GenerateKey(rand.Reader))(t)
	return issuer{t, key}
}

// settings returns the settings of a game that accepts the issuer.
func (i issuer) settings() string {
	public, _ := i.key.Public().(ed25519.PublicKey)
	return fmt.Sprintf(`{"settings":{"issuers":[{"issuer":"https://id.example","audience":"duel","keys":{"keys":[`+
		`{"kty":"OKP","crv":"Ed25519","kid":"a","alg":"EdDSA","x":%q}]}}]}}`, base64.RawURLEncoding.EncodeToString(public))
}

func (i issuer) token(subject string, lasts time.Duration) string {
	i.t.Helper()
	now := time.Now()
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{
		"iss": "https://id.example", "aud": "duel", "sub": subject, "iat": now.Unix(), "exp": now.Add(lasts).Unix(),
	})
	token.Header["kid"] = "a"
	return testkit.Must(token.SignedString(i.key))(i.t)
}

// expectEnded waits until a node refuses a token. Contract: two seconds; a busy machine has more.
func (f *fixture) expectEnded(token, code string) {
	f.t.Helper()
	redistest.Eventually(f.t, "the token is refused", func() bool {
		return f.send("GET", "/api/v1/me", token, "").code() == code
	})
}

func TestARemovedIssuerEndsTheSessionsForWhichItVouched(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		there, provider := f.newNode(), newIssuer(t)
		f.expect(200, "PATCH", f.gamePath(), adminKey, provider.settings())
		token := provider.token("ann", 365*24*time.Hour)
		me := f.expect(200, "GET", "/api/v1/me", token, "")
		ann := player{id: me.id("id"), token: token}
		bob := f.guest("Bob")
		sockets := []*testSocket{
			f.dialRealtime(ann), there.dialRealtime(ann), there.dial(savePath, token),
			there.dial(realtimePath+"?ticket="+f.ticket(ann), ""),
		}
		stays, unused := there.dialRealtime(bob), f.ticket(ann)
		began := time.Now()
		f.expect(200, "PATCH", f.gamePath(), adminKey, `{"settings":{"issuers":[]}}`)
		for i, s := range sockets {
			if code := s.waitCloseCode(); code != 4001 {
				t.Errorf("socket %d was closed with %d", i, code)
			}
		}
		f.expectEnded(token, "unauthenticated")
		there.expectEnded(token, "unauthenticated")
		t.Logf("the sessions ended within %v", time.Since(began).Round(time.Millisecond))
		there.expectUpgradeError(401, "unauthenticated", realtimePath+"?ticket="+unused, "")
		there.expectUpgradeError(401, "unauthenticated", realtimePath, token)
		f.credit(bob, "x")
		stays.expectEvent("user.balance")

		// Accepted again, the issuer vouches for tokens of now, and not for those of before.
		f.expect(200, "PATCH", f.gamePath(), adminKey, provider.settings())
		f.expectError(401, "unauthenticated", "GET", "/api/v1/me", token, "")
	})
}

var pathParameter = regexp.MustCompile(`[:{][a-zA-Z]+}?`)

func TestASuspendedPlayerIsRefusedByEveryOperation(t *testing.T) {
	f := newGameFixture(t)
	there, ann := f.newNode(), f.guest("Ann")
	sockets := []*testSocket{there.dialRealtime(ann), there.dial(savePath, ann.token), there.dial(loadPath, ann.token)}
	unused := map[*fixture]string{f: f.ticket(ann), there: f.ticket(ann)}
	f.expect(200, "POST", fmt.Sprintf("/api/v1/admin/users/%d/suspend", ann.id), adminKey, `{"reason":"a bot"}`)
	for i, s := range sockets {
		if code := s.waitCloseCode(); code != 4403 {
			t.Errorf("socket %d was closed with %d", i, code)
		}
	}
	refused := 0
	for _, node := range []*fixture{f, there} {
		node.expectEnded(ann.token, "account_suspended")
		node.expectUpgradeError(403, "account_suspended", realtimePath+"?ticket="+unused[node], "")
		for _, op := range handlers.Operations() {
			if !op.ForPlayers {
				continue
			}
			path := pathParameter.ReplaceAllString(op.Path, "1")
			resp := node.send(op.Method, path, ann.token, "", "Idempotency-Key", "k")
			if resp.status != 403 || resp.code() != "account_suspended" {
				t.Errorf("%s %s returned %d %s", op.Method, path, resp.status, resp.raw)
			}
			refused++
		}
	}
	if refused < 60 {
		t.Errorf("%d operations were tried", refused)
	}
}

func TestASuspensionEndsByItself(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		there := f.newNode()
		device := fmt.Sprintf(`{"gameId":%d,"deviceSecret":%q}`, f.game, deviceSecret)
		resp := f.expect(201, "POST", "/api/v1/auth/guest", "", device)
		token := resp.text("accessToken")
		until := time.Now().Add(1500 * time.Millisecond)
		f.expect(200, "POST", fmt.Sprintf("/api/v1/admin/users/%d/suspend", resp.id("user.id")), adminKey,
			fmt.Sprintf(`{"reason":"a break","until":%q}`, until.UTC().Format(time.RFC3339Nano)))
		for _, refused := range []*httpResult{
			f.send("GET", "/api/v1/me", token, ""), f.send("POST", "/api/v1/auth/guest", "", device),
		} {
			if time.Now().Before(until) && (refused.code() != "account_suspended" || refused.text("until") == "") {
				t.Errorf("a suspended player got %d %s", refused.status, refused.raw)
			}
		}
		for _, node := range []*fixture{there, f} {
			redistest.Eventually(t, "the player is back", func() bool {
				returned := node.send("GET", "/api/v1/me", token, "")
				return !time.Now().Before(until) && returned.status == 200
			})
			node.expect(201, "POST", "/api/v1/auth/guest", "", device)
			node.dialRealtime(player{id: resp.id("user.id"), token: token})
		}
	})
}

func TestAGrantForAnyIsGivenToGuestsAndOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		grant := func(to string) {
			f.expect(200, "PATCH", f.gamePath(), adminKey,
				fmt.Sprintf(`{"welcomeGrant":{"tokenId":"GOLD","amount":100,"for":%q}}`, to))
		}
		signIn := func() player {
			resp := f.expect(201, "POST", "/api/v1/auth/guest", "",
				fmt.Sprintf(`{"gameId":%d,"deviceSecret":%q}`, f.game, deviceSecret))
			return player{id: resp.id("user.id"), token: resp.text("accessToken")}
		}
		link := func(status int, p player, externalID string) {
			f.expect(status, "POST", "/api/v1/auth/link", f.serverKey,
				fmt.Sprintf(`{"userId":%d,"externalId":%q}`, p.id, externalID))
		}
		grant("linked")
		waits, throwaway := signIn(), f.guest("Throw-away")
		f.expectBalance(waits, "0+0")
		grant("any")
		now := f.guest("Now")
		f.expectBalance(now, "10000+0")
		f.expectBalance(signIn(), "10000+0") // who waited gets it by the next sign-in
		for _, p := range []player{waits, now} {
			link(200, p, fmt.Sprint("known-", p.id))
			f.expectBalance(p, "10000+0")
		}
		grant("linked")
		link(409, throwaway, fmt.Sprint("known-", now.id)) // the identity is another player's
		f.expectBalance(throwaway, "0+0")
		f.expectBalancedAudit()
	})
}

func TestAnAccountIsOldEnoughForStakesAfterAWhile(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		room := f.createRoom(f.guest("Ann"))
		f.expect(200, "PATCH", f.gamePath(), adminKey, `{"settings":{"minAgeToStakeSeconds":2}}`)
		bob := f.guest("Bob")
		first := f.send("POST", "/join", bob.token, roomBody(room))
		if first.code() != "forbidden" {
			t.Errorf("a new account joined: %d %s", first.status, first.raw)
		}
		redistest.Eventually(t, "the account is old enough", func() bool {
			return f.send("POST", "/join", bob.token, roomBody(room)).status == 200
		})
	})
}

// A day ends at midnight UTC by the store's clock; what was minted is stored with its day.
func TestTheLimitOfADayIsThatOfTheDay(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		f.giveGold(10, f.game)
		ann, n := f.guest("Ann"), 0
		credit := func() *httpResult {
			n++
			return f.send("POST", fmt.Sprintf("/api/v1/admin/users/%d/credit", ann.id), f.serverKey,
				`{"tokenId":"GOLD","amount":10,"reason":"x"}`, "Idempotency-Key", fmt.Sprint("k", n))
		}
		const day = 24 * 60 * 60
		before := time.Now().Unix() / day
		first, second := credit(), credit()
		stored := testkit.Must(f.db.Client.HGet(t.Context(), keys.ServerMints(f.game), "GOLD").Result())(t)
		text, units, _ := strings.Cut(stored, "|")
		minted, err := strconv.ParseInt(text, 10, 64)
		if err != nil || minted < before || minted > time.Now().Unix()/day || units != "1000" {
			t.Fatalf("minted on day %q, %v; want %d", stored, err, before)
		}
		if first.status != 200 || minted == before && second.code() != "limit_reached" {
			t.Errorf("on one day: %d, %d %s", first.status, second.status, second.raw)
		}
		// The same as if midnight had passed.
		testkit.Check(t, f.db.Client.HSet(t.Context(), keys.ServerMints(f.game), "GOLD",
			fmt.Sprintf("%d|1000", minted-1)).Err())
		if next := credit(); next.status != 200 {
			t.Errorf("on the next day: %d %s", next.status, next.raw)
		}
	})
}

func TestByDefaultAnAddressMakesSixtyGuestsAtOnce(t *testing.T) {
	f := newFixtureOn(t, redistest.Single(t), func(d *handlers.Deps) {
		d.Limiter = ratelimit.New(redistest.Single(t), ratelimit.DefaultLimits())
	}).createGame()
	guest := fmt.Sprintf(`{"gameId":%d}`, f.game)
	began, made := time.Now(), 0
	for range 80 {
		switch resp := f.send("POST", "/api/v1/auth/guest", "", guest); {
		case resp.status == 201:
			made++
		case resp.status != 429 || resp.header.Get("Retry-After") == "":
			t.Fatalf("a sign-up returned %d %s", resp.status, resp.raw)
		}
	}
	if most := 61 + int(time.Since(began).Seconds()); made < 60 || made > most {
		t.Errorf("%d guests were made; want 60 to %d", made, most)
	}
	// Players for whom the game's server vouches are not the address's.
	for i := range 10 {
		f.expect(201, "POST", "/api/v1/auth/exchange", f.serverKey, fmt.Sprintf(`{"externalId":"player-%d"}`, i))
	}
}
