package handlers

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/parlor-games/parlor/internal/principal"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/events"
	"github.com/parlor-games/parlor/realtime"
	"github.com/parlor-games/parlor/rooms"
)

const eventFrame = 16 << 10 // bytes, from the client

// newLive is the desk of /realtime.
func (e *Server) newLive() *desk {
	return &desk{
		socket: e.Realtime.Socket(realtime.Limits{MaxFrame: eventFrame, Rate: framesPerSecond, Burst: framesAtOnce, Hello: true}),
		verbs:  map[string]verb{"room.subscribe": said(subscribe), "room.unsubscribe": said(unsubscribe), "room.send": said(send)},
		greet:  followSelf,
	}
}

// followSelf subscribes a connection to what happens to its player, before hello: who reads that has missed nothing since.
func followSelf(ctx context.Context, v *visitor, p *realtime.Client) {
	ctx, cancel := context.WithTimeout(ctx, messageTimeout)
	defer cancel()
	for _, topic := range []string{v.edge.Wallet.EventTopic(v.caller.User), v.edge.Progress.EventTopic(v.caller.User)} {
		if _, err := p.Subscribe(ctx, realtime.Subscription{Topic: topic, Implicit: true}); err != nil {
			p.Close(realtime.CloseRestart, "the store cannot be reached")
			return
		}
	}
}

type subscribeInput struct {
	RoomID string `json:"roomId"`
	After  string `json:"after"`
}

func (in *subscribeInput) lacks() needs { return needs{}.that(in.RoomID != "", "roomId") }

// subscribe follows a room that the player may see. Leaving it does not end that, but where the room is private: whoever loses
// sight of it by leaving, being kicked or banned hears of that event, and of nothing after it.
func subscribe(ctx context.Context, v *visitor, p *realtime.Client, m *message, in *subscribeInput) (any, error) {
	room, err := v.edge.Rooms.Get(ctx, v.caller, in.RoomID)
	if err != nil {
		return nil, err
	}
	topic, _ := v.edge.Rooms.EventTopic(room.RoomID)
	s := realtime.Subscription{
		Topic: topic, After: in.After,
		Snapshot: func(ctx context.Context) (realtime.Snapshot, error) { return v.edge.snapshot(ctx, room.RoomID) },
		Reply: func(start realtime.SubscribeResult) []byte {
			return (&socketReply{ReplyTo: m.replyTo(), OK: true, Data: begun{start.Mode, start.State, start.Position}}).encode()
		},
	}
	if room.Visibility == rooms.Private {
		s.Authorize = func(ctx context.Context) error {
			_, err := v.edge.Rooms.Get(ctx, v.caller, room.RoomID)
			return err
		}
		s.NeedsReauthorization = func(eventType string, _ []byte) bool { return rooms.MayUnseat(eventType) }
	}
	if _, err := p.Subscribe(ctx, s); err != nil {
		return nil, err
	}
	return replied, nil
}

// begun is where a subscription begins, and what replaces events that were missed.
type begun struct {
	Mode     realtime.Mode  `json:"mode"`
	Room     jsontext.Value `json:"room,omitzero"`
	Position string         `json:"position"`
}

// event is what the node itself says to a connection.
type event struct {
	Type     string    `json:"type"`
	RoomID   string    `json:"roomId"`
	Seq      int64     `json:"seq,omitzero"`
	Position string    `json:"position,omitzero"`
	At       time.Time `json:"at"`
	Data     any       `json:"data"`
}

// snapshot is a room as it is now. It is taken once for all who follow the room; each of them has been let in before.
func (e *Server) snapshot(ctx context.Context, roomID string) (realtime.Snapshot, error) {
	room, err := e.Rooms.Get(ctx, principal.Caller{Role: principal.Operator}, roomID)
	if err != nil {
		return realtime.Snapshot{}, err
	}
	state := room.AppendJSON(nil)
	frame, err := json.Marshal(event{
		Type: events.RoomSnapshot.Name, RoomID: roomID, Seq: room.Seq, Position: room.Position, At: time.Now(),
		Data: begun{realtime.ModeSnapshot, state, room.Position},
	}, responseOptions)
	if err != nil {
		return realtime.Snapshot{}, fmt.Errorf("encode a snapshot: %w", err)
	}
	return realtime.Snapshot{Position: room.Position, State: state, Frame: frame}, nil
}

func unsubscribe(_ context.Context, v *visitor, p *realtime.Client, _ *message, in *roomInput) (any, error) {
	topic, ok := v.edge.Rooms.EventTopic(in.RoomID)
	if !ok {
		return nil, apierror.RoomNotFound
	}
	p.Unsubscribe(topic)
	return struct{}{}, nil
}

type sendInput struct {
	RoomID  string         `json:"roomId"`
	Op      string         `json:"op"`
	Payload jsontext.Value `json:"payload"`
	To      *[]int64       `json:"to"`
}

func (in *sendInput) lacks() needs {
	return needs{}.that(in.RoomID != "", "roomId").that(in.Op != "", "op")
}

const longestOp = 64

// spoken is what passes between participants; what a game makes of it is the game's.
type spoken struct {
	From    int64          `json:"from"`
	Op      string         `json:"op"`
	Payload jsontext.Value `json:"payload"`
}

// send tells the other participants, or some of them, as far as they follow the room.
func send(ctx context.Context, v *visitor, p *realtime.Client, _ *message, in *sendInput) (any, error) {
	if len(in.Op) > longestOp {
		return nil, apierror.InvalidRequest.WithField("op", "range", "may have at most "+strconv.Itoa(longestOp)+" bytes")
	}
	room, err := v.edge.Rooms.Get(ctx, v.caller, in.RoomID)
	if err != nil {
		return nil, err
	}
	seated := room.ActivePlayers()
	if !slices.Contains(seated, v.caller.User) {
		return nil, apierror.NotParticipant
	}
	to := seated
	if in.To != nil {
		to = *in.To
		refusal := apierror.NotParticipant
		for i, user := range to {
			if !slices.Contains(seated, user) {
				refusal = refusal.WithField("to["+strconv.Itoa(i)+"]", "not_participant", "is not seated in the room")
			}
		}
		if len(refusal.FieldErrors) > 0 {
			return nil, refusal
		}
	}
	to = slices.DeleteFunc(slices.Clone(to), func(user int64) bool { return user == v.caller.User })
	if len(to) == 0 {
		return struct{}{}, nil
	}
	if len(in.Payload) == 0 {
		in.Payload = jsontext.Value("null")
	}
	frame, err := json.Marshal(event{
		Type: events.RoomMessage.Name, RoomID: room.RoomID, At: time.Now(), Data: spoken{v.caller.User, in.Op, in.Payload},
	}, responseOptions)
	if err != nil {
		return nil, fmt.Errorf("encode a message: %w", err)
	}
	topic, _ := v.edge.Rooms.EventTopic(room.RoomID)
	return struct{}{}, v.edge.Realtime.Broadcast(ctx, topic, p, to, frame)
}
