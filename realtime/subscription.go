package realtime

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
)

// SubscribeMode is how a subscription begins.
type SubscribeMode string

// The modes.
const (
	ModeResume   SubscribeMode = "resume"   // after the position that the client has
	ModeSnapshot SubscribeMode = "snapshot" // from a snapshot
	ModeLive     SubscribeMode = "live"     // from now on; only without Subscription.TakeSnapshot
)

// Subscription is a request to subscribe to a topic.
type Subscription struct {
	Topic         string // the list's key, which is the channel's name too
	AfterPosition string // "<seq>-<nonce>", the last position that the client has; "" for none
	// NotBeforePosition is the last position "<seq>-<nonce>" that the caller knows of, "" for none.
	// A snapshot that was taken before it, for another subscriber, is not used.
	NotBeforePosition string
	// TakeSnapshot reads the topic's state, on behalf of all subscribers. It is called at the start
	// of a subscription that cannot resume, and when a client lost its position. If it is nil, a
	// subscription begins with the next event, and a client that lost its position is closed with
	// 4008, unless there is TakeReplacement.
	TakeSnapshot func(context.Context) (Snapshot, error)
	// TakeReplacement is TakeSnapshot for a client that lost its position, of a subscription that
	// begins with the next event; nil where TakeSnapshot is not.
	TakeReplacement func(context.Context) (Snapshot, error)
	// EncodeReply returns the frame that is sent before the first event; nil for none.
	EncodeReply func(SubscribeResult) []byte
	// Authorize reports by its error whether the client may subscribe; nil: it may. It is called at
	// the start, after the position is known, so that nothing can change in between. It is called
	// again before a snapshot replaces missed events, and after each event that AffectsAuthorization
	// selects, and each Options.ReauthorizeInterval: the events behind it wait for the result. If
	// that is an error, the subscription ends.
	Authorize func(context.Context) error
	// EncodeRevoked returns the frame that is sent when the subscription ends by an error of Authorize
	// that no event explains; nil for none.
	EncodeRevoked func(error) []byte
	// AffectsAuthorization reports whether an event may change the result of Authorize; nil: none
	// does. It must not block.
	AffectsAuthorization func(eventType string, event []byte) bool
	// Implicit marks a subscription of the server's own. It does not count against
	// Options.TopicsPerConnection.
	Implicit bool
}

// replacementTaker returns what reads the state for a client that lost its position, nil for none.
func (s *Subscription) replacementTaker() func(context.Context) (Snapshot, error) {
	if s.TakeReplacement != nil {
		return s.TakeReplacement
	}
	return s.TakeSnapshot
}

func (s *Subscription) checkAuthorized(ctx context.Context) error {
	if s.Authorize == nil {
		return nil
	}
	return s.Authorize(ctx)
}

// dropStart drops what only the start of a subscription needs, which may last for hours. topic is
// the name that all subscriptions of the topic share.
func (s *Subscription) dropStart(topic string) {
	s.Topic, s.AfterPosition, s.NotBeforePosition, s.EncodeReply = topic, "", "", nil
}

// SubscribeResult is where a subscription begins.
type SubscribeResult struct {
	Mode      SubscribeMode
	Position  string // "<seq>-<nonce>"
	StateJSON []byte // JSON, of the snapshot; only with ModeSnapshot
}

// cursor is the position of one client in one topic.
type cursor struct {
	client *Client
	topic  *topic
	sub    Subscription

	// Under Client.mu.
	pos           position
	authorizedAt  time.Time
	active        bool // the reply is on its way, so events may follow
	ready         bool // in Client.readyCursors
	paused        bool // a snapshot is being taken, or Authorize is being called
	removed       bool
	snapshotFrame []byte // to be sent before the events
}

// Subscribe subscribes to a topic from a position, or from a snapshot when there is none or its
// past is gone. The reply is sent before the first event. Subscribing again replaces the
// subscription. It waits for Redis as long as ctx allows. It returns rate_limited, draining,
// store_unavailable, ErrClosed, and the errors of Subscription.TakeSnapshot and
// Subscription.Authorize.
func (c *Client) Subscribe(ctx context.Context, s Subscription) (SubscribeResult, error) {
	ctx, cancel := c.contextUntilDone(ctx)
	defer cancel()
	old, room := c.findCursor(s.Topic)
	if old == nil && !room && !s.Implicit {
		return SubscribeResult{}, apierror.RateLimited.
			WithReason("a connection follows at most %d topics", c.hub.options.TopicsPerConnection)
	}
	t, err := c.hub.acquireTopic(s.Topic)
	if err != nil {
		return SubscribeResult{}, err
	}
	cur := &cursor{client: c, topic: t, sub: s}
	start, err := cur.resolveStart(ctx)
	if err == nil {
		err = s.checkAuthorized(ctx)
	}
	if err == nil {
		err = c.addCursor(cur, start)
	}
	if err != nil {
		c.hub.releaseTopic(t)
		if c.isDone() {
			err = ErrClosed
		}
		return SubscribeResult{}, err
	}
	return start, nil
}

// resolveStart finds the position at which the cursor begins.
func (cur *cursor) resolveStart(ctx context.Context) (SubscribeResult, error) {
	t := cur.topic
	select {
	case <-t.loadDone:
	case <-ctx.Done():
		return SubscribeResult{}, apierror.StoreUnavailable.WithReason("the events cannot be reached")
	}
	notBefore, _ := parsePosition(cur.sub.NotBeforePosition)
	if pos, ok := parsePosition(cur.sub.AfterPosition); ok {
		resumable, err := t.canResume(ctx, pos, notBefore)
		if err != nil {
			return SubscribeResult{}, err
		}
		if resumable {
			if t.head().seq < notBefore.seq {
				t.requestBackfill(false) // the channel is late, or has lost something
			}
			cur.pos = pos
			return SubscribeResult{Mode: ModeResume, Position: pos.String()}, nil
		}
		if pos.seq > notBefore.seq {
			notBefore = pos // the client must not go back
		}
	}
	if cur.sub.TakeSnapshot == nil {
		cur.pos = t.head()
		return SubscribeResult{Mode: ModeLive, Position: cur.pos.String()}, nil
	}
	for fresh := false; ; fresh = true {
		s, pos, err := t.freshOrSharedSnapshot(ctx, notBefore, fresh, cur.sub.TakeSnapshot)
		if err != nil {
			return SubscribeResult{}, err
		}
		contained, ahead := t.contains(pos)
		if ahead {
			t.requestBackfill(false) // the channel is late, or has lost something
		}
		if !contained && !ahead && fresh {
			// The event at this position is the oldest in the buffer, so its predecessor is not known. Read
			// it.
			if contained, err = t.backfillTo(ctx, pos); err != nil {
				return SubscribeResult{}, err
			}
		}
		if contained || ahead || fresh {
			cur.pos = pos
			return SubscribeResult{Mode: ModeSnapshot, Position: s.Position, StateJSON: s.StateJSON}, nil
		}
	}
}

// addCursor adds the cursor and queues the reply before its events.
func (c *Client) addCursor(cur *cursor, start SubscribeResult) error {
	var reply []byte
	if cur.sub.EncodeReply != nil {
		reply = cur.sub.EncodeReply(start)
	}
	cur.sub.dropStart(cur.topic.name)
	cur.authorizedAt = time.Now()
	cur.topic.addCursor(cur)
	c.mu.Lock()
	if c.closeStarted {
		c.mu.Unlock()
		cur.topic.removeCursor(cur)
		return ErrClosed
	}
	var old *cursor
	sameTopic := func(other *cursor) bool { return other.sub.Topic == cur.sub.Topic }
	if i := slices.IndexFunc(c.cursors, sameTopic); i >= 0 {
		old, c.cursors[i] = c.cursors[i], cur
		old.removed = true
	} else {
		c.cursors = append(c.cursors, cur)
	}
	if reply != nil {
		c.outbox = append(c.outbox, outboundMessage{frame: reply, activates: cur})
		c.outboxBytes += len(reply)
	} else {
		cur.active = true
		c.markReady(cur)
	}
	c.flush()
	c.mu.Unlock()
	if old != nil {
		c.hub.detachCursor(old)
	}
	return nil
}

// findCursor returns the cursor of a topic, and whether there is room for another one.
func (c *Client) findCursor(topic string) (found *cursor, room bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	counted := 0
	for _, cur := range c.cursors {
		if cur.sub.Topic == topic {
			found = cur
		}
		if !cur.sub.Implicit {
			counted++
		}
	}
	return found, counted < c.hub.options.TopicsPerConnection
}

// IsSubscribed reports whether the client is subscribed to a topic.
func (c *Client) IsSubscribed(topic string) bool {
	cur, _ := c.findCursor(topic)
	return cur != nil
}

// Unsubscribe ends a subscription. It returns false when there was none. Frames that are in flight
// still arrive.
func (c *Client) Unsubscribe(topic string) bool {
	return c.removeCursor(func(cur *cursor) bool { return cur.sub.Topic == topic })
}

func (c *Client) removeCursor(match func(*cursor) bool) bool {
	c.mu.Lock()
	i := slices.IndexFunc(c.cursors, match)
	if i < 0 {
		c.mu.Unlock()
		return false
	}
	cur := c.cursors[i]
	cur.removed = true
	c.cursors = slices.Delete(c.cursors, i, i+1)
	c.mu.Unlock()
	c.hub.detachCursor(cur)
	return true
}

// replaceWithSnapshot replaces what a cursor missed by a snapshot. A client that needs that too
// often because it is slow is closed; it can resume from its position later. Client.mu must be
// held.
func (c *Client) replaceWithSnapshot(cur *cursor, slow bool) {
	if cur.paused || cur.removed || c.closeStarted {
		return
	}
	if slow {
		oldest := &c.slowSnapshotTimes[c.oldestSlowIndex]
		if now := time.Now(); now.Sub(*oldest) < slowSnapshotWindow {
			c.closeLocked(CloseTooSlow, "too slow")
			return
		}
		*oldest = time.Now()
		c.oldestSlowIndex = (c.oldestSlowIndex + 1) % maxSlowSnapshots
	}
	if cur.sub.replacementTaker() == nil {
		c.closeLocked(CloseTooSlow, "the past is gone")
		return
	}
	cur.paused = true
	if !c.hub.startTask(func() { c.supplySnapshot(cur) }) {
		c.closeLocked(CloseRestart, "restart")
	}
}

var errSnapshotOutdated = errors.New("the snapshot is older than the ring buffer")

// supplySnapshot takes a snapshot for a cursor that lost its position. It retries until it has one
// or the socket is closed. An error (the room is gone, or the player may no longer see it) closes
// the socket: the reply to a new subscription tells the client why.
func (c *Client) supplySnapshot(cur *cursor) {
	refused := c.retryUntilRefused(func(ctx context.Context) error {
		// What the client was answered since it subscribed is not known here, so the snapshot must be a
		// fresh one.
		s, pos, err := cur.topic.freshOrSharedSnapshot(ctx, position{}, true, cur.sub.replacementTaker())
		if err == nil {
			// The snapshot is shared by all subscribers, so it says nothing about this one's right to see
			// it.
			err = cur.sub.checkAuthorized(ctx)
		}
		if err != nil {
			c.hub.counters.snapshotFailures.Add(1)
			return err
		}
		contained, ahead := cur.topic.contains(pos)
		switch {
		case ahead:
			cur.topic.requestBackfill(false)
		case !contained:
			return errSnapshotOutdated
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		cur.pos, cur.snapshotFrame = pos, s.Frame
		c.resumeCursor(cur)
		return nil
	})
	if refused {
		c.Close(CloseTooSlow, "subscribe again")
	}
}

// reauthorizeDue asks again for each subscription whether the client may have it, when that was not
// asked for Options.ReauthorizeInterval: no event tells of a friendship that ended.
func (c *Client) reauthorizeDue(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cur := range c.cursors {
		due := now.Sub(cur.authorizedAt) >= c.hub.options.ReauthorizeInterval
		if due && cur.sub.Authorize != nil && cur.active && !cur.paused && !c.closeStarted {
			c.pauseForReauthorization(cur, cur.sub.EncodeRevoked)
		}
	}
}

// pauseForReauthorization stops a cursor until Authorize has been called again. encodeRevoked
// returns the frame that is sent if the subscription ends; nil for none. Client.mu must be held.
func (c *Client) pauseForReauthorization(cur *cursor, encodeRevoked func(error) []byte) {
	cur.paused, cur.authorizedAt = true, time.Now()
	reauthorize := func() {
		var last error
		refused := c.retryUntilRefused(func(ctx context.Context) error {
			last = cur.sub.checkAuthorized(ctx)
			if last == nil {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.resumeCursor(cur)
			}
			return last
		})
		if !refused {
			return
		}
		removed := c.removeCursor(func(other *cursor) bool { return other == cur })
		if removed && encodeRevoked != nil {
			_ = c.Send(encodeRevoked(last))
		}
	}
	if !c.hub.startTask(reauthorize) {
		c.closeLocked(CloseRestart, "restart")
	}
}

// resumeCursor ends the pause of a cursor. Client.mu must be held.
func (c *Client) resumeCursor(cur *cursor) {
	cur.paused = false
	if !cur.removed {
		c.markReady(cur)
		c.flush()
	}
}
