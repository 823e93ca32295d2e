package handlers

import (
	"net/http"
	"strings"

	"github.com/parlor-games/parlor/internal/principal"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/auth"
)

// route is one operation of the contract.
type route struct {
	method, path string // the path as openapi.yaml has it
	callers      callers
	class        auth.Class // how often one caller may come
	keyed        keyed
	durable      bool // the answer tells how durable money and rooms are
	handle       func(*call) (reply, error)
}

// callers is a set of roles that an operation is for.
type callers uint8

const (
	player callers = 1 << iota
	server
	operator
	ticketed // with a ticket instead of a token, too

	anyone   callers = 0 // nobody needs to be known
	everyone         = player | server | operator
	staff            = server | operator
)

func (c callers) admit(role principal.Role) bool {
	switch role {
	case principal.Player:
		return c&player != 0
	case principal.Server:
		return c&server != 0
	case principal.Operator:
		return c&operator != 0
	default:
		return false
	}
}

// String lists the roles for a sentence.
func (c callers) String() string {
	var names []string
	for _, r := range []struct {
		role callers
		name string
	}{{player, "players"}, {server, "game servers"}, {operator, "operators"}} {
		if c&r.role != 0 {
			names = append(names, r.name)
		}
	}
	return strings.Join(names, " and ")
}

const (
	get   = http.MethodGet
	post  = http.MethodPost
	patch = http.MethodPatch
	del   = http.MethodDelete
)

// routes is every operation on one page.
func (e *Server) routes() []route {
	const (
		session = "/api/v1/game-session/"
		admin   = "/api/v1/admin/"
	)
	return []route{
		{post, "/api/v1/auth/guest", anyone, auth.SignIn, answered, false, body(e.guest)},
		{post, "/api/v1/auth/exchange", server, auth.Admin, answered, false, body(e.exchange)},
		{post, "/api/v1/auth/refresh", anyone, auth.SignIn, answered, false, body(e.refresh)},
		{post, "/api/v1/auth/logout", anyone, auth.SignIn, answered, false, optionalBody(e.logout)},
		{post, "/api/v1/auth/link", player | server, auth.SignIn, answered, false, body(e.link)},
		{post, "/api/v1/auth/ticket", player, auth.Socket, answered, false, noBody(e.ticket)},

		{get, "/api/v1/me", player, auth.Read, unkeyed, false, e.me},
		{patch, "/api/v1/me", player, auth.Write, unkeyed, false, body(e.patchMe)},
		{get, "/api/v1/friends", player, auth.Read, unkeyed, false, e.friends},
		{post, "/api/v1/friends/{userId}", player, auth.Write, answered, false, noBody(e.befriend)},
		{del, "/api/v1/friends/{userId}", player, auth.Write, unkeyed, false, e.unfriend},
		{post, "/api/v1/friends/{userId}/block", player, auth.Write, answered, false, noBody(e.block)},

		{post, session + "create", player, auth.Money, receipt, true, body(e.createRoom)},
		{get, session + "get", everyone, auth.Read, unkeyed, true, e.getRoom},
		{get, session + "list", everyone, auth.Read, unkeyed, true, e.listRooms},
		{post, session + "join", player, auth.Money, receipt, true, body(e.joinRoom)},
		{post, "/join", player, auth.Money, receipt, true, body(e.joinRoom)},
		{post, session + "leave", player, auth.Money, receipt, true, body(e.leaveRoom)},
		{post, session + "ready", player, auth.Money, receipt, true, body(e.readyRoom)},
		{post, session + "kick", player | server, auth.Money, receipt, true, body(e.kick)},
		{post, session + "transfer-host", player | server, auth.Money, receipt, true, body(e.transferHost)},
		{post, session + "start", player | server, auth.Money, receipt, true, body(e.startRoom)},
		{post, session + "finish", player | server, auth.Money, receiptRequired, true, body(e.finishRoom)},
		{post, session + "cancel", everyone, auth.Money, receipt, true, body(e.cancelRoom)},
		{post, session + "rematch", player, auth.Money, receipt, true, body(e.rematch)},

		{get, "/api/v1/user-balance/token-balances", player, auth.Read, unkeyed, true, e.tokenBalances},
		{get, "/api/v1/user-balance/ledger", player, auth.Read, unkeyed, true, e.ledger},
		{post, "/api/v1/user-assets/add/game-asset/{gameAssetId}", player, auth.Money, receiptRequired, true, optionalBody(e.purchase)},
		{get, "/api/v1/user-assets", player, auth.Read, unkeyed, true, e.ownedAssets},
		{get, "/api/v1/game-assets", everyone, auth.Read, unkeyed, false, e.catalogue},

		{post, admin + "games", operator, auth.Admin, answered, false, body(e.createGame)},
		{get, admin + "games", operator, auth.Admin, unkeyed, false, e.listGames},
		{get, admin + "games/{gameId}", staff, auth.Admin, unkeyed, false, e.getGame},
		{patch, admin + "games/{gameId}", staff, auth.Admin, unkeyed, false, body(e.patchGame)},
		{post, admin + "games/{gameId}/server-keys", operator, auth.Admin, answered, false, noBody(e.addServerKey)},
		{del, admin + "games/{gameId}/server-keys/{keyId}", operator, auth.Admin, unkeyed, false, e.revokeServerKey},
		{post, admin + "games/{gameId}/assets", staff, auth.Admin, answered, false, body(e.createAsset)},
		{get, admin + "games/{gameId}/assets", staff, auth.Admin, unkeyed, false, e.listAssets},
		{get, admin + "games/{gameId}/assets/{assetId}", staff, auth.Admin, unkeyed, false, e.getAsset},
		{patch, admin + "games/{gameId}/assets/{assetId}", staff, auth.Admin, unkeyed, false, body(e.patchAsset)},
		{post, admin + "tokens", operator, auth.Admin, answered, false, body(e.createToken)},
		{get, admin + "tokens", operator, auth.Admin, unkeyed, false, e.listTokens},
		{get, admin + "tokens/{tokenId}", operator, auth.Admin, unkeyed, false, e.getToken},
		{patch, admin + "tokens/{tokenId}", operator, auth.Admin, unkeyed, false, body(e.patchToken)},
		{get, admin + "users/{userId}", staff, auth.Admin, unkeyed, true, e.getUser},
		{post, admin + "users/{userId}/credit", staff, auth.Admin, receiptRequired, true, body(e.credit)},
		{post, admin + "users/{userId}/debit", staff, auth.Admin, receiptRequired, true, body(e.debit)},
		{get, admin + "rooms", staff, auth.Admin, unkeyed, true, e.adminRooms},
		{get, admin + "audit", operator, auth.Admin, unkeyed, true, e.audit},

		{get, "/api/v1/game-data/save", player | ticketed, auth.Socket, unkeyed, false, e.upgrade(e.saves)},
		{get, "/api/v1/game-data/load", player | ticketed, auth.Socket, unkeyed, false, e.upgrade(e.saves)},
		{get, "/api/v1/realtime", player | ticketed, auth.Socket, unkeyed, false, e.upgrade(e.live)},

		{get, "/healthz", anyone, "", unkeyed, false, e.healthz},
		{get, "/readyz", anyone, "", unkeyed, false, e.readyz},
		{get, "/openapi.yaml", anyone, "", unkeyed, false, serveContract(openAPI)},
		{get, "/asyncapi.yaml", anyone, "", unkeyed, false, serveContract(asyncAPI)},
	}
}

// body is the way of an operation with a body: decode it, see whether it was asked before, and do it.
func body[T any](do func(*call, *T) (reply, error)) func(*call) (reply, error) {
	return decoded(do, false)
}

// optionalBody is body where every member is optional, so that the whole may be missing.
func optionalBody[T any](do func(*call, *T) (reply, error)) func(*call) (reply, error) {
	return decoded(do, true)
}

// noBody is the way of a POST that needs none.
func noBody(do func(*call) (reply, error)) func(*call) (reply, error) {
	return decoded(func(c *call, _ *struct{}) (reply, error) { return do(c) }, true)
}

func decoded[T any](do func(*call, *T) (reply, error), optional bool) func(*call) (reply, error) {
	return func(c *call) (reply, error) {
		in := new(T)
		if err := c.decode(in, optional); err != nil {
			return reply{}, err
		}
		if implied, some := any(in).(interface{ normal() }); some {
			implied.normal()
		}
		if lacking, checked := any(in).(interface{ lacks() needs }); checked {
			if err := lacking.lacks().err(); err != nil {
				return reply{}, err
			}
		}
		if first, found, err := c.recognise(in); found || err != nil {
			return first, err
		}
		return do(c, in)
	}
}

// needs collects the members that a request lacks. An input that cannot be passed on without them has a method lacks.
type needs struct{ refusal *apierror.Error }

func (n needs) that(given bool, field string) needs {
	if given {
		return n
	}
	if n.refusal == nil {
		n.refusal = apierror.InvalidRequest
	}
	return needs{n.refusal.WithField(field, "required", "is required")}
}

func (n needs) err() error {
	if n.refusal == nil {
		return nil
	}
	return n.refusal
}
