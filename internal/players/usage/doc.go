// Package usage estimates how much of the store each game uses, and decides which games may not
// store anything new.
//
// Once a second one node draws keys at random and asks the store for the memory of each. A key
// counts for the game that made it (keys.OwnerOf), and what the sample has of a game, times the
// number of keys, is what the game has. The ledger of a game is one key that may be large and is
// rarely drawn, so it is measured by itself. With some thousand keys in the sample, a game that has
// a tenth of the store is estimated within about a twentieth of that; a game that is much smaller
// may be missing. The store runs some hundred short commands a second for that.
//
// The share of a game is a quarter of the memory of a server, or the quota that the operator set.
// The elected node publishes which games are over their share, the one that is most over it first.
// Every node reads that once a second, as it reads how full the store is, and then
//
//   - a game over a quota that the operator set gets limit_reached for what is new;
//   - above the watermark of the store, games over their share get store_full: redisdb.Watermark.
//
// An estimate counts for half a minute. Without one every game gets store_full above the watermark.
package usage
