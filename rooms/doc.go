// Package rooms runs game sessions: who sits in a room, what is staked, how the game starts and how
// it ends.
//
//	              join leave kick ready transfer
//	                 ┌──────┐
//	create, rematch  ▼      │   start, autoStart
//	─────────────▶ CREATED ─┴───────────────────▶ STARTED ◀─┐ leave: the seat is forfeited,
//	                 │                              │   └───┘ the stake stays in the pot
//	                 │                              │
//	                 │                              ├──────▶ FINISHED ──▶ rematch
//	                 │                              │ the server reports the result, or
//	                 │                              │ a paid room has one player left
//	 host: cancel    │                              │
//	 idle: no change │                              │ timeout: no result in time
//	 expired: too old│                              │
//	                 │ empty: the last player leaves│
//	                 │ server, operator: cancel     │
//	                 ▼                              ▼
//	             CANCELLED, every stake returned ◀──┘ ──▶ rematch
//
// After every script:
//
//   - The pot is the sum of the stakes of all seats.
//   - The amounts held in all wallets are the stakes of the rooms that have not ended.
//   - The payouts and the rake of a finished room are exactly its pot.
//   - A cancelled room has given every stake back, those of forfeited seats too.
//   - seq and position are those of the last event in the room's stream, and no number is missing.
//   - An index contains a room exactly while the room is in the state that names the index.
//   - A call that was sent twice has happened once.
//
// # One hash
//
// A room is one hash at keys.Room. To read it is one command. Every script returns the whole room,
// so that a change is one round trip. The hash has few fields, because reading and returning them
// is what a small change costs the store: values that change together are packed into one text.
// record.go has the list of their names, in this order:
//
//	field       separator  values
//	set         |          room id, game id, token code, decimals, entry, max players, min players,
//	                       friends only 0/1, visibility, auto start 0/1, idle ms, age ms, match ms,
//	                       keep ms after the end, creator id
//	doc         tab        id, code, creator's profile, settlement, rake bps, payout bps with
//	                       commas, tie, metadata, entry token as of the creation
//	state       |          status, host id, version, position, pot, host's profile
//	seats       tab        in seating order, each: user id, state, ready 0/1, since ms, stake,
//	                       profile, with | between them
//	created                ms, as started, finished and changed (the last change)
//	seq                    number of the last event
//	reason                 why the room was cancelled
//	results                JSON, as payouts and refunds
//	rake                   minor units
//	rematch                room id of the rematch
//	ban:<user>             1: the player may not join
//	marks                  nonces of the last calls, to recognise a resend
//
// Amounts are minor units. Profiles, metadata and the entry token are JSON without tabs and line
// breaks; a profile may contain "|" and is therefore the last value. "set" and "doc" never change;
// of the scripts only room_rematch reads "doc". A script's reply leaves out changed, ban:
// and marks.
//
// Profiles and the entry token are those of the moment of joining or creation, so that reading a
// room needs no other package. A profile may be 5 s older, because the node that seats the player
// keeps it for so long after reading it.
//
// # What is decided here
//
// A private room is room_not_found for a player who has no seat, is not the creator and not a
// friend of the creator. Its code does not help, because a code is short enough to be guessed.
// Unlisted rooms are for everybody who has the code.
//
// The friendship that a friends-only or private room needs is read before the script, without a
// lock, because the two are in different slots. This is safe. Friendship is a permission and guards
// no invariant. It is read during the call, so the admission is right for a moment of the call, and
// the host can kick the player. The creator, whose friendship counts, never changes.
//
// A paid room with one active player left is finished for that player, with rake. A free room goes
// on. The pot of an ended room is that of its end: what was paid out or given back.
//
// Shares of the payout table are rounded down. What the rounding leaves goes to the first place, as
// do the shares of places that nobody has.
//
// Reserved seats count against maxPlayers until the start, when they are removed. Leaving gives a
// reserved seat up. autoStart counts active seats. It also starts a room when a player who was not
// ready leaves.
//
// The store orders calls on one room. A script that needs the wallets of players whom the caller
// did not name returns "stale" with the room, and is called again with them.
package rooms
