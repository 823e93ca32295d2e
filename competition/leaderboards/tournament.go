package leaderboards

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
)

// tournamentPrefix starts the keys of the boards of tournaments.
const tournamentPrefix = "tour-"

// isOfTournament reports whether a board is that of a tournament.
func isOfTournament(key string) bool { return strings.HasPrefix(key, tournamentPrefix) }

// TournamentBoard returns the key of the board of a score tournament. Only the tournament makes it
// and begins plays on it.
func TournamentBoard(tournamentID int64) string {
	return tournamentPrefix + strconv.FormatInt(tournamentID, 10)
}

// Create makes a board, whose first season begins now or at startsAt. It is for staff. It returns
// invalid_request with every faulty field, board_exists and store_full; and forbidden for prizes
// from funds that are not the caller's.
func (s *Service) Create(
	ctx context.Context, caller principal.Caller, gameID int64, d Definition,
) (Leaderboard, error) {
	if isOfTournament(d.Board) {
		return Leaderboard{}, apierror.InvalidRequest.WithField("board", "forbidden",
			"must not start with "+tournamentPrefix+", as the boards of tournaments do")
	}
	return s.create(ctx, caller, gameID, d)
}

// CreateForTournament makes the board of a tournament. A second call changes nothing.
func (s *Service) CreateForTournament(ctx context.Context, gameID int64, d Definition) error {
	if _, err := s.load(ctx, gameID, d.Board); !errors.Is(err, apierror.BoardNotFound) {
		return err
	}
	_, err := s.create(ctx, principal.Caller{Role: principal.Server, GameID: gameID}, gameID, d)
	if errors.Is(err, apierror.BoardExists) {
		return nil
	}
	return err
}

// EndTournament is EndSeason of the only season of the board of a tournament.
func (s *Service) EndTournament(ctx context.Context, gameID, tournamentID int64) error {
	_, err := s.endSeason(ctx, principal.Caller{Role: principal.Operator}, gameID, TournamentBoard(tournamentID), 1)
	return err
}

// StartPlay begins a play of the calling player, on a board whose rules demand plays. It returns
// invalid_request on other boards, forbidden on the board of a tournament, season_closed and
// store_full.
func (s *Service) StartPlay(
	ctx context.Context, caller principal.Caller, gameID int64, key string,
) (Play, error) {
	if isOfTournament(key) {
		return Play{}, apierror.Forbidden.WithReason("the plays of a tournament begin with its attempts")
	}
	return s.startPlay(ctx, caller, gameID, key)
}

// StartTournamentPlay is StartPlay on the board of a tournament, which has checked the player.
func (s *Service) StartTournamentPlay(
	ctx context.Context, caller principal.Caller, gameID, tournamentID int64,
) (Play, error) {
	return s.startPlay(ctx, caller, gameID, TournamentBoard(tournamentID))
}

// DropTournamentPlay ends a play for which the tournament did not let the player begin an attempt.
func (s *Service) DropTournamentPlay(ctx context.Context, gameID, tournamentID, userID int64, playID string) error {
	b, err := s.load(ctx, gameID, TournamentBoard(tournamentID))
	if err != nil {
		return err
	}
	return s.store.dropPlay(ctx, b, userID, playID)
}

// CheckTournamentRules adds an error for each faulty rule of the board that a tournament will make.
func CheckTournamentRules(errs *apierror.FieldErrors, r *Rules, decimals int) {
	var own apierror.FieldErrors
	r.check(&own, decimals)
	if invalid, ok := apierror.As(own.Err()); ok {
		for _, f := range invalid.FieldErrors {
			errs.Add("board."+f.Field, f.Code, f.Message)
		}
	}
}
