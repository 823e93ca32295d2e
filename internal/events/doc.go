// Package events is everything a client may hear: the name of every event, to whom it goes and
// what its data holds. The scripts write them, the sockets carry them, documentation is made from them.
//
// It knows no transport and no store.
package events
