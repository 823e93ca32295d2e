package realtime

import (
	"context"
	"slices"
	"sync"
	"time"
)

// topic is a stream that somebody on this node follows: the end of its log and the cursors in it.
//
// It lives as long as it has users and a while longer, so that a reload or a reconnection finds it warm.
// Lock order: Peer.mu before topic.mu, Hub.mu before neither.
type topic struct {
	hub  *Hub
	name string

	// Under Hub.mu.
	users     int
	idleSince time.Time

	line    *line // under board.mu
	changed bool  // of the worker that delivers the topic: there is something to tell

	mu      sync.RWMutex
	log     log
	pending []entry // arrived while something before them was missing
	cursors []*cursor
	heard   time.Time         // when the last event or repair came
	heardOf map[string]uint64 // number of the last whisper of each sender
	primed  chan struct{}     // closed when the log is loaded

	next    *repair // asked for, not begun
	healing bool
	strikes int // repairs in a row that left a gap

	jointMu sync.Mutex
	joints  []joint // the last few
	turn    int

	snap snapshots
}

const (
	pendingEvents = 1024
	jointsKept    = 4
)

// joint is a frame of several events, kept because many sessions wait for the same ones.
type joint struct {
	from, to position
	frame    []byte
}

func newTopic(h *Hub, name string) *topic {
	return &topic{hub: h, name: name, primed: make(chan struct{})}
}

// take hands an event from the channel to the log. It answers whether there is something to deliver.
func (t *topic) take(e entry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heard = time.Now()
	switch t.log.append(e) {
	case appended:
		return true
	case gap:
		if len(t.pending) < pendingEvents {
			t.pending = append(t.pending, e)
		} else {
			t.pending = nil // they stand in the stream
			t.askLocked(false)
		}
		if !t.healing {
			t.askLocked(false)
		}
	case forked:
		t.askLocked(false)
	}
	return false
}

// settle takes up what arrived during a repair, and asks for another where something is still missing.
func (t *topic) settle() {
	for i, e := range t.pending {
		if v := t.log.append(e); v == gap || v == forked {
			t.pending = slices.Delete(t.pending, 0, i)
			if t.strikes++; t.strikes > 2 {
				t.pending, t.strikes = nil, 0 // the stream does not know it either
				t.hub.count.unhealed.Add(1)
				return
			}
			t.askLocked(t.strikes > 1)
			return
		}
	}
	t.pending, t.strikes = nil, 0
}

// stretch is what one frame carries.
type stretch struct {
	frame   []byte
	to      position // of its last event
	events  int      // none: there is nothing new
	doubted bool     // the last event is one that Subscription.Doubt pointed out
}

// pull answers the frame that follows at, up to and with the first event that is doubted, where doubt is not nil. It answers
// false when the log no longer holds at.
func (t *topic) pull(at position, doubt func([]byte) bool) (s stretch, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if at.seq > t.log.head().seq {
		return s, true // a snapshot that was ahead of the channel
	}
	if !t.log.holds(at) {
		return s, false
	}
	entries := t.log.after(at)
	if doubt != nil {
		if i := slices.IndexFunc(entries, func(e entry) bool { return doubt(e.event) }); i >= 0 {
			entries, s.doubted = entries[:i+1], true
		}
	}
	if s.events = len(entries); s.events == 0 {
		return s, true
	}
	s.to = entries[s.events-1].at
	s.frame = t.frameOf(at, s.to, entries)
	return s, true
}

func (t *topic) frameOf(at, to position, entries []entry) []byte {
	if len(entries) == 1 {
		return entries[0].event
	}
	t.jointMu.Lock()
	defer t.jointMu.Unlock()
	for i := range t.joints {
		if j := &t.joints[i]; j.from == at && j.to == to {
			return j.frame
		}
	}
	frame := join(entries)
	if len(t.joints) < jointsKept {
		t.joints = append(t.joints, joint{at, to, frame})
	} else {
		t.joints[t.turn] = joint{at, to, frame}
		t.turn = (t.turn + 1) % jointsKept
	}
	return frame
}

// fan tells every cursor that there may be something new. After a log began anew, anew makes them prove their position.
func (t *topic) fan(anew bool) {
	t.mu.RLock()
	cursors := t.cursors
	t.mu.RUnlock()
	for _, c := range cursors {
		c.peer.wake(c, anew)
	}
}

func (t *topic) attach(c *cursor) {
	t.mu.Lock()
	t.cursors = append(slices.Clip(t.cursors), c)
	t.mu.Unlock()
}

func (t *topic) detach(c *cursor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.cursors, c); i >= 0 {
		left := make([]*cursor, 0, len(t.cursors)-1)
		t.cursors = append(append(left, t.cursors[:i]...), t.cursors[i+1:]...)
	}
}

func (t *topic) head() position {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.log.head()
}

// holds tells whether the log holds at, and if not, whether at is ahead of it.
func (t *topic) holds(at position) (held, ahead bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.log.holds(at), at.seq > t.log.head().seq
}

// find makes the log hold at, if the stream does: it reads the stream once for all that ask at the same time.
func (t *topic) find(ctx context.Context, at position) (bool, error) {
	held, ahead := t.holds(at)
	if held {
		return true, nil
	}
	if err := t.ask(!ahead).wait(ctx); err != nil {
		return false, err
	}
	held, _ = t.holds(at)
	return held, nil
}

// hear takes a whisper and hands it to the sessions it is for. A message that Redis got twice, because the answer
// to the first was lost, is heard once.
func (t *topic) hear(w whisper) {
	t.mu.Lock()
	if t.heardOf == nil || len(t.heardOf) > 1024 {
		t.heardOf = map[string]uint64{}
	}
	if t.heardOf[w.from] >= w.number {
		t.mu.Unlock()
		return
	}
	t.heardOf[w.from] = w.number
	cursors := t.cursors
	t.mu.Unlock()
	for _, c := range cursors {
		p := c.peer
		if p.id != w.from && (len(w.to) == 0 || slices.Contains(w.to, p.session.User)) {
			p.hear(c, w.frame)
		}
	}
}

// cool drops what only a busy topic needs.
func (t *topic) cool() {
	t.jointMu.Lock()
	t.joints, t.turn = nil, 0
	t.jointMu.Unlock()
}

// A Snapshot is the whole state of a topic at a position. It is shared by all who follow the topic and must hold
// nothing that only some may see.
type Snapshot struct {
	Position string // of the last event that the state contains: "<seq>-<nonce>", "0-0" before the first
	State    []byte // a JSON value, for the reply to a subscription
	Frame    []byte // the event that stands for everything up to Position, for a session that lost its place
}

// snapshots keeps the last snapshot for a moment and lets only one be taken at a time.
type snapshots struct {
	mu      sync.Mutex
	last    Snapshot
	at      position
	taken   time.Time
	running chan struct{} // closed when the one under way is done
	err     error
	epoch   int // grows when the log begins anew: a snapshot from before is worth nothing
}

// snapshot answers a snapshot that is younger than Options.SnapshotTTL; fresh wants one that is taken from now on.
func (t *topic) snapshot(ctx context.Context, fresh bool, takeOne func(context.Context) (Snapshot, error)) (Snapshot, position, error) {
	s := &t.snap
	for {
		s.mu.Lock()
		if !fresh && time.Since(s.taken) < t.hub.options.SnapshotTTL {
			defer s.mu.Unlock()
			return s.last, s.at, nil
		}
		if done := s.running; done != nil {
			s.mu.Unlock()
			select {
			case <-done:
			case <-ctx.Done():
				return Snapshot{}, position{}, ctx.Err()
			}
			s.mu.Lock()
			err := s.err
			s.mu.Unlock()
			if err != nil {
				return Snapshot{}, position{}, err
			}
			continue // fresh: the one that ran may have begun before
		}
		done, epoch := make(chan struct{}), s.epoch
		s.running = done
		s.mu.Unlock()

		last, at, err := takeSnapshot(ctx, takeOne)
		t.hub.count.snapshots.Add(1)
		s.mu.Lock()
		s.running, s.err = nil, err
		if ctx.Err() != nil {
			s.err = nil // it failed because its caller left: the next one tries for itself
		}
		if err == nil && s.epoch == epoch {
			s.last, s.at, s.taken = last, at, time.Now()
		}
		s.mu.Unlock()
		close(done)
		return last, at, err
	}
}

// forget makes the kept snapshot worthless.
func (s *snapshots) forget() {
	s.mu.Lock()
	s.epoch++
	s.last, s.taken = Snapshot{}, time.Time{}
	s.mu.Unlock()
}
