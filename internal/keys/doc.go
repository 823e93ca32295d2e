// Package keys is the schema: one function for every Redis key, with its type, its
// fields and its lifetime. Nothing else in the project spells a key.
//
// Every key starts with a hash tag in braces. Keys that one script touches share a tag, so
// that the same scripts run on a single Redis and on Redis Cluster:
//
//	{e:main}  all money of the economy, its catalogue, and the rooms that take a stake
//	{r<n>}    free rooms, spread over the installation's homes
//	{u:<id>}  one player: profile, friends list, refresh tokens, saves
//	{f:<a>:<b>} one pair of players: what they are to each other
//	{g:<id>}  one game: configuration and the identities it knows
//	{p}       the installation itself: counters, lists of games, leadership
//	others    single keys that no script combines carry their own name as tag
package keys
