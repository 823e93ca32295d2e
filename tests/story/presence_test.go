package story

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
)

// announceLimit is within how long others are notified of the players of a node that is gone.
const announceLimit = 20 * time.Second

// nextPresence returns the next event of presence, "+7" or "-7", and the others in between by their
// types.
func (c *socketClient) nextPresence() string {
	c.t.Helper()
	switch e := c.event(); e.Type {
	case "room.connected":
		return fmt.Sprintf("+%v", e.Data["userId"])
	case "room.disconnected":
		return fmt.Sprintf("-%v", e.Data["userId"])
	default:
		return e.Type
	}
}

// TestThePlayersOfANodeThatIsGoneAreAnnounced kills a node with SIGKILL, and freezes another one by
// SIGSTOP for longer than its lease lasts. Those who follow the rooms on a node that goes on get
// one room.disconnected for each player, in time; and one room.connected for each when the frozen
// node goes on, though it still believes that it had them all the time.
func TestThePlayersOfANodeThatIsGoneAreAnnounced(t *testing.T) {
	t.Parallel()
	store := redistest.StartForTest(t, "--appendonly", "yes")
	f := &fixture{t: t}
	for i := range f.nodes {
		f.nodes[i] = nodetest.Start(t, store.URL())
	}
	op := f.setUp(nil)
	killed, survivor := nodetest.Start(t, store.URL()), f.nodes[0]
	frozen := f.nodes[1]
	type table struct {
		room            string
		players, stayed player
		watcher         *socketClient
	}
	var tables []table
	for i := range 3 {
		ann, bob, eve := f.guest(op.game, "Ann"), f.guest(op.game, "Bob"), f.guest(op.game, "Eve")
		room := f.must(201, "POST", "/api/v1/game-session/create", ann.token, map[string]any{"maxPlayers": 2}).
			Body["roomId"].(string)
		body := map[string]any{"roomId": room}
		f.must(200, "POST", "/join", bob.token, body)
		watcher := f.openSocketOn(survivor, "/api/v1/realtime", eve)
		watcher.event() // hello
		watcher.request("room.subscribe", body)
		f.openSocketOn(killed, "/api/v1/realtime", ann).request("room.subscribe", body)
		if got, want := watcher.nextPresence(), fmt.Sprint("+", ann.id); got != want {
			t.Fatalf("room %d: %s; want %s", i, got, want)
		}
		f.openSocketOn(frozen, "/api/v1/realtime", bob).request("room.subscribe", body)
		if got, want := watcher.nextPresence(), fmt.Sprint("+", bob.id); got != want {
			t.Fatalf("room %d: %s; want %s", i, got, want)
		}
		tables = append(tables, table{room, ann, bob, watcher})
	}

	begin := time.Now()
	killed.Kill()
	for _, table := range tables {
		if got, want := table.watcher.nextPresence(), fmt.Sprint("-", table.players.id); got != want {
			t.Errorf("after the kill: %s; want %s", got, want)
		}
	}
	if took := time.Since(begin); took > announceLimit {
		t.Errorf("the players of a killed node were announced after %v", took)
	} else {
		t.Logf("the players of a killed node were announced after %v", took)
	}

	begin = time.Now()
	frozen.Pause()
	for _, table := range tables {
		if got, want := table.watcher.nextPresence(), fmt.Sprint("-", table.stayed.id); got != want {
			t.Errorf("while the node is frozen: %s; want %s", got, want)
		}
	}
	if took := time.Since(begin); took > announceLimit {
		t.Errorf("the players of a frozen node were announced after %v", took)
	}
	frozen.Resume()
	for _, table := range tables {
		if got, want := table.watcher.nextPresence(), fmt.Sprint("+", table.stayed.id); got != want {
			t.Errorf("when the node goes on: %s; want %s", got, want)
		}
		// Nothing follows, and nobody has lost a seat.
		room := survivor.Must(t, 200, "GET", "/api/v1/game-session/get?roomId="+table.room, table.players.token, nil).Body
		var told []bool
		for _, one := range room["presence"].([]any) {
			told = append(told, one.(map[string]any)["connected"].(bool))
		}
		if !slices.Equal(told, []bool{false, true}) || len(room["participants"].([]any)) != 2 {
			t.Errorf("the room is %v", room)
		}
	}
}
