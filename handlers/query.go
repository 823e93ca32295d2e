package handlers

import (
	"maps"
	"slices"
)

// Prefixes of paths.
const (
	adminPath      = "/api/v1/admin/"
	boardPath      = "/api/v1/leaderboards/{board}"
	boardEntryPath = adminPath + "games/{gameId}/leaderboards/{board}/entries/{userId}"
	tournamentPath = "/api/v1/tournaments/{tournamentId}"
)

// queryParameters has the query parameters of each operation that has any. Any other parameter is
// an error: a filter that is spelled wrong must not return everything.
var queryParameters = map[string][]string{
	"GET /api/v1/me/limits":        {"tokenId"},
	"GET /api/v1/friends":          {"limit", "cursor"},
	"GET /api/v1/game-session/get": {"roomId", "code", "gameId"},
	"GET /api/v1/game-session/list": {
		"gameId", "status", "entryTokenId", "maxEntry", "hasSeat", "mine", "limit", "cursor",
	},
	"GET /api/v1/user-balance/ledger":                  {"tokenId", "limit", "cursor"},
	"GET /api/v1/user-assets":                          {"limit", "cursor"},
	"GET /api/v1/game-assets":                          {"gameId", "limit", "cursor"},
	"GET /api/v1/leaderboards":                         {"gameId", "limit", "cursor"},
	"GET " + boardPath:                                 {"gameId"},
	"POST " + boardPath + "/scores":                    {"gameId"},
	"POST " + boardPath + "/scores/batch":              {"gameId"},
	"GET " + boardPath + "/entries":                    {"gameId", "season", "segment", "limit", "cursor"},
	"GET " + boardPath + "/entries/around":             {"season", "segment", "limit"},
	"GET " + boardPath + "/entries/friends":            {"season", "segment", "limit"},
	"GET " + boardPath + "/entries/{userId}":           {"gameId", "season", "segment"},
	"GET " + boardPath + "/league":                     {"season"},
	"GET " + boardPath + "/seasons":                    {"gameId", "limit", "cursor"},
	"GET " + adminPath + "games/{gameId}/leaderboards": {"limit", "cursor"},
	"POST " + boardEntryPath + "/hide":                 {"season"},
	"POST " + boardEntryPath + "/unhide":               {"season"},
	"POST " + boardEntryPath + "/remove":               {"season"},
	"GET /api/v1/tournaments":                          {"gameId", "status", "limit", "cursor"},
	"GET " + tournamentPath:                            {"gameId"},
	"GET " + tournamentPath + "/entrants":              {"gameId", "limit", "cursor"},
	"GET " + tournamentPath + "/matches":               {"gameId", "round", "limit", "cursor"},
	"GET " + tournamentPath + "/standings":             {"gameId", "limit", "cursor"},
	"GET " + adminPath + "games":                       {"limit", "cursor"},
	"GET " + adminPath + "games/{gameId}/assets":       {"limit", "cursor"},
	"GET " + adminPath + "users":                       {"gameId", "limit", "cursor"},
	"GET " + adminPath + "users/{userId}/ledger":       {"tokenId", "limit", "cursor"},
	"GET " + adminPath + "users/{userId}/limits":       {"tokenId"},
	"GET " + adminPath + "rooms":                       {"gameId", "status", "limit", "cursor"},
	"GET " + adminPath + "rooms/{roomId}/events":       {"after"},
	"GET " + adminPath + "games/{gameId}/ledger":       {"limit", "cursor"},
	"GET " + adminPath + "trail":                       {"actor", "target", "gameId", "from", "limit", "cursor"},
	"GET " + adminPath + "audit":                       {"gameId"},
	"GET /api/v1/game-data/save":                       {"ticket", "protocol"},
	"GET /api/v1/game-data/load":                       {"ticket", "protocol"},
	"GET /api/v1/realtime":                             {"ticket", "protocol"},
}

// tokenParameters are where clients of other servers put their access token.
var tokenParameters = []string{"token", "access_token", "accessToken"}

// checkQuery returns invalid_request with every parameter that the operation does not have. The
// operations of the node itself, which have no rate limit, ignore them: probes may add their own.
func (r *request) checkQuery() error {
	if r.Request.URL.RawQuery == "" || r.route.rateLimitClass == "" {
		return nil
	}
	q := r.query()
	known := queryParameters[r.route.method+" "+r.route.path]
	for _, name := range slices.Sorted(maps.Keys(q.values)) {
		switch {
		case slices.Contains(known, name):
		case slices.Contains(tokenParameters, name):
			q.addError(name, "forbidden", "does not belong in an address, where others read it: use the header "+
				"Authorization, or a ticket for a WebSocket")
		default:
			q.addError(truncateName(name), "unknown", "is not a parameter of this operation")
		}
	}
	return q.err()
}
