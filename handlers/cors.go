package handlers

import "net/http"

// Pages of other origins may call, game by game: what a game's definition lists is echoed, never "*", and never with
// credentials. An origin is a convenience for browsers, not a proof of anything.

var (
	corsVary     = []string{"Origin"}
	corsExposed  = []string{"X-Request-Id, Idempotent-Replayed, ETag, RateLimit, RateLimit-Policy, Retry-After, Parlor-Durability"}
	corsMethods  = []string{"GET, POST, PATCH, DELETE"}
	corsHeaders  = []string{"Authorization, Content-Type, Idempotency-Key, If-None-Match, X-Request-Id"}
	corsAge      = []string{"600"}
	corsPrevious = []string{"Origin, Access-Control-Request-Method, Access-Control-Request-Headers"}
)

// isPreflight tells whether a browser asks what a page may do.
func (c *call) isPreflight() bool {
	h := c.Request.Header
	return c.Request.Method == http.MethodOptions && h["Origin"] != nil && h["Access-Control-Request-Method"] != nil
}

// preflight answers by the origin alone, since a preflight does not tell who is calling: some game must list it. The
// request that follows is measured by its own game.
func (c *call) preflight() {
	h := c.Writer.Header()
	h["Vary"] = corsPrevious
	origin := c.Request.Header.Get("Origin")
	if listed, err := c.edge.Games.OriginAllowed(c.ctx(), origin); err == nil && listed {
		h["Access-Control-Allow-Origin"] = []string{origin}
		h["Access-Control-Allow-Methods"] = corsMethods
		h["Access-Control-Allow-Headers"] = corsHeaders
		h["Access-Control-Max-Age"] = corsAge
	}
	c.write(&reply{status: http.StatusNoContent}, nil)
}

// allowOrigin lets the page read the answer when the caller's game lists its origin; where no game is known yet, when any does.
func (c *call) allowOrigin() {
	origin := c.Request.Header["Origin"]
	if len(origin) != 1 {
		return
	}
	if c.originListed(origin[0]) {
		h := c.Writer.Header()
		h["Access-Control-Allow-Origin"] = origin
		h["Access-Control-Expose-Headers"] = corsExposed
	}
}

func (c *call) originListed(origin string) bool {
	if c.game == 0 {
		listed, err := c.edge.Games.OriginAllowed(c.ctx(), origin)
		return err == nil && listed
	}
	game, err := c.edge.Games.Find(c.ctx(), c.game)
	return err == nil && game.AllowsOrigin(origin)
}
