package handlers

import (
	"net/http"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/users"
)

// account is a player as it sees itself, and as operators see it.
type account struct {
	users.Profile
	GameID    int64     `json:"gameId"`
	Kind      string    `json:"kind"`
	CreatedAt time.Time `json:"createdAt"`
}

func accountOf(u users.User) account {
	return account{Profile: u.Profile, GameID: u.Game, Kind: u.Kind, CreatedAt: u.CreatedAt}
}

func showAccount(u users.User, err error) (reply, error) { return ok(accountOf(u)), err }

func (e *Server) me(c *call) (reply, error) {
	return showAccount(e.Users.Get(c.ctx(), c.caller, c.caller.User))
}

type profilePatch struct {
	Username *string          `json:"username"`
	Avatar   nullable[string] `json:"avatar,omitzero"`
}

func (e *Server) patchMe(c *call, in *profilePatch) (reply, error) {
	return showAccount(e.Users.Patch(c.ctx(), c.caller, c.caller.User, users.Patch{Username: in.Username, Avatar: in.Avatar.change()}))
}

func (e *Server) friends(c *call) (reply, error) {
	list, err := e.Users.Friends(c.ctx(), c.caller)
	return ok(pageOf(list, 0)), err
}

func (e *Server) befriend(c *call) (reply, error) {
	other, err := c.pathID("userId", apierror.UserNotFound)
	if err != nil {
		return reply{}, err
	}
	friend, err := e.Users.AddFriend(c.ctx(), c.caller, other)
	return ok(&friend), err
}

func (e *Server) unfriend(c *call) (reply, error) {
	other, err := c.pathID("userId", apierror.UserNotFound)
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusNoContent}, e.Users.RemoveFriend(c.ctx(), c.caller, other)
}

func (e *Server) block(c *call) (reply, error) {
	other, err := c.pathID("userId", apierror.UserNotFound)
	if err != nil {
		return reply{}, err
	}
	friend, err := e.Users.Block(c.ctx(), c.caller, other)
	return ok(&friend), err
}
