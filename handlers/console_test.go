package handlers_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/players/auth"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// browser is a browser at the console of a listener.
type browser struct {
	f      *fixture
	url    string
	client *http.Client
	header map[string]string // of each call
}

// newBrowser returns a browser at a listener, without a session.
func (f *fixture) newBrowser(listener http.Handler) *browser {
	f.t.Helper()
	server := httptest.NewServer(listener)
	f.t.Cleanup(server.Close)
	jar := testkit.Must(cookiejar.New(nil))(f.t)
	b := &browser{f: f, url: server.URL, client: &http.Client{Jar: jar, Timeout: 10 * time.Second}}
	b.header = map[string]string{"Parlor-Console": "1", "Origin": b.url, "Sec-Fetch-Site": "same-origin"}
	return b
}

// send sends a call of the page; headers replace those of the page, "" removes one.
func (b *browser) send(method, path, body string, headers ...string) (int, string, http.Header) {
	b.f.t.Helper()
	r := testkit.Must(http.NewRequestWithContext(b.f.t.Context(), method, b.url+path, strings.NewReader(body)))(b.f.t)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, value := range b.header {
		r.Header.Set(name, value)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Del(headers[i])
		if headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	got := testkit.Must(b.client.Do(r))(b.f.t)
	defer func() { _ = got.Body.Close() }()
	text := testkit.Must(io.ReadAll(got.Body))(b.f.t)
	return got.StatusCode, string(text), got.Header
}

func (b *browser) expect(status int, method, path, body string, headers ...string) (string, http.Header) {
	b.f.t.Helper()
	got, text, header := b.send(method, path, body, headers...)
	if got != status {
		b.f.t.Fatalf("%s %s returned %d %s; want %d", method, path, got, text, status)
	}
	return text, header
}

// signIn signs the browser in by a new link, and returns the link's body and the cookie.
func (b *browser) signIn() (link, cookie string) {
	b.f.t.Helper()
	made := b.f.expect(201, "POST", "/api/v1/admin/console-links", adminKey, "")
	link = fmt.Sprintf(`{"link":%q}`, made.text("link"))
	if made.text("path") != "/console#link="+made.text("link") || made.text("expiresIn") != "60" {
		b.f.t.Errorf("the link is %s", made.raw)
	}
	_, header := b.expect(200, "POST", "/console/session", link)
	return link, header.Get("Set-Cookie")
}

const ownGames = "/console/api/v1/admin/games"

func TestALinkToTheConsoleSignsInOnce(t *testing.T) {
	t.Parallel()
	f := newGameFixture(t)
	b := f.newBrowser(f.server.InternalHandler())
	b.expect(401, "GET", ownGames, "")
	b.expect(401, "GET", "/console/session", "")
	link, cookie := b.signIn()
	for _, attribute := range []string{"HttpOnly", "SameSite=Strict", "Path=/console", "Max-Age=28800"} {
		if !strings.Contains(cookie, attribute) {
			t.Errorf("the cookie %q is without %s", cookie, attribute)
		}
	}
	if strings.Contains(cookie, "Secure") {
		t.Errorf("the cookie of plain HTTP is Secure, so no browser keeps it: %q", cookie)
	}
	if text, _ := b.expect(200, "GET", ownGames, ""); !strings.Contains(text, `"Duel"`) {
		t.Errorf("the console read %s", text)
	}
	if text, _ := b.expect(200, "GET", "/console/session", ""); !strings.Contains(text, `"operator":1`) {
		t.Errorf("the session is %s", text)
	}
	if signIn := f.trail("&target=console"); signIn.text("items.0.action") != "openConsoleSession" ||
		signIn.text("items.0.actor") != "operator:1" || signIn.text("items.1.action") != "createConsoleLink" {
		t.Errorf("the trail has %s", signIn.raw)
	}
	b.expect(401, "POST", "/console/session", link) // the link is used
	f.newBrowser(f.server.InternalHandler()).expect(401, "POST", "/console/session", link)
	b.expect(403, "POST", "/console/api/v1/admin/console-links", "") // a session must not prolong itself

	b.expect(204, "DELETE", "/console/session", "")
	b.expect(401, "GET", ownGames, "")
}

// A page of another service on the host may set a cookie that a browser sends before the console's.
func TestACookieOfTheSameNameDoesNotLockTheConsole(t *testing.T) {
	t.Parallel()
	f := newGameFixture(t)
	b := f.newBrowser(f.server.InternalHandler())
	_, cookie := b.signIn()
	own, _, _ := strings.Cut(cookie, ";")
	other := f.newBrowser(f.server.InternalHandler()) // without cookies of its own
	for _, cookies := range []string{
		"parlor_console=x; " + own, own + "; parlor_console=x",
		"parlor_console=; parlor_console=" + strings.Repeat("x", 43) + "; " + own,
	} {
		other.expect(200, "GET", ownGames, "", "Cookie", cookies)
	}
	other.expect(401, "GET", ownGames, "", "Cookie", "parlor_console=x; parlor_console=y")
	other.expect(204, "DELETE", "/console/session", "", "Cookie", "parlor_console=x; "+own)
	b.expect(401, "GET", ownGames, "")
}

func TestTheStoreHasNoSecretOfTheConsole(t *testing.T) {
	t.Parallel()
	f := newGameFixture(t)
	made := f.expect(201, "POST", "/api/v1/admin/console-links", adminKey, "")
	b := f.newBrowser(f.server.InternalHandler())
	_, cookie := b.signIn()
	session, _, _ := strings.Cut(strings.TrimPrefix(cookie, "parlor_console="), ";")
	var dump strings.Builder
	for _, name := range f.db.Client.Keys(t.Context(), "*").Val() {
		fmt.Fprintln(&dump, name, f.db.Client.Get(t.Context(), name).Val(), f.db.Client.HGetAll(t.Context(), name).Val())
	}
	for _, text := range []string{made.text("link"), session, adminKey} {
		if len(text) < 32 || strings.Contains(dump.String(), text) {
			t.Errorf("the store has %q", text)
		}
	}
	if !strings.Contains(dump.String(), ":console") {
		t.Error("the dump has nothing of the console")
	}
}

func TestAConsoleCallOfAnotherOriginIsForbidden(t *testing.T) {
	t.Parallel()
	f := newGameFixture(t)
	b := f.newBrowser(f.server.InternalHandler())
	b.signIn()
	ann := f.guest("Ann")
	credit := fmt.Sprintf("/console/api/v1/admin/users/%d/credit", ann.id)
	const body = `{"tokenId":"GOLD","amount":1,"reason":"x"}`
	for name, headers := range map[string][]string{
		"without the header": {"Parlor-Console", ""},
		"another origin":     {"Origin", "https://evil.example"},
		"another port":       {"Origin", "http://127.0.0.1:1"},
		"a sandbox":          {"Origin", "null"},
		"another site":       {"Sec-Fetch-Site", "cross-site"},
		"a sibling site":     {"Sec-Fetch-Site", "same-site"},
	} {
		for _, call := range [][3]string{
			{"POST", credit, body},
			{"GET", ownGames, ""},
			{"DELETE", "/console/session", ""},
			{"POST", "/console/session", `{"link":"x"}`},
		} {
			headers := append([]string{"Idempotency-Key", "k"}, headers...)
			text, header := b.expect(403, call[0], call[1], call[2], headers...)
			if header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s: %s may be read: %s", name, call[1], text)
			}
		}
	}
	_, header := b.expect(405, "OPTIONS", credit, "", "Access-Control-Request-Method", "POST", "Origin",
		"https://duel.example")
	if header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("a preflight of a listed origin is allowed")
	}
	f.expectBalance(ann, "10000+0")
	b.expect(200, "POST", credit, body, "Idempotency-Key", "k")
	b.expect(200, "GET", ownGames, "", "Origin", "", "Sec-Fetch-Site", "") // an old browser sends neither
	f.expectBalance(ann, "10100+0")
}

func TestTheConsoleIsNotServedInPublic(t *testing.T) {
	t.Parallel()
	f := newGameFixture(t)
	internal := f.newBrowser(f.server.InternalHandler())
	_, cookie := internal.signIn()
	session, _, _ := strings.Cut(cookie, ";")
	public := f.newBrowser(f.server)
	for _, path := range []string{"/console", "/console/", "/console/session", ownGames} {
		public.expect(404, "GET", path, "", "Cookie", session)
	}
	public.expect(404, "POST", "/console/session", `{"link":"x"}`)
	public.expect(401, "GET", "/api/v1/admin/games", "", "Cookie", session) // no path of the API looks at the cookie
	internal.expect(401, "GET", "/api/v1/admin/games", "", "Cookie", session)
	internal.expect(200, "GET", "/api/v1/admin/games", "", "Authorization", "Bearer "+adminKey)
	internal.expect(200, "GET", "/console", "")
	internal.expect(404, "GET", "/console/api/healthz", "")
	internal.expect(404, "GET", "/api/v1/me", "") // the internal listener has the operator's part of the API only
}

func TestInDevelopmentThePublicListenerServesTheConsole(t *testing.T) {
	t.Parallel()
	f := newFixtureOn(t, redistest.Single(t), func(d *handlers.Deps) { d.DevPages = true }).createGame()
	b := f.newBrowser(f.server)
	b.expect(200, "GET", "/console", "")
	b.signIn()
	b.expect(200, "GET", ownGames, "")
	b.expect(404, "GET", "/consoles", "")
}

func TestTheCookieOfHTTPSIsSecure(t *testing.T) {
	t.Parallel()
	f := newFixtureOn(t, redistest.Single(t), func(d *handlers.Deps) {
		d.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	b := f.newBrowser(f.server.InternalHandler())
	b.header["X-Forwarded-Proto"] = "https"
	if _, cookie := b.signIn(); !strings.Contains(cookie, "Secure") {
		t.Errorf("behind a proxy that speaks HTTPS the cookie is %q", cookie)
	}
}

func TestTheOperatorEndsAllConsoleSessions(t *testing.T) {
	t.Parallel()
	f := newGameFixture(t)
	one, other := f.newBrowser(f.server.InternalHandler()), f.newBrowser(f.server.InternalHandler())
	one.signIn()
	other.signIn()
	one.expect(204, "DELETE", "/console/api/v1/admin/console-sessions", "")
	one.expect(401, "GET", ownGames, "")
	other.expect(401, "GET", ownGames, "")
}

// A session belongs to a key, not to a place in the list of keys.
func TestAConsoleSessionEndsWithItsKey(t *testing.T) {
	t.Parallel()
	f := newGameFixture(t)
	withKeys := func(keys ...string) *auth.Service {
		o := auth.Options{SigningKeys: [][]byte{[]byte("0123456789abcdef0123456789abcdef")}}
		for _, key := range keys {
			o.AdminKeys = append(o.AdminKeys, []byte(key))
		}
		return auth.New(f.db, f.deps.Users, f.deps.Games, signupGrants{f.wallets}, o)
	}
	operator := principal.Caller{Role: principal.Operator, KeyID: 2}
	link := testkit.Must(withKeys("first", "second").IssueConsoleLink(t.Context(), operator, auth.ConsoleLinkTTL))(t)
	session, opened, err := withKeys("first", "second").OpenConsoleSession(t.Context(), link.Secret)
	if err != nil || opened.KeyID != 2 {
		t.Fatalf("the session is of operator %d, %v", opened.KeyID, err)
	}
	for _, c := range []struct {
		keys  []string
		place int // 0: the session is over
	}{{[]string{"first", "second"}, 2}, {[]string{"second"}, 1}, {[]string{"first"}, 0}, {nil, 0}} {
		a, err := withKeys(c.keys...).AuthenticateConsole(t.Context(), session)
		if (err == nil) != (c.place > 0) || a.KeyID != c.place {
			t.Errorf("with the keys %v the session is of operator %d, %v", c.keys, a.KeyID, err)
		}
	}
}

func TestALinkToTheConsoleExpires(t *testing.T) {
	t.Parallel()
	f := newGameFixture(t)
	operator := principal.Caller{Role: principal.Operator, KeyID: 1}
	link := testkit.Must(f.deps.Auth.IssueConsoleLink(t.Context(), operator, time.Millisecond))(t)
	f.waitUntilGone("*:console")
	if _, _, err := f.deps.Auth.OpenConsoleSession(context.Background(), link.Secret); err == nil {
		t.Error("a link that is over opened a session")
	}
}

// waitUntilGone waits until the store has no key of a pattern.
func (f *fixture) waitUntilGone(pattern string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 10*time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for len(f.db.Client.Keys(ctx, pattern).Val()) > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.t.Fatalf("the store still has %s", pattern)
		}
	}
}
