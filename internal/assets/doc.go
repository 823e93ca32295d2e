// Package assets keeps each game's catalogue, what players own of it, and the purchase that moves one
// into the other.
//
// A purchase is one script: price, stock, per-user limit and funds are asked, and money, inventory, stock,
// ledger and the player's events are written, together or not at all. No lock is taken.
//
//	sold     == what all players own of the asset
//	stock    never goes below zero; none means that there is no limit
//	owned    never passes the per-user limit that stood when the player bought
//	purchase id == number of its ledger entry, so it is unique and ordered in the economy
//
// An asset is on sale or not; it is never deleted, since players own it.
//
//	created ──> on sale <──patch──> off sale     (to a buyer an asset off sale is not there)
package assets
