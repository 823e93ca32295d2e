package handlers

import (
	"context"
	"time"

	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/realtime"
	"github.com/parlor-games/parlor/rooms"
)

// stateVersionData is the data of the reply to room.state.set.
type stateVersionData struct {
	Version int64 `json:"version"` // that the state has after this change
}

// sizeBytes returns how many bytes of names and values a change sends to each peer, or more.
func (in *stateInput) sizeBytes() int {
	size := 0
	for name, value := range in.Patch {
		size += len(name) + len(value)
	}
	for _, name := range in.Delete {
		size += len(name)
	}
	return size
}

// setStateByMessage changes the shared state of a room, as the HTTP call does. A change that fails
// reaches no peer and takes one byte of StateBytes.
func setStateByMessage(
	ctx context.Context, s *clientHandler, _ *realtime.Client, _ *message, in *stateInput,
) (any, error) {
	if err := s.takeRateLimit(ctx, ratelimit.StateBytes); err != nil {
		return nil, err
	}
	result, err := s.server.Rooms.SetState(ctx, s.caller, rooms.StateInput(*in), idempotency.Receipt{})
	if err != nil {
		return nil, err
	}
	s.chargePermits(ratelimit.Write, int(roomPermits(result.Room, false))-1)
	s.chargePermits(ratelimit.StateBytes, in.sizeBytes()-1)
	return stateVersionData{in.Version + 1}, nil
}

func newStateVersionData(room *rooms.Room) stateVersionData {
	if room.Shared == nil {
		return stateVersionData{}
	}
	return stateVersionData{room.Shared.Version}
}

// turnData is the data of the reply to room.turn.set: who has the turn now, and until when.
type turnData struct {
	UserID   *int64     `json:"userId"`
	Deadline *time.Time `json:"deadline"`
}

// setTurnByMessage gives a player the turn, as the HTTP call does.
func setTurnByMessage(
	ctx context.Context, s *clientHandler, _ *realtime.Client, _ *message, in *turnInput,
) (any, error) {
	result, err := s.server.Rooms.SetTurn(ctx, s.caller, rooms.TurnInput(*in), idempotency.Receipt{})
	if err != nil {
		return nil, err
	}
	s.chargePermits(ratelimit.Write, int(roomPermits(result.Room, false))-1)
	return newTurnData(result.Room), nil
}

func newTurnData(room *rooms.Room) turnData {
	if room.Turn == nil {
		return turnData{}
	}
	turn := *room.Turn
	return turnData{&turn.UserID, &turn.Deadline}
}
