package handlers

import (
	"github.com/parlor-games/parlor/internal/base/cache"
	"github.com/prometheus/client_golang/prometheus"
)

// cacheCollector exports the counters of all caches of the process.
type cacheCollector struct{}

var (
	cacheHitsDesc = prometheus.NewDesc("parlor_cache_hits_total",
		"Reads that a cache of this process served.", []string{"cache"}, nil)
	cacheMissesDesc = prometheus.NewDesc("parlor_cache_misses_total",
		"Reads that a cache of this process did not serve.", []string{"cache"}, nil)
)

// Describe implements prometheus.Collector.
func (cacheCollector) Describe(descs chan<- *prometheus.Desc) {
	descs <- cacheHitsDesc
	descs <- cacheMissesDesc
}

// Collect implements prometheus.Collector.
func (cacheCollector) Collect(metrics chan<- prometheus.Metric) {
	for _, s := range cache.AllStats() {
		metrics <- prometheus.MustNewConstMetric(cacheHitsDesc, prometheus.CounterValue, float64(s.Hits), s.Name)
		metrics <- prometheus.MustNewConstMetric(cacheMissesDesc, prometheus.CounterValue, float64(s.Misses), s.Name)
	}
}
