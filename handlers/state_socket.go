package handlers

import (
	"context"
	"time"

	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/realtime"
	"github.com/parlor-games/parlor/rooms"
)

// stateVersionData is the data of the reply to room.state.set.
type stateVersionData struct {
	Version int64 `json:"version"` // that the state has after this change
}

// setStateByMessage changes the shared state of a room, as the HTTP call does.
func setStateByMessage(
	ctx context.Context, s *clientHandler, _ *realtime.Client, _ *message, in *stateInput,
) (any, error) {
	if _, err := s.server.Rooms.SetState(ctx, s.caller, rooms.StateInput(*in), idempotency.Receipt{}); err != nil {
		return nil, err
	}
	return stateVersionData{in.Version + 1}, nil
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
	if err != nil || result.Room.Turn == nil {
		return turnData{}, err
	}
	turn := *result.Room.Turn
	return turnData{&turn.UserID, &turn.Deadline}, nil
}
