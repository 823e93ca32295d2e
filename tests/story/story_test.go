// Package story tests complete games over HTTP and sockets, with two node processes on one real
// Redis. Every request goes to another node than the one before.
package story

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/base/wire/wiretest"
	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestMain(m *testing.M) { os.Exit(withCertificates(redistest.Wrap(nodetest.Main))(m)) }

// certificates are those of the balancer. Every client of this process trusts them.
var certificates redistest.Certificates

func withCertificates(run func(*testing.M) int) func(*testing.M) int {
	return func(m *testing.M) int {
		dir, err := os.MkdirTemp("", "parlor-tls-")
		if err == nil {
			defer func() { _ = os.RemoveAll(dir) }()
			certificates, err = redistest.MakeCertificates(dir)
		}
		if err == nil {
			err = os.Setenv("SSL_CERT_FILE", certificates.CA)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return run(m)
	}
}

// fixture is two nodes on one store.
type fixture struct {
	t     *testing.T
	nodes [2]*nodetest.Node
	calls atomic.Int64
}

// node returns the nodes in turn.
func (f *fixture) node() *nodetest.Node { return f.nodes[f.calls.Add(1)%2] }

func (f *fixture) must(status int, method, path, bearer string, body any, headers ...string) nodetest.Response {
	f.t.Helper()
	return f.node().Must(f.t, status, method, path, bearer, body, headers...)
}

func (f *fixture) wantError(
	code string,
	status int,
	method, path, bearer string,
	body any,
	headers ...string,
) nodetest.Response {
	f.t.Helper()
	a := f.must(status, method, path, bearer, body, headers...)
	if a.Code() != code {
		f.t.Fatalf("%s %s returned %s; want %s", method, path, a, code)
	}
	return a
}

// player is a user with an access token.
type player struct {
	id    int64
	token string
	name  string
}

func (f *fixture) guest(game int64, name string) player {
	f.t.Helper()
	a := f.must(201, "POST", "/api/v1/auth/guest", "", map[string]any{"gameId": game, "username": name})
	return player{
		id:    number(f.t, a.Body["user"].(map[string]any)["id"]),
		token: a.Body["accessToken"].(string),
		name:  name,
	}
}

// known returns a player for whom the game's server vouches. An address makes few guests a second.
func (f *fixture) known(op installation, name string) player {
	f.t.Helper()
	a := f.must(201, "POST", "/api/v1/auth/exchange", op.serverKey, map[string]any{"externalId": name, "username": name})
	return player{
		id:    number(f.t, a.Body["user"].(map[string]any)["id"]),
		token: a.Body["accessToken"].(string),
		name:  name,
	}
}

func number(t *testing.T, v any) int64 {
	t.Helper()
	return testkit.Must(v.(wiretest.Number).Int64())(t, "%v is not an integer", v)
}

// installation is what the operator has set up.
type installation struct {
	game      int64
	serverKey string
	tokenID   int64 // of GOLD, which has two decimals
}

func (f *fixture) setUp(settings map[string]any) installation {
	f.t.Helper()
	gold := f.must(201, "POST", "/api/v1/admin/tokens", nodetest.AdminKey, map[string]any{
		"tokenId": "GOLD", "tokenName": "Gold",
		"metadata": map[string]any{"assetName": "676f6c64", "policyId": "ab01", "decimals": "2"},
	})
	game := f.must(201, "POST", "/api/v1/admin/games", nodetest.AdminKey, map[string]any{
		"name": "Duel", "origins": []string{"https://duel.example"},
		"welcomeGrant": map[string]any{"tokenId": "GOLD", "amount": 100, "for": "any"}, "settings": settings,
	})
	return installation{
		game:      number(f.t, game.Body["game"].(map[string]any)["id"]),
		serverKey: game.Body["serverKey"].(string),
		tokenID:   number(f.t, gold.Body["id"]),
	}
}

// wallet returns a player's GOLD in minor units: what can be spent and what is held.
func (f *fixture) wallet(p player) (free, held string) {
	f.t.Helper()
	a := f.must(200, "GET", "/api/v1/user-balance/token-balances", p.token, nil)
	for _, b := range a.Body["balances"].([]any) {
		b := b.(map[string]any)
		if b["tokenId"] == "GOLD" {
			return b["amount"].(string), b["heldAmount"].(string)
		}
	}
	return "0", "0"
}

func (f *fixture) wantWallet(p player, free, held string) {
	f.t.Helper()
	if gotFree, gotHeld := f.wallet(p); gotFree != free || gotHeld != held {
		f.t.Fatalf("%s has %s free and %s held; want %s and %s", p.name, gotFree, gotHeld, free, held)
	}
}

// wantBalanced checks that the audit balances, which it must at every instant, and returns the
// totals of GOLD.
func (f *fixture) wantBalanced() map[string]any {
	f.t.Helper()
	a := f.must(200, "GET", "/api/v1/admin/audit", nodetest.AdminKey, nil)
	if a.Body["balanced"] != true {
		f.t.Fatalf("the audit does not balance: %s", a)
	}
	return a.Body["tokens"].([]any)[0].(map[string]any)
}

// wantSumsAgree checks that no money was made or lost in what the store has.
func (f *fixture) wantSumsAgree() {
	f.t.Helper()
	if a := f.must(200, "GET", "/api/v1/admin/audit", nodetest.AdminKey, nil); a.Body["sumsAgree"] != true {
		f.t.Fatalf("the sums of the audit do not agree: %s", a)
	}
}

// wantLost checks that the sums of what is left agree after a loss, and that the audit is not
// balanced before an operator has accepted it.
func (f *fixture) wantLost(game int64) {
	f.t.Helper()
	a := f.must(200, "GET", "/api/v1/admin/audit", nodetest.AdminKey, nil)
	stopped, _ := a.Body["stopped"].([]any)
	if a.Body["balanced"] != false || a.Body["sumsAgree"] != true || len(stopped) == 0 {
		f.t.Fatalf("the audit after a loss: %s", a)
	}
	for _, s := range stopped {
		if s := s.(map[string]any); s["cause"] != "loss" || number(f.t, s["gameId"]) != game || s["reason"] == "" {
			f.t.Errorf("the audit has %v", s)
		}
	}
}

// wantTotals checks totals of GOLD, in minor units. They are exact at every instant.
func (f *fixture) wantTotals(want map[string]string) {
	f.t.Helper()
	totals := f.wantBalanced()
	for name, units := range want {
		if totals[name+"Amount"] != units {
			f.t.Fatalf("the totals are %v; want %v", totals, want)
		}
	}
}

// wantFolded waits until a node has added every entry of a game's ledger to the totals.
func (f *fixture) wantFolded(db *redisdb.DB, game int64) {
	f.t.Helper()
	redistest.Eventually(f.t, "the ledger is folded", func() bool {
		length, err := db.Client.LLen(f.t.Context(), keys.Ledger(game)).Result()
		if err != nil {
			return false
		}
		folded, err := db.Client.HGet(f.t.Context(), keys.Totals(game), keys.TotalsFoldedField).Int64()
		return err == nil && length > 0 && folded == length
	})
}

func (f *fixture) befriend(a, b player) {
	f.t.Helper()
	f.must(200, "POST", fmt.Sprintf("/api/v1/friends/%d", b.id), a.token, nil)
	f.must(200, "POST", fmt.Sprintf("/api/v1/friends/%d", a.id), b.token, nil)
}

// each runs a test with two nodes on a single Redis, and with two nodes on a Cluster.
func each(t *testing.T, test func(t *testing.T, f *fixture, db *redisdb.DB)) {
	eachURL(t, func(t *testing.T, f *fixture, _ string, db *redisdb.DB) { test(t, f, db) })
}

// eachURL is each for a test that runs commands on the store, which has that address.
func eachURL(t *testing.T, test func(t *testing.T, f *fixture, url string, db *redisdb.DB)) {
	redistest.EachStoreURL(t, func(t *testing.T, url string, db *redisdb.DB) {
		f := &fixture{t: t}
		durability := "PARLOR_DURABILITY=disk"
		for i := range f.nodes {
			f.nodes[i] = nodetest.Start(t, url, durability)
		}
		test(t, f, url, db)
	})
}

func TestAGameFromCreateToPayoutOnTwoNodes(t *testing.T) {
	each(t, func(t *testing.T, f *fixture, db *redisdb.DB) {
		op := f.setUp(map[string]any{})
		sword := f.must(201, "POST", fmt.Sprintf("/api/v1/admin/games/%d/assets", op.game), op.serverKey, map[string]any{
			"name": "Sword", "tokenId": "GOLD", "price": 7.5, "stock": 10, "perUserLimit": 3,
		})
		swordID := number(t, sword.Body["id"])

		ann, bob, cid, eve := f.guest(
			op.game,
			"Ann",
		), f.guest(
			op.game,
			"Bob",
		), f.guest(
			op.game,
			"Cid",
		), f.guest(
			op.game,
			"Eve",
		)
		f.befriend(ann, bob)
		f.befriend(cid, ann)
		f.wantWallet(ann, "10000", "0")

		created := f.must(201, "POST", "/api/v1/game-session/create", ann.token, map[string]any{
			"entryTokenId": op.tokenID, "roomEntry": 33.35, "maxPlayers": 4, "minPlayers": 3,
			"isFriendsOnly": true, "rakeBps": 500, "metadata": map[string]any{"map": "bridge"},
		}, "Idempotency-Key", "create-1")
		room := created.Body["roomId"].(string)
		again := f.must(201, "POST", "/api/v1/game-session/create", ann.token, map[string]any{
			"entryTokenId": op.tokenID, "roomEntry": 33.35, "maxPlayers": 4, "minPlayers": 3,
			"isFriendsOnly": true, "rakeBps": 500, "metadata": map[string]any{"map": "bridge"},
		}, "Idempotency-Key", "create-1")
		if string(again.Raw) != string(created.Raw) || again.Header.Get("Idempotent-Replayed") != "true" {
			t.Fatalf("the replay differs:\n%s\n%s", created, again)
		}
		f.wantWallet(ann, "6665", "3335")

		join := map[string]any{"roomId": room}
		f.wantError("friends_only", 403, "POST", "/api/v1/game-session/join", eve.token, join)
		f.wantWallet(eve, "10000", "0")
		f.must(200, "POST", "/api/v1/game-session/join", bob.token, join)
		f.wantError("not_enough_players", 409, "POST", "/api/v1/game-session/start", ann.token, join)
		seated := f.must(200, "POST", "/join", cid.token, join)
		if got := names(seated.Body["participants"]); !slices.Equal(got, []string{"Ann", "Bob", "Cid"}) {
			t.Fatalf("participants are %v", got)
		}
		if seated.Body["totalWager"].(wiretest.Number) != "100.05" || seated.Body["roomEntry"].(wiretest.Number) != "33.35" {
			t.Fatalf("the amounts are not exact: %s", seated)
		}
		twice := f.must(200, "POST", "/join", cid.token, join)
		if twice.Body["version"] != seated.Body["version"] {
			t.Fatalf("joining twice changed the room: %s", twice)
		}
		f.wantError("not_host", 403, "POST", "/api/v1/game-session/start", bob.token, join)
		f.must(200, "POST", "/api/v1/game-session/start", ann.token, join)
		f.wantError("already_started", 409, "POST", "/api/v1/game-session/join", eve.token, join)

		buy := fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", swordID)
		f.wantError("idempotency_key_required", 400, "POST", buy, bob.token, map[string]any{})
		bought := f.must(
			201,
			"POST",
			buy,
			bob.token,
			map[string]any{"quantity": 2, "expectedPrice": 7.5},
			"Idempotency-Key",
			"buy-1",
		)
		replayed := f.must(
			201,
			"POST",
			buy,
			bob.token,
			map[string]any{"expectedPrice": 7.5, "quantity": 2},
			"Idempotency-Key",
			"buy-1",
		)
		if withoutSupply(bought) != withoutSupply(replayed) || replayed.Header.Get("Idempotent-Replayed") != "true" {
			t.Fatalf("the replayed purchase differs:\n%s\n%s", bought, replayed)
		}
		f.wantError(
			"idempotency_key_reused",
			422,
			"POST",
			buy,
			bob.token,
			map[string]any{"quantity": 1, "expectedPrice": 7.5},
			"Idempotency-Key",
			"buy-1",
		)
		f.wantWallet(bob, "5165", "3335")

		finish := map[string]any{"roomId": room, "results": []map[string]any{
			{
				"userId": ann.id,
				"place":  1,
				"score":  12,
			}, {"userId": bob.id, "place": 1, "score": 12}, {"userId": cid.id, "place": 3, "score": 4},
		}}
		f.wantError("forbidden", 403, "POST", "/api/v1/game-session/finish", ann.token, finish, "Idempotency-Key", "finish-1")
		f.must(200, "POST", "/api/v1/game-session/finish", op.serverKey, finish, "Idempotency-Key", "finish-1")
		ended := f.must(200, "POST", "/api/v1/game-session/finish", op.serverKey, finish, "Idempotency-Key", "finish-1")
		if ended.Body["status"] != "FINISHED" {
			t.Fatalf("the room is %s", ended)
		}
		// The pot is 10,005 units; 5 % rake is floor(500.25) = 500; the winners share 9,505: 4,753 to the
		// earlier seat, 4,752.
		f.wantWallet(ann, "11418", "0")
		f.wantWallet(bob, "9917", "0")
		f.wantWallet(cid, "6665", "0")
		f.wantWallet(eve, "10000", "0")
		f.wantTotals(map[string]string{"minted": "40000", "wallets": "38000", "escrow": "0", "prizes": "0", "house": "2000"})

		// Bob's own ledger adds up to his balance, newest first.
		lines := f.must(200, "GET", "/api/v1/user-balance/ledger?tokenId=GOLD", bob.token, nil).Body["items"].([]any)
		var sum int64
		var reasons []string
		for _, line := range lines {
			line := line.(map[string]any)
			delta := testkit.Must(strconv.ParseInt(line["deltaAmount"].(string), 10, 64))(t)
			sum += delta
			reasons = append(reasons, line["reason"].(string))
		}
		if sum != 9917 || len(lines) != 4 {
			t.Fatalf("bob's ledger sums to %d over %v", sum, reasons)
		}

		wantEvents(t, db, room, []string{
			"room.created", "room.joined", "room.joined", "room.started", "room.finished",
		})
		f.wantFolded(db, op.game)
	})
}

// wantEvents checks the types of the events in the room's list, and that their numbers have no gap.
func wantEvents(t *testing.T, db *redisdb.DB, room string, want []string) {
	t.Helper()
	var got []string
	for i, stored := range storedEvents(t, db, room) {
		var event socketMessage
		if err := wire.Unmarshal(stored.JSON, &event); err != nil {
			t.Fatalf("an event is not JSON: %v: %s", err, stored.JSON)
		}
		if event.Seq != int64(i+1) || event.Position != stored.Position ||
			!position.MatchString(event.Position) || !strings.HasPrefix(event.Position, fmt.Sprintf("%d-", i+1)) ||
			event.RoomID != room || event.Data == nil {
			t.Fatalf("event %d is %s", i+1, stored.JSON)
		}
		got = append(got, event.Type)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("the list has %v; want %v", got, want)
	}
}

var position = regexp.MustCompile(`^[0-9]+-[0-9a-z]{8}$`)

// storedEvents returns the events of a room as clients get them, oldest first.
func storedEvents(t *testing.T, db *redisdb.DB, room string) []events.Rendered {
	t.Helper()
	shard, ok := keys.RoomShard(room)
	if !ok {
		t.Fatalf("the id %s names no shard", room)
	}
	entries := testkit.Must(db.Client.LRange(t.Context(), keys.RoomEvents(shard, room), 0, -1).Result())(t)
	var all []events.Rendered
	for _, entry := range entries {
		rendered := testkit.Must(events.Render(entry, room))(t)
		all = append(all, rendered...)
	}
	return all
}

var volume = regexp.MustCompile(`"volume":[0-9.]+`)

// withoutSupply returns a body without what exists of its tokens, which a node may know as of a
// second ago. A balance still has its amount in minor units.
func withoutSupply(r nodetest.Response) string { return volume.ReplaceAllString(string(r.Raw), "") }

func names(users any) []string {
	var all []string
	for _, u := range users.([]any) {
		all = append(all, u.(map[string]any)["username"].(string))
	}
	return all
}

func TestTwoHundredRaceForEightSeatsThroughBothNodes(t *testing.T) {
	each(t, func(t *testing.T, f *fixture, _ *redisdb.DB) {
		op := f.setUp(nil)
		host := f.guest(op.game, "Host")
		room := f.must(201, "POST", "/api/v1/game-session/create", host.token, map[string]any{
			"entryTokenId": op.tokenID, "roomEntry": 10, "maxPlayers": 9,
		}).Body["roomId"].(string)

		racers := make([]player, 200)
		for i := range racers {
			racers[i] = f.known(op, fmt.Sprintf("Racer %d", i))
		}
		counts := tally(f, len(racers), func(i int) (nodetest.Response, error) {
			return f.node().Do(t.Context(), "POST", "/api/v1/game-session/join", racers[i].token, map[string]any{"roomId": room})
		})
		if want := map[string]int{"200": 8, "409 room_full": 192}; !maps.Equal(counts, want) {
			t.Fatalf("responses are %v; want %v", counts, want)
		}
		charged := 0
		for _, r := range racers {
			if free, held := f.wallet(r); free == "9000" && held == "1000" {
				charged++
			} else if free != "10000" || held != "0" {
				t.Errorf("%s has %s and %s", r.name, free, held)
			}
		}
		if charged != 8 {
			t.Fatalf("%d were charged", charged)
		}
		f.wantTotals(map[string]string{"escrow": "9000"})
	})
}

// tally runs n requests at once and counts the responses by status and error code.
func tally(f *fixture, n int, call func(i int) (nodetest.Response, error)) map[string]int {
	f.t.Helper()
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
	each(t, func(t *testing.T, f *fixture, _ *redisdb.DB) {
		op := f.setUp(nil)
		gem := f.must(201, "POST", fmt.Sprintf("/api/v1/admin/games/%d/assets", op.game), nodetest.AdminKey, map[string]any{
			"name": "Gem", "tokenId": "GOLD", "price": "0.07",
		})
		buy := fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", number(t, gem.Body["id"]))
		ann := f.guest(op.game, "Ann")

		const connections, copies = 50, 20
		var mu sync.Mutex
		bodies := map[string]int{}
		counts := tally(f, connections, func(int) (a nodetest.Response, err error) {
			for range copies {
				a, err = f.node().Do(t.Context(), "POST", buy, ann.token, map[string]any{"quantity": 3}, "Idempotency-Key", "once")
				if err != nil || a.Status != 201 {
					return a, err
				}
				mu.Lock()
				bodies[withoutSupply(a)]++
				mu.Unlock()
			}
			return a, nil
		})
		if counts["201"] != connections || len(bodies) != 1 {
			t.Fatalf("responses are %v with %d different bodies", counts, len(bodies))
		}
		f.wantWallet(ann, "9979", "0")
		f.wantTotals(map[string]string{"house": "21"})
	})
}

func TestThreeHundredBuyersForAHundredPieces(t *testing.T) {
	each(t, func(t *testing.T, f *fixture, _ *redisdb.DB) {
		op := f.setUp(nil)
		rare := f.must(201, "POST", fmt.Sprintf("/api/v1/admin/games/%d/assets", op.game), nodetest.AdminKey, map[string]any{
			"name": "Rare", "tokenId": "GOLD", "price": 1, "stock": 100,
		})
		buy := fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", number(t, rare.Body["id"]))
		buyers := make([]player, 300)
		for i := range buyers {
			buyers[i] = f.known(op, fmt.Sprintf("Buyer %d", i))
		}
		counts := tally(f, len(buyers), func(i int) (nodetest.Response, error) {
			return f.node().Do(t.Context(), "POST", buy, buyers[i].token, nil, "Idempotency-Key", "mine")
		})
		if want := map[string]int{"201": 100, "409 sold_out": 200}; !maps.Equal(counts, want) {
			t.Fatalf("responses are %v; want %v", counts, want)
		}
		f.wantTotals(map[string]string{"house": "10000"})
	})
}
