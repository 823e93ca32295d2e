package handlers_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// getPage asks for a file of a section, as a browser does. It is no operation of openapi.yaml.
func (f *fixture) getPage(method, path string, headers ...string) (*http.Response, string) {
	f.t.Helper()
	r := testkit.Must(http.NewRequestWithContext(f.t.Context(), method, f.url+path, nil))(f.t)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp := testkit.Must(client.Do(r))(f.t)
	defer func() { _ = resp.Body.Close() }()
	body := testkit.Must(io.ReadAll(resp.Body))(f.t)
	return resp, string(body)
}

func TestPagesAreServedWithTheirOwnPolicy(t *testing.T) {
	f := newFixture(t)
	page, body := f.getPage("GET", "/docs")
	if page.StatusCode != http.StatusOK || !strings.Contains(body, "<html") {
		t.Fatalf("/docs is no page: %d %.80s", page.StatusCode, body)
	}
	if policy := page.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "script-src 'self'") {
		t.Errorf("the policy of /docs is %q", policy)
	}
	if page.Header.Get("X-Request-Id") == "" {
		t.Errorf("/docs has no X-Request-Id: %v", page.Header)
	}
	if again, _ := f.getPage("GET", "/docs", "If-None-Match", page.Header.Get("Etag")); again.StatusCode != 304 {
		t.Errorf("/docs with its own ETag is %d", again.StatusCode)
	}
	if head, body := f.getPage("HEAD", "/docs"); head.StatusCode != http.StatusOK || body != "" {
		t.Errorf("HEAD /docs is %d %.80s", head.StatusCode, body)
	}
	f.expectError(http.StatusMethodNotAllowed, "method_not_allowed", "POST", "/docs", "", "")
}

func TestTheRootLeadsToThePlayground(t *testing.T) {
	for _, dev := range []bool{false, true} {
		f := newFixtureOn(t, redistest.Single(t), func(d *handlers.Deps) { d.DevPages = dev })
		want := map[bool]string{false: "/docs", true: "/play"}[dev]
		r := testkit.Must(http.NewRequestWithContext(t.Context(), "GET", f.url+"/", nil))(t)
		resp := testkit.Must(http.DefaultTransport.RoundTrip(r))(t)
		_ = resp.Body.Close()
		h := resp.Header
		if resp.StatusCode != http.StatusFound || h.Get("Location") != want || h.Get("Cache-Control") != "no-store" {
			t.Errorf("dev %v: / is %d %v", dev, resp.StatusCode, h)
		}
	}
}

func TestTheDemoIsNotServedInProduction(t *testing.T) {
	f := newFixture(t)
	page, body := f.getPage("GET", "/play", "Accept", "text/html,*/*")
	if page.StatusCode != http.StatusNotFound || !strings.Contains(body, "parlor dev") {
		t.Errorf("/play is %d %.200s", page.StatusCode, body)
	}
	f.expectError(http.StatusNotFound, "not_found", "GET", "/play", "", "")
	f.expectError(http.StatusNotFound, "not_found", "GET", "/play/game.json", "", "")
}

func TestTheSDKIsServedToOtherOrigins(t *testing.T) {
	f := newFixture(t)
	script, body := f.getPage("GET", "/sdk/v1.js", "Origin", "https://game.example")
	if script.StatusCode != http.StatusOK || !strings.Contains(body, "Parlor") {
		t.Fatalf("/sdk/v1.js is %d %.80s", script.StatusCode, body)
	}
	if script.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("/sdk/v1.js cannot be loaded by another origin: %v", script.Header)
	}
	f.expectError(http.StatusNotFound, "not_found", "GET", "/sdk/9.9.9.js", "", "")
	f.expectError(http.StatusNotFound, "not_found", "GET", "/sdk", "", "")
}

func TestAnUnknownPageIsAProblemForPrograms(t *testing.T) {
	f := newFixture(t)
	for _, path := range []string{"/docs/unknown", "/docs/../pages.go", "/docs/%2e%2e/pages.go"} {
		f.expectError(http.StatusNotFound, "not_found", "GET", path, "", "")
		page, body := f.getPage("GET", path, "Accept", "text/html,*/*")
		if page.StatusCode != http.StatusNotFound || strings.HasPrefix(body, "{") {
			t.Errorf("%s: a person gets %d %s", path, page.StatusCode, body)
		}
	}
}
