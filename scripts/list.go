package scripts

// Every script by its Go name: noun_verb.lua is NounVerb.
var (
	GameCreate = script("game_create")
	GamePatch  = script("game_patch")
	GameRekey  = script("game_rekey")
	GameClaim  = script("game_claim")

	UserCreate  = script("user_create")
	UserBind    = script("user_bind")
	UserPatch   = script("user_patch")
	UserPromote = script("user_promote")

	FriendRequest = script("friend_request")
	FriendRemove  = script("friend_remove")
	FriendBlock   = script("friend_block")

	RefreshStart  = script("refresh_start")
	RefreshRotate = script("refresh_rotate")

	LimitTake = script("limit_take")
	FenceTake = script("fence_take")

	AnswerBegin  = script("answer_begin")
	AnswerFinish = script("answer_finish")
	AnswerDrop   = script("answer_drop")

	TokenCreate  = script("token_create")
	TokenPatch   = script("token_patch")
	WalletCredit = script("wallet_credit")
	WalletDebit  = script("wallet_debit")
	WalletGrant  = script("wallet_grant")
	WalletScan   = script("wallet_scan")

	AssetCreate   = script("asset_create")
	AssetPatch    = script("asset_patch")
	AssetPurchase = script("asset_purchase")

	RoomCreate   = script("room_create")
	RoomJoin     = script("room_join")
	RoomLeave    = script("room_leave")
	RoomReady    = script("room_ready")
	RoomKick     = script("room_kick")
	RoomTransfer = script("room_transfer")
	RoomStart    = script("room_start")
	RoomFinish   = script("room_finish")
	RoomCancel   = script("room_cancel")
	RoomSweep    = script("room_sweep")
	RoomRematch  = script("room_rematch")

	SaveRead  = script("save_read")
	SaveWrite = script("save_write")
)
