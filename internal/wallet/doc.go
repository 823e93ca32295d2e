// Package wallet keeps amounts, tokens, balances, held stakes and the ledger, and proves that no
// unit of money is ever made or lost.
//
// For every token, at every instant:
//
//	minted == wallets + escrow + house
//
// minted is what credits and grants brought in, less what debits took out. wallets is what players
// can spend. escrow is the stakes in rooms that have not ended. house is the operator's account:
// the income from purchases and rake.
//
// Every change is one script that moves both sides and writes the ledger entry. Audit compares the
// running totals in one read. AuditDeep also recounts every wallet and replays the ledger.
//
//	minted ──credit, grant──> wallet ──stake──────────> escrow
//	minted <──debit────────── wallet <──payout, refund── escrow ──rake──> house
//	                          wallet ──purchase──────────────────────────> house
//
// This package changes what is minted. Scripts of package rooms move stakes, scripts of package
// assets sell.
//
// Verbs that change something take a Caller and check its role. Reads take none: the caller of a
// read must have checked that the player may be seen. Every verb also returns store_unavailable.
//
// Amounts are integers of minor units, never floats. One amount is at most 2^53-1, so that a
// browser's number holds it.
package wallet
