// Package leaderboards keeps who is first: boards of a game, their seasons, and the place of every
// player, exact at any size.
//
// The store is the only truth: no rank lives in the memory of a node. A season of a board is a
// sorted set of members whose bytes are the order: score, subscore, the time at which the score was
// reached, user id. So the order is exact, both ways, and ties are decided by the millisecond. How
// many are ahead of any member is a count that any shard can do; the rank is the sum over shards.
//
//	entry:   ──submit──> in the order <──hide / unhide──> hidden
//	         in the order, hidden ──remove──> gone
//
//	season:  UPCOMING ──> OPEN ──closes──> CLOSING ──after the grace time──> SEALED ──> removed
//	with prizes:  SEALED ──> HELD ──reviewed, approved──> PAID
//
// A season is a number in the names of its keys. Nothing is renamed or reset when one ends: the old
// keys are the archive. Boundaries are stored four seasons ahead, and only an act of staff changes
// them. A season has the definition of the time at which it was stored; Patch replaces those of the
// seasons to come.
//
// After every script:
//
//   - The order has one member of each player who has a record and is not hidden, and so have the
//     orders of the player's segments.
//   - A season that is sealed takes no score. Only staff changes it, by hiding and removing.
//   - A score is in exactly one season: the script compares the season with the store's clock.
//   - The times of the entries of a shard never go back, even if the store's clock does.
//   - A score with an Idempotency-Key, and one that adds up, counts once. Any other score that
//     is sent again by the client library is recognised by the nonce in the record.
//
// # What is decided here
//
// The operator best keeps the better score; so does the subscore's operator best, but together with
// its score: a better score brings its own subscore, and of equal scores the better subscore stays.
// The other operators combine scores and subscores each by themselves.
//
// Metadata and evidence belong to the score that changed the entry last. Segments are fixed for a
// player in a season.
//
// A result that is late counts in the season in which it was played, until the grace time is over.
// The time in its entry is that of its arrival.
//
// maxEntries counts the entries of all shards: nobody is refused while there is room. First scores
// that come to several shards in the same instant may go past it. The percentile is the part of the
// entries that are behind, rounded down. Entries, ranks and pages are read in several steps: each
// is exact at its instant.
//
// Prizes are set aside by package prizes when a season opens, and paid after it is sealed and
// reviewed. A season whose funds are missing then is tried again until it closes. A season that
// owes prizes is not removed, and a board that is deleted returns what it has set aside. Tied
// players divide what their places get; each of them gets the assets of the place.
//
// A league divides the players of each shard into cohorts. A player gets a place in one with the
// first score of a season, drawn among the free ones of a few open cohorts, so that accounts which
// enter one after the other are not together. The tier is found then, from the end of the player's
// last season: so nothing has to be done for millions at once. Rising comes before falling. Who was
// hidden, or missed up to three seasons, neither rises nor falls. To the scripts a cohort is one
// more segment.
//
// Staff is the game's server and the operator. Players do not see rules, which would tell what a
// forged score must look like.
package leaderboards
