package presence_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/players/presence"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// cpuOf returns the CPU time that the store has used so far.
func cpuOf(b *testing.B, db *redisdb.DB) (used time.Duration) {
	b.Helper()
	info := testkit.Must(db.Client.Info(b.Context(), "cpu").Result())(b)
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_sys" || name == "used_cpu_user" {
			seconds := testkit.Must(strconv.ParseFloat(value, 64))(b)
			used += time.Duration(seconds * float64(time.Second))
		}
	}
	return used
}

// BenchmarkStoreOf10000IdleSockets reports what part of a core the store uses for 10,000 players in
// 2,500 rooms, on one node, who do nothing; how much of that it uses without any; and what it costs
// that all of them come.
func BenchmarkStoreOf10000IdleSockets(b *testing.B) {
	store := redistest.StartForTest(b)
	db := testkit.Must(redisdb.Open(store.URL()))(b)
	b.Cleanup(func() { _ = db.Close() })
	f := newFixture(b, db)
	var list []*room
	for range 2500 {
		list = append(list, f.newRoom(4))
	}
	const window = 30 * time.Second // half of what each room is repeated in
	measure := func(d time.Duration) float64 {
		before := cpuOf(b, db)
		wait(d)
		return 100 * float64(cpuOf(b, db)-before) / float64(d)
	}
	empty := measure(5 * time.Second)
	n := startNodeOn(b, db, presence.Options{})
	before := cpuOf(b, db)
	for _, r := range list {
		for player := range r.players {
			n.open(r, player)
		}
	}
	redistest.Eventually(b, "all are announced", func() bool { return n.Connected() == 10_000 })
	arrival := cpuOf(b, db) - before
	wait(time.Minute) // until the first room is repeated
	for b.Loop() {
		b.ReportMetric(measure(window), "%core/idle")
	}
	b.ReportMetric(empty, "%core/empty")
	b.ReportMetric(float64(arrival.Microseconds())/10_000, "µs/arrival")
}
