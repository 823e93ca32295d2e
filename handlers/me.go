package handlers

import (
	"net/http"
	"time"

	"github.com/parlor-games/parlor/internal/players/users"
)

// accountView is a player as the player and operators see it.
type accountView struct {
	users.Profile
	GameID    int64     `json:"gameId"`
	Kind      string    `json:"kind"`
	CreatedAt time.Time `json:"createdAt"`
}

func newAccountView(u users.User) accountView {
	return accountView{Profile: u.Profile, GameID: u.GameID, Kind: u.Kind, CreatedAt: u.CreatedAt}
}

func accountResponse(u users.User, err error) (response, error) {
	return okResponse(newAccountView(u)), err
}

func (s *Server) getMe(r *request) (response, error) {
	return accountResponse(s.Users.Get(r.ctx(), r.caller, r.caller.UserID))
}

func (s *Server) patchMe(r *request, in *users.PatchInput) (response, error) {
	return accountResponse(s.Users.Patch(r.ctx(), r.caller, r.caller.UserID, *in))
}

func (s *Server) deleteMe(r *request) (response, error) {
	return response{status: http.StatusNoContent}, s.Accounts.Delete(r.ctx(), r.caller)
}

func (s *Server) listFriends(r *request) (response, error) {
	q := r.query()
	after, limit := q.afterID(), q.limit()
	if err := q.err(); err != nil {
		return response{}, err
	}
	list, next, err := s.Users.Friends(r.ctx(), r.caller, after, limit)
	return okResponse(newPage(list, next)), err
}

func (s *Server) befriendUser(r *request) (response, error) {
	friend, err := s.Users.AddFriend(r.ctx(), r.caller, r.id("userId"))
	return okResponse(&friend), err
}

func (s *Server) unfriendUser(r *request) (response, error) {
	return response{status: http.StatusNoContent}, s.Users.RemoveFriend(r.ctx(), r.caller, r.id("userId"))
}

func (s *Server) blockUser(r *request) (response, error) {
	friend, err := s.Users.Block(r.ctx(), r.caller, r.id("userId"))
	return okResponse(&friend), err
}
