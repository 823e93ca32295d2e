package users

import (
	"strconv"

	"github.com/parlor-games/parlor/internal/base/wire"
)

// Profile is the part of a player that others see; the User object of the wire.
type Profile struct {
	ID       int64   `json:"id"`
	Username string  `json:"username"` // 1 to MaxUsername characters
	Avatar   *string `json:"avatar"`   // https address, null when no avatar is set
}

// AppendProfile appends a profile as wire.Marshal returns it: every seat that is taken stores one.
// It is no method AppendJSON, which whatever embeds a profile would have too.
func AppendProfile(b []byte, p Profile) []byte {
	b = strconv.AppendInt(append(b, `{"id":`...), p.ID, 10)
	b = wire.AppendString(append(b, `,"username":`...), p.Username)
	b = append(b, `,"avatar":`...)
	if p.Avatar == nil {
		return append(b, "null}"...)
	}
	return append(wire.AppendString(b, *p.Avatar), '}')
}
