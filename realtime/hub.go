package realtime

import (
	"context"
	"hash/maphash"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/redisdb"
)

// Options are the hub's settings. A zero field stands for its default.
type Options struct {
	Log *slog.Logger

	Subscriptions    int           // topics that one connection may follow: 16
	PerUser          int           // connections that one user may have on this node: 10
	TopicLinger      time.Duration // a topic that nobody follows stays subscribed so long: 30 s
	SnapshotTTL      time.Duration // a snapshot is good for everybody who asks within: 150 ms
	GapCheckInterval time.Duration // a silent topic is compared with its stream: 30 s

	ProbeAfter   time.Duration // silence after which the path of a message is proved by a message: 1 s
	ProbeTimeout time.Duration // how long that message may take before the connection is given up: 2 s

	PingInterval time.Duration // to the client: 25 s
	PongTimeout  time.Duration // a client that says nothing so long is gone: 60 s
	WriteTimeout time.Duration // a client that takes no frame for so long is too slow, 4008: 5 s
	CloseTimeout time.Duration // a client has so long to answer a close frame: 3 s

	DrainSpread time.Duration // reconnections are spread over it: a second for every 500 connections, 2 to 30 s
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.Subscriptions = orElse(o.Subscriptions, 16)
	o.PerUser = orElse(o.PerUser, 10)
	o.TopicLinger = orElse(o.TopicLinger, 30*time.Second)
	o.SnapshotTTL = orElse(o.SnapshotTTL, 150*time.Millisecond)
	o.GapCheckInterval = orElse(o.GapCheckInterval, 30*time.Second)
	o.ProbeAfter = orElse(o.ProbeAfter, time.Second)
	o.ProbeTimeout = orElse(o.ProbeTimeout, 2*time.Second)
	o.PingInterval = orElse(o.PingInterval, 25*time.Second)
	o.PongTimeout = orElse(o.PongTimeout, 60*time.Second)
	o.WriteTimeout = orElse(o.WriteTimeout, 5*time.Second)
	o.CloseTimeout = orElse(o.CloseTimeout, 3*time.Second)
	return o
}

func orElse[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// Hub is this node's side of real time: its sockets, the topics that they follow, and the connections to Redis that
// carry them.
type Hub struct {
	db      *redisdb.DB
	options Options
	log     *slog.Logger
	subscriptions   *subscriptionManager
	backfiller  *backfiller
	seed    maphash.Seed
	workers []chan channelMessage
	topics  sync.Map // name → *topic
	counters   counters

	writeDeadlineTick atomic.Int64  // ticks of keepHouse
	tickInterval time.Duration // between two

	baseCtx context.Context // what handlers run on; ends when Run does
	cancelBase context.CancelFunc

	conns sync.WaitGroup // sockets

	mu       sync.Mutex
	draining bool
	closed   bool
	clients    map[*Client]struct{}
	clientsByUser  map[int64]int

	taskMu sync.Mutex
	tasksClosed  bool
	tasks  sync.WaitGroup // snapshots, farewells
}

// channelMessage is a message from a channel.
type channelMessage struct{ channel, payload string }

const (
	maxWorkers    = 4
	workerBacklog = 4096
	workerBatch   = 512 // messages taken up before the sessions are woken: the busier the node, the fuller its frames
)

// New makes a hub; Run brings it to life.
func New(db *redisdb.DB, options Options) *Hub {
	h := &Hub{db: db, options: options.withDefaults(), seed: maphash.MakeSeed(), clients: map[*Client]struct{}{}, clientsByUser: map[int64]int{}}
	h.log = h.options.Log
	h.tickInterval = min(time.Second, h.options.TopicLinger/2, h.options.GapCheckInterval/2, h.options.WriteTimeout/4)
	h.baseCtx, h.cancelBase = context.WithCancel(context.Background())
	h.subscriptions = newSubscriptionManager(h)
	h.backfiller = &backfiller{hub: h, wakeup: make(chan struct{}, backfillWorkers)}
	for range min(maxWorkers, runtime.GOMAXPROCS(0)) {
		h.workers = append(h.workers, make(chan channelMessage, workerBacklog))
	}
	return h
}

// Run keeps the hub alive until ctx ends; then it cuts whatever socket is left (Drain first to part well) and returns
// when nothing of it runs any more.
func (h *Hub) Run(ctx context.Context) error {
	// What the sockets need must outlive them.
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var parts sync.WaitGroup
	parts.Go(func() { h.subscriptions.run(run) })
	parts.Go(func() { h.runJanitor(run) })
	for range backfillWorkers {
		parts.Go(func() { h.backfiller.run(run) })
	}
	for _, in := range h.workers {
		parts.Go(func() { h.runWorker(run, in) })
	}

	<-ctx.Done()
	h.closeAll()
	impatience := time.AfterFunc(h.options.WriteTimeout, h.cancelBase)
	h.conns.Wait()
	impatience.Stop()
	h.cancelBase()
	h.taskMu.Lock()
	h.tasksClosed = true
	h.taskMu.Unlock()
	h.tasks.Wait()
	cancel()
	parts.Wait()
	return nil
}

// addClient admits a peer, or tells why not.
func (h *Hub) addClient(p *Client) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch user := p.session.User; {
	case h.draining:
		return apierror.Draining
	case h.clientsByUser[user] >= h.options.PerUser:
		return apierror.RateLimited.WithReason("a player may have %d connections", h.options.PerUser)
	default:
		h.clientsByUser[user]++
	}
	h.clients[p] = struct{}{}
	h.conns.Add(1)
	return nil
}

func (h *Hub) removeClient(p *Client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.clients, p)
	if h.clientsByUser[p.session.User]--; h.clientsByUser[p.session.User] == 0 {
		delete(h.clientsByUser, p.session.User)
	}
}

// listClients lists the peers.
func (h *Hub) listClients() []*Client {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*Client, 0, len(h.clients))
	for p := range h.clients {
		all = append(all, p)
	}
	return all
}

// closeAll ends all sockets without a word, those too that are about to open.
func (h *Hub) closeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.draining, h.closed = true, true
	for p := range h.clients {
		if p.conn != nil {
			_ = p.conn.Close()
		}
	}
}

// setConn makes the connection of a peer known, so that it can be cut.
func (h *Hub) setConn(p *Client, conn net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.conn = conn
	if h.closed {
		_ = conn.Close()
	}
}

// startTask runs a task that Run waits for; it answers false when that is over.
func (h *Hub) startTask(task func()) bool {
	h.taskMu.Lock()
	defer h.taskMu.Unlock()
	if h.tasksClosed {
		return false
	}
	h.tasks.Go(task)
	return true
}

// acquireTopic finds or makes a topic, for one more user.
func (h *Hub) acquireTopic(name string) (*topic, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, apierror.Draining
	}
	if v, ok := h.topics.Load(name); ok {
		t := v.(*topic)
		t.refs++
		return t, nil
	}
	t := newTopic(h, name)
	t.refs = 1
	h.topics.Store(name, t)
	h.counters.topics.Add(1)
	h.subscriptions.add(t)
	return t, nil
}

func (h *Hub) releaseTopic(t *topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.refs--; t.refs == 0 {
		t.idleSince = time.Now()
	}
}

// detachCursor takes a cursor out of its topic.
func (h *Hub) detachCursor(c *cursor) {
	c.topic.removeCursor(c)
	h.releaseTopic(c.topic)
}

// dispatch hands a message to the worker of its topic. It never waits: a line that waits is cut by Redis. What does
// not fit is read from the stream.
func (h *Hub) dispatch(channel, payload string) {
	select {
	case h.workers[maphash.String(h.seed, channel)%uint64(len(h.workers))] <- channelMessage{channel, payload}:
	default:
		h.counters.overflows.Add(1)
		if v, ok := h.topics.Load(channel); ok && payload[0] != ephemeralPrefix {
			v.(*topic).requestBackfill(false)
		}
	}
}

// runWorker delivers the messages of some topics, in order.
func (h *Hub) runWorker(ctx context.Context, in <-chan channelMessage) {
	var changed []*topic
	for {
		var d channelMessage
		select {
		case <-ctx.Done():
			return
		case d = <-in:
		}
		changed = changed[:0]
		for n := 1; ; n++ {
			if t := h.handleMessage(d); t != nil && !t.changed {
				t.changed = true
				changed = append(changed, t)
			}
			if n == workerBatch {
				break
			}
			select {
			case d = <-in:
				continue
			default:
			}
			break
		}
		for i, t := range changed {
			changed[i], t.changed = nil, false
			t.notifyCursors(false)
		}
	}
}

// handleMessage takes one message and answers the topic that has something new by it.
func (h *Hub) handleMessage(d channelMessage) *topic {
	v, ok := h.topics.Load(d.channel)
	if !ok || d.payload == "" {
		return nil
	}
	t := v.(*topic)
	h.counters.messages.Add(1)
	if d.payload[0] == ephemeralPrefix {
		if w, ok := parseEphemeral(d.payload); ok {
			t.deliverEphemeral(w)
		}
		return nil
	}
	if e, ok := parseMessage(d.payload); ok && t.addEvent(e) {
		return t
	}
	return nil
}

// Broadcast sends a frame to the other sessions that follow a topic, on every node, or to those of some users. It is not stored,
// arrives at most once, and keeps the order of what one peer relays. The frame must be one JSON value: it may
// share an array with others.
func (h *Hub) Broadcast(ctx context.Context, topic string, from *Client, to []int64, frame []byte) error {
	w := ephemeralMessage{sender: from.id, seq: from.ephemeralSeq.Add(1), recipients: to, frame: frame}
	return h.publish(ctx, topic, w.encode())
}

// runJanitor lets go of topics that nobody follows, doubts those that are silent for long, and closes clients that stand still.
func (h *Hub) runJanitor(ctx context.Context) {
	tick := time.NewTicker(h.tickInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			h.topics.Range(func(_, v any) bool {
				h.evictIdle(v.(*topic), now)
				return true
			})
			beat := h.writeDeadlineTick.Add(1)
			for _, p := range h.listClients() {
				p.checkWriteStall(beat)
			}
		}
	}
}

func (h *Hub) evictIdle(t *topic, now time.Time) {
	h.mu.Lock()
	if t.refs == 0 && now.Sub(t.idleSince) >= h.options.TopicLinger {
		h.topics.Delete(t.name)
		h.counters.topics.Add(-1)
		h.subscriptions.remove(t)
		h.mu.Unlock()
		return
	}
	followed := t.refs > 0
	h.mu.Unlock()
	t.shrink()
	t.mu.Lock()
	defer t.mu.Unlock()
	if followed && t.buffer.loaded && now.Sub(t.lastActivity) >= h.options.GapCheckInterval {
		t.lastActivity = now
		t.requestBackfillLocked(false)
	}
}

// Draining tells whether new sockets are refused.
func (h *Hub) Draining() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.draining
}

// Drain refuses new sockets, tells every client when to come back and closes its socket then (1012). It returns when the last one
// is gone, which takes two thirds of ctx's time or less; when ctx ends first, the rest is cut and the error is ctx's.
func (h *Hub) Drain(ctx context.Context) error {
	h.mu.Lock()
	h.draining = true
	h.mu.Unlock()
	all := h.listClients()
	spread := h.options.DrainSpread
	if spread == 0 {
		spread = min(max(time.Duration(len(all))*time.Second/500, 2*time.Second), 30*time.Second)
	}
	if deadline, ok := ctx.Deadline(); ok {
		spread = max(0, min(spread, time.Until(deadline)*2/3))
	}
	for _, p := range all {
		slot := time.Duration(mathrand.Int64N(int64(spread) + 1))
		_ = p.Send(encodeDraining(slot))
		time.AfterFunc(slot, func() { p.Close(CloseRestart, "restart") })
	}
	gone := make(chan struct{})
	go func() { h.conns.Wait(); close(gone) }()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		h.closeAll()
		select {
		case <-gone:
		case <-time.After(h.options.WriteTimeout):
		}
		return ctx.Err()
	}
}
