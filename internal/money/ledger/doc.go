// Package ledger decodes the entries of a game's ledger and adds them up.
//
// An entry is a double entry: its postings sum to zero. keys.Ledger has the form of its text. The
// same decoder reads entries in the store and in the archive, so both mean the same.
package ledger
