// Package rooms runs game sessions: who sits in a room, what is staked, how the game starts and how
// it ends.
//
// The states, and the scripts (room_*.lua) by which a room gets from one to another:
//
//	          ──▶ CREATED    create rematch open_match
//	          ──▶ STARTED    create rematch (autoStart, for one player)
//	CREATED   ──▶ CREATED    join leave kick ready transfer state_set
//	          ──▶ STARTED    start join leave kick ready (autoStart but for the first)
//	          ──▶ CANCELLED  cancel leave kick sweep (host, staff; empty; empty; idle, expired)
//	          ──▶ CANCELLED  cancel close_match (tournament; somebody is not there at the deadline)
//	STARTED   ──▶ STARTED    leave transfer report (leave: the stake stays in the pot)
//	          ──▶ STARTED    state_set turn_set turn_skip
//	          ──▶ DISPUTED   report (the players contradict each other: pot and seats are frozen)
//	          ──▶ DISPUTED   window_close (who is silent was not there; a draw that not all report)
//	          ──▶ FINISHED   finish report leave (server; all agree; all left do, or one is left)
//	          ──▶ FINISHED   window_close (silence agrees)
//	          ──▶ CANCELLED  cancel leave sweep (staff, tournament; empty; timeout)
//	DISPUTED  ──▶ DISPUTED   report transfer
//	          ──▶ FINISHED   resolve (the operator)
//	          ──▶ CANCELLED  resolve cancel sweep (operator; staff, tournament; after 72 h)
//	FINISHED  ──▶ FINISHED   rematch
//	          ──▶ removed    sweep
//	CANCELLED ──▶ CANCELLED  rematch
//	          ──▶ removed    sweep
//
// A finished room has paid its pot out, a cancelled one has given every stake back. A test compares
// this drawing with what the scripts do.
//
// After every script:
//
//   - The pot is the sum of the stakes of all seats.
//   - The stakes of the rooms of a game that have not ended and the fees that its tournaments hold
//     are together the amounts held in its wallets.
//   - The payouts and the rake of a finished room are exactly its pot.
//   - A cancelled room has given every stake back, those of forfeited seats too.
//   - seq and position are those of the last event in the room's list, and no number is missing.
//   - An index contains a room exactly while the room is in the state that names the index, and the
//     list of a player exactly the rooms that have not ended and in which the player has a seat.
//   - A call that was sent twice has happened once.
//
// # One hash
//
// A room is one hash at keys.Room, on the shard that its id names: in the economy of its game when
// it takes a stake, else on one of the shards for free rooms. A script reads and writes the fields
// that a change is about, a seat in particular, and returns a status; the room is read in the same
// round trip. Values that change together are packed into one text. Package scripts has the list of
// their names and order, which Go and Lua share; the document is packed by Go alone.
//
//	field         separator  values
//	settings      |          scripts.RoomSettings: what never changes and scripts decide by
//	document      tab        settlement, rake bps, payout bps with commas, tie, metadata, entry
//	                         token as of the creation, creator's profile; never changes
//	live          |          scripts.RoomLive: all that changes with every call
//	s<user>       |          scripts.RoomSeat: one seat; the profile is JSON and the last value
//	b<user>                  1: the player is banned
//	bans                     number of bans
//	id                       the room's number in its game
//	code                     its short name
//	created                  ms, as started and finished
//	disputed                 ms; when the reports contradicted each other
//	refund_at                ms; when a disputed room gives every stake back
//	window        |          scripts.RoomWindow: until when the players may report; of a room that
//	                         has ended or is disputed it means nothing more
//	dispute_ms               of a match: how long its dispute may last
//	p<user>       |          scripts.RoomPresence: if the player is connected; presence writes it
//	r<user>                  what the player reported: the place of each seat in seating order, 0
//	                         for a forfeited one, with commas; with scores, "|" and these likewise
//	reports                  number of reports
//	reason                   why the room was cancelled
//	placements               "<user>:<place>:<units>:<score>;" each, of a finished room: place 0
//	                         for a forfeited seat, units empty in a free room
//	refunds                  "<user>:<units>;" each, of a cancelled room
//	rake                     minor units
//	rematch                  room id of the rematch
//	host_profile             of the last host, who left the room empty; else the host's seat has it
//	marks                    nonces of the last 32 calls without a key, to recognise a resend
//	turn          |          scripts.RoomTurn: who has the turn; of a room that has ended or is
//	                         disputed it means nothing
//	state         |          scripts.RoomState: the head of the shared state
//	k:<name>                 a value of the shared state, JSON
//	stakes                   1 when money hangs on the room, 0 when it does not; it lacks where
//	                         that follows from settings
//	skips                    "<turns that went on by themselves>|<number of the event of the last>"
//	deadline                 ms, of a match: until which its players may sit down
//
// Amounts are minor units. Profiles, metadata and the entry token are JSON without tabs and line
// breaks; a profile may contain "|".
//
// The events of a room are a list of its newest 256 to 319, in the form of package events, which is
// dropped ten minutes after the room has ended. The room itself is removed after its retention.
//
// A request with a key leaves a receipt beside the room: status, error values and, of create and
// rematch, the id of the new room. A replay returns these, with the room as it is now.
//
// Profiles and the entry token are those of the moment of joining or creation, so that reading a
// room needs no other package. A profile may be 5 s older, because the node that seats the player
// keeps it for so long after reading it.
//
// # Shared state and turns
//
// The shared state is the game's own values by name, beside what the room itself has. It has a
// version of its own: the version of the room, for which results are computed, stays when a value
// changes. Each name is a field of the room's hash, so that a change costs what it changes. Its
// events are larger than others: when 64 KiB of them were written, the list is cut to the newest
// 32, and who missed more gets a snapshot.
//
// A turn has a deadline by the store's clock. RoomTurns names the rooms with one, and a leader of
// its own looks there twice a second; it waits for the deadlines before the next look. The script
// that ends a turn compares the clock and the turn, so a leader that was replaced, or that sends it
// twice, changes nothing. A forfeit at a deadline is room_leave itself.
//
// # Result consumers
//
// A room feeds leaderboards when it was created while the game's settings named some, and the match
// that it was opened for. Players name neither. The script that ends such a room leaves an entry in
// the outbox of its shard, in the same step; a room without a consumer has no entry and gives its
// scripts no key for one. The node that ended the room has the entry applied at once, after its
// response; an elected leader applies those that were left by a node that died or that failed. A
// consumer counts a room once: a leaderboard keeps a receipt by the room, and a tournament decides
// a match once. The entry is removed after that. An entry that its consumer rejects for good
// becomes a dead letter: it leaves the outbox, is counted and logged, and delays no other room.
//
// # Matches
//
// The room of a match is a free room that nobody has made: its id follows from the match, its seats
// are reserved when it is opened, and it counts for no quota of open rooms. Nobody is a friend of
// its creator, so that isFriendsOnly keeps the seats for its players. The first of them is the
// host, but can neither cancel it nor take others out; its last player to sit down starts it. At
// the deadline one script decides whether it is played. No money of the tournament is in the room:
// the tournament holds the fees, and the pot of a match is 0.
//
// # What is decided here
//
// A private room is room_not_found for a player who has no seat, is not the creator and not a
// friend of the creator. Its code does not help, because a code is short enough to be guessed.
// Unlisted rooms are open to everybody with the code.
//
// The friendship that a friends-only or private room needs is read before the script, without a
// lock, because the two are in different slots. This is safe. Friendship is a permission and guards
// no invariant. It is read during the call, so the admission is right for a moment of the call, and
// the host can kick the player. The creator, whose friendship counts, never changes.
//
// A paid room with one active player left is finished for that player, with rake. The room of a
// match is finished too; other free rooms go on. The pot of an ended room is that of its end: what
// was paid out or given back.
//
// Only the places that somebody reached share the pot, in proportion to their basis points. Shares
// are rounded down; the units that are left go to the largest fractions.
//
// Reserved seats count against maxPlayers until the start, when they are removed. Leaving gives a
// reserved seat up. autoStart counts active seats. It also starts a room when a player who was not
// ready leaves. For the player, a reserved seat is a seat: the room is among the player's own. So
// is a forfeited one until the room has ended.
//
// A room bans at most 256 players; the next one can be taken out, but not banned. To drop the
// oldest ban instead would let a player back in whom the host has banned.
//
// A room counts for the player who made it until it ends. The list of the rooms that a player made
// is written by the scripts that open one; it may name rooms that have ended, which are looked up
// and dropped when it is full. To keep it exact, every script that ends a room would need the key
// of a player whom its caller does not know.
//
// The store orders calls on one room. A script that needs the keys of players whom the caller did
// not name returns "stale" and is called again with them.
//
// One node at a time sweeps the rooms of all games, as the leader of package leader. It takes at
// most a fifth of the store's time.
//
// # Consensus
//
// Players of a room with settlement "consensus" report places and, if they like, scores. Reports
// are the same when their places are; the scores of a finished room are those of the report that
// ended it. A player who forfeits falls out of every report, and the places of the others move up:
// so a report made before somebody left is the same as one made after it. A report of a player who
// has left counts no more. The rule that one of two players may concede is about the active ones.
//
// A contradiction counts at once, before the others have reported. The later ones are stored too,
// since the operator decides by them. When a player leaves, those who are left may all have
// reported: then the room is finished, with the scores of the first of them in seating order.
//
// A window begins with the first report of those who are still there. At its end silence agrees,
// and the reports finish the room: else a loser would never report. Two kinds of silence do not
// agree, and make the room disputed. A draw is what all have reported. And a player who had no
// connection to the room for the whole window may not know of the report. Package presence keeps in
// the room's hash who is connected. When the window begins, room_report lists who is not; a later
// connection changes the record of its player. Only the script that closes the window ends it, and
// a report that comes later waits for that: so the sweep may be late and decides nothing. While a
// window runs, the timeout of the match ends nothing. Nobody has reported until the timeout: the
// room is cancelled.
//
// Builds before 2026-11-27 begin no window. One that sweeps moves the room to the timeout of its
// match, where the window ends when a newer build sweeps then, and every stake is returned else.
//
// Staff that decides a dispute counts, for each player, the report that was not the result.
//
// The game's server may finish a room with consensus as any other, but only the operator resolves a
// disputed one. The server and the operator may cancel it, which gives every stake back, as the
// sweep does 72 h after the dispute began, in a match after dispute_ms. The server can do neither
// in the match of a tournament with stakes. Nobody leaves a disputed room: the players to be paid
// must not change while the operator decides.
//
// A room with consensus has at most 32 players. Reports stay with the room until it is removed. The
// Room object names who has reported; what, only to the operator, once the room is disputed or has
// ended: before that, a player could copy what others saw.
package rooms
