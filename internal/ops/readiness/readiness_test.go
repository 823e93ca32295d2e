package readiness

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/logs"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/internal/store/storeclock"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// noStore returns what a monitor needs of a store that it does not probe.
func noStore() *redisdb.DB { return &redisdb.DB{Clock: storeclock.New(storeclock.SystemSource())} }

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
			m, _ := newMonitor(noStore(), redisdb.Requirements{})
			got := ""
			for _, probe := range c.probes {
				if probe == '+' {
					m.update(time.Now(), []redisdb.MasterHealth{healthy("store")})
				} else {
					m.update(time.Now(), []redisdb.MasterHealth{lost("store")})
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

// Two probes show that there is an outage, and two that it is over. What others log about it is
// dropped, up to some seconds later.
func TestOnlyTheMonitorLogsAnOutage(t *testing.T) {
	text := new(bytes.Buffer)
	handler, storeErrors := logs.NewStoreErrors(slog.NewTextHandler(text, nil))
	log := slog.New(handler)
	m := NewMonitor(noStore(), redisdb.Requirements{}, redisdb.NewWatermark(log), log)
	refused := int64(7)
	m.OwnOutages(storeErrors, func() int64 { return refused })
	defer storeErrors.Own()()
	now := time.Now()
	probe := func(health ...redisdb.MasterHealth) {
		now = now.Add(time.Second)
		m.update(now, health)
	}
	fail := func() { log.Warn("work failed", "error", apierror.StoreUnavailable) }
	a, b := "store:0-8191", "store:8192-16383"
	probe(healthy(a), healthy(b))
	if !m.ServedSince(now) {
		t.Error("the store serves, and is not said to")
	}
	for range 8 {
		fail()
		refused++
		probe(lost(a), lost(b))
	}
	if m.ServedSince(now) {
		t.Error("the store serves while it is away")
	}
	probe(healthy(a), healthy(b))
	for range 4 {
		fail()
		probe(healthy(a), healthy(b))
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if len(lines) != 2 ||
		!strings.Contains(lines[0], `level=WARN msg="the store does not serve" masters=`+a+","+b+` detail="does not`) ||
		!strings.Contains(lines[1], `level=INFO msg="the store serves again" masters=`+a+","+b+` away=8s refused=7`) {
		t.Fatalf("the log is\n%s", text)
	}

	// The log has a call that fails while the store serves.
	text.Reset()
	fail()
	for range int(settleTime/time.Second) + 3 {
		probe(healthy(a), healthy(b))
	}
	if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "calls failed although") {
		t.Errorf("the log is\n%s", got)
	}

	// The slots of a master that is away go to another one.
	text.Reset()
	for range 2 {
		probe(healthy(a), lost(b))
	}
	probe(healthy("store:0-16383"))
	if got := text.String(); !strings.Contains(got, `"the store serves again" masters=`+b+" away=2s") {
		t.Errorf("the log is\n%s", got)
	}
}

func TestWhatElseANodeNeedsIsInItsReport(t *testing.T) {
	m, _ := newMonitor(noStore(), redisdb.Requirements{})
	archive := Check{Name: "archive", Detail: "cannot be reached"}
	m.AddChecks(func() []Check { return []Check{archive} })
	m.update(time.Now(), []redisdb.MasterHealth{healthy("store")})
	r := m.Report()
	if !r.Ready || len(r.Checks) != 4 || r.Checks[3] != archive {
		t.Errorf("%+v", r)
	}
}

func TestANodeIsReadyWhileOneMasterIs(t *testing.T) {
	m, log := newMonitor(noStore(), redisdb.Requirements{})
	first, second := "store:0-5460", "store:5461-16383"
	m.update(time.Now(), []redisdb.MasterHealth{healthy(first), healthy(second)})
	for range 3 {
		m.update(time.Now(), []redisdb.MasterHealth{healthy(first), lost(second)})
	}
	r := m.Report()
	if !r.Ready || len(r.Checks) != 4 || !r.Checks[0].OK || r.Checks[1].OK || r.Checks[1].Name != second {
		t.Errorf("one is lost: %+v", r)
	}
	if got := strings.Count(log.String(), "the store does not serve"); got != 1 {
		t.Errorf("%d lines about one change:\n%s", got, log)
	}
	for range 2 {
		m.update(time.Now(), []redisdb.MasterHealth{lost(first), lost(second)})
	}
	if m.Report().Ready {
		t.Error("it is ready without any master")
	}
	m.update(time.Now(), []redisdb.MasterHealth{healthy("store:0-16383")}) // another division of the slots
	if r := m.Report(); !r.Ready || len(r.Checks) != 3 {
		t.Errorf("after the slots moved: %+v", r)
	}
}

func TestAtTheWatermarkANodeIsReadyAndItsMemoryIsNot(t *testing.T) {
	m, _ := newMonitor(noStore(), redisdb.Requirements{})
	full := healthy("store")
	full.MemoryPercent = redisdb.WatermarkPercent + 1
	m.update(time.Now(), []redisdb.MasterHealth{full})
	r := m.Report()
	if memory := r.Checks[1]; !r.Ready || memory.Name != "memory" || memory.OK ||
		!strings.HasPrefix(memory.Detail, "86 %") {
		t.Errorf("%+v", r)
	}
}

func TestADifferenceOfTheClocksIsACheckAndTwoLines(t *testing.T) {
	var passed, ahead time.Duration
	m, log := newMonitor(&redisdb.DB{Clock: storeclock.New(storeclock.Source{
		Wall:    func() time.Time { return time.UnixMilli(1_700_000_000_000).Add(passed) },
		Elapsed: func() time.Duration { return passed },
	})}, redisdb.Requirements{})
	probe := func(times int) Check {
		for range times {
			passed += time.Second
			server := healthy("store")
			server.Clock = storeclock.Reading{
				Master: "store", Time: time.UnixMilli(1_700_000_000_000).Add(passed + ahead), Sent: passed, Received: passed,
			}
			m.update(time.Now(), []redisdb.MasterHealth{server})
		}
		r := m.Report()
		if !r.Ready {
			t.Errorf("the node is not ready: %+v", r)
		}
		return r.Checks[2]
	}
	if got := probe(2); got.Name != "clock" || !got.OK {
		t.Errorf("the check is %+v", got)
	}
	ahead = time.Hour
	if got := probe(8); got.OK || !strings.HasPrefix(got.Detail, "the clock of store is 1 hour ahead of this node's") {
		t.Errorf("an hour ahead the check is %+v", got)
	}
	ahead = 0
	if got := probe(11); !got.OK {
		t.Errorf("after it the check is %+v", got)
	}
	want := []string{
		`level=WARN msg="the clocks of store and node differ" detail="the clock of store is 1 hour ahead of this node's; ` +
			`nothing is ended by time until they agree"`,
		`level=INFO msg="the clocks of store and node agree again" lasted="18 seconds"`,
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 || !strings.HasSuffix(lines[0], want[0]) || !strings.HasSuffix(lines[1], want[1]) {
		t.Errorf("the log is\n%s", log)
	}
}

func TestServersWithoutMaxmemoryAreLogged(t *testing.T) {
	m, log := newMonitor(noStore(), redisdb.Requirements{})
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
	db := testkit.Must(redisdb.Open(s.URL()))(t)
	m := NewMonitor(db, redisdb.Requirements{Durable: true, FreeShards: 1}, redisdb.NewWatermark(slog.Default()),
		slog.Default())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		testkit.WantError(t, <-ended, context.Canceled)
		_ = db.Close()
	})
	<-m.Started()
	return m
}

// noticeLimit is within which a node reports what its store has become: two probes, each a second
// apart, and what a busy machine adds.
const noticeLimit = 4 * time.Second

func TestAPromiseThatTheStoreBreaksLaterIsNoticedAndSoIsItsReturn(t *testing.T) {
	s := redistest.StartForTest(t, "--appendonly", "yes")
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
		testkit.Check(t, c.spoil().Err())
		waitFor(false)
		if got := m.Report().Checks[0]; got.OK || !strings.Contains(got.Detail, c.detail) {
			t.Errorf("%s: %+v", name, got)
		}
		testkit.Check(t, c.mend().Err())
		waitFor(true)
	}
}

func TestANodeThatCannotReadTheStoreAnyMoreIsNotReady(t *testing.T) {
	s := redistest.StartForTest(t, "--appendonly", "yes")
	m := run(t, s)
	server := redistest.Dial(t, s)
	redistest.Eventually(t, "the node is ready", m.IsReady)
	for _, c := range []struct {
		layout int
		ready  bool
	}{{redisdb.NewestLayout() + 1, false}, {redisdb.NewestLayout(), true}} {
		testkit.Check(t, server.HSet(t.Context(), keys.Meta(), keys.MetaLayoutField, c.layout).Err())
		began := time.Now()
		redistest.Eventually(t, "the layout is noticed", func() bool { return m.IsReady() == c.ready })
		if took := time.Since(began); took > noticeLimit {
			t.Errorf("layout %d was noticed only after %v", c.layout, took)
		}
	}
}

func TestAFullStoreIsReady(t *testing.T) {
	s := redistest.StartForTest(t, "--appendonly", "yes")
	m := run(t, s)
	server := redistest.Dial(t, s)
	testkit.Check(t, server.ConfigSet(t.Context(), "maxmemory", "1").Err())
	if err := server.Set(t.Context(), "x", 1, 0).Err(); !redis.HasErrorPrefix(err, "OOM") {
		t.Fatalf("the store is not full: %v", err)
	}
	redistest.Eventually(t, "the memory is noticed", func() bool {
		return slices.ContainsFunc(m.Report().Checks, func(c Check) bool { return c.Name == "memory" && !c.OK })
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
