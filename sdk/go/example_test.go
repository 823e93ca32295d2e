package parlor_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"os"

	parlor "github.com/parlor-games/parlor/sdk/go"
)

// A server that starts each room once it is full, and replies to calls.
func ExampleServer() {
	server, err := parlor.NewServer(parlor.Options{
		URL: os.Getenv("URL"), Key: os.Getenv("SERVER_KEY"),
		Kinds: []string{"rooms", "seats"}, Positions: parlor.FilePositions("positions.json"),
	})
	if err != nil {
		log.Fatal(err)
	}
	server.On("room.joined", func(ctx context.Context, e parlor.Event) error {
		room, err := server.Room(ctx, e.RoomID)
		if err != nil || room.Status != parlor.Created || len(room.Participants) < room.MaxPlayers {
			return err
		}
		_, err = server.Start(parlor.WithKey(ctx, "start-"+e.RoomID), e.RoomID)
		return err
	})
	server.OnCall("draw", func(_ context.Context, c parlor.Call) (any, error) {
		var asked struct{ Cards int }
		if err := c.Decode(&asked); err != nil || asked.Cards != 1 {
			return nil, &parlor.Error{Code: "one_card", Detail: "Draw one card at a time."}
		}
		return map[string]string{"card": "queen of hearts"}, nil
	})
	log.Fatal(server.Run(context.Background()))
}

// A change of the shared state that somebody else was faster with is made on the newer state.
func ExampleServer_SetState() {
	raise := func(ctx context.Context, server *parlor.Server, roomID string) error {
		for {
			room, err := server.Room(ctx, roomID)
			if err != nil {
				return err
			}
			level := 0
			if err := room.DecodeState("level", &level); err != nil {
				return err
			}
			change := parlor.StateChange{Version: room.StateVersion(), Patch: map[string]any{"level": level + 1}}
			_, err = server.SetState(ctx, roomID, change)
			if problem := (*parlor.Problem)(nil); !errors.As(err, &problem) || problem.Code != "version_conflict" {
				return err
			}
		}
	}
	_ = raise
}

// A server that sleeps hears of its rooms by webhooks.
func ExampleVerifyWebhook() {
	http.HandleFunc("POST /webhooks", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
		if err != nil {
			return
		}
		webhook, err := parlor.VerifyWebhook(r.Header, body, os.Getenv("WEBHOOK_SECRET"))
		if err != nil {
			http.Error(w, "not signed", http.StatusUnauthorized)
			return
		}
		log.Print(webhook.ID, webhook.Type) // handle each id once
	})
}
