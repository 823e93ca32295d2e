package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// measureScript is B9: what it costs the store to number, keep and publish one event, with one
// subscriber and with ten.
func (r *realtimeBench) measureScript() error {
	r.head("B9", "one event in the store: RPUSH and PUBLISH in a script (store: µs CPU)")
	ctx := context.Background()
	for _, subscribers := range []int{1, 10} {
		if err := r.emptyStore(); err != nil {
			return err
		}
		client := redis.NewClient(&redis.Options{Network: "unix", Addr: r.redis.Socket})
		for range subscribers {
			pubsub := client.Subscribe(ctx, "bench:script")
			defer func() { _ = pubsub.Close() }()
			go func() {
				for {
					if _, err := pubsub.Receive(ctx); err != nil {
						return
					}
				}
			}()
		}
		if err := publishEntry.Load(ctx, client).Err(); err != nil {
			return err
		}
		before, err := readUsage(os.Getpid(), r.redis.Pid())
		if err != nil {
			return err
		}
		document := documentOf(time.Now(), documentBytes)
		entry := "1000001-" + eventNonce + "|room.joined|1795195946123|1|2|0|0|" + string(document)
		n := 0
		for begin := time.Now(); time.Since(begin) < r.options.runTime; n += maxSendBatch {
			pipe := client.Pipeline()
			for range maxSendBatch {
				publishEntry.EvalSha(ctx, pipe, []string{"bench:script"}, entry)
			}
			if _, err := pipe.Exec(ctx); err != nil {
				return err
			}
		}
		after, err := readUsage(os.Getpid(), r.redis.Pid())
		if err != nil {
			return err
		}
		_, store, other, wall := after.since(before)
		r.add(result{
			Bench: "B9", System: fmt.Sprintf("%d subscribed", subscribers), PerSecond: float64(n) / wall.Seconds(),
			StoreMicros: float64(store.Microseconds()) / float64(n), OtherCores: other.Seconds() / wall.Seconds(),
		})
		_ = client.Close()
	}
	return nil
}

// traveller is a client that comes back after each end of its connection, and checks the numbers of
// its events.
type traveller struct {
	player   player
	room     string
	turn     int // of the next node
	position string
	seq      int64
}

// fleet is nodes that are restarted, and clients that travel between them.
type fleet struct {
	mu       sync.Mutex
	nodes    []nodeProcess
	away     int // place of the node that restarts; -1 for none
	gaps     histogram
	lost     atomic.Int64
	events   atomic.Int64
	restarts atomic.Int64 // connections after the first
	perTenth sync.Map     // tenth of a second → *atomic.Int64 connections
	stopped  atomic.Bool
}

func (f *fleet) address(turn int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if turn %= len(f.nodes); turn == f.away {
		turn = (turn + 1) % len(f.nodes)
	}
	return f.nodes[turn].address
}

// travel follows the room until the fleet is stopped.
func (f *fleet) travel(v *traveller, ready func(*socket)) {
	var lostAt time.Time
	for !f.stopped.Load() {
		s, err := tryMember(f.address(v.turn), v.player, v.room, v.position)
		if err != nil {
			v.turn++
			<-time.After(50 * time.Millisecond)
			continue
		}
		if !lostAt.IsZero() {
			f.gaps.add(time.Since(lostAt))
			f.restarts.Add(1)
			n, _ := f.perTenth.LoadOrStore(time.Now().UnixMilli()/100, new(atomic.Int64))
			n.(*atomic.Int64).Add(1)
		}
		ready(s)
		_ = s.eachFrame(func(frame []byte) error { f.follow(v, frame); return nil })
		_ = s.conn.Close()
		lostAt = time.Now()
		v.turn++
	}
}

var positionMark = []byte(`"position":"`)

// follow checks that the events of a frame are the next ones.
func (f *fleet) follow(v *traveller, frame []byte) {
	for rest := frame; ; {
		i := bytes.Index(rest, positionMark)
		if i < 0 {
			return
		}
		rest = rest[i+len(positionMark):]
		position := string(rest[:bytes.IndexByte(rest, '"')])
		seq, err := strconv.ParseInt(position[:max(0, bytes.IndexByte([]byte(position), '-'))], 10, 64)
		if err != nil {
			continue
		}
		if v.seq != 0 && seq != v.seq+1 {
			f.lost.Add(1)
		}
		v.position, v.seq = position, seq
		f.events.Add(1)
	}
}

// measureRestart is B10: three nodes are restarted one after the other under load.
func (r *realtimeBench) measureRestart() error {
	r.head("B10", "rolling restart of three nodes, 3,000 clients, 1,000 events a second: ms between sockets")
	b, err := r.newNode()
	if err != nil {
		return err
	}
	first := nodeProcess{b.nodeAddress, b.internalAddress, b.nodePID, b.node}
	f := &fleet{nodes: []nodeProcess{first}, away: -1}
	defer func() {
		for _, n := range f.nodes {
			r.end(n.command)
		}
	}()
	for range 2 {
		n, err := r.startNode(r.options)
		if err != nil {
			return err
		}
		f.nodes = append(f.nodes, n)
	}
	w, err := b.newWorld(shape{300, 10}, 0)
	if err != nil {
		return err
	}
	writer, err := w.newEventWriter(context.Background())
	if err != nil {
		return err
	}
	stop, ended, open := f.follows(w)
	defer stop()
	<-open
	fan := newFanout(w.shape, w.shape.members)
	fan.sender, fan.payload = writer, func(_ int, at time.Time) []byte { return documentOf(at, documentBytes) }
	stopLoad, loadEnded := make(chan struct{}), make(chan struct{})
	go func() { defer close(loadEnded); fan.atRate(10_000, stopLoad) }()
	waitDuring(r.options.warm)
	begin := time.Now()
	for place := range f.nodes {
		if err := r.restart(f, place); err != nil {
			return err
		}
	}
	took := time.Since(begin)
	waitDuring(r.options.warm)
	close(stopLoad)
	<-loadEnded
	waitDuring(r.options.warm) // what is under way arrives
	peak := int64(0)
	f.perTenth.Range(func(_, n any) bool { peak = max(peak, n.(*atomic.Int64).Load()); return true })
	stop()
	<-ended
	r.add(result{
		Bench: "B10", System: "restart", Shape: w.shape.String(), P50: millis(f.gaps.quantile(0.5)),
		P99: millis(f.gaps.quantile(0.99)), Lost: f.lost.Load(), Text: fmt.Sprintf(
			"%d events received, %d reconnections in %v, at most %d in 100 ms", f.events.Load(), f.restarts.Load(),
			took.Round(time.Second), peak),
	})
	return nil
}

// follows has all members of a world travel. open is closed when all have their first connection.
func (f *fleet) follows(w *world) (stop func(), ended, open chan struct{}) {
	ended, open = make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	sockets := map[*traveller]*socket{}
	var all sync.WaitGroup
	total := w.shape.rooms * w.shape.members
	for room, players := range w.players {
		for member, p := range players {
			v := &traveller{player: p, room: w.rooms[room], turn: member}
			all.Go(func() {
				f.travel(v, func(s *socket) {
					mu.Lock()
					defer mu.Unlock()
					if sockets[v] = s; len(sockets) == total && open != nil && isOpen(open) {
						close(open)
					}
					if f.stopped.Load() {
						_ = s.conn.Close()
					}
				})
			})
		}
	}
	go func() { all.Wait(); close(ended) }()
	return sync.OnceFunc(func() {
		f.stopped.Store(true)
		mu.Lock()
		defer mu.Unlock()
		for _, s := range sockets {
			_ = s.conn.Close()
		}
	}), ended, open
}

// restart drains a node, and starts another one in its place.
func (r *realtimeBench) restart(f *fleet, place int) error {
	f.mu.Lock()
	f.away = place
	old := f.nodes[place]
	f.mu.Unlock()
	_ = old.command.Process.Signal(syscall.SIGTERM)
	if err := old.command.Wait(); err != nil {
		return fmt.Errorf("a node that drains: %w", err)
	}
	n, err := r.startNode(r.options)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodes[place], f.away = n, -1
	return err
}
