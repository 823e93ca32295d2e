package realtime

import (
	"sync/atomic"
	"time"
)

// HubStats are the hub's current sizes and its totals since it was created.
type HubStats struct {
	Clients     int // open sockets
	Topics      int // topics with subscribers, and topics within Options.TopicLinger
	PubSubConns int // connections to Redis that carry the topics' channels

	ChannelMessages     uint64 // messages from channels, without probes
	EventDeliveries     uint64 // events handed to clients
	FramesSent          uint64 // frames handed to clients; Deliveries/Frames is the mean batch size
	FramesReceived      uint64 // frames from clients
	EphemeralDeliveries uint64 // ephemeral messages handed to clients

	BackfillReads     uint64 // lists read
	RingResets        uint64 // ring buffers that were replaced because the list had forked or was trimmed
	LostPubSubConns   uint64 // pub/sub connections that were lost or given up
	BacklogOverflows  uint64 // messages that did not fit a worker's backlog and were read from the list
	UnfilledGaps      uint64 // gaps that the list could not fill
	FeedPages         uint64 // pages of feeds that were read for clients that are far behind
	FeedGaps          uint64 // gaps in feeds that clients were told of
	UnreadableEvents  uint64 // entries that could not be rendered; clients got a snapshot in their place
	Snapshots         uint64 // snapshots taken
	SnapshotFailures  uint64
	SlowCloses        uint64 // sockets closed with 4008
	RateCloses        uint64 // sockets closed with 4009
	EphemeralDropped  uint64 // ephemeral messages dropped because a client was too slow
	EphemeralReplaced uint64 // ephemeral messages dropped because the sender sent a newer one in their place
	EphemeralLimited  uint64 // ephemeral messages dropped because a client was sent too many bytes of them
	StatesReplaced    uint64 // states dropped because a newer one took their place before they were written
	HandshakesFailed  uint64
	StaleEpisodes     uint64 // times that nothing was heard from the store for Options.StaleAfter
	MovedClients      uint64 // sockets closed with 1012 because of that
	Panics            uint64

	StoreSilence time.Duration // for how long nothing was heard from the store; seconds are normal where nothing happens
	PubSubLag    time.Duration // from publish to receipt, measured by the last probe
}

type counters struct {
	topics, pubsubConns                                                               atomic.Int64
	channelMessages, eventDeliveries, framesSent, framesReceived, ephemeralDeliveries atomic.Uint64
	backfillReads, ringResets, lostPubsubConns, backlogOverflows, unfilledGaps        atomic.Uint64
	unreadableEvents                                                                  atomic.Uint64
	snapshots, snapshotFailures, slowCloses, rateCloses                               atomic.Uint64
	ephemeralDropped, ephemeralLimited, ephemeralReplaced, handshakesFailed, panics   atomic.Uint64
	staleEpisodes, movedClients, statesReplaced, feedPages, feedGaps                  atomic.Uint64
	pubsubLagNanos                                                                    atomic.Int64 // nanoseconds
}

// Stats returns a copy of the counters.
func (h *Hub) Stats() HubStats {
	h.mu.Lock()
	sessions := len(h.clients)
	h.mu.Unlock()
	c := &h.counters
	return HubStats{
		Clients:             sessions,
		Topics:              int(c.topics.Load()),
		PubSubConns:         int(c.pubsubConns.Load()),
		ChannelMessages:     c.channelMessages.Load(),
		EventDeliveries:     c.eventDeliveries.Load(),
		FramesSent:          c.framesSent.Load(),
		FramesReceived:      c.framesReceived.Load(),
		EphemeralDeliveries: c.ephemeralDeliveries.Load(),
		BackfillReads:       c.backfillReads.Load(),
		RingResets:          c.ringResets.Load(),
		LostPubSubConns:     c.lostPubsubConns.Load(),
		BacklogOverflows:    c.backlogOverflows.Load(),
		UnfilledGaps:        c.unfilledGaps.Load(),
		FeedPages:           c.feedPages.Load(),
		FeedGaps:            c.feedGaps.Load(),
		UnreadableEvents:    c.unreadableEvents.Load(),
		Snapshots:           c.snapshots.Load(),
		SnapshotFailures:    c.snapshotFailures.Load(),
		SlowCloses:          c.slowCloses.Load(),
		RateCloses:          c.rateCloses.Load(),
		EphemeralDropped:    c.ephemeralDropped.Load(),
		EphemeralLimited:    c.ephemeralLimited.Load(),
		EphemeralReplaced:   c.ephemeralReplaced.Load(),
		StatesReplaced:      c.statesReplaced.Load(),
		HandshakesFailed:    c.handshakesFailed.Load(),
		Panics:              c.panics.Load(),
		StaleEpisodes:       c.staleEpisodes.Load(),
		MovedClients:        c.movedClients.Load(),
		StoreSilence:        h.staleWatch.silence(),
		PubSubLag:           time.Duration(c.pubsubLagNanos.Load()),
	}
}
