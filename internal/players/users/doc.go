// Package users keeps players and the relations between them: friends, friend requests and blocks.
//
// A player belongs to the game in which they first signed in. An identity, the digest of a
// credential, belongs to one player of a game forever: of many requests that sign in with a new
// identity at once, all get the same player.
//
// The relation of two players is one record of the pair. Each player also has an index of the
// others: friends and sent requests, which are bounded, the newest incoming requests, and blocks.
// The pair decides: what the index names is shown as the pair has it. Nobody can fill the index of
// another player.
//
// As one of the two sees the relation:
//
//	none ──AddFriend──▶ outgoing ──AddFriend by the other──▶ friend
//	incoming ──AddFriend──▶ friend          any ──RemoveFriend──▶ none
//	any ──Block──▶ blocked ──RemoveFriend──▶ none
//
// A blocked player cannot notice it: their list shows nothing, and their request stays unanswered.
//
// Every method that a request calls takes the Caller and returns forbidden or user_not_found when
// the caller may not do it. Methods without a Caller are for other packages only. Their comments
// give the reason.
package users
