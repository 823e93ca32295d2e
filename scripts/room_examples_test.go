package scripts_test

import (
	"maps"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/scripts"
)

// free and private are settings of rooms.
var (
	free    = values{"entry": 0}
	private = values{"visibility": "private"}
)

// secondRoom returns the call by which a player who may have one open room makes another.
func (f *fixture) secondRoom(ended string) call {
	f.setBalance(1, "1000", "0")
	_, first := f.newRoom(nil)
	first.with(values{"max_rooms": 1}).want(scripts.OK)
	_, second := f.newRoom(nil)
	return second.with(values{"max_rooms": 1, "ended": ended})
}

// roomExamples has calls of the room scripts.
var roomExamples = []example{
	{scripts.RoomCreate, "paid", "ok", func(f *fixture) call {
		f.setBalance(1, "1000", "0")
		_, create := f.newRoom(nil)
		return create
	}},
	{scripts.RoomCreate, "free", "ok", func(f *fixture) call {
		_, create := f.newRoom(free)
		return create
	}},
	{scripts.RoomCreate, "starts with its creator", "ok", func(f *fixture) call {
		f.setBalance(1, "250", "0")
		_, create := f.newRoom(values{"max_players": 1, "min_players": 1, "auto_start": 1})
		return create
	}},
	{scripts.RoomCreate, "a code that is taken", "stale", func(f *fixture) call {
		other := f.openRoom(nil)
		r, create := f.newRoom(nil)
		r.code = other.code
		return create.with(values{"code": other.code})
	}},
	{scripts.RoomCreate, "with as many seats as one may have", "limit_reached", func(f *fixture) call {
		f.openRoom(nil)
		_, create := f.newRoom(nil)
		return create.with(values{"max_seats": 1})
	}},
	{scripts.RoomCreate, "with as many rooms as one may have made", "stale", func(f *fixture) call {
		return f.secondRoom("")
	}},
	{scripts.RoomCreate, "when none of them has ended", "limit_reached", func(f *fixture) call {
		return f.secondRoom(",")
	}},
	{scripts.RoomCreate, "when one of them has ended", "ok", func(f *fixture) call {
		create := f.secondRoom("")
		return create.with(values{"ended": "," + create.want(scripts.Stale).Values[1] + ","})
	}},
	{scripts.RoomCreate, "when one of them is known to have ended", "ok", func(f *fixture) call {
		create := f.secondRoom("")
		return create.with(values{"ended": create.want(scripts.Stale).Values[1] + ","})
	}},
	{scripts.RoomCreate, "when another room is known to have ended", "stale", func(f *fixture) call {
		return f.secondRoom("another,")
	}},
	{scripts.RoomCreate, "a unit short", "insufficient_funds", func(f *fixture) call {
		f.setBalance(1, "249", "1000")
		_, create := f.newRoom(nil)
		return create
	}},
	{scripts.RoomCreate, "no wallet", "insufficient_funds", func(f *fixture) call {
		_, create := f.newRoom(nil)
		return create
	}},

	{scripts.RoomJoin, "paid", "ok", func(f *fixture) call { return f.openRoom(nil).call(scripts.RoomJoin, 2, nil) }},
	{scripts.RoomJoin, "free", "ok", func(f *fixture) call {
		return f.openRoom(free).call(scripts.RoomJoin, 2, nil)
	}},
	{scripts.RoomJoin, "the last seat", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2, 3).call(scripts.RoomJoin, 4, nil)
	}},
	{scripts.RoomJoin, "the last seat of a room that starts by itself", "ok", func(f *fixture) call {
		r := f.openRoom(values{"auto_start": 1, "max_players": 3}).join(2)
		return r.call(scripts.RoomJoin, 3, values{"may_start": 1})
	}},
	{scripts.RoomJoin, "seated already", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2).call(scripts.RoomJoin, 2, nil)
	}},
	{scripts.RoomJoin, "a friend", "ok", func(f *fixture) call {
		return f.openRoom(private).call(scripts.RoomJoin, 2, values{"friend": 1})
	}},
	{scripts.RoomJoin, "a reserved seat", "ok", func(f *fixture) call {
		return f.openRematch().call(scripts.RoomJoin, 2, nil)
	}},
	{scripts.RoomJoin, "it starts, and its keys are not there", "stale", func(f *fixture) call {
		return f.openRoom(values{"auto_start": 1, "max_players": 2}).call(scripts.RoomJoin, 2, nil)
	}},
	{scripts.RoomJoin, "a friend or not", "stale", func(f *fixture) call {
		return f.openRoom(values{"friends_only": 1}).call(scripts.RoomJoin, 2, nil)
	}},
	{scripts.RoomJoin, "no room", "room_not_found", func(f *fixture) call {
		return f.noRoom().call(scripts.RoomJoin, 2, nil)
	}},
	{scripts.RoomJoin, "a room of another game", "room_not_found", func(f *fixture) call {
		return f.openRoom(nil).call(scripts.RoomJoin, 2, values{"caller_game": f.id + 1})
	}},
	{scripts.RoomJoin, "a private room of no friend", "room_not_found", func(f *fixture) call {
		return f.openRoom(private).call(scripts.RoomJoin, 2, values{"friend": 0})
	}},
	{scripts.RoomJoin, "a room that ended", "room_closed", func(f *fixture) call {
		return f.openRoom(nil).cancel("1").call(scripts.RoomJoin, 2, nil)
	}},
	{scripts.RoomJoin, "after the start", "already_started", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().call(scripts.RoomJoin, 3, nil)
	}},
	{scripts.RoomJoin, "banned", "banned", func(f *fixture) call {
		r := f.openRoom(nil).join(2)
		r.call(scripts.RoomKick, 0, values{"target": 2, "ban": 1}).want(scripts.OK)
		return r.call(scripts.RoomJoin, 2, nil)
	}},
	{scripts.RoomJoin, "for friends only", "friends_only", func(f *fixture) call {
		return f.openRoom(values{"friends_only": 1}).call(scripts.RoomJoin, 2, values{"friend": 0})
	}},
	{scripts.RoomJoin, "full", "room_full", func(f *fixture) call {
		return f.openRoom(values{"max_players": 2}).join(2).call(scripts.RoomJoin, 3, nil)
	}},
	{scripts.RoomJoin, "full with reserved seats", "room_full", func(f *fixture) call {
		return f.openRematch().call(scripts.RoomJoin, 4, nil)
	}},
	{scripts.RoomJoin, "with as many seats as one may have", "limit_reached", func(f *fixture) call {
		f.openRoom(nil).join(2)
		r, create := f.newRoom(nil)
		create.want(scripts.OK)
		return r.call(scripts.RoomJoin, 2, values{"max_seats": 1})
	}},
	{scripts.RoomJoin, "a unit short", "insufficient_funds", func(f *fixture) call {
		r := f.openRoom(nil)
		f.setBalance(2, "249", "9999")
		return r.call(scripts.RoomJoin, 2, nil)
	}},

	{scripts.RoomLeave, "before the start", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2, 3).call(scripts.RoomLeave, 2, nil)
	}},
	{scripts.RoomLeave, "a free room", "ok", func(f *fixture) call {
		return f.openRoom(free).join(2, 3).call(scripts.RoomLeave, 2, nil)
	}},
	{scripts.RoomLeave, "a full room", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2, 3, 4).call(scripts.RoomLeave, 2, nil)
	}},
	{scripts.RoomLeave, "the host", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2, 3).call(scripts.RoomLeave, 1, nil)
	}},
	{scripts.RoomLeave, "a reserved seat", "ok", func(f *fixture) call {
		return f.openRematch().call(scripts.RoomLeave, 2, nil)
	}},
	{scripts.RoomLeave, "the last who is not ready", "ok", func(f *fixture) call {
		r := f.openRoom(values{"auto_start": 1}).join(2, 3)
		r.call(scripts.RoomReady, 1, nil).want(scripts.OK)
		r.call(scripts.RoomReady, 2, nil).want(scripts.OK)
		return r.call(scripts.RoomLeave, 3, nil)
	}},
	{scripts.RoomLeave, "the last one", "ok", func(f *fixture) call {
		return f.openRoom(nil).call(scripts.RoomLeave, 1, nil)
	}},
	{scripts.RoomLeave, "the last one while a seat is reserved", "ok", func(f *fixture) call {
		return f.openRematch().call(scripts.RoomLeave, 1, values{"users": "1,2,3"})
	}},
	{scripts.RoomLeave, "a game that goes on", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2, 3).start().call(scripts.RoomLeave, 2, nil)
	}},
	{scripts.RoomLeave, "a free game, the last one", "ok", func(f *fixture) call {
		r := f.openRoom(free).join(2).start()
		r.call(scripts.RoomLeave, 1, nil).want(scripts.OK)
		return r.call(scripts.RoomLeave, 2, values{"users": "1,2"})
	}},
	{scripts.RoomLeave, "a game of which the others reported the same", "ok", func(f *fixture) call {
		r := f.openRoom(nil).join(2, 3).start()
		r.report(1, "add", "1,2,3", 0, "").want(scripts.OK)
		r.report(2, "add", "1,2,3", 1, "").want(scripts.OK)
		return r.call(scripts.RoomLeave, 3, values{
			"users": "1,2,3", "placements": "1:1:750:;2:2:0:;3:0:0:;", "computed_for": r.live("version"),
		})
	}},
	{scripts.RoomLeave, "a free game of which the last one reported", "ok", func(f *fixture) call {
		r := f.openRoom(free).join(2).start()
		r.report(1, "add", "1,2", 0, "").want(scripts.OK)
		return r.call(scripts.RoomLeave, 2, values{"users": "1,2", "placements": "1:1::;", "computed_for": r.live("version")})
	}},
	{scripts.RoomLeave, "a game of which not all others reported", "ok", func(f *fixture) call {
		r := f.openRoom(nil).join(2, 3).start()
		r.report(1, "add", "1,2,3", 0, "").want(scripts.OK)
		return r.call(scripts.RoomLeave, 3, nil)
	}},
	{scripts.RoomLeave, "the window for reports is over", "stale", func(f *fixture) call {
		r := f.openRoom(nil).join(2, 3).start()
		r.silence(true, "finish", "", 2, 3)
		return r.call(scripts.RoomLeave, 3, nil)
	}},
	{scripts.RoomLeave, "the window for reports runs", "ok", func(f *fixture) call {
		r := f.openRoom(nil).join(2, 3).start()
		r.silence(false, "finish", "", 2, 3)
		return r.call(scripts.RoomLeave, 3, nil)
	}},
	{scripts.RoomLeave, "the others reported, and the result is not there", "stale", func(f *fixture) call {
		r := f.openRoom(free).join(2).start()
		r.report(1, "add", "1,2", 0, "").want(scripts.OK)
		return r.call(scripts.RoomLeave, 2, values{"users": "1,2", "computed_for": r.live("version")})
	}},
	{scripts.RoomLeave, "a disputed game", "room_disputed", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().dispute().call(scripts.RoomLeave, 2, values{"users": "1,2"})
	}},
	{scripts.RoomLeave, "a game that is won then", "ok", func(f *fixture) call {
		r := f.openRoom(nil).join(2).start()
		return r.call(scripts.RoomLeave, 1, values{
			"users": "2,1", "placements": "2:1:480:;1:0:0:;", "rake": 20, "computed_for": r.live("version"),
		})
	}},
	{scripts.RoomLeave, "the last who is not ready while a seat is reserved", "ok", func(f *fixture) call {
		r := f.openRematch(values{"auto_start": 1, "max_players": 3, "min_players": 1}).join(3)
		r.call(scripts.RoomReady, 1, nil).want(scripts.OK)
		return r.call(scripts.RoomLeave, 3, values{"users": "2,3"})
	}},
	{scripts.RoomLeave, "it starts, and a reserved seat is not there", "stale", func(f *fixture) call {
		r := f.openRematch(values{"auto_start": 1, "max_players": 3, "min_players": 1}).join(3)
		r.call(scripts.RoomReady, 1, nil).want(scripts.OK)
		return r.call(scripts.RoomLeave, 3, nil)
	}},
	{scripts.RoomLeave, "one who is ready", "ok", func(f *fixture) call {
		r := f.openRoom(nil).join(2, 3)
		r.call(scripts.RoomReady, 2, nil).want(scripts.OK)
		return r.call(scripts.RoomLeave, 2, nil)
	}},
	{scripts.RoomLeave, "the player is not there", "stale", func(f *fixture) call {
		return f.openRoom(nil).join(2, 3).call(scripts.RoomLeave, 2, values{"users": ""})
	}},
	{scripts.RoomLeave, "it is won, and the result is not there", "stale", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().call(scripts.RoomLeave, 1, values{"users": "2,1"})
	}},
	{scripts.RoomLeave, "it is empty, and a player is not there", "stale", func(f *fixture) call {
		return f.openRematch().call(scripts.RoomLeave, 1, values{"users": "1,2"})
	}},
	{scripts.RoomLeave, "no room", "room_not_found", func(f *fixture) call {
		return f.noRoom().call(scripts.RoomLeave, 2, nil)
	}},
	{scripts.RoomLeave, "a room of another game", "room_not_found", func(f *fixture) call {
		return f.openRoom(nil).join(2).call(scripts.RoomLeave, 2, values{"caller_game": f.id + 1})
	}},
	{scripts.RoomLeave, "a private room without a seat", "room_not_found", func(f *fixture) call {
		return f.openRoom(private).call(scripts.RoomLeave, 2, nil)
	}},
	{scripts.RoomLeave, "a room that ended", "room_closed", func(f *fixture) call {
		return f.openRoom(nil).join(2).cancel("1,2").call(scripts.RoomLeave, 2, nil)
	}},
	{scripts.RoomLeave, "without a seat", "not_participant", func(f *fixture) call {
		return f.openRoom(nil).call(scripts.RoomLeave, 2, nil)
	}},
	{scripts.RoomLeave, "forfeited already", "not_participant", func(f *fixture) call {
		r := f.openRoom(nil).join(2, 3).start()
		r.call(scripts.RoomLeave, 2, nil).want(scripts.OK)
		return r.call(scripts.RoomLeave, 2, nil)
	}},

	{scripts.RoomReady, "ready", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2).call(scripts.RoomReady, 2, nil)
	}},
	{scripts.RoomReady, "not ready any more", "ok", func(f *fixture) call {
		r := f.openRoom(nil).join(2)
		r.call(scripts.RoomReady, 2, nil).want(scripts.OK)
		return r.call(scripts.RoomReady, 2, values{"is_ready": 0})
	}},
	{scripts.RoomReady, "ready already", "ok", func(f *fixture) call {
		r := f.openRoom(nil).join(2)
		r.call(scripts.RoomReady, 2, nil).want(scripts.OK)
		return r.call(scripts.RoomReady, 2, nil)
	}},
	{scripts.RoomReady, "the last one, and the room starts by itself", "ok", func(f *fixture) call {
		r := f.openRoom(values{"auto_start": 1}).join(2)
		r.call(scripts.RoomReady, 1, nil).want(scripts.OK)
		return r.call(scripts.RoomReady, 2, nil)
	}},
	{scripts.RoomReady, "it starts, and reserved seats fall away", "ok", func(f *fixture) call {
		r := f.openReadyRematch()
		return r.call(scripts.RoomReady, 3, values{"users": "2"})
	}},
	{scripts.RoomReady, "it starts, and a reserved seat is not there", "stale", func(f *fixture) call {
		r := f.openReadyRematch()
		return r.call(scripts.RoomReady, 3, nil)
	}},
	{scripts.RoomReady, "no room", "room_not_found", func(f *fixture) call {
		return f.noRoom().call(scripts.RoomReady, 2, nil)
	}},
	{scripts.RoomReady, "a room of another game", "room_not_found", func(f *fixture) call {
		return f.openRoom(nil).call(scripts.RoomReady, 1, values{"caller_game": f.id + 1})
	}},
	{scripts.RoomReady, "a private room without a seat", "room_not_found", func(f *fixture) call {
		return f.openRoom(private).call(scripts.RoomReady, 2, nil)
	}},
	{scripts.RoomReady, "a room that ended", "room_closed", func(f *fixture) call {
		return f.openRoom(nil).cancel("1").call(scripts.RoomReady, 1, nil)
	}},
	{scripts.RoomReady, "after the start", "already_started", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().call(scripts.RoomReady, 1, nil)
	}},
	{scripts.RoomReady, "without a seat", "not_participant", func(f *fixture) call {
		return f.openRoom(nil).call(scripts.RoomReady, 2, nil)
	}},
	{scripts.RoomReady, "a reserved seat", "not_participant", func(f *fixture) call {
		return f.openRematch().call(scripts.RoomReady, 2, nil)
	}},

	{scripts.RoomKick, "by the host", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2).call(scripts.RoomKick, 1, values{"target": 2})
	}},
	{scripts.RoomKick, "with a ban", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2).call(scripts.RoomKick, 1, values{"target": 2, "ban": 1})
	}},
	{scripts.RoomKick, "the host", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2).call(scripts.RoomKick, 0, values{"target": 1})
	}},
	{scripts.RoomKick, "the last one", "ok", func(f *fixture) call {
		return f.openRoom(nil).call(scripts.RoomKick, 0, values{"target": 1})
	}},
	{scripts.RoomKick, "a reserved seat", "ok", func(f *fixture) call {
		return f.openRematch().call(scripts.RoomKick, 1, values{"target": 2})
	}},
	{scripts.RoomKick, "from a free room", "ok", func(f *fixture) call {
		return f.openRoom(free).join(2).call(scripts.RoomKick, 1, values{"target": 2})
	}},
	{scripts.RoomKick, "the last who is not ready", "ok", func(f *fixture) call {
		r := f.openRoom(values{"auto_start": 1}).join(2, 3)
		r.call(scripts.RoomReady, 1, nil).want(scripts.OK)
		r.call(scripts.RoomReady, 2, nil).want(scripts.OK)
		return r.call(scripts.RoomKick, 1, values{"target": 3})
	}},
	{scripts.RoomKick, "the last one while seats are reserved", "ok", func(f *fixture) call {
		return f.openRematch().call(scripts.RoomKick, 0, values{"target": 1, "users": "3,1,2"})
	}},
	{scripts.RoomKick, "one who is ready", "ok", func(f *fixture) call {
		r := f.openRoom(nil).join(2, 3)
		r.call(scripts.RoomReady, 2, nil).want(scripts.OK)
		return r.call(scripts.RoomKick, 1, values{"target": 2})
	}},
	{scripts.RoomKick, "the last who is not ready while a seat is reserved", "ok", func(f *fixture) call {
		r := f.openRematch(values{"auto_start": 1, "max_players": 3, "min_players": 1}).join(3)
		r.call(scripts.RoomReady, 1, nil).want(scripts.OK)
		return r.call(scripts.RoomKick, 1, values{"target": 3, "users": "2,3"})
	}},
	{scripts.RoomKick, "the player is not there", "stale", func(f *fixture) call {
		return f.openRoom(nil).join(2).call(scripts.RoomKick, 1, values{"target": 2, "users": ""})
	}},
	{scripts.RoomKick, "it is empty, and a player is not there", "stale", func(f *fixture) call {
		return f.openRematch().call(scripts.RoomKick, 0, values{"target": 1, "users": "1,2"})
	}},
	{scripts.RoomKick, "no room", "room_not_found", func(f *fixture) call {
		return f.noRoom().call(scripts.RoomKick, 1, values{"target": 2})
	}},
	{scripts.RoomKick, "a room of another game", "room_not_found", func(f *fixture) call {
		return f.openRoom(nil).join(2).call(scripts.RoomKick, 1, values{"target": 2, "caller_game": f.id + 1})
	}},
	{scripts.RoomKick, "a private room without a seat", "room_not_found", func(f *fixture) call {
		return f.openRoom(private).call(scripts.RoomKick, 2, values{"target": 1})
	}},
	{scripts.RoomKick, "a room that ended", "room_closed", func(f *fixture) call {
		return f.openRoom(nil).join(2).cancel("1,2").call(scripts.RoomKick, 1, values{"target": 2})
	}},
	{scripts.RoomKick, "by another player", "not_host", func(f *fixture) call {
		return f.openRoom(nil).join(2).call(scripts.RoomKick, 2, values{"target": 1})
	}},
	{scripts.RoomKick, "after the start", "already_started", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().call(scripts.RoomKick, 1, values{"target": 2})
	}},
	{scripts.RoomKick, "without a seat", "not_participant", func(f *fixture) call {
		return f.openRoom(nil).join(2).call(scripts.RoomKick, 1, values{"target": 3})
	}},
	{scripts.RoomKick, "the 257th ban", "limit_reached", func(f *fixture) call {
		r := f.openRoom(nil).join(2)
		f.set(r.key(), "bans", 256)
		return r.call(scripts.RoomKick, 1, values{"target": 2, "ban": 1})
	}},

	{scripts.RoomTransfer, "by the host", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2).call(scripts.RoomTransfer, 1, values{"target": 2})
	}},
	{scripts.RoomTransfer, "after the start", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().call(scripts.RoomTransfer, 1, values{"target": 2})
	}},
	{scripts.RoomTransfer, "of a disputed room", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().dispute().call(scripts.RoomTransfer, 1, values{"target": 2})
	}},
	{scripts.RoomTransfer, "to the host", "ok", func(f *fixture) call {
		return f.openRoom(nil).call(scripts.RoomTransfer, 1, values{"target": 1})
	}},
	{scripts.RoomTransfer, "no room", "room_not_found", func(f *fixture) call {
		return f.noRoom().call(scripts.RoomTransfer, 1, values{"target": 2})
	}},
	{scripts.RoomTransfer, "a room of another game", "room_not_found", func(f *fixture) call {
		return f.openRoom(nil).join(2).call(scripts.RoomTransfer, 1, values{"target": 2, "caller_game": f.id + 1})
	}},
	{scripts.RoomTransfer, "a private room without a seat", "room_not_found", func(f *fixture) call {
		return f.openRoom(private).call(scripts.RoomTransfer, 2, values{"target": 1})
	}},
	{scripts.RoomTransfer, "a room that ended", "room_closed", func(f *fixture) call {
		return f.openRoom(nil).join(2).cancel("1,2").call(scripts.RoomTransfer, 1, values{"target": 2})
	}},
	{scripts.RoomTransfer, "by another player", "not_host", func(f *fixture) call {
		return f.openRoom(nil).join(2).call(scripts.RoomTransfer, 2, values{"target": 2})
	}},
	{scripts.RoomTransfer, "without a seat", "not_participant", func(f *fixture) call {
		return f.openRoom(nil).call(scripts.RoomTransfer, 1, values{"target": 2})
	}},
	{scripts.RoomTransfer, "to a reserved seat", "not_participant", func(f *fixture) call {
		return f.openRematch().call(scripts.RoomTransfer, 1, values{"target": 2})
	}},

	{scripts.RoomStart, "by the host", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2).call(scripts.RoomStart, 1, nil)
	}},
	{scripts.RoomStart, "by the server, unlisted", "ok", func(f *fixture) call {
		return f.openRoom(values{"visibility": "unlisted", "entry": 0}).join(2).call(scripts.RoomStart, 0, nil)
	}},
	{scripts.RoomStart, "reserved seats fall away", "ok", func(f *fixture) call {
		return f.openRematch().join(3).call(scripts.RoomStart, 1, values{"users": "2"})
	}},
	{scripts.RoomStart, "a reserved seat is not there", "stale", func(f *fixture) call {
		return f.openRematch().join(3).call(scripts.RoomStart, 1, nil)
	}},
	{scripts.RoomStart, "no room", "room_not_found", func(f *fixture) call {
		return f.noRoom().call(scripts.RoomStart, 1, nil)
	}},
	{scripts.RoomStart, "a room of another game", "room_not_found", func(f *fixture) call {
		return f.openRoom(nil).join(2).call(scripts.RoomStart, 1, values{"caller_game": f.id + 1})
	}},
	{scripts.RoomStart, "a private room without a seat", "room_not_found", func(f *fixture) call {
		return f.openRoom(private).call(scripts.RoomStart, 2, nil)
	}},
	{scripts.RoomStart, "a room that ended", "room_closed", func(f *fixture) call {
		return f.openRoom(nil).join(2).cancel("1,2").call(scripts.RoomStart, 1, nil)
	}},
	{scripts.RoomStart, "by another player", "not_host", func(f *fixture) call {
		return f.openRoom(nil).join(2).call(scripts.RoomStart, 2, nil)
	}},
	{scripts.RoomStart, "a second time", "already_started", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().call(scripts.RoomStart, 1, nil)
	}},
	{scripts.RoomStart, "alone", "not_enough_players", func(f *fixture) call {
		return f.openRoom(nil).call(scripts.RoomStart, 1, nil)
	}},

	{scripts.RoomFinish, "paid", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().finish("2:1:480:9;1:2:0:3;", 20)
	}},
	{scripts.RoomFinish, "free", "ok", func(f *fixture) call {
		return f.openRoom(free).join(2).start().finish("2:1:0:9;1:2:0:3;", 0)
	}},
	{scripts.RoomFinish, "the same result again", "ok", func(f *fixture) call {
		r := f.openRoom(nil).join(2).start()
		r.finish("2:1:500:;1:2:0:;", 0).want(scripts.OK)
		return r.finish("2:1:500:;1:2:0:;", 0)
	}},
	{scripts.RoomFinish, "for another version", "stale", func(f *fixture) call {
		r := f.openRoom(nil).join(2, 3).start()
		finish := r.finish("2:1:750:;1:2:0:;3:3:0:;", 0)
		r.call(scripts.RoomLeave, 3, nil).want(scripts.OK)
		return finish
	}},
	{scripts.RoomFinish, "more than the pot", "stale", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().finish("2:1:501:;1:2:0:;", 0)
	}},
	{scripts.RoomFinish, "no room", "room_not_found", func(f *fixture) call {
		return f.noRoom().call(scripts.RoomFinish, 0, values{"placements": "1:1:0:;"})
	}},
	{scripts.RoomFinish, "a room of another game", "room_not_found", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().finish("2:1:500:;1:2:0:;", 0).with(values{"caller_game": f.id + 1})
	}},
	{scripts.RoomFinish, "a room that was cancelled", "room_closed", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().cancel("1,2").finish("2:1:500:;1:2:0:;", 0)
	}},
	{scripts.RoomFinish, "another result", "result_conflict", func(f *fixture) call {
		r := f.openRoom(nil).join(2).start()
		r.finish("2:1:500:;1:2:0:;", 0).want(scripts.OK)
		return r.finish("1:1:500:;2:2:0:;", 0)
	}},
	{scripts.RoomFinish, "a disputed game", "room_disputed", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().dispute().finish("2:1:500:;1:2:0:;", 0)
	}},
	{scripts.RoomFinish, "before the start", "not_started", func(f *fixture) call {
		return f.openRoom(nil).join(2).finish("2:1:500:;1:2:0:;", 0)
	}},

	{scripts.RoomReport, "the first of three", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2, 3).start().report(2, "add", "1,2,3|9,8.5,", 0, "")
	}},
	{scripts.RoomReport, "the second of three", "ok", func(f *fixture) call {
		r := f.openRoom(nil).join(2, 3).start()
		r.report(2, "add", "1,2,3", 0, "").want(scripts.OK)
		return r.report(3, "add", "1,2,3", 2, "")
	}},
	{scripts.RoomReport, "the last one, and all agree", "ok", func(f *fixture) call {
		r := f.openRoom(nil).join(2).start()
		r.report(1, "add", "1,2", 0, "").want(scripts.OK)
		return r.report(2, "agree", "1,2", 1, "1:1:480:9;2:2:0:3;").with(values{"rake": 20})
	}},
	{scripts.RoomReport, "free, the last one", "ok", func(f *fixture) call {
		r := f.openRoom(free).join(2).start()
		r.report(1, "add", "1,2", 0, "").want(scripts.OK)
		return r.report(2, "agree", "1,2", 1, "1:1::;2:2::;").with(values{"users": "1,2"})
	}},
	{scripts.RoomReport, "against oneself", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().report(1, "concede", "2,1", 0, "2:1:500:;1:2:0:;")
	}},
	{scripts.RoomReport, "another than the first one", "ok", func(f *fixture) call {
		r := f.openRoom(values{"visibility": "unlisted"}).join(2, 3).start()
		r.report(1, "add", "1,2,3", 0, "").want(scripts.OK)
		return r.report(3, "contradict", "2,1,3", 1, "")
	}},
	{scripts.RoomReport, "of a dispute", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2, 3).start().dispute().report(3, "add", "3,2,1", 0, "")
	}},
	{scripts.RoomReport, "the same again", "ok", func(f *fixture) call {
		r := f.openRoom(nil).join(2).start()
		r.report(1, "add", "1,2", 0, "").want(scripts.OK)
		return r.report(1, "repeat", "1,2", 0, "")
	}},
	{scripts.RoomReport, "what the game ended with", "ok", func(f *fixture) call {
		r := f.openRoom(nil).join(2).start()
		r.finish("2:1:500:;1:2:0:;", 0).want(scripts.OK)
		return r.report(1, "repeat", "2,1", 0, "")
	}},
	{scripts.RoomReport, "another one", "result_conflict", func(f *fixture) call {
		r := f.openRoom(nil).join(2).start()
		r.report(1, "add", "1,2", 0, "").want(scripts.OK)
		return r.report(1, "conflict", "2,1", 0, "")
	}},
	{scripts.RoomReport, "another one than the game ended with", "result_conflict", func(f *fixture) call {
		r := f.openRoom(nil).join(2).start()
		r.finish("2:1:500:;1:2:0:;", 0).want(scripts.OK)
		return r.report(1, "conflict", "1,2", 0, "")
	}},
	{scripts.RoomReport, "of other players", "stale", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().report(1, "", "", 0, "")
	}},
	{scripts.RoomReport, "a player has left", "stale", func(f *fixture) call {
		r := f.openRoom(nil).join(2, 3).start()
		report := r.report(1, "add", "1,2,3", 0, "")
		r.call(scripts.RoomLeave, 3, nil).want(scripts.OK)
		return report
	}},
	{scripts.RoomReport, "compared with nobody", "stale", func(f *fixture) call {
		r := f.openRoom(nil).join(2, 3).start()
		r.report(1, "add", "1,2,3", 0, "").want(scripts.OK)
		return r.report(2, "add", "2,1,3", 0, "")
	}},
	{scripts.RoomReport, "compared with one who has not reported", "stale", func(f *fixture) call {
		r := f.openRoom(nil).join(2, 3).start()
		r.report(1, "add", "1,2,3", 0, "").want(scripts.OK)
		return r.report(2, "contradict", "2,1,3", 3, "")
	}},
	{scripts.RoomReport, "it is the last one", "stale", func(f *fixture) call {
		r := f.openRoom(nil).join(2).start()
		r.report(1, "add", "1,2", 0, "").want(scripts.OK)
		return r.report(2, "add", "1,2", 1, "")
	}},
	{scripts.RoomReport, "it is not the last one", "stale", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().report(2, "agree", "1,2", 0, "1:1:500:;2:2:0:;")
	}},
	{scripts.RoomReport, "more than the pot", "stale", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().report(2, "concede", "1,2", 0, "1:1:501:;2:2:0:;")
	}},
	{scripts.RoomReport, "the player has reported since", "stale", func(f *fixture) call {
		r := f.openRoom(nil).join(2).start()
		r.report(1, "add", "1,2", 0, "").want(scripts.OK)
		return r.report(1, "add", "2,1", 0, "")
	}},
	{scripts.RoomReport, "no room", "room_not_found", func(f *fixture) call {
		return f.noRoom().call(scripts.RoomReport, 1, nil)
	}},
	{scripts.RoomReport, "a room of another game", "room_not_found", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().report(1, "add", "1,2", 0, "").with(values{"caller_game": f.id + 1})
	}},
	{scripts.RoomReport, "a private room without a seat", "room_not_found", func(f *fixture) call {
		return f.openRoom(private).joinFriends().start().report(3, "add", "1,2", 0, "")
	}},
	{scripts.RoomReport, "a room that was cancelled", "room_closed", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().cancel("1,2").report(1, "add", "1,2", 0, "")
	}},
	{scripts.RoomReport, "before the start", "not_started", func(f *fixture) call {
		return f.openRoom(nil).join(2).report(1, "add", "1,2", 0, "")
	}},
	{scripts.RoomReport, "without a seat", "not_participant", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().report(3, "add", "1,2", 0, "")
	}},
	{scripts.RoomReport, "a forfeited seat", "not_participant", func(f *fixture) call {
		r := f.openRoom(nil).join(2, 3).start()
		r.call(scripts.RoomLeave, 2, nil).want(scripts.OK)
		return r.report(2, "add", "1,0,2", 0, "")
	}},

	{scripts.RoomReport, "after the window", "stale", func(f *fixture) call {
		r := f.openRoom(nil).join(2).start()
		r.silence(true, "finish", "", 2)
		return r.report(2, "contradict", "2,1", 1, "")
	}},
	{scripts.RoomReport, "whoever reported before has left", "ok", func(f *fixture) call {
		r := f.openRoom(free).join(2, 3).start()
		r.report(1, "add", "1,2,3", 0, "").want(scripts.OK)
		r.call(scripts.RoomLeave, 1, nil).with(values{"users": "1,2,3"}).want(scripts.OK)
		return r.report(2, "add", "0,1,2", 0, "")
	}},

	{scripts.RoomWindowClose, "a silent player agrees", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().silence(true, "finish", "1:1:480:9;2:2:0:;", 2).with(values{"rake": 20})
	}},
	{scripts.RoomWindowClose, "free, a silent player agrees", "ok", func(f *fixture) call {
		return f.openRoom(free).join(2).start().silence(true, "finish", "1:1::;2:2::;", 2)
	}},
	{scripts.RoomWindowClose, "of a match", "ok", func(f *fixture) call {
		return f.openMatch(false).sit(1, 2).silence(true, "finish", "1:1::;2:2::;", 2)
	}},
	{scripts.RoomWindowClose, "a player was not there", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().silence(true, "finish", "1:1:500:;2:2:0:;")
	}},
	{scripts.RoomWindowClose, "silence does not agree to a draw", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().silence(true, "dispute", "", 2)
	}},
	{scripts.RoomWindowClose, "nobody who is there has reported", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().silence(true, "open", "", 2)
	}},
	{scripts.RoomWindowClose, "its time is still to come", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().silence(false, "finish", "1:1:500:;2:2:0:;", 2)
	}},
	{scripts.RoomWindowClose, "closed already", "ok", func(f *fixture) call {
		r := f.openRoom(nil).join(2).start()
		closing := r.silence(true, "finish", "1:1:500:;2:2:0:;", 2)
		closing.want(scripts.OK)
		return closing
	}},
	{scripts.RoomWindowClose, "no window", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().call(scripts.RoomWindowClose, 0, nil)
	}},
	{scripts.RoomWindowClose, "for another version", "stale", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().silence(true, "finish", "1:1:500:;2:2:0:;", 2).with(values{"computed_for": 1})
	}},
	{scripts.RoomWindowClose, "less than the pot", "stale", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().silence(true, "finish", "1:1:499:;2:2:0:;", 2)
	}},
	{scripts.RoomWindowClose, "the clocks differ", "stale", func(f *fixture) call {
		r := f.openRoom(nil).join(2).start()
		return r.silence(true, "finish", "1:1:500:;2:2:0:;", 2).with(values{"node_ms": 1})
	}},

	{scripts.RoomResolve, "with a result that a player did not report", "ok", func(f *fixture) call {
		r := f.openRoom(nil).join(2).start().dispute()
		return r.resolve("2,1", "2:1:500:;1:2:0:;").with(values{"losers": "1"})
	}},
	{scripts.RoomResolve, "with a result", "ok", func(f *fixture) call {
		r := f.openRoom(nil).join(2).start().dispute()
		return r.resolve("2,1", "2:1:480:9;1:2:0:;").with(values{"rake": 20})
	}},
	{scripts.RoomResolve, "free, with a result", "ok", func(f *fixture) call {
		return f.openRoom(free).join(2).start().dispute().resolve("1,2", "2:1::;1:2::;")
	}},
	{scripts.RoomResolve, "by a refund, with a forfeited seat", "ok", func(f *fixture) call {
		r := f.openRoom(private).joinFriends(3).start()
		r.call(scripts.RoomLeave, 3, nil).want(scripts.OK)
		return r.dispute().resolve("1,2,3", "")
	}},
	{scripts.RoomResolve, "the same result again", "ok", func(f *fixture) call {
		r := f.openRoom(nil).join(2).start().dispute()
		r.resolve("2,1", "2:1:500:;1:2:0:;").want(scripts.OK)
		return r.resolve("2,1", "2:1:500:;1:2:0:;")
	}},
	{scripts.RoomResolve, "a refund again", "ok", func(f *fixture) call {
		r := f.openRoom(nil).join(2).start().dispute()
		r.resolve("2,1", "").want(scripts.OK)
		return r.resolve("2,1", "")
	}},
	{scripts.RoomResolve, "another result", "result_conflict", func(f *fixture) call {
		r := f.openRoom(nil).join(2).start().dispute()
		r.resolve("2,1", "2:1:500:;1:2:0:;").want(scripts.OK)
		return r.resolve("1,2", "1:1:500:;2:2:0:;")
	}},
	{scripts.RoomResolve, "a refund after a result", "result_conflict", func(f *fixture) call {
		r := f.openRoom(nil).join(2).start().dispute()
		r.resolve("2,1", "2:1:500:;1:2:0:;").want(scripts.OK)
		return r.resolve("1,2", "")
	}},
	{scripts.RoomResolve, "a result after a refund", "result_conflict", func(f *fixture) call {
		r := f.openRoom(nil).join(2).start().dispute()
		r.resolve("2,1", "").want(scripts.OK)
		return r.resolve("1,2", "1:1:500:;2:2:0:;")
	}},
	{scripts.RoomResolve, "of other players", "stale", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().dispute().resolve("", "").with(values{"outcome": ""})
	}},
	{scripts.RoomResolve, "for another version", "stale", func(f *fixture) call {
		r := f.openRoom(nil).join(2, 3).start().dispute()
		resolve := r.resolve("1,2,3", "1:1:750:;2:2:0:;3:3:0:;")
		r.report(3, "add", "1,2,3", 0, "").want(scripts.OK)
		return resolve
	}},
	{scripts.RoomResolve, "a player is not there", "stale", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().dispute().resolve("1", "")
	}},
	{scripts.RoomResolve, "less than the pot", "stale", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().dispute().resolve("1,2", "1:1:499:;2:2:0:;")
	}},
	{scripts.RoomResolve, "no room", "room_not_found", func(f *fixture) call {
		return f.noRoom().call(scripts.RoomResolve, 0, nil)
	}},
	{scripts.RoomResolve, "a room of another game", "room_not_found", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().dispute().resolve("1,2", "").with(values{"caller_game": f.id + 1})
	}},
	{scripts.RoomResolve, "a game that goes on", "not_disputed", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().resolve("1,2", "")
	}},

	{scripts.RoomCancel, "by the host", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2).call(scripts.RoomCancel, 1, values{"users": "2,1"})
	}},
	{scripts.RoomCancel, "by the server, with a forfeited seat", "ok", func(f *fixture) call {
		r := f.openRoom(nil).join(2, 3).start()
		r.call(scripts.RoomLeave, 2, nil).want(scripts.OK)
		return r.call(scripts.RoomCancel, 0, values{"users": "1,2,3"})
	}},
	{scripts.RoomCancel, "a disputed game, by the server", "ok", func(f *fixture) call {
		r := f.openRoom(private).joinFriends().start().dispute()
		return r.call(scripts.RoomCancel, 0, values{"users": "1,2", "was_disputed": 1})
	}},
	{scripts.RoomCancel, "it was not disputed when it was read", "stale", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().dispute().call(scripts.RoomCancel, 0, values{"users": "1,2"})
	}},
	{scripts.RoomCancel, "free, with reserved seats", "ok", func(f *fixture) call {
		return f.openRematch().call(scripts.RoomCancel, 1, values{"users": "1,2,3"})
	}},
	{scripts.RoomCancel, "a player is not there", "stale", func(f *fixture) call {
		return f.openRoom(nil).join(2).call(scripts.RoomCancel, 1, values{"users": "1"})
	}},
	{scripts.RoomCancel, "no room", "room_not_found", func(f *fixture) call {
		return f.noRoom().call(scripts.RoomCancel, 1, nil)
	}},
	{scripts.RoomCancel, "a room of another game", "room_not_found", func(f *fixture) call {
		return f.openRoom(nil).call(scripts.RoomCancel, 1, values{"caller_game": f.id + 1})
	}},
	{scripts.RoomCancel, "a private room without a seat", "room_not_found", func(f *fixture) call {
		return f.openRoom(private).call(scripts.RoomCancel, 2, values{"users": "1,2"})
	}},
	{scripts.RoomCancel, "a room that ended", "room_closed", func(f *fixture) call {
		return f.openRoom(nil).cancel("1").call(scripts.RoomCancel, 1, nil)
	}},
	{scripts.RoomCancel, "by another player", "not_host", func(f *fixture) call {
		return f.openRoom(nil).join(2).call(scripts.RoomCancel, 2, values{"users": "1,2"})
	}},
	{scripts.RoomCancel, "by the host after the start", "already_started", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().call(scripts.RoomCancel, 1, values{"users": "1,2"})
	}},

	{scripts.RoomSweep, "idle", "ok", func(f *fixture) call {
		return f.openRoom(values{"idle_ms": 0}).join(2).call(scripts.RoomSweep, 0, values{"users": "1,2"})
	}},
	{scripts.RoomSweep, "no result in time", "ok", func(f *fixture) call {
		return f.openRoom(values{"match_ms": 0}).join(2).start().call(scripts.RoomSweep, 0, values{"users": "1,2"})
	}},
	{scripts.RoomSweep, "a window runs", "stale", func(f *fixture) call {
		r := f.openRoom(values{"match_ms": 0}).join(2).start()
		r.silence(false, "finish", "", 2)
		return r.call(scripts.RoomSweep, 0, values{"users": "1,2"})
	}},
	{scripts.RoomSweep, "too old", "ok", func(f *fixture) call {
		return f.openRoom(values{"age_ms": 0}).join(2).call(scripts.RoomSweep, 0, values{"users": "1,2"})
	}},
	{scripts.RoomSweep, "a dispute that lasted too long", "ok", func(f *fixture) call {
		r := f.openRoom(values{"visibility": "unlisted"}).join(2).start().dispute()
		return r.call(scripts.RoomSweep, 0, values{"users": "1,2", "was_disputed": 1, "dispute_ms": 0})
	}},
	{scripts.RoomSweep, "a dispute that may last longer", "ok", func(f *fixture) call {
		r := f.openRoom(values{"match_ms": 0}).join(2).start().dispute()
		return r.call(scripts.RoomSweep, 0, values{"users": "1,2", "was_disputed": 1})
	}},
	{scripts.RoomSweep, "it was not disputed when it was read", "stale", func(f *fixture) call {
		r := f.openRoom(nil).join(2).start().dispute()
		return r.call(scripts.RoomSweep, 0, values{"users": "1,2", "dispute_ms": 0})
	}},
	{scripts.RoomSweep, "long ended", "ok", func(f *fixture) call {
		r := f.openRoom(values{"keep_ms": 0}).join(2).cancel("1,2")
		return r.call(scripts.RoomSweep, 0, values{"users": "1,2", "events_ms": 0})
	}},
	{scripts.RoomSweep, "long finished", "ok", func(f *fixture) call {
		r := f.openRoom(values{"keep_ms": 0}).join(2).start()
		r.finish("2:1:500:;1:2:0:;", 0).want(scripts.OK)
		return r.call(scripts.RoomSweep, 0, values{"users": "1,2", "events_ms": 0})
	}},
	{scripts.RoomSweep, "a player is not there", "stale", func(f *fixture) call {
		return f.openRoom(values{"idle_ms": 0}).join(2).call(scripts.RoomSweep, 0, values{"users": "1"})
	}},
	{scripts.RoomSweep, "an older leader", "stale", func(f *fixture) call {
		r := f.openRoom(values{"idle_ms": 0}).join(2)
		r.call(scripts.RoomSweep, 0, values{"room_id": "none", "fence": 10}).want(scripts.OK)
		return r.call(scripts.RoomSweep, 0, values{"users": "1,2", "fence": 9})
	}},

	{scripts.RoomRematch, "of a cancelled room", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2).cancel("1,2").call(scripts.RoomRematch, 2, values{"users": "1"})
	}},
	{scripts.RoomRematch, "of a finished room", "ok", func(f *fixture) call {
		r := f.openRoom(nil).join(2).start()
		r.finish("2:1:500:;1:2:0:;", 0).want(scripts.OK)
		return r.call(scripts.RoomRematch, 2, values{"users": "1"})
	}},
	{scripts.RoomRematch, "it starts with its creator", "ok", func(f *fixture) call {
		r := f.openRoom(values{"entry": 0, "max_players": 1, "min_players": 1, "auto_start": 1}).cancel("1")
		return r.call(scripts.RoomRematch, 1, nil)
	}},
	{scripts.RoomRematch, "of a disputed room", "already_started", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().dispute().call(scripts.RoomRematch, 1, nil)
	}},
	{scripts.RoomRematch, "of a free room", "ok", func(f *fixture) call {
		return f.openRoom(free).join(2).cancel("1,2").call(scripts.RoomRematch, 1, values{"users": "2"})
	}},
	{scripts.RoomRematch, "another player was first", "ok", func(f *fixture) call {
		r := f.openRoom(nil).join(2).cancel("1,2")
		r.call(scripts.RoomRematch, 2, values{"users": "1"}).want(scripts.OK)
		return r.call(scripts.RoomRematch, 1, values{"new_room_id": r.roomID(r.shard, "second"), "code": "SECOND"})
	}},
	{scripts.RoomRematch, "a code that is taken", "stale", func(f *fixture) call {
		r := f.openRoom(nil).join(2).cancel("1,2")
		return r.call(scripts.RoomRematch, 2, values{"code": r.code, "users": "1"})
	}},
	{scripts.RoomRematch, "another player is not there", "stale", func(f *fixture) call {
		return f.openRoom(nil).join(2).cancel("1,2").call(scripts.RoomRematch, 2, nil)
	}},
	{scripts.RoomRematch, "with as many seats as one may have", "limit_reached", func(f *fixture) call {
		r := f.openRoom(nil).join(2).cancel("1,2")
		_, create := f.newRoom(nil)
		create.want(scripts.OK)
		return r.call(scripts.RoomRematch, 1, values{"users": "2", "max_seats": 1})
	}},
	{scripts.RoomRematch, "no room", "room_not_found", func(f *fixture) call {
		return f.noRoom().call(scripts.RoomRematch, 1, nil)
	}},
	{scripts.RoomRematch, "a room of another game", "room_not_found", func(f *fixture) call {
		return f.openRoom(nil).cancel("1").call(scripts.RoomRematch, 1, values{"caller_game": f.id + 1})
	}},
	{scripts.RoomRematch, "a private room without a seat", "room_not_found", func(f *fixture) call {
		return f.openRoom(private).cancel("1").call(scripts.RoomRematch, 2, nil)
	}},
	{scripts.RoomRematch, "without a seat", "not_participant", func(f *fixture) call {
		return f.openRoom(nil).cancel("1").call(scripts.RoomRematch, 2, nil)
	}},
	{scripts.RoomRematch, "a forfeited seat", "not_participant", func(f *fixture) call {
		r := f.openRoom(nil).join(2, 3).start()
		r.call(scripts.RoomLeave, 2, nil).want(scripts.OK)
		return r.cancel("1,2,3").call(scripts.RoomRematch, 2, nil)
	}},
	{scripts.RoomRematch, "before the start", "not_started", func(f *fixture) call {
		return f.openRoom(nil).call(scripts.RoomRematch, 1, nil)
	}},
	{scripts.RoomRematch, "before the end", "already_started", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().call(scripts.RoomRematch, 1, nil)
	}},
	{scripts.RoomRematch, "a unit short", "insufficient_funds", func(f *fixture) call {
		r := f.openRoom(nil).join(2).cancel("1,2")
		f.setBalance(2, "249", "0")
		return r.call(scripts.RoomRematch, 2, values{"users": "1"})
	}},
}

// openReadyRematch is openRematch of a room that starts by itself when player 3, who is seated, is
// ready.
func (f *fixture) openReadyRematch() *room {
	f.t.Helper()
	r := f.openRematch(values{"auto_start": 1}).join(3)
	r.call(scripts.RoomReady, 1, nil).want(scripts.OK)
	return r
}

// openRematch opens the rematch of a free room of three: player 1 is seated, 2 and 3 have reserved
// seats.
func (f *fixture) openRematch(settings ...values) *room {
	f.t.Helper()
	all := values{"entry": 0, "max_players": 3}
	for _, more := range settings {
		maps.Copy(all, more)
	}
	r := f.openRoom(all).join(2)
	r.call(scripts.RoomJoin, 3, values{"may_start": 1}).want(scripts.OK)
	r.cancel("1,2,3")
	rematch := r.call(scripts.RoomRematch, 1, values{"users": "2,3"})
	rematch.want(scripts.OK)
	return &room{fixture: f, shard: r.shard, id: rematch.text("new_room_id"), code: rematch.text("code")}
}

// joinFriends seats player 2, and others, as friends of the creator.
func (r *room) joinFriends(more ...int) *room {
	r.t.Helper()
	for _, user := range append([]int{2}, more...) {
		r.call(scripts.RoomJoin, user, values{"friend": 1}).want(scripts.OK)
	}
	return r
}

// noRoom returns a room that was never opened.
func (f *fixture) noRoom() *room {
	return &room{fixture: f, shard: keys.EconomyShard(f.id), id: "none", code: "NONE"}
}
