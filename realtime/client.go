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

// ErrClosed is returned when the socket is closed or about to be closed.
var ErrClosed = errors.New("the socket is closed")

const (
	maxInFlight      = 2   // frames handed to melody and not yet written
	maxInboxFrames   = 128 // frames from the client that wait for their handler: the burst that a client may send
	maxOutboxFrames  = 256
	maxOutboxBytes   = 1 << 20
	maxSlowSnapshots = 3 // snapshots because of slowness, within slowWindow
	slowWindow       = time.Minute
)

// Client is one socket. Its methods are safe for concurrent use.
//
// The next frame is built when the session can take it, not before: alternately from the outbox and
// from a topic, with every event after the topic's cursor. So a session that keeps up gets the same
// frames as all others, and a slower one gets fewer and larger frames.
type Client struct {
	hub     *Hub
	socket  *Socket
	session Session
	id      string
	done    chan struct{} // closed when the socket is closed
	conn    net.Conn      // of melodySession, to close it at any time; under Hub.mu

	mu             sync.Mutex
	melodySession  *melody.Session // nil until the upgrade is done
	inFlight       int
	allowedTicks   [maxInFlight]int64 // for each frame in flight, how many ticks the client may take over it
	writeStartTick int64              // when the first of them was begun
	outbox         []outboundMessage
	outboxBytes    int
	writable       bool // frames may be written
	cursors        []*cursor
	readyCursors   []*cursor // may have something to send, in turn
	lastFromOutbox bool      // the last frame came from the outbox
	closing        bool      // nothing more is queued
	closeCode      int
	closeReason    string
	flushed        chan struct{} // closed when nothing is in flight; nil until closing
	slowSnapshots  [maxSlowSnapshots]time.Time
	oldestSlow     int
	expiryTimer    *time.Timer
	ephemeralSeq   atomic.Uint64 // of the last message that this socket broadcast

	limiter *rate.Limiter // of frames from the client; owned by the goroutine that reads

	inboxMu      sync.Mutex
	inbox        []func()
	inboxBytes   int
	inboxRunning bool
	inboxTasks   sync.WaitGroup
}

// outboundMessage is a frame for one socket.
type outboundMessage struct {
	frame     []byte
	batchable bool    // may share a frame with others
	activates *cursor // its events begin after this frame
}

// ID returns the connection's id, which is unique among all nodes.
func (c *Client) ID() string { return c.id }

// User returns the id of the player on the socket.
func (c *Client) User() int64 { return c.session.User }

// Data returns Session.Data.
func (c *Client) Data() any { return c.session.Data }

// Done returns a channel that is closed when the socket is closed.
func (c *Client) Done() <-chan struct{} { return c.done }

// Send queues a frame for this socket, such as a reply. Frames keep their order. It returns
// ErrClosed when the socket is closed, or when so much is queued that the socket is closed now
// (4008).
func (c *Client) Send(frame []byte) error { return c.enqueueMessage(outboundMessage{frame: frame}) }

func (c *Client) enqueueMessage(out outboundMessage) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return ErrClosed
	}
	full := len(c.outbox) >= maxOutboxFrames || c.outboxBytes+len(out.frame) > maxOutboxBytes
	if len(c.outbox) > 0 && full {
		c.closeLocked(CloseTooSlow, "too slow")
		return ErrClosed
	}
	c.outbox = append(c.outbox, out)
	c.outboxBytes += len(out.frame)
	c.flush()
	return nil
}

// enqueueEphemeral queues an ephemeral message, or drops it when too much is queued.
func (c *Client) enqueueEphemeral(cur *cursor, frame []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closing || !cur.active || cur.removed:
	case len(c.outbox) >= maxOutboxFrames/2 || c.outboxBytes+len(frame) > maxOutboxBytes/2:
		c.hub.counters.ephemeralDropped.Add(1)
	default:
		c.outbox = append(c.outbox, outboundMessage{frame: frame, batchable: true})
		c.outboxBytes += len(frame)
		c.hub.counters.ephemeralDeliveries.Add(1)
		c.flush()
	}
}

// notify is called when a cursor's topic may have something new. verify is set when the topic's
// buffer was replaced, so that it may no longer contain the cursor's position.
func (c *Client) notify(cur *cursor, verify bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cur.removed || c.closing {
		return
	}
	if verify && !cur.paused {
		if contained, _ := cur.topic.contains(cur.pos); !contained {
			cur.snapshotFrame = nil
			c.replaceWithSnapshot(cur, false)
			return
		}
	}
	c.markReady(cur)
	c.flush()
}

func (c *Client) markReady(cur *cursor) {
	if cur.active && !cur.ready && !c.closing {
		cur.ready = true
		c.readyCursors = append(c.readyCursors, cur)
	}
}

// flush hands frames to melody while there is room. Client.mu must be held. melody's buffer is
// larger than maxInFlight: melody would call its error handler from here if the buffer were full.
func (c *Client) flush() {
	for c.inFlight < maxInFlight && c.writable {
		frame := c.nextFrame()
		if frame == nil {
			return
		}
		if c.inFlight == 0 {
			c.writeStartTick = c.hub.writeDeadlineTick.Load()
		}
		c.hub.counters.frames.Add(1)
		c.allowedTicks[c.inFlight] = int64(c.socket.writeFrame(c.melodySession, frame)/c.hub.tickInterval) + 1
		c.inFlight++
	}
}

// enableWrites lets frames be written, hello before all others. Client.mu must be held.
func (c *Client) enableWrites() {
	if c.writable || c.melodySession == nil {
		return
	}
	c.writable = true
	if c.socket.limits.Hello {
		hello := outboundMessage{frame: encodeHello(c, c.socket.limits, c.hub.options.Subscriptions)}
		c.outbox = append([]outboundMessage{hello}, c.outbox...)
		c.outboxBytes += len(hello.frame)
	}
	c.flush()
}

// nextFrame returns the next frame to write, nil when there is none.
func (c *Client) nextFrame() []byte {
	for {
		if len(c.outbox) > 0 && (!c.lastFromOutbox || len(c.readyCursors) == 0) {
			c.lastFromOutbox = true
			return c.nextOutboxFrame()
		}
		if len(c.readyCursors) == 0 {
			return nil
		}
		c.lastFromOutbox = false
		cur := c.readyCursors[0]
		c.readyCursors = slices.Delete(c.readyCursors, 0, 1)
		cur.ready = false
		if frame := c.nextTopicFrame(cur); frame != nil {
			return frame
		}
	}
}

// nextTopicFrame returns the next frame of a cursor's topic, nil when there is none now.
func (c *Client) nextTopicFrame(cur *cursor) []byte {
	switch {
	case cur.removed || cur.paused:
		return nil
	case cur.snapshotFrame != nil:
		frame := cur.snapshotFrame
		cur.snapshotFrame = nil
		c.markReady(cur)
		return frame
	}
	next, ok := cur.topic.nextBatch(cur.pos, cur.sub.NeedsReauthorization)
	if !ok {
		c.replaceWithSnapshot(cur, true)
		return nil
	}
	if next.count == 0 {
		return nil
	}
	cur.pos = next.last
	c.hub.counters.deliveries.Add(uint64(next.count))
	switch {
	case next.needsReauthorization:
		c.pauseForReauthorization(cur)
	case next.count > 1:
		c.markReady(cur) // there may be more than one frame holds
	}
	return next.frame
}

func (c *Client) nextOutboxFrame() []byte {
	first := c.outbox[0]
	n := 1
	if first.batchable {
		for size := len(first.frame); n < len(c.outbox) && n < maxFrameEvents && c.outbox[n].batchable; n++ {
			if size += len(c.outbox[n].frame) + 1; size > maxFrameBytes {
				break
			}
		}
	}
	frame := first.frame
	if n > 1 {
		entries := make([]entry, n)
		for i := range entries {
			entries[i].event = c.outbox[i].frame
		}
		frame = encodeArray(entries)
	}
	for _, out := range c.outbox[:n] {
		c.outboxBytes -= len(out.frame)
	}
	c.outbox = slices.Delete(c.outbox, 0, n)
	if cur := first.activates; cur != nil && !cur.removed {
		cur.active = true
		c.markReady(cur)
	}
	return frame
}

// onFrameSent is called when melody has written a frame.
func (c *Client) onFrameSent() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight--
	copy(c.allowedTicks[:], c.allowedTicks[1:])
	c.writeStartTick = c.hub.writeDeadlineTick.Load()
	c.flush()
	if c.flushed != nil && c.inFlight == 0 {
		close(c.flushed)
		c.flushed = nil
	}
}

// checkWriteStall closes a client that has read nothing for too long. It counts ticks instead of
// time, so that a node that was suspended itself does not blame its clients.
func (c *Client) checkWriteStall(tick int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inFlight > 0 && tick-c.writeStartTick > c.allowedTicks[0] {
		c.closeLocked(CloseTooSlow, "too slow")
	}
}

// retryUntilRefused calls try until it succeeds, the socket is closed, or the error is one that a
// retry cannot change. It returns true in the last case.
func (c *Client) retryUntilRefused(try func(context.Context) error) (refused bool) {
	ctx, cancel := c.contextUntilDone(c.hub.baseCtx)
	defer cancel()
	for delay := 50 * time.Millisecond; ; delay = min(2*delay, 2*time.Second) {
		err := try(ctx)
		if err == nil {
			return false
		}
		if e, ok := apierror.As(err); ok && !e.Retryable {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(delay):
		}
	}
}

// contextUntilDone returns a context that also ends when the socket is closed. It is made when it
// is needed, so that ten thousand idle sockets have none.
func (c *Client) contextUntilDone(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-c.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

func (c *Client) isDone() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// The close codes of the protocol. The server sends all of them but CloseGoingAway and
// CloseForbidden, which are reserved.
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

// Close closes the socket with a code and a reason of at most 120 bytes. The frames that Send has
// queued are written first, unless the code is CloseTooSlow or CloseRateLimited. It returns at
// once.
func (c *Client) Close(code int, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeLocked(code, reason)
}

func (c *Client) closeLocked(code int, reason string) {
	if c.closing {
		return
	}
	c.closing, c.closeCode, c.closeReason = true, code, reason[:min(len(reason), 120)]
	c.readyCursors = nil
	switch code {
	case CloseTooSlow:
		c.hub.counters.slowCloses.Add(1)
		c.outbox, c.outboxBytes = nil, 0
	case CloseRateLimited:
		c.hub.counters.rateCloses.Add(1)
		c.outbox, c.outboxBytes = nil, 0
	}
	if c.melodySession == nil {
		return // onConnect closes it
	}
	c.enableWrites()
	c.startCloseHandshake()
}

// startCloseHandshake starts the end of an open socket. Client.mu must be held.
func (c *Client) startCloseHandshake() {
	flushed := make(chan struct{})
	if c.inFlight == 0 && len(c.outbox) == 0 {
		close(flushed)
	} else {
		c.flushed = flushed
	}
	conn, code, reason := c.melodySession.WebsocketConnection(), c.closeCode, c.closeReason
	if !c.hub.startTask(func() { c.socket.closeHandshake(conn, c.done, flushed, code, reason) }) {
		_ = conn.Close()
	}
}
