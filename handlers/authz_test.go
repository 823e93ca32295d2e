package handlers_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every operation is called without a credential, with an invalid token, by a suspended player, a
// player of another game, the game's server, the server of another game, the operator, and by
// players of the game: a stranger, a friend of the room's creator, one who has a seat and the host.
// Each row has a fixture of its own and is called in that order, those who may the least first.
func TestEachRoleGetsTheStatusOfTheMatrix(t *testing.T) {
	const session, admin = "/api/v1/game-session/", "/api/v1/admin/"
	const room = `{"roomId":"<room>"}`
	const board, adminBoard = "/api/v1/leaderboards/top", admin + "games/<game>/leaderboards/top"
	const tour, adminTour = "/api/v1/tournaments/<tour>", admin + "games/<game>/tournaments/<tour>"
	const newTournament = `{"name":"New","format":"swiss","maxEntrants":8,"startsAt":"<soon>"}`
	rows := []struct{ operation, body, want string }{
		// The columns are: none, invalid, suspended, other game's player, other game's server; stranger,
		// creator's friend, seated, host; server, operator.
		{"POST /api/v1/auth/guest", `{"gameId":<game>}`, "             201 201 201 201 201 201 201 201 201 201 201"},
		{"POST /api/v1/auth/exchange", `{"externalId":"x"}`, "         401 401 403 403 201 403 403 403 403 201 403"},
		{"POST /api/v1/auth/refresh", `{"refreshToken":"x"}`, "        401 401 401 401 401 401 401 401 401 401 401"},
		{"POST /api/v1/auth/logout", "", "                             401 401 204 204 204 204 204 204 204 204 204"},
		{
			"POST /api/v1/auth/link", `{"deviceSecret":"0123456789abcdef0123456789abcdef"}`,
			"401 401 403 200 400 200 409 409 409 400 403",
		},
		{"POST /api/v1/auth/ticket", "", "                             401 401 403 200 200 200 200 200 200 200 403"},
		{"GET /api/v1/me", "", "                                       401 401 403 200 403 200 200 200 200 403 403"},
		{"PATCH /api/v1/me", "{}", "                                   401 401 403 200 403 200 200 200 200 403 403"},
		{"DELETE /api/v1/me", "", "                                    401 401 403 204 403 204 204 204 204 403 403"},
		{"GET /api/v1/me/limits", "", "                                401 401 403 200 403 200 200 200 200 403 403"},
		{"PUT /api/v1/me/limits", `{"tokenId":"GOLD","maxStake":1}`, " 401 401 403 200 403 200 200 200 200 403 403"},
		{"GET /api/v1/friends", "", "                                  401 401 403 200 403 200 200 200 200 403 403"},
		{"POST /api/v1/friends/<friend>", "", "                        401 401 403 404 403 200 200 400 200 403 403"},
		{"DELETE /api/v1/friends/<friend>", "", "                      401 401 403 404 403 204 204 400 204 403 403"},
		{"POST /api/v1/friends/<friend>/block", "", "                  401 401 403 404 403 200 200 400 200 403 403"},
		{"POST " + session + "create", `{"maxPlayers":2}`, "           401 401 403 201 403 201 201 201 201 403 403"},
		{"GET " + session + "get?roomId=<room>", "", "                 401 401 403 404 404 404 200 200 200 200 200"},
		{"GET " + session + "get?code=<code>", "", "                   401 401 403 404 404 404 200 200 200 200 400"},
		{"GET " + session + "get?code=<code>&gameId=<game>", "", "     401 401 403 404 404 404 200 200 200 200 200"},
		{"GET " + session + "list?gameId=<game>", "", "                401 401 403 404 404 200 200 200 200 200 200"},
		{"GET " + session + "list?mine=true", "", "                    401 401 403 200 400 200 200 200 200 400 400"},
		{"POST " + session + "join", room, "                           401 401 403 404 403 404 200 200 200 403 403"},
		{"POST /join", room, "                                         401 401 403 404 403 404 200 200 200 403 403"},
		{"POST " + session + "leave", room, "                          401 401 403 404 403 404 404 200 200 403 403"},
		{"POST " + session + "ready", `{"roomId":"<room>","ready":true}`, "401 401 403 404 403 404 404 200 200 403 403"},
		{"POST " + session + "kick", `{"roomId":"<room>","userId":<friend>}`, "401 401 403 404 404 404 404 400 200 403 403"},
		{
			"POST " + session + "transfer-host", `{"roomId":"<room>","userId":<friend>}`,
			"401 401 403 404 404 404 404 403 200 200 403",
		},
		{"POST " + session + "start", room, "                          401 401 403 404 404 404 404 403 200 409 403"},
		{
			"POST " + session + "state", `{"roomId":"<room>","patch":{"a":1}}`,
			"401 401 403 403 404 403 403 403 403 200 403",
		},
		{
			"POST " + session + "turn", `{"roomId":"<room>","userId":<player>,"seconds":30}`,
			"401 401 403 404 404 404 404 403 409 409 403",
		},
		{"POST " + session + "finish", `{"roomId":"<room>","results":[{"userId":<player>,"place":1},{"userId":<friend>,` +
			`"place":2}]}`, "401 401 403 404 404 404 403 403 403 409 403"},
		{"POST " + session + "cancel", room, "                         401 401 403 404 404 404 404 403 200 409 409"},
		{"POST " + session + "rematch", room, "                        401 401 403 404 403 404 404 409 409 403 403"},
		{"POST " + session + "call", `{"roomId":"<room>","op":"x"}`, " 401 401 403 404 403 404 403 503 503 403 403"},
		{"GET /api/v1/user-balance/token-balances", "", "              401 401 403 200 403 200 200 200 200 403 403"},
		{"GET /api/v1/user-balance/ledger", "", "                      401 401 403 200 403 200 200 200 200 403 403"},
		{"POST /api/v1/user-assets/add/game-asset/<asset>", "", "      401 401 403 404 403 201 201 201 201 403 403"},
		{"GET /api/v1/user-assets", "", "                              401 401 403 200 403 200 200 200 200 403 403"},
		{"GET /api/v1/game-assets?gameId=<game>", "", "                401 401 403 404 404 200 200 200 200 200 200"},
		{"GET /api/v1/leaderboards?gameId=<game>", "", "               401 401 403 404 404 200 200 200 200 200 200"},
		{"GET " + board + "?gameId=<game>", "", "                      401 401 403 404 404 200 200 200 200 200 200"},
		{"POST " + board + "/plays", "", "                             401 401 403 404 403 400 400 400 400 403 403"},
		{
			"POST " + board + "/scores?gameId=<game>", `{"userId":<player>,"score":1}`,
			"401 401 403 404 404 403 403 403 403 200 200",
		},
		{
			"POST " + board + "/scores/batch?gameId=<game>", `{"scores":[{"userId":<player>,"score":1}]}`,
			"401 401 403 403 404 403 403 403 403 200 200",
		},
		{"GET " + board + "/entries?gameId=<game>", "", "              401 401 403 404 404 200 200 200 200 200 200"},
		{"GET " + board + "/entries/around", "", "                     401 401 403 404 403 404 404 404 200 403 403"},
		{"GET " + board + "/entries/friends", "", "                    401 401 403 404 403 200 200 200 200 403 403"},
		{"GET " + board + "/entries/<player>?gameId=<game>", "", "     401 401 403 404 404 200 200 200 200 200 200"},
		{"GET " + board + "/league", "", "                             401 401 403 404 403 400 400 400 400 403 403"},
		{"GET " + board + "/seasons?gameId=<game>", "", "              401 401 403 404 404 200 200 200 200 200 200"},
		{
			"POST " + admin + "games/<game>/leaderboards", `{"board":"new","name":"New"}`,
			"401 401 403 403 404 403 403 403 403 201 409",
		},
		{"GET " + admin + "games/<game>/leaderboards", "", "           401 401 403 403 404 403 403 403 403 200 200"},
		{"GET " + adminBoard, "", "                                    401 401 403 403 404 403 403 403 403 200 200"},
		{"PATCH " + adminBoard, "{}", "                                401 401 403 403 404 403 403 403 403 200 200"},
		{"DELETE " + adminBoard, "", "                                 401 401 403 403 404 403 403 403 403 204 404"},
		{
			"POST " + adminBoard + "/seasons/1/end", `{"reason":"x"}`, "401 401 403 403 404 403 403 403 403 200 409",
		},
		{
			"POST " + adminBoard + "/seasons/1/approve", `{"reason":"x"}`, "401 401 403 403 404 403 403 403 403 409 409",
		},
		{
			"POST " + adminBoard + "/seasons/1/void", `{"reason":"x"}`, "401 401 403 403 404 403 403 403 403 409 409",
		},
		{
			"POST " + adminBoard + "/entries/<player>/hide", `{"reason":"x"}`,
			"401 401 403 403 404 403 403 403 403 200 200",
		},
		{
			"POST " + adminBoard + "/entries/<player>/unhide", `{"reason":"x"}`,
			"401 401 403 403 404 403 403 403 403 200 200",
		},
		{
			"POST " + adminBoard + "/entries/<player>/remove", `{"reason":"x"}`,
			"401 401 403 403 404 403 403 403 403 200 404",
		},
		{"GET /api/v1/tournaments?gameId=<game>", "", "                401 401 403 404 404 200 200 200 200 200 200"},
		{"GET " + tour + "?gameId=<game>", "", "                       401 401 403 404 404 200 200 200 200 200 200"},
		{"GET " + tour + "/entrants?gameId=<game>", "", "              401 401 403 404 404 200 200 200 200 200 200"},
		{"GET " + tour + "/matches?gameId=<game>", "", "               401 401 403 404 404 200 200 200 200 200 200"},
		{"GET " + tour + "/standings?gameId=<game>", "", "             401 401 403 404 404 200 200 200 200 200 200"},
		{"POST " + tour + "/join", "", "                               401 401 403 404 403 200 200 200 200 403 403"},
		{"POST " + tour + "/leave", "", "                              401 401 403 404 403 403 403 200 200 403 403"},
		{"POST " + tour + "/check-in", "", "                           401 401 403 404 403 403 403 409 409 403 403"},
		{
			"POST /api/v1/tournaments/<score>/attempts", "",
			"401 401 403 404 403 403 403 201 201 403 403",
		},
		{
			"POST " + admin + "games/<game>/tournaments", newTournament,
			"401 401 403 403 404 403 403 403 403 201 201",
		},
		{"DELETE " + admin + "games/<game>/tournaments/<cancelled>", "", " 401 401 403 403 404 403 403 403 403 204 404"},
		{"POST " + adminTour + "/start", "", "                         401 401 403 403 404 403 403 403 403 200 200"},
		{"POST " + adminTour + "/cancel", "", "                        401 401 403 403 404 403 403 403 403 200 200"},
		{
			"POST " + adminTour + "/entrants/<friend>/disqualify", "",
			"401 401 403 403 404 403 403 403 403 200 200",
		},
		{
			"POST " + admin + "games/<game>/tournaments/<match>/matches/r1m1/resolve", `{"winnerId":<friend>}`,
			"401 401 403 403 404 403 403 403 403 200 200",
		},
		{"POST " + admin + "games", `{"name":"New"}`, "                401 401 403 403 403 403 403 403 403 403 201"},
		{"GET " + admin + "games", "", "                               401 401 403 403 403 403 403 403 403 403 200"},
		{"GET " + admin + "games/<game>", "", "                        401 401 403 403 404 403 403 403 403 200 200"},
		{"GET " + admin + "games/<game>/activity", "", "               401 401 403 403 404 403 403 403 403 200 200"},
		{"PATCH " + admin + "games/<game>", "{}", "                    401 401 403 403 404 403 403 403 403 200 200"},
		{"POST " + admin + "games/<game>/server-keys", "", "           401 401 403 403 403 403 403 403 403 403 201"},
		{"DELETE " + admin + "games/<game>/server-keys/x", "", "       401 401 403 403 403 403 403 403 403 403 400"},
		{
			"POST " + admin + "games/<game>/assets", `{"name":"Bow","tokenId":"GOLD","price":1}`,
			"401 401 403 403 404 403 403 403 403 201 201",
		},
		{"GET " + admin + "games/<game>/assets", "", "                 401 401 403 403 404 403 403 403 403 200 200"},
		{"GET " + admin + "games/<game>/assets/<asset>", "", "         401 401 403 403 404 403 403 403 403 200 200"},
		{"PATCH " + admin + "games/<game>/assets/<asset>", "{}", "     401 401 403 403 404 403 403 403 403 200 200"},
		{"DELETE " + admin + "games/<game>/assets/<asset>", "", "      401 401 403 403 404 403 403 403 403 204 404"},
		{
			"POST " + admin + "tokens", `{"tokenId":"GEM","tokenName":"Gem","metadata":{"decimals":"0"}}`,
			"401 401 403 403 403 403 403 403 403 403 201",
		},
		{
			"POST " + admin + "games/<game>/accept-audit", `{"reason":"x"}`,
			"401 401 403 403 403 403 403 403 403 403 200",
		},
		{"GET " + admin + "users/<friend>/limits", "", "               401 401 403 403 404 403 403 403 403 200 200"},
		{
			"PUT " + admin + "users/<friend>/limits", `{"tokenId":"GOLD","maxStake":1}`,
			"401 401 403 403 403 403 403 403 403 403 200",
		},
		{"GET " + admin + "tokens", "", "                              401 401 403 403 403 403 403 403 403 403 200"},
		{"GET " + admin + "tokens/GOLD", "", "                         401 401 403 403 403 403 403 403 403 403 200"},
		{"PATCH " + admin + "tokens/GOLD", "{}", "                     401 401 403 403 403 403 403 403 403 403 200"},
		{"PATCH " + admin + "tokens/GOLD", `{"games":[]}`, "           401 401 403 403 403 403 403 403 403 403 200"},
		{"GET " + admin + "users/<player>", "", "                      401 401 403 403 404 403 403 403 403 200 200"},
		{"GET " + admin + "users", "", "                                    401 401 403 403 200 403 403 403 403 200 200"},
		{"GET " + admin + "users?gameId=<game>", "", "                      401 401 403 403 404 403 403 403 403 200 200"},
		{"GET " + admin + "users/<player>/ledger", "", "                    401 401 403 403 404 403 403 403 403 200 200"},
		{"GET " + admin + "users/<player>/sessions", "", "                  401 401 403 403 403 403 403 403 403 403 200"},
		{"GET " + admin + "users/<player>/saves", "", "                     401 401 403 403 404 403 403 403 403 200 200"},
		{"GET " + admin + "users/<player>/saves/main", "", "                401 401 403 403 404 403 403 403 403 404 404"},
		{"POST " + admin + "rooms/<room>/resolve", `{"refund":true}`, "     401 401 403 403 403 403 403 403 403 403 409"},
		{"GET " + admin + "rooms/<room>/events", "", "                      401 401 403 403 404 403 403 403 403 200 200"},
		{"GET " + admin + "games/<game>/ledger", "", "                      401 401 403 403 403 403 403 403 403 403 200"},
		{"GET " + admin + "nodes", "", "                                    401 401 403 403 403 403 403 403 403 403 200"},
		{"POST " + admin + "console-links", "", "                           401 401 403 403 403 403 403 403 403 403 201"},
		{"DELETE " + admin + "console-sessions", "", "                      401 401 403 403 403 403 403 403 403 403 204"},
		{"POST " + admin + "users/<player>/suspend", `{"reason":"x"}`, "401 401 403 403 403 403 403 403 403 403 200"},
		{"POST " + admin + "users/<player>/unsuspend", "", "           401 401 403 403 403 403 403 403 403 403 200"},
		{"DELETE " + admin + "users/<player>/sessions", "", "          401 401 403 403 403 403 403 403 403 403 204"},
		{
			"POST " + admin + "users/<player>/credit", `{"tokenId":"GOLD","amount":1,"reason":"x"}`,
			"401 401 403 403 404 403 403 403 403 200 200",
		},
		{
			"POST " + admin + "users/<player>/debit", `{"tokenId":"GOLD","amount":1,"reason":"x"}`,
			"401 401 403 403 404 403 403 403 403 200 200",
		},
		{"POST " + admin + "users/<player>/messages", `{"op":"x"}`, "  401 401 403 403 404 403 403 403 403 202 202"},
		{ // 409: the game's server has stored the first version
			"PUT " + admin + "users/<player>/saves/main", `{"state":{}}`, "401 401 403 403 404 403 403 403 403 200 409",
		},
		{"GET " + admin + "rooms?gameId=<game>", "", "                 401 401 403 403 404 403 403 403 403 200 200"},
		{"GET " + admin + "trail", "", "                               401 401 403 403 403 403 403 403 403 403 200"},
		{"GET " + admin + "audit", "", "                               401 401 403 403 403 403 403 403 403 403 200"},
		{"GET " + admin + "audit?gameId=<game>", "", "                 401 401 403 403 403 403 403 403 403 403 200"},
		{
			"GET /api/v1/game-data/save", "",
			"401 401 403 400 403 400 400 400 400 403 403",
		}, // 400: not an upgrade
		{"GET /api/v1/game-data/load", "", "                           401 401 403 400 403 400 400 400 400 403 403"},
		{"GET /api/v1/realtime", "", "                                 401 401 403 400 400 400 400 400 400 400 403"},
		{"GET /healthz", "", "                                         200 200 200 200 200 200 200 200 200 200 200"},
		{"GET /readyz", "", "                                          200 200 200 200 200 200 200 200 200 200 200"},
		{"GET /balancez", "", "                                        200 200 200 200 200 200 200 200 200 200 200"},
		{"GET /openapi.yaml", "", "                                    200 200 200 200 200 200 200 200 200 200 200"},
		{"GET /asyncapi.yaml", "", "                                   200 200 200 200 200 200 200 200 200 200 200"},
	}
	var covered []string
	for _, row := range rows {
		method, path, _ := strings.Cut(row.operation, " ")
		t.Run(row.operation, func(t *testing.T) {
			t.Parallel()
			f := newGameFixture(t)
			otherGame, otherKey := f.createOtherGame()
			player, friend, foreigner := f.guest("Ann"), f.guest("Bob"), f.guestOf(otherGame, "Eve")
			stranger, creatorsFriend, suspended := f.guest("Dan"), f.guest("Cid"), f.guest("Sue")
			f.befriend(player, creatorsFriend)
			f.befriend(player, friend)
			f.createBoard(player.id)
			made := f.expect(201, "POST", session+"create", player.token,
				`{"maxPlayers":4,"minPlayers":1,"visibility":"private"}`)
			f.expect(200, "POST", session+"join", friend.token, roomBody(made.text("roomId")))
			f.expect(204, "DELETE", fmt.Sprintf("/api/v1/friends/%d", friend.id), player.token, "")
			fill := strings.NewReplacer(append(f.tournamentPlaceholders(row.operation, player, friend),
				"<game>", strconv.FormatInt(f.game, 10), "<player>", strconv.FormatInt(player.id, 10),
				"<friend>", strconv.FormatInt(friend.id, 10), "<room>", made.text("roomId"), "<code>", made.text("code"),
				"<asset>", strconv.FormatInt(f.createSword(), 10))...)
			f.expect(200, "POST", fmt.Sprintf(admin+"users/%d/suspend", suspended.id), adminKey, `{"reason":"x"}`)
			var got []string
			for i, bearer := range []string{
				"", "an invalid token", suspended.token, foreigner.token, otherKey,
				stranger.token, creatorsFriend.token, friend.token, player.token, f.serverKey, adminKey,
			} {
				resp := f.send(method, fill.Replace(path), bearer, fill.Replace(row.body), "Idempotency-Key",
					"key-"+strconv.Itoa(i))
				got = append(got, strconv.Itoa(resp.status))
				if resp.status == 401 && resp.header.Get("Www-Authenticate") == "" {
					t.Errorf("a 401 without WWW-Authenticate: %s", resp.raw)
				}
			}
			if want := strings.Fields(row.want); !slices.Equal(got, want) {
				t.Errorf("the callers get\n%v, want\n%v", got, want)
			}
		})
		operation, _, _ := strings.Cut(row.operation, "?")
		covered = append(covered, operation)
	}
	if n := len(slices.Compact(slices.Sorted(slices.Values(covered)))); n != len(operations()) {
		t.Errorf("%d operations are in the matrix, %d are served", n, len(operations()))
	}
}
