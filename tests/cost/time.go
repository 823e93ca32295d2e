package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/redis/go-redis/v9"
)

const (
	timedCalls    = 1_000 // of a row in one pass
	timedPasses   = 5
	pipelineDepth = 128 // commands that are sent together
)

var syncEverySecond = []string{"--appendonly", "yes", "--appendfsync", "everysec"}

// timedRow is what one row took in each pass.
type timedRow struct {
	title       string
	cpuUS       []float64 // CPU time of the store's main thread for each call, in µs
	floorRatios []float64 // calls for each second of that time, in those of the floor script of the same pass
	aofBytes    []float64 // of the append-only file, for each call
}

// printTimes prints what each call takes of the store's CPU time: scripts as the domains send
// them, with what is read in the same round trip, in pipelines, on a store that syncs its
// append-only file every second.
func printTimes(ctx context.Context) error {
	server, err := redistest.Start(append([]string{"--auto-aof-rewrite-percentage", "0"}, syncEverySecond...)...)
	if err != nil {
		return err
	}
	defer server.Remove()
	f, err := newFixture(ctx, server.URL(), anyGame)
	if err != nil {
		return err
	}
	defer func() { _ = f.db.Close() }()
	if err := f.creditAll(ctx, max(hostIndex(timedCalls), manySeatsCount)); err != nil {
		return err
	}
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: server.Socket, PoolSize: 1, MaxRetries: -1})
	defer func() { _ = client.Close() }()
	if err := client.ScriptLoad(ctx, floorSource).Err(); err != nil {
		return err
	}
	floor := &timedRow{title: "floor: 2 HGET, 2 HSET, RPUSH, PUBLISH"}
	table := []*timedRow{floor}
	for _, r := range callRows() {
		table = append(table, &timedRow{title: r.title()})
	}
	for range timedPasses {
		s := newStage(f, timedCalls)
		if err := floor.measure(ctx, client, floorCommands(10*timedCalls), 10*timedCalls, nil); err != nil {
			return err
		}
		for i, r := range callRows() {
			s.keyed = r.keyed
			if err := table[i+1].measureCalls(ctx, client, s, r, floor); err != nil {
				return fmt.Errorf("%s: %w", r.title(), err)
			}
		}
	}
	fmt.Printf("%-44s %14s %14s %14s\n", "", "µs CPU each", "of the floor", "AOF bytes")
	fmt.Println("CPU TIME OF THE STORE, with what is read in the same round trip; AOF synced every second")
	for _, r := range table {
		fmt.Printf("  %-42s %14.1f %13.2f× %14.0f\n", r.title, median(r.cpuUS), median(r.floorRatios), median(r.aofBytes))
	}
	return f.checkBalanced(ctx)
}

// measureCalls prepares the calls of a row, holds their commands back and measures these alone.
func (t *timedRow) measureCalls(ctx context.Context, client *redis.Client, s *stage, r row, floor *timedRow) error {
	n := timedCalls
	if r.most > 0 {
		n = min(n, r.most)
	}
	var commands [][]any
	for i := range n {
		if r.prepare != nil {
			if err := r.prepare(ctx, s, i); err != nil {
				return err
			}
		}
	}
	for i := range n {
		run := func() error { return r.run(ctx, s, i) }
		if i == 0 { // it may fill caches
			if err := run(); err != nil {
				return err
			}
			continue
		}
		record := s.recorder.hold
		if r.isRead {
			record = s.recorder.record
		}
		held, err := record(run)
		if err != nil {
			return err
		}
		commands = append(commands, held...)
	}
	return t.measure(ctx, client, commands, n-1, floor)
}

// measure sends commands in pipelines; they belong to a number of calls. floor is nil for the floor
// itself.
func (t *timedRow) measure(
	ctx context.Context, client *redis.Client, commands [][]any, calls int, floor *timedRow,
) error {
	before, err := readTimes(ctx, client)
	if err != nil {
		return err
	}
	if err := sendPipelined(ctx, client, commands); err != nil {
		return err
	}
	after, err := readTimes(ctx, client)
	if err != nil {
		return err
	}
	each := (after.cpuUS - before.cpuUS) / float64(calls)
	t.cpuUS = append(t.cpuUS, each)
	t.aofBytes = append(t.aofBytes, (after.aofBytes-before.aofBytes)/float64(calls))
	if floor == nil {
		floor = t
	}
	t.floorRatios = append(t.floorRatios, floor.cpuUS[len(floor.cpuUS)-1]/each)
	return nil
}

// sendPipelined sends commands and returns the first error.
func sendPipelined(ctx context.Context, client redis.UniversalClient, commands [][]any) error {
	for batch := range slices.Chunk(commands, pipelineDepth) {
		_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, args := range batch {
				p.Do(ctx, args...)
			}
			return nil
		})
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
	}
	return nil
}

type times struct{ cpuUS, aofBytes float64 }

func readTimes(ctx context.Context, client *redis.Client) (times, error) {
	values, err := redistest.ReadInfo(ctx, client)
	return times{
		cpuUS:    (values["used_cpu_user_main_thread"] + values["used_cpu_sys_main_thread"]) * 1e6,
		aofBytes: values["aof_current_size"],
	}, err
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// printSpread prints how many joins a second one master takes of one game, and two masters of two
// games: the masters of a Cluster share the games.
func printSpread(ctx context.Context) error {
	url, servers, err := redistest.StartCluster(syncEverySecond...)
	defer func() {
		for _, s := range servers {
			s.Remove()
		}
	}()
	if err != nil {
		return err
	}
	var games [2]*spreadGame
	for i, id := range []int64{1, 2} { // their hash tags belong to different masters, which is checked
		if games[i], err = newSpreadGame(ctx, url, id); err != nil {
			return err
		}
		defer games[i].close()
	}
	if games[0].master == games[1].master {
		return errors.New("the two games have the same master")
	}
	var alone, together []float64
	for range timedPasses {
		one, err := measureSpread(ctx, games[:1])
		if err != nil {
			return err
		}
		two, err := measureSpread(ctx, games[:])
		if err != nil {
			return err
		}
		alone, together = append(alone, one), append(together, two)
	}
	fmt.Printf("\nJOINS A SECOND on a Cluster, keys and load on this machine's cores\n"+
		"  %-42s %14.0f\n  %-42s %14.0f\n  %-42s %13.2f×\n",
		"one game on one master", median(alone), "two games on two masters", median(together),
		"the second master adds", median(together)/median(alone))
	for _, g := range games {
		if err := g.checkBalanced(ctx); err != nil {
			return err
		}
	}
	return nil
}

// spreadGame is a game on a Cluster, with a connection to its master.
type spreadGame struct {
	*fixture
	master string // host:port
	client *redis.Client
}

func newSpreadGame(ctx context.Context, url string, id int64) (*spreadGame, error) {
	f, err := newFixture(ctx, url, id)
	if err != nil {
		return nil, err
	}
	cluster := f.db.Client.(*redis.ClusterClient)
	master, err := cluster.MasterForKey(ctx, keys.Ledger(id))
	if err != nil {
		return nil, err
	}
	addr := master.Options().Addr
	g := &spreadGame{f, addr, redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1, MaxRetries: -1})}
	if err := f.creditAll(ctx, hostIndex(timedCalls)); err != nil {
		return g, err
	}
	_, err = f.fillSeats(ctx, roomSeats, 2) // the master learns the scripts
	return g, err
}

func (g *spreadGame) close() {
	_ = g.client.Close()
	_ = g.db.Close()
}

// measureSpread returns the joins a second of all games at once.
func measureSpread(ctx context.Context, games []*spreadGame) (float64, error) {
	prepared := make([][][]any, len(games))
	for i, g := range games {
		for n := range timedCalls {
			room, err := g.create(ctx, g.player(hostIndex(n)), roomSeats, noReceipt)
			if err != nil {
				return 0, err
			}
			for seat := 1; seat < roomSeats; seat++ {
				joiner := g.player(hostIndex(n) + seat)
				held, err := g.recorder.hold(func() error { return g.join(ctx, joiner, room.RoomID, noReceipt) })
				if err != nil {
					return 0, err
				}
				prepared[i] = append(prepared[i], held...)
			}
		}
	}
	failures := make(chan error, len(games))
	begin := time.Now()
	for i, g := range games {
		go func() { failures <- sendPipelined(ctx, g.client, prepared[i]) }()
	}
	var errs []error
	for range games {
		errs = append(errs, <-failures)
	}
	joins := float64(len(games) * timedCalls * (roomSeats - 1))
	return joins / time.Since(begin).Seconds(), errors.Join(errs...)
}
