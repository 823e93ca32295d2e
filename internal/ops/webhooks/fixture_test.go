package webhooks_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/dialguard"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/ledger"
	"github.com/parlor-games/parlor/internal/money/ledgerstore"
	"github.com/parlor-games/parlor/internal/ops/trail"
	"github.com/parlor-games/parlor/internal/ops/webhooks"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestMain(m *testing.M) {
	if os.Getenv(receiverVariable) != "" {
		_ = runReceiver()
		return
	}
	os.Exit(redistest.Main(m))
}

// receiverVariable makes this program a target whose response comes at once, until it is killed.
const receiverVariable = "PARLOR_TEST_RECEIVER"

func runReceiver() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + listener.Addr().String())
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
}

const game = 3

var (
	operator   = principal.Caller{Role: principal.Operator}
	signingKey = bytes.Repeat([]byte("k"), 32)
)

// installation is a store, a clock, and nodes that deliver.
type installation struct {
	*webhooks.Service
	db      *redisdb.DB
	url     string       // of the store, where nodes have connections of their own
	ahead   atomic.Int64 // ns, of the clock
	log     lockedBuffer
	trail   *trail.Service
	active  atomic.Int64
	noted   atomic.Int64   // calls that set active
	numbers map[string]int // of the last entry, by feed
	dialer  *net.Dialer
	fences  int64
	nonce   string // of events, "aaaaaaaa" by default
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func install(t testing.TB) *installation {
	t.Helper()
	return installOn(t, redistest.Single(t), "")
}

// eachStore runs a test on a single store and on a Cluster.
func eachStore(t *testing.T, test func(t *testing.T, in *installation)) {
	t.Helper()
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) { test(t, installOn(t, db, "")) })
}

func installOn(t testing.TB, db *redisdb.DB, url string) *installation {
	t.Helper()
	in := &installation{db: db, url: url, numbers: map[string]int{}}
	log := slog.New(slog.NewJSONHandler(&in.log, nil))
	in.trail = trail.New(in.db, log)
	in.Service = in.node(dialguard.Loopback, signingKey)
	return in
}

// leadUntilKilled makes a node of its own deliver, and returns a function that kills it: nothing of
// it reaches the store any more.
func (in *installation) leadUntilKilled(t *testing.T) (kill func()) {
	t.Helper()
	var isDead atomic.Bool
	alive := in.db
	mortal := testkit.Must(redisdb.Open(in.url))(t)
	redistest.FailCommands(mortal, isDead.Load)
	in.db = mortal
	node := in.node(dialguard.Loopback, signingKey)
	in.db = alive
	in.fences++
	fence := in.fences
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = node.Lead(ctx, fence)
	}()
	return func() {
		isDead.Store(true)
		cancel()
		<-ended
		_ = mortal.Close()
	}
}

// node returns a node of the installation.
func (in *installation) node(networks []netip.Prefix, signingKeys ...[]byte) *webhooks.Service {
	return webhooks.New(in.db, webhooks.Deps{
		SetActiveCount: func(_ context.Context, _ int64, count int) error {
			in.active.Store(int64(count))
			in.noted.Add(1)
			return nil
		},
		Ledger: ledgerstore.New(in.db, nil),
		EncodeEntry: func(_ context.Context, gameID int64, e ledger.Entry) ([]byte, error) {
			return fmt.Appendf(nil, `{"gameId":%d,"id":%d,"reason":"%s"}`, gameID, e.Number, e.Reason), nil
		},
		Trail: in.trail, Log: slog.New(slog.NewJSONHandler(&in.log, nil)),
	}, webhooks.Options{
		SigningKeys: signingKeys, Networks: networks, FreeShards: 2, Dialer: in.dialer,
		Now: func() time.Time { return time.Now().Add(time.Duration(in.ahead.Load())) },
	})
}

// pass moves the clock.
func (in *installation) pass(d time.Duration) { in.ahead.Add(int64(d)) }

// lead makes a node deliver, and returns a function that kills it.
func (in *installation) lead(t testing.TB) (kill func()) {
	t.Helper()
	in.fences++
	fence := in.fences
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		testkit.Report(t, in.Lead(ctx, fence))
	}()
	kill = func() {
		cancel()
		<-ended
	}
	t.Cleanup(kill)
	return kill
}

// happen appends events of a room to the feed of a free shard.
func (in *installation) happen(t testing.TB, shard int, rooms ...string) {
	t.Helper()
	in.happenIn(t, game, shard, rooms...)
}

func (in *installation) happenIn(t testing.TB, gameID int64, shard int, rooms ...string) {
	t.Helper()
	s := keys.FreeShard(shard)
	list, head := keys.Feed(s, gameID), keys.FeedHead(s, gameID)
	var entries []any
	for _, room := range rooms {
		in.numbers[list]++
		entries = append(entries, fmt.Sprintf("%d-%s|room.ready|%d|%s|%d|4|7|1", in.numbers[list],
			cmp.Or(in.nonce, "aaaaaaaa"), time.Now().UnixMilli()+in.ahead.Load()/1e6, room, in.numbers[list]))
	}
	for chunk := range slices.Chunk(entries, 1000) {
		testkit.Check(t, in.db.Client.RPush(t.Context(), list, chunk...).Err())
	}
	testkit.Check(t, in.db.Client.HSet(t.Context(), head, "seq", in.numbers[list]).Err())
}

// createIn makes a webhook of a game that gets seats.
func (in *installation) createIn(t testing.TB, gameID int64, url string) webhooks.Created {
	t.Helper()
	return testkit.Must(in.Create(t.Context(), operator, gameID, webhooks.Input{URL: url, Kinds: []string{"seats"}}))(t)
}

// wantPosition waits until a webhook has a position in the feed of shard 0.
func (in *installation) wantPosition(t testing.TB, id, position string) {
	t.Helper()
	redistest.Eventually(t, "the position "+position+" is stored", func() bool {
		return in.db.Client.HGet(t.Context(), keys.WebhookState(game, id), "pos:r0").Val() == position
	})
}

// create makes a webhook that gets seats.
func (in *installation) create(t *testing.T, url string, kinds ...string) webhooks.Created {
	t.Helper()
	if kinds == nil {
		kinds = []string{"seats"}
	}
	return testkit.Must(in.Create(t.Context(), operator, game, webhooks.Input{URL: url, Kinds: kinds}))(t)
}

func (in *installation) get(t *testing.T, id string) webhooks.Webhook {
	t.Helper()
	return testkit.Must(in.Get(t.Context(), operator, game, id))(t)
}

// delivery is a request that a receiver has accepted.
type delivery struct {
	id, kind, room string
	seq            int64
	header         http.Header
	body           []byte
}

// receiver is a target. answer returns the status for a request, 0 for none at all.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	answer   func(d delivery) int
	requests int
	got      []delivery      // accepted, without doubles
	known    map[string]bool // ids of got
	doubles  int
	last     map[string]int64 // by room: the highest seq
	disorder []string
}

func receive(t *testing.T, answer func(d delivery) int) *receiver {
	t.Helper()
	r := &receiver{answer: answer, last: map[string]int64{}, known: map[string]bool{}}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

func always(status int) func(delivery) int { return func(delivery) int { return status } }

func (r *receiver) serve(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	var m struct {
		Type string `json:"type"`
		Data struct {
			RoomID string `json:"roomId"`
			Seq    int64  `json:"seq"`
		} `json:"data"`
	}
	_ = wire.Unmarshal(body, &m)
	d := delivery{request.Header.Get("webhook-id"), m.Type, m.Data.RoomID, m.Data.Seq, request.Header, body}
	r.mu.Lock()
	r.requests++
	answer := r.answer
	r.mu.Unlock()
	status := answer(d)
	if status == 0 {
		panic(http.ErrAbortHandler)
	}
	if status/100 == 2 {
		r.accept(d)
	}
	if status == http.StatusFound {
		w.Header().Set("Location", "/elsewhere")
	}
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "status %d", status)
}

func (r *receiver) accept(d delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[d.id] {
		r.doubles++
		return
	}
	r.known[d.id] = true
	r.got = append(r.got, d)
	if d.seq > 0 && d.seq <= r.last[d.room] {
		r.disorder = append(r.disorder, fmt.Sprintf("%s: %d after %d", d.room, d.seq, r.last[d.room]))
	}
	r.last[d.room] = d.seq
}

func (r *receiver) setAnswer(answer func(delivery) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.got)
}

func (r *receiver) asked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests
}

// want waits until so many events have come, and demands their order in each room.
func (r *receiver) want(t *testing.T, events int) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprintf("%d events come", events), func() bool { return r.count() >= events })
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.got) != events || len(r.disorder) > 0 {
		t.Fatalf("got %d events, want %d; out of order: %s", len(r.got), events, strings.Join(r.disorder, ", "))
	}
}

// rooms returns n names of rooms, each repeated, in turns.
func rooms(n, times int) []string {
	var list []string
	for range times {
		for room := range n {
			list = append(list, fmt.Sprintf("room-%d", room))
		}
	}
	return list
}
