// Package archiver moves old entries and lines of the ledgers from the store to the archive.
//
// A segment is written and read back before its entries are removed. Writing it twice writes the
// same bytes, and the script that removes entries checks their number, the last text and the sum of
// the segment before. So a leader may die at any step, and there may be two leaders. Entries that
// do not add up to the totals are evidence and stay where they are.
//
// The newest entries and lines stay in the store, as many as Retention says. When the archive
// cannot be reached, nothing leaves the store, and money goes on.
//
// A store that lost its newest writes, as after a failover, may have another history than the
// archive. Then nothing of the game is archived until an operator has called Rewind.
package archiver
