package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/secret"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/players/sessions"
	"github.com/parlor-games/parlor/internal/players/users"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// SignupGrants gives new players the signup grant of their game.
type SignupGrants interface {
	// GiveSignupGrant credits the signup grant of a game, which has one, once for each player however
	// often it is called. After limit_reached, or another error that is not retryable, the sign-in
	// succeeds without the grant, and the next one asks again.
	GiveSignupGrant(ctx context.Context, game games.Game, userID int64) error
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

	RefreshGrace          time.Duration // how long a replaced refresh token may be shown again; 30 seconds
	ExternalCheckInterval time.Duration // after which a watched token of an outside issuer is verified anew; 30 minutes
}

// MinKeyBytes is the least length of a signing key, in bytes.
const MinKeyBytes = 32

// Service authenticates callers. It is safe for concurrent use.
type Service struct {
	store          *store
	users          *users.Service
	games          *games.Service
	grants         SignupGrants
	sessions       *sessions.Service
	options        Options
	keys           atomic.Pointer[keyRing]
	keySets        *keySetCache
	verifiedTokens verifiedTokenCache
	now            func() time.Time

	watchedMu  sync.Mutex
	watched    map[*externalWatch]struct{} // sessions of outside issuers
	watchedOwn map[*ownWatch]struct{}      // sessions under tokens of this installation
}

// ForgetStore drops what this node keeps of a store that an operator has replaced.
func (s *Service) ForgetStore() { s.store.forget() }

// SetAcceptedEpoch is called with the last epoch of the store that an operator accepted. Access
// tokens that were made before are expired, for the store may give a player's number again. Their
// sockets are closed with 4001.
func (s *Service) SetAcceptedEpoch(epoch int64) { s.sessions.SetAcceptedEpoch(epoch) }

// New returns a service and makes games end their sessions through it. It panics if a signing key
// is missing or too short, because the settings were checked before.
func New(db *redisdb.DB, u *users.Service, g *games.Service, grants SignupGrants, o Options) *Service {
	for ttl, standard := range map[*time.Duration]time.Duration{
		&o.AccessTTL: 15 * time.Minute,
		&o.IdleTTL:   30 * 24 * time.Hour,
		&o.FamilyTTL: 180 * 24 * time.Hour,
		&o.TicketTTL: time.Minute,

		&o.RefreshGrace:          30 * time.Second,
		&o.ExternalCheckInterval: 30 * time.Minute,
	} {
		if *ttl == 0 {
			*ttl = standard
		}
	}
	s := &Service{
		store: &store{db: db}, users: u, games: g, grants: grants, options: o, sessions: sessions.New(db),
		watched: map[*externalWatch]struct{}{}, watchedOwn: map[*ownWatch]struct{}{},
		keySets:        newKeySetCache(o.AllowLoopbackIssuers),
		verifiedTokens: newVerifiedTokenCache(), now: time.Now,
	}
	s.keys.Store(newKeyRing(o.SigningKeys, o.AdminKeys))
	g.EndSessionsIn(s)
	return s
}

// Authentication is a caller and how long the caller's token is valid.
type Authentication struct {
	principal.Caller
	ExpiresAt time.Time        // zero: valid until it is revoked
	Session   sessions.Session // of a player

	external     *externalProof // of a token of an outside issuer, else nil
	signingKeyID string         // of the key that verified a token of ours, else ""
}

// SignInResult is the result of a sign-in.
type SignInResult struct {
	AccessToken          string
	AccessTokenExpiresIn time.Duration // of the access token
	RefreshToken         string
	User                 users.User

	IsChange bool // the sign-in made the player, or changed the profile
}

// GuestInput is a sign-in without an account.
type GuestInput struct {
	GameID       int64
	Username     *string // of a new player; nil: "Player-<id>"
	DeviceSecret *string // 32 to 256 random bytes; the same secret is the same player, nil a new player
}

// Bounds of credentials, in bytes.
const (
	minDeviceSecretBytes = 32
	maxDeviceSecretBytes = 256
	maxServerSideIDBytes = 255
)

// IsNewGuest reports whether Guest would make a player. It has no Caller, like Guest.
func (s *Service) IsNewGuest(ctx context.Context, in GuestInput) (bool, error) {
	if in.DeviceSecret == nil {
		return true, nil
	}
	if n := len(*in.DeviceSecret); n < minDeviceSecretBytes || n > maxDeviceSecretBytes {
		return false, nil // Guest refuses it
	}
	identity, err := s.identity(ctx, in.GameID, users.KindDevice, *in.DeviceSecret)
	if err != nil {
		return false, err
	}
	known, err := s.users.HasIdentity(ctx, identity)
	return !known && !isGuessable(*in.DeviceSecret), err // Guest refuses a guessable one
}

// minDeviceSecretVariety is how many different bytes the secret of a new device must have. 32
// random hexadecimal digits have fewer once in 10^16 times.
const minDeviceSecretVariety = 5

// isGuessable reports whether a device secret is so monotonous that it cannot be random.
func isGuessable(deviceSecret string) bool {
	seen := map[byte]struct{}{}
	for i := range len(deviceSecret) {
		seen[deviceSecret[i]] = struct{}{}
	}
	return len(seen) < minDeviceSecretVariety
}

var errGuessableSecret = apierror.InvalidRequest.WithField("deviceSecret", "format",
	"must be random: it has fewer than "+strconv.Itoa(minDeviceSecretVariety)+" different characters")

// checkNewDevice returns invalid_request for a guessable secret and for a name that nobody may
// choose, nil for none, unless a player has the secret already: an earlier release accepted both,
// and a client sends its name with each sign-in.
func (s *Service) checkNewDevice(ctx context.Context, gameID int64, deviceSecret string, username *string) error {
	errs := checkChosenName(username)
	if isGuessable(deviceSecret) {
		errs.Merge(errGuessableSecret)
	}
	invalid := errs.Err()
	if invalid == nil {
		return nil
	}
	identity, err := s.identity(ctx, gameID, users.KindDevice, deviceSecret)
	if err != nil {
		return err
	}
	known, err := s.users.HasIdentity(ctx, identity)
	if err == nil && !known {
		err = invalid
	}
	return err
}

func checkChosenName(username *string) (errs apierror.FieldErrors) {
	if username != nil {
		_, err := users.CheckChosenUsername(*username)
		errs.Merge(err)
	}
	return errs
}

// Guest signs a guest in. It returns game_not_found, account_suspended, invalid_request and
// limit_reached.
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
		errs = checkChosenName(in.Username)
		if err = errs.Err(); err == nil {
			user, err = s.users.Create(ctx, game.ID, users.KindGuest, profile)
		}
	} else if err = s.checkNewDevice(ctx, game.ID, *in.DeviceSecret, in.Username); err == nil {
		user, _, err = s.signIn(ctx, game.ID, users.KindDevice, *in.DeviceSecret, profile)
	}
	if err != nil {
		return SignInResult{}, err
	}
	return s.finishSignIn(ctx, game, user, "")
}

// ExchangeInput names a player by the id that the game's own server has for them.
type ExchangeInput struct {
	ServerSideID string                // 1 to 255 bytes
	Username     *string               // replaces the player's; nil leaves it
	Avatar       wire.Nullable[string] // replaces the player's; absent leaves it, null removes it
}

// Exchange signs in a player for whom a game's server vouches. Only a server may call it. It
// returns forbidden, account_suspended, invalid_request and limit_reached.
func (s *Service) Exchange(ctx context.Context, caller principal.Caller, in ExchangeInput) (SignInResult, error) {
	if caller.Role != principal.Server {
		return SignInResult{}, apierror.Forbidden.WithReason("only a server key can exchange an external id")
	}
	game, err := s.games.Find(ctx, caller.GameID)
	if err != nil {
		return SignInResult{}, err
	}
	profile, err := in.validate(game.Settings.AvatarHosts)
	if err != nil {
		return SignInResult{}, err
	}
	user, isNew, err := s.signIn(ctx, game.ID, users.KindExternal, in.ServerSideID, profile)
	if err != nil {
		return SignInResult{}, err
	}
	changesUsername := profile.Username != nil && *profile.Username != user.Username
	changesAvatar := in.Avatar.IsGiven && !equalOptional(in.Avatar.Value, user.Avatar)
	if changesUsername || changesAvatar {
		patch := users.PatchInput{Username: profile.Username, Avatar: in.Avatar}
		if user, err = s.users.Patch(ctx, caller, user.ID, patch); err != nil {
			return SignInResult{}, err
		}
	}
	result, err := s.finishSignIn(ctx, game, user, caller.ServerKeyID)
	result.IsChange = isNew || changesUsername || changesAvatar
	return result, err
}

// validate returns the profile of a new player, or invalid_request with every faulty field.
func (in ExchangeInput) validate(avatarHosts []string) (users.ProfileInput, error) {
	var errs apierror.FieldErrors
	errs.Merge(checkByteLength("externalId", in.ServerSideID, 1, maxServerSideIDBytes))
	var profile users.ProfileInput
	if in.Username != nil {
		name, err := users.CheckUsername(*in.Username)
		errs.Merge(err)
		profile.Username = &name
	}
	if in.Avatar.IsGiven {
		profile.Avatar = in.Avatar.Value
		errs.Merge(users.CheckAvatar(in.Avatar.Value, avatarHosts))
	}
	return profile, errs.Err()
}

func equalOptional(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// signIn returns the player of a game who has a credential, and makes one when there is none.
func (s *Service) signIn(
	ctx context.Context, game int64, kind users.Kind, credential string, n users.ProfileInput,
) (user users.User, isNew bool, err error) {
	identity, err := s.identity(ctx, game, kind, credential)
	if err != nil {
		return users.User{}, false, err
	}
	user, isNew, err = s.users.SignIn(ctx, identity, n)
	if err == nil {
		err = s.checkSuspension(user)
	}
	return user, isNew, err
}

func (s *Service) identity(
	ctx context.Context, game int64, kind users.Kind, credential string,
) (users.Identity, error) {
	digest, err := s.store.keyedDigest(ctx, kind, credential)
	return users.Identity{GameID: game, Kind: kind, Digest: digest}, err
}

// giveSignupGrant gives a new player the signup grant of the game, unless a deleted player with the
// same identity had it. When the store fails, the sign-in fails too and the next one tries again.
// When the wallet refuses the grant, because its token no longer exists or the day's limit of
// grants is reached, the sign-in succeeds and a later one tries again.
func (s *Service) giveSignupGrant(ctx context.Context, game games.Game, user users.User) (users.User, error) {
	if user.GrantGiven {
		return user, nil
	}
	if grant := game.SignupGrant; grant != nil {
		if grant.For != games.GrantForAny && !users.IsVouchedFor(user.Kind) {
			return user, nil // it waits until the player is linked
		}
		had, err := s.users.HadGrant(ctx, user)
		if err == nil && !had {
			err = s.grants.GiveSignupGrant(ctx, game, user.ID)
		}
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

// finishSignIn starts a family of refresh tokens for a player. serverKeyID is the
// server key that vouched for the player, or "".
func (s *Service) finishSignIn(
	ctx context.Context, game games.Game, user users.User, serverKeyID string,
) (SignInResult, error) {
	accepted := s.sessions.AcceptedEpoch()
	user, err := s.giveSignupGrant(ctx, game, user)
	if err != nil {
		return SignInResult{}, err
	}
	token := refreshToken{userID: user.ID, family: rand.Text(), secret: rand.Text()}
	f, err := s.store.startFamily(ctx, token, game.ID, serverKeyID, s.options.IdleTTL, s.options.FamilyTTL)
	if err != nil {
		return SignInResult{}, err
	}
	return s.newSignInResult(user, token, f, accepted)
}

// newSignInResult signs an access token. acceptedEpoch was read before the store was.
func (s *Service) newSignInResult(
	user users.User, token refreshToken, f family, acceptedEpoch int64,
) (SignInResult, error) {
	access, err := s.keys.Load().signer.sign(sessions.Session{
		UserID: user.ID, GameID: user.GameID, Family: token.family, StartedAt: f.startedAt, ServerKeyID: f.serverKeyID,
		AcceptedEpoch: acceptedEpoch,
	}, s.now(), s.options.AccessTTL)
	if err != nil {
		return SignInResult{}, err
	}
	return SignInResult{
		AccessToken: access, AccessTokenExpiresIn: s.options.AccessTTL, RefreshToken: token.String(), User: user,
	}, nil
}

// IssueAccessToken signs an access token for a player who did not sign in. It has no Caller: it is
// for a process that has the signing key, such as the operator's command line. It returns
// user_not_found, and invalid_request for more than 24 hours.
func (s *Service) IssueAccessToken(ctx context.Context, game, user int64, ttl time.Duration) (string, error) {
	if ttl > sessions.MaxTokenAge {
		return "", apierror.InvalidRequest.WithField("ttl", "range", "must be at most 24 hours")
	}
	accepted := s.sessions.AcceptedEpoch()
	u, err := s.users.Find(ctx, user)
	if err != nil {
		return "", err
	}
	if u.GameID != game {
		return "", apierror.UserNotFound.WithReason("player %d belongs to game %d", user, u.GameID)
	}
	if err := s.checkSuspension(u); err != nil {
		return "", err
	}
	now := s.now()
	return s.keys.Load().signer.sign(sessions.Session{
		UserID: u.ID, GameID: u.GameID, StartedAt: now, AcceptedEpoch: accepted,
	}, now, ttl)
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

// KeyedHash returns 32 bytes that depend on a label and a text and that nobody outside can compute:
// the same on every node, for as long as the installation lives. It returns store_unavailable.
func (s *Service) KeyedHash(ctx context.Context, label, text string) ([]byte, error) {
	return s.store.keyedHash(ctx, "hash:"+label, text)
}

// successor returns the token that replaces a refresh token. It is derived, by the pepper that
// never changes, so that the same token gets the same successor from every node: two tabs of a
// browser, or a client whose reply was lost.
func (s *Service) successor(ctx context.Context, t refreshToken) (refreshToken, error) {
	sum, err := s.store.keyedHash(ctx, "refresh", t.String())
	return refreshToken{t.userID, t.family, refreshSecretEncoding.EncodeToString(sum)}, err
}

// refreshSecretEncoding has no "_", which separates the parts of a token.
var refreshSecretEncoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// Refresh exchanges a refresh token for a new pair of tokens. A token that was exchanged within the
// last 30 seconds, and whose successor was not used yet, gives the same successor again. It returns
// unauthenticated for a token that is unknown or expired or whose session was ended, and
// refresh_reused for one that was exchanged before: that revokes its whole family.
func (s *Service) Refresh(ctx context.Context, token string) (SignInResult, error) {
	return s.refresh(ctx, token, s.options.RefreshGrace)
}

// ConfirmRefresh is called before the stored response to a Refresh is sent again, however much
// later. It returns unauthenticated and refresh_reused as Refresh does; the latter when the
// successor was used, and the family is then revoked.
func (s *Service) ConfirmRefresh(ctx context.Context, token string) error {
	_, err := s.refresh(ctx, token, s.options.FamilyTTL)
	return err
}

func (s *Service) refresh(ctx context.Context, token string, grace time.Duration) (SignInResult, error) {
	presented, err := parseRefreshToken(token)
	if err != nil {
		return SignInResult{}, err
	}
	accepted := s.sessions.AcceptedEpoch()
	// The player is read first: once the token is exchanged nothing may fail, or the player would be
	// left without one.
	user, err := s.users.Find(ctx, presented.userID)
	if errors.Is(err, apierror.UserNotFound) {
		return SignInResult{}, apierror.Unauthenticated
	}
	if err != nil {
		return SignInResult{}, err
	}
	if err := s.checkSuspension(user); err != nil {
		return SignInResult{}, err
	}
	next, err := s.successor(ctx, presented)
	if err != nil {
		return SignInResult{}, err
	}
	f, err := s.store.rotateRefreshToken(ctx, presented, next, s.options.IdleTTL, grace)
	if errors.Is(err, apierror.RefreshTokenReused) {
		// Somebody else may have the family's access tokens, too. The family is revoked already, so this
		// is left to the next one who shows a used token when it fails.
		_ = s.sessions.EndFamily(ctx, presented.userID, presented.family)
	}
	if err != nil {
		return SignInResult{}, err
	}
	if err := s.checkServerKey(ctx, user.GameID, f.serverKeyID); err != nil {
		return SignInResult{}, err
	}
	return s.newSignInResult(user, next, f, accepted)
}

// checkServerKey returns unauthenticated when the server key that made a session was revoked.
func (s *Service) checkServerKey(ctx context.Context, gameID int64, keyID string) error {
	if keyID == "" {
		return nil
	}
	game, err := s.games.Find(ctx, gameID)
	if err == nil && !game.HasServerKeyID(keyID) {
		err = apierror.Unauthenticated.WithReason("the server key that made this session was revoked")
	}
	return err
}

// RefreshKeyOwner returns in whose name an Idempotency-Key of a Refresh is stored: that of the
// token's family. It returns unauthenticated.
func (s *Service) RefreshKeyOwner(token string) (string, error) {
	t, err := parseRefreshToken(token)
	return "f" + strconv.FormatInt(t.userID, 10) + "." + t.family, err
}

// GuestKeyOwner returns in whose name an Idempotency-Key of Guest is stored: that of the device, or
// "" without a device secret. Two people behind one address must never share a key. It returns
// invalid_request.
func (s *Service) GuestKeyOwner(ctx context.Context, in GuestInput) (string, error) {
	if in.DeviceSecret == nil {
		return "", nil
	}
	err := checkByteLength("deviceSecret", *in.DeviceSecret, minDeviceSecretBytes, maxDeviceSecretBytes)
	if err != nil {
		return "", err
	}
	digest, err := s.store.keyedDigest(ctx, "idempotency", *in.DeviceSecret)
	return "d" + strconv.FormatInt(in.GameID, 10) + "." + digest, err
}

// Logout ends the session of a refresh token or, without one, of an access token: the family is
// revoked, its access tokens are refused on every node within two seconds, and its sockets are
// closed with 4001. Repeating it changes nothing. It returns token_expired, and unauthenticated,
// also for a refresh token that is neither the newest of its family nor the one before it.
func (s *Service) Logout(ctx context.Context, accessToken, refreshToken string) error {
	if refreshToken != "" {
		token, err := parseRefreshToken(refreshToken)
		if err != nil {
			return err
		}
		isCurrent, exists, err := s.store.findFamily(ctx, token)
		switch {
		case err != nil, !exists: // an ended session may end again
			return err
		case !isCurrent:
			return errNotRefreshToken
		}
		return s.EndSession(ctx, token.userID, token.family)
	}
	a, err := s.authenticate(ctx, accessToken) // an ended session may end again
	if err != nil || a.Session.Family == "" {
		return err
	}
	return s.EndSession(ctx, a.UserID, a.Session.Family)
}

// LinkInput is a credential by which a guest can sign in again.
type LinkInput struct {
	DeviceSecret  *string // from a player: 32 to 256 random bytes
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
		return s.linkVouched(ctx, caller, *in.UserID, users.KindExternal, *in.ServerSideID)
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
		if err == nil {
			err = s.checkNewDevice(ctx, caller.GameID, *in.DeviceSecret, nil)
		}
		if err != nil {
			return users.User{}, err
		}
		return s.link(ctx, caller, caller.UserID, users.KindDevice, *in.DeviceSecret)
	}
	claims, _, game, err := s.verifyExternal(ctx, *in.ExternalToken)
	if err != nil {
		return users.User{}, err
	}
	if game.ID != caller.GameID {
		return users.User{}, apierror.Unauthenticated.WithReason("the external token is for another game")
	}
	return s.linkVouched(ctx, caller, caller.UserID, users.KindIssuer, claims.credential())
}

// linkVouched is link for a credential that a server or an issuer vouches for. It gives the player
// the signup grant that a guest did not get.
func (s *Service) linkVouched(
	ctx context.Context, caller principal.Caller, user int64, kind users.Kind, credential string,
) (users.User, error) {
	linked, err := s.link(ctx, caller, user, kind, credential)
	if err != nil {
		return users.User{}, err
	}
	game, err := s.games.Find(ctx, linked.GameID)
	if err != nil {
		return users.User{}, err
	}
	return s.giveSignupGrant(ctx, game, linked)
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
		err = apierror.AccessTokenExpired
	}
	if err == nil {
		err = s.checkSession(ctx, a)
	}
	if err != nil {
		return Authentication{}, err
	}
	return a, nil
}

// maxBearerBytes bounds bearer tokens.
const maxBearerBytes = 4 << 10

// Authenticate returns the caller who shows a bearer token: the admin key, a server key, or an
// access token of ours or of an external issuer. It returns unauthenticated, for an ended session
// too, and token_expired.
func (s *Service) Authenticate(ctx context.Context, bearer string) (Authentication, error) {
	a, err := s.authenticate(ctx, bearer)
	if err == nil {
		err = s.checkSession(ctx, a)
	}
	if err != nil {
		return Authentication{}, err
	}
	return a, nil
}

// authenticate is Authenticate for ended sessions as well.
func (s *Service) authenticate(ctx context.Context, bearer string) (Authentication, error) {
	if bearer == "" || len(bearer) > maxBearerBytes {
		return Authentication{}, apierror.Unauthenticated
	}
	// Not secret.Digest: a request should cost neither the text of a digest nor a copy of the token.
	var buffer [512]byte
	digest := sha256.Sum256(append(buffer[:0], bearer...))
	if id := s.adminKeyID(digest); id != 0 {
		return Authentication{Caller: principal.Caller{Role: principal.Operator, KeyID: id}}, nil
	}
	if games.IsServerKey(bearer) {
		game, err := s.games.FindByServerKey(ctx, bearer)
		if err != nil {
			return Authentication{}, err
		}
		keyID := games.ServerKeyID(bearer)
		return Authentication{
			Caller:  principal.Caller{Role: principal.Server, GameID: game.ID, ServerKeyID: keyID},
			Session: s.serverSession(game.ID, keyID),
		}, nil
	}
	return s.authenticatePlayer(ctx, bearer, digest)
}

// serverSession returns the session of a server key, which lasts until the key is revoked or the
// store is replaced.
func (s *Service) serverSession(game int64, keyID string) sessions.Session {
	return sessions.Session{GameID: game, ServerKeyID: keyID, AcceptedEpoch: s.sessions.AcceptedEpoch()}
}

// adminKeyID returns the place, from 1, of the operator's key with this digest, or 0. It compares
// all keys, so that its time does not depend on which key matches.
func (s *Service) adminKeyID(digest [sha256.Size]byte) (id int) {
	digests := s.keys.Load().adminDigests
	for i := range digests {
		if subtle.ConstantTimeCompare(digest[:], digests[i][:]) == 1 && id == 0 {
			id = i + 1
		}
	}
	return id
}

func (s *Service) authenticatePlayer(
	ctx context.Context, bearer string, digest [sha256.Size]byte,
) (Authentication, error) {
	now := s.now()
	a, ok := s.verifiedTokens.get(digest, now)
	// An outside issuer's player may have another number in a store that was accepted since.
	if ok && (a.external == nil || a.Session.AcceptedEpoch >= s.sessions.AcceptedEpoch()) {
		if !now.Before(a.ExpiresAt) {
			return Authentication{}, apierror.AccessTokenExpired
		}
		return a, nil
	}
	if unverifiedIssuer(bearer) == OwnIssuer {
		k := s.keys.Load()
		a, err := k.signer.verify(bearer, now)
		if err == nil {
			s.verifiedTokens.add(digest, a, a.ExpiresAt)
			if s.keys.Load() != k { // they changed meanwhile, and so did what the cache may have
				s.verifiedTokens.tokens.Remove(digest)
			}
		}
		return a, err
	}
	var err error
	a, err = s.signInExternal(ctx, bearer, digest)
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
