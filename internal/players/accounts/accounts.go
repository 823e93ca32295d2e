// Package accounts takes a player out of every domain: it ends sessions, suspends, and deletes a
// player with the saves, friends, identities and entries of leaderboards. Under an id that nobody
// has any more stay the wallet, the inventory and the ledger, because money keeps its history, and
// the rooms and tournaments in which the player took part.
package accounts

import (
	"context"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/players/auth"
	"github.com/parlor-games/parlor/internal/players/progress"
	"github.com/parlor-games/parlor/internal/players/sessions"
	"github.com/parlor-games/parlor/internal/players/users"
)

// Wallet knows the money of a player. *wallet.Service implements it.
type Wallet interface {
	// CheckNothingHeld returns money_held while a stake of the player is held in the game.
	CheckNothingHeld(ctx context.Context, gameID, userID int64) error
}

// Leaderboards know the entries of a player. *leaderboards.Service implements it.
type Leaderboards interface {
	DeletePlayer(ctx context.Context, caller principal.Caller) error
}

// Deps are the domains that know something of a player. All are required.
type Deps struct {
	Users    *users.Service
	Wallet   Wallet
	Progress *progress.Service
	Auth     *auth.Service
	Boards   Leaderboards
}

// Service deletes accounts. It is safe for concurrent use.
type Service struct{ deps Deps }

// New returns a service.
func New(deps Deps) *Service { return &Service{deps} }

// Suspend keeps a player out until a time, the zero time for ever: no sign-in, every call of the
// player is account_suspended on every node within two seconds, and sockets are closed with 4403.
// Rooms, tournaments, stakes and refresh tokens stay. It is for the operator. Repeating it replaces
// reason and time. It returns forbidden, user_not_found and invalid_request.
func (s *Service) Suspend(
	ctx context.Context, caller principal.Caller, userID int64, suspension users.Suspension,
) (users.User, error) {
	u, err := s.deps.Users.SetSuspension(ctx, caller, userID, &suspension)
	if err != nil {
		return users.User{}, err
	}
	return u, s.deps.Auth.SuspendUser(ctx, userID, suspension.Until)
}

// Unsuspend lifts a suspension; without one it changes nothing. It is for the operator. It returns
// forbidden and user_not_found.
func (s *Service) Unsuspend(ctx context.Context, caller principal.Caller, userID int64) (users.User, error) {
	u, err := s.deps.Users.SetSuspension(ctx, caller, userID, nil)
	if err != nil {
		return users.User{}, err
	}
	return u, s.deps.Auth.UnsuspendUser(ctx, userID)
}

// EndSessions ends every session of a player, who may sign in again. It is for the operator. It
// returns forbidden and user_not_found.
func (s *Service) EndSessions(ctx context.Context, caller principal.Caller, userID int64) error {
	if caller.Role != principal.Operator {
		return apierror.Forbidden
	}
	return s.deps.Auth.EndUserSessions(ctx, userID, sessions.CloseEnded)
}

// Delete deletes the calling player: saves, entries of leaderboards, friends on both sides,
// identities and devices, the profile and refresh tokens. Then it ends the player's sessions. A
// call that failed halfway is completed by the next one, since the sessions end last. It returns
// forbidden, and money_held while a stake of the player is in a room or a tournament that has not
// ended.
//
// An identity that others vouch for is remembered for a year with the fact that it had its signup
// grant: else one person could take the grants of a day.
//
// A stake that is taken while Delete runs stays where it is, and what it wins goes to a wallet that
// nobody can use. So does a prize that is paid later.
func (s *Service) Delete(ctx context.Context, caller principal.Caller) error {
	if caller.Role != principal.Player {
		return apierror.Forbidden
	}
	if err := s.deps.Wallet.CheckNothingHeld(ctx, caller.GameID, caller.UserID); err != nil {
		return err
	}
	if err := s.deps.Progress.DeleteAll(ctx, caller); err != nil {
		return err
	}
	if err := s.deps.Boards.DeletePlayer(ctx, caller); err != nil {
		return err
	}
	if err := s.deps.Users.Delete(ctx, caller); err != nil {
		return err
	}
	return s.deps.Auth.EndDeletedUserSessions(ctx, caller.UserID)
}
