package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/books"
)

// load is clients that make calls on nodes all the time. A call without a clear response is
// repeated with its key until it has one.
type load struct {
	t     *testing.T
	acked atomic.Int64 // calls that got ok
	heard atomic.Int64 // calls that got any final response
	open  atomic.Int64 // calls whose outcome nobody knows at this moment

	openResults sync.Map // results that are not final → a kind of call that got them

	stop  context.CancelFunc
	ended sync.WaitGroup
	mu    sync.Mutex
	calls []*call
	seen  atomic.Pointer[books.Books] // what the clients know of the rooms
}

// loadKinds are the calls of a load.
var loadKinds = []string{
	"create", "create", "join", "join", "join", "join", "leave", "leave", "start", "start", "finish", "finish", "cancel",
	"purchase", "purchase", "purchase", "credit", "credit", "debit",
}

const loadPlayers = 12

// startLoad starts clients, each on a node of its own or one that it shares, on an economy with
// loadPlayers. observer is a node that the clients do not use.
func startLoad(t *testing.T, observer *redisdb.DB, nodes []*node, e economy, clients int, seed uint64) *load {
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{t: t, stop: cancel}
	l.seen.Store(&books.Books{})
	for i := range clients {
		m := &caller{
			rng: rand.New(rand.NewPCG(seed, uint64(i))), economy: e, players: loadPlayers,
			name: fmt.Sprintf("%d-%d-", seed, i), keyed: true,
		}
		l.ended.Go(func() { l.play(ctx, nodes[i%len(nodes)], m) })
	}
	l.ended.Go(func() { l.look(ctx, observer) })
	return l
}

// play makes one call after the other.
func (l *load) play(ctx context.Context, n *node, m *caller) {
	for ctx.Err() == nil {
		c := m.make(loadKinds[m.rng.IntN(len(loadKinds))], *l.seen.Load())
		l.mu.Lock()
		l.calls = append(l.calls, c)
		l.mu.Unlock()
		l.open.Add(1)
		_ = redistest.Poll(time.Hour, func() error {
			result := c.send(ctx, n)
			if isFinal(result) {
				c.results[result]++
				l.heard.Add(1)
				if _, ok := cutOK(result); ok {
					l.acked.Add(1)
				}
			} else if ctx.Err() == nil {
				l.openResults.Store(c.fault.Error(), c.kind)
				return apierror.StoreUnavailable
			}
			return nil
		})
		l.open.Add(-1)
	}
}

// isFinal reports whether a result says what has happened.
func isFinal(result string) bool {
	return result != apierror.StoreUnavailable.Code && result != "outcome_unknown" &&
		!strings.HasPrefix(result, "internal")
}

// look reads the books for the clients, again and again.
func (l *load) look(ctx context.Context, db *redisdb.DB) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		if b, err := tryBooks(ctx, db); err == nil {
			l.seen.Store(&b)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// waitAcked waits until clients got ok for so many more calls.
func (l *load) waitAcked(more int64) {
	l.t.Helper()
	want := l.acked.Load() + more
	defer func() {
		if l.t.Failed() {
			l.openResults.Range(func(result, kind any) bool { l.t.Logf("a %s got %s", kind, result); return true })
			l.t.Logf("%d calls got ok, %d others a final response, %d have none", l.acked.Load(), l.heard.Load()-l.acked.Load(),
				l.open.Load())
		}
	}()
	redistest.Eventually(l.t, fmt.Sprintf("%d calls got ok", want), func() bool { return l.acked.Load() >= want })
}

// end stops the clients and returns their calls.
func (l *load) end() []*call {
	l.stop()
	l.ended.Wait()
	return l.calls
}

// settle sends again the calls whose outcome nobody knows, on another node.
func (l *load) settle(n *node) (repeated int) {
	l.t.Helper()
	for _, c := range l.calls {
		if len(c.results) == 0 {
			repeated++
			redistest.Eventually(l.t, c.String()+" has a response", func() bool {
				result := c.send(l.t.Context(), n)
				if isFinal(result) {
					c.results[result]++
				}
				return isFinal(result)
			})
		}
	}
	return repeated
}

// quietly is a redistest.TestingT that remembers a failure instead of ending the test.
type quietly struct {
	ctx context.Context
}

type quietFailure struct{ text string }

func (quietly) Helper()                    {}
func (q quietly) Context() context.Context { return q.ctx }
func (quietly) Fatalf(format string, args ...any) {
	panic(quietFailure{fmt.Sprintf(format, args...)})
}

// tryBooks is books.Read for a store that may be gone.
func tryBooks(ctx context.Context, db *redisdb.DB) (b books.Books, err error) {
	defer func() {
		if failure, ok := recover().(quietFailure); ok {
			err = fmt.Errorf("%s", failure.text)
		}
	}()
	return books.Read(quietly{ctx}, db, gameID)
}
