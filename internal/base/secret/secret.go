// Package secret makes random secrets, the digests under which they are stored, and ciphers for
// those that must be read again.
package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
)

// New returns a random text of 43 URL-safe characters (256 bits).
func New() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// Digest returns the SHA-256 of a secret in 64 hexadecimal digits. It uses no salt, so the secret
// must be one that nobody can guess, such as those of New.
func Digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// NewCipher returns AES-256-GCM with a random nonce (NIST SP 800-38D). Its key is derived from a
// signing key by HKDF-SHA256 (RFC 5869): label says what the key is for, and salt may be nil.
func NewCipher(signingKey, salt []byte, label string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, signingKey, salt, label, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
