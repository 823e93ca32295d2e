package chaos

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/history"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
)

// watcher watches the history of the store, as real nodes do.
type watcher struct {
	t     *testing.T
	nodes []*node
	stop  func()
}

// watchHistory lets nodes watch the history, and waits until each has seen the ledger. The store
// must have one, and the nodes must be at work.
func watchHistory(t *testing.T, nodes []*node) *watcher {
	t.Helper()
	w := &watcher{t: t, nodes: nodes}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var ended sync.WaitGroup
	w.stop = sync.OnceFunc(func() { cancel(); ended.Wait() })
	t.Cleanup(w.stop)
	dirs := make([]string, len(nodes))
	for i, n := range nodes {
		dirs[i] = t.TempDir()
		h := history.New(n.db, history.Options{
			StateDir: dirs[i], SigningKeys: [][]byte{[]byte("0123456789abcdef0123456789abcdef")},
			Node: fmt.Sprintf("node %d", i), Log: slog.New(slog.DiscardHandler),
			// A failed look is all that tells a node of the fault.
			Changes: func() uint64 { return 0 }, Prepare: func(context.Context) error { return nil }, Resync: func() {},
			Accepted: func(int64) {},
		})
		n.db.ObserveMoney(h.Touch)
		n.db.ObserveEntries(h.Acknowledge)
		n.db.GateMoney(h.AllowMoney)
		redistest.Eventually(t, "the store has a history", func() bool { return h.Start(ctx) == nil })
		ended.Go(func() { _ = h.Run(ctx) })
	}
	for _, dir := range dirs {
		redistest.Eventually(t, "a node has seen the ledger", func() bool {
			files, _ := filepath.Glob(filepath.Join(dir, "*.mark"))
			for _, name := range files {
				if text, _ := os.ReadFile(name); strings.Contains(string(text), fmt.Sprintf(`"%d":{"n":`, gameID)) {
					return true
				}
			}
			return false
		})
	}
	return w
}

// end returns how many entries the nodes miss, at least, after it has waited until they miss some
// when they must. It fails the test when money is stopped: a failover is no reason for that.
func (w *watcher) end(observer *node, must bool) (entries int64) {
	w.t.Helper()
	var status history.Status
	read := func() bool {
		var err error
		status, err = history.ReadStatus(w.t.Context(), observer.db)
		return err == nil && (len(status.Losses) > 0 || !must)
	}
	redistest.Eventually(w.t, fmt.Sprintf("the history can be read; a loss was noticed: %v", must), read)
	w.stop()
	read() // what a node noticed last
	for _, loss := range status.Losses {
		entries += loss.Entries()
	}
	if status.Halt != nil {
		w.t.Errorf("money is stopped: %+v", status.Halt)
	}
	return entries
}

// TestWhatIsAcknowledgedIsInTheLedger compares the nonces by which nodes miss lost entries with the
// ledger of a store that lost none.
func TestWhatIsAcknowledgedIsInTheLedger(t *testing.T) {
	store := redistest.StartForTest(t)
	n := openNode(t, store.URL(), nil)
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	n.db.ObserveEntries(func(_ int64, nonce string, _ time.Time) {
		mu.Lock()
		defer mu.Unlock()
		acknowledged[nonce] = true
	})
	e := makeEconomy(t, n, loadPlayers)
	l := startLoad(t, n.db, []*node{n}, e, 4, *seed)
	l.waitAcked(300)
	l.end()
	all := len(acknowledged)
	for _, entry := range wantBooks(t, n.db).Entries {
		delete(acknowledged, entry.Nonce)
	}
	if len(acknowledged) > 0 || all < 100 {
		t.Errorf("of %d acknowledged entries the ledger lacks those of %v", all, acknowledged)
	}
}
