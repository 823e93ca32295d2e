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
	idempotency  idempotencyMode
	durable      bool // the answer tells how durable money and rooms are
	handle       func(*request) (response, error)
}

// callers is a set of roles that an operation is for.
type callers uint8

const (
	player callers = 1 << iota
	server
	operator
	withTicket // with a ticket instead of a token, too

	anyone   callers = 0 // nobody needs to be known
	everyone         = player | server | operator
	staff            = server | operator
)

func (c callers) includes(role principal.Role) bool {
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
func (s *Server) routes() []route {
	const (
		session = "/api/v1/game-session/"
		admin   = "/api/v1/admin/"
	)
	return []route{
		{post, "/api/v1/auth/guest", anyone, auth.SignIn, byStoredResponse, false, withBody(s.guest)},
		{post, "/api/v1/auth/exchange", server, auth.Admin, byStoredResponse, false, withBody(s.exchange)},
		{post, "/api/v1/auth/refresh", anyone, auth.SignIn, byStoredResponse, false, withBody(s.refresh)},
		{post, "/api/v1/auth/logout", anyone, auth.SignIn, byStoredResponse, false, withOptionalBody(s.logout)},
		{post, "/api/v1/auth/link", player | server, auth.SignIn, byStoredResponse, false, withBody(s.link)},
		{post, "/api/v1/auth/ticket", player, auth.Socket, byStoredResponse, false, withoutBody(s.ticket)},

		{get, "/api/v1/me", player, auth.Read, noKey, false, s.me},
		{patch, "/api/v1/me", player, auth.Write, noKey, false, withBody(s.patchMe)},
		{get, "/api/v1/friends", player, auth.Read, noKey, false, s.friends},
		{post, "/api/v1/friends/{userId}", player, auth.Write, byStoredResponse, false, withoutBody(s.befriend)},
		{del, "/api/v1/friends/{userId}", player, auth.Write, noKey, false, s.unfriend},
		{post, "/api/v1/friends/{userId}/block", player, auth.Write, byStoredResponse, false, withoutBody(s.block)},

		{post, session + "create", player, auth.Money, byReceipt, true, withBody(s.createRoom)},
		{get, session + "get", everyone, auth.Read, noKey, true, s.getRoom},
		{get, session + "list", everyone, auth.Read, noKey, true, s.listRooms},
		{post, session + "join", player, auth.Money, byReceipt, true, withBody(s.joinRoom)},
		{post, "/join", player, auth.Money, byReceipt, true, withBody(s.joinRoom)},
		{post, session + "leave", player, auth.Money, byReceipt, true, withBody(s.leaveRoom)},
		{post, session + "ready", player, auth.Money, byReceipt, true, withBody(s.readyRoom)},
		{post, session + "kick", player | server, auth.Money, byReceipt, true, withBody(s.kick)},
		{post, session + "transfer-host", player | server, auth.Money, byReceipt, true, withBody(s.transferHost)},
		{post, session + "start", player | server, auth.Money, byReceipt, true, withBody(s.startRoom)},
		{post, session + "finish", player | server, auth.Money, byReceiptKeyRequired, true, withBody(s.finishRoom)},
		{post, session + "cancel", everyone, auth.Money, byReceipt, true, withBody(s.cancelRoom)},
		{post, session + "rematch", player, auth.Money, byReceipt, true, withBody(s.rematch)},

		{get, "/api/v1/user-balance/token-balances", player, auth.Read, noKey, true, s.tokenBalances},
		{get, "/api/v1/user-balance/ledger", player, auth.Read, noKey, true, s.ledger},
		{post, "/api/v1/user-assets/add/game-asset/{gameAssetId}", player, auth.Money, byReceiptKeyRequired, true, withOptionalBody(s.purchase)},
		{get, "/api/v1/user-assets", player, auth.Read, noKey, true, s.ownedAssets},
		{get, "/api/v1/game-assets", everyone, auth.Read, noKey, false, s.catalogue},

		{post, admin + "games", operator, auth.Admin, byStoredResponse, false, withBody(s.createGame)},
		{get, admin + "games", operator, auth.Admin, noKey, false, s.listGames},
		{get, admin + "games/{gameId}", staff, auth.Admin, noKey, false, s.getGame},
		{patch, admin + "games/{gameId}", staff, auth.Admin, noKey, false, withBody(s.patchGame)},
		{post, admin + "games/{gameId}/server-keys", operator, auth.Admin, byStoredResponse, false, withoutBody(s.addServerKey)},
		{del, admin + "games/{gameId}/server-keys/{keyId}", operator, auth.Admin, noKey, false, s.revokeServerKey},
		{post, admin + "games/{gameId}/assets", staff, auth.Admin, byStoredResponse, false, withBody(s.createAsset)},
		{get, admin + "games/{gameId}/assets", staff, auth.Admin, noKey, false, s.listAssets},
		{get, admin + "games/{gameId}/assets/{assetId}", staff, auth.Admin, noKey, false, s.getAsset},
		{patch, admin + "games/{gameId}/assets/{assetId}", staff, auth.Admin, noKey, false, withBody(s.patchAsset)},
		{post, admin + "tokens", operator, auth.Admin, byStoredResponse, false, withBody(s.createToken)},
		{get, admin + "tokens", operator, auth.Admin, noKey, false, s.listTokens},
		{get, admin + "tokens/{tokenId}", operator, auth.Admin, noKey, false, s.getToken},
		{patch, admin + "tokens/{tokenId}", operator, auth.Admin, noKey, false, withBody(s.patchToken)},
		{get, admin + "users/{userId}", staff, auth.Admin, noKey, true, s.getUser},
		{post, admin + "users/{userId}/credit", staff, auth.Admin, byReceiptKeyRequired, true, withBody(s.credit)},
		{post, admin + "users/{userId}/debit", staff, auth.Admin, byReceiptKeyRequired, true, withBody(s.debit)},
		{get, admin + "rooms", staff, auth.Admin, noKey, true, s.adminRooms},
		{get, admin + "audit", operator, auth.Admin, noKey, true, s.audit},

		{get, "/api/v1/game-data/save", player | withTicket, auth.Socket, noKey, false, s.upgrade(s.saves)},
		{get, "/api/v1/game-data/load", player | withTicket, auth.Socket, noKey, false, s.upgrade(s.saves)},
		{get, "/api/v1/realtime", player | withTicket, auth.Socket, noKey, false, s.upgrade(s.live)},

		{get, "/healthz", anyone, "", noKey, false, s.healthz},
		{get, "/readyz", anyone, "", noKey, false, s.readyz},
		{get, "/openapi.yaml", anyone, "", noKey, false, serveDocument(openAPI)},
		{get, "/asyncapi.yaml", anyone, "", noKey, false, serveDocument(asyncAPI)},
	}
}

// withBody is the way of an operation with a body: decode it, see whether it was asked before, and do it.
func withBody[T any](handle func(*request, *T) (response, error)) func(*request) (response, error) {
	return decodeThen(handle, false)
}

// withOptionalBody is body where every member is optional, so that the whole may be missing.
func withOptionalBody[T any](handle func(*request, *T) (response, error)) func(*request) (response, error) {
	return decodeThen(handle, true)
}

// withoutBody is the way of a POST that needs none.
func withoutBody(handle func(*request) (response, error)) func(*request) (response, error) {
	return decodeThen(func(r *request, _ *struct{}) (response, error) { return handle(r) }, true)
}

func decodeThen[T any](handle func(*request, *T) (response, error), optional bool) func(*request) (response, error) {
	return func(r *request) (response, error) {
		in := new(T)
		if err := r.decode(in, optional); err != nil {
			return response{}, err
		}
		if implied, some := any(in).(interface{ normal() }); some {
			implied.normal()
		}
		if lacking, checked := any(in).(interface{ lacks() needs }); checked {
			if err := lacking.lacks().err(); err != nil {
				return response{}, err
			}
		}
		if stored, found, err := r.claimKey(in); found || err != nil {
			return stored, err
		}
		return handle(r, in)
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
