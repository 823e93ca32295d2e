package redisdb_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
)

// openWithReplica opens a store whose changes need a replica.
func openWithReplica(t *testing.T, url string) *redisdb.DB {
	t.Helper()
	db := openServer(t, url)
	db.RequireReplicas(1)
	return db
}

// request runs a script that writes the first time and only reads the second time.
func request(ctx context.Context, db *redisdb.DB, tag string) error {
	names := []string{"{" + tag + "}:user"}
	reply, err := db.RunScript(ctx, scripts.UserCreate, names, 1, "guest", "Ann", "", "nonce", 0)
	if err == nil {
		err = reply.Err(scripts.UserCreate)
	}
	return err
}

func countCalls(t *testing.T, s *redistest.Server, command string) int {
	t.Helper()
	text := redistest.Dial(t, s).Info(t.Context(), "commandstats").Val()
	_, rest, _ := strings.Cut(text, "cmdstat_"+command+":calls=")
	number, _, _ := strings.Cut(rest, ",")
	n, _ := strconv.Atoi(number)
	return n
}

func TestAChangeIsAcknowledgedWhenAReplicaHasIt(t *testing.T) {
	t.Parallel()
	master := redistest.StartForTest(t, "--repl-diskless-sync-delay", "0")
	db := openWithReplica(t, master.URL())
	testkit.WantError(t, request(t.Context(), db, "alone"), apierror.OutcomeUnknown, "without a replica")
	proxy := redistest.StartProxy(t, master.Addr)
	replica := redistest.StartReplica(t, proxy.Addr)
	testkit.Check(t, request(t.Context(), db, "a"))
	if n := redistest.Dial(t, replica).Exists(t.Context(), "{a}:user").Val(); n != 1 {
		t.Error("the replica does not have an acknowledged change")
	}

	proxy.Cut()
	began := time.Now()
	for name, tag := range map[string]string{"a change": "b", "one that was made before the cut": "a"} {
		for _, attempt := range []string{"first", "second"} {
			testkit.WantError(t, request(t.Context(), db, tag), apierror.OutcomeUnknown,
				"%s, %s attempt, while replication is cut", name, attempt)
		}
	}
	if took := time.Since(began); took < 2*time.Second || took > 10*time.Second {
		t.Errorf("four requests waited %v", took)
	}
	names := []string{"{e:1}:a", "{e:1}:b", "{e:1}:c"}
	testkit.Report(t, testkit.ErrorOf(db.RunScript(t.Context(), scripts.TotalsRead, names, 9)),
		"a script that only reads waits for replicas")
	testkit.Report(t, testkit.ErrorOf(db.TryAcquire(t.Context(), "{l:x}:lock", "me", time.Second)),
		"a lease waits for replicas")
	proxy.Mend()
	redistest.Eventually(t, "both are acknowledged", func() bool {
		return request(t.Context(), db, "a") == nil && request(t.Context(), db, "b") == nil
	})
	if confirmed, missed := db.Confirmations(); confirmed < 3 || missed < 5 {
		t.Errorf("%d confirmed, %d missed", confirmed, missed)
	}
}

// A Redis of version 7.2 or newer lets WAIT return at once when its connection wrote nothing, as a
// repeated request may. So every batch writes something itself.
func TestEveryBatchWritesBeforeItWaits(t *testing.T) {
	t.Parallel()
	master := redistest.StartForTest(t, "--repl-diskless-sync-delay", "0")
	redistest.StartReplica(t, master.Addr)
	db := openWithReplica(t, master.URL())
	client := redistest.Dial(t, master)
	for range 2 {
		testkit.Check(t, request(t.Context(), db, "a"))
		if n := client.Del(t.Context(), "{a}:alive").Val(); n != 1 {
			t.Error("the batch did not write")
		}
	}
}

func TestOneWaitServesABatch(t *testing.T) {
	t.Parallel()
	master := redistest.StartForTest(t, "--repl-diskless-sync-delay", "0")
	redistest.StartReplica(t, master.Addr)
	db := openWithReplica(t, master.URL())
	const requests = 2000
	var all sync.WaitGroup
	for i := range requests {
		all.Go(func() {
			testkit.Report(t, request(t.Context(), db, strconv.Itoa(i)))
		})
	}
	all.Wait()
	if n := countCalls(t, master, "wait"); n == 0 || n > requests/4 {
		t.Errorf("%d WAITs for %d requests at once", n, requests)
	}
}

func TestAFrozenReplicaDelaysNoRead(t *testing.T) {
	t.Parallel()
	master := redistest.StartForTest(t, "--repl-diskless-sync-delay", "0")
	replica := redistest.StartReplica(t, master.Addr)
	db := openWithReplica(t, master.URL())
	replica.Pause()
	defer replica.Resume()
	written := make(chan error, 1)
	go func() { written <- request(t.Context(), db, "a") }()
	began := time.Now()
	for len(written) == 0 {
		before := time.Now()
		testkit.Must(db.AutoPipelined.HGetAll(t.Context(), "{a}:user").Result())(t)
		if took := time.Since(before); took > 300*time.Millisecond {
			t.Errorf("a read took %v", took)
		}
	}
	if err := <-written; !errors.Is(err, apierror.OutcomeUnknown) || time.Since(began) < 400*time.Millisecond {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

func TestInAClusterEachMasterWaitsForItsOwnReplica(t *testing.T) {
	t.Parallel()
	url, masters, replicas := redistest.StartClusterWithReplicas(t, "--repl-diskless-sync-delay", "0")
	db := openWithReplica(t, url)
	var all sync.WaitGroup
	for i := range 300 {
		all.Go(func() {
			testkit.Report(t, request(t.Context(), db, strconv.Itoa(i)))
		})
	}
	all.Wait()
	for i, master := range masters {
		if countCalls(t, master, "wait") == 0 {
			t.Errorf("master %d has not waited", i)
		}
	}
	replicas[0].Pause()
	defer replicas[0].Resume()
	client, unconfirmed := redistest.Dial(t, masters[0]), 0
	for i := range 20 {
		tag := fmt.Sprintf("again-%d", i)
		slot := int(client.ClusterKeySlot(t.Context(), "{"+tag+"}").Val())
		err := request(t.Context(), db, tag)
		if first := slot <= 5460; first != errors.Is(err, apierror.OutcomeUnknown) || !first && err != nil {
			t.Errorf("slot %d, whose master has a frozen replica: %v: %v", slot, first, err)
		} else if first {
			unconfirmed++
		}
	}
	if unconfirmed == 0 {
		t.Error("no request went to the master with the frozen replica")
	}
}
