package progress

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
)

// signer signs and verifies records. The first key signs, all verify.
type signer []signingKey

type signingKey struct {
	id     string // start of the key's SHA-256, in hexadecimal digits
	secret []byte
}

// newSigner derives a key for saves from each secret (RFC 5869), so that the signature of a save is
// valid for nothing else.
func newSigner(secrets [][]byte) (signer, error) {
	var s signer
	for _, secret := range secrets {
		derived, err := hkdf.Key(sha256.New, secret, nil, "parlor progress signature 1", sha256.Size)
		if err != nil {
			return nil, fmt.Errorf("derive the signing key of saves: %w", err)
		}
		digest := sha256.Sum256(derived)
		s = append(s, signingKey{id: hex.EncodeToString(digest[:4]), secret: derived})
	}
	return s, nil
}

// sign returns the record with the id of the signing key and the signature.
func (s signer) sign(id slotID, r record) record {
	r.keyID, r.signature = s[0].id, s[0].signatureOf(id, r)
	return r
}

// verify reports whether this installation wrote the record, with its state, to this slot.
func (s signer) verify(id slotID, r record) bool {
	for _, k := range s {
		if k.id == r.keyID {
			return hmac.Equal([]byte(k.signatureOf(id, r)), []byte(r.signature))
		}
	}
	return false
}

func (k signingKey) signatureOf(id slotID, r record) string {
	mac := hmac.New(sha256.New, k.secret)
	fmt.Fprintf(mac, "%d|%d|%s|%d|%x|%d|%d|%s",
		id.userID, id.gameID, id.name, r.version, sha256.Sum256(r.state), r.savedAtMS, r.sizeBytes, r.gainBucketsJSON)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
