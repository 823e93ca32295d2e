package redisdb_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/redis/go-redis/v9"
)

func TestAStoreMustBeUsedWithTheShardsOfItsFirstUse(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		if err := db.CheckRequirements(t.Context(), redisdb.Requirements{FreeShards: 4}); err != nil {
			t.Fatal(err)
		}
		if err := db.CheckRequirements(t.Context(), redisdb.Requirements{FreeShards: 4}); err != nil {
			t.Errorf("the second start: %v", err)
		}
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
		err := db.Client.(*redis.ClusterClient).ForEachMaster(
			context.WithoutCancel(t.Context()),
			func(ctx context.Context, node *redis.Client) error {
				return node.ConfigSet(ctx, "maxmemory-policy", policy).Err()
			},
		)
		if err != nil {
			t.Fatal(err)
		}
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
	server := redistest.StartFor(
		t,
		"--maxmemory-policy",
		"allkeys-lru",
		"--replicaof",
		"127.0.0.1 1",
		"--replica-read-only",
		"no",
	)
	db := openServer(t, server.URL())
	err := db.CheckRequirements(t.Context(), redisdb.Requirements{FreeShards: 1, Durable: true})
	for _, want := range []string{"maxmemory-policy noeviction", "appendonly yes", "address of the master"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}

func TestAStoreWithAnAppendOnlyFileIsDurable(t *testing.T) {
	server := redistest.StartFor(t, "--appendonly", "yes")
	required := redisdb.Requirements{FreeShards: 1, Durable: true}
	if err := openServer(t, server.URL()).CheckRequirements(t.Context(), required); err != nil {
		t.Error(err)
	}
}

func TestTheCheckWaitsForAStoreUntilItsTimeIsOver(t *testing.T) {
	server := redistest.StartFor(t)
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
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Errorf("the store came back: %v", err)
	}
}

func TestTheCheckDoesNotWaitWhenWaitingCannotHelp(t *testing.T) {
	server := redistest.StartFor(t)
	if err := openServer(t, server.URL()).Client.ConfigSet(t.Context(), "requirepass", "right").Err(); err != nil {
		t.Fatal(err)
	}
	db := openServer(t, server.URL())
	start := time.Now()
	err := db.CheckRequirements(t.Context(), redisdb.Requirements{FreeShards: 1, MaxWait: time.Minute})
	if err == nil || errors.Is(err, apierror.StoreUnavailable) || time.Since(start) > 30*time.Second {
		t.Errorf("a wrong password: %v after %s", err, time.Since(start))
	}
}

func openServer(t *testing.T, url string) *redisdb.DB {
	t.Helper()
	db, err := redisdb.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
