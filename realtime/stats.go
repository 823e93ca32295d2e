package realtime

import (
	"sync/atomic"
	"time"
)

// Stats are what the hub has counted since it began, and what it holds now.
type Stats struct {
	Sessions    int // open sockets
	Topics      int // topics followed or lingering
	PubSubConns int // connections to Redis that carry them

	Messages            uint64 // from channels, probes apart
	Deliveries          uint64 // events handed to sessions
	Frames              uint64 // frames handed to sessions; deliveries per frame is the coalescing
	Received            uint64 // frames from clients
	EphemeralDeliveries uint64 // relayed messages handed to sessions

	BackfillReads    uint64 // streams read
	Resets           uint64 // logs that began anew: the history had forked or was trimmed
	Reconnects       uint64 // connections lost or given up, and made again
	Overflows        uint64 // messages that did not fit a worker's backlog and were read from the stream
	UnfilledGaps     uint64 // gaps that the stream did not fill
	Snapshots        uint64 // taken
	SnapshotFailures uint64
	SlowCloses       uint64 // 4008
	RateCloses       uint64 // 4009
	EphemeralDropped uint64 // for sessions that were too slow
	HandshakesFailed uint64
	Panics           uint64

	Lag time.Duration // from publish to receipt, by the last probe
}

type counters struct {
	topics, pubsubConns                                       atomic.Int64
	messages, deliveries, frames, received, ephemeralDeliveries    atomic.Uint64
	backfillReads, resets, reconnects, overflows, unfilledGaps      atomic.Uint64
	snapshots, snapshotFailures, slowCloses, rateCloses atomic.Uint64
	ephemeralDropped, handshakesFailed, panics           atomic.Uint64
	lag                                                 atomic.Int64
}

// Stats reads the counters.
func (h *Hub) Stats() Stats {
	h.mu.Lock()
	sessions := len(h.clients)
	h.mu.Unlock()
	c := &h.counters
	return Stats{
		Sessions: sessions, Topics: int(c.topics.Load()), PubSubConns: int(c.pubsubConns.Load()),
		Messages: c.messages.Load(), Deliveries: c.deliveries.Load(), Frames: c.frames.Load(), Received: c.received.Load(), EphemeralDeliveries: c.ephemeralDeliveries.Load(),
		BackfillReads: c.backfillReads.Load(), Resets: c.resets.Load(), Reconnects: c.reconnects.Load(), Overflows: c.overflows.Load(), UnfilledGaps: c.unfilledGaps.Load(),
		Snapshots: c.snapshots.Load(), SnapshotFailures: c.snapshotFailures.Load(), SlowCloses: c.slowCloses.Load(), RateCloses: c.rateCloses.Load(),
		EphemeralDropped: c.ephemeralDropped.Load(), HandshakesFailed: c.handshakesFailed.Load(), Panics: c.panics.Load(),
		Lag: time.Duration(c.lag.Load()),
	}
}
