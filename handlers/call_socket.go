package handlers

import (
	"context"
	"strings"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/calls"
	"github.com/parlor-games/parlor/realtime"
)

// A server must not be asked more often than it may answer, and it sends other frames, too.
const (
	serverCallsPerSecond = serverFramesPerSecond * 3 / 4
	serverCallBurst      = serverFrameBurst * 3 / 4
)

func openServer(_ context.Context, s *clientHandler, client *realtime.Client) {
	s.server.Servers.Open(s.caller.GameID, client.ID())
	s.server.Calls.OpenServer(client, serverCallsPerSecond, serverCallBurst)
}

func closeServer(s *clientHandler, client *realtime.Client) {
	s.server.Servers.Close(client.ID())
	s.server.Calls.CloseServer(client.ID())
}

// subscribeServerToRoom is subscribeToRoom for a server, which gets the calls of the room from then
// on.
func subscribeServerToRoom(
	ctx context.Context, s *clientHandler, client *realtime.Client, m *message, in *subscribeInput,
) (any, error) {
	starts := []roomStart{in.roomStart}
	if in.Rooms != nil {
		starts = *in.Rooms
	}
	// Before the subscription, since its reply promises the calls. None come of a room that is not the
	// game's.
	roomIDs := make([]string, 0, len(starts))
	for i := range starts {
		if _, err := s.server.Rooms.EventTopic(starts[i].RoomID); err == nil {
			roomIDs = append(roomIDs, strings.ToLower(starts[i].RoomID)) // as calls have it
		}
	}
	if len(roomIDs) > topicsPerServerMessage {
		roomIDs = nil // the subscription is refused
	}
	if err := s.server.Servers.ListenToRooms(ctx, client.ID(), roomIDs...); err != nil {
		return nil, err
	}
	data, err := subscribeToRoom(ctx, s, client, m, in)
	for _, roomID := range roomIDs {
		if topic, _ := s.server.Rooms.EventTopic(roomID); !client.IsSubscribed(topic) {
			s.server.Servers.LeaveRoom(client.ID(), roomID)
		}
	}
	return data, err
}

func unsubscribeServerFromRoom(
	ctx context.Context, s *clientHandler, client *realtime.Client, m *message, in *roomInput,
) (any, error) {
	s.server.Servers.LeaveRoom(client.ID(), strings.ToLower(in.RoomID))
	return unsubscribeFromRoom(ctx, s, client, m, in)
}

type callMessageInput struct {
	RoomID    string    `json:"roomId" required:"true"`
	Op        string    `json:"op" required:"true"`
	Payload   rawMember `json:"payload"`
	TimeoutMS *int64    `json:"timeoutMs"`
}

// callServerByMessage asks the game's server. The reply is sent when it has answered. Meanwhile
// other messages of the socket are handled.
func callServerByMessage(
	ctx context.Context, s *clientHandler, client *realtime.Client, m *message, in *callMessageInput,
) (any, error) {
	call, err := s.server.newCall(ctx, s.caller, callInput{
		in.RoomID, in.Op, in.Payload.in(m.dataJSON), in.TimeoutMS,
	})
	if err != nil {
		return nil, err
	}
	if s.calls == nil {
		s.calls = s.server.Calls.NewCaller(client.ID())
	}
	reply := message{ID: m.ID, Type: m.Type}
	return noReply, s.calls.Start(ctx, call, func(payload wire.RawJSON, err error) {
		if err != nil {
			_ = client.Send(s.errorReply(&reply, err).encode())
			return
		}
		_ = client.Send((&socketReply{ReplyTo: reply.replyTo(), OK: true, Data: callData{payload}}).encode())
	})
}

type answerInput struct {
	CallID  string       `json:"callId" required:"true"`
	Payload wire.RawJSON `json:"payload"`
	Error   *answerError `json:"error"` // instead of Payload
}

type answerError struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

func (in *answerInput) Validate() error {
	switch {
	case in.Error == nil && len(in.Payload) == 0:
		return missing("payload")
	case in.Error == nil:
		return nil
	case len(in.Payload) > 0:
		return apierror.InvalidRequest.WithField("payload", "conflict", "must not be there with an error")
	case in.Error.Code == "":
		return missing("error.code")
	default:
		return nil
	}
}

// answerCall passes on the answer to a call. Without an id an error is counted only: nobody waits
// for it.
func answerCall(
	_ context.Context, s *clientHandler, client *realtime.Client, m *message, in *answerInput,
) (any, error) {
	answer := calls.Answer{CallID: in.CallID, Payload: in.Payload}
	if in.Error != nil {
		answer.Code, answer.Detail = in.Error.Code, in.Error.Detail
	}
	err := s.server.Calls.Reply(client.ID(), answer)
	switch {
	case m.ID != "":
		return struct{}{}, err
	case err != nil && !apierror.CallNotFound.Is(err):
		return nil, err
	default:
		return noReply, nil
	}
}
