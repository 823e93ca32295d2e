// Package auth tells who is calling, and how often they may.
//
// Three callers exist. A player shows an access token: a JWT signed here (HS256) that lives 15 minutes, or one of an
// outside issuer that the player's game accepts. A game's server shows its server key, the operator the admin key.
//
// Beside its access token a player has a refresh token of a family:
//
//	sign-in ──▶ current ──Refresh──▶ current' ──Refresh──▶ … until idle for 30 days, or 180 days old
//	               │
//	               └── used once more ──▶ the family is revoked; every token of it answers refresh_reused
//
// A ticket is a caller in 32 random bytes, for a browser that cannot send headers: good once, for a minute.
//
// What players prove (secrets of devices, ids at a game's server) stands in the store as a keyed digest only, and so
// do tokens and tickets as plain ones: they are random.
//
// A rate limit is one number in Redis for each class of calls and caller. A node takes permits in slices, so that a busy caller
// costs it no round trip each time, and never gives more than it took. When the store is gone, each node limits by itself.
package auth
