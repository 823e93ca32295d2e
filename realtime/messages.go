package realtime

import (
	"context"
	"crypto/rand"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// Receive subscribes the node to a channel of its own, for messages of other nodes to this one, as
// long as Run runs. receive is called for each message that Post has sent, in their order.
// It must not block, because the node's topics wait for it. The channel has no list: what is
// published while the node is not subscribed is lost.
func (h *Hub) Receive(channel string, receive func(message string)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, exists := h.topics.Load(channel); exists || h.closed {
		return apierror.Draining
	}
	t := newTopic(h, channel)
	t.refCount, t.receive = 1, receive // the reference is never released
	h.topics.Store(channel, t)         // it is not counted: nobody is subscribed
	h.pubsubManager.add(t)
	return nil
}

// Post sends a message to the node that receives a channel, and does not wait for the store. done
// is called with the number of nodes that got it, or with the store's error; it must not wait, for
// other messages do meanwhile. Messages that one goroutine posts keep their order; one whose reply
// the store loses may arrive twice. If Post returns an error, done is not called.
func (h *Hub) Post(ctx context.Context, channel string, message []byte, done func(nodes int64, err error)) error {
	p := &redisdb.Publication{Channel: channel, Message: append([]byte(ephemeralPrefix), message...)}
	p.Done = func(err error) {
		if err != nil {
			done(0, redisdb.WrapError("publish", err))
			return
		}
		done(p.Receivers(), nil)
	}
	return redisdb.WrapError("publish", h.db.Publish(ctx, p))
}

// BroadcastToTopic sends an event to all clients of a topic on every node. It is not stored and
// arrives at most once. It waits for the store. It returns store_unavailable.
func (h *Hub) BroadcastToTopic(ctx context.Context, topic string, event []byte) error {
	// A sender of its own, because calls at the same time have no order that must be kept.
	m := EphemeralMessage{Text: event, senderID: rand.Text(), seq: 1}
	result := make(chan error, 1)
	p := &redisdb.Publication{Channel: topic, Message: m.appendPayload(nil), Done: func(err error) { result <- err }}
	if err := h.db.Publish(ctx, p); err != nil {
		return redisdb.WrapError("publish", err)
	}
	select {
	case err := <-result:
		return redisdb.WrapError("publish", err)
	case <-ctx.Done():
		return redisdb.WrapError("publish", ctx.Err())
	}
}

// Offer is Send for a message that comes from others, which must not close a socket that is slow.
// It returns false when the socket is closed, or when so much is queued that the message is
// dropped. Messages that wait share a frame.
func (c *Client) Offer(text []byte) (taken bool) {
	if len(text) == 0 {
		return false
	}
	f := newFrame(opText, text)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closeStarted {
		return false
	}
	if c.isOutboxFullForEphemeral(len(f)) {
		c.flush() // a client that is not slow has room then
	}
	if c.isOutboxFullForEphemeral(len(f)) {
		c.hub.counters.ephemeralDropped.Add(1)
		return false
	}
	c.appendOutbox(outboundMessage{frame: f, batchable: true})
	c.flush()
	return true
}
