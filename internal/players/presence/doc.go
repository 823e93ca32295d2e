// Package presence stores which players have a socket that follows their room, and has the others
// notified of it by room.connected and room.disconnected.
//
// A player is connected to a room while the player has a seat in it and, on any node, a socket that
// is subscribed to it. Several sockets count as one. Presence takes no seat away: a player who is
// disconnected keeps the seat, and graceUntil says until when the others should wait.
//
// # The lease of a node
//
// A node has a lease, which it renews every two seconds with one command, however many players it
// has. What it stores about a player names the lease. A lease that was not renewed for eight
// seconds is over: one node, elected by a lock, ends it, and announces as gone the players who have
// no socket elsewhere. An ended lease is a fence: the scripts refuse what a node that was frozen,
// or cut off from the store, still sends by it. Such a node takes a new lease and stores its
// players again.
//
// A node ends leases only when it has renewed its own without a gap for as long as a lease lasts.
// So an outage of the store, through which nobody could renew, ends none.
//
// # What is stored
//
// A player's record is a field of the room's hash, "p<user>", packed as scripts.RoomPresence. Who
// reads the room has it at the position of the room. A room that nobody follows has no record, and
// costs what it would without this package. On each shard a lease has a hash, keys.PresenceLease,
// of the rooms in which it has players: by this the players of a dead node are found.
//
// # When a node stores it
//
// The node counts the sockets of each player in each room and stores the first and the last. One
// goroutine makes all calls of a node, many rooms in a round trip, so that they arrive in order; a
// call has a number, and one that is older than the last one changes nothing.
//
// The last socket counts as lost after two seconds: a page that reloads, or a phone that changes
// its network, is not announced. While the node drains, it is ten seconds, since its players are
// about to open a socket elsewhere. What is left when a node has stopped ends with its lease.
//
// A player may follow a room before taking a seat: the script looks at the seat, and the node
// repeats the call when room.joined arrives. A seat that is taken again is announced again.
//
// Each minute a node repeats what it has in each of its rooms. This writes nothing unless the store
// has lost something, by a failover for example.
package presence
