package prizes

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/games"
	"github.com/parlor-games/parlor/internal/principal"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/internal/users"
	"github.com/parlor-games/parlor/internal/wallet"
	"github.com/parlor-games/parlor/rooms"
)

// world is the players and the game of a room.
type world struct{ players }

func (w world) Find(_ context.Context, id int64) (games.Game, error) {
	return games.Game{ID: id, Settings: games.DefaultSettings()}, nil
}

func (world) CreatedAt(context.Context, int64) (time.Time, error) { return time.Now(), nil }

func (world) RecentProfile(_ context.Context, id int64) (users.Profile, error) {
	return users.Profile{ID: id, Username: "player " + strconv.FormatInt(id, 10)}, nil
}

func (world) AreFriends(context.Context, int64, ...int64) (map[int64]bool, error) { return nil, nil }

// BenchmarkHundredPayouts compares what the store does for a hundred prizes of players who have won
// before with a join of a paid room and plain commands of the same run.
func BenchmarkHundredPayouts(b *testing.B) {
	f := newFixture(b, redistest.Single(b))
	ctx := b.Context()
	const rounds = 200
	credit := func(user int64) principal.Caller {
		if _, err := f.wallets.Credit(ctx, operator, wallet.CreditInput{
			UserID: user, TokenCode: f.gold.Code, Amount: "100000", Reason: "test",
		}, noReceipt); err != nil {
			b.Fatal(err)
		}
		return principal.Caller{Role: principal.Player, UserID: user, GameID: f.gameID}
	}
	lines := make([]Line, linesAtOnce)
	for i := range lines {
		lines[i] = Line{UserID: int64(i + 1), Place: i + 1, Units: 100}
		credit(int64(i + 1))
	}
	w := world{players{f.gameID}}
	service := rooms.New(f.db, f.wallets, w, w, rooms.Options{Shards: 1})
	host, guest := credit(1), credit(2)
	for range b.N {
		sources := make([]string, rounds)
		for i := range sources {
			sources[i] = "tour:" + strconv.Itoa(b.N*rounds+i+1)
			if ok, err := f.Fund(ctx, f.gameID, sources[i], f.gold, 10_000, Mint, "op"); !ok || err != nil {
				b.Fatal(ok, err)
			}
			if err := f.Plan(ctx, f.gameID, sources[i], lines); err != nil {
				b.Fatal(err)
			}
		}
		before := redistest.CPUTime(b, f.db)
		for _, source := range sources {
			if done, err := f.Pay(ctx, f.gameID, source); !done || err != nil {
				b.Fatal(done, err)
			}
		}
		pay := redistest.CPUTime(b, f.db) - before
		ids := make([]string, 10*rounds)
		for i := range ids {
			room, err := service.Create(ctx, host, rooms.CreateInput{
				EntryTokenID: f.gold.ID, RoomEntry: "0.01", MaxPlayers: 8,
			}, noReceipt)
			if err != nil {
				b.Fatal(err)
			}
			ids[i] = room.Room.RoomID
		}
		before = redistest.CPUTime(b, f.db)
		for _, id := range ids {
			if _, err := service.Join(ctx, guest, id, noReceipt); err != nil {
				b.Fatal(err)
			}
		}
		join := (redistest.CPUTime(b, f.db) - before) / float64(len(ids))
		b.ReportMetric(join, "store-µs/join")
		b.ReportMetric(pay/rounds/join, "joins")
		floors := redistest.Floors{DB: f.db, Members: 10_000, AtOnce: 1}
		floors.Compare(b, "100-payouts", 1, func() float64 { return pay / rounds })
	}
}
