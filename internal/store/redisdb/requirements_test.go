package redisdb_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

func TestAStoreMustBeUsedWithTheShardsOfItsFirstUse(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		testkit.Check(t, db.CheckRequirements(t.Context(), redisdb.Requirements{FreeShards: 4}))
		testkit.Report(t, db.CheckRequirements(t.Context(), redisdb.Requirements{FreeShards: 4}), "the second start")
		err := db.CheckRequirements(t.Context(), redisdb.Requirements{FreeShards: 5})
		if unmet := (redisdb.RequirementError{}); !errors.As(err, &unmet) || len(unmet) != 1 ||
			!strings.Contains(unmet[0], "PARLOR_ROOM_SHARDS=4") {
			t.Errorf("another number of shards: %v", err)
		}
	})
}

func TestEveryMasterIsChecked(t *testing.T) {
	db := redistest.Cluster(t)
	setPolicy := func(policy string) {
		testkit.Check(t, db.Client.(*redis.ClusterClient).ForEachMaster(
			context.WithoutCancel(t.Context()),
			func(ctx context.Context, node *redis.Client) error {
				return node.ConfigSet(ctx, "maxmemory-policy", policy).Err()
			},
		))
	}
	setPolicy("allkeys-lru")
	defer setPolicy("noeviction")
	err := db.CheckRequirements(t.Context(), redisdb.Requirements{FreeShards: 1})
	if unmet := (redisdb.RequirementError{}); !errors.As(err, &unmet) || len(unmet) != 3 ||
		!strings.Contains(unmet[0], "set maxmemory-policy noeviction") {
		t.Errorf("three masters that evict: %v", err)
	}
}

func TestAllUnmetRequirementsAreReported(t *testing.T) {
	server := redistest.StartForTest(t, "--maxmemory-policy", "allkeys-lru")
	db := openServer(t, server.URL())
	err := db.CheckRequirements(t.Context(), redisdb.Requirements{FreeShards: 1, Durable: true})
	for _, want := range []string{"maxmemory-policy noeviction", "appendonly yes"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}

func TestAReplicaIsWaitedForUntilItIsPromoted(t *testing.T) {
	server := redistest.StartForTest(t, "--replicaof", "127.0.0.1 1", "--replica-read-only", "no")
	db := openServer(t, server.URL())
	err := db.CheckRequirements(t.Context(), redisdb.Requirements{FreeShards: 1})
	if !errors.Is(err, apierror.StoreUnavailable) || !strings.Contains(err.Error(), "address of the master") {
		t.Errorf("a replica: %v", err)
	}
	testkit.Check(t, db.Client.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
	testkit.Report(t, db.CheckRequirements(t.Context(), redisdb.Requirements{FreeShards: 1}), "promoted")
}

func TestAnAddressOfTheOtherKindOfStoreIsReported(t *testing.T) {
	single := redistest.StartForTest(t)
	member := redistest.StartForTest(t, "--cluster-enabled", "yes")
	for url, want := range map[string]string{
		"redis-cluster://" + single.Addr: "set redis://",
		"redis://" + member.Addr:         "set redis-cluster://",
	} {
		err := openServer(t, url).CheckRequirements(t.Context(), redisdb.Requirements{FreeShards: 1})
		if unmet := (redisdb.RequirementError{}); !errors.As(err, &unmet) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
}

func TestAClusterThatIsFormingIsWaitedFor(t *testing.T) {
	member := redistest.StartForTest(t, "--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1")
	client := redistest.Dial(t, member)
	db := openServer(t, "redis-cluster://"+member.Addr)
	for _, slots := range [][2]int{{-1, -1}, {0, 16000}} {
		if slots[0] >= 0 {
			testkit.Check(t, client.ClusterAddSlotsRange(t.Context(), slots[0], slots[1]).Err())
		}
		err := db.CheckRequirements(t.Context(), redisdb.Requirements{FreeShards: 1})
		testkit.WantError(t, err, apierror.StoreUnavailable, "with the slots %v", slots)
	}
	testkit.Check(t, client.ClusterAddSlotsRange(t.Context(), 16001, 16383).Err())
	testkit.Report(t, redistest.Poll(20*time.Second, func() error {
		return db.CheckRequirements(t.Context(), redisdb.Requirements{FreeShards: 1})
	}), "the Cluster is complete")
}

func TestAStoreWithAnAppendOnlyFileIsDurable(t *testing.T) {
	server := redistest.StartForTest(t, "--appendonly", "yes")
	required := redisdb.Requirements{FreeShards: 1, Durable: true}
	testkit.Report(t, openServer(t, server.URL()).CheckRequirements(t.Context(), required))
}

func TestTheCheckWaitsForAStoreUntilItsTimeIsOver(t *testing.T) {
	server := redistest.StartForTest(t)
	db := openServer(t, server.URL())
	server.Kill()
	if err := db.CheckRequirements(t.Context(), redisdb.Requirements{FreeShards: 1}); !errors.Is(
		err,
		apierror.StoreUnavailable,
	) {
		t.Fatalf("no store: %v", err)
	}
	opened := make(chan error)
	go func() {
		opened <- db.CheckRequirements(context.WithoutCancel(t.Context()), redisdb.Requirements{
			FreeShards: 1,
			MaxWait:    time.Minute,
		})
	}()
	testkit.Check(t, server.Restart())
	testkit.Report(t, <-opened, "the store came back")
}

func openServer(t *testing.T, url string) *redisdb.DB {
	t.Helper()
	db := testkit.Must(redisdb.Open(url))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}
