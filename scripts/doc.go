// Package scripts holds every atomic change of state: one Lua file each, with its contract
// in its header.
//
// A header has these lines, in this order (USES and KEEPS where there is something to say):
//
//	-- room_join: seats a player and takes the stake, or changes nothing.
//	-- USES  clock money event receipt
//	-- KEYS  1 room  2 events  3 wallet …
//	-- ARGV  1 publish  2 nonce  3 uid …
//	-- GIVES ok room_full insufficient_funds …
//	-- KEEPS pot is the sum of the live stakes
//
// A line that starts with "--" and spaces continues the one above. USES names the parts
// (part_*.lua) that stand in front of the script when it runs, less the functions that it never reaches. GIVES lists every word that the
// script can answer: "ok", "stale" (the caller read an older version: read again) or a word of
// package apierror; a receipt adds "replay". the architecture tests hold the headers to the code.
//
// Rules that every script keeps: ask, then write: after the first write nothing may refuse, for
// Redis does not roll back. All keys come through KEYS and share one hash tag. Amounts stay
// strings; numbers are printed with whole(). An answer is an array of strings whose first is the word.
//
// The package embeds the sources and knows no Redis client.
package scripts
