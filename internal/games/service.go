package games

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/redisdb"
)

// Options is what this installation lets games say.
type Options struct {
	AnyOrigin       bool // "*" may be listed among the origins; for development
	LoopbackIssuers bool // key sets may come from http on loopback; for development and tests
}

// Service keeps games. It is safe for concurrent use.
type Service struct {
	store   *store
	rules   Options
	cache   cache
	origins origins
}

// New makes the service with the rules of production; an installation for development gives its own.
func New(db *redisdb.DB, rules ...Options) *Service {
	s := &Service{store: &store{db: db}, cache: cache{entries: map[int64]cached{}}}
	for _, r := range rules {
		s.rules = r
	}
	return s
}

// serverKeyPrefix starts every server key, so that one in the wrong place is recognised.
const serverKeyPrefix = "psk_"

// newServerKey makes psk_<gameId>_<43 random characters> and its digest.
func newServerKey(gameID int64) (key, digest string) {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails, see crypto/rand
	key = serverKeyPrefix + strconv.FormatInt(gameID, 10) + "_" + base64.RawURLEncoding.EncodeToString(secret[:])
	return key, digestOf(key)
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Create makes a game and its first server key, which is shown this once. It refuses invalid_request with every faulty field.
func (s *Service) Create(ctx context.Context, d Definition) (Game, string, error) {
	if d.Origins == nil {
		d.Origins = []string{}
	}
	g, err := Game{Settings: DefaultSettings()}.apply(Patch{
		Name: &d.Name, Origins: &d.Origins, WelcomeGrant: &d.WelcomeGrant, Settings: d.Settings,
	}, s.rules)
	if err != nil {
		return Game{}, "", err
	}
	if g.ID, err = s.store.nextID(ctx); err != nil {
		return Game{}, "", err
	}
	if err := s.claim(ctx, g); err != nil {
		return Game{}, "", err
	}
	key, digest := newServerKey(g.ID)
	if err := s.store.create(ctx, g, digest); err != nil {
		return Game{}, "", err
	}
	g, err = s.reload(ctx, g.ID)
	return g, key, err
}

// Get answers a game as it was at most a second ago, this node's own changes at once. It refuses game_not_found.
func (s *Service) Get(ctx context.Context, id int64) (Game, error) {
	return s.cache.get(ctx, id, s.store.load)
}

// ProgressRules answers what the game demands of saves, as package progress reads it; nil for nothing.
func (s *Service) ProgressRules(ctx context.Context, id int64) ([]byte, error) {
	g, err := s.Get(ctx, id)
	return g.Settings.ProgressRules, err
}

// reload reads a game that this node changed, and makes it see all of the change at once.
func (s *Service) reload(ctx context.Context, id int64) (Game, error) {
	g, err := s.fresh(ctx, id)
	if err == nil {
		s.origins.forget()
	}
	return g, err
}

// fresh reads a game past the cache.
func (s *Service) fresh(ctx context.Context, id int64) (Game, error) {
	began := time.Now()
	g, err := s.store.load(ctx, id)
	if err != nil {
		return Game{}, err
	}
	return s.cache.put(g, began), nil
}

// patchTries bounds how often a change is made anew because another editor was faster.
const patchTries = 16

// Patch changes a game. It refuses game_not_found, invalid_request and, when the caller named a version that is no longer the
// newest, version_conflict.
func (s *Service) Patch(ctx context.Context, id int64, p Patch) (Game, error) {
	for range patchTries {
		before, err := s.store.load(ctx, id)
		if err != nil {
			return Game{}, err
		}
		if p.Version != 0 && p.Version != before.Version {
			return Game{}, apierror.VersionConflict.WithMember("current", before.Version)
		}
		after, err := before.apply(p, s.rules)
		if err != nil {
			return Game{}, err
		}
		if err := s.claim(ctx, after); err != nil {
			return Game{}, err
		}
		err = s.store.patch(ctx, after)
		if errors.Is(err, errStale) {
			continue
		}
		if err != nil {
			return Game{}, err
		}
		return s.reload(ctx, id)
	}
	return Game{}, apierror.VersionConflict.WithReason("the game is being changed too often")
}

// List answers up to limit games with ids above after, in the order of their ids, and the id to go on after, or 0 when there are no more.
func (s *Service) List(ctx context.Context, after int64, limit int) ([]Game, int64, error) {
	last, err := s.store.lastID(ctx)
	if err != nil {
		return nil, 0, err
	}
	games := make([]Game, 0, limit)
	for from := max(after, 0) + 1; from <= last && len(games) < limit; {
		to := min(last, from+int64(limit-len(games))-1)
		some, err := s.store.loadRange(ctx, from, to)
		if err != nil {
			return nil, 0, err
		}
		games = append(games, some...) // ids that were counted and never used are holes
		after, from = to, to+1
	}
	if after >= last {
		after = 0
	}
	return games, after, nil
}

// FindByServerKey answers the game whose server key this is, or refuses unauthenticated.
func (s *Service) FindByServerKey(ctx context.Context, key string) (Game, error) {
	rest, isKey := strings.CutPrefix(key, serverKeyPrefix)
	number, _, whole := strings.Cut(rest, "_")
	id, err := strconv.ParseInt(number, 10, 64)
	if !isKey || !whole || err != nil {
		return Game{}, apierror.Unauthenticated
	}
	digest := digestOf(key)
	g, err := s.Get(ctx, id)
	if err == nil && !g.holds(digest) {
		g, err = s.fresh(ctx, id) // another node may have just given this key
	}
	switch {
	case errors.Is(err, apierror.GameNotFound):
		return Game{}, apierror.Unauthenticated
	case err != nil:
		return Game{}, err
	case !g.holds(digest):
		return Game{}, apierror.Unauthenticated
	}
	return g, nil
}

// IsServerKey tells whether a secret has the form of a server key.
func IsServerKey(secret string) bool { return strings.HasPrefix(secret, serverKeyPrefix) }

// RotateServerKey gives a game one more server key, shown this once; the older ones stay good until they are revoked.
// It refuses game_not_found, and forbidden when the game has 8 keys already.
func (s *Service) RotateServerKey(ctx context.Context, id int64) (Game, string, error) {
	key, digest := newServerKey(id)
	if err := s.store.rekey(ctx, id, digest, ""); err != nil {
		return Game{}, "", err
	}
	g, err := s.reload(ctx, id)
	return g, key, err
}

// RevokeServerKey makes a server key worthless: at once here, within a second on other nodes. It refuses
// game_not_found and, for an id that is none of the game's, invalid_request.
func (s *Service) RevokeServerKey(ctx context.Context, id int64, keyID string) (Game, error) {
	g, err := s.store.load(ctx, id)
	if err != nil {
		return Game{}, err
	}
	for _, k := range g.keys {
		if k.digest[:keyIDLength] == keyID {
			if err := s.store.rekey(ctx, id, "", k.digest); err != nil {
				return Game{}, err
			}
			return s.reload(ctx, id)
		}
	}
	return Game{}, apierror.InvalidRequest.WithField("keyId", "unknown", "is not a server key of this game")
}

// field names the pair in the index of issuers.
func (i Issuer) field() string { return digestOf(i.Issuer + "\x00" + i.Audience) }

// FindByIssuer answers the game that accepts an outside provider's tokens for an audience, and what it says about the
// provider. It refuses unauthenticated when there is none.
func (s *Service) FindByIssuer(ctx context.Context, issuer, audience string) (Game, Issuer, error) {
	wanted := Issuer{Issuer: issuer, Audience: audience}
	id, err := s.store.issuerOf(ctx, wanted.field())
	if err != nil {
		return Game{}, Issuer{}, err
	}
	if id == 0 {
		return Game{}, Issuer{}, apierror.Unauthenticated
	}
	g, err := s.Get(ctx, id)
	if err != nil && !errors.Is(err, apierror.GameNotFound) {
		return Game{}, Issuer{}, err
	}
	found, ok := g.issuer(wanted)
	if !ok {
		return Game{}, Issuer{}, apierror.Unauthenticated
	}
	return g, found, nil
}

func (g Game) issuer(wanted Issuer) (Issuer, bool) {
	for _, i := range g.Settings.Issuers {
		if i.Issuer == wanted.Issuer && i.Audience == wanted.Audience {
			return i, true
		}
	}
	return Issuer{}, false
}

// claim writes the game into the index of issuers, before the game itself says so. An entry of a game that does not
// (or no longer) list the pair is only a hint and is taken over.
func (s *Service) claim(ctx context.Context, g Game) error {
	for n, issuer := range g.Settings.Issuers {
		former := int64(0)
		for {
			holder, err := s.store.claim(ctx, issuer.field(), g.ID, former)
			if err != nil {
				return err
			}
			if holder == g.ID {
				break
			}
			other, err := s.store.load(ctx, holder)
			if err != nil && !errors.Is(err, apierror.GameNotFound) {
				return err
			}
			if _, lists := other.issuer(issuer); lists {
				return apierror.InvalidRequest.WithField(fmt.Sprintf("settings.issuers[%d]", n), "duplicate", "belongs to another game")
			}
			former = holder
		}
	}
	return nil
}
