package handlers_test

import (
	"bytes"
	"cmp"
	"context"
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

	"github.com/parlor-games/parlor/competition/leaderboards"
	"github.com/parlor-games/parlor/competition/tournaments"
	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/base/dialguard"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire/wiretest"
	"github.com/parlor-games/parlor/internal/money/assets"
	"github.com/parlor-games/parlor/internal/money/audit"
	"github.com/parlor-games/parlor/internal/money/ledger"
	"github.com/parlor-games/parlor/internal/money/ledgerstore"
	"github.com/parlor-games/parlor/internal/money/limits"
	"github.com/parlor-games/parlor/internal/money/moneyhalt"
	"github.com/parlor-games/parlor/internal/money/moneytest"
	"github.com/parlor-games/parlor/internal/money/prizes"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/ops/activity"
	"github.com/parlor-games/parlor/internal/ops/nodes"
	"github.com/parlor-games/parlor/internal/ops/readiness"
	"github.com/parlor-games/parlor/internal/ops/trail"
	"github.com/parlor-games/parlor/internal/ops/webhooks"
	"github.com/parlor-games/parlor/internal/players/accounts"
	"github.com/parlor-games/parlor/internal/players/auth"
	"github.com/parlor-games/parlor/internal/players/calls"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/players/progress"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/internal/players/servers"
	"github.com/parlor-games/parlor/internal/players/users"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/realtime"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/prometheus/client_golang/prometheus"
)

const adminKey = "the operator of the tests, 32 bytes and more"

// fixture is a node with real services on a real store.
type fixture struct {
	t       testing.TB
	db      *redisdb.DB
	server  *handlers.Server
	deps    handlers.Deps
	url     string
	log     *logBuffer
	wallets *wallet.Service
	memory  *redisdb.Watermark // that tests update

	game      int64
	serverKey string
	gold      int64 // id of the token GOLD, which has two decimals
}

// logBuffer is a log that a test can read.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// withoutStaffWrites returns the lines that are not about what staff changed, as a fixture does.
func (l *logBuffer) withoutStaffWrites() string {
	var b strings.Builder
	for line := range strings.Lines(l.String()) {
		if !strings.Contains(line, `level=INFO msg="staff write" `) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// newFixture returns a node on a database of the single Redis server.
func newFixture(t testing.TB) *fixture { return newFixtureOn(t, redistest.Single(t), nil) }

// newGameFixture is newFixture with the token GOLD and a game that grants new players 100 GOLD.
func newGameFixture(t testing.TB) *fixture { return newFixture(t).createGame() }

// readyStore is a store that takes writes.
type readyStore struct{}

func (readyStore) Report() readiness.Report {
	checks := []readiness.Check{{Name: "store", OK: true, Detail: "takes writes"}}
	return readiness.Report{Started: true, Ready: true, Checks: checks}
}

func (readyStore) HasStarted() bool { return true }

func (readyStore) ServedSince(time.Time) bool { return true }

func (readyStore) Kept() readiness.Promise { return readiness.KeepsDisk }

// watchStore is for newFixtureOn: the node probes its store, as real ones do.
func watchStore(t testing.TB, db *redisdb.DB) func(*handlers.Deps) {
	return func(d *handlers.Deps) {
		monitor := readiness.NewMonitor(db, redisdb.Requirements{FreeShards: 1}, redisdb.NewWatermark(d.Log), d.Log)
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- monitor.Run(ctx) }()
		t.Cleanup(func() { cancel(); <-ended })
		<-monitor.Started()
		d.Readiness = monitor
	}
}

// newFixtureOn returns a node on a store. change may replace dependencies.
func newFixtureOn(t testing.TB, db *redisdb.DB, change func(*handlers.Deps)) *fixture {
	t.Helper()
	f := &fixture{t: t, db: db, log: &logBuffer{}}
	log := slog.New(slog.NewTextHandler(f.log, nil))
	hub := realtime.New(db, realtime.Options{Log: log, DrainSpread: time.Millisecond})
	var gameService *games.Service
	userService := users.New(db, users.Options{
		AvatarHosts: func(ctx context.Context, gameID int64) ([]string, error) {
			return gameService.AvatarHosts(ctx, gameID)
		},
		AdmitNew: func(ctx context.Context, gameID int64) error {
			return cmp.Or(f.memory.AdmitNew(gameID), gameService.CountPlayer(ctx, gameID))
		},
	})
	f.wallets = wallet.New(db, userService, wallet.Options{})
	hasPrizes := func(ctx context.Context, gameID int64, board string) (bool, error) {
		return f.deps.Boards.HasStakes(ctx, gameID, board)
	}
	gameService = games.New(db, games.Options{
		Validator: gameValidator{f.wallets}, ReservedIssuer: auth.OwnIssuer, HasPrizes: hasPrizes,
	})
	f.memory = redisdb.NewWatermark(log)
	signingKeys := [][]byte{[]byte("0123456789abcdef0123456789abcdef")}
	authService := auth.New(db, userService, gameService, signupGrants{f.wallets},
		auth.Options{SigningKeys: signingKeys, AdminKeys: [][]byte{[]byte(adminKey)}})
	prizeService := prizes.New(db, f.wallets)
	f.deps = handlers.Deps{
		Users: userService, Games: gameService, Wallet: f.wallets, Audit: moneytest.NewAudit(db, f.wallets),
		Alarm:  audit.NewAlarm(db, ledgerstore.New(db, nil), moneyhalt.New(db, log)),
		Limits: limits.New(db, f.wallets, userService),
		Assets: assets.New(db, f.wallets, assets.Options{Quotas: gameService}),
		Rooms: rooms.New(db, f.wallets, userService, gameService,
			rooms.Options{
				AdmitNew: f.memory.AdmitNew, KeyedHash: authService.KeyedHash, HasPrizes: hasPrizes,
				MatchConsumer: func(ctx context.Context, e rooms.Ended) error { return f.deps.Tournaments.RoomEnded(ctx, e) },
			}),
		Auth: authService, Limiter: ratelimit.New(db, ratelimit.Limits{}),
		Idempotency: idempotency.New(db, signingKeys, idempotency.Options{}), Readiness: readyStore{}, Durability: "disk",
		Boards: leaderboards.New(db, userService, gameService, leaderboards.Options{
			AdmitNew: f.memory.AdmitNew, Prizes: prizeService,
		}),
		Trail:           trail.New(db, log),
		MetricsRegistry: prometheus.NewRegistry(), Log: log, RealtimeHub: hub,
		Activity: activity.New(db, activity.Games{}),
		Webhooks: webhooks.New(db, webhooks.Deps{
			SetActiveCount: gameService.SetActiveWebhooks, Ledger: ledgerstore.New(db, nil), Trail: trail.New(db, log),
			Log:         log,
			EncodeEntry: func(context.Context, int64, ledger.Entry) ([]byte, error) { return []byte("{}"), nil },
		}, webhooks.Options{SigningKeys: signingKeys, Networks: dialguard.Loopback, FreeShards: 1}),
		Nodes: nodes.New(db, nodes.Options{ID: "test", Read: func() nodes.Reading { return nodes.Reading{} }}),
	}
	f.deps.Progress = testkit.Must(progress.New(db, gameService, userService,
		progress.Options{SigningKeys: signingKeys, Log: log, AdmitNew: f.memory.AdmitNew}))(t)
	f.deps.Tournaments = tournaments.New(db, tournaments.Deps{
		Wallets: f.wallets, Players: userService, Games: gameService, Rooms: f.deps.Rooms,
		Prizes: prizeService, Boards: f.deps.Boards,
	}, tournaments.Options{AdmitNew: f.memory.AdmitNew})
	f.deps.Accounts = accounts.New(accounts.Deps{
		Users: userService, Wallet: f.wallets, Progress: f.deps.Progress, Auth: authService, Boards: f.deps.Boards,
	})
	if change != nil {
		change(&f.deps)
	}
	counts := handlers.NewCallMetrics(f.deps.MetricsRegistry)
	f.deps.Servers = servers.New(db, servers.Options{Log: log})
	f.deps.Calls = calls.New(f.deps.RealtimeHub, f.deps.Servers, calls.Options{
		Log: log, Channel: f.deps.Servers.Channel(), Observe: counts.Observe, ObserveRefused: counts.ObserveRefused,
	})
	testkit.Check(t, f.deps.RealtimeHub.Receive(f.deps.Servers.Channel(), f.deps.Calls.Receive))
	f.server = testkit.Must(handlers.New(f.deps))(t)
	run, end := context.WithCancel(context.Background())
	ended := make(chan error, 5)
	go func() { ended <- f.deps.Servers.Run(run) }()
	go func() { ended <- f.deps.Calls.Run(run) }()
	go func() { ended <- f.deps.RealtimeHub.Run(run) }()
	go func() { ended <- f.deps.Auth.Run(run) }()
	go func() { ended <- f.server.Run(run) }()
	t.Cleanup(func() {
		end()
		for range cap(ended) {
			<-ended
		}
	})
	server := httptest.NewServer(f.server)
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

// createGame creates the token GOLD and the game of the fixture.
func (f *fixture) createGame() *fixture {
	f.t.Helper()
	gold := f.expect(201, "POST", "/api/v1/admin/tokens", adminKey,
		`{"tokenId":"GOLD","tokenName":"Gold","metadata":{"assetName":"676f6c64","policyId":"ab01","decimals":"2"}}`)
	made := f.expect(201, "POST", "/api/v1/admin/games", adminKey,
		`{"name":"Duel","origins":["https://duel.example"],"welcomeGrant":{"tokenId":"GOLD","amount":100,"for":"any"},`+
			`"settings":{"rakeBps":500,"settlements":["server","consensus"]}}`)
	f.gold, f.game, f.serverKey = gold.id("id"), made.id("game.id"), made.text("serverKey")
	f.giveGold(1_000_000, f.game)
	return f
}

// createBoard makes the leaderboard "top", with an entry of each of some players.
func (f *fixture) createBoard(players ...int64) {
	f.t.Helper()
	f.expect(201, "POST", f.gamePath()+"/leaderboards", f.serverKey, `{"board":"top","name":"Top","segments":["country"]}`)
	for _, id := range players {
		f.expect(200, "POST", "/api/v1/leaderboards/top/scores", f.serverKey,
			fmt.Sprintf(`{"userId":%d,"score":10,"segments":{"country":"DE"}}`, id))
	}
}

// createHeldSeason makes a leaderboard with a prize of 5 GOLD for its first player, and ends its
// first season, which is in review then.
func (f *fixture) createHeldSeason(board string, first int64) {
	f.t.Helper()
	f.expect(201, "POST", f.gamePath()+"/leaderboards", f.serverKey, fmt.Sprintf(`{"board":%q,"name":"Prized",`+
		`"prizes":{"tokenId":"GOLD","pool":5,"from":"mint","table":[{"fromPlace":1,"toPlace":1,"shareBps":10000}],`+
		`"reviewSeconds":3600}}`, board))
	f.expect(200, "POST", "/api/v1/leaderboards/"+board+"/scores", f.serverKey,
		fmt.Sprintf(`{"userId":%d,"score":10}`, first))
	f.expect(200, "POST", f.gamePath()+"/leaderboards/"+board+"/seasons/1/end", f.serverKey, `{"reason":"x"}`)
	testkit.Check(f.t, f.deps.Boards.RunOnce(f.t.Context()))
}

// createTournament makes a tournament of a format that starts in an hour, with further members such
// as `,"name":"Cup"`. It returns the path of it for everyone; staffTournament that for staff.
func (f *fixture) createTournament(format, more string) string {
	f.t.Helper()
	body := fmt.Sprintf(`{"name":"Cup","format":%q,"maxEntrants":8,"startsAt":%q%s}`, format, inAnHour(), more)
	made := f.expect(201, "POST", f.gamePath()+"/tournaments", adminKey, body)
	return fmt.Sprintf("/api/v1/tournaments/%d", made.id("tournamentId"))
}

// staffTournament returns the path for staff of a tournament.
func (f *fixture) staffTournament(path string) string {
	return f.gamePath() + strings.TrimPrefix(path, "/api/v1")
}

// inAnHour returns a time in the form of a request.
func inAnHour() string { return time.Now().Add(time.Hour).UTC().Format(time.RFC3339) }

// driveTournaments reports the rooms that have ended, and does what the leader of the tournaments
// has to do now.
func (f *fixture) driveTournaments() {
	f.t.Helper()
	testkit.Must(f.deps.Rooms.Sweep(f.t.Context()))(f.t)
	testkit.Check(f.t, f.deps.Tournaments.RunOnce(f.t.Context()))
}

// waitForTournament drives the tournaments until one has a status, and returns it.
func (f *fixture) waitForTournament(path, bearer, status string) *httpResult {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		f.driveTournaments()
		t := f.expect(200, "GET", path, bearer, "")
		if t.text("status") == status {
			return t
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.t.Fatalf("the tournament is not %s: %s", status, t.raw)
		}
	}
}

// winMatch seats the players of a match in its room and reports that the first of them won.
func (f *fixture) winMatch(roomID string, winner, loser player) {
	f.t.Helper()
	for _, p := range []player{winner, loser} {
		f.expect(200, "POST", "/join", p.token, roomBody(roomID))
	}
	f.expect(200, "POST", "/api/v1/game-session/finish", f.serverKey, fmt.Sprintf(
		`{"roomId":%q,"results":[{"userId":%d,"place":1},{"userId":%d,"place":2}]}`, roomID, winner.id, loser.id),
		"Idempotency-Key", "finish-"+roomID)
}

// startMatch makes a bracket of two players, starts it and opens the room of its match. It returns
// the tournament's path for everyone and the room.
func (f *fixture) startMatch(a, b player) (path, roomID string) {
	f.t.Helper()
	path = f.createTournament("single_elimination", `,"seeding":"joined"`)
	f.expect(200, "POST", path+"/join", a.token, "")
	f.expect(200, "POST", path+"/join", b.token, "")
	f.expect(200, "POST", f.staffTournament(path)+"/start", adminKey, "")
	f.driveTournaments()
	return path, f.expect(200, "GET", path+"/matches", a.token, "").text("items.0.roomId")
}

// startAttempts makes a score tournament of players, starts it and returns its path for everyone.
func (f *fixture) startAttempts(players ...player) string {
	f.t.Helper()
	path := f.createTournament("score", fmt.Sprintf(`,"minEntrants":1,"attempts":2,"endsAt":%q,`+
		`"board":{"writers":["server","players"]}`,
		time.Now().Add(2*time.Hour).UTC().Format(time.RFC3339)))
	for _, p := range players {
		f.expect(200, "POST", path+"/join", p.token, "")
	}
	f.expect(200, "POST", f.staffTournament(path)+"/start", f.serverKey, "")
	return path
}

// tournamentPlaceholders returns what stands for tournaments in a request, in pairs: <tour> has two
// players and takes more, in <checking> the first of them can check in, <match> plays r1m1, and
// <score> takes scores of both; <cancelled> is over.
func (f *fixture) tournamentPlaceholders(request string, a, b player) []string {
	f.t.Helper()
	if !strings.Contains(request, "/tournaments") {
		return nil
	}
	idOf := func(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
	open := f.createTournament("swiss", "")
	f.expect(200, "POST", open+"/join", a.token, "")
	f.expect(200, "POST", open+"/join", b.token, "")
	checking := f.createTournament("swiss", `,"checkInOpensAt":"2026-01-01T00:00:00Z"`)
	f.expect(200, "POST", checking+"/join", a.token, "")
	playing, _ := f.startMatch(a, b)
	cancelled := f.createTournament("swiss", "")
	f.expect(200, "POST", f.staffTournament(cancelled)+"/cancel", adminKey, "")
	f.driveTournaments()
	f.waitForTournament(cancelled, a.token, "CANCELLED")
	return []string{
		"<cancelled>", idOf(cancelled),
		"<tour>", idOf(open), "<checking>", idOf(checking), "<match>", idOf(playing),
		"<score>", idOf(f.startAttempts(a, b)), "<soon>", inAnHour(),
	}
}

// giveGold lets the server keys of games, and of no others, mint an amount of GOLD a day.
func (f *fixture) giveGold(amount int64, games ...int64) {
	f.t.Helper()
	given := make([]string, len(games))
	for i, game := range games {
		given[i] = fmt.Sprintf(`{"gameId":%d,"mintLimitPerDay":%d}`, game, amount)
	}
	f.expect(200, "PATCH", "/api/v1/admin/tokens/GOLD", adminKey, `{"games":[`+strings.Join(given, ",")+`]}`)
}

// httpResult is a response.
type httpResult struct {
	t      testing.TB
	status int
	header http.Header
	raw    []byte
	body   any // decoded JSON, or nil
}

// member returns a member by its path, "items.0.user.id".
func (r *httpResult) member(path string) any {
	r.t.Helper()
	v := r.body
	for name := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(in) {
				r.t.Fatalf("no %s in %s", path, r.raw)
			}
			v = in[i]
		default:
			r.t.Fatalf("no %s in %s", path, r.raw)
		}
	}
	return v
}

func (r *httpResult) text(path string) string {
	r.t.Helper()
	switch v := r.member(path).(type) {
	case string:
		return v
	case wiretest.Number:
		return string(v)
	case bool:
		return strconv.FormatBool(v)
	case nil:
		return "null"
	default:
		r.t.Fatalf("%s is not a text in %s", path, r.raw)
		return ""
	}
}

func (r *httpResult) id(path string) int64 {
	r.t.Helper()
	n, err := strconv.ParseInt(r.text(path), 10, 64)
	if err != nil {
		r.t.Fatalf("%s is not an id in %s", path, r.raw)
	}
	return n
}

func (r *httpResult) count(path string) int {
	r.t.Helper()
	list, ok := r.member(path).([]any)
	if !ok {
		r.t.Fatalf("%s is not a list in %s", path, r.raw)
	}
	return len(list)
}

// code returns the error code, or "" for a success.
func (r *httpResult) code() string {
	if r.status < 400 {
		return ""
	}
	return r.text("code")
}

// send sends a request and checks the exchange against openapi.yaml. Headers come in pairs of name
// and value. A body gets the Content-Type application/json unless headers name another one; an
// empty value removes a header.
func (f *fixture) send(method, path, bearer, body string, headers ...string) *httpResult {
	f.t.Helper()
	r := testkit.Must(http.NewRequestWithContext(f.t.Context(), method, f.url+path, strings.NewReader(body)))(f.t)
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
	got := testkit.Must(client.Do(r))(f.t)
	defer func() { _ = got.Body.Close() }()
	resp := &httpResult{t: f.t, status: got.StatusCode, header: got.Header}
	resp.raw = testkit.Must(io.ReadAll(got.Body))(f.t)
	if strings.Contains(got.Header.Get("Content-Type"), "json") {
		if err := wiretest.Unmarshal(resp.raw, &resp.body); err != nil {
			f.t.Fatalf("%s %s does not return JSON: %s", method, path, resp.raw)
		}
	}
	if resp.header.Get("X-Request-Id") == "" || resp.header.Get("X-Content-Type-Options") != "nosniff" {
		f.t.Errorf("%s %s returned without the headers of every response: %v", method, path, resp.header)
	}
	if int64(len(resp.raw)) != got.ContentLength && resp.status != http.StatusNotModified {
		f.t.Errorf("%s %s returned %d bytes with the Content-Length %d", method, path, len(resp.raw), got.ContentLength)
	}
	spec.check(f.t, r, []byte(body), resp)
	return resp
}

var client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

// expect sends a request that must return a status.
func (f *fixture) expect(status int, method, path, bearer, body string, headers ...string) *httpResult {
	f.t.Helper()
	resp := f.send(method, path, bearer, body, headers...)
	if resp.status != status {
		f.t.Fatalf("%s %s %s returned %d %s; want %d", method, path, body, resp.status, resp.raw, status)
	}
	return resp
}

// expectError sends a request that must return an error code; "" stands for any.
func (f *fixture) expectError(status int, code, method, path, bearer, body string, headers ...string) *httpResult {
	f.t.Helper()
	resp := f.expect(status, method, path, bearer, body, headers...)
	if code != "" && resp.code() != code {
		f.t.Fatalf("%s %s %s returned %s; want %s", method, path, body, resp.raw, code)
	}
	return resp
}

// player is a signed-in player.
type player struct {
	id      int64
	token   string
	refresh string
}

// guest signs in a new player of the game.
func (f *fixture) guest(name string) player { return f.guestOf(f.game, name) }

func (f *fixture) guestOf(game int64, name string) player {
	f.t.Helper()
	resp := f.expect(201, "POST", "/api/v1/auth/guest", "", fmt.Sprintf(`{"gameId":%d,"username":%q}`, game, name))
	return player{id: resp.id("user.id"), token: resp.text("accessToken"), refresh: resp.text("refreshToken")}
}

// createOtherGame creates a second game and returns its id and server key.
func (f *fixture) createOtherGame() (int64, string) {
	f.t.Helper()
	made := f.expect(201, "POST", "/api/v1/admin/games", adminKey,
		`{"name":"Other","origins":["https://other.example","null"]}`)
	return made.id("game.id"), made.text("serverKey")
}

// createSword creates an asset for 7.50 GOLD and returns its id.
func (f *fixture) createSword() int64 {
	f.t.Helper()
	return f.expect(201, "POST", fmt.Sprintf("/api/v1/admin/games/%d/assets", f.game), f.serverKey,
		`{"name":"Sword","tokenId":"GOLD","price":7.5,"stock":10,"perUserLimit":3,"metadata":{"damage":12}}`).id("id")
}

// webhookPlaceholders makes a webhook for a request that names one.
func (f *fixture) webhookPlaceholders(request string) []string {
	f.t.Helper()
	if !strings.Contains(request, "<webhook>") {
		return nil
	}
	return []string{"<webhook>", f.expect(201, "POST", f.gamePath()+"/webhooks", f.serverKey,
		`{"url":"http://127.0.0.1:9/","kinds":["seats"],"active":false}`).text("webhookId")}
}

// createRoom opens a room for four players with an entry of 2.50 GOLD and returns its id.
func (f *fixture) createRoom(host player) string {
	f.t.Helper()
	body := fmt.Sprintf(`{"entryTokenId":%d,"roomEntry":2.5,"maxPlayers":4}`, f.gold)
	return f.expect(201, "POST", "/api/v1/game-session/create", host.token, body).text("roomId")
}

// unknownRoom is the id of a room that no test makes.
const unknownRoom = "0199abcd-0000-7000-8000-000000000001"

func roomBody(room string) string { return fmt.Sprintf(`{"roomId":%q}`, room) }

// disputedRoom returns the id of a paid room whose two players contradict each other.
func (f *fixture) disputedRoom(a, b player) string {
	f.t.Helper()
	const session = "/api/v1/game-session/"
	made := f.expect(201, "POST", session+"create", a.token,
		fmt.Sprintf(`{"entryTokenId":%d,"roomEntry":2.5,"maxPlayers":2,"settlement":"consensus"}`, f.gold))
	room := made.text("roomId")
	f.expect(200, "POST", session+"join", b.token, roomBody(room))
	f.expect(200, "POST", session+"start", a.token, roomBody(room))
	for _, p := range []player{a, b} {
		other := a.id + b.id - p.id
		results := fmt.Sprintf(`[{"userId":%d,"place":1},{"userId":%d,"place":2}]`, p.id, other)
		f.expect(200, "POST", session+"finish", p.token, fmt.Sprintf(`{"roomId":%q,"results":%s}`, room, results),
			"Idempotency-Key", "result-of-"+room)
	}
	return room
}

// balance returns what a player can spend and what is held, in minor units of GOLD: "9750+250".
func (f *fixture) balance(p player) string {
	f.t.Helper()
	resp := f.expect(200, "GET", "/api/v1/user-balance/token-balances", p.token, "")
	if resp.count("balances") == 0 {
		return "0+0"
	}
	return resp.text("balances.0.amount") + "+" + resp.text("balances.0.heldAmount")
}

func (f *fixture) expectBalance(p player, want string) {
	f.t.Helper()
	if got := f.balance(p); got != want {
		f.t.Errorf("the balance is %s; want %s", got, want)
	}
}

// expectBalancedAudit checks that no unit of money was created or lost.
func (f *fixture) expectBalancedAudit() {
	f.t.Helper()
	if resp := f.audit(""); resp.text("balanced") != "true" {
		f.t.Errorf("the audit is not balanced: %s", resp.raw)
	}
}

// audit returns the report of the operator.
func (f *fixture) audit(query string) *httpResult {
	f.t.Helper()
	return f.expect(200, "GET", "/api/v1/admin/audit"+query, adminKey, "")
}

// befriend makes two players friends.
func (f *fixture) befriend(a, b player) {
	f.t.Helper()
	f.expect(200, "POST", fmt.Sprintf("/api/v1/friends/%d", a.id), b.token, "")
	f.expect(200, "POST", fmt.Sprintf("/api/v1/friends/%d", b.id), a.token, "")
}

// signupGrants lets sign-ins credit the grant of a game.
type signupGrants struct{ wallets *wallet.Service }

func (g signupGrants) GiveSignupGrant(ctx context.Context, game games.Game, userID int64) error {
	return g.wallets.Grant(ctx, principal.Caller{Role: principal.System}, wallet.GrantInput{
		UserID: userID, GameID: game.ID,
		TokenCode: game.SignupGrant.TokenCode, Units: wallet.Units(game.SignupGrant.Units),
		LimitPerDay: wallet.AmountInput(game.Settings.GrantLimitPerDay),
	})
}
