package redisdb

import (
	"context"
	"log/slog"
	"strconv"
	"sync/atomic"

	"github.com/parlor-games/parlor/internal/apierror"
)

// The watermark of the store's memory.
const (
	WatermarkPercent = 85 // of the limit of a server; above it nothing new is admitted
	unlimitedPercent = 80 // of its machine's memory: the limit of a server without maxmemory
)

// Watermark decides whether the store has memory for what is new. It is safe for concurrent use.
type Watermark struct {
	log     *slog.Logger
	percent atomic.Int64 // of the fullest server
}

// NewWatermark returns a watermark that takes the store for empty until the first Update.
func NewWatermark(log *slog.Logger) *Watermark { return &Watermark{log: log} }

// Update takes over what a probe has found. A server that was not reached changes nothing.
func (w *Watermark) Update(probed []MasterHealth) {
	fullest, known := int64(0), false
	for _, p := range probed {
		known = known || p.Reached
		fullest = max(fullest, int64(p.MemoryPercent))
	}
	if !known {
		return
	}
	if wasFull := w.percent.Swap(fullest) > WatermarkPercent; wasFull != (fullest > WatermarkPercent) {
		level, message := slog.LevelInfo, "the store has memory again"
		if !wasFull {
			level, message = slog.LevelWarn, "the store is nearly full: nothing new is admitted"
		}
		w.log.LogAttrs(context.Background(), level, message, slog.Int64("percent", fullest))
	}
}

// PercentUsed returns how much of its limit the fullest server of the store has used.
func (w *Watermark) PercentUsed() int64 { return w.percent.Load() }

// AdmitNew returns store_full while the store is too full for what is new.
func (w *Watermark) AdmitNew() error {
	if w.percent.Load() > WatermarkPercent {
		return apierror.StoreFull
	}
	return nil
}

// memoryInUse returns the memory in use in percent of the limit: of maxmemory, or of a share of the
// machine's when there is none.
func memoryInUse(info map[string]string) (percent int, isLimited bool) {
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(info[name], 10, 64)
		return n
	}
	limit := number("maxmemory")
	isLimited = limit > 0
	if !isLimited {
		limit = number("total_system_memory") / 100 * unlimitedPercent
	}
	if limit > 0 {
		percent = int(number("used_memory") * 100 / limit)
	}
	return percent, isLimited
}
