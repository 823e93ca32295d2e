package install

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/base/wire/wiretest"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/installtest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// game is a game on the nodes of an installation.
type game struct {
	t        *testing.T
	store    *installtest.Store
	nodes    []*nodetest.Node
	calls    atomic.Int64
	adminKey string

	id, tokenID, sword int64
	serverKey, cup     string // cup is the path of a tournament
	players            []player
}

type player struct {
	id    int64
	token string
}

// openGame starts two nodes, and sets up a game with six players.
func openGame(t *testing.T, s *installtest.Store) *game {
	t.Helper()
	g := &game{t: t, store: s, adminKey: installtest.ReadFile(t, s.Secrets, "admin_key")}
	for range 2 {
		g.nodes = append(g.nodes, nodetest.Start(t, s.URL, s.NodeSettings()...))
	}
	token := g.must(201, "POST", "/api/v1/admin/tokens", g.adminKey, map[string]any{
		"tokenId": "GOLD", "tokenName": "Gold",
		"metadata": map[string]any{"assetName": "676f6c64", "policyId": "ab01", "decimals": "2"},
	})
	g.tokenID = g.number(token.Body["id"])
	opened := g.must(201, "POST", "/api/v1/admin/games", g.adminKey, map[string]any{
		"name": "Duel", "welcomeGrant": map[string]any{"tokenId": "GOLD", "amount": 100, "for": "any"},
		"settings": map[string]any{"boards": []map[string]any{{"board": "week", "from": "score"}}},
	})
	g.id, g.serverKey = g.number(opened.Body["game"].(map[string]any)["id"]), opened.Body["serverKey"].(string)
	admin := fmt.Sprintf("/api/v1/admin/games/%d", g.id)
	sword := g.must(201, "POST", admin+"/assets", g.adminKey, map[string]any{
		"name": "Sword", "tokenId": "GOLD", "price": 7.5, "stock": 1000,
	})
	g.sword = g.number(sword.Body["id"])
	g.must(201, "POST", admin+"/leaderboards", g.adminKey, map[string]any{
		"board": "week", "name": "Week", "operator": "sum", "writers": []string{"server", "rooms"},
		"schedule": map[string]any{"cron": "0 0 * * 1", "timeZone": "Europe/Berlin"},
	})
	cup := g.must(201, "POST", admin+"/tournaments", g.adminKey, map[string]any{
		"name": "Cup", "format": "swiss", "entryTokenId": g.tokenID, "entryFee": 5, "payout": []int{10000},
		"addedPrize": map[string]any{"amount": 20, "from": "mint"}, "minEntrants": 2, "maxEntrants": 100, "rounds": 1,
		"startsAt": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
	})
	g.cup = fmt.Sprintf("/api/v1/tournaments/%d", g.number(cup.Body["tournamentId"]))
	for i := range 6 {
		guest := g.must(201, "POST", "/api/v1/auth/guest", "", map[string]any{
			"gameId": g.id, "username": fmt.Sprintf("Guest %d", i),
		})
		g.players = append(g.players, player{
			g.number(guest.Body["user"].(map[string]any)["id"]), guest.Body["accessToken"].(string),
		})
	}
	return g
}

// must sends a request whose status is certain, to each node in turn.
func (g *game) must(status int, method, path, bearer string, body any, headers ...string) nodetest.Response {
	g.t.Helper()
	node := g.nodes[int(g.calls.Add(1))%len(g.nodes)]
	return node.Must(g.t, status, method, path, bearer, body, headers...)
}

func (g *game) number(v any) int64 {
	g.t.Helper()
	return testkit.Must(v.(wiretest.Number).Int64())(g.t, "%v is not an integer", v)
}

// play makes one of each call that moves money or stores something else. There are three rounds,
// from 0: in each one another player enters the tournament.
func (g *game) play(round int) {
	g.t.Helper()
	ann, bob, cid := g.players[0], g.players[1], g.players[2]
	g.must(200, "POST", fmt.Sprintf("/api/v1/admin/users/%d/credit", ann.id), g.adminKey, map[string]any{
		"tokenId": "GOLD", "amount": 12.5, "reason": "gift",
	}, "Idempotency-Key", fmt.Sprint("credit-", round))
	g.buy(bob, fmt.Sprint("buy-", round))

	// A paid room that ends and counts for the leaderboard, one that is cancelled, one that stays.
	paid := map[string]any{"entryTokenId": g.tokenID, "roomEntry": 2.5, "maxPlayers": 2, "rakeBps": 500}
	room := g.open(ann, paid)
	g.must(200, "POST", "/api/v1/game-session/join", bob.token, room)
	g.must(200, "POST", "/api/v1/game-session/start", ann.token, room)
	g.must(200, "POST", "/api/v1/game-session/finish", g.serverKey, map[string]any{
		"roomId": room["roomId"], "results": []map[string]any{
			{"userId": bob.id, "place": 1, "score": 9}, {"userId": ann.id, "place": 2, "score": 4},
		},
	}, "Idempotency-Key", fmt.Sprint("finish-", round))
	g.must(200, "POST", "/api/v1/game-session/cancel", cid.token, g.open(cid, paid))
	g.open(cid, paid)
	free := g.open(ann, map[string]any{"maxPlayers": 3})
	g.must(200, "POST", "/api/v1/game-session/join", cid.token, free)

	g.must(200, "POST", "/api/v1/leaderboards/week/scores", g.serverKey, map[string]any{"userId": cid.id, "score": 3})
	g.must(200, "POST", g.cup+"/join", g.players[3+round].token, nil, "Idempotency-Key", fmt.Sprint("join-", round))
	g.must(200, "POST", fmt.Sprintf("/api/v1/friends/%d", bob.id), ann.token, nil)
	g.must(200, "POST", fmt.Sprintf("/api/v1/friends/%d", ann.id), bob.token, nil)
	g.save(ann, fmt.Sprint("slot-", round))
}

// open opens a room and returns the body that names it.
func (g *game) open(p player, settings map[string]any) map[string]any {
	g.t.Helper()
	return map[string]any{"roomId": g.must(201, "POST", "/api/v1/game-session/create", p.token, settings).Body["roomId"]}
}

func (g *game) buy(p player, key string) {
	g.t.Helper()
	g.must(201, "POST", fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", g.sword), p.token, nil,
		"Idempotency-Key", key)
}

// save stores a state in a new slot, over the socket for saves, and reads it back.
func (g *game) save(p player, slot string) {
	g.t.Helper()
	address := "ws" + strings.TrimPrefix(g.nodes[0].URL, "http") + "/api/v1/game-data/save"
	conn, _ := testkit.Must2(websocket.DefaultDialer.DialContext(g.t.Context(), address, http.Header{
		"Authorization": {"Bearer " + p.token},
	}))(g.t, "%s", address)
	defer func() { _ = conn.Close() }()
	for _, message := range []map[string]any{
		{"id": "1", "type": "save", "data": map[string]any{"slot": slot, "state": map[string]any{"level": 1}}},
		{"id": "2", "type": "load", "data": map[string]any{"slot": slot}},
	} {
		testkit.Check(g.t, conn.WriteJSON(message))
	}
	for waiting := 2; waiting > 0; {
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		_, frame := testkit.Must2(conn.ReadMessage())(g.t)
		var replies []struct {
			ReplyTo string `json:"replyTo"`
			OK      *bool  `json:"ok"`
		}
		if frame[0] != '[' {
			frame = append(append([]byte{'['}, frame...), ']')
		}
		if err := wire.Unmarshal(frame, &replies); err != nil {
			g.t.Fatalf("%v: %s", err, frame)
		}
		for _, reply := range replies {
			if reply.ReplyTo == "" {
				continue
			}
			if waiting--; reply.OK == nil || !*reply.OK {
				g.t.Fatalf("%s: %s", reply.ReplyTo, frame)
			}
		}
	}
}

// pause stops the nodes where they are, and waits until the store has done what they sent.
func (g *game) pause() []map[string]installtest.Key {
	g.t.Helper()
	for _, n := range g.nodes {
		n.Pause()
	}
	var keys []map[string]installtest.Key
	redistest.Eventually(g.t, "nothing changes any more, and replicas are in step", func() bool {
		before := keys
		keys = g.store.ReadAll()
		for i, server := range g.store.Servers {
			isReplica := !slices.Contains(g.store.Primaries, server)
			if isReplica && len(difference(keys[:1], keys[i:i+1])) > 0 {
				return false
			}
		}
		return before != nil && len(difference(before, keys)) == 0
	})
	return keys
}

// resume lets the nodes go on, and waits until they serve again by themselves.
func (g *game) resume() {
	g.t.Helper()
	for _, n := range g.nodes {
		n.Resume()
	}
	for _, n := range g.nodes {
		redistest.Eventually(g.t, "a node goes on with money", func() bool {
			r, err := n.Do(g.t.Context(), "GET", "/readyz", "", nil)
			return err == nil && r.Status == 200 && !strings.Contains(string(r.Raw), `"ok":false`)
		})
	}
}

// wantBalanced checks the books from the first entry.
func (g *game) wantBalanced() {
	g.t.Helper()
	if a := g.must(200, "GET", "/api/v1/admin/audit", g.adminKey, nil); a.Body["balanced"] != true {
		g.t.Errorf("the audit is %s", a)
	}
	if out := g.run("audit", "--deep"); !strings.HasSuffix(out, "\nbalanced\n") {
		g.t.Errorf("audit --deep: %s", out)
	}
}

// run runs a command of parlor with the users of the installation.
func (g *game) run(args ...string) string {
	g.t.Helper()
	backup := g.store.AsUser("parlor-backup", "redis_backup_password")
	c := exec.Command(nodetest.Binary(g.t), args...)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "PARLOR_REDIS_URL=" + g.store.URL, "PARLOR_BACKUP_URL=" + backup}
	out, err := c.CombinedOutput()
	if err != nil {
		g.t.Errorf("parlor %v: %v\n%s", args, err, out)
	}
	return string(out)
}
