// Package ledgerstore reads the ledger of a game and the totals that it adds up to, wherever its
// entries are.
//
// New entries are in the store and old ones in the archive. While one is read, entries may leave
// the store; then it is read again, so that no number is returned with the text of another. The
// lines of players leave it likewise, each list by itself. Without an archive, what has left the
// store cannot be read.
//
// A total lags behind the ledger, and is folded: the sum of a page of entries is added to it by one
// script, which checks that they are the next ones. So every fold is exact, whoever makes it.
// ReadTotals adds what is not folded yet, all of it read at one instant. What was minted is no
// fold: the scripts that mint keep it.
//
// Methods return store_unavailable when the store or the archive cannot be reached.
package ledgerstore
