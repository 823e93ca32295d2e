// Package limits keeps a player's own limits on stakes.
//
// A tighter limit counts at once, and a looser one in 24 hours. An exclusion is never shortened. An
// operator can only tighten the limits of a player.
//
// The scripts that take a stake compare it with the limits of its token, in the wallet of the
// player, and count open rooms and losses there. They count from the moment on at which the player
// sets a limit for the token; what was staked before is counted from the player's lines then.
//
// Methods also return store_unavailable.
package limits
