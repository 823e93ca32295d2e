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

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/redis/go-redis/v9"
)

// Requirements are what a node requires of the store before it serves.
type Requirements struct {
	MaxWait    time.Duration // how long to wait for a store that cannot be reached
	Durable    bool          // an acknowledged change must survive a crash of the store
	Replicas   int           // how many replicas of each master must have an acknowledged change; 0: none
	FreeShards int           // number of shards for free rooms
}

// RequirementError lists the requirements that a store does not meet, each with what to set.
type RequirementError []string

func (e RequirementError) Error() string { return strings.Join(e, "\n") }

const (
	minMajorVersion = 7 // of Redis
	pingInterval    = 100 * time.Millisecond
)

// CheckRequirements waits for the store and returns a RequirementError when it could lose money, or
// was first used with another number of shards. It returns store_unavailable when the store cannot
// be reached in time or is not ready, such as a Cluster without all slots or a replica that may be
// promoted.
func (db *DB) CheckRequirements(ctx context.Context, required Requirements) error {
	if err := db.waitUntilReachable(ctx, required.MaxWait); err != nil {
		return err
	}
	unmet, err := db.checkServers(ctx, required)
	if err != nil {
		return err
	}
	if err := db.checkSlots(ctx); err != nil && len(unmet) == 0 {
		return err
	}
	mismatches, err := db.checkInstallation(ctx, required)
	if err != nil && len(unmet) == 0 {
		return err
	}
	if unmet = append(unmet, mismatches...); len(unmet) > 0 {
		return unmet
	}
	return nil
}

// waitUntilReachable pings the store until it replies. It returns errors that waiting does not cure
// at once.
func (db *DB) waitUntilReachable(ctx context.Context, limit time.Duration) error {
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	for {
		err := db.Ping(ctx)
		if err != nil && strings.Contains(err.Error(), noClusterText) {
			return RequirementError{"the store is not a Cluster; set redis:// in PARLOR_REDIS_URL"}
		}
		if cluster, ok := db.Client.(*redis.ClusterClient); ok && err != nil {
			cluster.ReloadState(ctx) // go-redis believes for a while that there are no nodes
		}
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

// checkServers checks every server that accepts writes.
func (db *DB) checkServers(ctx context.Context, required Requirements) (RequirementError, error) {
	var unmet RequirementError
	var waiting error
	err := db.inspectServers(ctx, func(address string, info map[string]string, replay []string) {
		if role := info["role"]; role != "master" {
			waiting = fmt.Errorf("%w (the store %s is a replica (role %q) and accepts no writes until it is promoted; "+
				"if it never is, set the address of the master)", apierror.StoreUnavailable, address, role)
		}
		for _, problem := range slices.Concat(checkInfo(info, required), checkMode(info, db.kind), replay) {
			unmet = append(unmet, "the store "+address+" "+problem)
		}
	})
	slices.Sort(unmet)
	if len(unmet) == 0 && err == nil {
		err = waiting
	}
	return unmet, err
}

// inspectServers calls add, one call at a time, with the INFO of every server that accepts writes,
// and what keeps it from reading back its append-only file.
func (db *DB) inspectServers(
	ctx context.Context, add func(address string, info map[string]string, replay []string),
) error {
	var mu sync.Mutex
	return db.forEachServer(ctx, func(ctx context.Context, server *redis.Client) error {
		text, err := server.Info(ctx).Result()
		if err != nil {
			return WrapError("read INFO of "+server.Options().Addr, err)
		}
		info := parseInfo(text)
		replay, err := checkReplay(ctx, server, info)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		add(server.Options().Addr, info, replay)
		return nil
	})
}

// forEachServer calls f with every server that accepts writes, at once. The embedded store has
// none: it knows no INFO, evicts nothing and promises nothing.
func (db *DB) forEachServer(ctx context.Context, f func(context.Context, *redis.Client) error) error {
	switch client := db.Client.(type) {
	case *redis.ClusterClient:
		return client.ForEachMaster(ctx, f)
	case *redis.Client:
		if db.kind != KindEmbedded {
			return f(ctx, client)
		}
	}
	return nil
}

// noClusterText is in the error of a server that is not part of a Cluster.
const noClusterText = "cluster support disabled"

// slotCount is the number of slots of every Cluster.
const slotCount = 16384

// checkSlots returns store_unavailable for a Cluster in which some slots have no master: it is
// still forming.
func (db *DB) checkSlots(ctx context.Context) error {
	cluster, ok := db.Client.(*redis.ClusterClient)
	if !ok {
		return nil
	}
	//lint:ignore SA1019 the client reads the slots in the same way, and they must agree
	ranges, err := cluster.ClusterSlots(ctx).Result()
	if err != nil {
		return WrapError("read the slots of the Cluster", err)
	}
	served := 0
	for _, r := range ranges {
		served += r.End - r.Start + 1
	}
	if served != slotCount {
		cluster.ReloadState(ctx) // go-redis believes for a while what it read first
		return fmt.Errorf("%w (the Cluster is still forming: %d of %d slots have a master)",
			apierror.StoreUnavailable, served, slotCount)
	}
	return nil
}

// checkMode returns what is wrong with a server for an address of a kind.
func checkMode(info map[string]string, kind Kind) (problems []string) {
	if kind != KindCluster && info["redis_mode"] == "cluster" {
		problems = append(problems, "is part of a Cluster; set redis-cluster:// in PARLOR_REDIS_URL")
	}
	return problems
}

// checkInfo returns the requirements that a server with this INFO does not meet, whatever its role.
func checkInfo(info map[string]string, required Requirements) (problems []string) {
	version := info["redis_version"]
	major, _, _ := strings.Cut(version, ".")
	if number, _ := strconv.Atoi(major); number < minMajorVersion {
		problems = append(problems, fmt.Sprintf("is Redis %q; Parlor needs %d.0 or newer", version, minMajorVersion))
	}
	if bits := info["arch_bits"]; bits != "64" {
		problems = append(problems, fmt.Sprintf("is built for %s bits, where scripts cannot print large amounts; "+
			"use a build for 64 bits", bits))
	}
	if policy := info["maxmemory_policy"]; policy != "noeviction" {
		problems = append(problems, fmt.Sprintf("would lose balances when its memory is full (maxmemory-policy %s); "+
			"set maxmemory-policy noeviction", policy))
	}
	if required.Durable && info["aof_enabled"] != "1" {
		problems = append(problems, "loses acknowledged money when it restarts; "+
			"set appendonly yes (and appendfsync always, to lose nothing in a power cut)")
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

// checkInstallation stores, at the first use of the store, what can never change after it, and
// compares with it at every later one.
func (db *DB) checkInstallation(ctx context.Context, required Requirements) (RequirementError, error) {
	meta := keys.Meta()
	layout := NewestLayout()
	if known := db.Layout(); readable.problem(known) == "" { // of the store before it was emptied
		layout = known
	}
	want := map[string]string{
		keys.MetaLayoutField: strconv.Itoa(layout), keys.MetaShardsField: strconv.Itoa(required.FreeShards),
	}
	have, err := db.Client.HGetAll(ctx, meta).Result()
	if err != nil {
		return nil, WrapError("read the installation's record", err)
	}
	for field, value := range want {
		if have[field] != "" { // a full store refuses to write, and a node must start there too
			continue
		}
		if err := db.Client.HSetNX(ctx, meta, field, value).Err(); err != nil {
			return nil, WrapError("write the installation's record", err)
		}
		if have[field], err = db.Client.HGet(ctx, meta, field).Result(); err != nil {
			return nil, WrapError("read the installation's record", err)
		}
	}
	var mismatches RequirementError
	if err := db.setLayout(have[keys.MetaLayoutField]); err != nil {
		mismatches = append(mismatches, err.Error())
	}
	if shards := have[keys.MetaShardsField]; shards != want[keys.MetaShardsField] {
		mismatches = append(mismatches, fmt.Sprintf("the store was first used with %s room shards and the setting is %d; "+
			"set PARLOR_ROOM_SHARDS=%s", shards, required.FreeShards, shards))
	}
	return mismatches, nil
}
