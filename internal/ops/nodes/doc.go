// Package nodes shows the operator the last report of each node about itself.
//
// A node writes one report every five seconds to one hash in the store, with what it counted in the
// last five minutes, so that a plot is there at once and a reader needs no node but the one that it
// asks. A node that stops removes its report; one that was killed is shown for a minute.
//
// Nodes know each other's addresses from these reports. One that does not hear its store asks some
// of the others, without the store, whether they do.
package nodes
