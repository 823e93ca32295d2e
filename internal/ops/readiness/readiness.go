package readiness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/logs"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/storeclock"
)

// Check is one thing that a node needs, or an operator must know.
type Check struct {
	Name   string `json:"name"` // "store", "store:0-5460", "memory", "clock", "versions"
	OK     bool   `json:"ok"`
	Detail string `json:"detail"` // a sentence for anyone to read
}

// Promise says where an acknowledged change is kept: in memory, on disk or on a replica, too.
type Promise = redisdb.Promise

// The promises.
const (
	KeepsMemory  = redisdb.KeepsMemory
	KeepsDisk    = redisdb.KeepsDisk
	KeepsReplica = redisdb.KeepsReplica
)

// Report is a node's knowledge of its store.
type Report struct {
	Started bool // the store met the requirements once
	// Ready means that a master accepts writes, that the store provides the durability of its mode,
	// and that this build can read the layout of the store.
	Ready bool
	// Keeps is the current durability of acknowledged changes: the weakest of the masters that were
	// reached last, or "" before any was.
	Keeps  redisdb.Promise
	Checks []Check
}

const (
	probeInterval = time.Second // between two probes, and between two tries at the start
	probeTimeout  = time.Second
	gateTimeout   = 10 * time.Second // of one try at the start
	switchAfter   = 2                // probes in a row with another result
	// settleTime is how long after an outage its last errors may arrive: those of calls that waited.
	settleTime = 5 * time.Second
)

// Monitor keeps the report of a node up to date while it runs.
type Monitor struct {
	db       *redisdb.DB
	required redisdb.Requirements
	memory   *redisdb.Watermark
	log      *slog.Logger
	started  chan struct{}
	report   atomic.Pointer[Report]

	masters map[string]*master
	// layoutProblem is why this build does not read the store any more, "" while it does.
	layoutProblem string
	prepare       func(context.Context) error // nil for none
	more          []func() []Check
	changes       atomic.Uint64

	storeErrors      *logs.StoreErrors
	unavailableCalls func() int64
	servesSince      atomic.Int64 // Unix ms of the first of the probes in a row that succeeded; 0: the last failed
	quietUntil       time.Time    // until when errors are those of the last outage
}

// master is the state of one master of the store.
type master struct {
	history  string // that it writes on, as its replicas know it; "" before it was reached
	ok       bool
	detail   string
	opposite int // probes in a row whose result was not ok's

	failedAt time.Time // start of the first failed probe, of the last row of them
	backAt   time.Time // start of the first probe that succeeded again, of the last row of them
	refused  int64     // calls that the node had refused when failedAt was
}

// NewMonitor returns a monitor of the store, which also keeps the watermark. It knows nothing
// before it runs.
func NewMonitor(
	db *redisdb.DB, required redisdb.Requirements, memory *redisdb.Watermark, log *slog.Logger,
) *Monitor {
	m := &Monitor{
		db: db, required: required, memory: memory, log: log, started: make(chan struct{}), masters: map[string]*master{},
		unavailableCalls: func() int64 { return 0 },
	}
	m.report.Store(&Report{Checks: []Check{{Name: "store", Detail: "was not reached yet"}}})
	return m
}

// Report returns what is known. It does not wait, and is at most some seconds old.
func (m *Monitor) Report() Report {
	report := *m.report.Load()
	for _, list := range m.more {
		report.Checks = slices.Concat(report.Checks, list())
	}
	return report
}

// IsReady is Report().Ready at the cost of one load.
func (m *Monitor) IsReady() bool { return m.report.Load().Ready }

// BeforeReady makes the node ready only after prepare has succeeded, on a store that meets the
// requirements. Call it before Run.
func (m *Monitor) BeforeReady(prepare func(context.Context) error) { m.prepare = prepare }

// Changes returns a number that differs when a server of the store came back, or another one took
// its place: then it may have another past.
func (m *Monitor) Changes() uint64 { return m.changes.Load() }

// OwnOutages makes the monitor the only logger of outages of the store. It writes a line at the
// start, and one at the end with the number of failed calls that unavailableCalls counted. During
// an outage it drops errors of the store that others log. Call it before Run.
func (m *Monitor) OwnOutages(errs *logs.StoreErrors, unavailableCalls func() int64) {
	m.storeErrors, m.unavailableCalls = errs, unavailableCalls
}

// ServedSince reports whether all masters have taken writes since an instant, as far as is known.
func (m *Monitor) ServedSince(at time.Time) bool {
	since := m.servesSince.Load()
	return since != 0 && since <= at.UnixMilli()
}

// HasStarted is Report().Started at the cost of one load.
func (m *Monitor) HasStarted() bool { return m.report.Load().Started }

// Kept is Report().Keeps at the cost of one load.
func (m *Monitor) Kept() Promise { return m.report.Load().Keeps }

// AddChecks appends what list returns to the checks of every report. Call it before Run; list must
// not block.
func (m *Monitor) AddChecks(list func() []Check) { m.more = append(m.more, list) }

// Started returns a channel that is closed when the store has met the requirements.
func (m *Monitor) Started() <-chan struct{} { return m.started }

// Run waits for the store, then probes it once a second until ctx ends. It returns a
// redisdb.RequirementError for a store that cannot keep the promise.
func (m *Monitor) Run(ctx context.Context) error {
	defer m.storeErrors.Own()()
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	if err := m.waitForStore(ctx, tick); err != nil {
		return err
	}
	m.quietUntil = time.Now().Add(settleTime) // of what was called before
	prober := m.db.NewProber(m.required)
	for started := false; ; {
		begin := time.Now()
		probeCtx, cancel := context.WithTimeout(ctx, probeTimeout)
		var layout sync.WaitGroup
		layout.Go(func() { m.readLayout(probeCtx) })
		probed := prober.Probe(probeCtx)
		layout.Wait()
		cancel()
		if ctx.Err() != nil {
			return ctx.Err() // the probe was ended, and says nothing
		}
		m.update(begin, probed)
		if !started {
			started = true
			m.warnOfUnlimited(probed)
			close(m.started)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// readLayout reads the layout of the store, which an operator may have raised: a node that cannot
// read it is not ready any more. A store that is away is the business of the probe.
func (m *Monitor) readLayout(ctx context.Context) {
	_ = m.db.ReadLayout(ctx)
	problem := m.db.LayoutProblem()
	if problem != "" && problem != m.layoutProblem {
		m.log.Error("this node cannot read the store any more, and writes nothing", "cause", problem)
	}
	m.layoutProblem = problem
}

// waitForStore repeats the whole check of the requirements until the store meets them.
func (m *Monitor) waitForStore(ctx context.Context, tick *time.Ticker) error {
	var lastCause string
	for {
		m.storeErrors.Discard()
		tryCtx, cancel := context.WithTimeout(ctx, gateTimeout)
		err := m.db.CheckRequirements(tryCtx, m.required)
		if err == nil && m.prepare != nil {
			err = m.prepare(tryCtx)
		}
		cancel()
		var unmet redisdb.RequirementError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &unmet):
			return err
		}
		detail, cause := "is not ready", err.Error()
		if errors.Is(err, apierror.StoreUnavailable) {
			detail, cause = "was not reached yet, or does not take writes", apierror.StoreUnavailable.Code
		}
		if cause != lastCause { // else once is enough
			m.log.Warn("waiting for the store", "cause", err.Error())
			lastCause = cause
		}
		m.report.Store(&Report{Checks: []Check{{Name: "store", Detail: detail}}})
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// update makes a new report of what a probe found that began at an instant.
func (m *Monitor) update(begin time.Time, probed []redisdb.MasterHealth) {
	report := Report{Started: true, Keeps: m.report.Load().Keeps}
	var least Promise
	for _, p := range probed {
		if p.Cause == nil && (least == "" || p.Keeps.IsWeakerThan(least)) {
			least = p.Keeps
		}
	}
	report.Keeps = cmp.Or(least, report.Keeps)
	known := make(map[string]*master, len(probed))
	isAway, isDoubted := false, false
	var lost []redisdb.MasterHealth
	for _, p := range probed {
		before := m.masters[p.Name]
		state := m.observe(begin, p)
		known[p.Name] = state
		if !state.ok && (before == nil || before.ok) {
			lost = append(lost, p)
		}
		isAway, isDoubted = isAway || !state.ok, isDoubted || !p.OK
		report.Checks = append(report.Checks, Check{Name: p.Name, OK: state.ok, Detail: state.detail})
		report.Ready = report.Ready || state.ok
	}
	report.Ready = report.Ready && m.layoutProblem == ""
	m.logOutage(lost)
	m.logReturn(begin, known)
	m.masters = known
	m.decideAboutErrors(begin, isAway, isDoubted)
	m.memory.Update(probed)
	m.observeClocks(probed)
	clockOK, clockDetail := m.db.Clock.Status()
	report.Checks = append(report.Checks, Check{
		Name: "memory", OK: !m.memory.IsNearlyFull(),
		Detail: fmt.Sprintf("%d %% in use; above %d %% nothing new is admitted",
			m.memory.PercentUsed(), redisdb.WatermarkPercent),
	}, Check{Name: "clock", OK: clockOK, Detail: clockDetail})
	m.report.Store(&report)
}

// observeClocks compares the clocks of the masters with the node's. It writes a line when a
// difference begins, and one when it ends.
func (m *Monitor) observeClocks(probed []redisdb.MasterHealth) {
	readings := make([]storeclock.Reading, len(probed))
	for i, p := range probed {
		readings[i] = p.Clock
	}
	change := m.db.Clock.Observe(readings)
	if change.Began {
		m.log.Warn("the clocks of store and node differ", "detail", change.Detail)
	}
	if change.Ended {
		m.log.Info("the clocks of store and node agree again", "lasted", storeclock.Words(change.Lasted))
	}
}

// logOutage writes one line about masters that were lost at the same time.
func (m *Monitor) logOutage(lost []redisdb.MasterHealth) {
	if len(lost) == 0 {
		return
	}
	names := make([]string, len(lost))
	for i, p := range lost {
		names[i] = p.Name
	}
	attributes := []any{"masters", strings.Join(names, ","), "detail", lost[0].Detail}
	if cause := lost[0].Cause; cause != nil { // as a text: an error of the store would be held back
		attributes = append(attributes, "cause", cause.Error())
	}
	m.log.Warn("the store does not serve", attributes...)
}

// logReturn writes one line about masters that came back at the same time, or whose slots others
// have now. known are the masters after a probe that began at an instant.
func (m *Monitor) logReturn(begin time.Time, known map[string]*master) {
	var names []string
	failedAt, backAt, refused := begin, begin, int64(0)
	for name, before := range m.masters {
		now := known[name]
		if before.ok || now != nil && !now.ok {
			continue
		}
		names = append(names, name)
		if now != nil {
			backAt = now.backAt
		}
		if before.failedAt.Before(failedAt) {
			failedAt, refused = before.failedAt, m.unavailableCalls()-before.refused
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		m.log.Info("the store serves again", "masters", strings.Join(names, ","), "away", backAt.Sub(failedAt),
			"refused", refused)
	}
}

// decideAboutErrors drops the errors of an outage, and has others logged once the store has shown
// that there is none.
func (m *Monitor) decideAboutErrors(begin time.Time, isAway, isDoubted bool) {
	switch {
	case isAway:
		m.servesSince.Store(0)
		m.quietUntil = begin.Add(settleTime)
		m.storeErrors.Discard()
	case isDoubted:
		m.servesSince.Store(0)
	default:
		m.servesSince.CompareAndSwap(0, begin.UnixMilli())
		if begin.Before(m.quietUntil) {
			m.storeErrors.Discard()
		} else {
			m.storeErrors.Release(begin.Add(-probeInterval - probeTimeout))
		}
	}
}

// warnOfUnlimited logs which servers have no limit of their own: their machine may run out of
// memory and kill them.
func (m *Monitor) warnOfUnlimited(probed []redisdb.MasterHealth) {
	for _, p := range probed {
		if p.Reached && !p.HasMaxMemory {
			m.log.Warn("a server of the store has no maxmemory, so that its machine may run out of memory; set maxmemory",
				"master", p.Name)
		}
	}
}

// observe returns the state of a master after a probe that began at an instant.
func (m *Monitor) observe(begin time.Time, p redisdb.MasterHealth) *master {
	state := m.observeHealth(begin, p)
	if p.Cause != nil {
		state.history = "" // what is there when it is back is looked at
	} else if state.history != p.History {
		state.history = p.History
		m.changes.Add(1)
	}
	return state
}

func (m *Monitor) observeHealth(begin time.Time, p redisdb.MasterHealth) *master {
	state := master{ok: p.OK, detail: p.Detail, failedAt: begin, refused: m.unavailableCalls()}
	if before := m.masters[p.Name]; before != nil {
		state = *before
		switch {
		case p.OK == state.ok:
			state.opposite, state.detail = 0, p.Detail
		default:
			state.opposite++
			switch {
			case state.opposite > 1:
			case p.OK:
				state.backAt = begin
			default:
				state.failedAt, state.refused = begin, m.unavailableCalls()
			}
			if state.opposite >= switchAfter {
				state.ok, state.detail, state.opposite = p.OK, p.Detail, 0
			}
		}
	}
	return &state
}
