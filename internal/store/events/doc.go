// Package events lists every event that a client can receive: its name, its audience, when it
// happens and the members of its data. docs/events.md is generated from this list, and tests
// compare it with the AsyncAPI document.
//
// Scripts write the events of rooms and players, as entries of numbered lists, and publish each
// entry exactly as it is stored:
//
//	<seq>-<nonce>|<type>|<ms since 1970>|<values>
//
// seq counts the events of a list from 1, the nonce is that of the call which made the change, and
// the values are those that render.go names for the type. An entry of the type user.asset stands
// for two events: user.balance, with the number before its own and the same nonce, and user.asset.
// Render turns an entry into JSON. Text that people wrote goes through Escape before it is stored.
//
// The node itself makes the events to one connection, and those of leaderboards; they are in no
// list.
//
// It knows no transport and no store.
package events
