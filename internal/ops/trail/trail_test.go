package trail_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/ops/trail"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

var (
	operator = principal.Caller{Role: principal.Operator, KeyID: 2}
	server   = principal.Caller{Role: principal.Server, GameID: 3, ServerKeyID: "abc"}
)

// fixture is a trail whose log can be read.
type fixture struct {
	*trail.Service
	t   *testing.T
	log bytes.Buffer
}

func each(t *testing.T, test func(t *testing.T, f *fixture)) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) { test(t, newFixture(t, db)) })
}

func newFixture(t *testing.T, db *redisdb.DB) *fixture {
	f := &fixture{t: t}
	f.Service = trail.New(db, slog.New(slog.NewJSONHandler(&f.log, nil)))
	return f
}

func (f *fixture) record(caller principal.Caller, target string) {
	ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Second)
	defer cancel()
	f.Record(ctx, trail.Write{
		Caller: caller, Action: "credit", Target: target, Before: map[string]any{"volume": 1},
		After: map[string]any{"volume": 2}, RequestID: "request", Outcome: trail.Done,
	})
}

// list returns the targets of all pages of a query.
func (f *fixture) list(q trail.Query) (targets []string) {
	f.t.Helper()
	for {
		page := testkit.Must(f.List(f.t.Context(), operator, q))(f.t)
		if len(page.Records) > q.Limit {
			f.t.Errorf("a page of %d has %d records", q.Limit, len(page.Records))
		}
		for _, r := range page.Records {
			targets = append(targets, r.Target)
		}
		if q.BeforeID = page.NextBefore; q.BeforeID == 0 {
			return targets
		}
	}
}

func (f *fixture) expect(q trail.Query, want ...string) {
	f.t.Helper()
	for _, q.Limit = range []int{1, 2, 100} {
		if got := f.list(q); !slices.Equal(got, want) {
			f.t.Errorf("%+v lists %v; want %v", q, got, want)
		}
	}
}

func TestRecordsAreListedNewestFirst(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.expect(trail.Query{})
		f.record(operator, "user:1")
		f.record(server, "user:2")
		f.record(operator, "user:2")
		f.record(server, "user:3")
		f.expect(trail.Query{}, "user:3", "user:2", "user:2", "user:1")
		f.expect(trail.Query{Actor: "operator:2"}, "user:2", "user:1")
		f.expect(trail.Query{Actor: "server:abc"}, "user:3", "user:2")
		f.expect(trail.Query{Actor: "operator:1"})
		f.expect(trail.Query{Target: "user:2"}, "user:2", "user:2")
		f.expect(trail.Query{Target: "user:2", Actor: "server:abc"}, "user:2")
		f.expect(trail.Query{From: time.Now().Add(time.Minute)})
		f.expect(trail.Query{From: time.Now().Add(-time.Minute), Target: "user:1"}, "user:1")
		page := testkit.Must(f.List(t.Context(), operator, trail.Query{Limit: 2}))(t)
		f.record(operator, "user:9") // a page goes on where it was, whatever comes meanwhile
		f.expect(trail.Query{BeforeID: page.NextBefore}, "user:2", "user:1")

		newest := page.Records[0]
		at := newest.At
		newest.At = time.Time{}
		text, _ := wire.Marshal(newest)
		if want := `{"id":4,"at":"0001-01-01T00:00:00.000Z","actor":"server:abc","gameId":3,"action":"credit",` +
			`"target":"user:3","before":{"volume":1},"after":{"volume":2},"requestId":"request",` +
			`"outcome":"done"}`; string(text) != want || time.Since(at).Abs() > time.Minute {
			t.Errorf("%s at %v; want %s", text, at, want)
		}
		f.expect(trail.Query{From: at, Target: "user:3"}, "user:3")
	})
}

func TestARoleDoesNotPushOutTheRecordsOfTheOther(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.KeepAtMost(2)
		f.record(operator, "user:1")
		for i := range 5 {
			f.record(server, fmt.Sprint("user:", 2+i))
		}
		f.expect(trail.Query{}, "user:6", "user:5", "user:1")
	})
}

// A thief with the server key of a game floods the trail of that game alone, and with routine not
// even that.
func TestServersOfGamesDoNotPushOutEachOthersRecords(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.KeepAtMost(2)
		other := principal.Caller{Role: principal.Server, GameID: 4, ServerKeyID: "def"}
		f.record(other, "user:1")
		f.record(server, "user:2")
		for i := range 5 {
			f.Record(t.Context(), trail.Write{
				Caller: server, Action: "exchange", Target: fmt.Sprint("user:", 3+i), Outcome: trail.Done, IsRoutine: true,
			})
		}
		f.expect(trail.Query{}, "user:7", "user:6", "user:2", "user:1")
		f.expect(trail.Query{GameID: 3}, "user:7", "user:6", "user:2")
		f.expect(trail.Query{GameID: 4}, "user:1")
		f.expect(trail.Query{GameID: 5})
	})
}

func TestRecordsOfAReleaseBeforeAreRead(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.record(operator, "user:1")
		before := &redis.XAddArgs{
			Stream: keys.Trail("server"), ID: "2-0",
			Values: []string{"at", "1000", "act", `{"actor":"server:abc","gameId":3,"action":"credit","target":"user:2"}`},
		}
		testkit.Check(t, errors.Join(db.Client.XAdd(t.Context(), before).Err(),
			db.Client.Incr(t.Context(), keys.TrailNumber()).Err()))
		f.record(server, "user:3")
		f.expect(trail.Query{}, "user:3", "user:2", "user:1")
		f.expect(trail.Query{GameID: 3}, "user:3", "user:2")
		f.expect(trail.Query{GameID: 4})
	})
}

// Both lists are longer than one read, and one is longer than the other.
func TestALongTrailIsReadInParts(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		const records = 500
		var want []string
		for i := range records {
			caller := operator
			if i < 250 || i%5 == 0 {
				caller = server
			}
			target := fmt.Sprint("user:", i)
			f.record(caller, target)
			want = append(want, target)
		}
		slices.Reverse(want)
		for _, limit := range []int{7, 100, records} {
			if got := f.list(trail.Query{Limit: limit}); !slices.Equal(got, want) {
				t.Errorf("pages of %d list %d records: %v", limit, len(got), got)
			}
		}
		if got := f.list(trail.Query{Limit: 1, Target: "user:3"}); !slices.Equal(got, []string{"user:3"}) {
			t.Errorf("an old record is found as %v", got)
		}
	})
}

func TestRecordsOfManyNodesHaveNumbersWithoutGaps(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		const nodes, writes = 4, 20
		var wg sync.WaitGroup
		for range nodes {
			node := newFixture(t, db)
			wg.Go(func() {
				for i := range writes {
					node.record([]principal.Caller{operator, server}[i%2], "user:1")
				}
			})
		}
		wg.Wait()
		page := testkit.Must(newFixture(t, db).List(t.Context(), operator, trail.Query{Limit: nodes * writes}))(t)
		for i, r := range page.Records {
			if r.ID != int64(nodes*writes-i) {
				t.Fatalf("record %d from the end has the number %d", i, r.ID)
			}
		}
		if len(page.Records) != nodes*writes {
			t.Errorf("%d writes left %d records", nodes*writes, len(page.Records))
		}
	})
}

func TestALargeRecordIsBounded(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	many := map[string]any{}
	for i := range 1000 {
		many[fmt.Sprint("member", i)] = i
	}
	f.Record(t.Context(), trail.Write{
		Caller: operator, Action: "patchGame", Target: strings.Repeat("ü", trail.MaxNameBytes), RequestID: "\xff",
		Before: map[string]any{"large": strings.Repeat("x", 4000), "small": 1}, After: many, Outcome: trail.Done,
	})
	page, err := f.List(t.Context(), operator, trail.Query{Limit: 1})
	if err != nil || len(page.Records) != 1 {
		t.Fatalf("%+v, %v\n%s", page, err, &f.log)
	}
	r := page.Records[0]
	if !strings.HasPrefix(string(r.Before), `{"large":{"bytes":4002,"sha256":"`) ||
		!strings.HasSuffix(string(r.Before), `"},"small":1}`) {
		t.Errorf("before is %s", r.Before)
	}
	if !strings.HasPrefix(string(r.After), `{"bytes":`) || len(r.After) > 120 {
		t.Errorf("after is %s", r.After)
	}
	if len(r.Target) > trail.MaxNameBytes || r.RequestID != "" {
		t.Errorf("the target has %d bytes, the request is %q", len(r.Target), r.RequestID)
	}
}

func TestOnlyTheOperatorReadsTheTrail(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	for _, caller := range []principal.Caller{
		{}, server, {Role: principal.Player, UserID: 1, GameID: 3}, {Role: principal.System},
	} {
		testkit.Fails(f.List(t.Context(), caller, trail.Query{Limit: 1}))(t, apierror.Forbidden, "%+v gets", caller)
	}
}

func TestARecordThatTheStoreDoesNotTakeIsAnErrorInTheLog(t *testing.T) {
	db := redistest.Single(t)
	f := newFixture(t, db)
	testkit.Check(t, db.Close())
	f.record(operator, "user:1")
	lines := strings.Split(strings.TrimSpace(f.log.String()), "\n")
	const record = `"actor":"operator:2","action":"credit","target":"user:1","before":{"volume":1},` +
		`"after":{"volume":2},"requestId":"request","outcome":"done"`
	if len(lines) != 2 || !strings.Contains(lines[0], `"level":"INFO","msg":"staff write",`+record) ||
		!strings.Contains(lines[1], `"level":"ERROR","msg":"staff write not in the trail",`+record+`,"error":`) {
		t.Errorf("the log is\n%s", strings.Join(lines, "\n"))
	}
}

// A game's server signs thousands of players in. Each sign-in is in the trail, and the log has one
// line a minute about the key.
func TestTheRoutineOfAServerKeyIsCountedInTheLog(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	ctx, stop := context.WithCancel(t.Context())
	for i := range 300 {
		f.Record(ctx, trail.Write{
			Caller: server, Action: "exchange", Target: fmt.Sprint("user:", i), Outcome: trail.Done, IsRoutine: true,
		})
	}
	if f.log.Len() > 0 {
		t.Errorf("before the minute is over the log has\n%s", &f.log)
	}
	f.record(server, "user:1") // money
	stop()
	testkit.Check(t, f.Run(ctx))
	lines := strings.Split(strings.TrimSpace(f.log.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `"msg":"staff write","actor":"server:abc","action":"credit"`) ||
		!strings.Contains(lines[1], `"level":"INFO","msg":"writes of a server key","actor":"server:abc","gameId":3,`+
			`"actions":{"exchange":300},"unknown":0}`) {
		t.Errorf("the log is\n%s", &f.log)
	}
	if got := len(f.list(trail.Query{Limit: 100})); got != 301 {
		t.Errorf("the trail has %d records", got)
	}
}

// What a server key failed to write is no line each: it is in the trail once the store is back, or
// in the log when the node ends without it.
func TestWhatAServerKeyFailedToWriteIsRecordedWhenTheStoreIsBack(t *testing.T) {
	store := redistest.StartForTest(t)
	db := testkit.Must(redisdb.Open(store.URL()))(t)
	t.Cleanup(func() { _ = db.Close() })
	f := newFixture(t, db)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error)
	go func() { ended <- f.Run(ctx) }()
	store.Kill()
	lost := trail.Write{Caller: server, Action: "finishRoom", Outcome: trail.Unknown}
	for i := range 20 {
		lost.Target = fmt.Sprint("room:", i)
		f.Record(ctx, lost)
	}
	testkit.Check(t, store.Restart())
	redistest.Eventually(t, "the records are in the trail", func() bool {
		page, err := f.List(t.Context(), operator, trail.Query{Limit: 100})
		return err == nil && len(page.Records) == 20
	})
	store.Kill()
	lost.Target = "room:last"
	f.Record(ctx, lost)
	stop()
	testkit.Check(t, <-ended)
	lines := strings.Split(strings.TrimSpace(f.log.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `"actions":{"finishRoom":21},"unknown":21}`) ||
		!strings.Contains(lines[1], `"msg":"staff write not in the trail","actor":"server:abc","action":"finishRoom",`+
			`"target":"room:last"`) {
		t.Errorf("the log is\n%s", &f.log)
	}
}
