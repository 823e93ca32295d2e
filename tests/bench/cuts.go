package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// cutter carries the connections of a process to the store, and cuts them.
type cutter struct {
	listener net.Listener
	target   string
	mu       sync.Mutex
	cut      bool
	conns    map[net.Conn]bool
}

func newCutter(target string) (*cutter, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &cutter{listener: listener, target: target, conns: map[net.Conn]bool{}}
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", target)
			if err != nil || !c.keep(near, far) {
				_ = near.Close()
				continue
			}
			go carry(near, far)
			go carry(far, near)
		}
	}()
	return c, nil
}

func carry(from, to net.Conn) {
	_, _ = io.Copy(to, from)
	_, _ = from.Close(), to.Close()
}

func (c *cutter) keep(conns ...net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range conns {
		if c.cut {
			_ = conn.Close()
		}
		c.conns[conn] = true
	}
	return !c.cut
}

// setCut ends all connections and takes no new ones, until it is called with false.
func (c *cutter) setCut(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
	for conn := range c.conns {
		_ = conn.Close()
	}
	clear(c.conns)
}

// measureCuts is B6: what is lost while the way to the store is cut three times for 300 ms, and its
// subscribers are killed three times. tests/chaos has the other faults.
func (r *realtimeBench) measureCuts() error {
	r.head("B6", "3 cuts of 300 ms between node and store, 3 × CLIENT KILL TYPE pubsub; 1,000 events a second")
	for _, system := range []string{systemEvents, floorNaive} {
		c, err := newCutter(r.redis.Addr)
		if err != nil {
			return err
		}
		own := *r
		own.options.storeURL = "redis://" + c.listener.Addr().String()
		t, err := own.newTarget(system, shape{100, 10})
		if err != nil {
			return err
		}
		store := redis.NewClient(&redis.Options{Network: "unix", Addr: r.redis.Socket})
		faults := make(chan struct{})
		m, err := own.measureLoad(t, func(stop <-chan struct{}) {
			go func() {
				defer close(faults)
				for turn := 0; turn < 6 && isOpen(stop); turn++ {
					waitDuring(r.options.runTime / 8)
					if turn%2 == 0 {
						c.setCut(true)
						waitDuring(300 * time.Millisecond)
						c.setCut(false)
					} else {
						_ = store.ClientKillByFilter(context.Background(), "TYPE", "pubsub").Err()
					}
				}
			}()
			t.fanout.atRate(10_000, stop)
			<-faults
		})
		_, _ = store.Close(), c.listener.Close()
		t.stop()
		if err != nil {
			return err
		}
		sent := int64(0)
		for i := range t.fanout.published {
			sent += t.fanout.published[i].Load() * int64(t.fanout.receivers)
		}
		m.Bench, m.Text = "B6", fmt.Sprintf("of %d deliveries", sent)
		r.add(m)
	}
	return nil
}

// lostEvents is how many events of each room a failover loses: an even number, so that the next
// change is one.
const lostEvents = 6

// measureFork is B7: how many of 200 sockets get a snapshot after a failover that lost events.
func (r *realtimeBench) measureFork() error {
	r.head("B7", "the store goes back by six events a room, as after a failover, and makes others under their numbers")
	b, err := r.newNode()
	if err != nil {
		return err
	}
	defer b.stopNode()
	const rooms, members = 20, 10
	w, err := b.newWorld(shape{rooms, members}, 0)
	if err != nil {
		return err
	}
	if err := w.openSockets(b.nodeAddress); err != nil {
		return err
	}
	defer w.hangUp()
	var snapshots, events atomic.Int64
	for _, s := range w.sockets {
		for _, member := range s {
			go func() {
				seen := false
				_ = member.eachFrame(func(frame []byte) error {
					events.Add(int64(bytes.Count(frame, []byte(`"type":"room.ready"`))))
					if !seen && bytes.Contains(frame, []byte(`"type":"room.snapshot"`)) {
						seen = true
						snapshots.Add(1)
					}
					return nil
				})
			}()
		}
	}
	change := func(times int) error {
		for range times {
			for room, id := range w.rooms {
				w.turns++
				ready := strconv.FormatBool(w.turns/rooms%2 == 0)
				p := w.players[room][0]
				body := `{"roomId":"` + id + `","ready":` + ready + `}`
				if err := wantStatus(http.StatusOK)(b.admin.send(p.post("/api/v1/game-session/ready", body))); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := change(3); err != nil {
		return err
	}
	goBack, err := w.rememberRooms()
	if err != nil {
		return err
	}
	if err := change(lostEvents); err != nil {
		return err
	}
	waitDuring(time.Second)
	received := events.Load()
	if err := goBack(); err != nil {
		return err
	}
	if err := change(1); err != nil {
		return err
	}
	begin := time.Now()
	for snapshots.Load() < rooms*members && time.Since(begin) < r.options.runTime {
		waitDuring(10 * time.Millisecond)
	}
	r.add(result{Bench: "B7", System: "events", Shape: w.shape.String(), P99: millis(time.Since(begin)), Text: fmt.Sprintf(
		"%d of %d sockets got a snapshot, after %d events", snapshots.Load(), rooms*members, received)})
	return nil
}

// rememberRooms returns what puts the rooms and their events back to what they are now.
func (w *world) rememberRooms() (goBack func() error, err error) {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: w.redis.Socket})
	kept := map[string]string{}
	for _, id := range w.rooms {
		for _, key := range roomKeys(id) {
			if kept[key], err = client.Dump(ctx, key).Result(); err != nil {
				return nil, err
			}
		}
	}
	return func() error {
		defer func() { _ = client.Close() }()
		pipe := client.TxPipeline()
		for key, value := range kept {
			pipe.RestoreReplace(ctx, key, 0, value)
		}
		_, err := pipe.Exec(ctx)
		return err
	}, nil
}
