// Package feed reads what a game's server hears of all its rooms and tournaments: one numbered list
// for each hash tag that has rooms of the game, keys.Feed, and a channel of the same name.
//
// Scripts append an event to the feed in the same step as to the room's own list, so the two never
// differ. They do so when the id of the room says that it feeds, and publish each entry as it is
// stored:
//
//	<number>-<nonce>|<type>|<ms since 1970>|<room or tournament>|<seq>|<values>
//
// The number counts the entries of the feed from 1, and the nonce is that of the call which made
// the change. A position is "<number>-<nonce>", as in every list. seq is the number of the event in
// the list of its room or tournament, and the values are those that package events names.
//
// Order holds within a feed, and so within a room. Events of two feeds have no order.
package feed
