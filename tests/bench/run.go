package main

import (
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
	"github.com/parlor-games/parlor/internal/wire"
)

const adminKey = "operator-key-of-the-bench-c41d9e0b77f2"

// servers are what is measured: a store that writes to disk before it replies, a node, and the
// baseline.
type servers struct {
	redis       *redistest.Server
	node        string // host:port
	baseline    string // host:port
	internal    string // host:port of the node's metrics and profiles
	nodePID     int
	baselinePID int
	processes   []*exec.Cmd
	dir         string // for binaries
}

func run(o options) error {
	s, err := startServers()
	defer s.stop()
	if err != nil {
		return err
	}
	b, err := s.prepare(o)
	if err != nil {
		return err
	}
	fmt.Printf("one node, one Redis with appendfsync always, %d connections, %d passes of %v; rate limits are off\n",
		o.workers, o.passes, o.span)
	rows := b.rows()
	for pass := range o.passes {
		if err := b.pass(pass, rows); err != nil {
			return err
		}
	}
	report(rows)
	return b.audit()
}

func startServers() (*servers, error) {
	s := &servers{}
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
	if s.baseline, err = freeAddr(); err != nil {
		return s, err
	}
	baseline := exec.Command(self, "-baseline", s.baseline, "-store", s.redis.URL())
	s.baselinePID, err = s.start(baseline, "http://"+s.baseline+baselinePath)
	return s, err
}

// start starts a process, waits until the URL ready returns 200, and returns the process id.
func (s *servers) start(c *exec.Cmd, ready string) (int, error) {
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		return 0, err
	}
	s.processes = append(s.processes, c)
	err := redistest.Poll(10*time.Second, func() error {
		response, err := http.Get(ready)
		if err != nil {
			return err
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s returns %s", ready, response.Status)
		}
		return nil
	})
	return c.Process.Pid, err
}

func (s *servers) stop() {
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

// bench is the data and the connections of the load.
type bench struct {
	*servers
	options   options
	nodeConns []*conn // to the node, one for each worker
	baseConns []*conn // to the baseline, one for each worker
	admin     *conn
	game      int64
	tokenID   int64
	purchase  string // path of the route
	players   []player
	savers    []*saver // one for each worker
	keyEpoch  int      // counts measurements, so that Idempotency-Keys are new in each
}

type player struct {
	id    int64
	token string
}

// seatsPerRoom is the size of the rooms of the row "join": a creator and seven who join.
const seatsPerRoom = 8

func (s *servers) prepare(o options) (*bench, error) {
	b := &bench{servers: s, options: o}
	for range o.workers {
		toNode, err := dial(s.node)
		if err != nil {
			return nil, err
		}
		toBaseline, err := dial(s.baseline)
		if err != nil {
			return nil, err
		}
		b.nodeConns, b.baseConns = append(b.nodeConns, toNode), append(b.baseConns, toBaseline)
	}
	var err error
	if b.admin, err = dial(s.node); err != nil {
		return nil, err
	}
	var token withID
	definition := `{"tokenId":"GOLD","tokenName":"Gold","metadata":{"assetName":"67","policyId":"ab","decimals":"2"}}`
	if err := b.create("/api/v1/admin/tokens", adminKey, definition, &token); err != nil {
		return nil, err
	}
	b.tokenID = token.ID
	var created struct {
		Game withID `json:"game"`
	}
	if err := b.create("/api/v1/admin/games", adminKey,
		`{"name":"Bench","welcomeGrant":{"tokenId":"GOLD","amount":100000000}}`, &created); err != nil {
		return nil, err
	}
	b.game = created.Game.ID
	var asset withID
	if err := b.create(fmt.Sprintf("/api/v1/admin/games/%d/assets", b.game), adminKey,
		`{"name":"Coin","tokenId":"GOLD","price":0.01}`, &asset); err != nil {
		return nil, err
	}
	b.purchase = fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", asset.ID)
	for i := range max(o.workers*2, seatsPerRoom) {
		var guest struct {
			AccessToken string `json:"accessToken"`
			User        withID `json:"user"`
		}
		body := fmt.Sprintf(`{"gameId":%d,"username":"Player %d"}`, b.game, i)
		if err := b.create("/api/v1/auth/guest", "", body, &guest); err != nil {
			return nil, err
		}
		b.players = append(b.players, player{id: guest.User.ID, token: guest.AccessToken})
	}
	for i := range o.workers {
		saver, err := b.openSaver(b.players[2*i : 2*i+2])
		if err != nil {
			return nil, err
		}
		b.savers = append(b.savers, saver)
	}
	return b, nil
}

// withID decodes what has an id.
type withID struct {
	ID int64 `json:"id"`
}

// create sends a POST that creates something and decodes the response.
func (b *bench) create(path, bearer, body string, response any) error {
	status, encoded, err := b.admin.send(request{method: "POST", path: path, bearer: bearer, body: body})
	if err != nil {
		return err
	}
	if status != http.StatusCreated {
		return fmt.Errorf("POST %s returns %d %s", path, status, encoded)
	}
	return wire.Unmarshal(encoded, response)
}

// wantStatus returns a function that returns an error for other statuses.
func wantStatus(want int) func(status int, body []byte, err error) error {
	return func(status int, body []byte, err error) error {
		if err == nil && status != want {
			err = fmt.Errorf("returns %d %s", status, body)
		}
		return err
	}
}

func (b *bench) createBody(seats int) string {
	return fmt.Sprintf(`{"entryTokenId":%d,"roomEntry":0.01,"maxPlayers":%d}`, b.tokenID, seats)
}

func (b *bench) openRoom(c *conn, p player, seats int) (string, error) {
	status, body, err := c.send(request{
		method: "POST", path: "/api/v1/game-session/create", bearer: p.token, body: b.createBody(seats),
	})
	if err := wantStatus(http.StatusCreated)(status, body, err); err != nil {
		return "", err
	}
	const member = `"roomId":"` // found without decoding, which would cost CPU
	_, rest, found := strings.Cut(string(body), member)
	id, _, _ := strings.Cut(rest, `"`)
	if !found || id == "" {
		return "", errors.New("a room without roomId")
	}
	return id, nil
}

const (
	rowBaseline = iota
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

func (b *bench) rows() []*row {
	return []*row{
		rowBaseline:      {name: "baseline: gin handler, one Redis round trip", process: "node"},
		rowGet:           {name: "GET game-session/get", process: "node"},
		rowBalances:      {name: "GET user-balance/token-balances", process: "node"},
		rowJoin:          {name: "POST join, paid room of 8", process: "node"},
		rowCycle:         {name: "cycle: create, join, leave, leave", process: "node"},
		rowPurchase:      {name: "purchase", process: "node"},
		rowOneWallet:     {name: fmt.Sprintf("purchase, %d workers on one wallet", b.options.workers), process: "node"},
		rowSave:          {name: "save of 1 KiB over a WebSocket", process: "node"},
		rowJoinRedis:     {name: "join", process: "redis"},
		rowPurchaseRedis: {name: "purchase", process: "redis"},
	}
}

// pass measures every row once.
func (b *bench) pass(pass int, rows []*row) error {
	rooms, err := b.openRooms(pass)
	if err != nil {
		return err
	}
	operations := b.operations(pass, rooms)
	baseline := 0.0 // operations per CPU second
	for i := rowBaseline; i <= rowSave; i++ {
		if !strings.Contains(rows[i].name, b.options.only) && i != rowBaseline {
			continue
		}
		b.keyEpoch++
		withProfile := b.options.profiles != "" && pass == b.options.passes-1
		m, redisCPU, err := b.measureRow(i, rows[i].name, withProfile, operations[i])
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
		if i == rowBaseline {
			baseline = perCPU
		} else {
			rows[i].ratio = append(rows[i].ratio, perCPU/baseline)
		}
		if j, ok := redisRows[i]; ok {
			rows[j].perCPU = append(rows[j].perCPU, float64(m.operations)/redisCPU.Seconds())
		}
	}
	return nil
}

// redisRows are the rows for the CPU of Redis, by the row for the CPU of the node.
var redisRows = map[int]int{rowJoin: rowJoinRedis, rowPurchase: rowPurchaseRedis}

// measureRow measures one row, and the CPU time that Redis used meanwhile.
func (b *bench) measureRow(
	row int, name string, withProfile bool, operation operation,
) (m measurement, redisCPU time.Duration, err error) {
	pid := b.nodePID
	if row == rowBaseline {
		pid = b.baselinePID
	}
	before, err := cpuTime(b.redis.Pid())
	if err != nil {
		return m, 0, err
	}
	profile := make(chan error, 1)
	if withProfile {
		go func() { profile <- b.profile(name) }()
	} else {
		profile <- nil
	}
	m, err = measure(b.options.workers, b.options.span, pid, operation)
	if err = errors.Join(err, <-profile); err != nil {
		return m, 0, err
	}
	after, err := cpuTime(b.redis.Pid())
	return m, after - before, err
}

// operation is what a worker repeats; turn counts from 0 in each measurement.
type operation = func(worker, turn int) error

// operations returns the operation of each row.
func (b *bench) operations(pass int, rooms []string) map[int]operation {
	ok, created := wantStatus(http.StatusOK), wantStatus(http.StatusCreated)
	get := func(worker int, path string) error {
		return ok(b.nodeConns[worker].send(request{method: "GET", path: path, bearer: b.players[worker].token}))
	}
	buy := func(player func(worker int) player) operation {
		return func(worker, turn int) error {
			return created(b.nodeConns[worker].send(request{
				method: "POST", path: b.purchase, bearer: player(worker).token,
				idempotencyKey: fmt.Sprintf("p%d-%d-%d-%d", pass, b.keyEpoch, worker, turn),
			}))
		}
	}
	return map[int]operation{
		rowBaseline: func(worker, _ int) error {
			return ok(b.baseConns[worker].send(request{method: "GET", path: baselinePath}))
		},
		rowGet: func(worker, turn int) error {
			return get(worker, "/api/v1/game-session/get?roomId="+rooms[(worker+turn*b.options.workers)%len(rooms)])
		},
		rowBalances:  func(worker, _ int) error { return get(worker, "/api/v1/user-balance/token-balances") },
		rowJoin:      b.joinOperation(rooms),
		rowCycle:     func(worker, _ int) error { return b.cycle(worker) },
		rowPurchase:  buy(func(worker int) player { return b.players[worker] }),
		rowOneWallet: buy(func(int) player { return b.players[0] }),
		rowSave:      func(worker, turn int) error { return b.savers[worker].save(turn) },
	}
}

// joinOperation fills the rooms seat by seat: worker k the rooms k, k+workers, …. Player 0 created
// them.
func (b *bench) joinOperation(rooms []string) operation {
	ok := wantStatus(http.StatusOK)
	joined := make([]int, b.options.workers)
	return func(worker, _ int) error {
		n := joined[worker]
		joined[worker]++
		room := worker + (n/(seatsPerRoom-1))*b.options.workers
		if room >= len(rooms) {
			return errExhausted
		}
		return ok(b.nodeConns[worker].send(request{
			method: "POST", path: "/api/v1/game-session/join", bearer: b.players[1+n%(seatsPerRoom-1)].token,
			body: `{"roomId":"` + rooms[room] + `"}`,
		}))
	}
}

// cycle creates a room, and two players join and leave it.
func (b *bench) cycle(worker int) error {
	c, host, guest := b.nodeConns[worker], b.players[2*worker], b.players[2*worker+1]
	room, err := b.openRoom(c, host, 2)
	if err != nil {
		return err
	}
	ok := wantStatus(http.StatusOK)
	post := func(verb string, p player) error {
		return ok(c.send(request{
			method: "POST", path: "/api/v1/game-session/" + verb, bearer: p.token, body: `{"roomId":"` + room + `"}`,
		}))
	}
	return errors.Join(post("join", guest), post("leave", guest), post("leave", host))
}

// profile writes a CPU profile of the node over about the time of a measurement.
func (b *bench) profile(name string) error {
	seconds := max(1, b.options.span.Seconds()-1)
	response, err := http.Get(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%.0f", b.internal, seconds))
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
	f, err := os.Create(filepath.Join(b.options.profiles, file+".pprof"))
	if err != nil {
		return err
	}
	_, err = io.Copy(f, response.Body)
	return errors.Join(err, f.Close())
}

// openRooms creates the rooms of one pass, all by the first player.
func (b *bench) openRooms(pass int) ([]string, error) {
	rooms := make([]string, 60*b.options.workers)
	failures := make(chan error, b.options.workers)
	for worker := range b.options.workers {
		go func() {
			var err error
			for i := worker; i < len(rooms) && err == nil; i += b.options.workers {
				rooms[i], err = b.openRoom(b.nodeConns[worker], b.players[0], seatsPerRoom)
			}
			failures <- err
		}()
	}
	var err error
	for range b.options.workers {
		err = errors.Join(err, <-failures)
	}
	if err != nil {
		return nil, fmt.Errorf("pass %d: %w", pass, err)
	}
	return rooms, nil
}

// audit checks that the load neither made nor lost money.
func (b *bench) audit() error {
	status, body, err := b.admin.send(request{method: "GET", path: "/api/v1/admin/audit", bearer: adminKey})
	if err := wantStatus(http.StatusOK)(status, body, err); err != nil {
		return err
	}
	var a struct {
		Balanced bool           `json:"balanced"`
		Tokens   []wire.RawJSON `json:"tokens"`
	}
	if err := wire.Unmarshal(body, &a); err != nil {
		return err
	}
	if !a.Balanced {
		return fmt.Errorf("the audit does not balance: %s", body)
	}
	fmt.Println("\nthe audit balances: " + strconv.Itoa(len(a.Tokens)) + " token")
	return nil
}
