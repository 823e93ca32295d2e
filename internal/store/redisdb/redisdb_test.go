package redisdb_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

func TestOpenRejectsInvalidAddressesAndHidesPasswords(t *testing.T) {
	for _, url := range []string{
		"localhost:6379", "http://localhost", "redis://user:hunter2@host:port/x", "redis-cluster://user:hunter2@host",
		"redis-cluster://h:1/3", "redis-sentinel://h:1", "redis-sentinel://user:hunter2@h:1/m?db=x",
		"redis://user:hunter2@[::1", "valkey://user:hunter2@h:1", "redis-cluster://user:hunter2@h:1?ca=/x",
		"rediss-cluster://user:hunter2@h:1?ca=/absent", "rediss://user:hunter2@h:1?ca=/dev/null",
		"rediss://user:hunter2@h:1?cert=/absent&key=/absent", "rediss://user:hunter2@h:1?skip_verify=perhaps",
		"redis-sentinel://h:1/m?sentinelUser=hunter2", "redis-sentinel://h:1/m?sentinelpassword=hunter2",
		"redis-cluster://h:1?sentinelPassword=hunter2", "rediss-sentinel://:1/m", "redis-cluster://::1:1",
	} {
		db, err := redisdb.Open(url)
		if err == nil {
			_ = db.Close()
			t.Errorf("%s was accepted", url)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error contains the password: %v", url, err)
		}
	}
}

func TestALostStoreIsStoreUnavailableAndIsReachedAgain(t *testing.T) {
	server := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "always")
	db := testkit.Must(redisdb.Open(server.URL()))(t)
	defer func() { _ = db.Close() }()
	testkit.Check(t, db.Client.Set(t.Context(), "kept", "1", 0).Err())
	server.Kill()
	if err := db.Ping(t.Context()); !errors.Is(err, apierror.StoreUnavailable) {
		t.Fatalf("without a server Ping returned %v, want store_unavailable", err)
	}
	testkit.Check(t, server.Restart())
	if got, err := db.Client.Get(t.Context(), "kept").Result(); err != nil || got != "1" {
		t.Fatalf("after the restart: %q, %v", got, err)
	}
}

func TestAStoreThatDoesNotServeIsStoreUnavailable(t *testing.T) {
	for _, text := range []string{
		"NOAUTH Authentication required.", "WRONGPASS invalid username-password pair or user is disabled.",
		"NOPERM this user has no permissions to run the 'set' command", "LOADING Redis is loading the dataset in memory",
		"READONLY You can't write against a read only replica. script: 1, on @user_script:1.",
		"MISCONF Errors writing to the AOF file: No space left on device", "CLUSTERDOWN The cluster is down",
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "redis: cluster has no nodes",
	} {
		testkit.WantError(t, redisdb.WrapError("x", errors.New(text)), apierror.StoreUnavailable, "%s", text)
	}
	err := redisdb.WrapError("x", errors.New("WRONGTYPE Operation against a key holding the wrong kind of value"))
	if errors.Is(err, apierror.StoreUnavailable) {
		t.Error("a key of a wrong type is an outage")
	}
}

func TestCommandsOfAUserWithoutPermissionAreStoreUnavailable(t *testing.T) {
	server := redistest.StartForTest(t)
	db := testkit.Must(redisdb.Open(server.URL()))(t)
	defer func() { _ = db.Close() }()
	admin := redistest.Dial(t, server)
	calls := []redisdb.ScriptCall{{Keys: []string{"{p}:x"}, Args: []any{1_000_000, 100, 1, 0, db.Clock.NowMS()}}}
	for name, rules := range map[string][]any{
		"no writes": {"ACL", "SETUSER", "default", "on", "nopass", "~*", "&*", "+@all", "-hset", "-set", "-pexpire"},
		"no user":   {"ACL", "SETUSER", "default", "on", ">right", "resetpass", ">right", "+@all"},
	} {
		testkit.Check(t, admin.Do(t.Context(), rules...).Err())
		fresh := testkit.Must(redisdb.Open(server.URL()))(t)
		testkit.Fails(fresh.RunScript(t.Context(), scripts.RateLimitTake, calls[0].Keys, calls[0].Args...))(
			t, apierror.StoreUnavailable, "%s: a script returns", name)
		for _, r := range fresh.RunScriptPipelined(t.Context(), scripts.RateLimitTake, calls) {
			if !errors.Is(r.Failure, apierror.StoreUnavailable) {
				t.Errorf("%s: a pipeline returns %v", name, r.Failure)
			}
		}
		_ = fresh.Close()
	}
}

func TestNoCommandWaitsLongerThanThreeSecondsForAStoreThatHangs(t *testing.T) {
	server := redistest.StartForTest(t)
	cluster, members, err := redistest.StartCluster()
	for _, m := range members {
		t.Cleanup(m.Remove)
	}
	testkit.Check(t, err)
	for name, hanging := range map[string]struct {
		url     string
		servers []*redistest.Server
	}{"single": {server.URL(), []*redistest.Server{server}}, "cluster": {cluster, members}} {
		db := openServer(t, hanging.url)
		testkit.Check(t, db.Ping(t.Context()))
		for _, s := range hanging.servers {
			s.Pause()
		}
		key, args := []string{"{p}:x"}, []any{1_000_000, 100, 1, 0, db.Clock.NowMS()}
		short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		for call, run := range map[string]func(context.Context) error{
			"a command": func(ctx context.Context) error {
				return redisdb.WrapError("x", db.Client.Get(ctx, key[0]).Err())
			},
			"a script": func(ctx context.Context) error {
				_, err := db.RunScript(ctx, scripts.RateLimitTake, key, args...)
				return err
			},
			"a pipeline": func(ctx context.Context) error {
				calls := []redisdb.ScriptCall{{Keys: key, Args: args}}
				return db.RunScriptPipelined(ctx, scripts.RateLimitTake, calls)[0].Failure
			},
			"a read": func(ctx context.Context) error {
				_, err := db.AutoPipelined.HGetAll(ctx, key[0]).Result()
				return redisdb.WrapError("x", err)
			},
		} {
			began := time.Now()
			if err := run(short); !errors.Is(err, apierror.StoreUnavailable) || time.Since(began) > time.Second {
				t.Errorf("%s, %s for 300 ms: %v after %v", name, call, err, time.Since(began))
			}
			began = time.Now()
			if err := run(t.Context()); !errors.Is(err, apierror.StoreUnavailable) ||
				time.Since(began) > 2*3*time.Second+500*time.Millisecond {
				t.Errorf("%s, %s: %v after %v", name, call, err, time.Since(began))
			}
			t.Log(name, call, time.Since(began))
		}
		cancel()
		for _, s := range hanging.servers {
			s.Resume()
		}
	}
}

func TestEmbeddedKeysExpire(t *testing.T) {
	db := testkit.Must(redisdb.Open(redisdb.EmbeddedURL))(t)
	defer func() { _ = db.Close() }()
	testkit.Check(t, db.Client.Set(t.Context(), "short", "1", 150*time.Millisecond).Err())
	redistest.Eventually(t, "the key has expired", func() bool {
		return errors.Is(db.Client.Get(t.Context(), "short").Err(), redis.Nil)
	})
}

func TestThereIsOneLeaderAndFencesGrow(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		var last int64
		for range 3 {
			lead := func(ctx context.Context, work func(context.Context, int64) error) (bool, error) {
				return db.RunAsLeader(ctx, "{l:x}:lock", "{l:x}:fence", 5*time.Second, work)
			}
			led, err := lead(t.Context(), func(ctx context.Context, fence int64) error {
				if fence <= last {
					t.Errorf("the fence went from %d to %d", last, fence)
				}
				last = fence
				again, err := lead(ctx, func(context.Context, int64) error {
					t.Error("there are two leaders")
					return nil
				})
				if again {
					t.Error("a held lock was acquired again")
				}
				return err
			})
			if err != nil || !led {
				t.Fatalf("led %v, %v", led, err)
			}
		}
	})
}

// In an outage each attempt waits for the store: one that is given up locks for nobody afterwards.
func TestWhoTriesToLockInAnOutageLeadsAfterIt(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		const lease = 2 * time.Second
		var tries atomic.Int64
		redistest.ObserveCommands(db, func(commands []redis.Cmder) {
			if strings.HasPrefix(commands[0].Name(), "eval") && tries.Add(1) == 1 {
				outage, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				<-outage.Done()
			}
		})
		led, err := db.RunAsLeader(t.Context(), "{l:x}:lock", "{l:x}:fence", lease,
			func(context.Context, int64) error { return nil })
		if !led || err != nil {
			t.Errorf("it leads after the outage: %v, %v", led, err)
		}
	})
}

// A store that takes no writes for a while is what a Cluster in a failover is.
func TestALockIsReleasedWhenTheStoreIsBack(t *testing.T) {
	server := redistest.StartForTest(t)
	db := testkit.Must(redisdb.Open(server.URL()))(t)
	t.Cleanup(func() { _ = db.Close() })
	direct := redistest.Dial(t, server)
	requireReplicas := func(n string) {
		t.Helper()
		testkit.Check(t, direct.ConfigSet(t.Context(), "min-replicas-to-write", n).Err())
	}
	const lease = time.Hour
	ended := make(chan error, 1)
	go func() {
		_, err := db.RunAsLeader(t.Context(), "{l:x}:lock", "{l:x}:fence", lease, func(context.Context, int64) error {
			requireReplicas("1")
			return nil
		})
		ended <- err
	}()
	redistest.Eventually(t, "the lock cannot be released", func() bool {
		return strings.Contains(direct.Info(t.Context(), "errorstats").Val(), "errorstat_NOREPLICAS")
	})
	if direct.Exists(t.Context(), "{l:x}:lock").Val() != 1 {
		t.Fatal("the lock is gone")
	}
	requireReplicas("0")
	testkit.Report(t, <-ended)
	if direct.Exists(t.Context(), "{l:x}:lock").Val() != 0 {
		t.Error("the lock lasts until its lease is over")
	}
}

func TestAScriptRunsOncePerCallOfAPipeline(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		for _, known := range []bool{false, true} {
			if !known { // as after a restart of a server
				testkit.Check(t, db.Client.ScriptFlush(t.Context()).Err())
			}
			calls := make([]redisdb.ScriptCall, 20)
			for i := range calls { // a permit a second; call i takes i+1 of 100
				key := fmt.Sprintf("{p%d}:%v", i, known)
				calls[i] = redisdb.ScriptCall{Keys: []string{key}, Args: []any{1_000_000, 100, i + 1, 0, db.Clock.NowMS()}}
			}
			const spoiled = 7
			testkit.Check(t, db.Client.LPush(t.Context(), calls[spoiled].Keys[0], "?").Err())
			for i, reply := range db.RunScriptPipelined(t.Context(), scripts.RateLimitTake, calls) {
				if i == spoiled {
					if !redisdb.IsWrongType(reply.Failure) {
						t.Errorf("a key of a wrong type: %v", reply.Failure)
					}
					continue
				}
				want := fmt.Sprint([]int{i + 1, (i + 1) * 1_000_000})
				if reply.Failure != nil || reply.Status != scripts.OK || fmt.Sprint(reply.Values) != want {
					t.Errorf("call %d returns %+v, want %s", i, reply, want)
				}
			}
		}
		ended, end := context.WithCancel(t.Context())
		end()
		calls := []redisdb.ScriptCall{{Keys: []string{"{p}:x"}, Args: []any{1, 1, 1, 0, db.Clock.NowMS()}}}
		r := db.RunScriptPipelined(ended, scripts.RateLimitTake, calls)
		if !errors.Is(r[0].Failure, context.Canceled) {
			t.Errorf("a cancelled pipeline returns %v", r[0].Failure)
		}
	})
}
