package story

import (
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestWithoutAStoreEveryPurchaseIsEitherDoneOrNot(t *testing.T) {
	t.Parallel()
	store := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "always")
	f := &fixture{t: t}
	for i := range f.nodes {
		f.nodes[i] = nodetest.Start(t, store.URL())
	}
	op := f.setUp(nil)
	coin := f.must(201, "POST", fmt.Sprintf("/api/v1/admin/games/%d/assets", op.game), nodetest.AdminKey, map[string]any{
		"name": "Coin", "tokenId": "GOLD", "price": 1,
	})
	buy := fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", number(t, coin.Body["id"]))
	ann := f.guest(op.game, "Ann")
	room := f.must(201, "POST", "/api/v1/game-session/create", ann.token, map[string]any{
		"entryTokenId": op.tokenID, "roomEntry": 20, "maxPlayers": 2,
	}).Body["roomId"].(string)

	// Forty purchases are running when the store is killed.
	sold := make(chan struct{}, 40)
	var buyers sync.WaitGroup
	for i := range 40 {
		buyers.Go(func() {
			a, err := f.node().Do(t.Context(), "POST", buy, ann.token, nil, "Idempotency-Key", fmt.Sprintf("coin-%d", i))
			testkit.Report(t, err, "purchase %d", i)
			if a.Status == 201 {
				sold <- struct{}{}
			} else if a.Status != 503 || a.Code() != "store_unavailable" {
				t.Errorf("purchase %d returned %s", i, a)
			}
		})
	}
	<-sold
	store.Kill()
	buyers.Wait()

	for _, n := range f.nodes {
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
		a := f.wantError("store_unavailable", 503, "POST", path, bearer, body, "Idempotency-Key", "during-the-outage")
		if a.Body["retryable"] != true {
			t.Errorf("POST %s is not marked as retryable: %s", path, a)
		}
	}
	f.wantError("store_unavailable", 503, "GET", "/api/v1/user-balance/token-balances", ann.token, nil)
	f.wantError("store_unavailable", 503, "GET", "/api/v1/game-session/get?roomId="+room, ann.token, nil)

	testkit.Check(t, store.Restart())
	for _, n := range f.nodes {
		n.WaitReady(200)
	}
	// All requests are repeated with the same key: what was sold is replayed, what was not is sold
	// now.
	repeated := tally(f, 40, func(i int) (nodetest.Response, error) {
		return f.node().Do(t.Context(), "POST", buy, ann.token, nil, "Idempotency-Key", fmt.Sprintf("coin-%d", i))
	})
	if want := map[string]int{"201": 40}; !maps.Equal(repeated, want) {
		t.Fatalf("the repeated purchases return %v", repeated)
	}
	f.wantWallet(ann, "4000", "2000")
	f.wantTotals(map[string]string{"house": "4000", "escrow": "2000"})
}

func TestANodeKilledUnderLoadLosesNoMoney(t *testing.T) {
	t.Parallel()
	store := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "always")
	db := testkit.Must(redisdb.Open(store.URL()))(t)
	t.Cleanup(func() { _ = db.Close() })
	f := &fixture{t: t}
	for i := range f.nodes {
		f.nodes[i] = nodetest.Start(t, store.URL())
	}
	op := f.setUp(nil)
	players := make([]player, 16)
	for i := range players {
		players[i] = f.guest(op.game, fmt.Sprintf("Player %d", i))
	}
	// Each player creates rooms and leaves them, with keys, on the node that is killed, and repeats a
	// failed request on the other.
	killed, survivor := f.nodes[0], f.nodes[1]
	begun := make(chan struct{}, len(players))
	var all sync.WaitGroup
	for i, p := range players {
		all.Go(func() {
			for turn := range 10 {
				key := fmt.Sprintf("room-%d-%d", i, turn)
				body := map[string]any{"entryTokenId": op.tokenID, "roomEntry": 1.5, "maxPlayers": 2}
				a, err := killed.Do(t.Context(), "POST", "/api/v1/game-session/create", p.token, body, "Idempotency-Key", key)
				if err != nil {
					a, err = survivor.Do(t.Context(), "POST", "/api/v1/game-session/create", p.token, body, "Idempotency-Key", key)
				}
				if err != nil || a.Status != 201 {
					t.Errorf("create: %v %s", err, a)
					return
				}
				if turn == 2 {
					begun <- struct{}{}
				}
				leave := map[string]any{"roomId": a.Body["roomId"]}
				a, err = killed.Do(
					t.Context(),
					"POST",
					"/api/v1/game-session/leave",
					p.token,
					leave,
					"Idempotency-Key",
					"leave-"+key,
				)
				if err != nil {
					a, err = survivor.Do(
						t.Context(),
						"POST",
						"/api/v1/game-session/leave",
						p.token,
						leave,
						"Idempotency-Key",
						"leave-"+key,
					)
				}
				if err != nil || a.Status != 200 || a.Body["status"] != "CANCELLED" {
					t.Errorf("leave: %v %s", err, a)
					return
				}
			}
		})
	}
	<-begun
	killed.Kill()
	all.Wait()
	f.nodes[0] = survivor
	for _, p := range players {
		f.wantWallet(p, "10000", "0")
	}
	totals := map[string]string{"wallets": "160000", "escrow": "0", "house": "0"}
	f.wantTotals(totals)
	f.wantFolded(db, op.game) // by the other node, if the killed one was folding
	f.wantTotals(totals)
}
