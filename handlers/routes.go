package handlers

import (
	"net/http"
	"strings"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
)

// route is one operation of openapi.yaml.
type route struct {
	method, path     string   // the path as openapi.yaml spells it
	pathIDs          []pathID // of path; ginHandler sets it
	callers          callers
	rateLimitClass   ratelimit.Class // of rate limits; "" has none
	idempotency      idempotencyMode
	durabilityHeader bool     // the response has the header Parlor-Durability
	query            []string // its query parameters; any other one is an error
	handle           func(*request) (response, error)
	action           string    // of the trail: the operationId; "" for one by which staff changes nothing
	asksServer       bool      // it waits for the game's server, for up to calls.MaxTimeout
	isRoutine        bool      // a game's server does it thousands of times a minute, and it moves no money
	ownErrors        errorList // that handle returns beyond those of commonErrors

	// readBefore returns the state before the action, in the form of the response body. It is nil
	// if the action creates something, or if the response itself shows the state before.
	readBefore func(*request) (response, error)
}

// callers is a set of roles that may call an operation.
type callers uint8

const (
	player callers = 1 << iota
	server
	operator
	orTicket // a ticket in the address is accepted instead of a token

	anyone   callers = 0 // no credential is needed
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
	put   = http.MethodPut
	patch = http.MethodPatch
	del   = http.MethodDelete
)

// setDefaults sets what most operations have in common. Staff alone may call those below the admin
// path. Every operation of the API has a class of rate limits.
func (rt *route) setDefaults() {
	isAdmin := strings.HasPrefix(rt.path, adminPath)
	if isAdmin && rt.callers == anyone {
		rt.callers = staff
	}
	if rt.method == post && rt.idempotency == keyIgnored {
		rt.idempotency = byStoredResponse
	}
	switch {
	case rt.rateLimitClass != "" || !strings.HasPrefix(rt.path, "/api/"):
	case isAdmin:
		rt.rateLimitClass = ratelimit.Admin
	case rt.method == get:
		rt.rateLimitClass = ratelimit.Read
	default:
		rt.rateLimitClass = ratelimit.Write
	}
}

// adminPath is before the paths of operations for staff.
const adminPath = "/api/v1/admin/"

// routes lists every operation, with the values that setDefaults does not set.
func (s *Server) routes() []route {
	const (
		session = "/api/v1/game-session/"
		admin   = adminPath
	)
	// Of the player's own limits, wherever a stake is taken.
	ownLimits := errorList{
		apierror.StakeLimit, apierror.OpenRoomsLimit, apierror.LossLimit, apierror.SelfExcluded,
	}
	joinErrors := ownLimits.and(
		apierror.InsufficientFunds, apierror.FriendsOnly, apierror.Banned, apierror.UserNotFound, apierror.RoomNotFound,
		apierror.RoomFull, apierror.RoomEnded, apierror.AlreadyStarted, apierror.VersionConflict, apierror.LimitReached,
	)
	listErrors := errorList{apierror.InvalidAmount, apierror.GameNotFound, apierror.TokenNotFound}
	socketErrors := errorList{apierror.Draining}
	boardErrors := errorList{apierror.GameNotFound, apierror.BoardNotFound}
	entryErrors := boardErrors.and(apierror.SeasonNotFound, apierror.EntryNotFound)
	scoreErrors := entryErrors.and(apierror.UserNotFound, apierror.SeasonClosed, apierror.ScoreRejected,
		apierror.SubmissionsUsedUp, apierror.SegmentFixed, apierror.BoardFull, apierror.VersionConflict)
	seasonErrors := boardErrors.and(apierror.SeasonClosed, apierror.VersionConflict)
	const (
		board      = "/api/v1/leaderboards/{board}"
		adminBoard = admin + "games/{gameId}/leaderboards/{board}"
		adminEntry = adminBoard + "/entries/{userId}"

		tournament      = "/api/v1/tournaments/{tournamentId}"
		adminTournament = admin + "games/{gameId}/tournaments/{tournamentId}"

		adminWebhook = admin + "games/{gameId}/webhooks/{webhookId}"
	)
	tournamentErrors := errorList{apierror.GameNotFound}
	entrantErrors := tournamentErrors.and(apierror.TournamentClosed, apierror.NotEntrant, apierror.Disqualified)
	readBoard, readTournament := reading(boardOf, s.getBoard), reading(tournamentOf, s.getTournament)
	webhookErrors := errorList{apierror.WebhookNotFound}
	readWebhook := reading(s.authorizedPathGame, s.getWebhook)
	readAsset := reading(s.authorizedPathGame, s.getAsset)
	list := []route{
		{
			method: post, path: "/api/v1/auth/guest", rateLimitClass: ratelimit.SignIn, handle: withBody(s.signInGuest),
			ownErrors: errorList{apierror.GameNotFound, apierror.AccountSuspended, apierror.LimitReached},
		},
		{
			method: post, path: "/api/v1/auth/exchange", callers: server, rateLimitClass: ratelimit.Admin,
			handle: withBody(s.signInExternal), action: "exchange", isRoutine: true, ownErrors: errorList{apierror.LimitReached},
		},
		{
			method: post, path: "/api/v1/auth/refresh", rateLimitClass: ratelimit.SignIn, handle: withBody(s.refreshSession),
			ownErrors: errorList{apierror.Unauthenticated, apierror.RefreshTokenReused, apierror.AccountSuspended},
		},
		{
			method: post, path: "/api/v1/auth/logout", rateLimitClass: ratelimit.SignIn, handle: withOptionalBody(s.logout),
			ownErrors: errorList{apierror.Unauthenticated, apierror.AccessTokenExpired},
		},
		{
			method: post, path: "/api/v1/auth/link", callers: player | server, rateLimitClass: ratelimit.SignIn,
			handle: withBody(s.linkIdentity), action: "link", isRoutine: true,
			ownErrors: errorList{apierror.UserNotFound, apierror.AlreadyLinked},
		},
		{
			method: post, path: "/api/v1/auth/ticket", callers: player | server, rateLimitClass: ratelimit.Socket,
			handle: withoutBody(s.issueTicket),
		},

		{method: get, path: "/api/v1/me", callers: player, handle: s.getMe, ownErrors: errorList{apierror.UserNotFound}},
		{
			method: patch, path: "/api/v1/me", callers: player, handle: withBody(s.patchMe),
			ownErrors: errorList{apierror.UserNotFound},
		},
		{method: del, path: "/api/v1/me", callers: player, handle: s.deleteMe, ownErrors: errorList{apierror.MoneyHeld}},
		{
			method: get, path: "/api/v1/me/limits", callers: player, durabilityHeader: true, query: []string{"tokenId"},
			handle: s.listMyLimits, ownErrors: errorList{apierror.TokenNotFound},
		},
		{
			method: put, path: "/api/v1/me/limits", callers: player, durabilityHeader: true, handle: withBody(s.setMyLimits),
			ownErrors: errorList{
				apierror.InvalidAmount, apierror.TokenNotFound, apierror.SelfExcluded, apierror.VersionConflict,
			},
		},
		{method: get, path: "/api/v1/friends", callers: player, query: []string{"limit", "cursor"}, handle: s.listFriends},
		{method: post, path: "/api/v1/friends/{userId}", callers: player, handle: withoutBody(s.befriendUser)},
		{method: del, path: "/api/v1/friends/{userId}", callers: player, handle: s.unfriendUser},
		{method: post, path: "/api/v1/friends/{userId}/block", callers: player, handle: withoutBody(s.blockUser)},

		{
			method: post, path: session + "create", callers: player, rateLimitClass: ratelimit.Money, idempotency: byReceipt,
			durabilityHeader: true, handle: withBody(s.createRoom),
			ownErrors: ownLimits.and(
				apierror.InvalidAmount, apierror.InsufficientFunds, apierror.UserNotFound, apierror.GameNotFound,
				apierror.TokenNotFound, apierror.VersionConflict, apierror.LimitReached,
			),
		},
		{
			method: get, path: session + "get", callers: everyone, durabilityHeader: true,
			query: []string{"roomId", "code", "gameId"}, handle: s.getRoom,
			ownErrors: errorList{apierror.GameNotFound, apierror.RoomNotFound},
		},
		{
			method: get, path: session + "list", callers: everyone, durabilityHeader: true,
			query:  []string{"gameId", "status", "entryTokenId", "maxEntry", "hasSeat", "mine", "limit", "cursor"},
			handle: reading(roomListOf, s.listRooms), ownErrors: listErrors,
		},
		{
			method: post, path: session + "join", callers: player, rateLimitClass: ratelimit.Money, idempotency: byReceipt,
			durabilityHeader: true, handle: withBody(s.joinRoom), ownErrors: joinErrors,
		},
		{
			method: post, path: "/join", callers: player, rateLimitClass: ratelimit.Money, idempotency: byReceipt,
			durabilityHeader: true, handle: withBody(s.joinRoom), ownErrors: joinErrors,
		},
		{
			method: post, path: session + "leave", callers: player, rateLimitClass: ratelimit.Money,
			idempotency: byReceiptAlways, durabilityHeader: true, handle: withBody(s.leaveRoom),
			ownErrors: errorList{
				apierror.RoomNotFound, apierror.RoomEnded, apierror.NotParticipant, apierror.VersionConflict,
				apierror.RoomDisputed,
			},
		},
		{
			method: post, path: session + "ready", callers: player, rateLimitClass: ratelimit.Money, idempotency: byReceipt,
			durabilityHeader: true, handle: withBody(s.setReady),
			ownErrors: errorList{apierror.RoomNotFound, apierror.RoomEnded, apierror.AlreadyStarted, apierror.NotParticipant},
		},
		{
			method: post, path: session + "kick", callers: player | server, rateLimitClass: ratelimit.Money,
			idempotency: byReceipt, durabilityHeader: true, handle: withBody(s.kickPlayer), action: "kick",
			readBefore: s.readInputRoom,
			ownErrors: errorList{
				apierror.RoomNotFound, apierror.RoomEnded, apierror.NotHost, apierror.AlreadyStarted, apierror.NotParticipant,
				apierror.VersionConflict, apierror.LimitReached,
			},
		},
		{
			method: post, path: session + "transfer-host", callers: player | server, rateLimitClass: ratelimit.Money,
			idempotency: byReceipt, durabilityHeader: true, handle: withBody(s.transferHost), action: "transferHost",
			readBefore: s.readInputRoom,
			ownErrors:  errorList{apierror.RoomNotFound, apierror.RoomEnded, apierror.NotHost, apierror.NotParticipant},
		},
		{
			method: post, path: session + "start", callers: player | server, rateLimitClass: ratelimit.Money,
			idempotency: byReceipt, durabilityHeader: true, handle: withBody(s.startRoom), action: "startRoom",
			readBefore: s.readInputRoom,
			ownErrors: errorList{
				apierror.RoomNotFound, apierror.RoomEnded, apierror.NotHost, apierror.AlreadyStarted, apierror.NotEnoughPlayers,
			},
		},
		// The moves of a game leave no record: a server makes several of them a second, and their events
		// are in the room's list.
		{
			method: post, path: session + "state", callers: player | server, idempotency: byReceipt, durabilityHeader: true,
			handle: withBody(s.setSharedState),
			ownErrors: errorList{
				apierror.RoomNotFound, apierror.RoomEnded, apierror.NotHost, apierror.NotParticipant, apierror.VersionConflict,
				apierror.RoomDisputed, apierror.LimitReached, apierror.GameNotFound,
			},
		},
		{
			method: post, path: session + "turn", callers: player | server, idempotency: byReceipt, durabilityHeader: true,
			handle: withBody(s.setTurn),
			ownErrors: errorList{
				apierror.RoomNotFound, apierror.RoomEnded, apierror.NotHost, apierror.NotStarted, apierror.NotParticipant,
				apierror.RoomDisputed, apierror.GameNotFound,
			},
		},
		// Nothing is read before: it is the busiest change of staff, and the room was STARTED.
		{
			method: post, path: session + "finish", callers: player | server, rateLimitClass: ratelimit.Money,
			idempotency: byReceiptKeyRequired, durabilityHeader: true, handle: withBody(s.finishRoom), action: "finishRoom",
			ownErrors: errorList{
				apierror.RoomNotFound, apierror.RoomEnded, apierror.NotStarted, apierror.ResultConflict, apierror.VersionConflict,
				apierror.NotParticipant, apierror.RoomDisputed,
			},
		},
		{
			method: post, path: session + "cancel", callers: everyone, rateLimitClass: ratelimit.Money, idempotency: byReceipt,
			durabilityHeader: true, handle: withBody(s.cancelRoom), action: "cancelRoom", readBefore: s.readInputRoom,
			ownErrors: errorList{
				apierror.RoomNotFound, apierror.RoomEnded, apierror.NotHost, apierror.AlreadyStarted, apierror.VersionConflict,
			},
		},
		{
			method: post, path: session + "rematch", callers: player, rateLimitClass: ratelimit.Money, idempotency: byReceipt,
			durabilityHeader: true, handle: withBody(s.rematchRoom),
			ownErrors: ownLimits.and(
				apierror.UserNotFound, apierror.RoomNotFound, apierror.NotParticipant, apierror.NotStarted,
				apierror.AlreadyStarted, apierror.InsufficientFunds, apierror.VersionConflict, apierror.LimitReached,
			),
		},
		{
			method: post, path: session + "call", callers: player, rateLimitClass: ratelimit.Call, idempotency: neverStored,
			asksServer: true, handle: withBody(s.callServer),
			ownErrors: errorList{
				apierror.RoomNotFound, apierror.NotParticipant, apierror.GameError, apierror.NoServer, apierror.ServerTimeout,
			},
		},

		{
			method: get, path: "/api/v1/user-balance/token-balances", callers: player, durabilityHeader: true,
			handle: s.listBalances,
		},
		{
			method: get, path: "/api/v1/user-balance/ledger", callers: player, durabilityHeader: true,
			query: []string{"tokenId", "limit", "cursor"}, handle: s.listLedger, ownErrors: errorList{apierror.TokenNotFound},
		},
		{
			method: post, path: "/api/v1/user-assets/add/game-asset/{gameAssetId}", callers: player,
			rateLimitClass: ratelimit.Money, idempotency: byReceiptKeyRequired, durabilityHeader: true,
			handle: withOptionalBody(s.purchaseAsset),
			ownErrors: errorList{
				apierror.InvalidAmount, apierror.InsufficientFunds, apierror.PriceChanged, apierror.StockTooSmall,
				apierror.PerUserLimitReached,
			},
		},
		{
			method: get, path: "/api/v1/user-assets", callers: player, durabilityHeader: true,
			query: []string{"limit", "cursor"}, handle: s.listOwnedAssets,
		},
		{
			method: get, path: "/api/v1/game-assets", callers: everyone, query: []string{"gameId", "limit", "cursor"},
			handle: s.listCatalogue, ownErrors: errorList{apierror.GameNotFound},
		},

		{
			method: get, path: "/api/v1/leaderboards", callers: everyone, query: []string{"gameId", "limit", "cursor"},
			handle: s.listBoards, ownErrors: boardErrors,
		},
		{method: get, path: board, callers: everyone, query: []string{"gameId"}, handle: readBoard, ownErrors: boardErrors},
		{
			method: post, path: board + "/plays", callers: player, handle: withoutBody(s.startPlay),
			ownErrors: boardErrors.and(apierror.SeasonClosed, apierror.VersionConflict),
		},
		{
			method: post, path: board + "/scores", callers: everyone, idempotency: byReceipt, durabilityHeader: true,
			query: []string{"gameId"}, handle: withBody(readingWith(boardOf, s.submitScore)), action: "submitScore",
			isRoutine: true,
			ownErrors: scoreErrors.and(apierror.Forbidden, apierror.PlayNotFound, apierror.PlayUsed, apierror.PlayExpired),
		},
		{
			method: post, path: board + "/scores/batch", callers: staff, rateLimitClass: ratelimit.Admin, idempotency: byReceipt,
			durabilityHeader: true, query: []string{"gameId"}, handle: withBody(readingWith(boardOf, s.submitScores)),
			action: "submitScores", isRoutine: true, ownErrors: boardErrors,
		},
		{
			method: get, path: board + "/entries", callers: everyone,
			query: []string{"gameId", "season", "segment", "limit", "cursor"}, handle: s.listEntries, ownErrors: entryErrors,
		},
		{
			method: get, path: board + "/entries/around", callers: player, query: []string{"season", "segment", "limit"},
			handle: reading(boardOf, s.listEntriesAround), ownErrors: entryErrors,
		},
		{
			method: get, path: board + "/entries/friends", callers: player, query: []string{"season", "segment", "limit"},
			handle: reading(boardOf, s.listEntriesOfFriends), ownErrors: entryErrors,
		},
		{
			method: get, path: board + "/entries/{userId}", callers: everyone, query: []string{"gameId", "season", "segment"},
			handle: reading(boardOf, s.getEntry), ownErrors: entryErrors,
		},
		{
			method: get, path: board + "/league", callers: player, query: []string{"season"},
			handle: reading(boardOf, s.getLeague), ownErrors: entryErrors,
		},
		{
			method: get, path: board + "/seasons", callers: everyone, query: []string{"gameId", "limit", "cursor"},
			handle: s.listSeasons, ownErrors: boardErrors,
		},

		{
			method: post, path: admin + "games/{gameId}/leaderboards", handle: withBody(s.createBoard),
			action: "createLeaderboard",
			ownErrors: errorList{
				apierror.InvalidAmount, apierror.BoardExists, apierror.VersionConflict, apierror.LimitReached,
			},
		},
		{
			method: get, path: admin + "games/{gameId}/leaderboards", query: []string{"limit", "cursor"}, handle: s.listBoards,
			ownErrors: boardErrors,
		},
		{method: get, path: adminBoard, handle: readBoard, ownErrors: boardErrors},
		{
			method: patch, path: adminBoard, handle: withBody(s.patchBoard), action: "patchLeaderboard", readBefore: readBoard,
			ownErrors: boardErrors.and(apierror.InvalidAmount, apierror.VersionConflict),
		},
		{
			method: del, path: adminBoard, handle: s.deleteBoard, action: "deleteLeaderboard", readBefore: readBoard,
			ownErrors: boardErrors.and(apierror.VersionConflict),
		},
		{
			method: post, path: adminBoard + "/seasons/{season}/end", handle: withBody(readingWith(boardOf, s.endSeason)),
			action: "endSeason", ownErrors: seasonErrors,
		},
		{
			method: post, path: adminBoard + "/seasons/{season}/approve",
			handle: withBody(readingWith(boardOf, s.approveSeason)), action: "approveSeason", ownErrors: seasonErrors,
		},
		{
			method: post, path: adminBoard + "/seasons/{season}/void", handle: withBody(readingWith(boardOf, s.voidSeason)),
			action: "voidSeason", ownErrors: seasonErrors,
		},
		{
			method: post, path: adminEntry + "/hide", query: []string{"season"},
			handle: withBody(readingWith(boardOf, s.hideEntry)), action: "hideEntry",
			ownErrors: entryErrors.and(apierror.VersionConflict),
		},
		{
			method: post, path: adminEntry + "/unhide", query: []string{"season"},
			handle: withBody(readingWith(boardOf, s.unhideEntry)), action: "unhideEntry",
			ownErrors: entryErrors.and(apierror.VersionConflict),
		},
		{
			method: post, path: adminEntry + "/remove", query: []string{"season"},
			handle: withBody(readingWith(boardOf, s.removeEntry)), action: "removeEntry",
			ownErrors: entryErrors.and(apierror.VersionConflict),
		},

		{
			method: get, path: "/api/v1/tournaments", callers: everyone, durabilityHeader: true,
			query: []string{"gameId", "status", "limit", "cursor"}, handle: s.listTournaments,
			ownErrors: errorList{apierror.GameNotFound},
		},
		{
			method: get, path: tournament, callers: everyone, durabilityHeader: true, query: []string{"gameId"},
			handle: readTournament, ownErrors: tournamentErrors,
		},
		{
			method: get, path: tournament + "/entrants", callers: everyone, durabilityHeader: true,
			query: []string{"gameId", "limit", "cursor"}, handle: reading(tournamentPageOf, s.listEntrants),
			ownErrors: tournamentErrors,
		},
		{
			method: get, path: tournament + "/matches", callers: everyone, durabilityHeader: true,
			query: []string{"gameId", "round", "limit", "cursor"}, handle: reading(tournamentPageOf, s.listMatches),
			ownErrors: tournamentErrors,
		},
		{
			method: get, path: tournament + "/standings", callers: everyone, durabilityHeader: true,
			query: []string{"gameId", "limit", "cursor"}, handle: reading(tournamentPageOf, s.listStandings),
			ownErrors: tournamentErrors,
		},
		{
			method: post, path: tournament + "/join", callers: player, rateLimitClass: ratelimit.Money, idempotency: byReceipt,
			durabilityHeader: true, handle: withoutBody(reading(tournamentOf, s.joinTournament)),
			ownErrors: tournamentErrors.and(ownLimits...).and(
				apierror.InsufficientFunds, apierror.Disqualified, apierror.TournamentFull, apierror.RegistrationClosed,
				apierror.TournamentClosed, apierror.LimitReached, apierror.UserNotFound,
			),
		},
		{
			method: post, path: tournament + "/leave", callers: player, rateLimitClass: ratelimit.Money,
			idempotency: byReceiptAlways, durabilityHeader: true, handle: withoutBody(reading(tournamentOf, s.leaveTournament)),
			ownErrors: entrantErrors,
		},
		{
			method: post, path: tournament + "/check-in", callers: player, rateLimitClass: ratelimit.Money,
			idempotency: byReceipt, durabilityHeader: true, handle: withoutBody(reading(tournamentOf, s.checkIntoTournament)),
			ownErrors: entrantErrors.and(apierror.CheckInClosed),
		},
		{
			method: post, path: tournament + "/attempts", callers: player, durabilityHeader: true,
			handle:    withoutBody(reading(tournamentOf, s.startAttempt)),
			ownErrors: entrantErrors.and(apierror.AttemptsUsedUp, apierror.VersionConflict),
		},
		{
			method: post, path: admin + "games/{gameId}/tournaments", idempotency: byReceipt, durabilityHeader: true,
			handle: withBody(s.createTournament), action: "createTournament",
			ownErrors: errorList{
				apierror.InvalidAmount, apierror.InsufficientFunds, apierror.TokenNotFound, apierror.LimitReached,
				apierror.VersionConflict,
			},
		},
		{
			method: del, path: adminTournament, durabilityHeader: true, handle: reading(tournamentOf, s.deleteTournament),
			action: "deleteTournament", readBefore: readTournament, ownErrors: tournamentErrors,
		},
		{
			method: post, path: adminTournament + "/start", durabilityHeader: true,
			handle: withoutBody(reading(tournamentOf, s.startTournament)), action: "startTournament", readBefore: readTournament,
			ownErrors: tournamentErrors.and(apierror.TournamentClosed, apierror.VersionConflict),
		},
		{
			method: post, path: adminTournament + "/cancel", durabilityHeader: true,
			handle: withOptionalBody(readingWith(tournamentOf, s.cancelTournament)), action: "cancelTournament",
			readBefore: readTournament, ownErrors: tournamentErrors.and(apierror.TournamentClosed, apierror.VersionConflict),
		},
		{
			method: post, path: adminTournament + "/entrants/{userId}/disqualify", idempotency: byReceipt,
			durabilityHeader: true, handle: withOptionalBody(readingWith(tournamentOf, s.disqualifyEntrant)),
			action: "disqualifyEntrant", readBefore: readTournament, ownErrors: entrantErrors,
		},
		{
			method: post, path: adminTournament + "/matches/{matchId}/resolve", durabilityHeader: true,
			handle: withBody(readingWith(tournamentOf, s.resolveMatch)), action: "resolveMatch",
			ownErrors: tournamentErrors.and(
				apierror.TournamentClosed, apierror.MatchNotFound, apierror.MatchDecided, apierror.VersionConflict,
			),
		},

		{
			method: post, path: admin + "games", callers: operator, handle: withBody(s.createGame), action: "createGame",
			ownErrors: errorList{apierror.InvalidAmount, apierror.TokenNotFound},
		},
		{method: get, path: admin + "games", callers: operator, query: []string{"limit", "cursor"}, handle: s.listGames},
		{method: get, path: admin + "games/{gameId}", handle: s.getGame},
		{
			method: patch, path: admin + "games/{gameId}", handle: withBody(s.patchGame), action: "patchGame",
			readBefore: s.readPathGame,
			ownErrors:  errorList{apierror.InvalidAmount, apierror.TokenNotFound, apierror.VersionConflict},
		},
		{
			method: post, path: admin + "games/{gameId}/server-keys", callers: operator, handle: withoutBody(s.addServerKey),
			action: "addServerKey", readBefore: s.readPathGame,
		},
		{
			method: del, path: admin + "games/{gameId}/server-keys/{keyId}", callers: operator, handle: s.revokeServerKey,
			action: "revokeServerKey", readBefore: s.readPathGame,
		},
		{
			method: post, path: admin + "games/{gameId}/assets",
			handle: withBody(readingWith(s.authorizedPathGame, s.createAsset)), action: "createAsset",
			ownErrors: errorList{apierror.InvalidAmount, apierror.TokenNotFound, apierror.LimitReached},
		},
		{method: get, path: admin + "games/{gameId}/assets", query: []string{"limit", "cursor"}, handle: s.listAssets},
		{method: get, path: admin + "games/{gameId}/assets/{assetId}", handle: readAsset},
		{
			method: del, path: admin + "games/{gameId}/assets/{assetId}", handle: reading(s.authorizedPathGame, s.deleteAsset),
			action: "deleteAsset", readBefore: readAsset,
		},
		{
			method: patch, path: admin + "games/{gameId}/assets/{assetId}",
			handle: withBody(readingWith(s.authorizedPathGame, s.patchAsset)), action: "patchAsset", readBefore: readAsset,
			ownErrors: errorList{apierror.InvalidAmount},
		},
		{
			method: post, path: admin + "tokens", callers: operator, handle: withBody(s.createToken), action: "createToken",
			ownErrors: errorList{apierror.InvalidAmount, apierror.TokenCodeTaken},
		},
		{method: get, path: admin + "tokens", callers: operator, handle: s.listTokens},
		{
			method: get, path: admin + "tokens/{tokenId}", callers: operator, handle: s.getToken,
			ownErrors: errorList{apierror.TokenNotFound},
		},
		{
			method: patch, path: admin + "tokens/{tokenId}", callers: operator, handle: withBody(s.patchToken),
			action: "patchToken", readBefore: s.getToken, ownErrors: errorList{apierror.InvalidAmount, apierror.TokenNotFound},
		},
		{method: get, path: admin + "users/{userId}", durabilityHeader: true, handle: reading(s.visiblePathUser, s.getUser)},
		{
			method: get, path: admin + "users", query: []string{"gameId", "limit", "cursor"}, handle: s.listUsers,
			ownErrors: errorList{apierror.GameNotFound},
		},
		{
			method: get, path: admin + "users/{userId}/ledger", durabilityHeader: true,
			query: []string{"tokenId", "limit", "cursor"}, handle: reading(s.visiblePathUser, s.listUserLedger),
			ownErrors: errorList{apierror.TokenNotFound},
		},
		{
			method: get, path: admin + "users/{userId}/limits", durabilityHeader: true, query: []string{"tokenId"},
			handle: reading(s.visiblePathUser, s.listUserLimits), ownErrors: errorList{apierror.TokenNotFound},
		},
		{
			method: put, path: admin + "users/{userId}/limits", callers: operator, durabilityHeader: true,
			handle: withBody(s.tightenUserLimits), action: "tightenUserLimits",
			readBefore: reading(s.visiblePathUser, s.readUserLimits),
			ownErrors: errorList{
				apierror.InvalidAmount, apierror.TokenNotFound, apierror.SelfExcluded, apierror.VersionConflict,
			},
		},
		{
			method: get, path: admin + "users/{userId}/sessions", callers: operator,
			handle: reading(s.visiblePathUser, s.listUserSessions),
		},
		{method: get, path: admin + "users/{userId}/saves", handle: s.listUserSaves},
		{
			method: get, path: admin + "users/{userId}/saves/{slot}", handle: s.getUserSave,
			ownErrors: errorList{apierror.SlotNotFound, apierror.SaveTampered},
		},
		{
			method: post, path: admin + "users/{userId}/suspend", callers: operator, handle: withBody(s.suspendUser),
			action: "suspendUser", readBefore: s.readPathPlayer,
		},
		{
			method: post, path: admin + "users/{userId}/unsuspend", callers: operator, handle: withoutBody(s.unsuspendUser),
			action: "unsuspendUser", readBefore: s.readPathPlayer,
		},
		{
			method: del, path: admin + "users/{userId}/sessions", callers: operator, handle: s.endUserSessions,
			action: "endUserSessions",
		},
		{
			method: post, path: admin + "users/{userId}/credit", idempotency: byReceiptKeyRequired, durabilityHeader: true,
			handle: withBody(s.creditUser), action: "credit",
			ownErrors: errorList{apierror.InvalidAmount, apierror.TokenNotFound, apierror.LimitReached},
		},
		{
			method: post, path: admin + "users/{userId}/debit", idempotency: byReceiptKeyRequired, durabilityHeader: true,
			handle: withBody(s.debitUser), action: "debit",
			ownErrors: errorList{apierror.InvalidAmount, apierror.InsufficientFunds, apierror.TokenNotFound},
		},
		{
			method: put, path: admin + "users/{userId}/saves/{slot}", durabilityHeader: true,
			handle: withSaveBody(s.replaceSave), action: "replaceSave",
			ownErrors: errorList{
				apierror.VersionConflict, apierror.LimitReached, apierror.SaveRejected, apierror.SaveTampered,
			},
		},
		{
			method: post, path: admin + "users/{userId}/messages",
			handle: withBody(readingWith(s.visiblePathUser, s.sendUserMessage)), action: "sendUserMessage", isRoutine: true,
		},
		{
			method: get, path: admin + "rooms", durabilityHeader: true, query: []string{"gameId", "status", "limit", "cursor"},
			handle: reading(roomListOf, s.listRoomsAsAdmin), ownErrors: listErrors,
		},
		{
			method: get, path: admin + "rooms/{roomId}/events", durabilityHeader: true, query: []string{"after"},
			handle: s.listRoomEvents, ownErrors: errorList{apierror.RoomNotFound},
		},
		{
			method: post, path: admin + "rooms/{roomId}/resolve", callers: operator, idempotency: byReceipt,
			durabilityHeader: true, handle: withBody(s.resolveRoom), action: "resolveRoom", readBefore: s.readPathRoom,
			ownErrors: errorList{
				apierror.RoomNotFound, apierror.NotDisputed, apierror.ResultConflict, apierror.VersionConflict,
			},
		},
		{
			method: get, path: admin + "games/{gameId}/ledger", callers: operator, durabilityHeader: true,
			query: []string{"limit", "cursor"}, handle: reading(s.authorizedPathGame, s.listGameLedger),
		},
		{
			method: post, path: admin + "games/{gameId}/webhooks",
			handle: withBody(readingWith(s.authorizedPathGame, s.createWebhook)), action: "createWebhook",
			ownErrors: errorList{apierror.LimitReached},
		},
		{method: get, path: admin + "games/{gameId}/webhooks", handle: reading(s.authorizedPathGame, s.listWebhooks)},
		{method: get, path: adminWebhook, handle: readWebhook, ownErrors: webhookErrors},
		{
			method: patch, path: adminWebhook, handle: withBody(readingWith(s.authorizedPathGame, s.patchWebhook)),
			action: "patchWebhook", readBefore: readWebhook, ownErrors: webhookErrors.and(apierror.VersionConflict),
		},
		{
			method: del, path: adminWebhook, handle: reading(s.authorizedPathGame, s.deleteWebhook),
			action: "deleteWebhook", readBefore: readWebhook, ownErrors: webhookErrors.and(apierror.VersionConflict),
		},
		{
			method: post, path: adminWebhook + "/test", handle: withoutBody(reading(s.authorizedPathGame, s.testWebhook)),
			action: "testWebhook", ownErrors: webhookErrors.and(apierror.VersionConflict),
		},
		{
			method: post, path: adminWebhook + "/rotate-secret",
			handle: withoutBody(reading(s.authorizedPathGame, s.rotateWebhookSecret)), action: "rotateWebhookSecret",
			readBefore: readWebhook, ownErrors: webhookErrors.and(apierror.VersionConflict),
		},
		{
			method: post, path: adminWebhook + "/replay",
			handle: withBody(readingWith(s.authorizedPathGame, s.replayWebhook)), action: "replayWebhook",
			ownErrors: webhookErrors,
		},
		{
			method: get, path: adminWebhook + "/deliveries", query: []string{"state"},
			handle: reading(s.authorizedPathGame, s.listWebhookDeliveries), ownErrors: webhookErrors,
		},
		{
			method: get, path: admin + "games/{gameId}/activity", handle: reading(s.authorizedPathGame, s.listGameActivity),
		},
		{method: get, path: admin + "nodes", callers: operator, handle: s.listNodes},
		{
			method: post, path: admin + "console-links", callers: operator, handle: withoutBody(s.createConsoleLink),
			action: "createConsoleLink",
		},
		{
			method: del, path: admin + "console-sessions", callers: operator, handle: s.closeConsoleSessions,
			action: "closeConsoleSessions",
		},
		{
			method: get, path: admin + "trail", callers: operator,
			query: []string{"actor", "target", "gameId", "from", "limit", "cursor"}, handle: s.listTrail,
		},
		{
			method: post, path: admin + "games/{gameId}/accept-audit", callers: operator, handle: withBody(s.acceptAudit),
			action: "acceptAudit",
		},
		{
			method: get, path: admin + "audit", callers: operator, durabilityHeader: true, query: []string{"gameId"},
			handle: s.auditWallets, ownErrors: errorList{apierror.GameNotFound},
		},

		{
			method: get, path: "/api/v1/game-data/save", callers: player | orTicket, rateLimitClass: ratelimit.Socket,
			query: []string{"ticket", "protocol"}, handle: s.upgradeHandler(s.saveEndpoint), ownErrors: socketErrors,
		},
		{
			method: get, path: "/api/v1/game-data/load", callers: player | orTicket, rateLimitClass: ratelimit.Socket,
			query: []string{"ticket", "protocol"}, handle: s.upgradeHandler(s.saveEndpoint), ownErrors: socketErrors,
		},
		{
			method: get, path: realtimePath, callers: player | server | orTicket, rateLimitClass: ratelimit.Socket,
			query: []string{"ticket", "protocol"}, handle: s.openRealtimeSocket, ownErrors: socketErrors,
		},

		{method: get, path: "/healthz", handle: s.healthz},
		{method: get, path: "/balancez", handle: s.balancez, ownErrors: errorList{apierror.RouteNotFound}},
		{method: get, path: "/readyz", handle: s.readyz, ownErrors: errorList{apierror.Draining, apierror.StoreUnavailable}},
		{method: get, path: "/openapi.yaml", handle: documentHandler(openAPIText)},
		{method: get, path: "/asyncapi.yaml", handle: documentHandler(asyncAPIText)},
	}
	for i := range list {
		list[i].setDefaults()
	}
	return list
}

// withBody returns the handler of an operation with a body: it decodes the body, claims the
// Idempotency-Key and calls handle.
func withBody[T any](handle func(*request, *T) (response, error)) func(*request) (response, error) {
	return decodeThen(handle, bodyRule{maxBytes: maxBodyBytes})
}

// withOptionalBody is withBody for operations whose members are all optional, so that the body may
// be missing.
func withOptionalBody[T any](handle func(*request, *T) (response, error)) func(*request) (response, error) {
	return decodeThen(handle, bodyRule{maxBytes: maxBodyBytes, optional: true})
}

// withoutBody is withBody for operations without members.
func withoutBody(handle func(*request) (response, error)) func(*request) (response, error) {
	return withOptionalBody(func(r *request, _ *struct{}) (response, error) { return handle(r) })
}

// withSaveBody is withBody for operations whose body contains the state of a save.
func withSaveBody[T any](handle func(*request, *T) (response, error)) func(*request) (response, error) {
	return decodeThen(handle, bodyRule{maxBytes: maxSaveBodyBytes})
}

func decodeThen[T any](handle func(*request, *T) (response, error), rule bodyRule) func(*request) (response, error) {
	return func(r *request) (response, error) {
		in := new(T)
		if err := r.decode(in, rule); err != nil {
			return response{}, err
		}
		if err := validate(in); err != nil {
			return response{}, err
		}
		if stored, found, err := r.claimIdempotencyKey(in); found || err != nil {
			return stored, err
		}
		if r.staffWrite != nil {
			if err := r.staffWrite.begin(r, in); err != nil {
				return response{}, err
			}
		}
		return handle(r, in)
	}
}

// reading returns the handler of an operation that first needs part of the request: its path, its
// query, or a player that the caller may see.
func reading[A any](
	read func(*request) (A, error), handle func(*request, A) (response, error),
) func(*request) (response, error) {
	return func(r *request) (response, error) {
		a, err := read(r)
		if err != nil {
			return response{}, err
		}
		return handle(r, a)
	}
}

// readingWith is reading for an operation with a body.
func readingWith[A, T any](
	read func(*request) (A, error), handle func(*request, A, *T) (response, error),
) func(*request, *T) (response, error) {
	return func(r *request, in *T) (response, error) {
		return reading(read, func(r *request, a A) (response, error) { return handle(r, a, in) })(r)
	}
}

// A validator is an input with rules that no single domain can check. It may also set defaults, so
// that a request that gives a default and one that omits it are the same request.
type validator interface{ Validate() error }

// validate returns invalid_request with the required members of an input that are missing, or the
// error of its Validate.
func validate(in any) error {
	if err := checkRequired(in); err != nil {
		return err
	}
	if v, ok := in.(validator); ok {
		return v.Validate()
	}
	return nil
}

// checkID returns invalid_request for a member that is no id.
func checkID(name string, id int64) error {
	if id < 0 {
		return apierror.InvalidRequest.WithField(name, "range", "must be a positive integer")
	}
	return nil
}

// missing returns invalid_request for a member that must be there.
func missing(name string) error {
	return apierror.InvalidRequest.WithField(name, "required", "is required")
}
