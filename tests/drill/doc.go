// Package drill takes an installation, started from its shipped files, through every planned change
// and every fault, while players use it, and prints one table of what they noticed. It has tests
// only.
//
// What is counted:
//   - A request is one intent of a client: a POST with its own Idempotency-Key, a save over a
//     socket, or the opening of a socket. It has failed when its first attempt got anything else
//     than success: no connection, a connection that ended, 503 and every other error. The client
//     of the tests repeats nothing by itself, not even on a connection that it had kept open. Later
//     attempts, with the same key, are not requests.
//   - A socket is moved when a node closes it with 1012, by which a node that drains asks its
//     clients to come back, and cut when it ends in any other way. A save that was sent on a socket
//     that is being moved is sent again with its id, and has not failed.
//   - An event is lost when the numbers of a room or of a player have a gap, or when a snapshot
//     took its place though the store has it; it is doubled when its number is not above the last
//     one. In the end every client must have a last event that is made for that.
//   - An acknowledged call is lost when its effect is not in the keys of the store in the end. If
//     none is lost, each is sent again with its key and must be a replay.
package drill
