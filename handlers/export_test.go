package handlers

import (
	"maps"
	"net/http"
	"net/netip"
	"slices"

	"github.com/parlor-games/parlor/internal/base/apierror"
)

// ClientAddress returns the address of the client.
func ClientAddress(r *http.Request, trusted []netip.Prefix) netip.Addr {
	return clientAddress(r, trusted)
}

// DecodePlainRoom returns the roomId of a body that is decoded without the JSON library.
func DecodePlainRoom(body string) (roomID string, ok bool) {
	var in roomInput
	ok = in.decodePlain([]byte(body))
	return in.RoomID, ok
}

// Operation is a route with every error that it returns.
type Operation struct {
	Method, Path string
	Errors       []*apierror.Error // ordered by status and code
	StaffWrite   bool              // staff can change something by it
	ForPlayers   bool              // players may call it
	Query        []string          // its query parameters
	Action       string            // the trail's name of it; "" when it leaves no record
	PathIDs      []string          // the parameters of the path that are ids
}

// Operations returns what is served, in the order of routes.go.
func Operations() []Operation {
	var list []Operation
	for _, rt := range (&Server{}).routes() {
		var ids []string
		for _, id := range pathIDsOf(rt.path) {
			ids = append(ids, id.name)
		}
		list = append(list, Operation{
			rt.method, rt.path, rt.allErrors(), rt.method != http.MethodGet && rt.callers&staff != 0,
			rt.callers&player != 0, rt.query, rt.action, ids,
		})
	}
	return list
}

// MessageTypes returns the types of the messages that the sockets take.
func MessageTypes() []string {
	return slices.Sorted(maps.Keys(joinMaps(realtimeMessages(), saveMessages())))
}

func joinMaps(a, b map[string]messageType) map[string]messageType {
	maps.Copy(a, b)
	return a
}

// IsFinal reports whether a response with a status is stored under its Idempotency-Key.
func IsFinal(status int, retryable bool) bool {
	resp := response{status: status, retryable: retryable}
	return resp.isFinal()
}
