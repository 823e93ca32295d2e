// Package users keeps players and what they are to each other: friends, requests, blocks.
//
// A player belongs to the game in which it first signed in. What two players are to each other is one record of
// the pair; the list that each of them has is a hint that may name too many, never too few.
package users
