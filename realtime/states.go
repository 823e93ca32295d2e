package realtime

import (
	"slices"
	"sync"

	"github.com/parlor-games/parlor/internal/base/apierror"
)

// A state topic has neither a list nor numbers. Any code that knows the state publishes it on this
// node, and every subscriber gets the newest one: of the states that wait for a slow client only
// the newest is kept. Subscribers choose a variant, such as how much of the state they get. Those
// of one variant share its frames.

// StateSubscription is a request to subscribe to a state topic.
type StateSubscription struct {
	Topic   string // any name; it is no key of the store
	Variant any    // comparable, not nil
	Reply   []byte // is sent before the states
}

// stateTopics has the subscribers of the state topics. Lock order: Client.mu before stateTopics.mu.
type stateTopics struct {
	mu      sync.Mutex
	clients map[string]map[any][]*Client // by topic and variant; none is empty
}

func (s *stateTopics) add(topic string, variant any, c *Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clients == nil {
		s.clients = map[string]map[any][]*Client{}
	}
	if s.clients[topic] == nil {
		s.clients[topic] = map[any][]*Client{}
	}
	s.clients[topic][variant] = append(s.clients[topic][variant], c)
}

func (s *stateTopics) remove(topic string, variant any, c *Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	variants := s.clients[topic]
	i := slices.Index(variants[variant], c)
	if i < 0 {
		return
	}
	// A new list: the old one may be in use by those who publish.
	if variants[variant] = slices.Concat(variants[variant][:i], variants[variant][i+1:]); len(variants[variant]) > 0 {
		return
	}
	if delete(variants, variant); len(variants) == 0 {
		delete(s.clients, topic)
	}
}

// subscribersOf returns the subscribers of a variant. The list must not be changed.
func (s *stateTopics) subscribersOf(topic string, variant any) []*Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clients[topic][variant]
}

// allOf returns the subscribers of all variants.
func (s *stateTopics) allOf(topic string) (all []*Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, clients := range s.clients[topic] {
		all = append(all, clients...)
	}
	return all
}

// StateVariants returns the variants of a state topic that have subscribers, in any order.
func (h *Hub) StateVariants(topic string) []any {
	h.states.mu.Lock()
	defer h.states.mu.Unlock()
	variants := make([]any, 0, len(h.states.clients[topic]))
	for variant := range h.states.clients[topic] {
		variants = append(variants, variant)
	}
	return variants
}

// PublishState sends a state to the subscribers of a variant. It replaces an older state that still
// waits, and it waits for no client.
func (h *Hub) PublishState(topic string, variant any, text []byte) {
	f := newFrame(opText, text)
	h.eachClient(h.states.subscribersOf(topic, variant), func(c *Client) { c.enqueueState(topic, variant, f) })
}

// PublishStateEvent sends an event to all subscribers of a state topic. It comes between the states
// before and after it, and nothing takes its place.
func (h *Hub) PublishStateEvent(topic string, text []byte) {
	f := newFrame(opText, text)
	h.eachClient(h.states.allOf(topic), func(c *Client) { c.enqueueStateEvent(topic, f) })
}

// EndStates ends all subscriptions to a state topic, with a last frame.
func (h *Hub) EndStates(topic string, text []byte) {
	f := newFrame(opText, text)
	h.eachClient(h.states.allOf(topic), func(c *Client) {
		c.enqueueStateEvent(topic, f)
		c.UnsubscribeState(topic)
	})
}

// eachClient calls do for each client: of many, by several goroutines, since each is written to.
func (h *Hub) eachClient(clients []*Client, do func(*Client)) {
	if len(clients) < minParallelCursors {
		for _, c := range clients {
			do(c)
		}
		return
	}
	var others sync.WaitGroup
	for part := range slices.Chunk(clients, minParallelCursors/2) {
		others.Go(func() {
			for _, c := range part {
				do(c)
			}
		})
	}
	others.Wait()
}

// SubscribeState subscribes to a state topic. Subscribing again replaces the subscription. It
// returns rate_limited and ErrClosed.
func (c *Client) SubscribeState(s StateSubscription) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	old, isKnown := c.states[s.Topic]
	most := c.socketKind.limits.StateTopics
	switch {
	case c.closeStarted:
		return ErrClosed
	case !isKnown && len(c.states) >= most:
		return apierror.RateLimited.WithReason("a connection watches at most %d states", most)
	case c.isOutboxFull(len(s.Reply)):
		c.closeLocked(CloseTooSlow, "too slow")
		return ErrClosed
	}
	if isKnown {
		c.hub.states.remove(s.Topic, old, c)
	}
	if c.states == nil {
		c.states = map[string]any{}
	}
	c.states[s.Topic] = s.Variant
	c.hub.states.add(s.Topic, s.Variant, c)
	c.keepState(s.Topic)
	c.appendOutbox(outboundMessage{frame: newFrame(opText, s.Reply)})
	c.flush()
	return nil
}

// UnsubscribeState ends the subscription to a state topic. It returns false when there was none.
// Frames that are in flight still arrive.
func (c *Client) UnsubscribeState(topic string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	variant, ok := c.states[topic]
	if ok {
		delete(c.states, topic)
		c.hub.states.remove(topic, variant, c)
	}
	return ok
}

// dropStates ends all subscriptions to state topics. Client.mu must be held.
func (c *Client) dropStates() {
	for topic, variant := range c.states {
		c.hub.states.remove(topic, variant, c)
	}
	c.states = nil
}

func (c *Client) appendOutbox(out outboundMessage) {
	c.outbox = append(c.outbox, out)
	c.outboxBytes += len(out.frame)
}

// enqueueState queues a state, in the place of an older one that still waits.
func (c *Client) enqueueState(topic string, variant any, f frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closeStarted || c.states[topic] != variant {
		return
	}
	key := replaceKey{state: topic}
	if i := slices.IndexFunc(c.outbox, func(out outboundMessage) bool { return out.replaces == key }); i >= 0 {
		c.outboxBytes += len(f) - len(c.outbox[i].frame)
		c.outbox[i].frame = f
		c.hub.counters.statesReplaced.Add(1)
		return
	}
	if c.isOutboxFull(len(f)) {
		c.closeLocked(CloseTooSlow, "too slow")
		return
	}
	c.appendOutbox(outboundMessage{frame: f, replaces: key})
	c.flush()
}

// enqueueStateEvent queues an event of a state topic.
func (c *Client) enqueueStateEvent(topic string, f frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, isSubscribed := c.states[topic]
	switch {
	case c.closeStarted || !isSubscribed:
	case c.isOutboxFull(len(f)):
		c.closeLocked(CloseTooSlow, "too slow")
	default:
		c.keepState(topic)
		c.appendOutbox(outboundMessage{frame: f})
		c.flush()
	}
}

// keepState stops replacing the queued state, because a message queued later must follow it.
// Client.mu must be held.
func (c *Client) keepState(topic string) {
	for i := range c.outbox {
		if c.outbox[i].replaces == (replaceKey{state: topic}) {
			c.outbox[i].replaces = replaceKey{}
		}
	}
}
