package auth

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// Class is a kind of calls that share a limit.
type Class string

// The classes.
const (
	Address Class = "address" // everything, by client address
	SignIn  Class = "sign-in" // guest, exchange, refresh
	Read    Class = "read"    // what changes nothing
	Write   Class = "write"   // what changes something
	Money   Class = "money"   // what may move money: rooms, purchases
	Admin   Class = "admin"   // the operator's and servers' calls
	Socket  Class = "socket"  // opening a socket
)

// Scope says by what the calls of a class are counted.
type Scope string

// The keys.
const (
	ByUser    Scope = "user" // the caller, see principal.Caller.Who
	ByAddress Scope = "ip"   // the client's address, see ClientKey
)

// Limit is how often: Burst at once, and PerSecond grow back.
type Limit struct {
	PerSecond int64 // 1 to 1,000,000
	Burst     int64 // 1 to 1,000,000,000
	Scope     Scope
}

// Limits says how often for each class; a class that is absent has no limit, and no Limits none at all.
type Limits map[Class]Limit

// DefaultLimits are wide enough for many players behind one address, and narrow enough that one of them cannot wear a node out.
func DefaultLimits() Limits {
	return Limits{
		Address: {PerSecond: 2_000, Burst: 20_000, Scope: ByAddress},
		SignIn:  {PerSecond: 20, Burst: 2_000, Scope: ByAddress},
		Read:    {PerSecond: 200, Burst: 2_000, Scope: ByUser},
		Write:   {PerSecond: 50, Burst: 1_000, Scope: ByUser},
		Money:   {PerSecond: 100, Burst: 2_000, Scope: ByUser},
		Admin:   {PerSecond: 1_000, Burst: 10_000, Scope: ByUser},
		Socket:  {PerSecond: 20, Burst: 500, Scope: ByUser},
	}
}

// each is the time in which one permit grows back, in microseconds.
func (l Limit) each() int64 { return 1_000_000 / l.PerSecond }

// slice is the most permits that a node takes at once: a sixteenth of the burst, at most what grows back in a second.
func (l Limit) slice() int64 { return max(1, min(l.Burst/16, l.PerSecond)) }

// window is the time in which an empty bucket is full again.
func (l Limit) window() time.Duration {
	return time.Duration(l.each()*l.Burst) * time.Microsecond
}

// Check tells what is wrong with limits.
func (l Limits) Check() error {
	for class, limit := range l {
		if limit.PerSecond < 1 || limit.PerSecond > 1_000_000 || limit.Burst < 1 || limit.Burst > 1_000_000_000 {
			return fmt.Errorf("the limit of %s must be 1 to 1,000,000 a second with a burst of 1 to 1,000,000,000", class)
		}
		if !slices.Contains([]Scope{ByUser, ByAddress}, limit.Scope) {
			return fmt.Errorf("the limit of %s is counted by the unknown key %q", class, limit.Scope)
		}
	}
	return nil
}

// AddressKey names a client by its address: an IPv6 one by its /64, since that is what one subscriber has.
func AddressKey(address netip.Addr) string {
	address = address.Unmap().WithZone("")
	if address.Is6() {
		prefix, err := address.Prefix(64)
		if err == nil {
			return "ip:" + prefix.String()
		}
	}
	return "ip:" + address.String()
}

// Decision is what became of one call. Where the class has no limit, Limit is 0.
type Decision struct {
	Class      Class
	Allowed    bool
	Limit      int64         // the burst
	Remaining  int64         // permits left, as far as this node knows
	Window     time.Duration // in which an empty bucket is full again
	Reset      time.Duration // until the bucket is full
	RetryAfter time.Duration // until the next permit; 0 when allowed
}

// Policy is the value of the RateLimit-Policy header (draft-ietf-httpapi-ratelimit-headers).
func (d Decision) Policy() string {
	return strconv.Quote(string(d.Class)) + ";q=" + strconv.FormatInt(d.Limit, 10) + ";w=" + strconv.FormatInt(seconds(d.Window), 10)
}

// Header is the value of the RateLimit header (draft-ietf-httpapi-ratelimit-headers).
func (d Decision) Header() string {
	return strconv.Quote(string(d.Class)) + ";r=" + strconv.FormatInt(d.Remaining, 10) + ";t=" + strconv.FormatInt(seconds(d.Reset), 10)
}

// RetryAfterSeconds is the value of the Retry-After header (RFC 9110).
func (d Decision) RetryAfterSeconds() int64 { return max(1, seconds(d.RetryAfter)) }

// seconds rounds up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
