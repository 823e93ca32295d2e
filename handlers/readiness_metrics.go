package handlers

import "github.com/prometheus/client_golang/prometheus"

// readinessCollector exports what this node knows about its store.
type readinessCollector struct {
	readiness        Readiness
	unavailableCalls func() int64
}

var (
	readyDescription = prometheus.NewDesc("parlor_ready",
		"1 while this node can write to its store, else 0.", nil, nil)
	readyCheckDescription = prometheus.NewDesc("parlor_ready_check",
		"1 for each check of /readyz that is ok, else 0.", []string{"check"}, nil)
	unavailableDescription = prometheus.NewDesc("parlor_store_unavailable_total",
		"Requests and messages that were refused because the store did not serve.", nil, nil)
)

func (*readinessCollector) Describe(out chan<- *prometheus.Desc) {
	out <- readyDescription
	out <- readyCheckDescription
	out <- unavailableDescription
}

func (c *readinessCollector) Collect(out chan<- prometheus.Metric) {
	report := c.readiness.Report()
	gauge := func(d *prometheus.Desc, ok bool, labels ...string) {
		value := 0.0
		if ok {
			value = 1
		}
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(readyDescription, report.Ready)
	for _, check := range report.Checks {
		gauge(readyCheckDescription, check.OK, check.Name)
	}
	out <- prometheus.MustNewConstMetric(unavailableDescription, prometheus.CounterValue, float64(c.unavailableCalls()))
}
