// Package games keeps games: their names, origins, welcome grants, settings and server keys.
//
// A game is created by the operator and lives for ever. Its definition has a version that rises by one with every
// change, and a change is made against the version that was read, so that two editors never undo each other unseen.
//
// A server key is a secret of one game. It is shown once, when it is made; the store has only its SHA-256. A game may
// have several, so that one can be replaced without a pause.
//
// Games are read at every request and change rarely: a node remembers one for at most a second, and its own changes at once.
package games
