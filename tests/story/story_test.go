// Package story plays whole stories over HTTP with two node processes and one real Redis, changing nodes at every call.
package story

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Wrap(nodetest.Main)(m)) }

// world is two nodes on one store; every call goes to the other node than the one before.
type world struct {
	t     *testing.T
	nodes [2]*nodetest.Node
	turn  atomic.Int64
}

func (w *world) node() *nodetest.Node { return w.nodes[w.turn.Add(1)%2] }

func (w *world) must(status int, method, path, bearer string, body any, headers ...string) nodetest.Response {
	w.t.Helper()
	return w.node().Must(w.t, status, method, path, bearer, body, headers...)
}

func (w *world) refused(code string, status int, method, path, bearer string, body any, headers ...string) nodetest.Response {
	w.t.Helper()
	a := w.must(status, method, path, bearer, body, headers...)
	if a.Code() != code {
		w.t.Fatalf("%s %s answers %s; want %s", method, path, a, code)
	}
	return a
}

// player is somebody signed in.
type player struct {
	id    int64
	token string
	name  string
}

func (w *world) guest(game int64, name string) player {
	w.t.Helper()
	a := w.must(201, "POST", "/api/v1/auth/guest", "", map[string]any{"gameId": game, "username": name})
	return player{id: number(w.t, a.Body["user"].(map[string]any)["id"]), token: a.Body["accessToken"].(string), name: name}
}

func number(t *testing.T, v any) int64 {
	t.Helper()
	n, err := v.(json.Number).Int64()
	if err != nil {
		t.Fatalf("%v is not an integer: %v", v, err)
	}
	return n
}

type operator struct {
	game      int64
	serverKey string
	tokenID   int64 // of GOLD, two decimals
}

func (w *world) setUp(settings map[string]any) operator {
	w.t.Helper()
	gold := w.must(201, "POST", "/api/v1/admin/tokens", nodetest.AdminKey, map[string]any{
		"tokenId": "GOLD", "tokenName": "Gold", "metadata": map[string]any{"assetName": "676f6c64", "policyId": "ab01", "decimals": "2"},
	})
	made := w.must(201, "POST", "/api/v1/admin/games", nodetest.AdminKey, map[string]any{
		"name": "Duel", "origins": []string{"https://duel.example"},
		"welcomeGrant": map[string]any{"tokenId": "GOLD", "amount": 100}, "settings": settings,
	})
	return operator{
		game:      number(w.t, made.Body["game"].(map[string]any)["id"]),
		serverKey: made.Body["serverKey"].(string),
		tokenID:   number(w.t, gold.Body["id"]),
	}
}

// purse is a player's GOLD in minor units: what can be spent and what is held.
func (w *world) purse(p player) (free, held string) {
	w.t.Helper()
	a := w.must(200, "GET", "/api/v1/user-balance/token-balances", p.token, nil)
	for _, b := range a.Body["balances"].([]any) {
		b := b.(map[string]any)
		if b["tokenId"] == "GOLD" {
			return b["amount"].(string), b["heldAmount"].(string)
		}
	}
	return "0", "0"
}

func (w *world) wantPurse(p player, free, held string) {
	w.t.Helper()
	if f, h := w.purse(p); f != free || h != held {
		w.t.Fatalf("%s has %s free and %s held; want %s and %s", p.name, f, h, free, held)
	}
}

func (w *world) wantBalanced() map[string]any {
	w.t.Helper()
	a := w.must(200, "GET", "/api/v1/admin/audit", nodetest.AdminKey, nil)
	if a.Body["balanced"] != true {
		w.t.Fatalf("the audit does not balance: %s", a)
	}
	return a.Body["tokens"].([]any)[0].(map[string]any)
}

func (w *world) befriend(a, b player) {
	w.t.Helper()
	w.must(200, "POST", fmt.Sprintf("/api/v1/friends/%d", b.id), a.token, nil)
	w.must(200, "POST", fmt.Sprintf("/api/v1/friends/%d", a.id), b.token, nil)
}

func each(t *testing.T, play func(t *testing.T, w *world, db *redisdb.DB)) {
	redistest.EachURL(t, func(t *testing.T, url string, db *redisdb.DB) {
		w := &world{t: t}
		durability := "PARLOR_DURABILITY=disk"
		for i := range w.nodes {
			w.nodes[i] = nodetest.Start(t, url, durability)
		}
		play(t, w, db)
	})
}

func TestAGameFromCreateToPayoutOnTwoNodes(t *testing.T) {
	each(t, func(t *testing.T, w *world, db *redisdb.DB) {
		op := w.setUp(map[string]any{})
		sword := w.must(201, "POST", fmt.Sprintf("/api/v1/admin/games/%d/assets", op.game), op.serverKey, map[string]any{
			"name": "Sword", "tokenId": "GOLD", "price": 7.5, "stock": 10, "perUserLimit": 3,
		})
		swordID := number(t, sword.Body["id"])

		ann, bob, cid, eve := w.guest(op.game, "Ann"), w.guest(op.game, "Bob"), w.guest(op.game, "Cid"), w.guest(op.game, "Eve")
		w.befriend(ann, bob)
		w.befriend(cid, ann)
		w.wantPurse(ann, "10000", "0")

		created := w.must(201, "POST", "/api/v1/game-session/create", ann.token, map[string]any{
			"entryTokenId": op.tokenID, "roomEntry": 33.35, "maxPlayers": 4, "minPlayers": 3, "isFriendsOnly": true, "rakeBps": 500,
			"metadata": map[string]any{"map": "bridge"},
		}, "Idempotency-Key", "create-1")
		room := created.Body["roomId"].(string)
		again := w.must(201, "POST", "/api/v1/game-session/create", ann.token, map[string]any{
			"entryTokenId": op.tokenID, "roomEntry": 33.35, "maxPlayers": 4, "minPlayers": 3, "isFriendsOnly": true, "rakeBps": 500,
			"metadata": map[string]any{"map": "bridge"},
		}, "Idempotency-Key", "create-1")
		if string(again.Raw) != string(created.Raw) || again.Header.Get("Idempotent-Replayed") != "true" {
			t.Fatalf("the replay differs:\n%s\n%s", created, again)
		}
		w.wantPurse(ann, "6665", "3335")

		join := map[string]any{"roomId": room}
		w.refused("friends_only", 403, "POST", "/api/v1/game-session/join", eve.token, join)
		w.wantPurse(eve, "10000", "0")
		w.must(200, "POST", "/api/v1/game-session/join", bob.token, join)
		w.refused("not_enough_players", 409, "POST", "/api/v1/game-session/start", ann.token, join)
		seated := w.must(200, "POST", "/join", cid.token, join)
		if got := names(seated.Body["participants"]); !slices.Equal(got, []string{"Ann", "Bob", "Cid"}) {
			t.Fatalf("participants are %v", got)
		}
		if seated.Body["totalWager"].(json.Number) != "100.05" || seated.Body["roomEntry"].(json.Number) != "33.35" {
			t.Fatalf("the amounts are not exact: %s", seated)
		}
		twice := w.must(200, "POST", "/join", cid.token, join)
		if twice.Body["version"] != seated.Body["version"] {
			t.Fatalf("joining twice changed the room: %s", twice)
		}
		w.refused("not_host", 403, "POST", "/api/v1/game-session/start", bob.token, join)
		w.must(200, "POST", "/api/v1/game-session/start", ann.token, join)
		w.refused("already_started", 409, "POST", "/api/v1/game-session/join", eve.token, join)

		buy := fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", swordID)
		w.refused("idempotency_key_required", 400, "POST", buy, bob.token, map[string]any{})
		bought := w.must(201, "POST", buy, bob.token, map[string]any{"quantity": 2, "expectedPrice": 7.5}, "Idempotency-Key", "buy-1")
		replayed := w.must(201, "POST", buy, bob.token, map[string]any{"expectedPrice": 7.5, "quantity": 2}, "Idempotency-Key", "buy-1")
		if string(bought.Raw) != string(replayed.Raw) || replayed.Header.Get("Idempotent-Replayed") != "true" {
			t.Fatalf("the replayed purchase differs:\n%s\n%s", bought, replayed)
		}
		w.refused("idempotency_key_reused", 422, "POST", buy, bob.token, map[string]any{"quantity": 1, "expectedPrice": 7.5}, "Idempotency-Key", "buy-1")
		w.wantPurse(bob, "5165", "3335")

		finish := map[string]any{"roomId": room, "results": []map[string]any{
			{"userId": ann.id, "place": 1, "score": 12}, {"userId": bob.id, "place": 1, "score": 12}, {"userId": cid.id, "place": 3, "score": 4},
		}}
		w.refused("forbidden", 403, "POST", "/api/v1/game-session/finish", ann.token, finish, "Idempotency-Key", "finish-1")
		w.must(200, "POST", "/api/v1/game-session/finish", op.serverKey, finish, "Idempotency-Key", "finish-1")
		ended := w.must(200, "POST", "/api/v1/game-session/finish", op.serverKey, finish, "Idempotency-Key", "finish-1")
		if ended.Body["status"] != "FINISHED" {
			t.Fatalf("the room is %s", ended)
		}
		// The pot is 10,005 units; 5 % rake is floor(500.25) = 500; the winners share 9,505: 4,753 to the earlier seat, 4,752.
		w.wantPurse(ann, "11418", "0")
		w.wantPurse(bob, "9917", "0")
		w.wantPurse(cid, "6665", "0")
		w.wantPurse(eve, "10000", "0")
		totals := w.wantBalanced()
		if totals["minted"].(json.Number) != "400" || totals["escrow"].(json.Number) != "0" || totals["house"].(json.Number) != "20" {
			t.Fatalf("the totals are %v", totals)
		}

		// Bob's own ledger adds up to his balance, newest first.
		lines := w.must(200, "GET", "/api/v1/user-balance/ledger?tokenId=GOLD", bob.token, nil).Body["items"].([]any)
		var sum int64
		var reasons []string
		for _, line := range lines {
			line := line.(map[string]any)
			delta, err := strconv.ParseInt(line["deltaAmount"].(string), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += delta
			reasons = append(reasons, line["reason"].(string))
		}
		if sum != 9917 || len(lines) != 4 {
			t.Fatalf("bob's ledger sums to %d over %v", sum, reasons)
		}

		wantEvents(t, db, room, []string{
			"room.created", "room.joined", "room.joined", "room.started", "room.finished",
		})
	})
}

// wantEvents reads the room's stream: every event once, in order, without a hole.
func wantEvents(t *testing.T, db *redisdb.DB, room string, want []string) {
	t.Helper()
	home, ok := keys.RoomShard(room)
	if !ok {
		t.Fatalf("the id %s tells no home", room)
	}
	entries, err := db.Client.XRange(t.Context(), keys.RoomEvents(home, room), "-", "+").Result()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, entry := range entries {
		var event struct {
			Type, RoomID, Position, At string
			Seq                        int64
			Data                       map[string]any
		}
		if err := json.Unmarshal([]byte(entry.Values["e"].(string)), &event); err != nil {
			t.Fatalf("an event is not JSON: %v: %v", err, entry.Values["e"])
		}
		if event.Seq != int64(i+1) || event.Position != entry.ID || !strings.HasPrefix(entry.ID, fmt.Sprintf("%d-", i+1)) || event.RoomID != room || event.Data == nil {
			t.Fatalf("event %d is %v", i+1, entry)
		}
		got = append(got, event.Type)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("the stream holds %v; want %v", got, want)
	}
}

func names(users any) []string {
	var all []string
	for _, u := range users.([]any) {
		all = append(all, u.(map[string]any)["username"].(string))
	}
	return all
}

func TestTwoHundredRaceForEightSeatsThroughBothNodes(t *testing.T) {
	each(t, func(t *testing.T, w *world, _ *redisdb.DB) {
		op := w.setUp(nil)
		host := w.guest(op.game, "Host")
		room := w.must(201, "POST", "/api/v1/game-session/create", host.token, map[string]any{
			"entryTokenId": op.tokenID, "roomEntry": 10, "maxPlayers": 9,
		}).Body["roomId"].(string)

		racers := make([]player, 200)
		for i := range racers {
			racers[i] = w.guest(op.game, fmt.Sprintf("Racer %d", i))
		}
		answers := tally(w, len(racers), func(i int) (nodetest.Response, error) {
			return w.node().Do(t.Context(), "POST", "/api/v1/game-session/join", racers[i].token, map[string]any{"roomId": room})
		})
		if want := map[string]int{"200": 8, "409 room_full": 192}; !maps.Equal(answers, want) {
			t.Fatalf("answers are %v; want %v", answers, want)
		}
		charged := 0
		for _, r := range racers {
			if free, held := w.purse(r); free == "9000" && held == "1000" {
				charged++
			} else if free != "10000" || held != "0" {
				t.Errorf("%s has %s and %s", r.name, free, held)
			}
		}
		if charged != 8 {
			t.Fatalf("%d were charged", charged)
		}
		if totals := w.wantBalanced(); totals["escrow"].(json.Number) != "90" {
			t.Fatalf("the totals are %v", totals)
		}
	})
}

// tally runs n calls at once and counts their answers by status and word.
func tally(w *world, n int, call func(i int) (nodetest.Response, error)) map[string]int {
	w.t.Helper()
	var mu sync.Mutex
	counts := map[string]int{}
	var calls sync.WaitGroup
	for i := range n {
		calls.Go(func() {
			a, err := call(i)
			key := strings.TrimSpace(fmt.Sprintf("%d %s", a.Status, a.Code()))
			if err != nil {
				key = err.Error()
			}
			mu.Lock()
			counts[key]++
			mu.Unlock()
		})
	}
	calls.Wait()
	return counts
}

func TestAThousandCopiesOfOnePurchaseHaveOneEffect(t *testing.T) {
	each(t, func(t *testing.T, w *world, _ *redisdb.DB) {
		op := w.setUp(nil)
		gem := w.must(201, "POST", fmt.Sprintf("/api/v1/admin/games/%d/assets", op.game), nodetest.AdminKey, map[string]any{
			"name": "Gem", "tokenId": "GOLD", "price": "0.07",
		})
		buy := fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", number(t, gem.Body["id"]))
		ann := w.guest(op.game, "Ann")

		const connections, copies = 50, 20
		var mu sync.Mutex
		bodies := map[string]int{}
		counts := tally(w, connections, func(int) (a nodetest.Response, err error) {
			for range copies {
				a, err = w.node().Do(t.Context(), "POST", buy, ann.token, map[string]any{"quantity": 3}, "Idempotency-Key", "once")
				if err != nil || a.Status != 201 {
					return a, err
				}
				mu.Lock()
				bodies[string(a.Raw)]++
				mu.Unlock()
			}
			return a, nil
		})
		if counts["201"] != connections || len(bodies) != 1 {
			t.Fatalf("answers are %v with %d different bodies", counts, len(bodies))
		}
		w.wantPurse(ann, "9979", "0")
		w.wantBalanced()
	})
}

func TestThreeHundredBuyersForAHundredPieces(t *testing.T) {
	each(t, func(t *testing.T, w *world, _ *redisdb.DB) {
		op := w.setUp(nil)
		rare := w.must(201, "POST", fmt.Sprintf("/api/v1/admin/games/%d/assets", op.game), nodetest.AdminKey, map[string]any{
			"name": "Rare", "tokenId": "GOLD", "price": 1, "stock": 100,
		})
		buy := fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", number(t, rare.Body["id"]))
		buyers := make([]player, 300)
		for i := range buyers {
			buyers[i] = w.guest(op.game, fmt.Sprintf("Buyer %d", i))
		}
		counts := tally(w, len(buyers), func(i int) (nodetest.Response, error) {
			return w.node().Do(t.Context(), "POST", buy, buyers[i].token, nil, "Idempotency-Key", "mine")
		})
		if want := map[string]int{"201": 100, "409 sold_out": 200}; !maps.Equal(counts, want) {
			t.Fatalf("answers are %v; want %v", counts, want)
		}
		if totals := w.wantBalanced(); totals["house"].(json.Number) != "100" {
			t.Fatalf("the totals are %v", totals)
		}
	})
}
