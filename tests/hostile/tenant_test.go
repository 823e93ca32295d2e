package hostile

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
)

// A game of the same installation fills the store as fast as its server key can, by three
// connections, while players of another game play for money.
func TestOneHostileTenantHarmsNoOtherGame(t *testing.T) {
	server := redistest.StartForTest(t, "--maxmemory", "256mb", "--appendonly", "yes", "--appendfsync", "always",
		"--slowlog-max-len", "100000")
	w := &world{t: t, db: redistest.Dial(t, server)}
	for i := range w.nodes {
		w.nodes[i] = nodetest.Start(t, server.URL(), "PARLOR_TRUSTED_PROXIES=127.0.0.1/32", "PARLOR_DURABILITY=disk")
	}
	w.setUp()
	tenant := w.nodes[0].Must(t, 201, http.MethodPost, "/api/v1/admin/games", nodetest.AdminKey,
		map[string]any{"name": "Greedy"})
	game, serverKey := number(t, tenant.Body["game"].(map[string]any)["id"]), tenant.Body["serverKey"].(string)

	quiet := w.measure(*playFor, nil)
	ctx, cancel := context.WithTimeout(t.Context(), *attackFor)
	defer cancel()
	statuses := [4]sync.Map{} // status of a kind of request → how many
	var group sync.WaitGroup
	for connection := range 3 {
		group.Go(func() { w.attackAsTenant(ctx, connection, game, serverKey, &statuses) })
	}
	attacked := w.measure(*attackFor, group.Wait)
	for i, kind := range tenantRequests(game, 0) {
		text := ""
		statuses[i].Range(func(status, n any) bool {
			text += fmt.Sprintf(" %v: %d", status, n.(*atomic.Int64).Load())
			return true
		})
		t.Logf("the tenant's requests to %s:%s", kind.path, text)
	}
	w.report(quiet, attacked)
	if n := w.failed.Load() + w.limited.Load(); n > 0 || w.calls.Load() == 0 {
		w.failures.Range(func(what, _ any) bool { t.Log(what); return true })
		t.Errorf("%d of %d calls of the other game failed, %d of them by a rate limit", n, w.calls.Load(), w.limited.Load())
	}
	for key, most := range map[string]int64{keys.Boards(game): 200, keys.Assets(game): 5_000, keys.ToursDue(game): 1_000} {
		have := w.db.ZCard(t.Context(), key).Val() + w.db.SCard(t.Context(), key).Val()
		if have == 0 || have > most {
			t.Errorf("%s has %d members; want 1 to %d", key, have, most)
		}
	}
	w.audit(server)
}

// tenantRequest is something that a game's server can make.
type tenantRequest struct {
	path string
	body map[string]any
}

// tenantRequests returns one of each kind, with a number of its own.
func tenantRequests(game int64, n int) []tenantRequest {
	path := fmt.Sprintf("/api/v1/admin/games/%d", game)
	filler := make([]byte, 3_900)
	for i := range filler {
		filler[i] = 'x'
	}
	metadata := map[string]any{"text": string(filler)}
	return []tenantRequest{
		{path + "/leaderboards", map[string]any{"board": fmt.Sprint("b", n), "name": "B", "metadata": metadata}},
		{path + "/assets", map[string]any{"name": "A", "tokenId": "GOLD", "price": 1, "metadata": metadata}},
		{path + "/tournaments", map[string]any{
			"name": "T", "format": "swiss", "maxEntrants": 8, "metadata": metadata,
			"startsAt": time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339),
		}},
		{"/api/v1/auth/exchange", map[string]any{"externalId": fmt.Sprint("p", n)}},
	}
}

// attackAsTenant sends requests one after the other until ctx ends.
func (w *world) attackAsTenant(
	ctx context.Context, connection int, game int64, serverKey string, statuses *[4]sync.Map,
) {
	for n := connection; ctx.Err() == nil; n += 3 {
		for i, request := range tenantRequests(game, n) {
			r, err := w.nodes[n%2].Do(ctx, http.MethodPost, request.path, serverKey, request.body)
			if err != nil {
				continue
			}
			count, _ := statuses[i].LoadOrStore(r.Status, new(atomic.Int64))
			count.(*atomic.Int64).Add(1)
		}
	}
}
