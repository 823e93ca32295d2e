// Package migrate turns a store of an older layout into one of today's.
//
// There is one migration: from layout 1, in which all games shared one economy, to layout 3.
// (Layout 2 had the keys of layout 1 and was never released; it is migrated in the same way.)
// keys.Meta, the record of the installation, has its stage:
//
//	1           nothing was changed
//	1>3         new keys are being written beside the old ones, which are whole
//	1>3:remove  every new key was compared with the old ones; these are being removed
//	3           done
//
// No node of any release starts on the two in the middle.
//
// The step goes over all keys three times, with the same code: to count, to write and to compare.
// What a new key holds follows from the old store alone, and to write it twice is to write it once.
// So a migration that was killed is simply run again, and ends with the same store. What cannot be
// read, or does not add up, is found in the first pass, before anything is written.
//
// # Two at once
//
// A migration has a lease in the store. Its scripts write nothing after half of the lease, by the
// clock of the server that runs them; only after all of it somebody else gets the lease. A lease
// that is over cannot be made longer. A process that was paused in between therefore changes
// nothing when it wakes up, whether it had read or was about to. On a Cluster the clocks of
// the servers must differ by less than the other half.
//
// Nodes of the older release must be stopped: they do not know the lease. One that still runs is
// noticed when it sweeps rooms, when it changes a key between the second and the third pass, and
// when it moves money before the old ledger is closed.
//
// # Money
//
// Layout 1 had one economy, and players who belong to a game. A wallet goes to the economy of its
// player's game, a room with a stake to that of its game, and an entry of the ledger to that of the
// players in its postings, who are of one game. The operator's account is thereby split by where
// its income came from. For each token minted, wallets, escrow and house are in sum what they were,
// and in each game minted is what the others are together.
package migrate
