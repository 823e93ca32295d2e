package ratelimit

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Class is a kind of requests that share a limit.
type Class string

// The classes.
const (
	Address Class = "address" // every request, by client address
	SignIn  Class = "sign-in" // guest, exchange, refresh
	SignUp  Class = "sign-up" // a guest sign-in that makes an account, by SignUpKey; beside SignIn
	Read    Class = "read"    // requests that change nothing
	Write   Class = "write"   // requests that change something
	Money   Class = "money"   // requests that may move money: rooms, purchases
	Admin   Class = "admin"   // requests of the operator and of servers
	Socket  Class = "socket"  // opening a socket
	// ServerMessages are the messages of a game's servers on all their sockets together.
	ServerMessages Class = "server-messages"
	// Call is a player's calls of the game's server, which hears those of all players.
	Call Class = "call"
	// The bytes of a player's changes of shared state: a permit is a byte. Each goes to every peer,
	// and none may be dropped, so it is the sender who waits.
	StateBytes Class = "state-bytes"
)

// The quotas of a day: what these requests make stays for a day or longer, whatever their rate.
const (
	Rooms         Class = "rooms-a-day"     // requests for a new room
	Joins         Class = "joins-a-day"     // requests for a seat
	KeyedRequests Class = "keyed-requests"  // of a player, with a key that the operation does not need
	KeyedSignIns  Class = "keyed-sign-ins"  // sign-ins with a key, by address
	RequiredKeys  Class = "keyed-must-work" // of a player, with a key that is never refused
)

// Scope is the subject by which the requests of a class are counted.
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
		Address: {PerSecond: 2_000, Burst: 20_000, Scope: ScopeAddress},
		SignUp:  {PerSecond: 1, Burst: 60, Scope: ScopeAddress},
		SignIn:  {PerSecond: 20, Burst: 2_000, Scope: ScopeAddress},
		Read:    {PerSecond: 200, Burst: 2_000, Scope: ScopeUser},
		Write:   {PerSecond: 50, Burst: 1_000, Scope: ScopeUser},
		Money:   {PerSecond: 100, Burst: 2_000, Scope: ScopeUser},
		Admin:   {PerSecond: 1_000, Burst: 10_000, Scope: ScopeUser},
		Socket:  {PerSecond: 20, Burst: 500, Scope: ScopeUser},

		ServerMessages: {PerSecond: 5_000, Burst: 50_000, Scope: ScopeUser},

		Call: {PerSecond: 50, Burst: 200, Scope: ScopeUser},

		StateBytes: {PerSecond: 32 << 10, Burst: 64 << 10, Scope: ScopeUser},

		Rooms:         {PerDay: 2_000, Burst: 2_000, Scope: ScopeUser},
		Joins:         {PerDay: 5_000, Burst: 5_000, Scope: ScopeUser},
		KeyedRequests: {PerDay: 3_000, Burst: 3_000, Scope: ScopeUser},
		KeyedSignIns:  {PerDay: 10_000, Burst: 10_000, Scope: ScopeAddress},
		RequiredKeys:  {PerSecond: 1, Burst: 10_000, Scope: ScopeUser},
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
	if class == SignIn || class == SignUp {
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
// address, which is the usual size for one subscriber.
func AddressKey(address netip.Addr) string { return networkKey(address, 64) }

// SignUpKey returns the name of a client for SignUp: an IPv4 address, or the /48 of an IPv6
// address. One site has a /48, which contains 65,536 networks of AddressKey.
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
