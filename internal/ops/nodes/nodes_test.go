package nodes

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

var operator = principal.Caller{Role: principal.Operator}

func list(t *testing.T, s *Service) []Report {
	t.Helper()
	return testkit.Must(s.List(t.Context(), operator))(t)
}

// jsonNow returns the time as a report has it.
func jsonNow(t *testing.T) string {
	t.Helper()
	text := testkit.Must(wire.Marshal(time.Now()))(t)
	return string(text)
}

// newNode returns a node that reads what *reading is.
func newNode(db *redisdb.DB, id string, reading *Reading) *Service {
	return New(db, Options{
		ID: id, Host: "host-" + id, Version: "1", Mode: "replica", Read: func() Reading { return *reading },
	})
}

func TestEveryNodeSeesTheReportsOfAll(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		a, b := newNode(db, "a", &Reading{}), newNode(db, "b", &Reading{})
		b.report.StartedAt = a.report.StartedAt.Add(time.Second)
		b.sample(Reading{Sockets: 3, Lag: 1500 * time.Microsecond, Memory: 7, Draining: true, Durability: "disk"}, time.Now())
		b.write(t.Context(), false)
		a.write(t.Context(), true)
		all := list(t, a)
		if len(all) != 2 || all[0].ID != "a" || all[1].ID != "b" || all[1].Host != "host-b" {
			t.Fatalf("%+v", all)
		}
		if r := all[1]; r.Sockets != 3 || r.LagMicros != 1500 || r.Memory != 7 || !r.Draining ||
			r.Durability != "disk" || r.Mode != "replica" {
			t.Errorf("%+v", r)
		}
		server := principal.Caller{Role: principal.Server, GameID: 1}
		testkit.Fails(a.List(t.Context(), server))(t, apierror.Forbidden, "a server gets")
	})
}

func TestAReportHasWhatWasCountedInEachInterval(t *testing.T) {
	s := newNode(redistest.Single(t), "a", &Reading{})
	for i := range int64(keptSamples + 10) {
		total := Reading{
			Requests: i * i, Failures: i, Deliveries: 2 * i, LedgerEntries: 3 * i,
			Moved: map[string]int64{"GOLD": 5 * i, "STILL": 9},
		}
		s.sample(total, time.UnixMilli(i))
	}
	s.write(t.Context(), false)
	r := list(t, s)[0].Recent
	for name, counts := range map[string][]int64{
		"requests": r.Requests, "failures": r.Failures, "deliveries": r.Deliveries, "sockets": r.Sockets,
		"lag": r.LagMicros, "entries": r.LedgerEntries,
	} {
		if len(counts) != keptSamples {
			t.Errorf("%d intervals of %s", len(counts), name)
		}
	}
	last := len(r.Requests) - 1
	if i := int64(keptSamples + 9); r.Requests[last] != 2*i-1 || r.Failures[last] != 1 || r.Deliveries[last] != 2 ||
		r.LedgerEntries[last] != 3 || !r.Until.Equal(time.UnixMilli(i)) {
		t.Errorf("the last interval is %+v", r)
	}
	if got := r.Moved["GOLD"]; len(got) != keptSamples || got[last] != "5" {
		t.Errorf("moved %v", got)
	}
	if _, shown := r.Moved["STILL"]; shown {
		t.Error("a token that did not move in the last five minutes is in the report")
	}
}

func TestAReportHasFewTokensHoweverManyThereAre(t *testing.T) {
	s := newNode(redistest.Single(t), "a", &Reading{})
	moved := map[string]int64{}
	for i := range 100 {
		moved[strings.Repeat("X", i+1)] = int64(i) + 1
	}
	s.sample(Reading{Moved: moved}, time.Now())
	if n := len(s.report.Recent.Moved); n != maxMovedTokens {
		t.Errorf("%d tokens", n)
	}
	for range keptSamples { // nothing moves any more
		s.sample(Reading{Moved: moved}, time.Now())
	}
	if n := len(s.report.Recent.Moved); n != 0 {
		t.Errorf("%d tokens moved long ago", n)
	}
}

func TestANodeThatWasKilledIsForgotten(t *testing.T) {
	db := redistest.Single(t)
	killed, other := newNode(db, "killed", &Reading{}), newNode(db, "other", &Reading{})
	killed.report.At = time.Now().Add(-2 * shownFor)
	testkit.Check(t, killed.store.write(t.Context(), killed.report))
	other.write(t.Context(), false)
	if all := list(t, other); len(all) != 1 || all[0].ID != "other" {
		t.Errorf("%+v", all)
	}
	if ids := db.Client.HKeys(t.Context(), keys.Nodes()).Val(); !slices.Equal(ids, []string{"other"}) {
		t.Errorf("the store has %v", ids)
	}
	if ttl := db.Client.PTTL(t.Context(), keys.Nodes()).Val(); ttl <= 0 || ttl > shownFor {
		t.Errorf("the reports expire in %v", ttl)
	}
}

// The clock of the machine on which an operator runs a command may be ahead.
func TestNodesWhoseClocksAreBehindAreSeen(t *testing.T) {
	db := redistest.Single(t)
	at := time.Now().Add(-3 * shownFor)
	for id, at := range map[string]time.Time{"a": at, "b": at.Add(time.Second), "killed": at.Add(-2 * shownFor)} {
		n := newNode(db, id, &Reading{})
		n.report.At = at
		testkit.Check(t, n.store.write(t.Context(), n.report))
	}
	if all := list(t, newNode(db, "c", &Reading{})); len(all) != 2 {
		t.Errorf("a command sees %+v", all)
	}
	ids := db.Client.HKeys(t.Context(), keys.Nodes()).Val()
	slices.Sort(ids)
	if !slices.Equal(ids, []string{"a", "b"}) {
		t.Errorf("the store has %v", ids)
	}
}

func TestANodeThatStopsRemovesItsReport(t *testing.T) {
	db := redistest.Single(t)
	reading := make(chan struct{})
	s := New(db, Options{ID: "a", Read: func() Reading { close(reading); return Reading{Sockets: 2} }})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	<-reading
	stop()
	testkit.Report(t, <-ended)
	if all := list(t, newNode(db, "b", &Reading{})); len(all) != 0 {
		t.Errorf("%+v", all)
	}
}

// peer is another node as its peers see it.
func peer(t *testing.T, status int, body string) (address string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/balancez" {
			t.Errorf("%s was asked for", r.URL.Path)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// frozenPeer accepts connections and never replies.
func frozenPeer(t *testing.T) (address string) {
	t.Helper()
	listener := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

func TestANodeAsksOthersWithoutTheStore(t *testing.T) {
	db := redistest.Single(t)
	const own = "127.0.0.1:1"
	serves := peer(t, http.StatusOK, `{"status":"balance"}`)
	without, frozen := peer(t, http.StatusNotFound, `{}`), frozenPeer(t)
	stranger := peer(t, http.StatusOK, "welcome to another service")
	redirects := peer(t, http.StatusFound, `{"status":"balance"}`)
	dead := "127.0.0.1:2"
	for name, c := range map[string]struct {
		others []string
		want   bool
	}{
		"nobody":                                 {nil, false},
		"one that has the store":                 {[]string{serves}, true},
		"one that is without it":                 {[]string{without}, false},
		"one that is dead, and one that is fine": {[]string{dead, serves}, true},
		"one that is frozen, and one fine":       {[]string{frozen, without, serves}, true},
		"none of several":                        {[]string{without, frozen, dead, stranger, redirects}, false},
		"nodes that cannot be reached":           {[]string{"", own}, false},
	} {
		a := newNode(db, "a", &Reading{})
		a.Advertise(own)
		for i, address := range c.others {
			other := newNode(db, fmt.Sprint(i), &Reading{})
			other.Advertise(address)
			other.write(t.Context(), false)
		}
		a.write(t.Context(), true)
		if got := a.OtherServes(t.Context()); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		testkit.Check(t, db.Client.Del(t.Context(), keys.Nodes()).Err())
	}
}
