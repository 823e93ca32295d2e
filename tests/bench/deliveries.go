package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// What can be measured under a load of messages.
const (
	systemEvents = "events" // events of rooms, through a node
	systemRelay  = "relay"  // messages of players, through a node
)

// allSystems are in the order in which they are measured: the floor of all ratios first.
var allSystems = []string{floorGorilla, floorRaw, systemEvents, systemRelay, floorCoalescing, floorStored, floorNaive}

const (
	documentBytes      = 200 // of an event
	relayDocumentBytes = 100
)

// target is a process that delivers, with the sockets that receive.
type target struct {
	system  string
	fanout  *fanout
	pid     int
	metrics string // URL of a node's; "" for none
	stop    func()
	sockets [][]*socket
}

// newTarget starts what is measured, and connects the sockets.
func (r *realtimeBench) newTarget(system string, s shape) (*target, error) {
	if system == systemEvents || system == systemRelay {
		return r.newNodeTarget(system, s, 0)
	}
	return r.newFloorTarget(system, s)
}

// newNodeTarget starts a node. The last so many members of each room read slowly, and do not count.
func (r *realtimeBench) newNodeTarget(system string, s shape, slow int) (*target, error) {
	b, err := r.newNode()
	if err != nil {
		return nil, err
	}
	t := &target{system: system, pid: b.nodePID, metrics: "http://" + b.internalAddress + "/metrics"}
	w, err := b.newWorld(s, 0)
	if err == nil {
		err = w.openSockets(b.nodeAddress)
	}
	t.stop = func() { w.hangUp(); t.hangUp(); b.stopNode() }
	if err != nil {
		t.stop()
		return nil, err
	}
	fast := len(w.sockets[0]) - slow
	t.sockets = make([][]*socket, s.rooms)
	for room, members := range w.sockets {
		t.sockets[room] = members[:fast]
		for _, member := range members[fast:] {
			go member.readSlowly()
		}
	}
	if system == systemEvents {
		t.fanout = newFanout(s, fast)
		t.fanout.payload = func(_ int, at time.Time) []byte { return documentOf(at, documentBytes) }
		t.fanout.sender, err = w.newEventWriter(context.Background())
	} else {
		t.fanout = newFanout(s, len(w.sockets[0])-s.socketsPerSeat()) // the sender's own do not get it
		t.fanout.mayBeLost = true
		t.fanout.payload = func(_ int, at time.Time) []byte { return documentOf(at, relayDocumentBytes) }
		t.fanout.sender = newRelaySender(w)
	}
	if err != nil {
		t.stop()
		return nil, err
	}
	t.fanout.read(t.sockets)
	return t, nil
}

func (r *realtimeBench) newFloorTarget(system string, s shape) (*target, error) {
	address, err := freeAddr()
	if err != nil {
		return nil, err
	}
	command := onNodeCPU(r.options, r.self(), "-floor", system, "-listen", address, "-store",
		cmp.Or(r.options.storeURL, r.redis.URL()))
	t := &target{system: system, sockets: make([][]*socket, s.rooms)}
	t.stop = func() { t.hangUp(); r.end(command) }
	if t.pid, err = r.start(command, "http://"+address+"/readyz"); err != nil {
		t.stop()
		return nil, err
	}
	for room := range t.sockets {
		t.sockets[room] = make([]*socket, s.members)
	}
	err = inParallel(s.rooms*s.members, 64, func(i int) error {
		room, member := i%s.rooms, i/s.rooms
		conn, reader, err := openWebSocket(address, "/?room="+strconv.Itoa(room), "")
		t.sockets[room][member] = &socket{conn: conn, reader: reader, room: room, member: member}
		return err
	})
	t.fanout = newFanout(s, s.members)
	if err == nil {
		t.fanout.payload, err = framePayload(documentBytes)
	}
	if err == nil && (system == floorRaw || system == floorGorilla) {
		t.fanout.sender, err = openFeed(address)
	} else if err == nil {
		client := redis.NewClient(&redis.Options{Network: "unix", Addr: r.redis.Socket, MaxRetries: -1})
		t.fanout.sender, t.fanout.mayBeLost = &channelSender{client}, true
		if system == floorStored {
			t.fanout.sender, err = newStoredSender(context.Background(), client, s.rooms)
		}
	}
	if err != nil {
		t.stop()
		return nil, err
	}
	t.fanout.read(t.sockets)
	return t, nil
}

// hangUp closes the sockets.
func (t *target) hangUp() {
	if t.fanout != nil {
		if relay, ok := t.fanout.sender.(*relaySender); ok {
			relay.close()
		}
	}
	for _, members := range t.sockets {
		for _, s := range members {
			if s != nil && s.conn != nil {
				_ = s.conn.Close()
			}
		}
	}
	if t.fanout != nil {
		t.fanout.readers.Wait()
	}
}

// framePayload returns what makes payloads that are events already.
func framePayload(document int) (func(room int, at time.Time) []byte, error) {
	template, err := frameOf(documentOf(time.Now(), document))
	place := bytes.Index(template, timeMark) + len(timeMark)
	return func(_ int, at time.Time) []byte {
		frame := bytes.Clone(template)
		strconv.AppendInt(frame[place:place], at.UnixNano(), 10)
		return frame
	}, err
}

// channelSender publishes on the channels of the floors.
type channelSender struct{ client *redis.Client }

func (c *channelSender) send(batch []delivery) error {
	pipe := c.client.Pipeline()
	for _, d := range batch {
		pipe.Publish(context.Background(), floorChannels+strconv.Itoa(d.room), d.payload)
	}
	_, err := pipe.Exec(context.Background())
	return err
}

// newStoredSender returns what writes events as eventWriter does for a node, but of rooms that have
// nothing else, into the channels of the floors.
func newStoredSender(ctx context.Context, client *redis.Client, rooms int) (*eventWriter, error) {
	e := &eventWriter{client: client}
	pipe := client.Pipeline()
	for room := range rooms {
		key := "bench:room:" + strconv.Itoa(room)
		pipe.HSet(ctx, key, "live", "||0|"+eventNonce+"|")
		e.rooms, e.topics = append(e.rooms, key), append(e.topics, floorChannels+strconv.Itoa(room))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	return e, publishNext.Load(ctx, client).Err()
}

// measureLoad runs a load for the warm-up and the measured time.
func (r *realtimeBench) measureLoad(t *target, load func(stop <-chan struct{})) (result, error) {
	f, o := t.fanout, r.options
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() { defer close(ended); load(stop) }()
	waitDuring(o.warm)
	defer collectNoGarbage()()
	f.latency.reset()
	deliveries, frames := f.total()
	messages := f.publishedTotal()
	heapBefore, err := readHeapUse(t.metrics)
	if err != nil {
		return result{}, err
	}
	before, err := readUsage(t.pid, r.redis.Pid())
	if err != nil {
		return result{}, err
	}
	waitDuring(o.runTime)
	after, err := readUsage(t.pid, r.redis.Pid())
	if err != nil {
		return result{}, err
	}
	deliveriesAfter, framesAfter := f.total()
	messages = f.publishedTotal() - messages
	heap, err := readHeapUse(t.metrics)
	if err != nil {
		return result{}, err
	}
	p50, p99 := f.latency.quantile(0.50), f.latency.quantile(0.99)
	close(stop)
	<-ended
	lost := f.settle()
	node, store, other, wall := after.since(before)
	n := float64(deliveriesAfter - deliveries)
	m := result{
		System: t.system, Shape: f.shape.String(), PerSecond: n / wall.Seconds(), PerCPUSecond: n / node.Seconds(),
		NodeCores: node.Seconds() / wall.Seconds(), EventsPerFrame: n / float64(framesAfter-frames),
		StoreMicros: float64(store.Microseconds()) / n, P50: millis(p50), P99: millis(p99),
		OtherCores: other.Seconds() / wall.Seconds(), Lost: lost,
	}
	if t.metrics != "" {
		m.AllocatedBytes = (heap.allocatedBytes - heapBefore.allocatedBytes) / float64(max(1, messages))
		m.Collections = int(heap.collections - heapBefore.collections)
		m.Text = fmt.Sprintf("%.0f bytes of heap a message, %d collections", m.AllocatedBytes, m.Collections)
	}
	// The next measurement begins without what this one left behind.
	for room := range f.shape.rooms {
		f.writtenOff[room].Add(f.missing(room))
	}
	if fault := f.fault.Load(); fault != nil {
		return m, fmt.Errorf("%s: %w", t.system, *fault)
	}
	return m, nil
}

// loadMemoryBytes is how much memory the load may have before it collects its garbage all the same.
const loadMemoryBytes = 4 << 30

// collectNoGarbage lets the load collect no garbage until it calls restore: with thousands of
// sockets on one processor, all that arrives meanwhile looks late, whoever sent it.
func collectNoGarbage() (restore func()) {
	runtime.GC()
	limit, percent := debug.SetMemoryLimit(loadMemoryBytes), debug.SetGCPercent(-1)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}

// measureDeliveries is B1: how many deliveries a CPU second of the node makes.
func (r *realtimeBench) measureDeliveries() error {
	r.head("B1", "deliveries by CPU second of the node, and to one write of gorilla for each")
	for _, s := range r.options.shapes {
		floor := map[int]float64{}
		for _, system := range allSystems {
			if !slices.Contains(r.options.systems, system) {
				continue
			}
			t, err := r.newTarget(system, s)
			if err != nil {
				return fmt.Errorf("B1, %s, %s: %w", system, s, err)
			}
			for _, underway := range r.options.underway {
				m, err := r.measureLoad(t, func(stop <-chan struct{}) { t.fanout.saturate(underway, stop) })
				if err != nil {
					t.stop()
					return err
				}
				if m.Bench, m.Underway = "B1", underway; system == floorGorilla {
					floor[underway] = m.PerCPUSecond
				}
				if floor[underway] > 0 {
					m.Ratio = m.PerCPUSecond / floor[underway]
				}
				r.add(m)
			}
			t.stop()
		}
	}
	return nil
}

// latencySystems are what B2 measures at the rate of -rate, in this order. If any of them is in
// -systems, so are the first three: what all are compared with, and the floors with a store in
// their path.
var latencySystems = []string{floorGorilla, floorCoalescing, floorStored, floorRaw, floorNaive, systemEvents}

// storeFloors are the floors that send what a system sends through the store.
var storeFloors = map[string]string{systemEvents: floorStored, systemRelay: floorCoalescing}

// measureLatency is B2: how late messages are at a fixed rate.
func (r *realtimeBench) measureLatency() error {
	r.head("B2", fmt.Sprintf("time from send to receipt at %s deliveries a second; the relay at half of its most",
		writeNumber(r.options.rate)))
	always := latencySystems[:3]
	for _, s := range r.options.shapes {
		isNamed := func(system string) bool { return slices.Contains(r.options.systems, system) }
		if slices.ContainsFunc(latencySystems, isNamed) {
			systems := slices.DeleteFunc(slices.Clone(latencySystems), func(system string) bool {
				return !slices.Contains(always, system) && !isNamed(system)
			})
			if err := r.measureLatencyAt(s, r.options.rate, systems, ""); err != nil {
				return err
			}
		}
		if !isNamed(systemRelay) {
			continue
		}
		rate, origin, err := r.relayRate(s)
		if err != nil {
			return err
		}
		systems := []string{floorGorilla, floorCoalescing, systemRelay}
		if err := r.measureLatencyAt(s, rate, systems, "at "+writeNumber(rate)+", "+origin); err != nil {
			return err
		}
	}
	return nil
}

// measureLatencyAt measures systems at one rate, gorilla first and then coalescing.
func (r *realtimeBench) measureLatencyAt(s shape, rate float64, systems []string, text string) error {
	p99 := map[string]float64{}
	for _, system := range systems {
		t, err := r.newTarget(system, s)
		if err != nil {
			return fmt.Errorf("B2, %s, %s: %w", system, s, err)
		}
		m, err := r.measureLoad(t, func(stop <-chan struct{}) { t.fanout.atRate(rate, stop) })
		t.stop()
		if err != nil {
			return err
		}
		p99[system] = m.P99
		m.Bench, m.Ratio = "B2", m.P99/p99[floorGorilla]
		notes := []string{text, "", m.Text}
		if floor := storeFloors[system]; p99[floor] > 0 {
			notes[1] = fmt.Sprintf("p99 %.2f of %s", m.P99/p99[floor], floor)
		}
		m.Text = strings.Join(slices.DeleteFunc(notes, func(note string) bool { return note == "" }), "; ")
		r.add(m)
	}
	return nil
}

const (
	// saturationTime is how long B2 finds out how much the relay can make, after as long to warm up.
	saturationTime     = 5 * time.Second
	saturationUnderway = 16 // messages in each room
)

// relayRate returns the rate at which B2 measures the relay, in deliveries a second, and where it
// is from: -relayrate, or half of the most that B1 has shown in this run, or that a short load
// shows now.
func (r *realtimeBench) relayRate(s shape) (rate float64, origin string, err error) {
	if r.options.relayRate > 0 {
		return r.options.relayRate, "as -relayrate says", nil
	}
	most := 0.0
	for _, m := range r.results {
		if m.Bench == "B1" && m.System == systemRelay && m.Shape == s.String() {
			most = max(most, m.PerSecond)
		}
	}
	if most > 0 {
		return most / 2, "half of its most in B1", nil
	}
	t, err := r.newTarget(systemRelay, s)
	if err != nil {
		return 0, "", fmt.Errorf("B2, %s, %s: %w", systemRelay, s, err)
	}
	defer t.stop()
	short := *r
	short.options.warm, short.options.runTime = saturationTime, saturationTime
	m, err := short.measureLoad(t, func(stop <-chan struct{}) { t.fanout.saturate(saturationUnderway, stop) })
	return m.PerSecond / 2, "half of its most in 5 seconds", err
}

// newNode starts a node on the store, which it empties before.
func (r *realtimeBench) newNode() (*bench, error) {
	if err := r.emptyStore(); err != nil {
		return nil, err
	}
	if err := r.addNode(r.options); err != nil {
		return nil, err
	}
	return r.newBench(r.options)
}

func (b *bench) stopNode() {
	for _, c := range append(b.nodeConns, b.admin) {
		_ = c.Close()
	}
	b.end(b.node)
}

// end ends a process at once.
func (s *servers) end(c *exec.Cmd) {
	if c.Process != nil {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
}

func (r *realtimeBench) emptyStore() error {
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: r.redis.Socket})
	defer func() { _ = client.Close() }()
	if err := client.FlushAll(context.Background()).Err(); err != nil {
		return err
	}
	return removeState(r.binaryDir, r.parlor(), r.self())
}

// removeState removes what nodes have written in their folder, so that the next one finds no mark
// of another history.
func removeState(dir string, keep ...string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if path := dir + "/" + e.Name(); !slices.Contains(keep, path) {
			_ = os.RemoveAll(path)
		}
	}
	return err
}

// waitDuring lets the load run for d: a benchmark measures a time, not a condition.
func waitDuring(d time.Duration) { <-time.After(d) }
