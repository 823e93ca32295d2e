package prizes

import (
	"slices"
	"strconv"
	"testing"

	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/domaintest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// BenchmarkHundredPayouts compares what the store does for a hundred prizes of players who have won
// before with a join of a paid room and plain commands of the same run. They take turns, and the
// ratios are medians: a neighbour that takes the machine for a while spoils some passes and not the
// ratios.
func BenchmarkHundredPayouts(b *testing.B) {
	f := newFixture(b, redistest.Single(b))
	ctx := b.Context()
	const passes, payments, joins = 9, 100, 1000 // payments and joins of a pass
	w := domaintest.NewPlayers(f.gameID)
	credit := func(user int64) principal.Caller {
		f.money.Credit("100000", user)
		return w.Player(user)
	}
	lines := make([]Line, linesAtOnce)
	for i := range lines {
		lines[i] = Line{UserID: int64(i + 1), Place: i + 1, Units: 100}
		credit(int64(i + 1))
	}
	service := rooms.New(f.db, f.wallets, w, w, rooms.Options{Shards: 1})
	host, guest := credit(1), credit(2)
	sources := 0
	measure := func(n int, call func(i int) error) float64 {
		before := redistest.CPUTime(b, f.db)
		for i := range n {
			testkit.Check(b, call(i))
		}
		return (redistest.CPUTime(b, f.db) - before) / float64(n)
	}
	pass := func() (pay, join float64) {
		names, ids := make([]string, payments), make([]string, joins)
		for i := range names {
			sources++
			names[i] = "tour:" + strconv.Itoa(sources)
			if ok, err := f.Fund(ctx, f.gameID, names[i], f.gold, 10_000, Mint, "op"); !ok || err != nil {
				b.Fatal(ok, err)
			}
			testkit.Check(b, f.Plan(ctx, f.gameID, names[i], lines))
		}
		for i := range ids {
			room := testkit.Must(service.Create(ctx, host, rooms.CreateInput{
				EntryTokenID: f.gold.ID, RoomEntry: "0.01", MaxPlayers: 8,
			}, noReceipt))(b)
			ids[i] = room.Room.RoomID
		}
		pay = measure(payments, func(i int) error {
			done, err := f.Pay(ctx, f.gameID, names[i])
			if err == nil && !done {
				b.Fatal("the prizes are not paid")
			}
			return err
		})
		join = measure(joins, func(i int) error {
			_, err := service.Join(ctx, guest, ids[i], noReceipt)
			return err
		})
		return pay, join
	}
	for range b.N {
		var joined, ratios []float64
		floors := redistest.Floors{DB: f.db, Members: 10_000, AtOnce: 1}
		floors.Compare(b, "100-payouts", passes, func() float64 {
			pay, join := pass()
			joined, ratios = append(joined, join), append(ratios, pay/join)
			return pay
		})
		b.ReportMetric(median(joined), "store-µs/join")
		b.ReportMetric(median(ratios), "joins")
		b.ReportMetric(slices.Max(ratios), "joins-worst-pass")
	}
}

func median(list []float64) float64 { return slices.Sorted(slices.Values(list))[len(list)/2] }
