package handlers_test

import (
	"fmt"
	"strings"
	"testing"
)

// A server key that invents players mints no more by their grants than the game may mint in a day.
func TestGrantsOfInventedPlayersAreLimitedByTheDay(t *testing.T) {
	f := newGameFixture(t) // each new player gets 100
	f.giveGold(1_000, f.game)
	total := func() string {
		return f.expect(200, "GET", "/api/v1/admin/audit", adminKey, "").text("tokens.0.minted")
	}
	for i := range 15 {
		f.expect(201, "POST", "/api/v1/auth/exchange", f.serverKey, fmt.Sprintf(`{"externalId":"invented-%d"}`, i))
	}
	if minted := total(); minted != "1000" {
		t.Errorf("15 invented players minted %s at a limit of 1000", minted)
	}
	// Who got none gets it at a later sign-in, once the limit allows it.
	f.expect(200, "PATCH", f.gamePath(), adminKey, `{"settings":{"grantLimitPerDay":"1100"}}`)
	for range 2 {
		f.expect(201, "POST", "/api/v1/auth/exchange", f.serverKey, `{"externalId":"invented-14"}`)
	}
	if minted := total(); minted != "1100" {
		t.Errorf("after the limit was raised to 1100, %s are minted", minted)
	}
	f.expectError(403, "forbidden", "PATCH", f.gamePath(), f.serverKey, `{"settings":{"grantLimitPerDay":9}}`)
	f.expectError(400, "invalid_request", "PATCH", f.gamePath(), adminKey, `{"settings":{"grantLimitPerDay":"0.001"}}`)
	if got := f.expect(200, "PATCH", f.gamePath(), adminKey, `{"settings":{"grantLimitPerDay":null}}`); !strings.Contains(
		string(got.raw), `"grantLimitPerDay":null`) {
		t.Errorf("without a limit of its own: %s", got.raw)
	}
	f.expectBalancedAudit()
}

func TestAGameHasASize(t *testing.T) {
	f := newGameFixture(t)
	f.expectError(403, "forbidden", "PATCH", f.gamePath(), f.serverKey, `{"settings":{"quotas":{"boards":9000}}}`)
	f.expectError(400, "invalid_request", "PATCH", f.gamePath(), adminKey, `{"settings":{"quotas":{"boards":-1}}}`)
	f.expect(200, "PATCH", f.gamePath(), adminKey,
		`{"settings":{"quotas":{"boards":1,"assets":1,"openTournaments":1,"newPlayersPerDay":2}}}`)
	ann := f.guest("ann")
	f.createBoard(ann.id)
	sword := f.createSword()
	cup := f.createTournament("swiss", "")
	f.guest("bob")
	expectLimit := func(limit string, most int64, path, key, body string) {
		t.Helper()
		r := f.expectError(409, "limit_reached", "POST", path, key, body)
		if r.text("limit") != limit || r.id("max") != most {
			t.Errorf("%s: %s; want the limit %s of %d", path, r.raw, limit, most)
		}
	}
	expectLimit("boards", 1, f.gamePath()+"/leaderboards", f.serverKey, `{"board":"more","name":"More"}`)
	expectLimit("assets", 1, f.gamePath()+"/assets", f.serverKey, `{"name":"Axe","tokenId":"GOLD","price":1}`)
	expectLimit("newPlayersPerDay", 2, "/api/v1/auth/guest", "", fmt.Sprintf(`{"gameId":%d}`, f.game))
	expectLimit("newPlayersPerDay", 2, "/api/v1/auth/exchange", f.serverKey, `{"externalId":"x"}`)
	f.expect(200, "GET", "/api/v1/me", ann.token, "") // who is known goes on
	game := f.expect(200, "GET", f.gamePath(), f.serverKey, "")
	for _, kind := range []string{"boards", "assets", "openTournaments"} {
		if used, most := game.text("use."+kind+".used"), game.text("use."+kind+".max"); used != "1" || most != "1" {
			t.Errorf("%s: %s of %s; want 1 of 1", kind, used, most)
		}
	}
	if used := game.text("use.newPlayersPerDay.used"); used != "2" {
		t.Errorf("%s new players; want 2", used)
	}

	// What staff removes makes room.
	asset := fmt.Sprintf("%s/assets/%d", f.gamePath(), sword)
	f.expect(204, "DELETE", asset, f.serverKey, "")
	f.expectError(404, "asset_not_found", "DELETE", asset, f.serverKey, "")
	f.createSword()
	tournament := f.staffTournament(cup)
	f.expectError(403, "forbidden", "DELETE", tournament, f.serverKey, "")
	f.expect(200, "POST", tournament+"/cancel", adminKey, "")
	f.driveTournaments()
	f.waitForTournament(cup, ann.token, "CANCELLED")
	f.expect(204, "DELETE", tournament, adminKey, "")
	f.expectError(404, "tournament_not_found", "GET", cup, ann.token, "")
	if record := f.trail("&actor=operator:1"); record.text("items.0.action") != "deleteTournament" {
		t.Errorf("the newest record is %s", record.raw)
	}
	if record := f.trail(fmt.Sprintf("&gameId=%d&target=asset:%d", f.game, sword)); record.text("items.0.action") !=
		"deleteAsset" {
		t.Errorf("the record of the asset is %s", record.raw)
	}
}

func TestAnAssetOfWhichSomebodyHasAPieceStays(t *testing.T) {
	f := newGameFixture(t)
	ann, sword := f.guest("ann"), f.createSword()
	f.expect(201, "POST", fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", sword), ann.token, "",
		"Idempotency-Key", "k")
	path := fmt.Sprintf("%s/assets/%d", f.gamePath(), sword)
	f.expectError(403, "forbidden", "DELETE", path, adminKey, "")
	f.expect(200, "GET", path, adminKey, "")
	if owned := f.expect(200, "GET", "/api/v1/user-assets", ann.token, ""); owned.id("items.0.asset.id") != sword {
		t.Errorf("ann owns %s", owned.raw)
	}
}

// A sign-in of a known player changes nothing, so that it pushes no record out.
func TestSigningInAKnownPlayerLeavesNoRecord(t *testing.T) {
	f := newGameFixture(t)
	exchange := func(more string) {
		f.expect(201, "POST", "/api/v1/auth/exchange", f.serverKey, `{"externalId":"ann"`+more+`}`)
	}
	count := func() int { return strings.Count(string(f.trail("").raw), `"action":"exchange"`) }
	exchange("")
	exchange("")
	if n := count(); n != 1 {
		t.Errorf("two sign-ins of a player left %d records; want that of the first", n)
	}
	exchange(`,"username":"Ann"`)
	if n := count(); n != 2 {
		t.Errorf("after the name was changed there are %d records", n)
	}
}
