// Package backup copies a store over the replication protocol of Redis, and writes a copy where a
// server loads it.
//
// A copy is a folder: one RDB file for each master, and a manifest with their sums. Each file is
// its master at one instant. A game is on one master, so its money is whole in a copy; the games of
// two masters are copied at two instants.
package backup
