package handlers

import (
	"github.com/parlor-games/parlor/realtime"
	"github.com/prometheus/client_golang/prometheus"
)

// socketMetrics shows what the hub counts.
type socketMetrics struct{ hub *realtime.Hub }

type socketMetric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(realtime.Stats) float64
}

func socketMetricOf(kind prometheus.ValueType, name, help string, read func(realtime.Stats) float64) socketMetric {
	return socketMetric{prometheus.NewDesc("parlor_realtime_"+name, help, nil, nil), kind, read}
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

var socketMetricList = []socketMetric{
	socketMetricOf(gauge, "sessions", "Open sockets.", func(s realtime.Stats) float64 { return float64(s.Sessions) }),
	socketMetricOf(gauge, "topics", "Topics followed or lingering.", func(s realtime.Stats) float64 { return float64(s.Topics) }),
	socketMetricOf(gauge, "lines", "Connections to Redis that carry topics.", func(s realtime.Stats) float64 { return float64(s.PubSubConns) }),
	socketMetricOf(gauge, "lag_seconds", "From publish to receipt, by the last probe.", func(s realtime.Stats) float64 { return s.Lag.Seconds() }),
	socketMetricOf(counter, "messages_total", "Messages from channels.", func(s realtime.Stats) float64 { return float64(s.Messages) }),
	socketMetricOf(counter, "deliveries_total", "Events handed to sessions.", func(s realtime.Stats) float64 { return float64(s.Deliveries) }),
	socketMetricOf(counter, "frames_total", "Frames handed to sessions.", func(s realtime.Stats) float64 { return float64(s.Frames) }),
	socketMetricOf(counter, "received_total", "Frames from clients.", func(s realtime.Stats) float64 { return float64(s.Received) }),
	socketMetricOf(counter, "relayed_total", "Relayed messages handed to sessions.", func(s realtime.Stats) float64 { return float64(s.EphemeralDeliveries) }),
	socketMetricOf(counter, "relayed_dropped_total", "Relayed messages that a session was too slow for.", func(s realtime.Stats) float64 { return float64(s.EphemeralDropped) }),
	socketMetricOf(counter, "refills_total", "Streams read.", func(s realtime.Stats) float64 { return float64(s.BackfillReads) }),
	socketMetricOf(counter, "resets_total", "Histories that had forked or were trimmed.", func(s realtime.Stats) float64 { return float64(s.Resets) }),
	socketMetricOf(counter, "rebuilds_total", "Connections to Redis made again.", func(s realtime.Stats) float64 { return float64(s.Reconnects) }),
	socketMetricOf(counter, "overflows_total", "Messages that did not fit a backlog and were read from the stream.", func(s realtime.Stats) float64 { return float64(s.Overflows) }),
	socketMetricOf(counter, "unhealed_total", "Gaps that the stream did not fill.", func(s realtime.Stats) float64 { return float64(s.UnfilledGaps) }),
	socketMetricOf(counter, "snapshots_total", "Snapshots taken.", func(s realtime.Stats) float64 { return float64(s.Snapshots) }),
	socketMetricOf(counter, "snapshot_failures_total", "Snapshots that failed.", func(s realtime.Stats) float64 { return float64(s.SnapshotFailures) }),
	socketMetricOf(counter, "slow_closes_total", "Sockets closed with 4008.", func(s realtime.Stats) float64 { return float64(s.SlowCloses) }),
	socketMetricOf(counter, "rate_closes_total", "Sockets closed with 4009.", func(s realtime.Stats) float64 { return float64(s.RateCloses) }),
	socketMetricOf(counter, "handshakes_failed_total", "Upgrades that broke off.", func(s realtime.Stats) float64 { return float64(s.HandshakesFailed) }),
	socketMetricOf(counter, "panics_total", "Panics contained.", func(s realtime.Stats) float64 { return float64(s.Panics) }),
}

// Describe implements prometheus.Collector.
func (m *socketMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, metric := range socketMetricList {
		to <- metric.desc
	}
}

// Collect implements prometheus.Collector.
func (m *socketMetrics) Collect(to chan<- prometheus.Metric) {
	stats := m.hub.Stats()
	for _, metric := range socketMetricList {
		to <- prometheus.MustNewConstMetric(metric.desc, metric.kind, metric.read(stats))
	}
}
