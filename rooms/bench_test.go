package rooms_test

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/testkit"
)

// BenchmarkCreateJoinLeave is create, join, leave, leave of a paid room; store-µs is the CPU time
// that the store spends on it.
func BenchmarkCreateJoinLeave(b *testing.B) {
	f := newFixture(b, redistest.Single(b))
	first, second := f.newPlayer(1000), f.newPlayer(1000)
	ctx := b.Context()
	before := f.storeTime(b)
	b.ReportAllocs()
	for b.Loop() {
		room := must(b)(f.service.Create(ctx, first, f.paidRoom("1", 8), noKey))
		must(b)(f.service.Join(ctx, second, room.RoomID, noKey))
		must(b)(f.service.Leave(ctx, first, room.RoomID, noKey))
		must(b)(f.service.Leave(ctx, second, room.RoomID, noKey))
	}
	b.ReportMetric((f.storeTime(b)-before)/float64(b.N), "store-µs/op")
}

// BenchmarkJoin seats a second player.
func BenchmarkJoin(b *testing.B) {
	f := newFixture(b, redistest.Single(b))
	ctx := b.Context()
	host, p := f.newPlayer(1_000_000_000), f.newPlayer(1_000_000_000)
	ids := make([]string, b.N)
	for i := range ids {
		ids[i] = must(b)(f.service.Create(ctx, host, f.paidRoom("0.01", 8), noKey)).RoomID
	}
	before := f.storeTime(b)
	b.ResetTimer()
	b.ReportAllocs()
	for _, id := range ids {
		must(b)(f.service.Join(ctx, p, id, noKey))
	}
	b.ReportMetric((f.storeTime(b)-before)/float64(b.N), "store-µs/op")
}

// BenchmarkFinish compares the end of a paid room that feeds a leaderboard with the end of one that
// feeds nothing, and that with plain commands of the same run.
func BenchmarkFinish(b *testing.B) {
	f := newFixture(b, redistest.Single(b))
	ctx := b.Context()
	host, guest := f.newPlayer(1_000_000_000), f.newPlayer(1_000_000_000)
	const count, turns = 250, 4
	finish := func() float64 { // µs of the store
		ids := make([]string, count)
		for i := range ids {
			ids[i] = must(b)(f.service.Create(ctx, host, f.paidRoom("0.01", 2), noKey)).RoomID
			must(b)(f.service.Join(ctx, guest, ids[i], noKey))
			must(b)(f.service.Start(ctx, host, ids[i], noKey))
		}
		before := redistest.CPUTime(b, f.db)
		for _, id := range ids {
			must(b)(f.service.Finish(ctx, f.Server(), id, firstOf(host, guest), noKey))
		}
		return (redistest.CPUTime(b, f.db) - before) / count
	}
	for b.Loop() {
		var alone, feeding float64
		for range turns { // by turns, so that the load of the machine is the same for both
			f.Settings.Boards = nil
			alone += finish() / turns
			f.feedBoards()
			feeding += finish() / turns
		}
		floors := redistest.Floors{DB: f.db, Members: 10_000, AtOnce: 1}
		floors.Compare(b, "finish", 1, func() float64 { return alone })
		b.ReportMetric(feeding/alone, "feeding/finish")
	}
}

// BenchmarkAppendJSON is the Room of the wire with eight seats.
func BenchmarkAppendJSON(b *testing.B) {
	f := newFixture(b, redistest.Single(b))
	room := must(b)(f.service.Create(b.Context(), f.newPlayer(1000), rooms.CreateInput{MaxPlayers: 8}, noKey))
	for range 7 {
		room = must(b)(f.service.Join(b.Context(), f.newPlayer(0), room.RoomID, noKey))
	}
	b.ReportAllocs()
	var text []byte
	for b.Loop() {
		text = room.AppendJSON(text[:0])
	}
}

var cpu = regexp.MustCompile(`used_cpu_(?:user|sys):([0-9.]+)`)

// storeTime is the CPU time that the store has used, in µs.
func (f *fixture) storeTime(b *testing.B) (µs float64) {
	text := testkit.Must(f.db.Client.Info(b.Context(), "cpu").Result())(b)
	for _, m := range cpu.FindAllStringSubmatch(text, -1) {
		seconds, _ := strconv.ParseFloat(m[1], 64)
		µs += seconds * 1e6
	}
	return µs
}
