package history_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/history"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// acknowledge adds entries to the ledger of a game, each of its own nonce, and tells the watcher
// that callers were told.
func (w *watcher) acknowledge(t *testing.T, db *redisdb.DB, game int64, prefix string, count int) {
	t.Helper()
	for i := range count {
		began := time.Now()
		nonce := fmt.Sprintf("%s%05d", prefix, i)
		w.add(t, db, game, nonce, 1)
		w.Acknowledge(game, nonce, began)
	}
}

// waitForTip waits until the watcher has seen the entry of a number.
func (w *watcher) waitForTip(t *testing.T, dir string, game int64, number int) {
	t.Helper()
	w.waitForMark(t, dir, fmt.Sprintf(`"%d":{"n":%d,`, game, number))
}

// waitForLosses waits until the losses in the store satisfy a condition, and returns them.
func waitForLosses(
	t *testing.T, db *redisdb.DB, condition string, holds func(list []history.Loss) bool,
) history.Status {
	t.Helper()
	var status history.Status
	redistest.Eventually(t, condition, func() bool {
		var err error
		status, err = history.ReadStatus(t.Context(), db)
		return err == nil && holds(status.Losses)
	})
	return status
}

func acknowledgedOf(l history.Loss) int64 {
	if l.Acknowledged == nil {
		return -1
	}
	return *l.Acknowledged
}

// Only the end of a history may be lost without that money stops: also when all of it is younger
// than a minute.
func TestAGameThatComesBackWithoutItsFirstEntriesStopsMoney(t *testing.T) {
	const game, other = 7, 8
	for name, lose := range map[string]func(w *watcher, db *redisdb.DB){
		"nothing is left": func(*watcher, *redisdb.DB) {},
		"others write meanwhile": func(w *watcher, db *redisdb.DB) {
			w.add(t, db, game, "bbbbbbbb", 2)
		},
		"others write more than there was": func(w *watcher, db *redisdb.DB) {
			w.add(t, db, game, "bbbbbbbb", 20)
		},
		"entries had left the ledger": func(_ *watcher, db *redisdb.DB) {
			db.Client.Del(t.Context(), keys.LedgerBase(game))
		},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
				dir := t.TempDir()
				w := watch(t, db, dir)
				if name == "entries had left the ledger" {
					db.Client.Set(t.Context(), keys.LedgerBase(game), 1000, 0)
				}
				w.acknowledge(t, db, game, "aaa", 9)
				w.acknowledge(t, db, other, "aaa", 3) // it loses nothing
				w.waitForTip(t, dir, other, 3)
				testkit.Check(t, w.AllowMoney())
				db.Client.Del(t.Context(), keys.Ledger(game))
				lose(w, db)
				w.changes.Add(1)
				w.waitForMoney(t, false)
				status := waitForLosses(t, db, "the stop is in the store", func(list []history.Loss) bool { return len(list) == 1 })
				if l := status.Losses[0]; status.Halt == nil || status.Halt.Cause != history.Older || l.GameID != game {
					t.Errorf("%+v", status)
				}
			})
		})
	}
}

// A game that a node has looked at when it was empty, or not at all, has no entry that is known to
// be there.
func TestAGameWhoseFirstEntryWasNeverSeenStopsMoneyWhenItIsLost(t *testing.T) {
	for name, see := range map[string]func(w *watcher, dir string){
		"seen when it was empty": func(w *watcher, dir string) {
			w.Touch(7)
			w.waitForTip(t, dir, 7, 0)
		},
		"never seen": func(*watcher, string) {},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
				dir := t.TempDir()
				w := watch(t, db, dir)
				see(w, dir)
				w.Acknowledge(7, "aaaaaaaa", time.Now())
				w.Touch(7)
				w.changes.Add(1)
				w.waitForMoney(t, false)
			})
		})
	}
}

// A node that starts later has seen no first entry, and what a failover takes from the end of such
// a ledger stops nothing.
func TestTheEndOfALedgerWhoseBeginningWasNotSeenMayBeLost(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		db.Client.Set(t.Context(), keys.LedgerBase(7), 1000, 0)
		watch(t, db, "").add(t, db, 7, "aaaaaaaa", 9)
		dir := t.TempDir()
		w := watch(t, db, dir)
		w.Touch(7)
		w.waitForTip(t, dir, 7, 1009)
		db.Client.LTrim(t.Context(), keys.Ledger(7), 0, 5)
		w.changes.Add(1)
		redistest.Eventually(t, "the loss is noticed", func() bool { return w.Stats().Epoch == 2 })
		testkit.Report(t, w.AllowMoney())
	})
}

// In a Cluster one master comes back empty: the installation's record and the other games are on
// others.
func TestAMasterOfAClusterThatComesBackEmptyStopsMoney(t *testing.T) {
	t.Parallel()
	url, masters, _ := redistest.StartClusterWithReplicas(t)
	db, dir := open(t, url), t.TempDir()
	w := watch(t, db, dir)
	slot := func(key string) int64 { return db.Client.(*redis.ClusterClient).ClusterKeySlot(t.Context(), key).Val() }
	game, meta := int64(1), slot(keys.Meta())
	for slot(keys.Ledger(game)) > 5460 {
		game++
	}
	if meta <= 5460 {
		t.Fatal("the installation's record is on the first master")
	}
	w.acknowledge(t, db, game, "aaa", 5)
	w.waitForTip(t, dir, game, 5)
	testkit.Check(t, redistest.Dial(t, masters[0]).FlushAll(t.Context()).Err())
	w.changes.Add(1)
	w.waitForMoney(t, false)
}

// The store loses its newest entries, and is away for longer than a failover's loss may be old.
func TestALossIsAsOldAsItWasWhenTheStoreWasSeenLast(t *testing.T) {
	t.Parallel()
	const limit, nobody = 1500 * time.Millisecond, "127.0.0.1:1"
	store := redistest.StartForTest(t)
	front := redistest.StartProxy(t, store.Addr)
	db, direct, dir := open(t, "redis://"+front.Addr), open(t, store.URL()), t.TempDir()
	w := watch(t, db, dir, func(o *history.Options) { o.MaxRecentLoss = limit })
	w.acknowledge(t, direct, 7, "aaa", 3)
	w.waitForTip(t, dir, 7, 3)
	w.acknowledge(t, direct, 7, "bbb", 4)
	w.waitForTip(t, dir, 7, 7)
	front.Retarget(nobody)
	cut := time.Now()
	testkit.Check(t, direct.Client.LTrim(t.Context(), keys.Ledger(7), 0, 2).Err())
	redistest.Eventually(t, "the store was away for long", func() bool { return time.Since(cut) > 2*limit })
	front.Retarget(store.Addr)
	redistest.Eventually(t, "the loss is noticed", func() bool { return w.Stats().Losses > 0 || w.Stats().Stopped })
	if s := w.Stats(); s.Stopped || s.AcknowledgedLost != 4 || w.AllowMoney() != nil {
		t.Errorf("%+v, %v", s, w.AllowMoney())
	}
}

// What was there for longer is no failover's loss.
func TestALossThatWasOldWhenTheStoreWasSeenLastStopsMoney(t *testing.T) {
	t.Parallel()
	const limit = 300 * time.Millisecond
	store := redistest.StartForTest(t)
	db, dir := open(t, store.URL()), t.TempDir()
	w := watch(t, db, dir, func(o *history.Options) { o.MaxRecentLoss = limit })
	w.acknowledge(t, db, 7, "aaa", 3)
	w.waitForTip(t, dir, 7, 3)
	w.acknowledge(t, db, 7, "bbb", 4)
	w.waitForTip(t, dir, 7, 7)
	seen := time.Now()
	for i := 0; time.Since(seen) < 4*limit; i++ { // the ledger is looked at
		w.acknowledge(t, db, 7, fmt.Sprintf("c%02d", i%100), 1)
	}
	testkit.Check(t, db.Client.LTrim(t.Context(), keys.Ledger(7), 0, 3).Err())
	w.changes.Add(1)
	w.waitForMoney(t, false)
}

// Two nodes acknowledge entries of their own, before and after their looks, and others are written
// that no node acknowledges. What is lost is counted to the unit, in words that say which is which.
func TestLostEntriesAreCountedToTheUnit(t *testing.T) {
	for _, acknowledged := range []int{0, 400} {
		t.Run(fmt.Sprint(acknowledged), func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
				dir, otherDir := t.TempDir(), t.TempDir()
				w, other := watch(t, db, dir), watch(t, db, otherDir)
				w.acknowledge(t, db, 7, "aaa", 10)
				other.Touch(7)
				w.waitForTip(t, dir, 7, 10)
				other.waitForTip(t, otherDir, 7, 10)

				w.add(t, db, 7, "untold", 16)
				var writers sync.WaitGroup
				for _, half := range []struct {
					w      *watcher
					prefix string
				}{{w, "bbb"}, {other, "ccc"}} {
					writers.Go(func() { half.w.acknowledge(t, db, 7, half.prefix, acknowledged/2) })
				}
				writers.Wait()
				w.Touch(7)
				w.waitForTip(t, dir, 7, 26+acknowledged)
				if acknowledged > 0 { // entries of which a node was told and that no look has seen
					for i := range 40 {
						w.Acknowledge(7, fmt.Sprintf("ddd%05d", i), time.Now())
					}
				}
				testkit.Check(t, db.Client.LTrim(t.Context(), keys.Ledger(7), 0, 9).Err())
				w.changes.Add(1)
				other.changes.Add(1)
				want := int64(acknowledged)
				if acknowledged > 0 {
					want += 40
				}
				status := waitForLosses(t, db, "both nodes have said what they miss", func(list []history.Loss) bool {
					return len(list) == 1 && acknowledgedOf(list[0]) == want
				})
				if l := status.Losses[0]; status.Halt != nil || l.Entries() < want || l.Entries() < 16 || l.Present != 10 {
					t.Errorf("%+v", status)
				}
				words := "ledger entries of 1 games that nobody was told of are gone"
				if acknowledged > 0 {
					words = fmt.Sprintf("the store lost %d acknowledged ledger entries of 1 games", want)
				}
				redistest.Eventually(t, "the node says: "+words, func() bool {
					c := w.Checks()[0]
					return strings.Contains(c.Detail, words) && c.OK == (acknowledged == 0)
				})
				testkit.Report(t, w.AllowMoney())
			})
		})
	}
}

// In the mode replica a master that was promoted may have no replica for a while. The epoch that it
// begins counts all the same, and what no replica had confirmed stops nothing however old it is.
func TestAPromotedMasterWithoutAReplicaBeginsAnEpoch(t *testing.T) {
	t.Parallel()
	const limit = 400 * time.Millisecond
	d := newClusterDrill(t)
	d.db.RequireReplicas(1)
	dir := t.TempDir()
	w := watch(t, d.db, dir, func(o *history.Options) { o.MaxRecentLoss, o.IsConfirmed = limit, true })
	w.acknowledge(t, d.db, d.game, "aaa", 3)
	d.waitForMarks(`"n":3`)
	d.cut()
	w.add(t, d.db, d.game, "untold", 4) // no replica confirms them, so nobody is told
	d.waitForMarks(`"n":7`)
	written := time.Now()
	redistest.Eventually(t, "they are older than what a failover may lose", func() bool {
		w.Touch(d.game)
		return time.Since(written) > 3*limit
	})
	d.failOver()
	w.changes.Add(1)
	redistest.Eventually(t, "the loss is noticed", func() bool { return w.Stats().Losses == 1 || w.Stats().Stopped })
	noticed := time.Now()
	redistest.Eventually(t, "the node looks for a while", func() bool { return time.Since(noticed) > 3*limit })
	s := w.Stats()
	if s.Stopped || s.Epoch != 2 || s.EntriesLost != 4 || s.AcknowledgedLost != 0 || w.AllowMoney() != nil {
		t.Errorf("%+v, %v", s, w.AllowMoney())
	}
	words := "4 ledger entries of 1 games that nobody was told of are gone"
	if c := w.Checks()[0]; !c.OK || !strings.Contains(c.Detail, words) {
		t.Errorf("%+v", c)
	}
}
