package apierror

// Advice returns what a caller should do about an error code, for the documentation. It returns ""
// for a code that does not exist.
func Advice(code string) string { return advice[code] }

var advice = map[string]string{
	InvalidJSON.Code:    "Correct the client: `detail` names the byte at which the body stops being JSON.",
	InvalidRequest.Code: "Correct the fields in `errors`.",
	InvalidAmount.Code: "Send a decimal number of at most 2^53-1 minor units, with no more fraction digits than " +
		"the token's `decimals`.",
	IdempotencyKeyRequired.Code: "Send an Idempotency-Key: one for each intent, the same for every try.",

	Unauthenticated.Code:    "Sign in again.",
	AccessTokenExpired.Code: "Get a new access token with the refresh token and send the request again.",
	RefreshTokenReused.Code: "Sign in again. The refresh token may have been stolen: no token of this sign-in can be " +
		"refreshed any more.",

	InsufficientFunds.Code: "Show what is missing: `required` and `available` are amounts of the token `tokenId`.",

	Forbidden.Code:      "Do not send the request with this credential: `detail` names who may.",
	NotHost.Code:        "Let the host do it, who is the room's `host`.",
	NotParticipant.Code: "Join the room first, or name a player who is seated.",
	FriendsOnly.Code:    "Become a friend of the room's creator, or choose another room.",
	Banned.Code:         "Choose another room.",
	NotEntrant.Code:     "Join the tournament first, or name one of its entrants.",
	Disqualified.Code:   "Do not try again: a disqualified player does not come back.",

	RouteNotFound.Code: "Correct the path.",
	RoomNotFound.Code: "Drop the room from the list. It does not exist, has ended long ago, or is not for this " +
		"caller.",
	UserNotFound.Code:  "Correct the id. The player does not exist or belongs to another game.",
	GameNotFound.Code:  "Correct the id. The game does not exist or is not the caller's.",
	TokenNotFound.Code: "Correct the id or code of the token.",
	AssetNotFound.Code: "Load the catalogue again. The asset does not exist, is not on sale, or belongs to another " +
		"game.",
	SlotNotFound.Code: "Save to the slot first.",
	CallNotFound.Code: "Drop the answer: its time is over, it was given before, or another connection was asked.",

	SaveVersionNotFound.Code: "Choose a version that the history of the slot lists.",

	BoardNotFound.Code:  "List the leaderboards of the game.",
	SeasonNotFound.Code: "Choose one of the seasons that the leaderboard lists.",
	EntryNotFound.Code:  "Show that the player has no place yet. Hidden entries are found by staff and the player only.",
	PlayNotFound.Code:   "Start a play, and send its score as the same player.",

	TournamentNotFound.Code: "List the tournaments of the game.",
	WebhookNotFound.Code:    "Choose one of the webhooks that the game lists.",
	MatchNotFound.Code:      "Choose one of the matches that the tournament lists.",

	MethodNotAllowed.Code: "Correct the method.",

	RoomFull.Code:            "Choose another room.",
	RoomEnded.Code:           "Read the room for its result. It cannot change any more.",
	AlreadyStarted.Code:      "Read the room: this is possible only before the start.",
	NotStarted.Code:          "Start the room first.",
	NotEnoughPlayers.Code:    "Wait: `players` are seated and `minPlayers` are needed.",
	VersionConflict.Code:     "Read again, apply the change to what is there now, and send it with the new version.",
	SaveTampered.Code:        "Let the player restore an older version of the slot, over a WebSocket.",
	PerUserLimitReached.Code: "Buy at most `perUserLimit` less `owned`; nothing when that is 0.",
	StockTooSmall.Code:       "Buy at most `stock`, or wait for more.",
	PriceChanged.Code:        "Show the new `price` and ask the player again.",
	ResultConflict.Code: "Read the room: the result that was given first counts. A player's report of a game cannot " +
		"be changed.",
	RoomDisputed.Code: "Wait for the operator. Every stake comes back when the dispute lasts too long: `room.disputed` " +
		"says when.",
	NotDisputed.Code:       "Read the room: only a room with `status` DISPUTED can be resolved.",
	RequestInProgress.Code: "Send the same request again after a moment.",
	LimitReached.Code: "Do without: `limit` names what is limited, and `max` is how many there may be; beyond " +
		"`keyed_requests`, send it without the Idempotency-Key.",
	StakeLimit.Code:     "Choose a room with an entry of at most `max`. The player set the limit.",
	OpenRoomsLimit.Code: "Wait until one of the player's paid rooms ends. The player set the limit.",
	LossLimit.Code: "Choose a lower entry or wait: the entry and what was `lost` within 24 hours are more than `max`, " +
		"which the player set.",
	SelfExcluded.Code: "Do not ask again before `excludedUntil`, and never ask the player to come back. Free rooms " +
		"stay open.",
	TokenCodeTaken.Code: "Choose another code, or patch the token that has it.",
	MoneyHeld.Code: "Leave the rooms and tournaments that have not started, which returns stakes and fees, and wait for " +
		"the end of the others. Then send the request again.",
	AccountSuspended.Code:  "Do not try again before `until`; without it there is no end. Sockets are closed with 4403.",
	BoardExists.Code:       "Choose another key, or patch the leaderboard that has it.",
	SeasonClosed.Code:      "Send the score to the season that is open. Late results count until the grace time is over.",
	PlayUsed.Code:          "Start another play. To repeat a request, send the same Idempotency-Key.",
	PlayExpired.Code:       "Start another play, and send its score before `expiresAt`.",
	SubmissionsUsedUp.Code: "Wait for the next season.",
	SegmentFixed.Code:      "Leave `segments` out, or give those of the player. The next season takes others.",
	BoardFull.Code:         "Wait for the next season. Players who have an entry can still improve it.",
	TournamentFull.Code:    "Choose another tournament, or wait for somebody to leave before the start.",
	RegistrationClosed.Code: "Read the tournament: it takes entrants from `registrationOpensAt` to `startsAt`, and a " +
		"Swiss until `lateJoinRounds`.",
	CheckInClosed.Code:    "Check in between `checkInOpensAt` and `startsAt`.",
	TournamentClosed.Code: "Read the tournament. Nothing changes in it any more.",
	AttemptsUsedUp.Code:   "Wait for the end: the best score counts.",
	MatchDecided.Code:     "Read the match: what was decided first counts.",
	AlreadyLinked.Code: "Sign in with that identity instead. It belongs to another account, or the account cannot be " +
		"linked further.",

	PayloadTooLarge.Code:      "Send less: `detail` names the limit.",
	UnsupportedMediaType.Code: "Send `Content-Type: application/json`.",
	IdempotencyKeyReused.Code: "Use a new Idempotency-Key for a new request.",
	SaveRejected.Code:         "Correct the state by the rules of the game: `errors` names the rules that it breaks.",
	ScoreRejected.Code:        "Send a score that keeps the rules of the leaderboard: `rule` names what it breaks.",
	GameError.Code: "Show what the game says: `gameCode` is the code of its server, and `detail` what it adds. The call " +
		"was handled.",
	RateLimited.Code: "Wait for the seconds in the header Retry-After.",

	Internal.Code: "Send the request again with the same Idempotency-Key. If it happens again, report the `requestId`.",

	Draining.Code:         "Connect again: the load balancer chooses another node.",
	StoreUnavailable.Code: "Send the request again with the same Idempotency-Key after a moment.",
	StoreFull.Code: "Wait: rooms that are open go on, and what ends makes room. Nothing was changed; send the request " +
		"again in a minute.",
	NoServer.Code: "Call again after a moment: no server was asked. If it stays, start the game's server, with a key of " +
		"this game: it takes calls after `game.subscribe` or `room.subscribe`.",
	ServerTimeout.Code: "Read the room before you call again: the server may have done what it was asked, or may still " +
		"do it.",
	OutcomeUnknown.Code: "Send the request again with the same Idempotency-Key. If `detail` asks for a new one, read " +
		"first what happened.",
}
