package games

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
)

// MaxKeySet is how long the text of a key set may be, in bytes.
const MaxKeySet = 64 << 10

// PublicKey is one key of an issuer, with the one algorithm that it is used with.
type PublicKey struct {
	Algorithm string // "EdDSA", "ES256" or "RS256"
	Key       crypto.PublicKey
}

// KeySet maps key ids ("kid", "" where a key has none) to keys.
type KeySet map[string]PublicKey

const leastRSABits = 2048

// ParseKeySet reads a JSON Web Key Set (RFC 7517). Keys that are not for signing, or of a kind that is
// not accepted (other than Ed25519, P-256 and RSA of 2048 bits and more), are passed over; a set without a usable key is an error.
func ParseKeySet(text []byte) (KeySet, error) {
	var document struct {
		Keys []struct {
			Kty, Use, Alg, Kid, Crv, X, Y, N, E string
		} `json:"keys"`
	}
	if len(text) > MaxKeySet {
		return nil, errors.New("the key set is longer than 64 KiB")
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, errors.New("must be a JSON Web Key Set")
	}
	set := KeySet{}
	for _, k := range document.Keys {
		if k.Use != "" && k.Use != "sig" {
			continue
		}
		var key PublicKey
		switch {
		case k.Kty == "OKP" && k.Crv == "Ed25519":
			if x := number(k.X); len(x) == ed25519.PublicKeySize {
				key = PublicKey{"EdDSA", ed25519.PublicKey(x)}
			}
		case k.Kty == "EC" && k.Crv == "P-256":
			x, y := number(k.X), number(k.Y)
			if len(x) != 32 || len(y) != 32 {
				continue
			}
			if point, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...)); err == nil {
				key = PublicKey{"ES256", point}
			}
		case k.Kty == "RSA":
			n, e := new(big.Int).SetBytes(number(k.N)), new(big.Int).SetBytes(number(k.E))
			if n.BitLen() >= leastRSABits && n.BitLen() <= 8192 && e.IsInt64() && e.Int64() >= 3 && e.Int64() <= 1<<31-1 && e.Bit(0) == 1 {
				key = PublicKey{"RS256", &rsa.PublicKey{N: n, E: int(e.Int64())}}
			}
		}
		if key.Key == nil || k.Alg != "" && k.Alg != key.Algorithm {
			continue
		}
		if _, twice := set[k.Kid]; !twice {
			set[k.Kid] = key
		}
	}
	if len(set) == 0 {
		return nil, errors.New("has no key for signatures with EdDSA (Ed25519), ES256 or RS256 (2048 bits and more)")
	}
	return set, nil
}

// number decodes base64url without padding; what cannot be read is nothing.
func number(text string) []byte {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return b
}
