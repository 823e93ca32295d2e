package handlers

import (
	"time"

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

// activitySample is what was going on in a game at one moment.
type activitySample struct {
	At      time.Time     `json:"at"`
	Rooms   int           `json:"rooms"`
	Players int           `json:"players"`
	Pots    []activityPot `json:"pots"`
}

type activityPot struct {
	TokenID string       `json:"tokenId"`
	Units   wallet.Units `json:"potAmount,string"`
}

func (s *Server) listGameActivity(r *request, game int64) (response, error) {
	samples, err := s.Activity.Recent(r.ctx(), game)
	views := make([]activitySample, len(samples))
	for i, one := range samples {
		pots := make([]activityPot, len(one.Pots))
		for j, pot := range one.Pots {
			pots[j] = activityPot{pot.TokenID, wallet.Units(pot.Units)}
		}
		views[i] = activitySample{At: one.At, Rooms: one.Rooms, Players: one.Players, Pots: pots}
	}
	return okResponse(newPage(views, 0)), err
}

func (s *Server) listNodes(r *request) (response, error) {
	list, err := s.Nodes.List(r.ctx(), r.caller)
	return okResponse(newPage(list, 0)), err
}
