package story

import (
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
)

func TestALostStoreIsRefusedAndEveryPurchaseIsEitherDoneOrNot(t *testing.T) {
	store := redistest.StartFor(t, "--appendonly", "yes", "--appendfsync", "always")
	w := &world{t: t}
	for i := range w.nodes {
		w.nodes[i] = nodetest.Start(t, store.URL())
	}
	op := w.setUp(nil)
	coin := w.must(201, "POST", fmt.Sprintf("/api/v1/admin/games/%d/assets", op.game), nodetest.AdminKey, map[string]any{
		"name": "Coin", "tokenId": "GOLD", "price": 1,
	})
	buy := fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", number(t, coin.Body["id"]))
	ann := w.guest(op.game, "Ann")
	room := w.must(201, "POST", "/api/v1/game-session/create", ann.token, map[string]any{
		"entryTokenId": op.tokenID, "roomEntry": 20, "maxPlayers": 2,
	}).Body["roomId"].(string)

	// Forty purchases are under way when the store loses its power.
	sold := make(chan struct{}, 40)
	var buyers sync.WaitGroup
	for i := range 40 {
		buyers.Go(func() {
			a, err := w.node().Do(t.Context(), "POST", buy, ann.token, nil, "Idempotency-Key", fmt.Sprintf("coin-%d", i))
			if err != nil {
				t.Errorf("purchase %d: %v", i, err)
			}
			if a.Status == 201 {
				sold <- struct{}{}
			} else if a.Status != 503 || a.Code() != "store_unavailable" {
				t.Errorf("purchase %d answers %s", i, a)
			}
		})
	}
	<-sold
	store.Kill()
	buyers.Wait()

	for _, n := range w.nodes {
		n.WaitReady(503)
	}
	for path, body := range map[string]any{
		buy:                          nil,
		"/api/v1/game-session/join":  map[string]any{"roomId": room},
		"/api/v1/game-session/leave": map[string]any{"roomId": room},
		"/api/v1/auth/guest":         map[string]any{"gameId": op.game},
		"/api/v1/auth/ticket":        map[string]any{},
		"/api/v1/admin/games":        map[string]any{"name": "Another"},
		"/api/v1/friends/123456789":  nil,
	} {
		bearer := ann.token
		if path == "/api/v1/admin/games" {
			bearer = nodetest.AdminKey
		}
		a := w.refused("store_unavailable", 503, "POST", path, bearer, body, "Idempotency-Key", "while-it-was-gone")
		if a.Body["retryable"] != true {
			t.Errorf("POST %s does not say that asking again can help: %s", path, a)
		}
	}
	w.refused("store_unavailable", 503, "GET", "/api/v1/user-balance/token-balances", ann.token, nil)
	w.refused("store_unavailable", 503, "GET", "/api/v1/game-session/get?roomId="+room, ann.token, nil)

	if err := store.Restart(); err != nil {
		t.Fatal(err)
	}
	for _, n := range w.nodes {
		n.WaitReady(200)
	}
	// Everybody asks again with the same key: what was sold is answered again, what was not is sold now.
	again := tally(w, 40, func(i int) (nodetest.Response, error) {
		return w.node().Do(t.Context(), "POST", buy, ann.token, nil, "Idempotency-Key", fmt.Sprintf("coin-%d", i))
	})
	if want := map[string]int{"201": 40}; !maps.Equal(again, want) {
		t.Fatalf("asked again, the purchases answer %v", again)
	}
	w.wantPurse(ann, "4000", "2000")
	if totals := w.wantBalanced(); fmt.Sprint(totals["house"]) != "40" || fmt.Sprint(totals["escrow"]) != "20" {
		t.Fatalf("the totals are %v", totals)
	}
}

func TestANodeKilledUnderLoadLosesNoMoney(t *testing.T) {
	store := redistest.StartFor(t, "--appendonly", "yes", "--appendfsync", "always")
	w := &world{t: t}
	for i := range w.nodes {
		w.nodes[i] = nodetest.Start(t, store.URL())
	}
	op := w.setUp(nil)
	players := make([]player, 16)
	for i := range players {
		players[i] = w.guest(op.game, fmt.Sprintf("Player %d", i))
	}
	// Each player opens rooms and leaves them, with keys, on the node that is about to die; then asks again on the other.
	doomed, survivor := w.nodes[0], w.nodes[1]
	first := make(chan struct{}, len(players))
	var all sync.WaitGroup
	for i, p := range players {
		all.Go(func() {
			for turn := range 10 {
				key := fmt.Sprintf("room-%d-%d", i, turn)
				body := map[string]any{"entryTokenId": op.tokenID, "roomEntry": 1.5, "maxPlayers": 2}
				a, err := doomed.Do(t.Context(), "POST", "/api/v1/game-session/create", p.token, body, "Idempotency-Key", key)
				if err != nil {
					a, err = survivor.Do(t.Context(), "POST", "/api/v1/game-session/create", p.token, body, "Idempotency-Key", key)
				}
				if err != nil || a.Status != 201 {
					t.Errorf("create: %v %s", err, a)
					return
				}
				if turn == 2 {
					first <- struct{}{}
				}
				leave := map[string]any{"roomId": a.Body["roomId"]}
				a, err = doomed.Do(t.Context(), "POST", "/api/v1/game-session/leave", p.token, leave, "Idempotency-Key", "leave-"+key)
				if err != nil {
					a, err = survivor.Do(t.Context(), "POST", "/api/v1/game-session/leave", p.token, leave, "Idempotency-Key", "leave-"+key)
				}
				if err != nil || a.Status != 200 || a.Body["status"] != "CANCELLED" {
					t.Errorf("leave: %v %s", err, a)
					return
				}
			}
		})
	}
	<-first
	doomed.Kill()
	all.Wait()
	w.nodes[0] = survivor
	for _, p := range players {
		w.wantPurse(p, "10000", "0")
	}
	if totals := w.wantBalanced(); fmt.Sprint(totals["escrow"]) != "0" {
		t.Fatalf("the totals are %v", totals)
	}
}
