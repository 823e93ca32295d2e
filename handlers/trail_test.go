package handlers_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/ops/trail"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// staffWriteCases has for every operation by which staff changes something a request, and what its
// record must have.
var staffWriteCases = []struct {
	operation, as, path, body string
	target                    string
	before, after             string // part of the record
	invalid                   string // a body or path that is rejected
}{
	{
		operation: "POST /api/v1/auth/exchange", as: "server", body: `{"externalId":"a secret of dan"}`,
		target: "user:", before: "null", after: `"username":`, invalid: `{}`,
	},
	{
		operation: "POST /api/v1/auth/link", as: "server", body: `{"userId":<ann>,"externalId":"a secret of ann"}`,
		target: "user:<ann>", before: "null", after: `"kind":`, invalid: `{}`,
	},
	{
		operation: "POST /api/v1/game-session/kick", as: "server", body: `{"roomId":"<room>","userId":<bob>}`,
		target: "room:<room>", before: `"participants":[<ann>,<bob>]`, after: `"participants":[<ann>]`,
		invalid: `{"roomId":"<room>","userId":999999}`,
	},
	{
		operation: "POST /api/v1/game-session/transfer-host", as: "server", body: `{"roomId":"<room>","userId":<bob>}`,
		target: "room:<room>", before: `"hostId":<ann>`, after: `"hostId":<bob>`,
		invalid: `{"roomId":"<room>","userId":999999}`,
	},
	{
		operation: "POST /api/v1/game-session/start", as: "server", body: `{"roomId":"<room>"}`,
		target: "room:<room>", before: `"status":"CREATED"`, after: `"status":"STARTED"`, invalid: `{"roomId":"<done>"}`,
	},
	{
		operation: "POST /api/v1/game-session/finish", as: "server",
		body:   `{"roomId":"<started>","results":[{"userId":<ann>,"place":1},{"userId":<bob>,"place":2}]}`,
		target: "room:<started>", before: `"status":"STARTED"`, after: `"rake":0.25`,
		invalid: `{"roomId":"<room>","results":[{"userId":<ann>,"place":1},{"userId":<bob>,"place":2}]}`,
	},
	{
		operation: "POST /api/v1/admin/rooms/{roomId}/resolve", as: "operator",
		path:   "/api/v1/admin/rooms/<disputed>/resolve",
		body:   `{"results":[{"userId":<ann>,"place":1},{"userId":<bob>,"place":2}]}`,
		target: "room:<disputed>", before: `"status":"DISPUTED"`, after: `"status":"FINISHED"`, invalid: `{}`,
	},
	{
		operation: "POST /api/v1/game-session/cancel", as: "operator", body: `{"roomId":"<started>"}`,
		target: "room:<started>", before: `"status":"STARTED"`, after: `"status":"CANCELLED"`,
		invalid: `{"roomId":"<done>"}`,
	},
	{
		operation: "POST /api/v1/admin/games", as: "operator",
		body:   `{"name":"New","welcomeGrant":{"tokenId":"GOLD","amount":"7.5"}}`,
		target: "game:", before: "null", after: `"amount":7.5`, invalid: `{"name":""}`,
	},
	{
		operation: "PATCH /api/v1/admin/games/{gameId}", as: "operator", path: "/api/v1/admin/games/<game>",
		body:   `{"origins":["https://new.example"],"settings":{"rakeBps":<n>}}`,
		target: "game:<game>", before: `"settings.rakeBps":500`, after: `"settings.rakeBps":<n>`,
		invalid: `{"settings":{"rakeBps":-1}}`,
	},
	{
		operation: "POST /api/v1/admin/games/{gameId}/server-keys", as: "operator",
		path: "/api/v1/admin/games/<game>/server-keys", target: "game:<game>", before: `"serverKeys":[`,
		after: `"serverKeys":[`, invalid: `{"x":1}`,
	},
	{
		operation: "DELETE /api/v1/admin/games/{gameId}/server-keys/{keyId}", as: "operator",
		path: "/api/v1/admin/games/<game>/server-keys/<key>", target: "game:<game>", before: `"<key>"`,
		after: `"serverKeys":[`,
	},
	{
		operation: "POST /api/v1/admin/games/{gameId}/assets", as: "server", path: "/api/v1/admin/games/<game>/assets",
		body:   `{"name":"Bow","tokenId":"GOLD","price":"1.0"}`,
		target: "asset:", before: "null", after: `"price":1`, invalid: `{}`,
	},
	{
		operation: "DELETE /api/v1/admin/games/{gameId}/assets/{assetId}", as: "server", target: "asset:<asset>",
		path: "/api/v1/admin/games/<game>/assets/<asset>", before: `"name":"Sword"`, after: `"deleted":true`,
	},
	{
		operation: "PATCH /api/v1/admin/games/{gameId}/assets/{assetId}", as: "server",
		path: "/api/v1/admin/games/<game>/assets/<asset>", body: `{"price":3}`,
		target: "asset:<asset>", before: `"price":7.5`, after: `"price":3`, invalid: `{"price":-1}`,
	},
	{
		operation: "POST /api/v1/admin/tokens", as: "operator",
		body:   `{"tokenId":"GEM","tokenName":"Gem","metadata":{"decimals":"0"}}`,
		target: "token:GEM", before: "null", after: `"tokenName":"Gem"`, invalid: `{}`,
	},
	{
		operation: "PATCH /api/v1/admin/tokens/{tokenId}", as: "operator", path: "/api/v1/admin/tokens/GOLD",
		body:   `{"games":[{"gameId":<game>,"mintLimitPerDay":7}]}`,
		target: "token:GOLD", before: `"mintLimitPerDay":1000000`, after: `"mintLimitPerDay":7`,
		invalid: `{"games":[{"gameId":999}]}`,
	},
	{
		operation: "POST /api/v1/admin/users/{userId}/suspend", as: "operator", path: "/api/v1/admin/users/<cid>/suspend",
		body: `{"reason":"a bot"}`, target: "user:<cid>", before: `"suspended":null`, after: `"reason":"a bot"`,
		invalid: `{}`,
	},
	{
		operation: "POST /api/v1/admin/users/{userId}/unsuspend", as: "operator",
		path: "/api/v1/admin/users/<cid>/unsuspend", target: "user:<cid>", before: `{}`, after: `{}`, invalid: `{"x":1}`,
	},
	{
		operation: "DELETE /api/v1/admin/users/{userId}/sessions", as: "operator",
		path: "/api/v1/admin/users/<cid>/sessions", target: "user:<cid>", before: "null", after: `{"sessions":"ended"}`,
	},
	{
		operation: "POST /api/v1/admin/users/{userId}/credit", as: "server", path: "/api/v1/admin/users/<cid>/credit",
		body:   `{"tokenId":"GOLD","amount":"1.5","reason":"won"}`,
		target: "user:<cid>", before: `"volume":100`, after: `"volume":101.5`,
		invalid: `{"tokenId":"NONE","amount":1,"reason":"x"}`,
	},
	{
		operation: "POST /api/v1/admin/users/{userId}/messages", as: "server", path: "/api/v1/admin/users/<cid>/messages",
		body: `{"op":"hello"}`, target: "user:<cid>", before: "null", after: `"op":"hello"`, invalid: `{}`,
	},
	{
		operation: "POST /api/v1/admin/users/{userId}/debit", as: "operator", path: "/api/v1/admin/users/<cid>/debit",
		body:   `{"tokenId":"GOLD","amount":"1.5","reason":"lost"}`,
		target: "user:<cid>", before: `"volume":100`, after: `"volume":98.5`,
		invalid: `{"tokenId":"GOLD","amount":1000,"reason":"x"}`,
	},
	{
		operation: "POST /api/v1/admin/games/{gameId}/accept-audit", as: "operator",
		path: "/api/v1/admin/games/<game>/accept-audit", body: `{"reason":"counted by hand"}`,
		target: "game:<game>", before: "null", after: `"reason":"counted by hand"`, invalid: `{"reason":""}`,
	},
	{
		operation: "PUT /api/v1/admin/users/{userId}/limits", as: "operator", path: "/api/v1/admin/users/<cid>/limits",
		body:   `{"tokenId":"GOLD","maxOpenRooms":2}`,
		target: "user:<cid>", before: `"maxOpenRooms":null`, after: `"maxOpenRooms":2`,
		invalid: `{"tokenId":"GOLD","maxOpenRooms":-1}`,
	},
	{
		operation: "PUT /api/v1/admin/users/{userId}/saves/{slot}", as: "server",
		path: "/api/v1/admin/users/<cid>/saves/main", body: `{"state":{"a":1}}`,
		target: "user:<cid>", before: `"version":0`, after: `"version":1`, invalid: `{"state":{},"version":9}`,
	},
	{
		operation: "POST /api/v1/admin/games/{gameId}/leaderboards", as: "server",
		path: "/api/v1/admin/games/<game>/leaderboards", body: `{"board":"b<n>","name":"New"}`,
		target: "board:<game>.b<n>", before: "null", after: `"name":"New"`, invalid: `{}`,
	},
	{
		operation: "PATCH /api/v1/admin/games/{gameId}/leaderboards/{board}", as: "operator", path: topBoard,
		body: `{"keepSeasons":<n>}`, target: "board:<game>.top", before: `{}`, after: `"keepSeasons":<n>`,
		invalid: `{"keepSeasons":-1}`,
	},
	{
		operation: "POST /api/v1/leaderboards/{board}/scores", as: "server", path: "/api/v1/leaderboards/top/scores",
		body: `{"userId":<ann>,"score":7}`, target: "board:<game>.top", before: "null", after: `"score":7`,
		invalid: `{"userId":<ann>}`,
	},
	{
		operation: "POST /api/v1/leaderboards/{board}/scores/batch", as: "server",
		path: "/api/v1/leaderboards/top/scores/batch", body: `{"scores":[{"userId":<ann>,"score":7}]}`,
		target: "board:<game>.top", before: "null", after: `"accepted":"1"`, invalid: `{"scores":[]}`,
	},
	{
		operation: "POST /api/v1/admin/games/{gameId}/leaderboards/{board}/entries/{userId}/hide", as: "server",
		path: topBoard + "/entries/<entered>/hide", body: `{"reason":"forged"}`, target: "board:<game>.top",
		before: "null", after: `"reason":"forged"`, invalid: `{}`,
	},
	{
		operation: "POST /api/v1/admin/games/{gameId}/leaderboards/{board}/entries/{userId}/unhide", as: "server",
		path: topBoard + "/entries/<entered>/unhide", body: `{"reason":"proven"}`, target: "board:<game>.top",
		before: "null", after: `"reason":"proven"`, invalid: `{}`,
	},
	{
		operation: "POST /api/v1/admin/games/{gameId}/leaderboards/{board}/entries/{userId}/remove", as: "operator",
		path: topBoard + "/entries/<entered>/remove", body: `{"reason":"forged"}`, target: "board:<game>.top",
		before: "null", after: `"score":10`, invalid: `{}`,
	},
	{
		operation: "POST /api/v1/admin/games/{gameId}/leaderboards/{board}/seasons/{season}/end", as: "server",
		path: topBoard + "/seasons/1/end", body: `{"reason":"a fault"}`, target: "board:<game>.top", before: "null",
		after: `"reason":"a fault"`, invalid: `{}`,
	},
	{
		operation: "POST /api/v1/admin/games/{gameId}/leaderboards/{board}/seasons/{season}/approve", as: "server",
		path: heldBoard + "/seasons/1/approve", body: `{"reason":"checked"}`, target: "board:<game>.held", before: "null",
		after: `"status":"PAID"`, invalid: `{}`,
	},
	{
		operation: "POST /api/v1/admin/games/{gameId}/leaderboards/{board}/seasons/{season}/void", as: "operator",
		path: heldBoard + "2/seasons/1/void", body: `{"reason":"a fault"}`, target: "board:<game>.held2", before: "null",
		after: `"prizesFunded":false`, invalid: `{}`,
	},
	{
		operation: "DELETE /api/v1/admin/games/{gameId}/leaderboards/{board}", as: "operator", path: topBoard,
		target: "board:<game>.top", before: `"name":"Top"`, after: `"deleted":true`,
	},
	{
		operation: "DELETE /api/v1/admin/games/{gameId}/tournaments/{tournamentId}", as: "server",
		path: gameTournaments + "/<cancelled>", target: "tournament:<game>.<cancelled>",
		before: `"status":"CANCELLED"`, after: `"deleted":true`,
	},
	{
		operation: "POST /api/v1/admin/games/{gameId}/tournaments", as: "operator", path: gameTournaments,
		body:   `{"name":"New","format":"swiss","maxEntrants":8,"startsAt":"<soon>","rakeBps":7}`,
		target: "tournament:<game>.", before: "null", after: `"rakeBps":7`, invalid: `{}`,
	},
	{
		operation: "POST /api/v1/admin/games/{gameId}/tournaments/{tournamentId}/start", as: "server",
		path: gameTournaments + "/<tour>/start", target: "tournament:<game>.<tour>", before: `"status":"REGISTRATION"`,
		after: `"status":"RUNNING"`, invalid: `{"x":1}`,
	},
	{
		operation: "POST /api/v1/admin/games/{gameId}/tournaments/{tournamentId}/cancel", as: "operator",
		path: gameTournaments + "/<tour>/cancel", body: `{"reason":"a flood"}`, target: "tournament:<game>.<tour>",
		before: `"status":"REGISTRATION"`, after: `"reason":"a flood","`, invalid: `{"x":1}`,
	},
	{
		operation: "POST /api/v1/admin/games/{gameId}/tournaments/{tournamentId}/entrants/{userId}/disqualify",
		as:        "server", path: gameTournaments + "/<tour>/entrants/<bob>/disqualify", body: `{"reason":"a bot"}`,
		target: "tournament:<game>.<tour>", before: `"entrants":2`, after: `"reason":"a bot"`, invalid: `{"x":1}`,
	},
	{
		operation: "POST /api/v1/admin/games/{gameId}/tournaments/{tournamentId}/matches/{matchId}/resolve",
		as:        "server", path: gameTournaments + "/<match>/matches/r1m1/resolve", body: `{"winnerId":<bob>}`,
		target: "tournament:<game>.<match>", before: "null", after: `"winnerId":<bob>`, invalid: `{"winnerId":999999}`,
	},
	{
		operation: "POST /api/v1/admin/console-links", as: "operator", target: "console", before: "null",
		after: `{"expiresIn":60}`, invalid: `{"x":1}`,
	},
	{
		operation: "DELETE /api/v1/admin/console-sessions", as: "operator", target: "console", before: "null",
		after: `{"sessions":"ended"}`,
	},
}

// trail returns the newest records that a query selects.
func (f *fixture) trail(query string) *httpResult {
	f.t.Helper()
	return f.expect(200, "GET", "/api/v1/admin/trail?limit=100"+query, adminKey, "")
}

// operationID returns the name of an operation in openapi.yaml.
func operationID(operation string) string {
	method, path, _ := strings.Cut(operation, " ")
	return spec.doc.Paths.Find(path).GetOperation(method).OperationID
}

func TestEveryStaffWriteLeavesOneRecord(t *testing.T) {
	var covered, recorded []string
	for _, c := range staffWriteCases {
		covered = append(covered, c.operation)
	}
	for _, o := range handlers.Operations() {
		name := o.Method + " " + o.Path
		if o.Action != "" {
			recorded = append(recorded, name)
		}
		isMove := o.Path == "/api/v1/game-session/state" || o.Path == "/api/v1/game-session/turn"
		want := ""
		if o.StaffWrite && !isMove {
			want = operationID(name)
		}
		if o.Action != want {
			t.Errorf("the trail has %s as %q; want %q, which openapi.yaml has", name, o.Action, want)
		}
	}
	slices.Sort(covered)
	if slices.Sort(recorded); !slices.Equal(covered, recorded) {
		t.Fatalf("the cases cover\n%q; recorded are\n%q", covered, recorded)
	}
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixtureOn(t, db, nil).createGame()
		_, otherKey := f.createOtherGame()
		rotated := f.expect(201, "POST", f.gamePath()+"/server-keys", adminKey, "")
		secrets := []string{adminKey, f.serverKey, otherKey, rotated.text("serverKey"), "a secret of", "the key of"}
		entered := f.guest("Eva").id
		f.createBoard(entered)
		f.createHeldSeason("held", entered)
		f.createHeldSeason("held2", entered)
		for n, c := range staffWriteCases {
			ann, bob, cid := f.guest("Ann"), f.guest("Bob"), f.guest("Cid")
			room, started, done := f.createRoom(ann), f.createRoom(ann), f.createRoom(ann)
			f.expect(200, "POST", "/join", bob.token, roomBody(room))
			f.expect(200, "POST", "/join", bob.token, roomBody(started))
			f.expect(200, "POST", "/api/v1/game-session/start", ann.token, roomBody(started))
			f.expect(200, "POST", "/api/v1/game-session/cancel", ann.token, roomBody(done))
			fill := strings.NewReplacer(append(f.tournamentPlaceholders(c.path, ann, bob),
				"<game>", fmt.Sprint(f.game), "<ann>", fmt.Sprint(ann.id), "<bob>", fmt.Sprint(bob.id),
				"<cid>", fmt.Sprint(cid.id), "<room>", room, "<started>", started, "<done>", done,
				"<disputed>", f.disputedRoom(ann, bob), "<n>", fmt.Sprint(n),
				"<entered>", fmt.Sprint(entered), "<asset>", fmt.Sprint(f.createSword()),
				"<key>", rotated.text("game.serverKeys.1.id"))...).Replace
			method, path, _ := strings.Cut(c.operation, " ")
			if c.path != "" {
				path = fill(c.path)
			}
			bearer, actor, game := adminKey, "operator:1", "null"
			if c.as == "server" {
				bearer, game = f.serverKey, fmt.Sprint(f.game)
				actor = "server:" + rotated.text("game.serverKeys.0.id")
			}
			last := f.trail("").id("items.0.id")
			request, key := fmt.Sprintf("request-%d", n), fmt.Sprintf("the key of %d", n)
			send := func(bearer, body string) *httpResult {
				return f.send(method, path, bearer, body, "X-Request-Id", request, "Idempotency-Key",
					strings.ReplaceAll(key, " ", "-"))
			}

			// What is refused leaves no record.
			refused := []*httpResult{send("an invalid token", fill(c.body)), send(cid.token, fill(c.body))}
			if c.invalid != "" {
				key += " x"
				refused = append(refused, send(bearer, fill(c.invalid)))
			}
			for _, resp := range refused {
				if resp.status < 400 || resp.status >= 500 {
					if !strings.HasSuffix(c.operation, "link") { // a player may link as well, and is no staff
						t.Errorf("%s returned %d %s to one who may not", c.operation, resp.status, resp.raw)
					}
				}
			}
			if now := f.trail(""); now.id("items.0.id") != last {
				t.Errorf("%s leaves a record of what was refused: %s", c.operation, now.raw)
			}

			key += " y"
			first := send(bearer, fill(c.body))
			if first.status >= 300 {
				t.Errorf("%s returned %d %s", c.operation, first.status, first.raw)
				continue
			}
			if method == "POST" {
				if again := send(bearer, fill(c.body)); again.header.Get("Idempotent-Replayed") != "true" {
					t.Errorf("%s was not replayed: %s", c.operation, again.raw)
				}
			}
			list := f.trail("&actor=" + url.QueryEscape(actor))
			if list.id("items.0.id") != last+1 || f.trail("").id("items.0.id") != last+1 {
				t.Errorf("%s left not one record after %d: %s", c.operation, last, list.raw)
				continue
			}
			for member, want := range map[string]string{
				"actor": actor, "gameId": game, "action": operationID(c.operation), "requestId": request, "outcome": "done",
			} {
				if got := list.text("items.0." + member); got != want {
					t.Errorf("the record of %s has %s %q; want %q", c.operation, member, got, want)
				}
			}
			if got, want := list.text("items.0.target"), fill(c.target); !strings.HasPrefix(got, want) ||
				strings.HasSuffix(got, ":") {
				t.Errorf("the record of %s has the target %s; want %s", c.operation, got, want)
			}
			record, _, _ := strings.Cut(string(list.raw), `"requestId"`)
			before, after, _ := strings.Cut(record[strings.Index(record, `"before":`):], `"after":`)
			if !strings.Contains(before, fill(c.before)) || !strings.Contains(after, fill(c.after)) {
				t.Errorf("the record of %s has\n%s\n%s\nwant %s, %s", c.operation, before, after, c.before, c.after)
			}
			for _, member := range []string{"accessToken", "refreshToken", "serverKey"} {
				if object, ok := first.body.(map[string]any); ok && object[member] != nil {
					secrets = append(secrets, first.text(member))
				}
			}
			secrets = append(secrets, ann.token, ann.refresh, strings.ReplaceAll(key, " ", "-"))
			for _, r := range []string{`"matchTimeoutSeconds":60`, `"rakeBps":500`} {
				f.expect(200, "PATCH", f.gamePath(), adminKey, `{"settings":{`+r+`}}`)
			}
			f.giveGold(1_000_000, f.game)
		}
		all := f.log.String()
		for cursor := ""; cursor != "null"; {
			page := f.trail(cursor)
			all += string(page.raw)
			if cursor = page.text("nextCursor"); cursor != "null" {
				cursor = "&cursor=" + cursor
			}
		}
		for _, secret := range secrets {
			if strings.Contains(all, secret) {
				t.Errorf("the trail or the log has the secret %q", secret)
			}
		}
		if want := "action=debit target=user:"; strings.Count(f.log.String(), want) != 1 {
			t.Errorf("the log has not one line with %q", want)
		}
	})
}

func TestAWriteOfAPlayerLeavesNoRecord(t *testing.T) {
	f := newGameFixture(t)
	last, lines := f.trail("").id("items.0.id"), strings.Count(f.log.String(), `"staff write"`)
	ann, bob := f.guest("Ann"), f.guest("Bob")
	room := f.createRoom(ann)
	f.expect(200, "POST", "/join", bob.token, roomBody(room))
	f.expect(200, "POST", "/api/v1/game-session/kick", ann.token, fmt.Sprintf(`{"roomId":%q,"userId":%d}`, room, bob.id))
	f.expect(200, "POST", "/api/v1/game-session/cancel", ann.token, roomBody(room))
	f.expect(204, "POST", "/api/v1/auth/logout", "", fmt.Sprintf(`{"refreshToken":%q}`, ann.refresh))
	if now := f.trail(""); now.id("items.0.id") != last {
		t.Errorf("the trail has what players did: %s", now.raw)
	}
	if strings.Count(f.log.String(), `"staff write"`) != lines {
		t.Errorf("the log has what players did: %s", f.log)
	}
}

// A change whose reply was lost may have happened. Its repetition is replayed and leaves no record.
func TestAWriteWithAnUnknownOutcomeIsInTheTrail(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	broken := redistest.Single(t)
	testkit.Check(t, broken.Close())
	deps := f.deps
	there := newFixtureOn(t, f.db, func(d *handlers.Deps) {
		d.Wallet = wallet.New(broken, deps.Users, wallet.Options{})
	})
	path := fmt.Sprintf("/api/v1/admin/users/%d/credit", ann.id)
	there.expectError(503, "store_unavailable", "POST", path, adminKey, `{"tokenId":"GOLD","amount":1,"reason":"x"}`,
		"Idempotency-Key", "k")
	got := f.trail("&target=" + fmt.Sprintf("user:%d", ann.id))
	if got.count("items") != 1 || got.text("items.0.outcome") != string(trail.Unknown) ||
		got.text("items.0.after.requested.reason") != "x" {
		t.Errorf("the trail has %s", got.raw)
	}
}

func TestAStoreThatDiesAfterTheChangeLeavesTheRecordInTheLog(t *testing.T) {
	broken := redistest.Single(t)
	f := newFixture(t).createGame()
	ann := f.guest("Ann")
	there := newFixtureOn(t, f.db, func(d *handlers.Deps) { d.Trail = trail.New(broken, d.Log) })
	testkit.Check(t, broken.Close())
	there.expect(200, "POST", fmt.Sprintf("/api/v1/admin/users/%d/credit", ann.id), adminKey,
		`{"tokenId":"GOLD","amount":1,"reason":"x"}`, "Idempotency-Key", "k")
	for _, message := range []string{`"staff write"`, `"staff write not in the trail"`} {
		want := "msg=" + message + " actor=operator:1 action=credit target=user:" + fmt.Sprint(ann.id) +
			` before="{\"volume\":100}" after="{\"amount\":\"1\",`
		if !strings.Contains(there.log.String(), want) {
			t.Errorf("the log has no %s\n%s", want, there.log)
		}
	}
}
