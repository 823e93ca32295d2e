package realtime

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
)

// SubscribeMode says how a subscription begins.
type SubscribeMode string

// The modes.
const (
	ModeResume   SubscribeMode = "resume"   // after the position that the client has
	ModeSnapshot SubscribeMode = "snapshot" // from a snapshot
	ModeLive     SubscribeMode = "live"     // from now on; only without Subscription.TakeSnapshot
	ModeGap      SubscribeMode = "gap"      // from now on, because the position is lost; only with Subscription.Feed
)

// Subscription is a request to subscribe to a topic.
type Subscription struct {
	Topic         string // the list's key, which is the channel's name too
	AfterPosition string // "<seq>-<nonce>", the last position that the client has; "" for none
	// NotBeforePosition is the last position "<seq>-<nonce>" that the caller knows of, "" for none.
	// A snapshot that was taken before it, for another subscriber, is not used.
	NotBeforePosition string
	// NotBeforeSeq is the number in NotBeforePosition, for a caller that knows only the number; 0
	// for none.
	NotBeforeSeq int64
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
	// Authorize returns an error if the client may not subscribe; if it is nil, every client may.
	// It is called at the start, when the position is already fixed, so that no change in between
	// is missed. It is called again before a snapshot replaces missed events, after each event that
	// AffectsAuthorization selects, and every Options.ReauthorizeInterval. Later events wait for
	// the result. An error ends the subscription.
	Authorize func(context.Context) error
	// EncodeRevoked returns the frame that is sent when the subscription ends by an error of Authorize
	// that no event explains; nil for none.
	EncodeRevoked func(error) []byte
	// AffectsAuthorization reports whether an event may change the result of Authorize; nil: none
	// does. It must not block.
	AffectsAuthorization func(eventType string, event []byte) bool
	// Feed makes the topic a feed, of which each subscriber gets the events that its Filter selects.
	// All subscriptions of a topic must have the same one, or none.
	Feed   *Feed
	Filter Filter // of a Feed
	// HoldEvents is for how long the events wait, for a client that subscribes again with the position
	// that it has: it would get newer events before those that it missed. Only without a reply.
	HoldEvents time.Duration
	// Implicit marks a subscription of the server's own. It does not count against
	// Limits.TopicsPerConnection.
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
	s.Topic, s.AfterPosition, s.NotBeforePosition, s.NotBeforeSeq, s.EncodeReply = topic, "", "", 0, nil
}

// SubscribeResult has the position at which a subscription begins.
type SubscribeResult struct {
	Mode      SubscribeMode
	Position  string // "<seq>-<nonce>"
	StateJSON []byte // JSON, of the snapshot; only with ModeSnapshot
	// TopicIndex is the topic's number in binary frames; 0 for a client that has none.
	TopicIndex uint16
}

// cursor is the position of one client in one topic.
type cursor struct {
	client *Client
	topic  *topic
	sub    Subscription
	index  int    // in topic.cursors; under topic.mu
	place  int    // in Client.cursors; under Client.mu
	number uint16 // SubscribeResult.TopicIndex

	// Under Client.mu.
	pos           position
	authorizedAt  time.Time
	active        bool // the reply is on its way, so events may follow
	ready         bool // in Client.readyCursors
	paused        bool // a snapshot is being taken, or Authorize is being called
	removed       bool
	snapshotFrame frame // to be sent before the events
	// Of a feed.
	page    *ringBuffer // the events after pos that the topic no longer has; nil: none
	skipped int         // events that the filter did not select, since the client learned its position
	forks   int         // ringBuffer.forks when pos was found to be in the list
}

// Subscribe subscribes to a topic from a position, or from a snapshot if no position is given or
// its events are no longer stored. The reply is sent before the first event. Subscribing again
// replaces the subscription. It waits for Redis as long as ctx allows. It returns rate_limited,
// draining, store_unavailable, ErrClosed, and the errors of Subscription.TakeSnapshot and
// Subscription.Authorize.
func (c *Client) Subscribe(ctx context.Context, s Subscription) (SubscribeResult, error) {
	ctx, cancel := c.contextUntilDone(ctx)
	defer cancel()
	if err := c.rejectExcess([]Subscription{s})[0]; err != nil {
		return SubscribeResult{}, err
	}
	cur, start, err := c.newCursor(ctx, s)
	if err != nil {
		return SubscribeResult{}, err
	}
	var reply []byte
	if s.EncodeReply != nil {
		reply = s.EncodeReply(start)
	}
	if err := c.addCursors([]*cursor{cur}, reply); err != nil {
		return SubscribeResult{}, err
	}
	return start, nil
}

// SubscribeOutcome is the start of one of several subscriptions, or its error.
type SubscribeOutcome struct {
	SubscribeResult
	Err error // as Subscribe returns it
}

// SubscribeAll subscribes to different topics at the same time. One that fails is an error in its
// outcome and changes nothing else. encodeReply gets the outcomes in the order of subscriptions and
// returns the one reply, which is sent before the first event of each; EncodeReply is not called.
// It returns ErrClosed.
func (c *Client) SubscribeAll(
	ctx context.Context, subscriptions []Subscription, encodeReply func([]SubscribeOutcome) []byte,
) error {
	ctx, cancel := c.contextUntilDone(ctx)
	defer cancel()
	cursors, outcomes := make([]*cursor, len(subscriptions)), make([]SubscribeOutcome, len(subscriptions))
	var panicked recovered
	var started sync.WaitGroup
	for i, refused := range c.rejectExcess(subscriptions) {
		if outcomes[i].Err = refused; refused != nil {
			continue
		}
		started.Go(func() {
			defer panicked.recover()
			cursors[i], outcomes[i].SubscribeResult, outcomes[i].Err = c.newCursor(ctx, subscriptions[i])
		})
	}
	started.Wait()
	cursors = slices.DeleteFunc(cursors, func(cur *cursor) bool { return cur == nil })
	if panicked.value != nil {
		c.releaseCursors(cursors)
		panic(panicked.value)
	}
	if c.isDone() {
		c.releaseCursors(cursors)
		return ErrClosed
	}
	return c.addCursors(cursors, encodeReply(outcomes))
}

// recovered keeps a panic of one of several goroutines for the one that waits for them.
type recovered struct {
	mu    sync.Mutex
	value any // of the first panic; nil: none
}

func (r *recovered) recover() {
	if value := recover(); value != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.value == nil {
			r.value = value
		}
	}
}

// newCursor returns a cursor that is not subscribed yet, and where it begins.
func (c *Client) newCursor(ctx context.Context, s Subscription) (*cursor, SubscribeResult, error) {
	t, err := c.hub.acquireTopic(s.Topic, s.Feed)
	if err != nil {
		return nil, SubscribeResult{}, err
	}
	kept := false
	defer func() {
		if !kept {
			c.hub.releaseTopic(t)
		}
	}()
	cur := &cursor{client: c, topic: t, sub: s}
	start, err := cur.resolveStart(ctx)
	if err == nil {
		err = s.checkAuthorized(ctx)
	}
	if err != nil {
		if c.isDone() {
			err = ErrClosed
		}
		return nil, SubscribeResult{}, err
	}
	kept = true
	if !s.Implicit {
		cur.number = c.numberFor(t)
	}
	start.TopicIndex = cur.number
	return cur, start, nil
}

// releaseCursors gives up cursors that were not subscribed.
func (c *Client) releaseCursors(cursors []*cursor) {
	for _, cur := range cursors {
		c.hub.releaseTopic(cur.topic)
	}
}

// resolveStart finds the position at which the cursor begins.
func (cur *cursor) resolveStart(ctx context.Context) (SubscribeResult, error) {
	t := cur.topic
	select {
	case <-t.loadDone:
	case <-ctx.Done():
		return SubscribeResult{}, apierror.StoreUnavailable.WithReason("the events cannot be reached")
	}
	if t.feed != nil {
		return cur.resolveFeedStart(ctx)
	}
	notBefore, known := parsePosition(cur.sub.NotBeforePosition)
	if !known {
		notBefore = position{seq: uint64(cur.sub.NotBeforeSeq)}
	}
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

// addCursors subscribes cursors, and queues the reply, nil for none, before their events. It
// returns ErrClosed, and then gives the cursors up.
func (c *Client) addCursors(cursors []*cursor, reply []byte) error {
	now := time.Now()
	for _, cur := range cursors {
		cur.sub.dropStart(cur.topic.name)
		cur.authorizedAt = now
		cur.topic.addCursor(cur)
		c.hub.observeStart(cur)
	}
	replaced, err := c.insertCursors(cursors, reply)
	if err != nil {
		for _, cur := range cursors {
			cur.topic.removeCursor(cur)
			c.hub.observeEnd(cur)
		}
		c.releaseCursors(cursors)
		return err
	}
	for _, old := range replaced {
		c.hub.detachCursor(old)
	}
	return nil
}

// insertCursors is the part of addCursors under Client.mu. It returns the cursors that were
// replaced.
func (c *Client) insertCursors(cursors []*cursor, reply []byte) (replaced []*cursor, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closeStarted {
		return nil, ErrClosed
	}
	if c.isOutboxFull(len(reply)) {
		c.closeLocked(CloseTooSlow, "too slow")
		return nil, ErrClosed
	}
	for _, cur := range cursors {
		if old := c.cursors.put(cur); old != nil {
			replaced = append(replaced, old)
			old.removed = true
		}
		if _, ahead := cur.topic.contains(cur.pos); ahead {
			c.verifyAhead(cur)
		}
		switch {
		case reply != nil: // the cursor is activated when the reply is on its way
		case cur.sub.HoldEvents > 0:
			time.AfterFunc(cur.sub.HoldEvents, func() { c.activateHeld(cur) })
		default:
			c.activate(cur)
		}
	}
	if reply != nil {
		c.outbox = append(c.outbox, outboundMessage{frame: newFrame(opText, reply), activates: cursors})
		c.outboxBytes += len(c.outbox[len(c.outbox)-1].frame)
	}
	c.flush()
	return replaced, nil
}

// verifyAhead reads the list of a cursor that begins behind the newest event of the buffer. Then
// the channel is late, or has lost something; or the snapshot is of a history that the store has
// lost meanwhile, and is replaced. Client.mu must be held.
func (c *Client) verifyAhead(cur *cursor) {
	job := cur.topic.requestBackfill(false)
	c.hub.startTask(func() {
		ctx, cancel := c.contextUntilDone(c.hub.baseCtx)
		defer cancel()
		if job.wait(ctx) == nil {
			c.notify(cur, true)
		}
	})
}

// activate lets the events of a cursor follow. Client.mu must be held.
func (c *Client) activate(cur *cursor) {
	if !cur.removed {
		cur.active = true
		c.markReady(cur)
	}
}

// activateHeld is called when Subscription.HoldEvents is over.
func (c *Client) activateHeld(cur *cursor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.activate(cur)
	c.flush()
}

// rejectExcess returns nil for each subscription, rate_limited for those beyond the limit.
func (c *Client) rejectExcess(subscriptions []Subscription) []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	counted, most := c.cursors.counted, c.socketKind.limits.TopicsPerConnection
	refused := make([]error, len(subscriptions))
	for i, s := range subscriptions {
		switch {
		case s.Implicit || c.cursors.find(s.Topic) != nil:
		case counted >= most:
			refused[i] = apierror.RateLimited.WithReason("a connection follows at most %d topics", most)
		default:
			counted++
		}
	}
	return refused
}

// IsSubscribed reports whether the client is subscribed to a topic.
func (c *Client) IsSubscribed(topic string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cursors.find(topic) != nil
}

// Unsubscribe ends a subscription. It returns false when there was none. Frames that are in flight
// still arrive.
func (c *Client) Unsubscribe(topic string) bool {
	return c.removeCursor(topic, nil)
}

// removeCursor ends the subscription to a topic; that of only alone, if only is not nil.
func (c *Client) removeCursor(topic string, only *cursor) bool {
	c.mu.Lock()
	cur := c.cursors.find(topic)
	if cur == nil || only != nil && cur != only {
		c.mu.Unlock()
		return false
	}
	cur.removed = true
	c.cursors.remove(cur)
	c.mu.Unlock()
	c.hub.detachCursor(cur)
	return true
}

// replaceWithSnapshot replaces what a cursor missed by a snapshot. A client that needs that too
// often because it is slow is closed; it can resume from its position later. The snapshot is taken
// when the job after has ended, or at once if after is nil. Client.mu must be held.
func (c *Client) replaceWithSnapshot(cur *cursor, slow bool, after *backfillJob) {
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
	if !c.hub.startTask(func() { c.supplySnapshot(cur, after) }) {
		c.closeLocked(CloseRestart, "restart")
	}
}

var errSnapshotOutdated = errors.New("the snapshot is older than the ring buffer")

// supplySnapshot takes a snapshot for a cursor that lost its position. It retries until it has one
// or the socket is closed. An error closes the socket, for example if the room no longer exists or
// the player may no longer see it. The client learns the reason from the reply to its next
// subscription.
func (c *Client) supplySnapshot(cur *cursor, after *backfillJob) {
	refused := c.retryUntilRefused(func(ctx context.Context) error {
		if after != nil {
			if err := after.wait(ctx); err != nil {
				return err
			}
		}
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
		if _, ahead := cur.topic.contains(pos); ahead {
			// The channel is late, or this is a history that the store has lost meanwhile: the list knows.
			if err := cur.topic.requestBackfill(false).wait(ctx); err != nil {
				return err
			}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		// A buffer that is replaced from here on finds the cursor (notify).
		if cur.topic.refutes(pos) {
			return errSnapshotOutdated
		}
		if cur.pos = pos; len(s.Frame) > 0 { // else the client got nothing before, and has nothing to replace
			cur.snapshotFrame = newFrame(opText, s.Frame)
		}
		c.resumeCursor(cur)
		return nil
	})
	if refused {
		c.Close(CloseTooSlow, "subscribe again")
	}
}

// reauthorizeDue calls Authorize again for each subscription that was last authorized
// Options.ReauthorizeInterval ago, because some changes, such as the end of a friendship, have no
// event.
func (c *Client) reauthorizeDue(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cur := range c.cursors.list {
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
		removed := c.removeCursor(cur.topic.name, cur)
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
