package realtime

// Observer is notified of who subscribes to which topic, and of each event of a topic that somebody
// is subscribed to. It is not notified of subscriptions that the server makes for itself, nor of
// those of a ClientOptions.GroupID. Its methods must not block and must not call the hub.
type Observer interface {
	// Subscribed is called before the first event of a subscription is sent.
	Subscribed(topic string, userID int64)
	// Unsubscribed is called once for each call of Subscribed.
	Unsubscribed(topic string, userID int64)
	// EventAdded is called for each event as it is added to the topic, in order. It may be called
	// for an event a second time after the list turned out to have another event under a number
	// that this node knew.
	EventAdded(topic, eventType string, eventJSON []byte)
}

// isObserved reports whether the Observer is notified of a subscription.
func (cur *cursor) isObserved() bool { return !cur.sub.Implicit && cur.client.options.GroupID == 0 }

func (h *Hub) observeStart(cur *cursor) {
	if h.options.Observer != nil && cur.isObserved() {
		h.options.Observer.Subscribed(cur.topic.name, cur.client.options.UserID)
	}
}

func (h *Hub) observeEnd(cur *cursor) {
	if h.options.Observer != nil && cur.isObserved() {
		h.options.Observer.Unsubscribed(cur.topic.name, cur.client.options.UserID)
	}
}

func (h *Hub) observeEvents(t *topic, added []event) {
	if h.options.Observer != nil {
		for i := range added {
			h.options.Observer.EventAdded(t.name, added[i].kind, added[i].json())
		}
	}
}
