package handlers

import (
	"net/http"
	"strconv"

	"github.com/parlor-games/parlor/competition/leaderboards"
	"github.com/parlor-games/parlor/internal/base/principal"
)

// boardGame returns the game whose leaderboards a request is about: that of the path or the query,
// else the caller's own. An operator must name one.
func (r *request) boardGame(q *query) int64 {
	if r.Param("gameId") != "" {
		return r.id("gameId")
	}
	game := q.id("gameId")
	switch {
	case game == 0 && r.caller.Role == principal.Operator:
		q.addError("gameId", "required", "is required")
	case game == 0:
		game = r.caller.GameID
	}
	return game
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
func (r *request) boardAddress() boardAddress {
	q := r.query()
	return boardAddress{
		game: r.boardGame(q), board: r.Param("board"), limit: q.limit(), query: q,
		scope: leaderboards.Scope{Season: q.id("season"), Segment: q.text("segment")},
	}
}

// boardOf is boardAddress without further parameters.
func boardOf(r *request) (boardAddress, error) {
	at := r.boardAddress()
	return at, at.query.err()
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
	b, err := s.Boards.Create(r.ctx(), r.caller, r.id("gameId"), *in)
	return createdResponse(&b), err
}

func (s *Server) listBoards(r *request) (response, error) {
	at := r.boardAddress()
	after := at.query.text("cursor")
	if err := at.query.err(); err != nil {
		return response{}, err
	}
	list, next, err := s.Boards.List(r.ctx(), r.caller, at.game, after, at.limit)
	return okResponse(textPage(list, next)), err
}

func (s *Server) getBoard(r *request, at boardAddress) (response, error) {
	b, err := s.Boards.Get(r.ctx(), r.caller, at.game, at.board)
	return okResponse(&b), err
}

func (s *Server) patchBoard(r *request, in *leaderboards.Patch) (response, error) {
	b, err := s.Boards.Patch(r.ctx(), r.caller, r.id("gameId"), r.Param("board"), *in)
	return okResponse(&b), err
}

func (s *Server) deleteBoard(r *request) (response, error) {
	return response{status: http.StatusNoContent}, s.Boards.Delete(r.ctx(), r.caller, r.id("gameId"), r.Param("board"))
}

// boardReasonInput says why staff changes something on a leaderboard; the trail keeps it.
type boardReasonInput struct {
	Reason string `json:"reason" required:"true"`
}

func (s *Server) endSeason(r *request, at boardAddress, _ *boardReasonInput) (response, error) {
	season, err := s.Boards.EndSeason(r.measuredCtx(), r.caller, at.game, at.board, r.id("season"))
	return okResponse(&season), err
}

func (s *Server) approveSeason(r *request, at boardAddress, _ *boardReasonInput) (response, error) {
	season, err := s.Boards.ApproveSeason(r.measuredCtx(), r.caller, at.game, at.board, r.id("season"))
	return okResponse(&season), err
}

func (s *Server) voidSeason(r *request, at boardAddress, in *boardReasonInput) (response, error) {
	season, err := s.Boards.VoidSeason(r.measuredCtx(), r.caller, at.game, at.board, r.id("season"), in.Reason)
	return okResponse(&season), err
}

func (s *Server) hideEntry(r *request, at boardAddress, _ *boardReasonInput) (response, error) {
	return s.setEntryHidden(r, at, true)
}

func (s *Server) unhideEntry(r *request, at boardAddress, _ *boardReasonInput) (response, error) {
	return s.setEntryHidden(r, at, false)
}

func (s *Server) setEntryHidden(r *request, at boardAddress, hidden bool) (response, error) {
	entry, err := s.Boards.SetHidden(r.measuredCtx(), r.caller, at.game, at.board, at.scope.Season, r.id("userId"), hidden)
	return okResponse(&entry), err
}

func (s *Server) removeEntry(r *request, at boardAddress, _ *boardReasonInput) (response, error) {
	entry, err := s.Boards.Remove(r.measuredCtx(), r.caller, at.game, at.board, at.scope.Season, r.id("userId"))
	return okResponse(&entry), err
}

func (s *Server) startPlay(r *request) (response, error) {
	play, err := s.Boards.StartPlay(r.ctx(), r.caller, r.caller.GameID, r.Param("board"))
	return createdResponse(&play), err
}

func (s *Server) submitScore(r *request, at boardAddress, in *leaderboards.SubmitInput) (response, error) {
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

func (s *Server) submitScores(r *request, at boardAddress, in *scoresInput) (response, error) {
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
	at := r.boardAddress()
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

func (s *Server) listEntriesAround(r *request, at boardAddress) (response, error) {
	list, err := s.Boards.Around(r.ctx(), r.caller, at.game, at.board, at.scope, at.limit)
	return okResponse(&entriesView{list}), err
}

func (s *Server) listEntriesOfFriends(r *request, at boardAddress) (response, error) {
	list, err := s.Boards.FriendEntries(r.ctx(), r.caller, at.game, at.board, at.scope, at.limit)
	return okResponse(&entriesView{list}), err
}

func (s *Server) getEntry(r *request, at boardAddress) (response, error) {
	entry, err := s.Boards.GetEntry(r.ctx(), r.caller, at.game, at.board, at.scope, r.id("userId"))
	return okResponse(&entry), err
}

func (s *Server) getLeague(r *request, at boardAddress) (response, error) {
	cohort, err := s.Boards.Cohort(r.ctx(), r.caller, at.game, at.board, at.scope.Season)
	return okResponse(&cohort), err
}

func (s *Server) listSeasons(r *request) (response, error) {
	at := r.boardAddress()
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
