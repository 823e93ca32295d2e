package wallet

import (
	"math/rand/v2"
	"strconv"
	"time"
)

// Receipt identifies a keyed request, so that doing it twice is doing it once: the script that makes the change
// keeps its first answer under the key. The zero Receipt means that the caller sent no key.
type Receipt struct {
	Key         string // digest of the Idempotency-Key
	Fingerprint string // digest of what was asked; another one under the same key is refused
}

// Nonce is a random decimal number below 2^48, one for each logical call: it is the second half of the positions
// of the call's events, and tells the call's own resends from other requests.
func Nonce() string { return strconv.FormatUint(rand.Uint64N(1<<48), 10) }

// resendTTL is longer than the store's client goes on resending a call whose reply was lost.
const resendTTL = time.Minute

// ForCall makes every call safe to resend: a request without a key gets a receipt of its own, named by the call's
// nonce and kept just as long as the store's client may send the call again.
func (r Receipt) ForCall(nonce string, ttl time.Duration) (Receipt, time.Duration) {
	if r.Key != "" {
		return r, ttl
	}
	return Receipt{Key: "call:" + nonce, Fingerprint: nonce}, resendTTL
}

// FirstAnswer unfolds the answer of a script that keeps receipts, {word, nonce, …} or {"replay", word, nonce, …}, and
// tells whether it is the answer to an earlier request. A resend of this very call is not: its nonce is the same.
func FirstAnswer(nonce, word string, rest []string) (string, []string, bool) {
	replayed := word == "replay"
	if replayed && len(rest) > 0 {
		word, rest = rest[0], rest[1:]
	}
	if len(rest) == 0 {
		return word, nil, replayed
	}
	return word, rest[1:], replayed && rest[0] != nonce
}
