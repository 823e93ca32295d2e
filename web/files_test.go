package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/parlor-games/parlor/tests/testkit"
)

// newTestSite returns a section with a page, a page in a folder, an asset and a 404.
func newTestSite(t *testing.T) *Site {
	t.Helper()
	text := strings.Repeat("a page ", 50)
	return testkit.Must(newSite("/docs", fstest.MapFS{
		"index.html.gz":               {Data: compress([]byte(text))},
		"index.html.br":               {Data: []byte("brotli of the page")},
		"errors/index.html.gz":        {Data: compress([]byte("all errors"))},
		"errors/room_full.html.gz":    {Data: compress([]byte("the room is full"))},
		"404.html.gz":                 {Data: compress([]byte("nothing here"))},
		"assets/docs-1A2B3C4D.js.gz":  {Data: compress([]byte("let a"))},
		"assets/picture-1A2B3C4D.png": {Data: []byte("png")},
	}, policy{}))(t)
}

func get(s *Site, path string, headers ...string) *http.Response {
	r := httptest.NewRequest(http.MethodGet, "http://play.example:8080"+path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result()
}

func bodyOf(t *testing.T, resp *http.Response) string {
	t.Helper()
	raw := testkit.Must(io.ReadAll(resp.Body))(t)
	if resp.Header.Get("Content-Encoding") == "gzip" {
		reader := testkit.Must(gzip.NewReader(bytes.NewReader(raw)))(t)
		raw = testkit.Must(io.ReadAll(reader))(t)
	}
	return string(raw)
}

func TestPagesAreFoundByTheirPaths(t *testing.T) {
	s := newTestSite(t)
	for path, want := range map[string]struct {
		status int
		body   string
		kind   string
	}{
		"/docs/errors":                      {200, "all errors", "text/html; charset=utf-8"},
		"/docs/errors/":                     {200, "all errors", "text/html; charset=utf-8"},
		"/docs/errors/room_full":            {200, "the room is full", "text/html; charset=utf-8"},
		"/docs/assets/docs-1A2B3C4D.js":     {200, "let a", "text/javascript; charset=utf-8"},
		"/docs/assets/picture-1A2B3C4D.png": {200, "png", "image/png"},
		"/docs/errors/unknown":              {404, "nothing here", "text/html; charset=utf-8"},
		"/docs/404":                         {404, "nothing here", "text/html; charset=utf-8"},
		"/docs/../files.go":                 {404, "nothing here", "text/html; charset=utf-8"},
		"/docs/%2e%2e/files.go":             {404, "nothing here", "text/html; charset=utf-8"},
		"/docs/errors/..%2findex.html":      {404, "nothing here", "text/html; charset=utf-8"},
		"/docs/index.html.gz":               {404, "nothing here", "text/html; charset=utf-8"},
		"/docsindex":                        {404, "nothing here", "text/html; charset=utf-8"},
	} {
		resp := get(s, path)
		if body := bodyOf(t, resp); resp.StatusCode != want.status || body != want.body {
			t.Errorf("%s: %d %q, want %d %q", path, resp.StatusCode, body, want.status, want.body)
		}
		if kind := resp.Header.Get("Content-Type"); kind != want.kind {
			t.Errorf("%s has the type %q, want %q", path, kind, want.kind)
		}
	}
}

func TestTheSmallestAcceptedEncodingIsSent(t *testing.T) {
	s := newTestSite(t)
	for accepted, want := range map[string]string{
		"gzip, deflate, br":       "br",
		"br;q=0, gzip":            "gzip",
		"GZIP;q=0.5":              "gzip",
		"gzip;q=0.0, identity":    "",
		"":                        "",
		"deflate":                 "",
		"br ; q = 0 , gzip;q=0.1": "gzip",
	} {
		resp := get(s, "/docs", "Accept-Encoding", accepted)
		if got := resp.Header.Get("Content-Encoding"); got != want {
			t.Errorf("Accept-Encoding %q gets %q, want %q", accepted, got, want)
		}
		if want != "br" && !strings.HasPrefix(bodyOf(t, resp), "a page a page") {
			t.Errorf("Accept-Encoding %q gets another page", accepted)
		}
		if resp.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("Accept-Encoding %q: no Vary", accepted)
		}
	}
}

func TestAClientThatHasTheFileGets304(t *testing.T) {
	s := newTestSite(t)
	plain := get(s, "/docs").Header.Get("Etag")
	zipped := get(s, "/docs", "Accept-Encoding", "gzip").Header.Get("Etag")
	if plain == zipped {
		t.Errorf("two encodings have the ETag %s", plain)
	}
	for _, tag := range []string{plain, zipped, "W/" + zipped, `"other", ` + plain, "*"} {
		resp := get(s, "/docs", "If-None-Match", tag)
		if resp.StatusCode != http.StatusNotModified || bodyOf(t, resp) != "" {
			t.Errorf("If-None-Match %s: %d", tag, resp.StatusCode)
		}
		if resp.Header.Get("Etag") == "" || resp.Header.Get("Cache-Control") == "" {
			t.Errorf("If-None-Match %s: the 304 lacks its headers", tag)
		}
	}
	for path, tag := range map[string]string{"/docs": `"other"`, "/docs/unknown": "*"} {
		if resp := get(s, path, "If-None-Match", tag); resp.StatusCode == http.StatusNotModified {
			t.Errorf("%s with If-None-Match %s is 304", path, tag)
		}
	}
}

func TestOnlyNamesWithAHashAreCachedForEver(t *testing.T) {
	s := newTestSite(t)
	for path, want := range map[string]string{
		"/docs/assets/docs-1A2B3C4D.js": cacheForever, "/docs": cacheRevalidate, "/docs/unknown": cacheRevalidate,
	} {
		if got := get(s, path).Header.Get("Cache-Control"); got != want {
			t.Errorf("%s has Cache-Control %q, want %q", path, got, want)
		}
	}
}

func TestEveryPageHasSecurityHeaders(t *testing.T) {
	s := newTestSite(t)
	for _, path := range []string{"/docs", "/docs/unknown", "/docs/assets/docs-1A2B3C4D.js"} {
		h := get(s, path).Header
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
				"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
			"Referrer-Policy":              "no-referrer",
			"X-Content-Type-Options":       "nosniff",
			"Cross-Origin-Resource-Policy": "same-origin",
			"Access-Control-Allow-Origin":  "",
		} {
			if h.Get(name) != want {
				t.Errorf("%s: %s is %q, want %q", path, name, h.Get(name), want)
			}
		}
	}
}

func TestAPolicyNamesOnlyValidHosts(t *testing.T) {
	p := policy{connect: true, forms: true}
	for host, want := range map[string]string{
		"play.example":          "connect-src 'self' ws://play.example wss://play.example;",
		"127.0.0.1:8080":        "connect-src 'self' ws://127.0.0.1:8080 wss://127.0.0.1:8080;",
		"[::1]:8080":            "connect-src 'self' ws://[::1]:8080 wss://[::1]:8080;",
		"a; script-src evil":    "connect-src 'self';",
		"*":                     "connect-src 'self';",
		"a\r\nSet-Cookie: id=1": "connect-src 'self';",
		"":                      "connect-src 'self';",
	} {
		got := p.contentSecurityPolicy(host)
		if !strings.Contains(got, want) || strings.Contains(got, "evil") || !strings.Contains(got, "form-action 'self'") {
			t.Errorf("host %q: %s", host, got)
		}
	}
}

// Every file that is built can be read in every encoding.
func TestBuiltFilesAreReadable(t *testing.T) {
	for _, s := range []*Site{Docs(false), Docs(true), Play(false), Play(true)} {
		if !s.Has(s.prefix) && s != Play(false) {
			t.Errorf("%s has no first page", s.prefix)
		}
		for name, f := range s.files {
			if f.identity == nil && (f.gzip == nil || f.brotli == nil) {
				t.Errorf("%s/%s lacks an encoding", s.prefix, name)
			}
			if body, _ := f.body(nil); len(body) == 0 {
				t.Errorf("%s/%s is empty", s.prefix, name)
			}
		}
	}
}

func TestTheSDKMayBeLoadedByEveryOrigin(t *testing.T) {
	numbered := ""
	for name := range SDK().files {
		if numberedVersion.MatchString(name) && strings.HasSuffix(name, ".js") {
			numbered = "/sdk/" + name
		}
	}
	if numbered == "" {
		t.Fatal("there is no file of a release")
	}
	for path, want := range map[string]struct{ kind, cache string }{
		"/sdk/v1.js":          {"text/javascript; charset=utf-8", cacheMoving},
		"/sdk/v1.mjs":         {"text/javascript; charset=utf-8", cacheMoving},
		"/sdk/v1.d.ts":        {"text/plain; charset=utf-8", cacheMoving},
		"/sdk/integrity.json": {"application/json", cacheMoving},
		numbered:              {"text/javascript; charset=utf-8", cacheForever},
	} {
		resp := get(SDK(), path, "Accept-Encoding", "gzip, br", "Origin", "https://game.example")
		h := resp.Header
		if resp.StatusCode != http.StatusOK || h.Get("Content-Type") != want.kind || h.Get("Cache-Control") != want.cache ||
			h.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: %d %v", path, resp.StatusCode, h)
		}
		if h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Cross-Origin-Resource-Policy") != "cross-origin" {
			t.Errorf("%s cannot be loaded by another origin: %v", path, h)
		}
		if again := get(SDK(), path, "If-None-Match", h.Get("Etag")); again.StatusCode != http.StatusNotModified ||
			again.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s again: %d %v", path, again.StatusCode, again.Header)
		}
	}
}

// npm compares the bytes with the digest in its lockfile, so no encoding may come on top.
func TestPackagesAreSentAsTheyAre(t *testing.T) {
	found := 0
	for name := range SDK().files {
		if path.Ext(name) != packageExt {
			continue
		}
		found++
		h := get(SDK(), "/sdk/"+name, "Accept-Encoding", "gzip, br").Header
		if h.Get("Content-Encoding") != "" || h.Get("Content-Type") != "application/gzip" ||
			h.Get("Cache-Control") != cacheRevalidate {
			t.Errorf("%s: %v", name, h)
		}
	}
	if found < 2 {
		t.Errorf("%d packages", found)
	}
}

// A browser and npm compare the digest with the file that they got.
func TestTheSDKHasTheDigestsOfItsFiles(t *testing.T) {
	listed := bodyOf(t, get(SDK(), "/sdk/integrity.json"))
	for name := range SDK().files {
		content := []byte(bodyOf(t, get(SDK(), "/sdk/"+name)))
		script, packed := sha512.Sum384(content), sha512.Sum512(content)
		digest := "sha384-" + base64.StdEncoding.EncodeToString(script[:])
		switch {
		case path.Ext(name) == packageExt:
			digest = "sha512-" + base64.StdEncoding.EncodeToString(packed[:])
		case !numberedVersion.MatchString(name):
			continue
		}
		want := `"` + name + `": "` + digest + `"`
		if !strings.Contains(listed, want) {
			t.Errorf("integrity.json lacks %s:\n%s", want, listed)
		}
	}
}

func TestTheDemoIsForDevelopersOnly(t *testing.T) {
	if resp := get(Play(true), "/play"); resp.StatusCode != http.StatusOK ||
		!strings.Contains(resp.Header.Get("Content-Security-Policy"), "connect-src 'self' ws://play.example:8080") {
		t.Errorf("with dev it is %d %v", resp.StatusCode, resp.Header)
	}
	resp := get(Play(false), "/play")
	body := bodyOf(t, resp)
	if resp.StatusCode != http.StatusNotFound || !strings.Contains(body, "<code>parlor dev</code> only") {
		t.Errorf("without dev it is %d %s", resp.StatusCode, body)
	}
}

func TestOnlyDeveloperModeSendsRequestsFromDocs(t *testing.T) {
	for _, dev := range []bool{false, true} {
		for path, connects := range map[string]bool{"/docs": false, "/docs/try": dev, "/docs/try.dev": false} {
			policy := get(Docs(dev), path).Header.Get("Content-Security-Policy")
			if strings.Contains(policy, "connect-src") != connects {
				t.Errorf("dev %v: %s has the policy %s", dev, path, policy)
			}
		}
		if Docs(dev).Has("/docs/try.dev") {
			t.Errorf("dev %v: the page has two addresses", dev)
		}
		page := get(Docs(dev), "/docs/examples/canvas").Header.Get("Content-Security-Policy")
		if strings.Contains(page, "frame-src 'self'") != dev || strings.Contains(page, "connect-src") {
			t.Errorf("dev %v: an example has the policy %s", dev, page)
		}
		if frame := get(Docs(dev), "/docs/examples/canvas/frame"); (frame.StatusCode == http.StatusOK) != dev ||
			strings.Contains(frame.Header.Get("Content-Security-Policy"), "frame-ancestors 'self'") != dev {
			t.Errorf("dev %v: the frame of an example is %d %v", dev, frame.StatusCode, frame.Header)
		}
	}
}
