package handlers

import (
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/limits"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/players/users"
)

// limitsInput sets a player's own limits. Absent members stay as they are, null removes a limit.
type limitsInput struct {
	TokenID       string                            `json:"tokenId"`
	MaxStake      wire.Nullable[wallet.AmountInput] `json:"maxStake,omitzero"`
	MaxOpenRooms  wire.Nullable[int64]              `json:"maxOpenRooms,omitzero"`
	MaxLoss       wire.Nullable[wallet.AmountInput] `json:"maxLoss24h,omitzero"`
	ExcludedUntil wire.Nullable[time.Time]          `json:"excludedUntil,omitzero"`
}

func (in *limitsInput) of(userID int64) limits.Input {
	return limits.Input{
		UserID: userID, TokenCode: in.TokenID, MaxStake: toPatch(in.MaxStake), MaxOpenRooms: toPatch(in.MaxOpenRooms),
		MaxLoss: toPatch(in.MaxLoss), ExcludedUntil: toPatch(in.ExcludedUntil),
	}
}

// toPatch converts a member to the form of package wallet: nil keeps the value, a pointer to nil
// removes it.
func toPatch[T any](n wire.Nullable[T]) **T {
	if !n.IsGiven {
		return nil
	}
	return &n.Value
}

func (s *Server) listMyLimits(r *request) (response, error) {
	return s.listLimits(r, r.caller.GameID, r.caller.UserID)
}

func (s *Server) setMyLimits(r *request, in *limitsInput) (response, error) {
	set, err := s.Limits.Set(r.ctx(), r.caller, in.of(r.caller.UserID))
	return okResponse(&set), err
}

func (s *Server) listUserLimits(r *request, u users.User) (response, error) {
	return s.listLimits(r, u.GameID, u.ID)
}

func (s *Server) tightenUserLimits(r *request, in *limitsInput) (response, error) {
	set, err := s.Limits.Set(r.ctx(), r.caller, in.of(r.id("userId")))
	return okResponse(&set), err
}

func (s *Server) listLimits(r *request, gameID, userID int64) (response, error) {
	q := r.query()
	code := q.text("tokenId")
	if err := q.err(); err != nil {
		return response{}, err
	}
	list, err := s.Limits.Read(r.ctx(), gameID, userID, code)
	return okResponse(&list), err
}

// readUserLimits returns the limits of the token that a write of staff names, as they are before.
func (s *Server) readUserLimits(r *request, u users.User) (response, error) {
	in, ok := r.staffWrite.input.(*limitsInput)
	if !ok || in.TokenID == "" {
		return response{}, apierror.TokenNotFound
	}
	list, err := s.Limits.Read(r.ctx(), u.GameID, u.ID, in.TokenID)
	if err != nil {
		return response{}, err
	}
	return okResponse(&list.Items[0]), nil
}
