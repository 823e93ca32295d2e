package realtime

import (
	"context"
	"log/slog"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
)

// errSilent marks the lines about silence. During an outage of the store they say nothing new.
var errSilent = apierror.StoreUnavailable.WithReason("nothing is heard from the store")

// staleWatch notices that the node receives nothing from its store: no message, no confirmation and
// no probe on any pub/sub connection. After Options.StaleAfter it sends server.stale to the clients
// that subscribe to something, and asks other nodes whether they reach the store. If one does, only
// this node is cut off, and after Options.MoveAfter it closes all sockets with 1012. While no node
// reaches the store, or none replies, the sockets stay open. It closes a socket at most once during
// an outage, so that clients do not move from node to node.
//
// Silence is counted in ticks instead of time. A node that was suspended itself has not listened:
// its balancer takes it out, and its clients are not sent away when it goes on.
type staleWatch struct {
	hub         *Hub
	heard       atomic.Bool  // since the last tick
	silentTicks atomic.Int64 // ticks without anything
	stale       bool
	moved       bool          // the sockets have been told to move, since the node is stale
	episode     atomic.Uint64 // number of the time that the node is stale, 0 while it is not
	episodes    uint64
	agreed      atomic.Int64 // questions in a row to which another node said that it has the store
}

// askedTwice is how many questions in a row must have the same reply. When the store comes back for
// all, one node hears it a moment before another.
const askedTwice = 2

// markHeard is called for everything that a pub/sub connection receives.
func (w *staleWatch) markHeard() {
	if !w.heard.Load() {
		w.heard.Store(true)
	}
}

func (w *staleWatch) interval() time.Duration { return w.hub.options.StaleAfter / 12 }

// silence returns for how long nothing was heard.
func (w *staleWatch) silence() time.Duration {
	return time.Duration(w.silentTicks.Load()) * w.interval()
}

func (w *staleWatch) run(ctx context.Context) {
	ticker := time.NewTicker(w.interval())
	defer ticker.Stop()
	var asking sync.WaitGroup
	defer asking.Wait()
	if w.hub.options.OtherServes != nil {
		asking.Go(func() { w.askOthers(ctx) })
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.tick()
		}
	}
}

// askOthers asks other nodes once in Options.AskEvery while this one is stale.
func (w *staleWatch) askOthers(ctx context.Context) {
	ticker := time.NewTicker(w.hub.options.AskEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if w.episode.Load() != 0 && w.hub.options.OtherServes(ctx) {
			w.agreed.Add(1)
		} else {
			w.agreed.Store(0)
		}
	}
}

func (w *staleWatch) tick() {
	h := w.hub
	// Without a topic there is no connection on which anything could be heard.
	if w.heard.Swap(false) || h.counters.topics.Load() == 0 {
		silence := w.silence()
		w.silentTicks.Store(0)
		if w.stale {
			w.recover(silence)
		}
		return
	}
	w.silentTicks.Add(1)
	silence := w.silence()
	if silence < h.options.StaleAfter {
		return
	}
	if !w.stale {
		w.stale, w.moved = true, false
		w.episodes++
		w.episode.Store(w.episodes)
		h.counters.staleEpisodes.Add(1)
		h.log.Warn("nothing is heard from the store", slog.Duration("since", silence), slog.Any("error", errSilent))
	}
	frame := encodeStale(silence)
	for _, c := range h.listClients() { // those too that subscribed since the last tick
		c.sendStale(frame)
	}
	if !w.moved && silence >= h.options.MoveAfter && w.agreed.Load() >= askedTwice {
		w.moved = true
		h.log.Warn("the sockets are sent to other nodes: they have the store, and this one is cut off",
			slog.Duration("since", silence), slog.Int("sockets", len(h.listClients())))
		w.moveClients()
	}
}

// recover is called when the node receives from its store again. The clients get the events that
// they missed, because the new connections to the store read the ends of all lists.
func (w *staleWatch) recover(silence time.Duration) {
	w.stale = false
	w.episode.Store(0)
	w.hub.log.Info("the store is heard again", slog.Duration("after", silence), slog.Any("before", errSilent))
	frame := encodeStale(0)
	for _, c := range w.hub.listClients() {
		c.sendRecovered(frame)
	}
}

// moveClients closes the sockets that there are, spread over Options.MoveSpread. Those whose turn
// comes after the store is heard again stay.
func (w *staleWatch) moveClients() {
	episode := w.episode.Load()
	for _, c := range w.hub.listClients() {
		delay := time.Duration(mathrand.Int64N(int64(w.hub.options.MoveSpread) + 1))
		time.AfterFunc(delay, func() {
			if w.episode.Load() == episode {
				w.hub.counters.movedClients.Add(1)
				c.Close(CloseRestart, "this node hears nothing from its store")
			}
		})
	}
}

// sendStale sends server.stale once to a client that subscribes to something. What else a socket
// does is answered by errors.
func (c *Client) sendStale(frame []byte) {
	c.mu.Lock()
	subscribed := len(c.cursors.list) > 0 && !c.staleSent
	c.staleSent = c.staleSent || subscribed
	c.mu.Unlock()
	if subscribed {
		_ = c.Send(frame)
	}
}

// sendRecovered sends a frame to a client that was sent server.stale.
func (c *Client) sendRecovered(frame []byte) {
	c.mu.Lock()
	sent := c.staleSent
	c.staleSent = false
	c.mu.Unlock()
	if sent {
		_ = c.Send(frame)
	}
}
