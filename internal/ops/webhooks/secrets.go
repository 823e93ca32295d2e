package webhooks

import (
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/secret"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const secretPrefix = "whsec_"

// newSecret returns a secret in the form of Standard Webhooks.
func newSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return secretPrefix + base64.StdEncoding.EncodeToString(b[:])
}

// newCipher returns the cipher for the secrets of one webhook.
func newCipher(signingKey []byte, gameID int64, webhookID string) (cipher.AEAD, error) {
	label := "parlor webhook " + strconv.FormatInt(gameID, 10) + " " + webhookID
	return secret.NewCipher(signingKey, nil, label)
}

// encrypt encrypts a secret under the first signing key.
func (s *Service) encrypt(gameID int64, webhookID, secret string) (string, error) {
	gcm, err := newCipher((*s.signingKeys.Load())[0], gameID, webhookID)
	if err != nil {
		return "", fmt.Errorf("encrypt the secret of a webhook: %w", err)
	}
	return base64.StdEncoding.EncodeToString(gcm.Seal(nil, nil, []byte(secret), nil)), nil
}

var errSecretUnreadable = errors.New(
	"its secret was encrypted under a signing key that is gone: rotate the secret, or add that key to the list again")

// decrypt returns a secret, and whether the first signing key encrypts it.
func (s *Service) decrypt(gameID int64, webhookID, encrypted string) (secret string, byFirst bool, err error) {
	sealed, err := base64.StdEncoding.DecodeString(encrypted)
	if err != nil {
		return "", false, errSecretUnreadable
	}
	for i, signingKey := range *s.signingKeys.Load() {
		gcm, err := newCipher(signingKey, gameID, webhookID)
		if err != nil {
			return "", false, fmt.Errorf("decrypt the secret of a webhook: %w", err)
		}
		if plain, err := gcm.Open(nil, nil, sealed, nil); err == nil {
			return string(plain), i == 0, nil
		}
	}
	return "", false, errSecretUnreadable
}

// SetSigningKeys replaces the keys: the first encrypts, all decrypt. It panics without a key.
func (s *Service) SetSigningKeys(signingKeys [][]byte) {
	if len(signingKeys) == 0 {
		panic("webhooks: there is no signing key")
	}
	s.signingKeys.Store(&signingKeys)
}

// signer signs messages with the secrets of a webhook that are valid at the time.
type signer struct {
	current, former *standardwebhooks.Webhook // former is nil without one
	formerUntil     time.Time
}

func (s *Service) newSigner(gameID int64, webhookID string, d definition) (signer, bool, error) {
	secret, byFirst, err := s.decrypt(gameID, webhookID, d.Secret)
	if err != nil {
		return signer{}, false, err
	}
	current, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return signer{}, false, errSecretUnreadable
	}
	signs := signer{current: current, formerUntil: d.FormerUntil}
	if d.Former == "" {
		return signs, byFirst, nil
	}
	// A former secret that cannot be read is one that receivers no longer need.
	if secret, formerByFirst, err := s.decrypt(gameID, webhookID, d.Former); err == nil {
		signs.former, _ = standardwebhooks.NewWebhook(secret)
		byFirst = byFirst && formerByFirst
	}
	return signs, byFirst, nil
}

// sign returns the value of the header webhook-signature.
func (s signer) sign(messageID string, at time.Time, body []byte) (string, error) {
	signatures := make([]string, 0, 2)
	for _, secret := range []*standardwebhooks.Webhook{s.current, s.former} {
		if secret == nil || secret == s.former && !at.Before(s.formerUntil) {
			continue
		}
		signature, err := secret.Sign(messageID, at, body)
		if err != nil {
			return "", fmt.Errorf("sign a webhook: %w", err)
		}
		signatures = append(signatures, signature)
	}
	return strings.Join(signatures, " "), nil
}
