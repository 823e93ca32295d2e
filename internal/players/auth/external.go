package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/secret"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/players/sessions"
	"github.com/parlor-games/parlor/internal/players/users"
)

const (
	externalClockLeeway = 30 * time.Second // between an issuer's clock and ours
	externalCacheTTL    = time.Minute      // so that a key or issuer that was removed is refused soon
	maxAudiences        = 8
	maxSubjectBytes     = 255
)

// externalClaims are the claims of an external issuer's token that are used here.
type externalClaims struct {
	jwt.RegisteredClaims
	Name              string `json:"name"`
	PreferredUsername string `json:"preferred_username"`
	Picture           string `json:"picture"`
}

// credential identifies the player at the issuer.
func (c externalClaims) credential() string { return c.Issuer + "\x00" + c.Subject }

// newUser returns the profile at the issuer, as far as usernames and avatars here may be like that.
func (c externalClaims) newUser(avatarHosts []string) users.ProfileInput {
	var n users.ProfileInput
	for _, name := range []string{c.PreferredUsername, c.Name} {
		if checked, err := users.CheckChosenUsername(name); err == nil && n.Username == nil {
			n.Username = &checked
		}
	}
	if users.CheckAvatar(&c.Picture, avatarHosts) == nil {
		n.Avatar = &c.Picture
	}
	return n
}

// signInExternal returns the player of an external issuer's token, and makes the player at
// the first sign-in.
func (s *Service) signInExternal(
	ctx context.Context, bearer string, digest [sha256.Size]byte,
) (Authentication, error) {
	accepted := s.sessions.AcceptedEpoch() // before the player is looked up
	claims, proof, game, err := s.verifyExternal(ctx, bearer)
	if err != nil {
		return Authentication{}, err
	}
	startedAt, expiresAt, err := s.lifetime(ctx, claims, digest)
	if err != nil {
		return Authentication{}, err
	}
	profile := claims.newUser(game.Settings.AvatarHosts)
	user, _, err := s.signIn(ctx, game.ID, users.KindIssuer, claims.credential(), profile)
	if errors.Is(err, apierror.LimitReached) { // any operation may be the first of a player
		err = apierror.RateLimited.WithReason("the game takes no more new players today")
	}
	if err != nil {
		return Authentication{}, err
	}
	if _, err := s.giveSignupGrant(ctx, game, user); err != nil {
		return Authentication{}, err
	}
	return Authentication{
		Caller:    principal.Caller{Role: principal.Player, UserID: user.ID, GameID: game.ID},
		ExpiresAt: expiresAt,
		Session: sessions.Session{
			UserID: user.ID, GameID: game.ID, StartedAt: startedAt, Issuer: claims.Issuer, AcceptedEpoch: accepted,
		},
		external: &proof,
	}, nil
}

// maxFirstUseTTL bounds how long the first use of a token is remembered, whatever its expiry.
const maxFirstUseTTL = 10 * 365 * 24 * time.Hour

// lifetime returns when the session of a token began and when it ends. However long the issuer lets
// a token live, it counts for sessions.MaxTokenAge from its issue, or from its first use when it
// does not say when it was issued. The issuer's clock does not make a session begin after its use.
func (s *Service) lifetime(
	ctx context.Context, claims externalClaims, digest [sha256.Size]byte,
) (startedAt, expiresAt time.Time, err error) {
	now := s.now()
	expiresAt = claims.ExpiresAt.Add(externalClockLeeway)
	if claims.IssuedAt != nil {
		expiresAt = earlier(expiresAt, claims.IssuedAt.Add(sessions.MaxTokenAge))
	}
	if !now.Before(expiresAt) {
		return startedAt, expiresAt, apierror.AccessTokenExpired
	}
	ttl := min(max(expiresAt.Sub(now), time.Minute), maxFirstUseTTL)
	startedAt, err = s.store.firstUse(ctx, hex.EncodeToString(digest[:]), ttl)
	if err != nil {
		return startedAt, expiresAt, err
	}
	if claims.IssuedAt != nil {
		return earlier(startedAt, claims.IssuedAt.Time), expiresAt, nil
	}
	expiresAt = earlier(expiresAt, startedAt.Add(sessions.MaxTokenAge))
	if !now.Before(expiresAt) {
		return startedAt, expiresAt, apierror.AccessTokenExpired
	}
	return startedAt, expiresAt, nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// externalProof names the issuer and key that verified a token of an outside issuer. With it the
// session can be checked later without the token: the issuer must still have the key.
type externalProof struct {
	Issuer    string `json:"issuer"`
	Audience  string `json:"audience"`
	KeyID     string `json:"kid,omitzero"` // as the token names it
	KeyDigest string `json:"key"`          // SHA-256 of the public key
}

func digestOfKey(key jwkset.JWK) string {
	public := key.Marshal()
	return secret.Digest(strings.Join([]string{string(public.KTY), public.X, public.Y, public.N, public.E}, "\x00"))
}

// verifyProof returns unauthenticated when the game no longer accepts an issuer, or the issuer no
// longer has the key.
func (s *Service) verifyProof(ctx context.Context, gameID int64, proof externalProof) error {
	game, issuer, err := s.games.FindByIssuer(ctx, proof.Issuer, proof.Audience)
	if err != nil {
		return err
	}
	key, err := s.keySets.find(ctx, issuer, proof.KeyID, s.now())
	if err == nil && (game.ID != gameID || digestOfKey(key) != proof.KeyDigest) {
		err = apierror.Unauthenticated
	}
	return err
}

// verifyExternal returns the claims of an external issuer's token and the game that accepts its
// issuer and audience. The game's settings define where the keys are. The header of the token
// only names one of them.
func (s *Service) verifyExternal(
	ctx context.Context, bearer string,
) (claims externalClaims, proof externalProof, game games.Game, err error) {
	if len(bearer) > maxBearerBytes {
		return claims, proof, game, apierror.Unauthenticated
	}
	var unverified jwt.RegisteredClaims
	token, _, err := jwt.NewParser().ParseUnverified(bearer, &unverified)
	if err != nil || unverified.Issuer == "" || len(unverified.Audience) > maxAudiences || isCritical(token) {
		return claims, proof, game, apierror.Unauthenticated
	}
	for _, audience := range unverified.Audience {
		game, issuer, err := s.games.FindByIssuer(ctx, unverified.Issuer, audience)
		if errors.Is(err, apierror.Unauthenticated) {
			continue
		}
		if err != nil {
			return claims, proof, game, err
		}
		claims, proof, err := s.verifyByIssuer(ctx, token, issuer)
		return claims, proof, game, err
	}
	return claims, proof, game, apierror.Unauthenticated
}

// verifyByIssuer verifies a token with the keys of its issuer.
func (s *Service) verifyByIssuer(
	ctx context.Context, token *jwt.Token, issuer games.Issuer,
) (claims externalClaims, proof externalProof, err error) {
	kid, _ := token.Header["kid"].(string)
	key, err := s.keySets.find(ctx, issuer, kid, s.now())
	if err != nil {
		return claims, proof, err
	}
	parser := jwt.NewParser(
		jwt.WithValidMethods(externalAlgorithms),
		jwt.WithIssuer(issuer.Issuer), jwt.WithAudience(issuer.Audience), jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(), jwt.WithLeeway(externalClockLeeway), jwt.WithTimeFunc(s.now),
	)
	if _, err := parser.ParseWithClaims(token.Raw, &claims, keyOfAlgorithm(key)); err != nil {
		return externalClaims{}, proof, classifyTokenError(err)
	}
	if claims.Subject == "" || len(claims.Subject) > maxSubjectBytes {
		return externalClaims{}, proof, apierror.Unauthenticated
	}
	return claims, externalProof{issuer.Issuer, issuer.Audience, kid, digestOfKey(key)}, nil
}

// keyOfAlgorithm returns a function that gives the parser a key, for tokens of the key's algorithm
// alone.
func keyOfAlgorithm(key jwkset.JWK) jwt.Keyfunc {
	return func(token *jwt.Token) (any, error) {
		if algorithm := key.Marshal().ALG.String(); token.Method.Alg() != algorithm {
			return nil, fmt.Errorf("the key is for %s", algorithm)
		}
		return key.Key(), nil
	}
}
