package handlers

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"

	"github.com/parlor-games/parlor/competition/tournaments"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
)

// tournamentAddress is a tournament in the path, and the query for further parameters.
type tournamentAddress struct {
	game, id int64
	query    *query
}

// tournamentAddress reads where a request goes. The caller of it may read further parameters from
// the query before it calls err.
func (r *request) tournamentAddress() tournamentAddress {
	q := r.query()
	return tournamentAddress{r.boardGame(q), r.id("tournamentId"), q}
}

// tournamentOf is tournamentAddress without further parameters.
func tournamentOf(r *request) (tournamentAddress, error) {
	at := r.tournamentAddress()
	return at, at.query.err()
}

// tournamentResponse returns the response with a tournament as its body and the version as its
// ETag. With an error the response says only whether it is a replay.
func tournamentResponse(status int, result tournaments.ChangeResult, err error) (response, error) {
	if err != nil {
		return response{replayed: result.Replayed}, err
	}
	return response{
		status: status, body: &result.Tournament, etag: tournamentETag(&result.Tournament), replayed: result.Replayed,
	}, nil
}

func tournamentETag(t *tournaments.Tournament) string {
	return `"` + strconv.FormatInt(t.Version, 10) + `"`
}

func (s *Server) createTournament(r *request, in *tournaments.CreateInput) (response, error) {
	result, err := s.Tournaments.Create(r.ctx(), r.caller, r.id("gameId"), *in, r.receipt)
	return tournamentResponse(http.StatusCreated, result, err)
}

func (s *Server) listTournaments(r *request) (response, error) {
	q := r.query()
	game := r.boardGame(q)
	query := tournaments.ListQuery{
		GameID: game, Status: tournaments.Status(q.text("status")), After: q.afterID(), Limit: q.limit(),
	}
	if err := q.err(); err != nil {
		return response{}, err
	}
	list, next, err := s.Tournaments.List(r.ctx(), r.caller, query)
	return okResponse(newPage(list, next)), err
}

func (s *Server) getTournament(r *request, at tournamentAddress) (response, error) {
	t, err := s.Tournaments.Get(r.ctx(), r.caller, at.game, at.id)
	if err != nil {
		return response{}, err
	}
	r.Writer.Header()["Cache-Control"] = headerRevalidate
	if etag := tournamentETag(&t); r.hasVersion(etag) {
		return response{status: http.StatusNotModified, etag: etag}, nil
	}
	return tournamentResponse(http.StatusOK, tournaments.ChangeResult{Tournament: t}, nil)
}

// tournamentPage is a page of what a tournament has.
type tournamentPage struct {
	tournamentAddress
	cursor string
	limit  int
	round  int // of matches; 0: the newest
}

func tournamentPageOf(r *request) (tournamentPage, error) {
	at := r.tournamentAddress()
	q := at.query
	return tournamentPage{at, q.text("cursor"), q.limit(), int(q.id("round"))}, q.err()
}

func (s *Server) listEntrants(r *request, p tournamentPage) (response, error) {
	list, next, err := s.Tournaments.Entrants(r.ctx(), r.caller, p.game, p.id, p.cursor, p.limit)
	return okResponse(textPage(list, next)), err
}

func (s *Server) listMatches(r *request, p tournamentPage) (response, error) {
	list, next, err := s.Tournaments.Matches(r.ctx(), r.caller, p.game, p.id, p.round, p.cursor, p.limit)
	return okResponse(textPage(list, next)), err
}

func (s *Server) listStandings(r *request, p tournamentPage) (response, error) {
	list, next, err := s.Tournaments.Standings(r.ctx(), r.caller, p.game, p.id, p.cursor, p.limit)
	return okResponse(textPage(list, next)), err
}

func (s *Server) joinTournament(r *request, at tournamentAddress) (response, error) {
	if err := r.countNew(ratelimit.Joins, "joins_a_day"); err != nil {
		return response{}, err
	}
	result, err := s.Tournaments.Join(r.ctx(), r.caller, at.game, at.id, r.receipt)
	return tournamentResponse(http.StatusOK, result, err)
}

func (s *Server) leaveTournament(r *request, at tournamentAddress) (response, error) {
	result, err := s.Tournaments.Leave(r.ctx(), r.caller, at.game, at.id, r.receipt)
	return tournamentResponse(http.StatusOK, result, err)
}

func (s *Server) checkIntoTournament(r *request, at tournamentAddress) (response, error) {
	result, err := s.Tournaments.CheckIn(r.ctx(), r.caller, at.game, at.id, r.receipt)
	return tournamentResponse(http.StatusOK, result, err)
}

func (s *Server) startAttempt(r *request, at tournamentAddress) (response, error) {
	attempt, err := s.Tournaments.StartAttempt(r.ctx(), r.caller, at.game, at.id)
	return createdResponse(&attempt), err
}

func (s *Server) startTournament(r *request, at tournamentAddress) (response, error) {
	result, err := s.Tournaments.Start(r.ctx(), r.caller, at.game, at.id, r.receipt)
	return okResponse(&result.Tournament), err // without an ETag, which a stored response lacks
}

// tournamentReasonInput may say why staff changes something in a tournament; the trail keeps it.
type tournamentReasonInput struct {
	Reason string `json:"reason,omitzero" given:"nonzero"`
}

func (s *Server) cancelTournament(r *request, at tournamentAddress, _ *tournamentReasonInput) (response, error) {
	result, err := s.Tournaments.Cancel(r.ctx(), r.caller, at.game, at.id, r.receipt)
	return okResponse(&result.Tournament), err // without an ETag, which a stored response lacks
}

func (s *Server) deleteTournament(r *request, at tournamentAddress) (response, error) {
	return response{status: http.StatusNoContent}, s.Tournaments.Delete(r.ctx(), r.caller, at.game, at.id)
}

func (s *Server) disqualifyEntrant(r *request, at tournamentAddress, _ *tournamentReasonInput) (response, error) {
	result, err := s.Tournaments.Disqualify(r.ctx(), r.caller, at.game, at.id, r.id("userId"), r.receipt)
	return tournamentResponse(http.StatusOK, result, err)
}

// resolveMatchInput names who won a match.
type resolveMatchInput struct {
	WinnerID int64 `json:"winnerId" required:"true"`
}

func (in *resolveMatchInput) Validate() error {
	return checkID("winnerId", in.WinnerID)
}

func (s *Server) resolveMatch(r *request, at tournamentAddress, in *resolveMatchInput) (response, error) {
	match, replayed, err := s.Tournaments.Resolve(r.ctx(), r.caller, at.game, at.id, r.Param("matchId"), in.WinnerID,
		r.receipt)
	return okResponse(&match).withReplayed(replayed), err
}

// tournamentTarget returns the name of a tournament in the trail.
func tournamentTarget(game, id string) string { return "tournament:" + game + "." + id }

// tournamentTargetOf returns the tournament of a write of staff, "" for another write.
func tournamentTargetOf(r *request, body any) string {
	if t, ok := body.(*tournaments.Tournament); ok {
		return tournamentTarget(strconv.FormatInt(t.GameID, 10), strconv.FormatInt(t.ID, 10))
	}
	if id := r.Param("tournamentId"); id != "" {
		return tournamentTarget(cmp.Or(r.Param("gameId"), fmt.Sprint(r.caller.GameID)), id)
	}
	return ""
}

// describeTournamentWrite returns what a write of staff changed in a tournament.
func (w *staffWrite) describeTournamentWrite(body any) (before, after any) {
	switch b := body.(type) {
	case *tournaments.Tournament:
		before, after = changedMembers(w.before, b)
		if in, ok := w.input.(*tournamentReasonInput); ok && in.Reason != "" {
			if members, ok := after.(map[string]wire.RawJSON); ok {
				members["reason"], _ = wire.Marshal(in.Reason) // says more than "operator", which the actor is
			}
		}
		return before, after
	case *tournaments.Match:
		return nil, map[string]any{"matchId": b.ID, "winnerId": b.WinnerID, "status": b.Status}
	case nil: // of deleteTournament
		return w.before, map[string]any{"deleted": true}
	}
	return nil, nil
}
