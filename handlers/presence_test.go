package handlers_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/players/presence"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/realtime"
	"github.com/parlor-games/parlor/tests/testkit"
)

// withPresence is for newFixtureOn: the node stores who follows which room.
func withPresence(t testing.TB, db *redisdb.DB, linger time.Duration) func(*handlers.Deps) {
	return func(d *handlers.Deps) {
		service := presence.New(db, presence.Options{Log: d.Log, Linger: linger})
		d.RealtimeHub = realtime.New(db, realtime.Options{
			Log: d.Log, DrainSpread: time.Millisecond, Observer: service,
		})
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- service.Run(ctx) }()
		t.Cleanup(func() { cancel(); <-ended })
	}
}

// expectPresence requires that the next event is about a player, and that no number is missing.
func (s *testSocket) expectPresence(seq int64, eventType string, who player) received {
	s.t.Helper()
	r := s.expectEvent(eventType)
	if r.Seq != seq || r.Data["userId"] != float64(who.id) {
		s.t.Fatalf("got %s, want %s of %d with the number %d", r.raw, eventType, who.id, seq)
	}
	return r
}

// TestPresenceOnSocketsOfTwoNodes plays what tabs do, with the exact events that another subscriber
// gets.
func TestPresenceOnSocketsOfTwoNodes(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		const linger = 30 * time.Millisecond
		near := newFixtureOn(t, db, withPresence(t, db, linger)).createGame()
		far := newFixtureOn(t, db, withPresence(t, db, linger))
		far.game, far.serverKey, far.gold = near.game, near.serverKey, near.gold
		ann, bob, eve := near.guest("Ann"), near.guest("Bob"), near.guest("Eve")
		const session = "/api/v1/game-session/"
		room := near.createRoom(ann)
		watcher := far.dialRealtime(eve)
		start := watcher.subscribe(room, "")
		if _, has := start.Data["room"].(map[string]any)["presence"]; has {
			t.Errorf("a room without a seated subscriber begins with %s", start.raw)
		}

		// Two tabs of Ann on two nodes, and Bob before he takes a seat.
		tab, otherTab := near.dialRealtime(ann), far.dialRealtime(ann)
		tab.subscribe(room, "")
		watcher.expectPresence(2, "room.connected", ann)
		otherTab.subscribe(room, "")
		otherTab.subscribe(room, "") // again, which replaces the subscription
		bobs := near.dialRealtime(bob)
		bobs.subscribe(room, "")
		near.expect(200, "POST", session+"join", bob.token, roomBody(room))
		if got := watcher.expectEvent("room.joined"); got.Seq != 3 {
			t.Errorf("%s", got.raw)
		}
		watcher.expectPresence(4, "room.connected", bob)

		// One tab goes, then the other one.
		tab.disconnect()
		otherTab.expectOK("done", "room.unsubscribe", roomBody(room))
		gone := watcher.expectPresence(5, "room.disconnected", ann)
		until, err := time.Parse(time.RFC3339, fmt.Sprint(gone.Data["graceUntil"]))
		if wait := time.Until(until); err != nil || wait < 5*time.Second || wait > 10*time.Second {
			t.Errorf("the others should wait for %v, %v: %s", wait, err, gone.raw)
		}
		read := near.expect(200, "GET", session+"get?roomId="+room, bob.token, "")
		if read.text("presence.0.connected") != "false" || read.text("presence.0.graceUntil") != gone.Data["graceUntil"] ||
			read.text("presence.1.connected") != "true" || read.count("seats") != 2 {
			t.Errorf("the room is %s", read.raw)
		}
		late := far.dialRealtime(near.guest("Fay"))
		snapshot := late.subscribe(room, "")
		list, _ := snapshot.data("room.presence").([]any)
		if len(list) != 2 || list[1].(map[string]any)["connected"] != true || snapshot.data("room.seq") != 5. {
			t.Errorf("a snapshot is %s", snapshot.raw)
		}
		otherTab.subscribe(room, "")
		watcher.expectPresence(6, "room.connected", ann)

		// Bob is taken out, and has no presence then, whatever his socket does.
		near.expect(200, "POST", session+"kick", ann.token, fmt.Sprintf(`{"roomId":%q,"userId":%d}`, room, bob.id))
		watcher.expectEvent("room.left")
		bobs.disconnect()
		near.expect(200, "POST", session+"cancel", ann.token, roomBody(room))
		if got := watcher.expectEvent("room.cancelled"); got.Seq != 8 {
			t.Errorf("%s", got.raw)
		}
		otherTab.disconnect()

		// Who resumes gets the same events.
		reader := near.dialRealtime(eve)
		reader.subscribe(room, "1-"+start.Data["position"].(string)[2:])
		for i, kind := range []string{
			"room.connected", "room.joined", "room.connected", "room.disconnected", "room.connected", "room.left",
			"room.cancelled",
		} {
			if got := reader.expectEvent(kind); got.Seq != int64(i+2) {
				t.Errorf("event %d is %s", i, got.raw)
			}
		}
		ended := near.expect(200, "GET", session+"get?roomId="+room, ann.token, "")
		if _, has := ended.body.(map[string]any)["presence"]; has {
			t.Errorf("the room that has ended is %s", ended.raw)
		}
	})
}

// A node that drains closes its sockets, and their players open others elsewhere: nobody is
// announced.
func TestADrainedNodeAnnouncesNobody(t *testing.T) {
	db := redistest.Single(t)
	var drained *presence.Service
	near := newFixtureOn(t, db, func(d *handlers.Deps) {
		drained = presence.New(db, presence.Options{Log: d.Log, Linger: time.Millisecond, DrainLinger: 2 * time.Second})
		d.RealtimeHub = realtime.New(db, realtime.Options{Log: d.Log, DrainSpread: time.Millisecond, Observer: drained})
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- drained.Run(ctx) }()
		t.Cleanup(func() { cancel(); <-ended })
	}).createGame()
	far := newFixtureOn(t, db, withPresence(t, db, time.Millisecond))
	far.game, far.serverKey, far.gold = near.game, near.serverKey, near.gold
	ann, bob := near.guest("Ann"), near.guest("Bob")
	room := near.createRoom(ann)
	near.expect(200, "POST", "/api/v1/game-session/join", bob.token, roomBody(room))
	watcher := far.dialRealtime(near.guest("Eve"))
	watcher.subscribe(room, "")
	var sockets []*testSocket
	for _, p := range []player{ann, bob} {
		s := near.dialRealtime(p)
		s.subscribe(room, "")
		watcher.expectEvent("room.connected")
		sockets = append(sockets, s)
	}
	drained.Drain()
	testkit.Check(t, near.deps.RealtimeHub.Drain(t.Context()))
	for i, p := range []player{ann, bob} {
		sockets[i].waitCloseCode()
		again := far.dialRealtime(p)
		again.subscribe(room, "")
	}
	redistest.Eventually(t, "the drained node has no player", func() bool { return drained.Connected() == 0 })
	near.expect(200, "POST", "/api/v1/game-session/cancel", ann.token, roomBody(room))
	if got := watcher.expectEvent("room.cancelled"); got.Seq != 5 {
		t.Errorf("%s", got.raw)
	}
	types := []string{}
	for _, e := range watcher.events {
		types = append(types, e.Type)
	}
	if slices.Contains(types, "room.disconnected") {
		t.Errorf("announced %v", types)
	}
}
