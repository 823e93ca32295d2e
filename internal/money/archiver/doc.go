// Package archiver moves what is old in the ledgers of games from the store to the archive.
//
// A segment is written and read back before its entries are removed. Who does it twice writes the
// same, and the script that removes entries checks the number, the last text and the sum of the
// segment before: so it does not matter where a leader dies, or whether there are two. Entries that
// do not add up to the totals are evidence and stay where they are.
//
// The newest entries and lines stay in the store, as many as Retention says. When the archive
// cannot be reached, nothing leaves the store, and money goes on.
//
// A store that lost its newest writes, as after a failover, may have another history than the
// archive. Then nothing of the game is archived until an operator has called Rewind.
package archiver
