package progress

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
)

// signer signs records. The first key signs, all verify.
type signer []signingKey

type signingKey struct {
	id     string // the start of the key's digest
	secret []byte
}

// newSigner derives a key of its own from each of the node's, RFC 5869, so that a signature of a save is good for nothing else.
func newSigner(secrets [][]byte) (signer, error) {
	var s signer
	for _, secret := range secrets {
		derived, err := hkdf.Key(sha256.New, secret, nil, "parlor progress signature 1", sha256.Size)
		if err != nil {
			return nil, fmt.Errorf("derive the key of saves: %w", err)
		}
		digest := sha256.Sum256(derived)
		s = append(s, signingKey{id: hex.EncodeToString(digest[:4]), secret: derived})
	}
	return s, nil
}

// seal fills in the key and the signature.
func (s signer) seal(a address, r record) record {
	r.key, r.sign = s[0].id, s[0].signature(a, r)
	return r
}

// intact tells whether the record, with its state, is as this installation wrote it to this place.
func (s signer) intact(a address, r record) bool {
	for _, k := range s {
		if k.id == r.key {
			return hmac.Equal([]byte(k.signature(a, r)), []byte(r.sign))
		}
	}
	return false
}

func (k signingKey) signature(a address, r record) string {
	mac := hmac.New(sha256.New, k.secret)
	fmt.Fprintf(mac, "%d|%d|%s|%d|%x|%d|%d|%s", a.user, a.game, a.slot, r.version, sha256.Sum256(r.state), r.at, r.size, r.pace)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
