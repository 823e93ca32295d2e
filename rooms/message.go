package rooms

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/events"
)

// The limits of a message.
const (
	maxOpBytes      = 64      // bytes of MessageInput.Op
	maxPayloadBytes = 8 << 10 // bytes of MessageInput.Payload
)

// MessageInput is a message of a player, or of the game's server, to participants of a room.
type MessageInput struct {
	RoomID  string
	Op      string       // the game's name for the message, at most 64 bytes
	Payload wire.RawJSON // any JSON value of at most 8 KiB; nil: null
	Bytes   []byte       // instead of Payload: at most 8 KiB; nil: none
	To      *[]int64     // user ids of the recipients; nil: all participants, and the game's servers
	Memory  []byte       // to which Message.Event is appended; nil: memory of its own
}

// Message is a room.message event, ready to be broadcast. It is not stored.
type Message struct {
	Topic      string  // of the room's events
	Recipients []int64 // user ids, ascending, the sender may be among them, or servers; empty: nobody gets it
	Event      []byte  // the event as JSON; nil for MessageInput.Bytes
}

// SeatCache keeps the seats of a room until the next event of the room. Without it each message
// would cost a read of the room (docs/decisions/0021-relay-without-the-store.md).
type SeatCache interface {
	// CachedState returns the cached state of a topic, nil when there is none or it may be outdated.
	CachedState(topic string) any
	// CacheState keeps a value that was read at a position "<seq>-<nonce>" of the topic.
	CacheState(topic, position string, value any)
}

// servers is the recipient that stands for the servers of the game that are subscribed to the room.
// No player has this id.
const servers = 0

// roomSeats are what SeatCache keeps of a room.
type roomSeats struct {
	gameID int64
	active activeSeats
}

// activeSeats are servers, and the user ids of the active players of a room, ascending.
type activeSeats []int64

func (s activeSeats) has(user int64) bool {
	_, found := slices.BinarySearch(s, user)
	return found
}

// AuthorizeMessage decides whether a player or a server of the game may send a message, and to
// whom, and builds its event. Of players only active ones may send, and only they receive. It
// returns forbidden, invalid_request, room_not_found, payload_too_large, and not_participant with a
// field error for each recipient that is not seated.
func (s *Service) AuthorizeMessage(
	ctx context.Context, caller principal.Caller, in MessageInput, cache SeatCache,
) (Message, error) {
	if !caller.HasRole(principal.Player, principal.Server) {
		return Message{}, apierror.Forbidden
	}
	if err := in.check(); err != nil {
		return Message{}, err
	}
	at, err := s.store.locate(in.RoomID)
	if err != nil {
		return Message{}, err
	}
	recipients, err := s.messageRecipients(ctx, caller, at, in.To, cache)
	if err != nil {
		return Message{}, err
	}
	m := Message{Topic: at.eventTopic, Recipients: recipients}
	if in.Bytes == nil {
		m.Event = events.AppendMessage(in.Memory, events.Message{
			RoomID: at.roomID, At: time.Now(), From: caller.UserID, Op: in.Op, Payload: in.Payload,
		})
	}
	return m, nil
}

// check returns invalid_request and payload_too_large.
func (in *MessageInput) check() error {
	if len(in.Op) > maxOpBytes {
		reason := "may have at most " + strconv.Itoa(maxOpBytes) + " bytes"
		return apierror.InvalidRequest.WithField("op", "range", reason)
	}
	if max(len(in.Payload), len(in.Bytes)) > maxPayloadBytes {
		return apierror.PayloadTooLarge.WithReason("a payload may have at most %d bytes", maxPayloadBytes)
	}
	if wire.HasInfinity(in.Payload) {
		return apierror.InvalidRequest.WithField("payload", "range", "has a number that is too large for a double")
	}
	return nil
}

// AuthorizeCall decides whether a player may call the game's server about a room: only active
// players may. It returns forbidden, invalid_request, room_not_found, payload_too_large and
// not_participant.
func (s *Service) AuthorizeCall(
	ctx context.Context, caller principal.Caller, in MessageInput, cache SeatCache,
) error {
	if caller.Role != principal.Player {
		return apierror.Forbidden
	}
	if err := in.check(); err != nil {
		return err
	}
	at, err := s.store.locate(in.RoomID)
	if err != nil {
		return err
	}
	_, err = s.messageRecipients(ctx, caller, at, &[]int64{}, cache)
	return err
}

// messageRecipients returns the active players to whom a message goes, perhaps including the
// sender. If the cache does not allow the message, it reads the store before it returns an error.
func (s *Service) messageRecipients(
	ctx context.Context, caller principal.Caller, at location, to *[]int64, cache SeatCache,
) ([]int64, error) {
	// A seated player may see the room.
	if seats, ok := cache.CachedState(at.eventTopic).(roomSeats); ok && seats.gameID == caller.GameID {
		if recipients, err := seats.active.recipients(caller.UserID, to); err == nil {
			return recipients, nil
		}
	}
	room, err := s.Get(ctx, caller, at.roomID)
	if err != nil {
		return nil, err
	}
	seats := activeSeats(append(room.ActivePlayers(), servers))
	slices.Sort(seats)
	cache.CacheState(at.eventTopic, room.Position, roomSeats{room.GameID, seats})
	return seats.recipients(caller.UserID, to)
}

// recipients returns those that a message of sender goes to; a server's is servers. It returns
// not_participant.
func (s activeSeats) recipients(sender int64, to *[]int64) ([]int64, error) {
	switch {
	case !s.has(sender):
		return nil, apierror.NotParticipant
	case to == nil && sender == servers:
		return s[1:], nil // each server knows what it says
	case to == nil:
		return s, nil
	}
	notSeated := apierror.NotParticipant
	for i, user := range *to {
		if user == servers || !s.has(user) {
			field := "to[" + strconv.Itoa(i) + "]"
			notSeated = notSeated.WithField(field, "not_participant", "is not seated in the room")
		}
	}
	if len(notSeated.FieldErrors) > 0 {
		return nil, notSeated
	}
	recipients := slices.DeleteFunc(slices.Clone(*to), func(user int64) bool { return user == sender })
	slices.Sort(recipients)
	return slices.Compact(recipients), nil
}
