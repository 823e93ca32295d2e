package users

import (
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/parlor-games/parlor/internal/apierror"
)

// User is a player as the service knows it.
type User struct {
	Profile
	Game       int64
	Kind       Kind
	CreatedAt  time.Time
	GrantGiven bool // the welcome is settled: the grant of the game, if it has one, was given
}

// Kind says what a player can come back by.
type Kind = string

// The kinds of players.
const (
	Guest    Kind = "guest"    // by a refresh token alone
	Device   Kind = "device"   // by the secret of a device
	External Kind = "external" // by the word of the game's server
	Issuer   Kind = "issuer"   // by an outside identity provider
)

// Patch is a change of a player; what is nil stays as it is.
type Patch struct {
	Username *string
	Avatar   **string // a pointer to nil takes the avatar away
}

// Identity is something that somebody proved, within a game.
type Identity struct {
	Game   int64
	Kind   Kind
	Digest string // keyed digest of what was proved, so that the store does not hold it
}

// FriendState is what another player is to me.
type FriendState string

// The states.
const (
	Friends  FriendState = "friend"
	Outgoing FriendState = "outgoing" // I asked
	Incoming FriendState = "incoming" // the other asked
	Blocked  FriendState = "blocked"  // by me
)

// Friend is another player and what it is to me.
type Friend struct {
	Profile
	State FriendState `json:"state"`
	Since time.Time   `json:"since"`
}

// Bounds of a profile.
const (
	MaxUsername = 32  // runes
	MaxAvatar   = 512 // bytes
)

// CheckUsername trims a name and refuses (invalid_request) what others should not have to see: nothing, too much,
// control and invisible formatting characters.
func CheckUsername(name string) (string, error) {
	name = strings.TrimSpace(name)
	switch n := utf8.RuneCountInString(name); {
	case n == 0:
		return "", apierror.InvalidRequest.WithField("username", "required", "must not be empty")
	case n > MaxUsername:
		return "", apierror.InvalidRequest.WithField("username", "range", "must have at most 32 characters")
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unseen):
		return "", apierror.InvalidRequest.WithField("username", "format", "must be text without control characters")
	case !strings.ContainsFunc(name, unicode.IsGraphic):
		return "", apierror.InvalidRequest.WithField("username", "format", "must have a visible character")
	}
	return name, nil
}

// unseen finds characters that would let one name look like another or break a line. The zero-width joiner stays, since
// emoji and several scripts need it.
func unseen(r rune) bool {
	const zeroWidthNonJoiner, zeroWidthJoiner = '\u200c', '\u200d'
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs) && r != zeroWidthJoiner && r != zeroWidthNonJoiner
}

// CheckAvatar refuses (invalid_request) what is not the address of a picture on the web; nil is no avatar.
func CheckAvatar(avatar *string) (*string, error) {
	if avatar == nil {
		return nil, nil
	}
	u, err := url.Parse(*avatar)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || !utf8.ValidString(*avatar) {
		return nil, apierror.InvalidRequest.WithField("avatar", "format", "must be an http or https address")
	}
	if len(*avatar) > MaxAvatar {
		return nil, apierror.InvalidRequest.WithField("avatar", "range", "must have at most 512 bytes")
	}
	return avatar, nil
}

// check brings a patch into the form in which it is stored and refuses it with every faulty field.
func (p Patch) check() (Patch, error) {
	var refusal *apierror.Error
	collect := func(err error) {
		one, ok := apierror.As(err)
		switch {
		case !ok:
		case refusal == nil:
			refusal = one
		default:
			refusal = refusal.WithField(one.FieldErrors[0].Field, one.FieldErrors[0].Code, one.FieldErrors[0].Message)
		}
	}
	if p.Username != nil {
		name, err := CheckUsername(*p.Username)
		collect(err)
		p.Username = &name
	}
	if p.Avatar != nil {
		_, err := CheckAvatar(*p.Avatar)
		collect(err)
	}
	if refusal != nil {
		return Patch{}, refusal
	}
	return p, nil
}
