// Package users keeps players and what they are to each other: friends, requests, blocks.
//
// A player belongs to the game in which it first signed in. An identity, the digest of what somebody can prove, belongs to
// one player of a game for ever; of any number who sign in with it at once, all get the same player.
//
// What two players are to each other is one record of the pair; the list that each of them has is a hint that may name too
// many, never too few. As one of the two sees it:
//
//	nothing ──Befriend──▶ outgoing ──the other's Befriend──▶ friend
//	incoming ──Befriend──▶ friend          any ──Unfriend──▶ nothing
//	any ──Block──▶ blocked ──Unfriend──▶ nothing
//
// Who is blocked cannot tell: it sees nothing, and its request looks as if nobody had answered it yet.
package users
