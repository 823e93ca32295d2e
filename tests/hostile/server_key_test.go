package hostile

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/parlor-games/parlor/internal/base/wire/wiretest"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// attempts is how often the thief of a server key tries each thing.
const attempts = 5

// heist is a game whose server key is in the hands of a thief, who has an account in it.
type heist struct {
	t         *testing.T
	nodes     [2]*nodetest.Node
	calls     int
	game      int64
	admin     string // path of the game for staff
	serverKey string
	thief     player
	honest    player
}

type player struct {
	id    int64
	token string
}

// newHeist makes a game whose server may mint 50 GOLD a day, two players and a house of 100 GOLD.
func newHeist(t *testing.T, server *redistest.Server) *heist {
	h := &heist{t: t}
	for i := range h.nodes {
		h.nodes[i] = nodetest.Start(t, server.URL(), "PARLOR_DURABILITY=memory", "PARLOR_RATE_LIMITS=off")
	}
	h.must(201, "POST", "/api/v1/admin/tokens", nodetest.AdminKey, map[string]any{
		"tokenId": "GOLD", "tokenName": "Gold",
		"metadata": map[string]any{"assetName": "676f6c64", "policyId": "ab01", "decimals": "2"},
	})
	made := h.must(201, "POST", "/api/v1/admin/games", nodetest.AdminKey, map[string]any{
		"name": "Duel", "welcomeGrant": map[string]any{"tokenId": "GOLD", "amount": 100, "for": "any"},
		"settings": map[string]any{"grantLimitPerDay": 1000}, // else that of what the server mints
	})
	h.game, h.serverKey = number(t, made["game"].(map[string]any)["id"]), made["serverKey"].(string)
	h.admin = fmt.Sprint("/api/v1/admin/games/", h.game)
	h.must(200, "PATCH", "/api/v1/admin/tokens/GOLD", nodetest.AdminKey, map[string]any{
		"games": []map[string]any{{"gameId": h.game, "mintLimitPerDay": 50}},
	})
	for _, p := range []*player{&h.thief, &h.honest} {
		in := h.must(201, "POST", "/api/v1/auth/guest", "", map[string]any{"gameId": h.game})
		*p = player{number(t, in["user"].(map[string]any)["id"]), in["accessToken"].(string)}
	}
	sword := h.must(201, "POST", h.admin+"/assets", nodetest.AdminKey, map[string]any{
		"name": "Sword", "tokenId": "GOLD", "price": 100,
	})
	h.must(201, "POST", fmt.Sprint("/api/v1/user-assets/add/game-asset/", number(t, sword["id"])), h.honest.token, nil)
	return h
}

// try sends a request to the nodes in turn, and returns its status and code.
func (h *heist) try(method, path, bearer string, body any) nodetest.Response {
	h.t.Helper()
	h.calls++
	return testkit.Must(h.nodes[h.calls%2].Do(h.t.Context(), method, path, bearer, body,
		"Idempotency-Key", fmt.Sprint("call-", h.calls)))(h.t, "%s %s", method, path)
}

func (h *heist) must(status int, method, path, bearer string, body any) map[string]any {
	h.t.Helper()
	r := h.try(method, path, bearer, body)
	if r.Status != status {
		h.t.Fatalf("%s %s returns %s; want %d", method, path, r, status)
	}
	return r.Body
}

// forbidden sends a request of the thief, which must be refused.
func (h *heist) forbidden(method, path string, body any) {
	h.t.Helper()
	if r := h.try(method, path, h.serverKey, body); r.Code() != "forbidden" {
		h.t.Errorf("%s %s with %v returns %s; want forbidden", method, path, body, r)
	}
}

// books are what exists and who has it, in minor units.
type books struct{ minted, house, prizes string }

func (h *heist) books() (b books) {
	h.t.Helper()
	audit := h.must(200, "GET", fmt.Sprint("/api/v1/admin/audit?gameId=", h.game), nodetest.AdminKey, nil)
	token := audit["tokens"].([]any)[0].(map[string]any)
	return books{token["mintedAmount"].(string), token["houseAmount"].(string), token["prizesAmount"].(string)}
}

// balance returns what a player can spend, in minor units.
func (h *heist) balance(p player) string {
	h.t.Helper()
	list := h.must(200, "GET", "/api/v1/user-balance/token-balances", p.token, nil)
	return list["balances"].([]any)[0].(map[string]any)["amount"].(string)
}

// prizes returns a pool of 20 GOLD for the first, with a review.
func prizes(from string) map[string]any {
	return map[string]any{
		"tokenId": "GOLD", "pool": 20, "from": from, "reviewSeconds": 3600,
		"table": []map[string]any{{"fromPlace": 1, "toPlace": 1, "shareBps": 10_000}},
	}
}

// waitForSeason waits until the newest seasons of a board are as wanted, newest first.
func (h *heist) waitForSeason(board string, number int, status string) {
	h.t.Helper()
	redistest.Eventually(h.t, fmt.Sprintf("season %d of %s is %s", number, board, status), func() bool {
		list := h.must(200, "GET", fmt.Sprintf("/api/v1/leaderboards/%s/seasons?gameId=%d", board, h.game), h.serverKey, nil)
		for _, one := range list["items"].([]any) {
			season := one.(map[string]any)
			if season["season"] == wiretest.Number(fmt.Sprint(number)) {
				return season["status"] == status
			}
		}
		return false
	})
}

// A thief of the server key tries to empty the house through a board whose prizes the operator
// promised, from the house or minted: nothing moves, however often it tries. What the key promises
// itself is minted within its limit of a day.
func TestAHostileGameServerKeyMovesNothing(t *testing.T) {
	server := redistest.StartForTest(t)
	h := newHeist(t, server)
	reason := map[string]any{"reason": "mine"}
	for _, from := range []string{"house", "mint"} {
		board := "of-" + from
		path := h.admin + "/leaderboards/" + board
		h.must(201, "POST", h.admin+"/leaderboards", nodetest.AdminKey, map[string]any{
			"board": board, "name": "Week", "prizes": prizes(from), "schedule": map[string]any{"everySeconds": 7 * 86_400},
		})
		score := map[string]any{"userId": h.thief.id, "score": 1_000_000}
		h.must(200, "POST", "/api/v1/leaderboards/"+board+"/scores", h.serverKey, score)
		// The operator ends the first season early, so that it is in review and the next one is open.
		h.must(200, "POST", path+"/seasons/1/end", nodetest.AdminKey, reason)
		h.waitForSeason(board, 1, "HELD")
		before := h.books()
		for range attempts {
			h.must(200, "POST", "/api/v1/leaderboards/"+board+"/scores", h.serverKey, score)
			h.forbidden("POST", path+"/seasons/2/end", reason)
			h.forbidden("POST", path+"/seasons/1/approve", reason)
			h.forbidden("POST", path+"/seasons/1/void", reason)
			h.forbidden("POST", fmt.Sprintf("%s/entries/%d/hide?season=1", path, h.thief.id), reason)
			h.forbidden("DELETE", path, nil)
			h.forbidden("PATCH", path, map[string]any{"schedule": map[string]any{"everySeconds": 60}})
			h.forbidden("PATCH", path, map[string]any{"writers": []string{"server", "players"}, "rules": map[string]any{}})
			h.forbidden("PATCH", path, map[string]any{
				"writers": []string{"players"}, "rules": map[string]any{}, "effective": "now",
			})
			h.forbidden("PATCH", path, map[string]any{"prizes": prizes(from)})
		}
		after := h.books()
		t.Logf("prizes from %s: %d attempts; before %+v, after %+v (minor units)", from, 9*attempts, before, after)
		if before != after {
			t.Errorf("prizes from %s: the thief has moved something", from)
		}
	}
	if got := h.balance(h.thief); got != "10000" {
		t.Errorf("the thief has %s minor units; want the grant", got)
	}

	// Of what the key promises itself, each season counts against its day.
	before := h.books()
	h.must(201, "POST", h.admin+"/leaderboards", h.serverKey, map[string]any{
		"board": "own", "name": "Own", "prizes": prizes("mint"),
	})
	for number := range attempts {
		h.must(200, "POST", fmt.Sprintf("%s/leaderboards/own/seasons/%d/end", h.admin, number+1), h.serverKey, reason)
		h.waitForSeason("own", number+1, map[bool]string{true: "HELD", false: "SEALED"}[number < 2])
	}
	after := h.books()
	t.Logf("prizes of the key itself: before %+v, after %+v; it may mint 5000", before, after)
	if minted := units(t, after.minted) - units(t, before.minted); minted > 5000 || after.house != before.house {
		t.Errorf("the key has minted %d; it may mint 5000", minted)
	}
	(&world{t: t}).audit(server)
}

// An operator opens a board with a pool to players, from the next season on: no player gets into
// the season that is open.
func TestAPatchLetsNobodyIntoAnOpenSeason(t *testing.T) {
	server := redistest.StartForTest(t)
	h := newHeist(t, server)
	h.must(201, "POST", h.admin+"/leaderboards", nodetest.AdminKey, map[string]any{
		"board": "pool", "name": "Pool", "prizes": prizes("house"), "schedule": map[string]any{"everySeconds": 86_400},
	})
	const scores = "/api/v1/leaderboards/pool/scores"
	h.must(200, "POST", scores, h.serverKey, map[string]any{"userId": h.honest.id, "score": 10})
	patched := h.must(200, "PATCH", h.admin+"/leaderboards/pool", nodetest.AdminKey, map[string]any{
		"writers": []string{"server", "players"}, "rules": map[string]any{"max": 100, "play": true},
	})
	ends := patched["season"].(map[string]any)["closesAt"]
	if from := patched["effectiveFrom"]; from == nil || from != ends {
		t.Errorf("the patch holds from %v; the season ends at %v", from, ends)
	}
	before := h.books()
	for range attempts {
		score := map[string]any{"score": 4_503_599_627_370_495}
		r := h.try("POST", scores, h.thief.token, score)
		if r.Status != http.StatusForbidden {
			t.Errorf("a score of the thief returns %s; want forbidden", r)
		}
	}
	if after := h.books(); after != before {
		t.Errorf("before %+v, after %+v", before, after)
	}
	reason := map[string]any{"reason": "the day is over"}
	h.must(200, "POST", h.admin+"/leaderboards/pool/seasons/1/end", nodetest.AdminKey, reason)
	h.waitForSeason("pool", 1, "HELD")
	h.must(200, "POST", h.admin+"/leaderboards/pool/seasons/1/approve", nodetest.AdminKey, reason)
	h.waitForSeason("pool", 1, "PAID")
	if honest, thief := h.balance(h.honest), h.balance(h.thief); honest != "2000" || thief != "10000" {
		t.Errorf("the winner has %s and the thief %s minor units; want 2000 and 10000", honest, thief)
	}
}

func units(t *testing.T, text string) int64 {
	t.Helper()
	return number(t, wiretest.Number(text))
}
