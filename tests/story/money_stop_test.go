package story

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
)

// stopLimit is within how long every node must stop a game. The leader audits once a second, a node
// reads the stops once a second, and a busy machine is late.
const stopLimit = 4 * time.Second

// waitUntil is redistest.Eventually for what must not take longer than a limit. It returns how long
// it took.
func waitUntil(t *testing.T, since time.Time, limit time.Duration, condition string, holds func() bool) time.Duration {
	t.Helper()
	redistest.Eventually(t, condition, holds)
	took := time.Since(since)
	if took > limit {
		t.Errorf("%s after %v; at most %v are promised", condition, took, limit)
	}
	return took
}

// TestAGameWhoseMoneyDoesNotAddUpIsStoppedOnEveryNode makes five units out of nothing behind the
// back of two processes.
func TestAGameWhoseMoneyDoesNotAddUpIsStoppedOnEveryNode(t *testing.T) {
	each(t, func(t *testing.T, f *fixture, db *redisdb.DB) {
		s := f.openShop()
		made := f.must(201, "POST", "/api/v1/admin/games", nodetest.AdminKey, map[string]any{
			"name": "Other", "welcomeGrant": map[string]any{"tokenId": "GOLD", "amount": 100, "for": "any"},
		})
		other := number(t, made.Body["game"].(map[string]any)["id"])
		ann, stranger := s.buyer, f.guest(other, "Stranger")
		tryPaidRoom := func(n *nodetest.Node, p player) nodetest.Response {
			a, err := n.Do(t.Context(), "POST", "/api/v1/game-session/create", p.token, map[string]any{
				"entryTokenId": s.tokenID, "roomEntry": 1, "maxPlayers": 2,
			})
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		room := tryPaidRoom(f.nodes[0], ann).Body["roomId"].(string)
		f.wantFolded(db, s.game)

		db.Client.HIncrBy(t.Context(), keys.Totals(s.game), keys.TotalField(keys.TotalMinted, "GOLD"), 5)
		began := time.Now()
		check := fmt.Sprintf("money:%d", s.game)
		for next := int64(0); ; next++ { // the game goes on, so that the leader looks at it
			if a, err := f.buy(s, next); err != nil || a.Status != 201 {
				break
			}
		}
		for _, n := range f.nodes {
			took := waitUntil(t, began, stopLimit, "a node stops the game", func() bool {
				ok, _ := f.readyCheck(n, check)
				return !ok
			})
			t.Logf("a node stopped the game %v after it did not add up", took.Round(10*time.Millisecond))
		}
		paid := map[string]any{"entryTokenId": s.tokenID, "roomEntry": 1, "maxPlayers": 2}
		credit := map[string]any{"tokenId": "GOLD", "amount": 1, "reason": "test"}
		creditPath := func(p player) string { return fmt.Sprintf("/api/v1/admin/users/%d/credit", p.id) }
		for i, n := range f.nodes {
			key := fmt.Sprint("stopped-", i)
			for _, call := range []struct {
				path, bearer string
				body         any
			}{
				{s.path, ann.token, nil},
				{"/api/v1/game-session/create", ann.token, paid},
				{"/api/v1/game-session/leave", ann.token, map[string]any{"roomId": room}},
				{creditPath(ann), nodetest.AdminKey, credit},
			} {
				a := n.Must(t, 503, "POST", call.path, call.bearer, call.body, "Idempotency-Key", key+call.path)
				if a.Code() != "store_unavailable" || a.Body["stopped"] != "conservation" || a.Body["retryable"] != true {
					t.Errorf("%s returns %s", call.path, a)
				}
			}
			n.Must(t, 200, "GET", "/api/v1/user-balance/token-balances", ann.token, nil)
			n.Must(t, 200, "GET", "/api/v1/game-session/get?roomId="+room, ann.token, nil)
			n.Must(t, 201, "POST", "/api/v1/game-session/create", ann.token, map[string]any{"maxPlayers": 2})
			n.Must(t, 200, "POST", creditPath(stranger), nodetest.AdminKey, credit, "Idempotency-Key", key)
			if a := tryPaidRoom(n, stranger); a.Status != 201 {
				t.Errorf("a room of another game returns %s", a)
			}
			n.WaitReady(200)
		}
		delta := func() (most float64) {
			for _, n := range f.nodes {
				most = max(most, metric(t, n, fmt.Sprintf("parlor_money_delta{game=%q,token=%q}", fmt.Sprint(s.game), "GOLD")))
			}
			return most
		}
		if got := delta(); got != 5 {
			t.Errorf("parlor_money_delta is %v", got)
		}
		if a := f.must(200, "GET", "/api/v1/admin/audit", nodetest.AdminKey, nil); a.Body["balanced"] != false {
			t.Errorf("the audit returns %s", a)
		}

		f.must(200, "POST", fmt.Sprintf("/api/v1/admin/games/%d/accept-audit", s.game), nodetest.AdminKey,
			map[string]any{"reason": "made by a test"}, "Idempotency-Key", "accept")
		accepted := time.Now()
		for i, n := range f.nodes {
			waitUntil(t, accepted, noticeLimit, "money goes on", func() bool {
				ok, _ := f.readyCheck(n, check)
				return ok
			})
			// A request that was refused meanwhile happens now, by its key.
			a := n.Must(t, 201, "POST", s.path, ann.token, nil, "Idempotency-Key", fmt.Sprint("stopped-", i)+s.path)
			if a.Header.Get("Idempotent-Replayed") != "" {
				t.Errorf("the error was kept: %s", a)
			}
		}
		f.must(200, "POST", "/api/v1/game-session/leave", ann.token, map[string]any{"roomId": room})
		redistest.Eventually(t, "the delta is 0", func() bool { return delta() == 0 })
		trail := f.must(200, "GET", "/api/v1/admin/trail", nodetest.AdminKey, nil)
		if !strings.Contains(trail.String(), "made by a test") {
			t.Errorf("the trail has %s", trail)
		}
	})
}
