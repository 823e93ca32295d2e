// Package calls brings the calls of players to the server of their game, and each answer back.
//
// A call is a message that one connection of a server gets, at most once. Nothing is stored. The
// node of the caller keeps what waits for an answer, the node of the server keeps what the server
// was asked. Each node receives a channel of its own, keys.NodeChannel:
//
//	caller ──▶ node A ──"c|…"──▶ channel of B ──▶ node B ──▶ server
//	caller ◀── node A ◀──"a|…"── channel of A ◀── node B ◀── server
//
// Where A is B, nothing is sent.
//
// # What a caller learns
//
//   - no_server: the call reached nobody. No server listens to the room, or the one that did is
//     gone, or it has more calls than it can take. This is known at once, since publishing says
//     whether a node receives the channel.
//   - server_timeout: no answer came in time, or the server's connection ended before it answered.
//     The server may have done what it was asked.
//
// Calls of one caller keep their order. Each has a number: what was published twice, because the
// store's reply was lost, is dropped, and so is what comes after a later one.
//
// # What a server may answer
//
// The calls that its connection was asked, once, in their time. Everything else is call_not_found
// and counted.
package calls
