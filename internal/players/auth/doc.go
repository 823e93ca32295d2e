// Package auth authenticates callers.
//
// There are three kinds of callers. A player shows an access token: a JWT signed here (HS256) that
// is valid for 15 minutes, or one of an external issuer that the player's game accepts, which
// counts for a day. A game's server shows its server key, the operator the admin key.
//
// A sign-in also returns a refresh token, the first of a family:
//
//	sign-in ──▶ current ──Refresh──▶ current' ──Refresh──▶ … until idle for 30 days, or 180 days old
//	               │
//	               └── used once more ──▶ the same current', for 30 s and while that is unused;
//	                                      else the family is revoked: all return refresh_reused
//
// A successor is derived from the token that it replaces, by a key that never changes. So two tabs
// of a browser, or a client that lost a reply, get the same one from every node.
//
// An access token names its session: the family, when it began and what made it. Package sessions
// makes a session end on every node; sockets follow theirs by WatchSession.
//
// A ticket stands for a caller in one WebSocket upgrade, because browsers cannot send headers
// there. It is random, valid once, for a minute.
//
// The store has no credential in clear. What a person or another system chose (device secrets, ids
// at a game's server) is stored as a keyed digest, so that nobody can guess it; random tokens and
// tickets as a plain one.
package auth
