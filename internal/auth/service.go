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
	AdminKeys   [][]byte // the operator's keys, all valid; none: nobody is the operator
	// AllowLoopbackIssuers lets key sets be fetched from this machine, for development. Every other
	// address that is not public is refused always.
	AllowLoopbackIssuers bool

	AccessTTL time.Duration // of an access token; 15 minutes
	IdleTTL   time.Duration // of a refresh token that is not used; 30 days
	FamilyTTL time.Duration // of a family of refresh tokens; 180 days
	TicketTTL time.Duration // of a ticket; 60 seconds
}

// MinKeyBytes is the least length of a signing key, in bytes.
const MinKeyBytes = 32

// Service authenticates callers. It is safe for concurrent use.
type Service struct {
	store           *store
	users           *users.Service
	games           *games.Service
	grants          SignupGrants
	options         Options
	signer          *signer
	keySets         *keySetCache
	verifiedTokens  verifiedTokenCache
	adminKeyDigests [][sha256.Size]byte // in the order of Options.AdminKeys
	now             func() time.Time
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
		signer: newSigner(o.SigningKeys), keySets: newKeySetCache(o.AllowLoopbackIssuers),
		verifiedTokens: newVerifiedTokenCache(), now: time.Now,
	}
	for _, key := range o.AdminKeys {
		s.adminKeyDigests = append(s.adminKeyDigests, sha256.Sum256(key))
	}
	return s
}

// Authentication is a caller and how long the caller's token is valid.
type Authentication struct {
	principal.Caller
	ExpiresAt     time.Time // zero: valid until it is revoked
	RefreshFamily string    // the family of refresh tokens that the access token came with, or ""
}

// SignInResult is what a sign-in returns.
type SignInResult struct {
	AccessToken          string
	AccessTokenExpiresIn time.Duration // of the access token
	RefreshToken         string
	User                 users.User
}

// GuestInput is a sign-in without an account.
type GuestInput struct {
	GameID       int64
	Username     *string // of a new player; nil: "Player-<id>"
	DeviceSecret *string // 16 to 256 bytes; the same secret is the same player, nil a new player
}

// Bounds of credentials, in bytes.
const (
	minDeviceSecretBytes = 16
	maxDeviceSecretBytes = 256
	maxServerSideIDBytes = 255
)

// Guest signs a guest in. It returns game_not_found and invalid_request.
func (s *Service) Guest(ctx context.Context, in GuestInput) (SignInResult, error) {
	var errs apierror.FieldErrors
	if in.DeviceSecret != nil {
		errs.Merge(checkByteLength("deviceSecret", *in.DeviceSecret, minDeviceSecretBytes, maxDeviceSecretBytes))
	}
	if in.Username != nil {
		_, err := users.CheckUsername(*in.Username)
		errs.Merge(err)
	}
	if err := errs.Err(); err != nil {
		return SignInResult{}, err
	}
	game, err := s.games.Find(ctx, in.GameID)
	if err != nil {
		return SignInResult{}, err
	}
	profile := users.ProfileInput{Username: in.Username}
	var user users.User
	if in.DeviceSecret == nil {
		user, err = s.users.Create(ctx, game.ID, users.KindGuest, profile)
	} else {
		user, err = s.signIn(ctx, game.ID, users.KindDevice, *in.DeviceSecret, profile)
	}
	if err != nil {
		return SignInResult{}, err
	}
	return s.finishSignIn(ctx, game, user)
}

// ExchangeInput names a player by the id that the game's own server has for them.
type ExchangeInput struct {
	ServerSideID string   // 1 to 255 bytes
	Username     *string  // replaces the player's; nil leaves it
	Avatar       **string // replaces the player's; nil leaves it, a pointer to nil removes it
}

// Exchange signs in a player whom a game's server vouches for. It returns forbidden to everybody
// but a server, and invalid_request.
func (s *Service) Exchange(ctx context.Context, caller principal.Caller, in ExchangeInput) (SignInResult, error) {
	if caller.Role != principal.Server {
		return SignInResult{}, apierror.Forbidden.WithReason("only a server key can exchange an external id")
	}
	profile, err := in.validate()
	if err != nil {
		return SignInResult{}, err
	}
	game, err := s.games.Find(ctx, caller.GameID)
	if err != nil {
		return SignInResult{}, err
	}
	user, err := s.signIn(ctx, game.ID, users.KindExternal, in.ServerSideID, profile)
	if err != nil {
		return SignInResult{}, err
	}
	changesUsername := profile.Username != nil && *profile.Username != user.Username
	changesAvatar := in.Avatar != nil && !equalOptional(*in.Avatar, user.Avatar)
	if changesUsername || changesAvatar {
		patch := users.PatchInput{Username: profile.Username, Avatar: in.Avatar}
		if user, err = s.users.Patch(ctx, caller, user.ID, patch); err != nil {
			return SignInResult{}, err
		}
	}
	return s.finishSignIn(ctx, game, user)
}

// validate returns the profile of a new player, or invalid_request with every faulty field.
func (in ExchangeInput) validate() (users.ProfileInput, error) {
	var errs apierror.FieldErrors
	errs.Merge(checkByteLength("externalId", in.ServerSideID, 1, maxServerSideIDBytes))
	var profile users.ProfileInput
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

func equalOptional(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// signIn returns the player of a game who has a credential, and makes one when there is none.
func (s *Service) signIn(
	ctx context.Context, game int64, kind users.Kind, credential string, n users.ProfileInput,
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
	digest, err := s.store.keyedDigest(ctx, kind, credential)
	return users.Identity{GameID: game, Kind: kind, Digest: digest}, err
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
			UserID: user.ID, GameID: game.ID, TokenCode: grant.TokenCode, Units: wallet.Units(grant.Units),
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

// finishSignIn starts a family of refresh tokens for a player who has signed in.
func (s *Service) finishSignIn(ctx context.Context, game games.Game, user users.User) (SignInResult, error) {
	user, err := s.giveSignupGrant(ctx, game, user)
	if err != nil {
		return SignInResult{}, err
	}
	token := refreshToken{userID: user.ID, family: rand.Text(), secret: rand.Text()}
	if err := s.store.startFamily(ctx, token, game.ID, s.options.IdleTTL, s.options.FamilyTTL); err != nil {
		return SignInResult{}, err
	}
	return s.newSignInResult(user, token)
}

func (s *Service) newSignInResult(user users.User, token refreshToken) (SignInResult, error) {
	access, err := s.signer.sign(user, token.family, s.now(), s.options.AccessTTL)
	if err != nil {
		return SignInResult{}, err
	}
	return SignInResult{
		AccessToken: access, AccessTokenExpiresIn: s.options.AccessTTL, RefreshToken: token.String(), User: user,
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
	if u.GameID != game {
		return "", apierror.UserNotFound.WithReason("player %d belongs to game %d", user, u.GameID)
	}
	return s.signer.sign(u, "", s.now(), ttl)
}

// refreshToken is prt_<user id>_<family>_<secret>.
type refreshToken struct {
	userID         int64
	family, secret string // without "_"
}

const refreshPrefix = "prt_"

func (t refreshToken) String() string {
	return refreshPrefix + strconv.FormatInt(t.userID, 10) + "_" + t.family + "_" + t.secret
}

func (t refreshToken) digest() string { return secret.Digest(t.String()) }

// maxRefreshOrTicketBytes bounds refresh tokens and tickets; ours have less than 80 bytes.
const maxRefreshOrTicketBytes = 128

var errNotRefreshToken = apierror.Unauthenticated.WithReason("this is not a refresh token")

func parseRefreshToken(text string) (refreshToken, error) {
	rest, hasPrefix := strings.CutPrefix(text, refreshPrefix)
	parts := strings.Split(rest, "_")
	if !hasPrefix || len(text) > maxRefreshOrTicketBytes || len(parts) != 3 {
		return refreshToken{}, errNotRefreshToken
	}
	user, err := strconv.ParseInt(parts[0], 10, 64)
	family := parts[1]
	if err != nil || user <= 0 || family == "" || strings.ContainsAny(family, "{}:") { // it becomes a part of a key
		return refreshToken{}, errNotRefreshToken
	}
	return refreshToken{user, family, parts[2]}, nil
}

// Refresh exchanges a refresh token for a new pair of tokens. It returns unauthenticated for a
// token that is unknown or expired, and refresh_reused for one that was exchanged before: that
// revokes its whole family.
func (s *Service) Refresh(ctx context.Context, token string) (SignInResult, error) {
	presented, err := parseRefreshToken(token)
	if err != nil {
		return SignInResult{}, err
	}
	// The player is read first: once the token is exchanged nothing may fail, or the player would be
	// left without one.
	user, err := s.users.Find(ctx, presented.userID)
	if errors.Is(err, apierror.UserNotFound) {
		return SignInResult{}, apierror.Unauthenticated
	}
	if err != nil {
		return SignInResult{}, err
	}
	next := refreshToken{presented.userID, presented.family, rand.Text()}
	if err := s.store.rotateRefreshToken(ctx, presented, next, s.options.IdleTTL); err != nil {
		return SignInResult{}, err
	}
	return s.newSignInResult(user, next)
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
		return s.store.deleteFamily(ctx, token.userID, token.family)
	}
	a, err := s.Authenticate(ctx, accessToken)
	if err != nil || a.RefreshFamily == "" {
		return err
	}
	return s.store.deleteFamily(ctx, a.UserID, a.RefreshFamily)
}

// LinkInput is a credential by which a guest can sign in again.
type LinkInput struct {
	DeviceSecret  *string // from a player: 16 to 256 bytes
	ExternalToken *string // from a player: a token of an external issuer that the game accepts
	UserID        *int64  // from a server: the player
	ServerSideID  *string // from a server: the player's id there, 1 to 255 bytes
}

// Link turns a guest into a lasting account. Linking the same credential again changes nothing. It
// is for the player, and for a server about its own players. It returns forbidden, invalid_request,
// unauthenticated and token_expired for an external token that is not valid for the caller's game,
// user_not_found, and already_linked when the credential is another player's or the account has one
// as good.
func (s *Service) Link(ctx context.Context, caller principal.Caller, in LinkInput) (users.User, error) {
	byPlayer := in.DeviceSecret != nil || in.ExternalToken != nil
	byServer := in.UserID != nil || in.ServerSideID != nil
	switch {
	case caller.Role == principal.Server && !byPlayer && in.UserID != nil && in.ServerSideID != nil:
		if err := checkByteLength("externalId", *in.ServerSideID, 1, maxServerSideIDBytes); err != nil {
			return users.User{}, err
		}
		return s.link(ctx, caller, *in.UserID, users.KindExternal, *in.ServerSideID)
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
		err := checkByteLength("deviceSecret", *in.DeviceSecret, minDeviceSecretBytes, maxDeviceSecretBytes)
		if err != nil {
			return users.User{}, err
		}
		return s.link(ctx, caller, caller.UserID, users.KindDevice, *in.DeviceSecret)
	}
	claims, game, err := s.verifyExternal(ctx, *in.ExternalToken)
	if err != nil {
		return users.User{}, err
	}
	if game.ID != caller.GameID {
		return users.User{}, apierror.Unauthenticated.WithReason("the external token is for another game")
	}
	return s.link(ctx, caller, caller.UserID, users.KindIssuer, claims.credential())
}

// link gives a player of the caller's game a credential.
func (s *Service) link(
	ctx context.Context, caller principal.Caller, user int64, kind users.Kind, credential string,
) (users.User, error) {
	identity, err := s.identity(ctx, caller.GameID, kind, credential)
	if err != nil {
		return users.User{}, err
	}
	return s.users.Link(ctx, caller, user, identity)
}

// Ticket stands for a caller in one WebSocket upgrade.
type Ticket struct {
	Secret    string
	ExpiresIn time.Duration
}

// IssueTicket makes a ticket for an authenticated caller. It is valid once, and no longer than the
// caller's token. It returns token_expired.
func (s *Service) IssueTicket(ctx context.Context, a Authentication) (Ticket, error) {
	ttl := s.options.TicketTTL
	if !a.ExpiresAt.IsZero() {
		ttl = min(ttl, a.ExpiresAt.Sub(s.now()))
	}
	if ttl < time.Millisecond {
		return Ticket{}, apierror.AccessTokenExpired
	}
	ticket := secret.New()
	if err := s.store.saveTicket(ctx, secret.Digest(ticket), a, ttl); err != nil {
		return Ticket{}, err
	}
	return Ticket{Secret: ticket, ExpiresIn: ttl}, nil
}

// RedeemTicket returns the caller of a ticket, once. When the store's reply is lost, so is the
// ticket: the caller asks for another. It returns unauthenticated and token_expired.
func (s *Service) RedeemTicket(ctx context.Context, ticket string) (Authentication, error) {
	if len(ticket) > maxRefreshOrTicketBytes {
		return Authentication{}, apierror.Unauthenticated
	}
	a, err := s.store.consumeTicket(ctx, secret.Digest(ticket))
	if err == nil && !a.ExpiresAt.IsZero() && !s.now().Before(a.ExpiresAt) {
		return Authentication{}, apierror.AccessTokenExpired
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
	if id := s.adminKeyID(digest); id != 0 {
		return Authentication{Caller: principal.Caller{Role: principal.Operator, KeyID: id}}, nil
	}
	if games.IsServerKey(bearer) {
		game, err := s.games.FindByServerKey(ctx, bearer)
		if err != nil {
			return Authentication{}, err
		}
		return Authentication{Caller: principal.Caller{Role: principal.Server, GameID: game.ID}}, nil
	}
	return s.authenticatePlayer(ctx, bearer, digest)
}

// adminKeyID returns the place, from 1, of the operator's key with this digest, or 0. It compares
// all of them, so that the time does not tell which one came close.
func (s *Service) adminKeyID(digest [sha256.Size]byte) (id int) {
	for i := range s.adminKeyDigests {
		if subtle.ConstantTimeCompare(digest[:], s.adminKeyDigests[i][:]) == 1 && id == 0 {
			id = i + 1
		}
	}
	return id
}

func (s *Service) authenticatePlayer(
	ctx context.Context, bearer string, digest [sha256.Size]byte,
) (Authentication, error) {
	now := s.now()
	if a, ok := s.verifiedTokens.get(digest, now); ok {
		if !now.Before(a.ExpiresAt) {
			return Authentication{}, apierror.AccessTokenExpired
		}
		return a, nil
	}
	if unverifiedIssuer(bearer) == OwnIssuer {
		a, err := s.signer.verify(bearer, now)
		if err == nil {
			s.verifiedTokens.add(digest, a, a.ExpiresAt)
		}
		return a, err
	}
	a, err := s.signInExternal(ctx, bearer)
	if err == nil {
		s.verifiedTokens.add(digest, a, now.Add(externalCacheTTL))
	}
	return a, err
}

func checkByteLength(field, value string, minBytes, maxBytes int) error {
	if len(value) < minBytes || len(value) > maxBytes {
		message := fmt.Sprintf("must have %d to %d bytes", minBytes, maxBytes)
		return apierror.InvalidRequest.WithField(field, "range", message)
	}
	return nil
}
