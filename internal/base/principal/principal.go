// Package principal identifies who makes a call, and in which role. Every function of a domain that
// changes something takes a Caller and authorizes the call by it.
package principal

import (
	"slices"
	"strconv"

	"github.com/parlor-games/parlor/internal/base/apierror"
)

// Role is the kind of caller.
type Role string

// All roles.
const (
	Player   Role = "player"   // a person, in the one game that the access token names
	Server   Role = "server"   // the backend of one game, authenticated by its server key
	Operator Role = "operator" // the operator of the installation, authenticated by the admin key
	System   Role = "system"   // Parlor itself: it grants at sign-up, and ends rooms whose time is over
)

// Caller is the authenticated principal of a request. The zero Caller is nobody and may do nothing.
type Caller struct {
	Role   Role
	UserID int64 // user id of a player, else 0
	GameID int64 // game id in which a player or server acts; 0 for operator and system
	KeyID  int   // place, from 1, of the operator's key in the setting admin-key; 0 for all other roles

	ServerKeyID string // id of the server key that a server showed, as games.ServerKeyInfo has it, else ""
}

// ActorID returns a short name for receipts and rate limits: "u7" for user 7, "g3" for the server
// of game 3, "op" for the operator, "" for everybody else.
func (c Caller) ActorID() string {
	switch c.Role {
	case Player:
		return "u" + strconv.FormatInt(c.UserID, 10)
	case Server:
		return "g" + strconv.FormatInt(c.GameID, 10)
	case Operator:
		return "op"
	default:
		return ""
	}
}

// HasRole reports whether the caller has one of the roles.
func (c Caller) HasRole(roles ...Role) bool { return slices.Contains(roles, c.Role) }

// CanAccessGame reports whether the caller may act on what belongs to the game. The operator may
// for every game, players and servers for their own.
func (c Caller) CanAccessGame(gameID int64) bool { return c.Role == Operator || c.GameID == gameID }

// Authorize returns nil if the caller has one of the roles and may act in the game. Otherwise it
// returns forbidden or game_not_found.
func (c Caller) Authorize(gameID int64, roles ...Role) error {
	switch {
	case !c.HasRole(roles...):
		return apierror.Forbidden
	case !c.CanAccessGame(gameID):
		return apierror.GameNotFound
	}
	return nil
}

// AuthorizeStaff is Authorize for all roles but players, who must not manage things.
func (c Caller) AuthorizeStaff(gameID int64, things string) error {
	if c.Role == Player {
		return apierror.Forbidden.WithReason("only an operator or the game's server can manage %s", things)
	}
	return c.Authorize(gameID, Server, Operator)
}
