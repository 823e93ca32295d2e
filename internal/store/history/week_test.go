package history_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/history"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// A store that is put back under a running node, as from a backup, has the first entries and lacks
// the last ones. How old the newest of them is tells a failover from a store of last week.
func TestAStoreOfLastWeekUnderARunningNodeStopsMoney(t *testing.T) {
	const week = 7 * 24 * time.Hour
	for name, c := range map[string]struct {
		left   time.Duration // how old the last entry is that is left
		base   int           // entries that left the ledger
		goesOn bool
	}{
		"of last week":                            {week, 0, false},
		"of last week, without its first ones":    {week, 1000, false},
		"of a moment ago":                         {time.Second, 0, true},
		"of a moment ago, without its first ones": {time.Second, 1000, true},
	} {
		t.Run(name, func(t *testing.T) {
			db, dir := redistest.Single(t), t.TempDir()
			now := db.Client.Time(t.Context()).Val()
			for i, age := range []time.Duration{week + time.Hour, c.left, 0, 0} {
				entry := fmt.Sprintf("%d|aaaa%d|GOLD|credit||", now.Add(-age).UnixMilli(), i)
				db.Client.RPush(t.Context(), keys.Ledger(7), entry)
			}
			if c.base > 0 {
				db.Client.Set(t.Context(), keys.LedgerBase(7), c.base, 0)
			}
			w := watch(t, db, dir)
			w.Touch(7)
			w.waitForTip(t, dir, 7, c.base+4)
			testkit.Check(t, db.Client.LTrim(t.Context(), keys.Ledger(7), 0, 1).Err())
			w.changes.Add(1)
			redistest.Eventually(t, "the loss is noticed", func() bool { return w.Stats().Losses > 0 || w.Stats().Stopped })
			if err := w.AllowMoney(); (err == nil) != c.goesOn {
				t.Errorf("money: %v", err)
			}
		})
	}
}

// The installation's record lies on another server than the ledgers of games, which may fail alone.
func TestAnEpochThatGoesBackIsFollowedByANewOne(t *testing.T) {
	db, dir := redistest.Single(t), t.TempDir()
	setEpoch := func(epoch int64) {
		testkit.Check(t, db.Client.HSet(t.Context(), keys.Meta(), keys.MetaEpochField, epoch).Err())
	}
	start(t, db, "") // the installation has a name
	setEpoch(5)
	w := watch(t, db, dir)
	w.waitForMark(t, dir, `"epoch":5`)
	setEpoch(2)
	w.changes.Add(1)
	w.waitForMark(t, dir, `"epoch":6`)
	if s := w.Stats(); s.Stopped || s.Epoch != 6 || s.Losses != 1 || w.resyncs.Load() != 1 || w.AllowMoney() != nil {
		t.Errorf("%+v, %d resyncs, %v", s, w.resyncs.Load(), w.AllowMoney())
	}
	if status, err := history.ReadStatus(t.Context(), db); err != nil || status.Epoch != 6 {
		t.Errorf("%+v, %v", status, err)
	}

	// A node that was not there does not know what went back with it.
	w.stop()
	setEpoch(2)
	if start(t, db, dir).AllowMoney() == nil {
		t.Error("money goes on in a store of an earlier epoch than that of the mark")
	}
	if start(t, db, "").AllowMoney() == nil {
		t.Error("money goes on by a node without a mark")
	}
}
