package readiness

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// newMonitor returns a monitor that logs into a buffer.
func newMonitor(db *redisdb.DB, required redisdb.Requirements) (*Monitor, *bytes.Buffer) {
	text := new(bytes.Buffer)
	log := slog.New(slog.NewTextHandler(text, nil))
	return NewMonitor(db, required, redisdb.NewWatermark(log), log), text
}

// healthy and lost are what a probe finds out about one master.
func healthy(name string) redisdb.MasterHealth {
	return redisdb.MasterHealth{Name: name, OK: true, Detail: "takes writes", Reached: true, HasMaxMemory: true}
}

func lost(name string) redisdb.MasterHealth {
	return redisdb.MasterHealth{Name: name, Detail: "does not answer", Cause: errors.New("refused")}
}

func TestAMasterChangesItsStateAfterTwoProbesInARow(t *testing.T) {
	for name, c := range map[string]struct {
		probes string // of one master: "+" succeeded, "-" failed
		ready  string // after each of them
	}{
		"one slow probe":            {"++-+++", "++++++"},
		"slow probes, not in a row": {"+-+-+-", "++++++"},
		"lost":                      {"++---", "+++--"},
		"back":                      {"+--+-+++", "++----++"},
		"lost from the beginning":   {"--+++", "---++"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			m, _ := newMonitor(nil, redisdb.Requirements{})
			got := ""
			for _, probe := range c.probes {
				if probe == '+' {
					m.update([]redisdb.MasterHealth{healthy("store")})
				} else {
					m.update([]redisdb.MasterHealth{lost("store")})
				}
				if m.Report().Ready {
					got += "+"
				} else {
					got += "-"
				}
			}
			if got != c.ready {
				t.Errorf("probes %s make it %s, want %s", c.probes, got, c.ready)
			}
		})
	}
}

func TestWhatElseANodeNeedsIsInItsReport(t *testing.T) {
	m, _ := newMonitor(nil, redisdb.Requirements{})
	archive := Check{Name: "archive", Detail: "cannot be reached"}
	m.AddChecks(func() []Check { return []Check{archive} })
	m.update([]redisdb.MasterHealth{healthy("store")})
	r := m.Report()
	if !r.Ready || len(r.Checks) != 3 || r.Checks[2] != archive {
		t.Errorf("%+v", r)
	}
}

func TestANodeIsReadyWhileOneMasterIs(t *testing.T) {
	m, log := newMonitor(nil, redisdb.Requirements{})
	first, second := "store:0-5460", "store:5461-16383"
	m.update([]redisdb.MasterHealth{healthy(first), healthy(second)})
	for range 3 {
		m.update([]redisdb.MasterHealth{healthy(first), lost(second)})
	}
	r := m.Report()
	if !r.Ready || len(r.Checks) != 3 || !r.Checks[0].OK || r.Checks[1].OK || r.Checks[1].Name != second {
		t.Errorf("one is lost: %+v", r)
	}
	if got := strings.Count(log.String(), "changed its state"); got != 1 {
		t.Errorf("%d lines about one change:\n%s", got, log)
	}
	for range 2 {
		m.update([]redisdb.MasterHealth{lost(first), lost(second)})
	}
	if m.Report().Ready {
		t.Error("it is ready without any master")
	}
	m.update([]redisdb.MasterHealth{healthy("store:0-16383")}) // another division of the slots
	if r := m.Report(); !r.Ready || len(r.Checks) != 2 {
		t.Errorf("after the slots moved: %+v", r)
	}
}

func TestAtTheWatermarkANodeIsReadyAndItsMemoryIsNot(t *testing.T) {
	m, _ := newMonitor(nil, redisdb.Requirements{})
	full := healthy("store")
	full.MemoryPercent = redisdb.WatermarkPercent + 1
	m.update([]redisdb.MasterHealth{full})
	r := m.Report()
	if memory := r.Checks[len(r.Checks)-1]; !r.Ready || memory.Name != "memory" || memory.OK ||
		!strings.HasPrefix(memory.Detail, "86 %") {
		t.Errorf("%+v", r)
	}
}

func TestServersWithoutMaxmemoryAreLogged(t *testing.T) {
	m, log := newMonitor(nil, redisdb.Requirements{})
	unlimited, unknown := healthy("store:5461-10922"), lost("store:10923-16383")
	unlimited.HasMaxMemory = false
	m.warnOfUnlimited([]redisdb.MasterHealth{healthy("store:0-5460"), unlimited, unknown})
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "master=store:5461-10922") ||
		!strings.Contains(text, "set maxmemory") {
		t.Errorf("the log has:\n%s", text)
	}
}

// run runs a monitor of a server until the test ends, and waits until it has started.
func run(t *testing.T, s *redistest.Server) *Monitor {
	t.Helper()
	db, err := redisdb.Open(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	m := NewMonitor(db, redisdb.Requirements{Durable: true, FreeShards: 1}, redisdb.NewWatermark(slog.Default()),
		slog.Default())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		_ = db.Close()
	})
	<-m.Started()
	return m
}

// noticeLimit is within which a node reports what its store has become: two probes, each a second
// apart, and what a busy machine adds.
const noticeLimit = 4 * time.Second

func TestAPromiseThatTheStoreBreaksLaterIsNoticedAndSoIsItsReturn(t *testing.T) {
	s := redistest.StartFor(t, "--appendonly", "yes")
	m := run(t, s)
	server := redistest.Dial(t, s)
	set := func(name, value string) func() *redis.StatusCmd {
		return func() *redis.StatusCmd { return server.ConfigSet(t.Context(), name, value) }
	}
	for name, c := range map[string]struct {
		spoil, mend func() *redis.StatusCmd
		detail      string
	}{
		"no append-only file": {set("appendonly", "no"), set("appendonly", "yes"), "set appendonly yes"},
		"eviction": {
			set("maxmemory-policy", "allkeys-lru"), set("maxmemory-policy", "noeviction"), "set maxmemory-policy noeviction",
		},
		"a replica": {
			func() *redis.StatusCmd { return server.ReplicaOf(t.Context(), "127.0.0.1", "1") },
			func() *redis.StatusCmd { return server.ReplicaOf(t.Context(), "NO", "ONE") }, "refuses writes: READONLY",
		},
	} {
		waitFor := func(ready bool) {
			t.Helper()
			began := time.Now()
			redistest.Eventually(t, name+" is noticed", func() bool { return m.Report().Ready == ready })
			if took := time.Since(began); took > noticeLimit {
				t.Errorf("%s: ready is %v only after %v", name, ready, took)
			}
		}
		if err := c.spoil().Err(); err != nil {
			t.Fatal(err)
		}
		waitFor(false)
		if got := m.Report().Checks[0]; got.OK || !strings.Contains(got.Detail, c.detail) {
			t.Errorf("%s: %+v", name, got)
		}
		if err := c.mend().Err(); err != nil {
			t.Fatal(err)
		}
		waitFor(true)
	}
}

func TestAFullStoreIsReady(t *testing.T) {
	s := redistest.StartFor(t, "--appendonly", "yes")
	m := run(t, s)
	server := redistest.Dial(t, s)
	if err := server.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if err := server.Set(t.Context(), "x", 1, 0).Err(); !redis.HasErrorPrefix(err, "OOM") {
		t.Fatalf("the store is not full: %v", err)
	}
	redistest.Eventually(t, "the memory is noticed", func() bool {
		r := m.Report()
		return !r.Checks[len(r.Checks)-1].OK
	})
	prober := m.db.NewProber(m.required)
	for range 2 {
		if got := prober.Probe(t.Context()); !got[0].OK {
			t.Errorf("a probe of a full store: %+v", got[0])
		}
	}
	if r := m.Report(); !r.Ready {
		t.Errorf("%+v", r)
	}
}
