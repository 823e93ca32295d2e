// Package sessions ends sessions: every node knows within two seconds that a session has ended, and
// calls those who watch it.
//
// A session is a family of refresh tokens, or the use of an outside issuer's token. Each access
// token belongs to one session. One end may concern one session, all that a player has begun, all
// that an outside issuer vouches for in a game, or all that a server key made.
//
// Ends are entries of one stream in the store. Each node reads it once a second from the position
// that it has reached, so that a node that was cut off catches up, and no request waits for it. A
// node that has read nothing yet reads it all before its first answer. Entries are dropped when
// every token of the sessions that they end has expired.
package sessions
