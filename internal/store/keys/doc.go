// Package keys is the schema: one function for every Redis key, with its type, its fields and its
// lifetime. No other Go code spells a key; scripts receive theirs as KEYS. Hash fields are
// documented at their key, and those with a constant or a function here are spelled in no other Go
// code. Scripts spell the fields themselves.
//
// Every key starts with a hash tag in braces. Keys that one script uses share a tag, so that the
// same scripts run on a single Redis and on Redis Cluster:
//
//	{e:<game>}  one game's economy: its money, its catalogue, its prizes, its tournaments, and its
//	            rooms that take a stake, with the leases of presence there
//	{r<n>}      free rooms, those of matches too, distributed over the installation's shards, with
//	            the leases of presence there
//	{b:<game>.<board>.<n>}
//	            one shard of a leaderboard: definition (shard 0), orders, records, receipts, plays
//	{u:<id>}    one player: profile, friends list, refresh tokens, saves, list of leaderboards
//	{f:<a>:<b>} one pair of players: how they are related
//	{g:<id>}    one game: configuration, the identities it knows, lists of its leaderboards
//	{s:<id>}    the servers of one game: who listens to its rooms
//	{p}         the installation itself: counters, tokens, work to be done, nodes, the list of
//	            presence leases, the trail of staff
//	others      keys that no script combines with others have a tag of their own
package keys
