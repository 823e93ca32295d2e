package handlers

import "net/http"

// Pages of other origins may call, game by game: what a game's definition lists is echoed, never "*", and never with
// credentials. An origin is a convenience for browsers, not a proof of anything.

var (
	varyOrigin      = []string{"Origin"}
	exposedHeaders  = []string{"X-Request-Id, Idempotent-Replayed, ETag, RateLimit, RateLimit-Policy, Retry-After, Parlor-Durability"}
	allowedMethods  = []string{"GET, POST, PATCH, DELETE"}
	allowedHeaders  = []string{"Authorization, Content-Type, Idempotency-Key, If-None-Match, X-Request-Id"}
	preflightMaxAge = []string{"600"}
	varyPreflight   = []string{"Origin, Access-Control-Request-Method, Access-Control-Request-Headers"}
)

// isPreflight tells whether a browser asks what a page may do.
func (r *request) isPreflight() bool {
	h := r.Request.Header
	return r.Request.Method == http.MethodOptions && h["Origin"] != nil && h["Access-Control-Request-Method"] != nil
}

// respondToPreflight answers by the origin alone, since a preflight does not tell who is calling: some game must list it. The
// request that follows is measured by its own game.
func (r *request) respondToPreflight() {
	h := r.Writer.Header()
	h["Vary"] = varyPreflight
	origin := r.Request.Header.Get("Origin")
	if allowed, err := r.server.Games.OriginAllowed(r.ctx(), origin); err == nil && allowed {
		h["Access-Control-Allow-Origin"] = []string{origin}
		h["Access-Control-Allow-Methods"] = allowedMethods
		h["Access-Control-Allow-Headers"] = allowedHeaders
		h["Access-Control-Max-Age"] = preflightMaxAge
	}
	r.write(&response{status: http.StatusNoContent}, nil)
}

// allowOrigin lets the page read the answer when the caller's game lists its origin; where no game is known yet, when any does.
func (r *request) allowOrigin() {
	origin := r.Request.Header["Origin"]
	if len(origin) != 1 {
		return
	}
	if r.originAllowed(origin[0]) {
		h := r.Writer.Header()
		h["Access-Control-Allow-Origin"] = origin
		h["Access-Control-Expose-Headers"] = exposedHeaders
	}
}

func (r *request) originAllowed(origin string) bool {
	if r.corsGame == 0 {
		allowed, err := r.server.Games.OriginAllowed(r.ctx(), origin)
		return err == nil && allowed
	}
	game, err := r.server.Games.Get(r.ctx(), r.corsGame)
	return err == nil && game.AllowsOrigin(origin)
}
