// Command server is the game's server: players call it, it decides, and the service pays.
//
// The table is in the room's shared state, which players cannot write, so this program keeps
// nothing: start and stop it at any time, or start several, each with its SHARE: "0/2" and "1/2"
// are the two halves of the rooms.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	parlor "github.com/parlor-games/parlor/sdk/go"
)

const allStones = 12

// table is the shared state of a room.
type table struct {
	Stones int   `json:"stones"` // that are left
	Next   int64 `json:"next"`   // whose turn it is
}

func (t table) patch() map[string]any { return map[string]any{"stones": t.Stones, "next": t.Next} }

// match is a room with its table.
type match struct {
	parlor.Room
	table
	players []int64 // in seating order
}

// game decides.
type game struct{ server *parlor.Server }

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	options := parlor.Options{URL: os.Getenv("URL"), Key: os.Getenv("SERVER_KEY")}
	if text := os.Getenv("SHARE"); text != "" {
		options.Share = &parlor.Share{}
		if _, err := fmt.Sscanf(text, "%d/%d", &options.Share.Index, &options.Share.Of); err != nil {
			return fmt.Errorf("SHARE is like 0/2: %w", err)
		}
	}
	server, err := parlor.NewServer(options)
	if err != nil {
		return err
	}
	g := game{server}
	server.On("room.started", func(ctx context.Context, e parlor.Event) error { return g.begin(ctx, e.RoomID) })
	server.OnCall("take", g.take)
	// After a start of this program, and after a gap: what it has missed.
	server.OnRoom(func(ctx context.Context, room parlor.Room) error {
		return errors.Join(g.begin(ctx, room.RoomID), g.settle(ctx, room.RoomID))
	})

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log.Print("the game's server runs")
	return server.Run(ctx)
}

func (g game) read(ctx context.Context, roomID string) (match, error) {
	room, err := g.server.Room(ctx, roomID)
	if err != nil {
		return match{}, err
	}
	m := match{Room: room}
	for _, seat := range room.Seats {
		m.players = append(m.players, seat.UserID)
	}
	m.table = table{allStones, m.players[0]}
	return m, errors.Join(room.DecodeState("stones", &m.Stones), room.DecodeState("next", &m.Next))
}

// begin lays the stones on the table of a room that has started.
func (g game) begin(ctx context.Context, roomID string) error {
	m, err := g.read(ctx, roomID)
	if err != nil || m.StateVersion() > 0 || m.Status != parlor.Started {
		return err
	}
	_, err = g.server.SetState(ctx, roomID, parlor.StateChange{Patch: m.patch()})
	return err
}

// take returns the table after a player has taken stones.
func (g game) take(ctx context.Context, c parlor.Call) (any, error) {
	var asked struct{ Stones int }
	if err := c.Decode(&asked); err != nil {
		return nil, &parlor.Error{Code: "wrong_number"}
	}
	m, err := g.read(ctx, c.RoomID)
	switch {
	case err != nil:
		return nil, err
	case m.Status != parlor.Started || m.Next != c.From:
		return nil, &parlor.Error{Code: "not_your_turn", Detail: "It is the other player's turn."}
	case asked.Stones < 1 || asked.Stones > min(3, m.Stones):
		return nil, &parlor.Error{Code: "wrong_number"}
	}
	m.Stones -= asked.Stones
	for _, player := range m.players {
		if player != c.From {
			m.Next = player
		}
	}
	// It is refused if another move was first.
	change := parlor.StateChange{Version: m.StateVersion(), Patch: m.patch()}
	if _, err := g.server.SetState(ctx, c.RoomID, change); err != nil {
		return nil, err
	}
	return m.table, g.settle(ctx, c.RoomID)
}

// settle ends a room whose last stone is taken. The next player is the one who did not take it.
func (g game) settle(ctx context.Context, roomID string) error {
	m, err := g.read(ctx, roomID)
	if err != nil || m.Status != parlor.Started || m.Stones > 0 {
		return err
	}
	var results []parlor.Result
	for _, player := range m.players {
		result := parlor.Result{UserID: player, Place: 1}
		if player == m.Next {
			result.Place = 2
		}
		results = append(results, result)
	}
	_, err = g.server.Finish(parlor.WithKey(ctx, "finish-"+roomID), roomID, results)
	return err
}
