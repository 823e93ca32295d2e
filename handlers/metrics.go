package handlers

import (
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/text"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// requestMetrics counts requests. forRoute looks up the counters of a route once, when the server
// is made.
type requestMetrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
}

func newRequestMetrics(registry *prometheus.Registry) (*requestMetrics, error) {
	m := &requestMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parlor_http_requests_total", Help: "Requests by method, route and class of status.",
		}, []string{"method", "route", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "parlor_http_request_duration_seconds", Help: "Time from the start of the handler to the end of the response.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
		}, []string{"method", "route"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "parlor_http_requests_in_flight", Help: "Requests in flight.",
		}),
	}
	for _, c := range []prometheus.Collector{m.requests, m.duration, m.inFlight, cacheCollector{}} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// routeMetrics are the metrics of one route.
type routeMetrics struct {
	classes  [6]prometheus.Counter // by the first digit of the status
	duration prometheus.Observer
}

func (m *requestMetrics) forRoute(rt *route) *routeMetrics {
	rm := &routeMetrics{duration: m.duration.WithLabelValues(rt.method, rt.path)}
	for class := 2; class <= 5; class++ {
		rm.classes[class] = m.requests.WithLabelValues(rt.method, rt.path, strconv.Itoa(class)+"xx")
	}
	return rm
}

func (rm *routeMetrics) observe(status int, duration time.Duration) {
	if class := status / 100; class >= 2 && class <= 5 {
		rm.classes[class].Inc()
	}
	rm.duration.Observe(duration.Seconds())
}

// InternalHandler returns the handler of the internal listener: /metrics, /healthz, /readyz,
// /balancez, the API of the operator, the console and, if profiling is enabled, /debug/pprof/. The
// command line of the process is not served. A request whose Host is a public DNS name is forbidden
// unless Deps.InternalHosts has that name. Metrics need no key, so without this check a page could
// point its DNS name here and read them in an operator's browser.
func (s *Server) InternalHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.MetricsRegistry, promhttp.HandlerOpts{Registry: s.MetricsRegistry}))
	for _, path := range []string{"/healthz", "/readyz", "/balancez", "/api/v1/admin/"} {
		mux.Handle(path, s)
	}
	mux.Handle(consolePath, s.console)
	mux.Handle(consolePath+"/", s.console)
	if s.ProfilingEnabled {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", http.NotFound)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	forbidden := gin.New()
	forbidden.NoRoute(s.ginHandler(&route{path: "none", handle: alwaysReturn(
		apierror.Forbidden.WithReason("the Host of this request is not one of PARLOR_INTERNAL_HOSTS"))}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil { // without a port
			host = r.Host
		}
		if text.IsLocalHost(host) || slices.Contains(s.InternalHosts, strings.ToLower(host)) {
			mux.ServeHTTP(w, r)
			return
		}
		forbidden.ServeHTTP(w, r)
	})
}
