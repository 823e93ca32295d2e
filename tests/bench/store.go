package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/redis/go-redis/v9"
)

// storeRow is one line of the store's table: what a request costs Redis.
type storeRow struct {
	name          string
	redisCPUUS    []float64 // CPU time of the main thread for each request, in µs, one for each pass
	floorRatios   []float64 // of that time to the floor's of the same pass
	redisAOFBytes []float64 // bytes of the append-only file for each request
}

// The rows of the store, in the order in which they are measured. The rooms live through them.
const (
	storeRowFloor = iota
	storeRowCreate
	storeRowJoinSecond
	storeRowJoinLast
	storeRowLeave
	storeRowStart
	storeRowFinish
	storeRowPurchase
	storeRowReplay
	storeRowCredit
)

func newStoreRows() []*storeRow {
	return []*storeRow{
		storeRowFloor:      {name: "floor: 2 HGET, 2 HSET, RPUSH, PUBLISH"},
		storeRowCreate:     {name: "create, paid room of 8"},
		storeRowJoinSecond: {name: "join at seat 2"},
		storeRowJoinLast:   {name: "join at seat 8"},
		storeRowLeave:      {name: "leave at 8"},
		storeRowStart:      {name: "start at 8"},
		storeRowFinish:     {name: "finish of 8"},
		storeRowPurchase:   {name: "purchase"},
		storeRowReplay:     {name: "replay of a purchase"},
		storeRowCredit:     {name: "credit"},
	}
}

// roomsPerWorker is how many times a worker repeats a row in one pass. The server of a game reports
// the results of all rooms, so that three passes stay below the burst of its rate limit.
const roomsPerWorker = 10

// usage is what Redis has used since it started.
type usage struct {
	redisCPUUS, redisAOFBytes float64
	at                        time.Time
}

func (b *bench) readUsage() (usage, error) {
	values, err := redistest.ReadInfo(context.Background(), b.store)
	return usage{
		redisCPUUS:    (values["used_cpu_user_main_thread"] + values["used_cpu_sys_main_thread"]) * 1e6,
		redisAOFBytes: values["aof_current_size"],
		at:            time.Now(),
	}, err
}

// storeConn returns a connection to the store for INFO alone.
func (s *servers) storeConn() *redis.Client {
	return redis.NewClient(&redis.Options{Network: "unix", Addr: s.redis.Socket, PoolSize: 1})
}

// measureStore measures every row of the store once.
func (b *bench) measureStore(rows []*storeRow) error {
	p := &storePass{bench: b, rows: rows, roomIDs: make([][]string, b.options.workers)}
	if err := p.measureIdle(); err != nil {
		return err
	}
	for _, step := range p.steps() {
		if err := p.measure(step); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// storePass is one pass through the rows of the store.
type storePass struct {
	*bench
	rows    []*storeRow
	roomIDs [][]string // ids, roomsPerWorker for each worker

	// what the node makes the store do on its own: µs and bytes each second
	idleCPUUSPerSecond, idleAOFBytesPerSecond float64
}

// step is a request that every worker repeats.
type step struct {
	name   string
	row    int // of the table; notMeasured for a step that only prepares the next one
	repeat int // how often each worker repeats the request
	run    func(worker, n int) error
}

const notMeasured = -1

// measureIdle measures what Redis does without requests.
func (p *storePass) measureIdle() error {
	before, err := p.readUsage()
	if err != nil {
		return err
	}
	time.Sleep(time.Second)
	after, err := p.readUsage()
	seconds := after.at.Sub(before.at).Seconds()
	p.idleCPUUSPerSecond, p.idleAOFBytesPerSecond = (after.redisCPUUS-before.redisCPUUS)/seconds,
		(after.redisAOFBytes-before.redisAOFBytes)/seconds
	return err
}

func (p *storePass) measure(s step) error {
	before, err := p.readUsage()
	if err != nil {
		return err
	}
	err = p.forEachWorker(func(worker int) (err error) {
		for n := 0; n < s.repeat && err == nil; n++ {
			err = s.run(worker, n)
		}
		return err
	})
	if err != nil || s.row == notMeasured {
		return err
	}
	after, err := p.readUsage()
	seconds, requests := after.at.Sub(before.at).Seconds(), float64(s.repeat*p.options.workers)
	cpuUS := (after.redisCPUUS - before.redisCPUUS - p.idleCPUUSPerSecond*seconds) / requests
	aofBytes := (after.redisAOFBytes - before.redisAOFBytes - p.idleAOFBytesPerSecond*seconds) / requests
	row, floor := p.rows[s.row], p.rows[storeRowFloor]
	row.redisCPUUS, row.redisAOFBytes = append(row.redisCPUUS, cpuUS), append(row.redisAOFBytes, aofBytes)
	row.floorRatios = append(row.floorRatios, cpuUS/floor.redisCPUUS[len(floor.redisCPUUS)-1])
	return err
}

// steps returns the requests of a pass in their order.
func (p *storePass) steps() []step {
	ok, created := wantStatus(http.StatusOK), wantStatus(http.StatusCreated)
	post := func(worker, seat, n int, verb string) error {
		r := p.workerPlayers(worker)[seat].post("/api/v1/game-session/"+verb, roomBody(p.roomIDs[worker][n]))
		return ok(p.nodeConns[worker].send(r))
	}
	seat := func(number int) func(worker, n int) error {
		return func(worker, n int) error { return post(worker, number-1, n, "join") }
	}
	p.keyEpoch++
	buy := func(worker, n int) error {
		r := p.workerPlayers(worker)[n%seatsPerRoom].post(p.purchasePath, "")
		r.idempotencyKey = p.newKey("b", worker, n)
		return created(p.nodeConns[worker].send(r))
	}
	once := func(name string, row int, do func(worker, n int) error) step {
		return step{name, row, roomsPerWorker, do}
	}
	return []step{
		{"the first floor script", notMeasured, 1, p.runFloor},
		{"floor", storeRowFloor, 10 * roomsPerWorker, p.runFloor},
		once("create", storeRowCreate, func(worker, _ int) error {
			id, err := p.openRoom(p.nodeConns[worker], p.workerPlayers(worker)[0], seatsPerRoom)
			p.roomIDs[worker] = append(p.roomIDs[worker], id)
			return err
		}),
		once("join at seat 2", storeRowJoinSecond, seat(2)),
		{"join at seats 3 to 7", notMeasured, 5 * roomsPerWorker, func(worker, n int) error {
			return seat(3+n%5)(worker, n/5)
		}},
		once("join at seat 8", storeRowJoinLast, seat(seatsPerRoom)),
		once("leave at 8", storeRowLeave, func(worker, n int) error { return post(worker, seatsPerRoom-1, n, "leave") }),
		once("join again", notMeasured, seat(seatsPerRoom)),
		once("start", storeRowStart, func(worker, n int) error { return post(worker, 0, n, "start") }),
		once("finish", storeRowFinish, func(worker, n int) error {
			return ok(p.nodeConns[worker].send(request{
				method: "POST", path: "/api/v1/game-session/finish", accessToken: p.serverKey,
				idempotencyKey: p.newKey("f", worker, n), body: p.finishBody(worker, p.roomIDs[worker][n]),
			}))
		}),
		once("purchase", storeRowPurchase, buy),
		once("replay of a purchase", storeRowReplay, buy),
		once("credit", storeRowCredit, func(worker, n int) error {
			userID := p.workerPlayers(worker)[n%seatsPerRoom].id
			return ok(p.nodeConns[worker].send(request{
				method: "POST", path: fmt.Sprintf("/api/v1/admin/users/%d/credit", userID), accessToken: adminKey,
				idempotencyKey: p.newKey("c", worker, n), body: `{"tokenId":"GOLD","amount":1,"reason":"bench"}`,
			}))
		}),
	}
}

func (p *storePass) runFloor(worker, _ int) error {
	path := floorPath + "?worker=" + strconv.Itoa(worker)
	return wantStatus(http.StatusOK)(p.baseConns[worker].send(request{method: "POST", path: path}))
}

func (p *storePass) newKey(kind string, worker, n int) string {
	return fmt.Sprintf("%s%d-%d-%d", kind, p.keyEpoch, worker, n)
}

// finishBody returns the body that ends a room with the worker's players in their order.
func (p *storePass) finishBody(worker int, roomID string) string {
	var list []string
	for i, player := range p.workerPlayers(worker) {
		list = append(list, fmt.Sprintf(`{"userId":%d,"place":%d}`, player.id, i+1))
	}
	return `{"roomId":"` + roomID + `","results":[` + strings.Join(list, ",") + `]}`
}

func reportStore(rows []*storeRow) {
	fmt.Printf("\n%-44s %14s %14s %14s\n", "", "µs CPU each", "ratio to floor", "AOF bytes")
	fmt.Println("REDIS CPU, with all that a request makes the store do, leases of rate limits included")
	for _, r := range rows {
		fmt.Printf("  %-42s %14.1f %14.2f %14.0f\n", r.name, median(r.redisCPUUS), median(r.floorRatios),
			median(r.redisAOFBytes))
	}
}
