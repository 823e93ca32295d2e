package webhooks

import (
	"cmp"
	"container/heap"
	"hash/maphash"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

const (
	laneCount   = 16
	maxOfTarget = 8      // requests under way to one target
	maxPending  = 20_000 // events of a target in memory; more are read when some are done

	maxPendingOfAll = 200_000 // events in memory; with more, a target reads on below fewPending only
	fewPending      = 1_000

	giveUpAfter = 24 * time.Hour // since a room's first failure; and of a target that only fails
	jitter      = 0.1            // part of a delay by which it is longer or shorter
)

// retryDelays are the times from a failure to the next try. The last one repeats.
var retryDelays = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute,
	time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
}

// event is an event that a target has to get.
type event struct {
	feed            *cursor
	position, after string // its own, and that of the entry before it in the feed
	message         message
	room            *roomQueue // nil for an event that this target does not want
	done            bool
}

// cursor is how far a target has got in one feed.
type cursor struct {
	name   string
	read   string // position of the last entry that was read
	stored string // position as the store has it
	loaded string // what read was when the target was read from the store

	endedCatchUp bool
	events       []*event // read and not yet behind stored, oldest first
}

// roomQueue has the events of one room that are not done, oldest first. A room has its events in
// one feed.
type roomQueue struct {
	name   string
	lane   *lane
	events []*event
	place  place // of the first event; after is that of the last one that is done while it has none
	state  roomState
	behind bool // the store has, or will have, its place: the position of the feed passes it
	dirty  bool // its place in the store is not the one of now
}

type roomState int

const (
	idle     roomState = iota // it has no event
	ready                     // in its lane's list
	underWay                  // its first event is
	waiting                   // until place.due
)

// lane has the rooms whose events are sent one after the other.
type lane struct {
	ready []*roomQueue
	busy  bool
}

// target is what a leader knows of one webhook. One goroutine uses it.
type target struct {
	gameID int64
	id     string
	stored
	signs signer
	round string

	signingKeys *[][]byte // by which the secret was read

	feeds   map[string]*cursor
	rooms   map[string]*roomQueue
	lanes   [laneCount]lane
	waiting waitingRooms
	dirty   map[*roomQueue]struct{}

	ready   int // rooms in the lists of lanes
	flying  int // requests under way
	pending int // events that are not done

	failing   time.Time // since which all attempts have failed; zero while they do not
	lastError string
	parked    int64
	attempts  []Attempt     // not yet stored
	gaveUp    []parkedEvent // not yet stored
	changed   bool          // something else of the state is not stored
	isProven  bool          // it has answered fast, and not slowly since
	slowUntil time.Time     // by the clock of the machine: a request has taken long not long ago

	pollAt    time.Time // of its feeds, by the clock of the machine
	pollDelay time.Duration
	polling   bool
	storing   bool
	gone      bool // it was removed or replaced: what is under way does not count

	keptNumbers map[string]int64 // kept as of what the store has

	lookAt       time.Time        // of the next look at all rooms, by the clock of the machine
	oldestSeen   time.Time        // oldest at the last look
	keptAtLooked map[string]int64 // kept at the last look
}

func newTarget(gameID int64, id string, d stored, signs signer, st state, now time.Time) *target {
	t := &target{
		gameID: gameID, id: id, stored: d, signs: signs, round: st.round,
		feeds: map[string]*cursor{}, rooms: map[string]*roomQueue{}, dirty: map[*roomQueue]struct{}{},
		failing: st.failing, lastError: st.lastError, parked: st.parked,
	}
	for name, position := range st.positions {
		t.feeds[name] = &cursor{name: name, read: position, stored: position}
	}
	for name, p := range st.behind {
		if isGapRoom(name) {
			t.tellGap(p.feed, p.after, now)
			continue
		}
		q := t.queueOf(name)
		if p.since.Before(st.revived) { // staff made the target active again: it has another 24 hours
			p.tries, p.since, p.due = 0, time.Time{}, time.Time{}
		}
		q.place, q.behind = p, true
		c := t.feeds[p.feed]
		if c == nil {
			c = &cursor{name: p.feed, stored: p.after}
			t.feeds[p.feed] = c
		}
		if c.read == "" || numberOf(p.after) < numberOf(c.read) {
			c.read = p.after // from there on, though other rooms are further
		}
	}
	for _, c := range t.feeds {
		c.loaded = c.read
		t.endCatchUp(c)
	}
	t.keptNumbers = t.kept(now)
	return t
}

var laneSeed = maphash.MakeSeed()

func (t *target) queueOf(room string) *roomQueue {
	q := t.rooms[room]
	if q == nil {
		q = &roomQueue{name: room, lane: &t.lanes[maphash.String(laneSeed, room)%laneCount]}
		t.rooms[room] = q
	}
	return q
}

// add adds an entry that was read from a feed. Without a message the target does not want it.
func (t *target) add(c *cursor, position, room string, m message, wanted bool, now time.Time) {
	after := c.read
	c.read = position
	isPast := numberOf(position) <= numberOf(c.stored)
	if isPast {
		q := t.rooms[room]
		if !wanted || q == nil || !q.behind || numberOf(position) <= numberOf(q.place.after) {
			return
		}
	}
	e := &event{feed: c, position: position, after: after, message: m, done: !wanted}
	if !isPast {
		c.events = append(c.events, e)
	}
	if wanted {
		if len(m.body) > maxBodyBytes {
			e.message.err = errTooLong
		}
		e.room = t.queueOf(room)
		if q := e.room; q.behind && len(q.events) == 0 && numberOf(position) <= numberOf(q.place.after) {
			t.touch(q) // staff put the position before the place of this room
		}
		e.room.events = append(e.room.events, e)
		t.pending++
		if e.room.state == idle {
			t.wake(e.room, now)
		}
	}
	t.advance(c)
}

// isCaughtUp reports whether a feed was read up to its position in the store: only rooms that are
// behind have events before it.
func (c *cursor) isCaughtUp() bool { return numberOf(c.read) >= numberOf(c.stored) }

// endCatchUp makes the store forget the rooms that are behind in a feed and have no event there any
// more. It is called when something was read of the feed, and looks once.
func (t *target) endCatchUp(c *cursor) {
	if c.endedCatchUp || !c.isCaughtUp() {
		return
	}
	c.endedCatchUp = true
	for _, q := range t.rooms {
		if q.behind && len(q.events) == 0 && q.place.feed == c.name {
			t.touch(q)
		}
	}
}

// gapRoom begins the name of what waits like a room to tell that events of a feed are gone.
const gapRoom = "gap:"

func isGapRoom(name string) bool { return strings.HasPrefix(name, gapRoom) }

// tellGap adds the message that the events of a feed which follow a position are gone. It has a
// place in the store from the beginning, so that the next leader sends it when this one dies.
func (t *target) tellGap(feedName, after string, now time.Time) {
	c := t.feeds[feedName]
	if c == nil {
		c = &cursor{name: feedName, read: after, stored: after}
		t.feeds[feedName] = c
	}
	q := t.queueOf(gapRoom + feedName)
	q.events = append(q.events, &event{
		feed: c, position: after, after: after, room: q, message: gapMessage(t.gameID, feedName, after, now),
	})
	q.behind = true
	t.touch(q)
	t.pending++
	if q.state == idle {
		t.wake(q, now)
	}
}

// restart returns what makes the next target tell that a feed has other entries than those which
// this one has read: after a failover of the store. The next one begins with the position that the
// store has. When the feed no longer has that position, it begins behind resume, which is before
// everything that it can have missed, and so do the rooms that are behind: some comes twice, and
// nothing is lost.
func (t *target) restart(c *cursor, resume string, fence int64) progress {
	p := progress{
		fence: fence, round: t.round, fields: map[string]string{}, positions: map[string]string{},
		places: map[string]*place{gapRoom + c.name: {feed: c.name, after: c.read}},
	}
	if c.read != c.loaded {
		return p
	}
	p.positions[c.name] = resume
	for name, q := range t.rooms {
		if q.behind && q.place.feed == c.name && !isGapRoom(name) && numberOf(q.place.after) > numberOf(resume) {
			at := q.place
			at.after = resume
			p.places[name] = &at
		}
	}
	return p
}

// wake makes the first event of a room wait for its time, or for its turn in the lane.
func (t *target) wake(q *roomQueue, now time.Time) {
	switch {
	case len(q.events) == 0:
		q.state = idle
	case q.place.tries > 0 && q.place.due.After(now):
		q.state = waiting
		heap.Push(&t.waiting, q)
	default:
		q.state = ready
		q.lane.ready = append(q.lane.ready, q)
		t.ready++
	}
}

// wakeDue wakes the rooms whose time has come.
func (t *target) wakeDue(now time.Time) {
	for len(t.waiting) > 0 && !t.waiting[0].place.due.After(now) {
		t.wake(heap.Pop(&t.waiting).(*roomQueue), now)
	}
}

// isSlow reports whether a request has taken long not long ago.
func (t *target) isSlow(now time.Time) bool { return now.Before(t.slowUntil) }

// notePace notes how long a request took that has ended.
func (t *target) notePace(took time.Duration, now time.Time) {
	if took >= slowAfter {
		t.isProven, t.slowUntil = false, now.Add(slowFor)
	} else if !t.isSlow(now) {
		t.isProven = true
	}
}

// atOnce returns how many requests may be under way: one until the target has shown that it is
// fast, so that many targets which are down at once do not take all requests of the node.
func (t *target) atOnce(now time.Time) int {
	if t.isProven || t.isSlow(now) {
		return maxOfTarget
	}
	return 1
}

// next takes an event that can be sent now, nil for none.
func (t *target) next(now time.Time) *event {
	if t.ready == 0 || t.flying >= t.atOnce(now) || t.gone {
		return nil
	}
	first := rand.IntN(laneCount) // so that no lane is always the last
	for i := range t.lanes {
		l := &t.lanes[(first+i)%laneCount]
		if l.busy || len(l.ready) == 0 {
			continue
		}
		q := l.ready[0]
		l.ready = l.ready[1:]
		l.busy, q.state = true, underWay
		t.ready--
		t.flying++
		return q.events[0]
	}
	return nil
}

// land notes what came of an event that was under way.
func (t *target) land(e *event, o outcome, now time.Time) {
	q := e.room
	q.lane.busy = false
	t.flying--
	a := o.attempt(e.message, now)
	a.Try = q.place.tries + 1
	if o.isDelivered() {
		t.changed = t.changed || !t.failing.IsZero() || t.lastError != ""
		t.failing, t.lastError = time.Time{}, ""
		t.finish(q)
	} else {
		t.fail(q, &a, now)
	}
	t.attempts = append(t.attempts, a)
	t.wake(q, now)
}

// finish takes the first event of a room off.
func (t *target) finish(q *roomQueue) {
	e := q.events[0]
	e.done, q.events[0] = true, nil
	q.events = q.events[1:]
	q.place = place{feed: e.feed.name, after: e.position}
	t.pending--
	t.touch(q)
	t.advance(e.feed)
	if len(q.events) == 0 && !q.behind {
		delete(t.rooms, q.name)
	}
}

func (t *target) fail(q *roomQueue, a *Attempt, now time.Time) {
	if t.failing.IsZero() && q.events[0].message.err == nil {
		t.failing = now
	}
	t.lastError, t.changed = *a.Error, true
	if q.place.tries == 0 {
		q.place.since = now
	}
	q.place.tries++
	end := q.place.since.Add(giveUpAfter)
	if e := q.events[0]; !now.Before(end) || e.message.err != nil {
		a.State = Parked
		t.parked++
		t.gaveUp = append(t.gaveUp, parkedEvent{*a, e.message.body})
		t.finish(q)
		return
	}
	delay := retryDelays[min(q.place.tries, len(retryDelays))-1]
	delay = time.Duration(float64(delay) * (1 + jitter*(2*rand.Float64()-1)))
	q.place.due = now.Add(delay)
	if q.place.due.After(end) {
		q.place.due = end
	}
	q.behind = true
	t.touch(q)
	t.advance(q.events[0].feed)
}

// touch notes that the place of a room in the store is not the one of now.
func (t *target) touch(q *roomQueue) {
	if q.behind && !q.dirty {
		q.dirty = true
		t.dirty[q] = struct{}{}
	}
}

// advance drops the oldest events of a feed that are done, or whose room has its own place.
func (t *target) advance(c *cursor) {
	n := 0
	for n < len(c.events) && (c.events[n].done || c.events[n].room.behind) {
		n++
	}
	if n == 0 {
		return
	}
	c.stored = c.events[n-1].position
	clear(c.events[:n])
	c.events = c.events[n:]
	t.changed = true
}

// takeProgress returns what is not stored yet. When the store does not take it, the target must be
// read anew.
func (t *target) takeProgress(fence int64, now time.Time) progress {
	p := progress{fence: fence, round: t.round, attempts: newestAttempts(t.attempts), parked: t.gaveUp}
	p.fields = map[string]string{
		fieldFailing: optionalMS(t.failing), fieldError: t.lastError, fieldOldest: optionalMS(t.oldest(now)),
		fieldParked: strconv.FormatInt(t.parked, 10),
	}
	p.positions, p.places = make(map[string]string, len(t.feeds)), make(map[string]*place, len(t.dirty))
	for _, c := range t.feeds {
		if c.stored != "" {
			p.positions[c.name] = c.stored
		}
	}
	for q := range t.dirty {
		q.dirty = false
		if len(q.events) == 0 && (isGapRoom(q.name) || t.feeds[q.place.feed].isCaughtUp()) {
			p.places[q.name] = nil
			q.behind = false
			delete(t.rooms, q.name)
			continue
		}
		if len(q.events) > 0 {
			q.place.feed, q.place.after = q.events[0].feed.name, q.events[0].after
		}
		p.places[q.name] = new(q.place)
	}
	clear(t.dirty)
	t.attempts, t.gaveUp, t.changed = nil, nil, false
	return p
}

// maxAttemptsAtOnce bounds the attempts that one commit stores: a busy target has thousands of them
// a second, and 200 are kept.
const maxAttemptsAtOnce = 50

// newestAttempts returns the newest attempts, and rather those that failed.
func newestAttempts(all []Attempt) []Attempt {
	if len(all) <= maxAttemptsAtOnce {
		return all
	}
	failures := 0
	for _, a := range all {
		if a.Error != nil {
			failures++
		}
	}
	room := max(0, maxAttemptsAtOnce-failures) // for those that succeeded
	kept := make([]Attempt, 0, maxAttemptsAtOnce)
	for i := len(all) - 1; i >= 0 && len(kept) < maxAttemptsAtOnce; i-- {
		if all[i].Error == nil {
			if room == 0 {
				continue
			}
			room--
		}
		kept = append(kept, all[i])
	}
	for i, j := 0, len(kept)-1; i < j; i, j = i+1, j-1 {
		kept[i], kept[j] = kept[j], kept[i]
	}
	return kept
}

// oldest returns the time of the oldest event that is not done, zero for none.
func (t *target) oldest(now time.Time) (at time.Time) {
	if t.pending == 0 {
		return at
	}
	t.look(now)
	return t.oldestSeen
}

const (
	lookInterval = time.Second // between two looks at all rooms of a target
	fewRooms     = 100         // that are looked at each time
)

// look notes what oldest and kept return. Of a target that is down there are as many rooms as
// events may be in memory: to look at them ten times a second would delay other targets.
func (t *target) look(now time.Time) {
	machine := time.Now()
	if len(t.rooms) > fewRooms && machine.Before(t.lookAt) {
		return
	}
	t.lookAt, t.oldestSeen, t.keptAtLooked = machine.Add(lookInterval), now, make(map[string]int64, len(t.feeds))
	for name, c := range t.feeds {
		t.keptAtLooked[name] = numberOf(c.stored)
	}
	for _, q := range t.rooms {
		if len(q.events) == 0 {
			continue
		}
		e := q.events[0]
		if e.message.at.Before(t.oldestSeen) {
			t.oldestSeen = e.message.at
		}
		if q.behind && !isGapRoom(q.name) {
			t.keptAtLooked[e.feed.name] = min(t.keptAtLooked[e.feed.name], numberOf(e.after))
		}
	}
}

func optionalMS(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return strconv.FormatInt(at.UnixMilli(), 10)
}

// kept returns the number in each feed behind which everything must be kept. It may be lower than
// needed for a while.
func (t *target) kept(now time.Time) map[string]int64 {
	t.look(now)
	return t.keptAtLooked
}

// hasProgress reports whether there is something to store.
func (t *target) hasProgress() bool { return t.changed || len(t.dirty) > 0 || len(t.attempts) > 0 }

// waitingRooms is a heap of rooms by the time of their next try.
type waitingRooms []*roomQueue

func (w waitingRooms) Len() int { return len(w) }
func (w waitingRooms) Less(i, j int) bool {
	return cmp.Less(w[i].place.due.UnixNano(), w[j].place.due.UnixNano())
}
func (w waitingRooms) Swap(i, j int) { w[i], w[j] = w[j], w[i] }

// Push implements heap.Interface.
func (w *waitingRooms) Push(q any) { *w = append(*w, q.(*roomQueue)) }

// Pop implements heap.Interface.
func (w *waitingRooms) Pop() any {
	last := len(*w) - 1
	q := (*w)[last]
	(*w)[last] = nil
	*w = (*w)[:last]
	return q
}
