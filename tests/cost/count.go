package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// warmUps is how often a method runs for real before it is counted. The first one compiles the
// script.
const warmUps = 5

// Beside the rooms of the rows there are so many others that Redis stores the indexes as it does in
// a busy installation (zset-max-listpack-entries is 128), and need not enlarge their tables while
// it is counted: it does so bit by bit in whichever calls come next, which is 20 to 60 kIr in each.
const (
	otherOpenRooms  = 540 // in tables of 1,024; the rows make some 270
	otherEndedRooms = 600 // the same; with those that are open, in tables of 2,048
)

// fillerKeys is how many other keys there are, for the same reason.
const fillerKeys = 16_600 // in tables of 32,768; the rows and the other rooms make some 12,000

// quietArgs are settings under which redis-server does nothing but what it is asked for.
var quietArgs = []string{
	"--hz", "1", "--dynamic-hz", "no", "--activerehashing", "no", "--jemalloc-bg-thread", "no",
	"--auto-aof-rewrite-percentage", "0", "--appendfsync", "no", "--enable-debug-command", "yes",
}

// counter is a redis-server under callgrind and a connection to it.
type counter struct {
	server  *redistest.Server
	client  *redis.Client // sends what is counted
	dir     string        // for what callgrind writes
	dumps   int           // files that callgrind wrote
	idleKIr float64       // thousand instructions of a second without commands
	pingKIr float64       // thousand instructions of a PING over client
}

// cost is what a call costs the store.
type cost struct {
	kIr            float64 // thousand instructions, without those of a PING
	aofBytes       float64 // bytes of the append-only file
	commands       float64 // commands that Redis ran, those inside of the script included
	besideCommands string  // what the method sends beside its script, which is not in the figures
}

func startCounter(ctx context.Context, aof bool) (*counter, error) {
	dir, err := os.MkdirTemp("", "parlor-cost-")
	if err != nil {
		return nil, err
	}
	c := &counter{dir: dir}
	valgrind := []string{"valgrind", "-q", "--tool=callgrind", "--callgrind-out-file=" + filepath.Join(dir, "out")}
	args := slices.Clone(quietArgs)
	if aof {
		args = append(args, "--appendonly", "yes")
	}
	if c.server, err = redistest.StartUnder(valgrind, args...); err != nil {
		return c, err
	}
	c.client = redis.NewClient(&redis.Options{
		Network: "unix", Addr: c.server.Socket, PoolSize: 1, MaxRetries: -1, ReadTimeout: time.Minute,
	})
	// Else receipts that expire meanwhile would be counted, the more the longer it takes.
	if err := c.client.Do(ctx, "debug", "set-active-expire", "0").Err(); err != nil {
		return c, err
	}
	if c.idleKIr, err = c.countIdle(ctx); err != nil {
		return c, err
	}
	pings := slices.Repeat([][]any{{"ping"}}, 200)
	ping, err := c.count(ctx, pings, nil)
	c.pingKIr = ping.kIr
	return c, err
}

// countIdle returns the thousand instructions of a second in which the server only does what it
// does once a second by itself.
func (c *counter) countIdle(ctx context.Context) (float64, error) {
	if err := c.control(ctx, "-z"); err != nil {
		return 0, err
	}
	start := time.Now()
	waitFor(idleTime)
	elapsed := time.Since(start)
	instructions, err := c.dump(ctx)
	return instructions / 1000 / elapsed.Seconds(), err
}

const idleTime = 5 * time.Second

func waitFor(d time.Duration) { <-time.After(d) }

func (c *counter) stop() {
	if c.client != nil {
		_ = c.client.Close()
	}
	if c.server != nil {
		c.server.Remove()
	}
	_ = os.RemoveAll(c.dir)
}

// count sends commands one after another and returns what each cost, without a PING. check is
// called with each reply, if it is not nil.
func (c *counter) count(ctx context.Context, commands [][]any, check func(reply any) error) (cost, error) {
	// Each row begins with no garbage of those before it. See defaultCalls.
	if err := c.client.Eval(ctx, "collectgarbage() return 1", nil).Err(); err != nil {
		return cost{}, err
	}
	before, err := c.readInfo(ctx)
	if err != nil {
		return cost{}, err
	}
	if err := c.control(ctx, "-z"); err != nil {
		return cost{}, err
	}
	start := time.Now()
	replies := make([]any, len(commands))
	for i, args := range commands {
		if replies[i], err = c.client.Do(ctx, args...).Result(); err != nil {
			return cost{}, fmt.Errorf("%v: %w", args[0], err)
		}
	}
	elapsed := time.Since(start)
	instructions, err := c.dump(ctx)
	if err != nil {
		return cost{}, err
	}
	after, err := c.readInfo(ctx)
	if err != nil {
		return cost{}, err
	}
	if check != nil {
		for _, reply := range replies {
			if err := check(reply); err != nil {
				return cost{}, err
			}
		}
	}
	if n := after.connections - before.connections; n != 0 {
		return cost{}, fmt.Errorf("%.0f others connected while it was counted", n)
	}
	n := float64(len(commands))
	return cost{
		kIr:      (instructions/1000-elapsed.Seconds()*c.idleKIr)/n - c.pingKIr,
		aofBytes: (after.aofBytes - before.aofBytes) / n,
		commands: (after.commands - before.commands - 1) / n, // 1 is the first INFO
	}, nil
}

// enlargeTables makes fillerKeys, and then lets Redis finish what it does a bit of in each command.
func (c *counter) enlargeTables(ctx context.Context) error {
	return c.client.Eval(ctx, `
		for i = 1, ARGV[1] do redis.call('SET', 'filler:' .. i, '', 'EX', 86400) end
		for _ = 1, ARGV[1] do redis.call('TTL', 'filler:1') end
		return redis.status_reply('OK')`, nil, fillerKeys).Err()
}

// control runs callgrind_control on the server.
func (c *counter) control(ctx context.Context, action string) error {
	pid := strconv.Itoa(c.server.Pid())
	if out, err := exec.CommandContext(ctx, "callgrind_control", action, pid).CombinedOutput(); err != nil {
		return fmt.Errorf("callgrind_control %s: %w\n%s", action, err, out)
	}
	return nil
}

// dump has callgrind write its counters and returns the number of instructions since they were set
// to zero.
func (c *counter) dump(ctx context.Context) (instructions float64, err error) {
	if err := c.control(ctx, "--dump"); err != nil {
		return 0, err
	}
	c.dumps++
	file := filepath.Join(c.dir, "out."+strconv.Itoa(c.dumps))
	err = redistest.Poll(10*time.Second, func() error {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			// Not "totals", the sum of the lines: it has traces of what ran before the counters were set to
			// zero.
			if sum, ok := strings.CutPrefix(line, "summary: "); ok {
				instructions, err = strconv.ParseFloat(strings.TrimSpace(sum), 64)
				return err
			}
		}
		return fmt.Errorf("%s has no summary", file)
	})
	return instructions, errors.Join(err, os.Remove(file))
}

// info is a part of INFO.
type info struct{ commands, connections, aofBytes float64 }

func (c *counter) readInfo(ctx context.Context) (info, error) {
	values, err := redistest.ReadInfo(ctx, c.client)
	return info{values["total_commands_processed"], values["total_connections_received"], values["aof_current_size"]}, err
}

// countRows counts with n calls every row whose title matches.
func countRows(ctx context.Context, aof bool, n int, only *regexp.Regexp) (map[string]cost, error) {
	c, err := startCounter(ctx, aof)
	if c != nil {
		defer c.stop()
	}
	if err != nil {
		return nil, err
	}
	if err := c.enlargeTables(ctx); err != nil {
		return nil, err
	}
	f, err := newFixture(ctx, c.server.URL(), anyGame)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.db.Close() }()
	if err := f.creditAll(ctx, max(hostIndex(n+warmUps), manySeatsCount)); err != nil {
		return nil, err
	}
	if err := f.makeOtherRooms(ctx, max(hostIndex(n+warmUps), manySeatsCount)); err != nil {
		return nil, err
	}
	costs := map[string]cost{}
	s := newStage(f, n+warmUps)
	for _, r := range callRows() {
		if !only.MatchString(r.title()) {
			continue
		}
		s.keyed = r.keyed
		if costs[r.title()], err = c.countRow(ctx, s, r, n); err != nil {
			return nil, fmt.Errorf("%s: %w", r.title(), err)
		}
	}
	return costs, f.checkBalanced(ctx)
}

// countRow prepares n calls, records the command that each of them sends, and counts these alone.
func (c *counter) countRow(ctx context.Context, s *stage, r row, n int) (cost, error) {
	if r.most > 0 {
		n = min(n, r.most)
	}
	for i := range n + warmUps {
		if r.prepare != nil {
			if err := r.prepare(ctx, s, i); err != nil {
				return cost{}, err
			}
		}
	}
	beside, err := s.warmUp(ctx, r)
	if err != nil {
		return cost{}, err
	}
	var commands [][]any
	for i := warmUps; i < n+warmUps; i++ {
		run := func() error { return r.run(ctx, s, i) }
		if r.isRead {
			sent, err := s.recorder.record(run)
			if err != nil {
				return cost{}, err
			}
			commands = append(commands, sent...)
			continue
		}
		held, err := s.recorder.hold(run)
		if err != nil {
			return cost{}, err
		}
		commands = append(commands, held[0]) // what the method reads beside it has a row of its own
	}
	sent := s.recorder.sentCount()
	counted, err := c.count(ctx, commands, r.check)
	if s.recorder.sentCount() != sent {
		err = errors.Join(err, errors.New("the domains sent commands while it was counted"))
	}
	perCall := float64(len(commands)) / float64(n) // more than 1 for a read of several commands
	counted.kIr, counted.aofBytes = counted.kIr*perCall, counted.aofBytes*perCall
	counted.commands, counted.besideCommands = counted.commands*perCall, beside
	return counted, err
}

// warmUp makes the first calls for real and returns the commands that the shortest of them sent
// beside its one script. Others had to fill a cache.
func (s *stage) warmUp(ctx context.Context, r row) (beside string, err error) {
	var shortest []string
	for i := range warmUps {
		sent, err := s.recorder.record(func() error { return r.run(ctx, s, i) })
		if err != nil {
			return "", err
		}
		var others []string
		ran := map[any]bool{}
		for _, args := range sent {
			switch {
			case !isScript(args):
				others = append(others, args[0].(string))
			case args[0] == "evalsha":
				ran[args[1]] = true
			}
		}
		if !r.isRead && len(ran) != 1 {
			return "", fmt.Errorf("the verb runs %d scripts: %v", len(ran), slices.Collect(maps.Keys(ran)))
		}
		if i == 0 || len(others) < len(shortest) {
			shortest = others
		}
	}
	if r.isRead {
		return "", nil
	}
	return strings.Join(shortest, " "), nil
}

// check returns an error for a reply with another status than the row's.
func (r row) check(reply any) error {
	if r.isRead {
		return nil
	}
	want := r.status
	if want == "" {
		want = scripts.OK
	}
	status := reply // a script without values returns its status alone
	if values, ok := reply.([]any); ok && len(values) > 0 {
		status = values[0]
	}
	if status != want {
		return fmt.Errorf("the script returns %v, want %s", reply, want)
	}
	return nil
}
