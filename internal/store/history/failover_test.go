package history_test

import (
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/history"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// open opens a store until the test ends.
func open(t *testing.T, url string) *redisdb.DB {
	t.Helper()
	db := testkit.Must(redisdb.Open(url))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// clusterDrill is a Cluster in which the master of a game dies without having sent its last entries
// to its replica.
type clusterDrill struct {
	t               *testing.T
	db              *redisdb.DB
	master, replica *redistest.Server
	game            int64
}

func newClusterDrill(t *testing.T) *clusterDrill {
	url, masters, replicas := redistest.StartClusterWithReplicas(t, "--repl-diskless-sync-delay", "0")
	d := &clusterDrill{t: t, db: open(t, url), master: masters[0], replica: replicas[0]}
	client := redistest.Dial(t, d.master)
	for d.game = 1; client.ClusterKeySlot(t.Context(), keys.Ledger(d.game)).Val() > 5460; d.game++ {
	}
	return d
}

// cut ends the replication of the master, for good.
func (d *clusterDrill) cut() {
	d.t.Helper()
	master, ctx := redistest.Dial(d.t, d.master), d.t.Context()
	if n := master.Wait(ctx, 1, 5*time.Second).Val(); n != 1 {
		d.t.Fatal("the replica does not follow")
	}
	d.replica.Pause()
	testkit.Check(d.t, master.Do(ctx, "CLIENT", "KILL", "TYPE", "replica").Err())
}

// failOver kills the master and promotes its replica.
func (d *clusterDrill) failOver() {
	d.t.Helper()
	d.master.Kill()
	d.replica.Resume()
	replica, ctx := redistest.Dial(d.t, d.replica), d.t.Context()
	redistest.Eventually(d.t, "the replica is promoted", func() bool {
		replica.Do(ctx, "CLUSTER", "FAILOVER", "TAKEOVER")
		return strings.Contains(replica.Info(ctx, "replication").Val(), "role:master")
	})
	redistest.Eventually(d.t, "the Cluster serves the game", func() bool {
		d.db.Client.(*redis.ClusterClient).ReloadState(ctx)
		return d.db.Client.LLen(ctx, keys.Ledger(d.game)).Val() == 3
	})
}

func (d *clusterDrill) waitForMarks(text string) {
	d.t.Helper()
	redistest.Eventually(d.t, "every mark has "+text, func() bool {
		n := 0
		for _, tag := range redisdb.SpreadTags("h", 3) {
			n += strings.Count(d.db.Client.Get(d.t.Context(), keys.HistoryMark(tag)).Val(), text)
		}
		return n == 3
	})
}

func TestInAClusterAFailoverThatLosesEntriesIsNoticed(t *testing.T) {
	t.Parallel()
	d := newClusterDrill(t)
	w := watch(t, d.db, "")
	w.add(t, d.db, d.game, "aaaaaaaa", 3)
	d.waitForMarks(`"n":3`)
	d.cut()
	w.add(t, d.db, d.game, "aaaaaaaa", 4)
	d.waitForMarks(`"n":7`)
	d.failOver()
	began := time.Now()
	w.changes.Add(1) // as a probe of the new master does
	redistest.Eventually(t, "the loss is noticed", func() bool { return w.Stats().Losses == 1 })
	t.Logf("noticed after %v", time.Since(began).Round(10*time.Millisecond))
	if s := w.Stats(); s.EntriesLost != 4 || s.Epoch != 2 || s.Stopped || w.AllowMoney() != nil || w.resyncs.Load() != 1 {
		t.Errorf("%+v, %v, %d resyncs", s, w.AllowMoney(), w.resyncs.Load())
	}
	d.waitForMarks(`"epoch":2`)
}

func TestInAClusterTheMarksOfOtherMastersSayWhatAFailoverLostWhileNoNodeRan(t *testing.T) {
	t.Parallel()
	d := newClusterDrill(t)
	w := watch(t, d.db, "")
	w.add(t, d.db, d.game, "aaaaaaaa", 3)
	d.waitForMarks(`"n":3`)
	d.cut()
	w.add(t, d.db, d.game, "aaaaaaaa", 4)
	d.waitForMarks(`"n":7`)
	w.stop()
	d.failOver()

	late := watch(t, d.db, "")
	late.waitForMoney(t, false)
	status, err := history.ReadStatus(t.Context(), d.db)
	if err != nil || status.Halt == nil || status.Halt.Cause != history.Older || len(status.Losses) != 1 ||
		status.Losses[0].GameID != d.game || status.Losses[0].Entries() != 4 {
		t.Fatalf("%+v, %v", status, err)
	}
	testkit.Must2(history.Accept(t.Context(), d.db))(t)
	late.waitForMoney(t, true)
}

// TestMoneyGoesOnByItselfWhenTheRightStoreIsBack points a node at another server for a while.
func TestMoneyGoesOnByItselfWhenTheRightStoreIsBack(t *testing.T) {
	for _, cause := range []history.Cause{history.Empty, history.Foreign} {
		t.Run(string(cause), func(t *testing.T) {
			t.Parallel()
			right, wrong := redistest.StartForTest(t), redistest.StartForTest(t)
			front := redistest.StartProxy(t, right.Addr)
			db, dir := open(t, "redis://"+front.Addr), t.TempDir()
			wrongDB := open(t, "redis://"+wrong.Addr)
			if cause == history.Foreign {
				watch(t, wrongDB, "").add(t, wrongDB, 7, "bbbbbbbb", 9)
			}
			w := watch(t, db, dir)
			w.add(t, db, 7, "aaaaaaaa", 5)
			w.waitForMark(t, dir, `"n":5`)
			front.Retarget(wrong.Addr)
			w.changes.Add(1)
			w.waitForMoney(t, false)
			redistest.Eventually(t, "the wrong store has the stop", func() bool {
				status, err := history.ReadStatus(t.Context(), wrongDB)
				return err == nil && status.Halt != nil && status.Halt.Cause == cause
			})
			if restarted := start(t, db, dir); restarted.AllowMoney() == nil {
				t.Error("a node that starts on the wrong store lets money go on")
			}
			front.Retarget(right.Addr)
			w.changes.Add(1)
			w.waitForMoney(t, true)
			if s := w.Stats(); s.Epoch != 1 || s.Losses != 0 || s.EntriesLost != 0 || w.resyncs.Load() != 1 {
				t.Errorf("%+v, %d resyncs", s, w.resyncs.Load())
			}
			if c := w.Checks()[0]; !c.OK {
				t.Errorf("%+v", c)
			}
			status, err := history.ReadStatus(t.Context(), db)
			if err != nil || status.Halt != nil || len(status.Losses) > 0 {
				t.Errorf("%+v, %v", status, err)
			}
			w.add(t, db, 7, "aaaaaaaa", 1)
			w.waitForMark(t, dir, `"n":6`)
		})
	}
}
