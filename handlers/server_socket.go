package handlers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/realtime"
	"github.com/parlor-games/parlor/rooms"
)

// A game's server opens the socket of /realtime by its server key, or by a ticket of it. It has
// messages and limits of its own. It has no seat, no presence and no events of a player.

// The limits of a server's socket: it speaks for all rooms of its game.
const (
	maxServerFrameBytes    = 64 << 10 // bytes, from the server
	serverFramesPerSecond  = 2_000
	serverFrameBurst       = 4_000
	topicsPerServer        = 10_000
	topicsPerServerMessage = 1_000
	serverSocketsPerGame   = 64 // on a node
	// What waits for the server, and what it has sent and is not handled yet.
	serverOutboxFrames = 8_192
	serverOutboxBytes  = 4 << 20
	serverInboxBytes   = 1 << 20
	// bytesPerServerMessage is how much of a payload of room.send one message of the limit has: what a
	// message costs all nodes and players grows with it.
	bytesPerServerMessage = 1 << 10
	// Of messages of players, which come from all rooms at once.
	serverEphemeralBytesPerSecond = 4 << 20
)

// newServerEndpoint returns the endpoint of /realtime for servers.
func (e *Server) newServerEndpoint() *socketEndpoint {
	limits := realtime.Limits{
		MaxFrameBytes: maxServerFrameBytes, FramesPerSecond: serverFramesPerSecond, BurstFrames: serverFrameBurst,
		SendHello: true, ConnectionsPerUser: serverSocketsPerGame,
		TopicsPerConnection: topicsPerServer, TopicsPerMessage: topicsPerServerMessage,
		WaitingFrames: serverFrameBurst, WaitingBytes: serverInboxBytes,
		OutboxFrames: serverOutboxFrames, OutboxBytes: serverOutboxBytes,
		EphemeralBytesPerSecond: serverEphemeralBytesPerSecond,
	}
	return &socketEndpoint{
		socketKind: e.RealtimeHub.NewSocketKind(limits), handlers: serverMessages(),
		rateLimitClass: ratelimit.ServerMessages, operations: map[string]*route{},
		onOpen: openServer, onClose: closeServer,
	}
}

// serverMessages returns what the endpoint does with each type of message. All count in
// ratelimit.ServerMessages.
func serverMessages() map[string]messageType {
	return map[string]messageType{
		"game.subscribe":   {ratelimit.ServerMessages, decodeDataThen(subscribeToGame)},
		"game.unsubscribe": {"", decodeDataThen(unsubscribeFromGame)},
		"room.subscribe":   {ratelimit.ServerMessages, decodeDataThen(subscribeServerToRoom)},
		"room.unsubscribe": {"", decodeDataThen(unsubscribeServerFromRoom)},
		"room.reply":       {"", decodeDataThen(answerCall)},
		relayMessageType:   {ratelimit.ServerMessages, decodeDataThen(sendMessage)},

		"tournament.subscribe":   {ratelimit.ServerMessages, decodeDataThen(subscribeToTournament)},
		"tournament.unsubscribe": {"", decodeDataThen(unsubscribeFromTournament)},
	}
}

// serverOperations are the messages that are operations of HTTP, by the path of their route.
var serverOperations = map[string]string{
	"/api/v1/game-session/start":  "room.start",
	"/api/v1/game-session/finish": "room.finish",
	"/api/v1/game-session/cancel": "room.cancel",
	"/api/v1/game-session/state":  "room.state.set",
	"/api/v1/game-session/turn":   "room.turn.set",
}

// replyOf returns the data of the reply to an operation: what the player's message of the type
// gets, else the room.
func replyOf(messageType string, room *rooms.Room) any {
	switch messageType {
	case "room.state.set":
		return newStateVersionData(room)
	case "room.turn.set":
		return newTurnData(room)
	default:
		return wire.RawJSON(room.AppendJSON(nil))
	}
}

// openRealtimeSocket opens the socket of a player or of a game's server.
func (e *Server) openRealtimeSocket(r *request) (response, error) {
	if r.caller.Role == principal.Server {
		return e.openSocket(r, e.serverEndpoint)
	}
	return e.openSocket(r, e.realtimeEndpoint)
}

// socketOwner returns the members of realtime.ClientOptions that say whose a socket is.
func socketOwner(caller principal.Caller) realtime.ClientOptions {
	if caller.Role == principal.Server {
		return realtime.ClientOptions{
			GroupID:  caller.GameID,
			Identity: fmt.Sprintf(`"gameId":%d,"role":"%s"`, caller.GameID, principal.Server),
		}
	}
	return realtime.ClientOptions{UserID: caller.UserID}
}

// callOperation runs the operation of a route for a message, as its HTTP request does: with the
// same receipts, the same record in the trail and the same response.
func (s *clientHandler) callOperation(m *message, rt *route) (data any, replayed bool, err error) {
	if s.server.AllowMoney != nil {
		if err := s.server.AllowMoney(); err != nil {
			return nil, false, err
		}
	}
	if len(m.dataJSON) > 0 && m.dataJSON.Kind() != '{' {
		return nil, false, apierror.InvalidRequest.WithField("data", "type", "must be an object")
	}
	r := s.newOperationRequest(m, rt)
	resp, err := rt.handle(r)
	if err != nil {
		return nil, resp.replayed, err
	}
	return replyOf(m.Type, resp.body.(*rooms.Room)), resp.replayed, nil
}

// newOperationRequest returns the request that a message stands for.
func (s *clientHandler) newOperationRequest(m *message, rt *route) *request {
	body := []byte(m.dataJSON)
	if len(body) == 0 {
		body = []byte("{}")
	}
	header := http.Header{"Content-Type": mediaJSON}
	if m.Key != nil {
		header["Idempotency-Key"] = []string{*m.Key}
	}
	now := time.Now()
	return &request{
		Context: &gin.Context{
			Request: &http.Request{
				Method: rt.method, URL: &url.URL{Path: rt.path}, Header: header,
				Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
			},
			Writer: headerWriter{header: http.Header{}},
		},
		server: s.server, route: rt, requestID: newRequestID(), caller: s.caller, credential: s.credential,
		corsGameID: s.caller.GameID, startedAt: now, storeCtx: s.server.storeContexts.at(now),
	}
}

// headerWriter takes the headers of a response that is sent as a reply on a socket.
type headerWriter struct {
	gin.ResponseWriter
	header http.Header
}

func (w headerWriter) Header() http.Header { return w.header }

// handleMessage handles a message. replayed is set when the answer is the first one to its key.
func (s *clientHandler) handleMessage(
	ctx context.Context, client *realtime.Client, m *message,
) (data any, replayed bool, err error) {
	operation, ok := s.endpoint.operations[m.Type]
	if !ok {
		if m.Key != nil {
			return nil, false, apierror.InvalidRequest.WithField("key", "unknown", "is no member of this message")
		}
		data, err = s.dispatch(ctx, client, m)
		return data, false, err
	}
	if err := s.takeRateLimit(ctx, operation.rateLimitClass); err != nil {
		return nil, false, err
	}
	return s.callOperation(m, operation)
}
