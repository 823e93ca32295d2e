package handlers_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

const deviceSecret = "the secret of one device, 32 bytes and more"

// Two people behind one address, who even have the same Idempotency-Key, must not share an account.
func TestAKeyOfAnUnknownCallerDoesNotCountByAddress(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		guest := func(body string) *httpResult {
			return f.expect(201, "POST", "/api/v1/auth/guest", "", body, "Idempotency-Key", "signup-1")
		}
		anonymous := fmt.Sprintf(`{"gameId":%d}`, f.game)
		ann, bob := guest(anonymous), guest(anonymous)
		if ann.id("user.id") == bob.id("user.id") || ann.text("refreshToken") == bob.text("refreshToken") ||
			bob.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("two people got %s and %s", ann.raw, bob.raw)
		}
		device := func(secret string) string { return fmt.Sprintf(`{"gameId":%d,"deviceSecret":%q}`, f.game, secret) }
		first, again, other := guest(device(deviceSecret)), guest(device(deviceSecret)), guest(device(deviceSecret+"x"))
		if string(first.raw) != string(again.raw) || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("one device got %s and %s", first.raw, again.raw)
		}
		if first.id("user.id") == other.id("user.id") {
			t.Error("two devices are one player")
		}
		short := f.expectError(400, "invalid_request", "POST", "/api/v1/auth/guest", "", device(deviceSecret[:31]),
			"Idempotency-Key", "signup-2")
		if short.text("errors.0.field") != "deviceSecret" {
			t.Errorf("a short device secret returned %s", short.raw)
		}
		if strings.Contains(redistest.Dump(t, f.db), "ip:") {
			t.Error("something is stored by address")
		}
	})
}

func TestAKeyedRefreshIsReplayedWhileItsSuccessorIsUnused(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		there := f.newNode()
		ann := f.guest("Ann")
		body := func(token string) string { return fmt.Sprintf(`{"refreshToken":%q}`, token) }
		refresh := func(node *fixture, token, key string) *httpResult {
			return node.send("POST", "/api/v1/auth/refresh", "", body(token), "Idempotency-Key", key)
		}
		first := refresh(f, ann.refresh, "k1")
		// As if an hour had passed, by the store's clock.
		family := keys.RefreshFamily(ann.id, strings.Split(ann.refresh, "_")[2])
		testkit.Check(t, f.db.Client.HIncrBy(t.Context(), family, "rotated", -time.Hour.Milliseconds()).Err())
		again := refresh(there, ann.refresh, "k1")
		if first.status != 200 || string(again.raw) != string(first.raw) ||
			again.header.Get("Idempotent-Replayed") != "true" {
			t.Fatalf("the refresh returned %s and then %d %s", first.raw, again.status, again.raw)
		}
		next := refresh(there, first.text("refreshToken"), "k2")
		if next.status != 200 {
			t.Fatalf("the successor returned %d %s", next.status, next.raw)
		}
		for _, token := range []string{ann.refresh, next.text("refreshToken")} { // now the family is revoked
			if resp := refresh(f, token, "k1"); resp.status != 401 || resp.code() != "refresh_reused" {
				if token == ann.refresh || resp.code() != "idempotency_key_reused" {
					t.Errorf("a replay after the successor was used returned %d %s", resp.status, resp.raw)
				}
			}
		}
		f.expectError(401, "refresh_reused", "POST", "/api/v1/auth/refresh", "", body(next.text("refreshToken")))
	})
}

func TestLogoutClosesTheSocketsOfItsSession(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		there := f.newNode()
		body := fmt.Sprintf(`{"gameId":%d,"deviceSecret":%q}`, f.game, deviceSecret)
		signIn := func() player {
			resp := f.expect(201, "POST", "/api/v1/auth/guest", "", body)
			return player{id: resp.id("user.id"), token: resp.text("accessToken"), refresh: resp.text("refreshToken")}
		}
		phone, laptop := signIn(), signIn() // two sessions of one player
		sockets := []*testSocket{
			f.dialRealtime(phone), there.dialRealtime(phone), there.dial(savePath, phone.token),
			there.dial(realtimePath+"?ticket="+f.ticket(phone), ""),
		}
		stays := there.dialRealtime(laptop)
		unused := f.ticket(phone)
		f.expect(204, "POST", "/api/v1/auth/logout", phone.token, "")
		f.expect(204, "POST", "/api/v1/auth/logout", phone.token, "") // twice is once
		for i, s := range sockets {
			if code := s.waitCloseCode(); code != 4001 {
				t.Errorf("socket %d was closed with %d", i, code)
			}
		}
		f.expectError(401, "unauthenticated", "GET", "/api/v1/me", phone.token, "")
		there.expectError(401, "unauthenticated", "GET", "/api/v1/me", phone.token, "")
		there.expectUpgradeError(401, "unauthenticated", realtimePath+"?ticket="+unused, "")
		there.expectUpgradeError(401, "unauthenticated", realtimePath, phone.token)
		there.expect(200, "GET", "/api/v1/me", laptop.token, "")
		f.credit(laptop, "x")
		stays.expectEvent("user.balance")
	})
}

func TestADeletedPlayerLeavesNothingButTheLedger(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		there := f.newNode()
		device := fmt.Sprintf(`{"gameId":%d,"username":"Ann Gone","deviceSecret":%q}`, f.game, deviceSecret)
		resp := f.expect(201, "POST", "/api/v1/auth/guest", "", device)
		ann := player{id: resp.id("user.id"), token: resp.text("accessToken"), refresh: resp.text("refreshToken")}
		bob, cid, dan := f.guest("Bob"), f.guest("Cid"), f.guest("Dan")
		f.makeFriends(ann, bob)
		f.expect(200, "POST", fmt.Sprintf("/api/v1/friends/%d", ann.id), cid.token, "")
		f.expect(200, "POST", fmt.Sprintf("/api/v1/friends/%d/block", dan.id), ann.token, "")
		f.expect(200, "POST", "/api/v1/auth/link", f.serverKey, fmt.Sprintf(`{"userId":%d,"externalId":"ann"}`, ann.id))
		f.dial(savePath, ann.token).expectOK("saved", "save", `{"slot":"main","state":{"gold":1}}`)
		socket := there.dialRealtime(ann)
		room := f.createRoom(ann)
		held := f.expectError(409, "money_held", "DELETE", "/api/v1/me", ann.token, "")
		if held.text("tokenId") != "GOLD" {
			t.Errorf("money is held: %s", held.raw)
		}
		f.expect(200, "GET", "/api/v1/me", ann.token, "") // nothing was deleted
		f.expect(200, "POST", "/api/v1/game-session/leave", ann.token, roomBody(room))

		f.expect(204, "DELETE", "/api/v1/me", ann.token, "")
		if again := f.send("DELETE", "/api/v1/me", ann.token, ""); again.status != 401 && again.status != 204 {
			t.Errorf("the second call returned %d %s", again.status, again.raw)
		}
		if code := socket.waitCloseCode(); code != 4001 {
			t.Errorf("the socket was closed with %d", code)
		}
		f.expectError(401, "unauthenticated", "GET", "/api/v1/me", ann.token, "")
		there.expectError(401, "unauthenticated", "GET", "/api/v1/me", ann.token, "")
		f.expectError(401, "unauthenticated", "POST", "/api/v1/auth/refresh", "",
			fmt.Sprintf(`{"refreshToken":%q}`, ann.refresh))
		f.expectError(404, "user_not_found", "GET", fmt.Sprintf("/api/v1/admin/users/%d", ann.id), adminKey, "")
		for _, p := range []player{bob, cid, dan} {
			if list := f.expect(200, "GET", "/api/v1/friends", p.token, ""); list.count("items") != 0 {
				t.Errorf("player %d still has %s", p.id, list.raw)
			}
		}
		redistest.EachMaster(t, f.db, func(ctx context.Context, server *redis.Client) error {
			left, err := server.Keys(ctx, fmt.Sprintf("{u:%d}:*", ann.id)).Result()
			if len(left) > 0 {
				t.Errorf("%v are left", left)
			}
			return err
		})
		// The credentials make new players.
		if back := f.expect(201, "POST", "/api/v1/auth/guest", "", device); back.id("user.id") == ann.id {
			t.Error("the device came back as the deleted player")
		}
		back := f.expect(201, "POST", "/api/v1/auth/exchange", f.serverKey, `{"externalId":"ann"}`)
		if back.id("user.id") == ann.id {
			t.Error("the external id came back as the deleted player")
		}
		f.expectBalancedAudit() // the lines of the ledger are still there
	})
}

func TestAvatarsAreAtTheHostsThatTheGameLists(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	game := fmt.Sprintf("/api/v1/admin/games/%d", f.game)
	patched := f.expect(200, "PATCH", game, adminKey, `{"settings":{"avatarHosts":["*.cdn.example"]}}`)
	if patched.text("settings.avatarHosts.0") != "*.cdn.example" {
		t.Errorf("the game is %s", patched.raw)
	}
	f.expect(200, "PATCH", "/api/v1/me", ann.token, `{"avatar":"https://a.cdn.example/x.png"}`)
	for _, avatar := range []string{
		"https://other.example/x.png", "https://127.0.0.1/x.png", "http://a.cdn.example/x.png",
	} {
		for _, resp := range []*httpResult{
			f.expectError(400, "invalid_request", "PATCH", "/api/v1/me", ann.token, fmt.Sprintf(`{"avatar":%q}`, avatar)),
			f.expectError(400, "invalid_request", "POST", "/api/v1/auth/exchange", f.serverKey,
				fmt.Sprintf(`{"externalId":"x","avatar":%q}`, avatar)),
		} {
			if resp.text("errors.0.field") != "avatar" {
				t.Errorf("%s returned %s", avatar, resp.raw)
			}
		}
	}
	for _, hosts := range []string{
		`["127.0.0.1"]`, `["localhost"]`, `["a.local"]`, `["A.example"]`, `["*"]`, `["*.*.x.example"]`,
	} {
		bad := f.expectError(400, "invalid_request", "PATCH", game, adminKey, `{"settings":{"avatarHosts":`+hosts+`}}`)
		if bad.text("errors.0.field") != "settings.avatarHosts[0]" {
			t.Errorf("%s returned %s", hosts, bad.raw)
		}
	}
}
