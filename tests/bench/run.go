package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/parlor-games/parlor/internal/redisdb/redistest"
)

const adminKey = "operator-key-of-the-bench-c41d9e0b77f2"

// site is the servers under measurement: one store that writes to disk before it answers, one node, the bare handler.
type site struct {
	redis      *redistest.Server
	node, bare string // host:port
	internal   string // host:port of the node's metrics and profiles
	nodePID    int
	barePID    int
	processes  []*exec.Cmd
	dir        string
}

func run(o options) error {
	s, err := open()
	defer s.close()
	if err != nil {
		return err
	}
	w, err := s.prepare(o)
	if err != nil {
		return err
	}
	fmt.Printf("one node, one Redis with appendfsync always, %d connections, %d passes of %v; rate limits are off\n", o.workers, o.passes, o.span)
	rows := w.rows()
	for pass := range o.passes {
		if err := w.pass(pass, rows); err != nil {
			return err
		}
	}
	report(rows)
	return w.audit()
}

func open() (*site, error) {
	s := &site{}
	var err error
	if s.dir, err = os.MkdirTemp("", "parlor-bench-"); err != nil {
		return s, err
	}
	if s.redis, err = redistest.Start("--appendonly", "yes", "--appendfsync", "always"); err != nil {
		return s, err
	}
	parlor, self := filepath.Join(s.dir, "parlor"), filepath.Join(s.dir, "bench")
	for path, source := range map[string]string{parlor: "./cmd/parlor", self: "./tests/bench"} {
		if out, err := exec.Command("go", "build", "-o", path, source).CombinedOutput(); err != nil {
			return s, fmt.Errorf("build %s: %w\n%s", source, err, out)
		}
	}
	if s.node, err = freeAddr(); err != nil {
		return s, err
	}
	if s.internal, err = freeAddr(); err != nil {
		return s, err
	}
	node := exec.Command(parlor, "serve")
	node.Env = []string{
		"PARLOR_LISTEN=" + s.node, "PARLOR_INTERNAL_LISTEN=" + s.internal, "PARLOR_REDIS_URL=" + s.redis.URL(),
		"PARLOR_ADMIN_KEY=" + adminKey, "PARLOR_SIGNING_KEY=signing-key-of-the-bench-a90b55c1e6d3",
		"PARLOR_RATE_LIMITS=off", "PARLOR_LOG_LEVEL=warn", "HOME=" + s.dir,
	}
	if s.nodePID, err = s.start(node, "http://"+s.node+"/readyz"); err != nil {
		return s, err
	}
	if s.bare, err = freeAddr(); err != nil {
		return s, err
	}
	s.barePID, err = s.start(exec.Command(self, "-bare", s.bare, "-store", s.redis.URL()), "http://"+s.bare+"/bare")
	return s, err
}

func (s *site) start(c *exec.Cmd, ready string) (int, error) {
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		return 0, err
	}
	s.processes = append(s.processes, c)
	for range 1000 {
		response, err := http.Get(ready)
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return c.Process.Pid, nil
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	return 0, fmt.Errorf("%s never answered", ready)
}

func (s *site) close() {
	for _, c := range s.processes {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	if s.redis != nil {
		s.redis.Kill()
		_ = os.RemoveAll(s.redis.Dir)
	}
	_ = os.RemoveAll(s.dir)
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}

// world is what the load works on.
type world struct {
	*site
	o       options
	conns   []*conn
	bares   []*conn
	admin   *conn
	game    int64
	tokenID int64
	asset   string // path of the purchase
	players []player
	savers  []*saver // one for each worker
	keyed   int      // counts passes, so that keys are new in each
}

type player struct {
	id    int64
	token string
}

// seatsPerRoom is what the join row fills: a creator and seven who join.
const seatsPerRoom = 8

func (s *site) prepare(o options) (*world, error) {
	w := &world{site: s, o: o}
	for range o.workers {
		c, err := dial(s.node)
		if err != nil {
			return nil, err
		}
		b, err := dial(s.bare)
		if err != nil {
			return nil, err
		}
		w.conns, w.bares = append(w.conns, c), append(w.bares, b)
	}
	var err error
	if w.admin, err = dial(s.node); err != nil {
		return nil, err
	}
	var token struct{ ID int64 }
	if err := w.post(w.admin, "/api/v1/admin/tokens", adminKey,
		`{"tokenId":"GOLD","tokenName":"Gold","metadata":{"assetName":"67","policyId":"ab","decimals":"2"}}`, 201, &token); err != nil {
		return nil, err
	}
	w.tokenID = token.ID
	var made struct{ Game struct{ ID int64 } }
	if err := w.post(w.admin, "/api/v1/admin/games", adminKey,
		`{"name":"Bench","welcomeGrant":{"tokenId":"GOLD","amount":100000000}}`, 201, &made); err != nil {
		return nil, err
	}
	w.game = made.Game.ID
	var asset struct{ ID int64 }
	if err := w.post(w.admin, fmt.Sprintf("/api/v1/admin/games/%d/assets", w.game), adminKey,
		`{"name":"Coin","tokenId":"GOLD","price":0.01}`, 201, &asset); err != nil {
		return nil, err
	}
	w.asset = fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", asset.ID)
	for i := range max(o.workers*2, seatsPerRoom) {
		var guest struct {
			AccessToken string
			User        struct{ ID int64 }
		}
		if err := w.post(w.admin, "/api/v1/auth/guest", "", fmt.Sprintf(`{"gameId":%d,"username":"Player %d"}`, w.game, i), 201, &guest); err != nil {
			return nil, err
		}
		w.players = append(w.players, player{id: guest.User.ID, token: guest.AccessToken})
	}
	for i := range o.workers {
		saver, err := w.openSaver(w.players[2*i : 2*i+2])
		if err != nil {
			return nil, err
		}
		w.savers = append(w.savers, saver)
	}
	return w, nil
}

func (w *world) post(c *conn, path, bearer, body string, status int, into any) error {
	got, answer, err := c.ask("POST", path, bearer, "", body)
	if err != nil {
		return err
	}
	if got != status {
		return fmt.Errorf("POST %s answers %d %s", path, got, answer)
	}
	return json.Unmarshal(answer, into)
}

// want turns a status into an error unless it is the wanted one.
func want(status int) func(int, []byte, error) error {
	return func(got int, body []byte, err error) error {
		if err == nil && got != status {
			err = fmt.Errorf("answers %d %s", got, body)
		}
		return err
	}
}

func (w *world) createBody(seats int) string {
	return fmt.Sprintf(`{"entryTokenId":%d,"roomEntry":0.01,"maxPlayers":%d}`, w.tokenID, seats)
}

func (w *world) openRoom(c *conn, p player, seats int) (string, error) {
	status, answer, err := c.ask("POST", "/api/v1/game-session/create", p.token, "", w.createBody(seats))
	if err := want(201)(status, answer, err); err != nil {
		return "", err
	}
	const mark = `"roomId":"`
	at := strings.Index(string(answer), mark)
	if at < 0 {
		return "", errors.New("a room without roomId")
	}
	return string(answer[at+len(mark) : at+len(mark)+36]), nil
}

const (
	rowBare = iota
	rowGet
	rowBalances
	rowJoin
	rowCycle
	rowPurchase
	rowOneWallet
	rowSave
	rowJoinRedis
	rowPurchaseRedis
)

func (w *world) rows() []*row {
	return []*row{
		rowBare:          {name: "bare gin handler, one Redis round trip", of: "node"},
		rowGet:           {name: "GET game-session/get", of: "node"},
		rowBalances:      {name: "GET user-balance/token-balances", of: "node"},
		rowJoin:          {name: "POST join, paid room of 8", of: "node"},
		rowCycle:         {name: "cycle: create, join, leave, leave", of: "node"},
		rowPurchase:      {name: "purchase", of: "node"},
		rowOneWallet:     {name: fmt.Sprintf("purchase, %d workers on one wallet", w.o.workers), of: "node"},
		rowSave:          {name: "save of 1 KiB over a WebSocket", of: "node"},
		rowJoinRedis:     {name: "join", of: "redis"},
		rowPurchaseRedis: {name: "purchase", of: "redis"},
	}
}

// pass measures every row once.
func (w *world) pass(pass int, rows []*row) error {
	rooms, err := w.openRooms(pass)
	if err != nil {
		return err
	}
	ok, created := want(200), want(201)
	key := func(worker, turn int) string { return fmt.Sprintf("p%d-%d-%d-%d", pass, w.keyed, worker, turn) }
	buy := func(p func(worker int) player) func(worker, turn int) error {
		return func(worker, turn int) error {
			return created(w.conns[worker].ask("POST", w.asset, p(worker).token, key(worker, turn), ""))
		}
	}
	joins := make([]int, w.o.workers)
	operations := map[int]func(worker, turn int) error{
		rowBare: func(worker, _ int) error { return ok(w.bares[worker].ask("GET", "/bare", "", "", "")) },
		rowGet: func(worker, turn int) error {
			return ok(w.conns[worker].ask("GET", "/api/v1/game-session/get?roomId="+rooms[(worker+turn*w.o.workers)%len(rooms)], w.players[worker].token, "", ""))
		},
		rowBalances: func(worker, _ int) error {
			return ok(w.conns[worker].ask("GET", "/api/v1/user-balance/token-balances", w.players[worker].token, "", ""))
		},
		rowJoin: func(worker, _ int) error {
			// Worker k fills the rooms k, k+workers, …, seat by seat; player 0 made them all.
			n := joins[worker]
			joins[worker]++
			room := worker + (n/(seatsPerRoom-1))*w.o.workers
			if room >= len(rooms) {
				return errExhausted
			}
			return ok(w.conns[worker].ask("POST", "/api/v1/game-session/join", w.players[1+n%(seatsPerRoom-1)].token, "", `{"roomId":"`+rooms[room]+`"}`))
		},
		rowCycle: func(worker, _ int) error {
			c, a, b := w.conns[worker], w.players[2*worker], w.players[2*worker+1]
			room, err := w.openRoom(c, a, 2)
			if err != nil {
				return err
			}
			body := `{"roomId":"` + room + `"}`
			return errors.Join(
				ok(c.ask("POST", "/api/v1/game-session/join", b.token, "", body)),
				ok(c.ask("POST", "/api/v1/game-session/leave", b.token, "", body)),
				ok(c.ask("POST", "/api/v1/game-session/leave", a.token, "", body)),
			)
		},
		rowPurchase:  buy(func(worker int) player { return w.players[worker] }),
		rowOneWallet: buy(func(int) player { return w.players[0] }),
		rowSave:      func(worker, turn int) error { return w.savers[worker].save(turn) },
	}
	onRedis := map[int]int{rowJoin: rowJoinRedis, rowPurchase: rowPurchaseRedis}
	bare := 0.0
	for i := rowBare; i <= rowSave; i++ {
		if !strings.Contains(rows[i].name, w.o.only) && i != rowBare {
			continue
		}
		w.keyed++
		pid := w.nodePID
		if i == rowBare {
			pid = w.barePID
		}
		redisBefore, err := cpuTime(w.redis.Pid())
		if err != nil {
			return err
		}
		profile := make(chan error, 1)
		if w.o.profiles != "" && pass == w.o.passes-1 {
			go func() { profile <- w.profile(rows[i].name) }()
		} else {
			profile <- nil
		}
		m, err := measure(w.o.workers, w.o.span, pid, operations[i])
		if err = errors.Join(err, <-profile); err != nil {
			return err
		}
		redisAfter, err := cpuTime(w.redis.Pid())
		if err != nil {
			return err
		}
		if m.failed > 0 {
			fmt.Printf("%s: %d of %d failed, first: %s\n", rows[i].name, m.failed, m.operations+m.failed, m.firstFailure)
		}
		perCPU := float64(m.operations) / m.cpu.Seconds()
		rows[i].perCPU = append(rows[i].perCPU, perCPU)
		rows[i].perWall = append(rows[i].perWall, float64(m.operations)/m.wall.Seconds())
		rows[i].failed += m.failed
		if i == rowBare {
			bare = perCPU
		} else {
			rows[i].ratio = append(rows[i].ratio, perCPU/bare)
		}
		if j, also := onRedis[i]; also {
			rows[j].perCPU = append(rows[j].perCPU, float64(m.operations)/(redisAfter-redisBefore).Seconds())
		}
	}
	return nil
}

// profile keeps a CPU profile of the node over about the span of a row.
func (w *world) profile(name string) error {
	response, err := http.Get(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%.0f", w.internal, max(1, w.o.span.Seconds()-1)))
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	file := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, name)
	f, err := os.Create(filepath.Join(w.o.profiles, file+".pprof"))
	if err != nil {
		return err
	}
	_, err = io.Copy(f, response.Body)
	return errors.Join(err, f.Close())
}

// openRooms makes the rooms of one pass, all by the first player.
func (w *world) openRooms(pass int) ([]string, error) {
	rooms := make([]string, 60*w.o.workers)
	failures := make(chan error, w.o.workers)
	for worker := range w.o.workers {
		go func() {
			var err error
			for i := worker; i < len(rooms) && err == nil; i += w.o.workers {
				rooms[i], err = w.openRoom(w.conns[worker], w.players[0], seatsPerRoom)
			}
			failures <- err
		}()
	}
	var err error
	for range w.o.workers {
		err = errors.Join(err, <-failures)
	}
	if err != nil {
		return nil, fmt.Errorf("pass %d: %w", pass, err)
	}
	return rooms, nil
}

// audit asks the node to prove that the load made and lost no money.
func (w *world) audit() error {
	status, answer, err := w.admin.ask("GET", "/api/v1/admin/audit", adminKey, "", "")
	if err := want(200)(status, answer, err); err != nil {
		return err
	}
	var a struct {
		Balanced bool
		Tokens   []json.RawMessage
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return err
	}
	if !a.Balanced {
		return fmt.Errorf("the audit does not balance: %s", answer)
	}
	fmt.Println("\nthe audit balances after all of it: " + strconv.Itoa(len(a.Tokens)) + " token")
	return nil
}
