package leaderboards

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
)

// soon is how long before the end of a season its game is looked at each second.
const soon = 90 * time.Second

// Run does the background work until ctx ends: it stores seasons ahead, seals those that are over,
// and removes what is not kept. One node at a time does it, and any node may die at any instant:
// every step can be repeated.
func (s *Service) Run(ctx context.Context) error { return s.work.Run(ctx) }

// RunOnce does the background work that there is, unless another node does it.
func (s *Service) RunOnce(ctx context.Context) error { return s.work.RunOnce(ctx) }

// sweepGames is the leader.Handler. It needs no fencing token: its scripts compare the version of a
// board and the store's clock, so that a leader that was replaced changes nothing wrongly.
func (s *Service) sweepGames(ctx context.Context, _ int64, gameIDs []int64) (unfinished []int64, err error) {
	var errs []error
	unfinished = []int64{} // also with an error
	for _, gameID := range gameIDs {
		isBusy, err := s.sweepGame(ctx, gameID)
		if errs = append(errs, err); isBusy || err != nil {
			unfinished = append(unfinished, gameID)
		}
	}
	return unfinished, errors.Join(errs...)
}

// sweepGame looks at each board of a game. It reports whether to look again in a second.
func (s *Service) sweepGame(ctx context.Context, gameID int64) (isBusy bool, err error) {
	boardKeys, err := s.store.listKeys(ctx, gameID)
	if err != nil || len(boardKeys) == 0 {
		return false, err
	}
	boards, err := s.store.loadAll(ctx, gameID, boardKeys)
	if err != nil {
		return false, err
	}
	var errs []error
	for _, b := range boards {
		if b.isDeleted {
			err := s.returnPrizes(ctx, b)
			if err == nil {
				err = s.store.removeBoard(ctx, b)
			}
			errs = append(errs, err)
			continue
		}
		isNear, err := s.sweepBoard(ctx, b)
		isBusy = isBusy || isNear
		errs = append(errs, err)
	}
	return isBusy, errors.Join(errs...)
}

// sweepBoard funds the season that is open, seals and pays the seasons that are over, in their order,
// removes those that are not kept and stores those to come. It reports whether a season ends soon.
func (s *Service) sweepBoard(ctx context.Context, b *board) (isNear bool, err error) {
	var fundErr error // seasons end whether there is money or not
	b, err = s.change(ctx, b.gameID, b.key, func(b *board, now int64) (c boardChange, err error) {
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
		return true, nil
	}
	if err != nil {
		slog.ErrorContext(ctx, "a leaderboard cannot be kept", "error", err)
		return false, err
	}
	err = errors.Join(fundErr, s.payDue(ctx, b))
	near := time.Now().Add(soon).UnixMilli()
	for _, one := range b.seasons {
		ends := one.sealsAt()
		isNear = isNear || !one.isSealed && ends != 0 && ends < near || one.isPayable(near)
	}
	return isNear, err
}

// removeOld removes the keys of sealed seasons that are not kept and owe no prizes, and the
// definitions that no season has.
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
