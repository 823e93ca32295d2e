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
		w := worldOn(t, db, nil).settle()
		// A Cluster is not empty between tests, so its ids are others each time.
		keep := func(name string, a *answer) {
			if t.Name() == "TestEveryOperationAnswersAsTheContractSays/single" {
				golden(t, name, a)
			}
		}
		game := fmt.Sprintf("/api/v1/admin/games/%d", w.game)

		// Games and tokens.
		keep("game", w.must(200, "GET", game, w.serverKey, ""))
		keep("game_patched", w.must(200, "PATCH", game, adminKey, `{"origins":["https://duel.example","https://*.duel.example"],"settings":{"minRakeBps":100,"matchTimeoutSeconds":3600.5}}`))
		w.must(200, "GET", "/api/v1/admin/games?limit=1", adminKey, "")
		rotated := w.must(201, "POST", game+"/server-keys", adminKey, "")
		keep("game_with_key", rotated)
		w.must(200, "GET", game, rotated.text("serverKey"), "")
		w.must(200, "DELETE", game+"/server-keys/"+rotated.text("game.serverKeys.1.id"), adminKey, "")
		w.refused(401, "unauthenticated", "GET", game, rotated.text("serverKey"), "")
		keep("tokens", w.must(200, "GET", "/api/v1/admin/tokens", adminKey, ""))
		w.must(200, "PATCH", "/api/v1/admin/tokens/GOLD", adminKey, `{"tokenName":"Fine gold","logoUrl":"https://duel.example/gold.png"}`)
		keep("token_patched", w.must(200, "PATCH", "/api/v1/admin/tokens/GOLD", adminKey, `{"tokenName":"Gold","logoUrl":null,"metadata":{"policyId":"ab02"}}`))
		w.must(200, "GET", "/api/v1/admin/tokens/GOLD", adminKey, "")

		// Players.
		signedIn := w.must(201, "POST", "/api/v1/auth/guest", "", fmt.Sprintf(`{"gameId":%d,"username":"Ann","deviceSecret":"a secret of the device"}`, w.game))
		keep("session", signedIn)
		back := w.must(201, "POST", "/api/v1/auth/guest", "", fmt.Sprintf(`{"gameId":%d,"deviceSecret":"a secret of the device"}`, w.game))
		if back.id("user.id") != signedIn.id("user.id") {
			t.Errorf("the device came back as %s", back.raw)
		}
		ann := person{id: signedIn.id("user.id"), token: signedIn.text("accessToken"), refresh: signedIn.text("refreshToken")}
		known := w.must(201, "POST", "/api/v1/auth/exchange", w.serverKey, `{"externalId":"steam:1","username":"Bob","avatar":"https://duel.example/bob.png"}`)
		keep("exchange", known)
		bob := person{id: known.id("user.id"), token: known.text("accessToken"), refresh: known.text("refreshToken")}
		fresh := w.must(200, "POST", "/api/v1/auth/refresh", "", fmt.Sprintf(`{"refreshToken":%q}`, bob.refresh))
		w.refused(401, "refresh_reused", "POST", "/api/v1/auth/refresh", "", fmt.Sprintf(`{"refreshToken":%q}`, bob.refresh))
		w.must(204, "POST", "/api/v1/auth/logout", "", fmt.Sprintf(`{"refreshToken":%q}`, fresh.text("refreshToken")))
		keep("ticket", w.must(200, "POST", "/api/v1/auth/ticket", ann.token, ""))
		cid := w.guest("Cid")
		keep("linked", w.must(200, "POST", "/api/v1/auth/link", cid.token, `{"deviceSecret":"the secret of cid's device"}`))
		keep("me", w.must(200, "GET", "/api/v1/me", bob.token, ""))
		if a := w.must(200, "PATCH", "/api/v1/me", bob.token, `{"username":"Bobby"}`); a.text("avatar") == "null" {
			t.Errorf("a patch without avatar took it away: %s", a.raw)
		}
		keep("me_patched", w.must(200, "PATCH", "/api/v1/me", bob.token, `{"avatar":null}`))
		keep("friend_asked", w.must(200, "POST", fmt.Sprintf("/api/v1/friends/%d", bob.id), ann.token, ""))
		keep("friend_accepted", w.must(200, "POST", fmt.Sprintf("/api/v1/friends/%d", ann.id), bob.token, "{}"))
		w.must(200, "POST", fmt.Sprintf("/api/v1/friends/%d/block", cid.id), ann.token, "")
		keep("friends", w.must(200, "GET", "/api/v1/friends", ann.token, ""))
		w.must(204, "DELETE", fmt.Sprintf("/api/v1/friends/%d", cid.id), ann.token, "")

		// The catalogue.
		sword := w.sword()
		asset := fmt.Sprintf("%s/assets/%d", game, sword)
		keep("asset", w.must(200, "GET", asset, w.serverKey, ""))
		keep("asset_patched", w.must(200, "PATCH", asset, adminKey, `{"price":"8","stock":null,"perUserLimit":5}`))
		w.must(200, "GET", game+"/assets", adminKey, "")
		keep("catalogue", w.must(200, "GET", "/api/v1/game-assets", ann.token, ""))
		w.must(200, "GET", fmt.Sprintf("/api/v1/game-assets?gameId=%d", w.game), adminKey, "")
		buy := fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", sword)
		keep("purchase", w.must(201, "POST", buy, bob.token, `{"quantity":2,"expectedPrice":8}`, "Idempotency-Key", "buy-1"))
		keep("purchase_replayed", w.must(201, "POST", buy, bob.token, `{"expectedPrice":8.0,"quantity":2}`, "Idempotency-Key", "buy-1"))
		keep("price_changed", w.refused(409, "price_changed", "POST", buy, bob.token, `{"expectedPrice":7.5}`, "Idempotency-Key", "buy-2"))
		keep("owned", w.must(200, "GET", "/api/v1/user-assets", bob.token, ""))

		// A paid room from create to payout.
		made := w.must(201, "POST", "/api/v1/game-session/create", ann.token, fmt.Sprintf(
			`{"gameId":%d,"entryTokenId":%d,"roomEntry":33.35,"maxPlayers":4,"minPlayers":3,"metadata":{"map":"bridge"},"rakeBps":500,"payout":[7000,3000]}`, w.game, w.gold))
		keep("room_created", made)
		room := roomBody(made.text("roomId"))
		w.must(200, "POST", "/api/v1/game-session/join", bob.token, room)
		keep("room_joined", w.must(200, "POST", "/join", cid.token, room))
		keep("not_enough_money", w.refused(402, "insufficient_funds", "POST", "/api/v1/game-session/create", cid.token,
			fmt.Sprintf(`{"entryTokenId":%d,"roomEntry":66.66,"maxPlayers":2}`, w.gold)))
		w.must(200, "POST", "/api/v1/game-session/ready", cid.token, fmt.Sprintf(`{"roomId":%q,"ready":true}`, made.text("roomId")))
		w.must(200, "POST", "/api/v1/game-session/transfer-host", ann.token, fmt.Sprintf(`{"roomId":%q,"userId":%d}`, made.text("roomId"), bob.id))
		got := w.must(200, "GET", "/api/v1/game-session/get?roomId="+made.text("roomId"), ann.token, "")
		keep("room_ready", got)
		w.must(200, "GET", "/api/v1/game-session/get?code="+made.text("code"), ann.token, "")
		w.must(304, "GET", "/api/v1/game-session/get?roomId="+made.text("roomId"), ann.token, "", "If-None-Match", got.header.Get("Etag"))
		keep("balances", w.must(200, "GET", "/api/v1/user-balance/token-balances", cid.token, ""))
		if list := w.must(200, "GET", fmt.Sprintf("/api/v1/game-session/list?entryTokenId=%d&maxEntry=40&hasSeat=true", w.gold), ann.token, ""); list.text("items.0.roomId") != made.text("roomId") {
			t.Errorf("the list has not the room: %s", list.raw)
		}
		w.must(200, "GET", "/api/v1/game-session/list?status=CREATED&limit=1", w.serverKey, "")
		w.must(200, "POST", "/api/v1/game-session/start", bob.token, room)
		result := fmt.Sprintf(`{"roomId":%q,"results":[{"userId":%d,"place":1,"score":12},{"userId":%d,"place":1,"score":12.5},{"userId":%d,"place":3}]}`,
			made.text("roomId"), ann.id, bob.id, cid.id)
		keep("room_finished", w.must(200, "POST", "/api/v1/game-session/finish", w.serverKey, result, "Idempotency-Key", "finish-1"))
		w.refused(409, "room_closed", "POST", "/api/v1/game-session/leave", ann.token, room)
		again := w.must(201, "POST", "/api/v1/game-session/rematch", ann.token, room)
		keep("room_rematch", again)
		w.must(200, "POST", "/api/v1/game-session/join", bob.token, roomBody(again.text("roomId")))
		keep("room_kicked", w.must(200, "POST", "/api/v1/game-session/kick", ann.token, fmt.Sprintf(`{"roomId":%q,"userId":%d,"ban":true}`, again.text("roomId"), bob.id)))
		w.must(200, "POST", "/api/v1/game-session/leave", ann.token, roomBody(again.text("roomId")))
		other := w.room(cid)
		keep("room_cancelled", w.must(200, "POST", "/api/v1/game-session/cancel", adminKey, roomBody(other)))
		keep("ledger", w.must(200, "GET", "/api/v1/user-balance/ledger?tokenId=GOLD&limit=2", ann.token, ""))

		// The operator.
		keep("admin_rooms", w.must(200, "GET", fmt.Sprintf("/api/v1/admin/rooms?gameId=%d&status=FINISHED", w.game), adminKey, ""))
		keep("credited", w.must(200, "POST", fmt.Sprintf("/api/v1/admin/users/%d/credit", cid.id), adminKey, `{"tokenId":"GOLD","amount":"0.05","reason":"compensation"}`, "Idempotency-Key", "credit-1"))
		w.must(200, "POST", fmt.Sprintf("/api/v1/admin/users/%d/debit", cid.id), w.serverKey, `{"tokenId":"GOLD","amount":0.05,"reason":"taken back"}`, "Idempotency-Key", "debit-1")
		keep("user", w.must(200, "GET", fmt.Sprintf("/api/v1/admin/users/%d", cid.id), w.serverKey, ""))
		w.wantBalanced()
		if t.Name() == "TestEveryOperationAnswersAsTheContractSays/single" {
			keep("audit", w.must(200, "GET", "/api/v1/admin/audit", adminKey, ""))
		}
		w.wantEventsOfTheContract()

		// The node.
		keep("healthz", w.must(200, "GET", "/healthz", "", ""))
		keep("readyz", w.must(200, "GET", "/readyz", "", ""))
		for _, path := range []string{"/openapi.yaml", "/asyncapi.yaml"} {
			document := w.must(200, "GET", path, "", "")
			w.must(304, "GET", path, "", "", "If-None-Match", document.header.Get("Etag"))
		}
	})
}
