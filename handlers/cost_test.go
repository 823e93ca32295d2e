package handlers_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// commandLog has the names of the commands and scripts that a store gets. Those of one pipeline are
// one text: "room_join hgetall".
type commandLog struct {
	mu   sync.Mutex
	sent []string
}

func (l *commandLog) add(cmds []redis.Cmder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := make([]string, len(cmds))
	for i, cmd := range cmds {
		names[i] = cmd.Name()
		if s := scriptBySHA(cmd); s != nil {
			names[i] = s.Name
		}
	}
	l.sent = append(l.sent, strings.Join(names, " "))
}

// scriptBySHA returns the script that an EVALSHA runs, nil for other commands.
func scriptBySHA(cmd redis.Cmder) *scripts.Script {
	for _, s := range scripts.All() {
		args, with := cmd.Args(), s.WithFeed()
		if len(args) > 1 && (args[1] == s.SHA || with != nil && args[1] == with.SHA) {
			return s
		}
	}
	return nil
}

// take returns the pipelines since the last call.
func (l *commandLog) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	sent := l.sent
	l.sent = nil
	return sent
}

// expectRoundTrips requires that the pipelines since the last call are these, in any order.
func (l *commandLog) expectRoundTrips(t *testing.T, request string, want ...string) {
	t.Helper()
	sent := l.take()
	slices.Sort(sent)
	slices.Sort(want)
	if !slices.Equal(sent, want) {
		t.Errorf("%s costs %d round trips %v, want %v", request, len(sent), sent, want)
	}
}

// A player at human pace has no permits left on the node from an earlier request, like a new one.
// The limits are those of production.
func TestARequestAtHumanPaceCostsOneRoundTrip(t *testing.T) {
	db := redistest.Single(t)
	f := newFixtureOn(t, db, func(d *handlers.Deps) {
		d.Limiter = ratelimit.New(db, ratelimit.DefaultLimits())
	}).createGame()
	ann := f.guest("Ann")
	room := f.expect(201, "POST", "/api/v1/game-session/create", ann.token, `{"maxPlayers":4}`).text("roomId")
	l := &commandLog{}
	redistest.ObserveCommands(db, l.add)
	for i := range 2 {
		player := f.guest(fmt.Sprintf("Player %d", i))
		f.expect(200, "GET", "/api/v1/user-balance/token-balances", ann.token, "") // the node reads the tokens again
		l.take()
		f.expect(200, "GET", "/api/v1/user-balance/token-balances", player.token, "")
		l.expectRoundTrips(t, "the balances", "hgetall")
		f.expect(200, "POST", "/api/v1/game-session/join", player.token, fmt.Sprintf(`{"roomId":%q}`, room))
		if i == 0 { // Redis gets the script
			continue
		}
		l.expectRoundTrips(t, "a join", "room_join hgetall")
		f.expect(200, "PATCH", "/api/v1/me", player.token, `{"username":"New"}`)
		room = f.expect(201, "POST", "/api/v1/game-session/create", ann.token, `{"maxPlayers":4}`).text("roomId")
		l.take()
		joined := f.expect(200, "POST", "/api/v1/game-session/join", player.token, fmt.Sprintf(`{"roomId":%q}`, room))
		l.expectRoundTrips(t, "a join after a change of the profile", "room_join hgetall")
		if name := joined.text("participants.1.username"); name != "New" {
			t.Errorf("after the change the seat shows %q", name)
		}
	}
}

func TestAListThatReadsManyRoomsCountsAsFiveRequests(t *testing.T) {
	db := redistest.Single(t)
	f := newFixtureOn(t, db, func(d *handlers.Deps) {
		d.Limiter = ratelimit.New(db, ratelimit.Limits{
			ratelimit.Read: {PerSecond: 1, Burst: 1000, Scope: ratelimit.ScopeUser},
		})
	}).createGame()
	ann := f.guest("Ann")
	caller := principal.Caller{Role: principal.Player, UserID: ann.id, GameID: f.game}
	remaining := int64(1000)
	expectCost := func(query string, permits, items int64) {
		t.Helper()
		resp := f.expect(200, "GET", "/api/v1/game-session/list"+query, ann.token, "")
		var left, reset int64
		if _, err := fmt.Sscanf(resp.header.Get("Ratelimit"), `"read";r=%d;t=%d`, &left, &reset); err != nil {
			t.Fatal(err, resp.header)
		}
		if got := remaining - left; got < permits-1 || got > permits || int64(resp.count("items")) != items {
			t.Errorf("the list %q costs %d permits, want %d, and has %d rooms", query, got, permits, resp.count("items"))
		}
		remaining = left
	}
	for range 101 {
		in := rooms.CreateInput{MaxPlayers: 2}
		testkit.Must(f.deps.Rooms.Create(t.Context(), caller, in, idempotency.Receipt{}))(t)
	}
	expectCost("?limit=100", 2, 100) // each room is a command, and the index two
	expectCost("?limit=20", 1, 20)
	expectCost("?hasSeat=false", 5, 0)
}
