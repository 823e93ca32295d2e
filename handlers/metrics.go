package handlers

import (
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics counts requests. What belongs to one route is looked up once, when the routes are made.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
}

func newMetrics(registry *prometheus.Registry) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parlor_http_requests_total", Help: "Requests answered, by route and class of status.",
		}, []string{"method", "route", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "parlor_http_request_duration_seconds", Help: "Time from the first byte read to the last one written.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
		}, []string{"method", "route"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "parlor_http_requests_in_flight", Help: "Requests being answered now.",
		}),
	}
	for _, c := range []prometheus.Collector{m.requests, m.duration, m.inFlight} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// routeMetrics is the metrics of one route.
type routeMetrics struct {
	classes  [6]prometheus.Counter // by the first digit of the status
	duration prometheus.Observer
}

func (m *metrics) forRoute(r *route) *routeMetrics {
	of := &routeMetrics{duration: m.duration.WithLabelValues(r.method, r.path)}
	for class := 2; class <= 5; class++ {
		of.classes[class] = m.requests.WithLabelValues(r.method, r.path, strconv.Itoa(class)+"xx")
	}
	return of
}

func (m *routeMetrics) observe(status int, duration time.Duration) {
	if class := status / 100; class >= 2 && class <= 5 {
		m.classes[class].Inc()
	}
	m.duration.Observe(duration.Seconds())
}

// Internal serves what is not for the public: /metrics and /debug/pprof/, beside the health of the node.
func (s *Server) Internal() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.Metrics, promhttp.HandlerOpts{Registry: s.Metrics}))
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.Handle("/healthz", s)
	mux.Handle("/readyz", s)
	return mux
}
