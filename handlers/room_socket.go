package handlers

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/realtime"
	"github.com/parlor-games/parlor/rooms"
)

const maxRealtimeFrameBytes = 16 << 10 // bytes, from the client

// newRealtimeEndpoint returns the endpoint of /realtime.
func (e *Server) newRealtimeEndpoint() *socketEndpoint {
	limits := realtime.Limits{
		MaxFrameBytes: maxRealtimeFrameBytes, FramesPerSecond: framesPerSecond,
		BurstFrames: frameBurst, SendHello: true, Binary: true, StateTopics: boardsPerConnection,
	}
	return &socketEndpoint{
		socketKind: e.RealtimeHub.NewSocketKind(limits),
		handlers:   realtimeMessages(),
		onOpen:     subscribeToUserEvents,
		onBinary:   sendBytes,
	}
}

// realtimeMessages returns what the endpoint does with each type of message.
func realtimeMessages() map[string]messageType {
	return map[string]messageType{
		"auth.refresh":      {ratelimit.Read, decodeDataThen(replaceToken)},
		"room.subscribe":    {ratelimit.Read, decodeDataThen(subscribeToRoom)},
		"room.unsubscribe":  {"", decodeDataThen(unsubscribeFromRoom)},
		relayMessageType:    {ratelimit.Read, decodeDataThen(sendMessage)},
		"room.call":         {ratelimit.Call, decodeDataThen(callServerByMessage)},
		"room.state.set":    {ratelimit.Write, decodeDataThen(setStateByMessage)},
		"room.turn.set":     {ratelimit.Write, decodeDataThen(setTurnByMessage)},
		"user.subscribe":    {ratelimit.Read, decodeDataThen(resumeUserEvents)},
		"board.subscribe":   {ratelimit.Read, measured(ratelimit.Read, decodeDataThen(watchBoard))},
		"board.unsubscribe": {"", decodeDataThen(unwatchBoard)},

		"tournament.subscribe":   {ratelimit.Read, decodeDataThen(subscribeToTournament)},
		"tournament.unsubscribe": {"", decodeDataThen(unsubscribeFromTournament)},
	}
}

// userEventsHold bounds the wait of the player's events after hello for user.subscribe, which a
// client that reconnects sends at once. Without it the new events would come before those that the
// client missed.
const userEventsHold = 500 * time.Millisecond

// subscribeToUserEvents subscribes a connection to the events of its player. It runs before hello
// is sent, so a client misses no event after hello.
func subscribeToUserEvents(ctx context.Context, s *clientHandler, client *realtime.Client) {
	ctx = s.server.messageDeadline.context(ctx)
	for _, subscription := range s.userSubscriptions() {
		subscription.HoldEvents = userEventsHold
		if _, err := client.Subscribe(ctx, subscription); err != nil {
			client.Close(realtime.CloseRestart, "the store cannot be reached")
			return
		}
	}
}

// userSubscriptions returns what the player's own events are: those of money, then those of saves.
func (s *clientHandler) userSubscriptions() [2]realtime.Subscription {
	game, user := s.caller.GameID, s.caller.UserID
	return [2]realtime.Subscription{
		{
			Topic: s.server.Wallet.EventTopic(game, user), Implicit: true,
			TakeReplacement: func(ctx context.Context) (realtime.Snapshot, error) {
				position, balances, err := s.server.Wallet.SnapshotBalances(ctx, game, user)
				return realtime.Snapshot{Position: position, Frame: balances}, err
			},
		},
		{Topic: s.server.Progress.EventTopic(user), Implicit: true},
	}
}

// userPositions are positions "<seq>-<nonce>" in the two lists of a player's events.
type userPositions struct {
	Money    string `json:"money"`
	Progress string `json:"progress"`
}

type userSubscribeInput struct {
	After userPositions `json:"after"` // the last events that the client has; "" for none
}

// userSubscribedData has the position at which the player's events begin.
type userSubscribedData struct {
	Mode     realtime.SubscribeMode `json:"mode"`
	Position userPositions          `json:"position"`
	Read     []string               `json:"read,omitzero"` // what to read anew; only with realtime.ModeSnapshot
}

// What a client reads by other calls where its events are gone.
const (
	readWallet = "wallet" // balances and assets
	readSaves  = "saves"
)

// resumeUserEvents resumes the player's events after the client's positions. If those events are no
// longer stored, or the client has no position, the events start with the next one, and the reply
// lists what the client must read.
func resumeUserEvents(
	ctx context.Context, s *clientHandler, client *realtime.Client, m *message, in *userSubscribeInput,
) (any, error) {
	game, user := s.caller.GameID, s.caller.UserID
	moneySeq, err := s.server.Wallet.EventSeq(ctx, game, user)
	if err != nil {
		return nil, err
	}
	progressSeq, err := s.server.Progress.EventSeq(ctx, user)
	if err != nil {
		return nil, err
	}
	subscriptions := s.userSubscriptions()
	money, progress := &subscriptions[0], &subscriptions[1]
	money.AfterPosition, money.NotBeforeSeq = in.After.Money, moneySeq
	progress.AfterPosition, progress.NotBeforeSeq = in.After.Progress, progressSeq
	encodeReply := func(outcomes []realtime.SubscribeOutcome) []byte {
		money, progress := outcomes[0], outcomes[1]
		if err := cmp.Or(money.Err, progress.Err); err != nil {
			return s.errorReply(m, err).encode()
		}
		data := userSubscribedData{realtime.ModeResume, userPositions{money.Position, progress.Position}, nil}
		for i, toRead := range []string{readWallet, readSaves} {
			if outcomes[i].Mode != realtime.ModeResume {
				data.Mode, data.Read = realtime.ModeSnapshot, append(data.Read, toRead)
			}
		}
		return (&socketReply{ReplyTo: m.replyTo(), OK: true, Data: data}).encode()
	}
	return noReply, client.SubscribeAll(ctx, subscriptions[:], encodeReply)
}

// roomStart is a room to subscribe to.
type roomStart struct {
	RoomID        string `json:"roomId"`
	AfterPosition string `json:"after"` // "<seq>-<nonce>", the last position that the client has; "" for none
}

// check is not Validate: in a list, a room without an id is an error of that room alone.
func (in *roomStart) check() error {
	if in.RoomID == "" {
		return missing("roomId")
	}
	return nil
}

type subscribeInput struct {
	roomStart
	Rooms *[]roomStart `json:"rooms"` // instead of one room
}

func (in *subscribeInput) Validate() error {
	switch {
	case in.Rooms == nil:
		return in.check()
	case in.roomStart != roomStart{}:
		return apierror.InvalidRequest.WithField("rooms", "forbidden", "must stand alone, without roomId and after")
	case len(*in.Rooms) == 0:
		return apierror.InvalidRequest.WithField("rooms", "range", "must have a room")
	default:
		return checkEachOnce(*in.Rooms)
	}
}

// checkEachOnce returns invalid_request for rooms that are in the list more than once. An id in
// upper case is the same id (RFC 9562, section 4).
func checkEachOnce(starts []roomStart) error {
	var errs apierror.FieldErrors
	known := map[string]bool{}
	for i, start := range starts {
		id := strings.ToLower(start.RoomID)
		if known[id] && id != "" { // a missing id is an error of that room alone
			errs.Add(fmt.Sprintf("rooms[%d].roomId", i), "duplicate", "is in the list more than once")
		}
		known[id] = true
	}
	return errs.Err()
}

// subscribeToRoom subscribes to a room that the player may see, or to several. The subscription
// outlives the player's seat, except in a private room: a player who may no longer see it gets the
// event that is the reason, and none after it. One who loses that right without an event, such as a
// friend of the host, gets an error without replyTo within half a minute.
func subscribeToRoom(
	ctx context.Context, s *clientHandler, client *realtime.Client, m *message, in *subscribeInput,
) (any, error) {
	if in.Rooms != nil {
		return noReply, s.subscribeToRooms(ctx, client, m, *in.Rooms)
	}
	room := s.server.Rooms.GetHeads(ctx, s.caller, in.RoomID)[0]
	if room.Err != nil {
		return nil, room.Err
	}
	sub := s.roomSubscription(m.Type, room.Head, in.AfterPosition)
	sub.EncodeReply = func(start realtime.SubscribeResult) []byte {
		s.noteRoomIndex(start.TopicIndex, room.Head.RoomID)
		return (&socketReply{ReplyTo: m.replyTo(), OK: true, Data: newSubscribedData(start)}).encode()
	}
	if _, err := client.Subscribe(ctx, sub); err != nil {
		return nil, err
	}
	return noReply, nil // it was sent with the position
}

// roomSubscription returns the subscription to a room that the player may see now. messageType is
// that of the message that asked for it.
func (s *clientHandler) roomSubscription(messageType string, room rooms.Head, after string) realtime.Subscription {
	roomID := strings.Clone(room.RoomID) // what the subscription refers to stays as long as it does
	topic, _ := s.server.Rooms.EventTopic(roomID)
	sub := realtime.Subscription{
		Topic: topic, AfterPosition: after, NotBeforePosition: room.Position,
		TakeSnapshot: func(ctx context.Context) (realtime.Snapshot, error) {
			return s.server.roomSnapshot(ctx, roomID)
		},
	}
	if room.Visibility == rooms.Private && s.caller.Role == principal.Player {
		sub.Authorize = func(ctx context.Context) error {
			return s.server.Rooms.GetHeads(ctx, s.caller, roomID)[0].Err
		}
		sub.EncodeRevoked = func(err error) []byte {
			if apiErr, ok := apierror.As(err); ok {
				err = apiErr.WithMember("roomId", roomID)
			}
			return s.errorReply(&message{Type: messageType}, err).encode()
		}
		sub.AffectsAuthorization = func(eventType string, _ []byte) bool { return rooms.MayUnseat(eventType) }
	}
	return sub
}

// roomOutcome is the start of the subscription to one of several rooms, or its error.
type roomOutcome struct {
	RoomID string `json:"roomId"` // as the client wrote it
	subscribedData
	Error *problem `json:"error,omitzero"`
}

// roomsSubscribedData has the outcomes in the order of the rooms in the message.
type roomsSubscribedData struct {
	Rooms []roomOutcome `json:"rooms"`
}

// subscribeToRooms subscribes to each room as subscribeToRoom does, with one reply for all. It
// counts as one message for each room.
func (s *clientHandler) subscribeToRooms(
	ctx context.Context, client *realtime.Client, m *message, starts []roomStart,
) error {
	if most := s.endpoint.socketKind.Limits().TopicsPerMessage; len(starts) > most {
		return apierror.InvalidRequest.WithField("rooms", "range", fmt.Sprintf("may have at most %d rooms", most))
	}
	s.chargePermits(ratelimit.Read, len(starts)-1)
	ids := make([]string, len(starts))
	for i := range starts {
		ids[i] = starts[i].RoomID
	}
	reads := s.server.Rooms.GetHeads(ctx, s.caller, ids...)
	subscriptions := make([]realtime.Subscription, 0, len(starts))
	for i := range reads {
		r := &reads[i]
		if err := starts[i].check(); err != nil {
			r.Err = err
		}
		if r.Err != nil {
			continue
		}
		subscriptions = append(subscriptions, s.roomSubscription(m.Type, r.Head, starts[i].AfterPosition))
	}
	return client.SubscribeAll(ctx, subscriptions, func(outcomes []realtime.SubscribeOutcome) []byte {
		data := roomsSubscribedData{Rooms: make([]roomOutcome, len(starts))}
		for i := range reads {
			one := &data.Rooms[i]
			one.RoomID = ids[i]
			err := reads[i].Err
			if err == nil {
				err, one.subscribedData = outcomes[0].Err, newSubscribedData(outcomes[0].SubscribeResult)
				s.noteRoomIndex(outcomes[0].TopicIndex, reads[i].Head.RoomID)
				outcomes = outcomes[1:]
			}
			if err != nil {
				one.Error = s.errorReply(m, err).Error
			}
		}
		return (&socketReply{ReplyTo: m.replyTo(), OK: true, Data: data}).encode()
	})
}

func newSubscribedData(start realtime.SubscribeResult) subscribedData {
	return subscribedData{start.Mode, start.StateJSON, start.Position, start.TopicIndex}
}

// subscribedData has the position at which a subscription begins; it is the data of room.snapshot,
// too.
type subscribedData struct {
	Mode     realtime.SubscribeMode `json:"mode,omitzero"`
	RoomJSON wire.RawJSON           `json:"room,omitzero"`     // only with realtime.ModeSnapshot
	Position string                 `json:"position,omitzero"` // "<seq>-<nonce>"
	// Index names the room in binary frames; only for clients that speak them.
	Index uint16 `json:"roomIndex,omitzero"`
}

type snapshotEvent struct {
	Type     string         `json:"type"`
	RoomID   string         `json:"roomId"`
	Seq      int64          `json:"seq,omitzero"`
	Position string         `json:"position,omitzero"`
	At       time.Time      `json:"at"`
	Data     subscribedData `json:"data"`
}

// roomSnapshot returns the current state of a room. It reads as the operator, because all
// subscribers share it and each was authorized before.
func (e *Server) roomSnapshot(ctx context.Context, roomID string) (realtime.Snapshot, error) {
	room, err := e.Rooms.Get(ctx, principal.Caller{Role: principal.Operator}, roomID)
	if err != nil {
		return realtime.Snapshot{}, err
	}
	state := room.AppendJSON(nil)
	frame, err := wire.Marshal(snapshotEvent{
		Type: events.RoomSnapshot.Name, RoomID: roomID, Seq: room.Seq, Position: room.Position, At: time.Now(),
		Data: subscribedData{Mode: realtime.ModeSnapshot, RoomJSON: state, Position: room.Position},
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
	RoomID   string    `json:"roomId" required:"true"`
	Op       string    `json:"op" required:"true"`
	Payload  rawMember `json:"payload"`
	Encoding string    `json:"encoding"` // events.EncodingBase64 of a payload that is bytes; "" for JSON
	To       *[]int64  `json:"to"`       // user ids; absent: all participants
	Latest   bool      `json:"latest"`   // of those that wait for a slow client, only the newest of the op is kept
}

// decodeBytes returns the payload of a message whose payload is bytes, nil for JSON.
func (in *sendInput) decodeBytes(payloadJSON wire.RawJSON) ([]byte, error) {
	switch in.Encoding {
	case "":
		return nil, nil
	case events.EncodingBase64:
	default:
		return nil, apierror.InvalidRequest.WithField("encoding", "unknown", "must be "+events.EncodingBase64)
	}
	if n, err := strconv.ParseUint(in.Op, 10, 16); err != nil || strconv.FormatUint(n, 10) != in.Op {
		return nil, apierror.InvalidRequest.WithField("op", "format", "must be a number up to 65535 for bytes")
	}
	var text string
	if err := wire.Unmarshal(payloadJSON, &text); err != nil {
		return nil, apierror.InvalidRequest.WithField("payload", "type", "must be a string in base64")
	}
	payload, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, apierror.InvalidRequest.WithField("payload", "format", "must be base64")
	}
	return payload, nil
}

// sendMessage sends a message to other participants, as far as they are subscribed to the room. One
// without an id is not acknowledged, which saves the sender's socket a frame for each.
func sendMessage(
	ctx context.Context, s *clientHandler, client *realtime.Client, m *message, in *sendInput,
) (any, error) {
	payloadJSON := in.Payload.in(m.dataJSON)
	if s.caller.Role == principal.Server {
		s.chargePermits(ratelimit.ServerMessages, len(payloadJSON)/bytesPerServerMessage)
	}
	payload, err := in.decodeBytes(payloadJSON)
	if err != nil {
		return nil, err
	}
	input := rooms.MessageInput{RoomID: in.RoomID, Op: in.Op, Payload: payloadJSON, To: in.To}
	if payload != nil {
		input.Payload, input.Bytes = nil, payload
	}
	if m.ID == "" {
		return noReply, s.relay(ctx, client, input, in.Latest, s.relayErrorHandler(client))
	}
	return struct{}{}, s.relay(ctx, client, input, in.Latest, nil)
}

// relayErrorHandler returns what tells the client that messages without an id were not published.
func (s *clientHandler) relayErrorHandler(client *realtime.Client) func(error) {
	if s.onRelayError == nil {
		s.onRelayError = func(err error) {
			_ = client.Send(s.errorReply(&message{Type: relayMessageType}, err).encode())
		}
	}
	return s.onRelayError
}

// relay sends a message to the participants that may get it. With onError it does not wait for the
// store, whose error goes there.
func (s *clientHandler) relay(
	ctx context.Context, client *realtime.Client, in rooms.MessageInput, latest bool, onError func(error),
) error {
	hub := s.server.RealtimeHub
	memory := eventMemory.Get().(*[]byte)
	defer eventMemory.Put(memory)
	in.Memory = (*memory)[:0]
	outgoing, err := s.server.Rooms.AuthorizeMessage(ctx, s.caller, in, hub)
	if err != nil || len(outgoing.Recipients) == 0 {
		return err
	}
	if outgoing.Event != nil && cap(outgoing.Event) <= maxKeptEventBytes {
		*memory = outgoing.Event
	}
	return hub.BroadcastEphemeral(ctx, outgoing.Topic, client, realtime.EphemeralMessage{
		Recipients: outgoing.Recipients, ExceptUserID: s.caller.UserID, SenderUserID: s.caller.UserID,
		Text: outgoing.Event, Bytes: in.Bytes, Op: in.Op, Latest: latest,
		OnError: onError,
	})
}

// eventMemory is where events of relayed messages are encoded; it is used again.
var eventMemory = sync.Pool{New: func() any { return new([]byte) }}

// maxKeptEventBytes bounds the memory that is kept: most messages are small.
const maxKeptEventBytes = 4 << 10

// relayMessageType is the type of a relayed message. A binary frame has none.
const relayMessageType = "room.send"

// sendBytes is sendMessage for a binary frame. It is acknowledged only by an error.
func sendBytes(ctx context.Context, s *clientHandler, client *realtime.Client, raw []byte) error {
	m, err := realtime.ParseBinaryMessage(raw)
	if err != nil {
		return err
	}
	roomID, ok := s.roomIDs[m.TopicIndex]
	if !ok {
		return apierror.InvalidRequest.WithReason("the socket is subscribed to no room with the index %d", m.TopicIndex)
	}
	input := rooms.MessageInput{RoomID: roomID, Op: strconv.Itoa(int(m.Op)), Bytes: m.Payload}
	return s.relay(ctx, client, input, m.Latest, s.relayErrorHandler(client))
}

// noteRoomIndex keeps by which index binary frames name a room. It is called by the callbacks of
// the socket, one after the other.
func (s *clientHandler) noteRoomIndex(index uint16, roomID string) {
	if index == 0 {
		return
	}
	if s.roomIDs == nil {
		s.roomIDs = map[uint16]string{}
	}
	s.roomIDs[index] = roomID
}
