package handlers

import (
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/players/users"
)

// This file has what staff reads about players, rooms, ledgers and nodes, for the console and for
// scripts.

func (s *Server) listUsers(r *request) (response, error) {
	q := r.query()
	query := users.ListQuery{GameID: q.id("gameId"), Before: q.afterID(), Limit: q.limit()}
	if err := q.err(); err != nil {
		return response{}, err
	}
	if query.GameID != 0 {
		if err := s.checkGameAccess(r, query.GameID); err != nil {
			return response{}, err
		}
	}
	list, next, err := s.Users.List(r.ctx(), r.caller, query)
	views := make([]*playerView, len(list))
	for i, u := range list {
		views[i] = newPlayerView(u)
	}
	return okResponse(newPage(views, next)), err
}

func (s *Server) listUserLedger(r *request, u users.User) (response, error) {
	q := r.query()
	query := wallet.LedgerQuery{TokenCode: q.text("tokenId"), BeforeLine: q.afterID(), Limit: q.limit()}
	if err := q.err(); err != nil {
		return response{}, err
	}
	page, err := s.Wallet.Ledger(r.ctx(), u.GameID, u.ID, query)
	return okResponse(newPage(page.Lines, page.NextBefore)), err
}

func (s *Server) listUserSaves(r *request) (response, error) {
	list, err := s.Progress.ListOf(r.ctx(), r.caller, r.id("userId"))
	return okResponse(newPage(list, 0)), err
}

func (s *Server) getUserSave(r *request) (response, error) {
	save, err := s.Progress.LoadOf(r.ctx(), r.caller, r.id("userId"), r.Param("slot"))
	return okResponse(&save), err
}

func (s *Server) listUserSessions(r *request, u users.User) (response, error) {
	list, err := s.Auth.ListPlayerSessions(r.ctx(), r.caller, u.ID)
	return okResponse(newPage(list, 0)), err
}

func (s *Server) listRoomEvents(r *request) (response, error) {
	q := r.query()
	after := q.id("after")
	if err := q.err(); err != nil {
		return response{}, err
	}
	list, err := s.Rooms.ListEvents(r.ctx(), r.caller, r.Param("roomId"), after)
	return okResponse(&list), err
}

func (s *Server) listGameLedger(r *request, game int64) (response, error) {
	q := r.query()
	query := wallet.EntryQuery{Before: q.afterID(), Limit: q.limit()}
	if err := q.err(); err != nil {
		return response{}, err
	}
	page, err := s.Wallet.GameLedger(r.ctx(), r.caller, game, query)
	return okResponse(newPage(page.Entries, page.NextBefore)), err
}

func (s *Server) listNodes(r *request) (response, error) {
	list, err := s.Nodes.List(r.ctx(), r.caller)
	return okResponse(newPage(list, 0)), err
}
