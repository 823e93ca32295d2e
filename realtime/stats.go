package realtime

import (
	"sync/atomic"
	"time"
)

// Stats are the hub's current sizes and its totals since it was created.
type Stats struct {
	Sessions    int // open sockets
	Topics      int // topics with subscribers, and topics within Options.TopicLinger
	PubSubConns int // connections to Redis that carry the topics' channels

	Messages            uint64 // messages from channels, without probes
	Deliveries          uint64 // events handed to sessions
	Frames              uint64 // frames handed to sessions; Deliveries/Frames is the mean batch size
	Received            uint64 // frames from clients
	EphemeralDeliveries uint64 // ephemeral messages handed to sessions

	BackfillReads    uint64 // streams read
	Resets           uint64 // ring buffers that were replaced because the stream had forked or was trimmed
	Reconnects       uint64 // pub/sub connections that were lost or given up
	Overflows        uint64 // messages that did not fit a worker's backlog and were read from the stream
	UnfilledGaps     uint64 // gaps that the stream could not fill
	Snapshots        uint64 // snapshots taken
	SnapshotFailures uint64
	SlowCloses       uint64 // sockets closed with 4008
	RateCloses       uint64 // sockets closed with 4009
	EphemeralDropped uint64 // ephemeral messages dropped because a session was too slow
	HandshakesFailed uint64
	Panics           uint64

	Lag time.Duration // from publish to receipt, measured by the last probe
}

type counters struct {
	topics, pubsubConns                                         atomic.Int64
	messages, deliveries, frames, received, ephemeralDeliveries atomic.Uint64
	backfillReads, resets, reconnects, overflows, unfilledGaps  atomic.Uint64
	snapshots, snapshotFailures, slowCloses, rateCloses         atomic.Uint64
	ephemeralDropped, handshakesFailed, panics                  atomic.Uint64
	lag                                                         atomic.Int64 // nanoseconds
}

// Stats returns a copy of the counters.
func (h *Hub) Stats() Stats {
	h.mu.Lock()
	sessions := len(h.clients)
	h.mu.Unlock()
	c := &h.counters
	return Stats{
		Sessions:            sessions,
		Topics:              int(c.topics.Load()),
		PubSubConns:         int(c.pubsubConns.Load()),
		Messages:            c.messages.Load(),
		Deliveries:          c.deliveries.Load(),
		Frames:              c.frames.Load(),
		Received:            c.received.Load(),
		EphemeralDeliveries: c.ephemeralDeliveries.Load(),
		BackfillReads:       c.backfillReads.Load(),
		Resets:              c.resets.Load(),
		Reconnects:          c.reconnects.Load(),
		Overflows:           c.overflows.Load(),
		UnfilledGaps:        c.unfilledGaps.Load(),
		Snapshots:           c.snapshots.Load(),
		SnapshotFailures:    c.snapshotFailures.Load(),
		SlowCloses:          c.slowCloses.Load(),
		RateCloses:          c.rateCloses.Load(),
		EphemeralDropped:    c.ephemeralDropped.Load(),
		HandshakesFailed:    c.handshakesFailed.Load(),
		Panics:              c.panics.Load(),
		Lag:                 time.Duration(c.lag.Load()),
	}
}
