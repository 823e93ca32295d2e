package games

import (
	"crypto/subtle"
	"slices"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/text"
	"github.com/parlor-games/parlor/internal/base/wire"
)

// Game is one game. All readers share what the service returns: copy slices before changing them.
type Game struct {
	ID          int64
	Name        string
	Origins     []string     // patterns of the origins whose pages may call, see AllowsOrigin
	SignupGrant *SignupGrant // what a new player gets once, or nil
	Settings    Settings
	CreatedAt   time.Time
	Version     int64 // rises by one with every change, from 1

	ActiveWebhooks int // webhooks that get its events; SetActiveWebhooks sets it

	serverKeys []storedKey // oldest first
}

// HasFeed reports whether the events of rooms and tournaments that are made now go to the feed of
// the game.
func (g Game) HasFeed() bool { return g.Settings.Feed || g.ActiveWebhooks > 0 }

// SignupGrant is an amount of one token.
type SignupGrant struct {
	TokenCode string   `json:"TokenID"`      // the token's short code
	Units     int64    `json:"Units"`        // minor units, at least 1
	For       GrantFor `json:"For,omitzero"` // who gets it; "" stands for GrantForLinked
}

// GrantFor is which players get a signup grant.
type GrantFor string

// Anybody can make as many guests as they like, so what every guest gets has no value.
const (
	GrantForLinked GrantFor = "linked" // those for whom the game's server or an issuer vouches
	GrantForAny    GrantFor = "any"    // guests too
)

// SignupGrantInput is a grant as a request states it.
type SignupGrantInput struct {
	TokenCode     string   // the token's short code
	DecimalAmount string   // decimal text in the token's own unit: "2.5"
	For           GrantFor // "" stands for GrantForLinked
}

// Definition is the input of Create.
type Definition struct {
	Name        string
	Origins     []string
	SignupGrant *SignupGrantInput // nil: none
	Settings    SettingsPatch
}

// PatchInput is a change of a game; an absent field stays as it is.
type PatchInput struct {
	Version     int64 // the version that the caller read; 0 changes whichever is newest
	Name        *string
	Origins     *[]string
	SignupGrant wire.Nullable[SignupGrantInput]
	Settings    SettingsPatch
}

// ServerKeyInfo is a server key without its secret.
type ServerKeyInfo struct {
	ID        string    `json:"id"` // names the key in RevokeServerKey; tells nothing about the secret
	CreatedAt time.Time `json:"createdAt"`
}

type storedKey struct {
	digest    string // SHA-256 of the key, hexadecimal
	createdAt time.Time
}

// keyIDLength is how many characters of a key's digest are its id.
const keyIDLength = 16

func (k storedKey) id() string { return k.digest[:keyIDLength] }

// ServerKeys returns the game's server keys, oldest first.
func (g Game) ServerKeys() []ServerKeyInfo {
	list := make([]ServerKeyInfo, len(g.serverKeys))
	for i, k := range g.serverKeys {
		list[i] = ServerKeyInfo{ID: k.id(), CreatedAt: k.createdAt}
	}
	return list
}

// hasServerKey reports whether a digest is that of one of the game's keys, in a time that does not
// depend on which one.
func (g Game) hasServerKey(digest string) bool {
	found := 0
	for _, k := range g.serverKeys {
		found |= subtle.ConstantTimeCompare([]byte(k.digest), []byte(digest))
	}
	return found == 1
}

// Bounds of a definition.
const (
	maxNameRunes = 80 // characters (runes)
	maxOrigins   = 64
)

// withPatch returns the game with a patch, without its grant, or invalid_request with every faulty
// field.
func (g Game) withPatch(p PatchInput, o Options) (Game, error) {
	var errs apierror.FieldErrors
	if p.Name != nil {
		name, err := text.CheckLine("name", *p.Name, maxNameRunes)
		errs.Merge(err)
		g.Name = name
	}
	if p.Origins != nil {
		g.Origins = normalizeOrigins(&errs, *p.Origins, o.AllowAnyOrigin)
	}
	p.Settings.check(&errs, g.Settings, o)
	g.Settings = g.Settings.merge(p.Settings)
	return g, errs.Err()
}

// AllowsOrigin reports whether a page of an origin, as a browser spells it in the Origin header,
// may call on behalf of this game. "null" (a sandboxed frame, a file) is allowed only when it is
// listed.
func (g Game) AllowsOrigin(origin string) bool {
	return slices.ContainsFunc(g.Origins, func(pattern string) bool { return matchOrigin(pattern, origin) })
}
