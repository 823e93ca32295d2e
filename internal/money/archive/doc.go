// Package archive keeps what leaves the store, in objects that are written once.
//
//	game-7/ledger/000000000002001         2,000 entries of the ledger, from number 2001
//	game-7/checkpoint/000000000200000     all balances after entry 200000
//	game-7/lines/12/000000000501          500 lines of player 12, from line 501
//
// What an object holds follows from its name: every segment of the ledger has the same number of
// entries, and every object of a player the same number of lines. So every writer writes the same
// object, a replaced leader too, and a reader of one entry or line fetches one object, without a
// search. A second object of other contents under a name is ErrConflict: then the store has another
// history than the archive.
//
// An object is text, compressed by zstd (RFC 8878): a header, an empty line, one entry a line, and
// the SHA-256 of all before it. The header of a segment has the sum of the segment before it, so
// that segments are a chain, and the totals after its last entry. A checkpoint has the sum of the
// segment that it ends with. It is made from the checkpoint before it and the segments in between.
//
// This package knows files and S3, and nothing of Redis: package archiver decides what is archived.
package archive
