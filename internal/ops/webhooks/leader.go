package webhooks

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/ops/trail"
	"github.com/parlor-games/parlor/internal/store/feed"
	"github.com/parlor-games/parlor/internal/store/leader"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

const (
	leaderKind  = "webhooks"
	leaderLease = 5 * time.Second // deliveries wait for so long when a leader dies

	maxAtOnce     = 64 // requests under way
	maxSlowAtOnce = 48 // of them to targets that are slow
	maxOfGame     = 32 // of them to targets of one game
	slowAfter     = time.Second
	slowFor       = time.Minute // after the last request that took so long

	tickInterval    = 10 * time.Millisecond
	commitInterval  = 100 * time.Millisecond
	refreshInterval = time.Second // between two looks at the definitions
	noteInterval    = time.Minute // between two notes of how many webhooks of a game are active
	pollFast        = 20 * time.Millisecond
	pollSlow        = 500 * time.Millisecond
	storeTimeout    = 2 * time.Second // for what a leader stores
	readLimit       = 1000            // entries of a feed in one read
)

// Run competes for the lead and delivers while it leads, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	defer s.sender.closeIdle()
	return leader.Hold(ctx, s.store.db, leaderKind, leaderLease, s.lead)
}

// lead delivers until ctx ends, or until another node has stored something.
func (s *Service) lead(ctx context.Context, fence int64) error {
	defer s.metrics.lag.Store(0)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d := &dispatcher{
		service: s, ctx: ctx, stop: cancel, fence: fence, done: make(chan func(), 4*maxAtOnce),
		targets: map[targetKey]*target{}, storing: map[targetKey]int{}, kept: map[int64]kept{}, ofGame: map[int64]int{},
	}
	d.run()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, errReplaced) {
		return err
	}
	return nil
}

// targetKey names a webhook.
type targetKey struct {
	gameID int64
	id     string
}

// dispatcher delivers to all targets. Its own goroutine decides everything; others read the store,
// write to it and send, and give it functions to run afterwards.
type dispatcher struct {
	service *Service
	ctx     context.Context
	stop    context.CancelCauseFunc
	fence   int64
	done    chan func()
	workers sync.WaitGroup

	targets map[targetKey]*target
	storing map[targetKey]int // calls under way that store something of a target, or of one before it
	order   []*target         // of targets; the first one that may send is another one each time
	flying  int
	ofGame  map[int64]int // requests under way, by game
	slow    int           // requests under way to targets that were slow when they began

	kept       map[int64]kept // by game
	refreshAt  time.Time
	commitAt   time.Time
	refreshing bool
}

func (d *dispatcher) run() {
	tick := time.NewTicker(tickInterval)
	defer tick.Stop()
	defer d.end()
	for {
		select {
		case <-d.ctx.Done():
			return
		case then := <-d.done:
			then()
			for n := len(d.done); n > 0; n-- {
				(<-d.done)()
			}
		case <-tick.C:
			d.tick(time.Now())
		}
		d.dispatch()
	}
}

// end waits for the goroutines and stores what has come back.
func (d *dispatcher) end() {
	ended := make(chan struct{})
	go func() {
		d.workers.Wait()
		close(ended)
	}()
	for waits := true; waits; {
		select {
		case then := <-d.done:
			then()
		case <-ended:
			waits = false
		}
	}
	for len(d.done) > 0 {
		(<-d.done)()
	}
	if errors.Is(context.Cause(d.ctx), errReplaced) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), storeTimeout)
	defer cancel()
	for _, t := range d.order {
		if !t.gone && t.hasProgress() {
			_ = d.service.store.commit(ctx, t.gameID, t.id, t.takeProgress(d.fence, d.service.now()))
		}
	}
}

// start runs work beside the dispatcher, and what it returns in the dispatcher's goroutine.
func (d *dispatcher) start(work func() func()) {
	d.workers.Go(func() { d.done <- work() })
}

func (d *dispatcher) tick(now time.Time) {
	if !d.refreshing && !now.Before(d.refreshAt) {
		d.refreshing = true
		d.start(d.refresh)
	}
	storesNow := !now.Before(d.commitAt)
	if storesNow {
		d.commitAt = now.Add(commitInterval)
	}
	clock := d.service.now()
	var oldest time.Time
	most := pendingLimit(d.order)
	for _, t := range d.order {
		t.wakeDue(clock)
		if !t.polling && !now.Before(t.pollAt) && t.pending < most {
			d.poll(t)
		}
		if storesNow {
			if t.hasProgress() && !t.storing {
				d.commit(t)
			}
			if at := t.oldest(clock); !at.IsZero() && (oldest.IsZero() || at.Before(oldest)) {
				oldest = at
			}
		}
	}
	if storesNow {
		lag := time.Duration(0)
		if !oldest.IsZero() {
			lag = max(0, clock.Sub(oldest))
		}
		d.service.metrics.lag.Store(int64(lag))
	}
}

// pendingLimit returns how many events of a target may be in memory before it reads more.
func pendingLimit(targets []*target) int {
	all := 0
	for _, t := range targets {
		all += t.pending
	}
	if all >= maxPendingOfAll {
		return fewPending
	}
	return maxPending
}

// fail logs an error of the store once in a while and stops when another node leads.
func (d *dispatcher) fail(what string, err error) {
	switch {
	case err == nil || d.ctx.Err() != nil:
	case errors.Is(err, errReplaced):
		d.stop(err)
	case errors.Is(err, redisdb.ErrStale):
	default:
		slog.WarnContext(d.ctx, "webhooks wait", "while", what, "error", err)
	}
}

// refresh reads all definitions.
func (d *dispatcher) refresh() func() {
	s := d.service
	games := map[int64]map[string]stored{}
	rounds := map[targetKey]string{}
	ids, err := s.store.listGames(d.ctx)
	if err == nil {
		games, err = s.store.readDefinitions(d.ctx, ids)
	}
	if err == nil {
		rounds, err = s.readRounds(d.ctx, games)
	}
	return func() {
		d.refreshing = false
		d.refreshAt = time.Now().Add(refreshInterval)
		if err != nil {
			d.fail("reading the definitions", err)
			return
		}
		d.compare(games, rounds)
		d.keep(games)
	}
}

func (s *Service) readRounds(
	ctx context.Context, games map[int64]map[string]stored,
) (map[targetKey]string, error) {
	var active []targetKey
	for gameID, webhooks := range games {
		for id, found := range webhooks {
			if found.Active {
				active = append(active, targetKey{gameID, id})
			}
		}
	}
	list, err := s.store.readRounds(ctx, active)
	rounds := make(map[targetKey]string, len(list))
	for i, round := range list {
		rounds[active[i]] = round
	}
	return rounds, err
}

// compare starts the targets that are new, and drops those that are gone or have changed, or whose
// positions staff has put elsewhere.
func (d *dispatcher) compare(games map[int64]map[string]stored, rounds map[targetKey]string) {
	signingKeys := d.service.signingKeys.Load()
	for key, t := range d.targets {
		found, ok := games[key.gameID][key.id]
		if !ok || found.text != t.text || t.feeds != nil && (rounds[key] != t.round || t.signingKeys != signingKeys) {
			d.drop(t)
		}
	}
	for gameID, webhooks := range games {
		for id, found := range webhooks {
			key := targetKey{gameID, id}
			if found.Active && d.targets[key] == nil && d.storing[key] == 0 {
				d.load(key, found)
			}
		}
	}
	d.reorder()
}

func (d *dispatcher) drop(t *target) {
	t.gone = true
	delete(d.targets, targetKey{t.gameID, t.id})
	d.reorder()
}

func (d *dispatcher) reorder() {
	d.order = d.order[:0]
	for _, t := range d.targets {
		d.order = append(d.order, t)
	}
}

// load reads the state of a webhook and makes a target of it.
func (d *dispatcher) load(key targetKey, found stored) {
	d.targets[key] = &target{gameID: key.gameID, id: key.id, stored: found, polling: true} // a place holder
	d.start(func() func() {
		t, err := d.service.loadTarget(d.ctx, key, found)
		return func() {
			if holder := d.targets[key]; holder == nil || holder.text != found.text || holder.feeds != nil {
				return // it was dropped meanwhile
			}
			delete(d.targets, key) // the next refresh tries again
			if err == nil {
				d.targets[key] = t
			}
			d.reorder()
			d.fail("reading the state of a webhook", err)
		}
	})
}

func (s *Service) loadTarget(ctx context.Context, key targetKey, found stored) (*target, error) {
	signingKeys := s.signingKeys.Load()
	signs, byFirst, err := s.newSigner(key.gameID, key.id, found.definition)
	if errors.Is(err, errSecretUnreadable) {
		return nil, errors.Join(err, s.disable(ctx, key, errSecretUnreadable.Error()))
	}
	if err != nil {
		return nil, err
	}
	if !byFirst {
		if err := s.encryptAnew(ctx, key); err != nil {
			return nil, err
		}
	}
	states, err := s.store.readStates(ctx, key.gameID, []string{key.id})
	if err != nil {
		return nil, err
	}
	t := newTarget(key.gameID, key.id, found, signs, states[0], s.now())
	t.signingKeys = signingKeys
	if again := t.feeds[againFeed]; again == nil {
		t.feeds[againFeed] = &cursor{name: againFeed, stored: feed.Start, read: feed.Start}
	}
	if t.feeds[KindMoney] == nil && found.wants(KindMoney) { // a kind that was added
		last, err := s.deps.Ledger.LastEntry(ctx, key.gameID)
		if err != nil {
			return nil, err
		}
		position := moneyPosition(last, "")
		t.feeds[KindMoney] = &cursor{name: KindMoney, stored: position, read: position}
	}
	for _, shard := range s.shards(key.gameID) {
		if name := feed.Name(shard); t.feeds[name] == nil {
			t.feeds[name] = &cursor{name: name, stored: feed.Start, read: feed.Start}
		}
	}
	return t, nil
}

// encryptAnew encrypts the secret of a webhook under the first signing key, so that older ones can
// be removed.
func (s *Service) encryptAnew(ctx context.Context, key targetKey) error {
	_, err := s.change(ctx, key.gameID, key.id, func(d *definition) error {
		d.Version-- // nothing that anybody sees has changed
		for _, encrypted := range []*string{&d.Secret, &d.Former} {
			secret, _, err := s.decrypt(key.gameID, key.id, *encrypted)
			if err != nil {
				*encrypted = ""
				continue
			}
			if *encrypted, err = s.encrypt(key.gameID, key.id, secret); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// disable makes a webhook inactive and leaves a record.
func (s *Service) disable(ctx context.Context, key targetKey, why string) error {
	was := true
	_, err := s.change(ctx, key.gameID, key.id, func(d *definition) error {
		was, d.Active, d.Disabled = d.Active, false, why
		return nil
	})
	if err != nil || !was {
		return err
	}
	s.deps.Log.WarnContext(ctx, "a webhook was disabled", "gameId", key.gameID, "webhook", key.id, "because", why)
	s.deps.Trail.Record(ctx, trail.Write{
		Caller: principal.Caller{Role: principal.System}, Action: "disableWebhook", Target: "webhook:" + key.id,
		Before: map[string]any{"active": true},
		After:  map[string]any{"active": false, "gameId": key.gameID, "reason": why}, Outcome: trail.Done,
	})
	return s.noteActive(ctx, key.gameID)
}

// keep notes in the feeds of each game what still waits for its webhooks, and the game how many
// of them are active: whoever changed that may have died before.
func (d *dispatcher) keep(games map[int64]map[string]stored) {
	for gameID, webhooks := range games {
		active := countActive(webhooks)
		numbers, isKnown := d.undelivered(gameID, webhooks)
		before, isOld := d.kept[gameID]
		changed := maps.Clone(numbers)
		maps.DeleteFunc(changed, func(name string, number int64) bool {
			was, ok := before.numbers[name]
			return ok && was == number
		})
		now := d.service.now()
		notes := !isOld || active != before.active || now.Sub(before.notedAt) >= noteInterval
		if !isKnown || active > 0 && !notes && len(changed) == 0 {
			continue
		}
		if !notes {
			now = before.notedAt
		}
		d.kept[gameID] = kept{active, now, numbers}
		d.start(func() func() {
			var err error
			if notes {
				err = d.service.noteActive(d.ctx, gameID)
			}
			if err == nil {
				err = d.service.keep(d.ctx, gameID, changed, active)
			}
			return func() {
				if err != nil || active == 0 {
					delete(d.kept, gameID)
				}
				d.fail("noting what feeds must keep", err)
			}
		})
	}
}

// kept is what the feeds of a game were told.
type kept struct {
	active  int // webhooks
	notedAt time.Time
	numbers map[string]int64 // by feed: the last entry that need not be kept
}

// undelivered returns the number in each feed behind which some webhook of a game waits, and false
// while one of them is not read yet: then what is kept so far stays.
func (d *dispatcher) undelivered(gameID int64, webhooks map[string]stored) (map[string]int64, bool) {
	numbers := map[string]int64{}
	for id, found := range webhooks {
		if !found.Active {
			continue
		}
		t := d.targets[targetKey{gameID, id}]
		if t == nil || t.feeds == nil {
			return nil, false
		}
		for name, number := range t.keptNumbers {
			if before, ok := numbers[name]; !ok || number < before {
				numbers[name] = number
			}
		}
	}
	return numbers, true
}

// keep tells the feeds of a game what they need not keep any more; without an active webhook they
// keep nothing for one, and the leader forgets the game.
func (s *Service) keep(ctx context.Context, gameID int64, numbers map[string]int64, active int) error {
	if active > 0 {
		return s.store.keep(ctx, gameID, s.shards(gameID), numbers)
	}
	if err := s.store.keepNothing(ctx, gameID, s.shards(gameID)); err != nil {
		return err
	}
	if err := s.store.removeGame(ctx, gameID); err != nil {
		return err
	}
	webhooks, err := s.readGame(ctx, gameID) // one may have become active meanwhile
	if err == nil && countActive(webhooks) > 0 {
		err = s.store.addGame(ctx, gameID)
	}
	return err
}

// dispatch sends what can be sent now.
func (d *dispatcher) dispatch() {
	n := len(d.order)
	if n == 0 || d.ctx.Err() != nil {
		return
	}
	now := time.Now()
	for sent := true; sent && d.flying < maxAtOnce; {
		sent = false
		for i := 0; i < n && d.flying < maxAtOnce; i++ {
			t := d.order[i]
			if d.ofGame[t.gameID] >= maxOfGame || t.isSlow(now) && d.slow >= maxSlowAtOnce {
				continue
			}
			if e := t.next(now); e != nil {
				sent = true
				d.send(t, e, t.isSlow(now))
			}
		}
	}
	// Another one is the first next time.
	d.order = append(d.order[1:], d.order[0])
}

func (d *dispatcher) send(t *target, e *event, isSlow bool) {
	address, signs, m := t.URL, t.signs, e.message
	d.flying++
	d.ofGame[t.gameID]++
	if isSlow {
		d.slow++
	}
	d.start(func() func() {
		o := d.service.sender.send(d.ctx, address, signs, m, d.service.now())
		return func() {
			d.flying--
			if d.ofGame[t.gameID]--; d.ofGame[t.gameID] == 0 {
				delete(d.ofGame, t.gameID)
			}
			if isSlow {
				d.slow--
			}
			t.notePace(o.took, time.Now())
			d.landed(t, e, o)
		}
	})
}

func (d *dispatcher) landed(t *target, e *event, o outcome) {
	s := d.service
	if t.gone || d.ctx.Err() != nil && !o.isDelivered() {
		return
	}
	s.metrics.counter(o.kind()).Add(1)
	now := s.now()
	why := ""
	switch {
	case o.status == statusGone:
		why = "the response has the status 410"
	case !o.isDelivered() && !t.failing.IsZero() && now.Sub(t.failing) >= giveUpAfter:
		why = "every attempt of the last 24 hours has failed, the last one with: " + o.err.Error()
	}
	if why != "" {
		t.attempts = append(t.attempts, o.attempt(e.message, now))
		d.disable(t, why)
		return
	}
	before := t.parked
	t.land(e, o, now)
	s.metrics.parked.Add(t.parked - before)
}

const statusGone = 410

// disable stores what a target has got to, drops it and makes the webhook inactive.
func (d *dispatcher) disable(t *target, why string) {
	d.drop(t)
	d.store(t, t.takeProgress(d.fence, d.service.now()), func(err error) {
		if err != nil && !errors.Is(err, redisdb.ErrStale) || d.ctx.Err() != nil {
			d.fail("disabling a webhook", err)
			return
		}
		d.start(func() func() {
			err := d.service.disable(d.ctx, targetKey{t.gameID, t.id}, why)
			return func() { d.fail("disabling a webhook", err) }
		})
	})
}

// restart drops a target one of whose feeds is another one than before. It is read anew from what
// the store has.
func (d *dispatcher) restart(t *target, c *cursor, resume string) {
	d.drop(t)
	d.store(t, t.restart(c, resume, d.fence), func(err error) {
		d.refreshAt = time.Time{}
		d.fail("noting that events of a feed are gone", err)
	})
}

// store stores progress of a target and then runs then. Meanwhile the target is not read anew.
func (d *dispatcher) store(t *target, p progress, then func(err error)) {
	key := targetKey{t.gameID, t.id}
	d.storing[key]++
	// What is delivered is stored also when the lead ends meanwhile.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), storeTimeout)
	d.start(func() func() {
		defer cancel()
		err := d.service.store.commit(ctx, t.gameID, t.id, p)
		return func() {
			if d.storing[key]--; d.storing[key] == 0 {
				delete(d.storing, key)
			}
			then(err)
		}
	})
}

func (d *dispatcher) commit(t *target) {
	t.storing = true
	now := d.service.now()
	p, numbers := t.takeProgress(d.fence, now), t.kept(now)
	d.store(t, p, func(err error) {
		t.storing = false
		switch {
		case err == nil:
			t.keptNumbers = numbers
		case !t.gone:
			d.drop(t) // it is read anew from what the store has
		}
		d.fail("storing how far a webhook is", err)
	})
}

// poll reads what is new in the feeds of a target.
func (d *dispatcher) poll(t *target) {
	t.polling = true
	from := make(map[string]string, len(t.feeds))
	for name, c := range t.feeds {
		from[name] = c.read
	}
	key, kinds := targetKey{t.gameID, t.id}, t.definition
	d.start(func() func() {
		pages, err := d.service.readFeeds(d.ctx, key, kinds, from)
		return func() {
			t.polling = false
			d.fail("reading a feed", err)
			if t.gone {
				return
			}
			isFull := false
			now := d.service.now()
			for i := range pages {
				p := &pages[i]
				if c := t.feeds[p.feed]; p.gap && p.isOther && c != nil && c.read == p.after {
					d.restart(t, c, p.resume)
					return
				}
				t.addPage(p, now)
				isFull = isFull || p.isFull
			}
			switch {
			case isFull:
				t.pollDelay = 0
			case len(pages) > 0:
				t.pollDelay = pollFast
			default:
				t.pollDelay = min(max(2*t.pollDelay, pollFast), pollSlow)
			}
			t.pollAt = time.Now().Add(t.pollDelay)
		}
	})
}
