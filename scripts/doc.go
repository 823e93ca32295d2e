// Package scripts holds every atomic change of state: one Lua file each, with its contract
// in its header.
//
// A header has these lines, in this order; those with nothing to declare are left out:
//
//	-- room_kick: removes a player before the start and returns the stake, or changes nothing.
//	-- INCLUDES  clock int_to_string call room …
//	-- FLAGS     allow-oom
//	-- KEYS      1 room  2 events  then the ledger of a paid room …
//	-- ARGV      9 target  10 ban: 1 or 0
//	-- LEDGER    if a stake goes back
//	-- RETURNS   ok replay room_not_found …
//	-- INVARIANT pot is the sum of the stakes
//
// A line that starts with "--" and two spaces continues the one above. INCLUDES names the
// libraries (lib_*.lua) that the loader puts in front of the script, these alone and in this
// order: all that the script needs, and what they need. A library's own INCLUDES names only what
// its code names itself. FLAGS are the flags with which Redis runs it: allow-oom runs on a full
// store too, which is for what pays back, frees or ends something; no-writes only reads. A script
// without a flag is refused as a whole by a full store. LEDGER says when the script appends to the
// ledger, and CONFIRM why no replica needs what it writes. RETURNS lists every status that the
// script can return: "ok", "stale" (the caller read an older version and must read again),
// "replay" (the first reply follows) or an error code of package apierror. The architecture tests
// compare the headers with the code.
//
// KEYS and ARGV give each key and argument its name, and go on where those of the included
// libraries end; "then" begins a list of any length. The loader writes the local variables of these
// names, that of a key with "_key" at its end, in front of the file, and the number of the first
// key or argument of the list in the place of NEXT_KEY and NEXT_ARG. "make generate" writes a Go
// type of the arguments, RoomKickArgs, into args.go; the architecture tests demand that a call
// gives all of them.
//
// Rules for every script:
//
//   - Check, then write: after the first write a script must not return an error, since Redis does
//     not roll back.
//   - All keys come through KEYS and share one hash tag.
//   - Amounts are decimal texts of minor units. Lua's numbers are exact to 2^53 - 1, and winnings
//     may pass that: what has more than 15 digits is added by Redis, and balances are compared as
//     texts.
//   - Numbers are printed with int_to_string.
//   - A reply is an array of texts; the first is the status.
//
// The package embeds the sources and imports no Redis client.
package scripts
