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
	maxInFlight       = 2   // frames handed to melody and not yet written
	maxInboxFrames  = 128 // frames that came in and wait for their turn: the burst that a client may send
	maxOutboxFrames = 256
	maxOutboxBytes  = 1 << 20
	maxSlowSnapshots    = 3 // snapshots because of slowness …
	slowWindow     = time.Minute
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
	melodySession   *melody.Session // nil until the upgrade is done
	inFlight  int
	allowedTicks   [maxInFlight]int64 // for each frame in flight, how many beats the client may take over it
	writeStartTick     int64         // the beat at which it began with the first of them
	outbox    []outboundMessage
	outboxBytes     int  // in direct
	writable   bool // frames may go out
	cursors   []*cursor
	readyCursors     []*cursor // may have something to send, in turn
	lastFromOutbox      bool      // the last frame was a direct one
	closing      bool      // nothing more is sent
	closeCode      int       // why
	closeReason    string
	flushed   chan struct{} // closed when nothing is in flight, once shut
	slowSnapshots      [maxSlowSnapshots]time.Time
	oldestSlow  int
	expiryTimer    *time.Timer
	ephemeralSeq atomic.Uint64

	// Of the goroutine that reads.
	limiter *rate.Limiter

	inboxMu    sync.Mutex
	inbox   []func()
	inboxBytes int
	inboxRunning bool
	inboxTasks   sync.WaitGroup
}

// outboundMessage is a frame for one socket.
type outboundMessage struct {
	frame []byte
	batchable bool    // may share a frame with others
	activates *cursor // its events begin after this frame
}

// cursor is the place of one peer in one topic.
type cursor struct {
	client  *Client
	topic *topic
	sub   Subscription

	// Under Peer.mu.
	pos       position
	active     bool // the reply is on its way
	ready   bool // in Peer.ready
	paused bool // a snapshot is being taken, or the gate is being asked
	removed     bool
	snapshotFrame    []byte // a snapshot that goes first
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
func (p *Client) Send(frame []byte) error { return p.enqueueMessage(outboundMessage{frame: frame}) }

func (p *Client) enqueueMessage(out outboundMessage) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		return ErrClosed
	}
	if len(p.outbox) > 0 && (len(p.outbox) >= maxOutboxFrames || p.outboxBytes+len(out.frame) > maxOutboxBytes) {
		p.closeLocked(CloseTooSlow, "too slow")
		return ErrClosed
	}
	p.outbox = append(p.outbox, out)
	p.outboxBytes += len(out.frame)
	p.flush()
	return nil
}

// enqueueEphemeral queues a whisper, or drops it when too much waits.
func (p *Client) enqueueEphemeral(c *cursor, frame []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closing || !c.active || c.removed:
	case len(p.outbox) >= maxOutboxFrames/2 || p.outboxBytes+len(frame) > maxOutboxBytes/2:
		p.hub.counters.ephemeralDropped.Add(1)
	default:
		p.outbox = append(p.outbox, outboundMessage{frame: frame, batchable: true})
		p.outboxBytes += len(frame)
		p.hub.counters.ephemeralDeliveries.Add(1)
		p.flush()
	}
}

// notify tells the peer that a topic of its may have something new.
func (p *Client) notify(c *cursor, prove bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.removed || p.closing {
		return
	}
	if prove && !c.paused {
		if held, _ := c.topic.contains(c.pos); !held {
			c.snapshotFrame = nil
			p.replaceWithSnapshot(c, false)
			return
		}
	}
	p.markReady(c)
	p.flush()
}

func (p *Client) markReady(c *cursor) {
	if c.active && !c.ready && !p.closing {
		c.ready = true
		p.readyCursors = append(p.readyCursors, c)
	}
}

// flush hands frames to melody while there is room. Peer.mu is held; melody's buffer is larger than the window,
// so that it never calls back from here because it is full.
func (p *Client) flush() {
	for p.inFlight < maxInFlight && p.writable {
		frame := p.nextFrame()
		if frame == nil {
			return
		}
		if p.inFlight == 0 {
			p.writeStartTick = p.hub.writeDeadlineTick.Load()
		}
		p.hub.counters.frames.Add(1)
		p.allowedTicks[p.inFlight] = int64(p.socket.writeFrame(p.melodySession, frame)/p.hub.tickInterval) + 1
		p.inFlight++
	}
}

// enableWrites lets frames go out, hello before all others. Peer.mu is held.
func (p *Client) enableWrites() {
	if p.writable || p.melodySession == nil {
		return
	}
	p.writable = true
	if p.socket.limits.Hello {
		hello := outboundMessage{frame: encodeHello(p, p.socket.limits, p.hub.options.Subscriptions)}
		p.outbox = append([]outboundMessage{hello}, p.outbox...)
		p.outboxBytes += len(hello.frame)
	}
	p.flush()
}

// nextFrame takes the next frame, nil when there is none.
func (p *Client) nextFrame() []byte {
	for {
		if len(p.outbox) > 0 && (!p.lastFromOutbox || len(p.readyCursors) == 0) {
			p.lastFromOutbox = true
			return p.nextOutboxFrame()
		}
		if len(p.readyCursors) == 0 {
			return nil
		}
		p.lastFromOutbox = false
		c := p.readyCursors[0]
		p.readyCursors = slices.Delete(p.readyCursors, 0, 1)
		c.ready = false
		switch {
		case c.removed || c.paused:
			continue
		case c.snapshotFrame != nil:
			frame := c.snapshotFrame
			c.snapshotFrame = nil
			p.markReady(c)
			return frame
		}
		next, ok := c.topic.nextBatch(c.pos, c.sub.NeedsReauthorization)
		if !ok {
			p.replaceWithSnapshot(c, true)
			continue
		}
		if next.count == 0 {
			continue
		}
		c.pos = next.last
		p.hub.counters.deliveries.Add(uint64(next.count))
		switch {
		case next.needsReauthorization:
			p.pauseForReauthorization(c)
		case next.count > 1:
			p.markReady(c) // there may be more than one frame holds
		}
		return next.frame
	}
}

func (p *Client) nextOutboxFrame() []byte {
	first := p.outbox[0]
	n := 1
	if first.batchable {
		for size := len(first.frame); n < len(p.outbox) && n < maxFrameEvents && p.outbox[n].batchable; n++ {
			if size += len(p.outbox[n].frame) + 1; size > maxFrameBytes {
				break
			}
		}
	}
	frame := first.frame
	if n > 1 {
		entries := make([]entry, n)
		for i := range entries {
			entries[i].event = p.outbox[i].frame
		}
		frame = encodeArray(entries)
	}
	for _, out := range p.outbox[:n] {
		p.outboxBytes -= len(out.frame)
	}
	p.outbox = slices.Delete(p.outbox, 0, n)
	if c := first.activates; c != nil && !c.removed {
		c.active = true
		p.markReady(c)
	}
	return frame
}

// onFrameSent gives back the room of one frame.
func (p *Client) onFrameSent() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inFlight--
	copy(p.allowedTicks[:], p.allowedTicks[1:])
	p.writeStartTick = p.hub.writeDeadlineTick.Load()
	p.flush()
	if p.flushed != nil && p.inFlight == 0 {
		close(p.flushed)
		p.flushed = nil
	}
}

// checkWriteStall closes a client that has taken nothing for too long. Beats are counted, not time: a node that was itself asleep blames nobody.
func (p *Client) checkWriteStall(beat int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inFlight > 0 && beat-p.writeStartTick > p.allowedTicks[0] {
		p.closeLocked(CloseTooSlow, "too slow")
	}
}

// replaceWithSnapshot replaces what a cursor missed by a snapshot. A session that needs that too often because it is slow is closed:
// it comes back with its position when it can.
func (p *Client) replaceWithSnapshot(c *cursor, slow bool) {
	if c.paused || c.removed || p.closing {
		return
	}
	if slow {
		oldest := &p.slowSnapshots[p.oldestSlow]
		if now := time.Now(); now.Sub(*oldest) < slowWindow {
			p.closeLocked(CloseTooSlow, "too slow")
			return
		}
		*oldest = time.Now()
		p.oldestSlow = (p.oldestSlow + 1) % maxSlowSnapshots
	}
	if c.sub.Snapshot == nil {
		p.closeLocked(CloseTooSlow, "the past is gone")
		return
	}
	c.paused = true
	if !p.hub.startTask(func() { p.fetchSnapshot(c) }) {
		p.closeLocked(CloseRestart, "restart")
	}
}

var errSnapshotOutdated = errors.New("the snapshot is older than the log")

// fetchSnapshot takes a snapshot for a cursor that lost its place. It tries until it has one or the socket is gone; a refusal
// (the topic has ended, or is no longer the player's) closes the socket, for a new subscription will tell why.
func (p *Client) fetchSnapshot(c *cursor) {
	fresh := false
	refused := p.retryUntilRefused(func(ctx context.Context) error {
		s, at, err := c.topic.snapshot(ctx, fresh, c.sub.Snapshot)
		if err == nil {
			err = c.sub.authorize(ctx)
		}
		if err != nil {
			p.hub.counters.snapshotFailures.Add(1)
			return err
		}
		held, ahead := c.topic.contains(at)
		switch {
		case ahead:
			c.topic.requestBackfill(false)
		case !held:
			fresh = true
			return errSnapshotOutdated
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		c.pos, c.snapshotFrame = at, s.Frame
		p.resumeCursor(c)
		return nil
	})
	if refused {
		p.Close(CloseTooSlow, "subscribe again")
	}
}

// pauseForReauthorization stops a cursor behind an event that is doubted, until its gate has been asked. Peer.mu is held.
func (p *Client) pauseForReauthorization(c *cursor) {
	c.paused = true
	pass := func() {
		refused := p.retryUntilRefused(func(ctx context.Context) error {
			err := c.sub.authorize(ctx)
			if err == nil {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.resumeCursor(c)
			}
			return err
		})
		if refused {
			p.removeCursor(func(o *cursor) bool { return o == c })
		}
	}
	if !p.hub.startTask(pass) {
		p.closeLocked(CloseRestart, "restart")
	}
}

// resumeCursor lets a cursor go on that waited. Peer.mu is held.
func (p *Client) resumeCursor(c *cursor) {
	c.paused = false
	if !c.removed {
		p.markReady(c)
		p.flush()
	}
}

// retryUntilRefused tries until it succeeds, the socket is gone, or the answer is a refusal for good: then it answers true.
func (p *Client) retryUntilRefused(try func(context.Context) error) (refused bool) {
	ctx, cancel := p.contextUntilDone(p.hub.baseCtx)
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

// contextUntilDone is ctx, ended when the socket is gone. It exists while it is needed only: ten thousand idle sockets have none.
func (p *Client) contextUntilDone(ctx context.Context) (context.Context, context.CancelFunc) {
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

func (p *Client) isDone() bool {
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

func (s *Subscription) authorize(ctx context.Context) error {
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
	ctx, cancel := p.contextUntilDone(ctx)
	defer cancel()
	old, room := p.findCursor(s.Topic)
	if old == nil && !room && !s.Implicit {
		return SubscribeResult{}, apierror.RateLimited.WithReason("a connection follows at most %d topics", p.hub.options.Subscriptions)
	}
	t, err := p.hub.acquireTopic(s.Topic)
	if err != nil {
		return SubscribeResult{}, err
	}
	c := &cursor{client: p, topic: t, sub: s}
	start, err := c.resolveStart(ctx)
	if err == nil {
		err = s.authorize(ctx)
	}
	if err == nil {
		err = p.addCursor(c, start)
	}
	if err != nil {
		p.hub.releaseTopic(t)
		if p.isDone() {
			err = ErrClosed
		}
		return SubscribeResult{}, err
	}
	return start, nil
}

// resolveStart finds where the cursor stands.
func (c *cursor) resolveStart(ctx context.Context) (SubscribeResult, error) {
	t := c.topic
	select {
	case <-t.ready:
	case <-ctx.Done():
		return SubscribeResult{}, apierror.StoreUnavailable.WithReason("the events cannot be reached")
	}
	if at, ok := parsePosition(c.sub.After); ok {
		found, err := t.backfillTo(ctx, at)
		if err != nil {
			return SubscribeResult{}, err
		}
		if found {
			c.pos = at
			return SubscribeResult{Mode: ModeResume, Position: at.String()}, nil
		}
	}
	if c.sub.Snapshot == nil {
		c.pos = t.head()
		return SubscribeResult{Mode: ModeLive, Position: c.pos.String()}, nil
	}
	for fresh := false; ; fresh = true {
		s, at, err := t.snapshot(ctx, fresh, c.sub.Snapshot)
		if err != nil {
			return SubscribeResult{}, err
		}
		held, ahead := t.contains(at)
		if ahead {
			t.requestBackfill(false) // the channel is behind, or has lost something
		}
		if !held && !ahead && fresh {
			// The event of this very position is the oldest that the log has, and what was before it is not known: read it.
			if held, err = t.backfillTo(ctx, at); err != nil {
				return SubscribeResult{}, err
			}
		}
		if held || ahead || fresh {
			c.pos = at
			return SubscribeResult{Mode: ModeSnapshot, Position: s.Position, State: s.State}, nil
		}
	}
}

// addCursor puts the cursor in its place, behind its reply.
func (p *Client) addCursor(c *cursor, start SubscribeResult) error {
	var reply []byte
	if c.sub.Reply != nil {
		reply = c.sub.Reply(start)
	}
	c.topic.addCursor(c)
	p.mu.Lock()
	if p.closing {
		p.mu.Unlock()
		c.topic.removeCursor(c)
		return ErrClosed
	}
	var old *cursor
	if i := slices.IndexFunc(p.cursors, func(o *cursor) bool { return o.sub.Topic == c.sub.Topic }); i >= 0 {
		old, p.cursors[i] = p.cursors[i], c
		old.removed = true
	} else {
		p.cursors = append(p.cursors, c)
	}
	if reply != nil {
		p.outbox = append(p.outbox, outboundMessage{frame: reply, activates: c})
		p.outboxBytes += len(reply)
	} else {
		c.active = true
		p.markReady(c)
	}
	p.flush()
	p.mu.Unlock()
	if old != nil {
		p.hub.detachCursor(old)
	}
	return nil
}

// findCursor finds the subscription of a topic and tells whether there is room for another.
func (p *Client) findCursor(topic string) (found *cursor, room bool) {
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
	c, _ := p.findCursor(topic)
	return c != nil
}

// Unsubscribe ends a subscription and answers whether there was one. Frames already chosen still go out.
func (p *Client) Unsubscribe(topic string) bool {
	return p.removeCursor(func(c *cursor) bool { return c.sub.Topic == topic })
}

func (p *Client) removeCursor(which func(*cursor) bool) bool {
	p.mu.Lock()
	i := slices.IndexFunc(p.cursors, which)
	if i < 0 {
		p.mu.Unlock()
		return false
	}
	c := p.cursors[i]
	c.removed = true
	p.cursors = slices.Delete(p.cursors, i, i+1)
	p.mu.Unlock()
	p.hub.detachCursor(c)
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
	if p.closing {
		return
	}
	p.closing, p.closeCode, p.closeReason = true, code, reason[:min(len(reason), 120)]
	p.readyCursors = nil
	switch code {
	case CloseTooSlow:
		p.hub.counters.slowCloses.Add(1)
		p.outbox, p.outboxBytes = nil, 0
	case CloseRateLimited:
		p.hub.counters.rateCloses.Add(1)
		p.outbox, p.outboxBytes = nil, 0
	}
	if p.melodySession == nil {
		return // open closes it
	}
	p.enableWrites()
	p.startCloseHandshake()
}

// startCloseHandshake starts the end of an open socket: the frames in flight, the close frame, the client's echo, and the hard end
// for whoever does not answer. Peer.mu is held.
func (p *Client) startCloseHandshake() {
	drained := make(chan struct{})
	if p.inFlight == 0 && len(p.outbox) == 0 {
		close(drained)
	} else {
		p.flushed = drained
	}
	conn, code, reason := p.melodySession.WebsocketConnection(), p.closeCode, p.closeReason
	if !p.hub.startTask(func() { p.socket.closeHandshake(conn, p.done, drained, code, reason) }) {
		_ = conn.Close()
	}
}
