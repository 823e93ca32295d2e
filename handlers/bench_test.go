package handlers_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
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
