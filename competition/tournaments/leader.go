package tournaments

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/prizes"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

const (
	// toursAtOnce bounds the tournaments of a game that the leader handles before those of other
	// games.
	toursAtOnce = 100
	// soon is the time before something is due in a game in which the leader looks at the game each
	// second.
	soon = 90 * time.Second
	// stepsAtOnce bounds what the leader does with one tournament before it goes on with others.
	stepsAtOnce = 200
	// maxErrors bounds how many errors of a game one look reports.
	maxErrors = 3
)

// Run drives tournaments until ctx ends: it opens, starts, pairs, settles and cancels them. One
// node at a time does it, and any node may die at any instant: every step can be repeated, and a
// leader that was replaced changes nothing.
func (s *Service) Run(ctx context.Context) error { return s.work.Run(ctx) }

// NameChanged names the games that this process has changed to the leader, which else looks at them
// within a minute. It is for a process that does not Run.
func (s *Service) NameChanged(ctx context.Context) error { return s.work.Name(ctx, nil) }

// RunOnce does what is to be done now, unless another node does it.
func (s *Service) RunOnce(ctx context.Context) error { return s.work.RunOnce(ctx) }

// driveGames is the leader.Handler.
func (s *Service) driveGames(ctx context.Context, fence int64, gameIDs []int64) (unfinished []int64, err error) {
	var errs []error
	unfinished = []int64{} // also with an error
	for _, gameID := range gameIDs {
		if s.store.checkMoney(gameID) != nil { // it waits until the money goes on
			unfinished = append(unfinished, gameID)
			continue
		}
		isBusy, err := s.driveGame(ctx, formatFence(fence), gameID)
		if errs = append(errs, err); isBusy || err != nil {
			unfinished = append(unfinished, gameID)
		}
		if errors.Is(err, errLeaderReplaced) || ctx.Err() != nil {
			return gameIDs, errors.Join(errs...)
		}
	}
	return unfinished, errors.Join(errs...)
}

// driveGame looks at the tournaments of a game that are due. It reports whether to look again in a
// second. A tournament that fails holds up no other.
func (s *Service) driveGame(ctx context.Context, by leaderFence, gameID int64) (isBusy bool, err error) {
	now, err := s.store.db.ReadClockToEnd(ctx)
	if err != nil {
		return false, err
	}
	ids, more, err := s.store.listDue(ctx, gameID, now, now.Add(soon), toursAtOnce)
	if err != nil {
		return false, err
	}
	var errs []error
	for _, id := range ids {
		err := s.drive(ctx, by, gameID, id)
		if errors.Is(err, errLeaderReplaced) || ctx.Err() != nil {
			return true, err
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("tournament %d of game %d: %w", id, gameID, err))
		}
	}
	if others := len(errs) - maxErrors; others > 0 {
		errs = append(errs[:maxErrors], fmt.Errorf("and %d other tournaments of game %d", others, gameID))
	}
	return more || len(ids) > 0, errors.Join(errs...)
}

// drive does what is to be done in a tournament now.
func (s *Service) drive(ctx context.Context, by leaderFence, gameID, id int64) error {
	for range stepsAtOnce {
		t, err := s.store.load(ctx, gameID, id)
		if errors.Is(err, apierror.TournamentNotFound) {
			slog.ErrorContext(ctx, "a tournament that is due is gone", "game", gameID, "tournament", id)
			return s.store.dropDue(ctx, gameID, id)
		}
		if err != nil {
			return err
		}
		now, err := s.store.db.ReadClockToEnd(ctx)
		if err != nil {
			return err
		}
		goesOn, err := s.step(ctx, by, t, now)
		if errors.Is(err, redisdb.ErrStale) {
			continue
		}
		if err != nil || !goesOn {
			return err
		}
	}
	return nil
}

// step does the next pending action of a tournament. It reports whether there may be another one.
func (s *Service) step(ctx context.Context, by leaderFence, t *tour, now time.Time) (goesOn bool, err error) {
	d := &t.definition
	switch t.status {
	case Announced, Registration, CheckIn:
		switch {
		case !now.Before(d.StartsAt):
			return true, s.store.start(ctx, by, t.gameID, t.id, rand.Uint64())
		case t.status == Announced:
			return false, s.openTour(ctx, by, t)
		case t.status == Registration && d.CheckInOpensAt != nil && !now.Before(*d.CheckInOpensAt):
			return true, s.store.open(ctx, by, t.gameID, t.id, true)
		}
		return false, nil
	case Running:
		switch {
		case t.cursor < t.entrants:
			return true, s.store.settle(ctx, by, t)
		case d.Format == FormatScore:
			return s.driveScore(ctx, by, t, now)
		case d.EndsAt != nil && !now.Before(*d.EndsAt):
			return s.expire(ctx, by, t, now)
		case t.open == 0:
			return true, s.beginRound(ctx, by, t, true)
		}
		return s.driveMatches(ctx, by, t, now)
	case Settling:
		if t.cursor < t.entrants {
			return true, s.store.settle(ctx, by, t)
		}
		if err := s.pay(ctx, t); err != nil {
			return false, err
		}
		return true, s.store.advance(ctx, by, t, Finished, 0, "")
	case Cancelling:
		if t.cursor == 0 {
			if err := s.cancelRooms(ctx, t); err != nil {
				return false, err
			}
		}
		if t.cursor < t.entrants {
			return true, s.store.settle(ctx, by, t)
		}
		if t.tokenCode != "" {
			if err := s.Prizes.Void(ctx, t.gameID, t.ref(), string(t.reason)); err != nil {
				return false, err
			}
		}
		return true, s.store.advance(ctx, by, t, Cancelled, 0, "")
	}
	return false, nil
}

// pay pays the pot of a tournament whose fees are in the prizes.
func (s *Service) pay(ctx context.Context, t *tour) error {
	if t.tokenCode == "" {
		return nil
	}
	lines, err := t.prizeLines()
	if err != nil {
		return err
	}
	if err := s.Prizes.Plan(ctx, t.gameID, t.ref(), lines); err != nil {
		return err
	}
	done, err := s.Prizes.Pay(ctx, t.gameID, t.ref())
	if err == nil && !done {
		err = errors.New("the prizes are not paid")
	}
	return err
}

// payout is a player's share of the pot.
type payout struct {
	userID int64
	place  int
	units  wallet.Units
}

// splitPot divides the pot, less the rake, among players by their places, best first. Shares and
// ties are those of rooms.
func splitPot(pot wallet.Units, rakeBps int, bps []int, places []payout) (payouts []payout, rake wallet.Units) {
	if pot == 0 {
		return nil, 0
	}
	rake = wallet.ApplyBps(pot, rakeBps)
	numbers := make([]int, len(places))
	for i, p := range places {
		numbers[i] = p.place
	}
	for i, units := range wallet.SplitTies(wallet.SharesByPlace(pot-rake, bps, len(places)), numbers) {
		if units > 0 {
			payouts = append(payouts, payout{places[i].userID, places[i].place, units})
		}
	}
	return payouts, rake
}

// settleTour ends the play of a tournament and gives places to the players who may be paid. If
// there are none, every fee goes back, because the house takes its rake from results only.
func (s *Service) settleTour(ctx context.Context, by leaderFence, t *tour, places []payout) error {
	if len(places) == 0 {
		return s.store.cancel(ctx, by, t.gameID, t.id, Unplayed)
	}
	pot := t.escrow + t.definition.AddedPrizeUnits()
	payouts, rake := splitPot(pot, t.definition.RakeBps, t.definition.Payout, places)
	return s.store.advance(ctx, by, t, Settling, rake, encodePayouts(payouts))
}

// encodePayouts returns payouts as package events renders them: "<user>:<place>:<units>:;" each.
func encodePayouts(payouts []payout) string {
	var b strings.Builder
	for _, p := range payouts {
		fmt.Fprintf(&b, "%d:%d:%d:;", p.userID, p.place, p.units)
	}
	return b.String()
}

func decodePayouts(text string) ([]payout, error) {
	var payouts []payout
	for one := range strings.SplitSeq(strings.TrimSuffix(text, ";"), ";") {
		if one == "" {
			break
		}
		var p payout
		if _, err := fmt.Sscanf(one, "%d:%d:%d:", &p.userID, &p.place, &p.units); err != nil {
			return nil, fmt.Errorf("decode the payout %q: %w", one, err)
		}
		payouts = append(payouts, p)
	}
	return payouts, nil
}

// payoutsByUser returns what is paid of the pot, none before SETTLING.
func (t *tour) payoutsByUser() (map[int64]payout, error) {
	list, err := decodePayouts(t.payouts)
	byUser := make(map[int64]payout, len(list))
	for _, p := range list {
		byUser[p.userID] = p
	}
	return byUser, err
}

// hasPlaces reports whether the places are final and the payouts known.
func (t *tour) hasPlaces() bool { return t.status == Settling || t.status == Finished }

// prizeLines returns the plan by which the pot is paid.
func (t *tour) prizeLines() ([]prizes.Line, error) {
	payouts, err := decodePayouts(t.payouts)
	if err != nil {
		return nil, err
	}
	lines := make([]prizes.Line, 0, len(payouts)+1)
	for _, p := range payouts {
		lines = append(lines, prizes.Line{UserID: p.userID, Place: p.place, Units: p.units})
	}
	if t.rake > 0 {
		lines = append(lines, prizes.Line{Units: t.rake})
	}
	return lines, nil
}
