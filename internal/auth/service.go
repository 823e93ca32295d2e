package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/principal"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/games"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/users"
	"github.com/parlor-games/parlor/internal/wallet"
)

// SignupGrants gives a new player the welcome of a game, once per player however often it is asked.
type SignupGrants interface {
	Grant(ctx context.Context, caller principal.Caller, in wallet.GrantInput) error
}

// Options are the secrets and times of the service. Zero times have the defaults.
type Options struct {
	SigningKeys [][]byte // at least 32 bytes each: the first signs access tokens, all verify; required
	AdminKey    string   // the operator's key; empty: nobody is the operator

	AccessTTL time.Duration // of an access token, 15 min
	IdleTTL   time.Duration // of a refresh token that is not used, 30 days
	FamilyTTL time.Duration // of a family of refresh tokens, 180 days
	TicketTTL time.Duration // 60 s

	LoopbackIssuers bool // key sets may be fetched over http from loopback; for development and tests
}

// MinKeyBytes is how long a signing key must be, in bytes.
const MinKeyBytes = 32

// Service tells who is calling. It is safe for concurrent use.
type Service struct {
	store    *store
	users    *users.Service
	games    *games.Service
	grants   SignupGrants
	options  Options
	signer   *signer
	keySets  *keySets
	verified *verified
	admin    *[sha256.Size]byte
	now      func() time.Time
}

// New makes the service. A missing or short signing key is a fault of the program, since settings are checked before: it panics.
func New(db *redisdb.DB, players *users.Service, all *games.Service, grants SignupGrants, o Options) *Service {
	for ttl, standard := range map[*time.Duration]time.Duration{
		&o.AccessTTL: 15 * time.Minute, &o.IdleTTL: 30 * 24 * time.Hour, &o.FamilyTTL: 180 * 24 * time.Hour, &o.TicketTTL: time.Minute,
	} {
		if *ttl == 0 {
			*ttl = standard
		}
	}
	s := &Service{
		store: &store{db: db}, users: players, games: all, grants: grants, options: o,
		signer: newSigner(o.SigningKeys), keySets: newKeySets(), verified: newVerified(), now: time.Now,
	}
	if o.AdminKey != "" {
		s.admin = new(sha256.Sum256([]byte(o.AdminKey)))
	}
	return s
}

// Credential is a caller and how long what it showed is good.
type Credential struct {
	principal.Caller
	Expires time.Time // zero: until it is revoked
	Session string    // the family of refresh tokens that the access token came with, or ""
}

// Session is a sign-in.
type Session struct {
	AccessToken  string
	ExpiresIn    time.Duration // of the access token
	RefreshToken string
	User         users.User
}

// GuestInput is a sign-in without any account.
type GuestInput struct {
	GameID       int64
	Username     *string // of a new player
	DeviceSecret *string // 16 to 256 bytes: who shows it again is the same player
}

// Guest signs a guest in. It refuses game_not_found and invalid_request.
func (s *Service) Guest(ctx context.Context, in GuestInput) (Session, error) {
	var faults apierror.FieldErrors
	if in.DeviceSecret != nil {
		faults.Merge(checkLength("deviceSecret", *in.DeviceSecret, 16, 256))
	}
	if in.Username != nil {
		_, err := users.CheckUsername(*in.Username)
		faults.Merge(err)
	}
	if err := faults.Err(); err != nil {
		return Session{}, err
	}
	game, err := s.games.Get(ctx, in.GameID)
	if err != nil {
		return Session{}, err
	}
	var user users.User
	if in.DeviceSecret == nil {
		name := ""
		if in.Username != nil {
			name = *in.Username
		}
		user, err = s.users.Create(ctx, game.ID, users.Guest, name, nil)
	} else {
		user, err = s.signIn(ctx, game.ID, users.Device, *in.DeviceSecret, users.NewUser{Username: in.Username})
	}
	if err != nil {
		return Session{}, err
	}
	return s.start(ctx, game, user)
}

// ExchangeInput names a player by the id that a game's own server knows it by.
type ExchangeInput struct {
	ExternalID string   // 1 to 255 bytes
	Username   *string  // changes it where it differs
	Avatar     **string // likewise; a pointer to nil takes it away
}

// Exchange signs in a player whom a game's server vouches for. It refuses forbidden to anybody else than a server, and invalid_request.
func (s *Service) Exchange(ctx context.Context, caller principal.Caller, in ExchangeInput) (Session, error) {
	if caller.Role != principal.Server {
		return Session{}, apierror.Forbidden.WithReason("only a server key can exchange an external id")
	}
	var faults apierror.FieldErrors
	faults.Merge(checkLength("externalId", in.ExternalID, 1, 255))
	newcomer := users.NewUser{Username: in.Username}
	if in.Username != nil {
		name, err := users.CheckUsername(*in.Username)
		faults.Merge(err)
		in.Username = &name
	}
	if in.Avatar != nil {
		newcomer.Avatar = *in.Avatar
		_, err := users.CheckAvatar(*in.Avatar)
		faults.Merge(err)
	}
	if err := faults.Err(); err != nil {
		return Session{}, err
	}
	game, err := s.games.Get(ctx, caller.Game)
	if err != nil {
		return Session{}, err
	}
	user, err := s.signIn(ctx, game.ID, users.External, in.ExternalID, newcomer)
	if err != nil {
		return Session{}, err
	}
	renamed := in.Username != nil && *in.Username != user.Username
	redrawn := in.Avatar != nil && !same(*in.Avatar, user.Avatar)
	if renamed || redrawn {
		if user, err = s.users.Patch(ctx, user.ID, users.Patch{Username: in.Username, Avatar: in.Avatar}); err != nil {
			return Session{}, err
		}
	}
	return s.start(ctx, game, user)
}

func same(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// signIn answers the player of a game who proves something, and makes one where there is none.
func (s *Service) signIn(ctx context.Context, game int64, kind users.Kind, proof string, n users.NewUser) (users.User, error) {
	identity, err := s.identity(ctx, game, kind, proof)
	if err != nil {
		return users.User{}, err
	}
	return s.users.SignIn(ctx, identity, n)
}

func (s *Service) identity(ctx context.Context, game int64, kind users.Kind, proof string) (users.Identity, error) {
	digest, err := s.store.digest(ctx, kind, proof)
	return users.Identity{Game: game, Kind: kind, Digest: digest}, err
}

// welcome gives a new player the grant of its game. When the store fails, so does the sign-in, and the next one tries again; a grant that
// the wallet refuses, since its token is gone, must not keep players out.
func (s *Service) welcome(ctx context.Context, game games.Game, user users.User) (users.User, error) {
	if user.GrantGiven {
		return user, nil
	}
	if grant := game.WelcomeGrant; grant != nil {
		err := s.grants.Grant(ctx, principal.Caller{Role: principal.System}, wallet.GrantInput{
			UserID: user.ID, GameID: game.ID, TokenID: grant.TokenID, Units: wallet.Units(grant.Units),
		})
		if refusal, refused := apierror.As(err); refused && !refusal.Retryable {
			return user, nil
		}
		if err != nil {
			return user, fmt.Errorf("welcome player %d: %w", user.ID, err)
		}
	}
	user.GrantGiven = true
	return user, s.users.MarkGrantGiven(ctx, user.ID)
}

// start begins a family of refresh tokens for a player who has signed in.
func (s *Service) start(ctx context.Context, game games.Game, user users.User) (Session, error) {
	user, err := s.welcome(ctx, game, user)
	if err != nil {
		return Session{}, err
	}
	token := refreshToken{user: user.ID, family: rand.Text(), secret: rand.Text()}
	if err := s.store.startFamily(ctx, token, game.ID, s.options.IdleTTL, s.options.FamilyTTL); err != nil {
		return Session{}, err
	}
	return s.session(user, token)
}

func (s *Service) session(user users.User, token refreshToken) (Session, error) {
	access, err := s.signer.sign(user, token.family, s.now(), s.options.AccessTTL)
	if err != nil {
		return Session{}, err
	}
	return Session{AccessToken: access, ExpiresIn: s.options.AccessTTL, RefreshToken: token.String(), User: user}, nil
}

// IssueAccessToken signs an access token for a player who did not sign in: for an operator who holds the signing key and looks into something. It
// refuses user_not_found.
func (s *Service) IssueAccessToken(ctx context.Context, game, user int64, ttl time.Duration) (string, error) {
	u, err := s.users.Get(ctx, user)
	if err != nil {
		return "", err
	}
	if u.Game != game {
		return "", apierror.UserNotFound.WithReason("player %d belongs to game %d", user, u.Game)
	}
	return s.signer.sign(u, "", s.now(), ttl)
}

// refreshToken is prt_<uid>_<family>_<secret>.
type refreshToken struct {
	user           int64
	family, secret string
}

const refreshPrefix = "prt_"

func (t refreshToken) String() string {
	return refreshPrefix + strconv.FormatInt(t.user, 10) + "_" + t.family + "_" + t.secret
}

func (t refreshToken) digest() string { return digestOf(t.String()) }

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// longestRefresh bounds what is looked at; ours have less than 80 characters.
const longestRefresh = 128

func parseRefresh(text string) (refreshToken, error) {
	bad := apierror.Unauthenticated.WithReason("this is not a refresh token")
	rest, ours := strings.CutPrefix(text, refreshPrefix)
	parts := strings.Split(rest, "_")
	if !ours || len(text) > longestRefresh || len(parts) != 3 || parts[1] == "" || strings.ContainsAny(parts[1], "{}:") {
		return refreshToken{}, bad
	}
	user, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil || user <= 0 {
		return refreshToken{}, bad
	}
	return refreshToken{user, parts[1], parts[2]}, nil
}

// Refresh exchanges a refresh token for a new pair. It refuses unauthenticated for a token that is unknown or past its time, and
// refresh_reused for one that was exchanged before: that revokes its whole family.
func (s *Service) Refresh(ctx context.Context, text string) (Session, error) {
	shown, err := parseRefresh(text)
	if err != nil {
		return Session{}, err
	}
	// The player is read first: once the token is exchanged nothing may fail, or the player would be left without one.
	user, err := s.users.Get(ctx, shown.user)
	if errors.Is(err, apierror.UserNotFound) {
		return Session{}, apierror.Unauthenticated
	}
	if err != nil {
		return Session{}, err
	}
	following := refreshToken{shown.user, shown.family, rand.Text()}
	if err := s.store.rotate(ctx, shown, following, s.options.IdleTTL); err != nil {
		return Session{}, err
	}
	return s.session(user, following)
}

// Logout revokes the family of a refresh token or, without one, of an access token. Doing it again changes nothing. Access tokens that are
// out stay good until they expire. It refuses unauthenticated for what is neither.
func (s *Service) Logout(ctx context.Context, access, refresh string) error {
	if refresh != "" {
		token, err := parseRefresh(refresh)
		if err != nil {
			return err
		}
		return s.store.dropFamily(ctx, token.user, token.family)
	}
	c, err := s.Credential(ctx, access)
	if err != nil || c.Session == "" {
		return err
	}
	return s.store.dropFamily(ctx, c.User, c.Session)
}

// LinkInput is how a guest can come back: what a player gives for itself, or what a game's server says about a player.
type LinkInput struct {
	DeviceSecret  *string // a player: 16 to 256 bytes
	ExternalToken *string // a player: a token of an outside issuer that the game accepts
	UserID        *int64  // a server: the player
	ExternalID    *string // a server: its id there, 1 to 255 bytes
}

// Link turns a guest into a lasting account. Linking the same twice is once. It refuses already_linked when the identity is somebody else's or
// the account has one as good, invalid_request, unauthenticated for an external token that does not hold, and user_not_found.
func (s *Service) Link(ctx context.Context, caller principal.Caller, in LinkInput) (users.User, error) {
	byPlayer := in.DeviceSecret != nil || in.ExternalToken != nil
	byServer := in.UserID != nil || in.ExternalID != nil
	switch {
	case caller.Role == principal.Server && !byPlayer && in.UserID != nil && in.ExternalID != nil:
		if err := checkLength("externalId", *in.ExternalID, 1, 255); err != nil {
			return users.User{}, err
		}
		return s.link(ctx, *in.UserID, caller.Game, users.External, *in.ExternalID)
	case caller.Role == principal.Server:
		return users.User{}, apierror.InvalidRequest.WithField("externalId", "required", "must be given with userId, and nothing else")
	case caller.Role != principal.Player:
		return users.User{}, apierror.Forbidden
	case byServer:
		return users.User{}, apierror.Forbidden.WithReason("only a server key can link an external id")
	case (in.DeviceSecret == nil) == (in.ExternalToken == nil):
		return users.User{}, apierror.InvalidRequest.WithField("deviceSecret", "required", "must be given, or externalToken instead, but not both")
	case in.DeviceSecret != nil:
		if err := checkLength("deviceSecret", *in.DeviceSecret, 16, 256); err != nil {
			return users.User{}, err
		}
		return s.link(ctx, caller.User, caller.Game, users.Device, *in.DeviceSecret)
	}
	claims, game, err := s.outside(ctx, *in.ExternalToken)
	if err != nil {
		return users.User{}, err
	}
	if game.ID != caller.Game {
		return users.User{}, apierror.Unauthenticated.WithReason("the external token is for another game")
	}
	return s.link(ctx, caller.User, caller.Game, users.Issuer, claims.proof())
}

func (s *Service) link(ctx context.Context, user, game int64, kind users.Kind, proof string) (users.User, error) {
	identity, err := s.identity(ctx, game, kind, proof)
	if err != nil {
		return users.User{}, err
	}
	return s.users.Link(ctx, user, identity)
}

// Ticket is a caller for one socket.
type Ticket struct {
	Ticket    string
	ExpiresIn time.Duration
}

// Ticket makes a ticket for a caller. It is good once, and no longer than what the caller showed.
func (s *Service) Ticket(ctx context.Context, c Credential) (Ticket, error) {
	ttl := s.options.TicketTTL
	if !c.Expires.IsZero() {
		ttl = min(ttl, c.Expires.Sub(s.now()))
	}
	if ttl < time.Millisecond {
		return Ticket{}, apierror.TokenExpired
	}
	secret := rand.Text() + rand.Text()
	if err := s.store.keepTicket(ctx, digestOf(secret), c, ttl); err != nil {
		return Ticket{}, err
	}
	return Ticket{Ticket: secret, ExpiresIn: ttl}, nil
}

// RedeemTicket answers the caller of a ticket, once. It refuses unauthenticated. (When the store's reply is lost the ticket
// is lost with it: the caller asks for another.)
func (s *Service) RedeemTicket(ctx context.Context, ticket string) (Credential, error) {
	if len(ticket) > longestRefresh {
		return Credential{}, apierror.Unauthenticated
	}
	c, err := s.store.takeTicket(ctx, digestOf(ticket))
	if err == nil && !c.Expires.IsZero() && !s.now().Before(c.Expires) {
		return Credential{}, apierror.TokenExpired
	}
	return c, err
}

// Authenticate answers who shows a bearer token. It refuses unauthenticated and token_expired.
func (s *Service) Authenticate(ctx context.Context, bearer string) (principal.Caller, error) {
	c, err := s.Credential(ctx, bearer)
	return c.Caller, err
}

// longestBearer bounds tokens, in bytes.
const longestBearer = 4 << 10

// Credential is Authenticate that also tells how long the token is good.
func (s *Service) Credential(ctx context.Context, bearer string) (Credential, error) {
	if bearer == "" || len(bearer) > longestBearer {
		return Credential{}, apierror.Unauthenticated
	}
	digest := sha256.Sum256([]byte(bearer))
	if s.admin != nil && subtle.ConstantTimeCompare(digest[:], s.admin[:]) == 1 {
		return Credential{Caller: principal.Caller{Role: principal.Operator}}, nil
	}
	if games.IsServerKey(bearer) {
		game, err := s.games.FindByServerKey(ctx, bearer)
		if err != nil {
			return Credential{}, err
		}
		return Credential{Caller: principal.Caller{Role: principal.Server, Game: game.ID}}, nil
	}
	now := s.now()
	if c, known := s.verified.get(digest, now); known {
		if !now.Before(c.Expires) {
			return Credential{}, apierror.TokenExpired
		}
		return c, nil
	}
	if issuerOf(bearer) == games.OwnIssuer {
		c, err := s.signer.verify(bearer, now)
		if err == nil {
			s.verified.put(digest, c, c.Expires)
		}
		return c, err
	}
	c, err := s.outsider(ctx, bearer)
	if err == nil {
		s.verified.put(digest, c, now.Add(outsideCached))
	}
	return c, err
}

func checkLength(field, text string, least, most int) error {
	if len(text) < least || len(text) > most {
		return apierror.InvalidRequest.WithField(field, "range", fmt.Sprintf("must have %d to %d bytes", least, most))
	}
	return nil
}
