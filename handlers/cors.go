package handlers

import "net/http"

// Pages of other origins may call if the game's definition lists them. The origin itself is
// returned, never "*", and credentials are not allowed. An origin proves nothing about the caller:
// it only lets a browser decide what a page may read.

var (
	headerVaryOrigin     = []string{"Origin"}
	headerVaryPreflight  = []string{"Origin, Access-Control-Request-Method, Access-Control-Request-Headers"}
	headerExposedHeaders = []string{"X-Request-Id, Idempotent-Replayed, ETag, RateLimit, RateLimit-Policy, Retry-After, " +
		"Parlor-Durability"}
	headerAllowedMethods = []string{"GET, POST, PUT, PATCH, DELETE"}
	headerAllowedHeaders = []string{"Authorization, Content-Type, Idempotency-Key, If-None-Match, X-Request-Id"}
	headerMaxAgeSeconds  = []string{"600"} // seconds
)

// isPreflight reports whether a browser asks what a page may send.
func (r *request) isPreflight() bool {
	h := r.Request.Header
	return r.Request.Method == http.MethodOptions && h["Origin"] != nil && h["Access-Control-Request-Method"] != nil
}

// respondToPreflight allows an origin that any game lists, because a preflight does not name the
// caller. The response to the request that follows depends on the caller's own game.
func (r *request) respondToPreflight() {
	h := r.Writer.Header()
	h["Vary"] = headerVaryPreflight
	origin := r.Request.Header.Get("Origin")
	if allowed, err := r.server.Games.OriginAllowed(r.ctx(), origin); err == nil && allowed {
		h["Access-Control-Allow-Origin"] = []string{origin}
		h["Access-Control-Allow-Methods"] = headerAllowedMethods
		h["Access-Control-Allow-Headers"] = headerAllowedHeaders
		h["Access-Control-Max-Age"] = headerMaxAgeSeconds
	}
	r.write(&response{status: http.StatusNoContent}, nil)
}

// allowOrigin lets a page read the response if originAllowed.
func (r *request) allowOrigin() {
	origin := r.Request.Header["Origin"]
	if len(origin) != 1 {
		return
	}
	if r.originAllowed(origin[0]) {
		h := r.Writer.Header()
		h["Access-Control-Allow-Origin"] = origin
		h["Access-Control-Expose-Headers"] = headerExposedHeaders
	}
}

// originAllowed reports whether the caller's game lists the origin or, when the game is not known,
// any game does.
func (r *request) originAllowed(origin string) bool {
	if r.corsGameID == 0 {
		allowed, err := r.server.Games.OriginAllowed(r.ctx(), origin)
		return err == nil && allowed
	}
	game, err := r.server.Games.Find(r.ctx(), r.corsGameID)
	return err == nil && game.AllowsOrigin(origin)
}
