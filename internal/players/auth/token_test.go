package auth_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/auth"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/players/users"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// keyID returns the key id of a token.
func keyID(t *testing.T, token string) string {
	t.Helper()
	parsed, _ := testkit.Must2(jwt.NewParser().ParseUnverified(token, jwt.MapClaims{}))(t)
	return parsed.Header["kid"].(string)
}

func signed(t *testing.T, method jwt.SigningMethod, header map[string]any, claims jwt.MapClaims, key any) string {
	t.Helper()
	token := jwt.NewWithClaims(method, claims)
	for name, value := range header {
		token.Header[name] = value
	}
	return testkit.Must(token.SignedString(key))(t)
}

func TestForgedAccessTokensAreRefused(t *testing.T) {
	f := open(t, redistest.Single(t))
	s := f.guest(t)
	kid := keyID(t, s.AccessToken)
	game := "game:" + strconv.FormatInt(f.game.ID, 10)
	now := time.Now().Unix()
	type changes map[string]any // nil removes a claim
	claims := func(change changes) jwt.MapClaims {
		c := jwt.MapClaims{"iss": "parlor", "aud": game, "sub": "1", "exp": now + 600, "iat": now}
		for name, value := range change {
			if value == nil {
				delete(c, name)
			} else {
				c[name] = value
			}
		}
		return c
	}
	header := map[string]any{"kid": kid}
	ours := func(change changes) string {
		return signed(t, jwt.SigningMethodHS256, header, claims(change), signingKey)
	}
	testkit.Must(f.Authenticate(t.Context(), ours(nil)))(t, "the token that the table starts from is refused")
	rsaKey := testkit.Must(rsa.GenerateKey(rand.Reader, 2048))(t)
	der, _ := x509.MarshalPKIXPublicKey(&rsaKey.PublicKey)
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	hs := jwt.SigningMethodHS256
	parts := strings.Split(s.AccessToken, ".")

	for name, token := range map[string]string{
		"alg none":                signed(t, jwt.SigningMethodNone, header, claims(nil), jwt.UnsafeAllowNoneSignatureType),
		"no signature":            parts[0] + "." + parts[1] + ".",
		"another signature":       parts[0] + "." + parts[1] + "." + strings.Repeat("A", 43),
		"HS384":                   signed(t, jwt.SigningMethodHS384, header, claims(nil), signingKey),
		"RS256 for our issuer":    signed(t, jwt.SigningMethodRS256, header, claims(nil), rsaKey),
		"HS256 with a public key": signed(t, hs, header, claims(nil), publicPEM),
		"another secret":          signed(t, hs, header, claims(nil), []byte("some other secret of thirty-two bytes")),
		"no kid":                  signed(t, hs, nil, claims(nil), signingKey),
		"an unknown kid":          signed(t, hs, map[string]any{"kid": "000000000000"}, claims(nil), signingKey),
		"a critical header":       signed(t, hs, map[string]any{"kid": kid, "crit": "b64"}, claims(nil), signingKey),
		"no issuer":               ours(changes{"iss": nil}),
		"an unknown issuer":       ours(changes{"iss": "https://evil.example"}),
		"no audience":             ours(changes{"aud": nil}),
		"two audiences":           ours(changes{"aud": []string{game, "game:2"}}),
		"another prefix in aud":   ours(changes{"aud": "app:1"}),
		"the audience game:0":     ours(changes{"aud": "game:0"}),
		"no subject":              ours(changes{"sub": nil}),
		"no expiry":               ours(changes{"exp": nil}),
		"not yet":                 ours(changes{"nbf": now + 60}),
		"expired":                 ours(changes{"exp": now - 1}),
		"expired and forged":      signed(t, hs, header, claims(changes{"exp": now - 1}), publicPEM),
		"huge":                    ours(changes{"x": strings.Repeat("x", 4096)}),
		"not a token":             "a.b.c",
		"dots":                    "....",
	} {
		want := apierror.Unauthenticated
		if name == "expired" {
			want = apierror.AccessTokenExpired
		}
		for range 2 { // what was refused is not cached as valid
			if a, err := f.Authenticate(t.Context(), token); !errors.Is(err, want) {
				t.Errorf("%s: %+v, %v; want %v", name, a, err, want)
			}
		}
	}
}

func TestAnotherGamesTokenActsInItsOwnGameOnly(t *testing.T) {
	db := redistest.Single(t)
	a, b := open(t, db), open(t, db)
	caller, err := b.Authenticate(t.Context(), a.guest(t).AccessToken)
	if err != nil || caller.GameID != a.game.ID || caller.CanAccessGame(b.game.ID) {
		t.Errorf("%+v, %v", caller, err)
	}
}

func TestATokenExpiresToTheInstant(t *testing.T) {
	f := open(t, redistest.Single(t))
	token := f.guest(t).AccessToken
	c := testkit.Must(f.Authenticate(t.Context(), token))(t) // now it is cached
	f.SetClock(func() time.Time { return c.ExpiresAt.Add(-time.Nanosecond) })
	testkit.Report(t, testkit.ErrorOf(f.Authenticate(t.Context(), token)), "just before")
	f.SetClock(func() time.Time { return c.ExpiresAt })
	testkit.Fails(f.Authenticate(t.Context(), token))(t, apierror.AccessTokenExpired, "at its expiry")
	fresh := open(t, f.db) // a node that sees it for the first time
	fresh.SetClock(func() time.Time { return c.ExpiresAt })
	testkit.Fails(fresh.Authenticate(t.Context(), token))(t, apierror.AccessTokenExpired, "at its expiry, on another node")
}

func TestSigningKeysRotate(t *testing.T) {
	db := redistest.Single(t)
	older, newer := signingKey, []byte("a newer signing key, thirty-two bytes")
	before := open(t, db)
	during := open(t, db, auth.Options{SigningKeys: [][]byte{newer, older}})
	after := open(t, db, auth.Options{SigningKeys: [][]byte{newer}})
	s := before.guest(t)
	secret := "a secret of one device, which is 32 bytes long"
	known := testkit.Must(before.Guest(t.Context(), auth.GuestInput{GameID: before.game.ID, DeviceSecret: &secret}))(t)
	testkit.Report(t, testkit.ErrorOf(during.Authenticate(t.Context(), s.AccessToken)), "while both are listed")
	testkit.Fails(after.Authenticate(t.Context(), s.AccessToken))(t, apierror.Unauthenticated, "when the old key is gone")
	next := testkit.Must(after.Refresh(t.Context(), s.RefreshToken))(t, "a refresh token outlives signing keys")
	testkit.Report(t, testkit.ErrorOf(during.Authenticate(t.Context(), next.AccessToken)), "the new key's")
	testkit.Fails(before.Authenticate(t.Context(), next.AccessToken))(
		t, apierror.Unauthenticated, "the new key's on an old node")
	if back, err := after.Guest(t.Context(), auth.GuestInput{GameID: before.game.ID, DeviceSecret: &secret}); err != nil ||
		back.User.ID != known.User.ID {
		t.Errorf("the device after the rotation: %+v, %v", back.User, err)
	}
}

func TestAMissingOrShortSigningKeyPanics(t *testing.T) {
	for _, list := range [][][]byte{nil, {signingKey, []byte("short")}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q was accepted", list)
				}
			}()
			auth.New(redistest.Single(t), nil, nil, nil, auth.Options{SigningKeys: list})
		}()
	}
}

func BenchmarkAuthenticateACachedToken(b *testing.B) {
	db := redistest.Single(b)
	u, g := users.New(db, users.Options{}), newGames(db)
	game, _ := testkit.Must2(g.Create(b.Context(), operator, games.Definition{Name: "Chess"}))(b)
	service := auth.New(db, u, g, &grants{}, auth.Options{SigningKeys: [][]byte{signingKey}})
	s := testkit.Must(service.Guest(b.Context(), auth.GuestInput{GameID: game.ID}))(b)
	for b.Loop() {
		testkit.Must(service.Authenticate(b.Context(), s.AccessToken))(b)
	}
}

// provider is an external identity provider with a key of each kind.
type provider struct {
	*httptest.Server
	mu      sync.Mutex
	keys    map[string]crypto.Signer
	broken  bool
	fetches atomic.Int32
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{keys: map[string]crypto.Signer{}}
	p.add(t, "ed", "ec", "rsa")
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.fetches.Add(1)
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case p.broken:
			w.WriteHeader(http.StatusInternalServerError)
		case r.URL.Path == "/elsewhere":
			http.Redirect(w, r, "/keys", http.StatusFound)
		case r.URL.Path == "/huge":
			_, _ = w.Write([]byte(`{"keys":[],"x":"` + strings.Repeat("x", auth.MaxKeySetBytes) + `"}`))
		default:
			_, _ = w.Write(p.set(t))
		}
	}))
	t.Cleanup(p.Close)
	return p
}

// add makes keys; the start of the kid is the kind of key.
func (p *provider) add(t *testing.T, kids ...string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, kid := range kids {
		var err error
		switch {
		case strings.HasPrefix(kid, "ed"):
			_, p.keys[kid], err = ed25519.GenerateKey(rand.Reader)
		case strings.HasPrefix(kid, "ec"):
			p.keys[kid], err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		default:
			p.keys[kid], err = rsa.GenerateKey(rand.Reader, 2048)
		}
		testkit.Check(t, err)
	}
}

func (p *provider) set(t *testing.T) []byte {
	encode := base64.RawURLEncoding.EncodeToString
	var list []map[string]string
	for kid, key := range p.keys {
		switch public := key.Public().(type) {
		case ed25519.PublicKey:
			list = append(list, map[string]string{
				"kty": "OKP", "crv": "Ed25519", "kid": kid, "x": encode(public), "alg": "EdDSA",
			})
		case *ecdsa.PublicKey:
			point, err := public.Bytes()
			testkit.Report(t, err)
			list = append(list, map[string]string{
				"kty": "EC", "crv": "P-256", "kid": kid, "x": encode(point[1:33]), "y": encode(point[33:]),
			})
		case *rsa.PublicKey:
			list = append(list, map[string]string{
				"kty": "RSA", "kid": kid, "n": encode(public.N.Bytes()), "e": "AQAB", "use": "sig",
			})
		}
	}
	list = append(
		list,
		map[string]string{"kty": "oct", "kid": "hmac", "k": "c2VjcmV0"},
		map[string]string{"kty": "RSA", "kid": "encrypts", "use": "enc"},
	)
	text, err := wire.Marshal(map[string]any{"keys": list})
	testkit.Report(t, err)
	return text
}

var methods = map[string]jwt.SigningMethod{
	"ed": jwt.SigningMethodEdDSA,
	"ec": jwt.SigningMethodES256,
	"rs": jwt.SigningMethodRS256,
}

func (p *provider) token(t *testing.T, kid string, change map[string]any) string {
	t.Helper()
	claims := jwt.MapClaims{
		"iss":                "https://id.example",
		"aud":                "chess",
		"sub":                "ada",
		"exp":                time.Now().Unix() + 600,
		"preferred_username": "Ada",
	}
	for name, value := range change {
		claims[name] = value
		if value == nil {
			delete(claims, name)
		}
	}
	return signed(
		t,
		methods[kid[:2]],
		map[string]any{"kid": kid, "jku": "https://evil.example", "x5u": "https://evil.example"},
		claims,
		p.keys[kid],
	)
}

// accept makes the game of a fixture accept the provider.
func (p *provider) accept(t *testing.T, f *fixture, path string) {
	t.Helper()
	testkit.Must(f.games.Patch(t.Context(), operator, f.game.ID, games.PatchInput{Settings: games.SettingsPatch{
		Issuers: &[]games.Issuer{{Issuer: "https://id.example", Audience: "chess", JWKSURL: p.URL + path}},
	}}))(t)
}

func TestPlayersOfAnExternalIssuerSignIn(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f, p := open(t, db), newProvider(t)
		p.accept(t, f, "/keys")
		var wg sync.WaitGroup
		for range 10 {
			for _, kid := range []string{"ed", "ec", "rsa"} {
				token := p.token(t, kid, nil)
				wg.Go(func() {
					caller, err := f.Authenticate(t.Context(), token)
					if err != nil || caller.GameID != f.game.ID || caller.Role != principal.Player {
						t.Errorf("%s: %+v, %v", kid, caller, err)
						return
					}
					if u, err := f.users.Find(t.Context(),
						caller.UserID); err != nil || u.Username != "Ada" || u.Kind != users.KindIssuer ||
						!u.GrantGiven {
						t.Errorf("%s: %+v, %v", kid, u, err)
					}
				})
			}
		}
		wg.Wait()
		if n := p.fetches.Load(); n != 1 {
			t.Errorf("the keys were fetched %d times", n)
		}
		if len(f.grants.given) != 1 {
			t.Errorf("one player was given %v", f.grants.given)
		}
		guest, _ := f.Authenticate(t.Context(), f.guest(t).AccessToken)
		token := p.token(t, "ed", map[string]any{"sub": "bob"})
		if u, err := f.Link(t.Context(), guest.Caller, auth.LinkInput{ExternalToken: &token}); err != nil ||
			u.Kind != users.KindIssuer {
			t.Errorf("%+v, %v", u, err)
		}
		if caller, err := f.Authenticate(t.Context(), p.token(t, "ec", map[string]any{"sub": "bob"})); err != nil ||
			caller.UserID != guest.UserID {
			t.Errorf("the linked guest signs in as %+v, %v", caller, err)
		}
	})
}

func TestForgedExternalTokensAreRefused(t *testing.T) {
	f, p := open(t, redistest.Single(t)), newProvider(t)
	p.accept(t, f, "/keys")
	der, _ := x509.MarshalPKIXPublicKey(p.keys["rsa"].Public())
	mallory := newProvider(t)
	now := time.Now().Unix()
	rsaHeader := map[string]any{"kid": "rsa"}
	good := jwt.MapClaims{"iss": "https://id.example", "aud": "chess", "sub": "ada", "exp": now + 600}
	twoAudiences := p.token(t, "rsa", map[string]any{"aud": []string{"other", "chess"}})
	testkit.Must(f.Authenticate(t.Context(), twoAudiences))(t, "one of two audiences")
	for name, token := range map[string]string{
		"alg none":             signed(t, jwt.SigningMethodNone, rsaHeader, good, jwt.UnsafeAllowNoneSignatureType),
		"HS256 with the key":   signed(t, jwt.SigningMethodHS256, rsaHeader, good, der),
		"HS256 with our key":   signed(t, jwt.SigningMethodHS256, rsaHeader, good, signingKey),
		"its oct key":          signed(t, jwt.SigningMethodHS256, map[string]any{"kid": "hmac"}, good, []byte("secret")),
		"RS512":                signed(t, jwt.SigningMethodRS512, rsaHeader, good, p.keys["rsa"]),
		"PS256":                signed(t, jwt.SigningMethodPS256, rsaHeader, good, p.keys["rsa"]),
		"a key of another kid": signed(t, jwt.SigningMethodES256, rsaHeader, good, p.keys["ec"]),
		"no kid among many":    signed(t, jwt.SigningMethodES256, nil, good, p.keys["ec"]),
		"another's key":        mallory.token(t, "ed", nil),
		"another audience":     p.token(t, "ed", map[string]any{"aud": "go"}),
		"no audience":          p.token(t, "ed", map[string]any{"aud": nil}),
		"another issuer":       p.token(t, "ed", map[string]any{"iss": "https://other.example"}),
		"our issuer":           p.token(t, "ed", map[string]any{"iss": "parlor", "aud": "game:1", "sub": "1"}),
		"no subject":           p.token(t, "ed", map[string]any{"sub": nil}),
		"no expiry":            p.token(t, "ed", map[string]any{"exp": nil}),
		"expired":              p.token(t, "ed", map[string]any{"exp": now - 31}),
		"not yet":              p.token(t, "ed", map[string]any{"nbf": now + 60}),
	} {
		want := apierror.Unauthenticated
		if name == "expired" {
			want = apierror.AccessTokenExpired
		}
		if a, err := f.Authenticate(t.Context(), token); !errors.Is(err, want) {
			t.Errorf("%s: %+v, %v; want %v", name, a, err, want)
		}
	}
	if n := p.fetches.Load(); n != 1 {
		t.Errorf("unknown keys made %d fetches", n)
	}
}

func TestKeySetsAreRefreshedAndKeptWhileTheIssuerIsDown(t *testing.T) {
	f, p := open(t, redistest.Single(t)), newProvider(t)
	f.SetKeySetTimeout(time.Second)
	p.accept(t, f, "/keys")
	authenticate := func(kid string) error {
		_, err := f.Authenticate(
			t.Context(),
			p.token(t, kid, map[string]any{
				"iat": time.Now().Add(time.Duration(f.ahead.Load())).Unix(),
				"exp": time.Now().Add(48 * time.Hour).Unix(), "jti": rand.Text(),
			}),
		)
		return err
	}
	advance := func(d time.Duration) { f.ahead.Add(int64(d)) }
	testkit.Check(t, authenticate("ed"))
	p.add(t, "ed2")
	if err := authenticate("ed2"); !errors.Is(err, apierror.Unauthenticated) || p.fetches.Load() != 1 {
		t.Errorf("a new key at once: %v after %d fetches", err, p.fetches.Load())
	}
	advance(31 * time.Second)
	if err := authenticate("ed2"); err != nil || p.fetches.Load() != 2 {
		t.Errorf("a new key after half a minute: %v after %d fetches", err, p.fetches.Load())
	}
	p.mu.Lock()
	p.broken = true
	p.mu.Unlock()
	advance(time.Hour)
	for range 3 {
		if err := authenticate("ed2"); err != nil || p.fetches.Load() != 3 {
			t.Errorf("while the issuer is down: %v after %d fetches", err, p.fetches.Load())
		}
	}
	advance(24 * time.Hour)
	testkit.WantError(t, authenticate("ed2"), apierror.Unauthenticated, "a day later")
	p.mu.Lock()
	p.broken = false
	delete(p.keys, "ed")
	p.mu.Unlock()
	advance(31 * time.Second)
	testkit.Report(t, authenticate("ed2"), "when it is back")
}

// A request may end before the fetch does. Then the issuer cannot be reached, not the store.
func TestARequestThatEndsBeforeTheKeysAreFetchedIsNotAuthenticated(t *testing.T) {
	f, p := open(t, redistest.Single(t)), newProvider(t)
	f.SetKeySetTimeout(time.Second)
	p.accept(t, f, "/elsewhere")
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := f.Authenticate(ctx, p.token(t, "ed", nil))
		cancel()
		testkit.WantError(t, err, apierror.Unauthenticated)
	}
}

func TestKeySetsBehindARedirectOrTooLongAreRefused(t *testing.T) {
	for _, path := range []string{"/elsewhere", "/huge"} {
		f, p := open(t, redistest.Single(t)), newProvider(t)
		f.SetKeySetTimeout(time.Second)
		p.accept(t, f, path)
		for range 2 {
			testkit.Fails(f.Authenticate(t.Context(), p.token(t, "ed", nil)))(t, apierror.Unauthenticated, "%s", path)
		}
		if n := p.fetches.Load(); n != 1 {
			t.Errorf("%s: %d fetches", path, n)
		}
	}
}

func TestAKeySetInTheSettings(t *testing.T) {
	f, p := open(t, redistest.Single(t)), newProvider(t)
	testkit.Must(f.games.Patch(t.Context(), operator, f.game.ID, games.PatchInput{Settings: games.SettingsPatch{
		Issuers: &[]games.Issuer{{Issuer: "https://id.example", Audience: "chess", KeySetJSON: p.set(t)}},
	}}))(t)
	f.ahead.Store(int64(48 * time.Hour)) // such a set does not get old
	token := p.token(t, "ec", map[string]any{
		"iat": time.Now().Add(48 * time.Hour).Unix(), "exp": time.Now().Add(49 * time.Hour).Unix(),
	})
	if _, err := f.Authenticate(t.Context(), token); err != nil || p.fetches.Load() != 0 {
		t.Errorf("%v after %d fetches", err, p.fetches.Load())
	}
	none := games.SettingsPatch{Issuers: &[]games.Issuer{}}
	testkit.Must(f.games.Patch(t.Context(), operator, f.game.ID, games.PatchInput{Settings: none}))(t)
	f.ahead.Add(int64(61 * time.Second))
	testkit.Fails(f.Authenticate(t.Context(), token))(t, apierror.Unauthenticated, "a minute after the issuer was removed")
}

// Authenticate sends tokens of other issuers elsewhere, so only verify itself shows that it checks
// the issuer.
func TestAnAccessTokenMustHaveOurIssuer(t *testing.T) {
	f := open(t, redistest.Single(t))
	header := map[string]any{"kid": keyID(t, f.guest(t).AccessToken)}
	for issuer, want := range map[string]error{
		auth.OwnIssuer: nil, "https://id.example": apierror.Unauthenticated, "": apierror.Unauthenticated,
	} {
		token := signed(t, jwt.SigningMethodHS256, header, jwt.MapClaims{
			"iss": issuer, "aud": "game:1", "sub": "1", "exp": time.Now().Unix() + 600,
		}, signingKey)
		if a, err := f.VerifyAccessToken(token); !errors.Is(err, want) {
			t.Errorf("a token of the issuer %q: %+v, %v; want %v", issuer, a, err, want)
		}
	}
}

func TestAnExternalTokenOfAnotherGameCannotBeLinked(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		home, other, p := open(t, db), open(t, db), newProvider(t)
		p.accept(t, other, "/keys")
		guest := testkit.Must(home.Authenticate(t.Context(), home.guest(t).AccessToken))(t)
		token := p.token(t, "ed", nil)
		u, err := home.Link(t.Context(), guest.Caller, auth.LinkInput{ExternalToken: &token})
		testkit.WantError(t, err, apierror.Unauthenticated, "Link returned %+v", u)
		if u, err := home.users.Find(t.Context(), guest.UserID); err != nil || u.Kind != users.KindGuest {
			t.Errorf("the guest is now %+v, %v", u, err)
		}
		a, err := home.Authenticate(t.Context(), token) // the token still signs in to its own game
		if err != nil || a.GameID != other.game.ID || a.UserID == guest.UserID {
			t.Errorf("Authenticate returned %+v, %v", a, err)
		}
	})
}

func TestWhichKeySetsAreUsable(t *testing.T) {
	encode := base64.RawURLEncoding.EncodeToString
	p := newProvider(t)
	ed := encode(p.keys["ed"].Public().(ed25519.PublicKey))
	point := testkit.Must(p.keys["ec"].Public().(*ecdsa.PublicKey).Bytes())(t)
	x, y := encode(point[1:33]), encode(point[33:])
	modulus := func(bits int) string {
		n := make([]byte, bits/8)
		n[0], n[len(n)-1] = 0x80, 1
		return encode(n)
	}
	for _, test := range []struct {
		name, keys string
		usable     bool
	}{
		{"Ed25519", `{"kty":"OKP","crv":"Ed25519","x":"` + ed + `"}`, true},
		{"its algorithm named", `{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","x":"` + ed + `"}`, true},
		{"another algorithm named", `{"kty":"OKP","crv":"Ed25519","alg":"ES256","x":"` + ed + `"}`, false},
		{"for encryption", `{"kty":"OKP","crv":"Ed25519","use":"enc","x":"` + ed + `"}`, false},
		{"Ed25519 too short", `{"kty":"OKP","crv":"Ed25519","x":"` + ed[:40] + `"}`, false},
		{"X25519", `{"kty":"OKP","crv":"X25519","x":"` + ed + `"}`, false},
		{"P-256", `{"kty":"EC","crv":"P-256","x":"` + x + `","y":"` + y + `"}`, true},
		{"P-384", `{"kty":"EC","crv":"P-384","x":"` + x + `","y":"` + y + `"}`, false},
		{"no point of the curve", `{"kty":"EC","crv":"P-256","x":"` + x + `","y":"` + x + `"}`, false},
		{"a coordinate too long", `{"kty":"EC","crv":"P-256","x":"` + encode(point) + `","y":"` + y + `"}`, false},
		{"RSA of 2048 bits", `{"kty":"RSA","e":"AQAB","n":"` + modulus(2048) + `"}`, true},
		{"RSA of 2040 bits", `{"kty":"RSA","e":"AQAB","n":"` + modulus(2040) + `"}`, false},
		{"RSA of 16384 bits", `{"kty":"RSA","e":"AQAB","n":"` + modulus(16384) + `"}`, false},
		{"the exponent 1", `{"kty":"RSA","e":"AQ","n":"` + modulus(2048) + `"}`, false},
		{"an even exponent", `{"kty":"RSA","e":"AQAC","n":"` + modulus(2048) + `"}`, false},
		{"PS256", `{"kty":"RSA","alg":"PS256","e":"AQAB","n":"` + modulus(2048) + `"}`, false},
		{"a shared secret", `{"kty":"oct","k":"c2VjcmV0"}`, false},
		{"a certificate's address", `{"kty":"OKP","crv":"Ed25519","x5u":"http://127.0.0.1:1/","x":"` + ed + `"}`, true},
		{"unusable ones beside a usable one", `{"kty":"RSA"},{},7,{"kty":"OKP","crv":"Ed25519","x":"` + ed + `"}`, true},
		{"none", ``, false},
	} {
		if err := auth.CheckKeySet([]byte(`{"keys":[` + test.keys + `]}`)); (err == nil) != test.usable {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	tooLong := `{"keys":[],"x":"` + strings.Repeat("x", auth.MaxKeySetBytes) + `"}`
	for _, raw := range []string{"", "null", "[]", `{"keys":{}}`, `{"keys":[]}{}`, tooLong} {
		if auth.CheckKeySet([]byte(raw)) == nil {
			t.Errorf("%.20q is accepted as a key set", raw)
		}
	}
}
