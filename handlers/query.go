package handlers

import (
	"maps"
	"slices"
)

// tokenParameters are where clients of other servers put their access token.
var tokenParameters = []string{"token", "access_token", "accessToken"}

// checkQuery returns invalid_request with every parameter that the operation does not have: a
// filter that is spelled wrong must not return everything. The operations of the node itself, which
// have no rate limit, ignore them: probes may add their own.
func (r *request) checkQuery() error {
	if r.Request.URL.RawQuery == "" || r.route.rateLimitClass == "" {
		return nil
	}
	q := r.query()
	for _, name := range slices.Sorted(maps.Keys(q.values)) {
		switch {
		case slices.Contains(r.route.query, name):
		case slices.Contains(tokenParameters, name):
			q.addError(name, "forbidden", "does not belong in an address, where others read it: use the header "+
				"Authorization, or a ticket for a WebSocket")
		default:
			q.addError(truncateName(name), "unknown", "is not a parameter of this operation")
		}
	}
	return q.err()
}
