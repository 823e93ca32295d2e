// Package events lists every event that a client can receive: its name, its audience, when it
// happens and the members of its data. Scripts write the events of rooms and players; the node
// itself sends those to one connection. docs/events.md is generated from this list, and tests
// compare it with the scripts and with the AsyncAPI document.
//
// It knows no transport and no store.
package events
