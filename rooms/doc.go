// Package rooms keeps game sessions: who sits in a room, what is staked, how it starts and how it ends.
//
//	             join leave kick ready transfer-host
//	                 ┌──────┐
//	create, rematch  ▼      │   start, autoStart            finish, one active player left of a paid room
//	 ─────────────▶ CREATED ┴───────────────────▶ STARTED ───────────────────▶ FINISHED ──▶ rematch
//	                 │                              │ ▲ leave: the seat is forfeited,
//	                 │ cancel by the host           │ └─┘ the stake stays
//	                 │ the last one leaves: empty   │ cancel by server or operator, all leave: empty
//	                 │ idle, too old: idle, expired │ no result in time: timeout
//	                 ▼                              ▼
//	             CANCELLED, every stake returned ◀──┘ ──▶ rematch
//
// What always holds, after every script:
//
//   - the pot is the sum of the stakes of all seats; the held amounts of all wallets are the stakes of the rooms that have not ended;
//   - payouts and rake are the pot exactly, and a cancelled room gives back every stake, those of the forfeited too;
//   - seq and position are those of the last event in the room's stream, and no number is left out;
//   - an index names a room exactly while the room is what the index says;
//   - a call that is sent twice has happened once.
//
// # One hash
//
// A room is one hash at keys.Room, so reading it is one command, and every script answers all of it, so changing it is one
// round trip; few fields, because reading and answering them is what a small change costs the store. What never changes: "set", what
// scripts need, "room|game|token|decimals|entry|max|min|friends|visibility|auto|idle|age|match|keep|creator" (times in ms; keep: after
// the end); "doc", what only readers need, with tabs: id, code, the creator's profile as JSON, settlement, rake, payout, tie, metadata, the
// EntryToken as of the opening; "created". The state: "state", which is "status|host|ver|pos|pot|profile of the host"; "seq", "started",
// "finished", "changed" (ms), "reason", "results", "payouts", "refunds" (JSON), "rake", "rematch" (id of the room), and "seats" in seating order
// with tabs between them, each "uid|state|ready|since ms|stake|profile". "ban:<uid>" bars a player, "did:<who>" has the nonces of a caller's
// last two calls; an answer leaves out these two.
//
// Profiles and the entry token are shown as of sitting down and opening: a room can be read without asking anybody else.
//
// # What is decided here
//
// A private room is room_not_found to whoever is not seated, has no reserved seat, is no friend of the creator and not the creator. Its
// code does not help: a code is short enough to be guessed. To admit whoever knows a code there are unlisted rooms.
//
// The friendship that a friends-only or private room asks for is read before the script, without a lock: the two are at different places in the
// store. It is safe, because friendship is a permission and guards no invariant: it is read within the call, so an admission is right as
// of a moment of the call, just as if the other had ended the friendship a moment later; and the host can take the player out. The creator,
// whose friendship counts, never changes.
//
// A paid room whose pot would be left to one active player is finished for that player, with rake. A free room plays on with one. The pot of a
// room that has ended is that of its end: what was paid out, or given back.
//
// Shares of the payout table are rounded down; what the rounding leaves and the shares of places that nobody reaches go to the first place.
//
// Reserved seats count against maxPlayers until the start, when they fall away; leaving declines one. autoStart looks at those who are
// seated, and starts a room also when somebody who was not ready leaves.
//
// Several calls on one room at the same time are ordered by the store. A script that finds that it needs the wallets of players whom the caller
// did not name answers "stale" with the room, and is called again with them.
package rooms
