package handlers

import (
	"net/http"
	"slices"
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
	isRoutine        bool      // a game's server does it thousands of times a minute, and it moves no money
	ownErrors        errorList // that handle returns beyond those of commonErrors

	// readBefore returns what the action changes, as the body of its response shows it. It is nil when
	// nothing was there before, or when the response tells what was.
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

// routes lists every operation.
func (s *Server) routes() []route {
	const (
		session = "/api/v1/game-session/"
		admin   = "/api/v1/admin/"
	)
	joinErrors := errorList{
		apierror.InsufficientFunds, apierror.FriendsOnly, apierror.Banned, apierror.UserNotFound, apierror.RoomNotFound,
		apierror.RoomFull, apierror.RoomEnded, apierror.AlreadyStarted, apierror.VersionConflict, apierror.LimitReached,
	}
	// Of the player's own limits, wherever a stake is taken.
	ownLimits := errorList{
		apierror.StakeLimit, apierror.OpenRoomsLimit, apierror.LossLimit, apierror.SelfExcluded,
	}
	joinErrors = append(joinErrors, ownLimits...)
	listErrors := errorList{
		apierror.InvalidRequest, apierror.InvalidAmount, apierror.GameNotFound, apierror.TokenNotFound,
	}
	auditErrors := errorList{apierror.InvalidRequest, apierror.GameNotFound}
	socketErrors := errorList{apierror.InvalidRequest, apierror.Draining}
	boardErrors := errorList{apierror.InvalidRequest, apierror.GameNotFound, apierror.BoardNotFound}
	entryErrors := append(slices.Clone(boardErrors), apierror.SeasonNotFound, apierror.EntryNotFound)
	scoreErrors := append(slices.Clone(entryErrors), apierror.UserNotFound, apierror.SeasonClosed, apierror.ScoreRejected,
		apierror.SubmissionsUsedUp, apierror.SegmentFixed, apierror.BoardFull, apierror.VersionConflict)
	seasonErrors := append(slices.Clone(boardErrors),
		apierror.SeasonNotFound, apierror.SeasonClosed, apierror.VersionConflict)
	const (
		board      = "/api/v1/leaderboards/{board}"
		adminBoard = admin + "games/{gameId}/leaderboards/{board}"
		adminEntry = adminBoard + "/entries/{userId}"

		tournament      = "/api/v1/tournaments/{tournamentId}"
		adminTournament = admin + "games/{gameId}/tournaments/{tournamentId}"
	)
	tournamentErrors := errorList{apierror.InvalidRequest, apierror.GameNotFound, apierror.TournamentNotFound}
	entrantErrors := append(slices.Clone(tournamentErrors), apierror.TournamentClosed, apierror.NotEntrant,
		apierror.Disqualified)
	return []route{
		{
			method: post, path: "/api/v1/auth/guest", rateLimitClass: ratelimit.SignIn, idempotency: byStoredResponse,
			handle:    withBody(s.signInGuest),
			ownErrors: errorList{apierror.GameNotFound, apierror.AccountSuspended, apierror.LimitReached},
		},
		{
			method: post, path: "/api/v1/auth/exchange", callers: server, rateLimitClass: ratelimit.Admin,
			idempotency: byStoredResponse, handle: withBody(s.signInExternal), action: "exchange", isRoutine: true,
			ownErrors: errorList{apierror.AccountSuspended, apierror.LimitReached},
		},
		{
			method: post, path: "/api/v1/auth/refresh", rateLimitClass: ratelimit.SignIn, idempotency: byStoredResponse,
			handle:    withBody(s.refreshSession),
			ownErrors: errorList{apierror.Unauthenticated, apierror.RefreshTokenReused, apierror.AccountSuspended},
		},
		{
			method: post, path: "/api/v1/auth/logout", rateLimitClass: ratelimit.SignIn, idempotency: byStoredResponse,
			handle: withOptionalBody(s.logout), ownErrors: errorList{apierror.Unauthenticated, apierror.AccessTokenExpired},
		},
		{
			method: post, path: "/api/v1/auth/link", callers: player | server, rateLimitClass: ratelimit.SignIn,
			idempotency: byStoredResponse, handle: withBody(s.linkIdentity), action: "link", isRoutine: true,
			ownErrors: errorList{apierror.UserNotFound, apierror.AlreadyLinked},
		},
		{
			method: post, path: "/api/v1/auth/ticket", callers: player, rateLimitClass: ratelimit.Socket,
			idempotency: byStoredResponse, handle: withoutBody(s.issueTicket),
		},

		{
			method: get, path: "/api/v1/me", callers: player, rateLimitClass: ratelimit.Read, handle: s.getMe,
			ownErrors: errorList{apierror.UserNotFound},
		},
		{
			method: patch, path: "/api/v1/me", callers: player, rateLimitClass: ratelimit.Write, handle: withBody(s.patchMe),
			ownErrors: errorList{apierror.UserNotFound},
		},
		{
			method: del, path: "/api/v1/me", callers: player, rateLimitClass: ratelimit.Write, handle: s.deleteMe,
			ownErrors: errorList{apierror.MoneyHeld},
		},
		{
			method: get, path: "/api/v1/me/limits", callers: player, rateLimitClass: ratelimit.Read, durabilityHeader: true,
			query: []string{"tokenId"}, handle: s.listMyLimits,
			ownErrors: errorList{apierror.InvalidRequest, apierror.TokenNotFound},
		},
		{
			method: put, path: "/api/v1/me/limits", callers: player, rateLimitClass: ratelimit.Write, durabilityHeader: true,
			handle: withBody(s.setMyLimits),
			ownErrors: errorList{
				apierror.InvalidAmount, apierror.TokenNotFound, apierror.SelfExcluded, apierror.VersionConflict,
			},
		},
		{
			method: get, path: "/api/v1/friends", callers: player, rateLimitClass: ratelimit.Read,
			query: []string{"limit", "cursor"}, handle: s.listFriends, ownErrors: errorList{apierror.InvalidRequest},
		},
		{
			method: post, path: "/api/v1/friends/{userId}", callers: player, rateLimitClass: ratelimit.Write,
			idempotency: byStoredResponse, handle: withoutBody(s.befriendUser), ownErrors: errorList{apierror.UserNotFound},
		},
		{
			method: del, path: "/api/v1/friends/{userId}", callers: player, rateLimitClass: ratelimit.Write,
			handle: s.unfriendUser, ownErrors: errorList{apierror.InvalidRequest, apierror.UserNotFound},
		},
		{
			method: post, path: "/api/v1/friends/{userId}/block", callers: player, rateLimitClass: ratelimit.Write,
			idempotency: byStoredResponse, handle: withoutBody(s.blockUser), ownErrors: errorList{apierror.UserNotFound},
		},

		{
			method: post, path: session + "create", callers: player, rateLimitClass: ratelimit.Money, idempotency: byReceipt,
			durabilityHeader: true, handle: withBody(s.createRoom),
			ownErrors: append(errorList{
				apierror.InvalidAmount, apierror.InsufficientFunds, apierror.UserNotFound, apierror.GameNotFound,
				apierror.TokenNotFound, apierror.VersionConflict, apierror.LimitReached,
			}, ownLimits...),
		},
		{
			method: get, path: session + "get", callers: everyone, rateLimitClass: ratelimit.Read, durabilityHeader: true,
			query: []string{"roomId", "code", "gameId"}, handle: s.getRoom,
			ownErrors: errorList{apierror.InvalidRequest, apierror.GameNotFound, apierror.RoomNotFound},
		},
		{
			method: get, path: session + "list", callers: everyone, rateLimitClass: ratelimit.Read, durabilityHeader: true,
			query:  []string{"gameId", "status", "entryTokenId", "maxEntry", "hasSeat", "mine", "limit", "cursor"},
			handle: s.listRooms, ownErrors: listErrors,
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
			method: post, path: session + "state", callers: player | server, rateLimitClass: ratelimit.Write,
			idempotency: byReceipt, durabilityHeader: true, handle: withBody(s.setSharedState),
			ownErrors: errorList{
				apierror.RoomNotFound, apierror.RoomEnded, apierror.NotHost, apierror.NotParticipant, apierror.VersionConflict,
				apierror.RoomDisputed, apierror.LimitReached, apierror.GameNotFound,
			},
		},
		{
			method: post, path: session + "turn", callers: player | server, rateLimitClass: ratelimit.Write,
			idempotency: byReceipt, durabilityHeader: true, handle: withBody(s.setTurn),
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
				apierror.RoomNotFound, apierror.RoomEnded, apierror.NotStarted, apierror.ResultConflict,
				apierror.VersionConflict, apierror.NotParticipant, apierror.RoomDisputed,
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
			ownErrors: append(errorList{
				apierror.UserNotFound, apierror.RoomNotFound, apierror.NotParticipant, apierror.NotStarted,
				apierror.AlreadyStarted, apierror.InsufficientFunds, apierror.VersionConflict, apierror.LimitReached,
			}, ownLimits...),
		},

		{
			method: get, path: "/api/v1/user-balance/token-balances", callers: player, rateLimitClass: ratelimit.Read,
			durabilityHeader: true, handle: s.listBalances,
		},
		{
			method: get, path: "/api/v1/user-balance/ledger", callers: player, rateLimitClass: ratelimit.Read,
			durabilityHeader: true, query: []string{"tokenId", "limit", "cursor"}, handle: s.listLedger,
			ownErrors: errorList{apierror.InvalidRequest, apierror.TokenNotFound},
		},
		{
			method: post, path: "/api/v1/user-assets/add/game-asset/{gameAssetId}", callers: player,
			rateLimitClass: ratelimit.Money, idempotency: byReceiptKeyRequired, durabilityHeader: true,
			handle: withOptionalBody(s.purchaseAsset),
			ownErrors: errorList{
				apierror.InvalidAmount, apierror.InsufficientFunds, apierror.AssetNotFound, apierror.PriceChanged,
				apierror.StockTooSmall, apierror.PerUserLimitReached,
			},
		},
		{
			method: get, path: "/api/v1/user-assets", callers: player, rateLimitClass: ratelimit.Read, durabilityHeader: true,
			query: []string{"limit", "cursor"}, handle: s.listOwnedAssets, ownErrors: errorList{apierror.InvalidRequest},
		},
		{
			method: get, path: "/api/v1/game-assets", callers: everyone, rateLimitClass: ratelimit.Read,
			query: []string{"gameId", "limit", "cursor"}, handle: s.listCatalogue,
			ownErrors: errorList{apierror.InvalidRequest, apierror.GameNotFound},
		},

		{
			method: get, path: "/api/v1/leaderboards", callers: everyone, rateLimitClass: ratelimit.Read,
			query: []string{"gameId", "limit", "cursor"}, handle: s.listBoards, ownErrors: boardErrors,
		},
		{
			method: get, path: board, callers: everyone, rateLimitClass: ratelimit.Read, query: []string{"gameId"},
			handle: s.getBoard, ownErrors: boardErrors,
		},
		{
			method: post, path: board + "/plays", callers: player, rateLimitClass: ratelimit.Write,
			idempotency: byStoredResponse, handle: withoutBody(s.startPlay),
			ownErrors: append(slices.Clone(boardErrors), apierror.SeasonClosed, apierror.VersionConflict),
		},
		{
			method: post, path: board + "/scores", callers: everyone, rateLimitClass: ratelimit.Write, idempotency: byReceipt,
			durabilityHeader: true, query: []string{"gameId"}, handle: withBody(s.submitScore), action: "submitScore",
			isRoutine: true,
			ownErrors: append(slices.Clone(scoreErrors),
				apierror.Forbidden, apierror.PlayNotFound, apierror.PlayUsed, apierror.PlayExpired),
		},
		{
			method: post, path: board + "/scores/batch", callers: staff, rateLimitClass: ratelimit.Admin, idempotency: byReceipt,
			durabilityHeader: true, query: []string{"gameId"}, handle: withBody(s.submitScores), action: "submitScores",
			isRoutine: true, ownErrors: boardErrors,
		},
		{
			method: get, path: board + "/entries", callers: everyone, rateLimitClass: ratelimit.Read,
			query: []string{"gameId", "season", "segment", "limit", "cursor"}, handle: s.listEntries, ownErrors: entryErrors,
		},
		{
			method: get, path: board + "/entries/around", callers: player, rateLimitClass: ratelimit.Read,
			query: []string{"season", "segment", "limit"}, handle: s.listEntriesAround, ownErrors: entryErrors,
		},
		{
			method: get, path: board + "/entries/friends", callers: player, rateLimitClass: ratelimit.Read,
			query: []string{"season", "segment", "limit"}, handle: s.listEntriesOfFriends, ownErrors: entryErrors,
		},
		{
			method: get, path: board + "/entries/{userId}", callers: everyone, rateLimitClass: ratelimit.Read,
			query: []string{"gameId", "season", "segment"}, handle: s.getEntry, ownErrors: entryErrors,
		},
		{
			method: get, path: board + "/league", callers: player, rateLimitClass: ratelimit.Read, query: []string{"season"},
			handle: s.getLeague, ownErrors: entryErrors,
		},
		{
			method: get, path: board + "/seasons", callers: everyone, rateLimitClass: ratelimit.Read,
			query: []string{"gameId", "limit", "cursor"}, handle: s.listSeasons, ownErrors: boardErrors,
		},

		{
			method: post, path: admin + "games/{gameId}/leaderboards", callers: staff, rateLimitClass: ratelimit.Admin,
			idempotency: byStoredResponse, handle: withBody(s.createBoard), action: "createLeaderboard",
			ownErrors: errorList{
				apierror.InvalidAmount, apierror.GameNotFound, apierror.BoardExists, apierror.VersionConflict,
				apierror.LimitReached,
			},
		},
		{
			method: get, path: admin + "games/{gameId}/leaderboards", callers: staff, rateLimitClass: ratelimit.Admin,
			query: []string{"limit", "cursor"}, handle: s.listBoards, ownErrors: boardErrors,
		},
		{
			method: get, path: adminBoard, callers: staff, rateLimitClass: ratelimit.Admin, handle: s.getBoard,
			ownErrors: boardErrors,
		},
		{
			method: patch, path: adminBoard, callers: staff, rateLimitClass: ratelimit.Admin, handle: withBody(s.patchBoard),
			action: "patchLeaderboard", readBefore: s.getBoard,
			ownErrors: append(slices.Clone(boardErrors), apierror.InvalidAmount, apierror.VersionConflict),
		},
		{
			method: del, path: adminBoard, callers: staff, rateLimitClass: ratelimit.Admin, handle: s.deleteBoard,
			action: "deleteLeaderboard", readBefore: s.getBoard,
			ownErrors: append(slices.Clone(boardErrors), apierror.VersionConflict),
		},
		{
			method: post, path: adminBoard + "/seasons/{season}/end", callers: staff, rateLimitClass: ratelimit.Admin,
			idempotency: byStoredResponse, handle: withBody(s.endSeason), action: "endSeason", ownErrors: seasonErrors,
		},
		{
			method: post, path: adminBoard + "/seasons/{season}/approve", callers: staff, rateLimitClass: ratelimit.Admin,
			idempotency: byStoredResponse, handle: withBody(s.approveSeason), action: "approveSeason", ownErrors: seasonErrors,
		},
		{
			method: post, path: adminBoard + "/seasons/{season}/void", callers: staff, rateLimitClass: ratelimit.Admin,
			idempotency: byStoredResponse, handle: withBody(s.voidSeason), action: "voidSeason", ownErrors: seasonErrors,
		},
		{
			method: post, path: adminEntry + "/hide", callers: staff, rateLimitClass: ratelimit.Admin,
			idempotency: byStoredResponse, query: []string{"season"}, handle: withBody(s.hideEntry), action: "hideEntry",
			ownErrors: append(slices.Clone(entryErrors), apierror.VersionConflict),
		},
		{
			method: post, path: adminEntry + "/unhide", callers: staff, rateLimitClass: ratelimit.Admin,
			idempotency: byStoredResponse, query: []string{"season"}, handle: withBody(s.unhideEntry), action: "unhideEntry",
			ownErrors: append(slices.Clone(entryErrors), apierror.VersionConflict),
		},
		{
			method: post, path: adminEntry + "/remove", callers: staff, rateLimitClass: ratelimit.Admin,
			idempotency: byStoredResponse, query: []string{"season"}, handle: withBody(s.removeEntry), action: "removeEntry",
			ownErrors: append(slices.Clone(entryErrors), apierror.VersionConflict),
		},

		{
			method: get, path: "/api/v1/tournaments", callers: everyone, rateLimitClass: ratelimit.Read, durabilityHeader: true,
			query: []string{"gameId", "status", "limit", "cursor"}, handle: s.listTournaments,
			ownErrors: errorList{apierror.InvalidRequest, apierror.GameNotFound},
		},
		{
			method: get, path: tournament, callers: everyone, rateLimitClass: ratelimit.Read, durabilityHeader: true,
			query: []string{"gameId"}, handle: s.getTournament, ownErrors: tournamentErrors,
		},
		{
			method: get, path: tournament + "/entrants", callers: everyone, rateLimitClass: ratelimit.Read,
			durabilityHeader: true, query: []string{"gameId", "limit", "cursor"}, handle: s.listEntrants,
			ownErrors: tournamentErrors,
		},
		{
			method: get, path: tournament + "/matches", callers: everyone, rateLimitClass: ratelimit.Read,
			durabilityHeader: true, query: []string{"gameId", "round", "limit", "cursor"}, handle: s.listMatches,
			ownErrors: tournamentErrors,
		},
		{
			method: get, path: tournament + "/standings", callers: everyone, rateLimitClass: ratelimit.Read,
			durabilityHeader: true, query: []string{"gameId", "limit", "cursor"}, handle: s.listStandings,
			ownErrors: tournamentErrors,
		},
		{
			method: post, path: tournament + "/join", callers: player, rateLimitClass: ratelimit.Money, idempotency: byReceipt,
			durabilityHeader: true, handle: withoutBody(s.joinTournament),
			ownErrors: append(append(slices.Clone(tournamentErrors), apierror.InsufficientFunds, apierror.Forbidden,
				apierror.Disqualified, apierror.TournamentFull, apierror.RegistrationClosed, apierror.TournamentClosed,
				apierror.LimitReached, apierror.UserNotFound), ownLimits...),
		},
		{
			method: post, path: tournament + "/leave", callers: player, rateLimitClass: ratelimit.Money,
			idempotency: byReceiptAlways, durabilityHeader: true, handle: withoutBody(s.leaveTournament),
			ownErrors: entrantErrors,
		},
		{
			method: post, path: tournament + "/check-in", callers: player, rateLimitClass: ratelimit.Money,
			idempotency: byReceipt, durabilityHeader: true, handle: withoutBody(s.checkIntoTournament),
			ownErrors: append(slices.Clone(entrantErrors), apierror.CheckInClosed),
		},
		{
			method: post, path: tournament + "/attempts", callers: player, rateLimitClass: ratelimit.Write,
			idempotency: byStoredResponse, durabilityHeader: true, handle: withoutBody(s.startAttempt),
			ownErrors: append(slices.Clone(entrantErrors), apierror.AttemptsUsedUp, apierror.VersionConflict),
		},
		{
			method: post, path: admin + "games/{gameId}/tournaments", callers: staff, rateLimitClass: ratelimit.Admin,
			idempotency: byReceipt, durabilityHeader: true, handle: withBody(s.createTournament), action: "createTournament",
			ownErrors: errorList{
				apierror.InvalidAmount, apierror.InsufficientFunds, apierror.Forbidden, apierror.GameNotFound,
				apierror.TokenNotFound, apierror.LimitReached, apierror.VersionConflict,
			},
		},
		{
			method: del, path: adminTournament, callers: staff, rateLimitClass: ratelimit.Admin, durabilityHeader: true,
			handle: s.deleteTournament, action: "deleteTournament", readBefore: s.getTournament, ownErrors: tournamentErrors,
		},
		{
			method: post, path: adminTournament + "/start", callers: staff, rateLimitClass: ratelimit.Admin,
			idempotency: byStoredResponse, durabilityHeader: true, handle: withoutBody(s.startTournament),
			action: "startTournament", readBefore: s.getTournament,
			ownErrors: append(slices.Clone(tournamentErrors), apierror.TournamentClosed, apierror.VersionConflict),
		},
		{
			method: post, path: adminTournament + "/cancel", callers: staff, rateLimitClass: ratelimit.Admin,
			idempotency: byStoredResponse, durabilityHeader: true, handle: withOptionalBody(s.cancelTournament),
			action: "cancelTournament", readBefore: s.getTournament,
			ownErrors: append(slices.Clone(tournamentErrors), apierror.TournamentClosed, apierror.VersionConflict),
		},
		{
			method: post, path: adminTournament + "/entrants/{userId}/disqualify", callers: staff,
			rateLimitClass: ratelimit.Admin, idempotency: byReceipt, durabilityHeader: true,
			handle: withOptionalBody(s.disqualifyEntrant), action: "disqualifyEntrant", readBefore: s.getTournament,
			ownErrors: entrantErrors,
		},
		{
			method: post, path: adminTournament + "/matches/{matchId}/resolve", callers: staff, rateLimitClass: ratelimit.Admin,
			idempotency: byStoredResponse, durabilityHeader: true, handle: withBody(s.resolveMatch), action: "resolveMatch",
			ownErrors: append(slices.Clone(tournamentErrors), apierror.TournamentClosed, apierror.MatchNotFound,
				apierror.MatchDecided, apierror.VersionConflict),
		},

		{
			method: post, path: admin + "games", callers: operator, rateLimitClass: ratelimit.Admin,
			idempotency: byStoredResponse, handle: withBody(s.createGame), action: "createGame",
			ownErrors: errorList{apierror.InvalidAmount, apierror.TokenNotFound},
		},
		{
			method: get, path: admin + "games", callers: operator, rateLimitClass: ratelimit.Admin,
			query: []string{"limit", "cursor"}, handle: s.listGames, ownErrors: errorList{apierror.InvalidRequest},
		},
		{
			method: get, path: admin + "games/{gameId}", callers: staff, rateLimitClass: ratelimit.Admin, handle: s.getGame,
			ownErrors: errorList{apierror.GameNotFound},
		},
		{
			method: patch, path: admin + "games/{gameId}", callers: staff, rateLimitClass: ratelimit.Admin,
			handle: withBody(s.patchGame), action: "patchGame", readBefore: s.readPathGame,
			ownErrors: errorList{
				apierror.InvalidAmount, apierror.GameNotFound, apierror.TokenNotFound, apierror.VersionConflict,
			},
		},
		{
			method: post, path: admin + "games/{gameId}/server-keys", callers: operator, rateLimitClass: ratelimit.Admin,
			idempotency: byStoredResponse, handle: withoutBody(s.addServerKey), action: "addServerKey",
			readBefore: s.readPathGame, ownErrors: errorList{apierror.GameNotFound},
		},
		{
			method: del, path: admin + "games/{gameId}/server-keys/{keyId}", callers: operator, rateLimitClass: ratelimit.Admin,
			handle: s.revokeServerKey, action: "revokeServerKey", readBefore: s.readPathGame,
			ownErrors: errorList{apierror.InvalidRequest, apierror.GameNotFound},
		},
		{
			method: post, path: admin + "games/{gameId}/assets", callers: staff, rateLimitClass: ratelimit.Admin,
			idempotency: byStoredResponse, handle: withBody(s.createAsset), action: "createAsset",
			ownErrors: errorList{apierror.InvalidAmount, apierror.GameNotFound, apierror.TokenNotFound, apierror.LimitReached},
		},
		{
			method: get, path: admin + "games/{gameId}/assets", callers: staff, rateLimitClass: ratelimit.Admin,
			query: []string{"limit", "cursor"}, handle: s.listAssets,
			ownErrors: errorList{apierror.InvalidRequest, apierror.GameNotFound},
		},
		{
			method: get, path: admin + "games/{gameId}/assets/{assetId}", callers: staff, rateLimitClass: ratelimit.Admin,
			handle: s.getAsset, ownErrors: errorList{apierror.GameNotFound, apierror.AssetNotFound},
		},
		{
			method: del, path: admin + "games/{gameId}/assets/{assetId}", callers: staff, rateLimitClass: ratelimit.Admin,
			handle: s.deleteAsset, action: "deleteAsset", readBefore: s.getAsset,
			ownErrors: errorList{apierror.InvalidRequest, apierror.GameNotFound, apierror.AssetNotFound},
		},
		{
			method: patch, path: admin + "games/{gameId}/assets/{assetId}", callers: staff, rateLimitClass: ratelimit.Admin,
			handle: withBody(s.patchAsset), action: "patchAsset", readBefore: s.getAsset,
			ownErrors: errorList{apierror.InvalidAmount, apierror.GameNotFound, apierror.AssetNotFound},
		},
		{
			method: post, path: admin + "tokens", callers: operator, rateLimitClass: ratelimit.Admin,
			idempotency: byStoredResponse, handle: withBody(s.createToken), action: "createToken",
			ownErrors: errorList{apierror.InvalidAmount, apierror.TokenCodeTaken},
		},
		{method: get, path: admin + "tokens", callers: operator, rateLimitClass: ratelimit.Admin, handle: s.listTokens},
		{
			method: get, path: admin + "tokens/{tokenId}", callers: operator, rateLimitClass: ratelimit.Admin,
			handle: s.getToken, ownErrors: errorList{apierror.TokenNotFound},
		},
		{
			method: patch, path: admin + "tokens/{tokenId}", callers: operator, rateLimitClass: ratelimit.Admin,
			handle: withBody(s.patchToken), action: "patchToken", readBefore: s.getToken,
			ownErrors: errorList{apierror.InvalidAmount, apierror.TokenNotFound},
		},
		{
			method: get, path: admin + "users/{userId}", callers: staff, rateLimitClass: ratelimit.Admin, durabilityHeader: true,
			handle: s.getUser, ownErrors: errorList{apierror.UserNotFound},
		},
		{
			method: get, path: admin + "users", callers: staff, rateLimitClass: ratelimit.Admin,
			query: []string{"gameId", "limit", "cursor"}, handle: s.listUsers,
			ownErrors: errorList{apierror.InvalidRequest, apierror.GameNotFound},
		},
		{
			method: get, path: admin + "users/{userId}/ledger", callers: staff, rateLimitClass: ratelimit.Admin,
			durabilityHeader: true, query: []string{"tokenId", "limit", "cursor"}, handle: s.listUserLedger,
			ownErrors: errorList{apierror.InvalidRequest, apierror.UserNotFound, apierror.TokenNotFound},
		},
		{
			method: get, path: admin + "users/{userId}/limits", callers: staff, rateLimitClass: ratelimit.Admin,
			durabilityHeader: true, query: []string{"tokenId"}, handle: s.listUserLimits,
			ownErrors: errorList{apierror.InvalidRequest, apierror.UserNotFound, apierror.TokenNotFound},
		},
		{
			method: put, path: admin + "users/{userId}/limits", callers: operator, rateLimitClass: ratelimit.Admin,
			durabilityHeader: true, handle: withBody(s.tightenUserLimits), action: "tightenUserLimits",
			readBefore: s.readUserLimits,
			ownErrors: errorList{
				apierror.InvalidAmount, apierror.UserNotFound, apierror.TokenNotFound, apierror.SelfExcluded,
				apierror.VersionConflict,
			},
		},
		{
			method: get, path: admin + "users/{userId}/sessions", callers: operator, rateLimitClass: ratelimit.Admin,
			handle: s.listUserSessions, ownErrors: errorList{apierror.UserNotFound},
		},
		{
			method: get, path: admin + "users/{userId}/saves", callers: staff, rateLimitClass: ratelimit.Admin,
			handle: s.listUserSaves, ownErrors: errorList{apierror.UserNotFound},
		},
		{
			method: get, path: admin + "users/{userId}/saves/{slot}", callers: staff, rateLimitClass: ratelimit.Admin,
			handle:    s.getUserSave,
			ownErrors: errorList{apierror.InvalidRequest, apierror.UserNotFound, apierror.SlotNotFound, apierror.SaveTampered},
		},
		{
			method: post, path: admin + "users/{userId}/suspend", callers: operator, rateLimitClass: ratelimit.Admin,
			idempotency: byStoredResponse, handle: withBody(s.suspendUser), action: "suspendUser", readBefore: s.readPathPlayer,
			ownErrors: errorList{apierror.UserNotFound},
		},
		{
			method: post, path: admin + "users/{userId}/unsuspend", callers: operator, rateLimitClass: ratelimit.Admin,
			idempotency: byStoredResponse, handle: withoutBody(s.unsuspendUser), action: "unsuspendUser",
			readBefore: s.readPathPlayer, ownErrors: errorList{apierror.UserNotFound},
		},
		{
			method: del, path: admin + "users/{userId}/sessions", callers: operator, rateLimitClass: ratelimit.Admin,
			handle: s.endUserSessions, action: "endUserSessions", ownErrors: errorList{apierror.UserNotFound},
		},
		{
			method: post, path: admin + "users/{userId}/credit", callers: staff, rateLimitClass: ratelimit.Admin,
			idempotency: byReceiptKeyRequired, durabilityHeader: true, handle: withBody(s.creditUser), action: "credit",
			ownErrors: errorList{apierror.InvalidAmount, apierror.UserNotFound, apierror.TokenNotFound, apierror.LimitReached},
		},
		{
			method: post, path: admin + "users/{userId}/debit", callers: staff, rateLimitClass: ratelimit.Admin,
			idempotency: byReceiptKeyRequired, durabilityHeader: true, handle: withBody(s.debitUser), action: "debit",
			ownErrors: errorList{
				apierror.InvalidAmount, apierror.InsufficientFunds, apierror.UserNotFound, apierror.TokenNotFound,
			},
		},
		{
			method: put, path: admin + "users/{userId}/saves/{slot}", callers: staff, rateLimitClass: ratelimit.Admin,
			durabilityHeader: true, handle: withSaveBody(s.replaceSave), action: "replaceSave",
			ownErrors: errorList{
				apierror.UserNotFound, apierror.VersionConflict, apierror.LimitReached, apierror.SaveRejected,
				apierror.SaveTampered,
			},
		},
		{
			method: get, path: admin + "rooms", callers: staff, rateLimitClass: ratelimit.Admin, durabilityHeader: true,
			query: []string{"gameId", "status", "limit", "cursor"}, handle: s.listRoomsAsAdmin, ownErrors: listErrors,
		},
		{
			method: get, path: admin + "rooms/{roomId}/events", callers: staff, rateLimitClass: ratelimit.Admin,
			durabilityHeader: true, query: []string{"after"}, handle: s.listRoomEvents,
			ownErrors: errorList{apierror.InvalidRequest, apierror.RoomNotFound},
		},
		{
			method: post, path: admin + "rooms/{roomId}/resolve", callers: operator, rateLimitClass: ratelimit.Admin,
			idempotency: byReceipt, durabilityHeader: true, handle: withBody(s.resolveRoom), action: "resolveRoom",
			readBefore: s.readPathRoom,
			ownErrors: errorList{
				apierror.RoomNotFound, apierror.NotDisputed, apierror.ResultConflict, apierror.VersionConflict,
			},
		},
		{
			method: get, path: admin + "games/{gameId}/ledger", callers: operator, rateLimitClass: ratelimit.Admin,
			durabilityHeader: true, query: []string{"limit", "cursor"}, handle: s.listGameLedger,
			ownErrors: errorList{apierror.InvalidRequest, apierror.GameNotFound},
		},
		{method: get, path: admin + "nodes", callers: operator, rateLimitClass: ratelimit.Admin, handle: s.listNodes},
		{
			method: post, path: admin + "console-links", callers: operator, rateLimitClass: ratelimit.Admin,
			idempotency: byStoredResponse, handle: withoutBody(s.createConsoleLink), action: "createConsoleLink",
		},
		{
			method: del, path: admin + "console-sessions", callers: operator, rateLimitClass: ratelimit.Admin,
			handle: s.closeConsoleSessions, action: "closeConsoleSessions",
		},
		{
			method: get, path: admin + "trail", callers: operator, rateLimitClass: ratelimit.Admin,
			query: []string{"actor", "target", "gameId", "from", "limit", "cursor"}, handle: s.listTrail,
			ownErrors: errorList{apierror.InvalidRequest},
		},
		{
			method: post, path: admin + "games/{gameId}/accept-audit", callers: operator, rateLimitClass: ratelimit.Admin,
			idempotency: byStoredResponse, handle: withBody(s.acceptAudit), action: "acceptAudit",
			ownErrors: errorList{apierror.GameNotFound},
		},
		{
			method: get, path: admin + "audit", callers: operator, rateLimitClass: ratelimit.Admin, durabilityHeader: true,
			query: []string{"gameId"}, handle: s.auditWallets, ownErrors: auditErrors,
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
			method: get, path: realtimePath, callers: player | orTicket, rateLimitClass: ratelimit.Socket,
			query: []string{"ticket", "protocol"}, handle: s.upgradeHandler(s.realtimeEndpoint), ownErrors: socketErrors,
		},

		{method: get, path: "/healthz", handle: s.healthz},
		{method: get, path: "/balancez", handle: s.balancez, ownErrors: errorList{apierror.RouteNotFound}},
		{method: get, path: "/readyz", handle: s.readyz, ownErrors: errorList{apierror.Draining, apierror.StoreUnavailable}},
		{method: get, path: "/openapi.yaml", handle: documentHandler(openAPIText)},
		{method: get, path: "/asyncapi.yaml", handle: documentHandler(asyncAPIText)},
	}
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

// A validator is an input that no domain can check alone, beyond the members that its type
// requires. It may set defaults, so that a request with a default and one without
// it are the same request.
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
