package main

import (
	"github.com/parlor-games/parlor/internal/store/storeclock"
	"github.com/prometheus/client_golang/prometheus"
)

// clockCollector exports how far the store's clocks are from the node's.
type clockCollector struct{ clock *storeclock.Clock }

var clockSkewDescription = prometheus.NewDesc("parlor_clock_skew_seconds",
	"By how much the clock of a server of the store is ahead of this node's; above 5 nothing is ended by time.",
	[]string{"master"}, nil)

func (*clockCollector) Describe(out chan<- *prometheus.Desc) { out <- clockSkewDescription }

func (c *clockCollector) Collect(out chan<- prometheus.Metric) {
	for _, s := range c.clock.Skews() {
		out <- prometheus.MustNewConstMetric(clockSkewDescription, prometheus.GaugeValue, s.Ahead.Seconds(), s.Master)
	}
}
