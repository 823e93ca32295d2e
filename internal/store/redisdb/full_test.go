package redisdb_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestAFullStoreRefusesAsAWholeWhatNeedsMemoryAndLetsTheRestGoOn(t *testing.T) {
	server := redistest.StartForTest(t)
	db := testkit.Must(redisdb.Open(server.URL()))(t)
	t.Cleanup(func() { _ = db.Close() })
	redistest.Fill(t, db)
	save := func() (redisdb.Reply, error) {
		return db.RunScript(t.Context(), scripts.SaveWrite, []string{"{u:1}:a", "{u:1}:b", "{u:1}:c", "{u:1}:d"},
			"PUBLISH", "nonce", 0, 0, 1, "m", "m 1", "state", "slot", "line", 9, 5, "{}", 1_000, 0)
	}
	if _, err := save(); !errors.Is(err, apierror.StoreFull) || errors.Is(err, apierror.StoreUnavailable) {
		t.Errorf("a save returns %v, want store_full", err)
	}
	if n := db.Client.Exists(t.Context(), "{u:1}:a", "{u:1}:b", "{u:1}:c", "{u:1}:d").Val(); n != 0 {
		t.Errorf("a refused script wrote %d keys", n)
	}
	if reply, err := db.RunScript(t.Context(), scripts.TotalsRead, []string{"{e:1}:a", "{e:1}:b", "{e:1}:c"},
		9); err != nil {
		t.Errorf("a script that only reads returns %v, %v", reply, err)
	}
	led, err := db.RunAsLeader(t.Context(), "{l:x}:lock", "{l:x}:fence", 5*time.Second,
		func(context.Context, int64) error { return nil })
	if err != nil || !led {
		t.Errorf("there is no leader: %v, %v", led, err)
	}
	if n := db.Client.Exists(t.Context(), "{l:x}:lock").Val(); n != 0 {
		t.Error("the lock was not released")
	}
}
