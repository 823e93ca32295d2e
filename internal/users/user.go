package users

import (
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/text"
)

// User is a player with the fields that only the player, their game's server and the operator see.
type User struct {
	Profile
	GameID     int64 // game id
	Kind       Kind
	CreatedAt  time.Time
	GrantGiven bool // the signup grant was given, or the game had none
}

// Kind is the strongest credential by which a player can sign in again.
type Kind = string

// The kinds of players.
const (
	KindGuest    Kind = "guest"    // a refresh token only
	KindDevice   Kind = "device"   // the secret of a device
	KindExternal Kind = "external" // an id that the game's server vouches for
	KindIssuer   Kind = "issuer"   // a token of an external identity provider
)

// PatchInput is a change of a player; a nil field stays as it is.
type PatchInput struct {
	Username *string
	Avatar   **string // a pointer to nil removes the avatar
}

// Identity is a credential of a player, unique within a game.
type Identity struct {
	GameID int64 // game id
	Kind   Kind
	Digest string // keyed digest of the credential, so that the store does not hold the credential
}

// FriendState is the relation to another player, as one player sees it.
type FriendState string

// The states.
const (
	StateFriends  FriendState = "friend"
	StateOutgoing FriendState = "outgoing" // this player sent a request
	StateIncoming FriendState = "incoming" // the other player sent a request
	StateBlocked  FriendState = "blocked"  // this player blocked the other
)

// Friend is another player and the relation to them.
type Friend struct {
	Profile
	State FriendState `json:"state"`
	Since time.Time   `json:"since"`
}

// Bounds of a profile.
const (
	MaxUsernameRunes = 32  // characters (runes)
	MaxAvatarBytes   = 512 // bytes
)

// CheckUsername returns a username without the white space around it. It returns invalid_request
// for a name that is empty or too long, has control or invisible formatting characters, or has no
// visible character.
func CheckUsername(name string) (string, error) {
	name, err := text.CheckLine("username", name, MaxUsernameRunes)
	switch {
	case err != nil:
		return "", err
	case strings.ContainsFunc(name, isForbiddenInName):
		return "", apierror.InvalidRequest.WithField("username", "format", "must be text without control characters")
	case !strings.ContainsFunc(name, unicode.IsGraphic):
		return "", apierror.InvalidRequest.WithField("username", "format", "must have a visible character")
	}
	return name, nil
}

// isForbiddenInName reports whether a character could make one name look like another or break a
// line. The zero-width joiners are allowed, since emoji and several scripts need them.
func isForbiddenInName(r rune) bool {
	const zeroWidthNonJoiner, zeroWidthJoiner = '\u200c', '\u200d'
	if r == zeroWidthJoiner || r == zeroWidthNonJoiner {
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs)
}

// CheckAvatar returns invalid_request unless the avatar is the web address of a picture; nil is no
// avatar.
func CheckAvatar(avatar *string) error {
	if avatar == nil {
		return nil
	}
	u, err := url.Parse(*avatar)
	isWeb := err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil
	if !isWeb || !utf8.ValidString(*avatar) {
		return apierror.InvalidRequest.WithField("avatar", "format", "must be an http or https address")
	}
	if len(*avatar) > MaxAvatarBytes {
		return apierror.InvalidRequest.WithField("avatar", "range", "must have at most 512 bytes")
	}
	return nil
}

// validate returns the patch as it is stored, or invalid_request with every faulty field.
func (p PatchInput) validate() (PatchInput, error) {
	var errs apierror.FieldErrors
	if p.Username != nil {
		name, err := CheckUsername(*p.Username)
		errs.Merge(err)
		p.Username = &name
	}
	if p.Avatar != nil {
		errs.Merge(CheckAvatar(*p.Avatar))
	}
	if err := errs.Err(); err != nil {
		return PatchInput{}, err
	}
	return p, nil
}
