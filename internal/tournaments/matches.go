package tournaments

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/rooms"
)

// reportGrace is how long after the timeout of its room a match waits for the result, which another
// node may have to find.
const reportGrace = time.Minute

// roundWait is how long a match may wait for its room.
func (d *Definition) roundWait() time.Duration { return d.noShow() + d.matchTimeout() }

func (d *Definition) noShow() time.Duration { return time.Duration(d.NoShowSeconds) * time.Second }

func (d *Definition) matchTimeout() time.Duration {
	return time.Duration(d.MatchTimeoutSeconds) * time.Second
}

// isDecided reports whether nothing of the match changes any more.
func (m *Match) isDecided() bool { return m.Status == MatchDecided }

// has reports whether a player plays in the match.
func (m *Match) has(userID int64) bool {
	return slices.ContainsFunc(m.Players, func(p MatchPlayer) bool { return p.UserID == userID })
}

// opponentOf returns the other player of a match with two.
func (m *Match) opponentOf(userID int64) int64 {
	if m.Players[0].UserID == userID {
		return m.Players[1].UserID
	}
	return m.Players[0].UserID
}

// matchChange is one run of tour_report.
type matchChange struct {
	id      string
	attempt int         // to which it happened
	was     MatchStatus // that the match must have; "" for any but DECIDED
	isOver  bool        // it may happen after the deadline only

	status     MatchStatus
	newAttempt int
	roomID     string
	winnerID   int64 // 0: none
	reason     MatchReason
	wait       time.Duration // until the deadline of the new status
}

// changeOf returns a change of a match that keeps its attempt and its room.
func changeOf(m *Match, status MatchStatus) matchChange {
	c := matchChange{id: m.ID, attempt: m.Attempt, status: status, newAttempt: m.Attempt}
	if m.RoomID != nil {
		c.roomID = *m.RoomID
	}
	return c
}

// decision returns the change that decides a match. The winner is 0 for none.
func decision(m *Match, winnerID int64, reason MatchReason) matchChange {
	c := changeOf(m, MatchDecided)
	c.winnerID, c.reason = winnerID, reason
	return c
}

// drawn returns the change of a match that nobody won, by the rule of the tournament.
func (d *Definition) drawn(m *Match, mayReplay bool) matchChange {
	switch {
	case d.Draws == DrawHalf:
		return decision(m, 0, Played)
	case d.Draws == DrawReplay && mayReplay && m.Attempt < MaxAttempts:
		c := changeOf(m, MatchWaiting)
		c.newAttempt, c.roomID, c.wait = m.Attempt+1, "", d.roundWait()
		return c
	default:
		return decision(m, m.Players[0].UserID, Played) // the better seed
	}
}

// field is who plays in a tournament, and what is decided.
type field struct {
	contestants []contestant
	seeds       []int64 // user ids in the order of their seeds
	decided     []outcome
	isPlayed    bool // somebody has come to a match
}

// readField returns the field of a tournament. Before the first round it draws the seeds; later it
// adds those who joined late behind the others.
func (s *Service) readField(ctx context.Context, t *tour) (field, error) {
	entrants, err := s.store.readAllEntrants(ctx, t)
	if err != nil {
		return field{}, err
	}
	f := field{}
	if f.seeds, err = s.store.readSeeds(ctx, t); err != nil {
		return field{}, err
	}
	isSeeded := make(map[int64]bool, len(f.seeds))
	for _, userID := range f.seeds {
		isSeeded[userID] = true
	}
	var added []int64
	byUser := make(map[int64]*storedEntrant, len(entrants))
	for i := range entrants {
		e := &entrants[i]
		byUser[e.userID] = e
		if !isSeeded[e.userID] && !e.isOut() {
			added = append(added, e.userID)
		}
	}
	if t.round == 0 {
		added = drawSeeds(added, t.definition.Seeding, t.draw)
	}
	f.seeds = append(f.seeds, added...)
	f.contestants = make([]contestant, len(f.seeds))
	for i, userID := range f.seeds {
		c := contestant{UserID: userID, Seed: i + 1}
		if e := byUser[userID]; e != nil {
			c.IsOut, c.IsDisqualified = e.isOut(), e.state == EntrantDisqualified
		}
		f.contestants[i] = c
	}
	matches, err := s.store.readAllMatches(ctx, t)
	for i := range matches {
		if matches[i].isDecided() {
			f.decided = append(f.decided, outcomeOf(&matches[i]))
			f.isPlayed = f.isPlayed || *matches[i].Reason != Bye && *matches[i].Reason != DoubleForfeit
		}
	}
	slices.SortFunc(f.decided, func(a, b outcome) int {
		if a.Round != b.Round {
			return a.Round - b.Round
		}
		return a.Number - b.Number
	})
	return f, err
}

// playing returns how many can still be paired.
func (f *field) playing() int {
	n := 0
	for _, c := range f.contestants {
		if !c.IsOut {
			n++
		}
	}
	return n
}

// rounds returns how many rounds a Swiss tournament has by the number of its entrants now.
func (t *tour) rounds() int { return roundsFor(&t.definition, t.entrants) }

// beginRound pairs the next round, or settles the tournament when the last one is over. A round
// that nobody can play is not begun: in a bracket the rounds are few, and who lost is still
// counted.
func (s *Service) beginRound(ctx context.Context, by lead, t *tour) error {
	f, err := s.readField(ctx, t)
	if err != nil {
		return err
	}
	d := &t.definition
	isLeft := d.Format != FormatElimination && f.playing() < 2
	if t.round >= roundsFor(d, len(f.seeds)) || isLeft {
		var places []payout
		if f.isPlayed { // else the draw alone would decide who is paid
			places = placesOf(rankPlayers(d.Format, f.contestants, f.decided))
		}
		return s.settleTour(ctx, by, t, places)
	}
	pairs := pairRound(d.Format, t.round+1, f.contestants, f.decided)
	seedOf := make(map[int64]int, len(f.seeds))
	for i, userID := range f.seeds {
		seedOf[userID] = i + 1
	}
	matches := make([]Match, len(pairs))
	for i, p := range pairs {
		matches[i] = newMatch(t.round+1, p, seedOf)
	}
	return s.store.pair(ctx, by, t, f.seeds, matches)
}

// newMatch returns the match of a pairing. One without two players is decided.
func newMatch(round int, p pairing, seedOf map[int64]int) Match {
	m := Match{ID: MatchID(round, p.Number), Round: round, Status: MatchWaiting, Attempt: 1}
	for _, userID := range []int64{p.A, p.B} {
		if userID != 0 {
			m.Players = append(m.Players, MatchPlayer{userID, seedOf[userID]})
		}
	}
	switch len(m.Players) {
	case 0:
		m.Status, m.Attempt, m.Reason = MatchDecided, 0, new(DoubleForfeit)
	case 1:
		m.Status, m.Attempt, m.Reason, m.WinnerID = MatchDecided, 0, new(Bye), &m.Players[0].UserID
	}
	return m
}

// placesOf returns the places of those who may be paid.
func placesOf(results []*result) []payout {
	var places []payout
	for i := range results {
		if !results[i].IsDisqualified {
			places = append(places, payout{userID: results[i].UserID, place: results[i].Place})
		}
	}
	return places
}

// driveMatches does what is to be done in the undecided matches of the round. It reports whether
// there may be more to do now.
func (s *Service) driveMatches(ctx context.Context, by lead, t *tour, now time.Time) (goesOn bool, err error) {
	info, err := s.store.readRound(ctx, t, t.round)
	if err != nil {
		return false, err
	}
	matches, err := s.store.readMatches(ctx, t, t.round, 1, info.matches)
	if err != nil {
		return false, err
	}
	matches = slices.DeleteFunc(matches, func(m Match) bool { return m.isDecided() })
	states, err := s.store.readStates(ctx, t, matches)
	if err != nil {
		return false, err
	}
	var errs []error
	for i := range matches {
		isChanged, err := s.driveMatch(ctx, by, t, &matches[i], info, states, now)
		goesOn = goesOn || isChanged && err == nil
		switch {
		case errors.Is(err, errLeaderReplaced), errors.Is(err, apierror.TournamentClosed), ctx.Err() != nil:
			return false, err
		case errors.Is(err, errStale), errors.Is(err, apierror.MatchDecided): // others were faster
		case err != nil:
			errs = append(errs, err)
		}
	}
	return goesOn && errs == nil, errors.Join(errs...)
}

// driveMatch does what is to be done in an undecided match. It reports whether it did something.
func (s *Service) driveMatch(
	ctx context.Context, by lead, t *tour, m *Match, info roundInfo, states map[int64]EntrantStatus, now time.Time,
) (isChanged bool, err error) {
	if c, isDecided := withoutThoseOut(m, states); isDecided {
		return true, s.decideWithoutRoom(ctx, by, t, m, c)
	}
	isOver := m.Deadline != nil && !now.Before(*m.Deadline)
	switch {
	case m.Status == MatchWaiting && !isOver:
		return s.openRoom(ctx, by, t, m, info, now)
	case m.Status == MatchWaiting: // there was no room for it
		c := t.definition.drawn(m, false)
		c.was, c.isOver = MatchWaiting, true
		return true, s.store.report(ctx, by, t, c)
	case m.Status == MatchReady && isOver:
		return s.decideByPresence(ctx, by, t, m)
	case m.Status == MatchPlaying && isOver:
		c := t.definition.drawn(m, true)
		c.was, c.isOver = MatchPlaying, true
		return true, s.decideWithoutRoom(ctx, by, t, m, c)
	}
	return false, nil
}

// decideWithoutRoom changes a match and ends the room that it had.
func (s *Service) decideWithoutRoom(ctx context.Context, by lead, t *tour, m *Match, c matchChange) error {
	err := s.store.report(ctx, by, t, c)
	if err == nil {
		s.closeRoom(ctx, t, m)
	}
	return err
}

// withoutThoseOut returns the decision of a match of which a player has left, false when both are
// there.
func withoutThoseOut(m *Match, states map[int64]EntrantStatus) (matchChange, bool) {
	isOut := func(p MatchPlayer) bool {
		return states[p.UserID] == EntrantOut || states[p.UserID] == EntrantDisqualified
	}
	a, b := m.Players[0], m.Players[1]
	if isOut(b) {
		a, b = b, a // a is out, if anybody is
	}
	switch {
	case !isOut(a):
		return matchChange{}, false
	case isOut(b):
		return decision(m, 0, DoubleForfeit), true
	case states[a.UserID] == EntrantDisqualified:
		return decision(m, b.UserID, Disqualified), true
	default:
		return decision(m, b.UserID, Walkover), true
	}
}

// openRoom opens the room of a match. One that cannot be opened is tried again until the deadline.
func (s *Service) openRoom(
	ctx context.Context, by lead, t *tour, m *Match, info roundInfo, now time.Time,
) (isOpen bool, err error) {
	d := &t.definition
	room, err := s.Rooms.OpenMatch(ctx, rooms.MatchInput{
		GameID: t.gameID, TournamentID: t.id, MatchID: m.ID, Attempt: m.Attempt, RoundStart: info.startedAt,
		Players:  []int64{m.Players[0].UserID, m.Players[1].UserID},
		Metadata: d.Room.Metadata, SettledBy: d.Room.SettledBy, Visibility: rooms.Visibility(d.Visibility),
		Deadline: now.Add(d.noShow()), MatchTimeout: d.matchTimeout(),
	})
	if err != nil {
		slog.WarnContext(ctx, "the room of a match cannot be opened", "game", t.gameID, "tournament", t.id,
			"match", m.ID, "error", err)
		return false, nil
	}
	err = s.store.notifyPlayers(ctx, t.id, matchCall{
		MatchID: m.ID, RoomID: room.RoomID, Deadline: now.Add(d.noShow()),
		Users: []int64{m.Players[0].UserID, m.Players[1].UserID},
	})
	if err != nil {
		return false, err
	}
	c := changeOf(m, MatchReady)
	c.was, c.roomID, c.wait = MatchWaiting, room.RoomID, d.noShow()
	return true, s.store.report(ctx, by, t, c)
}

// decideByPresence decides a match at its deadline by who sits in its room. It reports whether it
// did something.
func (s *Service) decideByPresence(ctx context.Context, by lead, t *tour, m *Match) (bool, error) {
	status, present, err := s.Rooms.CloseMatch(ctx, t.gameID, *m.RoomID)
	if errors.Is(err, apierror.RoomNotFound) { // it was removed after it had ended
		status, present, err = rooms.Cancelled, []int64{m.Players[0].UserID, m.Players[1].UserID}, nil
	}
	if err != nil {
		return false, err
	}
	var c matchChange
	switch {
	case status == rooms.Created: // by the clock of the room it is too early
		return false, nil
	case status != rooms.Cancelled:
		c = changeOf(m, MatchPlaying)
		c.wait = t.definition.matchTimeout() + reportGrace
	case len(present) == 0:
		c = decision(m, 0, DoubleForfeit)
	case len(present) == 1:
		c = decision(m, present[0], Walkover)
	default: // it was cancelled by hand
		c = t.definition.drawn(m, true)
	}
	c.was = MatchReady
	return true, s.store.report(ctx, by, t, c)
}

// cancelRooms ends the rooms of the undecided matches of a tournament that is being cancelled.
func (s *Service) cancelRooms(ctx context.Context, t *tour) error {
	if t.round == 0 || t.open == 0 {
		return nil
	}
	info, err := s.store.readRound(ctx, t, t.round)
	if err != nil {
		return err
	}
	matches, err := s.store.readMatches(ctx, t, t.round, 1, info.matches)
	if err != nil {
		return err
	}
	for i := range matches {
		if !matches[i].isDecided() {
			s.closeRoom(ctx, t, &matches[i])
		}
	}
	return nil
}

// RoomEnded reports the end of the room of a match. It is the consumer of rooms for matches: it may
// be called again with the same room. What is decided already, or belongs to an earlier attempt,
// changes nothing.
func (s *Service) RoomEnded(ctx context.Context, e rooms.Ended) error {
	id, matchID, attempt, ok := parseFeeds(e.Feeds)
	if !ok {
		return apierror.InvalidRequest.WithReason("the room feeds no match: %s", e.Feeds)
	}
	for range maxAttempts {
		t, err := s.store.load(ctx, e.GameID, id)
		if err != nil {
			return err
		}
		m, found, err := s.store.readMatch(ctx, t, matchID)
		switch {
		case err != nil:
			return err
		case !found:
			return apierror.MatchNotFound
		case t.status != Running || m.isDecided() || m.Attempt != attempt:
			return nil
		}
		c, isReported := t.definition.ended(&m, e)
		if !isReported {
			return nil
		}
		err = s.store.report(ctx, byStaff, t, c)
		if errors.Is(err, errStale) {
			continue
		}
		s.work.Changed(e.GameID)
		if errors.Is(err, apierror.MatchDecided) || errors.Is(err, apierror.TournamentClosed) {
			return nil
		}
		return err
	}
	return apierror.VersionConflict
}

// ended returns what the end of its room means for a match; false for a room that was not started,
// which is decided at the deadline by who sat in it.
func (d *Definition) ended(m *Match, e rooms.Ended) (matchChange, bool) {
	if e.Status == rooms.Cancelled {
		return d.drawn(m, true), !e.StartedAt.IsZero()
	}
	var winners []int64
	for _, p := range e.Places {
		if p.Place == 1 && m.has(p.UserID) {
			winners = append(winners, p.UserID)
		}
	}
	if len(winners) == 1 {
		return decision(m, winners[0], Played), true
	}
	return d.drawn(m, true), true
}

// parseFeeds returns the match that a room feeds: "t.<tournament>.<match>.<attempt>".
func parseFeeds(feeds string) (id int64, matchID string, attempt int, ok bool) {
	parts := strings.Split(strings.TrimPrefix(feeds, rooms.FeedsMatch), ".")
	if !strings.HasPrefix(feeds, rooms.FeedsMatch) || len(parts) != 3 {
		return 0, "", 0, false
	}
	id, idErr := strconv.ParseInt(parts[0], 10, 64)
	attempt, attemptErr := strconv.Atoi(parts[2])
	return id, parts[1], attempt, idErr == nil && attemptErr == nil
}
