package rooms

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/events"
	"github.com/parlor-games/parlor/internal/principal"
	"github.com/parlor-games/parlor/internal/wire"
)

// The limits of a message.
const (
	maxOpBytes      = 64      // bytes of MessageInput.Op
	maxPayloadBytes = 8 << 10 // bytes of MessageInput.Payload
)

// MessageInput is what a player sends to other participants of a room.
type MessageInput struct {
	RoomID  string
	Op      string       // the game's name for the message, at most 64 bytes
	Payload wire.RawJSON // any JSON value of at most 8 KiB; nil: null
	To      *[]int64     // user ids of the recipients; nil: all participants
}

// Message is a room.message event, ready to be broadcast. It is not stored.
type Message struct {
	Topic      string  // of the room's events
	Recipients []int64 // user ids, without the sender; empty: there is nobody to send it to
	Event      []byte  // the event as JSON
}

type messageEvent struct {
	Type   string      `json:"type"`
	RoomID string      `json:"roomId"`
	At     time.Time   `json:"at"`
	Data   messageData `json:"data"`
}

type messageData struct {
	From    int64        `json:"from"` // user id
	Op      string       `json:"op"`
	Payload wire.RawJSON `json:"payload"`
}

// AuthorizeMessage decides whether a player may send a message, and to whom, and builds its event.
// Only active players may send and receive. It returns forbidden, invalid_request, room_not_found,
// payload_too_large, and not_participant with a field error for each recipient that is not seated.
func (s *Service) AuthorizeMessage(ctx context.Context, caller principal.Caller, in MessageInput) (Message, error) {
	if caller.Role != principal.Player {
		return Message{}, apierror.Forbidden
	}
	if len(in.Op) > maxOpBytes {
		reason := "may have at most " + strconv.Itoa(maxOpBytes) + " bytes"
		return Message{}, apierror.InvalidRequest.WithField("op", "range", reason)
	}
	if len(in.Payload) > maxPayloadBytes {
		return Message{}, apierror.PayloadTooLarge.WithReason("a payload may have at most %d bytes", maxPayloadBytes)
	}
	room, err := s.Get(ctx, caller, in.RoomID)
	if err != nil {
		return Message{}, err
	}
	recipients, err := room.messageRecipients(caller.UserID, in.To)
	if err != nil {
		return Message{}, err
	}
	event, err := wire.Marshal(messageEvent{
		Type: events.RoomMessage.Name, RoomID: room.RoomID, At: time.Now(),
		Data: messageData{From: caller.UserID, Op: in.Op, Payload: in.Payload},
	})
	if err != nil {
		return Message{}, fmt.Errorf("encode a message: %w", err)
	}
	topic, _ := s.EventTopic(room.RoomID)
	return Message{Topic: topic, Recipients: recipients, Event: event}, nil
}

// messageRecipients returns the active players that a message of sender goes to, without the
// sender. It returns not_participant.
func (r *Room) messageRecipients(sender int64, to *[]int64) ([]int64, error) {
	active := r.ActivePlayers()
	if !slices.Contains(active, sender) {
		return nil, apierror.NotParticipant
	}
	recipients := active
	if to != nil {
		recipients = slices.Clone(*to)
		notSeated := apierror.NotParticipant
		for i, user := range recipients {
			if !slices.Contains(active, user) {
				field := "to[" + strconv.Itoa(i) + "]"
				notSeated = notSeated.WithField(field, "not_participant", "is not seated in the room")
			}
		}
		if len(notSeated.FieldErrors) > 0 {
			return nil, notSeated
		}
	}
	return slices.DeleteFunc(recipients, func(user int64) bool { return user == sender }), nil
}
