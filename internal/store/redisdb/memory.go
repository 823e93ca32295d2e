package redisdb

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/parlor-games/parlor/internal/base/apierror"
)

// The watermark of the store's memory.
const (
	// Above WatermarkPercent of a server's memory limit, the game that exceeds its share most
	// cannot create anything. Above sharePercent, no game that exceeds its share can; above
	// fullPercent, no game at all. If no game is known to exceed its share, no game can create
	// anything above WatermarkPercent.
	WatermarkPercent = 85
	sharePercent     = 88
	fullPercent      = 92

	unlimitedPercent = 80 // of its machine's memory: the limit of a server without maxmemory
)

// Watermark decides whether the store has memory for what is new. It is safe for concurrent use.
type Watermark struct {
	log     *slog.Logger
	percent atomic.Int64 // of the fullest server
	over    atomic.Pointer[[]int64]
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
			level, message = slog.LevelWarn, "the store is nearly full: nothing new is admitted in games over their share"
		}
		w.log.LogAttrs(context.Background(), level, message, slog.Int64("percent", fullest))
	}
}

// PercentUsed returns how much of its limit the fullest server of the store has used.
func (w *Watermark) PercentUsed() int64 { return w.percent.Load() }

// SetOverShare sets the games that use more than their share of the store, sorted by how far they
// exceed it, the worst first. The list is empty if this is unknown.
func (w *Watermark) SetOverShare(gameIDs []int64) { w.over.Store(&gameIDs) }

// IsNearlyFull reports whether the store is above its watermark.
func (w *Watermark) IsNearlyFull() bool { return w.percent.Load() > WatermarkPercent }

// AdmitNew returns store_full while the store is too full for what is new in a game.
func (w *Watermark) AdmitNew(gameID int64) error {
	if w.refusesNew(gameID) {
		return apierror.StoreFull
	}
	return nil
}

func (w *Watermark) refusesNew(gameID int64) bool {
	percent := w.percent.Load()
	if percent <= WatermarkPercent {
		return false
	}
	over := w.over.Load()
	switch {
	case percent > fullPercent || over == nil || len(*over) == 0:
		return true
	case percent > sharePercent:
		return slices.Contains(*over, gameID)
	}
	return (*over)[0] == gameID
}

// memoryInUse returns the memory in use in percent of the limit: of maxmemory, or of a share of the
// machine's when there is none.
func memoryInUse(info map[string]string) (percent int, isLimited bool) {
	limit, isLimited := memoryLimit(info)
	if limit > 0 {
		percent = int(infoNumber(info, "used_memory") * 100 / limit)
	}
	return percent, isLimited
}

// memoryLimit returns the limit of a server in bytes, 0 when nothing is known.
func memoryLimit(info map[string]string) (limit int64, isLimited bool) {
	if limit = infoNumber(info, "maxmemory"); limit > 0 {
		return limit, true
	}
	return infoNumber(info, "total_system_memory") / 100 * unlimitedPercent, false
}

func infoNumber(info map[string]string, name string) int64 {
	n, _ := strconv.ParseInt(info[name], 10, 64)
	return n
}
