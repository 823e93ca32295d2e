package handlers

import (
	"net/http"
	"strings"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/web"
)

// pages lists the sections of files that the public listener serves, by the start of their paths.
// Anyone may read them. They are not operations, so openapi.yaml does not list them.
func (s *Server) pages() map[string]*web.Site {
	return map[string]*web.Site{
		"/docs": web.Docs(s.DevPages),
		"/play": web.Play(s.DevPages),
		"/sdk":  web.SDK(),
	}
}

// handleRoot adds the address of the node itself to the router. A development node sends a browser
// to the demo, any other node to the documentation.
func (s *Server) handleRoot() {
	target := "/docs"
	if s.DevPages {
		target = "/play"
	}
	s.engine.GET("/", s.ginHandler(&route{path: "/", handle: func(r *request) (response, error) {
		r.setHeader("Location", target)
		return response{status: http.StatusFound}, nil // with no-store, as every response without an ETag
	}}))
}

// handlePages adds a section to the router.
func (s *Server) handlePages(prefix string, section *web.Site) {
	handle := s.ginHandler(&route{path: prefix, handle: func(r *request) (response, error) {
		return r.servePage(section)
	}})
	s.engine.GET(prefix, handle)
	s.engine.GET(prefix+"/*file", handle)
}

// DemoGame is what the page of the demo has to know of its game. The page of another game has such
// values built in.
type DemoGame struct {
	GameID       int64  `json:"gameId"`
	EntryTokenID int64  `json:"entryTokenId"` // of the entry fee
	Entry        string `json:"entry"`        // the entry fee, a decimal
}

// demoGamePath is where the page of the demo finds its game.
const demoGamePath = "/play/game.json"

// SetDemoGame lets the demo play a game, once there is one.
func (s *Server) SetDemoGame(g DemoGame) { s.demoGame.Store(&g) }

// servePage sends a file of a section. For an unknown path it sends browsers an HTML page and other
// clients a problem document.
func (r *request) servePage(section *web.Site) (response, error) {
	if game := r.server.demoGame.Load(); game != nil && r.Request.URL.Path == demoGamePath {
		return okResponse(game), nil
	}
	if !section.Has(r.Request.URL.Path) && !strings.Contains(r.Request.Header.Get("Accept"), "text/html") {
		return response{}, apierror.RouteNotFound
	}
	if r.server.draining.Load() {
		r.Writer.Header()["Connection"] = headerClose
	}
	section.ServeHTTP(r.Writer, r.Request)
	return response{written: true}, nil
}
