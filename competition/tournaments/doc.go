// Package tournaments runs tournaments of four formats: who enters, who meets whom, who wins, and
// what the fees and the prize pay. They end and pay whatever happens to players, rooms and nodes.
//
// The states, and the scripts (tour_*.lua) by which a tournament gets from one to another:
//
//	             ──▶ ANNOUNCED     create
//	ANNOUNCED    ──▶ ANNOUNCED     open (the added prize is there)
//	             ──▶ REGISTRATION  open (at registrationOpensAt, with the added prize)
//	             ──▶ CANCELLING    start cancel
//	REGISTRATION ──▶ REGISTRATION  join leave
//	             ──▶ CHECK_IN      open (at checkInOpensAt)
//	             ──▶ RUNNING       start (at startsAt, or by staff)
//	             ──▶ CANCELLING    start cancel (too few players; staff)
//	CHECK_IN     ──▶ CHECK_IN      join leave check_in
//	             ──▶ RUNNING       start
//	             ──▶ CANCELLING    start cancel
//	RUNNING      ──▶ RUNNING       settle (who did not check in)
//	             ──▶ RUNNING       pair report refund join leave attempt
//	             ──▶ SETTLING      advance (every match of the last round is decided)
//	             ──▶ CANCELLING    cancel (staff; at endsAt)
//	SETTLING     ──▶ SETTLING      settle (the fees go to the prizes)
//	             ──▶ FINISHED      advance (the prizes are paid)
//	CANCELLING   ──▶ CANCELLING    settle (the fees go back)
//	             ──▶ CANCELLED     advance (the added prize went back)
//	FINISHED     ──▶ removed       remove (staff)
//	CANCELLED    ──▶ removed       remove (staff)
//
// A test compares this drawing with what the scripts do.
//
// A match is WAITING for its room, READY for its players, PLAYING, and DECIDED; a draw that is
// played again makes it WAITING with the next attempt.
//
// After every script:
//
//   - The escrow of the tournament is the sum of the fees that its entrants hold; the amounts held
//     in all wallets are the escrow of all rooms and tournaments.
//   - Each fee leaves the escrow once: back to its player, or to the prizes. Payouts and rake of a
//     finished tournament are its pot. A cancelled one has given every fee back.
//   - seq and position are those of the last event in the tournament's list, and no number is
//     missing.
//   - A round is begun once, by pairings that were made for the players as they are. A match is
//     decided once, for the attempt that was played. No round begins before the last one is
//     decided.
//   - A leader that was followed by another one changes nothing.
//
// # Who does what
//
// Players join, leave and check in; staff cancels, disqualifies, and decides a match. All else is
// done by one node at a time, the leader of package leader: it opens, starts, pairs and settles by
// the store's clock, opens the rooms of matches and looks at their deadlines. It keeps nothing in
// memory, so another node goes on where one died. The ends of rooms come from the outbox of package
// rooms, on any node.
//
// Every match has a deadline, whatever its room does: to be opened, to be joined, to be played. So
// a tournament ends, even if every player vanished.
//
// # One hash
//
// A tournament is one hash at keys.Tour, in the economy of its game. The fields:
//
//	settings     |  scripts.TourSettings: what never changes and scripts decide by
//	definition      Definition as JSON, and "feed" whether its events go to the game's server, from
//	                the game as it was set; never changes
//	live         |  scripts.TourLive: what changes with every call
//	actor           who made it: "op" or "g<game>"
//	created         ms, as started and ended
//	joins           number of the last join; the order of the entrants
//	draw            random number of the draw
//	seeds           user ids in the order of their seeds, with commas
//	round:<n>       "<started ms>|<matches>"
//	reason          why it was cancelled
//	pot, rake       minor units, from SETTLING on
//	payouts         "<user>:<place>:<units>:;" of each place that is paid, likewise
//
// Entrants, their order, matches and attempts are keys of their own. Nothing of a tournament
// expires.
//
// # What is decided here
//
// The fee is a stake: the limits that players set for themselves hold for it, as for the entry of a
// room. A prize counts in them as the payout of a room does: it lessens a player's losses.
//
// The pot is divided by the functions that rooms use. A disqualified player gets nothing. With
// nobody to pay, or when nobody has come to any match, every fee goes back: the house has a part of
// a result only.
//
// A player who leaves after the start keeps points and place, and the fee stays in the pot. Who
// comes back in a round in which players may join late pays no second fee and keeps byes and
// points; a missed round is worth nothing.
//
// A player who did not check in is out, begins no play and has no place, even if a score arrives.
//
// A match that one player came to is a walkover; one that nobody came to is lost by both.
//
// A draw is what the players reported, or the server said, never silence: else the better seed
// could not lose. A match by consensus waits for the window of its reports, and for staff when the
// players contradict each other. What staff does not decide in time, and what no server decided in
// all attempts, is settled by the rule for disputes, which does not know the seeds. A match by
// consensus of which nobody reports anything is lost by both.
//
// Whose fee went back by that rule is out of the tournament and gets nothing of the pot, which has
// that fee no more. The places behind move up to what is paid.
//
// If the time to check in passed while the store was away, all entrants count as checked in.
package tournaments
