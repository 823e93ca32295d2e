package handlers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A roomId that is no UUID is the caller's mistake. One that is a UUID may have been a room once.
func TestARoomIDMustBeAUUID(t *testing.T) {
	const session = "/api/v1/game-session/"
	f, ann, fill := newRoomFixture(t)
	ownShard := f.createRoom(ann) // the id of another room on the same shard, but for one digit
	ownShard = ownShard[:len(ownShard)-1] + string("1032547698badcfe"[strings.IndexByte("0123456789abcdef",
		ownShard[len(ownShard)-1])])
	calls := 0
	for _, p := range postCases {
		if !strings.Contains(p.body, `"roomId":`) {
			continue
		}
		calls++
		bearer := map[string]string{"ann": ann.token, "bob": ann.token, "cid": ann.token, "server": f.serverKey}[p.as]
		method, path, _ := strings.Cut(p.operation, " ")
		body := fill.Replace(p.body)
		_, id, _ := strings.Cut(body, `"roomId":"`)
		id, _, _ = strings.Cut(id, `"`)
		for _, malformed := range []string{"x", "7", strings.Repeat("0", 36), "{" + unknownRoom + "}", unknownRoom + "0"} {
			resp := f.expectError(400, "invalid_request", method, path, bearer, strings.Replace(body, id, malformed, 1),
				"Idempotency-Key", "malformed")
			if resp.count("errors") != 1 || resp.text("errors.0.field") != "roomId" {
				t.Errorf("%s for the id %s returned %s", p.operation, malformed, resp.raw)
			}
		}
		for i, unknown := range []string{unknownRoom, ownShard, strings.ToUpper(unknownRoom)} {
			f.expectError(404, "room_not_found", method, path, bearer, strings.Replace(body, id, unknown, 1),
				"Idempotency-Key", fmt.Sprint(path, i))
		}
	}
	if calls != 12 {
		t.Errorf("%d operations with a roomId were called", calls)
	}
	f.expectError(404, "room_not_found", "GET", session+"get?roomId="+ownShard, ann.token, "")
	socket := f.dialRealtime(ann)
	for _, message := range []string{"room.subscribe", "room.unsubscribe", "room.send"} {
		data := func(id string) string {
			if message == "room.send" {
				return fmt.Sprintf(`{"roomId":%q,"op":"m"}`, id)
			}
			return roomBody(id)
		}
		for _, malformed := range []string{"x", strings.Repeat("0", 36), unknownRoom + "0"} {
			got := socket.expectError("invalid_request", message, data(malformed))
			if fields := got.Error["errors"].([]any); fields[0].(map[string]any)["field"] != "roomId" {
				t.Errorf("%s for the id %s: %s", message, malformed, got.raw)
			}
		}
		if message != "room.unsubscribe" { // which is harmless
			socket.expectError("room_not_found", message, data(ownShard))
		}
	}
}

func TestMineListsTheRoomsInWhichThePlayerHasASeat(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		const session = "/api/v1/game-session/"
		ann, bob := f.guest("Ann"), f.guest("Bob")
		create := func(p player, body string) string {
			return f.expect(201, "POST", session+"create", p.token, body).text("roomId")
		}
		post := func(p player, verb, room string) {
			f.expect(200, "POST", session+verb, p.token, roomBody(room))
		}
		paid := f.createRoom(bob)
		post(ann, "join", paid)
		hidden := create(ann, `{"maxPlayers":2,"visibility":"private"}`)
		started := create(ann, `{"maxPlayers":2,"minPlayers":1,"visibility":"unlisted"}`)
		post(ann, "start", started)
		left := create(bob, `{"maxPlayers":3}`)
		post(ann, "join", left)
		post(ann, "leave", left)
		cancelled := f.createRoom(ann)
		post(ann, "cancel", cancelled)

		list := func(p player, query string) (ids []string) {
			cursor := ""
			for {
				page := f.expect(200, "GET", session+"list?"+query+cursor, p.token, "")
				for i := range page.count("items") {
					ids = append(ids, page.text(fmt.Sprintf("items.%d.roomId", i)))
				}
				if page.member("nextCursor") == nil {
					return ids
				}
				cursor = "&cursor=" + page.text("nextCursor")
			}
		}
		// Ids sort by age, and in any order within a millisecond.
		descending := func(ids ...string) []string {
			slices.SortFunc(ids, func(a, b string) int { return strings.Compare(b, a) })
			return ids
		}
		newestFirst := descending(started, hidden, paid)
		for query, want := range map[string][]string{
			"mine=true": newestFirst, "mine=true&limit=1": newestFirst, "mine=true&status=STARTED": {started},
			fmt.Sprintf("mine=true&entryTokenId=%d", f.gold): {paid}, "mine=true&hasSeat=true": descending(hidden, paid),
		} {
			if got := list(ann, query); !slices.Equal(got, want) {
				t.Errorf("%s lists %v; want %v of %v", query, got, want, newestFirst)
			}
		}
		if got := list(bob, "mine=true"); !slices.Equal(got, descending(left, paid)) {
			t.Errorf("the other player's are %v", got)
		}
		if got := list(ann, "mine=false"); !slices.Equal(got, descending(left, paid)) {
			t.Errorf("mine=false lists %v, not the rooms that can be joined", got)
		}
		otherGame, _ := f.createOtherGame()
		if got := list(f.guestOf(otherGame, "Eve"), "mine=true"); got != nil {
			t.Errorf("a player without a room has %v", got)
		}
	})
}

// A code is short, so two games may have the same one.
func TestACodeIsSearchedInOneGame(t *testing.T) {
	const get = "/api/v1/game-session/get?code="
	f := newGameFixture(t)
	otherGame, otherKey := f.createOtherGame()
	ann, eve := f.guest("Ann"), f.guestOf(otherGame, "Eve")
	own, other := fmt.Sprintf("&gameId=%d", f.game), fmt.Sprintf("&gameId=%d", otherGame)
	for _, body := range []string{
		`{"maxPlayers":2}`, fmt.Sprintf(`{"maxPlayers":2,"entryTokenId":%d,"roomEntry":1}`, f.gold),
	} {
		room := f.expect(201, "POST", "/api/v1/game-session/create", ann.token, body)
		path := get + room.text("code")
		for _, c := range []struct{ query, bearer string }{
			{"", ann.token},
			{own, ann.token},
			{"", f.serverKey},
			{own, f.serverKey},
			{own, adminKey},
		} {
			if got := f.expect(200, "GET", path+c.query, c.bearer, ""); got.text("roomId") != room.text("roomId") {
				t.Errorf("%s%s found %s", path, c.query, got.raw)
			}
		}
		f.expect(200, "GET", get+strings.ToLower(room.text("code")), ann.token, "")
		for _, c := range []struct{ query, bearer, code string }{
			{"", eve.token, "room_not_found"},
			{own, eve.token, "game_not_found"},
			{other, ann.token, "game_not_found"},
			{"", otherKey, "room_not_found"},
			{own, otherKey, "game_not_found"},
			{other, adminKey, "room_not_found"},
			{"&gameId=999", adminKey, "room_not_found"},
		} {
			f.expectError(404, c.code, "GET", path+c.query, c.bearer, "")
		}
	}
}

// What is read again by the same Idempotency-Key tells status, code and outcome of the first call.
// The room inside is the room as it is now.
func TestAReplayHasTheOutcomeOfTheFirstCallAndTheRoomOfNow(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		const session = "/api/v1/game-session/"
		ann, bob, cid := f.guest("Ann"), f.guest("Bob"), f.guest("Cid")
		body := fmt.Sprintf(`{"entryTokenId":%d,"roomEntry":2.5,"maxPlayers":2}`, f.gold)
		create := func() *httpResult {
			return f.expect(201, "POST", session+"create", ann.token, body, "Idempotency-Key", "create")
		}
		first := create()
		room := first.text("roomId")
		f.expect(200, "POST", session+"join", bob.token, roomBody(room), "Idempotency-Key", "join")
		full := f.expectError(409, "room_full", "POST", session+"join", cid.token, roomBody(room), "Idempotency-Key", "full")
		again := create()
		if again.header.Get("Idempotent-Replayed") != "true" || again.text("roomId") != room ||
			again.count("participants") != 2 || again.id("version") != first.id("version")+1 ||
			again.header.Get("Etag") == first.header.Get("Etag") {
			t.Errorf("the replay has not the room of now: %v %s", again.header, again.raw)
		}

		f.expect(200, "POST", session+"leave", bob.token, roomBody(room))
		joined := f.expect(200, "POST", session+"join", bob.token, roomBody(room), "Idempotency-Key", "join")
		if joined.header.Get("Idempotent-Replayed") != "true" || joined.count("participants") != 1 {
			t.Errorf("the replay of the join seats again: %v %s", joined.header, joined.raw)
		}
		f.expectBalance(bob, "10000+0")
		late := f.expectError(409, "room_full", "POST", session+"join", cid.token, roomBody(room), "Idempotency-Key", "full")
		if late.header.Get("Idempotent-Replayed") != "true" || full.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("the headers of the error were %v and are %v", full.header, late.header)
		}
		f.expectBalance(cid, "10000+0")

		f.expect(200, "POST", session+"cancel", ann.token, roomBody(room))
		if ended := create(); ended.text("status") != "CANCELLED" || ended.text("roomId") != room {
			t.Errorf("the replay has not the room of now: %s", ended.raw)
		}
		f.expectBalance(ann, "10000+0")
		f.expectBalancedAudit()
	})
}

// TestAResultIsPaidThoughNoPlayerCanSignIn ends the sessions of both players after the start, and
// suspends the winner.
func TestAResultIsPaidThoughNoPlayerCanSignIn(t *testing.T) {
	f := newGameFixture(t)
	ann, bob := f.guest("Ann"), f.guest("Bob")
	room := f.createRoom(ann)
	f.expect(200, "POST", "/join", bob.token, roomBody(room))
	f.expect(200, "POST", "/api/v1/game-session/start", ann.token, roomBody(room))
	for _, p := range []player{ann, bob} {
		f.expect(204, "DELETE", fmt.Sprintf("/api/v1/admin/users/%d/sessions", p.id), adminKey, "")
	}
	f.expect(200, "POST", fmt.Sprintf("/api/v1/admin/users/%d/suspend", ann.id), adminKey, `{"reason":"x"}`,
		"Idempotency-Key", "suspend")
	body := fmt.Sprintf(`{"roomId":%q,"results":[{"userId":%d,"place":1},{"userId":%d,"place":2}]}`, room, ann.id, bob.id)
	f.expect(200, "POST", "/api/v1/game-session/finish", f.serverKey, body, "Idempotency-Key", "result")
	for p, want := range map[player]string{ann: "10225", bob: "9750"} { // 5.00 less a rake of 5 %
		got := f.expect(200, "GET", fmt.Sprintf("/api/v1/admin/users/%d", p.id), adminKey, "")
		if got.text("balances.0.amount") != want || got.text("balances.0.heldAmount") != "0" {
			t.Errorf("player %d has %s; want %s", p.id, got.raw, want)
		}
	}
	f.expectBalancedAudit()
}
