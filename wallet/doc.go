// Package wallet keeps amounts, tokens, balances, holds and the ledger, and proves that
// no unit of money is ever made or lost.
//
// For every token, at every instant:
//
//	minted == wallets + escrow + house
//
// minted is what operators and grants brought in less what they took out, wallets what players can
// spend, escrow the stakes in rooms that have not ended, house the takings from purchases and rake.
// Every change is one script that moves both sides and writes the ledger entry.
//
// Amounts are integers of minor units, never floats. One amount is at most 2^53-1, so that a browser's number holds it.
package wallet
