package realtime

import "time"

// cachedState is the state of a topic as a caller has read it, and the event at which it did.
type cachedState struct {
	value  any // nil: nothing
	pos    position
	readAt time.Time
}

// maxCachedStateAge bounds how long a state is kept without an event: a topic may end without one.
const maxCachedStateAge = time.Minute

// CacheState caches the state of a topic at a position "<seq>-<nonce>", as a caller has read it,
// until the next event. It caches nothing for a topic that has no subscriber on this node.
func (h *Hub) CacheState(topicName, atPosition string, value any) {
	v, ok := h.topics.Load(topicName)
	pos, valid := parsePosition(atPosition)
	if !ok || !valid {
		return
	}
	t := v.(*topic)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cached = cachedState{value, pos, time.Now()}
}

// CachedState returns the cached state for a topic, or nil when there is none or it may be
// outdated: the topic has a newer event, an event is missing, or its channel is not subscribed. A
// node that is cut off from its store notices it within Options.ProbeAfter and
// Options.ProbeTimeout.
func (h *Hub) CachedState(topicName string) any {
	v, ok := h.topics.Load(topicName)
	if !ok {
		return nil
	}
	t := v.(*topic)
	if !t.live.Load() {
		return nil
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	k := &t.cached
	missing := t.queuedJob != nil || t.backfilling || len(t.pendingEntries) > 0
	switch {
	case missing || !t.buffer.loaded || t.buffer.conflicted:
		return nil
	case t.buffer.head() != k.pos || time.Since(k.readAt) > maxCachedStateAge:
		return nil
	}
	return k.value
}
