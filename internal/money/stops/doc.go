// Package stops knows the games whose money is stopped, and why, on every node.
//
// A stop is a field of one hash. Whoever finds a reason writes it; every node reads the hash once a
// second, so that within two seconds each refuses what would move money of the game. A node that
// cannot read keeps what it knows. A stop stays until it is lifted, which is an operator's act: the
// causes are independent, and money goes on when none is left.
package stops
