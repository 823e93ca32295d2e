package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/redis/go-redis/v9"
)

// Rooms that are started one after the other, and what is written into a feed without a room.
const (
	feedStarts       = 1_000
	feedStartsAtOnce = 4
	feedEvents       = 10_000 // a second
	feedBatch        = 20
)

var feedShape = shape{rooms: feedStarts, members: 2}

// publishFeed appends entries to a feed and publishes them, as the scripts of rooms do.
var publishFeed = redis.NewScript(`
for _ = 1, ARGV[2] do
	local entry = string.format('%d', redis.call('HINCRBY', KEYS[2], 'seq', 1)) .. ARGV[1]
	if redis.call('RPUSH', KEYS[1], entry) >= 5120 then redis.call('LTRIM', KEYS[1], -4096, -1) end
	redis.call('PUBLISH', KEYS[1], entry)
end
return 1`)

// measureFeed is B12: the time from the start of a room on one node to its event at a game's
// server on another one, and how many events a node gives to the sockets of servers for a second
// of CPU.
func (r *realtimeBench) measureFeed() error {
	r.head("B12", "room.start to the event at the game's server; events of a feed for each CPU-second of a node")
	b, err := r.newNode()
	if err != nil {
		return err
	}
	defer b.stopNode()
	// Of three nodes, two take requests and one has the server.
	second, err := r.startNode(r.options)
	if err != nil {
		return err
	}
	defer r.end(second.command)
	key, err := b.serverKey()
	if err != nil {
		return err
	}
	status, body, err := b.admin.send(request{
		method: "PATCH", path: fmt.Sprintf("/api/v1/admin/games/%d", b.game), accessToken: adminKey,
		body: `{"settings":{"feed":true}}`,
	})
	if err := wantStatus(http.StatusOK)(status, body, err); err != nil {
		return err
	}
	w, err := b.newWorld(feedShape, 0)
	if err != nil {
		return err
	}
	third, err := r.startNode(r.options)
	if err != nil {
		return err
	}
	defer r.end(third.command)
	if err := r.measureStarts(w, second.address, third.address, key); err != nil {
		return err
	}
	for _, sockets := range []int{1, 16} {
		// The node of the requests is pinned, and has nothing else to do now.
		if err := r.measureFeedSockets(w, key, sockets); err != nil {
			return err
		}
	}
	return nil
}

// openServers connects servers without a share to a node, which give each frame to read.
func openServers(address, key string, count int, read func(frame []byte)) (stop func(), err error) {
	var sockets []*socket
	var reading sync.WaitGroup
	stop = func() {
		for _, s := range sockets {
			_ = s.conn.Close()
		}
		reading.Wait()
	}
	for range count {
		conn, reader, err := openWebSocket(address, "/api/v1/realtime?protocol=1", "Authorization: Bearer "+key+"\r\n")
		if err != nil {
			stop()
			return nil, err
		}
		s := &socket{conn: conn, reader: reader}
		sockets = append(sockets, s)
		if _, err := s.ask(`{"id":"g","type":"game.subscribe","data":{"kinds":["rooms","seats"]}}`); err != nil {
			stop()
			return nil, err
		}
		reading.Go(func() { _ = s.eachFrame(func(frame []byte) error { read(frame); return nil }) })
	}
	return stop, nil
}

// measureStarts starts rooms by requests to two nodes, while a server listens to the third.
func (r *realtimeBench) measureStarts(w *world, second, third, key string) error {
	var began sync.Map // room → when its start was sent
	var times histogram
	var heard atomic.Int64
	stop, err := openServers(third, key, 1, func(frame []byte) {
		now := time.Now()
		for part := range bytes.SplitSeq(frame, []byte(`"type":"room.started"`)) {
			if at, ok := began.LoadAndDelete(textMember(part, "roomId")); ok {
				times.add(now.Sub(at.(time.Time)))
				heard.Add(1)
			}
		}
	})
	if err != nil {
		return err
	}
	defer stop()
	before, err := readUsage(w.nodePID, r.redis.Pid())
	if err != nil {
		return err
	}
	conns := make(chan *conn, feedStartsAtOnce)
	for i := range feedStartsAtOnce {
		c, err := dial([]string{w.nodeAddress, second}[i%2])
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		conns <- c
	}
	err = inParallel(feedStarts, feedStartsAtOnce, func(room int) error {
		c := <-conns
		defer func() { conns <- c }()
		start := w.players[room][0].post("/api/v1/game-session/start", roomBody(w.rooms[room]))
		began.Store(w.rooms[room], time.Now())
		return wantStatus(http.StatusOK)(c.send(start))
	})
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	waitDuring(time.Second) // what is under way arrives
	after, err := readUsage(w.nodePID, r.redis.Pid())
	if err != nil {
		return err
	}
	_, store, other, wall := after.since(before)
	r.add(result{
		Bench: "B12", System: "start", Shape: feedShape.String(), PerSecond: feedStarts / (wall - time.Second).Seconds(),
		P50: millis(times.quantile(0.5)), P99: millis(times.quantile(0.99)),
		StoreMicros: float64(store.Microseconds()) / feedStarts, OtherCores: other.Seconds() / wall.Seconds(),
		Lost: feedStarts - heard.Load(),
	})
	return nil
}

// measureFeedSockets writes into the feed of the free rooms, and counts what servers of one node
// get.
func (r *realtimeBench) measureFeedSockets(w *world, key string, count int) error {
	var got atomic.Int64
	mark := []byte(`"type":"room.ready"`)
	stop, err := openServers(w.nodeAddress, key, count, func(frame []byte) {
		got.Add(int64(bytes.Count(frame, mark)))
	})
	if err != nil {
		return err
	}
	defer stop()
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: w.redis.Socket, MaxRetries: -1})
	defer func() { _ = client.Close() }()
	ctx, end := context.WithCancel(context.Background())
	defer end()
	shard, _ := keys.RoomShard(w.rooms[0])
	names := []string{keys.Feed(shard, w.game), keys.FeedHead(shard, w.game)}
	entry := fmt.Sprintf("-%s|room.ready|%d|%s|4|4|7|1", eventNonce, time.Now().UnixMilli(), w.rooms[0])
	if err := publishFeed.Load(ctx, client).Err(); err != nil {
		return err
	}
	var sent atomic.Int64
	written := make(chan error, 1)
	go func() {
		for next := time.Now(); ctx.Err() == nil; next = next.Add(time.Second * feedBatch / feedEvents) {
			waitUntil(next)
			if err := publishFeed.EvalSha(ctx, client, names, entry, feedBatch).Err(); err != nil && ctx.Err() == nil {
				written <- err
				return
			}
			sent.Add(feedBatch)
		}
		written <- nil
	}()
	waitDuring(r.options.warm)
	before, err := readUsage(w.nodePID, r.redis.Pid())
	if err != nil {
		return err
	}
	begun, gotBefore := sent.Load(), got.Load()
	waitDuring(r.options.runTime)
	after, err := readUsage(w.nodePID, r.redis.Pid())
	wanted, delivered := (sent.Load()-begun)*int64(count), got.Load()-gotBefore
	end()
	if writeErr := <-written; err == nil {
		err = writeErr
	}
	if err != nil {
		return err
	}
	node, store, other, wall := after.since(before)
	r.add(result{
		Bench: "B12", System: "feed", Shape: fmt.Sprintf("1 × %d", count),
		PerSecond: float64(delivered) / wall.Seconds(), PerCPUSecond: float64(delivered) / node.Seconds(),
		NodeCores: node.Seconds() / wall.Seconds(), StoreMicros: float64(store.Microseconds()) / float64(max(1, delivered)),
		OtherCores: other.Seconds() / wall.Seconds(), Lost: max(0, wanted-delivered-feedEvents*int64(count)/50),
		Text: fmt.Sprintf("the node %.2f cores", node.Seconds()/wall.Seconds()),
	})
	return nil
}
