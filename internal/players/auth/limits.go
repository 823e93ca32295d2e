package auth

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// Class is a kind of requests that share a limit.
type Class string

// The classes.
const (
	ClassAddress Class = "address" // every request, by client address
	ClassSignIn  Class = "sign-in" // guest, exchange, refresh
	ClassSignUp  Class = "sign-up" // a guest sign-in that makes an account, by SignUpKey; beside ClassSignIn
	ClassRead    Class = "read"    // requests that change nothing
	ClassWrite   Class = "write"   // requests that change something
	ClassMoney   Class = "money"   // requests that may move money: rooms, purchases
	ClassAdmin   Class = "admin"   // requests of the operator and of servers
	ClassSocket  Class = "socket"  // opening a socket
	// The bytes of a player's changes of shared state: a permit is a byte. Each goes to every peer,
	// and none may be dropped, so it is the sender who waits.
	ClassStateBytes Class = "state-bytes"
)

// The quotas of a day: what these requests make stays for a day or longer, whatever their rate.
const (
	ClassRooms         Class = "rooms-a-day"     // requests for a new room
	ClassJoins         Class = "joins-a-day"     // requests for a seat
	ClassKeys          Class = "keyed-requests"  // of a player, with a key that the operation does not need
	ClassAnonymousKeys Class = "keyed-sign-ins"  // sign-ins with a key, by address
	ClassRequiredKeys  Class = "keyed-must-work" // of a player, with a key that is never refused
)

// Scope is by what the requests of a class are counted.
type Scope string

// The scopes.
const (
	ScopeUser    Scope = "user" // the caller, see principal.Caller.ActorID
	ScopeAddress Scope = "ip"   // the client's address, see AddressKey
)

// Limit is a token bucket: Burst requests at once, refilled at PerSecond or PerDay.
type Limit struct {
	PerSecond int64 // permits a second, 1 to 1,000,000; 0 with PerDay
	PerDay    int64 // permits a day, 1 to 1,000,000, for a quota of a day
	Burst     int64 // permits, 1 to 1,000,000,000
	Scope     Scope
}

// Limits maps classes to their limits; a class that is absent has none.
type Limits map[Class]Limit

// DefaultLimits returns limits that are wide enough for many players behind one address, and narrow
// enough that one of them cannot overload a node.
func DefaultLimits() Limits {
	return Limits{
		ClassAddress: {PerSecond: 2_000, Burst: 20_000, Scope: ScopeAddress},
		ClassSignUp:  {PerSecond: 1, Burst: 60, Scope: ScopeAddress},
		ClassSignIn:  {PerSecond: 20, Burst: 2_000, Scope: ScopeAddress},
		ClassRead:    {PerSecond: 200, Burst: 2_000, Scope: ScopeUser},
		ClassWrite:   {PerSecond: 50, Burst: 1_000, Scope: ScopeUser},
		ClassMoney:   {PerSecond: 100, Burst: 2_000, Scope: ScopeUser},
		ClassAdmin:   {PerSecond: 1_000, Burst: 10_000, Scope: ScopeUser},
		ClassSocket:  {PerSecond: 20, Burst: 500, Scope: ScopeUser},

		ClassStateBytes: {PerSecond: 32 << 10, Burst: 64 << 10, Scope: ScopeUser},

		ClassRooms:         {PerDay: 2_000, Burst: 2_000, Scope: ScopeUser},
		ClassJoins:         {PerDay: 5_000, Burst: 5_000, Scope: ScopeUser},
		ClassKeys:          {PerDay: 3_000, Burst: 3_000, Scope: ScopeUser},
		ClassAnonymousKeys: {PerDay: 10_000, Burst: 10_000, Scope: ScopeAddress},
		ClassRequiredKeys:  {PerSecond: 1, Burst: 10_000, Scope: ScopeUser},
	}
}

// microsPerPermit returns the time in which one permit is refilled, in microseconds.
func (l Limit) microsPerPermit() int64 {
	if l.isDaily() {
		return 24 * time.Hour.Microseconds() / l.PerDay
	}
	return 1_000_000 / l.PerSecond
}

// isDaily reports whether the limit is a quota of a day.
func (l Limit) isDaily() bool { return l.PerDay > 0 }

// share returns the permits of a bucket that one node may use before it reports them: a quarter of
// the burst. For sign-ins there are none, because each permit is a chance to guess a credential,
// and for sign-ups none, because each is an account.
func (l Limit) share(class Class) int64 {
	if class == ClassSignIn || class == ClassSignUp {
		return 0
	}
	return max(1, l.Burst/4)
}

// maxLeasePermits returns the most permits that a node leases at once: a sixteenth of the burst, at
// most the refill of a second, of a quota of a day 1.
func (l Limit) maxLeasePermits() int64 { return max(1, min(l.Burst/16, l.PerSecond)) }

// refillTime returns the time in which an empty bucket is full again.
func (l Limit) refillTime() time.Duration {
	return time.Duration(l.microsPerPermit()*l.Burst) * time.Microsecond
}

// Check returns an error that names the first limit that is out of range.
func (l Limits) Check() error {
	const maxRate, maxBurst = 1_000_000, 1_000_000_000
	for class, limit := range l {
		rate := limit.PerSecond + limit.PerDay
		if min(limit.PerSecond, limit.PerDay) != 0 || rate < 1 || rate > maxRate ||
			limit.Burst < 1 || limit.Burst > maxBurst {
			return fmt.Errorf(
				"the limit of %s must be 1 to 1,000,000 a second or a day with a burst of 1 to 1,000,000,000", class)
		}
		if !slices.Contains([]Scope{ScopeUser, ScopeAddress}, limit.Scope) {
			return fmt.Errorf("the limit of %s has the unknown scope %q", class, limit.Scope)
		}
	}
	return nil
}

// AddressKey returns the name of a client for limits: an IPv4 address, or the /64 of an IPv6
// address, since that is what one subscriber has.
func AddressKey(address netip.Addr) string { return networkKey(address, 64) }

// SignUpKey returns the name of a client for ClassSignUp: an IPv4 address, or the /48 of an IPv6
// address, since that is what one site has, with 65,536 networks of AddressKey.
func SignUpKey(address netip.Addr) string { return networkKey(address, 48) }

// networkKey returns the name of an IPv4 address, or of the network of an IPv6 address.
func networkKey(address netip.Addr, bitsIPv6 int) string {
	address = address.Unmap().WithZone("")
	if address.Is6() {
		prefix, err := address.Prefix(bitsIPv6)
		if err == nil {
			return "ip:" + prefix.String()
		}
	}
	var buffer [64]byte
	return string(address.AppendTo(append(buffer[:0], "ip:"...)))
}

// Decision is the result of Allow for one request. Limit is 0 when the class has no limit.
type Decision struct {
	Class      Class
	Allowed    bool
	Burst      int64         // the burst, in permits
	Remaining  int64         // permits left, as far as this node knows
	RefillTime time.Duration // in which an empty bucket is full again
	UntilFull  time.Duration // until the bucket is full
	RetryAfter time.Duration // until the next permit; 0 when allowed
}

// PolicyHeader returns the value of the RateLimit-Policy header
// (draft-ietf-httpapi-ratelimit-headers).
func (d Decision) PolicyHeader() string {
	return strconv.Quote(string(d.Class)) +
		";q=" + strconv.FormatInt(d.Burst, 10) + ";w=" + strconv.FormatInt(CeilSeconds(d.RefillTime), 10)
}

// RateLimitHeader returns the value of the RateLimit header (draft-ietf-httpapi-ratelimit-headers).
func (d Decision) RateLimitHeader() string {
	var buffer [64]byte // every response has this header: made at once
	b := strconv.AppendQuote(buffer[:0], string(d.Class))
	b = strconv.AppendInt(append(b, ";r="...), d.Remaining, 10)
	return string(strconv.AppendInt(append(b, ";t="...), CeilSeconds(d.UntilFull), 10))
}

// RetryAfterSeconds returns the value of the Retry-After header (RFC 9110), at least 1.
func (d Decision) RetryAfterSeconds() int64 { return max(1, CeilSeconds(d.RetryAfter)) }

// CeilSeconds returns a duration in whole seconds, rounded up: a Retry-After must never be too
// early.
func CeilSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
