package story

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
)

// An hour ahead, the store would close every open room as idle. Both nodes report the difference in
// one line, a check and a metric, and end nothing. When the clock is right again, a room whose time
// is over meanwhile ends by itself, and no other.
func TestAStoreAnHourAheadClosesNoRoom(t *testing.T) {
	t.Parallel()
	store, clock := redistest.StartMovable(t, "--appendonly", "yes")
	f := &fixture{t: t}
	for i := range f.nodes {
		f.nodes[i] = nodetest.Start(t, store.URL())
	}
	op := f.setUp(nil)
	brief := f.must(201, "POST", "/api/v1/admin/games", nodetest.AdminKey, map[string]any{
		"name": "Brief", "settings": map[string]any{"idleTimeoutSeconds": 10},
	})
	open := func(p player) string {
		return f.must(201, "POST", "/api/v1/game-session/create", p.token, map[string]any{"maxPlayers": 2}).
			Body["roomId"].(string)
	}
	state := func(p player, room string) string {
		body := f.must(200, "GET", "/api/v1/game-session/get?roomId="+room, p.token, nil).Body
		return fmt.Sprint(body["status"], " ", body["reason"])
	}
	rooms := map[string]player{}
	for i := range 20 {
		p := f.known(op, fmt.Sprintf("Player %d", i))
		rooms[open(p)] = p
	}
	bob := f.guest(number(t, brief.Body["game"].(map[string]any)["id"]), "Bob")
	idle := open(bob)
	requireOpen := func(when string) {
		t.Helper()
		for room, p := range rooms {
			if is := state(p, room); is != "CREATED <nil>" {
				t.Fatalf("%s: a room is %s", when, is)
			}
		}
	}

	clock.Move(time.Hour)
	began := time.Now()
	for _, n := range f.nodes {
		redistest.Eventually(t, "the check is false", func() bool { ok, _ := f.readyCheck(n, "clock"); return !ok })
		n.WaitReady(200)
		const words = "the clock of store is 1 hour ahead of this node's"
		if _, detail := f.readyCheck(n, "clock"); !strings.HasPrefix(detail, words) {
			t.Errorf("the check says %q", detail)
		}
		if skew := nodetest.Metric(t, n, `parlor_clock_skew_seconds{master="store"}`); skew < 3590 || skew > 3610 {
			t.Errorf("the metric is %v", skew)
		}
	}
	// The leader of the sweep is elected each second.
	redistest.Eventually(t, "leaders had their time", func() bool {
		requireOpen("an hour ahead")
		if is := state(bob, idle); is != "CREATED <nil>" {
			t.Fatalf("an hour ahead: the idle room is %s", is)
		}
		return time.Since(began) > 4*time.Second
	})

	clock.Move(0)
	for _, n := range f.nodes {
		redistest.Eventually(t, "the check is true", func() bool { ok, _ := f.readyCheck(n, "clock"); return ok })
	}
	redistest.Eventually(t, "the idle room is closed", func() bool { return state(bob, idle) == "CANCELLED idle" })
	requireOpen("after it")
	for _, n := range f.nodes {
		for _, line := range []string{
			`msg="the clocks of store and node differ"`, `msg="the clocks of store and node agree again"`,
		} {
			if count := strings.Count(n.Log(), line); count != 1 {
				t.Errorf("%d lines %s", count, line)
			}
		}
	}
}
