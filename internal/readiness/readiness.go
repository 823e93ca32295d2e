package readiness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/redisdb"
)

// Check is one thing that a node needs, or an operator must know.
type Check struct {
	Name   string `json:"name"` // "store", "store:0-5460", "memory", "archive"
	OK     bool   `json:"ok"`
	Detail string `json:"detail"` // a sentence for anyone to read
}

// Promise is what an acknowledged change survives.
type Promise = redisdb.Promise

// The promises.
const (
	KeepsMemory  = redisdb.KeepsMemory
	KeepsDisk    = redisdb.KeepsDisk
	KeepsReplica = redisdb.KeepsReplica
)

// Report is what a node knows about its store.
type Report struct {
	Started bool // the store met the requirements once
	Ready   bool // a master takes writes, and the store keeps what its mode promises
	// Keeps is what an acknowledged change survives now, the least of the masters that were reached
	// last; "" before any was.
	Keeps  redisdb.Promise
	Checks []Check
}

const (
	probeInterval = time.Second // between two probes, and between two tries at the start
	probeTimeout  = time.Second
	gateTimeout   = 10 * time.Second // of one try at the start
	switchAfter   = 2                // probes in a row with another result
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
	prepare func(context.Context) error // nil for none
	more    []func() []Check
	changes atomic.Uint64
}

// master is the state of one master of the store.
type master struct {
	history  string // that it writes on, as its replicas know it; "" before it was reached
	ok       bool
	detail   string
	opposite int // probes in a row whose result was not ok's
}

// NewMonitor returns a monitor of the store, which also keeps the watermark. It knows nothing
// before it runs.
func NewMonitor(
	db *redisdb.DB, required redisdb.Requirements, memory *redisdb.Watermark, log *slog.Logger,
) *Monitor {
	m := &Monitor{
		db: db, required: required, memory: memory, log: log, started: make(chan struct{}), masters: map[string]*master{},
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
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	if err := m.waitForStore(ctx, tick); err != nil {
		return err
	}
	prober := m.db.NewProber(m.required)
	for started := false; ; {
		probeCtx, cancel := context.WithTimeout(ctx, probeTimeout)
		probed := prober.Probe(probeCtx)
		cancel()
		m.update(probed)
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

// waitForStore repeats the whole check of the requirements until the store meets them.
func (m *Monitor) waitForStore(ctx context.Context, tick *time.Ticker) error {
	var lastCause string
	for {
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
		case err.Error() != lastCause: // else once is enough
			m.log.Warn("waiting for the store", "cause", err)
			lastCause = err.Error()
		}
		detail := "is not ready"
		if errors.Is(err, apierror.StoreUnavailable) {
			detail = "was not reached yet, or does not take writes"
		}
		m.report.Store(&Report{Checks: []Check{{Name: "store", Detail: detail}}})
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// update makes a new report of what a probe found.
func (m *Monitor) update(probed []redisdb.MasterHealth) {
	report := Report{Started: true, Keeps: m.report.Load().Keeps}
	var least Promise
	for _, p := range probed {
		if p.Cause == nil && (least == "" || p.Keeps.IsWeakerThan(least)) {
			least = p.Keeps
		}
	}
	report.Keeps = cmp.Or(least, report.Keeps)
	known := make(map[string]*master, len(probed))
	for _, p := range probed {
		state := m.observe(p)
		known[p.Name] = state
		report.Checks = append(report.Checks, Check{Name: p.Name, OK: state.ok, Detail: state.detail})
		report.Ready = report.Ready || state.ok
	}
	m.masters = known
	m.memory.Update(probed)
	report.Checks = append(report.Checks, Check{
		Name: "memory", OK: m.memory.AdmitNew() == nil,
		Detail: fmt.Sprintf("%d %% in use; above %d %% nothing new is admitted",
			m.memory.PercentUsed(), redisdb.WatermarkPercent),
	})
	m.report.Store(&report)
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

// observe returns the state of a master after a probe.
func (m *Monitor) observe(p redisdb.MasterHealth) *master {
	state := m.observeHealth(p)
	if p.Cause != nil {
		state.history = "" // what is there when it is back is looked at
	} else if state.history != p.History {
		state.history = p.History
		m.changes.Add(1)
	}
	return state
}

func (m *Monitor) observeHealth(p redisdb.MasterHealth) *master {
	state, ok := m.masters[p.Name]
	switch {
	case !ok:
		state = &master{ok: p.OK, detail: p.Detail}
	case p.OK == state.ok:
		state.opposite, state.detail = 0, p.Detail
	default:
		if state.opposite++; state.opposite >= switchAfter {
			*state = master{ok: p.OK, detail: p.Detail, history: state.history}
			level := slog.LevelWarn
			if p.OK {
				level = slog.LevelInfo
			}
			m.log.Log(context.Background(), level, "a master of the store changed its state",
				"master", p.Name, "ok", p.OK, "detail", p.Detail, "cause", p.Cause)
		}
	}
	return state
}
