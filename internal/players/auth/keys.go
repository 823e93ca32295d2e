package auth

import (
	"crypto/sha256"

	"github.com/parlor-games/parlor/internal/players/sessions"
)

// keyRing is the keys of a service, which change together.
type keyRing struct {
	signer       *signer
	adminDigests [][sha256.Size]byte // of the operator's keys, in their order
}

func newKeyRing(signing, admin [][]byte) *keyRing {
	k := &keyRing{signer: newSigner(signing)}
	for _, key := range admin {
		k.adminDigests = append(k.adminDigests, sha256.Sum256(key))
	}
	return k
}

// SetSigningAndAdminKeys replaces the keys of Options. Tokens and console sessions that were signed
// by a removed key become invalid, and their sockets are closed with 4001. Like New, it panics on a
// missing or short signing key.
func (s *Service) SetSigningAndAdminKeys(signing, admin [][]byte) {
	next := newKeyRing(signing, admin)
	before := s.keys.Swap(next)
	isGone := false
	for id := range before.signer.keysByID {
		_, known := next.signer.keysByID[id]
		isGone = isGone || !known
	}
	if !isGone {
		return
	}
	s.verifiedTokens.tokens.Purge()
	s.watchedMu.Lock()
	var ended []*ownWatch
	for w := range s.watchedOwn {
		// Of a ticket nobody knows which key signed the token that it was made for.
		if _, known := next.signer.keysByID[w.signingKeyID]; !known {
			ended = append(ended, w)
		}
	}
	s.watchedMu.Unlock()
	for _, w := range ended {
		w.onEnd(sessions.CloseEnded)
	}
}

// ownWatch is a session under a token of this installation, or a ticket.
type ownWatch struct {
	signingKeyID string // that verified the token, "" for a ticket
	onEnd        func(code int)
}
