package realtime

import (
	"context"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// A feed is a topic with many events, of which each subscriber gets some. An entry is rendered once
// for the node, and a frame is encoded once for all subscribers with the same filter. The buffer of
// a feed is larger than that of other topics. A subscriber that is behind it reads the list, in
// pages that it shares with others. So it resumes from any entry that the list has, and the speed
// of one subscriber does not matter to others. Where the list has lost its position, it gets
// Feed.EncodeGap and the events from then on.

// Feed is what the subscriptions of a feed have in common. Its functions must not block.
type Feed struct {
	// Source is where the entries are; nil: in the list and the channel of the topic.
	Source Source
	// Render appends the event of an entry as JSON and returns its type, and a tag for filters. No
	// JSON is an event that nobody gets. An error is logged; what was returned beside it counts. It
	// is not called with a Source, whose entries are events.
	Render func(b []byte, entry string) (json []byte, eventType string, tag uint32, err error)
	// EncodePosition returns the frame for a subscriber that was told no position for a while, since
	// its filter did not select the events.
	EncodePosition func(position string) []byte
	// EncodeGap returns the frame for a subscriber whose next events are lost. Position is where it
	// goes on.
	EncodeGap func(position string) []byte
}

// Filter selects events of a feed.
type Filter struct {
	Key   any                                     // comparable: filters with the same key select the same events
	Match func(eventType string, tag uint32) bool // nil: all events
}

// The bounds of the buffer of a feed, and of what is read from its list at once.
const (
	maxFeedEvents  = 4096
	maxFeedBytes   = 4 << 20
	feedPageEvents = 256
	// maxUnnotifiedFeedEvents is so much less than maxFeedEvents that subscribers who keep up find all
	// events in the buffer.
	maxUnnotifiedFeedEvents = 1024
	maxKeptPages            = 32 // for subscribers that follow soon
	feedPageLifetime        = 5 * time.Second
	feedReadTimeout         = 3 * time.Second
	// positionAfterSkipped is after how many events that it did not get a subscriber gets
	// Feed.EncodePosition.
	positionAfterSkipped = 512
)

// becomeFeed makes a new topic a feed.
func (t *topic) becomeFeed(feed *Feed) {
	t.feed = feed
	t.buffer.limits = ringLimits{maxFeedEvents, maxFeedBytes}
	t.gapCheckInterval = t.hub.options.GapCheckInterval
	if feed.Source != nil {
		t.readNow, t.gone = make(chan struct{}, 1), make(chan struct{})
	}
}

// renderFeedEvent renders an entry. One that cannot be rendered has its place in the buffer too.
func (t *topic) renderFeedEvent(e entry, frames *frameMemory, report bool) event {
	memory := feedMemory.Get().(*[]byte)
	defer feedMemory.Put(memory)
	json, eventType, tag, err := t.feed.Render((*memory)[:0], e.text)
	if err != nil && report {
		t.reportUnreadable(err)
	}
	if cap(json) > cap(*memory) {
		*memory = json
	}
	return event{pos: e.pos, kind: eventType, tag: tag, frame: frames.add(opText, json)}
}

var feedMemory = sync.Pool{New: func() any { return new([]byte) }}

// selects reports whether a filter selects an event.
func (f *Filter) selects(e *event) bool {
	return len(e.json()) > 0 && (f.Match == nil || f.Match(e.kind, e.tag))
}

// resolveFeedStart is resolveStart for a feed: it resumes after the client's position, or begins
// with the next event.
func (cur *cursor) resolveFeedStart(ctx context.Context) (SubscribeResult, error) {
	t, mode := cur.topic, ModeLive
	cur.forks = t.countForks()
	if cur.sub.AfterPosition != "" {
		pos, ok := parsePosition(cur.sub.AfterPosition)
		if ok {
			contained, ahead := t.contains(pos)
			if !contained && ahead { // the channel may be late
				if err := t.requestBackfill(false).wait(ctx); err != nil {
					return SubscribeResult{}, err
				}
				contained, _ = t.contains(pos)
			}
			if !contained {
				page, err := t.pageWith(ctx, pos)
				if err != nil {
					return SubscribeResult{}, err
				}
				cur.page, contained = page, page != nil
			}
			ok = contained
		}
		if mode = ModeGap; ok {
			cur.pos = pos
			return SubscribeResult{Mode: ModeResume, Position: pos.String()}, nil
		}
	}
	cur.pos = t.head()
	return SubscribeResult{Mode: mode, Position: cur.pos.String()}, nil
}

func (t *topic) countForks() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.buffer.forks
}

// followForks makes the position of a cursor an unknown one if the list has another history since
// than the events that the client got. After a failover of the store a call that is repeated may
// get its number again behind calls that the client never heard of, so a position that the list
// still has proves nothing. topic.mu and Client.mu must be held.
func (t *topic) followForks(cur *cursor) {
	if cur.forks == t.buffer.forks {
		return
	}
	if cur.pos.seq >= t.buffer.forkedAt || t.buffer.forks-cur.forks > 1 {
		cur.pos.nonce = 0
	}
	cur.forks, cur.page = t.buffer.forks, nil
}

// nextFeedFrame is nextTopicFrame for a feed. Client.mu must be held.
func (c *Client) nextFeedFrame(cur *cursor) frame {
	next, ok := cur.topic.nextSelected(cur)
	switch {
	case !ok:
		c.readPage(cur)
		return nil
	case next.last == cur.pos:
		return nil
	}
	cur.pos = next.last
	c.markReady(cur) // there may be more than one frame holds
	if next.count == 0 && cur.skipped >= positionAfterSkipped {
		cur.skipped = 0
		return newFrame(opText, cur.topic.feed.EncodePosition(cur.pos.String()))
	}
	c.countDeliveries(next.count)
	return next.frame
}

// nextSelected returns the events after the cursor that its filter selects, as far as the buffer
// or the cursor's page has them and a frame holds them. It returns false when neither has the
// position. Client.mu must be held.
func (t *topic) nextSelected(cur *cursor) (next batch, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	t.followForks(cur)
	next.last = cur.pos
	buffer := &t.buffer
	switch {
	case buffer.contains(cur.pos):
		cur.page = nil
	case cur.page != nil && cur.page.contains(cur.pos) && cur.pos != cur.page.head():
		buffer = cur.page
	default:
		cur.page = nil
		return next, false
	}
	following := buffer.events
	if cur.pos.seq > buffer.base.seq {
		following = following[cur.pos.seq-buffer.base.seq:]
	}
	var first, last, bytes int
	for i := range following {
		e := &following[i]
		if cur.sub.Filter.selects(e) {
			if bytes += len(e.json()) + 1; next.count > 0 && (next.count >= maxBatchEvents || bytes > maxBatchBytes) {
				break
			}
			if next.count == 0 {
				first = i
			}
			last, cur.skipped = i, 0
			next.count++
		} else {
			cur.skipped++
		}
		next.last = e.pos
	}
	switch next.count {
	case 0:
	case 1:
		next.frame = following[first].frame
	default:
		selected := following[first : last+1]
		key := cachedBatch{filter: cur.sub.Filter.Key, from: selected[0].pos, to: selected[len(selected)-1].pos}
		next.frame = t.cachedFrame(key, func() frame { return encodeSelected(selected, &cur.sub.Filter, next.count) })
	}
	return next, true
}

func encodeSelected(events []event, filter *Filter, count int) frame {
	at := -1
	return newArrayFrame(count, func(i int) []byte {
		if i == 0 {
			at = -1
		}
		for at++; !filter.selects(&events[at]); at++ {
		}
		return events[at].json()
	})
}

// readPage lets a cursor go on that the buffer has left behind: with a page of the list, or behind
// a gap. Client.mu must be held.
func (c *Client) readPage(cur *cursor) {
	if cur.paused || cur.removed || c.closeStarted {
		return
	}
	cur.paused = true
	pos, t := cur.pos, cur.topic
	read := func() {
		_ = c.retryUntilRefused(func(ctx context.Context) error {
			page, err := t.pageWith(ctx, pos)
			if err == nil && (page == nil || page.head() == pos) {
				// The position is lost, or the last one of the list, which the buffer does not know yet.
				err = t.requestBackfill(true).wait(ctx)
			}
			if err != nil {
				return err
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			contained, ahead := t.contains(pos)
			if page != nil && page.head() == pos && ahead {
				page = nil // a list whose numbers began anew ends with what follows
			}
			if cur.page = page; page == nil {
				if !contained {
					t.hub.counters.feedGaps.Add(1)
					cur.forks = t.countForks()
					cur.pos, cur.skipped = t.head(), 0
					cur.snapshotFrame = newFrame(opText, t.feed.EncodeGap(cur.pos.String()))
				}
			}
			c.resumeCursor(cur)
			return nil
		})
	}
	if !c.hub.startTask(read) {
		c.closeLocked(CloseRestart, "restart")
	}
}

// feedPages are the pages that were read last. A page has consecutive entries, and begins with
// their number modulo feedPageEvents, so that subscribers share it.
type feedPages struct {
	mu   sync.Mutex
	list []*feedPage // oldest first
}

type feedPage struct {
	number uint64
	done   chan struct{} // closed when the rest is known
	buffer *ringBuffer
	err    error
	readAt time.Time
}

// drop forgets the pages, because the list may have other entries now.
func (p *feedPages) drop() {
	p.mu.Lock()
	p.list = nil
	p.mu.Unlock()
}

// evict forgets the pages that were read a while ago.
func (p *feedPages) evict(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.list) > 0 && !p.list[0].readAt.IsZero() && now.Sub(p.list[0].readAt) >= feedPageLifetime {
		p.list = append([]*feedPage(nil), p.list[1:]...)
	}
}

// acquire returns the page with a number, and whether the caller must read it.
func (p *feedPages) acquire(number uint64, now time.Time) (page *feedPage, mustRead bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, known := range p.list {
		if known.number != number {
			continue
		}
		if known.readAt.IsZero() || now.Sub(known.readAt) < feedPageLifetime {
			return known, false
		}
		p.list = append(p.list[:i:i], p.list[i+1:]...)
		break
	}
	if len(p.list) >= maxKeptPages {
		p.list = append([]*feedPage(nil), p.list[1:]...)
	}
	page = &feedPage{number: number, done: make(chan struct{})}
	p.list = append(p.list, page)
	return page, true
}

// finish makes a page known. One that is not full is not kept, for it will have more entries.
func (p *feedPages) finish(page *feedPage, buffer *ringBuffer, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	page.buffer, page.err, page.readAt = buffer, err, time.Now()
	if err != nil || buffer.head().seq != (page.number+1)*feedPageEvents {
		for i, known := range p.list {
			if known == page {
				p.list = append(p.list[:i:i], p.list[i+1:]...)
				break
			}
		}
	}
	close(page.done)
}

// pageWith returns the page of the list that has the position and what follows it, nil when the
// list no longer has the position.
func (t *topic) pageWith(ctx context.Context, pos position) (*ringBuffer, error) {
	page, mustRead := t.pages.acquire(pos.seq/feedPageEvents, time.Now())
	if mustRead {
		buffer, err := t.readPage(page.number)
		t.pages.finish(page, buffer, err)
	}
	select {
	case <-page.done:
	case <-ctx.Done():
		return nil, redisdb.WrapError("read a feed", ctx.Err())
	}
	if page.err != nil {
		return nil, page.err
	}
	if !page.buffer.contains(pos) {
		return nil, nil
	}
	return page.buffer, nil
}

// readPage reads and renders a page.
func (t *topic) readPage(number uint64) (*ringBuffer, error) {
	ctx, cancel := context.WithTimeout(t.hub.baseCtx, feedReadTimeout)
	defer cancel()
	base := number * feedPageEvents
	var run []entry
	var err error
	var frames frameMemory
	render := func(_ []event, e entry, _ bool) []event { return []event{t.renderFeedEvent(e, &frames, false)} }
	if t.isPolled() {
		count := feedPageEvents + 1 - int(max(base, 1)-base)
		var rendered sourceEvents
		run, rendered, err = t.readSourceRun(ctx, base, count)
		if len(run) > 0 && run[0].first > base+feedPageEvents {
			run = nil
		}
		render = rendered.render
	} else {
		run, err = t.readRun(ctx, base, feedPageEvents+1)
	}
	if err != nil {
		return nil, err
	}
	t.hub.counters.feedPages.Add(1)
	page := &ringBuffer{loaded: true, base: position{seq: base}, limits: ringLimits{feedPageEvents, maxFeedBytes}}
	if len(run) > 0 && run[0].pos.seq == base {
		page.base, run = run[0].pos, run[1:]
	} else if len(run) > 0 {
		page.base.seq = run[0].first - 1 // its nonce is not known
	} else {
		page.base.seq = base + 1 // nothing is known to be there
	}
	for _, e := range run {
		if e.pos.seq > base+feedPageEvents {
			break // of the next page
		}
		page.events = append(page.events, render(nil, e, false)...)
	}
	return page, nil
}
