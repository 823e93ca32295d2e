package handlers_test

import (
	"fmt"
	"testing"
)

// Each game is an economy of its own: players see the supply of their game, operators the sum.
func TestATokenHasASupplyInEachGame(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		otherGame, otherKey := f.createOtherGame() // without a signup grant
		f.giveGold(7, f.game, otherGame)
		f.expect(200, "PATCH", f.gamePath(), adminKey, `{"settings":{"grantLimitPerDay":100}}`)
		ann, eve := f.guest("Ann"), f.guestOf(otherGame, "Eve")
		f.expect(200, "POST", fmt.Sprintf("/api/v1/admin/users/%d/credit", eve.id), otherKey,
			`{"tokenId":"GOLD","amount":7,"reason":"x"}`, "Idempotency-Key", "k")

		sword := fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", f.createSword())
		bought := f.expect(201, "POST", sword, ann.token, "", "Idempotency-Key", "k")
		expect := func(resp *httpResult, path, want string) {
			t.Helper()
			if got := resp.text(path); got != want {
				t.Errorf("%s is %s; want %s: %s", path, got, want, resp.raw)
			}
		}
		expect(bought, "entryToken.volume", "100")
		room := f.expect(201, "POST", "/api/v1/game-session/create", eve.token,
			fmt.Sprintf(`{"entryTokenId":%d,"roomEntry":2,"maxPlayers":2}`, f.gold))
		expect(room, "entryToken.volume", "7")
		expect(f.expect(200, "GET", "/api/v1/admin/tokens", adminKey, ""), "items.0.volume", "107")
		expect(f.expect(200, "GET", "/api/v1/admin/tokens/GOLD", adminKey, ""), "volume", "107")
		expect(f.expect(200, "PATCH", "/api/v1/admin/tokens/GOLD", adminKey, `{"tokenName":"Fine"}`), "volume", "107")
		user := f.expect(200, "GET", fmt.Sprintf("/api/v1/admin/users/%d", eve.id), adminKey, "")
		expect(user, "balances.0.amount", "500")
		expect(user, "balances.0.heldAmount", "200")

		// The same by the audit: of one game, and of both.
		for query, want := range map[string][5]string{
			fmt.Sprintf("?gameId=%d", f.game):    {"10000", "9250", "0", "0", "750"},
			fmt.Sprintf("?gameId=%d", otherGame): {"700", "500", "200", "0", "0"},
			"":                                   {"10700", "9750", "200", "0", "750"},
		} {
			report := f.audit(query)
			expect(report, "balanced", "true")
			for i, name := range []string{"minted", "wallets", "escrow", "prizes", "house"} {
				expect(report, "tokens.0."+name+"Amount", want[i])
			}
			if report.count("tokens") != 1 {
				t.Errorf("the audit%s has %s", query, report.raw)
			}
		}
		f.expect(200, "POST", "/api/v1/game-session/cancel", eve.token, roomBody(room.text("roomId")))
		f.expectBalancedAudit()
	})
}

// A player of one game has no part in the economy of another.
func TestALedgerIsOfOneGame(t *testing.T) {
	f := newGameFixture(t)
	otherGame, otherKey := f.createOtherGame()
	ann, eve := f.guest("Ann"), f.guestOf(otherGame, "Eve")
	f.expectError(404, "user_not_found", "POST", fmt.Sprintf("/api/v1/admin/users/%d/credit", ann.id), otherKey,
		`{"tokenId":"GOLD","amount":7,"reason":"x"}`, "Idempotency-Key", "k")
	if lines := f.expect(200, "GET", "/api/v1/user-balance/ledger", eve.token, ""); lines.count("items") != 0 {
		t.Errorf("a new player of a game without a grant has %s", lines.raw)
	}
	f.expectBalance(eve, "0+0")
	f.expectBalance(ann, "10000+0")
	body := fmt.Sprintf(`{"entryTokenId":%d,"roomEntry":1,"maxPlayers":2}`, f.gold)
	f.expectError(402, "insufficient_funds", "POST", "/api/v1/game-session/create", eve.token, body)
	f.expectError(404, "asset_not_found", "POST",
		fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", f.createSword()), eve.token, "", "Idempotency-Key", "k")
}
