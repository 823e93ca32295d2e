package realtime

// Resync gives every client a snapshot of each topic that it subscribes to, because the store has
// lost something that clients may have received. A subscription that has no snapshot goes on: it
// ends with 4008 if its list has forked.
func (h *Hub) Resync() {
	h.topics.Range(func(_, v any) bool {
		t := v.(*topic)
		t.snapshots.invalidate()
		t.requestBackfill(true)
		return true
	})
	for _, c := range h.listClients() {
		c.resync()
	}
}

func (c *Client) resync() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cur := range c.cursors {
		if cur.active && cur.sub.replacementTaker() != nil {
			cur.snapshotFrame = nil
			c.replaceWithSnapshot(cur, false)
		}
	}
}
