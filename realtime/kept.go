package realtime

import "time"

// keptValue is what a caller has read about a topic's state, and at which event.
type keptValue struct {
	value  any // nil: nothing
	pos    position
	readAt time.Time
}

// maxKeptAge bounds how long a value is kept although no event came: the end of what a topic is
// about may have none.
const maxKeptAge = time.Minute

// Keep keeps what a caller read about the state of a topic at a position "<seq>-<nonce>", until the
// next event. It keeps nothing for a topic that has no subscriber on this node.
func (h *Hub) Keep(topicName, atPosition string, value any) {
	v, ok := h.topics.Load(topicName)
	pos, valid := parsePosition(atPosition)
	if !ok || !valid {
		return
	}
	t := v.(*topic)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = keptValue{value, pos, time.Now()}
}

// Kept returns what was kept for a topic, nil when there is nothing or when it may be outdated: the
// topic has another event by now, an event is missing, or its channel is not heard. A node that is
// cut off from its store learns of it in Options.ProbeAfter and Options.ProbeTimeout at the latest.
func (h *Hub) Kept(topicName string) any {
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
	k := &t.kept
	missing := t.queuedJob != nil || t.backfilling || len(t.pendingEntries) > 0
	switch {
	case missing || !t.buffer.loaded || t.buffer.conflicted:
		return nil
	case t.buffer.head() != k.pos || time.Since(k.readAt) > maxKeptAge:
		return nil
	}
	return k.value
}
