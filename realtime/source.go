package realtime

import (
	"context"
	"log/slog"
	"time"
)

// Source is a log that is read by its numbers, from which a Feed has its events in place of a list
// with a channel. One reader for each topic looks for new entries while somebody subscribes to it.
type Source interface {
	// Last returns the number of the last entry, 0 for none.
	Last(ctx context.Context) (number int64, err error)
	// ReadFrom returns up to count consecutive entries, from a number on or from the first one that
	// the log still has.
	ReadFrom(ctx context.Context, number int64, count int) ([]SourceEntry, error)
}

// SourceEntry is an entry of a Source as an event.
type SourceEntry struct {
	Position string // "<number>-<nonce>"
	Type     string
	Tag      uint32 // for filters
	JSON     []byte // nil: nobody gets it
}

const (
	sourcePageEntries = 1000
	// endNonce is the nonce of the last entry of a log that has none of its entries any more.
	endNonce = 1
)

// isPolled reports whether the topic reads a Source.
func (t *topic) isPolled() bool { return t.feed != nil && t.feed.Source != nil }

// runSource reads new entries of the topic's Source until the topic is gone.
func (t *topic) runSource() {
	tick := time.NewTicker(t.hub.options.SourceInterval)
	defer tick.Stop()
	failing := false
	for {
		t.mu.Lock()
		job := t.queuedJob
		t.queuedJob = nil
		t.mu.Unlock()
		err := t.readSource()
		switch {
		case err == nil:
			failing = false
			job.finish()
		case t.hub.baseCtx.Err() == nil:
			if !failing {
				t.hub.log.Warn("a feed cannot be read", slog.String("topic", t.name), slog.Any("error", err))
			}
			failing = true
			t.requeueJob(job)
		}
		select {
		case <-t.gone:
			return
		case <-t.hub.baseCtx.Done():
			return
		case <-tick.C:
		case <-t.readNow:
			if err != nil { // the store may be down
				select {
				case <-t.gone:
				case <-t.hub.baseCtx.Done():
				case <-tick.C:
				}
			}
		}
	}
}

// requeueJob gives back a job that failed, joined with one that was requested since.
func (t *topic) requeueJob(job *backfillJob) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if job == nil {
		return
	}
	last := job
	for last.followUp != nil {
		last = last.followUp
	}
	last.followUp = t.queuedJob
	t.queuedJob = job
}

// readSource adds the entries that the log has since the last read.
func (t *topic) readSource() error {
	ctx, cancel := context.WithTimeout(t.hub.baseCtx, feedReadTimeout)
	defer cancel()
	for {
		t.mu.RLock()
		loaded, head := t.buffer.loaded, t.buffer.head()
		t.mu.RUnlock()
		if !loaded {
			return t.loadSource(ctx)
		}
		run, rendered, err := t.readSourceRun(ctx, head.seq, sourcePageEntries)
		if err != nil {
			return err
		}
		isFull := len(run) == sourcePageEntries
		if len(run) > 0 && run[0].pos == head {
			run = run[1:]
		} else if len(run) == 0 {
			last, err := t.feed.Source.Last(ctx)
			if err != nil {
				return err
			}
			if uint64(last) < head.seq {
				return t.loadSource(ctx) // the store has lost entries
			}
		}
		if len(run) == 0 {
			return nil
		}
		if run[0].first != head.seq+1 {
			return t.loadSource(ctx)
		}
		t.mu.Lock()
		for _, e := range run {
			t.buffer.append(e, rendered.render)
		}
		t.lastActivity, t.eventsNeededAt = time.Now(), time.Now()
		t.mu.Unlock()
		t.notifyCursors(false)
		if !isFull {
			return nil
		}
	}
}

// loadSource replaces the buffer by the end of the log.
func (t *topic) loadSource(ctx context.Context) error {
	last, err := t.feed.Source.Last(ctx)
	if err != nil {
		return err
	}
	var run []entry
	var rendered sourceEvents
	if last > 0 {
		if run, rendered, err = t.readSourceRun(ctx, uint64(last), 1); err != nil {
			return err
		}
	}
	t.pages.drop()
	t.mu.Lock()
	loaded := t.buffer.loaded
	t.buffer.reset(run, rendered.render)
	switch {
	case last == 0:
		t.buffer.completeSinceEmpty = true
	case len(run) == 0:
		t.buffer.base = position{seq: uint64(last), nonce: endNonce}
	}
	t.mu.Unlock()
	if !loaded {
		close(t.loadDone)
	}
	t.notifyCursors(true)
	return nil
}

// sourceEvents are the events of entries that were read, by their numbers.
type sourceEvents map[uint64]event

func (s sourceEvents) render(to []event, e entry, _ bool) []event { return append(to, s[e.pos.seq]) }

// readSourceRun reads consecutive entries of the log, from a number on.
func (t *topic) readSourceRun(ctx context.Context, from uint64, count int) ([]entry, sourceEvents, error) {
	found, err := t.feed.Source.ReadFrom(ctx, int64(max(from, 1)), count)
	if err != nil {
		return nil, nil, err
	}
	run, rendered := make([]entry, 0, len(found)), make(sourceEvents, len(found))
	var frames frameMemory
	for _, one := range found {
		pos, ok := parsePosition(one.Position)
		if !ok || len(run) > 0 && pos.seq != run[len(run)-1].pos.seq+1 {
			t.reportUnreadable(errNoHeader)
			break
		}
		run = append(run, entry{first: pos.seq, pos: pos})
		rendered[pos.seq] = event{pos: pos, kind: one.Type, tag: one.Tag, frame: frames.add(opText, one.JSON)}
	}
	return run, rendered, nil
}
