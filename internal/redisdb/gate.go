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

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/redis/go-redis/v9"
)

// Requirements is what a node asks of the store before it serves.
type Requirements struct {
	Wait   time.Duration // for a store that cannot be reached
	Disk   bool          // an acknowledged change survives a crash of the store
	Shards int           // number of homes for free rooms
}

// RequirementError is all that makes a store unfit to keep money, each with what to set.
type RequirementError []string

func (u RequirementError) Error() string { return strings.Join(u, "\n") }

// layout is the number of the schema in package keys; it changes when old keys can no longer be read.
const layout = "1"

const (
	oldestMajor = 7
	gateTick    = 100 * time.Millisecond
)

// CheckRequirements waits for the store and refuses one that could lose money, or that was first used with another number of homes.
// A store that cannot be reached in time is apierror.StoreUnavailable; one that can and will not do is Unfit.
func (db *DB) CheckRequirements(ctx context.Context, n Requirements) error {
	if err := db.await(ctx, n.Wait); err != nil {
		return err
	}
	unfit, err := db.inspect(ctx, n)
	if err != nil {
		return err
	}
	mismatch, err := db.checkInstallation(ctx, n)
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
		if !errors.Is(err, apierror.StoreUnavailable) || time.Now().After(deadline) {
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
func (db *DB) inspect(ctx context.Context, n Requirements) (RequirementError, error) {
	var mu sync.Mutex
	var unfit RequirementError
	look := func(ctx context.Context, server *redis.Client) error {
		info, err := server.Info(ctx).Result()
		if err != nil {
			return WrapError("read INFO of "+server.Options().Addr, err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, problem := range check(parseInfo(info), n) {
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

// check tells what makes one server unfit.
func check(info map[string]string, n Requirements) (problems []string) {
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

// checkInstallation writes down, at the first use of the store, what can never change after it, and compares at every later one.
func (db *DB) checkInstallation(ctx context.Context, n Requirements) (RequirementError, error) {
	meta := keys.Meta()
	want := map[string]string{"layout": layout, "shards": strconv.Itoa(n.Shards)}
	for field, value := range want {
		if err := db.Client.HSetNX(ctx, meta, field, value).Err(); err != nil {
			return nil, WrapError("write the installation's record", err)
		}
	}
	have, err := db.Client.HGetAll(ctx, meta).Result()
	if err != nil {
		return nil, WrapError("read the installation's record", err)
	}
	var unfit RequirementError
	if have["layout"] != want["layout"] {
		unfit = append(unfit, fmt.Sprintf("the store has layout %s and this release reads layout %s; run the release that made it", have["layout"], want["layout"]))
	}
	if have["shards"] != want["shards"] {
		unfit = append(unfit, fmt.Sprintf("the store was first used with %s room shards and the setting says %s; set PARLOR_ROOM_SHARDS=%s", have["shards"], want["shards"], have["shards"]))
	}
	return unfit, nil
}
