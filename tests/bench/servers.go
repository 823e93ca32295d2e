package main

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/redis/go-redis/v9"
)

// measureServers is B13: how many events of a game's feed a CPU second of the node delivers to the
// sockets of servers, and how late a start is at a server.
func (r *realtimeBench) measureServers() error {
	r.head("B13", "events of the feed to sockets of servers, by CPU second of the node: w sockets have one share each, or all")
	b, err := r.newNode()
	if err != nil {
		return err
	}
	defer b.stopNode()
	key, err := b.serverKey()
	if err != nil {
		return err
	}
	for _, load := range []struct {
		name            string
		sockets, shares int
		perSecond       int // events; 0: as many as are delivered
		batch, maxAhead int64
	}{
		{"one server", 1, 1, 0, 256, 2048},
		{"one share", 8, 1, 0, 256, 2048},
		{"64 shares", 64, 64, 0, 256, 2048},
		{"1,000 a s", 1, 1, 1000, 1, 2048},
	} {
		meter := &feedMeter{bench: b}
		stop, err := meter.openServers(key, load.sockets, load.shares)
		if err == nil {
			err = r.measureFeed(meter, load.name, load.sockets, load.shares, load.perSecond, load.batch, load.maxAhead)
		}
		stop()
		if err != nil {
			return err
		}
	}
	return nil
}

// feedMeter counts what sockets of servers get.
type feedMeter struct {
	*bench
	got, frames atomic.Int64
	latency     histogram
	written     int64
}

// openServers opens sockets that follow the feeds of the game.
func (f *feedMeter) openServers(key string, sockets, shares int) (stop func(), err error) {
	var open []*socket
	stop = func() {
		for _, s := range open {
			_ = s.conn.Close()
		}
	}
	for i := range sockets {
		conn, reader, err := openWebSocket(f.nodeAddress, "/api/v1/realtime?protocol=1", "Authorization: Bearer "+key+"\r\n")
		if err != nil {
			return stop, err
		}
		s := &socket{conn: conn, reader: reader}
		open = append(open, s)
		subscribe := fmt.Sprintf(`{"id":"s","type":"game.subscribe","data":{"kinds":["rooms"],"share":{"of":%d,"index":%d}}}`,
			shares, i%shares)
		if _, err := s.ask(subscribe); err != nil {
			return stop, err
		}
		go func() { _ = s.eachFrame(f.count) }()
	}
	return stop, nil
}

var (
	feedMark = []byte(`"type":"room.started"`)
	feedTime = []byte(`"time":"`)
)

func (f *feedMeter) count(frame []byte) error {
	n := int64(bytes.Count(frame, feedMark))
	f.frames.Add(1)
	f.got.Add(n)
	if at := bytes.LastIndex(frame, feedTime); at >= 0 && n > 0 {
		text, _, _ := bytes.Cut(frame[at+len(feedTime):], []byte(`"`))
		if sent, err := time.Parse(time.RFC3339Nano, string(text)); err == nil {
			f.latency.add(time.Since(sent))
		}
	}
	return nil
}

// write appends so many starts of different rooms to the feed, as the scripts do.
func (f *feedMeter) write(client *redis.Client, count int64) error {
	ctx := context.Background()
	list := keys.Feed(keys.EconomyShard(f.game), f.game)
	pipe := client.Pipeline()
	now := time.Now().UnixMilli()
	for range count {
		f.written++
		text := fmt.Sprintf("%d-%s|room.started|%d|0190a1b2-c3d4-8000-8001-%012d|3|4|host|%d|%d",
			f.written, eventNonce, now, f.written, now, now+7_200_000)
		pipe.RPush(ctx, list, text)
		pipe.Publish(ctx, list, text)
	}
	pipe.LTrim(ctx, list, -5000, -1)
	_, err := pipe.Exec(ctx)
	return err
}

func (r *realtimeBench) measureFeed(
	f *feedMeter, name string, sockets, shares, perSecond int, batch, maxAhead int64,
) error {
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: r.redis.Socket, MaxRetries: -1})
	defer func() { _ = client.Close() }()
	last, err := client.LIndex(context.Background(), keys.Feed(keys.EconomyShard(f.game), f.game), -1).Result()
	if err == nil {
		number, _, _ := bytes.Cut([]byte(last), []byte("-"))
		f.written, _ = strconv.ParseInt(string(number), 10, 64)
	}
	first, perEvent := f.written, int64(sockets/shares)
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		tick := time.NewTicker(time.Second / time.Duration(max(perSecond, 1000)))
		defer tick.Stop()
		for {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			if perSecond > 0 || (f.written-first)*perEvent-f.got.Load() > maxAhead*perEvent {
				<-tick.C
			}
			if (f.written-first)*perEvent-f.got.Load() > maxAhead*perEvent {
				continue
			}
			if err := f.write(client, batch); err != nil {
				ended <- err
				return
			}
		}
	}()
	waitDuring(r.options.warm)
	defer collectNoGarbage()()
	f.latency.reset()
	got, frames := f.got.Load(), f.frames.Load()
	before, err := readUsage(f.nodePID, r.redis.Pid())
	if err != nil {
		return err
	}
	waitDuring(r.options.runTime)
	after, err := readUsage(f.nodePID, r.redis.Pid())
	if err != nil {
		return err
	}
	n := float64(f.got.Load() - got)
	events := n / float64(f.frames.Load()-frames)
	close(stop)
	if err := <-ended; err != nil {
		return err
	}
	node, store, other, wall := after.since(before)
	r.add(result{
		Bench: "B13", System: name, Shape: fmt.Sprintf("%d × %d", sockets, shares), PerSecond: n / wall.Seconds(),
		PerCPUSecond: n / node.Seconds(), NodeCores: node.Seconds() / wall.Seconds(), EventsPerFrame: events,
		StoreMicros: float64(store.Microseconds()) / n, OtherCores: other.Seconds() / wall.Seconds(),
		P50: millis(f.latency.quantile(0.50)), P99: millis(f.latency.quantile(0.99)),
	})
	return nil
}
