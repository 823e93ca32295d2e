package redisdb_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
)

func TestNothingNewIsAdmittedAboveTheWatermark(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		var log strings.Builder
		watch := redisdb.NewWatermark(slog.New(slog.NewTextHandler(&log, nil)))
		prober := db.NewProber(redisdb.Requirements{})
		read := func() error {
			t.Helper()
			watch.Update(prober.Probe(t.Context()))
			return watch.AdmitNew()
		}
		if err := watch.AdmitNew(); err != nil {
			t.Errorf("before the first read: %v", err)
		}
		if err := read(); err != nil {
			t.Errorf("without maxmemory, at %d %% of 80 %% of the machine: %v", watch.PercentUsed(), err)
		}
		redistest.Fill(t, db)
		if err := read(); !errors.Is(err, apierror.StoreFull) || watch.PercentUsed() <= 85 {
			t.Errorf("at %d %% of maxmemory: %v, want store_full", watch.PercentUsed(), err)
		}
		_ = read()
		redistest.Unfill(t, db)
		if err := read(); err != nil {
			t.Errorf("with memory again: %v", err)
		}
		if n := strings.Count(log.String(), "nothing new is admitted"); n != 1 {
			t.Errorf("the log reports it %d times: %s", n, log.String())
		}
	})
}

func TestAServerThatIsLostDoesNotEmptyTheWatermark(t *testing.T) {
	watch := redisdb.NewWatermark(slog.New(slog.DiscardHandler))
	watch.Update([]redisdb.MasterHealth{{Reached: true, MemoryPercent: 86}, {}})
	watch.Update([]redisdb.MasterHealth{{}, {}})
	if err := watch.AdmitNew(); !errors.Is(err, apierror.StoreFull) {
		t.Errorf("%v at %d %%, want store_full", err, watch.PercentUsed())
	}
}
