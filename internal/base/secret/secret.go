// Package secret makes random secrets and the digests under which they are stored.
package secret

import (
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
