package leaderboards

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
)

// Bounds of a View.
const (
	MaxLiveTop    = 100 // the store counts the changes of so many
	MaxLiveAround = 25
)

// View selects the part of a board that a watcher gets.
type View struct {
	Top    int   // entries from the first on
	Around int   // entries around that of a player; 0: none
	UserID int64 // the player; 0 without Around
}

// LiveSnapshot is the content of a View.
type LiveSnapshot struct {
	Season  int64        `json:"season"`
	Version int64        `json:"version"` // rises with each change of the first 100 entries of the season
	Entries wire.RawJSON `json:"entries"` // a list of Entry
	Me      wire.RawJSON `json:"me"`      // the same: around the player's own, none without one; null without Around
}

// Audience has the watchers of boards on this node. Its methods must not wait.
type Audience interface {
	// Views returns the views of a board that somebody watches, in any order, each once.
	Views(gameID int64, board string) []View
	// Show replaces what the watchers of a view have.
	Show(gameID int64, board string, v View, s LiveSnapshot)
	// ShowSeasonEnded is called before what the next season has is shown.
	ShowSeasonEnded(gameID int64, board string, s Season)
	ShowSeasonStarted(gameID int64, board string, s Season)
	// End is called when nobody may watch the board any more.
	End(gameID int64, board string, reason error)
}

const (
	liveInterval      = 250 * time.Millisecond // between two looks at the boards that are watched
	liveTimeout       = 2 * time.Second        // of one look
	liveReaders       = 8                      // boards, or players, that are read at the same time
	boardVersionTicks = 4                      // each how many looks the board itself is compared

	// After this time the details of an entry are read again even if its member is the same: the
	// name of its player, and the number of its submissions.
	maxLiveEntryAge = 10 * time.Second

	// The place of a player changes with every score on the board. So it is read less often, and a
	// node reads a bounded number, whose watchers take turns.
	liveAroundInterval = 2 * time.Second
	liveAroundsAtOnce  = 25
)

// Live shows an audience the boards that it watches, as they change. Once per interval a node reads
// the versions of all watched boards in one round trip, and then the boards that changed. While the
// store cannot be reached it shows nothing; afterwards it shows the newest state.
type Live struct {
	service  *Service
	audience Audience
	ticks    int  // owned by Run
	isDown   bool // the same: the last look failed

	mu     sync.Mutex
	boards map[boardID]*liveBoard
}

// liveBoard is a board that is watched. The holder of lock owns what is below it.
type liveBoard struct {
	id   boardID
	lock chan struct{} // holds one value while somebody has it

	isDropped bool // it is not in Live.boards any more
	ranking   ranking
	isOpen    bool // the season has begun
	isRead    bool // entries are those of version
	isDirty   bool // something was read that was not shown yet
	version   liveVersion
	entries   []Entry
	known     map[string]knownEntry // entries by member
	views     map[View]*liveView
}

type knownEntry struct {
	entry  Entry
	readAt time.Time
}

// liveView is a view as its watchers have it.
type liveView struct {
	shown     LiveSnapshot
	me        wire.RawJSON
	meVersion liveVersion
	meReadAt  time.Time
}

// NewLive returns what shows an audience the boards of the service.
func (s *Service) NewLive(a Audience) *Live {
	return &Live{service: s, audience: a, boards: map[boardID]*liveBoard{}}
}

// Run shows changes until ctx ends.
func (l *Live) Run(ctx context.Context) error {
	ticker := time.NewTicker(liveInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			l.tick(ctx)
		}
	}
}

// Watch calls begin with the current state of a view. It shows the audience nothing between reading
// that state and the end of begin, so a watcher that begin adds to the audience misses nothing. It
// returns board_not_found, store_unavailable and the error of begin.
func (l *Live) Watch(
	ctx context.Context, caller principal.Caller, gameID int64, key string, v View, begin func(LiveSnapshot) error,
) error {
	if err := l.service.authorizeRead(ctx, caller, gameID); err != nil {
		return err
	}
	if _, err := l.service.load(ctx, gameID, key); err != nil {
		return err
	}
	b, err := l.lockBoard(ctx, boardID{gameID, key})
	if err != nil {
		return err
	}
	defer b.unlock()
	if err := l.refresh(ctx, b, v.Around > 0); err != nil {
		return err
	}
	view := b.views[v]
	isNew := view == nil
	if isNew {
		view = &liveView{}
	}
	if v.Around > 0 {
		if err := l.readMe(ctx, b, v, view); err != nil {
			return err
		}
	}
	now, err := newEncoder(b).encode(v, view)
	if err != nil {
		return err
	}
	if !isNew {
		l.showIfChanged(b, v, view, now)
	}
	if err := begin(now); err != nil {
		return err
	}
	view.shown, b.views[v] = now, view
	return nil
}

// lockBoard returns a board that is watched, and adds it where it is not. The caller must unlock
// it.
func (l *Live) lockBoard(ctx context.Context, id boardID) (*liveBoard, error) {
	for {
		l.mu.Lock()
		b := l.boards[id]
		if b == nil {
			b = &liveBoard{
				id: id, lock: make(chan struct{}, 1), known: map[string]knownEntry{}, views: map[View]*liveView{},
			}
			l.boards[id] = b
		}
		l.mu.Unlock()
		select {
		case b.lock <- struct{}{}:
		case <-ctx.Done():
			return nil, apierror.StoreUnavailable.WithReason("the leaderboard cannot be read")
		}
		if !b.isDropped {
			return b, nil
		}
		b.unlock()
	}
}

func (b *liveBoard) unlock() { <-b.lock }

// drop ends that a board is watched. The caller must have locked it.
func (l *Live) drop(b *liveBoard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b.isDropped = true
	delete(l.boards, b.id)
}

// lockWatched returns the boards that somebody watches, locked. It drops the others, and leaves out
// those that a Watch has: it reads them itself.
func (l *Live) lockWatched() (list []*liveBoard) {
	l.mu.Lock()
	all := make([]*liveBoard, 0, len(l.boards))
	for _, b := range l.boards {
		all = append(all, b)
	}
	l.mu.Unlock()
	for _, b := range all {
		select {
		case b.lock <- struct{}{}:
		default:
			continue
		}
		watched := map[View]bool{}
		for _, v := range l.audience.Views(b.id.gameID, b.id.key) {
			watched[v] = true
		}
		maps.DeleteFunc(b.views, func(v View, _ *liveView) bool { return !watched[v] })
		if len(b.views) == 0 {
			l.drop(b)
			b.unlock()
			continue
		}
		list = append(list, b)
	}
	return list
}

// tick looks once at the boards that are watched, and shows what has changed.
func (l *Live) tick(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	list := l.lockWatched()
	if len(list) == 0 {
		return
	}
	defer func() {
		for _, b := range list {
			b.unlock()
		}
	}()
	l.ticks++
	errs := make([]error, len(list))
	inParallel(len(list), func(i int) { errs[i] = l.enterSeason(ctx, list[i], list[i].ranking.board) })
	polls := make([]livePoll, len(list))
	for i, b := range list {
		polls[i] = livePoll{b.ranking, b.wantsAll(), l.ticks%boardVersionTicks == 0}
	}
	readings := l.service.store.pollVersions(ctx, polls)
	inParallel(len(list), func(i int) {
		if r := &readings[i]; errs[i] == nil {
			errs[i] = cmp.Or(r.err, l.update(ctx, list[i], r, polls[i].wantsVersion))
		}
	})
	errs = append(errs, l.readDueMes(ctx, list))
	for _, b := range list {
		if b.isDirty && b.isRead && !b.isDropped {
			errs = append(errs, l.show(b))
		}
	}
	l.report(errors.Join(errs...))
}

// report logs the first failure of several in a row.
func (l *Live) report(err error) {
	if err != nil && !l.isDown {
		slog.Warn("watched leaderboards cannot be read", "error", err)
	}
	l.isDown = err != nil
}

// inParallel calls do for 0 to n-1, and returns when all have returned.
func inParallel(n int, do func(i int)) {
	var next atomic.Int64
	var readers sync.WaitGroup
	for range min(n, liveReaders) {
		readers.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				do(int(i))
			}
		})
	}
	readers.Wait()
}

// wantsAll reports whether somebody watches the place of a player.
func (b *liveBoard) wantsAll() bool {
	for v := range b.views {
		if v.Around > 0 {
			return true
		}
	}
	return false
}

// refresh makes a board that the caller has locked as new as the store, and shows it.
func (l *Live) refresh(ctx context.Context, b *liveBoard, wantsAll bool) error {
	var err error
	if b.ranking.board == nil {
		err = l.reload(ctx, b)
	} else {
		err = l.enterSeason(ctx, b, b.ranking.board)
	}
	switch {
	case err != nil:
		return err
	case b.isDropped:
		return apierror.BoardNotFound
	}
	reading := l.service.store.pollVersions(ctx, []livePoll{{b.ranking, wantsAll || b.wantsAll(), true}})[0]
	if reading.err != nil {
		return reading.err
	}
	if err := l.update(ctx, b, &reading, true); err != nil {
		return err
	}
	switch {
	case b.isDropped:
		return apierror.BoardNotFound
	case b.isDirty:
		return l.show(b)
	}
	return nil
}

// update reads the board again if its version is another one, and the entries if theirs is.
func (l *Live) update(ctx context.Context, b *liveBoard, r *liveReading, knowsBoard bool) error {
	if knowsBoard && r.boardVersion != b.ranking.board.version {
		season := b.ranking.season.number
		if err := l.reload(ctx, b); err != nil || b.isDropped {
			return err
		}
		if b.ranking.season.number != season {
			*r = l.service.store.pollVersions(ctx, []livePoll{{b.ranking, b.wantsAll(), false}})[0]
			if r.err != nil {
				return r.err
			}
		}
	}
	if b.isRead && r.version.top == b.version.top {
		b.version = r.version
		return nil
	}
	if err := l.readTop(ctx, b); err != nil {
		return err
	}
	b.version, b.isRead, b.isDirty = r.version, true, true
	return nil
}

// reload reads the board itself. A board that is gone has no audience any more.
func (l *Live) reload(ctx context.Context, b *liveBoard) error {
	read, err := l.service.reload(ctx, b.id.gameID, b.id.key)
	if errors.Is(err, apierror.BoardNotFound) {
		l.audience.End(b.id.gameID, b.id.key, err)
		l.drop(b)
		return nil
	}
	if err != nil {
		return err
	}
	return l.enterSeason(ctx, b, read)
}

// enterSeason makes the current season of a board, as it was read, the one that is watched. It
// shows the end of the season before and the beginning of the new one.
func (l *Live) enterSeason(ctx context.Context, b *liveBoard, read *board) error {
	now := time.Now().UnixMilli()
	read, err := l.service.addDueSeasons(ctx, read, now)
	if err != nil {
		return err
	}
	old, current := b.ranking, read.currentAt(now)
	isOpen, isNext := now >= current.opens, old.board != nil && old.season.number != current.number
	if old.board != nil && (isNext || isOpen != b.isOpen) {
		if err := l.showSeasons(ctx, b, read.ranking(current), isNext, isOpen, now); err != nil {
			return err // again with the next look
		}
	}
	b.ranking, b.isOpen = read.ranking(current), isOpen
	if isNext {
		b.isRead, b.isDirty, b.entries = false, false, nil
		clear(b.known)
	}
	return nil
}

// showSeasons shows that the season of a board has ended, and that the current one has begun.
func (l *Live) showSeasons(
	ctx context.Context, b *liveBoard, current ranking, hasEnded, hasBegun bool, nowMS int64,
) error {
	ended := b.ranking
	if kept := current.board.find(ended.season.number); kept != nil {
		ended = current.board.ranking(kept)
	}
	counts, err := l.service.store.countEntries(ctx, ended, current)
	if err != nil {
		return err
	}
	if hasEnded {
		l.audience.ShowSeasonEnded(b.id.gameID, b.id.key, ended.season.view(ended.definition, nowMS, counts[0]))
	}
	if hasBegun {
		l.audience.ShowSeasonStarted(b.id.gameID, b.id.key, current.season.view(current.definition, nowMS, counts[1]))
	}
	return nil
}

// readTop reads as many of the first entries as the largest view can show. It does not read the
// details of a member again that the node already has.
func (l *Live) readTop(ctx context.Context, b *liveBoard) error {
	s, r := l.service, b.ranking
	members, err := s.store.slice(ctx, r, "-", MaxLiveTop)
	if err != nil {
		return err
	}
	if len(members) == 0 {
		b.entries, b.known = []Entry{}, map[string]knownEntry{}
		return nil
	}
	ranked, total, err := s.rankRun(ctx, r, members, "")
	if err != nil {
		return err
	}
	now := time.Now()
	var unknown []rankedStanding
	for _, one := range ranked {
		if k, ok := b.known[one.member]; !ok || now.Sub(k.readAt) > maxLiveEntryAge {
			unknown = append(unknown, one)
		}
	}
	read, err := s.present(ctx, r, unknown, total)
	if err != nil {
		return err
	}
	byUser := make(map[int64]Entry, len(read))
	for _, e := range read {
		byUser[e.User.ID] = e
	}
	entries, known := make([]Entry, 0, len(ranked)), make(map[string]knownEntry, len(ranked))
	for _, one := range ranked {
		k, isKnown := b.known[one.member]
		if e, ok := byUser[one.userID]; ok {
			k, isKnown = knownEntry{e, now}, true
		}
		if !isKnown {
			continue // removed meanwhile
		}
		known[one.member] = k
		k.entry.Rank, k.entry.Place, k.entry.Percentile = one.rank, one.place, percentBehind(one.rank, total)
		entries = append(entries, k.entry)
	}
	b.entries, b.known = entries, known
	return nil
}

// readMe reads the entries around that of a view's player.
func (l *Live) readMe(ctx context.Context, b *liveBoard, v View, view *liveView) error {
	entries, err := l.service.readAround(ctx, b.ranking, v.UserID, v.Around)
	if errors.Is(err, apierror.EntryNotFound) {
		entries, err = []Entry{}, nil
	}
	if err != nil {
		return err
	}
	me, err := wire.Marshal(entries)
	if err != nil {
		return err
	}
	view.me, view.meVersion, view.meReadAt = me, b.version, time.Now()
	return nil
}

// readDueMes reads the places of players on boards that have changed, those first that were not
// read for longest.
func (l *Live) readDueMes(ctx context.Context, list []*liveBoard) error {
	type dueView struct {
		board *liveBoard
		view  View
		state *liveView
	}
	var due []dueView
	now := time.Now()
	for _, b := range list {
		for v, view := range b.views {
			isDue := view.meVersion != b.version && now.Sub(view.meReadAt) >= liveAroundInterval
			if v.Around > 0 && isDue && b.isRead && !b.isDropped {
				due = append(due, dueView{b, v, view})
			}
		}
	}
	slices.SortFunc(due, func(x, y dueView) int { return x.state.meReadAt.Compare(y.state.meReadAt) })
	due = due[:min(len(due), liveAroundsAtOnce)]
	errs := make([]error, len(due))
	inParallel(len(due), func(i int) { errs[i] = l.readMe(ctx, due[i].board, due[i].view, due[i].state) })
	for _, one := range due {
		one.board.isDirty = true
	}
	return errors.Join(errs...)
}

// show shows every view of a board that has something else now.
func (l *Live) show(b *liveBoard) error {
	encoder := newEncoder(b)
	for v, view := range b.views {
		now, err := encoder.encode(v, view)
		if err != nil {
			return err
		}
		l.showIfChanged(b, v, view, now)
	}
	b.isDirty = false
	return nil
}

func (l *Live) showIfChanged(b *liveBoard, v View, view *liveView, now LiveSnapshot) {
	was := view.shown
	if was.Season == now.Season && string(was.Entries) == string(now.Entries) && string(was.Me) == string(now.Me) {
		return
	}
	view.shown = now
	l.audience.Show(b.id.gameID, b.id.key, v, now)
}

// liveEncoder encodes the entries of a board, once for each number of them.
type liveEncoder struct {
	board *liveBoard
	tops  map[int]wire.RawJSON
}

func newEncoder(b *liveBoard) *liveEncoder { return &liveEncoder{b, map[int]wire.RawJSON{}} }

func (e *liveEncoder) encode(v View, view *liveView) (LiveSnapshot, error) {
	top, ok := e.tops[v.Top]
	if !ok {
		var err error
		if top, err = wire.Marshal(e.board.entries[:min(v.Top, len(e.board.entries))]); err != nil {
			return LiveSnapshot{}, err
		}
		e.tops[v.Top] = top
	}
	s := LiveSnapshot{Season: e.board.ranking.season.number, Version: e.board.version.top, Entries: top}
	if v.Around > 0 {
		s.Me = view.me
	}
	return s, nil
}
