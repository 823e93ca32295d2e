// Package realtime brings events from Redis to this node's sockets, in order and without a hole, and
// carries what the sockets say to whoever handles it. It is the only package that knows melody.
//
// It knows no rooms, only topics. A topic is a Redis stream and the channel of the same name: scripts write
// the stream entry "<seq>-<nonce>" with the field "e" and publish "<seq>-<nonce>|<event>" in one step. The stream is
// the log, the channel is a doorbell that carries the payload.
//
//	Redis ──line──▶ worker ──▶ topic (log: the last events, encoded once) ──wake──▶ peer ──frame──▶ melody ──▶ client
//	  ▲  one connection          │ gap, doubt                                        │ cursor per topic, two frames in flight
//	  └────── repairer ◀─────────┘ reads the stream                                  └ slow: bigger frames, then a snapshot, then 4008
//
// What it keeps:
//   - Every session gets the events of a topic gap-free and ascending, or a snapshot in their place.
//   - A position is "<seq>-<nonce>". It is valid on every node. A position that a failover has undone
//     names an event that is no longer in the stream, and so is told apart from its successor.
//   - The node repairs its own losses, once per topic, and disconnects nobody for them.
//   - Memory of a session is bounded: it owns cursors, not a queue of events.
//   - No callback of melody writes, closes or blocks: a session is closed by a control frame and its own teardown.
//
// Authentication, origins and what a message means are the caller's.
package realtime
