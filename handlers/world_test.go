package handlers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/assets"
	"github.com/parlor-games/parlor/internal/auth"
	"github.com/parlor-games/parlor/internal/games"
	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/progress"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/internal/users"
	"github.com/parlor-games/parlor/internal/wallet"
	"github.com/parlor-games/parlor/realtime"
	"github.com/parlor-games/parlor/rooms"
	"github.com/prometheus/client_golang/prometheus"
)

const adminKey = "the operator of the tests, 32 bytes and more"

// world is one node with real services on a real store, and what a story needs in it.
type world struct {
	t       testing.TB
	db      *redisdb.DB
	edge    *handlers.Server
	deps    handlers.Deps
	url     string
	log     *lines
	wallets *wallet.Service

	game      int64
	serverKey string
	gold      int64 // the token GOLD, two decimals
}

// lines is a log that a test can read.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newWorld is a world on a database of the single server.
func newWorld(t testing.TB) *world { return worldOn(t, redistest.Single(t), nil) }

// settled is a world with a token and a game that gives newcomers 100 GOLD.
func settled(t testing.TB) *world { return newWorld(t).settle() }

func worldOn(t testing.TB, db *redisdb.DB, change func(*handlers.Deps)) *world {
	t.Helper()
	w := &world{t: t, db: db, log: &lines{}}
	log := slog.New(slog.NewTextHandler(w.log, nil))
	hub := realtime.New(db, realtime.Options{Log: log, DrainSpread: time.Millisecond})
	people, catalogue := users.New(db), games.New(db)
	w.wallets = wallet.New(db, wallet.Options{})
	signing := [][]byte{[]byte("0123456789abcdef0123456789abcdef")}
	who := auth.New(db, people, catalogue, w.wallets, auth.Options{SigningKeys: signing, AdminKey: adminKey})
	w.deps = handlers.Deps{
		Users: people, Games: catalogue, Wallet: w.wallets, Assets: assets.New(db, w.wallets, assets.Options{}),
		Rooms: rooms.New(db, w.wallets, people, catalogue, rooms.Options{}), Auth: who, Limiter: auth.NewLimiter(db, auth.Limits{}),
		Idempotency: idempotency.New(db, signing, idempotency.Options{}), Store: db, Durability: "disk", Metrics: prometheus.NewRegistry(), Log: log,
		Realtime: hub,
	}
	var err error
	if w.deps.Progress, err = progress.New(db, catalogue, people, progress.Options{SigningKeys: signing, Log: log}); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&w.deps)
	}
	if w.edge, err = handlers.New(w.deps); err != nil {
		t.Fatal(err)
	}
	run, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.deps.Realtime.Run(run) }()
	t.Cleanup(func() { end(); <-ended })
	server := httptest.NewServer(w.edge)
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func (w *world) settle() *world {
	w.t.Helper()
	gold := w.must(201, "POST", "/api/v1/admin/tokens", adminKey, `{"tokenId":"GOLD","tokenName":"Gold","metadata":{"assetName":"676f6c64","policyId":"ab01","decimals":"2"}}`)
	made := w.must(201, "POST", "/api/v1/admin/games", adminKey,
		`{"name":"Duel","origins":["https://duel.example"],"welcomeGrant":{"tokenId":"GOLD","amount":100},"settings":{"rakeBps":500}}`)
	w.gold, w.game, w.serverKey = gold.id("id"), made.id("game.id"), made.text("serverKey")
	return w
}

// answer is what came back.
type answer struct {
	t      testing.TB
	status int
	header http.Header
	raw    []byte
	body   any
}

// at finds a member by its path, "items.0.user.id".
func (a *answer) at(path string) any {
	a.t.Helper()
	v := a.body
	for name := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(in) {
				a.t.Fatalf("no %s in %s", path, a.raw)
			}
			v = in[i]
		default:
			a.t.Fatalf("no %s in %s", path, a.raw)
		}
	}
	return v
}

func (a *answer) text(path string) string {
	a.t.Helper()
	switch v := a.at(path).(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	case nil:
		return "null"
	default:
		a.t.Fatalf("%s is no text in %s", path, a.raw)
		return ""
	}
}

func (a *answer) id(path string) int64 {
	a.t.Helper()
	n, err := strconv.ParseInt(a.text(path), 10, 64)
	if err != nil {
		a.t.Fatalf("%s is no id in %s", path, a.raw)
	}
	return n
}

func (a *answer) count(path string) int {
	a.t.Helper()
	list, ok := a.at(path).([]any)
	if !ok {
		a.t.Fatalf("%s is no list in %s", path, a.raw)
	}
	return len(list)
}

// code is the word of a problem, or "".
func (a *answer) code() string {
	if a.status < 400 {
		return ""
	}
	return a.text("code")
}

// ask sends a request and holds both ways against the contract. Headers come in pairs; a Content-Type is set where there is a body and none is given.
func (w *world) ask(method, path, bearer, body string, headers ...string) *answer {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
			continue
		}
		r.Header.Add(headers[i], headers[i+1])
		if headers[i] == "Content-Type" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	got, err := client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	a := &answer{t: w.t, status: got.StatusCode, header: got.Header}
	if a.raw, err = io.ReadAll(got.Body); err != nil {
		w.t.Fatal(err)
	}
	if strings.Contains(got.Header.Get("Content-Type"), "json") {
		decoder := json.NewDecoder(bytes.NewReader(a.raw))
		decoder.UseNumber()
		if err := decoder.Decode(&a.body); err != nil {
			w.t.Fatalf("%s %s answers no JSON: %s", method, path, a.raw)
		}
	}
	if a.header.Get("X-Request-Id") == "" || a.header.Get("X-Content-Type-Options") != "nosniff" {
		w.t.Errorf("%s %s answers without the headers of every answer: %v", method, path, a.header)
	}
	if int64(len(a.raw)) != got.ContentLength && a.status != http.StatusNotModified {
		w.t.Errorf("%s %s answers %d bytes and tells %d", method, path, len(a.raw), got.ContentLength)
	}
	spec.check(w.t, r, []byte(body), a)
	return a
}

var client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

func (w *world) must(status int, method, path, bearer, body string, headers ...string) *answer {
	w.t.Helper()
	a := w.ask(method, path, bearer, body, headers...)
	if a.status != status {
		w.t.Fatalf("%s %s %s answers %d %s; want %d", method, path, body, a.status, a.raw, status)
	}
	return a
}

// refused expects a problem with a word of the vocabulary; "" stands for any.
func (w *world) refused(status int, code, method, path, bearer, body string, headers ...string) *answer {
	w.t.Helper()
	a := w.must(status, method, path, bearer, body, headers...)
	if code != "" && a.code() != code {
		w.t.Fatalf("%s %s %s is refused with %s; want %s", method, path, body, a.raw, code)
	}
	return a
}

// person is a player who is signed in.
type person struct {
	id      int64
	token   string
	refresh string
}

func (w *world) guest(name string) person { return w.guestOf(w.game, name) }

func (w *world) guestOf(game int64, name string) person {
	w.t.Helper()
	a := w.must(201, "POST", "/api/v1/auth/guest", "", fmt.Sprintf(`{"gameId":%d,"username":%q}`, game, name))
	return person{id: a.id("user.id"), token: a.text("accessToken"), refresh: a.text("refreshToken")}
}

// otherGame is a second game with its server key.
func (w *world) otherGame() (int64, string) {
	w.t.Helper()
	made := w.must(201, "POST", "/api/v1/admin/games", adminKey, `{"name":"Other","origins":["https://other.example","null"]}`)
	return made.id("game.id"), made.text("serverKey")
}

func (w *world) sword() int64 {
	w.t.Helper()
	return w.must(201, "POST", fmt.Sprintf("/api/v1/admin/games/%d/assets", w.game), w.serverKey,
		`{"name":"Sword","tokenId":"GOLD","price":7.5,"stock":10,"perUserLimit":3,"metadata":{"damage":12}}`).id("id")
}

// room opens a paid room of 2.50 GOLD for four and answers its id.
func (w *world) room(host person) string {
	w.t.Helper()
	return w.must(201, "POST", "/api/v1/game-session/create", host.token, fmt.Sprintf(`{"entryTokenId":%d,"roomEntry":2.5,"maxPlayers":4}`, w.gold)).text("roomId")
}

func roomBody(room string) string { return fmt.Sprintf(`{"roomId":%q}`, room) }

// purse is what a player can spend and what is held, in minor units of GOLD.
func (w *world) purse(p person) string {
	w.t.Helper()
	a := w.must(200, "GET", "/api/v1/user-balance/token-balances", p.token, "")
	if a.count("balances") == 0 {
		return "0+0"
	}
	return a.text("balances.0.amount") + "+" + a.text("balances.0.heldAmount")
}

func (w *world) wantPurse(p person, want string) {
	w.t.Helper()
	if got := w.purse(p); got != want {
		w.t.Errorf("the purse is %s; want %s", got, want)
	}
}

// wantBalanced proves that no unit was made or lost.
func (w *world) wantBalanced() {
	w.t.Helper()
	if a := w.must(200, "GET", "/api/v1/admin/audit", adminKey, ""); a.text("balanced") != "true" {
		w.t.Errorf("the audit says %s", a.raw)
	}
}
