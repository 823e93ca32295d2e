package users

// Profile is the part of a player that others see; the User object of the wire.
type Profile struct {
	ID       int64   `json:"id"`
	Username string  `json:"username"` // 1 to MaxUsername characters
	Avatar   *string `json:"avatar"`   // https address, null when no avatar is set
}
