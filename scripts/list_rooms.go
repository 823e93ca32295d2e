package scripts

// The scripts of rooms.
var (
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
)
