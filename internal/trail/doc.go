// Package trail remembers what staff changed: who, by which key, what it was before and is after.
//
// Every write of an operator or of a game's server is one record. It is written after the change,
// because the change is in the hash tag of a player, a game or a room and the trail in that of the
// installation. So each record is a line in the log first, which stands even if the store dies
// between the two. It is then appended to the store, and once more if that fails; a record that the
// store has not taken is an error in the log, with all its members.
//
// Operators and game servers have a list each, with the last MaxRecords records: a stolen server
// key cannot push out what operators did. Numbers rise by one with every record of both, so a page
// may go on from a number for ever.
package trail
