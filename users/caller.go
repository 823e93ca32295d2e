package users

import "strconv"

// Role says what kind of caller a request has.
type Role string

// The roles of contract 3.
const (
	Player   Role = "player"   // a person, in the one game that the access token names
	Server   Role = "server"   // the backend of one game, by its server key
	Operator Role = "operator" // who runs Parlor, by the admin key
)

// Caller is who is calling.
type Caller struct {
	Role Role
	User int64 // the player, or 0
	Game int64 // the game in which the player or server acts; 0 for the operator
}

// Who names the caller in receipts and limits: "u7", "g3", "op".
func (c Caller) Who() string {
	switch c.Role {
	case Player:
		return "u" + strconv.FormatInt(c.User, 10)
	case Server:
		return "g" + strconv.FormatInt(c.Game, 10)
	default:
		return "op"
	}
}

// May tells whether the caller may act on what belongs to a game: the operator on every one, others on their own.
func (c Caller) May(game int64) bool { return c.Role == Operator || c.Game == game }

// Profile is the part of a player that others see; the User object of the wire.
type Profile struct {
	ID       int64   `json:"id"`
	Username string  `json:"username"`
	Avatar   *string `json:"avatar"` // null when no avatar is set
}
