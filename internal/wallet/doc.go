// Package wallet keeps amounts, tokens, balances, holds and the ledger, and proves that
// no unit of money is ever made or lost.
//
// For every token, at every instant:
//
//	minted == wallets + escrow + house
//
// minted is what operators and grants brought in less what they took out, wallets what players can
// spend, escrow the stakes in rooms that have not ended, house the takings from purchases and rake.
// Every change is one script that moves both sides and writes the ledger entry; Audit weighs the running
// totals in one read, AuditDeep recounts every wallet and replays the ledger.
//
//	minted ──credit, grant──> wallet ──stake──────────> escrow
//	minted <──debit────────── wallet <──payout, refund── escrow ──rake──> house
//	                          wallet ──purchase──────────────────────────> house
//
// This package moves what touches minted. Stakes are the rooms', purchases the catalogue's, by scripts of their own.
//
// Amounts are integers of minor units, never floats. One amount is at most 2^53-1, so that a browser's number holds it.
package wallet
