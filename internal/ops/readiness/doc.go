// Package readiness knows whether this node can serve: it waits for a store that meets the
// requirements, then writes to each of its masters once a second.
//
// What is decided here:
//   - A store that is reached and cannot keep the promise ends the node. One that is not reached,
//     is still forming or being promoted is tried again.
//   - A master counts as lost after two probes in a row that failed, and as back after two that
//     succeeded, so that one slow reply changes nothing.
//   - A node is ready while one master at least takes writes, also while the clocks differ: what is
//     held back then is in package storeclock.
package readiness
