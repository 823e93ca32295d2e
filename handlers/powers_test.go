package handlers_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
)

func (f *fixture) gamePath() string { return fmt.Sprintf("/api/v1/admin/games/%d", f.game) }

func TestAServerKeyChangesOnlyWhatIsTheServers(t *testing.T) {
	f := newGameFixture(t)
	f.expect(200, "PATCH", f.gamePath(), f.serverKey, `{"name":"Duel 2","origins":["https://b.example"],"settings":{`+
		`"progressRules":[{"path":"gold","max":9}],"feed":true,`+
		`"matchTimeoutSeconds":60,"idleTimeoutSeconds":60,"maxAgeSeconds":60}}`)
	before := f.expect(200, "GET", f.gamePath(), adminKey, "")
	for field, body := range map[string]string{
		"welcomeGrant":                  `{"welcomeGrant":{"tokenId":"GOLD","amount":1000000}}`,
		"settings.issuers":              `{"settings":{"issuers":[]}}`,
		"settings.rakeBps":              `{"settings":{"rakeBps":600}}`,
		"settings.minRakeBps":           `{"settings":{"minRakeBps":0}}`,
		"settings.maxRakeBps":           `{"settings":{"maxRakeBps":10000}}`,
		"settings.maxPlayers":           `{"settings":{"maxPlayers":9}}`,
		"settings.minAgeToStakeSeconds": `{"settings":{"minAgeToStakeSeconds":0}}`,
		"settings.avatarHosts":          `{"settings":{"avatarHosts":[]}}`,
		"settings.settlements":          `{"settings":{"settlements":["server"]}}`,
		"settings.reportWindowSeconds":  `{"settings":{"reportWindowSeconds":10}}`,
		"settings.quotas":               `{"settings":{"quotas":{"boards":9}}}`,
		"settings.grantLimitPerDay":     `{"settings":{"grantLimitPerDay":9}}`,
	} {
		resp := f.expectError(403, "forbidden", "PATCH", f.gamePath(), f.serverKey, body)
		if resp.text("errors.0.field") != field {
			t.Errorf("%s returned %s", body, resp.raw)
		}
		f.expect(200, "PATCH", f.gamePath(), adminKey, body)
	}
	both := f.expectError(403, "forbidden", "PATCH", f.gamePath(), f.serverKey,
		`{"name":"No","welcomeGrant":null,"settings":{"rakeBps":1}}`)
	if both.count("errors") != 2 ||
		f.expect(200, "GET", f.gamePath(), f.serverKey, "").text("name") != before.text("name") {
		t.Errorf("two fields returned %s", both.raw)
	}
}

func TestAPlayerCannotSetARakeAboveTheMaximum(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	create := func(rake int) *httpResult {
		return f.send("POST", "/api/v1/game-session/create", ann.token,
			fmt.Sprintf(`{"entryTokenId":%d,"roomEntry":1,"maxPlayers":2,"rakeBps":%d}`, f.gold, rake))
	}
	for _, c := range []struct{ maxRake, rake, status int }{
		{0, 2000, 201}, {0, 2001, 400}, {0, 10000, 400}, {300, 300, 201}, {300, 301, 400}, {10000, 10000, 201},
	} {
		if c.maxRake > 0 {
			f.expect(200, "PATCH", f.gamePath(), adminKey, fmt.Sprintf(`{"settings":{"maxRakeBps":%d}}`, c.maxRake))
		}
		resp := create(c.rake)
		if resp.status != c.status || resp.status == 400 && resp.text("errors.0.field") != "rakeBps" {
			t.Errorf("a rake of %d with a maximum of %d returned %s", c.rake, c.maxRake, resp.raw)
		}
	}
	f.expect(200, "PATCH", f.gamePath(), adminKey, `{"settings":{"maxRakeBps":0,"minRakeBps":0}}`)
	raised := f.expect(200, "PATCH", f.gamePath(), adminKey, `{"settings":{"minRakeBps":50}}`)
	if raised.id("settings.maxRakeBps") != 50 {
		t.Errorf("a raised minimum returned %s", raised.raw)
	}
}

func TestAServerKeyCreditsOnlyTokensOfItsGameAndUpToADaysLimit(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		there := f.newNode()
		ann, bob := f.guest("Ann"), f.guest("Bob")
		n := 0
		change := func(node *fixture, verb, key string, p player, amount string) *httpResult {
			n++
			return node.send("POST", fmt.Sprintf("/api/v1/admin/users/%d/%s", p.id, verb), key,
				fmt.Sprintf(`{"tokenId":"GOLD","amount":%s,"reason":"x"}`, amount), "Idempotency-Key", fmt.Sprint("k", n))
		}
		expect := func(resp *httpResult, status int, code string) {
			t.Helper()
			if resp.status != status || resp.code() != code {
				t.Errorf("got %d %s; want %d %s", resp.status, resp.raw, status, code)
			}
		}
		f.expect(200, "PATCH", "/api/v1/admin/tokens/GOLD", adminKey, `{"games":[]}`)
		expect(change(f, "credit", f.serverKey, ann, "1"), 403, "forbidden")
		expect(change(f, "debit", f.serverKey, ann, "1"), 403, "forbidden")
		expect(change(f, "credit", adminKey, ann, "1"), 200, "")

		given := f.expect(200, "PATCH", "/api/v1/admin/tokens/GOLD", adminKey,
			fmt.Sprintf(`{"games":[{"gameId":%d,"mintLimitPerDay":"10.50"}]}`, f.game))
		if given.text("games.0.mintLimitPerDay") != "10.5" {
			t.Errorf("the token is %s", given.raw)
		}
		expect(change(f, "credit", f.serverKey, ann, "10"), 200, "")
		expect(change(f, "credit", f.serverKey, bob, "0.51"), 409, "limit_reached")
		over := change(there, "credit", f.serverKey, bob, "0.51")
		expect(over, 409, "limit_reached")
		if over.text("limit") != "mintLimitPerDay" || over.text("max") != "10.5" {
			t.Errorf("over the limit returned %s", over.raw)
		}
		expect(change(f, "debit", f.serverKey, ann, "10"), 200, "") // gives nothing back to the limit
		expect(change(f, "credit", f.serverKey, bob, "0.50"), 200, "")
		expect(change(f, "credit", f.serverKey, bob, "0.01"), 409, "limit_reached")
		expect(change(f, "credit", adminKey, bob, "1000"), 200, "") // an operator has no limit
		for _, games := range []string{
			`[{"gameId":99,"mintLimitPerDay":1}]`, `[{"gameId":1}]`, `[{"gameId":1,"mintLimitPerDay":"0.001"}]`,
			`[{"gameId":1,"mintLimitPerDay":1},{"gameId":1,"mintLimitPerDay":1}]`,
		} {
			f.expectError(400, "invalid_request", "PATCH", "/api/v1/admin/tokens/GOLD", adminKey, `{"games":`+games+`}`)
		}
		f.expectBalancedAudit()
	})
}

func TestARevokedServerKeyEndsTheSessionsThatItMade(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		there := f.newNode()
		rotated := f.expect(201, "POST", f.gamePath()+"/server-keys", adminKey, "")
		exchange := func(key string) player {
			resp := f.expect(201, "POST", "/api/v1/auth/exchange", key, `{"externalId":"victim"}`)
			return player{id: resp.id("user.id"), token: resp.text("accessToken"), refresh: resp.text("refreshToken")}
		}
		stolen, kept := exchange(f.serverKey), exchange(rotated.text("serverKey"))
		here, far := f.dialRealtime(stolen), there.dialRealtime(stolen)
		stays := there.dialRealtime(kept)
		f.expect(200, "DELETE", f.gamePath()+"/server-keys/"+rotated.text("game.serverKeys.0.id"), adminKey, "")
		for _, s := range []*testSocket{here, far} {
			if code := s.waitCloseCode(); code != 4001 {
				t.Errorf("a socket was closed with %d", code)
			}
		}
		for _, node := range []*fixture{f, there} {
			node.expectError(401, "unauthenticated", "GET", "/api/v1/me", stolen.token, "")
			node.expectError(401, "unauthenticated", "POST", "/api/v1/auth/refresh", "",
				fmt.Sprintf(`{"refreshToken":%q}`, stolen.refresh))
			node.expect(200, "GET", "/api/v1/me", kept.token, "")
		}
		f.serverKey = rotated.text("serverKey")
		f.credit(kept, "x")
		stays.expectEvent("user.balance")
	})
}

func TestASuspendedPlayerIsRefusedOnEveryNode(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		there := f.newNode()
		device := fmt.Sprintf(`{"gameId":%d,"deviceSecret":%q}`, f.game, deviceSecret)
		resp := f.expect(201, "POST", "/api/v1/auth/guest", "", device)
		ann := player{id: resp.id("user.id"), token: resp.text("accessToken"), refresh: resp.text("refreshToken")}
		refresh := fmt.Sprintf(`{"refreshToken":%q}`, ann.refresh)
		f.expect(200, "POST", "/api/v1/auth/link", f.serverKey, fmt.Sprintf(`{"userId":%d,"externalId":"ann"}`, ann.id))
		path := fmt.Sprintf("/api/v1/admin/users/%d/", ann.id)
		for _, until := range []string{"", `,"until":"2100-01-01T00:00:00Z"`} {
			sockets := []*testSocket{f.dialRealtime(ann), there.dialRealtime(ann)}
			f.expect(200, "POST", path+"suspend", adminKey, `{"reason":"a bot"`+until+`}`)
			for _, s := range sockets {
				if code := s.waitCloseCode(); code != 4403 {
					t.Errorf("a socket was closed with %d", code)
				}
			}
			for _, node := range []*fixture{f, there, f.newNode()} {
				node.expectError(403, "account_suspended", "GET", "/api/v1/me", ann.token, "")
				node.expectUpgradeError(403, "account_suspended", realtimePath, ann.token)
				node.expectError(403, "account_suspended", "POST", "/api/v1/auth/guest", "", device)
				node.expectError(403, "account_suspended", "POST", "/api/v1/auth/refresh", "", refresh)
				node.expectError(403, "account_suspended", "POST", "/api/v1/auth/exchange", f.serverKey, `{"externalId":"ann"}`)
			}
			f.expect(200, "POST", path+"unsuspend", adminKey, "")
			f.expect(200, "GET", "/api/v1/me", ann.token, "")
			deadline := time.Now().Add(5 * time.Second)
			for there.send("GET", "/api/v1/me", ann.token, "").status != 200 {
				if time.Now().After(deadline) {
					t.Fatal("the other node still refuses the player")
				}
			}
		}
		// A time that has passed is an error: it would lift a suspension that stands.
		f.expect(400, "POST", path+"suspend", adminKey, `{"reason":"a bot","until":"2020-01-01T00:00:00Z"}`)
		f.expect(200, "GET", "/api/v1/me", ann.token, "")
		f.expect(201, "POST", "/api/v1/auth/guest", "", device)
		f.expect(200, "POST", "/api/v1/auth/refresh", "", refresh)
	})
}

func TestAGrantForLinkedPlayersWaitsUntilAGuestIsLinked(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		patched := f.expect(200, "PATCH", f.gamePath(), adminKey, `{"welcomeGrant":{"tokenId":"GOLD","amount":100}}`)
		if patched.text("welcomeGrant.for") != "linked" {
			t.Errorf("the default is %s", patched.raw)
		}
		ann := f.guest("Ann")
		device := f.expect(201, "POST", "/api/v1/auth/guest", "",
			fmt.Sprintf(`{"gameId":%d,"deviceSecret":%q}`, f.game, deviceSecret))
		f.expectBalance(ann, "0+0")
		f.expectBalance(player{token: device.text("accessToken")}, "0+0")
		for range 2 {
			f.expect(200, "POST", "/api/v1/auth/link", f.serverKey, fmt.Sprintf(`{"userId":%d,"externalId":"ann"}`, ann.id))
			f.expectBalance(ann, "10000+0")
		}
		known := f.expect(201, "POST", "/api/v1/auth/exchange", f.serverKey, `{"externalId":"bob"}`)
		f.expectBalance(player{token: known.text("accessToken")}, "10000+0")
		bad := f.expectError(400, "invalid_request", "PATCH", f.gamePath(), adminKey,
			`{"welcomeGrant":{"tokenId":"GOLD","amount":100,"for":"all"}}`)
		if bad.text("errors.0.field") != "welcomeGrant.for" {
			t.Errorf("an unknown reader returned %s", bad.raw)
		}
	})
}

// Else one person has all grants of a day: sign in, lose it to a friend, delete.
func TestAnIdentityGetsOneGrantThoughItsPlayerIsDeleted(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		there := f.newNode()
		f.expect(200, "PATCH", f.gamePath(), adminKey, `{"welcomeGrant":{"tokenId":"GOLD","amount":100}}`)
		exchange := func(node *fixture, name string) player {
			resp := node.expect(201, "POST", "/api/v1/auth/exchange", f.serverKey, fmt.Sprintf(`{"externalId":%q}`, name))
			return player{id: resp.id("user.id"), token: resp.text("accessToken")}
		}
		first := exchange(f, "ann")
		f.expectBalance(first, "10000+0")
		for range 2 { // the second time, the player who is deleted had no grant
			f.expect(204, "DELETE", "/api/v1/me", first.token, "")
			next := exchange(there, "ann")
			if next.id == first.id {
				t.Fatalf("player %d is still there", first.id)
			}
			there.expectBalance(next, "0+0")
			first = next
		}
		f.expect(204, "DELETE", "/api/v1/me", first.token, "")
		guest := f.guest("Ann")
		f.expect(200, "POST", "/api/v1/auth/link", f.serverKey, fmt.Sprintf(`{"userId":%d,"externalId":"ann"}`, guest.id))
		f.expectBalance(guest, "0+0")
		f.expectBalance(exchange(f, "bob"), "10000+0")
	})
}

func TestAnAccountThatIsTooNewTakesNoStake(t *testing.T) {
	f := newGameFixture(t)
	ann, bob := f.guest("Ann"), f.guest("Bob")
	room := f.createRoom(ann)
	f.expect(200, "PATCH", f.gamePath(), adminKey, `{"settings":{"minAgeToStakeSeconds":3600}}`)
	f.expectError(403, "forbidden", "POST", "/join", bob.token, roomBody(room))
	f.expectError(403, "forbidden", "POST", "/api/v1/game-session/create", bob.token,
		fmt.Sprintf(`{"entryTokenId":%d,"roomEntry":1,"maxPlayers":2}`, f.gold))
	f.expect(201, "POST", "/api/v1/game-session/create", bob.token, `{"maxPlayers":2}`) // a free one
	f.expect(200, "PATCH", f.gamePath(), adminKey, `{"settings":{"minAgeToStakeSeconds":0}}`)
	f.expect(200, "POST", "/join", bob.token, roomBody(room))
}

func TestNewAccountsOfOneSiteAreLimited(t *testing.T) {
	f := newFixtureOn(t, redistest.Single(t), func(d *handlers.Deps) {
		d.Limiter = ratelimit.New(redistest.Single(t),
			ratelimit.Limits{ratelimit.SignUp: {PerSecond: 1, Burst: 3, Scope: ratelimit.ScopeAddress}})
		d.TrustedProxies = loopback
	}).createGame()
	guest := func(address, secret string) int {
		body := fmt.Sprintf(`{"gameId":%d}`, f.game)
		if secret != "" {
			body = fmt.Sprintf(`{"gameId":%d,"deviceSecret":%q}`, f.game, secret)
		}
		return f.send("POST", "/api/v1/auth/guest", "", body, "X-Forwarded-For", address).status
	}
	var got []int
	for _, address := range []string{"2001:db8:1:1::1", "2001:db8:1:2::1", "2001:db8:1:ffff::9"} {
		got = append(got, guest(address, deviceSecret+address))
	}
	got = append(got, guest("2001:db8:1:3::1", ""), guest("2001:db8:2::1", ""), guest("198.51.100.7", ""))
	got = append(got, guest("2001:db8:1:1::1", deviceSecret+"2001:db8:1:1::1")) // who is known is not new
	if want := []int{201, 201, 201, 429, 201, 201, 201}; !slices.Equal(got, want) {
		t.Errorf("sign-ups returned %v; want %v", got, want)
	}
}
