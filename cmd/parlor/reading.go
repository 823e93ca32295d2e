package main

import (
	"maps"
	"os"
	"runtime"
	"runtime/metrics"

	"github.com/google/uuid"
	"github.com/parlor-games/parlor/internal/ops/nodes"
)

// newNodes returns the service by which the node reports on itself.
func (n *node) newNodes() *nodes.Service {
	release, commit := version()
	host, _ := os.Hostname() // "" is shown as it is
	return nodes.New(n.db, nodes.Options{
		ID: uuid.NewString(), Host: host, Version: release, Commit: commit, Mode: n.settings.Durability,
		Read: n.read,
	})
}

// read measures the node.
func (n *node) read() nodes.Reading {
	sockets, moved := n.hub.Stats(), n.ledgers.Moved()
	r := nodes.Reading{
		Sockets: sockets.Clients, Topics: sockets.Topics, Players: n.presence.Connected(), Lag: sockets.PubSubLag,
		Goroutines: runtime.NumGoroutine(), Memory: memoryOfProcess(), Draining: n.apiServer.IsDraining(),
		Durability: n.apiServer.KeptDurability(),
		Deliveries: int64(sockets.EventDeliveries), LedgerEntries: moved.Entries,
		Moved: make(map[string]int64, len(moved.Units)),
	}
	r.Requests, r.Failures = n.apiServer.RequestCounts()
	maps.Copy(r.Moved, moved.Units)
	return r
}

// memoryOfProcess returns the bytes that the Go runtime has of the system and did not give back.
func memoryOfProcess() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}
