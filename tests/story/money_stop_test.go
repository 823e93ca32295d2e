//go:build linux

package story

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
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
			return testkit.Must(n.Do(t.Context(), "POST", "/api/v1/game-session/create", p.token, map[string]any{
				"entryTokenId": s.tokenID, "roomEntry": 1, "maxPlayers": 2,
			}))(t)
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
				delta := fmt.Sprintf("parlor_money_delta{game=%q,token=%q}", fmt.Sprint(s.game), "GOLD")
				most = max(most, nodetest.Metric(t, n, delta))
			}
			return most
		}
		if got := delta(); got != 5 {
			t.Errorf("parlor_money_delta is %v", got)
		}
		audit := func(game int64) string {
			return f.must(200, "GET", fmt.Sprintf("/api/v1/admin/audit?gameId=%d", game), nodetest.AdminKey, nil).String()
		}
		if a := audit(s.game); !strings.Contains(a, `"balanced":false,"sumsAgree":false`) ||
			!strings.Contains(a, fmt.Sprintf(`"stopped":[{"gameId":%d,"cause":"conservation","reason":"`, s.game)) {
			t.Errorf("the audit returns %s", a)
		}
		if a := audit(other); !strings.Contains(a, `"balanced":true`) || !strings.Contains(a, `"stopped":[]`) {
			t.Errorf("the audit of another game returns %s", a)
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

// TestTheAuditKnowsOfAGameThatIsStopped changes a wallet by hand. The sums of the totals agree all
// the same.
func TestTheAuditKnowsOfAGameThatIsStopped(t *testing.T) {
	eachURL(t, func(t *testing.T, f *fixture, url string, db *redisdb.DB) {
		s := f.openShop()
		if out, err := parlor(t, url, "audit"); err != nil || !strings.HasSuffix(out, "\nbalanced\n") {
			t.Fatalf("the audit before: %v\n%s", err, out)
		}
		bob := f.guest(s.game, "Bob")
		f.wantFolded(db, s.game)
		db.Client.HSet(t.Context(), keys.Wallet(s.game, bob.id), "GOLD", "77700|0")
		for next := int64(0); ; next++ { // the game goes on, so that the leader looks at it
			if a, err := f.buy(s, next); err != nil || a.Status != 201 {
				break
			}
		}
		f.wantFolded(db, s.game)
		stopped := fmt.Sprintf("game %d is stopped (conservation) since ", s.game)
		game := fmt.Sprint(s.game)
		for _, args := range []string{"audit", "audit --game " + game} {
			out, err := parlor(t, url, strings.Fields(args)...)
			if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(out, stopped) ||
				!strings.Contains(out, "\nSTOPPED: the sums agree") {
				t.Errorf("%s: %v\n%s", args, err, out)
			}
		}
		account := fmt.Sprintf("game %d: w%d of GOLD", s.game, bob.id)
		out, err := parlor(t, url, "audit", "--deep")
		if err == nil || !strings.Contains(out, stopped) || !strings.Contains(out, account) ||
			!strings.HasSuffix(out, "\nNOT BALANCED\n") {
			t.Errorf("the deep audit: %v\n%s", err, out)
		}
		if out, err := parlor(t, url, "store", "status"); err == nil || !strings.Contains(out, "conservation") {
			t.Errorf("the status of the store: %v\n%s", err, out)
		}
		f.must(200, "POST", "/api/v1/admin/games/"+game+"/accept-audit", nodetest.AdminKey,
			map[string]any{"reason": "a gift by hand"}, "Idempotency-Key", "accept")
		if out, err := parlor(t, url, "audit"); err != nil || !strings.HasSuffix(out, "\nbalanced\n") {
			t.Errorf("the audit after it was accepted: %v\n%s", err, out)
		}
	})
}
