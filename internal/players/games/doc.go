// Package games keeps games: their names, origins, signup grants, settings and server keys.
//
// A game is created by the operator and is never deleted. Its definition has a version that rises
// by one with every change. A change may name the version that it is based on, so that two editors
// never overwrite each other unnoticed.
//
// A server key is a secret of one game. It is shown once, when it is made; the store has only its
// SHA-256. A game may have several, so that one can be replaced without downtime.
//
// Every request reads a game and few change one: a node caches a game for a second and sees its own
// changes at once.
//
// Methods that a request calls take the Caller: the operator may call all of them, the server of a
// game those on its own game. The Find methods have no Caller: they are for packages that look up
// the game of somebody else's request.
package games
