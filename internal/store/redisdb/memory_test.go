package redisdb_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestNothingNewIsAdmittedAboveTheWatermark(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		var log strings.Builder
		watch := redisdb.NewWatermark(slog.New(slog.NewTextHandler(&log, nil)))
		prober := db.NewProber(redisdb.Requirements{})
		read := func() error {
			t.Helper()
			watch.Update(prober.Probe(t.Context()))
			return watch.AdmitNew(1)
		}
		testkit.Report(t, watch.AdmitNew(1), "before the first read")
		if err := read(); err != nil {
			t.Errorf("without maxmemory, at %d %% of 80 %% of the machine: %v", watch.PercentUsed(), err)
		}
		redistest.Fill(t, db)
		if err := read(); !errors.Is(err, apierror.StoreFull) || watch.PercentUsed() <= 85 {
			t.Errorf("at %d %% of maxmemory: %v, want store_full", watch.PercentUsed(), err)
		}
		_ = read()
		redistest.Unfill(t, db)
		testkit.Report(t, read(), "with memory again")
		if n := strings.Count(log.String(), "nothing new is admitted"); n != 1 {
			t.Errorf("the log reports it %d times: %s", n, log.String())
		}
	})
}

func TestAServerThatIsLostDoesNotEmptyTheWatermark(t *testing.T) {
	watch := redisdb.NewWatermark(slog.New(slog.DiscardHandler))
	watch.Update([]redisdb.MasterHealth{{Reached: true, MemoryPercent: 86}, {}})
	watch.Update([]redisdb.MasterHealth{{}, {}})
	if err := watch.AdmitNew(1); !errors.Is(err, apierror.StoreFull) {
		t.Errorf("%v at %d %%, want store_full", err, watch.PercentUsed())
	}
}

func TestTheGameMostOverItsShareIsTheFirstToGetNothingNew(t *testing.T) {
	const (
		greedy, large, small = 1, 2, 3
	)
	for _, test := range []struct {
		name    string
		percent int
		over    []int64
		admits  []int64
	}{
		{"below the watermark", 85, []int64{greedy, large}, []int64{greedy, large, small}},
		{"a little above it", 86, []int64{greedy, large}, []int64{large, small}},
		{"more above it", 89, []int64{greedy, large}, []int64{small}},
		{"nearly at the limit", 93, []int64{greedy, large}, nil},
		{"while no game is over its share", 86, nil, nil},
	} {
		watch := redisdb.NewWatermark(slog.New(slog.DiscardHandler))
		watch.Update([]redisdb.MasterHealth{{Reached: true, MemoryPercent: test.percent}})
		if test.over != nil {
			watch.SetOverShare(test.over)
		}
		for _, game := range []int64{greedy, large, small} {
			err := watch.AdmitNew(game)
			if admitted := err == nil; admitted != slices.Contains(test.admits, game) {
				t.Errorf("%s, game %d: %v", test.name, game, err)
			}
			if err != nil && !errors.Is(err, apierror.StoreFull) {
				t.Errorf("%s: %v; want store_full", test.name, err)
			}
		}
	}
}
