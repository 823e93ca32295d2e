package realtime

// Resync gives every client a snapshot of each topic that it subscribes to, because the store has
// lost something that clients may have received. A subscription that has no snapshot goes on: it
// ends with 4008 if its list has forked.
func (h *Hub) Resync() {
	jobs := map[*topic]*backfillJob{}
	h.topics.Range(func(_, v any) bool {
		t := v.(*topic)
		t.snapshots.invalidate()
		jobs[t] = t.requestBackfill(true)
		return true
	})
	for _, c := range h.listClients() {
		c.resync(jobs)
	}
}

// resync replaces the client's state with snapshots, after the buffers of its topics were read
// again from the store. Otherwise an event that the store lost could follow a snapshot.
func (c *Client) resync(jobs map[*topic]*backfillJob) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cur := range c.cursors.list {
		if cur.active && cur.sub.replacementTaker() != nil {
			cur.snapshotFrame = nil
			c.replaceWithSnapshot(cur, false, jobs[cur.topic])
		}
	}
}
