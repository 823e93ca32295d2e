package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"net"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/cache"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/games"
	"golang.org/x/sync/singleflight"
)

// MaxKeySetBytes bounds the text of a key set.
const MaxKeySetBytes = 64 << 10

// Bounds of RSA keys.
const (
	minRSABits     = 2048
	maxRSABits     = 8192
	minRSAExponent = 3
	maxRSAExponent = 1<<31 - 1
)

// externalAlgorithms are the algorithms that tokens of external issuers may be signed with.
var externalAlgorithms = []string{string(jwkset.AlgEdDSA), string(jwkset.AlgES256), string(jwkset.AlgRS256)}

// keySet is the JSON Web Key Set of an issuer.
type keySet struct {
	keyfunc.Keyfunc           // nil when the set was never loaded
	loadedAt        time.Time // zero: never
	triedAt         time.Time // of the last attempt to load it
}

// CheckKeySet returns an error that describes what is wrong with a JSON Web Key Set (RFC 7517).
func CheckKeySet(raw []byte) error {
	_, err := parseKeySet(raw)
	return err
}

// parseKeySet returns the keys of a JSON Web Key Set for EdDSA (Ed25519), ES256 and RS256. It
// ignores all others; a set without any usable key is an error.
func parseKeySet(raw []byte) (keyfunc.Keyfunc, error) {
	if len(raw) > MaxKeySetBytes {
		return nil, errors.New("the key set is longer than 64 KiB")
	}
	var document struct {
		Keys []wire.RawJSON `json:"keys"`
	}
	if err := wire.Unmarshal(raw, &document); err != nil {
		return nil, errors.New("must be a JSON Web Key Set")
	}
	storage := jwkset.NewMemoryStorage() // runs no goroutine, unlike the storages that fetch by themselves
	usable := 0
	for _, rawKey := range document.Keys {
		key, ok := parseKey(rawKey)
		if !ok {
			continue
		}
		usable++
		if err := storage.KeyWrite(context.Background(), key); err != nil {
			return nil, err
		}
	}
	if usable == 0 {
		return nil, errors.New("has no key for signatures with EdDSA (Ed25519), ES256 or RS256 (2048 bits and more)")
	}
	return keyfunc.New(keyfunc.Options{Storage: storage})
}

// jwkFields are the members of a key that are used (RFC 7517, 7518). The others may be anything.
type jwkFields struct {
	KTY jwkset.KTY `json:"kty"`
	USE jwkset.USE `json:"use"`
	ALG jwkset.ALG `json:"alg"`
	KID string     `json:"kid"`
	CRV jwkset.CRV `json:"crv"`
	X   string     `json:"x"`
	Y   string     `json:"y"`
	N   string     `json:"n"`
	E   string     `json:"e"`
}

// parseKey returns a key and reports whether it is usable. The key is bound to the one algorithm of
// its type, a second guard beside externalAlgorithms. The library gets the members of a public key
// only: certificates and their addresses must not count.
func parseKey(raw []byte) (jwkset.JWK, bool) {
	var given jwkFields
	if err := wire.Unmarshal(raw, &given); err != nil || given.USE != "" && given.USE != jwkset.UseSig {
		return jwkset.JWK{}, false
	}
	var algorithm jwkset.ALG
	switch {
	case given.KTY == jwkset.KtyOKP && given.CRV == jwkset.CrvEd25519:
		algorithm = jwkset.AlgEdDSA
	case given.KTY == jwkset.KtyEC && given.CRV == jwkset.CrvP256:
		algorithm = jwkset.AlgES256
	case given.KTY == jwkset.KtyRSA:
		algorithm = jwkset.AlgRS256
	default:
		return jwkset.JWK{}, false
	}
	if given.ALG != "" && given.ALG != algorithm {
		return jwkset.JWK{}, false
	}
	// The library's validation panics on a coordinate that is too long for its curve, so isUsable does
	// it.
	key, err := jwkset.NewJWKFromMarshal(jwkset.JWKMarshal{
		KTY: given.KTY, KID: given.KID, ALG: algorithm, CRV: given.CRV, X: given.X, Y: given.Y, N: given.N, E: given.E,
	}, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{SkipAll: true})
	return key, err == nil && isUsable(key.Key())
}

// isUsable reports whether a public key is valid and strong enough.
func isUsable(key any) bool {
	switch key := key.(type) {
	case ed25519.PublicKey:
		return len(key) == ed25519.PublicKeySize
	case *ecdsa.PublicKey:
		_, err := key.ECDH() // fails for what is no point of the curve
		return err == nil
	case *rsa.PublicKey:
		bits := key.N.BitLen()
		return bits >= minRSABits && bits <= maxRSABits &&
			key.E >= minRSAExponent && key.E <= maxRSAExponent && key.E%2 == 1
	default:
		return false
	}
}

// key returns the key that a token names; for a token that names none the key without an id, or the
// only one.
func (k keySet) key(ctx context.Context, kid string) (jwkset.JWK, bool) {
	if k.Keyfunc == nil {
		return jwkset.JWK{}, false
	}
	if key, err := k.Storage().KeyRead(ctx, kid); err == nil || kid != "" {
		return key, err == nil
	}
	all, err := k.Storage().KeyReadAll(ctx)
	if err != nil || len(all) != 1 {
		return jwkset.JWK{}, false
	}
	return all[0], true
}

// How long key sets are used, and how often they are fetched.
const (
	keySetRefreshAfter  = 10 * time.Minute
	keySetMaxAge        = 24 * time.Hour   // how long an old set is used while the issuer is down
	keySetRetryInterval = 30 * time.Second // between two fetches because of an unknown key or a failure
	keySetFirstInterval = 3 * time.Second  // between two fetches while there is no set yet
	maxKeySets          = 1024
)

// keySetCache fetches and caches the key sets of external issuers. They are fetched only while a
// token is verified: a fetch outlives its request by keySetFetchTimeout at most, and nothing runs
// in the background.
type keySetCache struct {
	fetcher keySetFetcher
	loads   singleflight.Group
	sets    *cache.Cache[string, keySet] // by source
}

func newKeySetCache(allowLoopback bool) *keySetCache {
	return &keySetCache{
		sets:    cache.New[string, keySet]("key_sets", maxKeySets, 0),
		fetcher: newKeySetFetcher(&net.Dialer{}, allowLoopback),
	}
}

// sourceOf returns what a key set is made from: its address, or its text.
func sourceOf(issuer games.Issuer) string {
	if issuer.JWKSURL != "" {
		return issuer.JWKSURL
	}
	return string(issuer.KeySetJSON)
}

// errKeysNotFetched is not store_unavailable, because the issuer is down and not the store.
var errKeysNotFetched = apierror.Unauthenticated.WithReason("the keys of the issuer cannot be fetched at the moment")

// find returns the key set of an issuer with the key that a token names. It returns unauthenticated
// when the set has no such key, or cannot be fetched.
func (k *keySetCache) find(ctx context.Context, issuer games.Issuer, kid string, now time.Time) (jwkset.JWK, error) {
	set, _ := k.sets.Get(sourceOf(issuer))
	key, found := set.key(ctx, kid)
	if (!found || !set.isFresh(issuer, now)) && set.mayLoad(issuer, now) {
		var err error
		set, err = k.refresh(ctx, issuer, now)
		if errors.Is(err, context.DeadlineExceeded) { // a fetch may take longer than the request
			return jwkset.JWK{}, errKeysNotFetched
		}
		if err != nil {
			return jwkset.JWK{}, err
		}
		key, found = set.key(ctx, kid)
	}
	switch {
	case set.Keyfunc == nil, issuer.JWKSURL != "" && now.Sub(set.loadedAt) >= keySetMaxAge:
		return jwkset.JWK{}, errKeysNotFetched
	case !found:
		return jwkset.JWK{}, apierror.Unauthenticated
	}
	return key, nil
}

// isFresh reports whether a set need not be fetched again. One that stands in the settings never
// does.
func (k keySet) isFresh(issuer games.Issuer, now time.Time) bool {
	if issuer.JWKSURL == "" {
		return k.Keyfunc != nil
	}
	return !k.loadedAt.IsZero() && now.Sub(k.loadedAt) < keySetRefreshAfter
}

// mayLoad reports whether enough time has passed since the last attempt to load a set.
func (k keySet) mayLoad(issuer games.Issuer, now time.Time) bool {
	switch {
	case issuer.JWKSURL == "":
		return k.Keyfunc == nil
	case k.Keyfunc == nil:
		return now.Sub(k.triedAt) >= keySetFirstInterval
	default:
		return now.Sub(k.triedAt) >= keySetRetryInterval
	}
}

// refresh fetches or parses a set, once for all requests that wait. When that fails, the old set
// stays.
func (k *keySetCache) refresh(ctx context.Context, issuer games.Issuer, now time.Time) (keySet, error) {
	source := sourceOf(issuer)
	result := k.loads.DoChan(source, func() (any, error) {
		var keys keyfunc.Keyfunc
		var err error
		if issuer.JWKSURL != "" {
			keys, err = k.fetcher.fetch(context.WithoutCancel(ctx), issuer.JWKSURL)
		} else {
			keys, err = parseKeySet([]byte(issuer.KeySetJSON))
		}
		set, _ := k.sets.Get(source)
		set.triedAt = now
		if err == nil {
			set.Keyfunc, set.loadedAt = keys, now
		}
		k.sets.Add(source, set)
		return set, nil
	})
	select {
	case r := <-result:
		return r.Val.(keySet), nil
	case <-ctx.Done():
		return keySet{}, ctx.Err()
	}
}
