package handlers_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/base/cache"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
)

func TestTheAddressLimitCountsAllRequestsOfAnAddress(t *testing.T) {
	f := newFixtureOn(t, redistest.Single(t), func(d *handlers.Deps) {
		d.TrustedProxies = loopback
		d.Limiter = ratelimit.New(redistest.Single(t), ratelimit.Limits{
			ratelimit.Address: {PerSecond: 1, Burst: 4, Scope: ratelimit.ScopeAddress},
			ratelimit.Read:    {PerSecond: 10, Burst: 100, Scope: ratelimit.ScopeUser},
		})
	})
	send := func(path, bearer, address string) *httpResult {
		return f.send("GET", path, bearer, "", "X-Forwarded-For", address)
	}
	last := send("/api/v1/game-assets?gameId=7", adminKey, "192.0.2.1")
	if policy := last.header.Get("Ratelimit-Policy"); !strings.HasPrefix(policy, `"read"`) {
		t.Errorf("the headers show the limit %s, want that of the operation", policy)
	}
	for range 5 { // the limit may grow back by one permit meanwhile
		last = send("/api/v1/me", "an invalid token", "192.0.2.1")
	}
	if last.status != 429 || last.header.Get("Retry-After") != "1" {
		t.Errorf("after the burst an invalid token returned %d and Retry-After %q", last.status,
			last.header.Get("Retry-After"))
	}
	if policy := last.header.Get("Ratelimit-Policy"); !strings.HasPrefix(policy, `"address"`) {
		t.Errorf("the 429 shows the limit %s, want that of the address", policy)
	}
	for range 8 {
		last = send("/healthz", "", "192.0.2.1")
	}
	if last.status != 200 {
		t.Errorf("/healthz returned %d, but has no limit", last.status)
	}
	if other := send("/api/v1/me", "an invalid token", "192.0.2.2"); other.status != 401 {
		t.Errorf("another address returned %d", other.status)
	}
	unlimited := send("/api/v1/admin/games", adminKey, "192.0.2.3")
	if policy := unlimited.header.Get("Ratelimit-Policy"); unlimited.status != 200 || policy != "" {
		t.Errorf("an operation without a limit of its own returned %d and shows the limit %s", unlimited.status, policy)
	}
}

func TestALimitByAddressCountsAllPlayersOfTheAddress(t *testing.T) {
	f := newFixtureOn(t, redistest.Single(t), func(d *handlers.Deps) {
		d.TrustedProxies = loopback
		d.Limiter = ratelimit.New(redistest.Single(t), ratelimit.Limits{
			ratelimit.SignIn: {PerSecond: 1, Burst: 1, Scope: ratelimit.ScopeAddress},
		})
	}).createGame()
	guest := fmt.Sprintf(`{"gameId":%d}`, f.game)
	ann := f.expect(201, "POST", "/api/v1/auth/guest", "", guest, "X-Forwarded-For", "192.0.2.1").text("accessToken")
	bob := f.expect(201, "POST", "/api/v1/auth/guest", "", guest, "X-Forwarded-For", "192.0.2.2").text("accessToken")
	link := func(bearer string) int {
		body := fmt.Sprintf(`{"deviceSecret":"the device of the player %s"}`, bearer[len(bearer)-16:])
		return f.send("POST", "/api/v1/auth/link", bearer, body, "X-Forwarded-For", "192.0.2.3").status
	}
	if first, second := link(ann), link(bob); first != 200 || second != 429 {
		t.Errorf("two players of one address get %d and %d", first, second)
	}
}

func TestOnlyUnexpectedErrorsAreLogged(t *testing.T) {
	f, ann, fill := newRoomFixture(t)
	f.expectError(400, "invalid_json", "POST", "/join", ann.token, "{")
	f.expectError(401, "unauthenticated", "GET", "/api/v1/me", "an invalid token", "")
	f.expectError(402, "insufficient_funds", "POST", "/api/v1/game-session/create", ann.token,
		fill.Replace(`{"entryTokenId":<gold>,"roomEntry":1000,"maxPlayers":2}`))
	f.expectError(403, "forbidden", "GET", "/api/v1/admin/audit", ann.token, "")
	f.expectError(404, "not_found", "GET", "/api/v1/nothing", "", "")
	f.expectError(405, "method_not_allowed", "PUT", "/api/v1/me", "", "")
	f.expectError(409, "token_exists", "POST", "/api/v1/admin/tokens", adminKey,
		`{"tokenId":"GOLD","tokenName":"x","metadata":{"decimals":"0"}}`)
	f.expectError(413, "payload_too_large", "POST", "/join", ann.token, `{"roomId":"`+strings.Repeat("x", 64<<10)+`"}`)
	if log := f.log.withoutStaffWrites(); log != "" {
		t.Errorf("expected errors are logged: %s", log)
	}
}

func TestAnUnexpectedErrorIsLoggedWithItsRequest(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	f.spoil(keys.User(ann.id))
	for range 3 {
		f.expectError(500, "internal", "GET", "/api/v1/me", ann.token, "", "X-Request-Id", "request-7")
	}
	lines := strings.Split(strings.TrimSpace(f.log.withoutStaffWrites()), "\n")
	if len(lines) != 3 {
		t.Errorf("3 errors make %d lines: %s", len(lines), f.log)
	}
	for _, line := range lines {
		for _, part := range []string{"level=ERROR", "WRONGTYPE", "method=GET", "route=/api/v1/me", "requestId=request-7"} {
			if !strings.Contains(line, part) {
				t.Errorf("the line lacks %s: %s", part, line)
			}
		}
	}
}

func TestARequestThatTheClientCancelledIsNotLogged(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/friends", nil)
	request.Header.Set("Authorization", "Bearer "+ann.token)
	recorder := httptest.NewRecorder()
	f.server.ServeHTTP(recorder, request)
	if recorder.Code != http.StatusInternalServerError {
		t.Errorf("returns %d %s", recorder.Code, recorder.Body)
	}
	if log := f.log.withoutStaffWrites(); log != "" {
		t.Errorf("it is logged: %s", log)
	}
}

func TestAnOutageIsLoggedOnceASecond(t *testing.T) {
	f := newFixture(t)
	f.server.Drain() // every /readyz returns 503 at once
	for range 20 {
		f.expectError(503, "draining", "GET", "/readyz", "", "")
	}
	if n := strings.Count(f.log.String(), "request not served"); n < 1 || n > 3 {
		t.Errorf("20 requests during an outage make %d lines: %s", n, f.log)
	}
}

func TestFinalResponsesByStatus(t *testing.T) {
	for status, final := range map[int]bool{
		200: true, 201: true, 204: true, 304: true,
		400: false, 401: false, 402: true, 403: true, 404: true, 405: false, 409: true,
		413: false, 415: false, 422: false, 429: false, 500: false, 503: false,
	} {
		if handlers.IsFinal(status, false) != final {
			t.Errorf("%d is final: %v, want %v", status, !final, final)
		}
		if status >= 400 && handlers.IsFinal(status, true) {
			t.Errorf("a retryable error with the status %d is final", status)
		}
	}
}

func TestStoredErrorsAreReplayedThoughTheStateChanges(t *testing.T) {
	f, ann, fill := newRoomFixture(t)
	befriend, gem := fill.Replace("/api/v1/friends/<bob>"),
		`{"tokenId":"GOLD","tokenName":"x","metadata":{"decimals":"0"}}`
	f.expect(200, "POST", befriend+"/block", ann.token, "")
	for _, replayed := range []string{"", "true"} {
		forbidden := f.expectError(403, "forbidden", "POST", befriend, ann.token, "", "Idempotency-Key", "k1")
		conflict := f.expectError(409, "token_exists", "POST", "/api/v1/admin/tokens", adminKey, gem, "Idempotency-Key", "k2")
		unauthenticated := f.expectError(401, "unauthenticated", "POST", "/api/v1/auth/refresh", "", `{"refreshToken":"x"}`,
			"Idempotency-Key", "k3")
		for _, resp := range []*httpResult{forbidden, conflict} {
			if got := resp.header.Get("Idempotent-Replayed"); got != replayed {
				t.Errorf("%s has Idempotent-Replayed %q, want %q", resp.raw, got, replayed)
			}
		}
		if got := unauthenticated.header.Get("Idempotent-Replayed"); got != "" {
			t.Errorf("a 401 was stored: %s", unauthenticated.raw)
		}
		f.expect(204, "DELETE", befriend, ann.token, "") // lifts the block
	}
}

func TestTheFingerprintCoversThePath(t *testing.T) {
	f, ann, fill := newRoomFixture(t)
	cid := f.guest("Cid")
	bob := fill.Replace("/api/v1/friends/<bob>")
	f.expect(200, "POST", bob, ann.token, "", "Idempotency-Key", "k1")
	for _, path := range []string{bob + "/block", fmt.Sprintf("/api/v1/friends/%d", cid.id), "/api/v1/auth/ticket"} {
		f.expectError(422, "idempotency_key_reused", "POST", path, ann.token, "", "Idempotency-Key", "k1")
	}
	credit := `{"tokenId":"GOLD","amount":1,"reason":"x"}`
	f.expect(200, "POST", fill.Replace("/api/v1/admin/users/<ann>/credit"), adminKey, credit, "Idempotency-Key", "k2")
	f.expectError(422, "idempotency_key_reused", "POST", fill.Replace("/api/v1/admin/users/<ann>/debit"), adminKey, credit,
		"Idempotency-Key", "k2")
	f.expectBalance(ann, "9850+250")
}

// One Idempotency-Key and body for two players: the path names the player. Receipts belong to the
// caller, so the second request has another fingerprint under the same key.
func TestTheFingerprintCoversThePlayerInThePath(t *testing.T) {
	f, ann, fill := newRoomFixture(t)
	credit := `{"tokenId":"GOLD","amount":1,"reason":"x"}`
	f.expect(200, "POST", fill.Replace("/api/v1/admin/users/<ann>/credit"), adminKey, credit, "Idempotency-Key", "k1")
	resp := f.send("POST", fill.Replace("/api/v1/admin/users/<bob>/credit"), adminKey, credit, "Idempotency-Key", "k1")
	if resp.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("the credit of another player is a replay: %s", resp.raw)
	}
	f.expectBalance(ann, "9850+250")
}

func TestRequestsThatMeanTheSameShareTheirFingerprint(t *testing.T) {
	f, ann, fill := newRoomFixture(t)
	create := func(entry, metadata string) *httpResult {
		body := fill.Replace(`{"entryTokenId":<gold>,"roomEntry":` + entry + `,"maxPlayers":2,"metadata":` + metadata + `}`)
		return f.send("POST", "/api/v1/game-session/create", ann.token, body, "Idempotency-Key", "k1")
	}
	first := create("10", `{"a":1,"b":{"c":2,"d":3}}`)
	for _, spelling := range [][2]string{
		{`10.0`, `{"a":1,"b":{"c":2,"d":3}}`},
		{`"10.00"`, `{"a":1,"b":{"c":2,"d":3}}`},
		{`10`, `{"b":{"d":3,"c":2},"a":1}`},
		{`10`, `{ "a" : 1, "b" : { "c" : 2, "d" : 3 } }`},
	} {
		again := create(spelling[0], spelling[1])
		if again.header.Get("Idempotent-Replayed") != "true" || string(again.raw) != string(first.raw) {
			t.Errorf("%s is another request: %d %s", spelling, again.status, again.raw)
		}
	}
	for _, other := range [][2]string{
		{`1`, `{"a":1,"b":{"c":2,"d":3}}`},
		{`10`, `{"a":1,"b":{"c":2,"d":4}}`},
		{`10`, `{}`},
	} {
		if again := create(other[0], other[1]); again.code() != "idempotency_key_reused" {
			t.Errorf("%s is the same request: %d %s", other, again.status, again.raw)
		}
	}
}

func TestAServerReachesOnlyPlayersOfItsGame(t *testing.T) {
	f := newGameFixture(t)
	_, otherKey := f.createOtherGame()
	ann := f.guest("Ann")
	path := "/api/v1/admin/users/" + strconv.FormatInt(ann.id, 10)
	f.expect(200, "GET", path, f.serverKey, "")
	change := `{"tokenId":"GOLD","amount":1,"reason":"x"}`
	f.expectError(404, "user_not_found", "GET", path, otherKey, "")
	f.expectError(404, "user_not_found", "POST", path+"/credit", otherKey, change, "Idempotency-Key", "k1")
	f.expectError(404, "user_not_found", "POST", path+"/debit", otherKey, change, "Idempotency-Key", "k2")
	f.expectBalance(ann, "10000+0")
}

func TestCORSNeedsOneOriginHeader(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	origin := "https://duel.example"
	twice := f.expect(200, "GET", "/api/v1/me", ann.token, "", "Origin", origin, "Origin", origin)
	if got := twice.header.Get("Access-Control-Allow-Origin"); got != "" {
		t.Errorf("two Origin headers get the origin %q", got)
	}
	preflight := f.expect(204, "OPTIONS", "/api/v1/me", "", "", "Origin", origin, "Access-Control-Request-Method", "PATCH")
	vary, maxAge := preflight.header.Get("Vary"), preflight.header.Get("Access-Control-Max-Age")
	if maxAge != "600" || !strings.Contains(vary, "Access-Control-Request-Method") {
		t.Errorf("the preflight has Access-Control-Max-Age %q and Vary %q", maxAge, vary)
	}
	// OPTIONS without Access-Control-Request-Method is not a preflight.
	f.expectError(405, "method_not_allowed", "OPTIONS", "/api/v1/me", "", "", "Origin", origin)
}

func TestCachesAreCounted(t *testing.T) {
	c := cache.New[int, int]("handlers_test", 1, 0)
	c.Add(1, 1)
	for key := range 3 {
		c.Get(key) // one hit, two misses
	}
	f := newFixture(t)
	got := httptest.NewRecorder()
	f.server.InternalHandler().ServeHTTP(got, httptest.NewRequestWithContext(t.Context(), http.MethodGet,
		"http://localhost/metrics", http.NoBody))
	for _, line := range []string{
		`parlor_cache_hits_total{cache="handlers_test"} 1`, `parlor_cache_misses_total{cache="handlers_test"} 2`,
	} {
		if !strings.Contains(got.Body.String(), line) {
			t.Errorf("/metrics lacks %s", line)
		}
	}
}
