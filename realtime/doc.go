// Package realtime delivers events from Redis to this node's sockets, in order and without a gap.
// It hands the messages of clients to the caller's handlers. It is the only package that imports
// melody.
//
// It knows topics, not rooms. A topic is a Redis stream and the channel of the same name. One
// script adds the stream entry "<seq>-<nonce>" (field "t": the event's type, field "e": the event
// as JSON) and publishes "<seq>-<nonce>|<type>|<event>". The stream is the log. The channel carries
// the same events faster.
//
//	Redis ──pubsubConn──▶ worker ──▶ topic ──▶ Client ──▶ melody ──▶ browser
//	  ▲                                │
//	  └─────────── backfiller ◀────────┘ a gap, or a conflict
//
//	pubsubConn  one connection to each master, for the channels of all topics
//	topic       a ringBuffer of the last events, each encoded once for all clients
//	Client      a cursor per topic, and at most two frames in flight; a slow client gets larger
//	            frames, then a snapshot, then close code 4008
//	backfiller  reads the stream where the channel has lost something
//
// Guarantees:
//   - A client gets the events of a topic in ascending order and without a gap, or a snapshot
//     in their place.
//   - A position is "<seq>-<nonce>". It is valid on every node. When a failover has undone an
//     event, its position is no longer in the stream, so it differs from the event that later got
//     the same seq.
//   - The node fills its own gaps, once per topic, and disconnects no client for them.
//   - The memory of a client is bounded: it has a cursor per topic, not a queue of events.
//   - No callback of melody writes, closes or blocks. A client is closed by a control frame and
//     its own teardown.
//
// Authentication, origins and the meaning of messages belong to the caller.
package realtime
