package users

import (
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
)

// User is a player with the fields that only the player, their game's server and the operator see.
type User struct {
	Profile
	GameID     int64 // game id
	Kind       Kind
	CreatedAt  time.Time
	GrantGiven bool // the signup grant was given, or the game had none

	Suspension *Suspension // the last one, or nil; see Suspended
}

// Suspension keeps a player out.
type Suspension struct {
	Reason string    // for operators
	Until  time.Time // zero: until it is lifted
}

// Suspended returns the suspension of a player that holds at a time, or nil.
func (u User) Suspended(now time.Time) *Suspension {
	if s := u.Suspension; s != nil && (s.Until.IsZero() || now.Before(s.Until)) {
		return s
	}
	return nil
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

// IsVouchedFor reports whether the game's server or an issuer vouches for a player of a kind.
// Guests and devices cost nothing to make.
func IsVouchedFor(kind Kind) bool { return kind == KindExternal || kind == KindIssuer }

// PatchInput is a change of a player; an absent member stays as it is.
type PatchInput struct {
	Username *string               `json:"username"`
	Avatar   wire.Nullable[string] `json:"avatar,omitzero"`
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

// validate returns the patch as it is stored, or invalid_request with every faulty field.
func (p PatchInput) validate(
	checkUsername func(string) (string, error), avatarHosts []string,
) (PatchInput, error) {
	var errs apierror.FieldErrors
	if p.Username != nil {
		name, err := checkUsername(*p.Username)
		errs.Merge(err)
		p.Username = &name
	}
	if p.Avatar.IsGiven {
		errs.Merge(CheckAvatar(p.Avatar.Value, avatarHosts))
	}
	if err := errs.Err(); err != nil {
		return PatchInput{}, err
	}
	return p, nil
}
