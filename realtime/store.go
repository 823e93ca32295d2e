package realtime

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/redis/go-redis/v9"
)

// repair is one reading of a topic's stream, for all who asked before it began.
type repair struct {
	tail  bool // the end of the stream, not only what follows the head
	done  chan struct{}
	later *repair // asked for while this one failed: done when it is
}

func (r *repair) finish() {
	for ; r != nil; r = r.later {
		close(r.done)
	}
}

func (r *repair) wait(ctx context.Context) error {
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return redisdb.WrapError("read the events", ctx.Err())
	}
}

// ask wants the topic's stream to be read from now on: from the head, or its whole end.
func (t *topic) ask(tail bool) *repair {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.askLocked(tail)
}

func (t *topic) askLocked(tail bool) *repair {
	if t.next == nil {
		t.next = &repair{done: make(chan struct{})}
		if !t.healing {
			t.hub.healer.push(t)
		}
	}
	t.next.tail = t.next.tail || tail
	return t.next
}

// healer reads streams: many topics in one round trip, each topic by one reader at a time.
type healer struct {
	hub   *Hub
	mu    sync.Mutex
	queue []*topic
	bell  chan struct{}
}

const (
	healers      = 4   // round trips under way at the same time
	healTopics   = 200 // topics in one of them
	healTimeout  = 3 * time.Second
	healPause    = 100 * time.Millisecond // after a failure
	tailEvents   = logEvents
	followEvents = logEvents + 1
)

func (h *healer) push(t *topic) {
	h.mu.Lock()
	h.queue = append(h.queue, t)
	h.mu.Unlock()
	h.ring()
}

func (h *healer) ring() {
	select {
	case h.bell <- struct{}{}:
	default:
	}
}

// pop takes topics that live at one place: a master that hangs holds up its own only.
func (h *healer) pop() []*topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue) == 0 {
		return nil
	}
	place := h.hub.board.place(h.queue[0])
	var batch, rest []*topic
	for i, t := range h.queue {
		if len(batch) == healTopics {
			rest = append(rest, h.queue[i:]...)
			break
		}
		if h.hub.board.place(t) == place {
			batch = append(batch, t)
		} else {
			rest = append(rest, t)
		}
	}
	h.queue = rest
	if len(rest) > 0 {
		h.ring()
	}
	return batch
}

func (h *healer) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.bell:
		}
		for batch := h.pop(); len(batch) > 0 && ctx.Err() == nil; batch = h.pop() {
			if failed := h.heal(ctx, batch); len(failed) > 0 {
				select {
				case <-ctx.Done():
				case <-time.After(healPause):
				}
				for _, t := range failed {
					h.push(t)
				}
			}
		}
	}
}

// patient is a topic under repair.
type patient struct {
	*topic
	repair *repair
	head   position // when the stream was asked
	tail   bool
	cmd    *redis.XMessageSliceCmd
}

// heal reads the streams of a batch and answers the topics whose stream could not be read.
func (h *healer) heal(ctx context.Context, batch []*topic) (failed []*topic) {
	patients := make([]*patient, 0, len(batch))
	for _, t := range batch {
		t.mu.Lock()
		p := &patient{topic: t, repair: t.next, tail: t.next.tail}
		t.next, t.healing = nil, true
		t.mu.Unlock()
		patients = append(patients, p)
	}
	for len(patients) > 0 {
		h.read(ctx, patients)
		var again []*patient
		for _, p := range patients {
			switch found, err := p.cmd.Result(); {
			case err != nil:
				p.postpone()
				failed = append(failed, p.topic)
			case p.apply(found):
				h.hub.count.refills.Add(1)
			default:
				again = append(again, p)
			}
		}
		patients = again
	}
	return failed
}

// read sends one round trip.
func (h *healer) read(ctx context.Context, patients []*patient) {
	ctx, cancel := context.WithTimeout(ctx, healTimeout)
	defer cancel()
	pipe := h.hub.db.Client.Pipeline()
	for _, p := range patients {
		p.mu.RLock()
		p.head = p.log.head()
		switch {
		case p.tail:
			p.cmd = pipe.XRevRangeN(ctx, p.name, "+", "-", tailEvents)
		case !p.log.loaded:
			p.cmd = pipe.XRevRangeN(ctx, p.name, "+", "-", 1)
		case p.log.opened && len(p.log.entries) == 0:
			p.tail = true
			p.cmd = pipe.XRevRangeN(ctx, p.name, "+", "-", tailEvents)
		default:
			p.cmd = pipe.XRangeN(ctx, p.name, p.head.String(), "+", followEvents)
		}
		p.mu.RUnlock()
	}
	_, _ = pipe.Exec(ctx) // every command tells its own
}

// apply puts what was found into the log. It answers false when the stream must be read further.
func (p *patient) apply(found []redis.XMessage) bool {
	entries := make([]entry, 0, len(found))
	for _, m := range found {
		if at, ok := parsePosition(m.ID); ok {
			event, _ := m.Values["e"].(string)
			entries = append(entries, entry{at, []byte(event)})
		}
	}
	t := p.topic
	t.mu.Lock()
	anew := false
	if p.tail || !t.log.loaded {
		for i, j := 0, len(entries)-1; i < j; i, j = i+1, j-1 {
			entries[i], entries[j] = entries[j], entries[i]
		}
		loaded := t.log.loaded
		if anew = t.log.merge(p.head, entries); anew {
			t.hub.count.resets.Add(1)
			t.snap.forget()
		}
		if !loaded {
			close(t.primed)
		}
	} else if !t.log.extend(p.head, entries) {
		p.tail = true
		t.mu.Unlock()
		return false
	} else if len(entries) == followEvents {
		t.mu.Unlock()
		return false
	}
	t.heard = time.Now()
	t.settle()
	t.healing = false
	again := t.next != nil
	t.mu.Unlock()
	p.repair.finish()
	if again {
		t.hub.healer.push(t)
	}
	t.fan(anew)
	return true
}

// postpone gives the repair back, joined with what was asked for since.
func (p *patient) postpone() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.healing = false
	if p.next != nil {
		p.repair.tail = p.repair.tail || p.next.tail
		last := p.repair
		for last.later != nil {
			last = last.later
		}
		last.later = p.next
	}
	p.next = p.repair
}

// publish sends a message on the topic's channel, past the stream.
func (h *Hub) publish(ctx context.Context, channel, payload string) error {
	var err error
	if h.db.Kind() == redisdb.KindCluster {
		err = h.db.Client.SPublish(ctx, channel, payload).Err()
	} else {
		err = h.db.Client.Publish(ctx, channel, payload).Err()
	}
	return redisdb.WrapError("publish", err)
}

// takeSnapshot calls the domain; what it answers must be a position.
func takeSnapshot(ctx context.Context, take func(context.Context) (Snapshot, error)) (s Snapshot, at position, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("take a snapshot: panic: %v", r)
		}
	}()
	if s, err = take(ctx); err != nil {
		return s, at, err
	}
	at, ok := parsePosition(s.Position)
	if !ok {
		return s, at, errors.New("take a snapshot: its position " + strconv.Quote(s.Position) + " cannot be read")
	}
	return s, at, nil
}
