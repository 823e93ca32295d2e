package usage_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/players/usage"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// quotas are the bytes that the operator set for games.
type quotas map[int64]int64

func (q quotas) Find(_ context.Context, id int64) (games.Game, error) {
	settings := games.DefaultSettings()
	settings.Quotas.Bytes = q[id]
	return games.Game{ID: id, Settings: settings}, nil
}

// Game 1 has some 30 MB in keys of all kinds, game 2 a tenth of that, and the ledger of game 3 is
// one large key.
func TestWhatGamesHaveIsEstimated(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		ctx := t.Context()
		kilobyte := strings.Repeat("x", 1000)
		fill := func(game, count int64) {
			testkit.Must(db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
				for i := range count {
					user := game*1_000_000 + i
					p.HSet(ctx, keys.User(user), "game", game, "username", kilobyte)
					p.HSet(ctx, keys.Save(user, game, "main"), "1", kilobyte)
					p.HSet(ctx, keys.Asset(game, i), "meta", kilobyte)
				}
				return nil
			}))(t)
		}
		fill(1, 5_000)
		fill(2, 500)
		fill(3, 50)
		for range 50 {
			entries := make([]any, 100)
			for i := range entries {
				entries[i] = kilobyte
			}
			testkit.Check(t, db.Client.RPush(ctx, keys.Ledger(3), entries...).Err())
		}
		memory := redisdb.NewWatermark(slog.New(slog.DiscardHandler))
		const bound = 10_000_000
		s := usage.New(db, quotas{1: bound}, memory, slog.New(slog.DiscardHandler))
		for range 12 { // as in twelve seconds, by whichever node
			testkit.Check(t, db.Client.Del(ctx, keys.Lock("usage")).Err())
			testkit.Check(t, s.EstimateOnce(ctx))
		}
		for game, want := range map[int64]int64{1: 18_000_000, 2: 1_800_000, 3: 5_700_000} {
			have, err := db.Client.HGet(ctx, keys.GameBytes(), fmt.Sprint(game)).Int64()
			if err != nil || have < want*7/10 || have > want*13/10 {
				t.Errorf("game %d has %d bytes by the estimate, %v; want about %d", game, have, err, want)
			}
		}
		testkit.Check(t, s.Read(ctx))
		err := s.AdmitNew(1)
		if refused, _ := apierror.As(err); !errors.Is(err, apierror.LimitReached) ||
			refused.ExtraMembers["limit"] != "bytes" || refused.ExtraMembers["max"] != int64(bound) {
			t.Errorf("over the bytes that the operator set: %v", err)
		}
		for _, game := range []int64{2, 3} {
			testkit.Report(t, s.AdmitNew(game), "game %d", game)
		}
		memory.Update([]redisdb.MasterHealth{{Reached: true, MemoryPercent: 86}})
		if err := s.AdmitNew(2); err != nil {
			t.Errorf("above the watermark game 2 gets %v, though game 1 is over its share", err)
		}
	})
}
