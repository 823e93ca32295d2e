package main

import (
	"cmp"
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
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
)

const adminKey = "operator-key-of-the-bench-c41d9e0b77f2"

// servers are what is measured: a store that writes to disk before it replies, a node, and the
// baseline.
type servers struct {
	redis           *redistest.Server
	replica         *redistest.Server // nil for none
	nodeAddress     string            // host:port
	baselineAddress string            // host:port
	internalAddress string            // host:port of the node's metrics and profiles
	nodePID         int
	node            *exec.Cmd
	baselinePID     int
	processes       []*exec.Cmd
	binaryDir       string // for binaries
}

// runRequests measures requests, as rows.
func runRequests(o options) error {
	s, err := startServers(o)
	defer s.stop()
	if err != nil {
		return err
	}
	b, err := s.newBench(o)
	if err != nil {
		return err
	}
	if err := b.prepareRows(); err != nil {
		return err
	}
	fmt.Printf("one node in the mode %s, one Redis with appendfsync %s, %d connections, %d passes of %v\n"+
		"rate limits are on as by default; %d players, each with an address of its own (X-Forwarded-For)\n",
		o.durability, o.appendfsync, o.workers, o.passes, o.span, len(b.players))
	rows := b.newRows()
	for pass := range o.passes {
		if err := b.measurePass(pass, rows); err != nil {
			return err
		}
	}
	report(rows)
	return b.audit()
}

// startServers starts what the rows need.
func startServers(o options) (*servers, error) {
	s, err := startStore(o)
	if err != nil {
		return s, err
	}
	if err := s.addNode(o); err != nil {
		return s, err
	}
	if s.baselineAddress, err = freeAddr(); err != nil {
		return s, err
	}
	baseline := exec.Command(s.self(), "-baseline", s.baselineAddress, "-store", s.redis.URL())
	s.baselinePID, err = s.start(baseline, "http://"+s.baselineAddress+baselinePath)
	return s, err
}

// addNode starts the node that is measured.
func (s *servers) addNode(o options, settings ...string) error {
	node, err := s.startNode(o, settings...)
	s.nodeAddress, s.internalAddress, s.nodePID, s.node = node.address, node.internalAddress, node.pid, node.command
	return err
}

// startStore builds the binaries and starts the store.
func startStore(o options) (*servers, error) {
	s := &servers{}
	var err error
	if s.binaryDir, err = os.MkdirTemp("", "parlor-bench-"); err != nil {
		return s, err
	}
	if s.redis, err = redistest.Start("--appendonly", "yes", "--appendfsync", o.appendfsync,
		"--auto-aof-rewrite-percentage", "0", "--repl-diskless-sync-delay", "0"); err != nil {
		return s, err
	}
	if o.durability == "replica" {
		if s.replica, err = redistest.Start(redistest.ReplicaOf(s.redis.Addr)...); err != nil {
			return s, err
		}
	}
	return s, s.build()
}

func (s *servers) parlor() string { return filepath.Join(s.binaryDir, "parlor") }
func (s *servers) self() string   { return filepath.Join(s.binaryDir, "bench") }

// build builds the node and this command.
func (s *servers) build() error {
	for path, source := range map[string]string{s.parlor(): "./cmd/parlor", s.self(): "./tests/bench"} {
		if out, err := exec.Command("go", "build", "-o", path, source).CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", source, err, out)
		}
	}
	return nil
}

// nodeProcess is one node that runs.
type nodeProcess struct {
	address         string // host:port
	internalAddress string // host:port of its metrics and profiles
	pid             int
	command         *exec.Cmd
}

// startNode starts a node of the binary, with further settings as NAME=value.
func (s *servers) startNode(o options, settings ...string) (n nodeProcess, err error) {
	if n.address, err = freeAddr(); err != nil {
		return n, err
	}
	if n.internalAddress, err = freeAddr(); err != nil {
		return n, err
	}
	n.command = onNodeCPU(o, cmp.Or(o.binary, s.parlor()), "serve")
	n.command.Env = append([]string{
		"PATH=" + os.Getenv("PATH"),
		"PARLOR_LISTEN=" + n.address, "PARLOR_INTERNAL_LISTEN=" + n.internalAddress,
		"PARLOR_REDIS_URL=" + cmp.Or(o.storeURL, s.redis.URL()),
		"PARLOR_ADMIN_KEY=" + adminKey, "PARLOR_SIGNING_KEY=signing-key-of-the-bench-a90b55c1e6d3",
		"PARLOR_TRUSTED_PROXIES=127.0.0.1/32", "PARLOR_LOG_LEVEL=error", "PARLOR_PPROF=on", "HOME=" + s.binaryDir,
		"PARLOR_DURABILITY=" + o.durability, "PARLOR_STATE_DIR=" + s.binaryDir,
	}, settings...)
	n.pid, err = s.start(n.command, "http://"+n.address+"/readyz")
	return n, err
}

// start starts a process, waits until the URL ready returns 200, and returns the process id.
func (s *servers) start(c *exec.Cmd, ready string) (int, error) {
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	redistest.EndWithParent(c)
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
	for _, server := range []*redistest.Server{s.replica, s.redis} {
		if server != nil {
			server.Kill()
			_ = os.RemoveAll(server.Dir)
		}
	}
	_ = os.RemoveAll(s.binaryDir)
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
	options      options
	nodeConns    []*conn // to the node, one for each worker
	baseConns    []*conn // to the baseline, one for each worker
	admin        *conn
	game         int64
	tokenID      int64
	purchasePath string   // path of the route
	players      []player // playersPerWorker for each worker
	savers       []*saver // one for each worker
	keyEpoch     int      // counts measurements, so that Idempotency-Keys are new in each
}

type player struct {
	id            int64
	accessToken   string
	clientAddress string
}

// post returns a POST of the player.
func (p player) post(path, body string) request {
	return request{method: "POST", path: path, accessToken: p.accessToken, clientAddress: p.clientAddress, body: body}
}

// seatsPerRoom is the size of the rooms: a creator and seven who join.
const seatsPerRoom = 8

// workerPlayers returns the players of a worker, as many as a room has seats.
func (b *bench) workerPlayers(worker int) []player {
	return b.players[worker*seatsPerRoom : (worker+1)*seatsPerRoom]
}

// newBench makes the game, and opens the connections.
func (s *servers) newBench(o options) (*bench, error) {
	b := &bench{servers: s, options: o}
	var err error
	if b.admin, err = dial(s.nodeAddress); err != nil {
		return nil, err
	}
	var token idResponse
	definition := `{"tokenId":"GOLD","tokenName":"Gold","metadata":{"assetName":"67","policyId":"ab","decimals":"2"}}`
	if err := b.create("/api/v1/admin/tokens", adminKey, definition, &token); err != nil {
		return nil, err
	}
	b.tokenID = token.ID
	var created struct {
		Game idResponse `json:"game"`
	}
	if err := b.create("/api/v1/admin/games", adminKey,
		`{"name":"Bench","welcomeGrant":{"tokenId":"GOLD","amount":100000000,"for":"any"}}`, &created); err != nil {
		return nil, err
	}
	b.game = created.Game.ID
	var asset idResponse
	if err := b.create(fmt.Sprintf("/api/v1/admin/games/%d/assets", b.game), adminKey,
		`{"name":"Coin","tokenId":"GOLD","price":0.01}`, &asset); err != nil {
		return nil, err
	}
	b.purchasePath = fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", asset.ID)
	return b, b.connect()
}

// prepareRows makes the players of the rows, and their sockets for saves.
func (b *bench) prepareRows() error {
	b.players = make([]player, b.options.workers*seatsPerRoom)
	err := b.forEachWorker(func(worker int) (err error) {
		for i := worker * seatsPerRoom; i < (worker+1)*seatsPerRoom && err == nil; i++ {
			b.players[i], err = b.signIn(b.nodeConns[worker], i)
		}
		return err
	})
	if err != nil {
		return err
	}
	for i := range b.options.workers {
		saver, err := b.openSaver(b.workerPlayers(i)[:2])
		if err != nil {
			return err
		}
		b.savers = append(b.savers, saver)
	}
	return nil
}

// connect opens the connections of the workers. Each sends a request at once, because a server
// closes a new connection without one.
func (b *bench) connect() error {
	open := func(addr, path string) (*conn, error) {
		c, err := dial(addr)
		if err != nil {
			return nil, err
		}
		return c, wantStatus(http.StatusOK)(c.send(request{method: "GET", path: path}))
	}
	for range b.options.workers {
		toNode, err := open(b.nodeAddress, "/readyz")
		if err != nil {
			return err
		}
		b.nodeConns = append(b.nodeConns, toNode)
		if b.baselineAddress == "" {
			continue
		}
		toBaseline, err := open(b.baselineAddress, baselinePath)
		if err != nil {
			return err
		}
		b.baseConns = append(b.baseConns, toBaseline)
	}
	return nil
}

// forEachWorker calls do for all workers at the same time and returns the first error.
func (b *bench) forEachWorker(do func(worker int) error) error {
	failures := make(chan error, b.options.workers)
	for worker := range b.options.workers {
		go func() { failures <- do(worker) }()
	}
	var first error
	for range b.options.workers {
		if err := <-failures; first == nil {
			first = err
		}
	}
	return first
}

// idResponse decodes what has an id.
type idResponse struct {
	ID int64 `json:"id"`
}

// signIn returns the n-th player, who is new and has an address of its own.
func (b *bench) signIn(c *conn, n int) (player, error) {
	p := player{clientAddress: fmt.Sprintf("10.%d.%d.%d", n>>16, n>>8&0xff, n&0xff)}
	var guest struct {
		AccessToken string     `json:"accessToken"`
		User        idResponse `json:"user"`
	}
	body := fmt.Sprintf(`{"gameId":%d,"username":"Player %d"}`, b.game, n)
	err := sendCreate(c, p.post("/api/v1/auth/guest", body), &guest)
	p.id, p.accessToken = guest.User.ID, guest.AccessToken
	return p, err
}

// create sends a POST that creates something and decodes the response.
func (b *bench) create(path, bearer, body string, response any) error {
	return sendCreate(b.admin, request{method: "POST", path: path, accessToken: bearer, body: body}, response)
}

func sendCreate(c *conn, r request, response any) error {
	status, encoded, err := c.send(r)
	if err != nil {
		return err
	}
	if status != http.StatusCreated {
		return fmt.Errorf("POST %s returns %d %s", r.path, status, encoded)
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
	status, body, err := c.send(p.post("/api/v1/game-session/create", b.createBody(seats)))
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
	rowEcho
	rowGet
	rowBalances
	rowJoin
	rowCycle
	rowPurchase
	rowOneWallet
	rowSave
)

func (b *bench) newRows() []*row {
	return []*row{
		rowBaseline:  {name: "baseline: gin handler, one Redis round trip"},
		rowEcho:      {name: "bare gin: returns the body, as long as a room"},
		rowGet:       {name: "GET game-session/get"},
		rowBalances:  {name: "GET user-balance/token-balances"},
		rowJoin:      {name: "POST join, paid room of 8"},
		rowCycle:     {name: "cycle: create, join, leave, leave"},
		rowPurchase:  {name: "purchase"},
		rowOneWallet: {name: fmt.Sprintf("purchase, %d workers on one wallet", b.options.workers)},
		rowSave:      {name: "save of 1 KiB over a WebSocket"},
	}
}

// measurePass measures every row once.
func (b *bench) measurePass(pass int, rows []*row) error {
	rooms, err := b.openRooms(pass)
	if err != nil {
		return err
	}
	newcomer, err := b.signIn(b.admin, len(b.players)+pass)
	if err != nil {
		return err
	}
	operations := b.operations(pass, rooms, newcomer)
	baseline, echo := 0.0, 0.0 // operations per CPU second
	for i := rowBaseline; i <= rowSave; i++ {
		if !strings.Contains(rows[i].name, b.options.nameFilter) && i != rowBaseline && i != rowEcho {
			continue
		}
		b.keyEpoch++
		withProfile := b.options.profileDir != "" && pass == b.options.passes-1
		before, err := cpuTime(b.redis.Pid())
		if err != nil {
			return err
		}
		m, err := b.measureRow(i, rows[i].name, withProfile, operations[i])
		if err != nil {
			return err
		}
		after, err := cpuTime(b.redis.Pid())
		if err != nil {
			return err
		}
		storeMicros := float64((after - before).Microseconds()) / float64(max(1, m.operationCount))
		rows[i].storeMicros = append(rows[i].storeMicros, storeMicros)
		if m.failedCount > 0 {
			fmt.Printf("%s: %d of %d failed, first: %s\n", rows[i].name, m.failedCount,
				m.operationCount+m.failedCount, m.firstFailure)
		}
		perCPU := float64(m.operationCount) / m.cpu.Seconds()
		rows[i].opsPerCPUSecond = append(rows[i].opsPerCPUSecond, perCPU)
		rows[i].opsPerWallSecond = append(rows[i].opsPerWallSecond, float64(m.operationCount)/m.wall.Seconds())
		rows[i].failedCount += m.failedCount
		switch i {
		case rowBaseline:
			baseline = perCPU
			continue
		case rowEcho:
			echo = perCPU
		case rowCycle:
			rows[i].echoRatio = append(rows[i].echoRatio, perCPU/(echo/requestsPerCycle))
		}
		rows[i].baselineRatios = append(rows[i].baselineRatios, perCPU/baseline)
	}
	return b.cancelRooms(rooms)
}

// measureRow measures one row.
func (b *bench) measureRow(
	row int, name string, withProfile bool, operation operation,
) (measurement, error) {
	pid := b.nodePID
	if row == rowBaseline || row == rowEcho {
		pid = b.baselinePID
	}
	profile := make(chan error, 1)
	if withProfile {
		go func() { profile <- b.writeCPUProfile(name) }()
	} else {
		profile <- nil
	}
	m, err := measure(b.options.workers, b.options.span, pid, operation)
	return m, errors.Join(err, <-profile)
}

// operation is what a worker repeats; turn counts from 0 in each measurement.
type operation = func(worker, turn int) error

// operations returns the operation of each row. The newcomer is who buys in the row of one wallet.
func (b *bench) operations(pass int, rooms []string, newcomer player) map[int]operation {
	ok, created := wantStatus(http.StatusOK), wantStatus(http.StatusCreated)
	get := func(worker int, path string) error {
		p := b.workerPlayers(worker)[0]
		return ok(b.nodeConns[worker].send(request{
			method: "GET", path: path, accessToken: p.accessToken,
			clientAddress: p.clientAddress,
		}))
	}
	buy := func(player func(worker int) player) operation {
		return func(worker, turn int) error {
			r := player(worker).post(b.purchasePath, "")
			r.idempotencyKey = fmt.Sprintf("p%d-%d-%d-%d", pass, b.keyEpoch, worker, turn)
			return created(b.nodeConns[worker].send(r))
		}
	}
	buyAsOne := buy(func(int) player { return newcomer })
	return map[int]operation{
		rowBaseline: func(worker, _ int) error {
			return ok(b.baseConns[worker].send(request{method: "GET", path: baselinePath}))
		},
		rowEcho: func(worker, _ int) error {
			return ok(b.baseConns[worker].send(b.workerPlayers(worker)[0].post(echoPath, echoBody)))
		},
		rowGet: func(worker, turn int) error {
			return get(worker, "/api/v1/game-session/get?roomId="+rooms[(worker+turn*b.options.workers)%len(rooms)])
		},
		rowBalances: func(worker, _ int) error { return get(worker, "/api/v1/user-balance/token-balances") },
		rowJoin:     b.joinOperation(rooms),
		rowCycle:    func(worker, _ int) error { return b.cycleRoom(worker) },
		rowPurchase: buy(func(worker int) player { return b.workerPlayers(worker)[0] }),
		rowOneWallet: func(worker, turn int) error {
			if turn >= oneWalletPurchases/b.options.workers {
				return errExhausted
			}
			return buyAsOne(worker, turn)
		},
		rowSave: func(worker, turn int) error { return b.savers[worker].save(turn) },
	}
}

// echoBody has the size of a room in a response.
var echoBody = `{"room":"` + strings.Repeat("r", 1200) + `"}`

// requestsPerCycle is how many requests the row of the cycle sends each time.
const requestsPerCycle = 4

// oneWalletPurchases is how many purchases one new player makes in a row: fewer than the burst of
// the class "money".
const oneWalletPurchases = 1_500

// joinOperation fills the rooms seat by seat: worker k the rooms k, k+workers, …, which players of
// its group opened.
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
		host, seat := b.hostOf(room), 1+n%(seatsPerRoom-1)
		p := b.workerPlayers(worker)[(host+seat)%seatsPerRoom]
		return ok(b.nodeConns[worker].send(p.post("/api/v1/game-session/join", roomBody(rooms[room]))))
	}
}

// cycleRoom creates a room, and two players join and leave it.
func (b *bench) cycleRoom(worker int) error {
	c, host, guest := b.nodeConns[worker], b.workerPlayers(worker)[0], b.workerPlayers(worker)[1]
	room, err := b.openRoom(c, host, 2)
	if err != nil {
		return err
	}
	ok := wantStatus(http.StatusOK)
	post := func(verb string, p player) error {
		return ok(c.send(p.post("/api/v1/game-session/"+verb, roomBody(room))))
	}
	return errors.Join(post("join", guest), post("leave", guest), post("leave", host))
}

// writeCPUProfile writes a CPU profile of the node over about the time of a measurement.
func (b *bench) writeCPUProfile(name string) error {
	seconds := max(1, b.options.span.Seconds()-1)
	response, err := http.Get(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%.0f", b.internalAddress, seconds))
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
	f, err := os.Create(filepath.Join(b.options.profileDir, file+".pprof"))
	if err != nil {
		return err
	}
	_, err = io.Copy(f, response.Body)
	return errors.Join(err, f.Close())
}

func roomBody(roomID string) string { return `{"roomId":"` + roomID + `"}` }

// hostOf returns which player of a worker's group opens the worker's room i: each in turn, because
// a player may have only so many open rooms.
func (b *bench) hostOf(i int) int { return i / b.options.workers % seatsPerRoom }

// openRooms creates the rooms of one pass.
func (b *bench) openRooms(pass int) ([]string, error) {
	rooms := make([]string, 30*b.options.workers)
	err := b.forEachWorker(func(worker int) (err error) {
		for i := worker; i < len(rooms) && err == nil; i += b.options.workers {
			rooms[i], err = b.openRoom(b.nodeConns[worker], b.workerPlayers(worker)[b.hostOf(i)], seatsPerRoom)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("pass %d: %w", pass, err)
	}
	return rooms, nil
}

// cancelRooms ends the rooms of a pass: a player may have only so many seats at a time.
func (b *bench) cancelRooms(rooms []string) error {
	return b.forEachWorker(func(worker int) (err error) {
		for i := worker; i < len(rooms) && err == nil; i += b.options.workers {
			r := b.workerPlayers(worker)[b.hostOf(i)].post("/api/v1/game-session/cancel", roomBody(rooms[i]))
			err = wantStatus(http.StatusOK)(b.nodeConns[worker].send(r))
		}
		return err
	})
}

// audit checks that the load neither made nor lost money.
func (b *bench) audit() error {
	status, body, err := b.admin.send(request{method: "GET", path: "/api/v1/admin/audit", accessToken: adminKey})
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
