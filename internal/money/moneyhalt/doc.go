// Package moneyhalt tells every node which games have their money halted, and why.
//
// A halt is a field of one hash. The node that finds a reason writes it. Every node reads the hash
// once a second, so that within two seconds each rejects requests that would move money of the
// game. A node that cannot read keeps what it knows. A halt stays until an operator lifts it: the
// causes are independent, and money moves again when none is left.
package moneyhalt
