package handlers

import (
	"net/http"

	"github.com/parlor-games/parlor/internal/auth"
	"github.com/parlor-games/parlor/internal/users"
)

// session is the answer of every sign-in.
type session struct {
	AccessToken  string        `json:"accessToken"`
	ExpiresIn    int64         `json:"expiresIn"` // seconds
	RefreshToken string        `json:"refreshToken"`
	User         users.Profile `json:"user"`
}

func (c *call) signedIn(status int, s auth.Session, err error) (reply, error) {
	if err == nil {
		c.game = s.User.Game
	}
	return reply{status: status, body: &session{
		AccessToken: s.AccessToken, ExpiresIn: auth.CeilSeconds(s.ExpiresIn), RefreshToken: s.RefreshToken, User: s.User.Profile,
	}}, err
}

type guestInput struct {
	GameID       int64   `json:"gameId"`
	Username     *string `json:"username"`
	DeviceSecret *string `json:"deviceSecret"`
}

func (in *guestInput) lacks() needs { return needs{}.that(in.GameID != 0, "gameId") }

func (e *Server) guest(c *call, in *guestInput) (reply, error) {
	s, err := e.Auth.Guest(c.ctx(), auth.GuestInput(*in))
	return c.signedIn(http.StatusCreated, s, err)
}

type exchangeInput struct {
	ExternalID string           `json:"externalId"`
	Username   *string          `json:"username"`
	Avatar     nullable[string] `json:"avatar,omitzero"`
}

func (in *exchangeInput) lacks() needs { return needs{}.that(in.ExternalID != "", "externalId") }

func (e *Server) exchange(c *call, in *exchangeInput) (reply, error) {
	s, err := e.Auth.Exchange(c.ctx(), c.caller, auth.ExchangeInput{ExternalID: in.ExternalID, Username: in.Username, Avatar: in.Avatar.change()})
	return c.signedIn(http.StatusCreated, s, err)
}

type refreshInput struct {
	RefreshToken string `json:"refreshToken"`
}

func (in *refreshInput) lacks() needs { return needs{}.that(in.RefreshToken != "", "refreshToken") }

func (e *Server) refresh(c *call, in *refreshInput) (reply, error) {
	s, err := e.Auth.Refresh(c.ctx(), in.RefreshToken)
	return c.signedIn(http.StatusOK, s, err)
}

type logoutInput struct {
	RefreshToken string `json:"refreshToken"`
}

func (e *Server) logout(c *call, in *logoutInput) (reply, error) {
	return reply{status: http.StatusNoContent}, e.Auth.Logout(c.ctx(), c.bearer(), in.RefreshToken)
}

type linkInput struct {
	DeviceSecret  *string `json:"deviceSecret"`
	ExternalToken *string `json:"externalToken"`
	UserID        *int64  `json:"userId"`
	ExternalID    *string `json:"externalId"`
}

func (e *Server) link(c *call, in *linkInput) (reply, error) {
	return showAccount(e.Auth.Link(c.ctx(), c.caller, auth.LinkInput(*in)))
}

func (e *Server) ticket(c *call) (reply, error) {
	t, err := e.Auth.Ticket(c.ctx(), c.shown)
	return ok(struct {
		Ticket    string `json:"ticket"`
		ExpiresIn int64  `json:"expiresIn"` // seconds
	}{t.Ticket, auth.CeilSeconds(t.ExpiresIn)}), err
}
