// Command play uses the client that oapi-codegen makes of openapi.yaml: a paid game, a purchase, a
// score and a tournament. It is compiled by the test beside this folder.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/parlor-games/parlor/tests/clients/api"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client, err := api.NewClientWithResponses(os.Getenv("URL"))
	if err != nil {
		log.Fatal(err)
	}
	g := game{ctx, client}
	ada, bob := g.gold("ADA_TOKEN"), g.gold("BOB_TOKEN")
	g.paidGame()
	g.wantGold("the game", ada+250, bob-250)
	g.purchaseAndScore()
	g.wantGold("the purchase", ada, bob-250)
	g.tournament()
	g.wantGold("the tournament", ada+250, bob-500)
}

type game struct {
	ctx    context.Context
	client *api.ClientWithResponses
}

// as sends a request with the credential in an environment variable.
func as(variable string) api.RequestEditorFn {
	return func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+os.Getenv(variable))
		return nil
	}
}

// answer returns the body of a response, or ends the program with the problem.
func answer[T any](body *T, raw []byte, err error) *T {
	if err != nil {
		log.Fatal(err)
	}
	if body == nil {
		log.Fatalf("refused: %s", raw)
	}
	return body
}

// gold returns the minor units of GOLD that a player can spend.
func (g game) gold(player string) int64 {
	r, err := g.client.TokenBalancesWithResponse(g.ctx, as(player))
	for _, balance := range answer(r.JSON200, r.Body, err).Balances {
		if balance.TokenId == "GOLD" {
			units, err := strconv.ParseInt(balance.Amount, 10, 64)
			if err != nil {
				log.Fatal(err)
			}
			return units
		}
	}
	return 0
}

func (g game) wantGold(after string, ada, bob int64) {
	if a, b := g.gold("ADA_TOKEN"), g.gold("BOB_TOKEN"); a != ada || b != bob {
		log.Fatalf("after %s the players have %d and %d, want %d and %d", after, a, b, ada, bob)
	}
}

// stake returns an amount as a program sends it: a decimal string.
func stake() *api.AmountInput {
	amount := new(api.AmountInput)
	if err := amount.FromAmountInput1("2.50"); err != nil {
		log.Fatal(err)
	}
	return amount
}

func (g game) paidGame() {
	token := int64(1)
	created, err := g.client.CreateRoomWithResponse(g.ctx, nil,
		api.CreateRoom{EntryTokenId: &token, RoomEntry: stake(), MaxPlayers: 2}, as("ADA_TOKEN"))
	room := answer(created.JSON201, created.Body, err)
	g.join(room.RoomId, "BOB_TOKEN")
	started, err := g.client.StartRoomWithResponse(g.ctx, nil, api.StartRoomJSONRequestBody{RoomId: room.RoomId},
		as("ADA_TOKEN"))
	answer(started.JSON200, started.Body, err)
	g.finish(room.RoomId)
}

func (g game) join(room api.RoomId, player string) {
	r, err := g.client.JoinRoomWithResponse(g.ctx, nil, api.JoinRoomJSONRequestBody{RoomId: room}, as(player))
	answer(r.JSON200, r.Body, err)
}

// finish reports twice under one key that Ada has won: the second request changes nothing.
func (g game) finish(room api.RoomId) {
	for range 2 {
		r, err := g.client.FinishRoomWithResponse(g.ctx, &api.FinishRoomParams{IdempotencyKey: "finish-" + room.String()},
			api.FinishRoomJSONRequestBody{RoomId: room, Results: []api.Result{{UserId: 1, Place: 1}, {UserId: 2, Place: 2}}},
			as("SERVER_KEY"))
		if status := answer(r.JSON200, r.Body, err).Status; status != "FINISHED" {
			log.Fatalf("the room is %s", status)
		}
	}
}

func (g game) purchaseAndScore() {
	bought, err := g.client.PurchaseWithResponse(g.ctx, 1, &api.PurchaseParams{IdempotencyKey: "sword-of-ada"},
		api.PurchaseJSONRequestBody{}, as("ADA_TOKEN"))
	if total := answer(bought.JSON201, bought.Body, err).TotalAmount; total != "250" {
		log.Fatalf("the sword costs %s", total)
	}
	var score api.ScoreValue
	if err := score.FromScoreValue1("1250"); err != nil {
		log.Fatal(err)
	}
	r, err := g.client.SubmitScoreWithResponse(g.ctx, "weekly", nil, api.ScoreInput{Score: score}, as("ADA_TOKEN"))
	if err != nil || r.StatusCode() >= 300 {
		log.Fatalf("the score: %v %s", err, r.Body)
	}
}

func (g game) tournament() {
	token := int64(1)
	created, err := g.client.CreateTournamentWithResponse(g.ctx, 1, nil, api.TournamentInput{
		Name: "Cup", Format: "single_elimination", MaxEntrants: 2, EntryTokenId: &token, EntryFee: stake(),
		StartsAt: time.Now().Add(time.Hour),
	}, as("ADMIN_KEY"))
	id := answer(created.JSON201, created.Body, err).TournamentId
	for _, player := range []string{"ADA_TOKEN", "BOB_TOKEN"} {
		r, err := g.client.JoinTournamentWithResponse(g.ctx, id, nil, api.JoinTournamentJSONRequestBody{}, as(player))
		answer(r.JSON200, r.Body, err)
	}
	started, err := g.client.StartTournamentWithResponse(g.ctx, 1, id, nil, api.StartTournamentJSONRequestBody{},
		as("ADMIN_KEY"))
	answer(started.JSON200, started.Body, err)
	var room api.RoomId
	g.waitFor("a match", func() bool {
		r, err := g.client.ListMatchesWithResponse(g.ctx, id, nil, as("ADA_TOKEN"))
		list := answer(r.JSON200, r.Body, err).Items
		if len(list) == 0 || list[0].RoomId == nil {
			return false
		}
		room = *list[0].RoomId
		return true
	})
	g.join(room, "ADA_TOKEN")
	g.join(room, "BOB_TOKEN")
	g.waitFor("the start of the match", func() bool {
		r, err := g.client.GetRoomWithResponse(g.ctx, &api.GetRoomParams{RoomId: &room}, as("ADA_TOKEN"))
		return answer(r.JSON200, r.Body, err).Status == "STARTED"
	})
	g.finish(room)
	g.waitFor("the end of the tournament", func() bool {
		r, err := g.client.GetTournamentWithResponse(g.ctx, id, nil, as("ADA_TOKEN"))
		return answer(r.JSON200, r.Body, err).Status == "FINISHED"
	})
}

// waitFor asks until a condition holds.
func (g game) waitFor(what string, holds func() bool) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-g.ctx.Done():
			log.Fatal(fmt.Errorf("%s: %w", what, g.ctx.Err()))
		case <-ticker.C:
		}
	}
}
