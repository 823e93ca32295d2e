package handlers

import (
	"github.com/parlor-games/parlor/internal/cache"
	"github.com/prometheus/client_golang/prometheus"
)

// cacheMetrics exports the counters of all caches of the process.
type cacheMetrics struct{}

var (
	cacheHits = prometheus.NewDesc("parlor_cache_hits_total",
		"Reads that a cache of this process served.", []string{"cache"}, nil)
	cacheMisses = prometheus.NewDesc("parlor_cache_misses_total",
		"Reads that a cache of this process did not serve.", []string{"cache"}, nil)
)

// Describe implements prometheus.Collector.
func (cacheMetrics) Describe(descs chan<- *prometheus.Desc) {
	descs <- cacheHits
	descs <- cacheMisses
}

// Collect implements prometheus.Collector.
func (cacheMetrics) Collect(metrics chan<- prometheus.Metric) {
	for _, s := range cache.AllStats() {
		metrics <- prometheus.MustNewConstMetric(cacheHits, prometheus.CounterValue, float64(s.Hits), s.Name)
		metrics <- prometheus.MustNewConstMetric(cacheMisses, prometheus.CounterValue, float64(s.Misses), s.Name)
	}
}
