package handlers

import (
	"context"
	"errors"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/progress"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/realtime"
)

// maxSaveSockets bounds a player's sockets on a node that are those of saves, whose frames
// are large.
const maxSaveSockets = 4

// newSaveEndpoint returns the endpoint of /game-data/save and /game-data/load, which accept the
// same messages.
func (e *Server) newSaveEndpoint() *socketEndpoint {
	limits := realtime.Limits{
		MaxFrameBytes: maxSaveBodyBytes, FramesPerSecond: framesPerSecond, BurstFrames: frameBurst,
		ConnectionsPerUser: maxSaveSockets,
	}
	return &socketEndpoint{
		socketKind: e.RealtimeHub.NewSocketKind(limits),
		handlers:   saveMessages(),
	}
}

// saveMessages returns what the endpoint does with each type of message.
func saveMessages() map[string]messageType {
	return map[string]messageType{
		"auth.refresh": {ratelimit.Read, decodeDataThen(replaceToken)},

		"save":    {ratelimit.Write, decodeDataThen(saveSlot)},
		"load":    {ratelimit.Read, decodeDataThen(loadSlot)},
		"list":    {ratelimit.Read, decodeDataThen(listSlots)},
		"history": {ratelimit.Read, decodeDataThen(listVersions)},
		"restore": {ratelimit.Write, decodeDataThen(restoreVersion)},
	}
}

type saveInput struct {
	Slot            string       `json:"slot" required:"true"`
	StateJSON       wire.RawJSON `json:"state" required:"true"`
	LastReadVersion int64        `json:"version"` // that the client last read; 0: none
}

func saveSlot(ctx context.Context, s *clientHandler, _ *realtime.Client, m *message, in *saveInput) (any, error) {
	s.chargeBytes(ratelimit.Write, len(in.StateJSON))
	saved, err := s.server.Progress.Save(ctx, s.caller,
		progress.SaveInput{Slot: in.Slot, State: in.StateJSON, BaseVersion: in.LastReadVersion, MessageID: m.ID})
	if apiErr, ok := apierror.As(err); ok && errors.Is(apiErr, apierror.VersionConflict) {
		if current, ok := apiErr.ExtraMembers["current"].(progress.LoadedSave); ok {
			s.chargeBytes(ratelimit.Write, current.SizeBytes)
		}
	}
	return saved, err
}

type slotInput struct {
	Slot string `json:"slot" required:"true"`
}

func loadSlot(ctx context.Context, s *clientHandler, _ *realtime.Client, _ *message, in *slotInput) (any, error) {
	loaded, err := s.server.Progress.Load(ctx, s.caller, in.Slot)
	s.chargeBytes(ratelimit.Read, loaded.SizeBytes)
	return loaded, err
}

func listSlots(ctx context.Context, s *clientHandler, _ *realtime.Client, _ *message, _ *struct{}) (any, error) {
	return s.server.Progress.List(ctx, s.caller)
}

func listVersions(ctx context.Context, s *clientHandler, _ *realtime.Client, _ *message, in *slotInput) (any, error) {
	return s.server.Progress.History(ctx, s.caller, in.Slot)
}

type restoreInput struct {
	Slot    string `json:"slot" required:"true"`
	Version int64  `json:"version" required:"true"` // that becomes the newest again
}

func restoreVersion(
	ctx context.Context, s *clientHandler, _ *realtime.Client, m *message, in *restoreInput,
) (any, error) {
	saved, err := s.server.Progress.Restore(ctx, s.caller,
		progress.RestoreInput{Slot: in.Slot, Version: in.Version, MessageID: m.ID})
	s.chargeBytes(ratelimit.Write, saved.SizeBytes)
	return saved, err
}
