package handlers

import (
	"strings"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/web"
)

// pages lists the sections of files that the public listener serves, by the start of their paths.
// They are no operations: they are for anyone, and openapi.yaml does not list them.
func (s *Server) pages() map[string]*web.Site {
	return map[string]*web.Site{
		"/docs": web.Docs(s.DevPages),
		"/sdk":  web.SDK(),
	}
}

// handlePages adds a section to the router.
func (s *Server) handlePages(prefix string, section *web.Site) {
	handle := s.ginHandler(&route{path: prefix, handle: func(r *request) (response, error) {
		return r.servePage(section)
	}})
	s.engine.GET(prefix, handle)
	s.engine.GET(prefix+"/*file", handle)
}

// servePage sends a file of a section. An unknown path is a page for people and a problem for
// programs.
func (r *request) servePage(section *web.Site) (response, error) {
	if !section.Has(r.Request.URL.Path) && !strings.Contains(r.Request.Header.Get("Accept"), "text/html") {
		return response{}, apierror.RouteNotFound
	}
	if r.server.draining.Load() {
		r.Writer.Header()["Connection"] = headerClose
	}
	section.ServeHTTP(r.Writer, r.Request)
	return response{written: true}, nil
}
