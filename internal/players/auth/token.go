package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/cache"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/players/sessions"
)

// OwnIssuer is the "iss" claim of Parlor's own tokens; no external provider can have it.
const OwnIssuer = "parlor"

// signer signs and verifies access tokens with a list of keys: the first signs, all verify.
type signer struct {
	kid      string            // of the key that signs
	keysByID map[string][]byte // by kid
}

// kidBytes is the number of bytes of a key's digest that make its id.
const kidBytes = 6

func newSigner(signingKeys [][]byte) *signer {
	s := &signer{keysByID: map[string][]byte{}}
	for _, key := range signingKeys {
		if len(key) < MinKeyBytes {
			panic(fmt.Sprintf("auth: a signing key has %d bytes, fewer than %d", len(key), MinKeyBytes))
		}
		sum := sha256.Sum256(append([]byte("parlor signing key id\x00"), key...))
		kid := hex.EncodeToString(sum[:kidBytes])
		s.keysByID[kid] = key
		if s.kid == "" {
			s.kid = kid
		}
	}
	if s.kid == "" {
		panic("auth: there is no signing key")
	}
	return s
}

// accessClaims are the claims of our own tokens.
type accessClaims struct {
	jwt.RegisteredClaims
	Family      string `json:"sid,omitempty"` // family of refresh tokens
	StartedAtMS int64  `json:"sat,omitempty"` // when the session began, ms since 1970 by the store's clock
	ServerKeyID string `json:"srv,omitempty"` // the server key that made the session

	AcceptedEpoch int64 `json:"epo,omitempty"` // of the store, when the token was made
}

// audiencePrefix precedes the id of a game in the "aud" claim.
const audiencePrefix = "game:"

func (s *signer) sign(session sessions.Session, now time.Time, ttl time.Duration) (string, error) {
	// The claim has whole seconds: rounded up, so that a token never lives shorter than promised.
	expires := now.Add(ttl + time.Second - 1)
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, accessClaims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer:    OwnIssuer,
			Subject:   strconv.FormatInt(session.UserID, 10),
			Audience:  jwt.ClaimStrings{audiencePrefix + strconv.FormatInt(session.GameID, 10)},
			IssuedAt:  jwt.NewNumericDate(now),
			ExpiresAt: jwt.NewNumericDate(expires),
		},
		Family: session.Family, StartedAtMS: session.StartedAt.UnixMilli(), ServerKeyID: session.ServerKeyID,
		AcceptedEpoch: session.AcceptedEpoch,
	})
	token.Header["kid"] = s.kid
	text, err := token.SignedString(s.keysByID[s.kid])
	if err != nil {
		return "", fmt.Errorf("sign an access token: %w", err)
	}
	return text, nil
}

// verify returns the player of an access token. Nothing in the token chooses how it is verified:
// the algorithm is HS256, the key one of ours.
func (s *signer) verify(bearer string, now time.Time) (Authentication, error) {
	var claims accessClaims
	var signedBy string
	parser := jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithIssuer(OwnIssuer), jwt.WithExpirationRequired(), jwt.WithTimeFunc(func() time.Time { return now }),
	)
	_, err := parser.ParseWithClaims(bearer, &claims, func(token *jwt.Token) (any, error) {
		kid, _ := token.Header["kid"].(string)
		key, ok := s.keysByID[kid]
		if !ok || isCritical(token) {
			return nil, errUnknownKey
		}
		signedBy = kid
		return key, nil
	})
	if err != nil {
		return Authentication{}, classifyTokenError(err)
	}
	user, userErr := strconv.ParseInt(claims.Subject, 10, 64)
	if len(claims.Audience) != 1 {
		return Authentication{}, apierror.Unauthenticated
	}
	number, hasPrefix := strings.CutPrefix(claims.Audience[0], audiencePrefix)
	game, gameErr := strconv.ParseInt(number, 10, 64)
	if userErr != nil || gameErr != nil || !hasPrefix || user <= 0 || game <= 0 {
		return Authentication{}, apierror.Unauthenticated
	}
	return Authentication{
		Caller:    principal.Caller{Role: principal.Player, UserID: user, GameID: game},
		ExpiresAt: claims.ExpiresAt.Time,
		Session: sessions.Session{
			UserID: user, GameID: game, Family: claims.Family, StartedAt: time.UnixMilli(claims.StartedAtMS),
			ServerKeyID: claims.ServerKeyID, AcceptedEpoch: claims.AcceptedEpoch,
		},
		signingKeyID: signedBy,
	}, nil
}

var errUnknownKey = errors.New("the token names no key that is known")

// isCritical reports whether a token names extensions that its verifier must understand, in the
// header "crit" (RFC 7515, 4.1.11). This package understands none: its callers refuse such a
// token.
func isCritical(token *jwt.Token) bool {
	_, ok := token.Header["crit"]
	return ok
}

// classifyTokenError returns token_expired for a token about which all else is right, and
// unauthenticated otherwise.
func classifyTokenError(err error) error {
	if errors.Is(err, jwt.ErrTokenExpired) &&
		!errors.Is(err, jwt.ErrTokenInvalidIssuer) && !errors.Is(err, jwt.ErrTokenInvalidAudience) {
		return apierror.AccessTokenExpired
	}
	return apierror.Unauthenticated
}

// unverifiedIssuer returns the issuer that a token claims: it only chooses who verifies the token.
func unverifiedIssuer(bearer string) string {
	var claims jwt.RegisteredClaims
	if _, _, err := jwt.NewParser().ParseUnverified(bearer, &claims); err != nil {
		return OwnIssuer // the signer refuses what cannot be parsed
	}
	return claims.Issuer
}

// verifiedTokenCache caches verified tokens by the SHA-256 of the token, so that a busy caller does
// not cost a signature check for each request.
type verifiedTokenCache struct {
	tokens *cache.Cache[[sha256.Size]byte, *cachedToken] // by pointer: it is large, and read for every request
}

type cachedToken struct {
	authentication Authentication
	verifyAgainAt  time.Time // the token must be verified again
}

// verifiedTokenCacheSize is more than the sockets and callers of a busy node, which all reconnect
// at once after another node restarts. A cached token takes about 400 bytes.
const verifiedTokenCacheSize = 1 << 16

func newVerifiedTokenCache() verifiedTokenCache {
	return verifiedTokenCache{cache.New[[sha256.Size]byte, *cachedToken]("access_tokens", verifiedTokenCacheSize, 0)}
}

func (c verifiedTokenCache) get(digest [sha256.Size]byte, now time.Time) (Authentication, bool) {
	cached, ok := c.tokens.Get(digest)
	if !ok {
		return Authentication{}, false
	}
	// A token that need not be verified before it expires stays cached for longer: it is refused
	// without being verified.
	lastsUntilExpiry := cached.verifyAgainAt.Equal(cached.authentication.ExpiresAt)
	return cached.authentication, now.Before(cached.verifyAgainAt) || lastsUntilExpiry
}

func (c verifiedTokenCache) add(digest [sha256.Size]byte, a Authentication, verifyAfter time.Time) {
	c.tokens.Add(digest, &cachedToken{a, verifyAfter})
}
