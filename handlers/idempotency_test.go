package handlers_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
)

// topBoard is the leaderboard of createBoard.
const topBoard = "/api/v1/admin/games/<game>/leaderboards/top"

// heldBoard is the leaderboard of createHeldSeason.
const heldBoard = "/api/v1/admin/games/<game>/leaderboards/held"

// postCases has for every POST a body that succeeds, and another body for the same Idempotency-Key.
var postCases = []struct{ operation, as, body, other string }{
	{
		"POST /api/v1/auth/guest", "", `{"gameId":<game>,"deviceSecret":"0123456789abcdef0123456789abcdef"}`,
		`{"gameId":<game>,"username":"Else","deviceSecret":"0123456789abcdef0123456789abcdef"}`,
	},
	{"POST /api/v1/auth/exchange", "server", `{"externalId":"a"}`, `{"externalId":"b"}`},
	{"POST /api/v1/auth/refresh", "", `{"refreshToken":"<refresh>"}`, `{"refreshToken":"<refresh>x"}`},
	{"POST /api/v1/auth/logout", "ann", `{"refreshToken":"<refresh>"}`, `{}`},
	{
		"POST /api/v1/auth/link", "ann", `{"deviceSecret":"fedcba9876543210fedcba9876543210"}`,
		`{"deviceSecret":"0123456789abcdef0123456789abcdee"}`,
	},
	{"POST /api/v1/auth/ticket", "ann", ``, ``},
	{"POST /api/v1/friends/<bob>", "ann", ``, ``},
	{"POST /api/v1/friends/<bob>/block", "ann", ``, ``},
	{
		"POST /api/v1/game-session/create", "ann",
		`{"entryTokenId":<gold>,"roomEntry":2.5,"maxPlayers":2,"metadata":{"a":1,"b":2}}`,
		`{"entryTokenId":<gold>,"roomEntry":2.5,"maxPlayers":2,"metadata":{"a":1,"b":3}}`,
	},
	{"POST /api/v1/game-session/join", "cid", `{"roomId":"<room>"}`, `{"roomId":"<done>"}`},
	{"POST /join", "cid", `{"roomId":"<room>"}`, `{"roomId":"<done>"}`},
	{"POST /api/v1/game-session/leave", "bob", `{"roomId":"<room>"}`, `{"roomId":"<done>"}`},
	{"POST /api/v1/game-session/ready", "bob", `{"roomId":"<room>","ready":true}`, `{"roomId":"<room>","ready":false}`},
	{
		"POST /api/v1/game-session/kick", "ann", `{"roomId":"<room>","userId":<bob>}`,
		`{"roomId":"<room>","userId":<bob>,"ban":true}`,
	},
	{
		"POST /api/v1/game-session/transfer-host", "ann", `{"roomId":"<room>","userId":<bob>}`,
		`{"roomId":"<room>","userId":<ann>}`,
	},
	{
		"POST /api/v1/game-session/state", "server", `{"roomId":"<room>","patch":{"a":1}}`,
		`{"roomId":"<room>","patch":{"a":2}}`,
	},
	{
		"POST /api/v1/game-session/turn", "server", `{"roomId":"<started>","userId":<ann>,"seconds":30}`,
		`{"roomId":"<started>","userId":<bob>,"seconds":30}`,
	},
	{"POST /api/v1/game-session/start", "ann", `{"roomId":"<room>"}`, `{"roomId":"<done>"}`},
	{
		"POST /api/v1/game-session/finish", "server",
		`{"roomId":"<started>","results":[{"userId":<ann>,"place":1},{"userId":<bob>,"place":2}]}`,
		`{"roomId":"<started>","results":[{"userId":<ann>,"place":2},{"userId":<bob>,"place":1}]}`,
	},
	{
		"POST /api/v1/admin/rooms/<disputed>/resolve", "operator",
		`{"results":[{"userId":<ann>,"place":1},{"userId":<bob>,"place":2}]}`, `{"refund":true}`,
	},
	{"POST /api/v1/game-session/cancel", "ann", `{"roomId":"<room>"}`, `{"roomId":"<done>"}`},
	{"POST /api/v1/game-session/rematch", "ann", `{"roomId":"<done>"}`, `{"roomId":"<room>"}`},
	{
		"POST /api/v1/user-assets/add/game-asset/<asset>", "ann", `{"quantity":1,"expectedPrice":7.50}`,
		`{"quantity":2,"expectedPrice":7.5}`,
	},
	{"POST /api/v1/admin/games", "operator", `{"name":"New","settings":{"rakeBps":1}}`, `{"name":"New"}`},
	{"POST /api/v1/admin/games/<game>/server-keys", "operator", ``, ``},
	{
		"POST /api/v1/admin/games/<game>/assets", "server", `{"name":"Bow","tokenId":"GOLD","price":"1.0"}`,
		`{"name":"Bow","tokenId":"GOLD","price":2}`,
	},
	{
		"POST /api/v1/admin/tokens", "operator", `{"tokenId":"GEM<n>","tokenName":"Gem","metadata":{"decimals":"0"}}`,
		`{"tokenId":"JEM<n>","tokenName":"Gem","metadata":{"decimals":"0"}}`,
	},
	{"POST /api/v1/admin/console-links", "operator", ``, ``},
	{"POST /api/v1/admin/users/<ann>/suspend", "operator", `{"reason":"x"}`, `{"reason":"y"}`},
	{"POST /api/v1/admin/users/<ann>/unsuspend", "operator", ``, ``},
	{"POST /api/v1/admin/games/<game>/accept-audit", "operator", `{"reason":"x"}`, `{"reason":"y"}`},
	{
		"POST /api/v1/admin/users/<ann>/credit", "operator", `{"tokenId":"GOLD","amount":1,"reason":"x"}`,
		`{"tokenId":"GOLD","amount":2,"reason":"x"}`,
	},
	{
		"POST /api/v1/admin/games/<game>/leaderboards", "server", `{"board":"b<n>","name":"New"}`,
		`{"board":"b<n>","name":"Other"}`,
	},
	{"POST /api/v1/leaderboards/plays/plays", "ann", ``, ``},
	{"POST /api/v1/leaderboards/top/scores", "server", `{"userId":<ann>,"score":1}`, `{"userId":<ann>,"score":2}`},
	{
		"POST /api/v1/leaderboards/top/scores/batch", "server", `{"scores":[{"userId":<ann>,"score":1}]}`,
		`{"scores":[{"userId":<ann>,"score":2}]}`,
	},
	{"POST " + topBoard + "/seasons/1/end", "server", `{"reason":"x"}`, `{"reason":"y"}`},
	{"POST " + heldBoard + "/seasons/1/approve", "server", `{"reason":"x"}`, `{"reason":"y"}`},
	{"POST " + heldBoard + "2/seasons/1/void", "operator", `{"reason":"x"}`, `{"reason":"y"}`},
	{"POST " + topBoard + "/entries/<ann>/hide", "server", `{"reason":"x"}`, `{"reason":"y"}`},
	{"POST " + topBoard + "/entries/<ann>/unhide", "server", `{"reason":"x"}`, `{"reason":"y"}`},
	{"POST " + topBoard + "/entries/<ann>/remove", "operator", `{"reason":"x"}`, `{"reason":"y"}`},
	{"POST /api/v1/tournaments/<tour>/join", "cid", ``, ``},
	{"POST /api/v1/tournaments/<tour>/leave", "ann", ``, ``},
	{"POST /api/v1/tournaments/<checking>/check-in", "ann", ``, ``},
	{"POST /api/v1/tournaments/<score>/attempts", "ann", ``, ``},
	{
		"POST " + gameTournaments, "operator",
		`{"name":"New","format":"swiss","entryTokenId":<gold>,"entryFee":2.50,"maxEntrants":8,"startsAt":"<soon>"}`,
		`{"name":"New","format":"swiss","entryTokenId":<gold>,"entryFee":2.51,"maxEntrants":8,"startsAt":"<soon>"}`,
	},
	{"POST " + gameTournaments + "/<tour>/start", "server", ``, ``},
	{"POST " + gameTournaments + "/<tour>/cancel", "server", ``, ``},
	{"POST " + gameTournaments + "/<tour>/entrants/<bob>/disqualify", "server", ``, ``},
	{
		"POST " + gameTournaments + "/<match>/matches/r1m1/resolve", "server", `{"winnerId":<bob>}`,
		`{"winnerId":<ann>}`,
	},
	{"POST /api/v1/admin/users/<ann>/messages", "server", `{"op":"x"}`, `{"op":"y"}`},
	{
		"POST /api/v1/admin/users/<ann>/debit", "server", `{"tokenId":"GOLD","amount":1,"reason":"x"}`,
		`{"tokenId":"GOLD","amount":2,"reason":"x"}`,
	},
}

func TestEveryPostSentTwiceIsExecutedOnce(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixtureOn(t, db, nil).createGame()
		posts := 0
		for _, operation := range operations() {
			// A call of the game's server is not stored: each request is another one.
			if strings.HasPrefix(operation, "POST ") && operation != "POST /api/v1/game-session/call" {
				posts++
			}
		}
		if posts != len(postCases) {
			t.Errorf("%d POSTs are served, %d are sent twice", posts, len(postCases))
		}
		sword := f.createSword()
		f.createBoard()
		f.createHeldSeason("held", f.guest("Eva").id)
		f.createHeldSeason("held2", f.guest("Eva").id)
		f.expect(201, "POST", f.gamePath()+"/leaderboards", f.serverKey,
			`{"board":"plays","name":"Plays","writers":"players","rules":{"play":true}}`)
		for n, p := range postCases {
			ann, bob, cid := f.guest("Ann"), f.guest("Bob"), f.guest("Cid")
			f.expect(200, "POST", "/api/v1/leaderboards/top/scores", f.serverKey, fmt.Sprintf(`{"userId":%d,"score":0}`, ann.id))
			rooms := map[string]string{}
			for _, state := range []string{"room", "started", "done"} {
				rooms[state] = f.createRoom(ann)
				f.expect(200, "POST", "/join", bob.token, roomBody(rooms[state]))
			}
			rooms["disputed"] = f.disputedRoom(ann, bob)
			f.expect(200, "POST", "/api/v1/game-session/start", ann.token, roomBody(rooms["started"]))
			f.expect(200, "POST", "/api/v1/game-session/cancel", ann.token, roomBody(rooms["done"]))
			fill := strings.NewReplacer(append(f.tournamentPlaceholders(p.operation, ann, bob),
				"<game>", fmt.Sprint(f.game), "<gold>", fmt.Sprint(f.gold), "<asset>",
				fmt.Sprint(sword), "<n>", fmt.Sprint(n),
				"<ann>", fmt.Sprint(ann.id), "<bob>", fmt.Sprint(bob.id), "<refresh>", ann.refresh,
				"<room>", rooms["room"], "<started>", rooms["started"], "<done>", rooms["done"],
				"<disputed>", rooms["disputed"])...)
			bearer := map[string]string{
				"ann": ann.token, "bob": bob.token, "cid": cid.token, "server": f.serverKey,
				"operator": adminKey,
			}[p.as]
			method, path, _ := strings.Cut(fill.Replace(p.operation), " ")
			body, key := fill.Replace(p.body), fmt.Sprintf("key-%d-%s", n, ann.token[len(ann.token)-8:])

			first := f.send(method, path, bearer, body, "Idempotency-Key", key)
			if first.status >= 300 || first.header.Get("Idempotent-Replayed") != "" {
				t.Errorf("%s returned %d %s at first", p.operation, first.status, first.raw)
				continue
			}
			again := f.send(method, path, bearer, withOtherSpacing(body), "Idempotency-Key", key)
			replayed := "true"
			if p.operation == "POST /api/v1/auth/logout" {
				replayed, p.other = "", "" // nobody owns the key: it is ignored, and a repetition is harmless
			}
			if again.status != first.status || string(again.raw) != string(first.raw) ||
				again.header.Get("Idempotent-Replayed") != replayed {
				t.Errorf("%s returned at first\n%d %s\nand then\n%d %s", p.operation, first.status, first.raw, again.status,
					again.raw)
			}
			if p.other != "" {
				f.expectError(422, "idempotency_key_reused", method, path, bearer, fill.Replace(p.other), "Idempotency-Key", key)
			}
			for _, bad := range []string{"two words", strings.Repeat("k", 256), "ümlaut"} {
				if resp := f.expectError(400, "invalid_request", method, path, bearer, body, "Idempotency-Key",
					bad); resp.text("errors.0.field") != "Idempotency-Key" {
					t.Errorf("the key %q returned %s", bad, resp.raw)
				}
			}
		}
		f.expectBalancedAudit()
	})
}

// withOtherSpacing returns the same body with other white space.
func withOtherSpacing(body string) string {
	return strings.NewReplacer(`":`, `" : `, `,"`, ",\n\t\"").Replace(body)
}

func TestAMalformedBodyIsReportedBeforeAMissingIdempotencyKey(t *testing.T) {
	f, ann, fill := newRoomFixture(t)
	for _, p := range postCases {
		if !strings.Contains(p.operation, "/user-assets/add/") && !strings.HasSuffix(p.operation, "finish") &&
			!strings.HasSuffix(p.operation, "credit") && !strings.HasSuffix(p.operation, "debit") {
			continue
		}
		method, path, _ := strings.Cut(fill.Replace(p.operation), " ")
		bearer := map[string]string{"ann": ann.token, "server": f.serverKey, "operator": adminKey}[p.as]
		f.expectError(400, "idempotency_key_required", method, path, bearer,
			strings.Replace(fill.Replace(p.body), "<started>", "x", 1))
		f.expectError(400, "invalid_json", method, path, bearer, "{")
	}
}

// An error that depends on state is final for its key. A malformed request is not.
func TestFinalResponsesAreReplayedAndOthersAreNot(t *testing.T) {
	f, ann, fill := newRoomFixture(t)
	buy := fill.Replace("/api/v1/user-assets/add/game-asset/<asset>")
	big := fmt.Sprintf("/api/v1/admin/games/%d/assets", f.game)
	castle := f.expect(201, "POST", big, f.serverKey, `{"name":"Castle","tokenId":"GOLD","price":1000}`).id("id")
	dear := fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", castle)
	first := f.expectError(402, "insufficient_funds", "POST", dear, ann.token, "", "Idempotency-Key", "k1")
	f.expect(200, "POST", fmt.Sprintf("/api/v1/admin/users/%d/credit", ann.id), adminKey,
		`{"tokenId":"GOLD","amount":5000,"reason":"x"}`, "Idempotency-Key", "c1")
	again := f.expectError(402, "insufficient_funds", "POST", dear, ann.token, "", "Idempotency-Key", "k1")
	if first.text("available") != again.text("available") {
		t.Errorf("the error was %s and is %s", first.raw, again.raw)
	}
	if first.header.Get("Idempotent-Replayed") != "" || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the headers of the error were %v and are %v", first.header, again.header)
	}
	cid, debit := f.guest("Cid"), fmt.Sprintf("/api/v1/admin/users/%d/debit", ann.id)
	for _, replayed := range []string{"", "true"} {
		leave := f.expectError(403, "not_participant", "POST", "/api/v1/game-session/leave", cid.token,
			fill.Replace(`{"roomId":"<room>"}`), "Idempotency-Key", "r1")
		take := f.expectError(402, "insufficient_funds", "POST", debit, adminKey,
			`{"tokenId":"GOLD","amount":900000,"reason":"x"}`, "Idempotency-Key", "d1")
		for _, resp := range []*httpResult{leave, take} {
			if got := resp.header.Get("Idempotent-Replayed"); got != replayed {
				t.Errorf("%s has the header %q, not %q", resp.raw, got, replayed)
			}
		}
	}
	f.expect(201, "POST", dear, ann.token, "", "Idempotency-Key", "k2")
	f.expectError(400, "invalid_request", "POST", buy, ann.token, `{"quantity":0}`, "Idempotency-Key", "k3")
	f.expect(201, "POST", buy, ann.token, `{"quantity":1}`, "Idempotency-Key", "k3")
	for _, one := range []string{"", "{}", `{"quantity":1}`} { // three requests for one piece
		if again := f.expect(201, "POST", buy, ann.token, one, "Idempotency-Key",
			"k3"); again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%q is another request than quantity 1", one)
		}
	}

	// The same for operations by stored response.
	ghost := "/api/v1/friends/999999"
	missing := f.expectError(404, "user_not_found", "POST", ghost, ann.token, "", "Idempotency-Key", "f1")
	replay := f.expectError(404, "user_not_found", "POST", ghost, ann.token, "", "Idempotency-Key", "f1")
	if replay.header.Get("Idempotent-Replayed") != "true" || string(replay.raw) != string(missing.raw) {
		t.Errorf("the stored error is %s, %v", replay.raw, replay.header)
	}
	f.expectError(400, "invalid_request", "POST", "/api/v1/admin/games", adminKey, `{"name":""}`, "Idempotency-Key", "g1")
	f.expect(201, "POST", "/api/v1/admin/games", adminKey, `{"name":"New"}`, "Idempotency-Key", "g1")
}

func TestBothPathsOfJoinShareTheirIdempotencyKeys(t *testing.T) {
	f, _, fill := newRoomFixture(t)
	cid := f.guest("Cid")
	room := fill.Replace(`{"roomId":"<room>"}`)
	first := f.expect(200, "POST", "/join", cid.token, room, "Idempotency-Key", "j1")
	again := f.expect(200, "POST", "/api/v1/game-session/join", cid.token, room, "Idempotency-Key", "j1")
	if again.header.Get("Idempotent-Replayed") != "true" || string(again.raw) != string(first.raw) {
		t.Errorf("the other path returned %v %s", again.header, again.raw)
	}
}

func TestIdempotencyKeysBelongToTheCaller(t *testing.T) {
	f, ann, fill := newRoomFixture(t)
	bob := f.guest("Bob")
	buy := fill.Replace("/api/v1/user-assets/add/game-asset/<asset>")
	resp := f.expect(201, "POST", buy, ann.token, "", "Idempotency-Key", "same")
	b := f.expect(201, "POST", buy, bob.token, "", "Idempotency-Key", "same")
	if resp.id("purchaseId") == b.id("purchaseId") {
		t.Error("two players share a purchase")
	}
}

// A purchase works by receipt, a game by stored response.
func TestConcurrentCopiesOfARequestAreExecutedOnce(t *testing.T) {
	f, ann, fill := newRoomFixture(t)
	buy := fill.Replace("/api/v1/user-assets/add/game-asset/<asset>")
	before := f.expect(200, "GET", "/api/v1/admin/games?limit=100", adminKey, "").count("items")
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			if resp := f.send("POST", buy, ann.token, `{"quantity":1}`, "Idempotency-Key", "storm"); resp.status != 201 {
				t.Errorf("a copy of the purchase returned %d %s", resp.status, resp.raw)
			}
			if resp := f.send("POST", "/api/v1/admin/games", adminKey, `{"name":"Storm"}`, "Idempotency-Key",
				"storm"); resp.status != 201 && resp.code() != "request_in_progress" {
				t.Errorf("a copy of the game returned %d %s", resp.status, resp.raw)
			}
		})
	}
	wg.Wait()
	if owned := f.expect(200, "GET", "/api/v1/user-assets", ann.token, ""); owned.text("items.0.owned") != "1" {
		t.Errorf("32 copies bought %s", owned.raw)
	}
	if after := f.expect(200, "GET", "/api/v1/admin/games?limit=100", adminKey, "").count("items"); after != before+1 {
		t.Errorf("32 copies made %d games", after-before)
	}
	f.expectBalancedAudit()
}
