package scripts

// The scripts of games, players and who is calling.
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

	AnswerBegin  = script("answer_begin")
	AnswerFinish = script("answer_finish")
	AnswerDrop   = script("answer_drop")
)
