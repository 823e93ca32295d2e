package rooms_test

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
)

// BenchmarkACycle is create, join, leave, leave of a paid room; store-µs is the CPU time that the store spends on it.
func BenchmarkACycle(b *testing.B) {
	h := newHouse(b, redistest.Single(b))
	first, second := h.player(1000), h.player(1000)
	ctx := b.Context()
	before := h.storeTime(b)
	b.ReportAllocs()
	for b.Loop() {
		room := does(b)(h.rooms.Create(ctx, first, h.paid("1", 8), noKey))
		does(b)(h.rooms.Join(ctx, second, room.RoomID, noKey))
		does(b)(h.rooms.Leave(ctx, first, room.RoomID, noKey))
		does(b)(h.rooms.Leave(ctx, second, room.RoomID, noKey))
	}
	b.ReportMetric((h.storeTime(b)-before)/float64(b.N), "store-µs/op")
}

// BenchmarkJoin seats a second player.
func BenchmarkJoin(b *testing.B) {
	h := newHouse(b, redistest.Single(b))
	ctx := b.Context()
	host, p := h.player(1_000_000_000), h.player(1_000_000_000)
	ids := make([]string, b.N)
	for i := range ids {
		ids[i] = does(b)(h.rooms.Create(ctx, host, h.paid("0.01", 8), noKey)).RoomID
	}
	before := h.storeTime(b)
	b.ResetTimer()
	b.ReportAllocs()
	for _, id := range ids {
		does(b)(h.rooms.Join(ctx, p, id, noKey))
	}
	b.ReportMetric((h.storeTime(b)-before)/float64(b.N), "store-µs/op")
}

// BenchmarkAppendJSON is the Room of the wire with eight seats.
func BenchmarkAppendJSON(b *testing.B) {
	h := newHouse(b, redistest.Single(b))
	room := does(b)(h.rooms.Create(b.Context(), h.player(1000), rooms.CreateInput{MaxPlayers: 8}, noKey))
	for range 7 {
		room = does(b)(h.rooms.Join(b.Context(), h.player(0), room.RoomID, noKey))
	}
	b.ReportAllocs()
	var text []byte
	for b.Loop() {
		text = room.AppendJSON(text[:0])
	}
}

var cpu = regexp.MustCompile(`used_cpu_(?:user|sys):([0-9.]+)`)

// storeTime is the CPU time that the store has used, in µs.
func (h *house) storeTime(b *testing.B) (µs float64) {
	text, err := h.db.Client.Info(b.Context(), "cpu").Result()
	if err != nil {
		b.Fatal(err)
	}
	for _, m := range cpu.FindAllStringSubmatch(text, -1) {
		seconds, _ := strconv.ParseFloat(m[1], 64)
		µs += seconds * 1e6
	}
	return µs
}
