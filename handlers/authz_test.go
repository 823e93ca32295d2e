package handlers_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every operation is called without a credential, by a player, a player of another game, the game's
// server, the server of another game, the operator, and with an invalid token. Each row has a
// fixture of its own and is called in that order.
func TestEachRoleGetsTheStatusOfTheMatrix(t *testing.T) {
	const session, admin = "/api/v1/game-session/", "/api/v1/admin/"
	const room = `{"roomId":"<room>"}`
	rows := []struct{ operation, body, want string }{
		// The columns are: none, player, other player, server, other server, operator, invalid.
		{"POST /api/v1/auth/guest", `{"gameId":<game>}`, "           201 201 201 201 201 201 201"},
		{"POST /api/v1/auth/exchange", `{"externalId":"x"}`, "       401 403 403 201 201 403 401"},
		{"POST /api/v1/auth/refresh", `{"refreshToken":"x"}`, "      401 401 401 401 401 401 401"},
		{"POST /api/v1/auth/logout", "", "                           401 204 204 204 204 204 401"},
		{"POST /api/v1/auth/link", `{"deviceSecret":"0123456789abcdef0123456789abcdef"}`, "401 200 200 400 400 403 401"},
		{"POST /api/v1/auth/ticket", "", "                           401 200 200 403 403 403 401"},
		{"GET /api/v1/me", "", "                                     401 200 200 403 403 403 401"},
		{"PATCH /api/v1/me", "{}", "                                 401 200 200 403 403 403 401"},
		{"DELETE /api/v1/me", "", "                                  401 204 204 403 403 403 401"},
		{"GET /api/v1/friends", "", "                                401 200 200 403 403 403 401"},
		{"POST /api/v1/friends/<friend>", "", "                      401 200 404 403 403 403 401"},
		{"DELETE /api/v1/friends/<friend>", "", "                    401 204 404 403 403 403 401"},
		{"POST /api/v1/friends/<friend>/block", "", "                401 200 404 403 403 403 401"},
		{"POST " + session + "create", `{"maxPlayers":2}`, "         401 201 201 403 403 403 401"},
		{"GET " + session + "get?roomId=<room>", "", "               401 200 404 200 404 200 401"},
		{"GET " + session + "get?code=<code>", "", "                 401 200 404 200 404 400 401"},
		{"GET " + session + "get?code=<code>&gameId=<game>", "", "   401 200 404 200 404 200 401"},
		{"GET " + session + "list?gameId=<game>", "", "              401 200 404 200 404 200 401"},
		{"GET " + session + "list?mine=true", "", "                  401 200 200 400 400 400 401"},
		{"POST " + session + "join", room, "                         401 200 404 403 403 403 401"},
		{"POST /join", room, "                                       401 200 404 403 403 403 401"},
		{"POST " + session + "leave", room, "                        401 200 404 403 403 403 401"},
		{"POST " + session + "ready", `{"roomId":"<room>","ready":true}`, "401 200 404 403 403 403 401"},
		{"POST " + session + "kick", `{"roomId":"<room>","userId":<friend>}`, "401 200 404 403 404 403 401"},
		{"POST " + session + "transfer-host", `{"roomId":"<room>","userId":<friend>}`, "401 200 404 200 404 403 401"},
		{"POST " + session + "start", room, "                        401 200 404 409 404 403 401"},
		{"POST " + session + "finish", `{"roomId":"<room>","results":[{"userId":<player>,"place":1},{"userId":<friend>,` +
			`"place":2}]}`, "401 403 403 409 404 403 401"},
		{"POST " + session + "cancel", room, "                       401 200 404 409 404 409 401"},
		{"POST " + session + "rematch", room, "                      401 409 404 403 403 403 401"},
		{"GET /api/v1/user-balance/token-balances", "", "            401 200 200 403 403 403 401"},
		{"GET /api/v1/user-balance/ledger", "", "                    401 200 200 403 403 403 401"},
		{"POST /api/v1/user-assets/add/game-asset/<asset>", "", "    401 201 404 403 403 403 401"},
		{"GET /api/v1/user-assets", "", "                            401 200 200 403 403 403 401"},
		{"GET /api/v1/game-assets?gameId=<game>", "", "              401 200 404 200 404 200 401"},
		{"POST " + admin + "games", `{"name":"New"}`, "              401 403 403 403 403 201 401"},
		{"GET " + admin + "games", "", "                             401 403 403 403 403 200 401"},
		{"GET " + admin + "games/<game>", "", "                      401 403 403 200 404 200 401"},
		{"PATCH " + admin + "games/<game>", "{}", "                  401 403 403 200 404 200 401"},
		{"POST " + admin + "games/<game>/server-keys", "", "         401 403 403 403 403 201 401"},
		{"DELETE " + admin + "games/<game>/server-keys/x", "", "     401 403 403 403 403 400 401"},
		{"POST " + admin + "games/<game>/assets", `{"name":"Bow","tokenId":"GOLD","price":1}`, "401 403 403 201 404 201 401"},
		{"GET " + admin + "games/<game>/assets", "", "               401 403 403 200 404 200 401"},
		{"GET " + admin + "games/<game>/assets/<asset>", "", "       401 403 403 200 404 200 401"},
		{"PATCH " + admin + "games/<game>/assets/<asset>", "{}", "   401 403 403 200 404 200 401"},
		{
			"POST " + admin + "tokens", `{"tokenId":"GEM","tokenName":"Gem","metadata":{"decimals":"0"}}`,
			"401 403 403 403 403 201 401",
		},
		{"GET " + admin + "tokens", "", "                            401 403 403 403 403 200 401"},
		{"GET " + admin + "tokens/GOLD", "", "                       401 403 403 403 403 200 401"},
		{"PATCH " + admin + "tokens/GOLD", "{}", "                   401 403 403 403 403 200 401"},
		{"GET " + admin + "users/<player>", "", "                    401 403 403 200 404 200 401"},
		{"POST " + admin + "users/<player>/suspend", `{"reason":"x"}`, " 401 403 403 403 403 200 401"},
		{"POST " + admin + "users/<player>/unsuspend", "", "         401 403 403 403 403 200 401"},
		{"DELETE " + admin + "users/<player>/sessions", "", "        401 403 403 403 403 204 401"},
		{
			"POST " + admin + "users/<player>/credit", `{"tokenId":"GOLD","amount":1,"reason":"x"}`,
			"401 403 403 200 404 200 401",
		},
		{
			"POST " + admin + "users/<player>/debit", `{"tokenId":"GOLD","amount":1,"reason":"x"}`,
			" 401 403 403 200 404 200 401",
		},
		{ // 409: the game's server has stored the first version
			"PUT " + admin + "users/<player>/saves/main", `{"state":{}}`, "401 403 403 200 404 409 401",
		},
		{"GET " + admin + "rooms?gameId=<game>", "", "               401 403 403 200 404 200 401"},
		{"GET " + admin + "trail", "", "                             401 403 403 403 403 200 401"},
		{"GET " + admin + "audit", "", "                             401 403 403 403 403 200 401"},
		{"GET " + admin + "audit?gameId=<game>", "", "               401 403 403 403 403 200 401"},
		{"GET /api/v1/game-data/save", "", "                         401 400 400 403 403 403 401"}, // 400: not an upgrade
		{"GET /api/v1/game-data/load", "", "                         401 400 400 403 403 403 401"},
		{"GET /api/v1/realtime", "", "                               401 400 400 403 403 403 401"},
		{"GET /healthz", "", "                                       200 200 200 200 200 200 200"},
		{"GET /readyz", "", "                                        200 200 200 200 200 200 200"},
		{"GET /balancez", "", "                                      200 200 200 200 200 200 200"},
		{"GET /openapi.yaml", "", "                                  200 200 200 200 200 200 200"},
		{"GET /asyncapi.yaml", "", "                                 200 200 200 200 200 200 200"},
	}
	var covered []string
	for _, row := range rows {
		method, path, _ := strings.Cut(row.operation, " ")
		t.Run(row.operation, func(t *testing.T) {
			t.Parallel()
			f := newGameFixture(t)
			otherGame, otherKey := f.createOtherGame()
			player, friend, stranger := f.guest("Ann"), f.guest("Bob"), f.guestOf(otherGame, "Eve")
			made := f.expect(201, "POST", session+"create", player.token, `{"maxPlayers":4,"minPlayers":1}`)
			f.expect(200, "POST", session+"join", friend.token, roomBody(made.text("roomId")))
			fill := strings.NewReplacer("<game>", strconv.FormatInt(f.game, 10), "<player>", strconv.FormatInt(player.id, 10),
				"<friend>", strconv.FormatInt(friend.id, 10), "<room>", made.text("roomId"), "<code>", made.text("code"),
				"<asset>", strconv.FormatInt(f.createSword(), 10))
			var got []string
			for i, bearer := range []string{
				"", player.token, stranger.token, f.serverKey, otherKey, adminKey,
				"an invalid token",
			} {
				resp := f.send(method, fill.Replace(path), bearer, fill.Replace(row.body), "Idempotency-Key",
					"key-"+strconv.Itoa(i))
				got = append(got, strconv.Itoa(resp.status))
				if resp.status == 401 && resp.header.Get("Www-Authenticate") == "" {
					t.Errorf("a 401 without WWW-Authenticate: %s", resp.raw)
				}
			}
			if want := strings.Fields(row.want); !slices.Equal(got, want) {
				t.Errorf("none, player, other player, server, other server, operator, invalid get\n%v, want\n%v", got, want)
			}
		})
		operation, _, _ := strings.Cut(row.operation, "?")
		covered = append(covered, operation)
	}
	if n := len(slices.Compact(slices.Sorted(slices.Values(covered)))); n != len(operations()) {
		t.Errorf("%d operations are in the matrix, %d are served", n, len(operations()))
	}
}
