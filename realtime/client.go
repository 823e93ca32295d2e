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
	"github.com/parlor-games/parlor/internal/base/apierror"
	"golang.org/x/time/rate"
)

// ErrClosed is returned when the socket is closed or about to be closed.
var ErrClosed = errors.New("the socket is closed")

// ErrEmpty is returned for a message without a byte.
var ErrEmpty = errors.New("the message is empty")

const (
	maxFramesInFlight  = 2   // frames handed to melody and not yet written; of a directConn one
	maxInboxFrames     = 128 // frames from the client that wait for their handler: the burst that a client may send
	maxOutboxFrames    = 256
	maxOutboxBytes     = 1 << 20
	maxSlowSnapshots   = 3 // snapshots because of slowness, within slowSnapshotWindow
	slowSnapshotWindow = time.Minute

	// Ephemeral messages come from other players, so their bytes to one socket are limited, whoever
	// sends them.
	ephemeralBytesPerSecond = 32 << 10
	ephemeralBurst          = 2 * time.Second // of that rate, at once
)

// Client is one socket. Its methods are safe for concurrent use.
//
// The next frame is built when the client can take it, not before: alternately from the outbox and
// from a topic, with every event after the topic's cursor. So a client that keeps up gets the same
// frames as all others, and a slower one gets fewer and larger frames.
//
// A frame is written by the goroutine that has it, without waiting, as long as the kernel has room
// for it (directConn). A client that reads slowly, or not at all, holds at most Limits.OutboxBytes
// and one frame in the outbox, maxFramesInFlight frames on their way, and kernelSendBufferBytes in
// the kernel, for WriteTimeout and what minWriteBytesPerSecond adds, until it is closed (4008).
// Events are held by their topic, once for all its clients. A client that sends faster than its
// frames are handled holds at most Limits.WaitingFrames frames and Limits.WaitingBytes.
type Client struct {
	hub        *Hub
	socketKind *SocketKind
	options    ClientOptions
	id         string
	done       chan struct{} // closed when the socket is closed
	netConn    net.Conn      // of melodySession, to close it at any time; under Hub.mu
	binary     bool          // it speaks BinarySubprotocol
	directConn *directConn   // the same, for frames that melody does not write; nil: it writes all, as with TLS

	mu                sync.Mutex
	melodySession     *melody.Session // nil until the upgrade is done
	inFlight          int
	allowedTicks      [maxFramesInFlight]int64 // for each frame in flight, how many ticks the client may take over it
	writeStartTick    int64                    // when the first of them was begun
	outbox            []outboundMessage
	outboxBytes       int
	flushedWith       *ephemeralBatch // of the worker that calls flushEphemeral at its end; nil: none does
	writesEnabled     bool            // frames may be written
	cursors           cursorSet
	states            map[string]any // topic of a state → variant
	lastNumber        uint16         // of a cursor
	readyCursors      []*cursor      // may have something to send, in turn
	lastFromOutbox    bool           // the last frame came from the outbox
	closeStarted      bool           // nothing more is queued
	closeCode         int
	closeReason       string
	flushDone         chan struct{} // closed when nothing is in flight; nil until closing
	slowSnapshotTimes [maxSlowSnapshots]time.Time
	oldestSlowIndex   int
	ephemeralPaidAt   time.Time     // when the ephemeral messages so far have been paid for, at the allowed rate
	staleSent         bool          // server.stale was sent, and not yet that the store is heard again
	expiryTimer       *time.Timer   // nil: the socket does not expire
	ephemeralSeq      atomic.Uint64 // of the last message that this socket broadcast
	publishing        atomic.Int32  // messages that it broadcast and that are on their way to the store

	calls map[*runningCall]struct{} // those under way that wait for the store; under Client.mu; nil for none

	frameLimiter *rate.Limiter // of frames from the client; owned by the goroutine that reads

	handleInbox func() // runInbox; made once, because it is started for every message

	inboxMu               sync.Mutex
	inboxFirst, inboxLast *inboundMessage // wait for their handler; nil: none
	inboxCount            int             // of those that wait
	inboxBytes            int             // of those that wait, and of the one that is handled
	inboxRunning          bool
	inboxGroup            sync.WaitGroup // of runInbox
}

// outboundMessage is a frame for one socket.
type outboundMessage struct {
	frame     frame
	batchable bool // may share a frame with others
	replaces  replaceKey
	activates []*cursor // their events begin after this frame
}

// replaceKey is equal for messages of which only the newest is kept; zero: for no other.
type replaceKey struct {
	topic    *topic
	senderID string
	op       string
	state    string // instead of the others, the topic of a state
}

// ID returns the connection's id, which is unique among all nodes.
func (c *Client) ID() string { return c.id }

// UserID returns the id of the player on the socket.
func (c *Client) UserID() int64 { return c.options.UserID }

// Done returns a channel that is closed when the socket is closed.
func (c *Client) Done() <-chan struct{} { return c.done }

// Send queues a text frame for this socket, such as a reply. Frames keep their order. It returns
// ErrClosed when the socket is closed, or when so much is queued that the socket is closed now
// (4008), and ErrEmpty.
func (c *Client) Send(text []byte) error {
	if len(text) == 0 { // no JSON: a client could not read it
		return ErrEmpty
	}
	return c.enqueueMessage(outboundMessage{frame: newFrame(opText, text)})
}

func (c *Client) enqueueMessage(out outboundMessage) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closeStarted {
		return ErrClosed
	}
	if c.isOutboxFull(len(out.frame)) {
		c.closeLocked(CloseTooSlow, "too slow")
		return ErrClosed
	}
	c.outbox = append(c.outbox, out)
	c.outboxBytes += len(out.frame)
	c.flush()
	return nil
}

// isOutboxFull reports whether a frame of so many bytes is too much. Client.mu must be held.
func (c *Client) isOutboxFull(frameBytes int) bool {
	limits := &c.socketKind.limits
	return len(c.outbox) > 0 && (len(c.outbox) >= limits.OutboxFrames || c.outboxBytes+frameBytes > limits.OutboxBytes)
}

// isOutboxFullForEphemeral is isOutboxFull for messages of other players, which may fill only a
// part of the outbox. Client.mu must be held.
func (c *Client) isOutboxFullForEphemeral(frameBytes int) bool {
	limits := &c.socketKind.limits
	return len(c.outbox) >= limits.OutboxFrames/2 || c.outboxBytes+frameBytes > limits.OutboxBytes/2
}

// enqueueEphemeral queues an ephemeral message, or drops it when too much is queued. The client is
// flushed with the batch.
func (c *Client) enqueueEphemeral(cur *cursor, m *EphemeralMessage, batch *ephemeralBatch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// A message waits for no event, so Subscription.HoldEvents does not hold it.
	if c.closeStarted || cur.removed || !cur.active && cur.sub.HoldEvents == 0 {
		return
	}
	var replaces replaceKey
	if m.Latest {
		replaces = replaceKey{topic: cur.topic, senderID: m.senderID, op: m.Op}
		c.dropReplaced(replaces)
	}
	frame := m.frameFor(cur)
	if c.isOutboxFullForEphemeral(len(frame)) {
		c.flush() // a client that is not slow has room then
	}
	switch {
	case !c.payForEphemeral(len(frame), time.Now()):
		c.hub.counters.ephemeralLimited.Add(1)
	case c.isOutboxFullForEphemeral(len(frame)):
		c.hub.counters.ephemeralDropped.Add(1)
	default:
		c.outbox = append(c.outbox, outboundMessage{frame: frame, batchable: true, replaces: replaces})
		c.outboxBytes += len(frame)
		c.hub.counters.ephemeralDeliveries.Add(1)
	}
	switch c.flushedWith {
	case batch:
	case nil:
		c.flushedWith = batch
		batch.clients = append(batch.clients, c)
	default:
		batch.shared = true
	}
}

// dropReplaced drops the message that a newer one replaces, if it still waits, and gives back what
// was paid for it. Client.mu must be held.
func (c *Client) dropReplaced(key replaceKey) {
	for i := range c.outbox {
		if out := &c.outbox[i]; out.replaces == key {
			c.outboxBytes -= len(out.frame)
			c.ephemeralPaidAt = c.ephemeralPaidAt.Add(-c.ephemeralCost(len(out.frame)))
			c.hub.counters.ephemeralReplaced.Add(1)
			c.outbox = slices.Delete(c.outbox, i, i+1)
			return
		}
	}
}

// flushEphemeral writes the frames that enqueueEphemeral has queued. It returns true if the memory
// of the frames may be reused: a directConn copies the frames for which it has no room.
func (c *Client) flushEphemeral() (allWritten bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flushedWith = nil
	c.flush()
	c.noteFlushed()
	return len(c.outbox) == 0 && c.directConn != nil
}

// ephemeralCost returns how long so many bytes take at the allowed rate.
func (c *Client) ephemeralCost(bytes int) time.Duration {
	return time.Duration(bytes) * time.Second / time.Duration(c.socketKind.limits.EphemeralBytesPerSecond)
}

// payForEphemeral reports whether the socket may get so many bytes of ephemeral messages now.
// Client.mu must be held.
func (c *Client) payForEphemeral(bytes int, now time.Time) bool {
	from := c.ephemeralPaidAt
	if from.Before(now) {
		from = now
	}
	paidAt := from.Add(c.ephemeralCost(bytes))
	if paidAt.Sub(now) > ephemeralBurst {
		return false
	}
	c.ephemeralPaidAt = paidAt
	return true
}

// notify is called when a cursor's topic may have something new. verify is set when the topic's
// buffer was replaced, so that it may no longer contain the cursor's position.
func (c *Client) notify(cur *cursor, verify bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cur.removed || c.closeStarted {
		return
	}
	if verify && !cur.paused && cur.topic.feed == nil && cur.topic.refutes(cur.pos) {
		cur.snapshotFrame = nil
		c.replaceWithSnapshot(cur, false, nil)
		return
	}
	c.markReady(cur)
	c.flush()
}

func (c *Client) markReady(cur *cursor) {
	if cur.active && !cur.ready && !c.closeStarted {
		cur.ready = true
		c.readyCursors = append(c.readyCursors, cur)
	}
}

// flush writes frames while the socket takes them. Client.mu must be held. melody's buffer is
// larger than maxFramesInFlight: melody would call its error handler from here if the buffer were
// full.
func (c *Client) flush() {
	for c.canWrite() {
		frame := c.nextFrame()
		if frame == nil {
			return
		}
		c.hub.counters.framesSent.Add(1)
		if c.directConn != nil {
			if c.directConn.writeFrame(frame) {
				continue // the kernel has it
			}
		} else {
			c.socketKind.writeThroughMelody(c.melodySession, frame)
		}
		if c.inFlight == 0 {
			c.writeStartTick = c.hub.janitorTick.Load()
		}
		c.allowedTicks[c.inFlight] = int64(c.hub.timeToRead(frame)/c.hub.janitorInterval) + 1
		c.inFlight++
	}
}

// canWrite reports whether another frame may be written now. Client.mu must be held.
func (c *Client) canWrite() bool {
	most := maxFramesInFlight
	if c.directConn != nil {
		most = 1
	}
	return c.inFlight < most && c.writesEnabled
}

// enableWrites lets frames be written, hello before all others. Client.mu must be held.
func (c *Client) enableWrites() {
	if c.writesEnabled || c.melodySession == nil {
		return
	}
	c.writesEnabled = true
	if c.socketKind.limits.SendHello {
		hello := outboundMessage{frame: newFrame(opText, encodeHello(c, c.socketKind.limits, c.hub.options))}
		c.outbox = append([]outboundMessage{hello}, c.outbox...)
		c.outboxBytes += len(hello.frame)
	}
	c.flush()
}

// nextFrame returns the next frame to write, nil when there is none.
func (c *Client) nextFrame() frame {
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
		if len(c.readyCursors) <= maxScannedCursors {
			c.readyCursors = slices.Delete(c.readyCursors, 0, 1)
		} else {
			c.readyCursors = c.readyCursors[1:] // to move all others for each would take too long
		}
		cur.ready = false
		if frame := c.nextTopicFrame(cur); frame != nil {
			return frame
		}
	}
}

// nextTopicFrame returns the next frame of a cursor's topic, nil when there is none now.
func (c *Client) nextTopicFrame(cur *cursor) frame {
	switch {
	case cur.removed || cur.paused:
		return nil
	case cur.snapshotFrame != nil:
		frame := cur.snapshotFrame
		cur.snapshotFrame = nil
		c.markReady(cur)
		return frame
	}
	if cur.topic.feed != nil {
		return c.nextFeedFrame(cur)
	}
	next, ok := cur.topic.nextBatch(cur.pos, cur.sub.AffectsAuthorization)
	if !ok {
		c.replaceWithSnapshot(cur, true, nil)
		return nil
	}
	if next.count == 0 {
		return nil
	}
	cur.pos = next.last
	c.countDeliveries(next.count)
	switch {
	case next.lastAffectsAuthorization:
		c.pauseForReauthorization(cur, nil)
	case next.count > 1:
		c.markReady(cur) // there may be more than one frame holds
	}
	return next.frame
}

func (c *Client) countDeliveries(events int) {
	c.hub.counters.eventDeliveries.Add(uint64(events))
	c.socketKind.deliveries.Add(uint64(events))
}

// countBatch returns how many messages of the outbox are written together: texts as one frame, and
// binary frames behind each other, which melody could not write.
func (c *Client) countBatch() int {
	first := c.outbox[0]
	if !first.batchable || first.frame.isBinary() && c.directConn == nil {
		return 1
	}
	n := 1
	for size := len(first.frame); n < len(c.outbox) && n < maxBatchEvents; n++ {
		next := &c.outbox[n]
		if size += len(next.frame) + 1; size > maxBatchBytes || !next.batchable ||
			next.frame.isBinary() != first.frame.isBinary() {
			break
		}
	}
	return n
}

func (c *Client) nextOutboxFrame() frame {
	first := c.outbox[0]
	n := c.countBatch()
	frame := first.frame
	switch {
	case n == 1:
	case frame.isBinary():
		frame = slices.Concat(first.frame, c.outbox[1].frame)
		for _, out := range c.outbox[2:n] {
			frame = append(frame, out.frame...)
		}
	default:
		frame = newArrayFrame(n, func(i int) []byte { return c.outbox[i].frame.payload() })
	}
	for _, out := range c.outbox[:n] {
		c.outboxBytes -= len(out.frame)
	}
	c.outbox = slices.Delete(c.outbox, 0, n)
	for _, cur := range first.activates {
		c.activate(cur)
	}
	return frame
}

// onFrameSent is called when a frame was written that had to wait.
func (c *Client) onFrameSent() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight--
	copy(c.allowedTicks[:], c.allowedTicks[1:])
	c.writeStartTick = c.hub.janitorTick.Load()
	c.flush()
	c.noteFlushed()
}

// noteFlushed lets a close handshake go on that waited for the last frame. Client.mu must be held.
func (c *Client) noteFlushed() {
	if c.flushDone != nil && c.inFlight == 0 {
		close(c.flushDone)
		c.flushDone = nil
	}
}

// closeIfStalled closes a client that has read nothing for too long. It counts ticks instead of
// time, so that a node that was suspended itself does not blame its clients.
func (c *Client) closeIfStalled(tick int64) {
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
	call := &runningCall{cancel}
	c.mu.Lock()
	if c.calls == nil {
		c.calls = map[*runningCall]struct{}{}
	}
	c.calls[call] = struct{}{}
	c.mu.Unlock()
	if c.isDone() {
		cancel() // cancelCalls may have been before
	}
	return ctx, func() {
		cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		if delete(c.calls, call); len(c.calls) == 0 {
			c.calls = nil // an idle socket holds no map
		}
	}
}

// runningCall is a call that ends with its socket.
type runningCall struct{ cancel context.CancelFunc }

// cancelCalls ends the contexts of contextUntilDone. Client.done must be closed.
func (c *Client) cancelCalls() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for call := range c.calls {
		call.cancel()
	}
}

func (c *Client) isDone() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// The close codes that the server sends.
const (
	CloseInternal       = 1011
	CloseRestart        = 1012
	CloseExpired        = 4001
	CloseTooSlow        = 4008
	CloseRateLimited    = 4009
	CloseProtocolTooOld = 4426
)

// Close closes the socket with a code and a reason of at most 120 bytes. The frames that Send has
// queued are written first, unless the code is CloseTooSlow or CloseRateLimited. It returns at
// once.
func (c *Client) Close(code int, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeLocked(code, reason)
}

// SetExpiry replaces ClientOptions.ExpiresAt; the zero time means never. It returns ErrClosed.
func (c *Client) SetExpiry(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closeStarted {
		return ErrClosed
	}
	c.setExpiryLocked(at)
	return nil
}

func (c *Client) setExpiryLocked(at time.Time) {
	if c.expiryTimer != nil {
		c.expiryTimer.Stop()
		c.expiryTimer = nil
	}
	if at.IsZero() {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(time.Until(at), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.expiryTimer == timer { // else it was replaced while it fired
			c.closeLocked(CloseExpired, "token expired")
		}
	})
	c.expiryTimer = timer
}

func (c *Client) closeLocked(code int, reason string) {
	if c.closeStarted {
		return
	}
	c.closeStarted, c.closeCode, c.closeReason = true, code, reason[:min(len(reason), 120)]
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
		c.flushDone = flushed
	}
	conn, code, reason := c.melodySession.WebsocketConnection(), c.closeCode, c.closeReason
	if !c.hub.startTask(func() { c.socketKind.performCloseHandshake(conn, c.done, flushed, code, reason) }) {
		_ = conn.Close()
	}
}
