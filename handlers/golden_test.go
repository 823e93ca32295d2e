package handlers_test

import (
	"fmt"
	"testing"

	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
)

// The test calls every operation once in a plausible order and compares the responses with golden
// files. On a Cluster it does the same without the files, because ids differ from run to run.
func TestEveryOperationReturnsTheGoldenResponse(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixtureOn(t, db, nil).createGame()
		goldenOnSingle := func(name string, resp *httpResult) {
			if t.Name() == "TestEveryOperationReturnsTheGoldenResponse/single" {
				golden(t, name, resp)
			}
		}
		game := fmt.Sprintf("/api/v1/admin/games/%d", f.game)

		// Games and tokens.
		goldenOnSingle("game", f.expect(200, "GET", game, f.serverKey, ""))
		goldenOnSingle("game_patched", f.expect(200, "PATCH", game, adminKey,
			`{"origins":["https://duel.example","https://*.duel.example"],"settings":{"minRakeBps":100,`+
				`"matchTimeoutSeconds":3600.5}}`))
		f.expect(200, "GET", "/api/v1/admin/games?limit=1", adminKey, "")
		rotated := f.expect(201, "POST", game+"/server-keys", adminKey, "")
		goldenOnSingle("game_with_key", rotated)
		f.expect(200, "GET", game, rotated.text("serverKey"), "")
		f.expect(200, "DELETE", game+"/server-keys/"+rotated.text("game.serverKeys.1.id"), adminKey, "")
		f.expectError(401, "unauthenticated", "GET", game, rotated.text("serverKey"), "")
		goldenOnSingle("tokens", f.expect(200, "GET", "/api/v1/admin/tokens", adminKey, ""))
		f.expect(200, "PATCH", "/api/v1/admin/tokens/GOLD", adminKey,
			`{"tokenName":"Fine gold","logoUrl":"https://duel.example/gold.png"}`)
		goldenOnSingle("token_patched", f.expect(200, "PATCH", "/api/v1/admin/tokens/GOLD", adminKey,
			`{"tokenName":"Gold","logoUrl":null,"metadata":{"policyId":"ab02"}}`))
		f.expect(200, "GET", "/api/v1/admin/tokens/GOLD", adminKey, "")

		// Players.
		signedIn := f.expect(201, "POST", "/api/v1/auth/guest", "",
			fmt.Sprintf(`{"gameId":%d,"username":"Ann","deviceSecret":"a secret of the device, of 32 bytes"}`, f.game))
		goldenOnSingle("session", signedIn)
		back := f.expect(201, "POST", "/api/v1/auth/guest", "",
			fmt.Sprintf(`{"gameId":%d,"deviceSecret":"a secret of the device, of 32 bytes"}`, f.game))
		if back.id("user.id") != signedIn.id("user.id") {
			t.Errorf("the device came back as %s", back.raw)
		}
		ann := player{id: signedIn.id("user.id"), token: signedIn.text("accessToken"), refresh: signedIn.text("refreshToken")}
		known := f.expect(201, "POST", "/api/v1/auth/exchange", f.serverKey,
			`{"externalId":"steam:1","username":"Bob","avatar":"https://duel.example/bob.png"}`)
		goldenOnSingle("exchange", known)
		bob := player{id: known.id("user.id"), token: known.text("accessToken"), refresh: known.text("refreshToken")}
		spent := f.expect(201, "POST", "/api/v1/auth/exchange", f.serverKey, `{"externalId":"steam:1"}`).text("refreshToken")
		last := spent
		for range 2 {
			fresh := f.expect(200, "POST", "/api/v1/auth/refresh", "", fmt.Sprintf(`{"refreshToken":%q}`, last))
			last = fresh.text("refreshToken")
		}
		f.expectError(401, "refresh_reused", "POST", "/api/v1/auth/refresh", "", fmt.Sprintf(`{"refreshToken":%q}`, spent))
		f.expect(204, "POST", "/api/v1/auth/logout", "", fmt.Sprintf(`{"refreshToken":%q}`, last))
		goldenOnSingle("ticket", f.expect(200, "POST", "/api/v1/auth/ticket", ann.token, ""))
		cid := f.guest("Cid")
		goldenOnSingle("linked", f.expect(200, "POST", "/api/v1/auth/link", cid.token,
			`{"deviceSecret":"the secret of cid's device, 32 bytes"}`))
		goldenOnSingle("me", f.expect(200, "GET", "/api/v1/me", bob.token, ""))
		if resp := f.expect(200, "PATCH", "/api/v1/me", bob.token, `{"username":"Bobby"}`); resp.text("avatar") == "null" {
			t.Errorf("a patch without avatar took it away: %s", resp.raw)
		}
		goldenOnSingle("me_patched", f.expect(200, "PATCH", "/api/v1/me", bob.token, `{"avatar":null}`))
		goldenOnSingle("friend_requested", f.expect(200, "POST", fmt.Sprintf("/api/v1/friends/%d", bob.id), ann.token, ""))
		goldenOnSingle("friend_accepted", f.expect(200, "POST", fmt.Sprintf("/api/v1/friends/%d", ann.id), bob.token, "{}"))
		f.expect(200, "POST", fmt.Sprintf("/api/v1/friends/%d/block", cid.id), ann.token, "")
		goldenOnSingle("friends", f.expect(200, "GET", "/api/v1/friends", ann.token, ""))
		f.expect(204, "DELETE", fmt.Sprintf("/api/v1/friends/%d", cid.id), ann.token, "")

		// The catalogue.
		sword := f.createSword()
		asset := fmt.Sprintf("%s/assets/%d", game, sword)
		goldenOnSingle("asset", f.expect(200, "GET", asset, f.serverKey, ""))
		goldenOnSingle("asset_patched", f.expect(200, "PATCH", asset, adminKey,
			`{"price":"8","stock":null,"perUserLimit":5}`))
		f.expect(200, "GET", game+"/assets", adminKey, "")
		goldenOnSingle("catalogue", f.expect(200, "GET", "/api/v1/game-assets", ann.token, ""))
		f.expect(200, "GET", fmt.Sprintf("/api/v1/game-assets?gameId=%d", f.game), adminKey, "")
		buy := fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", sword)
		goldenOnSingle("purchase", f.expect(201, "POST", buy, bob.token, `{"quantity":2,"expectedPrice":8}`,
			"Idempotency-Key", "buy-1"))
		goldenOnSingle("purchase_replayed", f.expect(201, "POST", buy, bob.token, `{"expectedPrice":8.0,"quantity":2}`,
			"Idempotency-Key", "buy-1"))
		goldenOnSingle("price_changed", f.expectError(409, "price_changed", "POST", buy, bob.token, `{"expectedPrice":7.5}`,
			"Idempotency-Key", "buy-2"))
		goldenOnSingle("owned", f.expect(200, "GET", "/api/v1/user-assets", bob.token, ""))

		// A paid room from create to payout.
		made := f.expect(201, "POST", "/api/v1/game-session/create", ann.token, fmt.Sprintf(
			`{"gameId":%d,"entryTokenId":%d,"roomEntry":33.35,"maxPlayers":4,"minPlayers":3,"metadata":{"map":"bridge"},`+
				`"rakeBps":500,"payout":[7000,3000]}`, f.game, f.gold))
		goldenOnSingle("room_created", made)
		room := roomBody(made.text("roomId"))
		f.expect(200, "POST", "/api/v1/game-session/join", bob.token, room)
		goldenOnSingle("room_joined", f.expect(200, "POST", "/join", cid.token, room))
		goldenOnSingle("not_enough_money", f.expectError(402, "insufficient_funds", "POST", "/api/v1/game-session/create",
			cid.token,
			fmt.Sprintf(`{"entryTokenId":%d,"roomEntry":66.66,"maxPlayers":2}`, f.gold)))
		f.expect(200, "POST", "/api/v1/game-session/ready", cid.token,
			fmt.Sprintf(`{"roomId":%q,"ready":true}`, made.text("roomId")))
		f.expect(200, "POST", "/api/v1/game-session/transfer-host", ann.token,
			fmt.Sprintf(`{"roomId":%q,"userId":%d}`, made.text("roomId"), bob.id))
		got := f.expect(200, "GET", "/api/v1/game-session/get?roomId="+made.text("roomId"), ann.token, "")
		goldenOnSingle("room_ready", got)
		f.expect(200, "GET", "/api/v1/game-session/get?code="+made.text("code"), ann.token, "")
		f.expect(304, "GET", "/api/v1/game-session/get?roomId="+made.text("roomId"), ann.token, "", "If-None-Match",
			got.header.Get("Etag"))
		goldenOnSingle("balances", f.expect(200, "GET", "/api/v1/user-balance/token-balances", cid.token, ""))
		if list := f.expect(200, "GET", fmt.Sprintf("/api/v1/game-session/list?entryTokenId=%d&maxEntry=40&hasSeat=true",
			f.gold), ann.token, ""); list.text("items.0.roomId") != made.text("roomId") {
			t.Errorf("the list has not the room: %s", list.raw)
		}
		f.expect(200, "GET", "/api/v1/game-session/list?status=CREATED&limit=1", f.serverKey, "")
		f.expect(200, "POST", "/api/v1/game-session/start", bob.token, room)
		result := fmt.Sprintf(`{"roomId":%q,"results":[{"userId":%d,"place":1,"score":12},{"userId":%d,"place":1,`+
			`"score":12.5},{"userId":%d,"place":3}]}`,
			made.text("roomId"), ann.id, bob.id, cid.id)
		goldenOnSingle("room_finished", f.expect(200, "POST", "/api/v1/game-session/finish", f.serverKey, result,
			"Idempotency-Key", "finish-1"))
		f.expectError(409, "room_closed", "POST", "/api/v1/game-session/leave", ann.token, room)
		again := f.expect(201, "POST", "/api/v1/game-session/rematch", ann.token, room)
		goldenOnSingle("room_rematch", again)
		f.expect(200, "POST", "/api/v1/game-session/join", bob.token, roomBody(again.text("roomId")))
		goldenOnSingle("room_kicked", f.expect(200, "POST", "/api/v1/game-session/kick", ann.token,
			fmt.Sprintf(`{"roomId":%q,"userId":%d,"ban":true}`, again.text("roomId"), bob.id)))
		f.expect(200, "POST", "/api/v1/game-session/leave", ann.token, roomBody(again.text("roomId")))
		other := f.createRoom(cid)
		goldenOnSingle("room_cancelled", f.expect(200, "POST", "/api/v1/game-session/cancel", adminKey, roomBody(other)))
		goldenOnSingle("ledger", f.expect(200, "GET", "/api/v1/user-balance/ledger?tokenId=GOLD&limit=2", ann.token, ""))

		// A room that is settled by consensus.
		disputed := f.disputedRoom(ann, bob)
		f.expectError(409, "room_disputed", "POST", "/api/v1/game-session/leave", bob.token, roomBody(disputed))
		goldenOnSingle("disputed_rooms", f.expect(200, "GET",
			fmt.Sprintf("/api/v1/admin/rooms?gameId=%d&status=DISPUTED", f.game), adminKey, ""))
		f.expect(200, "GET", "/api/v1/game-session/list?status=DISPUTED", cid.token, "")
		goldenOnSingle("room_resolved", f.expect(200, "POST", "/api/v1/admin/rooms/"+disputed+"/resolve", adminKey,
			fmt.Sprintf(`{"results":[{"userId":%d,"place":1},{"userId":%d,"place":2}]}`, bob.id, ann.id)))
		f.expectError(409, "result_conflict", "POST", "/api/v1/admin/rooms/"+disputed+"/resolve", adminKey,
			`{"refund":true}`)
		goldenOnSingle("user_for_operator", f.expect(200, "GET", fmt.Sprintf("/api/v1/admin/users/%d", ann.id), adminKey, ""))
		goldenOnSingle("audit_accepted", f.expect(200, "POST", game+"/accept-audit", adminKey, `{"reason":"nothing to do"}`))
		goldenOnSingle("limits", f.expect(200, "PUT", "/api/v1/me/limits", ann.token,
			`{"tokenId":"GOLD","maxStake":1.5,"maxOpenRooms":3,"maxLoss24h":"100"}`))
		limited := fmt.Sprintf("/api/v1/admin/users/%d/limits", ann.id)
		f.expect(200, "PUT", limited, adminKey, `{"tokenId":"GOLD","maxOpenRooms":2}`)
		f.expectError(403, "forbidden", "PUT", limited, adminKey, `{"tokenId":"GOLD","maxOpenRooms":3}`)
		goldenOnSingle("user_limits", f.expect(200, "GET", limited+"?tokenId=GOLD", f.serverKey, ""))
		f.expect(200, "GET", "/api/v1/me/limits", ann.token, "")

		// A leaderboard.
		goldenOnSingle("leaderboard", f.expect(201, "POST", game+"/leaderboards", f.serverKey,
			`{"board":"laps","name":"Fastest laps","order":"asc","decimals":3,"ties":"shared","segments":["country"],`+
				`"schedule":{"cron":"0 0 * * 1","timeZone":"Europe/Berlin"},"writers":["server","players"],`+
				`"rules":{"min":"10.5","play":true}}`))
		laps := "/api/v1/leaderboards/laps"
		score := fmt.Sprintf(`{"userId":%d,"score":"61.250","segments":{"country":"DE"},"metadata":{"car":"red"}}`, bob.id)
		goldenOnSingle("score", f.expect(200, "POST", laps+"/scores", f.serverKey, score, "Idempotency-Key", "lap-1"))
		f.expect(200, "POST", laps+"/scores", f.serverKey, score, "Idempotency-Key", "lap-1")
		play := f.expect(201, "POST", laps+"/plays", ann.token, "").text("playId")
		f.expectError(422, "score_rejected", "POST", laps+"/scores", ann.token,
			fmt.Sprintf(`{"score":10.499,"playId":%q}`, play))
		f.expect(200, "POST", laps+"/scores", ann.token, fmt.Sprintf(`{"score":60,"playId":%q}`, play))
		goldenOnSingle("scores", f.expect(200, "POST", laps+"/scores/batch", f.serverKey,
			fmt.Sprintf(`{"scores":[{"userId":%d,"score":61.25},{"userId":999999,"score":1}]}`, cid.id)))
		goldenOnSingle("entries", f.expect(200, "GET", laps+"/entries?limit=3", ann.token, ""))
		f.expect(200, "GET", laps+"/entries?segment=country:DE&season=1", bob.token, "")
		f.expect(200, "GET", laps+"/entries/around?limit=1", bob.token, "")
		f.expect(200, "GET", laps+"/entries/friends", ann.token, "")
		f.expect(200, "GET", fmt.Sprintf("%s/entries/%d", laps, bob.id), ann.token, "")
		f.expect(200, "GET", "/api/v1/leaderboards", ann.token, "")
		f.expect(200, "GET", laps, ann.token, "")
		f.expect(200, "GET", game+"/leaderboards", adminKey, "")
		f.expect(200, "PATCH", game+"/leaderboards/laps", adminKey, `{"keepSeasons":4}`)
		goldenOnSingle("leaderboard_patched", f.expect(200, "GET", game+"/leaderboards/laps", adminKey, ""))
		lap := fmt.Sprintf("%s/leaderboards/laps/entries/%d", game, bob.id)
		goldenOnSingle("entry_hidden", f.expect(200, "POST", lap+"/hide", f.serverKey, `{"reason":"a shortcut"}`))
		f.expectError(404, "entry_not_found", "GET", fmt.Sprintf("%s/entries/%d", laps, bob.id), ann.token, "")
		f.expect(200, "POST", lap+"/unhide", f.serverKey, `{"reason":"no shortcut"}`)
		f.expect(200, "POST", lap+"/remove", f.serverKey, `{"reason":"a shortcut"}`)
		f.expect(200, "POST", game+"/leaderboards/laps/seasons/1/end", adminKey, `{"reason":"new track"}`)
		goldenOnSingle("seasons", f.expect(200, "GET", laps+"/seasons", ann.token, ""))
		f.expect(204, "DELETE", game+"/leaderboards/laps", adminKey, "")

		// Prizes and a league.
		f.expect(201, "POST", game+"/leaderboards", adminKey, `{"board":"duels","name":"Duels","league":{"size":10,`+
			`"tiers":["bronze","silver"],"promote":2,"relegate":2}}`)
		f.expect(200, "POST", "/api/v1/leaderboards/duels/scores", f.serverKey,
			fmt.Sprintf(`{"userId":%d,"score":3}`, bob.id))
		goldenOnSingle("league", f.expect(200, "GET", "/api/v1/leaderboards/duels/league", bob.token, ""))
		f.expectError(404, "entry_not_found", "GET", "/api/v1/leaderboards/duels/league", ann.token, "")
		f.createHeldSeason("approved", bob.id)
		f.createHeldSeason("voided", bob.id)
		goldenOnSingle("season_approved", f.expect(200, "POST", game+"/leaderboards/approved/seasons/1/approve", adminKey,
			`{"reason":"checked"}`))
		goldenOnSingle("season_voided", f.expect(200, "POST", game+"/leaderboards/voided/seasons/1/void", adminKey,
			`{"reason":"a fault"}`))
		f.expectError(409, "season_closed", "POST", game+"/leaderboards/approved/seasons/1/void", adminKey,
			`{"reason":"too late"}`)
		goldenOnSingle("leaderboard_prized", f.expect(200, "GET", "/api/v1/leaderboards/approved", bob.token, ""))
		// A tournament.
		goldenOnSingle("tournament", f.expect(201, "POST", game+"/tournaments", adminKey, fmt.Sprintf(
			`{"name":"Friday cup","format":"single_elimination","entryTokenId":%d,"entryFee":"1.50","addedPrize":`+
				`{"amount":10,"from":"mint"},"payout":[7000,3000],"maxEntrants":4,"seeding":"joined","rakeBps":1000,`+
				`"startsAt":%q}`, f.gold, inAnHour())))
		cup := "/api/v1/tournaments/1"
		goldenOnSingle("tournament_joined", f.expect(200, "POST", cup+"/join", ann.token, ""))
		f.expect(200, "POST", cup+"/join", bob.token, "")
		goldenOnSingle("tournament_invalid", f.expectError(400, "invalid_request", "POST", game+"/tournaments", f.serverKey,
			`{"name":"","format":"swiss","maxEntrants":1,"startsAt":"2020-01-01T00:00:00Z","board":{}}`))
		goldenOnSingle("tournament_forbidden", f.expectError(403, "forbidden", "POST", game+"/tournaments", f.serverKey,
			fmt.Sprintf(`{"name":"x","format":"swiss","maxEntrants":2,"startsAt":%q,"rakeBps":0}`, inAnHour())))
		goldenOnSingle("entrants", f.expect(200, "GET", cup+"/entrants?limit=1", bob.token, ""))
		f.expect(200, "POST", f.staffTournament(cup)+"/start", adminKey, "")
		f.expectError(409, "registration_closed", "POST", cup+"/join", cid.token, "")
		f.driveTournaments()
		match := f.expect(200, "GET", cup+"/matches?round=1", ann.token, "")
		goldenOnSingle("matches", match)
		f.winMatch(match.text("items.0.roomId"), bob, ann)
		over := f.waitForTournament(cup, ann.token, "FINISHED")
		goldenOnSingle("tournament_finished", over)
		f.expect(304, "GET", cup, ann.token, "", "If-None-Match", over.header.Get("Etag"))
		goldenOnSingle("standings", f.expect(200, "GET", cup+"/standings", ann.token, ""))
		f.expect(200, "GET", "/api/v1/tournaments?status=FINISHED", cid.token, "")
		f.expectError(400, "invalid_request", "GET", "/api/v1/tournaments?status=OVER", cid.token, "")
		attempts := f.startAttempts(ann)
		attempt := f.expect(201, "POST", attempts+"/attempts", ann.token, "")
		f.expect(200, "POST", "/api/v1/leaderboards/tour-2/scores", ann.token,
			fmt.Sprintf(`{"score":7,"playId":%q}`, attempt.text("playId")))
		goldenOnSingle("standings_of_scores", f.expect(200, "GET", attempts+"/standings", ann.token, ""))
		f.expect(201, "POST", attempts+"/attempts", ann.token, "")
		f.expectError(409, "attempts_exhausted", "POST", attempts+"/attempts", ann.token, "")
		duel, _ := f.startMatch(ann, bob)
		goldenOnSingle("match_resolved", f.expect(200, "POST", f.staffTournament(duel)+"/matches/r1m1/resolve", adminKey,
			fmt.Sprintf(`{"winnerId":%d}`, ann.id)))
		f.expectError(409, "match_decided", "POST", f.staffTournament(duel)+"/matches/r1m1/resolve", adminKey,
			fmt.Sprintf(`{"winnerId":%d}`, bob.id))
		f.expectError(404, "match_not_found", "POST", f.staffTournament(duel)+"/matches/r9m9/resolve", adminKey,
			fmt.Sprintf(`{"winnerId":%d}`, bob.id))
		checked := f.createTournament("swiss", `,"checkInOpensAt":"2026-01-01T00:00:00Z"`)
		f.expect(200, "POST", checked+"/join", ann.token, "")
		f.driveTournaments()
		f.expect(200, "POST", checked+"/check-in", ann.token, "")
		f.expectError(403, "not_entrant", "POST", checked+"/check-in", bob.token, "")
		f.expect(200, "POST", checked+"/leave", ann.token, "")
		f.expect(200, "POST", checked+"/join", bob.token, "")
		f.expect(200, "POST", fmt.Sprintf("%s/entrants/%d/disqualify", f.staffTournament(checked), bob.id), f.serverKey, "")
		f.expectError(403, "disqualified", "POST", checked+"/join", bob.token, "")
		f.expect(200, "POST", f.staffTournament(checked)+"/cancel", f.serverKey, "")
		goldenOnSingle("tournament_cancelled", f.waitForTournament(checked, ann.token, "CANCELLED"))
		f.expectError(409, "tournament_closed", "POST", checked+"/join", ann.token, "")
		f.expectError(404, "tournament_not_found", "GET", "/api/v1/tournaments/999", ann.token, "")

		// The operator.
		goldenOnSingle("admin_rooms", f.expect(200, "GET",
			fmt.Sprintf("/api/v1/admin/rooms?gameId=%d&status=FINISHED", f.game), adminKey, ""))
		goldenOnSingle("credited", f.expect(200, "POST", fmt.Sprintf("/api/v1/admin/users/%d/credit", cid.id), adminKey,
			`{"tokenId":"GOLD","amount":"0.05","reason":"compensation"}`, "Idempotency-Key", "credit-1"))
		f.expect(200, "POST", fmt.Sprintf("/api/v1/admin/users/%d/debit", cid.id), f.serverKey,
			`{"tokenId":"GOLD","amount":0.05,"reason":"taken back"}`, "Idempotency-Key", "debit-1")
		goldenOnSingle("user", f.expect(200, "GET", fmt.Sprintf("/api/v1/admin/users/%d", cid.id), f.serverKey, ""))
		suspend := fmt.Sprintf("/api/v1/admin/users/%d/suspend", cid.id)
		goldenOnSingle("suspended", f.expect(200, "POST", suspend, adminKey,
			`{"reason":"a bot","until":"2100-01-01T00:00:00Z"}`))
		goldenOnSingle("account_suspended", f.expectError(403, "account_suspended", "GET", "/api/v1/me", cid.token, ""))
		f.expect(200, "POST", fmt.Sprintf("/api/v1/admin/users/%d/unsuspend", cid.id), adminKey, "")
		f.expect(200, "GET", "/api/v1/me", cid.token, "")
		f.expect(204, "DELETE", fmt.Sprintf("/api/v1/admin/users/%d/sessions", cid.id), adminKey, "")
		f.expectError(401, "unauthenticated", "GET", "/api/v1/me", cid.token, "")
		goldenOnSingle("save_replaced", f.expect(200, "PUT",
			fmt.Sprintf("/api/v1/admin/users/%d/saves/main", cid.id), f.serverKey, `{"state":{"level":7},"version":0}`))
		goldenOnSingle("save_conflict", f.expectError(409, "version_conflict", "PUT",
			fmt.Sprintf("/api/v1/admin/users/%d/saves/main", cid.id), adminKey, `{"state":{"level":8},"version":0}`))
		ofCid := fmt.Sprintf("/api/v1/admin/users/%d", cid.id)
		for name, path := range map[string]string{
			"user_save": ofCid + "/saves/main", "user_saves": ofCid + "/saves", "user_ledger": ofCid + "/ledger?limit=2",
			"user_sessions": fmt.Sprintf("/api/v1/admin/users/%d/sessions", bob.id),
			"users":         fmt.Sprintf("/api/v1/admin/users?gameId=%d&limit=2", f.game),
			"room_events":   "/api/v1/admin/rooms/" + other + "/events",
			"game_ledger":   fmt.Sprintf("/api/v1/admin/games/%d/ledger?limit=3", f.game),
		} {
			goldenOnSingle(name, f.expect(200, "GET", path, adminKey, ""))
		}
		goldenOnSingle("nodes", f.expect(200, "GET", "/api/v1/admin/nodes", adminKey, ""))
		goldenOnSingle("console_link", f.expect(201, "POST", "/api/v1/admin/console-links", adminKey, ""))
		f.expect(204, "DELETE", "/api/v1/admin/console-sessions", adminKey, "")
		f.expectBalancedAudit()
		if t.Name() == "TestEveryOperationReturnsTheGoldenResponse/single" {
			goldenOnSingle("audit", f.audit(""))
			goldenOnSingle("trail", f.trail(fmt.Sprintf("&actor=operator:1&target=user:%d", cid.id)))
		}
		f.expectEventsMatchContract()

		// The node.
		goldenOnSingle("healthz", f.expect(200, "GET", "/healthz", "", ""))
		goldenOnSingle("balancez", f.expect(200, "GET", "/balancez", "", ""))
		goldenOnSingle("readyz", f.expect(200, "GET", "/readyz", "", ""))
		for _, path := range []string{"/openapi.yaml", "/asyncapi.yaml"} {
			document := f.expect(200, "GET", path, "", "")
			f.expect(304, "GET", path, "", "", "If-None-Match", document.header.Get("Etag"))
		}
	})
}
