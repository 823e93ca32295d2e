package handlers

import (
	"context"
	"log/slog"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/parlor-games/parlor/realtime"
)

// ReplyTo returns the reply to a frame at an endpoint whose handlers decode the message and do
// nothing.
func ReplyTo(raw []byte) []byte {
	endpoint := &socketEndpoint{handlers: map[string]messageType{
		"save":             decodeOnly[saveInput](),
		"load":             decodeOnly[slotInput](),
		"list":             decodeOnly[struct{}](),
		"restore":          decodeOnly[restoreInput](),
		"room.subscribe":   decodeOnly[subscribeInput](),
		"room.unsubscribe": decodeOnly[roomInput](),
		"room.send":        decodeOnly[sendInput](),
		"room.state.set":   decodeOnly[stateInput](),
		"room.turn.set":    decodeOnly[turnInput](),
	}}
	s := &clientHandler{server: &Server{log: slog.New(slog.DiscardHandler)}, routePath: "/fuzz", endpoint: endpoint}
	return s.handleFrame(context.Background(), nil, raw).encode()
}

// MarshalJSONTo lets decodeOnly return what it has decoded.
func (r rawMember) MarshalJSONTo(e *jsontext.Encoder) error { return e.WriteToken(jsontext.Null) }

func decodeOnly[T any]() messageType {
	decode := func(_ context.Context, _ *clientHandler, _ *realtime.Client, _ *message, in *T) (any, error) {
		return in, nil
	}
	return messageType{"", decodeDataThen(decode)}
}
