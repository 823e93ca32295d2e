package handlers

import (
	"github.com/parlor-games/parlor/realtime"
	"github.com/prometheus/client_golang/prometheus"
)

// socketCollector exports the hub's counters.
type socketCollector struct{ hub *realtime.Hub }

type socketMetric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(realtime.HubStats) float64
}

func newSocketMetric[N int | uint64](
	kind prometheus.ValueType, name, help string, field func(realtime.HubStats) N,
) socketMetric {
	desc := prometheus.NewDesc("parlor_realtime_"+name, help, nil, nil)
	return socketMetric{desc, kind, func(s realtime.HubStats) float64 { return float64(field(s)) }}
}

func socketGauge(name, help string, field func(realtime.HubStats) int) socketMetric {
	return newSocketMetric(prometheus.GaugeValue, name, help, field)
}

func socketCounter(name, help string, field func(realtime.HubStats) uint64) socketMetric {
	return newSocketMetric(prometheus.CounterValue, name, help, field)
}

var socketMetrics = []socketMetric{
	socketGauge("sessions", "Open sockets.", func(s realtime.HubStats) int { return s.Clients }),
	socketGauge("topics", "Topics with subscribers, and topics that had one until a moment ago.",
		func(s realtime.HubStats) int { return s.Topics }),
	socketGauge("pubsub_connections", "Connections to Redis that carry the topics' channels.",
		func(s realtime.HubStats) int { return s.PubSubConns }),
	{
		desc: prometheus.NewDesc("parlor_realtime_lag_seconds",
			"Time from publish to receipt, measured by the last probe.", nil, nil),
		kind: prometheus.GaugeValue,
		read: func(s realtime.HubStats) float64 { return s.PubSubLag.Seconds() },
	},
	socketCounter("messages_total", "Messages received from channels.",
		func(s realtime.HubStats) uint64 { return s.ChannelMessages }),
	socketCounter("deliveries_total", "Events handed to sessions.",
		func(s realtime.HubStats) uint64 { return s.EventDeliveries }),
	socketCounter("frames_total", "Frames handed to sessions.",
		func(s realtime.HubStats) uint64 { return s.FramesSent }),
	socketCounter("received_total", "Frames received from clients.",
		func(s realtime.HubStats) uint64 { return s.FramesReceived }),
	socketCounter("ephemeral_deliveries_total", "Ephemeral messages handed to sessions.",
		func(s realtime.HubStats) uint64 { return s.EphemeralDeliveries }),
	socketCounter("ephemeral_dropped_total", "Ephemeral messages dropped because a session was too slow.",
		func(s realtime.HubStats) uint64 { return s.EphemeralDropped }),
	socketCounter("ephemeral_limited_total", "Ephemeral messages dropped because a session was sent too many bytes.",
		func(s realtime.HubStats) uint64 { return s.EphemeralLimited }),
	socketCounter("ephemeral_replaced_total", "Ephemeral messages dropped for a newer one of their sender.",
		func(s realtime.HubStats) uint64 { return s.EphemeralReplaced }),
	socketCounter("states_replaced_total", "States dropped for a newer one before they were written.",
		func(s realtime.HubStats) uint64 { return s.StatesReplaced }),
	socketCounter("backfill_reads_total", "Lists of events read to fill gaps.",
		func(s realtime.HubStats) uint64 { return s.BackfillReads }),
	socketCounter("resets_total", "Ring buffers replaced because their list had forked or was trimmed.",
		func(s realtime.HubStats) uint64 { return s.RingResets }),
	socketCounter("reconnects_total", "Pub/sub connections to Redis that were lost or given up.",
		func(s realtime.HubStats) uint64 { return s.LostPubSubConns }),
	socketCounter("overflows_total", "Messages that did not fit a backlog and were read from the list.",
		func(s realtime.HubStats) uint64 { return s.BacklogOverflows }),
	socketCounter("unfilled_gaps_total", "Gaps that the list could not fill.",
		func(s realtime.HubStats) uint64 { return s.UnfilledGaps }),
	socketCounter("snapshots_total", "Snapshots taken.",
		func(s realtime.HubStats) uint64 { return s.Snapshots }),
	socketCounter("snapshot_failures_total", "Snapshots that failed.",
		func(s realtime.HubStats) uint64 { return s.SnapshotFailures }),
	socketCounter("slow_closes_total", "Sockets closed with 4008.",
		func(s realtime.HubStats) uint64 { return s.SlowCloses }),
	socketCounter("rate_closes_total", "Sockets closed with 4009.",
		func(s realtime.HubStats) uint64 { return s.RateCloses }),
	socketCounter("handshakes_failed_total", "Upgrades that failed.",
		func(s realtime.HubStats) uint64 { return s.HandshakesFailed }),
	socketCounter("panics_total", "Panics recovered from.",
		func(s realtime.HubStats) uint64 { return s.Panics }),
	{
		desc: prometheus.NewDesc("parlor_realtime_store_silence_seconds",
			"For how long nothing was heard from the store; 3 and more is an outage.", nil, nil),
		kind: prometheus.GaugeValue,
		read: func(s realtime.HubStats) float64 { return s.StoreSilence.Seconds() },
	},
	socketCounter("stale_total", "Times that nothing was heard from the store for 3 s.",
		func(s realtime.HubStats) uint64 { return s.StaleEpisodes }),
	socketCounter("moved_total", "Sockets closed with 1012 because nothing was heard from the store for 8 s.",
		func(s realtime.HubStats) uint64 { return s.MovedClients }),
	socketCounter("feed_pages_total", "Pages of feeds read for servers that were far behind.",
		func(s realtime.HubStats) uint64 { return s.FeedPages }),
	socketCounter("feed_gaps_total", "Gaps in feeds that servers were told of while they followed.",
		func(s realtime.HubStats) uint64 { return s.FeedGaps }),
	socketCounter("unreadable_events_total", "Stored events that could not be rendered and were replaced by a snapshot.",
		func(s realtime.HubStats) uint64 { return s.UnreadableEvents }),
}

// serverMetrics are those of the sockets of games' servers.
func serverMetrics(kind *realtime.SocketKind) []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "parlor_server_sockets", Help: "Open sockets of games' servers.",
		}, func() float64 { return float64(kind.CountClients()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "parlor_server_deliveries_total", Help: "Events handed to the sockets of games' servers.",
		}, func() float64 { return float64(kind.CountDeliveries()) }),
	}
}

// Describe implements prometheus.Collector.
func (m *socketCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, metric := range socketMetrics {
		ch <- metric.desc
	}
}

// Collect implements prometheus.Collector.
func (m *socketCollector) Collect(ch chan<- prometheus.Metric) {
	stats := m.hub.Stats()
	for _, metric := range socketMetrics {
		ch <- prometheus.MustNewConstMetric(metric.desc, metric.kind, metric.read(stats))
	}
}
