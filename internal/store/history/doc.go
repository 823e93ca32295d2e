// Package history notices when the store lost part of the history of the money, and stops money
// when the store is another one than before.
//
// What is decided here:
//   - Every game's ledger has numbered entries. A node remembers the last entry that it has seen,
//     its number and its head, and looks for it again: five times a second in games that it
//     changed, and in all that it knows when a server of the store has changed its role or is back.
//   - It also remembers the nonces of the calls that it acknowledged in the last minute. When a
//     look has failed, or a server has changed its role, it searches the ledger for them. Those
//     that are gone are how many of the lost entries somebody was told of.
//   - An entry that is gone, or is another one, was lost. If all such entries were at most a minute
//     old when the node saw the ledger last, as a failover or a crash may lose them, and those
//     before them are there, money goes on: what is left is a prefix of the history, in which no
//     money is missing or made twice. The epoch of the store rises, what was lost is written down,
//     and clients get what is true now.
//   - Anything else is no failover: an older backup, another installation, an empty store, a game
//     without its first entries. Then money stops on all nodes until an operator accepts the store.
//     The same holds at the start of a node for everything that its mark knows and the store does
//     not: nobody has watched.
//   - A mark is written every second where it does not fail over with the money: in a folder of the
//     node, and on a Cluster on three masters. It is signed, so that nobody who can write there can
//     make an old store look right.
package history
