package handlers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
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
		if err := f.db.Client.HIncrBy(t.Context(), family, "rotated", -time.Hour.Milliseconds()).Err(); err != nil {
			t.Fatal(err)
		}
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
