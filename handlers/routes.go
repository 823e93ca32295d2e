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
	method, path     string // the path as openapi.yaml spells it
	callers          callers
	rateLimitClass   ratelimit.Class // of rate limits; "" has none
	idempotency      idempotencyMode
	durabilityHeader bool // the response has the header Parlor-Durability
	handle           func(*request) (response, error)
	ownErrors        errorList // that handle returns beyond those of commonErrors
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

// routes lists every operation. Their query parameters are in queryParameters.
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
			post, "/api/v1/auth/guest", anyone, ratelimit.SignIn, byStoredResponse, false, withBody(s.signInGuest),
			errorList{apierror.GameNotFound, apierror.AccountSuspended, apierror.LimitReached},
		},
		{
			post, "/api/v1/auth/exchange", server, ratelimit.Admin, byStoredResponse, false, withBody(s.signInExternal),
			errorList{apierror.AccountSuspended, apierror.LimitReached},
		},
		{
			post, "/api/v1/auth/refresh", anyone, ratelimit.SignIn, byStoredResponse, false, withBody(s.refreshSession),
			errorList{apierror.Unauthenticated, apierror.RefreshTokenReused, apierror.AccountSuspended},
		},
		{
			post, "/api/v1/auth/logout", anyone, ratelimit.SignIn, byStoredResponse, false, withOptionalBody(s.logout),
			errorList{apierror.Unauthenticated, apierror.AccessTokenExpired},
		},
		{
			post, "/api/v1/auth/link", player | server, ratelimit.SignIn, byStoredResponse, false, withBody(s.linkIdentity),
			errorList{apierror.UserNotFound, apierror.AlreadyLinked},
		},
		{post, "/api/v1/auth/ticket", player, ratelimit.Socket, byStoredResponse, false, withoutBody(s.issueTicket), nil},

		{get, "/api/v1/me", player, ratelimit.Read, keyIgnored, false, s.getMe, errorList{apierror.UserNotFound}},
		{
			patch, "/api/v1/me", player, ratelimit.Write, keyIgnored, false, withBody(s.patchMe),
			errorList{apierror.UserNotFound},
		},
		{del, "/api/v1/me", player, ratelimit.Write, keyIgnored, false, s.deleteMe, errorList{apierror.MoneyHeld}},
		{
			get, "/api/v1/me/limits", player, ratelimit.Read, keyIgnored, true, s.listMyLimits,
			errorList{apierror.InvalidRequest, apierror.TokenNotFound},
		},
		{
			put, "/api/v1/me/limits", player, ratelimit.Write, keyIgnored, true, withBody(s.setMyLimits),
			errorList{apierror.InvalidAmount, apierror.TokenNotFound, apierror.SelfExcluded, apierror.VersionConflict},
		},
		{
			get, "/api/v1/friends", player, ratelimit.Read, keyIgnored, false, s.listFriends,
			errorList{apierror.InvalidRequest},
		},
		{
			post, "/api/v1/friends/{userId}", player, ratelimit.Write, byStoredResponse, false, withoutBody(s.befriendUser),
			errorList{apierror.UserNotFound},
		},
		{
			del, "/api/v1/friends/{userId}", player, ratelimit.Write, keyIgnored, false, s.unfriendUser,
			errorList{apierror.InvalidRequest, apierror.UserNotFound},
		},
		{
			post, "/api/v1/friends/{userId}/block", player, ratelimit.Write, byStoredResponse, false, withoutBody(s.blockUser),
			errorList{apierror.UserNotFound},
		},

		{
			post, session + "create", player, ratelimit.Money, byReceipt, true, withBody(s.createRoom),
			append(errorList{
				apierror.InvalidAmount, apierror.InsufficientFunds, apierror.UserNotFound, apierror.GameNotFound,
				apierror.TokenNotFound, apierror.VersionConflict, apierror.LimitReached,
			}, ownLimits...),
		},
		{
			get, session + "get", everyone, ratelimit.Read, keyIgnored, true, s.getRoom,
			errorList{apierror.InvalidRequest, apierror.GameNotFound, apierror.RoomNotFound},
		},
		{get, session + "list", everyone, ratelimit.Read, keyIgnored, true, s.listRooms, listErrors},
		{post, session + "join", player, ratelimit.Money, byReceipt, true, withBody(s.joinRoom), joinErrors},
		{post, "/join", player, ratelimit.Money, byReceipt, true, withBody(s.joinRoom), joinErrors},
		{
			post, session + "leave", player, ratelimit.Money, byReceiptAlways, true, withBody(s.leaveRoom),
			errorList{
				apierror.RoomNotFound, apierror.RoomEnded, apierror.NotParticipant, apierror.VersionConflict,
				apierror.RoomDisputed,
			},
		},
		{
			post, session + "ready", player, ratelimit.Money, byReceipt, true, withBody(s.setReady),
			errorList{apierror.RoomNotFound, apierror.RoomEnded, apierror.AlreadyStarted, apierror.NotParticipant},
		},
		{
			post, session + "kick", player | server, ratelimit.Money, byReceipt, true, withBody(s.kickPlayer),
			errorList{
				apierror.RoomNotFound, apierror.RoomEnded, apierror.NotHost, apierror.AlreadyStarted, apierror.NotParticipant,
				apierror.VersionConflict, apierror.LimitReached,
			},
		},
		{
			post, session + "transfer-host", player | server, ratelimit.Money, byReceipt, true, withBody(s.transferHost),
			errorList{apierror.RoomNotFound, apierror.RoomEnded, apierror.NotHost, apierror.NotParticipant},
		},
		{
			post, session + "start", player | server, ratelimit.Money, byReceipt, true, withBody(s.startRoom),
			errorList{
				apierror.RoomNotFound, apierror.RoomEnded, apierror.NotHost, apierror.AlreadyStarted, apierror.NotEnoughPlayers,
			},
		},
		{
			post, statePath, player | server, ratelimit.Write, byReceipt, true, withBody(s.setSharedState),
			errorList{
				apierror.RoomNotFound, apierror.RoomEnded, apierror.NotHost, apierror.NotParticipant, apierror.VersionConflict,
				apierror.RoomDisputed, apierror.LimitReached, apierror.GameNotFound,
			},
		},
		{
			post, turnPath, player | server, ratelimit.Write, byReceipt, true, withBody(s.setTurn),
			errorList{
				apierror.RoomNotFound, apierror.RoomEnded, apierror.NotHost, apierror.NotStarted, apierror.NotParticipant,
				apierror.RoomDisputed, apierror.GameNotFound,
			},
		},
		{
			post, session + "finish", player | server, ratelimit.Money, byReceiptKeyRequired, true, withBody(s.finishRoom),
			errorList{
				apierror.RoomNotFound, apierror.RoomEnded, apierror.NotStarted, apierror.ResultConflict,
				apierror.VersionConflict, apierror.NotParticipant, apierror.RoomDisputed,
			},
		},
		{
			post, session + "cancel", everyone, ratelimit.Money, byReceipt, true, withBody(s.cancelRoom),
			errorList{
				apierror.RoomNotFound, apierror.RoomEnded, apierror.NotHost, apierror.AlreadyStarted, apierror.VersionConflict,
			},
		},
		{
			post, session + "rematch", player, ratelimit.Money, byReceipt, true, withBody(s.rematchRoom),
			append(errorList{
				apierror.UserNotFound, apierror.RoomNotFound, apierror.NotParticipant, apierror.NotStarted,
				apierror.AlreadyStarted, apierror.InsufficientFunds, apierror.VersionConflict, apierror.LimitReached,
			}, ownLimits...),
		},

		{get, "/api/v1/user-balance/token-balances", player, ratelimit.Read, keyIgnored, true, s.listBalances, nil},
		{
			get, "/api/v1/user-balance/ledger", player, ratelimit.Read, keyIgnored, true, s.listLedger,
			errorList{apierror.InvalidRequest, apierror.TokenNotFound},
		},
		{
			post, "/api/v1/user-assets/add/game-asset/{gameAssetId}", player, ratelimit.Money, byReceiptKeyRequired, true,
			withOptionalBody(s.purchaseAsset),
			errorList{
				apierror.InvalidAmount, apierror.InsufficientFunds, apierror.AssetNotFound, apierror.PriceChanged,
				apierror.StockTooSmall, apierror.PerUserLimitReached,
			},
		},
		{
			get, "/api/v1/user-assets", player, ratelimit.Read, keyIgnored, true, s.listOwnedAssets,
			errorList{apierror.InvalidRequest},
		},
		{
			get, "/api/v1/game-assets", everyone, ratelimit.Read, keyIgnored, false, s.listCatalogue,
			errorList{apierror.InvalidRequest, apierror.GameNotFound},
		},

		{get, "/api/v1/leaderboards", everyone, ratelimit.Read, keyIgnored, false, s.listBoards, boardErrors},
		{get, board, everyone, ratelimit.Read, keyIgnored, false, s.getBoard, boardErrors},
		{
			post, board + "/plays", player, ratelimit.Write, byStoredResponse, false, withoutBody(s.startPlay),
			append(slices.Clone(boardErrors), apierror.SeasonClosed, apierror.VersionConflict),
		},
		{
			post, board + "/scores", everyone, ratelimit.Write, byReceipt, true, withBody(s.submitScore),
			append(slices.Clone(scoreErrors),
				apierror.Forbidden, apierror.PlayNotFound, apierror.PlayUsed, apierror.PlayExpired),
		},
		{post, board + "/scores/batch", staff, ratelimit.Admin, byReceipt, true, withBody(s.submitScores), boardErrors},
		{get, board + "/entries", everyone, ratelimit.Read, keyIgnored, false, s.listEntries, entryErrors},
		{get, board + "/entries/around", player, ratelimit.Read, keyIgnored, false, s.listEntriesAround, entryErrors},
		{get, board + "/entries/friends", player, ratelimit.Read, keyIgnored, false, s.listEntriesOfFriends, entryErrors},
		{get, board + "/entries/{userId}", everyone, ratelimit.Read, keyIgnored, false, s.getEntry, entryErrors},
		{get, board + "/league", player, ratelimit.Read, keyIgnored, false, s.getLeague, entryErrors},
		{get, board + "/seasons", everyone, ratelimit.Read, keyIgnored, false, s.listSeasons, boardErrors},

		{
			post, admin + "games/{gameId}/leaderboards", staff, ratelimit.Admin, byStoredResponse, false,
			withBody(s.createBoard),
			errorList{
				apierror.InvalidAmount, apierror.GameNotFound, apierror.BoardExists, apierror.VersionConflict,
				apierror.LimitReached,
			},
		},
		{
			get, admin + "games/{gameId}/leaderboards", staff, ratelimit.Admin, keyIgnored, false, s.listBoards,
			boardErrors,
		},
		{get, adminBoard, staff, ratelimit.Admin, keyIgnored, false, s.getBoard, boardErrors},
		{
			patch, adminBoard, staff, ratelimit.Admin, keyIgnored, false, withBody(s.patchBoard),
			append(slices.Clone(boardErrors), apierror.InvalidAmount, apierror.VersionConflict),
		},
		{
			del, adminBoard, staff, ratelimit.Admin, keyIgnored, false, s.deleteBoard,
			append(slices.Clone(boardErrors), apierror.VersionConflict),
		},
		{
			post, adminBoard + "/seasons/{season}/end", staff, ratelimit.Admin, byStoredResponse, false,
			withBody(s.endSeason), seasonErrors,
		},
		{
			post, adminBoard + "/seasons/{season}/approve", staff, ratelimit.Admin, byStoredResponse, false,
			withBody(s.approveSeason), seasonErrors,
		},
		{
			post, adminBoard + "/seasons/{season}/void", staff, ratelimit.Admin, byStoredResponse, false,
			withBody(s.voidSeason), seasonErrors,
		},
		{
			post, adminEntry + "/hide", staff, ratelimit.Admin, byStoredResponse, false, withBody(s.hideEntry),
			append(slices.Clone(entryErrors), apierror.VersionConflict),
		},
		{
			post, adminEntry + "/unhide", staff, ratelimit.Admin, byStoredResponse, false, withBody(s.unhideEntry),
			append(slices.Clone(entryErrors), apierror.VersionConflict),
		},
		{
			post, adminEntry + "/remove", staff, ratelimit.Admin, byStoredResponse, false, withBody(s.removeEntry),
			append(slices.Clone(entryErrors), apierror.VersionConflict),
		},

		{
			get, "/api/v1/tournaments", everyone, ratelimit.Read, keyIgnored, true, s.listTournaments,
			errorList{apierror.InvalidRequest, apierror.GameNotFound},
		},
		{get, tournament, everyone, ratelimit.Read, keyIgnored, true, s.getTournament, tournamentErrors},
		{get, tournament + "/entrants", everyone, ratelimit.Read, keyIgnored, true, s.listEntrants, tournamentErrors},
		{get, tournament + "/matches", everyone, ratelimit.Read, keyIgnored, true, s.listMatches, tournamentErrors},
		{get, tournament + "/standings", everyone, ratelimit.Read, keyIgnored, true, s.listStandings, tournamentErrors},
		{
			post, tournament + "/join", player, ratelimit.Money, byReceipt, true, withoutBody(s.joinTournament),
			append(append(slices.Clone(tournamentErrors), apierror.InsufficientFunds, apierror.Forbidden,
				apierror.Disqualified, apierror.TournamentFull, apierror.RegistrationClosed, apierror.TournamentClosed,
				apierror.LimitReached, apierror.UserNotFound), ownLimits...),
		},
		{
			post, tournament + "/leave", player, ratelimit.Money, byReceiptAlways, true, withoutBody(s.leaveTournament),
			entrantErrors,
		},
		{
			post, tournament + "/check-in", player, ratelimit.Money, byReceipt, true, withoutBody(s.checkIntoTournament),
			append(slices.Clone(entrantErrors), apierror.CheckInClosed),
		},
		{
			post, tournament + "/attempts", player, ratelimit.Write, byStoredResponse, true, withoutBody(s.startAttempt),
			append(slices.Clone(entrantErrors), apierror.AttemptsUsedUp, apierror.VersionConflict),
		},
		{
			post, admin + "games/{gameId}/tournaments", staff, ratelimit.Admin, byReceipt, true,
			withBody(s.createTournament),
			errorList{
				apierror.InvalidAmount, apierror.InsufficientFunds, apierror.Forbidden, apierror.GameNotFound,
				apierror.TokenNotFound, apierror.LimitReached, apierror.VersionConflict,
			},
		},
		{
			del, adminTournament, staff, ratelimit.Admin, keyIgnored, true, s.deleteTournament,
			tournamentErrors,
		},
		{
			post, adminTournament + "/start", staff, ratelimit.Admin, byStoredResponse, true,
			withoutBody(s.startTournament),
			append(slices.Clone(tournamentErrors), apierror.TournamentClosed, apierror.VersionConflict),
		},
		{
			post, adminTournament + "/cancel", staff, ratelimit.Admin, byStoredResponse, true,
			withOptionalBody(s.cancelTournament),
			append(slices.Clone(tournamentErrors), apierror.TournamentClosed, apierror.VersionConflict),
		},
		{
			post, adminTournament + "/entrants/{userId}/disqualify", staff, ratelimit.Admin, byReceipt, true,
			withOptionalBody(s.disqualifyEntrant), entrantErrors,
		},
		{
			post, adminTournament + "/matches/{matchId}/resolve", staff, ratelimit.Admin, byStoredResponse, true,
			withBody(s.resolveMatch),
			append(slices.Clone(tournamentErrors), apierror.TournamentClosed, apierror.MatchNotFound,
				apierror.MatchDecided, apierror.VersionConflict),
		},

		{
			post, admin + "games", operator, ratelimit.Admin, byStoredResponse, false, withBody(s.createGame),
			errorList{apierror.InvalidAmount, apierror.TokenNotFound},
		},
		{get, admin + "games", operator, ratelimit.Admin, keyIgnored, false, s.listGames, errorList{apierror.InvalidRequest}},
		{
			get, admin + "games/{gameId}", staff, ratelimit.Admin, keyIgnored, false, s.getGame,
			errorList{apierror.GameNotFound},
		},
		{
			patch, admin + "games/{gameId}", staff, ratelimit.Admin, keyIgnored, false, withBody(s.patchGame),
			errorList{apierror.InvalidAmount, apierror.GameNotFound, apierror.TokenNotFound, apierror.VersionConflict},
		},
		{
			post, admin + "games/{gameId}/server-keys", operator, ratelimit.Admin, byStoredResponse, false,
			withoutBody(s.addServerKey),
			errorList{apierror.GameNotFound},
		},
		{
			del, admin + "games/{gameId}/server-keys/{keyId}", operator, ratelimit.Admin, keyIgnored, false, s.revokeServerKey,
			errorList{apierror.InvalidRequest, apierror.GameNotFound},
		},
		{
			post, admin + "games/{gameId}/assets", staff, ratelimit.Admin, byStoredResponse, false, withBody(s.createAsset),
			errorList{apierror.InvalidAmount, apierror.GameNotFound, apierror.TokenNotFound, apierror.LimitReached},
		},
		{
			get, admin + "games/{gameId}/assets", staff, ratelimit.Admin, keyIgnored, false, s.listAssets,
			errorList{apierror.InvalidRequest, apierror.GameNotFound},
		},
		{
			get, admin + "games/{gameId}/assets/{assetId}", staff, ratelimit.Admin, keyIgnored, false, s.getAsset,
			errorList{apierror.GameNotFound, apierror.AssetNotFound},
		},
		{
			del, admin + "games/{gameId}/assets/{assetId}", staff, ratelimit.Admin, keyIgnored, false, s.deleteAsset,
			errorList{apierror.InvalidRequest, apierror.GameNotFound, apierror.AssetNotFound},
		},
		{
			patch, admin + "games/{gameId}/assets/{assetId}", staff, ratelimit.Admin, keyIgnored, false, withBody(s.patchAsset),
			errorList{apierror.InvalidAmount, apierror.GameNotFound, apierror.AssetNotFound},
		},
		{
			post, admin + "tokens", operator, ratelimit.Admin, byStoredResponse, false, withBody(s.createToken),
			errorList{apierror.InvalidAmount, apierror.TokenCodeTaken},
		},
		{get, admin + "tokens", operator, ratelimit.Admin, keyIgnored, false, s.listTokens, nil},
		{
			get, admin + "tokens/{tokenId}", operator, ratelimit.Admin, keyIgnored, false, s.getToken,
			errorList{apierror.TokenNotFound},
		},
		{
			patch, admin + "tokens/{tokenId}", operator, ratelimit.Admin, keyIgnored, false, withBody(s.patchToken),
			errorList{apierror.InvalidAmount, apierror.TokenNotFound},
		},
		{
			get, admin + "users/{userId}", staff, ratelimit.Admin, keyIgnored, true, s.getUser,
			errorList{apierror.UserNotFound},
		},
		{
			get, admin + "users", staff, ratelimit.Admin, keyIgnored, false, s.listUsers,
			errorList{apierror.InvalidRequest, apierror.GameNotFound},
		},
		{
			get, admin + "users/{userId}/ledger", staff, ratelimit.Admin, keyIgnored, true, s.listUserLedger,
			errorList{apierror.InvalidRequest, apierror.UserNotFound, apierror.TokenNotFound},
		},
		{
			get, admin + "users/{userId}/limits", staff, ratelimit.Admin, keyIgnored, true, s.listUserLimits,
			errorList{apierror.InvalidRequest, apierror.UserNotFound, apierror.TokenNotFound},
		},
		{
			put, admin + "users/{userId}/limits", operator, ratelimit.Admin, keyIgnored, true, withBody(s.tightenUserLimits),
			errorList{
				apierror.InvalidAmount, apierror.UserNotFound, apierror.TokenNotFound, apierror.SelfExcluded,
				apierror.VersionConflict,
			},
		},
		{
			get, admin + "users/{userId}/sessions", operator, ratelimit.Admin, keyIgnored, false, s.listUserSessions,
			errorList{apierror.UserNotFound},
		},
		{
			get, admin + "users/{userId}/saves", staff, ratelimit.Admin, keyIgnored, false, s.listUserSaves,
			errorList{apierror.UserNotFound},
		},
		{
			get, admin + "users/{userId}/saves/{slot}", staff, ratelimit.Admin, keyIgnored, false, s.getUserSave,
			errorList{apierror.InvalidRequest, apierror.UserNotFound, apierror.SlotNotFound, apierror.SaveTampered},
		},
		{
			post, admin + "users/{userId}/suspend", operator, ratelimit.Admin, byStoredResponse, false,
			withBody(s.suspendUser),
			errorList{apierror.UserNotFound},
		},
		{
			post, admin + "users/{userId}/unsuspend", operator, ratelimit.Admin, byStoredResponse, false,
			withoutBody(s.unsuspendUser),
			errorList{apierror.UserNotFound},
		},
		{
			del, admin + "users/{userId}/sessions", operator, ratelimit.Admin, keyIgnored, false, s.endUserSessions,
			errorList{apierror.UserNotFound},
		},
		{
			post, admin + "users/{userId}/credit", staff, ratelimit.Admin, byReceiptKeyRequired, true, withBody(s.creditUser),
			errorList{apierror.InvalidAmount, apierror.UserNotFound, apierror.TokenNotFound, apierror.LimitReached},
		},
		{
			post, admin + "users/{userId}/debit", staff, ratelimit.Admin, byReceiptKeyRequired, true, withBody(s.debitUser),
			errorList{apierror.InvalidAmount, apierror.InsufficientFunds, apierror.UserNotFound, apierror.TokenNotFound},
		},
		{
			put, admin + "users/{userId}/saves/{slot}", staff, ratelimit.Admin, keyIgnored, true, withSaveBody(s.replaceSave),
			errorList{
				apierror.UserNotFound, apierror.VersionConflict, apierror.LimitReached, apierror.SaveRejected,
				apierror.SaveTampered,
			},
		},
		{get, admin + "rooms", staff, ratelimit.Admin, keyIgnored, true, s.listRoomsAsAdmin, listErrors},
		{
			get, admin + "rooms/{roomId}/events", staff, ratelimit.Admin, keyIgnored, true, s.listRoomEvents,
			errorList{apierror.InvalidRequest, apierror.RoomNotFound},
		},
		{
			post, admin + "rooms/{roomId}/resolve", operator, ratelimit.Admin, byReceipt, true, withBody(s.resolveRoom),
			errorList{
				apierror.RoomNotFound, apierror.NotDisputed, apierror.ResultConflict, apierror.VersionConflict,
			},
		},
		{
			get, admin + "games/{gameId}/ledger", operator, ratelimit.Admin, keyIgnored, true, s.listGameLedger,
			errorList{apierror.InvalidRequest, apierror.GameNotFound},
		},
		{get, admin + "nodes", operator, ratelimit.Admin, keyIgnored, false, s.listNodes, nil},
		{
			post, admin + "console-links", operator, ratelimit.Admin, byStoredResponse, false,
			withoutBody(s.createConsoleLink), nil,
		},
		{
			del, admin + "console-sessions", operator, ratelimit.Admin, keyIgnored, false, s.closeConsoleSessions, nil,
		},
		{get, admin + "trail", operator, ratelimit.Admin, keyIgnored, false, s.listTrail, errorList{apierror.InvalidRequest}},
		{
			post, admin + "games/{gameId}/accept-audit", operator, ratelimit.Admin, byStoredResponse, false,
			withBody(s.acceptAudit),
			errorList{apierror.GameNotFound},
		},
		{get, admin + "audit", operator, ratelimit.Admin, keyIgnored, true, s.auditWallets, auditErrors},

		{
			get, "/api/v1/game-data/save", player | orTicket, ratelimit.Socket, keyIgnored, false,
			s.upgradeHandler(s.saveEndpoint), socketErrors,
		},
		{
			get, "/api/v1/game-data/load", player | orTicket, ratelimit.Socket, keyIgnored, false,
			s.upgradeHandler(s.saveEndpoint), socketErrors,
		},
		{
			get, realtimePath, player | orTicket, ratelimit.Socket, keyIgnored, false,
			s.upgradeHandler(s.realtimeEndpoint), socketErrors,
		},

		{get, "/healthz", anyone, "", keyIgnored, false, s.healthz, nil},
		{get, "/balancez", anyone, "", keyIgnored, false, s.balancez, errorList{apierror.RouteNotFound}},
		{get, "/readyz", anyone, "", keyIgnored, false, s.readyz, errorList{apierror.Draining, apierror.StoreUnavailable}},
		{get, "/openapi.yaml", anyone, "", keyIgnored, false, documentHandler(openAPIText), nil},
		{get, "/asyncapi.yaml", anyone, "", keyIgnored, false, documentHandler(asyncAPIText), nil},
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

// A validator is an input that no domain can check alone. Validate returns invalid_request with the
// members that are missing. It may set defaults, so that a request with a default and one without
// it are the same request.
type validator interface{ Validate() error }

// validate returns the error of an input's Validate, or nil where it has none.
func validate(in any) error {
	if v, ok := in.(validator); ok {
		return v.Validate()
	}
	return nil
}

// requireID returns invalid_request for a member that is missing or is no id.
func requireID(name string, id int64) error {
	if id < 0 {
		return apierror.InvalidRequest.WithField(name, "range", "must be a positive integer")
	}
	return requireMembers(member{name, id > 0})
}

// member is a member of a request that must be there.
type member struct {
	name  string
	given bool
}

// requireMembers returns invalid_request with the members that are missing.
func requireMembers(members ...member) error {
	var errs apierror.FieldErrors
	for _, m := range members {
		if !m.given {
			errs.Add(m.name, "required", "is required")
		}
	}
	return errs.Err()
}
