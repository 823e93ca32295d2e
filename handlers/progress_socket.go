package handlers

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/parlor-games/parlor/internal/progress"
	"github.com/parlor-games/parlor/realtime"
)

// saveFrame is the largest frame on a socket of saves, in bytes: a state of 256 KiB, its white space and what is around it.
const saveFrame = 320 << 10

// newSaves is the desk of /game-data/save and /game-data/load, which understand the same.
func (e *Server) newSaves() *desk {
	return &desk{
		socket: e.Realtime.Socket(realtime.Limits{MaxFrame: saveFrame, Rate: framesPerSecond, Burst: framesAtOnce}),
		verbs:  map[string]verb{"save": said(save), "load": said(load), "list": said(list), "history": said(history), "restore": said(restore)},
	}
}

type saveInput struct {
	Slot    string         `json:"slot"`
	State   jsontext.Value `json:"state"`
	Version int64          `json:"version"`
}

func (in *saveInput) lacks() needs {
	return needs{}.that(in.Slot != "", "slot").that(len(in.State) > 0, "state")
}

func save(ctx context.Context, v *visitor, _ *realtime.Client, m *message, in *saveInput) (any, error) {
	return v.edge.Progress.Save(ctx, v.caller, progress.SaveInput{Slot: in.Slot, State: in.State, Version: in.Version, MessageID: m.ID})
}

type slotInput struct {
	Slot string `json:"slot"`
}

func (in *slotInput) lacks() needs { return needs{}.that(in.Slot != "", "slot") }

func load(ctx context.Context, v *visitor, _ *realtime.Client, _ *message, in *slotInput) (any, error) {
	return v.edge.Progress.Load(ctx, v.caller, in.Slot)
}

func list(ctx context.Context, v *visitor, _ *realtime.Client, _ *message, _ *struct{}) (any, error) {
	return v.edge.Progress.List(ctx, v.caller)
}

func history(ctx context.Context, v *visitor, _ *realtime.Client, _ *message, in *slotInput) (any, error) {
	return v.edge.Progress.History(ctx, v.caller, in.Slot)
}

type restoreInput struct {
	Slot    string `json:"slot"`
	Version int64  `json:"version"`
}

func (in *restoreInput) lacks() needs {
	return needs{}.that(in.Slot != "", "slot").that(in.Version != 0, "version")
}

func restore(ctx context.Context, v *visitor, _ *realtime.Client, m *message, in *restoreInput) (any, error) {
	return v.edge.Progress.Restore(ctx, v.caller, progress.RestoreInput{Slot: in.Slot, Version: in.Version, MessageID: m.ID})
}
