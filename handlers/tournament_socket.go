package handlers

import (
	"context"
	"fmt"
	"time"

	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/realtime"
)

// tournamentInput names a tournament of the player's game, and the last event of it that the client
// has.
type tournamentInput struct {
	TournamentID  int64  `json:"tournamentId" required:"true"`
	AfterPosition string `json:"after"` // "<seq>-<nonce>"; "" for none
}

func (in *tournamentInput) Validate() error {
	return checkID("tournamentId", in.TournamentID)
}

// tournamentSubscribedData has the start of a subscription; it is the data of tournament.snapshot,
// too.
type tournamentSubscribedData struct {
	Mode           realtime.SubscribeMode `json:"mode"`
	TournamentJSON wire.RawJSON           `json:"tournament,omitzero"` // only with realtime.ModeSnapshot
	Position       string                 `json:"position"`            // "<seq>-<nonce>"
}

// subscribeToTournament subscribes to a tournament of the player's game.
func subscribeToTournament(
	ctx context.Context, s *clientHandler, client *realtime.Client, m *message, in *tournamentInput,
) (any, error) {
	game, id := s.caller.GameID, in.TournamentID
	t, err := s.server.Tournaments.Get(ctx, s.caller, game, id)
	if err != nil {
		return nil, err
	}
	_, err = client.Subscribe(ctx, realtime.Subscription{
		Topic: s.server.Tournaments.EventTopic(game, id), AfterPosition: in.AfterPosition, NotBeforePosition: t.Position,
		TakeSnapshot: func(ctx context.Context) (realtime.Snapshot, error) {
			return s.server.tournamentSnapshot(ctx, game, id)
		},
		EncodeReply: func(start realtime.SubscribeResult) []byte {
			data := tournamentSubscribedData{start.Mode, start.StateJSON, start.Position}
			return (&socketReply{ReplyTo: m.replyTo(), OK: true, Data: data}).encode()
		},
	})
	if err != nil {
		return nil, err
	}
	return noReply, nil // it was sent with the position
}

type tournamentSnapshotEvent struct {
	Type         string                   `json:"type"`
	TournamentID int64                    `json:"tournamentId"`
	Seq          int64                    `json:"seq"`
	Position     string                   `json:"position"`
	At           time.Time                `json:"at"`
	Data         tournamentSubscribedData `json:"data"`
}

// tournamentSnapshot returns the current state of a tournament. It is shared by all subscribers.
func (e *Server) tournamentSnapshot(ctx context.Context, gameID, id int64) (realtime.Snapshot, error) {
	t, err := e.Tournaments.Get(ctx, principal.Caller{Role: principal.Operator}, gameID, id)
	if err != nil {
		return realtime.Snapshot{}, err
	}
	state, err := wire.Marshal(&t)
	if err != nil {
		return realtime.Snapshot{}, fmt.Errorf("encode a tournament: %w", err)
	}
	frame, err := wire.Marshal(tournamentSnapshotEvent{
		Type: events.TournamentSnapshot.Name, TournamentID: id, Seq: t.Seq, Position: t.Position, At: time.Now(),
		Data: tournamentSubscribedData{realtime.ModeSnapshot, state, t.Position},
	})
	if err != nil {
		return realtime.Snapshot{}, fmt.Errorf("encode a snapshot: %w", err)
	}
	return realtime.Snapshot{Position: t.Position, StateJSON: state, Frame: frame}, nil
}

func unsubscribeFromTournament(
	_ context.Context, s *clientHandler, client *realtime.Client, _ *message, in *tournamentInput,
) (any, error) {
	client.Unsubscribe(s.server.Tournaments.EventTopic(s.caller.GameID, in.TournamentID))
	return struct{}{}, nil
}
