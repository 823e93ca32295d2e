package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/principal"

	"github.com/golang-jwt/jwt/v5"
	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/games"
	"github.com/parlor-games/parlor/internal/users"
)

// signer makes and verifies access tokens with a list of keys: the first signs, all verify.
type signer struct {
	kid  string
	keys map[string][]byte // by kid
}

func newSigner(secrets [][]byte) *signer {
	s := &signer{keys: map[string][]byte{}}
	for _, secret := range secrets {
		if len(secret) < MinKeyBytes {
			panic(fmt.Sprintf("auth: a signing key has %d bytes, fewer than %d", len(secret), MinKeyBytes))
		}
		sum := sha256.Sum256(append([]byte("parlor signing key id\x00"), secret...))
		kid := hex.EncodeToString(sum[:6])
		s.keys[kid] = secret
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
	Session string `json:"sid,omitempty"` // family of refresh tokens
}

const audiencePrefix = "game:"

func (s *signer) sign(user users.User, session string, now time.Time, ttl time.Duration) (string, error) {
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, accessClaims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer:    games.OwnIssuer,
			Subject:   strconv.FormatInt(user.ID, 10),
			Audience:  jwt.ClaimStrings{audiencePrefix + strconv.FormatInt(user.Game, 10)},
			IssuedAt:  jwt.NewNumericDate(now),
			ExpiresAt: jwt.NewNumericDate(now.Add(ttl + time.Second - 1)), // whole seconds: rounded up, never shorter than promised
		},
		Session: session,
	})
	token.Header["kid"] = s.kid
	text, err := token.SignedString(s.keys[s.kid])
	if err != nil {
		return "", fmt.Errorf("sign an access token: %w", err)
	}
	return text, nil
}

// verify answers who an access token names. Nothing in the token chooses how it is verified: the algorithm is HS256, the key one of ours.
func (s *signer) verify(text string, now time.Time) (Credential, error) {
	var claims accessClaims
	parser := jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithIssuer(games.OwnIssuer), jwt.WithExpirationRequired(), jwt.WithTimeFunc(func() time.Time { return now }),
	)
	_, err := parser.ParseWithClaims(text, &claims, func(token *jwt.Token) (any, error) {
		kid, _ := token.Header["kid"].(string)
		key, known := s.keys[kid]
		if _, critical := token.Header["crit"]; !known || critical {
			return nil, errUnknownKey
		}
		return key, nil
	})
	if err != nil {
		return Credential{}, refused(err)
	}
	user, userErr := strconv.ParseInt(claims.Subject, 10, 64)
	if len(claims.Audience) != 1 {
		return Credential{}, apierror.Unauthenticated
	}
	number, ours := strings.CutPrefix(claims.Audience[0], audiencePrefix)
	game, gameErr := strconv.ParseInt(number, 10, 64)
	if userErr != nil || gameErr != nil || !ours || user <= 0 || game <= 0 {
		return Credential{}, apierror.Unauthenticated
	}
	return Credential{
		Caller:  principal.Caller{Role: principal.Player, User: user, Game: game},
		Expires: claims.ExpiresAt.Time, Session: claims.Session,
	}, nil
}

var errUnknownKey = errors.New("the token names no key that is known")

// refused turns a verifier's error into the refusal that the caller may see. A token that is over is told so only when all else
// about it holds.
func refused(err error) error {
	if errors.Is(err, jwt.ErrTokenExpired) && !errors.Is(err, jwt.ErrTokenInvalidIssuer) && !errors.Is(err, jwt.ErrTokenInvalidAudience) {
		return apierror.TokenExpired
	}
	return apierror.Unauthenticated
}

// issuerOf reads the issuer that a token claims to be from, unverified: it only chooses who is to verify it.
func issuerOf(text string) string {
	var claims jwt.RegisteredClaims
	if _, _, err := jwt.NewParser().ParseUnverified(text, &claims); err != nil {
		return games.OwnIssuer // what cannot be read is refused there
	}
	return claims.Issuer
}

// verified remembers tokens that were verified, so that a busy caller costs no signature each time: two generations of
// a bounded number, the older one forgotten when the younger is full.
type verified struct {
	mu             sync.RWMutex
	young, old     map[[sha256.Size]byte]remembered
	mostGeneration int
}

type remembered struct {
	credential Credential
	until      time.Time
}

func newVerified() *verified {
	return &verified{young: map[[sha256.Size]byte]remembered{}, mostGeneration: 8192}
}

func (v *verified) get(digest [sha256.Size]byte, now time.Time) (Credential, bool) {
	v.mu.RLock()
	r, ok := v.young[digest]
	if !ok {
		r, ok = v.old[digest]
	}
	v.mu.RUnlock()
	// What is over stays known for as long as it is here: it is refused without being verified again.
	return r.credential, ok && (now.Before(r.until) || r.until.Equal(r.credential.Expires))
}

func (v *verified) put(digest [sha256.Size]byte, c Credential, until time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.young) >= v.mostGeneration {
		v.old, v.young = v.young, make(map[[sha256.Size]byte]remembered, v.mostGeneration)
	}
	v.young[digest] = remembered{c, until}
}
