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

// board connects topics to lines: one line to a single Redis, one to each master of a Cluster. When a line is lost, its topics
// are loose again and find the line to whoever holds them now.
type board struct {
	hub    *Hub
	bell   chan struct{}
	probes sync.WaitGroup

	mu    sync.Mutex
	loose map[*topic]struct{}
	lines map[string]*line
	rests map[string]rest // after failures, by place
}

// rest is how long a place is left alone after lines to it were lost soon after they had begun.
type rest struct {
	failures int
	until    time.Time
}

const (
	restFirst    = 50 * time.Millisecond
	restLongest  = 250 * time.Millisecond
	steady       = 10 * time.Second // a line that lasted so long was a good one
	channelBatch = 512              // channels in one SUBSCRIBE
	resolveWait  = 2 * time.Second
)

func newBoard(h *Hub) *board {
	return &board{hub: h, bell: make(chan struct{}, 1), loose: map[*topic]struct{}{}, lines: map[string]*line{}, rests: map[string]rest{}}
}

func (b *board) ring() {
	select {
	case b.bell <- struct{}{}:
	default:
	}
}

func (b *board) join(t *topic) {
	b.mu.Lock()
	b.loose[t] = struct{}{}
	b.mu.Unlock()
	b.ring()
}

func (b *board) leave(t *topic) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.loose, t)
	if t.line != nil {
		t.line.order(t, false)
		t.line = nil
	}
}

// place names the server that a topic's line leads to.
func (b *board) place(t *topic) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.line == nil {
		return ""
	}
	return t.line.place
}

func (b *board) run(ctx context.Context) {
	var lines sync.WaitGroup
	defer b.probes.Wait()
	defer lines.Wait()
	for {
		pause := b.connect(ctx, &lines)
		select {
		case <-ctx.Done():
			return
		case <-b.bell:
		case <-pause:
		}
	}
}

// connect gives every loose topic a line. The channel tells when to try those again whose server is resting.
func (b *board) connect(ctx context.Context, lines *sync.WaitGroup) <-chan time.Time {
	b.mu.Lock()
	loose := make([]*topic, 0, len(b.loose))
	for t := range b.loose {
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
		place, options, err := b.resolve(ctx, t.name)
		if err != nil {
			later(restFirst)
			break
		}
		b.mu.Lock()
		if _, still := b.loose[t]; !still {
			b.mu.Unlock()
			continue
		}
		l := b.lines[place]
		if l == nil {
			if d := time.Until(b.rests[place].until); d > 0 {
				later(d)
				b.mu.Unlock()
				continue
			}
			l = newLine(b, place, options, hashTag(t.name))
			b.lines[place] = l
			b.hub.count.lines.Add(1)
			lines.Go(func() { l.run(ctx) })
		}
		delete(b.loose, t)
		t.line = l
		l.order(t, true)
		b.mu.Unlock()
	}
	if wait == 0 {
		return nil
	}
	return time.After(wait)
}

// resolve finds the server whose channels carry a topic.
func (b *board) resolve(ctx context.Context, name string) (place string, options *redis.Options, err error) {
	switch client := b.hub.db.Client.(type) {
	case *redis.ClusterClient:
		ctx, cancel := context.WithTimeout(ctx, resolveWait)
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

// lost takes back the topics of a line that has ended.
func (b *board) lost(l *line, why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.lines, l.place)
	b.hub.count.lines.Add(-1)
	for _, t := range l.quit() {
		if t.line == l {
			t.line = nil
			b.loose[t] = struct{}{}
		}
	}
	if why == nil {
		b.ring()
		return
	}
	r := b.rests[l.place]
	// A line that worked is made again at once, however often that happens; one that never did, or fell silent, rests in
	// between, shortly: what happens meanwhile must still be in the stream when it is back.
	if l.ready.Load() && !errors.Is(why, errSilent) || time.Since(l.begun) >= steady {
		r = rest{until: l.begun.Add(restFirst)}
	} else {
		d := min(restFirst<<min(r.failures, 10), restLongest)
		r = rest{failures: r.failures + 1, until: time.Now().Add(d/2 + mathrand.N(d/2))}
	}
	b.rests[l.place] = r
	if client, ok := b.hub.db.Client.(*redis.ClusterClient); ok {
		client.ReloadState(context.Background()) // a slot may have moved
	}
	b.ring()
}

// line is one connection that listens, with one life: go-redis would connect again by itself, but in its own time, without
// telling, and on a Cluster without subscribing to anything. Whatever goes wrong ends the line; the board makes another.
type line struct {
	board   *board
	place   string
	begun   time.Time
	sharded bool
	probe   string // the channel that proves that messages arrive
	client  *redis.Client
	ps      *redis.PubSub
	bell    chan struct{}
	end     chan struct{}
	endOnce sync.Once
	why     error

	heard  atomic.Int64 // when anything came, in nanoseconds
	ready  atomic.Bool  // the probe's channel is subscribed
	probed atomic.Int64 // when the probe under way was sent; 0: none

	mu      sync.Mutex
	conn    net.Conn
	hungUp  bool
	topics  map[string]*topic
	orders  []order
	awaited map[string]time.Time // subscribed, not confirmed
	parting map[string]int       // unsubscribed, not confirmed
}

type order struct {
	channel string
	join    bool
}

var (
	errSpent  = errors.New("this line has ended")
	errSilent = errors.New("messages do not arrive")
	errLate   = errors.New("a subscription was not confirmed")
	errMoved  = errors.New("the server has unsubscribed a channel: its slot has moved")
)

func newLine(b *board, place string, base *redis.Options, tag string) *line {
	l := &line{
		board: b, place: place, begun: time.Now(), sharded: b.hub.db.Kind() == redisdb.KindCluster,
		bell: make(chan struct{}, 1), end: make(chan struct{}),
		topics: map[string]*topic{}, awaited: map[string]time.Time{}, parting: map[string]int{},
		// The topic's tag puts the probe on the same server.
		probe: keys.Probe(tag, mathrand.Uint64()),
	}
	o := *base
	dial := o.Dialer
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		l.mu.Lock()
		spent := l.conn != nil || l.hungUp
		l.mu.Unlock()
		if spent {
			return nil, errSpent
		}
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.hungUp {
			_ = conn.Close()
			return nil, errSpent
		}
		l.conn = conn
		return conn, nil
	}
	o.MaxRetries, o.DialerRetries, o.PoolSize, o.MinIdleConns = -1, 1, 1, 0
	l.client = redis.NewClient(&o)
	if l.sharded {
		l.ps = l.client.SSubscribe(context.Background())
	} else {
		l.ps = l.client.Subscribe(context.Background())
	}
	return l
}

// order wants a topic's channel to be subscribed, or no longer.
func (l *line) order(t *topic, join bool) {
	l.mu.Lock()
	if join {
		l.topics[t.name] = t
	} else {
		delete(l.topics, t.name)
	}
	l.orders = append(l.orders, order{t.name, join})
	l.mu.Unlock()
	select {
	case l.bell <- struct{}{}:
	default:
	}
}

// quit empties the line.
func (l *line) quit() map[string]*topic {
	l.mu.Lock()
	defer l.mu.Unlock()
	topics := l.topics
	l.topics = map[string]*topic{}
	return topics
}

// fail ends the line; nil means that nobody needs it.
func (l *line) fail(why error) {
	l.endOnce.Do(func() { l.why = why; close(l.end) })
}

func (l *line) run(ctx context.Context) {
	var parts sync.WaitGroup
	l.heard.Store(time.Now().UnixNano())
	// Dialling happens in the first subscription; whoever ends the line meanwhile must not wait for it.
	parts.Go(func() {
		if err := l.send(ctx, []order{{l.probe, true}}); err != nil {
			l.fail(err)
			return
		}
		parts.Go(func() { l.read(ctx) })
		l.tend(ctx)
	})
	select {
	case <-l.end:
	case <-ctx.Done():
		l.fail(nil)
	}
	l.mu.Lock()
	l.hungUp = true
	if l.conn != nil {
		_ = l.conn.Close()
	}
	l.mu.Unlock()
	parts.Wait()
	_ = l.ps.Close()
	_ = l.client.Close()
	if ctx.Err() == nil && l.why != nil {
		l.board.hub.count.rebuilds.Add(1)
		l.board.hub.log.Warn("a connection for events was lost", slog.String("server", l.place), slog.Any("error", l.why))
	}
	l.board.lost(l, l.why)
}

// tend sends orders and proves that the line is alive.
func (l *line) tend(ctx context.Context) {
	o := l.board.hub.options
	tick := time.NewTicker(min(o.ProbeAfter, o.ProbeTimeout) / 8)
	defer tick.Stop()
	idle := time.Now()
	for {
		select {
		case <-l.end:
			return
		case <-l.bell:
			l.mu.Lock()
			orders := l.orders
			l.orders = nil
			l.mu.Unlock()
			if err := l.send(ctx, orders); err != nil {
				l.fail(err)
				return
			}
		case now := <-tick.C:
			l.mu.Lock()
			if len(l.topics) > 0 {
				idle = now
			}
			late := false
			for _, sent := range l.awaited {
				late = late || now.Sub(sent) > o.ProbeAfter+o.ProbeTimeout
			}
			l.mu.Unlock()
			switch {
			case late:
				l.fail(errLate)
				return
			case now.Sub(idle) > o.TopicLinger:
				l.fail(nil)
				return
			case !l.prove(ctx, now):
				l.fail(errSilent)
				return
			}
		}
	}
}

// prove publishes a probe when nothing was heard for a while. It answers false when a probe has not arrived in time.
func (l *line) prove(ctx context.Context, now time.Time) bool {
	o := l.board.hub.options
	heard := time.Unix(0, l.heard.Load())
	if sent := l.probed.Load(); sent != 0 {
		if heard.UnixNano() > sent {
			l.probed.CompareAndSwap(sent, 0) // something came, if not the probe: the line is alive
		}
		return heard.UnixNano() > sent || now.UnixNano()-sent < int64(o.ProbeTimeout)
	}
	if !l.ready.Load() || now.Sub(heard) < o.ProbeAfter {
		return true
	}
	sent := time.Now().UnixNano()
	l.probed.Store(sent)
	// A publish that hangs must not hold up the next line.
	l.board.probes.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, o.ProbeTimeout)
		defer cancel()
		_ = l.board.hub.publish(ctx, l.probe, strconv.FormatInt(sent, 10)) // whether it arrives is what counts
	})
	return true
}

// send subscribes and unsubscribes, in the order of the orders. On a Cluster one command names channels of one slot only.
func (l *line) send(ctx context.Context, orders []order) error {
	for len(orders) > 0 {
		n := 1
		for n < len(orders) && n < channelBatch && orders[n].join == orders[0].join {
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
			if err := l.command(ctx, orders[0].join, channels); err != nil {
				return err
			}
		}
		orders = orders[n:]
	}
	return nil
}

func (l *line) command(ctx context.Context, join bool, channels []string) error {
	now := time.Now()
	l.mu.Lock()
	for _, channel := range channels {
		if join {
			l.awaited[channel] = now
		} else {
			l.parting[channel]++
		}
	}
	l.mu.Unlock()
	switch {
	case join && l.sharded:
		return l.ps.SSubscribe(ctx, channels...)
	case join:
		return l.ps.Subscribe(ctx, channels...)
	case l.sharded:
		return l.ps.SUnsubscribe(ctx, channels...)
	default:
		return l.ps.Unsubscribe(ctx, channels...)
	}
}

// read hands on what comes, until the line ends.
func (l *line) read(ctx context.Context) {
	hub := l.board.hub
	for {
		message, err := l.ps.Receive(ctx)
		if err != nil {
			l.fail(err)
			return
		}
		now := time.Now().UnixNano()
		l.heard.Store(now)
		switch m := message.(type) {
		case *redis.Message:
			if m.Channel != l.probe {
				hub.route(m.Channel, m.Payload)
			} else if sent, err := strconv.ParseInt(m.Payload, 10, 64); err == nil {
				hub.count.lag.Store(now - sent)
				l.probed.CompareAndSwap(sent, 0)
			}
		case *redis.Subscription:
			if !l.confirm(m) {
				l.fail(errMoved)
				return
			}
		}
	}
}

// confirm takes the server's word that a channel is subscribed: from now on nothing is missed, and what was is read from
// the stream. It answers false when the server ended a subscription by itself.
func (l *line) confirm(m *redis.Subscription) bool {
	l.mu.Lock()
	if strings.HasSuffix(m.Kind, "unsubscribe") {
		defer l.mu.Unlock()
		if l.parting[m.Channel]--; l.parting[m.Channel] <= 0 {
			asked := l.parting[m.Channel] == 0
			delete(l.parting, m.Channel)
			return asked
		}
		return true
	}
	delete(l.awaited, m.Channel)
	t := l.topics[m.Channel]
	l.mu.Unlock()
	if m.Channel == l.probe {
		l.ready.Store(true)
	}
	if t != nil {
		t.ask(false)
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
