package handlers

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/auth"
	"github.com/parlor-games/parlor/internal/events"
	"github.com/parlor-games/parlor/internal/principal"
	"github.com/parlor-games/parlor/internal/wire"
	"github.com/parlor-games/parlor/realtime"
	"github.com/parlor-games/parlor/rooms"
)

const maxRealtimeFrameBytes = 16 << 10 // bytes, from the client

// newRealtimeEndpoint returns the endpoint of /realtime.
func (e *Server) newRealtimeEndpoint() *socketEndpoint {
	limits := realtime.Limits{
		MaxFrameBytes: maxRealtimeFrameBytes, FramesPerSecond: framesPerSecond,
		BurstFrames: frameBurst, SendHello: true,
	}
	return &socketEndpoint{
		socketKind: e.RealtimeHub.NewSocketKind(limits),
		handlers: map[string]messageType{
			"room.subscribe":   {auth.ClassRead, decodeDataThen(subscribeToRoom)},
			"room.unsubscribe": {"", decodeDataThen(unsubscribeFromRoom)},
			"room.send":        {auth.ClassRead, decodeDataThen(sendMessage)},
		},
		onOpen: subscribeToUserEvents,
	}
}

// subscribeToUserEvents subscribes a connection to the events of its player. It runs before hello
// is sent, so a client misses no event after hello.
func subscribeToUserEvents(ctx context.Context, s *clientHandler, client *realtime.Client) {
	ctx, cancel := context.WithTimeout(ctx, messageTimeout)
	defer cancel()
	user := s.caller.UserID
	game := s.caller.GameID
	for _, subscription := range []realtime.Subscription{
		{
			Topic: s.server.Wallet.EventTopic(game, user), Implicit: true,
			TakeReplacement: func(ctx context.Context) (realtime.Snapshot, error) {
				position, balances, err := s.server.Wallet.EventSnapshot(ctx, game, user)
				return realtime.Snapshot{Position: position, Frame: balances}, err
			},
		},
		{Topic: s.server.Progress.EventTopic(user), Implicit: true},
	} {
		if _, err := client.Subscribe(ctx, subscription); err != nil {
			client.Close(realtime.CloseRestart, "the store cannot be reached")
			return
		}
	}
}

type subscribeInput struct {
	RoomID        string `json:"roomId"`
	AfterPosition string `json:"after"` // "<seq>-<nonce>", the last position that the client has; "" for none
}

func (in *subscribeInput) Validate() error {
	return requireMembers(member{"roomId", in.RoomID != ""})
}

// subscribeToRoom subscribes to a room that the player may see. The subscription outlives the
// player's seat, except in a private room: a player who may no longer see it gets the event that is
// the reason, and none after it. One who loses that right without an event, such as a friend of the
// host, gets an error without replyTo within half a minute.
func subscribeToRoom(
	ctx context.Context, s *clientHandler, client *realtime.Client, m *message, in *subscribeInput,
) (any, error) {
	room, err := s.server.Rooms.Get(ctx, s.caller, in.RoomID)
	if err != nil {
		return nil, err
	}
	roomID := strings.Clone(room.RoomID) // what the subscription refers to stays as long as it does
	topic, _ := s.server.Rooms.EventTopic(roomID)
	sub := realtime.Subscription{
		Topic: topic, AfterPosition: in.AfterPosition, NotBeforePosition: room.Position,
		TakeSnapshot: func(ctx context.Context) (realtime.Snapshot, error) {
			return s.server.roomSnapshot(ctx, roomID)
		},
		EncodeReply: func(start realtime.SubscribeResult) []byte {
			data := subscribedData{start.Mode, start.StateJSON, start.Position}
			return (&socketReply{ReplyTo: m.replyTo(), OK: true, Data: data}).encode()
		},
	}
	if room.Visibility == rooms.Private {
		sub.Authorize = func(ctx context.Context) error {
			_, err := s.server.Rooms.Get(ctx, s.caller, roomID)
			return err
		}
		sub.EncodeRevoked = func(err error) []byte {
			if apiErr, ok := apierror.As(err); ok {
				err = apiErr.WithMember("roomId", roomID)
			}
			return s.errorReply(&message{Type: m.Type}, err).encode()
		}
		sub.AffectsAuthorization = func(eventType string, _ []byte) bool { return rooms.MayUnseat(eventType) }
	}
	if _, err := client.Subscribe(ctx, sub); err != nil {
		return nil, err
	}
	return noReply, nil // it was sent with the position
}

// subscribedData is where a subscription begins, and the data of room.snapshot.
type subscribedData struct {
	Mode     realtime.SubscribeMode `json:"mode"`
	RoomJSON wire.RawJSON           `json:"room,omitzero"` // only with realtime.ModeSnapshot
	Position string                 `json:"position"`      // "<seq>-<nonce>"
}

type snapshotEvent struct {
	Type     string         `json:"type"`
	RoomID   string         `json:"roomId"`
	Seq      int64          `json:"seq,omitzero"`
	Position string         `json:"position,omitzero"`
	At       time.Time      `json:"at"`
	Data     subscribedData `json:"data"`
}

// roomSnapshot returns the current state of a room. It is shared by all subscribers, each of which
// has been authorized, so it is read as the operator.
func (e *Server) roomSnapshot(ctx context.Context, roomID string) (realtime.Snapshot, error) {
	room, err := e.Rooms.Get(ctx, principal.Caller{Role: principal.Operator}, roomID)
	if err != nil {
		return realtime.Snapshot{}, err
	}
	state := room.AppendJSON(nil)
	frame, err := wire.Marshal(snapshotEvent{
		Type: events.RoomSnapshot.Name, RoomID: roomID, Seq: room.Seq, Position: room.Position, At: time.Now(),
		Data: subscribedData{realtime.ModeSnapshot, state, room.Position},
	})
	if err != nil {
		return realtime.Snapshot{}, fmt.Errorf("encode a snapshot: %w", err)
	}
	return realtime.Snapshot{Position: room.Position, StateJSON: state, Frame: frame}, nil
}

func unsubscribeFromRoom(
	_ context.Context, s *clientHandler, client *realtime.Client, _ *message, in *roomInput,
) (any, error) {
	topic, err := s.server.Rooms.EventTopic(in.RoomID)
	if err != nil {
		return nil, err
	}
	client.Unsubscribe(topic)
	return struct{}{}, nil
}

type sendInput struct {
	RoomID  string       `json:"roomId"`
	Op      string       `json:"op"`
	Payload wire.RawJSON `json:"payload"`
	To      *[]int64     `json:"to"` // user ids; absent: all participants
}

func (in *sendInput) Validate() error {
	return requireMembers(member{"roomId", in.RoomID != ""}, member{"op", in.Op != ""})
}

// sendMessage sends a message to other participants, as far as they are subscribed to the room. One
// without an id is not acknowledged, which saves the sender's socket a frame for each.
func sendMessage(
	ctx context.Context, s *clientHandler, client *realtime.Client, m *message, in *sendInput,
) (any, error) {
	outgoing, err := s.server.Rooms.AuthorizeMessage(ctx, s.caller, rooms.MessageInput(*in))
	if err == nil && len(outgoing.Recipients) > 0 {
		hub := s.server.RealtimeHub
		err = hub.BroadcastEphemeral(ctx, outgoing.Topic, client, outgoing.Recipients, outgoing.Event)
	}
	if err == nil && m.ID == "" {
		return noReply, nil
	}
	return struct{}{}, err
}
