// Package wallet keeps what each player has of each token, with an entry in the ledger for every
// change.
//
// Every game is an economy of its own: a player's wallet, the ledger and the totals belong to one
// game, and nothing moves between games. Only the definitions of tokens are the installation's. For
// every token of a game, at every instant:
//
//	minted == wallets + escrow + prizes + house
//
// minted is what credits, grants and prizes brought in, less what debits took out and unpaid prizes
// returned. wallets is what players can spend. escrow is the stakes in rooms and the fees in
// tournaments that have not ended: the sum of all that wallets hold. prizes is what was promised
// and is not paid yet. house is the operator's account: the income from purchases and rake, less
// the prizes that it pays for.
//
// Every change is one script that writes the wallet, the player's line and one ledger entry whose
// postings sum to zero. minted is exact at every instant, since few scripts change it; the other
// totals are folded from the ledger by one elected node, a second later (Run). Package audit proves
// that they agree.
//
//	minted ──credit, grant──> wallet ──entry──────────> escrow
//	minted <──debit────────── wallet <──payout, refund── escrow ──rake──> house
//	                          wallet ──purchase──────────────────────────> house
//	minted, house ──prize_fund──> prizes ──prize──> wallet, house
//	minted, house <──prize_void── prizes <──fee──── escrow
//
// Scripts of this package credit, debit and grant. Package rooms moves the stakes of rooms, package
// tournaments the fees of tournaments, package prizes what is promised, and package assets sells.
// Each calls LedgerChanged, or MintChanged, after its scripts.
//
// A player's line is also the event that tells the player of the change: one record, stored and
// published as it is. Lines and ledger entries are numbered by their places in a list.
//
// Methods that change something take a Caller and check its role. Reads take none: the caller of a
// read must have checked that the player may be seen. Every method also returns store_unavailable.
//
// Amounts are integers of minor units, never floats. One amount is at most 2^53-1, so that a
// browser's number holds it.
package wallet
