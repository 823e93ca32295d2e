package migrate_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// TestGenerateDump plays on a node of layout 1 and writes its whole store to
// testdata/layout1.jsonl, a line for each key. testdata/README.md says how to run it; the other
// tests read what it wrote.
func TestGenerateDump(t *testing.T) {
	nodeURL := os.Getenv("PARLOR_TEST_OLD_NODE")
	if nodeURL == "" {
		t.Skip("PARLOR_TEST_OLD_NODE names no node of layout 1")
	}
	db := testkit.Must(redisdb.Open(os.Getenv("PARLOR_REDIS_URL")))(t)
	defer func() { _ = db.Close() }()
	g := &generator{t: t, nodeURL: nodeURL, adminKey: os.Getenv("PARLOR_ADMIN_KEY")}
	ann := g.play()
	g.writeDump(db.Client, ann)
}

type player struct {
	id             int64
	token, refresh string
}

// generator plays on a node of layout 1.
type generator struct {
	t          *testing.T
	nodeURL    string
	adminKey   string
	requests   int
	serverKeys []string
	boughtKey  string // the Idempotency-Key of the first purchase
}

// call sends a request as the holder of a key or token and returns the response, which must have a
// status below 300.
func (g *generator) call(method, path, bearer string, body any) map[string]any {
	var text []byte
	if body != nil {
		var err error
		text, err = wire.Marshal(body)
		g.check(err)
	}
	r, err := http.NewRequest(method, g.nodeURL+path, bytes.NewReader(text))
	g.check(err)
	r.Header.Set("Content-Type", "application/json")
	g.requests++
	if method == http.MethodPost {
		r.Header.Set("Idempotency-Key", "request-"+strconv.Itoa(g.requests))
	}
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	response, err := http.DefaultClient.Do(r)
	g.check(err)
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	g.check(err)
	if response.StatusCode >= 300 {
		g.t.Fatalf("%s %s %s: %d %s", method, path, text, response.StatusCode, raw)
	}
	values := map[string]any{}
	if len(raw) > 0 {
		g.check(wire.Unmarshal(raw, &values))
	}
	return values
}

func (g *generator) check(err error) {
	g.t.Helper()
	testkit.Check(g.t, err)
}

type object = map[string]any

func (g *generator) post(path, bearer string, body any) object {
	return g.call(http.MethodPost, "/api/v1/"+path, bearer, body)
}

func (g *generator) admin(path string, body any) object {
	return g.post("admin/"+path, g.adminKey, body)
}

// game makes a game whose rooms wait as long as they may, and returns its id and server key.
func (g *generator) game(name string, settings object) (id int64, serverKey string) {
	for _, timeout := range []string{"matchTimeoutSeconds", "idleTimeoutSeconds", "maxAgeSeconds"} {
		settings[timeout] = 30 * 24 * 3600
	}
	made := g.admin("games", object{
		"name": name, "origins": []string{"https://duel.example"}, "settings": settings,
		"welcomeGrant": object{"tokenId": "GOLD", "amount": 100},
	})
	g.serverKeys = append(g.serverKeys, made["serverKey"].(string))
	return int64(made["game"].(object)["id"].(float64)), made["serverKey"].(string)
}

func (g *generator) signIn(gameID int64, name string) player {
	return playerOf(g.post("auth/guest", "",
		object{"gameId": gameID, "username": name, "deviceSecret": "device-of-" + name + "-0123456789-0123456789"}))
}

func playerOf(session object) player {
	return player{
		int64(session["user"].(object)["id"].(float64)), session["accessToken"].(string),
		session["refreshToken"].(string),
	}
}

func (g *generator) credit(p player, key, code, amount, reason string) {
	g.post(fmt.Sprintf("admin/users/%d/credit", p.id), key,
		object{"tokenId": code, "amount": wire.RawJSON(amount), "reason": reason})
}

func (g *generator) room(p player, in object) string {
	return g.post("game-session/create", p.token, in)["roomId"].(string)
}

func (g *generator) do(verb string, p player, roomID string, more ...object) {
	body := object{"roomId": roomID}
	for _, m := range more {
		for k, v := range m {
			body[k] = v
		}
	}
	g.post("game-session/"+verb, p.token, body)
}

func (g *generator) befriend(a, b player) { g.post(fmt.Sprintf("friends/%d", b.id), a.token, nil) }

func (g *generator) save(p player, slot string, version int, state object) {
	g.call(http.MethodPut, fmt.Sprintf("/api/v1/admin/users/%d/saves/%s", p.id, slot), g.adminKey,
		object{"state": state, "version": version})
}

func (g *generator) buy(p player, asset int64, quantity int) {
	g.post(fmt.Sprintf("user-assets/add/game-asset/%d", asset), p.token, object{"quantity": quantity})
}

func (g *generator) asset(key string, gameID int64, in object) int64 {
	made := g.post(fmt.Sprintf("admin/games/%d/assets", gameID), key, in)
	return int64(made["id"].(float64))
}

func (g *generator) play() (ann player) {
	for _, t := range []object{
		{
			"tokenId": "GOLD", "tokenName": "Gold",
			"metadata": object{"assetName": "676f6c64", "policyId": "ab01", "decimals": "2"},
		},
		{
			"tokenId": "GEM", "tokenName": "Gem", "logoUrl": "https://duel.example/gem.png",
			"metadata": object{"decimals": "0"},
		},
		{"tokenId": "ADA", "tokenName": "Ada", "metadata": object{"decimals": "6"}},
	} {
		g.admin("tokens", t)
	}
	duel, duelKey := g.game("Duel", object{"rakeBps": 500})
	chess, chessKey := g.game("Chess", object{"rakeBps": 250})
	g.game("Empty", object{})

	ann = g.signIn(duel, "Ann")
	bob, cyd, dan := g.signIn(duel, "Bob"), g.signIn(duel, "Cyd"), g.signIn(duel, "Dan")
	eve, fay := g.signIn(chess, "Eve"), g.signIn(chess, "Fay")
	gus := playerOf(g.post("auth/exchange", duelKey, object{"externalId": "steam:7", "username": "Gus  pipe"}))
	g.post("auth/link", duelKey, object{"userId": ann.id, "externalId": "steam:1"})
	g.call(http.MethodPatch, "/api/v1/me", bob.token,
		object{"username": "Bob|the|Builder", "avatar": "https://duel.example/b.png"})

	g.befriend(ann, bob)
	g.befriend(bob, ann)
	g.befriend(ann, cyd) // a request
	g.befriend(dan, ann) // and one to her
	g.post(fmt.Sprintf("friends/%d/block", dan.id), bob.token, nil)
	g.befriend(dan, bob) // which Bob does not see
	g.befriend(eve, fay)

	g.credit(ann, g.adminKey, "ADA", "9007199254.740991", "the largest balance")
	g.credit(ann, duelKey, "GEM", "7", "a reason | with, a pipe; and ü 100%")
	g.credit(eve, chessKey, "GOLD", "20.25", "support")
	for range 30 {
		g.credit(cyd, duelKey, "GOLD", "0.01", "drip")
	}
	g.post(fmt.Sprintf("admin/users/%d/debit", bob.id), duelKey, object{"tokenId": "GOLD", "amount": 5, "reason": "fee"})

	g.save(ann, "main", 0, object{"hero": object{"gems": 1}})
	g.save(ann, "main", 1, object{"hero": object{"gems": 2, "name": "Ünï|code"}})
	g.save(ann, "second", 0, object{"level": 3})
	g.save(eve, "main", 0, object{"elo": 1500})

	hat := g.asset(duelKey, duel, object{
		"name": "Hat", "tokenId": "GOLD", "price": 7.5, "stock": 10, "perUserLimit": 3,
		"metadata": object{"color": "red"},
	})
	badge := g.asset(duelKey, duel, object{"name": "Badge", "tokenId": "ADA", "price": 0})
	board := g.asset(chessKey, chess, object{"name": "Board", "tokenId": "GOLD", "price": 1})
	g.buy(ann, hat, 2)
	g.boughtKey = "request-" + strconv.Itoa(g.requests)
	g.buy(bob, hat, 1)
	g.buy(bob, badge, 1) // for nothing: a balance of 0 and no line
	g.buy(eve, board, 3)

	stake := object{"entryTokenId": 1, "roomEntry": 2.5, "maxPlayers": 3}
	finish := func(key, roomID string, ranked ...player) {
		var results []object
		for i, p := range ranked {
			results = append(results, object{"userId": p.id, "place": i + 1, "score": 10.5 - float64(i)})
		}
		g.post("game-session/finish", key, object{"roomId": roomID, "results": results})
	}

	created := g.room(ann,
		object{"entryTokenId": 1, "roomEntry": 2.5, "maxPlayers": 3, "metadata": object{"note": "created"}})
	g.do("join", bob, created)
	g.do("ready", bob, created, object{"ready": true})

	started := g.room(ann, object{
		"entryTokenId": 1, "roomEntry": 2.5, "maxPlayers": 4,
		"payout": []int{7000, 3000}, "metadata": object{"note": "started"},
	})
	g.do("join", bob, started)
	g.do("join", cyd, started)
	g.do("join", dan, started)
	g.do("start", ann, started)
	g.do("leave", dan, started) // a seat that is forfeited, its stake in the pot

	finished := g.room(bob, stake)
	g.do("join", cyd, finished)
	g.do("start", bob, finished)
	finish(duelKey, finished, cyd, bob)
	rematch := g.post("game-session/rematch", cyd.token, object{"roomId": finished})["roomId"].(string)
	_ = rematch // in which Cyd sits and Bob has a reserved seat

	cancelled := g.room(cyd, stake)
	g.do("join", bob, cancelled)
	g.do("cancel", cyd, cancelled)

	banned := g.room(cyd, object{"entryTokenId": 1, "roomEntry": 1, "maxPlayers": 2, "visibility": "unlisted"})
	g.do("join", bob, banned)
	g.do("kick", cyd, banned, object{"userId": bob.id, "ban": true})

	large := g.room(ann, object{"entryTokenId": 3, "roomEntry": wire.RawJSON("4503599627.370495"), "maxPlayers": 2})
	_ = large // the largest stake there can be

	chessRoom := g.room(eve, object{"entryTokenId": 1, "roomEntry": 4, "maxPlayers": 2})
	g.do("join", fay, chessRoom)
	g.do("start", eve, chessRoom)
	chessDone := g.room(fay, object{"entryTokenId": 1, "roomEntry": 3.33, "maxPlayers": 2, "autoStart": true})
	g.do("join", eve, chessDone)
	finish(chessKey, chessDone, eve, fay)

	free := g.room(gus, object{"maxPlayers": 4, "metadata": object{"note": "free"}})
	g.do("join", ann, free)
	freeStarted := g.room(bob, object{"maxPlayers": 2, "isFriendsOnly": true})
	g.do("join", ann, freeStarted)
	g.do("start", bob, freeStarted)
	freeDone := g.room(cyd, object{"maxPlayers": 1})
	g.do("start", cyd, freeDone)
	finish(duelKey, freeDone, cyd)
	g.do("leave", dan, g.room(dan, object{"maxPlayers": 2, "visibility": "private"})) // cancelled: empty
	g.room(eve, object{"maxPlayers": 2, "visibility": "private"})

	audit := g.call(http.MethodGet, "/api/v1/admin/audit", g.adminKey, nil)
	if audit["balanced"] != true {
		g.t.Fatalf("not balanced: %v", audit)
	}
	return ann
}

func (g *generator) writeDump(db redis.UniversalClient, ann player) {
	ctx := g.t.Context()
	now, err := db.Time(ctx).Result()
	g.check(err)
	names, err := db.Keys(ctx, "*").Result()
	g.check(err)
	slices.Sort(names)
	file, err := os.Create("testdata/layout1.jsonl")
	g.check(err)
	defer func() { _ = file.Close() }()
	out := bufio.NewWriter(file)
	write := func(line any) {
		text, err := wire.Marshal(line)
		g.check(err)
		_, _ = out.Write(append(text, '\n'))
	}
	write(dumpHead{DumpedMS: now.UnixMilli(), RefreshToken: ann.refresh, ServerKeys: g.serverKeys, BoughtKey: g.boughtKey})
	for _, name := range names {
		if strings.HasPrefix(name, "{i:") || strings.HasPrefix(name, "{q:") {
			continue // encrypted responses and rate limits, which are no text and of no layout
		}
		kind, err := db.Type(ctx, name).Result()
		g.check(err)
		ttl, err := db.Do(ctx, "PTTL", name).Int64()
		g.check(err)
		var value any
		switch kind {
		case "string":
			value, err = db.Get(ctx, name).Result()
		case "hash":
			value, err = db.HGetAll(ctx, name).Result()
		case "set":
			var members []string
			members, err = db.SMembers(ctx, name).Result()
			slices.Sort(members)
			value = members
		case "zset":
			var members []redis.Z
			members, err = db.ZRangeWithScores(ctx, name, 0, -1).Result()
			scores := map[string]int64{}
			for _, m := range members {
				scores[m.Member.(string)] = int64(m.Score)
			}
			value = scores
		case "stream":
			value, err = db.Do(ctx, "XRANGE", name, "-", "+").Result() // [[id, [field, value, …]], …]
		default:
			g.t.Fatalf("%s is a %s", name, kind)
		}
		g.check(err)
		text, err := wire.Marshal(value)
		g.check(err)
		write(dumpLine{Key: name, Type: kind, TTLMS: max(0, ttl), Value: text})
	}
	g.check(out.Flush())
}
