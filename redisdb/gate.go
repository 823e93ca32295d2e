package redisdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parlor-games/parlor/fault"
	"github.com/parlor-games/parlor/keys"
	"github.com/redis/go-redis/v9"
)

// Needs is what a node asks of the store before it serves.
type Needs struct {
	Wait  time.Duration // for a store that cannot be reached
	Disk  bool          // an acknowledged change survives a crash of the store
	Homes int           // number of homes for free rooms
}

// Unfit is all that makes a store unfit to keep money, each with what to set.
type Unfit []string

func (u Unfit) Error() string { return strings.Join(u, "\n") }

// layout is the number of the schema in package keys; it changes when old keys can no longer be read.
const layout = "1"

const (
	oldestMajor = 7
	gateTick    = 100 * time.Millisecond
)

// Gate waits for the store and refuses one that could lose money, or that was first used with another number of homes.
// A store that cannot be reached in time is fault.StoreUnavailable; one that can and will not do is Unfit.
func (db *DB) Gate(ctx context.Context, n Needs) error {
	if err := db.await(ctx, n.Wait); err != nil {
		return err
	}
	unfit, err := db.inspect(ctx, n)
	if err != nil {
		return err
	}
	mismatch, err := db.installed(ctx, n)
	if err != nil {
		return err
	}
	if unfit = append(unfit, mismatch...); len(unfit) > 0 {
		return unfit
	}
	return nil
}

// await asks for a sign of life until there is one. What waiting does not cure, such as a wrong password, it tells at once.
func (db *DB) await(ctx context.Context, limit time.Duration) error {
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(gateTick)
	defer tick.Stop()
	for {
		err := db.Ping(ctx)
		if !errors.Is(err, fault.StoreUnavailable) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// inspect looks at every server that takes writes.
func (db *DB) inspect(ctx context.Context, n Needs) (Unfit, error) {
	var mu sync.Mutex
	var unfit Unfit
	look := func(ctx context.Context, server *redis.Client) error {
		info, err := server.Info(ctx).Result()
		if err != nil {
			return Fail("read INFO of "+server.Options().Addr, err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, problem := range judge(parseInfo(info), n) {
			unfit = append(unfit, "the store "+server.Options().Addr+" "+problem)
		}
		return nil
	}
	var err error
	switch client := db.Client.(type) {
	case *redis.ClusterClient:
		err = client.ForEachMaster(ctx, look)
	case *redis.Client:
		if db.kind != KindEmbedded { // which has no INFO, evicts nothing and promises nothing
			err = look(ctx, client)
		}
	}
	slices.Sort(unfit)
	return unfit, err
}

// judge tells what makes one server unfit.
func judge(info map[string]string, n Needs) (problems []string) {
	version := info["redis_version"]
	major, _, _ := strings.Cut(version, ".")
	if number, _ := strconv.Atoi(major); number < oldestMajor {
		problems = append(problems, fmt.Sprintf("is Redis %q; Parlor needs %d.0 or newer", version, oldestMajor))
	}
	if role := info["role"]; role != "master" {
		problems = append(problems, fmt.Sprintf("is a replica (role %q) and takes no writes; give the address of the master", role))
	}
	if policy := info["maxmemory_policy"]; policy != "noeviction" {
		problems = append(problems, fmt.Sprintf("would forget balances when its memory is full (maxmemory-policy %s); set maxmemory-policy noeviction", policy))
	}
	if n.Disk && info["aof_enabled"] != "1" {
		problems = append(problems, "forgets acknowledged money when it restarts; set appendonly yes (and appendfsync always, to lose nothing in a power cut)")
	}
	return problems
}

func parseInfo(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			info[name] = value
		}
	}
	return info
}

// installed writes down, at the first use of the store, what can never change after it, and compares at every later one.
func (db *DB) installed(ctx context.Context, n Needs) (Unfit, error) {
	meta := keys.Meta()
	want := map[string]string{"layout": layout, "homes": strconv.Itoa(n.Homes)}
	for field, value := range want {
		if err := db.Client.HSetNX(ctx, meta, field, value).Err(); err != nil {
			return nil, Fail("write the installation's record", err)
		}
	}
	have, err := db.Client.HGetAll(ctx, meta).Result()
	if err != nil {
		return nil, Fail("read the installation's record", err)
	}
	var unfit Unfit
	if have["layout"] != want["layout"] {
		unfit = append(unfit, fmt.Sprintf("the store has layout %s and this release reads layout %s; run the release that made it", have["layout"], want["layout"]))
	}
	if have["homes"] != want["homes"] {
		unfit = append(unfit, fmt.Sprintf("the store was first used with %s room homes and the setting says %s; set PARLOR_ROOM_HOMES=%s", have["homes"], want["homes"], have["homes"]))
	}
	return unfit, nil
}
