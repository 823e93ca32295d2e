package history_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/history"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

var key = []byte("0123456789abcdef0123456789abcdef")

// watcher is the part of a node that watches the history.
type watcher struct {
	*history.Service
	changes atomic.Uint64
	resyncs atomic.Int64
	stop    func()
}

// start returns a watcher that has looked at the store once, and does not go on.
func start(t testing.TB, db *redisdb.DB, dir string, change ...func(o *history.Options)) *watcher {
	t.Helper()
	w := &watcher{}
	o := history.Options{
		Accepted: func(int64) {},
		StateDir: dir, SigningKeys: [][]byte{key}, Node: t.Name(), Log: slog.New(slog.DiscardHandler),
		Changes: w.changes.Load, Prepare: func(context.Context) error { return nil },
		Resync: func() { w.resyncs.Add(1) },
	}
	for _, c := range change {
		c(&o)
	}
	w.Service = history.New(db, o)
	testkit.Check(t, w.Start(t.Context()))
	return w
}

// watch starts to watch a store. It ends with the test, or by stop.
func watch(t *testing.T, db *redisdb.DB, dir string, change ...func(o *history.Options)) *watcher {
	t.Helper()
	w := start(t, db, dir, change...)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = w.Run(ctx) }()
	w.stop = func() { cancel(); <-ended }
	t.Cleanup(w.stop)
	return w
}

// add appends entries to the ledger of a game, made by a nonce, and tells the watcher.
func (w *watcher) add(t *testing.T, db *redisdb.DB, game int64, nonce string, count int) {
	t.Helper()
	for range count {
		ms := db.Client.Time(t.Context()).Val().UnixMilli()
		entry := fmt.Sprintf("%d|%s|GOLD|credit||", ms, nonce)
		testkit.Check(t, db.Client.RPush(t.Context(), keys.Ledger(game), entry).Err())
	}
	w.Touch(game)
}

func (w *watcher) waitForMoney(t *testing.T, goesOn bool) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprintf("money goes on: %v", goesOn), func() bool {
		return (w.AllowMoney() == nil) == goesOn
	})
}

func (w *watcher) waitForMark(t *testing.T, dir, text string) {
	t.Helper()
	redistest.Eventually(t, "the mark has "+text, func() bool {
		files, _ := filepath.Glob(filepath.Join(dir, "*.mark"))
		for _, f := range files {
			if got, _ := os.ReadFile(f); strings.Contains(string(got), text) {
				return true
			}
		}
		return false
	})
}

func TestWhatAFailoverLosesIsWrittenDownAndMoneyGoesOn(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		dir := t.TempDir()
		w := watch(t, db, dir)
		w.acknowledge(t, db, 7, "aaa", 3)
		w.add(t, db, 8, "aaaaaaaa", 2)
		w.waitForMark(t, dir, `"7":{"n":3`)
		// The last two entries are lost, and one is written in their place.
		testkit.Check(t, db.Client.LTrim(t.Context(), keys.Ledger(7), 0, 0).Err())
		w.add(t, db, 7, "bbbbbbbb", 1)
		redistest.Eventually(t, "the loss is noticed", func() bool { return w.Stats().Epoch == 2 })
		if s := w.Stats(); s.Losses != 1 || s.EntriesLost < 1 || s.EntriesLost > 2 || s.Stopped {
			t.Errorf("%+v", s)
		}
		if w.AllowMoney() != nil || w.resyncs.Load() != 1 {
			t.Errorf("money: %v, %d resyncs", w.AllowMoney(), w.resyncs.Load())
		}
		if c := w.Checks()[0]; c.OK || !strings.Contains(c.Detail, "of 1 games") {
			t.Errorf("%+v", c)
		}
		other := watch(t, db, t.TempDir()) // starts later and knows of it too
		if c := other.Checks()[0]; c.OK || other.AllowMoney() != nil {
			t.Errorf("another node: %+v, %v", c, other.AllowMoney())
		}
		testkit.Must2(history.Accept(t.Context(), db))(t)
		redistest.Eventually(t, "both nodes take note", func() bool { return w.Checks()[0].OK && other.Checks()[0].OK })
	})
}

// What was acknowledged after the last look is known by the nonces of its calls.
func TestWhatWasAcknowledgedAfterTheLastLookIsMissed(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		dir := t.TempDir()
		w := watch(t, db, dir)
		w.add(t, db, 7, "aaaaaaaa", 3)
		w.add(t, db, 8, "aaaaaaaa", 3)
		w.waitForMark(t, dir, `"7":{"n":3`)
		w.waitForMark(t, dir, `"8":{"n":3`)
		w.add(t, db, 7, "bbbbbbbb", 1)
		w.Acknowledge(7, "bbbbbbbb", time.Now())
		w.Acknowledge(8, "cccccccc", time.Now()) // its entry was lost, and one of another node is in its place
		w.add(t, db, 8, "dddddddd", 1)
		w.changes.Add(1)
		redistest.Eventually(t, "the loss is noticed", func() bool { return w.Stats().Epoch == 2 })
		s, err := history.ReadStatus(t.Context(), db)
		if err != nil || len(s.Losses) != 1 || s.Losses[0].GameID != 8 || s.Losses[0].Entries() != 1 {
			t.Errorf("%+v, %v", s, err)
		}
		if s := w.Stats(); s.Stopped || s.EntriesLost != 1 || w.resyncs.Load() != 1 {
			t.Errorf("%+v, %d resyncs", s, w.resyncs.Load())
		}
		// It is noticed once, and what is there is not missed.
		w.add(t, db, 8, "eeeeeeee", 1)
		w.Acknowledge(8, "eeeeeeee", time.Now())
		w.changes.Add(1)
		w.add(t, db, 9, "aaaaaaaa", 1)
		w.waitForMark(t, dir, `"9":{"n":1`)
		w.waitForMark(t, dir, `"8":{"n":5`)
		if s := w.Stats(); s.Losses != 1 || s.Epoch != 2 {
			t.Errorf("%+v", s)
		}
	})
}

func TestAStoreThatIsNotTheRightOneStopsMoneyUntilItIsAccepted(t *testing.T) {
	for cause, spoil := range map[string]func(t *testing.T, db *redisdb.DB) error{
		"empty": func(t *testing.T, db *redisdb.DB) error {
			redistest.EachMaster(t, db, func(ctx context.Context, server *redis.Client) error {
				return server.FlushAll(ctx).Err()
			})
			return nil
		},
		"another installation": func(t *testing.T, db *redisdb.DB) error {
			return db.Client.HSet(t.Context(), keys.Meta(), keys.MetaInstallationField, "other").Err()
		},
		"older": func(t *testing.T, db *redisdb.DB) error {
			return db.Client.LTrim(t.Context(), keys.Ledger(7), 0, 1).Err()
		},
	} {
		t.Run(cause, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
				dir := t.TempDir()
				w := watch(t, db, dir)
				w.add(t, db, 7, "aaaaaaaa", 5)
				w.waitForMark(t, dir, `"n":5`)
				if cause == "older" {
					w.stop() // while a node runs, a loss of the last minute may be a failover's
				}
				testkit.Check(t, spoil(t, db))
				if cause == "older" {
					w = watch(t, db, dir)
				}
				w.waitForMoney(t, false)
				var moneyError *apierror.Error
				if err := w.AllowMoney(); !errors.As(err, &moneyError) || moneyError.Code != apierror.StoreUnavailable.Code ||
					!strings.Contains(moneyError.Detail, "parlor store accept") {
					t.Errorf("money: %v", err)
				}
				if c := w.Checks()[0]; c.OK || !w.Stats().Stopped {
					t.Errorf("%+v", c)
				}
				restarted := watch(t, db, dir)
				restarted.waitForMoney(t, false)
				without := watch(t, db, "") // it has no mark of its own
				without.waitForMoney(t, false)

				before, after, err := history.Accept(t.Context(), db)
				if err != nil || before.Halt == nil || after.Halt != nil || after.Epoch < 2 {
					t.Fatalf("accept: %+v, %+v, %v", before, after, err)
				}
				for _, w := range []*watcher{w, restarted, without} {
					w.waitForMoney(t, true)
				}
				late := watch(t, db, dir)
				late.waitForMoney(t, true)
			})
		})
	}
}

func TestANewStoreIsNoFault(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		w := watch(t, db, t.TempDir())
		testkit.Report(t, w.AllowMoney())
		s, err := history.ReadStatus(t.Context(), db)
		if err != nil || s.Installation == "" || s.Epoch != 1 || s.Halt != nil {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

func TestOnAClusterTheMarksOfOtherMastersAreEnough(t *testing.T) {
	db := redistest.Cluster(t)
	w := watch(t, db, "")
	w.add(t, db, 7, "aaaaaaaa", 5)
	redistest.Eventually(t, "three marks are written", func() bool {
		n := 0
		for _, tag := range redisdb.SpreadTags("h", 3) {
			n += strings.Count(db.Client.Get(t.Context(), keys.HistoryMark(tag)).Val(), `"n":5`)
		}
		return n == 3
	})
	w.stop()
	testkit.Check(t, db.Client.LTrim(t.Context(), keys.Ledger(7), 0, 2).Err())
	testkit.Check(t, db.Client.Del(t.Context(), keys.HistoryMark(redisdb.SpreadTags("h", 3)[0])).Err())
	watch(t, db, "").waitForMoney(t, false)
}

func TestAMarkThatNobodySignedIsReportedAndNotUsed(t *testing.T) {
	db := redistest.Single(t)
	dir := t.TempDir()
	forged := `{"installation":"x","epoch":9,"at":"2026-11-22T00:00:00Z","node":"x","games":{"7":{"n":5,"head":"1|x"}}}`
	testkit.Check(t, os.WriteFile(filepath.Join(dir, "other.mark"), []byte(forged+"\nabcd\n"), 0o600))
	w := watch(t, db, dir)
	if w.AllowMoney() != nil {
		t.Error("a forged mark stops money")
	}
	if c := w.Checks(); len(c) != 2 || c[1].Name != "mark" || c[1].OK {
		t.Errorf("%+v", c)
	}
}
