package apierror

// The errors. A code is never renamed and never reused with another meaning.
var (
	// 400: the request is invalid; the same request always fails.
	InvalidJSON            = define("invalid_json", 400, "The body is not valid JSON", false)
	InvalidRequest         = define("invalid_request", 400, "The request is not valid", false)
	InvalidAmount          = define("invalid_amount", 400, "The amount is not valid", false)
	IdempotencyKeyRequired = define("idempotency_key_required", 400, "An Idempotency-Key header is required", false)

	// 401: the caller is not known.
	Unauthenticated    = define("unauthenticated", 401, "Authentication is required", false)
	AccessTokenExpired = define("token_expired", 401, "The access token has expired", false)
	RefreshTokenReused = define(
		"refresh_reused",
		401,
		"The refresh token was used before; its whole family is revoked",
		false,
	)

	// 402: the money is missing.
	InsufficientFunds = define("insufficient_funds", 402, "The balance is too small", false)

	// 403: the caller is known and may not do it.
	Forbidden        = define("forbidden", 403, "This caller may not do this", false)
	NotHost          = define("not_host", 403, "Only the host of the room may do this", false)
	NotParticipant   = define("not_participant", 403, "The player is not seated in the room", false)
	FriendsOnly      = define("friends_only", 403, "The room admits friends of its creator only", false)
	AccountSuspended = define("account_suspended", 403, "The account is suspended", false)
	Banned           = define("banned", 403, "The player is banned from the room", false)
	SelfExcluded     = define("self_excluded", 403, "The player takes no part in paid rooms, by their own wish", false)
	NotEntrant       = define("not_entrant", 403, "The player is not in the tournament", false)
	Disqualified     = define("disqualified", 403, "The player was disqualified from the tournament", false)

	// 404: absent, or not visible to the caller; the response is the same.
	RouteNotFound = define("not_found", 404, "There is nothing at this address", false)
	RoomNotFound  = define("room_not_found", 404, "No such room", false)
	UserNotFound  = define("user_not_found", 404, "No such user", false)
	GameNotFound  = define("game_not_found", 404, "No such game", false)
	TokenNotFound = define("token_not_found", 404, "No such token", false)
	AssetNotFound = define("asset_not_found", 404, "No such asset", false)
	SlotNotFound  = define("slot_not_found", 404, "No such save slot", false)

	BoardNotFound  = define("board_not_found", 404, "No such leaderboard", false)
	SeasonNotFound = define("season_not_found", 404, "The leaderboard keeps no such season", false)
	EntryNotFound  = define("entry_not_found", 404, "The player has no entry", false)
	PlayNotFound   = define("play_not_found", 404, "No such play of this player", false)

	TournamentNotFound = define("tournament_not_found", 404, "No such tournament", false)
	MatchNotFound      = define("match_not_found", 404, "The tournament has no such match", false)

	CallNotFound    = define("call_not_found", 404, "No such call waits for an answer of this server", false)
	WebhookNotFound = define("webhook_not_found", 404, "The game has no such webhook", false)

	SaveVersionNotFound = define("save_version_not_found", 404, "The save slot keeps no such version", false)

	MethodNotAllowed = define("method_not_allowed", 405, "The method is not allowed here", false)

	// 409: the request is valid, but not in the current state.
	RoomFull         = define("room_full", 409, "The room is full", false)
	RoomEnded        = define("room_closed", 409, "The room has ended", false)
	AlreadyStarted   = define("already_started", 409, "The room has already started", false)
	NotStarted       = define("not_started", 409, "The room has not started", false)
	NotEnoughPlayers = define("not_enough_players", 409, "The room has too few players", false)
	VersionConflict  = define("version_conflict", 409, "Somebody changed it first", false)
	SaveTampered     = define(
		"save_tampered",
		409,
		"The stored save was altered and cannot be trusted: restore an intact version",
		false,
	)
	PerUserLimitReached = define("already_owned", 409, "The per-user limit of the asset is reached", false)
	StockTooSmall       = define("sold_out", 409, "The stock is too small", false)
	PriceChanged        = define("price_changed", 409, "The price has changed", false)
	ResultConflict      = define("result_conflict", 409, "Another result was given before", false)
	RoomDisputed        = define("room_disputed", 409, "The players disagree, and the operator decides", false)
	NotDisputed         = define("not_disputed", 409, "The room is not disputed", false)
	RequestInProgress   = define("request_in_progress", 409, "The first request with this key is still running", true)
	LimitReached        = define("limit_reached", 409, "A limit is reached", false)
	StakeLimit          = define("stake_limit", 409, "The stake is above the player's own limit", false)
	OpenRoomsLimit      = define("open_rooms_limit", 409, "The player's own limit of paid rooms is reached", false)
	LossLimit           = define("loss_limit", 409, "The player's own limit of losses is reached", false)
	TokenCodeTaken      = define("token_exists", 409, "A token with this code exists", false)
	MoneyHeld           = define("money_held", 409, "Money of the player is held in a room or a tournament", false)
	BoardExists         = define("board_exists", 409, "The game has a leaderboard with this key", false)
	SeasonClosed        = define("season_closed", 409, "The season takes no scores", false)
	PlayUsed            = define("play_used", 409, "A score was sent for this play before", false)
	PlayExpired         = define("play_expired", 409, "The play lasted too long", false)
	SubmissionsUsedUp   = define("submissions_exhausted", 409, "The player has no submissions left in this season", false)
	SegmentFixed        = define("segment_fixed", 409, "The player is in another segment in this season", false)
	BoardFull           = define("board_full", 409, "The leaderboard takes no more players", false)
	TournamentFull      = define("tournament_full", 409, "The tournament is full", false)
	RegistrationClosed  = define("registration_closed", 409, "The tournament takes no entrants now", false)
	CheckInClosed       = define("check_in_closed", 409, "There is no check-in now", false)
	TournamentClosed    = define("tournament_closed", 409, "The tournament is over, or is ending", false)
	AttemptsUsedUp      = define("attempts_exhausted", 409, "The player has no attempts left", false)
	MatchDecided        = define("match_decided", 409, "The match is decided", false)
	AlreadyLinked       = define("already_linked", 409, "The account is linked already", false)

	PayloadTooLarge      = define("payload_too_large", 413, "The body is too large", false)
	UnsupportedMediaType = define("unsupported_media_type", 415, "The body must be application/json", false)
	IdempotencyKeyReused = define("idempotency_key_reused", 422, "The Idempotency-Key was used for another request", false)
	SaveRejected         = define("save_rejected", 422, "The save breaks a rule of the game", false)
	ScoreRejected        = define("score_rejected", 422, "The score breaks a rule of the leaderboard", false)
	GameError            = define("game_error", 422, "The game's server refused the call", false)
	RateLimited          = define("rate_limited", 429, "Too many requests", true)

	Internal = define("internal", 500, "Something went wrong", true)

	// 503: not now. Nothing was changed, except that outcome_unknown leaves it open.
	Draining         = define("draining", 503, "This node is shutting down", true)
	StoreUnavailable = define("store_unavailable", 503, "The store cannot be reached", true)
	StoreFull        = define("store_full", 503, "The store is nearly full and takes nothing new", true)
	OutcomeUnknown   = define("outcome_unknown", 503, "Not yet as durable as promised: ask again with the same key", true)
	NoServer         = define("no_server", 503, "No server of the game takes calls for this room now", true)

	// 504: another party did not answer in time, and may have done what it was asked.
	ServerTimeout = define("server_timeout", 504, "The game's server did not answer in time", false)
)
