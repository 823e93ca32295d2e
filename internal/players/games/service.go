package games

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/cache"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/secret"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// Validator checks the parts of a definition whose meaning belongs to other packages; games only
// stores them.
type Validator interface {
	// CheckProgressRules returns invalid_request with the faulty fields, such as
	// settings.progressRules[2].min.
	CheckProgressRules(rules []byte) error
	// CheckKeySet returns an error that describes what is wrong with a JSON Web Key Set.
	CheckKeySet(keySet []byte) error
	// ParseAmount returns a positive amount of a token in minor units. It returns token_not_found and
	// invalid_amount.
	ParseAmount(ctx context.Context, tokenID, amount string) (units int64, err error)
}

// Options is what the installation demands of games and allows them.
type Options struct {
	Validator      Validator // required
	ReservedIssuer string    // the "iss" claim of Parlor's own tokens; no external provider can have it

	AllowAnyOrigin       bool // "*" may be listed among the origins; for development
	AllowLoopbackIssuers bool // key sets may come from http on loopback; for development and tests

	// HasPrizes reports whether a leaderboard of a game has prizes, false for one that does not exist.
	// Patch checks feeds by it. Nil: none has.
	HasPrizes func(ctx context.Context, gameID int64, board string) (bool, error)
}

// Service keeps games. It is safe for concurrent use.
type Service struct {
	store   *store
	options Options
	cache   *gameCache
	origins allOriginsCache

	sessions    Sessions                       // nil: there are none
	unknownKeys *cache.Cache[string, struct{}] // digests of server keys that their games do not have
}

// New returns a service on a store. It panics without a Validator, since unchecked definitions must
// not be stored.
func New(db *redisdb.DB, o Options) *Service {
	if o.Validator == nil {
		panic("games: Options.Validator is required")
	}
	return &Service{
		store: &store{db: db}, options: o, cache: newGameCache(),
		unknownKeys: cache.New[string, struct{}]("unknown_server_keys", cacheSize, cacheTTL),
	}
}

// Sessions are what players began with the word of somebody for whom a game no longer vouches.
type Sessions interface {
	// EndIssuerSessions ends the sessions that began by the token of an outside issuer.
	EndIssuerSessions(ctx context.Context, gameID int64, issuer string) error
	// EndServerKeySessions ends the sessions that a server key made, and all that it makes yet.
	EndServerKeySessions(ctx context.Context, gameID int64, keyID string) error
}

// EndSessionsIn makes Patch and RevokeServerKey end sessions, which games know nothing of. It must
// be called before the service is used.
func (s *Service) EndSessionsIn(sessions Sessions) { s.sessions = sessions }

// serverKeyPrefix starts every server key, so that one in the wrong place is recognised.
const serverKeyPrefix = "psk_"

// newServerKey returns psk_<gameId>_<43 random characters>.
func newServerKey(gameID int64) string {
	return serverKeyPrefix + strconv.FormatInt(gameID, 10) + "_" + secret.New()
}

// authorize returns nil when the caller may act on a game: its server and the operator. It returns
// game_not_found to the server of another game, and forbidden to everybody else.
func authorize(caller principal.Caller, gameID int64) error {
	return caller.Authorize(gameID, principal.Server, principal.Operator)
}

func authorizeOperator(caller principal.Caller) error {
	if caller.Role != principal.Operator {
		return apierror.Forbidden
	}
	return nil
}

// Create makes a game and its first server key, which is shown only this once. It is for the
// operator. It returns forbidden, invalid_request with every faulty field, and token_not_found or
// invalid_amount for the signup grant.
func (s *Service) Create(ctx context.Context, caller principal.Caller, d Definition) (Game, string, error) {
	if err := authorizeOperator(caller); err != nil {
		return Game{}, "", err
	}
	g, err := s.define(ctx, d)
	if err != nil {
		return Game{}, "", err
	}
	if g.ID, err = s.store.nextID(ctx); err != nil {
		return Game{}, "", err
	}
	key := newServerKey(g.ID)
	g, err = s.create(ctx, g, key)
	return g, key, err
}

// FirstID is the id of the first game of an installation.
const FirstID = 1

// CreateFirst makes the game with FirstID, unless there is one, and reports whether it did. Several
// nodes may call it at once. serverKey is the game's, as NewFirstServerKey returns it; "" makes one
// that nobody knows. It returns the errors of Create.
func (s *Service) CreateFirst(
	ctx context.Context, caller principal.Caller, d Definition, serverKey string,
) (Game, bool, error) {
	if err := authorizeOperator(caller); err != nil {
		return Game{}, false, err
	}
	g, err := s.define(ctx, d)
	if err != nil {
		return Game{}, false, err
	}
	if err := s.store.skipFirstID(ctx); err != nil {
		return Game{}, false, err
	}
	g.ID = FirstID
	g, err = s.create(ctx, g, cmp.Or(serverKey, newServerKey(FirstID)))
	if errors.Is(err, redisdb.ErrStale) { // there is one
		return Game{}, false, nil
	}
	return g, err == nil, err
}

// NewFirstServerKey returns a server key for CreateFirst.
func NewFirstServerKey() string { return newServerKey(FirstID) }

// CheckFirstServerKey returns an error unless a text looks like a key of NewFirstServerKey.
func CheckFirstServerKey(key string) error {
	want := newServerKey(FirstID)
	if !strings.HasPrefix(key, serverKeyPrefix+strconv.Itoa(FirstID)+"_") || len(key) < len(want) {
		return fmt.Errorf("must be %s%d_ and %d random characters", serverKeyPrefix, FirstID, len(secret.New()))
	}
	return nil
}

// define returns the game of a definition, without an id. It returns invalid_request with every
// faulty field, and token_not_found or invalid_amount for the signup grant.
func (s *Service) define(ctx context.Context, d Definition) (Game, error) {
	grant, err := s.checkWithValidator(ctx, d.Settings, d.SignupGrant)
	if err != nil {
		return Game{}, err
	}
	if d.Origins == nil {
		d.Origins = []string{}
	}
	g := Game{SignupGrant: grant, Settings: DefaultSettings()}
	g, err = g.withPatch(PatchInput{Name: &d.Name, Origins: &d.Origins, Settings: d.Settings}, s.options)
	if err != nil {
		return Game{}, err
	}
	return g, s.checkGrantLimit(ctx, g)
}

// create stores a new game. It returns redisdb.ErrStale when there is one with its id, made with
// another key.
func (s *Service) create(ctx context.Context, g Game, serverKey string) (Game, error) {
	if err := s.claimIssuers(ctx, g); err != nil {
		return Game{}, err
	}
	if err := s.store.create(ctx, g, secret.Digest(serverKey)); err != nil {
		return Game{}, err
	}
	return s.reloadChanged(ctx, g.ID)
}

// checkWithValidator checks what the Validator knows, and returns the signup grant in minor units.
func (s *Service) checkWithValidator(
	ctx context.Context, settings SettingsPatch, grant *SignupGrantInput,
) (*SignupGrant, error) {
	if err := s.options.Validator.CheckProgressRules(settings.ProgressRules); err != nil {
		return nil, err
	}
	if grant == nil {
		return nil, nil
	}
	switch grant.For {
	case "", GrantForLinked, GrantForAny:
	default:
		return nil, apierror.InvalidRequest.WithField("welcomeGrant.for", "unknown", "must be linked or any")
	}
	units, err := s.options.Validator.ParseAmount(ctx, grant.TokenCode, grant.DecimalAmount)
	if errors.Is(err, apierror.InvalidAmount) {
		err = apierror.InField("welcomeGrant.amount", err)
	}
	if err != nil {
		return nil, err
	}
	return &SignupGrant{TokenCode: grant.TokenCode, Units: units, For: cmp.Or(grant.For, GrantForLinked)}, nil
}

// checkGrantLimit returns invalid_request for a limit of grants that is no amount of their token.
func (s *Service) checkGrantLimit(ctx context.Context, g Game) error {
	limit := g.Settings.GrantLimitPerDay
	const field = "settings.grantLimitPerDay"
	switch {
	case limit == "":
		return nil
	case g.SignupGrant == nil:
		return apierror.InvalidRequest.WithField(field, "range", "needs a welcomeGrant")
	}
	_, err := s.options.Validator.ParseAmount(ctx, g.SignupGrant.TokenCode, string(limit))
	if invalid, ok := apierror.As(err); ok && errors.Is(err, apierror.InvalidAmount) {
		return apierror.InvalidRequest.WithField(field, "format", invalid.Detail)
	}
	return err
}

// Get returns a game to its server and to the operator, as Find does. It returns forbidden and
// game_not_found.
func (s *Service) Get(ctx context.Context, caller principal.Caller, id int64) (Game, error) {
	if err := authorize(caller, id); err != nil {
		return Game{}, err
	}
	return s.Find(ctx, id)
}

// Find returns a game as it was at most a second ago, this node's own changes at once. It has no
// Caller: it serves requests of players, which depend on the game but must not show it. It returns
// game_not_found.
func (s *Service) Find(ctx context.Context, id int64) (Game, error) {
	return s.cache.get(ctx, id, s.store.load)
}

// CountPlayer counts a new player against the daily quota of the game, before the player is
// created. Like Find it has no Caller. It returns game_not_found and limit_reached.
func (s *Service) CountPlayer(ctx context.Context, id int64) error {
	game, err := s.Find(ctx, id)
	if err != nil {
		return err
	}
	quotas := game.Settings.Quotas
	err = s.store.countPlayer(ctx, id, quotas.NewPlayersPerDay)
	if errors.Is(err, apierror.LimitReached) {
		err = quotas.Reached(QuotaNewPlayers)
	}
	return err
}

// AssetQuota returns how many assets a game may have at most. Like Find it has no Caller. It
// returns game_not_found.
func (s *Service) AssetQuota(ctx context.Context, id int64) (int64, error) {
	game, err := s.Find(ctx, id)
	return game.Settings.Quotas.Assets, err
}

// GetWithUse is Get, with how much the game has of what its quotas bound.
func (s *Service) GetWithUse(ctx context.Context, caller principal.Caller, id int64) (Game, Use, error) {
	g, err := s.Get(ctx, caller, id)
	if err != nil {
		return Game{}, nil, err
	}
	use, err := s.store.readUse(ctx, id)
	return g, use, err
}

// ProgressRules returns the game's rules for saves, as package progress parses them; nil for none.
// It has no Caller, as Find. It returns game_not_found.
func (s *Service) ProgressRules(ctx context.Context, id int64) ([]byte, error) {
	g, err := s.Find(ctx, id)
	return g.Settings.ProgressRules, err
}

// AvatarHosts returns the hosts at which avatars of the game's players may be; none for every
// public one. It has no Caller, as Find. It returns game_not_found.
func (s *Service) AvatarHosts(ctx context.Context, id int64) ([]string, error) {
	g, err := s.Find(ctx, id)
	return g.Settings.AvatarHosts, err
}

// reloadChanged reads a game that this node has changed, so that the node sees the change at once.
func (s *Service) reloadChanged(ctx context.Context, id int64) (Game, error) {
	g, err := s.reload(ctx, id)
	if err == nil {
		s.origins.expire()
	}
	return g, err
}

// reload reads a game past the cache.
func (s *Service) reload(ctx context.Context, id int64) (Game, error) {
	readAt := time.Now()
	g, err := s.store.load(ctx, id)
	if err != nil {
		return Game{}, err
	}
	return s.cache.addUnlessOlder(g, readAt), nil
}

// SetActiveWebhooks stores how many webhooks get the events of a game. While there is one, the game
// has a feed. Other nodes see it within a second. It returns game_not_found.
func (s *Service) SetActiveWebhooks(ctx context.Context, id int64, n int) error {
	if _, err := s.store.load(ctx, id); err != nil {
		return err
	}
	if err := s.store.setActiveWebhooks(ctx, id, n); err != nil {
		return err
	}
	_, err := s.reload(ctx, id)
	return err
}

// patchAttempts bounds how often a change is repeated because another editor was faster.
const patchAttempts = 16

// Patch changes a game. The operator may change all fields, the game's server only name, origins,
// rules for saves and time-outs. The sessions of an issuer that is no longer listed end. It returns
// forbidden with every field that only the operator may change, game_not_found, invalid_request
// with every faulty field, token_not_found or invalid_amount for the signup grant, and
// version_conflict when the caller named a version that is no longer the newest.
func (s *Service) Patch(ctx context.Context, caller principal.Caller, id int64, p PatchInput) (Game, error) {
	if _, err := s.Get(ctx, caller, id); err != nil {
		return Game{}, err
	}
	if err := p.authorize(caller); err != nil {
		return Game{}, err
	}
	grant, err := s.checkWithValidator(ctx, p.Settings, p.SignupGrant.Value)
	if err != nil {
		return Game{}, err
	}
	for range patchAttempts {
		current, err := s.store.load(ctx, id)
		if err != nil {
			return Game{}, err
		}
		if p.Version != 0 && p.Version != current.Version {
			return Game{}, apierror.VersionConflict.WithMember("current", current.Version)
		}
		changed, err := current.withPatch(p, s.options)
		if err != nil {
			return Game{}, err
		}
		if err := s.checkPrizeFeeds(ctx, id, changed.Settings, p.Settings); err != nil {
			return Game{}, err
		}
		if p.SignupGrant.IsGiven {
			changed.SignupGrant = grant
		}
		if p.SignupGrant.IsGiven || p.Settings.GrantLimitPerDay.IsGiven {
			if err := s.checkGrantLimit(ctx, changed); err != nil {
				return Game{}, err
			}
		}
		if err := s.claimIssuers(ctx, changed); err != nil {
			return Game{}, err
		}
		removed := current.issuersMissingIn(changed)
		// Ended before the change too: when that succeeds and this fails, repeating it finds no issuer.
		if err := s.endIssuerSessions(ctx, id, removed); err != nil {
			return Game{}, err
		}
		err = s.store.patch(ctx, changed)
		if errors.Is(err, redisdb.ErrStale) {
			continue
		}
		if err != nil {
			return Game{}, err
		}
		if changed, err = s.reloadChanged(ctx, id); err != nil {
			return Game{}, err
		}
		return changed, s.endIssuerSessions(ctx, id, removed)
	}
	return Game{}, apierror.VersionConflict.WithReason("the game is being changed too often")
}

// authorize returns forbidden with every field that a server may not change.
func (p PatchInput) authorize(caller principal.Caller) error {
	if caller.Role == principal.Operator {
		return nil
	}
	var errs apierror.FieldErrors
	if p.SignupGrant.IsGiven {
		errs.Add("welcomeGrant", "forbidden", "only the operator can change it")
	}
	p.Settings.checkServerMayChange(&errs)
	invalid, ok := apierror.As(errs.Err())
	if !ok {
		return nil
	}
	refused := apierror.Forbidden
	for _, f := range invalid.FieldErrors {
		refused = refused.WithField(f.Field, f.Code, f.Message)
	}
	return refused
}

// issuersMissingIn returns the issuers of the game's list that another list has no longer, or not
// for the same audience.
func (g Game) issuersMissingIn(other Game) (issuers []string) {
	for _, i := range g.Settings.Issuers {
		if _, listed := other.findIssuer(i); !listed && !slices.Contains(issuers, i.Issuer) {
			issuers = append(issuers, i.Issuer)
		}
	}
	return issuers
}

func (s *Service) endIssuerSessions(ctx context.Context, id int64, issuers []string) error {
	if s.sessions == nil {
		return nil
	}
	for _, issuer := range issuers {
		if err := s.sessions.EndIssuerSessions(ctx, id, issuer); err != nil {
			return err
		}
	}
	return nil
}

// List returns up to limit games with ids above after, ordered by id, and the id to go on after, or
// 0 when there are no more. It is for the operator. It returns forbidden.
func (s *Service) List(ctx context.Context, caller principal.Caller, after int64, limit int) ([]Game, int64, error) {
	if err := authorizeOperator(caller); err != nil {
		return nil, 0, err
	}
	return s.list(ctx, after, limit)
}

func (s *Service) list(ctx context.Context, after int64, limit int) ([]Game, int64, error) {
	last, err := s.store.lastID(ctx)
	if err != nil {
		return nil, 0, err
	}
	games := make([]Game, 0, limit)
	for from := max(after, 0) + 1; from <= last && len(games) < limit; {
		to := min(last, from+int64(limit-len(games))-1)
		batch, err := s.store.loadRange(ctx, from, to)
		if err != nil {
			return nil, 0, err
		}
		games = append(games, batch...) // ids that were numbered but never used are holes
		after, from = to, to+1
	}
	if after >= last {
		after = 0
	}
	return games, after, nil
}

// FindByServerKey returns the game of a server key. It has no Caller: the key is what makes
// somebody a caller. It returns unauthenticated for a key that no game has.
func (s *Service) FindByServerKey(ctx context.Context, key string) (Game, error) {
	rest, isKey := strings.CutPrefix(key, serverKeyPrefix)
	number, _, hasSecret := strings.Cut(rest, "_")
	id, err := strconv.ParseInt(number, 10, 64)
	if !isKey || !hasSecret || err != nil {
		return Game{}, apierror.Unauthenticated
	}
	digest := secret.Digest(key)
	if g, cached := s.cache.games.Get(id); cached && g.hasServerKey(digest) {
		return g, nil
	}
	// Guessed keys must not cost a read of a whole game each.
	if _, missed := s.unknownKeys.Get(digest); missed {
		return Game{}, apierror.Unauthenticated
	}
	known, err := s.store.hasServerKey(ctx, id, digest)
	if err != nil {
		return Game{}, err
	}
	if !known {
		s.unknownKeys.Add(digest, struct{}{})
		return Game{}, apierror.Unauthenticated
	}
	g, err := s.Find(ctx, id)
	if err == nil && !g.hasServerKey(digest) {
		g, err = s.reload(ctx, id) // another node added this key within the last second
	}
	switch {
	case errors.Is(err, apierror.GameNotFound):
		return Game{}, apierror.Unauthenticated
	case err != nil:
		return Game{}, err
	case !g.hasServerKey(digest):
		return Game{}, apierror.Unauthenticated
	}
	return g, nil
}

// ServerKeyID returns the id of a server key, as ServerKeyInfo has it.
func ServerKeyID(key string) string { return secret.Digest(key)[:keyIDLength] }

// HasServerKeyID reports whether a key with an id is one of the game's keys.
func (g Game) HasServerKeyID(id string) bool {
	return slices.ContainsFunc(g.serverKeys, func(k storedKey) bool { return k.id() == id })
}

// IsServerKey reports whether a bearer token has the form of a server key.
func IsServerKey(bearer string) bool { return strings.HasPrefix(bearer, serverKeyPrefix) }

// AddServerKey makes one more server key of a game and returns it, only this once; the older keys
// stay valid until they are revoked. It is for the operator. It returns game_not_found, and
// forbidden to others and when the game has 8 keys.
func (s *Service) AddServerKey(ctx context.Context, caller principal.Caller, id int64) (Game, string, error) {
	if err := authorizeOperator(caller); err != nil {
		return Game{}, "", err
	}
	key := newServerKey(id)
	if err := s.store.addServerKey(ctx, id, secret.Digest(key)); err != nil {
		return Game{}, "", err
	}
	g, err := s.reloadChanged(ctx, id)
	return g, key, err
}

// RevokeServerKey makes a server key invalid: at once on this node, within a second on others, and
// ends the sessions that it made. It is for the operator. It returns forbidden, game_not_found, and
// invalid_request for an id that none of the game's keys has.
func (s *Service) RevokeServerKey(ctx context.Context, caller principal.Caller, id int64, keyID string) (Game, error) {
	if err := authorizeOperator(caller); err != nil {
		return Game{}, err
	}
	g, err := s.store.load(ctx, id)
	if err != nil {
		return Game{}, err
	}
	for _, k := range g.serverKeys {
		if k.id() == keyID {
			// First, so that repeating a call that failed completes it.
			if s.sessions != nil {
				if err := s.sessions.EndServerKeySessions(ctx, id, keyID); err != nil {
					return Game{}, err
				}
			}
			if err := s.store.removeServerKey(ctx, id, k.digest); err != nil {
				return Game{}, err
			}
			return s.reloadChanged(ctx, id)
		}
	}
	return Game{}, apierror.InvalidRequest.WithField("keyId", "unknown", "is not a server key of this game")
}

// indexField names the pair of issuer and audience in the index of issuers.
func (i Issuer) indexField() string { return secret.Digest(i.Issuer + "\x00" + i.Audience) }

// FindByIssuer returns the game that accepts an external provider's tokens for an audience, and its
// settings of the provider. It has no Caller: the token is what makes somebody a caller. It returns
// unauthenticated when no game does.
func (s *Service) FindByIssuer(ctx context.Context, issuer, audience string) (Game, Issuer, error) {
	wanted := Issuer{Issuer: issuer, Audience: audience}
	id, err := s.store.issuerOwner(ctx, wanted.indexField())
	if err != nil {
		return Game{}, Issuer{}, err
	}
	if id == 0 {
		return Game{}, Issuer{}, apierror.Unauthenticated
	}
	g, err := s.Find(ctx, id)
	if err != nil && !errors.Is(err, apierror.GameNotFound) {
		return Game{}, Issuer{}, err
	}
	found, ok := g.findIssuer(wanted)
	if !ok {
		return Game{}, Issuer{}, apierror.Unauthenticated
	}
	return g, found, nil
}

func (g Game) findIssuer(wanted Issuer) (Issuer, bool) {
	for _, i := range g.Settings.Issuers {
		if i.Issuer == wanted.Issuer && i.Audience == wanted.Audience {
			return i, true
		}
	}
	return Issuer{}, false
}

// claimIssuers writes the game into the index of issuers before the game itself is written. An
// entry whose game does not list the pair (any more) is ignored and replaced.
func (s *Service) claimIssuers(ctx context.Context, g Game) error {
	for n, issuer := range g.Settings.Issuers {
		formerOwner := int64(0)
		for {
			owner, err := s.store.claimIssuer(ctx, issuer.indexField(), g.ID, formerOwner)
			if err != nil {
				return err
			}
			if owner == g.ID {
				break
			}
			other, err := s.store.load(ctx, owner)
			if err != nil && !errors.Is(err, apierror.GameNotFound) {
				return err
			}
			if _, lists := other.findIssuer(issuer); lists {
				field := fmt.Sprintf("settings.issuers[%d]", n)
				return apierror.InvalidRequest.WithField(field, "duplicate", "belongs to another game")
			}
			formerOwner = owner
		}
	}
	return nil
}
