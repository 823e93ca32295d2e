package handlers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
)

// allowState lets players write the shared state of the fixture's rooms.
func (f *fixture) allowState(settings string) {
	f.t.Helper()
	f.expect(200, "PATCH", fmt.Sprintf("/api/v1/admin/games/%d", f.game), f.serverKey, `{"settings":`+settings+`}`)
}

// A shared state that two players write on two nodes, seen by who was away, by who comes later, and
// by HTTP.
func TestTheSharedStateOfARoomOnTwoNodes(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		f.allowState(`{"stateKeys":{"":"all","host.":"host","hand.":"owner"}}`)
		far := f.newNode()
		ann, bob := f.guest("Ann"), f.guest("Bob")
		room := f.expect(201, "POST", "/api/v1/game-session/create", ann.token, `{"maxPlayers":2}`).text("roomId")
		f.expect(200, "POST", "/join", bob.token, roomBody(room))
		a, b := f.dialRealtime(ann), far.dialRealtime(bob)
		a.subscribe(room, "")
		start := b.subscribe(room, "")
		if start.data("room.shared") != nil {
			t.Fatalf("a room without state begins with %s", start.raw)
		}
		set := func(version int, more string) string {
			return fmt.Sprintf(`{"roomId":%q,"version":%d%s}`, room, version, more)
		}
		hand := fmt.Sprintf("hand.%d", bob.id)
		got := a.expectOK("stateSet", "room.state.set", set(0, `,"patch":{"host.map":"bridge","board":[0, 1]}`))
		if got.data("version") != 1. {
			t.Fatalf("the first change is %s", got.raw)
		}
		b.expectOK("stateSet", "room.state.set", set(1, `,"patch":{"`+hand+`":[7]},"delete":["board","none"]`))
		for _, s := range []*testSocket{a, b} {
			if e := s.expectEvent("room.state"); e.data("version") != 1. {
				t.Errorf("the first event is %s", e.raw)
			}
			if e := s.expectEvent("room.state"); e.data("version") != 2. || e.Seq != 4 ||
				!strings.Contains(string(e.raw), `"patch":{"`+hand+`":[7]},"delete":["board","none"]`) {
				t.Errorf("the second event is %s", e.raw)
			}
		}
		want := map[string]any{"host.map": "bridge", hand: []any{7.}}

		// Who wrote by an old state, and what a player may not write.
		conflict := b.expectError("version_conflict", "room.state.set", set(1, `,"patch":{"board":1}`))
		current, _ := conflict.Error["current"].(map[string]any)
		if diff := cmp.Diff(map[string]any{"version": 2., "value": want}, current); diff != "" {
			t.Errorf("the current state: %s", diff)
		}
		b.expectError("not_host", "room.state.set", set(2, `,"patch":{"host.map":1}`))
		a.expectError("forbidden", "room.state.set", set(2, `,"patch":{"`+hand+`":1}`)) // nor the host
		f.expectError(409, "limit_reached", "POST", "/api/v1/game-session/state", f.serverKey,
			set(2, `,"patch":{"x":"`+strings.Repeat("x", 16<<10)+`"}`))
		f.dialRealtime(f.guest("Eve")).expectError("not_participant", "room.state.set", set(2, `,"patch":{"board":1}`))

		// Who comes later gets the whole, and who was away the changes.
		late := f.dialRealtime(f.guest("Cid"))
		snapshot := late.subscribe(room, "")
		if diff := cmp.Diff(any(want), snapshot.data("room.shared.value")); diff != "" {
			t.Errorf("the snapshot: %s", diff)
		}
		b.disconnect()
		f.expect(200, "POST", "/api/v1/game-session/state", f.serverKey, set(2, `,"patch":{"board":"X"}`))
		back := f.dialRealtime(bob)
		if got := back.subscribe(room, start.data("position").(string)); got.Data["mode"] != "resume" {
			t.Fatalf("Bob comes back to %s", got.raw)
		}
		for version := 1.; version <= 3; version++ {
			if e := back.expectEvent("room.state"); e.data("version") != version {
				t.Errorf("Bob gets %s", e.raw)
			}
		}
		get := "/api/v1/game-session/get?roomId=" + room
		whole := far.expect(200, "GET", get, bob.token, "")
		if whole.text("shared.version") != "3" || whole.text("shared.value.board") != "X" || whole.text("version") != "2" {
			t.Errorf("the room is %s", whole.raw)
		}
		f.expect(304, "GET", get, bob.token, "", "If-None-Match", whole.header.Get("Etag"))
		a.expectOK("stateSet", "room.state.set", set(3, `,"delete":["board"]`))
		f.expect(200, "GET", get, bob.token, "", "If-None-Match", whole.header.Get("Etag"))
		for query, shown := range map[string]bool{"list?mine=true": true, "list?status=CREATED": false} {
			list := f.expect(200, "GET", "/api/v1/game-session/"+query, ann.token, "")
			if strings.Contains(string(list.raw), `"shared"`) != shown {
				t.Errorf("%s: %s", query, list.raw)
			}
		}
	})
}

func TestATurnIsHeardOnAnotherNode(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		far := f.newNode()
		ann, bob := f.guest("Ann"), f.guest("Bob")
		room := f.expect(201, "POST", "/api/v1/game-session/create", ann.token, `{"maxPlayers":2,"autoStart":true}`).
			text("roomId")
		turn := func(user any, seconds string) string {
			return fmt.Sprintf(`{"roomId":%q,"userId":%v%s}`, room, user, seconds)
		}
		a, b := f.dialRealtime(ann), far.dialRealtime(bob)
		a.expectError("not_started", "room.turn.set", turn(ann.id, `,"seconds":30`))
		started := f.expect(200, "POST", "/join", bob.token, roomBody(room))
		if started.text("matchDeadline") <= started.text("startedAt") {
			t.Errorf("the match ends at %s: %s", started.text("matchDeadline"), started.raw)
		}
		b.subscribe(room, "")
		b.expectError("not_host", "room.turn.set", turn(bob.id, `,"seconds":30`))
		a.expectError("not_participant", "room.turn.set", turn(999_999, `,"seconds":30`))
		set := a.expectOK("turnSet", "room.turn.set", turn(bob.id, `,"seconds":30`))
		e := b.expectEvent("room.turn")
		if e.data("userId") != float64(bob.id) || e.data("deadline") != set.data("deadline") || e.data("reason") != "set" {
			t.Errorf("the event is %s, the reply %s", e.raw, set.raw)
		}
		if r := far.expect(http.StatusOK, "GET", "/api/v1/game-session/get?roomId="+room, bob.token, ""); r.
			text("turn.deadline") != set.data("deadline") || r.text("version") != fmt.Sprint(e.data("version")) {
			t.Errorf("the room is %s", r.raw)
		}
		if set = a.expectOK("turnSet", "room.turn.set", turn("null", "")); set.data("userId") != nil {
			t.Errorf("nobody's turn: %s", set.raw)
		}
		if e = b.expectEvent("room.turn"); e.data("userId") != nil || e.data("deadline") != nil {
			t.Errorf("nobody's turn: %s", e.raw)
		}
		f.expect(200, "POST", "/api/v1/game-session/turn", f.serverKey, turn(ann.id, `,"seconds":60`))
		b.expectEvent("room.turn")
	})
}

// Each change goes to every peer and may not be dropped for one, so the sender gets as many bytes
// of them as the relay sends to a socket: 64 KiB at once and 32 KiB a second.
func TestTheBytesOfAPlayersStateAreLimited(t *testing.T) {
	db := redistest.Single(t)
	f := newFixtureOn(t, db, func(d *handlers.Deps) {
		d.Limiter = ratelimit.New(db, ratelimit.DefaultLimits())
	}).createGame()
	f.allowState(`{"stateKeys":{"":"all"}}`)
	ann, bob := f.guest("Ann"), f.guest("Bob")
	room := f.expect(201, "POST", "/api/v1/game-session/create", ann.token, `{"maxPlayers":2}`).text("roomId")
	f.expect(200, "POST", "/join", bob.token, roomBody(room))
	a := f.dialRealtime(ann)
	version := 0
	set := func(s *testSocket, size int) (limited *received) {
		t.Helper()
		r := s.request("room.state.set", fmt.Sprintf(`{"roomId":%q,"version":%d,"patch":{"board":%q}}`, room, version,
			strings.Repeat("x", size)))
		if *r.OK {
			version++
			return nil
		}
		if r.Error["code"] != "rate_limited" {
			t.Fatalf("a change of %d bytes: %s", size, r.raw)
		}
		return &r
	}
	const size, burst, perSecond = 12_000, 64 << 10, 1_000_000 / 30 // a byte each 30 µs
	start, sent := time.Now(), 0
	var limited *received
	for limited == nil {
		if limited = set(a, size); limited == nil {
			sent += size
		}
		if most := burst + size + int(time.Since(start).Seconds()*perSecond); sent > most {
			t.Fatalf("a player has sent %d bytes to each peer, of %d", sent, most)
		}
	}
	if sent < burst {
		t.Errorf("a player could send %d bytes at once, not %d", sent, burst)
	}
	if wait := limited.problem("retryAfterSeconds"); wait != 1. {
		t.Errorf("the wait is %v s", wait)
	}
	body := fmt.Sprintf(`{"roomId":%q,"version":%d,"patch":{"board":1}}`, room, version)
	if resp := f.send("POST", "/api/v1/game-session/state", ann.token, body); resp.status == 429 {
		if resp.header.Get("Retry-After") != "1" || !strings.Contains(resp.header.Get("Ratelimit"), `"state-bytes"`) {
			t.Errorf("429 with %v", resp.header)
		}
	} else if version++; time.Since(start) < time.Second/4 {
		t.Errorf("by HTTP a change is %d", resp.status)
	}

	// The other player's changes are not limited by them, nor are 100 small ones in a row.
	b := f.dialRealtime(bob)
	for range 100 {
		if r := set(b, 100); r != nil {
			t.Fatalf("a small change: %s", r.raw)
		}
	}
	f.expect(200, "POST", "/api/v1/game-session/state", f.serverKey, fmt.Sprintf( // as large as it likes
		`{"roomId":%q,"version":%d,"patch":{"board":%q}}`, room, version, strings.Repeat("x", size)))
}
