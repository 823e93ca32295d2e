//go:build unix

package handlers_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/testkit"
)

// BenchmarkHotRoutes measures handlers and domains together, without a network to the client.
func BenchmarkHotRoutes(b *testing.B) {
	f := newGameFixture(b)
	ann := f.guest("Ann")
	room := f.createRoom(ann)
	gem := f.expect(201, "POST", fmt.Sprintf("/api/v1/admin/games/%d/assets", f.game), f.serverKey,
		`{"name":"Gem","tokenId":"GOLD","price":0}`).id("id")
	n := 0 // a key of its own for every request, however often a row is run
	for _, c := range []struct{ name, method, path, body string }{
		{"get", "GET", "/api/v1/game-session/get?roomId=" + room, ""},
		{"join", "POST", "/join", roomBody(room)},
		{"balances", "GET", "/api/v1/user-balance/token-balances", ""},
		{"purchase", "POST", fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", gem), `{"quantity":1}`},
		{"me", "GET", "/api/v1/me", ""},
		{"nothing", "GET", "/api/v1/nothing", ""},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
				r.Header.Set("Authorization", "Bearer "+ann.token)
				if c.body != "" {
					r.Header.Set("Content-Type", "application/json")
					r.Header.Set("Idempotency-Key", "key-"+strconv.Itoa(n))
				}
				n++
				got := httptest.NewRecorder()
				f.server.ServeHTTP(got, r)
				if got.Code != http.StatusOK && got.Code != http.StatusCreated && c.name != "nothing" {
					b.Fatal(got.Body.String())
				}
			}
		})
	}
}

// BenchmarkCycle measures what one cycle of make bench costs this process, without a network to the
// client: a room is created, and two players join and leave it, with the quotas of rooms as on a
// node with limits.
func BenchmarkCycle(b *testing.B) {
	db := redistest.Single(b)
	f := newFixtureOn(b, db, func(d *handlers.Deps) {
		d.Rooms = rooms.New(db, d.Wallet, d.Users, d.Games, rooms.Options{Quotas: rooms.DefaultQuotas()})
	}).createGame()
	ann, bob := f.guest("Ann"), f.guest("Bob")
	send := func(token, verb, body string) string {
		r := httptest.NewRequest("POST", "/api/v1/game-session/"+verb, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		got := httptest.NewRecorder()
		f.server.ServeHTTP(got, r)
		if got.Code != http.StatusOK && got.Code != http.StatusCreated {
			b.Fatal(got.Body.String())
		}
		return got.Body.String()
	}
	b.ReportAllocs()
	before := usedCPU(b)
	for b.Loop() {
		room := send(ann.token, "create", fmt.Sprintf(`{"entryTokenId":%d,"roomEntry":0.01,"maxPlayers":2}`, f.gold))
		_, id, _ := strings.Cut(room, `"roomId":"`)
		id, _, _ = strings.Cut(id, `"`)
		send(bob.token, "join", roomBody(id))
		send(bob.token, "leave", roomBody(id))
		send(ann.token, "leave", roomBody(id))
	}
	b.ReportMetric(float64((usedCPU(b)-before).Microseconds())/float64(b.N), "µs-CPU/op")
}

// usedCPU returns the CPU time that this process has used: the load of the machine counts less in
// it than in elapsed time.
func usedCPU(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	testkit.Check(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
