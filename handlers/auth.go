package handlers

import (
	"net/http"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/auth"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/internal/players/users"
)

// sessionView is the body of the response to every sign-in.
type sessionView struct {
	AccessToken  string        `json:"accessToken"`
	ExpiresIn    int64         `json:"expiresIn"` // seconds
	RefreshToken string        `json:"refreshToken"`
	User         users.Profile `json:"user"`

	isChange bool // the sign-in made the player, or changed the profile
}

func (r *request) sessionResponse(status int, session auth.SignInResult, err error) (response, error) {
	if err == nil {
		r.corsGameID = session.User.GameID
	}
	return response{status: status, body: &sessionView{
		AccessToken: session.AccessToken, ExpiresIn: ratelimit.CeilSeconds(session.AccessTokenExpiresIn),
		RefreshToken: session.RefreshToken,
		User:         session.User.Profile,
		isChange:     session.IsChange,
	}}, err
}

type guestInput struct {
	GameID       int64   `json:"gameId" required:"true"`
	Username     *string `json:"username"`
	DeviceSecret *string `json:"deviceSecret"`
}

func (in *guestInput) keyOwner(r *request) (string, error) {
	return r.server.Auth.GuestKeyOwner(r.ctx(), auth.GuestInput(*in))
}

func (s *Server) signInGuest(r *request, in *guestInput) (response, error) {
	isNew, err := s.Auth.IsNewGuest(r.ctx(), auth.GuestInput(*in))
	if err != nil {
		return response{}, err
	}
	if isNew {
		if err := r.takeRateLimit(ratelimit.SignUp); err != nil {
			return response{}, err
		}
	}
	session, err := s.Auth.Guest(r.ctx(), auth.GuestInput(*in))
	return r.sessionResponse(http.StatusCreated, session, err)
}

type exchangeInput struct {
	ExternalID string                `json:"externalId" required:"true"`
	Username   *string               `json:"username"`
	Avatar     wire.Nullable[string] `json:"avatar,omitzero"`
}

func (s *Server) signInExternal(r *request, in *exchangeInput) (response, error) {
	session, err := s.Auth.Exchange(r.ctx(), r.caller, auth.ExchangeInput{
		ServerSideID: in.ExternalID, Username: in.Username, Avatar: in.Avatar,
	})
	return r.sessionResponse(http.StatusCreated, session, err)
}

type refreshInput struct {
	RefreshToken string `json:"refreshToken" required:"true"`
}

func (in *refreshInput) keyOwner(r *request) (string, error) {
	return r.server.Auth.RefreshKeyOwner(in.RefreshToken)
}

func (in *refreshInput) confirmReplay(r *request) error {
	return r.server.Auth.ConfirmRefresh(r.ctx(), in.RefreshToken)
}

func (s *Server) refreshSession(r *request, in *refreshInput) (response, error) {
	session, err := s.Auth.Refresh(r.ctx(), in.RefreshToken)
	return r.sessionResponse(http.StatusOK, session, err)
}

type logoutInput struct {
	RefreshToken string `json:"refreshToken"`
}

func (s *Server) logout(r *request, in *logoutInput) (response, error) {
	return response{status: http.StatusNoContent}, s.Auth.Logout(r.ctx(), r.bearerToken(), in.RefreshToken)
}

type linkInput struct {
	DeviceSecret  *string `json:"deviceSecret"`
	ExternalToken *string `json:"externalToken"`
	UserID        *int64  `json:"userId"`
	ServerSideID  *string `json:"externalId"`
}

func (s *Server) linkIdentity(r *request, in *linkInput) (response, error) {
	return accountResponse(s.Auth.Link(r.ctx(), r.caller, auth.LinkInput(*in)))
}

func (s *Server) issueTicket(r *request) (response, error) {
	t, err := s.Auth.IssueTicket(r.ctx(), r.credential)
	return okResponse(struct {
		Ticket    string `json:"ticket"`
		ExpiresIn int64  `json:"expiresIn"` // seconds
	}{t.Secret, ratelimit.CeilSeconds(t.ExpiresIn)}), err
}
