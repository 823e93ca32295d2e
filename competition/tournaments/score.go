package tournaments

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/competition/leaderboards"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/secret"
)

// Boards keeps the scores of score tournaments. *leaderboards.Service implements it.
type Boards interface {
	CreateForTournament(ctx context.Context, gameID int64, d leaderboards.Definition) error
	StartTournamentPlay(ctx context.Context, caller principal.Caller, gameID, tournamentID int64) (
		leaderboards.Play, error)
	DropTournamentPlay(ctx context.Context, gameID, tournamentID, userID int64, playID string) error
	EndTournament(ctx context.Context, gameID, tournamentID int64) error
	Delete(ctx context.Context, caller principal.Caller, gameID int64, key string) error
	ListSeasons(ctx context.Context, caller principal.Caller, gameID int64, key string, before int64, limit int) (
		page []leaderboards.Season, next int64, err error)
	Entries(ctx context.Context, caller principal.Caller, gameID int64, key string, scope leaderboards.Scope,
		cursor string, limit int) (page []leaderboards.Entry, next string, err error)
}

// scoreSeason is the season of the board in which a tournament is played.
const scoreSeason = 1

// scoresAtOnce bounds the entries of a board in one read.
const scoresAtOnce = 100

// boardDefinition returns the board of a score tournament.
func (t *tour) boardDefinition() leaderboards.Definition {
	set := t.definition.Board
	d := leaderboards.Definition{
		Board: leaderboards.TournamentBoard(t.id), Name: t.definition.Name, Order: set.Order, Operator: set.Operator,
		Decimals: set.Decimals, Writers: leaderboards.Writers{leaderboards.WriterServer}, GraceSeconds: set.GraceSeconds,
	}
	if !t.definition.playersMayWrite() {
		return d
	}
	rules := leaderboards.Rules{}
	if set.Rules != nil {
		rules = *set.Rules
	}
	rules.Play, rules.MaxSubmissions = true, int64(t.definition.Attempts)
	d.Writers, d.Rules = append(d.Writers, leaderboards.WriterPlayers), &rules
	return d
}

// onBehalfOf returns the caller with which tournaments use the boards of a game.
func onBehalfOf(gameID int64) principal.Caller {
	return principal.Caller{Role: principal.Server, GameID: gameID}
}

// StartAttempt begins a play of the calling player in a score tournament. The score is sent to the
// board of the tournament. If writers names players, the player sends it. Otherwise the game's
// server does, after it has read the attempt.
//
// It returns invalid_request when the tournament has no attempts, not_entrant, disqualified,
// tournament_closed (it does not run, or endsAt has passed), attempts_exhausted, store_full.
func (s *Service) StartAttempt(
	ctx context.Context, caller principal.Caller, gameID, id int64,
) (Attempt, error) {
	if err := caller.Authorize(gameID, principal.Player); err != nil {
		return Attempt{}, err
	}
	t, err := s.store.load(ctx, gameID, id)
	switch {
	case err != nil:
		return Attempt{}, err
	case t.definition.Format != FormatScore:
		return Attempt{}, apierror.InvalidRequest.WithReason("a tournament with matches has no attempts")
	case t.status != Running:
		return Attempt{}, apierror.TournamentClosed
	}
	if !t.definition.playersMayWrite() {
		return s.countAttempt(ctx, t, caller.UserID)
	}
	play, err := s.Boards.StartTournamentPlay(ctx, caller, gameID, id)
	if errors.Is(err, apierror.BoardNotFound) { // the leader has still to reach it
		if err = s.Boards.CreateForTournament(ctx, gameID, t.boardDefinition()); err == nil {
			play, err = s.Boards.StartTournamentPlay(ctx, caller, gameID, id)
		}
	}
	if err != nil {
		return Attempt{}, err
	}
	// Counted last, so that no attempt is lost when the node dies before the player hears of the play.
	used, err := s.store.beginAttempt(ctx, t, caller.UserID)
	if err != nil {
		if dropErr := s.Boards.DropTournamentPlay(ctx, gameID, id, caller.UserID, play.PlayID); dropErr != nil {
			slog.WarnContext(ctx, "the play of a refused attempt is left until it expires", "game", gameID,
				"tournament", id, "error", dropErr)
		}
		return Attempt{}, err
	}
	return Attempt{
		PlayID: play.PlayID, StartedAt: play.StartedAt, ExpiresAt: play.ExpiresAt, Left: t.definition.Attempts - used,
	}, nil
}

// countAttempt is StartAttempt for tournaments whose scores the game's server sends. It begins no
// play, because such scores name none.
func (s *Service) countAttempt(ctx context.Context, t *tour, userID int64) (Attempt, error) {
	now, err := s.store.db.ReadClock(ctx)
	if err != nil {
		return Attempt{}, err
	}
	// The leader may not have come to it yet, and the score may come at once.
	if err := s.Boards.CreateForTournament(ctx, t.gameID, t.boardDefinition()); err != nil {
		return Attempt{}, err
	}
	used, err := s.store.beginAttempt(ctx, t, userID)
	if err != nil {
		return Attempt{}, err
	}
	grace := time.Duration(t.definition.Board.GraceSeconds) * time.Second
	return Attempt{
		PlayID: secret.New(), StartedAt: now.UTC(), ExpiresAt: t.definition.EndsAt.Add(grace),
		Left: t.definition.Attempts - used,
	}, nil
}

// driveScore makes the board of a score tournament, ends its season at endsAt, and settles when
// that takes no late scores any more.
func (s *Service) driveScore(ctx context.Context, by leaderFence, t *tour, now time.Time) (goesOn bool, err error) {
	if now.Before(*t.definition.EndsAt) {
		return false, s.Boards.CreateForTournament(ctx, t.gameID, t.boardDefinition())
	}
	staff, board := onBehalfOf(t.gameID), leaderboards.TournamentBoard(t.id)
	err = s.Boards.EndTournament(ctx, t.gameID, t.id)
	if errors.Is(err, apierror.BoardNotFound) { // nobody has played
		return true, s.settleTour(ctx, by, t, nil)
	}
	if err != nil && !errors.Is(err, apierror.SeasonClosed) {
		return false, err
	}
	seasons, _, err := s.Boards.ListSeasons(ctx, staff, t.gameID, board, scoreSeason+1, 1)
	if err != nil {
		return false, err
	}
	if len(seasons) == 0 || seasons[0].Status == leaderboards.SeasonOpen ||
		seasons[0].Status == leaderboards.SeasonClosing {
		return false, nil
	}
	places, err := s.scorePlaces(ctx, t, len(t.definition.Payout))
	if err != nil {
		return false, err
	}
	return true, s.settleTour(ctx, by, t, places)
}

// scorePlaces returns the best players of a score tournament who may be paid, n at most.
func (s *Service) scorePlaces(ctx context.Context, t *tour, n int) (places []payout, err error) {
	for cursor := ""; len(places) < n; {
		entries, next, err := s.scoreEntries(ctx, t, cursor, scoresAtOnce)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if !e.isOfEntrant || len(places) == n {
				continue
			}
			places = append(places, payout{userID: e.User.ID, place: len(places) + 1})
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	return places, nil
}

// scoreEntry is an entry of the board of a tournament.
type scoreEntry struct {
	leaderboards.Entry
	isOfEntrant bool // who plays; staff may have sent a score of anybody
}

func (s *Service) scoreEntries(
	ctx context.Context, t *tour, cursor string, limit int,
) (entries []scoreEntry, next string, err error) {
	page, next, err := s.Boards.Entries(ctx, onBehalfOf(t.gameID), t.gameID, leaderboards.TournamentBoard(t.id),
		leaderboards.Scope{Season: scoreSeason}, cursor, limit)
	if err != nil {
		return nil, "", err
	}
	ids := make([]int64, len(page))
	for i, e := range page {
		ids[i] = e.User.ID
	}
	entrants, err := s.store.readEntrantsOf(ctx, t, ids)
	if err != nil {
		return nil, "", err
	}
	isEntrant := make(map[int64]bool, len(entrants))
	for i := range entrants {
		isEntrant[entrants[i].userID] = entrants[i].mayWin(t)
	}
	for _, e := range page {
		entries = append(entries, scoreEntry{e, isEntrant[e.User.ID]})
	}
	return entries, next, nil
}

// scoreStandings is Standings of a score tournament: the entries of its board that are of entrants.
// A cursor is the last place and the cursor of the board, with a colon between them: places count
// entrants alone, as those that are paid do.
func (s *Service) scoreStandings(
	ctx context.Context, t *tour, paid map[int64]payout, cursor string, limit int,
) (list []Standing, next string, err error) {
	number, boardCursor, _ := strings.Cut(cursor, ":")
	last, err := parseCursor(number)
	if err != nil {
		return nil, "", err
	}
	entries, boardCursor, err := s.scoreEntries(ctx, t, boardCursor, limit)
	if errors.Is(err, apierror.BoardNotFound) {
		return []Standing{}, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	list = make([]Standing, 0, len(entries))
	for _, e := range entries {
		if !e.isOfEntrant {
			continue
		}
		last++
		one := Standing{Place: int(last), User: e.User, Points: e.Score}
		one.setPayout(t, paid[e.User.ID].units)
		list = append(list, one)
	}
	if boardCursor != "" {
		next = strconv.FormatInt(last, 10) + ":" + boardCursor
	}
	return list, next, nil
}
