package handlers_test

import (
	"fmt"
	"testing"

	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
)

// One story through every operation, with what goes over the wire in golden files; the same on a Cluster, without them.
func TestEveryOperationAnswersAsTheContractSays(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixtureOn(t, db, nil).createGame()
		// A Cluster is not empty between tests, so its ids are others each time.
		keep := func(name string, resp *httpResult) {
			if t.Name() == "TestEveryOperationAnswersAsTheContractSays/single" {
				golden(t, name, resp)
			}
		}
		game := fmt.Sprintf("/api/v1/admin/games/%d", f.game)

		// Games and tokens.
		keep("game", f.expect(200, "GET", game, f.serverKey, ""))
		keep("game_patched", f.expect(200, "PATCH", game, adminKey, `{"origins":["https://duel.example","https://*.duel.example"],"settings":{"minRakeBps":100,"matchTimeoutSeconds":3600.5}}`))
		f.expect(200, "GET", "/api/v1/admin/games?limit=1", adminKey, "")
		rotated := f.expect(201, "POST", game+"/server-keys", adminKey, "")
		keep("game_with_key", rotated)
		f.expect(200, "GET", game, rotated.text("serverKey"), "")
		f.expect(200, "DELETE", game+"/server-keys/"+rotated.text("game.serverKeys.1.id"), adminKey, "")
		f.expectError(401, "unauthenticated", "GET", game, rotated.text("serverKey"), "")
		keep("tokens", f.expect(200, "GET", "/api/v1/admin/tokens", adminKey, ""))
		f.expect(200, "PATCH", "/api/v1/admin/tokens/GOLD", adminKey, `{"tokenName":"Fine gold","logoUrl":"https://duel.example/gold.png"}`)
		keep("token_patched", f.expect(200, "PATCH", "/api/v1/admin/tokens/GOLD", adminKey, `{"tokenName":"Gold","logoUrl":null,"metadata":{"policyId":"ab02"}}`))
		f.expect(200, "GET", "/api/v1/admin/tokens/GOLD", adminKey, "")

		// Players.
		signedIn := f.expect(201, "POST", "/api/v1/auth/guest", "", fmt.Sprintf(`{"gameId":%d,"username":"Ann","deviceSecret":"a secret of the device"}`, f.game))
		keep("session", signedIn)
		back := f.expect(201, "POST", "/api/v1/auth/guest", "", fmt.Sprintf(`{"gameId":%d,"deviceSecret":"a secret of the device"}`, f.game))
		if back.id("user.id") != signedIn.id("user.id") {
			t.Errorf("the device came back as %s", back.raw)
		}
		ann := player{id: signedIn.id("user.id"), token: signedIn.text("accessToken"), refresh: signedIn.text("refreshToken")}
		known := f.expect(201, "POST", "/api/v1/auth/exchange", f.serverKey, `{"externalId":"steam:1","username":"Bob","avatar":"https://duel.example/bob.png"}`)
		keep("exchange", known)
		bob := player{id: known.id("user.id"), token: known.text("accessToken"), refresh: known.text("refreshToken")}
		fresh := f.expect(200, "POST", "/api/v1/auth/refresh", "", fmt.Sprintf(`{"refreshToken":%q}`, bob.refresh))
		f.expectError(401, "refresh_reused", "POST", "/api/v1/auth/refresh", "", fmt.Sprintf(`{"refreshToken":%q}`, bob.refresh))
		f.expect(204, "POST", "/api/v1/auth/logout", "", fmt.Sprintf(`{"refreshToken":%q}`, fresh.text("refreshToken")))
		keep("ticket", f.expect(200, "POST", "/api/v1/auth/ticket", ann.token, ""))
		cid := f.guest("Cid")
		keep("linked", f.expect(200, "POST", "/api/v1/auth/link", cid.token, `{"deviceSecret":"the secret of cid's device"}`))
		keep("me", f.expect(200, "GET", "/api/v1/me", bob.token, ""))
		if resp := f.expect(200, "PATCH", "/api/v1/me", bob.token, `{"username":"Bobby"}`); resp.text("avatar") == "null" {
			t.Errorf("a patch without avatar took it away: %s", resp.raw)
		}
		keep("me_patched", f.expect(200, "PATCH", "/api/v1/me", bob.token, `{"avatar":null}`))
		keep("friend_asked", f.expect(200, "POST", fmt.Sprintf("/api/v1/friends/%d", bob.id), ann.token, ""))
		keep("friend_accepted", f.expect(200, "POST", fmt.Sprintf("/api/v1/friends/%d", ann.id), bob.token, "{}"))
		f.expect(200, "POST", fmt.Sprintf("/api/v1/friends/%d/block", cid.id), ann.token, "")
		keep("friends", f.expect(200, "GET", "/api/v1/friends", ann.token, ""))
		f.expect(204, "DELETE", fmt.Sprintf("/api/v1/friends/%d", cid.id), ann.token, "")

		// The catalogue.
		sword := f.createSword()
		asset := fmt.Sprintf("%s/assets/%d", game, sword)
		keep("asset", f.expect(200, "GET", asset, f.serverKey, ""))
		keep("asset_patched", f.expect(200, "PATCH", asset, adminKey, `{"price":"8","stock":null,"perUserLimit":5}`))
		f.expect(200, "GET", game+"/assets", adminKey, "")
		keep("catalogue", f.expect(200, "GET", "/api/v1/game-assets", ann.token, ""))
		f.expect(200, "GET", fmt.Sprintf("/api/v1/game-assets?gameId=%d", f.game), adminKey, "")
		buy := fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", sword)
		keep("purchase", f.expect(201, "POST", buy, bob.token, `{"quantity":2,"expectedPrice":8}`, "Idempotency-Key", "buy-1"))
		keep("purchase_replayed", f.expect(201, "POST", buy, bob.token, `{"expectedPrice":8.0,"quantity":2}`, "Idempotency-Key", "buy-1"))
		keep("price_changed", f.expectError(409, "price_changed", "POST", buy, bob.token, `{"expectedPrice":7.5}`, "Idempotency-Key", "buy-2"))
		keep("owned", f.expect(200, "GET", "/api/v1/user-assets", bob.token, ""))

		// A paid room from create to payout.
		made := f.expect(201, "POST", "/api/v1/game-session/create", ann.token, fmt.Sprintf(
			`{"gameId":%d,"entryTokenId":%d,"roomEntry":33.35,"maxPlayers":4,"minPlayers":3,"metadata":{"map":"bridge"},"rakeBps":500,"payout":[7000,3000]}`, f.game, f.gold))
		keep("room_created", made)
		room := roomBody(made.text("roomId"))
		f.expect(200, "POST", "/api/v1/game-session/join", bob.token, room)
		keep("room_joined", f.expect(200, "POST", "/join", cid.token, room))
		keep("not_enough_money", f.expectError(402, "insufficient_funds", "POST", "/api/v1/game-session/create", cid.token,
			fmt.Sprintf(`{"entryTokenId":%d,"roomEntry":66.66,"maxPlayers":2}`, f.gold)))
		f.expect(200, "POST", "/api/v1/game-session/ready", cid.token, fmt.Sprintf(`{"roomId":%q,"ready":true}`, made.text("roomId")))
		f.expect(200, "POST", "/api/v1/game-session/transfer-host", ann.token, fmt.Sprintf(`{"roomId":%q,"userId":%d}`, made.text("roomId"), bob.id))
		got := f.expect(200, "GET", "/api/v1/game-session/get?roomId="+made.text("roomId"), ann.token, "")
		keep("room_ready", got)
		f.expect(200, "GET", "/api/v1/game-session/get?code="+made.text("code"), ann.token, "")
		f.expect(304, "GET", "/api/v1/game-session/get?roomId="+made.text("roomId"), ann.token, "", "If-None-Match", got.header.Get("Etag"))
		keep("balances", f.expect(200, "GET", "/api/v1/user-balance/token-balances", cid.token, ""))
		if list := f.expect(200, "GET", fmt.Sprintf("/api/v1/game-session/list?entryTokenId=%d&maxEntry=40&hasSeat=true", f.gold), ann.token, ""); list.text("items.0.roomId") != made.text("roomId") {
			t.Errorf("the list has not the room: %s", list.raw)
		}
		f.expect(200, "GET", "/api/v1/game-session/list?status=CREATED&limit=1", f.serverKey, "")
		f.expect(200, "POST", "/api/v1/game-session/start", bob.token, room)
		result := fmt.Sprintf(`{"roomId":%q,"results":[{"userId":%d,"place":1,"score":12},{"userId":%d,"place":1,"score":12.5},{"userId":%d,"place":3}]}`,
			made.text("roomId"), ann.id, bob.id, cid.id)
		keep("room_finished", f.expect(200, "POST", "/api/v1/game-session/finish", f.serverKey, result, "Idempotency-Key", "finish-1"))
		f.expectError(409, "room_closed", "POST", "/api/v1/game-session/leave", ann.token, room)
		again := f.expect(201, "POST", "/api/v1/game-session/rematch", ann.token, room)
		keep("room_rematch", again)
		f.expect(200, "POST", "/api/v1/game-session/join", bob.token, roomBody(again.text("roomId")))
		keep("room_kicked", f.expect(200, "POST", "/api/v1/game-session/kick", ann.token, fmt.Sprintf(`{"roomId":%q,"userId":%d,"ban":true}`, again.text("roomId"), bob.id)))
		f.expect(200, "POST", "/api/v1/game-session/leave", ann.token, roomBody(again.text("roomId")))
		other := f.createRoom(cid)
		keep("room_cancelled", f.expect(200, "POST", "/api/v1/game-session/cancel", adminKey, roomBody(other)))
		keep("ledger", f.expect(200, "GET", "/api/v1/user-balance/ledger?tokenId=GOLD&limit=2", ann.token, ""))

		// The operator.
		keep("admin_rooms", f.expect(200, "GET", fmt.Sprintf("/api/v1/admin/rooms?gameId=%d&status=FINISHED", f.game), adminKey, ""))
		keep("credited", f.expect(200, "POST", fmt.Sprintf("/api/v1/admin/users/%d/credit", cid.id), adminKey, `{"tokenId":"GOLD","amount":"0.05","reason":"compensation"}`, "Idempotency-Key", "credit-1"))
		f.expect(200, "POST", fmt.Sprintf("/api/v1/admin/users/%d/debit", cid.id), f.serverKey, `{"tokenId":"GOLD","amount":0.05,"reason":"taken back"}`, "Idempotency-Key", "debit-1")
		keep("user", f.expect(200, "GET", fmt.Sprintf("/api/v1/admin/users/%d", cid.id), f.serverKey, ""))
		f.expectBalancedAudit()
		if t.Name() == "TestEveryOperationAnswersAsTheContractSays/single" {
			keep("audit", f.expect(200, "GET", "/api/v1/admin/audit", adminKey, ""))
		}
		f.expectEventsMatchContract()

		// The node.
		keep("healthz", f.expect(200, "GET", "/healthz", "", ""))
		keep("readyz", f.expect(200, "GET", "/readyz", "", ""))
		for _, path := range []string{"/openapi.yaml", "/asyncapi.yaml"} {
			document := f.expect(200, "GET", path, "", "")
			f.expect(304, "GET", path, "", "", "If-None-Match", document.header.Get("Etag"))
		}
	})
}
