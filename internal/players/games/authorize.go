package games

import (
	"context"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
)

// Finder finds games. *Service implements it.
type Finder interface {
	Find(ctx context.Context, id int64) (Game, error)
}

// AuthorizeRead returns nil when the caller may see what belongs to a game, and else forbidden or
// game_not_found.
func AuthorizeRead(ctx context.Context, finder Finder, caller principal.Caller, gameID int64) error {
	err := caller.Authorize(gameID, principal.Player, principal.Server, principal.Operator)
	return errOfGame(ctx, finder, caller, gameID, err)
}

// AuthorizeStaff is AuthorizeRead for those who manage things, which the error of a player names.
func AuthorizeStaff(ctx context.Context, finder Finder, caller principal.Caller, gameID int64, things string) error {
	return errOfGame(ctx, finder, caller, gameID, caller.AuthorizeStaff(gameID, things))
}

// errOfGame returns err, or game_not_found when the operator names a game that does not exist.
func errOfGame(ctx context.Context, finder Finder, caller principal.Caller, gameID int64, err error) error {
	if err == nil && caller.Role == principal.Operator {
		_, err = finder.Find(ctx, gameID)
	}
	return err
}

// CheckStakeAge returns forbidden if the player's account is younger than the game requires for
// stakes. things names the kind of stake in the error. It costs no round trip in a game without
// this rule.
func CheckStakeAge(
	ctx context.Context, finder Finder, createdAt func(ctx context.Context, userID int64) (time.Time, error),
	caller principal.Caller, things string,
) error {
	game, err := finder.Find(ctx, caller.GameID)
	if err != nil || game.Settings.MinStakeAge == 0 {
		return err
	}
	since, err := createdAt(ctx, caller.UserID)
	if err != nil {
		return err
	}
	if mayFrom := since.Add(game.Settings.MinStakeAge); time.Now().Before(mayFrom) {
		return apierror.Forbidden.WithReason("the account is too new for %s", things).WithMember("allowedAt", mayFrom)
	}
	return nil
}
