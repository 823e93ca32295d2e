// Package trail remembers what staff changed: who, by which key, what it was before and is after.
//
// Every write of an operator or of a game's server is one record. It is written after the change,
// because the change is in the hash tag of a player, a game or a room and the trail in that of the
// installation. So each record is a line in the log first, which stands even if the store dies
// between the two. It is then appended to the store, and once more if that fails; a record that the
// store has not taken is an error in the log, with all its members.
//
// Operators have a list, and the servers of each game have two: a stolen server key pushes out
// neither what operators nor what other games did, and its routine pushes out nothing but routine.
// Numbers rise by one with every record of all lists, so a page may go on from a number for ever.
package trail
