package leaderboards

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

const (
	liveBoards = 100
	liveNodes  = 10
)

// BenchmarkLive reports what watched boards cost the store: the share of its CPU time that ten
// nodes with a hundred boards each take, while no board changes, and what one look at a board costs
// and a score with the reading of the first 100 entries that it has changed, beside plain commands
// of the same run.
func BenchmarkLive(b *testing.B) {
	server := redistest.StartForTest(b)
	db := testkit.Must(redisdb.Open(server.URL()))(b)
	b.Cleanup(func() { _ = db.Close() })
	ctx := b.Context()
	p := newPeople(1)
	service := New(db, p, p, Options{})
	f := &fixture{b, service, p, p.GameID, db}
	a := &audience{views: map[View]bool{{Top: MaxLiveTop}: true}}
	live := service.NewLive(a)
	for n := range liveBoards {
		key := fmt.Sprint("b", n)
		testkit.Must(service.Create(ctx, f.server(), 1, Definition{Board: key, Name: key}))(b)
		for id := int64(1); id <= MaxLiveTop; id++ {
			in := SubmitInput{UserID: id, Score: ScoreInput(strconv.FormatInt(id, 10))}
			testkit.Must(service.Submit(ctx, f.server(), 1, key, in, idempotency.Receipt{}))(b)
		}
		begin := func(LiveSnapshot) error { return nil }
		testkit.Check(b, live.Watch(ctx, f.player(1), 1, key, View{Top: MaxLiveTop}, begin))
	}
	const looks = 400
	cpu := func(do func()) float64 { // µs of the store's main thread while do runs
		before := redistest.CPUTime(b, db)
		do()
		return redistest.CPUTime(b, db) - before
	}
	// As many in a round trip as boards are looked at.
	floors := redistest.Floors{DB: db, Members: 10_000, AtOnce: liveBoards}
	for b.Loop() {
		idle := cpu(func() {
			for range looks {
				live.tick(ctx)
			}
		}) / looks / liveBoards
		top := live.boards[boardID{1, "b0"}]
		changed := cpu(func() {
			for n := range looks {
				in := SubmitInput{UserID: 1, Score: ScoreInput(strconv.Itoa(1000 + n))}
				testkit.Must(service.Submit(ctx, f.server(), 1, "b0", in, idempotency.Receipt{}))(b)
				testkit.Check(b, live.refresh(ctx, top, false))
			}
		}) / looks
		share := idle * liveBoards * liveNodes * float64(time.Second/liveInterval) / 1e6
		b.ReportMetric(share*100, "%-of-the-store")
		floors.Compare(b, "look", 3, func() float64 { return idle })
		floors.Compare(b, "score-and-reading", 3, func() float64 { return changed })
	}
}
