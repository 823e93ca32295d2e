package leaderboards

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/money/prizes"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/domaintest"
	"github.com/parlor-games/parlor/tests/testkit"
	"golang.org/x/sync/errgroup"
)

// manyBoards is how many boards the busy game of BenchmarkPrizesBesideManyBoards has.
const manyBoards = 20_000

// everyGame are people for whom each game is there.
type everyGame struct{ *people }

func (e everyGame) Find(ctx context.Context, id int64) (games.Game, error) {
	game, err := e.people.Find(ctx, e.GameID)
	game.ID = id
	return game, err
}

// BenchmarkPrizesBesideManyBoards reports how long after the end of a season its winner has the
// prize: the median and the longest of four seasons that end by the clock, on two nodes. Another
// game has no boards, or 20,000 with prizes whose seasons have all ended when the leader begins.
func BenchmarkPrizesBesideManyBoards(b *testing.B) {
	for _, boards := range []int{0, manyBoards} {
		b.Run(fmt.Sprint("boards-of-another-game=", boards), func(b *testing.B) {
			for b.Loop() {
				measurePrizes(b, boards)
			}
		})
	}
}

func measurePrizes(b *testing.B, boards int) {
	const (
		seasons  = 4
		interval = 3700 * time.Millisecond // no multiple of the second in which the leader works
	)
	busy, f := newTwoGames(b)
	busy.makePrizeBoards(b, boards)
	began := testkit.Must(f.store.now(b.Context()))(b)
	busy.eachBoard(boards, func(key string) { busy.setBoundariesOf(key, began) })
	f.create(Definition{Prizes: table(PrizeRow{FromPlace: 1, ToPlace: 1, Prize: "10"})})
	now := testkit.Must(f.store.now(b.Context()))(b)
	var ends []int64 // ms
	for n := range time.Duration(seasons) {
		ends = append(ends, now+(2*time.Second+n*interval).Milliseconds())
	}
	f.setBoundaries(ends...)
	nodes := []*Service{f.node(Options{}), f.node(Options{})}
	ctx, stop := context.WithCancel(b.Context())
	var leaders sync.WaitGroup
	for _, node := range nodes {
		leaders.Go(func() { _ = node.Run(ctx) })
	}
	f.Service = nodes[0] // the one that made the board has other boundaries
	var waits []time.Duration
	for n, end := range ends {
		winner := int64(n + 1)
		f.mustSend(winner, "1")
		redistest.Eventually(b, "the winner has the prize", func() bool {
			balance, err := f.wallets.ReadBalance(ctx, f.gameID, winner, "GOLD")
			return err == nil && balance.SpendableUnits == 1000
		})
		waits = append(waits, time.Since(time.UnixMilli(end)))
	}
	left := f.db.Client.ZCount(ctx, keys.BoardsDue(busy.gameID), "-inf", strconv.FormatInt(ends[seasons-1], 10)).Val()
	stop()
	leaders.Wait()
	slices.Sort(waits)
	reportMS(b, waits[seasons/2], "ms-until-paid-in-the-median")
	reportMS(b, waits[seasons-1], "ms-until-paid-at-most")
	b.ReportMetric(float64(left), "boards-still-due")
}

// newTwoGames returns two games of a store of its own. Each of their services keeps the boards of
// both.
func newTwoGames(b *testing.B) (busy, other *prizeFixture) {
	b.Helper()
	db := testkit.Must(redisdb.Open(redistest.StartForTest(b).URL()))(b)
	b.Cleanup(func() { _ = db.Close() })
	testkit.Check(b, db.Client.Set(b.Context(), keys.GameIDCounter(), 2, 0).Err())
	all := everyGame{newPeople(2)}
	all.Settings.Quotas.Boards = manyBoards
	wallets := wallet.New(db, all, wallet.Options{})
	money := domaintest.NewMoney(b, db, wallets, 1, wallet.TokenDefinition{Code: "GOLD"})
	game := func(id int64) *prizeFixture {
		service := New(db, all, all, Options{Prizes: prizes.New(db, wallets)})
		return &prizeFixture{&fixture{b, service, all.people, id, db}, wallets, money}
	}
	return game(1), game(2)
}

// makePrizeBoards makes boards whose prizes are set aside and
func (f *prizeFixture) makePrizeBoards(b *testing.B, count int) {
	b.Helper()
	f.eachBoard(count, func(key string) {
		d := Definition{Board: key, Name: "B", Prizes: table(PrizeRow{FromPlace: 1, ToPlace: 1, Prize: "10"})}
		testkit.Report(b, testkit.ErrorOf(f.Create(b.Context(), operator, f.gameID, d)))
	})
}

// eachBoard calls do with the keys of boards, of some at once.
func (f *prizeFixture) eachBoard(count int, do func(key string)) {
	var group errgroup.Group
	group.SetLimit(32)
	for i := range count {
		group.Go(func() error {
			do(fmt.Sprint("b", i))
			return nil
		})
	}
	_ = group.Wait()
}
