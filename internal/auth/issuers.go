package auth

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/principal"

	"github.com/golang-jwt/jwt/v5"
	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/games"
	"github.com/parlor-games/parlor/internal/users"
	"golang.org/x/sync/singleflight"
)

const (
	outsideLeeway  = 30 * time.Second // between an issuer's clock and ours
	outsideCached  = time.Minute      // so that a key or issuer that was taken away is refused soon
	mostAudiences  = 8
	longestSubject = 255
)

// outsideClaims are what is read of an outside issuer's token.
type outsideClaims struct {
	jwt.RegisteredClaims
	Name      string `json:"name"`
	Preferred string `json:"preferred_username"`
	Picture   string `json:"picture"`
}

// proof is what names the player at the issuer.
func (c outsideClaims) proof() string { return c.Issuer + "\x00" + c.Subject }

// newcomer is how a player from there is called: as far as our rules allow, as there.
func (c outsideClaims) newcomer() users.NewUser {
	var n users.NewUser
	for _, name := range []string{c.Preferred, c.Name} {
		if checked, err := users.CheckUsername(name); err == nil && n.Username == nil {
			n.Username = &checked
		}
	}
	if _, err := users.CheckAvatar(&c.Picture); err == nil {
		n.Avatar = &c.Picture
	}
	return n
}

// outsider answers the player whom an outside issuer's token names, and makes it at its first sight.
func (s *Service) outsider(ctx context.Context, bearer string) (Credential, error) {
	claims, game, err := s.outside(ctx, bearer)
	if err != nil {
		return Credential{}, err
	}
	user, err := s.signIn(ctx, game.ID, users.Issuer, claims.proof(), claims.newcomer())
	if err != nil {
		return Credential{}, err
	}
	if _, err := s.welcome(ctx, game, user); err != nil {
		return Credential{}, err
	}
	return Credential{
		Caller:  principal.Caller{Role: principal.Player, User: user.ID, Game: game.ID},
		Expires: claims.ExpiresAt.Add(outsideLeeway),
	}, nil
}

// outside verifies an outside issuer's token. The game that accepts issuer and audience says where the keys are; the token's header only
// names one of them.
func (s *Service) outside(ctx context.Context, bearer string) (outsideClaims, games.Game, error) {
	refuse := func(err error) (outsideClaims, games.Game, error) { return outsideClaims{}, games.Game{}, err }
	if len(bearer) > longestBearer {
		return refuse(apierror.Unauthenticated)
	}
	var said jwt.RegisteredClaims
	unverified, _, err := jwt.NewParser().ParseUnverified(bearer, &said)
	if err != nil || said.Issuer == "" || len(said.Audience) > mostAudiences {
		return refuse(apierror.Unauthenticated)
	}
	if _, critical := unverified.Header["crit"]; critical {
		return refuse(apierror.Unauthenticated)
	}
	for _, audience := range said.Audience {
		game, issuer, err := s.games.FindByIssuer(ctx, said.Issuer, audience)
		if refusal, ok := apierror.As(err); ok && refusal.Code == apierror.Unauthenticated.Code {
			continue
		}
		if err != nil {
			return refuse(err)
		}
		kid, _ := unverified.Header["kid"].(string)
		key, err := s.keySets.find(ctx, issuer, kid, s.now())
		if err != nil {
			return refuse(err)
		}
		var claims outsideClaims
		parser := jwt.NewParser(
			jwt.WithValidMethods([]string{key.Algorithm}), // one of EdDSA, ES256, RS256: the key's own
			jwt.WithIssuer(issuer.Issuer), jwt.WithAudience(issuer.Audience), jwt.WithExpirationRequired(),
			jwt.WithLeeway(outsideLeeway), jwt.WithTimeFunc(s.now),
		)
		if _, err := parser.ParseWithClaims(bearer, &claims, func(*jwt.Token) (any, error) { return key.Key, nil }); err != nil {
			return refuse(refused(err))
		}
		if claims.Subject == "" || len(claims.Subject) > longestSubject {
			return refuse(apierror.Unauthenticated)
		}
		return claims, game, nil
	}
	return refuse(apierror.Unauthenticated)
}

// How key sets are kept.
const (
	keySetFresh   = 10 * time.Minute
	keySetStale   = 24 * time.Hour   // how long an old set serves while the issuer is down
	keySetAgain   = 30 * time.Second // between two fetches for the sake of an unknown key
	keySetFirst   = 3 * time.Second  // between two fetches while there is no set at all
	keySetTimeout = 3 * time.Second
)

// keySets fetches issuers' key sets and remembers them.
type keySets struct {
	client *http.Client
	loads  singleflight.Group
	mu     sync.Mutex
	sets   map[string]keySet // by what they are made from: an address or the keys themselves
}

type keySet struct {
	keys    games.KeySet
	fetched time.Time // of the keys; zero: never
	tried   time.Time
}

const mostKeySets = 1024

func newKeySets() *keySets {
	return &keySets{
		sets: map[string]keySet{},
		client: &http.Client{
			Timeout: keySetTimeout,
			// Rare requests: a connection is not kept. No proxy, and no redirect: the address is the one that the operator has approved.
			Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, MaxResponseHeaderBytes: 32 << 10},
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
		},
	}
}

// find answers the key that a token names, or the only one when it names none.
func (k *keySets) find(ctx context.Context, issuer games.Issuer, kid string, now time.Time) (games.PublicKey, error) {
	source := issuer.JWKSURL
	if source == "" {
		source = string(issuer.Keys)
	}
	k.mu.Lock()
	set := k.sets[source]
	k.mu.Unlock()

	key, found := pick(set.keys, kid)
	fresh := issuer.JWKSURL == "" && set.keys != nil || !set.fetched.IsZero() && now.Sub(set.fetched) < keySetFresh
	if !(found && fresh) && k.due(set, issuer, now) {
		var err error
		if set, err = k.load(ctx, source, issuer, now); err != nil {
			return games.PublicKey{}, err
		}
		key, found = pick(set.keys, kid)
	}
	switch {
	case set.keys == nil || issuer.JWKSURL != "" && now.Sub(set.fetched) >= keySetStale:
		return games.PublicKey{}, apierror.Unauthenticated.WithReason("the keys of the issuer cannot be fetched at the moment")
	case !found:
		return games.PublicKey{}, apierror.Unauthenticated
	}
	return key, nil
}

// due tells whether a set may be fetched now.
func (k *keySets) due(set keySet, issuer games.Issuer, now time.Time) bool {
	switch {
	case issuer.JWKSURL == "":
		return set.keys == nil
	case set.keys == nil:
		return now.Sub(set.tried) >= keySetFirst
	default:
		return now.Sub(set.tried) >= keySetAgain
	}
}

func pick(set games.KeySet, kid string) (games.PublicKey, bool) {
	if kid == "" && len(set) == 1 {
		for _, key := range set {
			return key, true
		}
	}
	key, found := set[kid]
	return key, found
}

// load fetches a set, once for all who wait. When that fails the old one stays.
func (k *keySets) load(ctx context.Context, source string, issuer games.Issuer, now time.Time) (keySet, error) {
	result := k.loads.DoChan(source, func() (any, error) {
		var keys games.KeySet
		var err error
		if issuer.JWKSURL == "" {
			keys, err = games.ParseKeySet(issuer.Keys)
		} else {
			keys, err = k.fetch(context.WithoutCancel(ctx), issuer.JWKSURL)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		set := k.sets[source]
		set.tried = now
		if err == nil {
			set.keys, set.fetched = keys, now
		}
		if _, known := k.sets[source]; !known && len(k.sets) >= mostKeySets {
			clear(k.sets)
		}
		k.sets[source] = set
		return set, nil
	})
	select {
	case r := <-result:
		return r.Val.(keySet), nil
	case <-ctx.Done():
		return keySet{}, ctx.Err()
	}
}

func (k *keySets) fetch(ctx context.Context, address string) (games.KeySet, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	response, err := k.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetch the key set: status %d", response.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, games.MaxKeySet+1))
	if err != nil {
		return nil, err
	}
	return games.ParseKeySet(text)
}
