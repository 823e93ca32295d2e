package scripts

//go:generate go run ./generate

// The scripts by their Go names: noun_verb.lua is NounVerb.
var (
	GameCreate        = mustLoad("game_create")
	GamePatch         = mustLoad("game_patch")
	GameUpdateKeys    = mustLoad("game_update_keys")
	GameClaimAudience = mustLoad("game_claim_audience")
	GameCountPlayer   = mustLoad("game_count_player")

	UserCreate       = mustLoad("user_create")
	UserLinkIdentity = mustLoad("user_link_identity")
	UserPatch        = mustLoad("user_patch")

	UserUnlinkIdentity = mustLoad("user_unlink_identity")
	UserChangeKind     = mustLoad("user_change_kind")
	UserEndSessions    = mustLoad("user_end_sessions")

	FriendRequest = mustLoad("friend_request")
	FriendRemove  = mustLoad("friend_remove")
	FriendBlock   = mustLoad("friend_block")
	FriendIndex   = mustLoad("friend_index")

	RefreshStart  = mustLoad("refresh_start")
	RefreshRotate = mustLoad("refresh_rotate")

	SessionsEnd      = mustLoad("sessions_end")
	ExternalTokenUse = mustLoad("external_token_use")

	TrailAppend = mustLoad("trail_append")

	WebhookDefine = mustLoad("webhook_define")
	WebhookCommit = mustLoad("webhook_commit")
	WebhookRewind = mustLoad("webhook_rewind")
	WebhookUnpark = mustLoad("webhook_unpark")

	HistoryRead    = mustLoad("history_read")
	HistoryAdvance = mustLoad("history_advance")
	HistoryStop    = mustLoad("history_stop")
	HistoryAccept  = mustLoad("history_accept")

	LayoutRaise = mustLoad("layout_raise")

	RateLimitTake     = mustLoad("rate_limit_take")
	LockAcquire       = mustLoad("lock_acquire")
	FencingTokenIssue = mustLoad("fencing_token_issue")
	WorkName          = mustLoad("work_name")
	ProbeWrite        = mustLoad("probe_write")

	MigrationLease  = mustLoad("migration_lease")
	MigrationWrite  = mustLoad("migration_write")
	MigrationRemove = mustLoad("migration_remove")
	MigrationClose  = mustLoad("migration_close")

	IdempotencyBegin   = mustLoad("idempotency_begin")
	IdempotencyFinish  = mustLoad("idempotency_finish")
	IdempotencyRelease = mustLoad("idempotency_release")

	TokenCreate  = mustLoad("token_create")
	TokenPatch   = mustLoad("token_patch")
	WalletCredit = mustLoad("wallet_credit")
	WalletDebit  = mustLoad("wallet_debit")
	WalletGrant  = mustLoad("wallet_grant")
	WalletLimit  = mustLoad("wallet_limit")
	TotalsRead   = mustLoad("totals_read")
	LedgerFold   = mustLoad("ledger_fold")
	LedgerTrim   = mustLoad("ledger_trim")
	LinesTrim    = mustLoad("lines_trim")

	PrizeFund = mustLoad("prize_fund")
	PrizePlan = mustLoad("prize_plan")
	PrizePay  = mustLoad("prize_pay")
	PrizeVoid = mustLoad("prize_void")

	AssetCreate   = mustLoad("asset_create")
	AssetPatch    = mustLoad("asset_patch")
	AssetPromise  = mustLoad("asset_promise")
	AssetRemove   = mustLoad("asset_remove")
	AssetPurchase = mustLoad("asset_purchase")

	RoomCreate   = mustLoad("room_create")
	RoomJoin     = mustLoad("room_join")
	RoomLeave    = mustLoad("room_leave")
	RoomReady    = mustLoad("room_ready")
	RoomKick     = mustLoad("room_kick")
	RoomTransfer = mustLoad("room_transfer")
	RoomStart    = mustLoad("room_start")
	RoomFinish   = mustLoad("room_finish")
	RoomReport   = mustLoad("room_report")
	RoomResolve  = mustLoad("room_resolve")
	RoomCancel   = mustLoad("room_cancel")
	RoomSweep    = mustLoad("room_sweep")
	RoomRematch  = mustLoad("room_rematch")

	RoomOpenMatch  = mustLoad("room_open_match")
	RoomCloseMatch = mustLoad("room_close_match")
	OutboxClose    = mustLoad("outbox_close")

	RoomWindowClose = mustLoad("room_window_close")

	RoomStateSet  = mustLoad("room_state_set")
	RoomTurnSet   = mustLoad("room_turn_set")
	RoomTurnSkip  = mustLoad("room_turn_skip")
	PresenceRenew = mustLoad("presence_renew")
	PresenceClaim = mustLoad("presence_claim")
	PresenceEnd   = mustLoad("presence_end")
	PresenceSet   = mustLoad("presence_set")

	BoardDefine    = mustLoad("board_define")
	BoardList      = mustLoad("board_list")
	BoardSchedule  = mustLoad("board_schedule")
	BoardEnter     = mustLoad("board_enter")
	BoardPlayStart = mustLoad("board_play_start")
	BoardSubmit    = mustLoad("board_submit")
	BoardHide      = mustLoad("board_hide")
	BoardRemove    = mustLoad("board_remove")
	BoardSeal      = mustLoad("board_seal")

	TourCreate  = mustLoad("tour_create")
	TourRemove  = mustLoad("tour_remove")
	TourOpen    = mustLoad("tour_open")
	TourJoin    = mustLoad("tour_join")
	TourLeave   = mustLoad("tour_leave")
	TourCheckIn = mustLoad("tour_check_in")
	TourStart   = mustLoad("tour_start")
	TourPair    = mustLoad("tour_pair")
	TourReport  = mustLoad("tour_report")
	TourRefund  = mustLoad("tour_refund")
	TourAdvance = mustLoad("tour_advance")
	TourSettle  = mustLoad("tour_settle")
	TourCancel  = mustLoad("tour_cancel")
	TourAttempt = mustLoad("tour_attempt")

	SaveRead  = mustLoad("save_read")
	SaveWrite = mustLoad("save_write")

	UserMatch = mustLoad("user_match")
)
