package redisdb

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/redis/go-redis/v9"
)

// The watermark of the store's memory.
const (
	watermarkPercent    = 85 // of the limit of a server; above it nothing new is admitted
	unlimitedPercent    = 80 // of its machine's memory: the limit of a server without maxmemory
	memoryReadInterval  = time.Second
	memoryReadTimeout   = time.Second
	percentOfAWhole     = 100
	noMaxMemoryAdvice   = "has no maxmemory, so that its machine may run out of memory and kill it; set maxmemory"
	fieldUsedMemory     = "used_memory"
	fieldMaxMemory      = "maxmemory"
	fieldMachinesMemory = "total_system_memory"
)

// MemoryWatch knows how full the memory of the store is, from reading it once a second. It is safe
// for concurrent use.
type MemoryWatch struct {
	db      *DB
	log     *slog.Logger
	percent atomic.Int64 // of the fullest server
}

// NewMemoryWatch returns a watch that takes the store for empty until Run or Read.
func NewMemoryWatch(db *DB, log *slog.Logger) *MemoryWatch { return &MemoryWatch{db: db, log: log} }

// Run reads how full the store is each second until ctx ends. While the store cannot be reached,
// what was true is true.
func (w *MemoryWatch) Run(ctx context.Context) error {
	tick := time.NewTicker(memoryReadInterval)
	defer tick.Stop()
	for {
		_ = w.Read(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Read reads how full the store is. It returns store_unavailable.
func (w *MemoryWatch) Read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, memoryReadTimeout)
	defer cancel()
	var mu sync.Mutex
	var fullest int64
	err := w.db.eachWritableServer(ctx, func(ctx context.Context, server *redis.Client) error {
		text, err := server.Info(ctx, "memory").Result()
		if err != nil {
			return WrapError("read the memory of "+server.Options().Addr, err)
		}
		mu.Lock()
		defer mu.Unlock()
		fullest = max(fullest, percentUsed(parseInfo(text)))
		return nil
	})
	if err != nil {
		return err
	}
	if wasFull := w.percent.Swap(fullest) > watermarkPercent; wasFull != (fullest > watermarkPercent) {
		level, message := slog.LevelInfo, "the store has memory again"
		if !wasFull {
			level, message = slog.LevelWarn, "the store is nearly full: nothing new is admitted"
		}
		w.log.LogAttrs(ctx, level, message, slog.Int64("percent", fullest))
	}
	return nil
}

// PercentUsed returns how much of its limit the fullest server of the store has used.
func (w *MemoryWatch) PercentUsed() int64 { return w.percent.Load() }

// AdmitNew returns store_full while the store is too full for what is new.
func (w *MemoryWatch) AdmitNew() error {
	if w.percent.Load() > watermarkPercent {
		return apierror.StoreFull
	}
	return nil
}

// percentUsed returns how much of its limit a server with this INFO has used, 0 when INFO does not
// say.
func percentUsed(info map[string]string) int64 {
	limit, _ := strconv.ParseInt(info[fieldMaxMemory], 10, 64)
	if limit <= 0 {
		machine, _ := strconv.ParseInt(info[fieldMachinesMemory], 10, 64)
		limit = machine / percentOfAWhole * unlimitedPercent
	}
	used, _ := strconv.ParseInt(info[fieldUsedMemory], 10, 64)
	if limit <= 0 {
		return 0
	}
	return used * percentOfAWhole / limit
}

// Warnings returns what is allowed and unwise in the settings of the store's servers, sorted. It
// returns store_unavailable.
func (db *DB) Warnings(ctx context.Context) ([]string, error) {
	var mu sync.Mutex
	var warnings []string
	err := db.eachWritableServer(ctx, func(ctx context.Context, server *redis.Client) error {
		text, err := server.Info(ctx, "memory").Result()
		if err != nil {
			return WrapError("read the memory of "+server.Options().Addr, err)
		}
		mu.Lock()
		defer mu.Unlock()
		if parseInfo(text)[fieldMaxMemory] == "0" {
			warnings = append(warnings, fmt.Sprintf("the store %s %s", server.Options().Addr, noMaxMemoryAdvice))
		}
		return nil
	})
	slices.Sort(warnings)
	return warnings, err
}

// eachWritableServer calls visit with every server that accepts writes, with those of a Cluster at
// the same time. The embedded store has none: it has no INFO.
func (db *DB) eachWritableServer(
	ctx context.Context, visit func(ctx context.Context, server *redis.Client) error,
) error {
	switch client := db.Client.(type) {
	case *redis.ClusterClient:
		return client.ForEachMaster(ctx, visit)
	case *redis.Client:
		if db.kind != KindEmbedded {
			return visit(ctx, client)
		}
	}
	return nil
}
