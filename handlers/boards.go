package handlers

import (
	"net/http"
	"strconv"

	"github.com/parlor-games/parlor/competition/leaderboards"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
)

// boardGame returns the game whose leaderboards a request is about: that of the path or the query,
// else the caller's own. An operator must name one.
func (r *request) boardGame(q *query) (int64, error) {
	if r.Param("gameId") != "" {
		return r.pathID("gameId", apierror.GameNotFound)
	}
	game := q.id("gameId")
	switch {
	case game == 0 && r.caller.Role == principal.Operator:
		q.addError("gameId", "required", "is required")
	case game == 0:
		game = r.caller.GameID
	}
	return game, nil
}

// boardAddress is a leaderboard with the parameters that most of its operations have.
type boardAddress struct {
	game  int64
	board string
	scope leaderboards.Scope
	limit int
	query *query
}

// boardAddress reads where a request goes. The caller of it may read further parameters from the
// query before it calls err.
func (r *request) boardAddress() (boardAddress, error) {
	q := r.query()
	game, err := r.boardGame(q)
	if err != nil {
		return boardAddress{}, err
	}
	return boardAddress{
		game: game, board: r.Param("board"), limit: q.limit(), query: q,
		scope: leaderboards.Scope{Season: q.id("season"), Segment: q.text("segment")},
	}, nil
}

// checkedBoardAddress is boardAddress without further parameters.
func (r *request) checkedBoardAddress() (boardAddress, error) {
	at, err := r.boardAddress()
	if err == nil {
		err = at.query.err()
	}
	return at, err
}

// textPage returns a page of a list whose cursors are texts, "" at the end.
func textPage[T any](items []T, next string) page[T] {
	p := page[T]{Items: items}
	if next != "" {
		p.NextCursor = &next
	}
	return p
}

func (s *Server) createBoard(r *request, in *leaderboards.Definition) (response, error) {
	game, err := r.pathID("gameId", apierror.GameNotFound)
	if err != nil {
		return response{}, err
	}
	b, err := s.Boards.Create(r.ctx(), r.caller, game, *in)
	return createdResponse(&b), err
}

func (s *Server) listBoards(r *request) (response, error) {
	at, err := r.boardAddress()
	if err != nil {
		return response{}, err
	}
	after := at.query.text("cursor")
	if err := at.query.err(); err != nil {
		return response{}, err
	}
	list, next, err := s.Boards.List(r.ctx(), r.caller, at.game, after, at.limit)
	return okResponse(textPage(list, next)), err
}

func (s *Server) getBoard(r *request) (response, error) {
	at, err := r.checkedBoardAddress()
	if err != nil {
		return response{}, err
	}
	b, err := s.Boards.Get(r.ctx(), r.caller, at.game, at.board)
	return okResponse(&b), err
}

// boardPatchInput changes a leaderboard; an absent member stays as it is.
type boardPatchInput struct {
	Name         *string                         `json:"name,omitzero"`
	Writers      *leaderboards.Writers           `json:"writers,omitzero"`
	Rules        nullable[leaderboards.Rules]    `json:"rules,omitzero"`
	Schedule     nullable[leaderboards.Schedule] `json:"schedule,omitzero"`
	GraceSeconds *int64                          `json:"graceSeconds,omitzero"`
	KeepSeasons  *int64                          `json:"keepSeasons,omitzero"`
	Segments     *[]string                       `json:"segments,omitzero"`
	MaxEntries   nullable[int64]                 `json:"maxEntries,omitzero"`
	League       nullable[leaderboards.League]   `json:"league,omitzero"`
	Prizes       nullable[leaderboards.Prizes]   `json:"prizes,omitzero"`
	Metadata     wire.RawJSON                    `json:"metadata,omitzero"`
	Effective    leaderboards.Effective          `json:"effective,omitzero" given:"nonzero"`
}

func (s *Server) patchBoard(r *request, in *boardPatchInput) (response, error) {
	game, err := r.pathID("gameId", apierror.GameNotFound)
	if err != nil {
		return response{}, err
	}
	b, err := s.Boards.Patch(r.ctx(), r.caller, game, r.Param("board"), leaderboards.Patch{
		Name: in.Name, Writers: in.Writers, Rules: in.Rules.toPatch(), Schedule: in.Schedule.toPatch(),
		GraceSeconds: in.GraceSeconds, KeepSeasons: in.KeepSeasons, Segments: in.Segments,
		MaxEntries: in.MaxEntries.toPatch(), League: in.League.toPatch(), Prizes: in.Prizes.toPatch(),
		Metadata: in.Metadata, Effective: in.Effective,
	})
	return okResponse(&b), err
}

func (s *Server) deleteBoard(r *request) (response, error) {
	game, err := r.pathID("gameId", apierror.GameNotFound)
	if err != nil {
		return response{}, err
	}
	return response{status: http.StatusNoContent}, s.Boards.Delete(r.ctx(), r.caller, game, r.Param("board"))
}

// boardReasonInput says why staff changes something on a leaderboard; the trail keeps it.
type boardReasonInput struct {
	Reason string `json:"reason"`
}

// Validate returns invalid_request without a reason.
func (in *boardReasonInput) Validate() error {
	return requireMembers(member{"reason", in.Reason != ""})
}

func (s *Server) endSeason(r *request, _ *boardReasonInput) (response, error) {
	at, number, err := r.boardSeason()
	if err != nil {
		return response{}, err
	}
	season, err := s.Boards.EndSeason(r.measuredCtx(), r.caller, at.game, at.board, number)
	return okResponse(&season), err
}

// boardSeason returns the leaderboard and the season in the path.
func (r *request) boardSeason() (boardAddress, int64, error) {
	at, err := r.checkedBoardAddress()
	if err != nil {
		return boardAddress{}, 0, err
	}
	number, err := r.pathID("season", apierror.SeasonNotFound)
	return at, number, err
}

func (s *Server) approveSeason(r *request, _ *boardReasonInput) (response, error) {
	at, number, err := r.boardSeason()
	if err != nil {
		return response{}, err
	}
	season, err := s.Boards.ApproveSeason(r.measuredCtx(), r.caller, at.game, at.board, number)
	return okResponse(&season), err
}

func (s *Server) voidSeason(r *request, in *boardReasonInput) (response, error) {
	at, number, err := r.boardSeason()
	if err != nil {
		return response{}, err
	}
	season, err := s.Boards.VoidSeason(r.measuredCtx(), r.caller, at.game, at.board, number, in.Reason)
	return okResponse(&season), err
}

// boardEntry returns the leaderboard and the player in the path.
func (r *request) boardEntry() (boardAddress, int64, error) {
	at, err := r.checkedBoardAddress()
	if err != nil {
		return boardAddress{}, 0, err
	}
	user, err := r.pathID("userId", apierror.EntryNotFound)
	return at, user, err
}

func (s *Server) hideEntry(r *request, _ *boardReasonInput) (response, error) {
	return s.setEntryHidden(r, true)
}

func (s *Server) unhideEntry(r *request, _ *boardReasonInput) (response, error) {
	return s.setEntryHidden(r, false)
}

func (s *Server) setEntryHidden(r *request, hidden bool) (response, error) {
	at, user, err := r.boardEntry()
	if err != nil {
		return response{}, err
	}
	entry, err := s.Boards.SetHidden(r.measuredCtx(), r.caller, at.game, at.board, at.scope.Season, user, hidden)
	return okResponse(&entry), err
}

func (s *Server) removeEntry(r *request, _ *boardReasonInput) (response, error) {
	at, user, err := r.boardEntry()
	if err != nil {
		return response{}, err
	}
	entry, err := s.Boards.Remove(r.measuredCtx(), r.caller, at.game, at.board, at.scope.Season, user)
	return okResponse(&entry), err
}

func (s *Server) startPlay(r *request) (response, error) {
	play, err := s.Boards.StartPlay(r.ctx(), r.caller, r.caller.GameID, r.Param("board"))
	return createdResponse(&play), err
}

func (s *Server) submitScore(r *request, in *leaderboards.SubmitInput) (response, error) {
	at, err := r.checkedBoardAddress()
	if err != nil {
		return response{}, err
	}
	result, err := s.Boards.Submit(r.measuredCtx(), r.caller, at.game, at.board, *in, r.receipt)
	return okResponse(&result).withReplayed(result.Replayed), err
}

// scoresInput is several scores.
type scoresInput struct {
	Scores []leaderboards.SubmitInput `json:"scores"`
}

// scoresView is what became of them, in their order.
type scoresView struct {
	Items []scoreView `json:"items"`
}

type scoreView struct {
	UserID int64               `json:"userId"`
	Entry  *leaderboards.Entry `json:"entry,omitzero"`
	Error  *problem            `json:"error,omitzero"`
}

func (s *Server) submitScores(r *request, in *scoresInput) (response, error) {
	at, err := r.checkedBoardAddress()
	if err != nil {
		return response{}, err
	}
	r.chargeRateLimit(ceilDiv(int64(len(in.Scores)), scoresPerPermit) - 1)
	results, replayed, err := s.Boards.SubmitBatch(r.measuredCtx(), r.caller, at.game, at.board, in.Scores, r.receipt)
	if err != nil {
		return response{}, err
	}
	view := &scoresView{Items: make([]scoreView, len(results))}
	for i, one := range results {
		view.Items[i] = scoreView{UserID: one.UserID, Entry: one.Entry}
		if one.Err != nil {
			apiErr, _ := toAPIError(one.Err)
			view.Items[i].Error = newProblem(apiErr, r.Request.URL.EscapedPath(), r.requestID)
		}
	}
	return okResponse(view).withReplayed(replayed), nil
}

func (s *Server) listEntries(r *request) (response, error) {
	at, err := r.boardAddress()
	if err != nil {
		return response{}, err
	}
	cursor := at.query.text("cursor")
	if err := at.query.err(); err != nil {
		return response{}, err
	}
	list, next, err := s.Boards.Entries(r.ctx(), r.caller, at.game, at.board, at.scope, cursor, at.limit)
	return okResponse(textPage(list, next)), err
}

// entriesView is a list of entries without pages.
type entriesView struct {
	Items []leaderboards.Entry `json:"items"`
}

func (s *Server) listEntriesAround(r *request) (response, error) {
	at, err := r.checkedBoardAddress()
	if err != nil {
		return response{}, err
	}
	list, err := s.Boards.Around(r.ctx(), r.caller, at.game, at.board, at.scope, at.limit)
	return okResponse(&entriesView{list}), err
}

func (s *Server) listEntriesOfFriends(r *request) (response, error) {
	at, err := r.checkedBoardAddress()
	if err != nil {
		return response{}, err
	}
	list, err := s.Boards.FriendEntries(r.ctx(), r.caller, at.game, at.board, at.scope, at.limit)
	return okResponse(&entriesView{list}), err
}

func (s *Server) getEntry(r *request) (response, error) {
	at, user, err := r.boardEntry()
	if err != nil {
		return response{}, err
	}
	entry, err := s.Boards.GetEntry(r.ctx(), r.caller, at.game, at.board, at.scope, user)
	return okResponse(&entry), err
}

func (s *Server) getLeague(r *request) (response, error) {
	at, err := r.checkedBoardAddress()
	if err != nil {
		return response{}, err
	}
	cohort, err := s.Boards.Cohort(r.ctx(), r.caller, at.game, at.board, at.scope.Season)
	return okResponse(&cohort), err
}

func (s *Server) listSeasons(r *request) (response, error) {
	at, err := r.boardAddress()
	if err != nil {
		return response{}, err
	}
	before := at.query.afterID()
	if err := at.query.err(); err != nil {
		return response{}, err
	}
	list, next, err := s.Boards.ListSeasons(r.ctx(), r.caller, at.game, at.board, before, at.limit)
	return okResponse(newPage(list, next)), err
}

// boardTarget returns the name of a leaderboard in the trail.
func boardTarget(game, board string) string { return "board:" + game + "." + board }

// describeBoardWrite returns what a write of staff changed on a leaderboard.
func (w *staffWrite) describeBoardWrite(body any) (before, after any) {
	reason := ""
	if in, ok := w.input.(*boardReasonInput); ok {
		reason = in.Reason
	}
	switch b := body.(type) {
	case *leaderboards.Leaderboard:
		return changedMembers(w.before, b)
	case *leaderboards.Season:
		return nil, map[string]any{"season": b, "reason": reason}
	case *leaderboards.Entry:
		return nil, map[string]any{
			"userId": b.User.ID, "rank": b.Rank, "score": b.Score, "hidden": b.Hidden, "reason": reason,
		}
	case *leaderboards.SubmitResult:
		return b.Previous, map[string]any{"userId": b.Entry.User.ID, "score": b.Entry.Score, "changed": b.Changed}
	case *scoresView:
		accepted := 0
		for _, one := range b.Items {
			if one.Entry != nil {
				accepted++
			}
		}
		return nil, map[string]any{"scores": strconv.Itoa(len(b.Items)), "accepted": strconv.Itoa(accepted)}
	}
	return w.before, map[string]any{"deleted": true} // of deleteBoard
}
