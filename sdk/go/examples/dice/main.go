// Command dice is the server of a game of dice: each player rolls once, and the highest roll wins.
package main

import (
	"context"
	"log"
	"math/rand/v2"
	"os"

	parlor "github.com/parlor-games/parlor/sdk/go"
)

func main() {
	server, err := parlor.NewServer(parlor.Options{URL: os.Getenv("URL"), Key: os.Getenv("SERVER_KEY")})
	if err != nil {
		log.Fatal(err)
	}
	read := func(ctx context.Context, roomID string) (room parlor.Room, rolls map[int64]int, err error) {
		if room, err = server.Room(ctx, roomID); err == nil {
			rolls = map[int64]int{}
			err = room.DecodeState("rolls", &rolls)
		}
		return room, rolls, err
	}
	settle := func(ctx context.Context, roomID string) error {
		room, rolls, err := read(ctx, roomID)
		if err != nil || room.Status != parlor.Started || len(rolls) < len(room.Seats) {
			return err
		}
		var results []parlor.Result
		for user, roll := range rolls {
			place := 1
			for _, other := range rolls {
				if other > roll {
					place++
				}
			}
			results = append(results, parlor.Result{UserID: user, Place: place})
		}
		_, err = server.Finish(parlor.WithKey(ctx, "finish-"+roomID), roomID, results)
		return err
	}
	server.OnCall("roll", func(ctx context.Context, c parlor.Call) (any, error) {
		room, rolls, err := read(ctx, c.RoomID)
		if err != nil {
			return nil, err
		}
		if room.Status != parlor.Started || rolls[c.From] > 0 {
			return nil, &parlor.Error{Code: "rolled_already", Detail: "One roll each, once the game has begun."}
		}
		rolls[c.From] = 1 + rand.IntN(100)
		change := parlor.StateChange{Version: room.StateVersion(), Patch: map[string]any{"rolls": rolls}}
		if _, err = server.SetState(ctx, c.RoomID, change); err != nil {
			return nil, err
		}
		return rolls[c.From], settle(ctx, c.RoomID)
	})
	server.OnRoom(func(ctx context.Context, room parlor.Room) error { return settle(ctx, room.RoomID) }) // after a restart
	log.Fatal(server.Run(context.Background()))
}
