package handlers

import (
	"context"

	"github.com/parlor-games/parlor/internal/base/storecost"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/realtime"
	"github.com/parlor-games/parlor/rooms"
)

// A request or message takes permits of its class by its cost: one for each commandsPerPermit
// commands of the store or replyBytesPerPermit bytes of its replies, whichever is more. Reads are
// measured. The commands inside a script cannot be, so changes take permits by the size of their
// input: scores, seats. docs/limits.md has each at its largest input, and
// TestNoPermitCostsMoreThanItsCeiling measures them.
const (
	commandsPerPermit   = 100
	replyBytesPerPermit = 128 << 10
	// maxReadPermits is less than the burst of each class: a read that is dearer may follow soon.
	maxReadPermits = 400

	scoresPerPermit = 4 // of a batch
	// A change reads the whole room, up to 700 bytes for each seat. A staff write reads it once
	// more, for the trail.
	seatsReadPerPermit = 256
	// To end a room moves the money of each seat, and a rematch reserves each.
	seatsMovedPerPermit = 16
)

// permitsOf returns how many permits a read takes.
func permitsOf(u *storecost.Cost) int64 {
	byCommands := ceilDiv(u.Commands(), commandsPerPermit)
	byBytes := ceilDiv(u.ReplyBytes(), replyBytesPerPermit)
	return min(max(1, byCommands, byBytes), maxReadPermits)
}

func ceilDiv(n, by int64) int64 { return (n + by - 1) / by }

// chargeUsage takes the permits of what a read cost beside those that it took before.
func (r *request) chargeUsage() { r.chargeRateLimit(permitsOf(&r.usage) - 1 - r.charged) }

// chargeRateLimit takes more permits for a request that cost more than others of its class.
func (r *request) chargeRateLimit(permits int64) {
	if key, limited := r.rateLimitKey(r.route.rateLimitClass); limited && permits > 0 {
		r.charged += permits
		decision := r.server.Limiter.Charge(r.route.rateLimitClass, key, permits)
		r.setHeader("Ratelimit", decision.RateLimitHeader())
	}
}

// measured returns a messageHandler whose messages take permits of a class by what they cost.
func measured(class ratelimit.Class, handle messageHandler) messageHandler {
	return func(ctx context.Context, s *clientHandler, client *realtime.Client, m *message) (any, error) {
		var used storecost.Cost
		data, err := handle(storecost.With(ctx, &used), s, client, m)
		s.chargePermits(class, int(permitsOf(&used))-1)
		return data, err
	}
}

// chargeRoom takes the permits of a change of a room beside its first one.
func (r *request) chargeRoom(result rooms.ChangeResult, err error) (rooms.ChangeResult, error) {
	if err == nil {
		r.chargeRateLimit(roomPermits(result.Room, r.staffWrite != nil) - 1 - r.charged)
	}
	return result, err
}

// roomPermits returns how many permits a change of a room takes.
func roomPermits(room *rooms.Room, readTwice bool) int64 {
	seats := int64(len(room.Seats))
	if readTwice {
		seats *= 2
	}
	return max(1, ceilDiv(seats, seatsReadPerPermit))
}

// chargeSeats is chargeRoom for a change of what each seat has.
func (r *request) chargeSeats(result rooms.ChangeResult, err error) (rooms.ChangeResult, error) {
	if err == nil {
		r.chargeRateLimit(ceilDiv(int64(len(result.Room.Seats)), seatsMovedPerPermit) - 1)
	}
	return r.chargeRoom(result, err)
}

// chargeClass takes more permits of another class than that of the operation.
func (r *request) chargeClass(class ratelimit.Class, permits int) {
	if key, limited := r.rateLimitKey(class); limited && permits > 0 {
		r.server.Limiter.Charge(class, key, int64(permits))
	}
}
