package realtime

import (
	"context"
	"errors"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/redis/go-redis/v9"
)

// subscriptionManager connects topics to lines: one line to a single Redis, one to each master of a Cluster. When a line is lost, its topics
// are loose again and find the line to whoever holds them now.
type subscriptionManager struct {
	hub    *Hub
	wakeup   chan struct{}
	probeTasks sync.WaitGroup

	mu    sync.Mutex
	unassigned map[*topic]struct{}
	conns map[string]*pubsubConn
	backoffs map[string]backoff // after failures, by place
}

// backoff is how long a place is left alone after lines to it were lost soon after they had begun.
type backoff struct {
	failures int
	until    time.Time
}

const (
	backoffMin    = 50 * time.Millisecond
	backoffMax  = 250 * time.Millisecond
	stableAfter       = 10 * time.Second // a line that lasted so long was a good one
	subscribeBatch = 512              // channels in one SUBSCRIBE
	resolveTimeout  = 2 * time.Second
)

func newSubscriptionManager(h *Hub) *subscriptionManager {
	return &subscriptionManager{hub: h, wakeup: make(chan struct{}, 1), unassigned: map[*topic]struct{}{}, conns: map[string]*pubsubConn{}, backoffs: map[string]backoff{}}
}

func (b *subscriptionManager) wake() {
	select {
	case b.wakeup <- struct{}{}:
	default:
	}
}

func (b *subscriptionManager) add(t *topic) {
	b.mu.Lock()
	b.unassigned[t] = struct{}{}
	b.mu.Unlock()
	b.wake()
}

func (b *subscriptionManager) remove(t *topic) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.unassigned, t)
	if t.conn != nil {
		t.conn.queueChange(t, false)
		t.conn = nil
	}
}

// serverOf names the server that a topic's line leads to.
func (b *subscriptionManager) serverOf(t *topic) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.conn == nil {
		return ""
	}
	return t.conn.server
}

func (b *subscriptionManager) run(ctx context.Context) {
	var lines sync.WaitGroup
	defer b.probeTasks.Wait()
	defer lines.Wait()
	for {
		pause := b.assignTopics(ctx, &lines)
		select {
		case <-ctx.Done():
			return
		case <-b.wakeup:
		case <-pause:
		}
	}
}

// assignTopics gives every loose topic a line. The channel tells when to try those again whose server is resting.
func (b *subscriptionManager) assignTopics(ctx context.Context, lines *sync.WaitGroup) <-chan time.Time {
	b.mu.Lock()
	loose := make([]*topic, 0, len(b.unassigned))
	for t := range b.unassigned {
		loose = append(loose, t)
	}
	b.mu.Unlock()

	var wait time.Duration
	later := func(d time.Duration) {
		if wait == 0 || d < wait {
			wait = max(d, time.Millisecond)
		}
	}
	for _, t := range loose {
		place, options, err := b.resolveServer(ctx, t.name)
		if err != nil {
			later(backoffMin)
			break
		}
		b.mu.Lock()
		if _, still := b.unassigned[t]; !still {
			b.mu.Unlock()
			continue
		}
		l := b.conns[place]
		if l == nil {
			if d := time.Until(b.backoffs[place].until); d > 0 {
				later(d)
				b.mu.Unlock()
				continue
			}
			l = newPubsubConn(b, place, options, hashTag(t.name))
			b.conns[place] = l
			b.hub.counters.pubsubConns.Add(1)
			lines.Go(func() { l.run(ctx) })
		}
		delete(b.unassigned, t)
		t.conn = l
		l.queueChange(t, true)
		b.mu.Unlock()
	}
	if wait == 0 {
		return nil
	}
	return time.After(wait)
}

// resolveServer finds the server whose channels carry a topic.
func (b *subscriptionManager) resolveServer(ctx context.Context, name string) (place string, options *redis.Options, err error) {
	switch client := b.hub.db.Client.(type) {
	case *redis.ClusterClient:
		ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
		defer cancel()
		master, err := client.MasterForKey(ctx, name)
		if err != nil {
			return "", nil, err
		}
		return master.Options().Addr, master.Options(), nil
	case *redis.Client:
		return "", client.Options(), nil
	default:
		return "", nil, errors.New("the store is of an unknown kind")
	}
}

// onConnEnd takes back the topics of a line that has ended.
func (b *subscriptionManager) onConnEnd(l *pubsubConn, why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.conns, l.server)
	b.hub.counters.pubsubConns.Add(-1)
	for _, t := range l.takeTopics() {
		if t.conn == l {
			t.conn = nil
			b.unassigned[t] = struct{}{}
		}
	}
	if why == nil {
		b.wake()
		return
	}
	r := b.backoffs[l.server]
	// A line that worked is made again at once, however often that happens; one that never did, or fell silent, rests in
	// between, shortly: what happens meanwhile must still be in the stream when it is back.
	if l.ready.Load() && !errors.Is(why, errProbeTimeout) || time.Since(l.startedAt) >= stableAfter {
		r = backoff{until: l.startedAt.Add(backoffMin)}
	} else {
		d := min(backoffMin<<min(r.failures, 10), backoffMax)
		r = backoff{failures: r.failures + 1, until: time.Now().Add(d/2 + mathrand.N(d/2))}
	}
	b.backoffs[l.server] = r
	if client, ok := b.hub.db.Client.(*redis.ClusterClient); ok {
		client.ReloadState(context.Background()) // a slot may have moved
	}
	b.wake()
}

// pubsubConn is one connection that listens, with one life: go-redis would connect again by itself, but in its own time, without
// telling, and on a Cluster without subscribing to anything. Whatever goes wrong ends the line; the board makes another.
type pubsubConn struct {
	manager   *subscriptionManager
	server   string
	startedAt   time.Time
	sharded bool
	probeChannel   string // the channel that proves that messages arrive
	client  *redis.Client
	pubsub      *redis.PubSub
	wakeup    chan struct{}
	closed     chan struct{}
	closeOnce sync.Once
	closeErr     error

	lastReceived  atomic.Int64 // when anything came, in nanoseconds
	ready  atomic.Bool  // the probe's channel is subscribed
	probeSentAt atomic.Int64 // when the probe under way was sent; 0: none

	mu      sync.Mutex
	netConn    net.Conn
	aborted  bool
	topics  map[string]*topic
	changes  []subscriptionChange
	unconfirmedSubs map[string]time.Time // subscribed, not confirmed
	unconfirmedUnsubs map[string]int       // unsubscribed, not confirmed
}

type subscriptionChange struct {
	channel string
	subscribe    bool
}

var (
	errConnUsed  = errors.New("this line has ended")
	errProbeTimeout = errors.New("messages do not arrive")
	errSubscribeTimeout   = errors.New("a subscription was not confirmed")
	errUnsubscribedByServer  = errors.New("the server has unsubscribed a channel: its slot has moved")
)

func newPubsubConn(b *subscriptionManager, place string, base *redis.Options, tag string) *pubsubConn {
	l := &pubsubConn{
		manager: b, server: place, startedAt: time.Now(), sharded: b.hub.db.Kind() == redisdb.KindCluster,
		wakeup: make(chan struct{}, 1), closed: make(chan struct{}),
		topics: map[string]*topic{}, unconfirmedSubs: map[string]time.Time{}, unconfirmedUnsubs: map[string]int{},
		// The topic's tag puts the probe on the same server.
		probeChannel: keys.Probe(tag, mathrand.Uint64()),
	}
	o := *base
	dial := o.Dialer
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		l.mu.Lock()
		spent := l.netConn != nil || l.aborted
		l.mu.Unlock()
		if spent {
			return nil, errConnUsed
		}
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.aborted {
			_ = conn.Close()
			return nil, errConnUsed
		}
		l.netConn = conn
		return conn, nil
	}
	o.MaxRetries, o.DialerRetries, o.PoolSize, o.MinIdleConns = -1, 1, 1, 0
	l.client = redis.NewClient(&o)
	if l.sharded {
		l.pubsub = l.client.SSubscribe(context.Background())
	} else {
		l.pubsub = l.client.Subscribe(context.Background())
	}
	return l
}

// queueChange wants a topic's channel to be subscribed, or no longer.
func (l *pubsubConn) queueChange(t *topic, join bool) {
	l.mu.Lock()
	if join {
		l.topics[t.name] = t
	} else {
		delete(l.topics, t.name)
	}
	l.changes = append(l.changes, subscriptionChange{t.name, join})
	l.mu.Unlock()
	select {
	case l.wakeup <- struct{}{}:
	default:
	}
}

// takeTopics empties the line.
func (l *pubsubConn) takeTopics() map[string]*topic {
	l.mu.Lock()
	defer l.mu.Unlock()
	topics := l.topics
	l.topics = map[string]*topic{}
	return topics
}

// shutdown ends the line; nil means that nobody needs it.
func (l *pubsubConn) shutdown(why error) {
	l.closeOnce.Do(func() { l.closeErr = why; close(l.closed) })
}

func (l *pubsubConn) run(ctx context.Context) {
	var parts sync.WaitGroup
	l.lastReceived.Store(time.Now().UnixNano())
	// Dialling happens in the first subscription; whoever ends the line meanwhile must not wait for it.
	parts.Go(func() {
		if err := l.applyChanges(ctx, []subscriptionChange{{l.probeChannel, true}}); err != nil {
			l.shutdown(err)
			return
		}
		parts.Go(func() { l.readLoop(ctx) })
		l.writeLoop(ctx)
	})
	select {
	case <-l.closed:
	case <-ctx.Done():
		l.shutdown(nil)
	}
	l.mu.Lock()
	l.aborted = true
	if l.netConn != nil {
		_ = l.netConn.Close()
	}
	l.mu.Unlock()
	parts.Wait()
	_ = l.pubsub.Close()
	_ = l.client.Close()
	if ctx.Err() == nil && l.closeErr != nil {
		l.manager.hub.counters.reconnects.Add(1)
		l.manager.hub.log.Warn("a connection for events was lost", slog.String("server", l.server), slog.Any("error", l.closeErr))
	}
	l.manager.onConnEnd(l, l.closeErr)
}

// writeLoop sends orders and proves that the line is alive.
func (l *pubsubConn) writeLoop(ctx context.Context) {
	o := l.manager.hub.options
	tick := time.NewTicker(min(o.ProbeAfter, o.ProbeTimeout) / 8)
	defer tick.Stop()
	idle := time.Now()
	for {
		select {
		case <-l.closed:
			return
		case <-l.wakeup:
			l.mu.Lock()
			orders := l.changes
			l.changes = nil
			l.mu.Unlock()
			if err := l.applyChanges(ctx, orders); err != nil {
				l.shutdown(err)
				return
			}
		case now := <-tick.C:
			l.mu.Lock()
			if len(l.topics) > 0 {
				idle = now
			}
			late := false
			for _, sent := range l.unconfirmedSubs {
				late = late || now.Sub(sent) > o.ProbeAfter+o.ProbeTimeout
			}
			l.mu.Unlock()
			switch {
			case late:
				l.shutdown(errSubscribeTimeout)
				return
			case now.Sub(idle) > o.TopicLinger:
				l.shutdown(nil)
				return
			case !l.probeIfSilent(ctx, now):
				l.shutdown(errProbeTimeout)
				return
			}
		}
	}
}

// probeIfSilent publishes a probe when nothing was heard for a while. It answers false when a probe has not arrived in time.
func (l *pubsubConn) probeIfSilent(ctx context.Context, now time.Time) bool {
	o := l.manager.hub.options
	heard := time.Unix(0, l.lastReceived.Load())
	if sent := l.probeSentAt.Load(); sent != 0 {
		if heard.UnixNano() > sent {
			l.probeSentAt.CompareAndSwap(sent, 0) // something came, if not the probe: the line is alive
		}
		return heard.UnixNano() > sent || now.UnixNano()-sent < int64(o.ProbeTimeout)
	}
	if !l.ready.Load() || now.Sub(heard) < o.ProbeAfter {
		return true
	}
	sent := time.Now().UnixNano()
	l.probeSentAt.Store(sent)
	// A publish that hangs must not hold up the next line.
	l.manager.probeTasks.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, o.ProbeTimeout)
		defer cancel()
		_ = l.manager.hub.publish(ctx, l.probeChannel, strconv.FormatInt(sent, 10)) // whether it arrives is what counts
	})
	return true
}

// applyChanges subscribes and unsubscribes, in the order of the orders. On a Cluster one command names channels of one slot only.
func (l *pubsubConn) applyChanges(ctx context.Context, orders []subscriptionChange) error {
	for len(orders) > 0 {
		n := 1
		for n < len(orders) && n < subscribeBatch && orders[n].subscribe == orders[0].subscribe {
			n++
		}
		groups := map[string][]string{}
		for _, o := range orders[:n] {
			tag := ""
			if l.sharded {
				tag = hashTag(o.channel)
			}
			groups[tag] = append(groups[tag], o.channel)
		}
		for _, channels := range groups {
			if err := l.sendCommand(ctx, orders[0].subscribe, channels); err != nil {
				return err
			}
		}
		orders = orders[n:]
	}
	return nil
}

func (l *pubsubConn) sendCommand(ctx context.Context, join bool, channels []string) error {
	now := time.Now()
	l.mu.Lock()
	for _, channel := range channels {
		if join {
			l.unconfirmedSubs[channel] = now
		} else {
			l.unconfirmedUnsubs[channel]++
		}
	}
	l.mu.Unlock()
	switch {
	case join && l.sharded:
		return l.pubsub.SSubscribe(ctx, channels...)
	case join:
		return l.pubsub.Subscribe(ctx, channels...)
	case l.sharded:
		return l.pubsub.SUnsubscribe(ctx, channels...)
	default:
		return l.pubsub.Unsubscribe(ctx, channels...)
	}
}

// readLoop hands on what comes, until the line ends.
func (l *pubsubConn) readLoop(ctx context.Context) {
	hub := l.manager.hub
	for {
		message, err := l.pubsub.Receive(ctx)
		if err != nil {
			l.shutdown(err)
			return
		}
		now := time.Now().UnixNano()
		l.lastReceived.Store(now)
		switch m := message.(type) {
		case *redis.Message:
			if m.Channel != l.probeChannel {
				hub.dispatch(m.Channel, m.Payload)
			} else if sent, err := strconv.ParseInt(m.Payload, 10, 64); err == nil {
				hub.counters.lag.Store(now - sent)
				l.probeSentAt.CompareAndSwap(sent, 0)
			}
		case *redis.Subscription:
			if !l.handleConfirmation(m) {
				l.shutdown(errUnsubscribedByServer)
				return
			}
		}
	}
}

// handleConfirmation takes the server's word that a channel is subscribed: from now on nothing is missed, and what was is read from
// the stream. It answers false when the server ended a subscription by itself.
func (l *pubsubConn) handleConfirmation(m *redis.Subscription) bool {
	l.mu.Lock()
	if strings.HasSuffix(m.Kind, "unsubscribe") {
		defer l.mu.Unlock()
		if l.unconfirmedUnsubs[m.Channel]--; l.unconfirmedUnsubs[m.Channel] <= 0 {
			asked := l.unconfirmedUnsubs[m.Channel] == 0
			delete(l.unconfirmedUnsubs, m.Channel)
			return asked
		}
		return true
	}
	delete(l.unconfirmedSubs, m.Channel)
	t := l.topics[m.Channel]
	l.mu.Unlock()
	if m.Channel == l.probeChannel {
		l.ready.Store(true)
	}
	if t != nil {
		t.requestBackfill(false)
	}
	return true
}

// hashTag is the part of a name that decides its slot on a Cluster: what stands in the first braces, or all of it.
func hashTag(name string) string {
	if _, rest, ok := strings.Cut(name, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			return tag
		}
	}
	return name
}
