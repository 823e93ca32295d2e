package games

import (
	"crypto/subtle"
	"slices"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
)

// Game is one game. What Get answers is shared by all its readers: copy slices before changing them.
type Game struct {
	ID           int64
	Name         string
	Origins      []string // patterns of the pages that may call, see AllowsOrigin
	WelcomeGrant *Grant   // what a new player gets once, or nil
	Settings     Settings
	CreatedAt    time.Time
	Version      int64

	keys []storedKey
}

// Grant is an amount of one token.
type Grant struct {
	TokenID string // the token's short code
	Units   int64  // minor units
}

// Definition is what a new game is made of.
type Definition struct {
	Name         string
	Origins      []string
	WelcomeGrant *Grant
	Settings     SettingsPatch
}

// Patch is a change of a game; what is nil stays as it is.
type Patch struct {
	Version      int64 // the version that the caller read; 0 changes whatever is newest
	Name         *string
	Origins      *[]string
	WelcomeGrant **Grant // a pointer to nil takes the grant away
	Settings     SettingsPatch
}

// ServerKey is a server key without its secret.
type ServerKey struct {
	ID        string    `json:"id"` // names the key in RevokeServerKey; says nothing about the secret
	CreatedAt time.Time `json:"createdAt"`
}

type storedKey struct {
	digest  string // SHA-256 of the key, hexadecimal
	created time.Time
}

// keyIDLength is how much of a key's digest names it.
const keyIDLength = 16

// ServerKeys lists the game's server keys, oldest first.
func (g Game) ServerKeys() []ServerKey {
	list := make([]ServerKey, len(g.keys))
	for i, k := range g.keys {
		list[i] = ServerKey{ID: k.digest[:keyIDLength], CreatedAt: k.created}
	}
	return list
}

// holds compares a key's digest with all of the game's, in a time that does not depend on which one fits.
func (g Game) holds(digest string) bool {
	found := 0
	for _, k := range g.keys {
		found |= subtle.ConstantTimeCompare([]byte(k.digest), []byte(digest))
	}
	return found == 1
}

// Bounds of a definition.
const (
	maxName    = 80 // runes
	maxOrigins = 64
	maxUnits   = 1<<53 - 1
	maxTokenID = 64
)

// checked collects every fault of a definition in one refusal.
type checked struct{ refusal *apierror.Error }

func (c *checked) at(field, code, message string) {
	if c.refusal == nil {
		c.refusal = apierror.InvalidRequest
	}
	c.refusal = c.refusal.WithField(field, code, message)
}

func (c *checked) err() error {
	if c.refusal == nil {
		return nil
	}
	return c.refusal
}

// apply changes a game as a patch says and refuses (invalid_request) what cannot be.
func (g Game) apply(p Patch, rules Options) (Game, error) {
	var c checked
	if p.Name != nil {
		g.Name = checkName(&c, *p.Name)
	}
	if p.Origins != nil {
		g.Origins = checkOrigins(&c, *p.Origins, rules)
	}
	if p.WelcomeGrant != nil {
		g.WelcomeGrant = checkGrant(&c, *p.WelcomeGrant)
	}
	g.Settings = g.Settings.apply(&c, p.Settings, rules)
	return g, c.err()
}

func checkGrant(c *checked, grant *Grant) *Grant {
	if grant == nil {
		return nil
	}
	if grant.TokenID == "" || len(grant.TokenID) > maxTokenID {
		c.at("welcomeGrant.tokenId", "required", "must name a token")
	}
	if grant.Units < 1 || grant.Units > maxUnits {
		c.at("welcomeGrant.amount", "range", "must be more than 0 and at most 2^53-1 minor units")
	}
	copied := *grant
	return &copied
}

// AllowsOrigin tells whether a page from an origin, as a browser spells it in the Origin header, may call in the name
// of this game. "null" (a sandboxed frame, a file) is allowed only when it is listed.
func (g Game) AllowsOrigin(origin string) bool {
	return slices.ContainsFunc(g.Origins, func(pattern string) bool { return matchOrigin(pattern, origin) })
}
