package tournaments

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/rooms"
)

// reportGrace is the time after the timeout of its room in which a match waits for the result,
// which another node may have to find.
const reportGrace = time.Minute

// roundWait bounds the wait of a match for its room.
func (d *Definition) roundWait() time.Duration { return d.noShow() + d.matchTimeout() }

func (d *Definition) noShow() time.Duration { return time.Duration(d.NoShowSeconds) * time.Second }

// dispute is the time in which staff may decide a dispute.
func (d *Definition) dispute() time.Duration {
	return time.Duration(cmp.Or(d.DisputeSeconds, defaultDisputeSeconds)) * time.Second
}

func (d *Definition) matchTimeout() time.Duration {
	return time.Duration(d.MatchTimeoutSeconds) * time.Second
}

// isDecided reports whether nothing of the match changes any more.
func (m *Match) isDecided() bool { return m.Status == MatchDecided }

// has reports whether a player plays in the match.
func (m *Match) has(userID int64) bool {
	return slices.ContainsFunc(m.Players, func(p MatchPlayer) bool { return p.UserID == userID })
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

// replayed returns the change of a match that is played again.
func (d *Definition) replayed(m *Match) matchChange {
	c := changeOf(m, MatchWaiting)
	c.newAttempt, c.roomID, c.wait = m.Attempt+1, "", d.roundWait()
	return c
}

// isByConsensus reports whether the players report the winner.
func (d *Definition) isByConsensus() bool { return d.Room.SettledBy == rooms.SettledByConsensus }

// drawn returns the change of a match for which all players, or the server, reported a draw. After
// the last replay, the seeds decide if the server reported it, because it could have named a
// winner. If the players did, a lot decides; otherwise the better seed would only ever agree to
// draws.
func (t *tour) drawn(m *Match) matchChange {
	d := &t.definition
	switch {
	case d.Draws == DrawHalf:
		return decision(m, 0, Played)
	case d.Draws == DrawReplay && m.Attempt < MaxAttempts:
		return d.replayed(m)
	case d.Draws == DrawReplay && d.isByConsensus():
		return decision(m, m.Players[t.lot(m)].UserID, Played)
	default:
		return decision(m, m.Players[0].UserID, Played) // the better seed
	}
}

// lot returns 0 or 1 for a match, by the random number of the tournament's draw.
func (t *tour) lot(m *Match) int {
	round, number, _ := ParseMatchID(m.ID)
	return rand.New(rand.NewPCG(t.draw, uint64(round)<<32|uint64(number))).IntN(2)
}

// disputed returns the change of a match that nobody decides, by the rule of the tournament.
func (t *tour) disputed(m *Match, mayReplay bool) matchChange {
	switch d := &t.definition; {
	case d.Disputes == DisputesReplay && mayReplay && m.Attempt < MaxAttempts:
		return d.replayed(m)
	case d.Disputes == DisputesVoid:
		return decision(m, 0, DoubleForfeit)
	default: // also in a tournament of a build that knew no such rule
		return decision(m, 0, Refunded)
	}
}

// withoutResult returns the change of a match that could not be played, or whose server reported no
// result: a draw if draws have points, otherwise another attempt. After the last attempt the match
// is disputed, because nobody must win by not reporting.
func (t *tour) withoutResult(m *Match, mayReplay bool) matchChange {
	switch d := &t.definition; {
	case d.Draws == DrawHalf:
		return decision(m, 0, Played)
	case d.Draws == DrawReplay && mayReplay && m.Attempt < MaxAttempts:
		return d.replayed(m)
	default:
		return t.disputed(m, mayReplay)
	}
}

// unreported returns the change of a match whose room was cancelled for a reason, or whose game
// goes on past its time, with the reason "". If the players could have reported a result and did
// not, both lose.
func (t *tour) unreported(m *Match, reason string) matchChange {
	switch {
	case !t.definition.isByConsensus():
		return t.withoutResult(m, true)
	case reason == rooms.ReasonDisputeRefunded || reason == rooms.ReasonServer || reason == rooms.ReasonOperator:
		return t.disputed(m, true)
	default:
		return decision(m, 0, DoubleForfeit)
	}
}

// participants are the players of a tournament by seed, with what is decided between them.
type participants struct {
	contestants []contestant
	seeds       []int64 // user ids in the order of their seeds
	decided     []outcome
	isPlayed    bool // somebody has come to a match
}

// readParticipants returns the participants of a tournament. Before the first round it draws the
// seeds. Later it appends the players who joined late.
func (s *Service) readParticipants(ctx context.Context, t *tour) (participants, error) {
	entrants, err := s.store.readAllEntrants(ctx, t)
	if err != nil {
		return participants{}, err
	}
	f := participants{}
	if f.seeds, err = s.store.readSeeds(ctx, t); err != nil {
		return participants{}, err
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
	refunded := map[int64]bool{}
	for i := range matches {
		m := &matches[i]
		if !m.isDecided() {
			continue
		}
		f.decided = append(f.decided, outcomeOf(m))
		f.isPlayed = f.isPlayed || !slices.Contains([]MatchReason{Bye, DoubleForfeit, Refunded}, *m.Reason)
		for _, p := range m.Players {
			refunded[p.UserID] = refunded[p.UserID] || *m.Reason == Refunded
		}
	}
	for i := range f.contestants {
		c := &f.contestants[i]
		e := byUser[c.UserID] // who came back in a late round has paid again
		c.IsRefunded = refunded[c.UserID] && e.isOut() && (e.stake == 0 || t.definition.EntryFeeUnits == 0)
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
func (f *participants) playing() int {
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

// beginRound pairs the next round, or settles the tournament after the last one. It does not begin
// a round that nobody can play: a bracket has few rounds, and players who lost still count in it.
// It cancels a tournament that needs another round and has no time for it.
func (s *Service) beginRound(ctx context.Context, by leaderFence, t *tour, hasTime bool) error {
	f, err := s.readParticipants(ctx, t)
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
	if !hasTime {
		return s.store.cancel(ctx, by, t.gameID, t.id, Expired)
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
		if !results[i].IsDisqualified && !results[i].IsRefunded {
			places = append(places, payout{userID: results[i].UserID, place: results[i].Place})
		}
	}
	return places
}

// expire ends a tournament at endsAt. The round goes on while a report waits for its decision, and
// a tournament whose last round has ended is settled. Otherwise the loser of a final could get the
// fee back by a contradiction that staff has no time to decide. It reports whether there may be
// another pending action.
func (s *Service) expire(ctx context.Context, by leaderFence, t *tour, now time.Time) (goesOn bool, err error) {
	if t.round > 0 && t.open == 0 {
		return true, s.beginRound(ctx, by, t, false)
	}
	isReported, err := s.hasReport(ctx, t)
	switch {
	case err != nil:
		return false, err
	case isReported:
		return s.driveMatches(ctx, by, t, now)
	}
	return true, s.store.cancel(ctx, by, t.gameID, t.id, Expired)
}

// hasReport reports whether a report waits for its decision: of an undecided match of the round, or
// of the attempt before it.
func (s *Service) hasReport(ctx context.Context, t *tour) (bool, error) {
	if t.round == 0 {
		return false, nil
	}
	_, matches, err := s.readUndecided(ctx, t)
	if err != nil {
		return false, err
	}
	for i := range matches {
		m := &matches[i]
		if m.Attempt > 1 {
			return true, nil // it is played again because of what was said of it before
		}
		if m.RoomID == nil {
			continue
		}
		room, err := s.Rooms.ReadMatch(ctx, t.gameID, *m.RoomID)
		switch {
		case errors.Is(err, apierror.RoomNotFound): // it has ended, and the match does not know it yet
			return true, nil
		case err != nil:
			return false, err
		case !room.ReportUntil.IsZero() || room.Status == rooms.Disputed || room.Status.Ended():
			return true, nil
		}
	}
	return false, nil
}

// readUndecided returns the round, and its matches that are not decided.
func (s *Service) readUndecided(ctx context.Context, t *tour) (roundInfo, []Match, error) {
	info, err := s.store.readRound(ctx, t, t.round)
	if err != nil {
		return info, nil, err
	}
	matches, err := s.store.readMatches(ctx, t, t.round, 1, info.matches)
	return info, slices.DeleteFunc(matches, func(m Match) bool { return m.isDecided() }), err
}

// driveMatches does the pending actions of the undecided matches of the round. It reports whether
// there may be more.
func (s *Service) driveMatches(ctx context.Context, by leaderFence, t *tour, now time.Time) (goesOn bool, err error) {
	info, matches, err := s.readUndecided(ctx, t)
	if err != nil {
		return false, err
	}
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
		case errors.Is(err, redisdb.ErrStale), errors.Is(err, apierror.MatchDecided): // others were faster
		case err != nil:
			errs = append(errs, err)
		}
	}
	return goesOn && errs == nil, errors.Join(errs...)
}

// driveMatch does what is to be done in an undecided match. It reports whether it did something.
func (s *Service) driveMatch(
	ctx context.Context, by leaderFence, t *tour, m *Match, info roundInfo, states map[int64]EntrantStatus, now time.Time,
) (isChanged bool, err error) {
	if c, isDecided := withoutThoseOut(m, states); isDecided {
		return true, s.decideWithoutRoom(ctx, by, t, m, c)
	}
	isOver := m.Deadline != nil && !now.Before(*m.Deadline)
	switch {
	case m.Status == MatchWaiting && !isOver:
		return s.openRoom(ctx, by, t, m, info, now)
	case m.Status == MatchWaiting: // there was no room for it
		c := t.withoutResult(m, false)
		c.was, c.isOver = MatchWaiting, true
		return true, s.change(ctx, by, t, m, c)
	case m.Status == MatchReady && isOver:
		return s.decideByPresence(ctx, by, t, m)
	case m.Status == MatchPlaying && isOver:
		return true, s.decideByRoom(ctx, by, t, m, now)
	}
	return false, nil
}

// decideByRoom decides a match at its deadline by the state of its room. It gives the match more
// time while players may still contradict a report, or staff may still decide a dispute.
func (s *Service) decideByRoom(ctx context.Context, by leaderFence, t *tour, m *Match, now time.Time) error {
	room, err := s.Rooms.ReadMatch(ctx, t.gameID, *m.RoomID)
	if errors.Is(err, apierror.RoomNotFound) { // it was removed after it had ended
		room.Ended.Reason, err = rooms.ReasonDisputeRefunded, nil
	}
	if err != nil {
		return err
	}
	c := changeOf(m, MatchPlaying)
	switch end := room.DisputedAt.Add(t.definition.dispute()); {
	case room.Status == rooms.Started && room.ReportUntil.After(now):
		c.wait = room.ReportUntil.Sub(now) + reportGrace
	case room.Status == rooms.Disputed && end.After(now):
		c.wait = end.Sub(now) + reportGrace
	case room.Status == rooms.Disputed:
		c = t.disputed(m, true)
	case room.Status == rooms.Finished:
		c = t.finished(m, room.Ended)
	default:
		c = t.unreported(m, room.Ended.Reason)
	}
	c.was, c.isOver = MatchPlaying, true
	if c.status == MatchPlaying {
		return s.store.report(ctx, by, t, c)
	}
	return s.decideWithoutRoom(ctx, by, t, m, c)
}

// change stores a change of a match.
func (s *Service) change(ctx context.Context, by leaderFence, t *tour, m *Match, c matchChange) error {
	if c.reason == Refunded {
		return s.store.refund(ctx, by, t, m, c)
	}
	return s.store.report(ctx, by, t, c)
}

// decideWithoutRoom changes a match and ends the room that it had.
func (s *Service) decideWithoutRoom(ctx context.Context, by leaderFence, t *tour, m *Match, c matchChange) error {
	err := s.change(ctx, by, t, m, c)
	if err == nil {
		s.closeRoom(ctx, t, m)
	}
	return err
}

// withoutThoseOut returns the decision of a match that a player has left, or false when neither
// has.
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

// hasDisqualified reports whether a player of a match is disqualified.
func hasDisqualified(m *Match, states map[int64]EntrantStatus) bool {
	return slices.ContainsFunc(m.Players, func(p MatchPlayer) bool {
		return states[p.UserID] == EntrantDisqualified
	})
}

// openRoom opens the room of a match. One that cannot be opened is tried again until the deadline.
func (s *Service) openRoom(
	ctx context.Context, by leaderFence, t *tour, m *Match, info roundInfo, now time.Time,
) (isOpen bool, err error) {
	d := &t.definition
	// The rooms of a large round are opened one after the other, for longer than players may take.
	deadline := now.Add(time.Since(info.readAt) + d.noShow())
	room, err := s.Rooms.OpenMatch(ctx, rooms.MatchInput{
		GameID: t.gameID, TournamentID: t.id, MatchID: m.ID, Attempt: m.Attempt, RoundStart: info.startedAt,
		Players:  []int64{m.Players[0].UserID, m.Players[1].UserID},
		Metadata: d.Room.Metadata, SettledBy: d.Room.SettledBy, Visibility: rooms.Visibility(d.Visibility),
		Deadline: deadline, MatchTimeout: d.matchTimeout(), Dispute: d.dispute(), HasStakes: d.hasStakes(),
		HasFeed: t.hasFeed,
	})
	if err != nil {
		slog.WarnContext(ctx, "the room of a match cannot be opened", "game", t.gameID, "tournament", t.id,
			"match", m.ID, "error", err)
		return false, nil
	}
	err = s.store.notifyPlayers(ctx, t.id, matchCall{
		MatchID: m.ID, RoomID: room.RoomID, Deadline: deadline,
		Users: []int64{m.Players[0].UserID, m.Players[1].UserID},
	})
	if err != nil {
		return false, err
	}
	c := changeOf(m, MatchReady)
	c.was, c.roomID, c.wait = MatchWaiting, room.RoomID, d.noShow()
	return true, s.store.report(ctx, by, t, c)
}

// decideByPresence decides a match at its deadline by the players who took their seats in its room.
// It reports whether it changed anything.
func (s *Service) decideByPresence(ctx context.Context, by leaderFence, t *tour, m *Match) (bool, error) {
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
	default: // it was cancelled by hand, or has started and ended since
		room, err := s.Rooms.ReadMatch(ctx, t.gameID, *m.RoomID)
		if err != nil && !errors.Is(err, apierror.RoomNotFound) {
			return false, err
		}
		if c = t.withoutResult(m, true); !room.Ended.StartedAt.IsZero() {
			c = t.unreported(m, room.Ended.Reason)
		}
	}
	c.was = MatchReady
	return true, s.change(ctx, by, t, m, c)
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

// RoomEnded handles the end of the room of a match. Package rooms calls it, perhaps more than once
// for a room. It changes nothing if the match is decided already, or if the room belongs to an
// earlier attempt.
func (s *Service) RoomEnded(ctx context.Context, e rooms.Ended) error {
	id, matchID, attempt, ok := parseConsumer(e.Consumer)
	if !ok {
		return apierror.InvalidRequest.WithReason("the room feeds no match: %s", e.Consumer)
	}
	for try := range maxTries {
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
		if e.Status == rooms.Cancelled && e.StartedAt.IsZero() {
			return nil // it is decided at the deadline by who sat in it
		}
		c := t.finished(&m, e)
		if e.Status == rooms.Cancelled {
			c = t.unreported(&m, e.Reason)
		}
		// Players who are out already get no fee back, and a disqualified winner makes the script say
		// stale. A player who has left may have won before.
		if c.reason == Refunded || try > 0 {
			states, err := s.store.readStates(ctx, t, []Match{m})
			if err != nil {
				return err
			}
			decided, isDecided := withoutThoseOut(&m, states)
			if isDecided && (c.reason == Refunded || hasDisqualified(&m, states)) {
				c = decided
			}
		}
		err = s.change(ctx, noFence, t, &m, c)
		if errors.Is(err, redisdb.ErrStale) {
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

// finished returns what the result of its room means for a match.
func (t *tour) finished(m *Match, e rooms.Ended) matchChange {
	var winners []int64
	for _, p := range e.Places {
		if p.Place == 1 && m.has(p.UserID) {
			winners = append(winners, p.UserID)
		}
	}
	if len(winners) == 1 {
		return decision(m, winners[0], Played)
	}
	return t.drawn(m)
}

// parseConsumer returns the match of a result consumer: "t.<tournament>.<match>.<attempt>".
func parseConsumer(consumer string) (id int64, matchID string, attempt int, ok bool) {
	parts := strings.Split(strings.TrimPrefix(consumer, rooms.MatchConsumerPrefix), ".")
	if !strings.HasPrefix(consumer, rooms.MatchConsumerPrefix) || len(parts) != 3 {
		return 0, "", 0, false
	}
	id, idErr := strconv.ParseInt(parts[0], 10, 64)
	attempt, attemptErr := strconv.Atoi(parts[2])
	return id, parts[1], attempt, idErr == nil && attemptErr == nil
}
