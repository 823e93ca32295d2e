package leaderboards

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

const (
	// soon is the time before the end of a season in which its game is looked at each second.
	soon = 90 * time.Second
	// boardsInTurn bounds the boards of a game that the leader handles before other games have their
	// turn.
	boardsInTurn = 20
	// turnsFor bounds the time on games with more to do before it reads of other games.
	turnsFor = time.Second
	// lookEvery is how often boards are looked at that are not due, boardsLookedAt of a game: nodes of
	// a release before do not say when a board is due.
	lookEvery      = time.Minute
	boardsLookedAt = 1_000
	// retryAfter is when a board that could not be kept is tried again, or one that has no money for
	// its prizes.
	retryAfter = time.Minute
	// latestDue is the time of the next look at a board for which nothing is known to become due.
	latestDue = time.Hour
)

// sweeps is the leader's memory. Only one goroutine uses it at a time.
type sweeps struct {
	mu    sync.Mutex
	games map[int64]*gameSweep
}

// gameSweep is the leader's memory of a game.
type gameSweep struct {
	lookedAt time.Time // at boards that are not due
	lookFrom string    // the board behind which the next such look begins
	loggedAt time.Time // when errors were logged last
	failures int       // since then
}

// Run does the background work until ctx ends: it stores coming seasons, seals those that have
// ended, and removes those that are not kept. One node at a time does the work. A node may die at
// any instant, because every step can be repeated.
func (s *Service) Run(ctx context.Context) error { return s.work.Run(ctx) }

// RunOnce does the work of Run once, for all boards, also for those that are not due. It does
// nothing while another node leads.
func (s *Service) RunOnce(ctx context.Context) error {
	s.sweeps.mu.Lock()
	clear(s.sweeps.games)
	s.sweeps.mu.Unlock()
	return s.work.RunOnce(ctx)
}

// sweepGames is the leader.Handler. It needs no fencing token: its scripts compare the version of a
// board and the store's clock, so that a leader that was replaced changes nothing wrongly. Games
// take turns, so that one with many boards holds up no other.
func (s *Service) sweepGames(ctx context.Context, _ int64, gameIDs []int64) (unfinished []int64, err error) {
	s.sweeps.mu.Lock()
	defer s.sweeps.mu.Unlock()
	var errs []error
	unfinished = []int64{} // also with an error
	began := time.Now()
	turn := gameIDs
	for len(turn) > 0 && ctx.Err() == nil {
		var more []int64
		for _, gameID := range turn {
			isNear, hasMore, err := s.sweepTurn(ctx, gameID)
			switch errs = append(errs, err); {
			case hasMore:
				more = append(more, gameID)
			case isNear || err != nil:
				unfinished = append(unfinished, gameID)
			}
		}
		if turn = more; time.Since(began) > turnsFor {
			break
		}
	}
	return append(unfinished, turn...), errors.Join(errs...)
}

// sweepTurn looks at some boards of a game that are due. It reports whether to look again in a
// second, and whether more are due now.
func (s *Service) sweepTurn(ctx context.Context, gameID int64) (isNear, hasMore bool, err error) {
	memory := s.sweeps.games[gameID]
	if memory == nil {
		memory = &gameSweep{}
		s.sweeps.games[gameID] = memory
	}
	now, err := s.store.nowToEnd(ctx)
	if err != nil {
		return false, false, err
	}
	if time.Since(memory.lookedAt) >= lookEvery {
		if err := s.lookAtBoards(ctx, gameID, memory, now); err != nil {
			return false, false, err
		}
	}
	taken := now + retryAfter.Milliseconds()
	boardKeys, err := s.store.takeDue(ctx, gameID, now, taken, boardsInTurn)
	if err != nil {
		return false, false, err
	}
	if err := s.sweepBoards(ctx, gameID, memory, boardKeys, taken); err != nil {
		return true, false, err
	}
	if len(boardKeys) == boardsInTurn {
		return false, true, nil
	}
	first, ok, err := s.store.firstDue(ctx, gameID)
	if err == nil && !ok {
		delete(s.sweeps.games, gameID)
	}
	return ok && first < now+soon.Milliseconds(), false, err
}

// lookAtBoards makes boards due that are not known to be, those behind the last such look.
func (s *Service) lookAtBoards(ctx context.Context, gameID int64, memory *gameSweep, nowMS int64) error {
	boardKeys, err := s.store.listKeys(ctx, gameID)
	if err != nil {
		return err
	}
	memory.lookedAt = time.Now()
	from, found := slices.BinarySearch(boardKeys, memory.lookFrom)
	if found {
		from++
	}
	if from >= len(boardKeys) {
		from = 0
	}
	boardKeys = boardKeys[from:min(len(boardKeys), from+boardsLookedAt)]
	if len(boardKeys) == 0 {
		return nil
	}
	memory.lookFrom = boardKeys[len(boardKeys)-1]
	boards, err := s.store.loadAll(ctx, gameID, boardKeys)
	if err != nil {
		return err
	}
	list := make([]dueBoard, len(boards))
	for i, b := range boards {
		list[i] = dueBoard{b.key, b.dueAt(nowMS)}
		for _, d := range b.definitions { // a release before did not
			if err := s.promiseAssets(ctx, gameID, d); err != nil && !errors.Is(err, apierror.AssetNotFound) {
				return err
			}
		}
	}
	return cmp.Or(s.store.addDue(ctx, gameID, list), s.store.markTournamentBoards(ctx, gameID, boardKeys))
}

// promiseAssets notes which assets a definition promises as prizes, so that none is removed. It
// returns asset_not_found.
func (s *Service) promiseAssets(ctx context.Context, gameID int64, d *Definition) error {
	if d.Prizes == nil || s.prizes == nil {
		return nil
	}
	for _, row := range d.Prizes.Table {
		if row.AssetID == 0 {
			continue
		}
		if err := s.prizes.PromiseAsset(ctx, gameID, row.AssetID); err != nil {
			return err
		}
	}
	return nil
}

// sweepBoards does the pending work on boards that were taken until a time (ms), and stores when
// they are due next. A board that fails does not hold up the others. It returns redisdb.ErrSkewed,
// and errors of the store.
func (s *Service) sweepBoards(
	ctx context.Context, gameID int64, memory *gameSweep, boardKeys []string, takenMS int64,
) error {
	boards, err := s.store.loadAll(ctx, gameID, boardKeys)
	if err != nil {
		return err
	}
	var next []dueBoard
	var skewed, lastErr error
	for _, b := range boards {
		if b.isDeleted {
			err = s.returnPrizes(ctx, b)
			if err == nil {
				err = s.store.removeBoard(ctx, b)
			}
		} else {
			var due int64
			if due, err = s.sweepBoard(ctx, b); err == nil {
				next = append(next, dueBoard{b.key, due})
			}
		}
		switch {
		case errors.Is(err, redisdb.ErrSkewed), errors.Is(err, apierror.StoreUnavailable) || ctx.Err() != nil:
			skewed = err
			next = append(next, dueBoard{b.key, takenMS - retryAfter.Milliseconds()})
		case err != nil:
			memory.failures, lastErr = memory.failures+1, fmt.Errorf("the board %s: %w", b.key, err)
		}
	}
	memory.log(ctx, gameID, lastErr)
	if len(next) == 0 {
		return skewed
	}
	return cmp.Or(skewed, s.store.schedule(ctx, gameID, takenMS, next))
}

// log logs errors of the boards of a game, once a minute.
func (m *gameSweep) log(ctx context.Context, gameID int64, last error) {
	if last == nil || time.Since(m.loggedAt) < retryAfter {
		return
	}
	slog.ErrorContext(ctx, "leaderboards cannot be kept", "game", gameID, "boards", m.failures, "error", last)
	m.loggedAt, m.failures = time.Now(), 0
}

// dueAt returns when there is something to do on a board, in ms: at once for one that is deleted.
func (b *board) dueAt(nowMS int64) int64 {
	if b.isDeleted {
		return nowMS
	}
	due := nowMS + latestDue.Milliseconds()
	for i := range b.seasons {
		one := &b.seasons[i]
		d := b.definitionOf(one)
		switch {
		case one.isPayable(nowMS):
			return nowMS
		case one.isSealed && one.owesPrizes() && one.reviewMS > 0:
			due = min(due, one.reviewMS)
		case !one.isSealed && one.closes != 0:
			due = min(due, one.sealsAt())
		}
		if !one.isSealed && one.closes > nowMS {
			due = min(due, one.closes) // the season after it is stored
		}
		if d.Prizes == nil || one.isFunded || one.outcome != undecided {
			continue
		}
		switch {
		case one.opens > nowMS:
			due = min(due, one.opens) // its prizes are set aside
		case one.isOpenAt(nowMS):
			due = min(due, nowMS+retryAfter.Milliseconds())
		}
	}
	return due
}

// sweepBoard funds the season that is open, seals and pays the seasons that are over, in their
// order, removes those that are not kept and stores those to come. It returns when to look again,
// in ms.
func (s *Service) sweepBoard(ctx context.Context, b *board) (dueMS int64, err error) {
	var fundErr error // seasons end whether there is money or not
	b, err = s.changeAt(ctx, s.store.nowToEnd, b.gameID, b.key, func(b *board, now int64) (c boardChange, err error) {
		fundErr = s.fundOpen(ctx, b, now, &c)
		for i := range b.seasons { // in their order
			one := &b.seasons[i]
			if one.isSealed || one.closes == 0 || now < one.sealsAt() {
				continue
			}
			if one.isSealed, err = s.store.seal(ctx, b, one); err != nil {
				return c, err
			}
			if !one.isSealed {
				continue
			}
			if err := s.beginReview(ctx, b, one, now); err != nil {
				return c, err
			}
			c.setSeason(*one)
		}
		if err := s.removeOld(ctx, b, now, &c); err != nil {
			return c, err
		}
		added, err := b.extend(now)
		for _, one := range added {
			c.setSeason(one)
		}
		return c, err
	})
	if errors.Is(err, apierror.BoardNotFound) { // deleted meanwhile
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if err := errors.Join(fundErr, s.payDue(ctx, b)); err != nil {
		return 0, err
	}
	if b, err = s.store.load(ctx, b.gameID, b.key); err != nil {
		return 0, err
	}
	now, err := s.store.now(ctx)
	return max(b.dueAt(now), now+time.Second.Milliseconds()), err // what waits for others is tried each second
}

// removeOld removes the keys of sealed seasons that are not kept and owe no prizes, and the
// definitions that no season uses.
func (s *Service) removeOld(ctx context.Context, b *board, nowMS int64, c *boardChange) error {
	newest, d := b.newest()
	oldest := b.currentAt(nowMS).number - *d.KeepSeasons
	used := map[int64]bool{newest: true}
	for i := range b.seasons {
		one := &b.seasons[i]
		if one.number >= oldest || !one.isSealed || one.owesPrizes() {
			used[one.definition] = true
			continue
		}
		if err := s.forgetPrizes(ctx, b, one); err != nil {
			return err
		}
		if err := s.store.removeSeason(ctx, b, one); err != nil {
			return err
		}
		c.removeSeason(one.number)
	}
	for version := range b.definitions {
		if !used[version] {
			c.removeDefinition(version)
		}
	}
	return nil
}
