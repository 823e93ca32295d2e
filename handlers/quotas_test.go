package handlers_test

import (
	"fmt"
	"testing"

	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
)

// newFixtureWithQuotas returns a node on a store with these limits and no others.
func newFixtureWithQuotas(t *testing.T, db *redisdb.DB, limits ratelimit.Limits) *fixture {
	return newFixtureOn(t, db, func(d *handlers.Deps) { d.Limiter = ratelimit.New(db, limits) }).createGame()
}

func (f *fixture) expectLimit(limit string, most int64, method, path, token, body string, headers ...string) {
	f.t.Helper()
	r := f.expectError(409, "limit_reached", method, path, token, body, headers...)
	if r.text("limit") != limit || r.id("max") != most || r.header.Get("Retry-After") == "" ||
		r.text("retryAfterSeconds") != r.header.Get("Retry-After") {
		f.t.Errorf("%s %s: %s, Retry-After %q", method, path, r.raw, r.header.Get("Retry-After"))
	}
}

func TestAKeyTooManyIsRefused(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		const session = "/api/v1/game-session/"
		f := newFixtureWithQuotas(t, db, ratelimit.Limits{
			ratelimit.KeyedRequests: {PerDay: 10, Burst: 4, Scope: ratelimit.ScopeUser},
			ratelimit.KeyedSignIns:  {PerDay: 10, Burst: 2, Scope: ratelimit.ScopeAddress},
		})
		ann, bob := f.guest("Ann"), f.guest("Bob")
		room := f.createRoom(ann)
		ready := func(value bool) string { return fmt.Sprintf(`{"roomId":%q,"ready":%t}`, room, value) }
		friend := fmt.Sprint("/api/v1/friends/", bob.id)
		f.expect(200, "POST", friend, ann.token, "", "Idempotency-Key", "friend")
		for i := range 3 {
			f.expect(200, "POST", session+"ready", ann.token, ready(i%2 == 0), "Idempotency-Key", fmt.Sprint("k", i))
		}
		f.expectLimit("keyed_requests", 4, "POST", session+"ready", ann.token, ready(false), "Idempotency-Key", "k3")
		f.expectLimit("keyed_requests", 4, "POST", friend+"/block", ann.token, "", "Idempotency-Key", "block")
		if seat := f.expect(200, "GET", session+"get?roomId="+room, ann.token, ""); seat.text("version") != "4" {
			t.Errorf("what was refused changed the room: %s", seat.raw)
		}

		// What was made before is answered, without a key everything goes on, and so does what must.
		for key, call := range map[string][2]string{"k0": {session + "ready", ready(true)}, "friend": {friend, ""}} {
			again := f.expect(200, "POST", call[0], ann.token, call[1], "Idempotency-Key", key)
			if again.header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("%s is not replayed: %s", key, again.raw)
			}
		}
		f.expectError(422, "idempotency_key_reused", "POST", session+"ready", ann.token, ready(false),
			"Idempotency-Key", "k0")
		f.expect(200, "POST", session+"ready", ann.token, ready(false))
		f.expect(200, "POST", session+"join", bob.token, roomBody(room), "Idempotency-Key", "his-own")
		f.expect(200, "POST", session+"leave", ann.token, roomBody(room), "Idempotency-Key", "leave")
		sword := f.createSword()
		for i := range 3 {
			f.expect(201, "POST", fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", sword), ann.token, "",
				"Idempotency-Key", fmt.Sprint("buy", i))
			f.expect(200, "POST", fmt.Sprintf("/api/v1/admin/users/%d/credit", ann.id), f.serverKey,
				`{"tokenId":"GOLD","amount":1,"reason":"x"}`, "Idempotency-Key", fmt.Sprint("credit", i))
		}

		guest := func(n int) string {
			return fmt.Sprintf(`{"gameId":%d,"deviceSecret":"the secret of a device: %013d"}`, f.game, n)
		}
		for n := range 2 {
			f.expect(201, "POST", "/api/v1/auth/guest", "", guest(n), "Idempotency-Key", "g")
		}
		f.expectLimit("keyed_requests", 2, "POST", "/api/v1/auth/guest", "", guest(2), "Idempotency-Key", "g")
		f.expect(201, "POST", "/api/v1/auth/guest", "", guest(2))
	})
}

func TestTheRoomsAndSeatsOfADayAreBounded(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		const session = "/api/v1/game-session/"
		f := newFixtureWithQuotas(t, db, ratelimit.Limits{
			ratelimit.Rooms: {PerDay: 10, Burst: 2, Scope: ratelimit.ScopeUser},
			ratelimit.Joins: {PerDay: 10, Burst: 1, Scope: ratelimit.ScopeUser},
		})
		ann, bob := f.guest("Ann"), f.guest("Bob")
		body := fmt.Sprintf(`{"entryTokenId":%d,"roomEntry":2.5,"maxPlayers":4}`, f.gold)
		first := f.expect(201, "POST", session+"create", ann.token, body, "Idempotency-Key", "first")
		second := f.createRoom(ann)
		f.expectLimit("rooms_a_day", 2, "POST", session+"create", ann.token, body)
		f.expectLimit("rooms_a_day", 2, "POST", session+"create", ann.token, body, "Idempotency-Key", "third")
		again := f.expect(201, "POST", session+"create", ann.token, body, "Idempotency-Key", "first")
		if again.text("roomId") != first.text("roomId") {
			t.Errorf("the same key opens %s", again.raw)
		}
		f.expect(200, "POST", "/join", bob.token, roomBody(second))
		f.expectLimit("joins_a_day", 1, "POST", "/join", bob.token, roomBody(first.text("roomId")))
		f.expectLimit("rooms_a_day", 2, "POST", session+"rematch", ann.token, roomBody(second))
		f.expectBalance(ann, "9500+500")
	})
}
