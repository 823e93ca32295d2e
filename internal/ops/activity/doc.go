// Package activity keeps how busy each game was in the last day.
//
// Every five minutes one node looks at each game: how many rooms have not ended, how many players
// are in them, and what is at stake. A game where all of that is zero gets a sample only while an
// older one is kept, so games that nobody plays store nothing. A game has one list of at most 288
// samples. Nothing decides by it: it is what the console draws.
package activity
