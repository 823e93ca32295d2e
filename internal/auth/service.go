package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/games"
	"github.com/parlor-games/parlor/internal/principal"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/secret"
	"github.com/parlor-games/parlor/internal/users"
	"github.com/parlor-games/parlor/internal/wallet"
)

// SignupGrants gives new players the signup grant of their game.
type SignupGrants interface {
	// Grant credits minor units of a token, once for each player and game however often it is
	// called.
	Grant(ctx context.Context, caller principal.Caller, in wallet.GrantInput) error
}

// Options are the secrets and times of the service. A zero time has the default.
type Options struct {
	SigningKeys [][]byte // at least MinKeyBytes each: the first signs access tokens, all verify; required
	AdminKey    string   // the operator's key; empty: nobody is the operator

	AccessTTL time.Duration // of an access token; 15 minutes
	IdleTTL   time.Duration // of a refresh token that is not used; 30 days
	FamilyTTL time.Duration // of a family of refresh tokens; 180 days
	TicketTTL time.Duration // of a ticket; 60 seconds
}

// MinKeyBytes is the least length of a signing key, in bytes.
const MinKeyBytes = 32

// Service authenticates callers. It is safe for concurrent use.
type Service struct {
	store          *store
	users          *users.Service
	games          *games.Service
	grants         SignupGrants
	options        Options
	signer         *signer
	keySets        *keySets
	tokens         tokenCache
	adminKeyDigest *[sha256.Size]byte // nil: nobody is the operator
	now            func() time.Time
}

// New returns a service. It panics on a missing or short signing key: settings are checked before.
func New(db *redisdb.DB, u *users.Service, g *games.Service, grants SignupGrants, o Options) *Service {
	for ttl, standard := range map[*time.Duration]time.Duration{
		&o.AccessTTL: 15 * time.Minute,
		&o.IdleTTL:   30 * 24 * time.Hour,
		&o.FamilyTTL: 180 * 24 * time.Hour,
		&o.TicketTTL: time.Minute,
	} {
		if *ttl == 0 {
			*ttl = standard
		}
	}
	s := &Service{
		store: &store{db: db}, users: u, games: g, grants: grants, options: o,
		signer: newSigner(o.SigningKeys), keySets: newKeySets(), tokens: newTokenCache(), now: time.Now,
	}
	if o.AdminKey != "" {
		s.adminKeyDigest = new(sha256.Sum256([]byte(o.AdminKey)))
	}
	return s
}

// Authentication is a caller and how long the caller's token is valid.
type Authentication struct {
	principal.Caller
	Expires time.Time // zero: valid until it is revoked
	Session string    // the family of refresh tokens that the access token came with, or ""
}

// Session is what a sign-in returns.
type Session struct {
	AccessToken  string
	ExpiresIn    time.Duration // of the access token
	RefreshToken string
	User         users.User
}

// GuestInput is a sign-in without an account.
type GuestInput struct {
	GameID       int64
	Username     *string // of a new player; nil: "Player-<id>"
	DeviceSecret *string // 16 to 256 bytes; the same secret is the same player, nil a new player
}

// Bounds of credentials, in bytes.
const (
	minDeviceSecret = 16
	maxDeviceSecret = 256
	maxExternalID   = 255
)

// Guest signs a guest in. It returns game_not_found and invalid_request.
func (s *Service) Guest(ctx context.Context, in GuestInput) (Session, error) {
	var errs apierror.FieldErrors
	if in.DeviceSecret != nil {
		errs.Merge(checkLength("deviceSecret", *in.DeviceSecret, minDeviceSecret, maxDeviceSecret))
	}
	if in.Username != nil {
		_, err := users.CheckUsername(*in.Username)
		errs.Merge(err)
	}
	if err := errs.Err(); err != nil {
		return Session{}, err
	}
	game, err := s.games.Find(ctx, in.GameID)
	if err != nil {
		return Session{}, err
	}
	profile := users.NewUser{Username: in.Username}
	var user users.User
	if in.DeviceSecret == nil {
		user, err = s.users.Create(ctx, game.ID, users.Guest, profile)
	} else {
		user, err = s.signIn(ctx, game.ID, users.Device, *in.DeviceSecret, profile)
	}
	if err != nil {
		return Session{}, err
	}
	return s.startSession(ctx, game, user)
}

// ExchangeInput names a player by the id that the game's own server has for them.
type ExchangeInput struct {
	ExternalID string   // 1 to 255 bytes
	Username   *string  // replaces the player's; nil leaves it
	Avatar     **string // replaces the player's; nil leaves it, a pointer to nil removes it
}

// Exchange signs in a player whom a game's server vouches for. It returns forbidden to everybody
// but a server, and invalid_request.
func (s *Service) Exchange(ctx context.Context, caller principal.Caller, in ExchangeInput) (Session, error) {
	if caller.Role != principal.Server {
		return Session{}, apierror.Forbidden.WithReason("only a server key can exchange an external id")
	}
	profile, err := in.validate()
	if err != nil {
		return Session{}, err
	}
	game, err := s.games.Find(ctx, caller.Game)
	if err != nil {
		return Session{}, err
	}
	user, err := s.signIn(ctx, game.ID, users.External, in.ExternalID, profile)
	if err != nil {
		return Session{}, err
	}
	changesUsername := profile.Username != nil && *profile.Username != user.Username
	changesAvatar := in.Avatar != nil && !isSame(*in.Avatar, user.Avatar)
	if changesUsername || changesAvatar {
		patch := users.Patch{Username: profile.Username, Avatar: in.Avatar}
		if user, err = s.users.Patch(ctx, caller, user.ID, patch); err != nil {
			return Session{}, err
		}
	}
	return s.startSession(ctx, game, user)
}

// validate returns the profile of a new player, or invalid_request with every faulty field.
func (in ExchangeInput) validate() (users.NewUser, error) {
	var errs apierror.FieldErrors
	errs.Merge(checkLength("externalId", in.ExternalID, 1, maxExternalID))
	var profile users.NewUser
	if in.Username != nil {
		name, err := users.CheckUsername(*in.Username)
		errs.Merge(err)
		profile.Username = &name
	}
	if in.Avatar != nil {
		profile.Avatar = *in.Avatar
		errs.Merge(users.CheckAvatar(*in.Avatar))
	}
	return profile, errs.Err()
}

func isSame(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// signIn returns the player of a game who has a credential, and makes one when there is none.
func (s *Service) signIn(
	ctx context.Context, game int64, kind users.Kind, credential string, n users.NewUser,
) (users.User, error) {
	identity, err := s.identity(ctx, game, kind, credential)
	if err != nil {
		return users.User{}, err
	}
	return s.users.SignIn(ctx, identity, n)
}

func (s *Service) identity(
	ctx context.Context, game int64, kind users.Kind, credential string,
) (users.Identity, error) {
	digest, err := s.store.digest(ctx, kind, credential)
	return users.Identity{Game: game, Kind: kind, Digest: digest}, err
}

// giveSignupGrant gives a new player the signup grant of the game. When the store fails, so does
// the sign-in, and the next one tries again; a grant that the wallet refuses, since its token is
// gone, must not keep players out.
func (s *Service) giveSignupGrant(ctx context.Context, game games.Game, user users.User) (users.User, error) {
	if user.GrantGiven {
		return user, nil
	}
	if grant := game.SignupGrant; grant != nil {
		err := s.grants.Grant(ctx, principal.Caller{Role: principal.System}, wallet.GrantInput{
			UserID: user.ID, GameID: game.ID, TokenID: grant.TokenID, Units: wallet.Units(grant.Units),
		})
		if e, ok := apierror.As(err); ok && !e.Retryable {
			return user, nil
		}
		if err != nil {
			return user, fmt.Errorf("give player %d the signup grant: %w", user.ID, err)
		}
	}
	user.GrantGiven = true
	return user, s.users.MarkGrantGiven(ctx, user.ID)
}

// startSession starts a family of refresh tokens for a player who has signed in.
func (s *Service) startSession(ctx context.Context, game games.Game, user users.User) (Session, error) {
	user, err := s.giveSignupGrant(ctx, game, user)
	if err != nil {
		return Session{}, err
	}
	token := refreshToken{user: user.ID, family: rand.Text(), secret: rand.Text()}
	if err := s.store.startFamily(ctx, token, game.ID, s.options.IdleTTL, s.options.FamilyTTL); err != nil {
		return Session{}, err
	}
	return s.newSession(user, token)
}

func (s *Service) newSession(user users.User, token refreshToken) (Session, error) {
	access, err := s.signer.sign(user, token.family, s.now(), s.options.AccessTTL)
	if err != nil {
		return Session{}, err
	}
	return Session{
		AccessToken: access, ExpiresIn: s.options.AccessTTL, RefreshToken: token.String(), User: user,
	}, nil
}

// IssueAccessToken signs an access token for a player who did not sign in. It has no Caller: it is
// for a process that has the signing key, such as the operator's command line. It returns
// user_not_found.
func (s *Service) IssueAccessToken(ctx context.Context, game, user int64, ttl time.Duration) (string, error) {
	u, err := s.users.Find(ctx, user)
	if err != nil {
		return "", err
	}
	if u.Game != game {
		return "", apierror.UserNotFound.WithReason("player %d belongs to game %d", user, u.Game)
	}
	return s.signer.sign(u, "", s.now(), ttl)
}

// refreshToken is prt_<user id>_<family>_<secret>.
type refreshToken struct {
	user           int64
	family, secret string // without "_"
}

const refreshPrefix = "prt_"

func (t refreshToken) String() string {
	return refreshPrefix + strconv.FormatInt(t.user, 10) + "_" + t.family + "_" + t.secret
}

func (t refreshToken) digest() string { return secret.Digest(t.String()) }

// maxRefreshBytes bounds refresh tokens and tickets; ours have less than 80 bytes.
const maxRefreshBytes = 128

var errNoRefreshToken = apierror.Unauthenticated.WithReason("this is not a refresh token")

func parseRefreshToken(text string) (refreshToken, error) {
	rest, hasPrefix := strings.CutPrefix(text, refreshPrefix)
	parts := strings.Split(rest, "_")
	if !hasPrefix || len(text) > maxRefreshBytes || len(parts) != 3 {
		return refreshToken{}, errNoRefreshToken
	}
	user, err := strconv.ParseInt(parts[0], 10, 64)
	family := parts[1]
	if err != nil || user <= 0 || family == "" || strings.ContainsAny(family, "{}:") { // it becomes a part of a key
		return refreshToken{}, errNoRefreshToken
	}
	return refreshToken{user, family, parts[2]}, nil
}

// Refresh exchanges a refresh token for a new pair of tokens. It returns unauthenticated for a
// token that is unknown or expired, and refresh_reused for one that was exchanged before: that
// revokes its whole family.
func (s *Service) Refresh(ctx context.Context, token string) (Session, error) {
	presented, err := parseRefreshToken(token)
	if err != nil {
		return Session{}, err
	}
	// The player is read first: once the token is exchanged nothing may fail, or the player would be
	// left without one.
	user, err := s.users.Find(ctx, presented.user)
	if errors.Is(err, apierror.UserNotFound) {
		return Session{}, apierror.Unauthenticated
	}
	if err != nil {
		return Session{}, err
	}
	next := refreshToken{presented.user, presented.family, rand.Text()}
	if err := s.store.rotate(ctx, presented, next, s.options.IdleTTL); err != nil {
		return Session{}, err
	}
	return s.newSession(user, next)
}

// Logout revokes the family of a refresh token or, without one, of an access token. Repeating it
// changes nothing. Access tokens stay valid until they expire. It returns unauthenticated and
// token_expired.
func (s *Service) Logout(ctx context.Context, accessToken, refreshToken string) error {
	if refreshToken != "" {
		token, err := parseRefreshToken(refreshToken)
		if err != nil {
			return err
		}
		return s.store.deleteFamily(ctx, token.user, token.family)
	}
	a, err := s.Authenticate(ctx, accessToken)
	if err != nil || a.Session == "" {
		return err
	}
	return s.store.deleteFamily(ctx, a.User, a.Session)
}

// LinkInput is a credential by which a guest can sign in again.
type LinkInput struct {
	DeviceSecret  *string // from a player: 16 to 256 bytes
	ExternalToken *string // from a player: a token of an external issuer that the game accepts
	UserID        *int64  // from a server: the player
	ExternalID    *string // from a server: the player's id there, 1 to 255 bytes
}

// Link turns a guest into a lasting account. Linking the same credential again changes nothing. It
// is for the player, and for a server about its own players. It returns forbidden, invalid_request,
// unauthenticated and token_expired for an external token that is not valid for the caller's game,
// user_not_found, and already_linked when the credential is another player's or the account has one
// as good.
func (s *Service) Link(ctx context.Context, caller principal.Caller, in LinkInput) (users.User, error) {
	byPlayer := in.DeviceSecret != nil || in.ExternalToken != nil
	byServer := in.UserID != nil || in.ExternalID != nil
	switch {
	case caller.Role == principal.Server && !byPlayer && in.UserID != nil && in.ExternalID != nil:
		if err := checkLength("externalId", *in.ExternalID, 1, maxExternalID); err != nil {
			return users.User{}, err
		}
		return s.link(ctx, caller, *in.UserID, users.External, *in.ExternalID)
	case caller.Role == principal.Server:
		return users.User{}, apierror.InvalidRequest.WithField(
			"externalId", "required", "must be given with userId, and nothing else")
	case caller.Role != principal.Player:
		return users.User{}, apierror.Forbidden
	case byServer:
		return users.User{}, apierror.Forbidden.WithReason("only a server key can link an external id")
	case (in.DeviceSecret == nil) == (in.ExternalToken == nil):
		return users.User{}, apierror.InvalidRequest.WithField(
			"deviceSecret", "required", "must be given, or externalToken instead, but not both")
	case in.DeviceSecret != nil:
		err := checkLength("deviceSecret", *in.DeviceSecret, minDeviceSecret, maxDeviceSecret)
		if err != nil {
			return users.User{}, err
		}
		return s.link(ctx, caller, caller.User, users.Device, *in.DeviceSecret)
	}
	claims, game, err := s.verifyExternal(ctx, *in.ExternalToken)
	if err != nil {
		return users.User{}, err
	}
	if game.ID != caller.Game {
		return users.User{}, apierror.Unauthenticated.WithReason("the external token is for another game")
	}
	return s.link(ctx, caller, caller.User, users.Issuer, claims.credential())
}

// link gives a player of the caller's game a credential.
func (s *Service) link(
	ctx context.Context, caller principal.Caller, user int64, kind users.Kind, credential string,
) (users.User, error) {
	identity, err := s.identity(ctx, caller.Game, kind, credential)
	if err != nil {
		return users.User{}, err
	}
	return s.users.Link(ctx, caller, user, identity)
}

// Ticket stands for a caller in one WebSocket upgrade.
type Ticket struct {
	Ticket    string
	ExpiresIn time.Duration
}

// Ticket makes a ticket for an authenticated caller. It is valid once, and no longer than the
// caller's token. It returns token_expired.
func (s *Service) Ticket(ctx context.Context, a Authentication) (Ticket, error) {
	ttl := s.options.TicketTTL
	if !a.Expires.IsZero() {
		ttl = min(ttl, a.Expires.Sub(s.now()))
	}
	if ttl < time.Millisecond {
		return Ticket{}, apierror.TokenExpired
	}
	ticket := secret.New()
	if err := s.store.saveTicket(ctx, secret.Digest(ticket), a, ttl); err != nil {
		return Ticket{}, err
	}
	return Ticket{Ticket: ticket, ExpiresIn: ttl}, nil
}

// RedeemTicket returns the caller of a ticket, once. When the store's reply is lost, so is the
// ticket: the caller asks for another. It returns unauthenticated and token_expired.
func (s *Service) RedeemTicket(ctx context.Context, ticket string) (Authentication, error) {
	if len(ticket) > maxRefreshBytes {
		return Authentication{}, apierror.Unauthenticated
	}
	a, err := s.store.consumeTicket(ctx, secret.Digest(ticket))
	if err == nil && !a.Expires.IsZero() && !s.now().Before(a.Expires) {
		return Authentication{}, apierror.TokenExpired
	}
	return a, err
}

// maxBearerBytes bounds bearer tokens.
const maxBearerBytes = 4 << 10

// Authenticate returns the caller who shows a bearer token: the admin key, a server key, or an
// access token of ours or of an external issuer. It returns unauthenticated and token_expired.
func (s *Service) Authenticate(ctx context.Context, bearer string) (Authentication, error) {
	if bearer == "" || len(bearer) > maxBearerBytes {
		return Authentication{}, apierror.Unauthenticated
	}
	digest := sha256.Sum256([]byte(bearer)) // not secret.Digest: a request should not cost the text of a digest
	if s.adminKeyDigest != nil && subtle.ConstantTimeCompare(digest[:], s.adminKeyDigest[:]) == 1 {
		return Authentication{Caller: principal.Caller{Role: principal.Operator}}, nil
	}
	if games.IsServerKey(bearer) {
		game, err := s.games.FindByServerKey(ctx, bearer)
		if err != nil {
			return Authentication{}, err
		}
		return Authentication{Caller: principal.Caller{Role: principal.Server, Game: game.ID}}, nil
	}
	return s.authenticatePlayer(ctx, bearer, digest)
}

func (s *Service) authenticatePlayer(
	ctx context.Context, bearer string, digest [sha256.Size]byte,
) (Authentication, error) {
	now := s.now()
	if a, ok := s.tokens.get(digest, now); ok {
		if !now.Before(a.Expires) {
			return Authentication{}, apierror.TokenExpired
		}
		return a, nil
	}
	if unverifiedIssuer(bearer) == OwnIssuer {
		a, err := s.signer.verify(bearer, now)
		if err == nil {
			s.tokens.add(digest, a, a.Expires)
		}
		return a, err
	}
	a, err := s.authenticateExternal(ctx, bearer)
	if err == nil {
		s.tokens.add(digest, a, now.Add(externalCacheTTL))
	}
	return a, err
}

func checkLength(field, value string, minBytes, maxBytes int) error {
	if len(value) < minBytes || len(value) > maxBytes {
		message := fmt.Sprintf("must have %d to %d bytes", minBytes, maxBytes)
		return apierror.InvalidRequest.WithField(field, "range", message)
	}
	return nil
}
