package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire/wiretest"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/books"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// installation is real nodes on one store, with a game, its players and an asset.
type installation struct {
	t                  *testing.T
	url                string
	settings           []string
	mu                 sync.RWMutex
	nodes              []*nodetest.Node
	tokenID, coin, few int64
	serverKey          string
	players            []httpPlayer
}

type httpPlayer struct {
	id    int64
	token string
}

// newInstallation starts nodes with the settings of a test, and signs players in.
func newInstallation(t *testing.T, url string, nodes, players int, stock any, settings ...string) *installation {
	t.Helper()
	in := &installation{
		t: t, url: url,
		settings: append([]string{"PARLOR_RATE_LIMITS=off", "PARLOR_ACCESS_TTL=1h"}, settings...),
	}
	for range nodes {
		in.nodes = append(in.nodes, in.startNode())
	}
	first := in.nodes[0]
	gold := first.Must(t, 201, "POST", "/api/v1/admin/tokens", nodetest.AdminKey, map[string]any{
		"tokenId": tokenCode, "tokenName": "Gold",
		"metadata": map[string]any{"assetName": "676f6c64", "policyId": "ab01", "decimals": "2"},
	})
	game := first.Must(t, 201, "POST", "/api/v1/admin/games", nodetest.AdminKey, map[string]any{
		"name":         "Duel",
		"welcomeGrant": map[string]any{"tokenId": tokenCode, "amount": startBalance, "for": "any"},
		"settings": map[string]any{
			"matchTimeoutSeconds": 5, "idleTimeoutSeconds": 5, "reportWindowSeconds": 10,
			"settlements": []string{"server", "consensus"},
		},
	})
	in.serverKey = game.Body["serverKey"].(string)
	in.tokenID = number(t, gold.Body["id"])
	if id := number(t, game.Body["game"].(map[string]any)["id"]); id != gameID {
		t.Fatalf("the game has the id %d", id)
	}
	for i, asset := range []map[string]any{
		{"name": "Coin", "tokenId": tokenCode, "price": 0.01},
		{"name": "Crown", "tokenId": tokenCode, "price": 1, "stock": stock},
	} {
		a := first.Must(t, 201, "POST", fmt.Sprintf("/api/v1/admin/games/%d/assets", gameID), in.serverKey, asset)
		*[]*int64{&in.coin, &in.few}[i] = number(t, a.Body["id"])
	}
	for i := range players {
		name := fmt.Sprintf("player-%d", i)
		a := first.Must(t, 201, "POST", "/api/v1/auth/exchange", in.serverKey, map[string]any{
			"externalId": name, "username": name,
		})
		in.players = append(in.players, httpPlayer{
			number(t, a.Body["user"].(map[string]any)["id"]), a.Body["accessToken"].(string),
		})
	}
	return in
}

func number(t *testing.T, v any) int64 {
	t.Helper()
	return testkit.Must(v.(wiretest.Number).Int64())(t, "%v is not an integer", v)
}

func (in *installation) startNode() *nodetest.Node {
	in.t.Helper()
	return nodetest.Start(in.t, in.url, in.settings...)
}

// replace kills a node and starts another one in its place.
func (in *installation) replace(i int) {
	in.t.Helper()
	in.nodes[i].Kill()
	n := in.startNode()
	in.mu.Lock()
	in.nodes[i] = n
	in.mu.Unlock()
}

// node returns the n-th node, counted around.
func (in *installation) node(n int) *nodetest.Node {
	in.mu.RLock()
	defer in.mu.RUnlock()
	return in.nodes[n%len(in.nodes)]
}

// send makes a request until a node has a clear response to it, each time at the next node. It
// returns an empty response when ctx ends before.
func (in *installation) send(
	ctx context.Context, first int, path, bearer string, body any, key string,
) (response nodetest.Response, tries int) {
	_ = redistest.Poll(time.Hour, func() error {
		r, err := in.node(first+tries).Do(ctx, http.MethodPost, path, bearer, body, "Idempotency-Key", key)
		tries++
		if ctx.Err() != nil {
			return nil
		}
		if err == nil && r.Status >= 500 && r.Status != 503 {
			in.t.Errorf("POST %s returned %s", path, r)
		}
		if err == nil && r.Status < 500 {
			response = r
			return nil
		}
		return fmt.Errorf("%s, %w", r, err)
	})
	return response, tries
}

// TestNodesThatAreKilledLoseNothing kills one of three nodes after the other, all the time, while
// players create, join, leave and finish rooms and buy over HTTP. Each request is repeated with its
// key, at another node, until it has a response. Two more players have a room with consensus: every
// node that runs when the winner reports is killed before the window ends, also the one that took
// the report and the one that leads the sweep.
func TestNodesThatAreKilledLoseNothing(t *testing.T) {
	t.Parallel() // with failovers, which mostly wait
	store := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "everysec")
	in := newInstallation(t, store.URL(), 3, 26, nil)
	observer := openNode(t, store.URL(), nil)
	reported := in.reportToSilence(in.players[24], in.players[25])
	var sent, repeated, bought atomic.Int64
	ctx, stop := context.WithTimeout(t.Context(), pick(8*time.Second, 5*time.Minute))
	defer stop()
	var clients sync.WaitGroup
	purchases := make([]atomic.Int64, len(in.players))
	for table := range len(in.players) / 3 {
		clients.Go(func() {
			rng := newRNG(uint64(table))
			seats := in.players[table*3 : table*3+3]
			pace := time.NewTicker(pick(100*time.Millisecond, 200*time.Millisecond))
			defer pace.Stop()
			for turn := 0; ctx.Err() == nil; turn++ {
				select {
				case <-ctx.Done():
				case <-pace.C:
				}
				in.playTable(ctx, rng, seats, fmt.Sprintf("%d-%d", table, turn), func(r nodetest.Response, tries int) {
					sent.Add(1)
					repeated.Add(int64(tries - 1))
				})
				for i := range seats {
					buy := fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", in.coin)
					key := fmt.Sprintf("buy-%d-%d-%d", table, turn, i)
					// Until it has a response, also when the time is over: the number of pieces must be exact.
					r, tries := in.send(t.Context(), rng.IntN(3), buy, seats[i].token, nil, key)
					sent.Add(1)
					repeated.Add(int64(tries - 1))
					if r.Status == 201 {
						purchases[table*3+i].Add(1)
						bought.Add(1)
					} else if r.Code() != "insufficient_funds" {
						t.Errorf("a purchase returned %s", r)
					}
				}
			}
		})
	}
	kills, tick := 0, time.NewTicker(2*time.Second)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			in.replace(kills % len(in.nodes))
			kills++
		}
	}
	clients.Wait()
	for ; kills < len(in.nodes); kills++ { // on a slow machine
		in.replace(kills)
	}
	redistest.Eventually(t, "silence has agreed", func() bool {
		r, err := in.node(0).Do(t.Context(), "GET", reported, nodetest.AdminKey, nil)
		return err == nil && r.Body["status"] == "FINISHED"
	})
	for i := range in.nodes {
		in.nodes[i].Kill()
	}
	b := wantLargeBooks(t, observer.db)
	for i, want := range []books.Balance{{Free: startBalance*100 + 150}, {Free: startBalance*100 - 150}} {
		if got := b.Wallets[in.players[24+i].id]; got != want {
			t.Errorf("a player of the room with consensus has %+v; want %+v", got, want)
		}
	}
	for i, p := range in.players {
		owned := b.Owned[p.id][fmt.Sprint(in.coin)]
		if owned != purchases[i].Load() {
			t.Errorf("player %d owns %d coins; %d purchases were acknowledged", p.id, owned, purchases[i].Load())
		}
	}
	wantDue(t, observer, b)
	open := len(b.LiveRooms())
	freeLeases(t, observer)
	report(t, "%d nodes killed in %v, %d requests, %d of them repeated, %d purchases, delta %d, "+
		"%d rooms abandoned, %d after the sweep", kills, pick(8*time.Second, 5*time.Minute), sent.Load(), repeated.Load(),
		bought.Load(), b.Delta(), open, len(wantEnded(t, observer).LiveRooms()))
}

// reportToSilence lets two players play a room with consensus, and the winner report the result at
// the first node. The loser is connected to the room then and reports nothing. It returns the path
// of the room.
func (in *installation) reportToSilence(winner, loser httpPlayer) (path string) {
	in.t.Helper()
	ctx := in.t.Context()
	do := func(verb string, p httpPlayer, body map[string]any) nodetest.Response {
		r, _ := in.send(ctx, 0, "/api/v1/game-session/"+verb, p.token, body, "silence-"+verb)
		if r.Status >= 300 {
			in.t.Fatalf("%s returned %s", verb, r)
		}
		return r
	}
	created := do("create", winner, map[string]any{
		"entryTokenId": in.tokenID, "roomEntry": 1.5, "maxPlayers": 2, "settlement": "consensus", "rakeBps": 0,
	})
	roomID, _ := created.Body["roomId"].(string)
	path = "/api/v1/game-session/get?roomId=" + roomID
	do("join", loser, map[string]any{"roomId": roomID})
	do("start", winner, map[string]any{"roomId": roomID})
	s := &sitter{httpPlayer: loser, room: &followedRoom{id: roomID}, absences: make([]absence, 1)}
	conn := s.open(ctx, in, 0)
	in.t.Cleanup(func() { _ = conn.Close() })
	redistest.Eventually(in.t, "the loser is connected", func() bool {
		r := in.node(0).Must(in.t, 200, "GET", path, nodetest.AdminKey, nil)
		shown, _ := r.Body["presence"].([]any)
		return len(shown) == 2 && shown[1].(map[string]any)["connected"] == true
	})
	do("finish", winner, map[string]any{"roomId": roomID, "results": []map[string]any{
		{"userId": winner.id, "place": 1}, {"userId": loser.id, "place": 2},
	}})
	return path
}

// wantDue requires that every room that has not ended is known to the sweep.
func wantDue(t *testing.T, n *node, b books.Books) {
	t.Helper()
	due := testkit.Must(n.db.Client.ZRange(t.Context(), keys.RoomsDue(keys.EconomyShard(gameID)), 0, -1).Result())(t)
	for _, id := range b.LiveRooms() {
		if !slices.Contains(due, id) {
			t.Errorf("the sweep does not know the room %s", id)
		}
	}
}

// playTable lets three players play one game, some of which are abandoned half way.
func (in *installation) playTable(
	ctx context.Context, rng *rand.Rand, seats []httpPlayer, name string, count func(nodetest.Response, int),
) {
	const session = "/api/v1/game-session/"
	do := func(verb, bearer string, body any) nodetest.Response {
		r, tries := in.send(ctx, rng.IntN(3), session+verb, bearer, body, verb+bearer[len(bearer)-8:]+name)
		count(r, tries)
		return r
	}
	opened := do("create", seats[0].token, map[string]any{
		"entryTokenId": in.tokenID, "roomEntry": 1.5, "maxPlayers": 3, "payout": []int{6000, 4000},
	})
	id, ok := opened.Body["roomId"].(string)
	if !ok || opened.Status != 201 {
		return
	}
	room := map[string]any{"roomId": id}
	for _, p := range seats[1:] {
		do("join", p.token, room)
	}
	switch rng.IntN(5) {
	case 0: // one leaves before the start
		do("leave", seats[rng.IntN(3)].token, room)
	case 1: // all leave
		for _, p := range seats {
			do("leave", p.token, room)
		}
		return
	case 2: // nobody comes back: the sweep ends the room
		return
	}
	do("start", in.serverKey, room)
	if rng.IntN(4) == 0 {
		do("leave", seats[2].token, room)
		do("leave", seats[1].token, room) // seats[0] wins
		return
	}
	do("finish", in.serverKey, map[string]any{"roomId": id, "results": []map[string]any{
		{"userId": seats[0].id, "place": 1}, {"userId": seats[1].id, "place": 2}, {"userId": seats[2].id, "place": 3},
	}})
}
