package readiness

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// Report is what a node knows about its store.
type Report struct {
	Started bool // the store met the requirements once
	Ready   bool // a master takes writes, and the store keeps what its mode promises
	Checks  []Check
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
	others  []func() Check
}

// master is the state of one master of the store.
type master struct {
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

// Include adds a check of something else than the store to the reports. It must be called before
// Run, and the check must not wait.
func (m *Monitor) Include(check func() Check) { m.others = append(m.others, check) }

// Report returns what is known. It does not wait, and is at most some seconds old.
func (m *Monitor) Report() Report { return *m.report.Load() }

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
	report := Report{Started: true}
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
	for _, check := range m.others {
		report.Checks = append(report.Checks, check())
	}
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
	state, ok := m.masters[p.Name]
	switch {
	case !ok:
		state = &master{ok: p.OK, detail: p.Detail}
	case p.OK == state.ok:
		state.opposite, state.detail = 0, p.Detail
	default:
		if state.opposite++; state.opposite >= switchAfter {
			*state = master{ok: p.OK, detail: p.Detail}
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
