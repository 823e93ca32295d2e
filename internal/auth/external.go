package auth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/games"
	"github.com/parlor-games/parlor/internal/principal"
	"github.com/parlor-games/parlor/internal/users"
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
func (c externalClaims) newUser() users.ProfileInput {
	var n users.ProfileInput
	for _, name := range []string{c.PreferredUsername, c.Name} {
		if checked, err := users.CheckUsername(name); err == nil && n.Username == nil {
			n.Username = &checked
		}
	}
	if users.CheckAvatar(&c.Picture) == nil {
		n.Avatar = &c.Picture
	}
	return n
}

// signInExternal returns the player of an external issuer's token, and makes the player at
// the first sign-in.
func (s *Service) signInExternal(ctx context.Context, bearer string) (Authentication, error) {
	claims, game, err := s.verifyExternal(ctx, bearer)
	if err != nil {
		return Authentication{}, err
	}
	user, err := s.signIn(ctx, game.ID, users.KindIssuer, claims.credential(), claims.newUser())
	if err != nil {
		return Authentication{}, err
	}
	if _, err := s.giveSignupGrant(ctx, game, user); err != nil {
		return Authentication{}, err
	}
	return Authentication{
		Caller:    principal.Caller{Role: principal.Player, UserID: user.ID, GameID: game.ID},
		ExpiresAt: claims.ExpiresAt.Add(externalClockLeeway),
	}, nil
}

// verifyExternal returns the claims of an external issuer's token and the game that accepts its
// issuer and audience. The game's settings define where the keys are. The header of the token
// only names one of them.
func (s *Service) verifyExternal(ctx context.Context, bearer string) (externalClaims, games.Game, error) {
	if len(bearer) > maxBearerBytes {
		return externalClaims{}, games.Game{}, apierror.Unauthenticated
	}
	var unverified jwt.RegisteredClaims
	token, _, err := jwt.NewParser().ParseUnverified(bearer, &unverified)
	if err != nil || unverified.Issuer == "" || len(unverified.Audience) > maxAudiences || isCritical(token) {
		return externalClaims{}, games.Game{}, apierror.Unauthenticated
	}
	for _, audience := range unverified.Audience {
		game, issuer, err := s.games.FindByIssuer(ctx, unverified.Issuer, audience)
		if errors.Is(err, apierror.Unauthenticated) {
			continue
		}
		if err != nil {
			return externalClaims{}, games.Game{}, err
		}
		claims, err := s.verifyByIssuer(ctx, token, issuer)
		return claims, game, err
	}
	return externalClaims{}, games.Game{}, apierror.Unauthenticated
}

// verifyByIssuer verifies a token with the keys of its issuer.
func (s *Service) verifyByIssuer(ctx context.Context, token *jwt.Token, issuer games.Issuer) (externalClaims, error) {
	kid, _ := token.Header["kid"].(string)
	key, err := s.keySets.find(ctx, issuer, kid, s.now())
	if err != nil {
		return externalClaims{}, err
	}
	var claims externalClaims
	parser := jwt.NewParser(
		jwt.WithValidMethods(externalAlgorithms),
		jwt.WithIssuer(issuer.Issuer), jwt.WithAudience(issuer.Audience), jwt.WithExpirationRequired(),
		jwt.WithLeeway(externalClockLeeway), jwt.WithTimeFunc(s.now),
	)
	if _, err := parser.ParseWithClaims(token.Raw, &claims, keyOfAlgorithm(key)); err != nil {
		return externalClaims{}, classifyTokenError(err)
	}
	if claims.Subject == "" || len(claims.Subject) > maxSubjectBytes {
		return externalClaims{}, apierror.Unauthenticated
	}
	return claims, nil
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
