// Package assets keeps each game's catalogue and the assets that players own, and sells assets for
// money.
//
// A purchase is one script. It checks price, stock, per-user limit and funds, and writes money,
// inventory, stock, ledger and the player's line, all of them or none. No lock is taken. The node
// knows in which token an asset is priced, which never changes, and reads the asset behind the
// script, in the same round trip.
//
//	sold     == what all players own of the asset
//	stock    never goes below zero; null means that there is no limit
//	owned    never passes the per-user limit at the time of the purchase
//	purchase id == number of its ledger entry, so it is unique and ordered in the game
//
// An asset is on sale or not. It is never deleted, since players own it. Its id is unique in the
// installation.
//
//	created ──> on sale <──patch──> off sale     (a buyer does not find an asset that is off sale)
//
// Every method takes a Caller and checks its role. It does not check whether the game exists. Every
// method also returns store_unavailable.
package assets
