package nodes

import (
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

const (
	// Interval is the time between two reports of a node.
	Interval = 5 * time.Second
	// shownFor is the time for which a silent node is shown.
	shownFor = time.Minute

	keptSamples    = 60 // of Recent
	maxMovedTokens = 8  // of Recent.Moved: those that moved last
	readEvery      = 6  // reports
	writeTimeout   = 3 * time.Second
)

// Reading has a node's measurements of itself. The totals count from the start of the node.
type Reading struct {
	Sockets    int
	Topics     int
	Players    int // seats whose players are connected by this node
	Goroutines int
	Memory     int64         // bytes that the node has of the system
	Lag        time.Duration // from publish to receipt, measured by the last probe
	Draining   bool
	Durability string // what an acknowledged change survives now: "memory", "disk", "replica"

	Requests      int64            // total
	Failures      int64            // total of requests with a status of 500 or more
	Deliveries    int64            // total of events handed to sockets
	LedgerEntries int64            // total of ledger entries that the node has folded
	Moved         map[string]int64 // total of the minor units in them, by code of the token
}

// Report is a node's last report of itself.
type Report struct {
	ID         string    `json:"id"`
	Host       string    `json:"host"`
	Address    string    `json:"address"` // host:port for other nodes, "" if they cannot reach it
	Version    string    `json:"version"`
	Commit     string    `json:"commit"`
	Oldest     int       `json:"oldestLayout"` // of the store that the node reads; 0 of v0.9.0, which reads 3 only
	Newest     int       `json:"newestLayout"`
	Layout     int       `json:"layout"` // that it writes
	StartedAt  time.Time `json:"startedAt"`
	At         time.Time `json:"at"`
	Draining   bool      `json:"draining"`
	Durability string    `json:"durability"`     // that holds now
	Mode       string    `json:"durabilityMode"` // of the settings
	Sockets    int       `json:"sockets"`
	Topics     int       `json:"topics"`
	Players    int       `json:"players"` // seats whose players are connected by this node
	Goroutines int       `json:"goroutines"`
	Memory     int64     `json:"memoryBytes"`
	LagMicros  int64     `json:"lagMicros"`
	Requests   int64     `json:"requests"`   // since the start
	Failures   int64     `json:"failures"`   // of them with a status of 500 or more
	Deliveries int64     `json:"deliveries"` // events handed to sockets since the start
	Recent     Recent    `json:"recent"`
}

// Recent has a node's counts of each of the last intervals, oldest first. All lists have the same
// length.
type Recent struct {
	IntervalSeconds int                 `json:"intervalSeconds"`
	Until           time.Time           `json:"until"` // end of the last interval
	Requests        []int64             `json:"requests"`
	Failures        []int64             `json:"failures"`
	Deliveries      []int64             `json:"deliveries"`
	Sockets         []int64             `json:"sockets"`       // at the end of the interval
	LagMicros       []int64             `json:"lagMicros"`     // at the end of the interval
	LedgerEntries   []int64             `json:"ledgerEntries"` // each entry counts on one node
	Moved           map[string][]string `json:"moved"`         // minor units by code of the token
}

// Service writes the reports of one node and reads those of all.
type Service struct {
	store   store
	options Options
	report  Report
	last    Reading
	moved   map[string][]int64 // minor units in each interval
	peers   peers
	others  atomic.Pointer[[]string] // addresses of other nodes
	builds  atomic.Pointer[[]Build]
}

// Options are what a node says of itself. All but Read may be zero in a service that only reads.
type Options struct {
	ID      string // random, unique
	Host    string
	Version string
	Commit  string
	Mode    string // of durability
	Read    func() Reading
}

// New returns a service on a store.
func New(db *redisdb.DB, o Options) *Service {
	s := &Service{store: store{db}, options: o, moved: map[string][]int64{}, peers: newPeers()}
	s.report = Report{
		ID: o.ID, Host: o.Host, Version: o.Version, Commit: o.Commit, Mode: o.Mode, StartedAt: time.Now().UTC(),
		Oldest: redisdb.OldestLayout(), Newest: redisdb.NewestLayout(),
	}
	s.report.Recent.IntervalSeconds = int(Interval / time.Second)
	return s
}

// Announce writes the first report. A starting node calls it before its last read of the store's
// layout. So either the process that raises the layout sees the node, or the node sees the new
// layout. A full store accepts no report; the node starts anyway.
func (s *Service) Announce(ctx context.Context) { s.write(ctx, false) }

// Withdraw removes the report of a node that does not start.
func (s *Service) Withdraw(ctx context.Context) { _ = s.store.remove(ctx, s.options.ID) }

// Run reports every Interval until ctx ends, and then removes the report. A report that cannot be
// written is skipped, because the next one contains the same.
func (s *Service) Run(ctx context.Context) error {
	s.last = s.options.Read()
	s.report.set(s.last)
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	for number := 0; ; number++ {
		// The second round knows the nodes that started together with this one.
		s.write(ctx, number%readEvery == 0 || number == 1)
		select {
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
			defer cancel()
			_ = s.store.remove(ctx, s.options.ID)
			return nil
		case <-tick.C:
			s.sample(s.options.Read(), time.Now().UTC())
		}
	}
}

// write writes the report and, if read is set, reads those of the others, which removes old ones.
func (s *Service) write(ctx context.Context, read bool) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	s.report.At, s.report.Layout = time.Now().UTC(), s.store.db.Layout()
	_ = s.store.write(ctx, s.report)
	if !read {
		return
	}
	if list, err := s.store.list(ctx); err == nil {
		s.remember(list)
		builds := countBuilds(list)
		s.builds.Store(&builds)
	}
}

// set sets what a node measures at an instant.
func (r *Report) set(now Reading) {
	r.Draining, r.Durability, r.Goroutines = now.Draining, now.Durability, now.Goroutines
	r.Sockets, r.Topics, r.Players = now.Sockets, now.Topics, now.Players
	r.Memory, r.LagMicros = now.Memory, now.Lag.Microseconds()
	r.Requests, r.Failures, r.Deliveries = now.Requests, now.Failures, now.Deliveries
}

// sample adds an interval that ended now.
func (s *Service) sample(now Reading, at time.Time) {
	s.report.set(now)
	recent := &s.report.Recent
	recent.Until = at
	recent.Requests = push(recent.Requests, now.Requests-s.last.Requests)
	recent.Failures = push(recent.Failures, now.Failures-s.last.Failures)
	recent.Deliveries = push(recent.Deliveries, now.Deliveries-s.last.Deliveries)
	recent.Sockets = push(recent.Sockets, int64(now.Sockets))
	recent.LagMicros = push(recent.LagMicros, now.Lag.Microseconds())
	recent.LedgerEntries = push(recent.LedgerEntries, now.LedgerEntries-s.last.LedgerEntries)
	s.sampleMoved(now, len(recent.Requests))
	s.last = now
}

// sampleMoved adds an interval for each token that moved in any of the kept intervals.
func (s *Service) sampleMoved(now Reading, intervals int) {
	for code, total := range now.Moved {
		if moved := total - s.last.Moved[code]; moved != 0 && s.moved[code] == nil && len(s.moved) < maxMovedTokens {
			s.moved[code] = make([]int64, intervals-1, keptSamples)
		}
	}
	s.report.Recent.Moved = map[string][]string{}
	for code, list := range s.moved {
		list = push(list, now.Moved[code]-s.last.Moved[code])
		if !slices.ContainsFunc(list, func(units int64) bool { return units != 0 }) {
			delete(s.moved, code)
			continue
		}
		s.moved[code] = list
		texts := make([]string, len(list))
		for i, units := range list {
			texts[i] = strconv.FormatInt(units, 10)
		}
		s.report.Recent.Moved[code] = texts
	}
}

// push appends a value and drops the oldest beyond keptSamples.
func push(list []int64, value int64) []int64 {
	list = append(list, value)
	return slices.Clone(list[max(0, len(list)-keptSamples):])
}

// List returns the reports of all nodes, the one that started first first. It is for the operator.
// It returns forbidden.
func (s *Service) List(ctx context.Context, caller principal.Caller) ([]Report, error) {
	if caller.Role != principal.Operator {
		return nil, apierror.Forbidden
	}
	list, err := s.store.list(ctx)
	slices.SortFunc(list, func(a, b Report) int { return a.StartedAt.Compare(b.StartedAt) })
	return list, err
}
