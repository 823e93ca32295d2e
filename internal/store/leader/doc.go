// Package leader runs background work for all games on one node at a time.
//
// A kind of work, such as sweeping rooms, has one leader in the installation, elected each second.
// Nodes name the games that they changed; the leader looks at these, at those that it or a leader
// that died did not finish with, and once a minute at every game, so that idle games cost next to
// nothing and a game that a dying node could not name waits no longer than a minute.
//
// No invariant depends on there being one leader: the scripts of the work reject an older leader by
// its fence.
package leader
