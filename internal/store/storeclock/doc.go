// Package storeclock compares the clocks of the store's servers with the node's own two, wall and
// monotonic, and decides whether what ends at a time may be ended.
//
// What is decided here:
//   - Deadlines are kept by the store's clock. A node whose wall clock differs by more than MaxSkew
//     ends nothing: one of the two is wrong, and a node cannot know which. Nodes that agree with
//     the store go on, so one wrong node holds up nobody.
//   - The monotonic clock shows a jump of store and node together. A jump is believed after a
//     minute in which both agree.
//   - After a difference the clocks must agree for ten seconds. Meanwhile all nodes renew their
//     leases of presence, whose times may be those of the wrong clock.
//   - A node looks once a second, which is too late for a jump just before a script. So the scripts
//     that end something compare the store's time with NowMS of the node that calls them.
package storeclock
