package realtime

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/olahol/melody"
	"github.com/parlor-games/parlor/internal/apierror"
	"golang.org/x/time/rate"
)

// ErrClosed says that the socket has been closed, or is being closed.
var ErrClosed = errors.New("the socket is gone")

const (
	window       = 2   // frames handed to melody and not yet written
	inboxFrames  = 128 // frames that came in and wait for their turn: the burst that a client may send
	outboxFrames = 256
	outboxBytes  = 1 << 20
	slowLimit    = 3 // snapshots because of slowness …
	slowSpan     = time.Minute
)

// Client is one socket. Its methods are safe for concurrent use.
//
// What goes out is chosen when there is room for a frame, never before: replies and direct messages in their order,
// and by turns with them, topic by topic, everything that a cursor has not had yet. So a session that keeps up gets the
// frame that all others get too, and one that does not gets fewer and larger ones.
type Client struct {
	hub     *Hub
	socket  *Socket
	session Session
	id      string
	done    chan struct{} // closed when the socket is gone
	conn    net.Conn      // beneath the carrier, to cut it at any time; under Hub.mu

	mu        sync.Mutex
	carrier   *melody.Session // nil until the upgrade is done
	inflight  int
	allowed   [window]int64 // for each frame in flight, how many beats the client may take over it
	begun     int64         // the beat at which it began with the first of them
	direct    []parcel
	bytes     int  // in direct
	greeted   bool // frames may go out
	cursors   []*cursor
	ready     []*cursor // may have something to send, in turn
	turn      bool      // the last frame was a direct one
	shut      bool      // nothing more is sent
	code      int       // why
	reason    string
	drained   chan struct{} // closed when nothing is in flight, once shut
	slow      [slowLimit]time.Time
	slowTurn  int
	expiry    *time.Timer
	whispered atomic.Uint64

	// Of the goroutine that reads.
	bucket *rate.Limiter

	inMu    sync.Mutex
	inbox   []func()
	inBytes int
	working bool
	tasks   sync.WaitGroup
}

// parcel is a frame for one socket.
type parcel struct {
	frame []byte
	event bool    // may share a frame with others
	opens *cursor // its events begin after this frame
}

// cursor is the place of one peer in one topic.
type cursor struct {
	peer  *Client
	topic *topic
	sub   Subscription

	// Under Peer.mu.
	at       position
	live     bool // the reply is on its way
	queued   bool // in Peer.ready
	fetching bool // a snapshot is being taken, or the gate is being asked
	gone     bool
	frame    []byte // a snapshot that goes first
}

// ID is the connection's own name, unique among all nodes.
func (p *Client) ID() string { return p.id }

// User is the player on the socket.
func (p *Client) User() int64 { return p.session.User }

// Data is what the caller gave with the session.
func (p *Client) Data() any { return p.session.Data }

// Done is closed when the socket is gone.
func (p *Client) Done() <-chan struct{} { return p.done }

// Send queues a frame of its own: a reply. Frames keep their order. It answers ErrGone when the socket is closed, or
// when so much waits already that it is closed now (4008).
func (p *Client) Send(frame []byte) error { return p.push(parcel{frame: frame}) }

func (p *Client) push(out parcel) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut {
		return ErrClosed
	}
	if len(p.direct) > 0 && (len(p.direct) >= outboxFrames || p.bytes+len(out.frame) > outboxBytes) {
		p.closeLocked(CloseTooSlow, "too slow")
		return ErrClosed
	}
	p.direct = append(p.direct, out)
	p.bytes += len(out.frame)
	p.flush()
	return nil
}

// hear queues a whisper, or drops it when too much waits.
func (p *Client) hear(c *cursor, frame []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.shut || !c.live || c.gone:
	case len(p.direct) >= outboxFrames/2 || p.bytes+len(frame) > outboxBytes/2:
		p.hub.count.whispersDropped.Add(1)
	default:
		p.direct = append(p.direct, parcel{frame: frame, event: true})
		p.bytes += len(frame)
		p.hub.count.whispers.Add(1)
		p.flush()
	}
}

// wake tells the peer that a topic of its may have something new.
func (p *Client) wake(c *cursor, prove bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.gone || p.shut {
		return
	}
	if prove && !c.fetching {
		if held, _ := c.topic.holds(c.at); !held {
			c.frame = nil
			p.lose(c, false)
			return
		}
	}
	p.enqueue(c)
	p.flush()
}

func (p *Client) enqueue(c *cursor) {
	if c.live && !c.queued && !p.shut {
		c.queued = true
		p.ready = append(p.ready, c)
	}
}

// flush hands frames to melody while there is room. Peer.mu is held; melody's buffer is larger than the window,
// so that it never calls back from here because it is full.
func (p *Client) flush() {
	for p.inflight < window && p.greeted {
		frame := p.choose()
		if frame == nil {
			return
		}
		if p.inflight == 0 {
			p.begun = p.hub.beat.Load()
		}
		p.hub.count.frames.Add(1)
		p.allowed[p.inflight] = int64(p.socket.write(p.carrier, frame)/p.hub.tick) + 1
		p.inflight++
	}
}

// greet lets frames go out, hello before all others. Peer.mu is held.
func (p *Client) greet() {
	if p.greeted || p.carrier == nil {
		return
	}
	p.greeted = true
	if p.socket.limits.Hello {
		hello := parcel{frame: helloFrame(p, p.socket.limits, p.hub.options.Subscriptions)}
		p.direct = append([]parcel{hello}, p.direct...)
		p.bytes += len(hello.frame)
	}
	p.flush()
}

// choose takes the next frame, nil when there is none.
func (p *Client) choose() []byte {
	for {
		if len(p.direct) > 0 && (!p.turn || len(p.ready) == 0) {
			p.turn = true
			return p.chooseDirect()
		}
		if len(p.ready) == 0 {
			return nil
		}
		p.turn = false
		c := p.ready[0]
		p.ready = slices.Delete(p.ready, 0, 1)
		c.queued = false
		switch {
		case c.gone || c.fetching:
			continue
		case c.frame != nil:
			frame := c.frame
			c.frame = nil
			p.enqueue(c)
			return frame
		}
		next, ok := c.topic.pull(c.at, c.sub.NeedsReauthorization)
		if !ok {
			p.lose(c, true)
			continue
		}
		if next.events == 0 {
			continue
		}
		c.at = next.to
		p.hub.count.deliveries.Add(uint64(next.events))
		switch {
		case next.doubted:
			p.hold(c)
		case next.events > 1:
			p.enqueue(c) // there may be more than one frame holds
		}
		return next.frame
	}
}

func (p *Client) chooseDirect() []byte {
	first := p.direct[0]
	n := 1
	if first.event {
		for size := len(first.frame); n < len(p.direct) && n < frameEvents && p.direct[n].event; n++ {
			if size += len(p.direct[n].frame) + 1; size > frameBytes {
				break
			}
		}
	}
	frame := first.frame
	if n > 1 {
		entries := make([]entry, n)
		for i := range entries {
			entries[i].event = p.direct[i].frame
		}
		frame = join(entries)
	}
	for _, out := range p.direct[:n] {
		p.bytes -= len(out.frame)
	}
	p.direct = slices.Delete(p.direct, 0, n)
	if c := first.opens; c != nil && !c.gone {
		c.live = true
		p.enqueue(c)
	}
	return frame
}

// sent gives back the room of one frame.
func (p *Client) sent() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inflight--
	copy(p.allowed[:], p.allowed[1:])
	p.begun = p.hub.beat.Load()
	p.flush()
	if p.drained != nil && p.inflight == 0 {
		close(p.drained)
		p.drained = nil
	}
}

// urge closes a client that has taken nothing for too long. Beats are counted, not time: a node that was itself asleep blames nobody.
func (p *Client) urge(beat int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inflight > 0 && beat-p.begun > p.allowed[0] {
		p.closeLocked(CloseTooSlow, "too slow")
	}
}

// lose replaces what a cursor missed by a snapshot. A session that needs that too often because it is slow is closed:
// it comes back with its position when it can.
func (p *Client) lose(c *cursor, slow bool) {
	if c.fetching || c.gone || p.shut {
		return
	}
	if slow {
		oldest := &p.slow[p.slowTurn]
		if now := time.Now(); now.Sub(*oldest) < slowSpan {
			p.closeLocked(CloseTooSlow, "too slow")
			return
		}
		*oldest = time.Now()
		p.slowTurn = (p.slowTurn + 1) % slowLimit
	}
	if c.sub.Snapshot == nil {
		p.closeLocked(CloseTooSlow, "the past is gone")
		return
	}
	c.fetching = true
	if !p.hub.spawn(func() { p.refresh(c) }) {
		p.closeLocked(CloseRestart, "restart")
	}
}

var errOutdated = errors.New("the snapshot is older than the log")

// refresh takes a snapshot for a cursor that lost its place. It tries until it has one or the socket is gone; a refusal
// (the topic has ended, or is no longer the player's) closes the socket, for a new subscription will tell why.
func (p *Client) refresh(c *cursor) {
	fresh := false
	refused := p.persist(func(ctx context.Context) error {
		s, at, err := c.topic.snapshot(ctx, fresh, c.sub.Snapshot)
		if err == nil {
			err = c.sub.ask(ctx)
		}
		if err != nil {
			p.hub.count.snapshotFailures.Add(1)
			return err
		}
		held, ahead := c.topic.holds(at)
		switch {
		case ahead:
			c.topic.ask(false)
		case !held:
			fresh = true
			return errOutdated
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		c.at, c.frame = at, s.Frame
		p.resume(c)
		return nil
	})
	if refused {
		p.Close(CloseTooSlow, "subscribe again")
	}
}

// hold stops a cursor behind an event that is doubted, until its gate has been asked. Peer.mu is held.
func (p *Client) hold(c *cursor) {
	c.fetching = true
	pass := func() {
		refused := p.persist(func(ctx context.Context) error {
			err := c.sub.ask(ctx)
			if err == nil {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.resume(c)
			}
			return err
		})
		if refused {
			p.remove(func(o *cursor) bool { return o == c })
		}
	}
	if !p.hub.spawn(pass) {
		p.closeLocked(CloseRestart, "restart")
	}
}

// resume lets a cursor go on that waited. Peer.mu is held.
func (p *Client) resume(c *cursor) {
	c.fetching = false
	if !c.gone {
		p.enqueue(c)
		p.flush()
	}
}

// persist tries until it succeeds, the socket is gone, or the answer is a refusal for good: then it answers true.
func (p *Client) persist(try func(context.Context) error) (refused bool) {
	ctx, cancel := p.context(p.hub.base)
	defer cancel()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := try(ctx)
		if err == nil {
			return false
		}
		if refusal, ok := apierror.As(err); ok && !refusal.Retryable {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}

// context is ctx, ended when the socket is gone. It exists while it is needed only: ten thousand idle sockets have none.
func (p *Client) context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-p.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

func (p *Client) gone() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Mode tells how a subscription begins.
type Mode string

// The modes.
const (
	ModeResume   Mode = "resume"   // after the position that the client has
	ModeSnapshot Mode = "snapshot" // from a snapshot
	ModeLive     Mode = "live"     // from now on; only where there is no snapshot
)

// Subscription is the wish to follow a topic.
type Subscription struct {
	Topic string // the stream's key, which is the channel's name too
	After string // the last position that the client has, "" for none
	// Snapshot reads the topic's state. It is called on behalf of all who follow the topic: at the start of a subscription
	// that cannot resume, and when a session lost its place. Without it a subscription begins with what happens next, and a
	// session that lost its place is closed with 4008.
	Snapshot func(context.Context) (Snapshot, error)
	// Reply makes the frame that stands before the first event; nil for none.
	Reply func(SubscribeResult) []byte
	// Authorize tells whether the peer may follow the topic; nil: it may. It is asked when the place of the subscription is known,
	// so that nothing can change in between, before a snapshot replaces what was missed, and behind every event of which Doubt
	// answers true: what follows waits for the answer. When it refuses there, that event was the last one.
	Authorize            func(context.Context) error
	NeedsReauthorization func(event []byte) bool // must be quick; nil: of none
	// Implicit marks what the server does of its own accord: it does not count against Options.Subscriptions.
	Implicit bool
}

func (s *Subscription) ask(ctx context.Context) error {
	if s.Authorize == nil {
		return nil
	}
	return s.Authorize(ctx)
}

// SubscribeResult is where a subscription begins.
type SubscribeResult struct {
	Mode     Mode
	Position string
	State    []byte // of the snapshot, when Mode is Anew
}

// Subscribe follows a topic from a position, or from a snapshot when there is none or its past is gone. The reply goes out
// before the first event. Subscribing again replaces the subscription. It waits for Redis as long as ctx allows.
func (p *Client) Subscribe(ctx context.Context, s Subscription) (SubscribeResult, error) {
	ctx, cancel := p.context(ctx)
	defer cancel()
	old, room := p.cursor(s.Topic)
	if old == nil && !room && !s.Implicit {
		return SubscribeResult{}, apierror.RateLimited.WithReason("a connection follows at most %d topics", p.hub.options.Subscriptions)
	}
	t, err := p.hub.acquire(s.Topic)
	if err != nil {
		return SubscribeResult{}, err
	}
	c := &cursor{peer: p, topic: t, sub: s}
	start, err := c.begin(ctx)
	if err == nil {
		err = s.ask(ctx)
	}
	if err == nil {
		err = p.install(c, start)
	}
	if err != nil {
		p.hub.release(t)
		if p.gone() {
			err = ErrClosed
		}
		return SubscribeResult{}, err
	}
	return start, nil
}

// begin finds where the cursor stands.
func (c *cursor) begin(ctx context.Context) (SubscribeResult, error) {
	t := c.topic
	select {
	case <-t.primed:
	case <-ctx.Done():
		return SubscribeResult{}, apierror.StoreUnavailable.WithReason("the events cannot be reached")
	}
	if at, ok := parsePosition(c.sub.After); ok {
		found, err := t.find(ctx, at)
		if err != nil {
			return SubscribeResult{}, err
		}
		if found {
			c.at = at
			return SubscribeResult{Mode: ModeResume, Position: at.String()}, nil
		}
	}
	if c.sub.Snapshot == nil {
		c.at = t.head()
		return SubscribeResult{Mode: ModeLive, Position: c.at.String()}, nil
	}
	for fresh := false; ; fresh = true {
		s, at, err := t.snapshot(ctx, fresh, c.sub.Snapshot)
		if err != nil {
			return SubscribeResult{}, err
		}
		held, ahead := t.holds(at)
		if ahead {
			t.ask(false) // the channel is behind, or has lost something
		}
		if !held && !ahead && fresh {
			// The event of this very position is the oldest that the log has, and what was before it is not known: read it.
			if held, err = t.find(ctx, at); err != nil {
				return SubscribeResult{}, err
			}
		}
		if held || ahead || fresh {
			c.at = at
			return SubscribeResult{Mode: ModeSnapshot, Position: s.Position, State: s.State}, nil
		}
	}
}

// install puts the cursor in its place, behind its reply.
func (p *Client) install(c *cursor, start SubscribeResult) error {
	var reply []byte
	if c.sub.Reply != nil {
		reply = c.sub.Reply(start)
	}
	c.topic.attach(c)
	p.mu.Lock()
	if p.shut {
		p.mu.Unlock()
		c.topic.detach(c)
		return ErrClosed
	}
	var old *cursor
	if i := slices.IndexFunc(p.cursors, func(o *cursor) bool { return o.sub.Topic == c.sub.Topic }); i >= 0 {
		old, p.cursors[i] = p.cursors[i], c
		old.gone = true
	} else {
		p.cursors = append(p.cursors, c)
	}
	if reply != nil {
		p.direct = append(p.direct, parcel{frame: reply, opens: c})
		p.bytes += len(reply)
	} else {
		c.live = true
		p.enqueue(c)
	}
	p.flush()
	p.mu.Unlock()
	if old != nil {
		p.hub.drop(old)
	}
	return nil
}

// cursor finds the subscription of a topic and tells whether there is room for another.
func (p *Client) cursor(topic string) (found *cursor, room bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := 0
	for _, c := range p.cursors {
		if c.sub.Topic == topic {
			found = c
		}
		if !c.sub.Implicit {
			asked++
		}
	}
	return found, asked < p.hub.options.Subscriptions
}

// IsSubscribed tells whether the peer has subscribed to a topic.
func (p *Client) IsSubscribed(topic string) bool {
	c, _ := p.cursor(topic)
	return c != nil
}

// Unsubscribe ends a subscription and answers whether there was one. Frames already chosen still go out.
func (p *Client) Unsubscribe(topic string) bool {
	return p.remove(func(c *cursor) bool { return c.sub.Topic == topic })
}

func (p *Client) remove(which func(*cursor) bool) bool {
	p.mu.Lock()
	i := slices.IndexFunc(p.cursors, which)
	if i < 0 {
		p.mu.Unlock()
		return false
	}
	c := p.cursors[i]
	c.gone = true
	p.cursors = slices.Delete(p.cursors, i, i+1)
	p.mu.Unlock()
	p.hub.drop(c)
	return true
}

// The close codes of the protocol.
const (
	CloseGoingAway   = 1001
	CloseInternal    = 1011
	CloseRestart     = 1012
	CloseExpired     = 4001
	CloseTooSlow     = 4008
	CloseRateLimited = 4009
	CloseForbidden   = 4403
	CloseTooOld      = 4426
)

// Close ends the socket with a code and a reason of at most 120 bytes, behind the frames that Send has queued; a client that
// is too slow or too loud does not get those. It returns at once.
func (p *Client) Close(code int, reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeLocked(code, reason)
}

func (p *Client) closeLocked(code int, reason string) {
	if p.shut {
		return
	}
	p.shut, p.code, p.reason = true, code, reason[:min(len(reason), 120)]
	p.ready = nil
	switch code {
	case CloseTooSlow:
		p.hub.count.slowCloses.Add(1)
		p.direct, p.bytes = nil, 0
	case CloseRateLimited:
		p.hub.count.rateCloses.Add(1)
		p.direct, p.bytes = nil, 0
	}
	if p.carrier == nil {
		return // open closes it
	}
	p.greet()
	p.farewell()
}

// farewell starts the end of an open socket: the frames in flight, the close frame, the client's echo, and the hard end
// for whoever does not answer. Peer.mu is held.
func (p *Client) farewell() {
	drained := make(chan struct{})
	if p.inflight == 0 && len(p.direct) == 0 {
		close(drained)
	} else {
		p.drained = drained
	}
	conn, code, reason := p.carrier.WebsocketConnection(), p.code, p.reason
	if !p.hub.spawn(func() { p.socket.farewell(conn, p.done, drained, code, reason) }) {
		_ = conn.Close()
	}
}
