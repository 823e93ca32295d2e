// Package realtime delivers events from Redis to this node's sockets, in order and without a gap.
// It hands the messages of clients to the caller's handlers. It is the only package that imports
// melody.
//
// It knows topics, not rooms. A topic is a Redis list and the channel of the same name. One script
// appends an entry of package events to the list, "<seq>-<nonce>|<type>|<ms>|<values>", and
// publishes the same text. The list is the log. The channel carries the same entries faster. A node
// renders an entry to JSON once, when the entry is the next one, for all its clients.
//
//	Redis ──pubsubConn──▶ worker ──▶ topic ──▶ Client ──▶ melody ──▶ browser
//	  ▲                                │
//	  └─────────── backfiller ◀────────┘ a gap, or a conflict
//
//	pubsubConn  one connection to each master, for the channels of all topics
//	topic       a ringBuffer of the last events, each encoded once for all clients
//	Client      a cursor per topic, and at most two frames in flight; a slow client gets larger
//	            frames, then a snapshot, then close code 4008
//	backfiller  reads the end of the list where the channel has lost something
//	staleWatch  sends server.stale where nothing is heard from Redis, and clients to other nodes
//
// Beside them are state topics: they have no list. Their state is published on the node itself, and
// a slow client gets the newest one only.
//
// A feed is a topic whose subscribers each get the events that their Filter selects. One that is
// behind the buffer reads the list, in pages that it shares with others, and one whose position the
// list has lost gets Feed.EncodeGap. A feed may have a Source in place of a list and a channel.
//
// Guarantees:
//   - A client gets the events of a topic in ascending order and without a gap, or a snapshot
//     in their place.
//   - A position is "<seq>-<nonce>". It is valid on every node. When a failover has undone an
//     event, its position is no longer in the list, so it differs from the event that later got
//     the same seq.
//   - The node fills its own gaps, once per topic, and disconnects no client for them.
//   - An entry that cannot be rendered, such as one that only newer nodes know, is logged and
//     counted, and stops no topic. A client gets a snapshot in its place. Where the topic has none,
//     as a player's own topics, the client is closed with 4008 and starts anew behind it.
//   - The memory of a client is bounded: it has a cursor per topic, not a queue of events.
//   - No callback of melody writes, closes or blocks. A client is closed by a control frame and
//     its own teardown.
//
// Authentication, origins and the meaning of messages belong to the caller.
package realtime
