package handlers_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/ops/readiness"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestAValidRequestIDOfTheCallerIsKept(t *testing.T) {
	f := newFixture(t)
	for _, path := range []string{"/healthz", "/nothing"} {
		if got := f.send("GET", path, "", "", "X-Request-Id", "mine-1").header.Get("X-Request-Id"); got != "mine-1" {
			t.Errorf("%s returned the id %q", path, got)
		}
		for _, bad := range []string{"two words", strings.Repeat("x", 129), "ümlaut"} {
			if got := f.send("GET", path, "", "", "X-Request-Id", bad).header.Get("X-Request-Id"); got == bad || len(got) != 36 {
				t.Errorf("%s returned the id %q to %q", path, got, bad)
			}
		}
	}
	if resp := f.send("GET", "/nothing", "", "", "X-Request-Id", "mine-2"); resp.text("requestId") != "mine-2" ||
		resp.text("instance") != "/nothing" {
		t.Errorf("the problem has another requestId or instance: %s", resp.raw)
	}
}

func TestUnknownPathsAndMethodsReturnProblems(t *testing.T) {
	f := newGameFixture(t)
	golden(t, "not_found", f.expectError(404, "not_found", "GET", "/api/v1/nothing", "", "", "X-Request-Id", "fixed"))
	golden(t, "method_not_allowed", f.expectError(405, "method_not_allowed", "PUT", "/api/v1/me", "", "",
		"X-Request-Id", "fixed"))
	golden(t, "unauthenticated", f.expectError(401, "unauthenticated", "GET", "/api/v1/me", "", "", "X-Request-Id",
		"fixed"))
	golden(t, "invalid_request", f.expectError(400, "invalid_request", "POST", "/join", f.guest("Ann").token,
		`{"roomid":"x"}`, "X-Request-Id", "fixed"))
	f.expectError(404, "not_found", "GET", "/api/v1/me/", "", "")
	f.expectError(404, "not_found", "GET", "//api/v1/me", "", "")
}

func TestHeadIsGetWithoutTheBody(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	head := func(path string) *http.Response {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodHead, f.url+path, http.NoBody)
		r.Header.Set("Authorization", "Bearer "+ann.token)
		got := testkit.Must(client.Do(r))(t)
		_ = got.Body.Close()
		return got
	}
	for _, path := range []string{
		"/healthz", "/readyz", "/openapi.yaml",
		"/api/v1/game-session/get?roomId=" + f.createRoom(ann), "/nothing",
	} {
		want, got := f.send("GET", path, ann.token, ""), head(path)
		if got.StatusCode != want.status {
			t.Errorf("HEAD %s returned %d, GET %d", path, got.StatusCode, want.status)
		}
		for _, name := range []string{"Content-Type", "Etag", "Cache-Control"} {
			if got.Header.Get(name) != want.header.Get(name) {
				t.Errorf("HEAD %s has the %s %q, GET %q", path, name, got.Header.Get(name), want.header.Get(name))
			}
		}
	}
	if got := head("/join"); got.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("HEAD of a POST returned %d", got.StatusCode)
	}
}

func TestOnlyTheSchemeBearerAuthenticates(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	for header, status := range map[string]int{
		"Bearer " + ann.token: 200, "bearer " + ann.token: 200, "Basic " + ann.token: 401, ann.token: 401, "Bearer ": 401,
		"Bearer " + ann.token + "x": 401,
	} {
		f.expect(status, "GET", "/api/v1/me", "", "", "Authorization", header)
	}
}

func TestCORSAllowsTheOriginsOfTheCallersGame(t *testing.T) {
	f := newGameFixture(t)
	other, otherKey := f.createOtherGame() // lists https://other.example and null
	f.expect(200, "PATCH", fmt.Sprintf("/api/v1/admin/games/%d", f.game), f.serverKey,
		`{"origins":["https://duel.example","https://*.duel.example"]}`)
	ann, eve := f.guest("Ann"), f.guestOf(other, "Eve")
	allowed := func(want bool, resp *httpResult, origin string) {
		t.Helper()
		got := resp.header.Get("Access-Control-Allow-Origin")
		if want && got != origin || !want && got != "" {
			t.Errorf("%q gets the origin %q", origin, got)
		}
		names := resp.header.Get("Access-Control-Expose-Headers") + resp.header.Get("Access-Control-Allow-Headers")
		if want && !strings.Contains(names, "X-Request-Id") {
			t.Errorf("%q may not read or send the header X-Request-Id: %v", origin, resp.header)
		}
		if !strings.Contains(resp.header.Get("Vary"), "Origin") || resp.header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("the response to %q has a wrong Vary or allows credentials: %v", origin, resp.header)
		}
	}
	for _, c := range []struct {
		origin    string
		ann, eve  bool
		preflight bool
	}{
		{"https://duel.example", true, false, true},
		{"https://eu.duel.example", true, false, true},
		{"https://other.example", false, true, true},
		{"null", false, true, true},
		{"https://evil.example", false, false, false},
		{"https://duel.example.evil.example", false, false, false},
		{"http://duel.example", false, false, false},
	} {
		allowed(c.ann, f.expect(200, "GET", "/api/v1/me", ann.token, "", "Origin", c.origin), c.origin)
		allowed(c.eve, f.expect(200, "GET", "/api/v1/me", eve.token, "", "Origin", c.origin), c.origin)
		allowed(c.eve, f.expect(200, "GET", fmt.Sprintf("/api/v1/admin/games/%d", other), otherKey, "", "Origin", c.origin),
			c.origin)
		allowed(c.preflight, f.expect(401, "GET", "/api/v1/me", "", "", "Origin", c.origin), c.origin)
		allowed(c.ann, f.expect(201, "POST", "/api/v1/auth/guest", "", fmt.Sprintf(`{"gameId":%d}`, f.game), "Origin",
			c.origin), c.origin)
		for _, path := range []string{"/api/v1/me", "/join", "/api/v1/nothing"} {
			resp := f.expect(204, "OPTIONS", path, "", "", "Origin", c.origin, "Access-Control-Request-Method", "POST")
			allowed(c.preflight, resp, c.origin)
			if methods := resp.header.Get("Access-Control-Allow-Methods"); c.preflight != strings.Contains(methods, "PATCH") {
				t.Errorf("the preflight of %s allows %q", c.origin, methods)
			}
		}
	}
	f.expectError(405, "method_not_allowed", "OPTIONS", "/api/v1/me", "", "")
}

func TestRateLimitsAreAppliedAndShownInHeaders(t *testing.T) {
	f := newFixtureOn(t, redistest.Single(t), func(d *handlers.Deps) {
		d.Limiter = ratelimit.New(redistest.Single(t), ratelimit.Limits{
			ratelimit.Read:   {PerSecond: 1, Burst: 3, Scope: ratelimit.ScopeUser},
			ratelimit.SignIn: {PerSecond: 1, Burst: 4, Scope: ratelimit.ScopeAddress},
		})
	}).createGame()
	ann, bob := f.guest("Ann"), f.guest("Bob")
	first := f.expect(200, "GET", "/api/v1/me", ann.token, "")
	if got := first.header.Get("Ratelimit-Policy"); got != `"read";q=3;w=3` {
		t.Errorf("the policy is %s", got)
	}
	if got := first.header.Get("Ratelimit"); !strings.HasPrefix(got, `"read";r=2;t=`) {
		t.Errorf("the limit is %s", got)
	}
	var last *httpResult
	for range 4 {
		last = f.send("GET", "/api/v1/me", ann.token, "")
	}
	if last.status != 429 || last.code() != "rate_limited" || last.header.Get("Retry-After") == "" ||
		last.text("retryable") != "true" {
		t.Errorf("the fifth read returned %d %s %v", last.status, last.raw, last.header)
	}
	f.expect(200, "GET", "/api/v1/me", bob.token, "") // has a limit of its own
	f.expect(200, "PATCH", "/api/v1/me", ann.token, "{}")
	f.expect(200, "GET", "/api/v1/admin/audit", adminKey, "")
	for range 4 {
		// the test is not a trusted proxy
		last = f.send("POST", "/api/v1/auth/guest", "", fmt.Sprintf(`{"gameId":%d}`, f.game), "X-Forwarded-For", "192.0.2.77")
	}
	if last.status != 429 {
		t.Errorf("the sixth sign-in from one address returned %d", last.status)
	}
}

func TestForwardedAddressesCountFromTrustedProxiesOnly(t *testing.T) {
	f := newFixtureOn(t, redistest.Single(t), func(d *handlers.Deps) {
		d.TrustedProxies = loopback
		d.Limiter = ratelimit.New(redistest.Single(t),
			ratelimit.Limits{ratelimit.SignIn: {PerSecond: 1, Burst: 1, Scope: ratelimit.ScopeAddress}})
	}).createGame()
	body := fmt.Sprintf(`{"gameId":%d}`, f.game)
	f.expect(201, "POST", "/api/v1/auth/guest", "", body, "X-Forwarded-For", "2001:db8::1")
	// the limit counts a /64 as one address
	f.expect(429, "POST", "/api/v1/auth/guest", "", body, "X-Forwarded-For", "2001:db8::2")
	f.expect(201, "POST", "/api/v1/auth/guest", "", body, "X-Forwarded-For", "2001:db8:0:1::1")
	f.expect(201, "POST", "/api/v1/auth/guest", "", body, "X-Forwarded-For", "192.0.2.1")
	// What the client chooses by another header does not count: it is the proxy.
	f.expect(201, "POST", "/api/v1/auth/guest", "", body, "X-Real-Ip", "203.0.113.7")
	f.expect(429, "POST", "/api/v1/auth/guest", "", body, "X-Real-Ip", "203.0.113.8", "Forwarded", "for=203.0.113.9")
}

// loopback is the network of the tests' connections.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

func TestTheAddressOfAClientIsWhatTrustedProxiesSay(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, c := range []struct {
		connection string
		forwarded  []string // lines of X-Forwarded-For
		want       string
	}{
		{"10.0.0.1:1000", []string{"198.51.100.9"}, "198.51.100.9"},
		{"[fd00::1]:1000", []string{"2001:db8::9"}, "2001:db8::9"},
		{"[::ffff:10.0.0.1]:1000", []string{"198.51.100.9"}, "198.51.100.9"},

		// A connection that is not from a proxy is the client.
		{"198.51.100.1:1000", []string{"203.0.113.7"}, "198.51.100.1"},
		{"198.51.100.1:1000", nil, "198.51.100.1"},

		// What the client wrote itself is to the left of what proxies added.
		{"10.0.0.1:1000", []string{"203.0.113.7, 198.51.100.9"}, "198.51.100.9"},
		{"10.0.0.1:1000", []string{"203.0.113.7", "198.51.100.9"}, "198.51.100.9"},
		{"10.0.0.1:1000", []string{"203.0.113.7", "198.51.100.9, 10.0.0.2"}, "198.51.100.9"},
		{"10.0.0.1:1000", []string{"10.9.9.9", "198.51.100.9"}, "198.51.100.9"},
		{"10.0.0.1:1000", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"}, // all are ours

		// A port, as some proxies write it.
		{"10.0.0.1:1000", []string{"198.51.100.9:4711"}, "198.51.100.9"},
		{"10.0.0.1:1000", []string{"[2001:db8::9]:4711"}, "2001:db8::9"},
		{"10.0.0.1:1000", []string{"[2001:db8::9]"}, "2001:db8::9"},
		{"10.0.0.1:1000", []string{"::ffff:198.51.100.9"}, "198.51.100.9"},
		{"10.0.0.1:1000", []string{"fe80::9%eth0"}, "fe80::9"},

		// No address: the proxy that wrote it counts, not what is before it.
		{"10.0.0.1:1000", nil, "10.0.0.1"},
		{"10.0.0.1:1000", []string{""}, "10.0.0.1"},
		{"10.0.0.1:1000", []string{"unknown"}, "10.0.0.1"},
		{"10.0.0.1:1000", []string{"203.0.113.7, unknown"}, "10.0.0.1"},
		{"10.0.0.1:1000", []string{"203.0.113.7,, 10.0.0.2"}, "10.0.0.2"},
		{"10.0.0.1:1000", []string{"203.0.113.7, 198.51.100.9:port, 10.0.0.2:80"}, "10.0.0.2"},
		{"@", []string{"198.51.100.9"}, "invalid IP"}, // a unix socket has no address
	} {
		r := httptest.NewRequest("GET", "/", http.NoBody)
		r.RemoteAddr, r.Header["X-Forwarded-For"] = c.connection, c.forwarded
		r.Header.Set("X-Real-Ip", "203.0.113.66")
		if got := handlers.ClientAddress(r, trusted); got.String() != c.want {
			t.Errorf("%s with %q is %s, want %s", c.connection, c.forwarded, got, c.want)
		}
	}
}

// What only a script can ask for, by its bearer token, needs no header that concerns pages.
func TestEveryResponseHasTheHeadersThatProtectBrowsers(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	for _, call := range [][3]string{
		{"GET", "/api/v1/me", ann.token},
		{"GET", "/nothing", "wrong"},
		{"GET", "/api/v1/me", ""},
		{"GET", "/nothing", ""},
		{"PUT", "/join", ""},
		{"GET", "/healthz", ""},
		{"GET", "/openapi.yaml", ""},
		{"OPTIONS", "/join", ""},
	} {
		resp := f.send(call[0], call[1], call[2], "",
			"Origin", "https://duel.example", "Access-Control-Request-Method", "GET")
		for name, want := range map[string]string{
			"X-Content-Type-Options":       "nosniff",
			"Cross-Origin-Resource-Policy": "same-origin",
			"Referrer-Policy":              "no-referrer",
			"Content-Security-Policy":      "default-src 'none'; frame-ancestors 'none'",
			"Strict-Transport-Security":    "", // the balancer's, where TLS ends
		} {
			if call[2] != "" && name != "X-Content-Type-Options" {
				want = ""
			}
			if got := resp.header.Get(name); got != want {
				t.Errorf("%v: %s is %q, want %q", call, name, got, want)
			}
		}
	}
}

func TestABalancerSendsNothingNewToANodeThatDrainsOrHasLostItsStore(t *testing.T) {
	server := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "always")
	db := testkit.Must(redisdb.Open(server.URL()))(t)
	t.Cleanup(func() { _ = db.Close() })
	f := newFixtureOn(t, db, watchStore(t, db))
	f.expect(200, "GET", "/balancez", "", "")
	server.Kill()
	redistest.Eventually(t, "it has noticed", func() bool { return f.send("GET", "/balancez", "", "").status == 404 })
	f.expectError(404, "not_found", "GET", "/balancez", "", "")
	testkit.Check(t, server.Restart())
	redistest.Eventually(t, "it is back", func() bool { return f.send("GET", "/balancez", "", "").status == 200 })
	f.server.Drain()
	f.expectError(404, "not_found", "GET", "/balancez", "", "")
}

func TestAnOutageOfTheStoreReturnsStoreUnavailableUntilItEnds(t *testing.T) {
	server := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "always")
	db := testkit.Must(redisdb.Open(server.URL()))(t)
	t.Cleanup(func() { _ = db.Close() })
	f := newFixtureOn(t, db, watchStore(t, db)).createGame()
	ann := f.guest("Ann")
	sword := f.createSword()
	buy := fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", sword)
	f.expect(200, "GET", "/readyz", "", "")
	server.Kill()
	redistest.Eventually(t, "it has noticed", func() bool { return f.send("GET", "/readyz", "", "").status == 503 })
	if resp := f.expectError(503, "store_unavailable", "GET", "/readyz", "", ""); strings.Contains(
		string(resp.raw), "sock") || !strings.Contains(string(resp.raw), `"ok":false`) {
		t.Errorf("the body has no check or has the address of the store: %s", resp.raw)
	}
	f.expect(200, "GET", "/healthz", "", "")
	for _, call := range [][2]string{
		{"GET", "/api/v1/me"},
		{"GET", "/api/v1/user-balance/token-balances"},
		{"POST", buy},
		{"POST", "/api/v1/game-session/create"},
	} {
		body := ""
		if strings.HasSuffix(call[1], "create") {
			body = fmt.Sprintf(`{"entryTokenId":%d,"roomEntry":1,"maxPlayers":2}`, f.gold)
		}
		resp := f.expectError(503, "store_unavailable", call[0], call[1], ann.token, body, "Idempotency-Key", "during")
		if resp.text("retryable") != "true" || strings.Contains(string(resp.raw), "sock") {
			t.Errorf("the problem is not retryable or has the address of the store: %s", resp.raw)
		}
	}
	if log := f.log.String(); !strings.Contains(log, "store_unavailable") {
		t.Errorf("the outage is not in the log: %s", log)
	}
	testkit.Check(t, server.Restart())
	redistest.Eventually(t, "it is back", func() bool { return f.send("GET", "/readyz", "", "").status == 200 })
	f.expect(201, "POST", buy, ann.token, "", "Idempotency-Key", "during")
	f.expectBalance(ann, "9250+0")
	f.expectBalancedAudit()
}

func TestADrainingNodeIsNotReadyAndServesRequests(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	f.server.Drain()
	resp := f.expectError(503, "draining", "GET", "/readyz", "", "")
	if resp.text("retryable") != "true" {
		t.Errorf("draining is not retryable: %s", resp.raw)
	}
	f.expect(200, "GET", "/healthz", "", "")
	f.expect(200, "GET", "/api/v1/me", ann.token, "")
}

func TestAPanicReturnsInternalAndIsLogged(t *testing.T) {
	f := newFixtureOn(t, redistest.Single(t), func(d *handlers.Deps) { d.Readiness = panickingStore{} })
	for range 2 {
		resp := f.expect(500, "GET", "/readyz", "", "")
		if resp.code() != "internal" || strings.Contains(string(resp.raw), "plans") {
			t.Errorf("the response shows the panic: %s", resp.raw)
		}
	}
	if log := f.log.String(); strings.Count(log, "secret plans") != 2 || !strings.Contains(log, "panic in a handler") {
		t.Errorf("the log does not have each panic once: %s", log)
	}
}

func TestAPanicFreesTheIdempotencyKey(t *testing.T) {
	f := newFixtureOn(t, redistest.Single(t), func(d *handlers.Deps) { d.Users = nil }).createGame()
	ann := f.guest("Ann")
	for range 2 {
		if resp := f.expect(500, "POST", "/api/v1/friends/2", ann.token, "", "Idempotency-Key",
			"k"); resp.code() != "internal" {
			t.Errorf("the response shows the panic: %s", resp.raw)
		}
	}
	f.expect(200, "GET", "/healthz", "", "")
}

type panickingStore struct{}

func (panickingStore) Report() readiness.Report { panic("secret plans") }

func (panickingStore) HasStarted() bool { return true }

func (panickingStore) ServedSince(time.Time) bool { return true }

func (panickingStore) Kept() readiness.Promise { panic("secret plans") }

func TestAnUnexpectedErrorReturnsInternalAndIsLoggedOnce(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	f.spoil(keys.User(ann.id))
	resp := f.expect(500, "GET", "/api/v1/me", ann.token, "")
	if resp.code() != "internal" || strings.Contains(string(resp.raw), "WRONGTYPE") {
		t.Errorf("the response shows the error: %s", resp.raw)
	}
	if log := f.log.String(); strings.Count(log, "WRONGTYPE") != 1 {
		t.Errorf("the log does not have the error once: %s", log)
	}
}

// spoil replaces a key by one of a type that nothing expects.
func (f *fixture) spoil(key string) {
	f.t.Helper()
	testkit.Check(f.t, f.db.Client.Del(f.t.Context(), key).Err())
	testkit.Check(f.t, f.db.Client.SAdd(f.t.Context(), key, "spoiled").Err())
}

func TestAnUnchangedRoomReturns304(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	room := f.createRoom(ann)
	path := "/api/v1/game-session/get?roomId=" + room
	first := f.expect(200, "GET", path, ann.token, "")
	if tag := first.header.Get("Etag"); tag != `"`+first.text("version")+`"` {
		t.Errorf("the tag is %s of version %s", tag, first.text("version"))
	}
	for header, status := range map[string]int{
		`"1"`: 304, `W/"1"`: 304, `"0", W/"1"`: 304, `*`: 304, `"2"`: 200, `1`: 200, `"0","10"`: 200,
	} {
		resp := f.expect(status, "GET", path, ann.token, "", "If-None-Match", header)
		if status == 304 && (len(resp.raw) != 0 || resp.header.Get("Etag") != `"1"`) {
			t.Errorf("304 with %q and the tag %s", resp.raw, resp.header.Get("Etag"))
		}
	}
	f.expect(200, "POST", "/join", f.guest("Bob").token, roomBody(room))
	f.expect(200, "GET", path, ann.token, "", "If-None-Match", `"1"`)
}

func TestRequestsAreCountedByRoute(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	f.expect(200, "GET", "/api/v1/me", ann.token, "")
	f.expect(401, "GET", "/api/v1/me", "", "")
	f.expect(404, "GET", "/api/v1/nothing/1", "", "")
	f.expect(404, "GET", "/api/v1/nothing/2", "", "")
	inside := httptest.NewServer(f.server.InternalHandler())
	defer inside.Close()
	for path, want := range map[string][]string{
		"/metrics": {
			`parlor_http_requests_total{method="GET",route="/api/v1/me",status="2xx"} 1`,
			`parlor_http_requests_total{method="GET",route="/api/v1/me",status="4xx"} 1`,
			`route="none",status="4xx"} 2`,
			`parlor_http_request_duration_seconds_count{method="GET",route="/api/v1/me"} 2`,
			`parlor_http_requests_in_flight 0`,
		},
		"/readyz":              {"ready"},
		"/healthz":             {"ok"},
		"/balancez":            {"balance"},
		"/debug/pprof/":        {"404"}, // it was not enabled
		"/debug/pprof/cmdline": {"404"},
	} {
		got := testkit.Must(client.Get(inside.URL + path))(t)
		text, err := io.ReadAll(got.Body)
		_ = got.Body.Close()
		testkit.Check(t, err)
		for _, line := range want {
			if !strings.Contains(string(text), line) {
				t.Errorf("%s has not %s", path, line)
			}
		}
	}
	f.expectError(404, "not_found", "GET", "/metrics", "", "") // only on the internal listener
	f.expectError(404, "not_found", "GET", "/debug/pprof/", "", "")
}

// The name of a page may be made to lead to this machine (DNS rebinding), and metrics need no key.
func TestTheInternalListenerServesNoPublicName(t *testing.T) {
	f := newFixtureOn(t, redistest.Single(t), func(d *handlers.Deps) { d.InternalHosts = []string{"console.example.com"} })
	for host, want := range map[string]int{
		"127.0.0.1:9090": 200, "[::1]:9090": 200, "10.0.0.7:9090": 200, "localhost:9090": 200, "node:9090": 200,
		"parlor-metrics.games.svc.cluster.local:9090": 200, "Console.Example.com": 200, "console.example.com:443": 200,
		"evil.example.com:9090": 403, "evil.example.com": 403, "a.console.example.com": 403,
	} {
		for _, path := range []string{"/metrics", "/healthz", "/console"} {
			r := httptest.NewRequest("GET", path, http.NoBody)
			r.Host = host
			got := httptest.NewRecorder()
			f.server.InternalHandler().ServeHTTP(got, r)
			if got.Code != want || want == 403 && !strings.Contains(got.Body.String(), `"code":"forbidden"`) {
				t.Errorf("%s of %s returned %d %.200s", path, host, got.Code, got.Body)
			}
		}
	}
}

func TestProfilesAreServedWhereTheyAreEnabledAndNeverTheCommandLine(t *testing.T) {
	f := newFixtureOn(t, redistest.Single(t), func(d *handlers.Deps) { d.ProfilingEnabled = true })
	for path, want := range map[string]int{
		"/debug/pprof/": 200, "/debug/pprof/heap": 200, "/debug/pprof/symbol": 200,
		"/debug/pprof/cmdline": 404,
	} {
		got := httptest.NewRecorder()
		f.server.InternalHandler().ServeHTTP(got, httptest.NewRequest("GET", "http://localhost"+path, http.NoBody))
		if got.Code != want || want == 404 && strings.Contains(got.Body.String(), os.Args[0]) {
			t.Errorf("%s returned %d %s", path, got.Code, got.Body)
		}
	}
}

func TestABodyThatEndsEarlyReturns400(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	conn := testkit.Must(net.Dial("tcp", strings.TrimPrefix(f.url, "http://")))(t)
	defer func() { _ = conn.Close() }()
	fmt.Fprintf(conn, "POST /join HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: "+
		"application/json\r\nContent-Length: 100\r\n\r\n{\"roomId\":", ann.token)
	testkit.Check(t, conn.(*net.TCPConn).CloseWrite())
	got := testkit.Must(http.ReadResponse(bufio.NewReader(conn), nil))(t)
	defer func() { _ = got.Body.Close() }()
	if got.StatusCode != 400 {
		t.Errorf("a body that ends early returned %d", got.StatusCode)
	}
	chunked := testkit.Must(http.NewRequestWithContext(t.Context(), "POST", f.url+"/join",
		io.MultiReader(strings.NewReader(`{"roomId":"`), strings.NewReader(strings.Repeat("x", 70<<10)))))(t)
	chunked.Header.Set("Authorization", "Bearer "+ann.token)
	chunked.Header.Set("Content-Type", "application/json")
	got = testkit.Must(client.Do(chunked))(t)
	_ = got.Body.Close()
	if got.StatusCode != 413 {
		t.Errorf("a body of 70 KiB in chunks returned %d", got.StatusCode)
	}
}

// A change that was begun is made whole: the client that went away will ask with its key what
// became of it.
func TestAChangeGoesOnWhenItsClientGoesAway(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	body := strings.NewReader(`{"maxPlayers":2}`)
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/v1/game-session/create", body)
	request.Header.Set("Authorization", "Bearer "+ann.token)
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	f.server.ServeHTTP(recorder, request)
	if recorder.Code != http.StatusCreated {
		t.Errorf("returns %d %s", recorder.Code, recorder.Body)
	}
}
