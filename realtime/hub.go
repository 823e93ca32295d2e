package realtime

import (
	"cmp"
	"context"
	"hash/maphash"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// Options are the hub's settings. A zero field means the default, which its comment ends with.
type Options struct {
	Log      *slog.Logger // slog.Default()
	Observer Observer     // none

	TopicsPerConnection int           // topics per connection: 32
	ConnectionsPerUser  int           // connections per user on this node: 10
	TopicLinger         time.Duration // how long a topic without subscribers stays subscribed: 30 s
	SnapshotTTL         time.Duration // how long a snapshot may serve others than those who waited for it: 150 ms
	ReauthorizeInterval time.Duration // after which Subscription.Authorize is called again: 25 s
	GapCheckInterval    time.Duration // silence after which a room is compared with its list: 30 s
	// UserGapCheckInterval is GapCheckInterval of every other topic. Every socket has two of them, and
	// the probes prove that their channels are heard: 5 min.
	UserGapCheckInterval time.Duration
	SourceInterval       time.Duration // between two reads of a Source: 500 ms
	EventLifetime        time.Duration // after which events that all clients have are kept no longer: 60 s

	ProbeAfter   time.Duration // silence of a pub/sub connection after which it is probed: 1 s
	ProbeTimeout time.Duration // how long a probe may take before the connection is replaced: 2 s

	PingInterval time.Duration // between pings to a client: 25 s
	PongTimeout  time.Duration // silence after which a client is considered gone: 60 s
	WriteTimeout time.Duration // how long a client may take over one frame, else 4008: 5 s
	CloseTimeout time.Duration // how long a client may take to return a close frame: 3 s

	StaleAfter time.Duration // silence of the store after which clients get server.stale: 3 s
	MoveAfter  time.Duration // silence of the store after which clients are sent to other nodes: 8 s
	MoveSpread time.Duration // over which their sockets are closed: 2 s
	AskEvery   time.Duration // between two questions to other nodes while the store is silent: 1 s
	// OtherServes asks other nodes and reports whether one of them has the store: none. It must return
	// within AskEvery.
	OtherServes func(context.Context) bool

	DrainSpread time.Duration // over which Drain spreads reconnections: 1 s per 500 connections, 2 to 30 s
}

func (o Options) withDefaults() Options {
	o.Log = cmp.Or(o.Log, slog.Default())
	o.TopicsPerConnection = cmp.Or(o.TopicsPerConnection, 32)
	o.ConnectionsPerUser = cmp.Or(o.ConnectionsPerUser, 10)
	o.TopicLinger = cmp.Or(o.TopicLinger, 30*time.Second)
	o.SnapshotTTL = cmp.Or(o.SnapshotTTL, 150*time.Millisecond)
	o.ReauthorizeInterval = cmp.Or(o.ReauthorizeInterval, 25*time.Second)
	o.GapCheckInterval = cmp.Or(o.GapCheckInterval, 30*time.Second)
	o.UserGapCheckInterval = cmp.Or(o.UserGapCheckInterval, 5*time.Minute)
	o.SourceInterval = cmp.Or(o.SourceInterval, 500*time.Millisecond)
	o.EventLifetime = cmp.Or(o.EventLifetime, time.Minute)
	o.ProbeAfter = cmp.Or(o.ProbeAfter, time.Second)
	o.ProbeTimeout = cmp.Or(o.ProbeTimeout, 2*time.Second)
	o.PingInterval = cmp.Or(o.PingInterval, 25*time.Second)
	o.PongTimeout = cmp.Or(o.PongTimeout, 60*time.Second)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 5*time.Second)
	o.CloseTimeout = cmp.Or(o.CloseTimeout, 3*time.Second)
	o.StaleAfter = cmp.Or(o.StaleAfter, 3*time.Second)
	o.MoveAfter = cmp.Or(o.MoveAfter, 8*time.Second)
	o.MoveSpread = cmp.Or(o.MoveSpread, 2*time.Second)
	o.AskEvery = cmp.Or(o.AskEvery, time.Second)
	return o
}

// Hub holds this node's sockets, the topics that they subscribe to, and the connections to Redis
// that carry the topics' channels.
type Hub struct {
	db            *redisdb.DB
	options       Options
	log           *slog.Logger
	pubsubManager *pubsubManager
	backfiller    *backfiller
	staleWatch    *staleWatch
	hashSeed      maphash.Seed
	workerQueues  []chan channelMessage
	topics        sync.Map // name → *topic
	states        stateTopics
	counters      counters

	janitorTick     atomic.Int64 // ticks of runJanitor
	janitorInterval time.Duration

	baseCtx    context.Context // of handlers and background reads; ends with Run
	cancelBase context.CancelFunc

	clientGroup sync.WaitGroup // open sockets

	mu                sync.Mutex
	draining          bool
	closed            bool
	clients           map[*Client]struct{}
	clientCountByUser map[int64]int

	workers workerPool // runs messages

	taskMu      sync.Mutex
	tasksClosed bool
	taskGroup   sync.WaitGroup // snapshots, close handshakes
}

// channelMessage is a message from a channel.
type channelMessage struct{ channel, payload string }

const (
	maxMessageWorkers     = 4
	workerBacklogMessages = 32768
	// Messages that a worker handles before it notifies the clients. The busier the node, the fuller
	// its frames.
	workerBatchMessages = 8192
)

// New returns a hub. It does nothing until Run is called.
func New(db *redisdb.DB, options Options) *Hub {
	h := &Hub{
		db: db, options: options.withDefaults(), hashSeed: maphash.MakeSeed(),
		clients: map[*Client]struct{}{}, clientCountByUser: map[int64]int{},
	}
	o := h.options
	h.log = o.Log
	h.janitorInterval = min(time.Second, o.TopicLinger/2, o.GapCheckInterval/2, o.UserGapCheckInterval/2,
		o.EventLifetime/2, o.ReauthorizeInterval/4, o.WriteTimeout/4)
	h.baseCtx, h.cancelBase = context.WithCancel(context.Background())
	h.pubsubManager = newPubsubManager(h)
	h.backfiller = &backfiller{hub: h, wakeup: make(chan struct{}, backfillWorkers)}
	h.staleWatch = &staleWatch{hub: h}
	for range min(maxMessageWorkers, runtime.GOMAXPROCS(0)) {
		h.workerQueues = append(h.workerQueues, make(chan channelMessage, workerBacklogMessages))
	}
	return h
}

// Run runs the hub until ctx ends. Then it closes the sockets that are left, without a close frame,
// and returns when no goroutine of the hub runs any more. Call Drain first to close sockets
// gracefully.
func (h *Hub) Run(ctx context.Context) error {
	// The background goroutines must outlive the sockets.
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var goroutines sync.WaitGroup
	goroutines.Go(func() { h.pubsubManager.run(background) })
	goroutines.Go(func() { h.runJanitor(background) })
	goroutines.Go(func() { h.staleWatch.run(background) })
	for range backfillWorkers {
		goroutines.Go(func() { h.backfiller.run(background) })
	}
	for _, in := range h.workerQueues {
		goroutines.Go(func() { h.runWorker(background, in) })
	}

	<-ctx.Done()
	h.closeAllClients()
	maxWait := time.AfterFunc(h.options.WriteTimeout, h.cancelBase)
	h.clientGroup.Wait()
	maxWait.Stop()
	h.cancelBase()
	h.taskMu.Lock()
	h.tasksClosed = true
	h.taskMu.Unlock()
	h.taskGroup.Wait()
	cancel()
	goroutines.Wait()
	h.workers.stop()
	return nil
}

// addClient admits a client. It returns draining or rate_limited.
func (h *Hub) addClient(c *Client) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch user, group := c.options.UserID, c.options.GroupID; {
	case h.draining:
		return apierror.Draining
	case group != 0:
		if c.socketKind.isFullFor(group) {
			return apierror.RateLimited.
				WithReason("a game may have %d connections of servers to a node", c.socketKind.limits.ConnectionsPerUser)
		}
		c.socketKind.clientCountByUser[group]++
	case h.clientCountByUser[user] >= h.options.ConnectionsPerUser:
		return apierror.RateLimited.WithReason("a player may have %d connections", h.options.ConnectionsPerUser)
	case c.socketKind.isFullFor(user):
		return apierror.RateLimited.
			WithReason("a player may have %d connections of this kind", c.socketKind.limits.ConnectionsPerUser)
	default:
		h.clientCountByUser[user]++
		c.socketKind.clientCountByUser[user]++
	}
	h.clients[c] = struct{}{}
	h.clientGroup.Add(1)
	return nil
}

func (h *Hub) removeClient(c *Client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.clients, c)
	if group := c.options.GroupID; group != 0 {
		countDown(c.socketKind.clientCountByUser, group)
		return
	}
	countDown(h.clientCountByUser, c.options.UserID)
	countDown(c.socketKind.clientCountByUser, c.options.UserID)
}

func countDown(counts map[int64]int, id int64) {
	if counts[id]--; counts[id] == 0 {
		delete(counts, id)
	}
}

// isFullFor reports whether a user or group has as many sockets of the kind as may be. Hub.mu must
// be held.
func (s *SocketKind) isFullFor(id int64) bool {
	most := s.limits.ConnectionsPerUser
	return most > 0 && s.clientCountByUser[id] >= most
}

func (h *Hub) listClients() []*Client {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]*Client, 0, len(h.clients))
	for c := range h.clients {
		list = append(list, c)
	}
	return list
}

// closeAllClients closes all connections without a close frame, those too that are still in their
// upgrade.
func (h *Hub) closeAllClients() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.draining, h.closed = true, true
	for c := range h.clients {
		if c.netConn != nil {
			_ = c.netConn.Close()
		}
	}
}

// setNetConn registers the connection of a client, so that closeAllClients can close it.
func (h *Hub) setNetConn(c *Client, conn net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.netConn = conn
	if h.closed {
		_ = conn.Close()
	}
}

// startTask starts a task that Run waits for. It returns false when Run no longer does.
func (h *Hub) startTask(task func()) bool {
	h.taskMu.Lock()
	defer h.taskMu.Unlock()
	if h.tasksClosed {
		return false
	}
	h.taskGroup.Go(task)
	return true
}

// acquireTopic returns the topic with one more reference. It creates the topic if this node has
// none, as a feed if feed is not nil.
func (h *Hub) acquireTopic(name string, feed *Feed) (*topic, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, apierror.Draining
	}
	if v, ok := h.topics.Load(name); ok {
		t := v.(*topic)
		t.refCount++
		return t, nil
	}
	t := newTopic(h, name)
	t.refCount = 1
	if feed != nil {
		t.becomeFeed(feed)
	}
	h.topics.Store(name, t)
	h.counters.topics.Add(1)
	if !t.isPolled() {
		h.pubsubManager.add(t)
	} else if !h.startTask(t.runSource) {
		return nil, apierror.Draining
	}
	return t, nil
}

func (h *Hub) releaseTopic(t *topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.refCount--; t.refCount == 0 {
		t.idleSince = time.Now()
	}
}

// detachCursor removes a cursor from its topic.
func (h *Hub) detachCursor(cur *cursor) {
	cur.topic.removeCursor(cur)
	h.observeEnd(cur)
	h.releaseTopic(cur.topic)
}

// dispatch passes a message to the worker of its topic. It must not block, because Redis
// disconnects a subscriber that reads too slowly. What does not fit the backlog is read from the
// list.
func (h *Hub) dispatch(channel, payload string) {
	select {
	case h.workerQueues[maphash.String(h.hashSeed, channel)%uint64(len(h.workerQueues))] <- channelMessage{
		channel,
		payload,
	}:
	default:
		h.counters.backlogOverflows.Add(1)
		if v, ok := h.topics.Load(channel); ok && !isEphemeral(payload) {
			v.(*topic).distrustChannel()
		}
	}
}

// runWorker handles the messages of some topics, in order.
func (h *Hub) runWorker(ctx context.Context, in <-chan channelMessage) {
	var changed []*topic // with events to deliver; those that pause stay
	var ephemeral ephemeralBatch
	paused := time.NewTimer(0)
	defer paused.Stop()
	for {
		var m channelMessage
		select {
		case <-ctx.Done():
			return
		case <-paused.C:
			changed = notifyTopics(changed, paused)
			continue
		case m = <-in:
		}
		for n := 1; ; n++ {
			if isEphemeral(m.payload) {
				h.handleEphemeral(m, &ephemeral)
			} else if t, replaced := h.handleMessage(m); t != nil {
				if t.newEvents == 0 {
					changed = append(changed, t)
				}
				t.newEvents++
				t.mustVerify = t.mustVerify || replaced
			}
			if n == workerBatchMessages {
				break
			}
			select {
			case m = <-in:
				continue
			default:
			}
			break
		}
		ephemeral.flush()
		changed = notifyTopics(changed, paused)
	}
}

// notifyTopics notifies the cursors of topics. It returns the topics that pause, and sets the timer
// to the end of the first pause.
func notifyTopics(topics []*topic, paused *time.Timer) []*topic {
	kept := topics[:0]
	var firstEnd time.Time
	for _, t := range topics {
		if t.pauses() {
			if kept = append(kept, t); len(kept) == 1 || t.pauseEnd.Before(firstEnd) {
				firstEnd = t.pauseEnd
			}
			continue
		}
		t.notifyAndPause()
	}
	clear(topics[len(kept):])
	if len(kept) > 0 {
		paused.Reset(time.Until(firstEnd))
	}
	return kept
}

// handleEphemeral queues an ephemeral message at its clients.
func (h *Hub) handleEphemeral(m channelMessage, batch *ephemeralBatch) {
	h.counters.channelMessages.Add(1)
	v, ok := h.topics.Load(m.channel)
	if !ok {
		return
	}
	if t := v.(*topic); t.receive != nil {
		t.receive(m.payload[len(ephemeralPrefix):])
		return
	}
	if message, ok := parseEphemeral(m.payload, &batch.frames); ok {
		v.(*topic).deliverEphemeral(message, batch)
	}
}

// handleMessage handles one event. It returns the topic if that has a new event, else nil, and
// whether the topic's buffer was replaced.
func (h *Hub) handleMessage(m channelMessage) (changed *topic, replaced bool) {
	v, ok := h.topics.Load(m.channel)
	if !ok || m.payload == "" {
		return nil, false
	}
	t := v.(*topic)
	h.counters.channelMessages.Add(1)
	e, ok := parseEntry(m.payload)
	if !ok {
		t.reportUnreadable(errNoHeader)
		return nil, false
	}
	added, replaced := t.addEntry(e)
	if !added {
		return nil, false
	}
	return t, replaced
}

func (h *Hub) runJanitor(ctx context.Context) {
	ticker := time.NewTicker(h.janitorInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			h.maintain(ctx, now)
		}
	}
}

// maintain evicts topics without subscribers, compares silent topics with their lists, closes
// clients that stopped reading, and asks again whether subscribers are authorized.
func (h *Hub) maintain(ctx context.Context, now time.Time) {
	pause := newPauser(ctx, int(h.counters.topics.Load()))
	h.topics.Range(func(_, v any) bool {
		h.maintainTopic(v.(*topic), now)
		return pause.after()
	})
	h.workers.endIdle(now.Add(-workerIdleTime))
	tick := h.janitorTick.Add(1)
	clients := h.listClients()
	pause = newPauser(ctx, len(clients))
	for _, c := range clients {
		c.closeIfStalled(tick)
		c.reauthorizeDue(now)
		if !pause.after() {
			break
		}
	}
}

// pauser divides a look at many things, so that events wait for a part of it only: on one processor
// they would wait for all of it, which takes some milliseconds with thousands of sockets.
type pauser struct {
	ctx         context.Context
	part, begun int // things
}

const (
	minJanitorPart   = 64 // topics or clients that are looked at without a pause
	maxJanitorPauses = 256
	janitorPause     = time.Millisecond
)

func newPauser(ctx context.Context, things int) *pauser {
	return &pauser{ctx: ctx, part: max(minJanitorPart, things/maxJanitorPauses)}
}

// after is called after each of the things, and pauses after each part. It returns false when ctx
// has ended.
func (p *pauser) after() bool {
	if p.begun++; p.begun < p.part {
		return true
	}
	p.begun = 0
	timer := time.NewTimer(janitorPause)
	defer timer.Stop()
	select {
	case <-p.ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// maintainTopic removes a topic that has had no subscriber for Options.TopicLinger. It shrinks any
// other topic, and requests a backfill for one that has been silent for its gapCheckInterval.
func (h *Hub) maintainTopic(t *topic, now time.Time) {
	h.mu.Lock()
	if t.refCount == 0 && now.Sub(t.idleSince) >= h.options.TopicLinger {
		h.topics.Delete(t.name)
		h.counters.topics.Add(-1)
		if t.isPolled() {
			close(t.gone)
		} else {
			h.pubsubManager.remove(t)
		}
		h.mu.Unlock()
		return
	}
	subscribed := t.refCount > 0
	h.mu.Unlock()
	t.evictCaches()
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.eventsNeededAt) >= h.options.EventLifetime {
		t.buffer.evictOld()
	}
	if subscribed && t.buffer.loaded && now.Sub(t.lastActivity) >= t.gapCheckInterval {
		t.lastActivity = now
		t.requestBackfillLocked(false)
	}
}

// Draining reports whether new sockets are refused.
func (h *Hub) Draining() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.draining
}

// Drain refuses new sockets, sends every client the delay after which it should reconnect, and
// closes its socket (1012) after that delay. It returns when the last socket is closed, which takes
// at most two thirds of the time that ctx has left. When ctx ends first, it closes the other
// sockets without a close frame and returns ctx's error.
func (h *Hub) Drain(ctx context.Context) error {
	h.mu.Lock()
	h.draining = true
	h.mu.Unlock()
	clients := h.listClients()
	spread := h.options.DrainSpread
	if spread == 0 {
		spread = min(max(time.Duration(len(clients))*time.Second/500, 2*time.Second), 30*time.Second)
	}
	if deadline, ok := ctx.Deadline(); ok {
		spread = max(0, min(spread, time.Until(deadline)*2/3))
	}
	for _, c := range clients {
		delay := time.Duration(mathrand.Int64N(int64(spread) + 1))
		_ = c.Send(encodeDraining(delay))
		time.AfterFunc(delay, func() { c.Close(CloseRestart, "restart") })
	}
	closed := make(chan struct{})
	go func() { h.clientGroup.Wait(); close(closed) }()
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		h.closeAllClients()
		select {
		case <-closed:
		case <-time.After(h.options.WriteTimeout):
		}
		return ctx.Err()
	}
}
