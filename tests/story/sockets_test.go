package story

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestSubscribersFollowAGameOnBothNodes(t *testing.T) {
	each(t, func(t *testing.T, f *fixture, db *redisdb.DB) {
		op := f.setUp(
			map[string]any{"progressRules": []map[string]any{{"path": "gold", "maxGainPerMinute": 60, "initial": 100}}},
		)
		ann, bob, eve := f.guest(op.game, "Ann"), f.guest(op.game, "Bob"), f.guest(op.game, "Eve")
		bobSocket := f.openSocket("/api/v1/realtime", bob)
		if hello := bobSocket.event(); hello.Type != "hello" {
			t.Fatalf("the first frame is %s", hello.raw)
		}
		room := f.must(201, "POST", "/api/v1/game-session/create", ann.token, map[string]any{
			"entryTokenId": op.tokenID, "roomEntry": 2.5, "maxPlayers": 3, "rakeBps": 500,
		}).Body["roomId"].(string)
		body := map[string]any{"roomId": room}

		// Two subscribers are disconnected again and again, while players join, leave and finish the
		// game.
		subscribers := []*subscriber{f.subscribe(eve, room), f.subscribe(f.guest(op.game, "Fay"), room)}
		const turns = 20
		for turn := range turns {
			f.must(200, "POST", "/join", bob.token, body)
			f.must(200, "POST", "/api/v1/game-session/ready", bob.token, map[string]any{"roomId": room, "ready": true})
			if turn%3 == 0 {
				subscribers[turn%2].disconnect()
			}
			f.must(200, "POST", "/api/v1/game-session/leave", bob.token, body)
		}
		f.must(200, "POST", "/join", bob.token, body)
		f.must(200, "POST", "/api/v1/game-session/start", ann.token, body)
		f.must(
			200,
			"POST",
			"/api/v1/game-session/finish",
			op.serverKey,
			map[string]any{"roomId": room, "results": []map[string]any{
				{"userId": bob.id, "place": 1}, {"userId": ann.id, "place": 2},
			}},
			"Idempotency-Key",
			"end",
		)
		for _, s := range subscribers {
			s.wantAll(db)
			if n := s.connections(); n < 3 {
				t.Errorf("%s was disconnected %d times", s.who.name, n-1)
			}
		}
		if events := subscribers[0].events(); len(events) != 3*turns+4 || events[len(events)-1].Type != "room.finished" {
			t.Errorf("%d events end with %s", len(events), events[len(events)-1].raw)
		}

		// Bob received an event for every line of his ledger, in order, and no other.
		var lines []map[string]any
		for cursor := ""; ; {
			page := f.must(200, "GET", "/api/v1/user-balance/ledger?tokenId=GOLD&limit=100&cursor="+cursor, bob.token, nil).Body
			for _, line := range page["items"].([]any) {
				lines = append(lines, line.(map[string]any))
			}
			if page["nextCursor"] == nil {
				break
			}
			cursor = page["nextCursor"].(string)
		}
		slices.Reverse(lines)
		if len(lines) != 1+2*turns+2 { // the signup grant was before he connected
			t.Fatalf("the ledger has %d lines", len(lines))
		}
		for i, line := range lines[1:] {
			e := bobSocket.event()
			if e.Type != "user.balance" || e.Data["deltaAmount"] != line["deltaAmount"] || e.Data["reason"] != line["reason"] ||
				e.Data["ref"] != line["ref"] {
				t.Fatalf("line %d is %v and bob received %s", i, line, e.raw)
			}
		}

		// Bob saves on two devices at once: one of them gets a conflict with the other's state, and
		// resolves it.
		phone, laptop := f.openSocket("/api/v1/game-data/save", bob), f.openSocket("/api/v1/game-data/load", bob)
		save := func(on *socketClient, gold, version int) socketMessage {
			return on.request("save", map[string]any{"slot": "main", "state": map[string]any{"gold": gold}, "version": version})
		}
		if first := save(phone, 50, 0); !*first.OK {
			t.Fatalf("the first save: %s", first.raw)
		}
		if second := save(laptop, 60, 1); !*second.OK {
			t.Fatalf("the second save: %s", second.raw)
		}
		conflict := save(phone, 55, 1)
		current, _ := conflict.Error["current"].(map[string]any)
		if conflict.Error["code"] != "version_conflict" || current["version"] != 2. {
			t.Fatalf("the third save: %s", conflict.raw)
		}
		if resolved := save(phone, 65, 2); !*resolved.OK {
			t.Fatalf("the save that resolves it: %s", resolved.raw)
		}
		if cheat := save(laptop, 1_000_000, 3); cheat.Error["code"] != "save_rejected" {
			t.Fatalf("a million: %s", cheat.raw)
		}
		loaded := laptop.request("load", map[string]any{"slot": "main"})
		if state, _ := loaded.Data["state"].(map[string]any); loaded.Data["version"] != 3. || state["gold"] != 65. {
			t.Fatalf("loaded %s", loaded.raw)
		}
		for version := 1.; version <= 3; version++ {
			if e := bobSocket.event(); e.Type != "user.progress" || e.Data["version"] != version {
				t.Errorf("version %v has the event %s", version, e.raw)
			}
		}
		f.wantBalanced()
	})
}

func TestSubscribersOfAKilledNodeResumeOnTheOther(t *testing.T) {
	store := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "always")
	db := testkit.Must(redisdb.Open(store.URL()))(t)
	t.Cleanup(func() { _ = db.Close() })
	f := &fixture{t: t}
	for i := range f.nodes {
		f.nodes[i] = nodetest.Start(t, store.URL())
	}
	op := f.setUp(nil)
	killed, survivor := f.nodes[0], f.nodes[1]
	var subscribers []*subscriber
	var hosts []player
	var rooms []string
	for i := range 4 {
		host := f.guest(op.game, fmt.Sprintf("Host %d", i))
		created := f.must(201, "POST", "/api/v1/game-session/create", host.token, map[string]any{"maxPlayers": 2})
		room := created.Body["roomId"].(string)
		for j := range 6 { // half of them on each node
			subscribers = append(subscribers, f.subscribe(f.guest(op.game, fmt.Sprintf("Subscriber %d of %d", j, i)), room))
		}
		hosts, rooms = append(hosts, host), append(rooms, room)
	}
	// The hosts change their readiness all the time, on the node that is killed as long as it lives.
	const turns = 50
	half := make(chan struct{}, len(hosts))
	var all sync.WaitGroup
	for i, host := range hosts {
		all.Go(func() {
			for turn := range turns {
				body := map[string]any{"roomId": rooms[i], "ready": turn%2 == 0}
				a, err := killed.Do(t.Context(), "POST", "/api/v1/game-session/ready", host.token, body)
				if err != nil {
					a, err = survivor.Do(t.Context(), "POST", "/api/v1/game-session/ready", host.token, body)
				}
				if err != nil || a.Status != 200 {
					t.Errorf("ready: %v %s", err, a)
					return
				}
				if turn == turns/2 {
					half <- struct{}{}
				}
			}
		})
	}
	<-half
	killed.Kill()
	all.Wait()
	moved := 0
	for _, s := range subscribers {
		s.wantAll(db)
		if n := len(s.events()); n != turns+1 {
			t.Errorf("%s received %d events", s.who.name, n)
		}
		if s.connections() > 1 {
			moved++
		}
	}
	if moved == 0 {
		t.Error("no subscriber was on the killed node")
	}
}
