package realtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/redis/go-redis/v9"
)

// pubsubManager assigns topics to pub/sub connections: one connection to a single Redis, one
// to each master of a Cluster. When a connection ends, its topics are assigned again, to whichever
// server holds them now.
type pubsubManager struct {
	hub        *Hub
	wakeup     chan struct{}
	probeGroup sync.WaitGroup

	mu         sync.Mutex
	unassigned map[*topic]struct{}
	conns      map[string]*pubsubConn // by server
	backoffs   map[string]backoff     // by server
}

// backoff delays the next connection to a server whose last connections ended soon after they had
// begun.
type backoff struct {
	failures int
	until    time.Time
}

const (
	backoffMin             = 50 * time.Millisecond
	backoffMax             = 250 * time.Millisecond
	stableConnAge          = 10 * time.Second // a connection that lasted this long resets the backoff
	subscribeBatchChannels = 512              // channels in one SUBSCRIBE
	resolveTimeout         = 2 * time.Second
)

func newPubsubManager(h *Hub) *pubsubManager {
	return &pubsubManager{
		hub: h, wakeup: make(chan struct{}, 1),
		unassigned: map[*topic]struct{}{}, conns: map[string]*pubsubConn{}, backoffs: map[string]backoff{},
	}
}

func (m *pubsubManager) wake() {
	select {
	case m.wakeup <- struct{}{}:
	default:
	}
}

func (m *pubsubManager) add(t *topic) {
	m.mu.Lock()
	m.unassigned[t] = struct{}{}
	m.mu.Unlock()
	m.wake()
}

func (m *pubsubManager) remove(t *topic) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.unassigned, t)
	if t.pubsubConn != nil {
		t.pubsubConn.queueChange(t, false)
		t.pubsubConn = nil
	}
}

// serverOf returns the server of a topic's connection: an address on a Cluster, else "".
func (m *pubsubManager) serverOf(t *topic) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.pubsubConn == nil {
		return ""
	}
	return t.pubsubConn.server
}

func (m *pubsubManager) run(ctx context.Context) {
	var conns sync.WaitGroup
	defer m.probeGroup.Wait()
	defer conns.Wait()
	for {
		retry := m.assignTopics(ctx, &conns)
		select {
		case <-ctx.Done():
			return
		case <-m.wakeup:
		case <-retry:
		}
	}
}

// assignTopics assigns every unassigned topic to a connection. The channel that it returns fires
// when topics whose server is in its backoff can be tried again; it is nil when there are none.
func (m *pubsubManager) assignTopics(ctx context.Context, conns *sync.WaitGroup) <-chan time.Time {
	m.mu.Lock()
	unassigned := make([]*topic, 0, len(m.unassigned))
	for t := range m.unassigned {
		unassigned = append(unassigned, t)
	}
	m.mu.Unlock()

	var delay time.Duration
	retryIn := func(d time.Duration) {
		if delay == 0 || d < delay {
			delay = max(d, time.Millisecond)
		}
	}
	for _, t := range unassigned {
		server, options, err := m.resolveServer(ctx, t.name)
		if err != nil {
			retryIn(backoffMin)
			break
		}
		m.mu.Lock()
		if _, still := m.unassigned[t]; !still {
			m.mu.Unlock()
			continue
		}
		conn := m.conns[server]
		if conn == nil {
			if d := time.Until(m.backoffs[server].until); d > 0 {
				retryIn(d)
				m.mu.Unlock()
				continue
			}
			conn = newPubsubConn(m, server, options, hashTag(t.name))
			m.conns[server] = conn
			m.hub.counters.pubsubConns.Add(1)
			conns.Go(func() { conn.run(ctx) })
		}
		delete(m.unassigned, t)
		t.pubsubConn = conn
		conn.queueChange(t, true)
		m.mu.Unlock()
	}
	if delay == 0 {
		return nil
	}
	return time.After(delay)
}

// resolveServer returns the server that carries a topic's channel.
func (m *pubsubManager) resolveServer(
	ctx context.Context, topic string,
) (server string, options *redis.Options, err error) {
	switch client := m.hub.db.Client.(type) {
	case *redis.ClusterClient:
		ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
		defer cancel()
		master, err := client.MasterForKey(ctx, topic)
		if err != nil {
			return "", nil, err
		}
		return master.Options().Addr, master.Options(), nil
	case *redis.Client:
		return "", client.Options(), nil
	default:
		return "", nil, errors.New("the Redis client is of an unknown type")
	}
}

// onPubsubConnEnd is called when a connection has ended. Its topics become unassigned.
func (m *pubsubManager) onPubsubConnEnd(conn *pubsubConn, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.conns, conn.server)
	m.hub.counters.pubsubConns.Add(-1)
	for _, t := range conn.takeTopics() {
		t.live.Store(false)
		if t.pubsubConn == conn {
			t.pubsubConn = nil
			m.unassigned[t] = struct{}{}
		}
	}
	if err == nil {
		m.wake()
		return
	}
	next := m.backoffs[conn.server]
	// A connection that worked is replaced at once, however often it ends. One that never worked, or
	// whose probe timed out, is replaced after a short delay: what happens meanwhile must still be in
	// the list.
	if conn.probeSubscribed.Load() && !errors.Is(err, errProbeTimeout) || time.Since(conn.startedAt) >= stableConnAge {
		next = backoff{until: conn.startedAt.Add(backoffMin)}
	} else {
		d := min(backoffMin<<min(next.failures, 10), backoffMax)
		next = backoff{failures: next.failures + 1, until: time.Now().Add(d/2 + mathrand.N(d/2))}
	}
	m.backoffs[conn.server] = next
	if client, ok := m.hub.db.Client.(*redis.ClusterClient); ok {
		client.ReloadState(context.Background()) // a slot may have moved
	}
	m.wake()
}

// pubsubConn is one pub/sub connection, which is never reconnected. go-redis would reconnect by
// itself, but after its own delay, without notice, and on a Cluster without subscribing to
// anything. Any error ends the pubsubConn, and the pubsubManager makes another one.
type pubsubConn struct {
	manager      *pubsubManager
	server       string
	startedAt    time.Time
	sharded      bool
	probeChannel string // carries the messages that prove that messages arrive
	client       *redis.Client
	pubsub       *redis.PubSub
	wakeup       chan struct{}
	done         chan struct{}
	closeOnce    sync.Once
	closeErr     error

	lastReceivedNanos atomic.Int64 // Unix time in nanoseconds
	probeSubscribed   atomic.Bool  // probeChannel is subscribed
	probeSentNanos    atomic.Int64 // Unix time in nanoseconds; 0: no probe is under way

	mu                     sync.Mutex
	netConn                net.Conn
	aborted                bool
	topics                 map[string]*topic
	changes                []channelChange
	unconfirmedSubTimes    map[string]time.Time // channel → when SUBSCRIBE was sent
	unconfirmedUnsubCounts map[string]int       // channel → UNSUBSCRIBEs sent
}

type channelChange struct {
	channel   string
	subscribe bool
}

var (
	errDialledTwice         = errors.New("a pub/sub connection is not dialled twice")
	errProbeTimeout         = errors.New("a probe did not arrive in time")
	errSubscribeTimeout     = errors.New("a subscription was not confirmed in time")
	errUnsubscribedByServer = errors.New("the server unsubscribed a channel, because its slot has moved")
)

func newPubsubConn(m *pubsubManager, server string, base *redis.Options, tag string) *pubsubConn {
	c := &pubsubConn{
		manager: m, server: server, startedAt: time.Now(), sharded: m.hub.db.Kind() == redisdb.KindCluster,
		wakeup: make(chan struct{}, 1), done: make(chan struct{}),
		topics: map[string]*topic{}, unconfirmedSubTimes: map[string]time.Time{}, unconfirmedUnsubCounts: map[string]int{},
		// The topic's hash tag puts the probe on the same server.
		probeChannel: keys.ProbeChannel(tag, mathrand.Uint64()),
	}
	o := *base
	o.Dialer = c.onceDialer(base.Dialer)
	o.MaxRetries, o.DialerRetries, o.PoolSize, o.MinIdleConns = -1, 1, 1, 0
	c.client = redis.NewClient(&o)
	if c.sharded {
		c.pubsub = c.client.SSubscribe(context.Background())
	} else {
		c.pubsub = c.client.Subscribe(context.Background())
	}
	return c
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// onceDialer returns a dialer that dials once and keeps the connection, so that run can close it at
// any time.
func (c *pubsubConn) onceDialer(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c.mu.Lock()
		used := c.netConn != nil || c.aborted
		c.mu.Unlock()
		if used {
			return nil, errDialledTwice
		}
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.aborted {
			_ = conn.Close()
			return nil, errDialledTwice
		}
		c.netConn = conn
		return conn, nil
	}
}

// queueChange queues a SUBSCRIBE or UNSUBSCRIBE of a topic's channel.
func (c *pubsubConn) queueChange(t *topic, subscribe bool) {
	c.mu.Lock()
	if subscribe {
		c.topics[t.name] = t
	} else {
		delete(c.topics, t.name)
	}
	c.changes = append(c.changes, channelChange{t.name, subscribe})
	c.mu.Unlock()
	select {
	case c.wakeup <- struct{}{}:
	default:
	}
}

// takeTopics removes all topics from the connection and returns them.
func (c *pubsubConn) takeTopics() map[string]*topic {
	c.mu.Lock()
	defer c.mu.Unlock()
	topics := c.topics
	c.topics = map[string]*topic{}
	return topics
}

// shutdown ends the connection. err is nil when no topic needs it any more.
func (c *pubsubConn) shutdown(err error) {
	c.closeOnce.Do(func() { c.closeErr = err; close(c.done) })
}

func (c *pubsubConn) run(ctx context.Context) {
	var goroutines sync.WaitGroup
	c.lastReceivedNanos.Store(time.Now().UnixNano())
	// The first subscription dials, which may block. shutdown must not wait for that.
	goroutines.Go(func() {
		if err := c.applyChanges(ctx, []channelChange{{c.probeChannel, true}}); err != nil {
			c.shutdown(err)
			return
		}
		goroutines.Go(func() { c.readLoop(ctx) })
		c.writeLoop(ctx)
	})
	select {
	case <-c.done:
	case <-ctx.Done():
		c.shutdown(nil)
	}
	c.mu.Lock()
	c.aborted = true
	if c.netConn != nil {
		_ = c.netConn.Close()
	}
	c.mu.Unlock()
	goroutines.Wait()
	_ = c.pubsub.Close()
	_ = c.client.Close()
	if ctx.Err() == nil && c.closeErr != nil {
		c.manager.hub.counters.lostPubsubConns.Add(1)
		c.manager.hub.log.Warn("pub/sub connection lost",
			slog.String("server", c.server), slog.Any("error", fmt.Errorf("%w (%w)", apierror.StoreUnavailable, c.closeErr)))
	}
	c.manager.onPubsubConnEnd(c, c.closeErr)
}

// writeLoop sends the queued changes and checks that the connection is alive.
func (c *pubsubConn) writeLoop(ctx context.Context) {
	o := c.manager.hub.options
	ticker := time.NewTicker(min(o.ProbeAfter, o.ProbeTimeout) / 8)
	defer ticker.Stop()
	lastUsed := time.Now()
	for {
		select {
		case <-c.done:
			return
		case <-c.wakeup:
			c.mu.Lock()
			changes := c.changes
			c.changes = nil
			c.mu.Unlock()
			if err := c.applyChanges(ctx, changes); err != nil {
				c.shutdown(err)
				return
			}
		case now := <-ticker.C:
			c.mu.Lock()
			if len(c.topics) > 0 {
				lastUsed = now
			}
			late := false
			for _, sent := range c.unconfirmedSubTimes {
				late = late || now.Sub(sent) > o.ProbeAfter+o.ProbeTimeout
			}
			c.mu.Unlock()
			switch {
			case late:
				c.shutdown(errSubscribeTimeout)
				return
			case now.Sub(lastUsed) > o.TopicLinger:
				c.shutdown(nil)
				return
			case !c.probeIfSilent(ctx, now):
				c.shutdown(errProbeTimeout)
				return
			}
		}
	}
}

// probeIfSilent publishes a probe when nothing was received for Options.ProbeAfter. It returns
// false when a probe did not arrive within Options.ProbeTimeout.
func (c *pubsubConn) probeIfSilent(ctx context.Context, now time.Time) bool {
	o := c.manager.hub.options
	lastReceived := time.Unix(0, c.lastReceivedNanos.Load())
	if sent := c.probeSentNanos.Load(); sent != 0 {
		if lastReceived.UnixNano() > sent {
			c.probeSentNanos.CompareAndSwap(sent, 0) // something else arrived; that proves the same
		}
		return lastReceived.UnixNano() > sent || now.UnixNano()-sent < int64(o.ProbeTimeout)
	}
	if !c.probeSubscribed.Load() || now.Sub(lastReceived) < o.ProbeAfter {
		return true
	}
	sent := time.Now().UnixNano()
	c.probeSentNanos.Store(sent)
	// On a Cluster, it may take a while to find the server.
	c.manager.probeGroup.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, o.ProbeTimeout)
		defer cancel()
		// An error needs no handling: then the probe does not arrive.
		_ = c.manager.hub.db.Publish(ctx, &redisdb.Publication{
			Channel: c.probeChannel, Message: strconv.AppendInt(nil, sent, 10), Done: func(error) {},
		})
	})
	return true
}

// applyChanges sends the changes in their order. On a Cluster, one command may name channels of one
// slot only.
func (c *pubsubConn) applyChanges(ctx context.Context, changes []channelChange) error {
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && n < subscribeBatchChannels && changes[n].subscribe == changes[0].subscribe {
			n++
		}
		channelsByTag := map[string][]string{}
		for _, change := range changes[:n] {
			tag := ""
			if c.sharded {
				tag = hashTag(change.channel)
			}
			channelsByTag[tag] = append(channelsByTag[tag], change.channel)
		}
		for _, channels := range channelsByTag {
			if err := c.sendCommand(ctx, changes[0].subscribe, channels); err != nil {
				return err
			}
		}
		changes = changes[n:]
	}
	return nil
}

func (c *pubsubConn) sendCommand(ctx context.Context, subscribe bool, channels []string) error {
	now := time.Now()
	c.mu.Lock()
	for _, channel := range channels {
		if subscribe {
			c.unconfirmedSubTimes[channel] = now
		} else {
			c.unconfirmedUnsubCounts[channel]++
		}
	}
	c.mu.Unlock()
	switch {
	case subscribe && c.sharded:
		return c.pubsub.SSubscribe(ctx, channels...)
	case subscribe:
		return c.pubsub.Subscribe(ctx, channels...)
	case c.sharded:
		return c.pubsub.SUnsubscribe(ctx, channels...)
	default:
		return c.pubsub.Unsubscribe(ctx, channels...)
	}
}

// readLoop dispatches what is received until the connection ends.
func (c *pubsubConn) readLoop(ctx context.Context) {
	hub := c.manager.hub
	for {
		message, err := c.pubsub.Receive(ctx)
		if err != nil {
			c.shutdown(err)
			return
		}
		now := time.Now().UnixNano()
		c.lastReceivedNanos.Store(now)
		hub.staleWatch.markHeard()
		switch m := message.(type) {
		case *redis.Message:
			if m.Channel != c.probeChannel {
				hub.dispatch(m.Channel, m.Payload)
			} else if sent, err := strconv.ParseInt(m.Payload, 10, 64); err == nil {
				hub.counters.pubsubLagNanos.Store(now - sent)
				c.probeSentNanos.CompareAndSwap(sent, 0)
			}
		case *redis.Subscription:
			if !c.handleConfirmation(m) {
				c.shutdown(errUnsubscribedByServer)
				return
			}
		}
	}
}

// handleConfirmation handles the server's confirmation of a subscription. No message is missed
// after it; messages that were missed before are read from the list. It returns false when the
// server ended a subscription by itself.
func (c *pubsubConn) handleConfirmation(m *redis.Subscription) bool {
	c.mu.Lock()
	if strings.HasSuffix(m.Kind, "unsubscribe") {
		defer c.mu.Unlock()
		if c.unconfirmedUnsubCounts[m.Channel]--; c.unconfirmedUnsubCounts[m.Channel] <= 0 {
			requested := c.unconfirmedUnsubCounts[m.Channel] == 0
			delete(c.unconfirmedUnsubCounts, m.Channel)
			return requested
		}
		return true
	}
	delete(c.unconfirmedSubTimes, m.Channel)
	t := c.topics[m.Channel]
	c.mu.Unlock()
	if m.Channel == c.probeChannel {
		c.probeSubscribed.Store(true)
	}
	if t != nil {
		t.distrustChannel()
		t.live.Store(true)
	}
	return true
}

// hashTag returns the part of a key that decides its slot on a Cluster: the text in the first
// braces, or the whole key.
func hashTag(name string) string {
	if _, rest, ok := strings.Cut(name, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			return tag
		}
	}
	return name
}
