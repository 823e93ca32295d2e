// Package servers knows which servers of a game listen to a room, on any node.
//
// A server is a connection. It listens to a share of the game's rooms (game.subscribe), to single
// rooms (room.subscribe), or to both. Find returns one whose share has the room; without one, one
// that listens to the room itself, so that a tool that follows a room takes no calls from the server
// that plays it. Of several it is the one that has been connected the longest, so all nodes choose
// the same.
//
// # Leases
//
// The node of a server stores a lease in keys.GameServers and renews it every two seconds; a lease
// that was not renewed for eight is over. Nothing else removes the lease of a dead node: nobody has
// to act, since whoever reads compares the time. One round trip renews all leases of a node. The
// rooms of a server are a set that Redis removes with the lease. What the store lost, by a failover
// for example, the next renewal stores again.
//
// One goroutine writes, so that a renewal cannot bring back what a disconnection has removed.
//
// # What a node knows
//
// Find reads the leases of a game at most once a second, so a server that is gone is asked no longer
// than that. When no server is known, Find reads again, but not more often than twenty times a
// second: the first server gets the next call.
//
// A server whose node does not receive what it is sent is not returned again before its lease was
// renewed (Suspect). So the calls to a killed node fail once, not for as long as its leases last.
package servers
