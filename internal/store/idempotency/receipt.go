package idempotency

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
)

// Receipt identifies a request with an Idempotency-Key. The script that makes the change stores its
// first reply under the key, in the same step. The zero Receipt is that of a request without a key.
type Receipt struct {
	KeyDigest   string // digest of the Idempotency-Key; "" when the request has none
	Fingerprint string // digest of the request; another one under the same key is idempotency_key_reused
	RefuseNew   error  // when set, a request that has no receipt yet changes nothing and returns it
}

// nonceDigits is the length of a nonce in digits of base 36.
const nonceDigits = 8

// NewNonce returns 8 random digits of base 36, not all zero, that identify one call of a script.
// They are the second half of the positions of the call's events, and distinguish a resend of the
// call from another request.
func NewNonce() string {
	const values = 36 * 36 * 36 * 36 * 36 * 36 * 36 * 36
	digits := strconv.FormatUint(1+rand.Uint64N(values-1), 36)
	return strings.Repeat("0", nonceDigits-len(digits)) + digits
}

// resendTTL is longer than go-redis resends a command whose reply was lost.
const resendTTL = time.Minute

// OrPerCall returns the receipt and the time to live to store for a call. A call without a key gets
// a receipt named by its nonce, kept as long as go-redis may resend the call, so that every call is
// safe to resend.
func (r Receipt) OrPerCall(nonce string, ttl time.Duration) (Receipt, time.Duration) {
	if r.KeyDigest != "" {
		return r, ttl
	}
	return Receipt{KeyDigest: "call:" + nonce, Fingerprint: nonce}, resendTTL
}

// CheckNew returns RefuseNew when there is no receipt under a key yet.
func (r Receipt) CheckNew(ctx context.Context, db *redisdb.DB, key string) error {
	if r.RefuseNew == nil {
		return nil
	}
	kept, err := db.Client.Exists(ctx, key).Result()
	if err != nil {
		return redisdb.WrapError("find a receipt", err)
	}
	if kept == 0 {
		return r.RefuseNew
	}
	return nil
}

// MayReplay reports whether the first reply to a request may be looked for although the request is
// invalid now, for example because a limit has changed.
func (r Receipt) MayReplay(invalid error) bool {
	_, isExpected := apierror.As(invalid)
	return isExpected && r.KeyDigest != ""
}

// FirstReply returns the first reply of a script that stores receipts, {status, nonce, …} or
// {"replay", status, nonce, …}, without the nonce. It reports whether an earlier request got that
// reply; a resend of the same call has the same nonce and is not one.
func FirstReply(nonce string, reply redisdb.Reply) (first redisdb.Reply, replayed bool) {
	status, values := reply.Status, reply.Values
	isReplay := status == scripts.Replay
	if isReplay && len(values) > 0 {
		status, values = values[0], values[1:]
	}
	if len(values) == 0 {
		return redisdb.Reply{Status: status}, isReplay
	}
	return redisdb.Reply{Status: status, Values: values[1:]}, isReplay && values[0] != nonce
}
