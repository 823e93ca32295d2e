// Package audit proves that no unit of money is ever made or lost.
//
// For every token of a game, at every instant:
//
//	minted == wallets + escrow + prizes + house
//
// Package wallet defines these. The audit compares what was minted with the folded totals and the
// entries behind them, all read at one instant. The deep audit also recounts every wallet, looks at
// the last lines and replays the ledger. VerifyLedger reads the ledger from its first entry, and
// everything that is in the archive.
//
// The Alarm audits all the time: the leader calls it with the games that it has folded. Where money
// is not conserved, it stops the money of that game until an operator has accepted what was found.
// It stops nothing for a game that it cannot read.
//
// The audit changes no balance and no entry, and of the totals it only folds what is there. Reads
// take no Caller: their caller must have checked who may see the game. Methods return
// store_unavailable when the store or the archive cannot be reached.
package audit
