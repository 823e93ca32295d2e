package main

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// operatorNode is a node on a store that was seeded.
type operatorNode struct {
	*nodetest.Node
	store     string
	serverKey string // of the example game
}

func startSeeded(t *testing.T) operatorNode {
	t.Helper()
	store := redistest.StartForTest(t, "--appendonly", "yes").URL()
	t.Setenv("PARLOR_SIGNING_KEY", nodetest.SigningKey)
	key := regexp.MustCompile(`(?m)^server key.*: (\S+)$`).FindStringSubmatch(must(t, "seed", "--redis-url", store))
	return operatorNode{nodetest.Start(t, store), store, key[1]}
}

// player returns a token of a seeded player.
func (n operatorNode) player(t *testing.T, id string) string {
	t.Helper()
	return strings.TrimSpace(must(t, "token", "--redis-url", n.store, "--game", "1", "--user", id))
}

// admin makes a call of the operator that succeeds.
func (n operatorNode) admin(t *testing.T, status int, method, path string, body any) nodetest.Response {
	t.Helper()
	return n.Must(t, status, method, "/api/v1/admin/"+path, nodetest.AdminKey, body)
}

// tool runs a command without the keys of a node, and returns all that it printed.
func (n operatorNode) tool(t *testing.T, args ...string) (int, string) {
	t.Helper()
	t.Setenv("PARLOR_SIGNING_KEY", "")
	defer t.Setenv("PARLOR_SIGNING_KEY", nodetest.SigningKey)
	status, out, stderr := command(t, append(args, "--redis-url", n.store)...)
	return status, out + stderr
}

// trailOf returns the action and the state after it of each record of a target, the newest first.
func (n operatorNode) trailOf(t *testing.T, target string) (actions []string, after []map[string]any) {
	t.Helper()
	var page struct {
		Items []struct {
			Action string         `json:"action"`
			After  map[string]any `json:"after"`
		} `json:"items"`
	}
	r := n.admin(t, http.StatusOK, http.MethodGet, "trail?target="+target, nil)
	testkit.Check(t, wire.Unmarshal(r.Raw, &page))
	for _, one := range page.Items {
		actions, after = append(actions, one.Action), append(after, one.After)
	}
	return actions, after
}

func TestADeadLetterIsPrintedAndTriedAgain(t *testing.T) {
	n := startSeeded(t)
	n.admin(t, http.StatusCreated, http.MethodPost, "games/1/leaderboards",
		map[string]any{"board": "wins", "name": "Wins", "writers": "rooms", "operator": "sum"})
	feed := func(board string) {
		n.admin(t, http.StatusOK, http.MethodPatch, "games/1",
			map[string]any{"settings": map[string]any{"boards": []any{map[string]any{"board": board, "from": "win"}}}})
	}
	feed("lost")
	ada, bob := n.player(t, "1"), n.player(t, "2")
	const session = "/api/v1/game-session/"
	room := n.Must(t, http.StatusCreated, http.MethodPost, session+"create", ada,
		map[string]any{"maxPlayers": 2, "autoStart": true}).Body["roomId"].(string)
	n.Must(t, http.StatusOK, http.MethodPost, session+"join", bob, map[string]any{"roomId": room})
	n.Must(t, http.StatusOK, http.MethodPost, session+"finish", n.serverKey, map[string]any{
		"roomId": room, "results": []any{map[string]any{"userId": 1, "place": 2}, map[string]any{"userId": 2, "place": 1}},
	}, "Idempotency-Key", "the-result")
	var printed string
	redistest.Eventually(t, "the room has a dead letter", func() bool {
		_, printed = n.tool(t, "rooms", "parked")
		return strings.Contains(printed, room)
	})
	line := strings.Fields(strings.Split(printed, "\n")[1])
	if len(line) < 5 || line[1] != "1" || line[2] != "boards" || line[4] != "board_not_found:" {
		t.Errorf("printed:\n%s", printed)
	}
	if status, out := n.tool(t, "rooms", "parked", "--retry", room); status != 1 ||
		!strings.HasPrefix(out, "parlor: board_not_found") {
		t.Errorf("without the leaderboard it exits %d: %s", status, out)
	}
	var list []rooms.DeadLetter
	status, out := n.tool(t, "rooms", "parked", "--json")
	if err := wire.Unmarshal([]byte(out), &list); err != nil || status != 0 || len(list) != 1 || list[0].RoomID != room {
		t.Errorf("exits %d: %v\n%s", status, err, out)
	}

	feed("wins")
	if status, out := n.tool(t, "rooms", "parked", "--retry", room); status != 0 || out != "applied: room "+room+"\n" {
		t.Errorf("exits %d: %s", status, out)
	}
	if status, out := n.tool(t, "rooms", "parked", "--retry", room); status != 1 ||
		!strings.Contains(out, "room_not_found") {
		t.Errorf("a second time it exits %d: %s", status, out)
	}
	if _, out := n.tool(t, "rooms", "parked"); strings.Contains(out, room) {
		t.Errorf("it is a dead letter still:\n%s", out)
	}
	if _, out := n.tool(t, "boards", "top", "wins", "--game", "1"); !strings.Contains(out, "bob") {
		t.Errorf("the winner is not on the leaderboard:\n%s", out)
	}
	if actions, _ := n.trailOf(t, "room:"+room); len(actions) != 2 || actions[0] != "retryParkedRoom" {
		t.Errorf("the trail has %v", actions) // the other one is finishRoom
	}
}
