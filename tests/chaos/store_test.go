package chaos

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/books"
	"github.com/parlor-games/parlor/tests/testkit"
)

// TestAStoreThatIsKilledLosesNothingThatWasAcknowledged kills Redis under load, by each policy of
// its append-only file. The system lives on, so what was written is on disk or will be. By everysec
// Redis puts a write off while a sync takes long, so that some of what it acknowledged may be lost:
// then the history is shorter, the nodes notice it, and money is conserved all the same.
func TestAStoreThatIsKilledLosesNothingThatWasAcknowledged(t *testing.T) {
	for _, policy := range []string{"no", "everysec", "always"} {
		t.Run("appendfsync "+policy, func(t *testing.T) {
			store := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", policy)
			observer := openNode(t, store.URL(), nil)
			nodes := []*node{openNode(t, store.URL(), nil), openNode(t, store.URL(), nil)}
			mayLose := policy == "everysec" // Redis may reply up to two seconds before it writes
			acked, lostCount, missed, repeated := int64(0), 0, int64(0), 0
			rounds := pick(1, 20)
			for round := range rounds {
				e := makeEconomy(t, observer, loadPlayers)
				for _, n := range nodes {
					n.forgetCaches()
				}
				l := startLoad(t, observer.db, nodes, e, 8, *seed+uint64(round))
				var w *watcher
				if mayLose {
					l.waitAcked(10)
					w = watchHistory(t, nodes)
					redistest.Eventually(t, "the record of the installation is in the file", func() bool {
						info := dial(t, store).Info(t.Context(), "persistence").Val()
						return strings.Contains(info, "aof_buffer_length:0\r\n")
					})
				}
				l.waitAcked(pick(int64(100), 400))
				store.Kill()
				redistest.Eventually(t, "a client has no response", func() bool { return l.open.Load() > 0 })
				testkit.Check(t, store.Restart())
				l.waitAcked(20)
				calls := l.end()
				repeated += l.settle(observer)
				var b books.Books
				redistest.Eventually(t, "the store can be read", func() bool {
					var err error
					b, err = tryBooks(t.Context(), observer.db)
					return err == nil
				})
				wantSound(t, b, nil)
				gone := lost(calls, b)
				for _, c := range gone {
					if !mayLose {
						t.Errorf("%s got %v and is lost", c, c.results)
					}
				}
				calls = slices.DeleteFunc(calls, func(c *call) bool { return slices.Contains(gone, c) })
				testkit.Check(t, checkOnce(calls, b))
				if mayLose {
					missed += w.end(observer, len(gone) > 0)
				}
				lostCount += len(gone)
				acked += l.acked.Load()
				wantEnded(t, observer)
			}
			report(t, "%d kills, %d acknowledged calls, %d lost, nodes miss %d entries at least, delta 0", rounds, acked,
				lostCount, missed)
		})
	}
}

// cutKinds are the kinds of calls between whose bytes the append-only file is cut.
var cutKinds = []string{
	"create", "join", "leave", "kick", "start", "finish", "cancel", "rematch", "purchase", "credit", "debit", "sweep",
	"fold",
}

// span is what a call has appended to the append-only file.
type span struct{ from, to int64 }

// TestAnAppendOnlyFileThatIsCutLoadsToAStateThatBalances cuts the file in the middle of what each
// kind of script has written, as a crash of the system may leave it.
func TestAnAppendOnlyFileThatIsCutLoadsToAStateThatBalances(t *testing.T) {
	store := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0")
	n := openNode(t, store.URL(), nil)
	spans, path := writeSpans(t, store, n)
	whole := testkit.Must(os.ReadFile(path))(t)
	cuts, most := 0, pick(4, 500)
	history := wantBooks(t, n.db).Entries
	for _, kind := range cutKinds {
		total := int64(0)
		for _, s := range spans[kind] {
			total += s.to - s.from
		}
		if total == 0 {
			t.Fatalf("no %s has written anything", kind)
		}
		for i := range min(int64(most), total) {
			at := place(spans[kind], i*total/min(int64(most), total))
			store.Kill()
			testkit.Check(t, os.WriteFile(path, whole[:at], 0o600))
			testkit.Check(t, store.Restart(), "with the file cut at %d, in a %s", at, kind)
			b, err := books.Read(t, n.db, gameID)
			if err == nil {
				err = b.Check()
			}
			testkit.Check(t, err, "with the file cut at %d, in a %s:\n", at, kind)
			for i, e := range b.Entries {
				if history[i].Text != e.Text {
					t.Fatalf("with the file cut at %d the ledger entry %d is %s; it was %s", at, i, e.Text, history[i].Text)
				}
			}
			cuts++
		}
	}
	report(t, "%d cuts in the writes of %d kinds of calls, all loaded to a prefix of the history, delta 0", cuts,
		len(cutKinds))
}

// place returns the position of the n-th byte of some spans.
func place(spans []span, n int64) int64 {
	for _, s := range spans {
		if n < s.to-s.from {
			return s.from + n
		}
		n -= s.to - s.from
	}
	return 0
}

// writeSpans makes calls until each kind has succeeded a few times, and returns what each appended
// to the file, and its path.
func writeSpans(t *testing.T, store *redistest.Server, n *node) (spans map[string][]span, path string) {
	t.Helper()
	e := makeEconomy(t, n, orderPlayers)
	m := &caller{rng: newRNG(7), economy: e, players: orderPlayers}
	spans = map[string][]span{}
	found, err := filepath.Glob(filepath.Join(store.Dir, "appendonlydir", "*.incr.aof"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the append-only files are %v, %v", found, err)
	}
	size := func() int64 {
		info := testkit.Must(os.Stat(found[0]))(t)
		return info.Size()
	}
	enough := func() bool {
		for _, kind := range cutKinds {
			if len(spans[kind]) < 3 {
				return false
			}
		}
		return true
	}
	for tries := 0; !enough(); tries++ {
		if tries > 5_000 {
			t.Fatalf("after %d calls there are too few of a kind: %v", tries, spans)
		}
		b := wantBooks(t, n.db)
		c := m.next(b)
		if c.kind == "sweep" {
			overdue(t, n.db, b)
		}
		from := size()
		if _, err := c.do(t.Context(), n, idempotency.Receipt{}); err == nil && size() > from {
			spans[c.kind] = append(spans[c.kind], span{from, size()})
		}
	}
	return spans, found[0]
}
