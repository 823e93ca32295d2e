package handlers

import (
	"context"
	"log/slog"

	"github.com/parlor-games/parlor/realtime"
)

// Respond is what a frame is answered where every verb decodes and does nothing.
func Respond(raw []byte) []byte {
	v := &visitor{edge: &Server{log: slog.New(slog.DiscardHandler)}, path: "/fuzz", desk: &desk{verbs: map[string]verb{
		"save": heeded[saveInput](), "load": heeded[slotInput](), "list": heeded[struct{}](), "restore": heeded[restoreInput](),
		"room.subscribe": heeded[subscribeInput](), "room.unsubscribe": heeded[roomInput](), "room.send": heeded[sendInput](),
	}}}
	return v.respond(context.Background(), nil, raw).encode()
}

func heeded[T any]() verb {
	return said(func(_ context.Context, _ *visitor, _ *realtime.Client, _ *message, in *T) (any, error) {
		return in, nil
	})
}
