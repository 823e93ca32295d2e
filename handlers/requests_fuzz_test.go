package handlers_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// fuzzedPaths are the POST requests that move money.
var fuzzedPaths = []string{
	"/api/v1/game-session/create", "/join", "/api/v1/game-session/leave", "/api/v1/game-session/start",
	"/api/v1/game-session/finish", "/api/v1/game-session/cancel", "/api/v1/game-session/kick",
	"/api/v1/game-session/rematch", "/api/v1/user-assets/add/game-asset/1", "/api/v1/admin/wallets/credit",
	"/api/v1/admin/wallets/debit", "/api/v1/admin/tokens", "/api/v1/admin/games/1/assets", "/api/v1/auth/guest",
}

// FuzzMoneyRequest sends any body, key and token to what moves money. No request may fail within:
// whatever is wrong with it is the fault of its sender. At the end the books balance.
func FuzzMoneyRequest(f *testing.F) {
	node := newGameFixture(f)
	ann := node.guest("Ann")
	room := node.createRoom(ann)
	asset := strconv.FormatInt(node.createSword(), 10)
	for i, body := range []string{
		`{"entryTokenId":` + strconv.FormatInt(node.gold, 10) + `,"roomEntry":1.5,"maxPlayers":2}`, roomBody(room),
		roomBody(room), roomBody(room), `{"roomId":"` + room + `","results":[{"userId":1,"place":1,"score":1e999}]}`,
		`{"roomId":"\ud800"}`, `{"roomId":"` + room + `","userId":-9223372036854775809}`, roomBody(room),
		`{"quantity":1e3,"expectedPrice":"7.50"}`, `{"userId":1,"tokenId":"GOLD","amount":"0.00000001e7","reason":"x"}`,
		`{"userId":1,"tokenId":"GOLD","amount":90071992547409.91,"reason":"\u0000|;"}`, `{"tokenId":null}`, `[]`, `{`,
	} {
		for who := range 5 {
			f.Add(uint8(i), uint8(who), body, "a key", "token")
		}
	}
	f.Fuzz(func(t *testing.T, path, who uint8, body, key, token string) {
		target := strings.Replace(fuzzedPaths[int(path)%len(fuzzedPaths)], "asset/1", "asset/"+asset, 1)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, target, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		if key != "" {
			r.Header["Idempotency-Key"] = []string{key}
		}
		switch who % 5 {
		case 0:
			r.Header["Authorization"] = []string{"Bearer " + ann.token}
		case 1:
			r.Header["Authorization"] = []string{"Bearer " + node.serverKey}
		case 2:
			r.Header["Authorization"] = []string{"Bearer " + adminKey}
		case 3:
			r.Header["Authorization"] = []string{"Bearer " + token}
		case 4:
			r.Header["Authorization"] = []string{token}
		}
		w := httptest.NewRecorder()
		node.server.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Errorf("POST %s %q with the key %q returned %d %s", target, body, key, w.Code, w.Body)
		}
	})
}
