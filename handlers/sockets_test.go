package handlers_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/principal"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/auth"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"go.uber.org/goleak"
)

func TestSavesAndTheirConflicts(t *testing.T) {
	eachStore(t, func(t *testing.T, w *fixture) {
		ann, bob := w.guest("Ann"), w.guest("Bob")
		phone, laptop := w.dial(savePath, ann.token), w.twin().dial(loadPath, ann.token)

		phone.refuses("slot_not_found", "load", `{"slot":"main"}`)
		if h := laptop.does("slots", "list", ""); len(h.List) != 0 {
			t.Errorf("a new player has slots: %s", h.raw)
		}
		saved := phone.does("saved", "save", `{"slot":"main","state":{"level":1}}`)
		if saved.Data["version"] != 1. || saved.Data["slot"] != "main" {
			t.Errorf("the first save: %s", saved.raw)
		}
		laptop.does("saved", "save", `{"slot":"main","state":{"level":2},"version":1}`)
		conflict := phone.refuses("version_conflict", "save", `{"slot":"main","state":{"level":3},"version":1}`)
		current, _ := conflict.Error["current"].(map[string]any)
		if state, _ := current["state"].(map[string]any); current["version"] != 2. || state["level"] != 2. {
			t.Errorf("the conflict does not show the server's copy: %s", conflict.raw)
		}
		phone.does("saved", "save", fmt.Sprintf(`{"slot":"main","state":{"level":3},"version":%v}`, current["version"]))
		again := phone.sayAs("once", "save", `{"slot":"main","state":{"level":4},"version":3}`)
		twice := laptop.sayAs("once", "save", `{"slot":"main","state":{"level":4},"version":3}`)
		if string(again.raw) != string(twice.raw) || again.Data["version"] != 4. {
			t.Errorf("the same message is not one save:\n%s\n%s", again.raw, twice.raw)
		}
		if h := laptop.does("loaded", "load", `{"slot":"main"}`); h.Data["version"] != 4. || h.Data["state"].(map[string]any)["level"] != 4. {
			t.Errorf("loaded %s", h.raw)
		}
		if h := phone.does("versions", "history", `{"slot":"main"}`); len(h.List) != 4 || h.List[0].(map[string]any)["version"] != 4. {
			t.Errorf("the history is %s", h.raw)
		}
		phone.refuses("save_version_not_found", "restore", `{"slot":"main","version":9}`)
		if h := phone.does("saved", "restore", `{"slot":"main","version":2}`); h.Data["version"] != 5. {
			t.Errorf("restored %s", h.raw)
		}
		if h := laptop.does("loaded", "load", `{"slot":"main"}`); h.Data["state"].(map[string]any)["level"] != 2. {
			t.Errorf("after the restore: %s", h.raw)
		}
		w.dial(loadPath, bob.token).refuses("slot_not_found", "load", `{"slot":"main"}`)

		large := strings.Repeat("x", 250<<10)
		phone.does("saved", "save", fmt.Sprintf(`{"slot":"large","state":{"x":%q}}`, large))
		if h := laptop.does("loaded", "load", `{"slot":"large"}`); h.Data["state"].(map[string]any)["x"] != large {
			t.Error("a large save came back as another one")
		}
		phone.refuses("payload_too_large", "save", fmt.Sprintf(`{"slot":"large","state":{"x":%q},"version":1}`, large+strings.Repeat("y", 10<<10)))
		if h := laptop.does("slots", "list", "{}"); len(h.List) != 2 {
			t.Errorf("the slots are %s", h.raw)
		}
	})
}

func TestASaveThatBreaksARuleChangesNothing(t *testing.T) {
	w := newGameFixture(t)
	w.expect(200, "PATCH", fmt.Sprintf("/api/v1/admin/games/%d", w.game), w.serverKey,
		`{"settings":{"progressRules":[{"path":"hero.gold","maxGainPerMinute":60,"initial":100},{"path":"hero.level","monotonic":"up"}]}}`)
	s := w.dial(savePath, w.guest("Ann").token)
	s.does("saved", "save", `{"slot":"a","state":{"hero":{"gold":100,"level":3}}}`)
	h := s.refuses("save_rejected", "save", `{"slot":"a","state":{"hero":{"gold":99999,"level":3}},"version":1}`)
	if h.Error["rule"] != "maxGainPerMinute" || h.Error["path"] != "hero.gold" {
		t.Errorf("refused as %s", h.raw)
	}
	s.refuses("save_rejected", "save", `{"slot":"a","state":{"hero":{"gold":100,"level":2}},"version":1}`)
	if h := s.does("loaded", "load", `{"slot":"a"}`); h.Data["version"] != 1. {
		t.Errorf("a refused save changed it: %s", h.raw)
	}
}

// What is wrong with a frame is told, and the socket lives on.
func TestFramesThatAreNotAsTheyShouldBe(t *testing.T) {
	w := newGameFixture(t)
	ann := w.guest("Ann")
	saves, live := w.dial(savePath, ann.token), w.live(ann)
	for frame, want := range map[string]string{ // the id, the word, and the first field
		``:                                     "- invalid_json",
		`{`:                                    "- invalid_json",
		`hello`:                                "- invalid_json",
		`{"id":"1","type":"list"} {}`:          "- invalid_json",
		"\xff\xfe":                             "- invalid_json",
		`null`:                                 "- invalid_request body",
		`[]`:                                   "- invalid_request body",
		`"list"`:                               "- invalid_request body",
		`{}`:                                   "- invalid_request type",
		`{"id":1,"type":"list"}`:               "- invalid_request id",
		`{"id":"7"}`:                           "7 invalid_request type",
		`{"id":"7","type":"dance"}`:            "7 invalid_request type",
		`{"id":"7","type":3}`:                  "7 invalid_request type",
		`{"id":"7","type":"hello"}`:            "7 invalid_request type",
		`{"ID":"7","type":"list"}`:             "- invalid_request ID",
		`{"id":"7","type":"list","x":1}`:       "7 invalid_request x",
		`{"id":"7","id":"8","type":"list"}`:    "8 invalid_request id",
		`{"id":"7","type":"list","data":null}`: "7 invalid_request data",
		`{"id":"7","type":"list","data":[]}`:   "7 invalid_request data",
		`{"id":"7","type":"list","data":{"x":1}}`:                                                           "7 invalid_request x",
		`{"id":"7","type":"load"}`:                                                                          "7 invalid_request slot",
		`{"id":"7","type":"load","data":{}}`:                                                                "7 invalid_request slot",
		`{"id":"7","type":"load","data":{"slot":"a b"}}`:                                                    "7 invalid_request slot",
		`{"id":"7","type":"load","data":{"slot":5}}`:                                                        "7 invalid_request slot",
		`{"id":"7","type":"save","data":{"slot":"a"}}`:                                                      "7 invalid_request state",
		`{"id":"7","type":"save","data":{"slot":"a","state":[]}}`:                                           "7 invalid_request state",
		`{"id":"7","type":"save","data":{"slot":"a","state":{},"version":-1}}`:                              "7 invalid_request version",
		`{"id":"7","type":"save","data":{"slot":"a","state":{},"version":1.5}}`:                             "7 invalid_request version",
		`{"id":"7","type":"save","data":{"slot":"a","state":{"x":1,"x":2}}}`:                                "7 invalid_request data.state.x",
		`{"id":"7","type":"restore","data":{"slot":"a"}}`:                                                   "7 invalid_request version",
		`{"id":"7","type":"room.subscribe","data":{"roomId":"x"}}`:                                          "7 invalid_request type",
		`{"id":"` + strings.Repeat("x", 129) + `","type":"list"}`:                                           "- invalid_request id",
		`{"id":"7","type":"list","data":` + strings.Repeat(`[`, 20_000) + strings.Repeat(`]`, 20_000) + `}`: "- invalid_json data" + strings.Repeat("[0]", 41) + "[…",
	} {
		saves.send(frame)
		wantRefusal(t, saves.reply(), frame, want)
	}
	for frame, want := range map[string]string{
		`{"id":"7","type":"save","data":{"slot":"a","state":{}}}`:                                    "7 invalid_request type",
		`{"id":"7","type":"room.subscribe"}`:                                                         "7 invalid_request roomId",
		`{"id":"7","type":"room.subscribe","data":{"roomId":"x"}}`:                                   "7 room_not_found",
		`{"id":"7","type":"room.subscribe","data":{"roomId":"x","seq":3}}`:                           "7 invalid_request seq",
		`{"id":"7","type":"room.unsubscribe","data":{"roomId":"x"}}`:                                 "7 room_not_found",
		`{"id":"7","type":"room.send","data":{"roomId":"x","op":""}}`:                                "7 invalid_request op",
		`{"id":"7","type":"room.send","data":{"roomId":"x","op":"m","to":[1.5]}}`:                    "7 invalid_request to[0]",
		`{"id":"7","type":"room.send","data":{"roomId":"x","op":"m"}}`:                               "7 room_not_found",
		`{"id":"7","type":"room.send","data":{"roomId":"x","op":"` + strings.Repeat("o", 65) + `"}}`: "7 invalid_request op",
	} {
		live.send(frame)
		wantRefusal(t, live.reply(), frame, want)
	}
	for _, s := range []*socket{saves, live} {
		if err := s.conn.WriteMessage(websocket.BinaryMessage, []byte(`{"id":"7","type":"list"}`)); err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, s.reply(), "binary", "- invalid_request")
	}
	saves.send(`{"type":"list"}`) // an id is the client's own business
	if h := saves.reply(); h.ReplyTo != nil || h.OK == nil || !*h.OK {
		t.Errorf("a message without an id is answered %s", h.raw)
	}
	saves.does("slots", "list", "")
	live.refuses("room_not_found", "room.subscribe", `{"roomId":"nowhere"}`)
}

func wantRefusal(t *testing.T, h heard, frame, want string) {
	t.Helper()
	got := "-"
	if h.ReplyTo != nil {
		got = *h.ReplyTo
	}
	got += fmt.Sprint(" ", h.Error["code"])
	if fields, _ := h.Error["errors"].([]any); len(fields) > 0 {
		got += fmt.Sprint(" ", fields[0].(map[string]any)["field"])
	}
	if got != want {
		t.Errorf("%.120q is answered %q, want %q: %s", frame, got, want, h.raw)
	}
	if instance := h.Error["instance"]; instance != savePath && instance != livePath {
		t.Errorf("the problem does not tell where it happened: %s", h.raw)
	}
}

func TestWhoOpensASocket(t *testing.T) {
	w := newGameFixture(t)
	ann := w.guest("Ann")
	ticket := func() string { return w.expect(200, "POST", "/api/v1/auth/ticket", ann.token, "").text("ticket") }
	refused := func(status int, code, path, bearer string, headers ...string) {
		t.Helper()
		s, a := w.dialing(path, bearer, headers...)
		if s != nil {
			t.Errorf("%s %v opens", path, headers)
		} else if a.status != status || a.code() != code || a.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %v is refused with %d %s; want %d %s", path, headers, a.status, a.raw, status, code)
		}
	}
	for _, path := range []string{savePath, loadPath, livePath} {
		w.dial(path, ann.token)
		once := ticket()
		w.dial(path+"?ticket="+once, "")
		refused(401, "unauthenticated", path+"?ticket="+once, "")
		refused(401, "unauthenticated", path+"?ticket=guessed", "")
		refused(401, "unauthenticated", path, "")
		refused(401, "unauthenticated", path, "no token")
		refused(400, "invalid_request", path+"?token="+ann.token, "")
		refused(400, "invalid_request", path+"?access_token="+ann.token, ann.token)
		refused(403, "forbidden", path, w.serverKey)
		refused(403, "forbidden", path, adminKey)
		refused(400, "invalid_request", path+"?protocol=one", ann.token)

		// A page opens it from an origin that its game lists, and a program without one.
		w.dial(path+"?ticket="+ticket(), "", "Origin", "https://duel.example")
		for _, origin := range []string{"https://evil.example", "null", "http://duel.example", "https://duel.example.evil.example", "https://other.example"} {
			refused(403, "forbidden", path, ann.token, "Origin", origin)
		}
		refused(403, "forbidden", path, ann.token, "Origin", "https://duel.example", "Origin", "https://evil.example")
	}
	// What is no upgrade does not cost the ticket.
	kept := ticket()
	w.expectError(400, "invalid_request", "GET", livePath+"?ticket="+kept, "", "")
	w.expectError(405, "method_not_allowed", "POST", livePath+"?ticket="+kept, "", "")
	w.dial(livePath+"?ticket="+kept, "")
}

func TestATicketIsGoodOnceHoweverManyTry(t *testing.T) {
	w := newGameFixture(t)
	ann := w.guest("Ann")
	other := w.twin()
	ticket := w.expect(200, "POST", "/api/v1/auth/ticket", ann.token, "").text("ticket")
	var mu sync.Mutex
	opened := 0
	var tries sync.WaitGroup
	for i := range 16 {
		tries.Go(func() {
			at := []*fixture{w, other}[i%2]
			if s, _ := at.dialing(livePath+"?ticket="+ticket, ""); s != nil {
				mu.Lock()
				opened++
				mu.Unlock()
			}
		})
	}
	tries.Wait()
	if opened != 1 {
		t.Errorf("%d sockets were opened", opened)
	}
}

func TestSocketsAreCounted(t *testing.T) {
	w := newFixtureOn(t, redistest.Single(t), func(d *handlers.Deps) {
		d.Limiter = auth.NewLimiter(redistest.Single(t), auth.Limits{auth.Socket: {PerSecond: 1, Burst: 3, Scope: auth.ByUser}})
	}).createGame()
	ann, bob := w.guest("Ann"), w.guest("Bob")
	for range 3 {
		w.dial(savePath, ann.token)
	}
	if _, a := w.dialing(savePath, ann.token); a == nil || a.code() != "rate_limited" || a.header.Get("Retry-After") == "" {
		t.Errorf("the fourth socket in a second: %+v", a)
	}
	w.dial(savePath, bob.token)

	crowd := newGameFixture(t)
	cid := crowd.guest("Cid")
	for range 10 {
		crowd.dial(livePath, cid.token)
	}
	if _, a := crowd.dialing(livePath, cid.token); a == nil || a.code() != "rate_limited" || a.header.Get("Retry-After") == "" {
		t.Errorf("the eleventh connection of a player: %+v", a)
	}
}

func TestASocketEndsWithItsToken(t *testing.T) {
	w := newGameFixture(t)
	ann := w.guest("Ann")
	expires := time.Now().Add(300 * time.Millisecond)
	ticket, err := w.deps.Auth.Ticket(t.Context(), auth.Credential{Caller: principal.Caller{Role: principal.Player, User: ann.id, Game: w.game}, Expires: expires})
	if err != nil {
		t.Fatal(err)
	}
	s := w.dial(livePath+"?ticket="+ticket.Ticket, "")
	if code := s.code(); code != 4001 || time.Now().Before(expires) {
		t.Errorf("closed with %d", code)
	}
}

func TestCloseCodes(t *testing.T) {
	w := newGameFixture(t)
	ann := w.guest("Ann")
	for name, c := range map[string]struct {
		path string
		do   func(*socket)
		want int
	}{
		"a protocol of tomorrow": {livePath + "?protocol=2", func(*socket) {}, 4426},
		"for saves too":          {savePath + "?protocol=2", func(*socket) {}, 4426},
		"a large frame":          {livePath, func(s *socket) { s.send(`"` + strings.Repeat("x", 16<<10) + `"`) }, 1009},
		"a large save":           {savePath, func(s *socket) { s.send(`"` + strings.Repeat("x", 320<<10) + `"`) }, 1009},
		"a flood": {livePath, func(s *socket) {
			for range 130 {
				_ = s.conn.WriteMessage(websocket.TextMessage, []byte(`{}`))
			}
		}, 4009},
	} {
		t.Run(name, func(t *testing.T) {
			s := w.dial(c.path, ann.token)
			c.do(s)
			if code := s.code(); code != c.want {
				t.Errorf("closed with %d, want %d: %v", code, c.want, s.err)
			}
		})
	}
	s := w.dial(livePath+"?protocol=1", ann.token)
	s.next()
	s.send(`{"id":"1","type":"room.send","data":{"roomId":"` + strings.Repeat("x", 15<<10) + `","op":"x"}}`) // as large as may be
	if h := s.reply(); h.Error["code"] != "room_not_found" {
		t.Errorf("%s", h.raw)
	}
}

// One room from its opening to its rematch, on one node, heard on another.
func TestEventsOfARoomOnAnotherNode(t *testing.T) {
	eachStore(t, func(t *testing.T, w *fixture) {
		far := w.twin()
		ann, bob, cid := w.guest("Ann"), w.guest("Bob"), w.guest("Cid")
		const session = "/api/v1/game-session/"
		room := w.createRoom(ann)
		body := roomBody(room)
		watcher := far.live(w.guest("Eve"))
		begun := watcher.follow(room, "")
		if begun.Data["mode"] != "snapshot" || begun.Data["room"].(map[string]any)["seq"] != 1. {
			t.Fatalf("the subscription begins with %s", begun.raw)
		}
		w.expect(200, "POST", session+"join", bob.token, body)
		w.expect(200, "POST", session+"ready", bob.token, fmt.Sprintf(`{"roomId":%q,"ready":true}`, room))
		w.expect(200, "POST", session+"join", cid.token, body)
		w.expect(200, "POST", session+"kick", ann.token, fmt.Sprintf(`{"roomId":%q,"userId":%d}`, room, cid.id))
		w.expect(200, "POST", session+"transfer-host", ann.token, fmt.Sprintf(`{"roomId":%q,"userId":%d}`, room, bob.id))
		w.expect(200, "POST", session+"start", bob.token, body)
		w.expect(200, "POST", session+"finish", w.serverKey, fmt.Sprintf(`{"roomId":%q,"results":[{"userId":%d,"place":1},{"userId":%d,"place":2}]}`, room, ann.id, bob.id),
			"Idempotency-Key", "end")
		again := w.expect(201, "POST", session+"rematch", bob.token, body).text("roomId")
		story := []string{"room.joined", "room.ready", "room.joined", "room.left", "room.host_changed", "room.started", "room.finished", "room.rematch"}
		var last string
		for i, kind := range story {
			h := watcher.want(kind)
			if h.Seq != int64(i+2) || h.RoomID != room {
				t.Errorf("event %d is %s", i, h.raw)
			}
			last = h.Position
		}

		// From any position on any node; from one that is made up, the room as it is.
		whole := w.live(bob)
		if h := whole.follow(room, "0-0"); h.Data["mode"] != "resume" {
			t.Errorf("from the beginning: %s", h.raw)
		}
		for i, kind := range slices.Concat([]string{"room.created"}, story) {
			if h := whole.want(kind); h.Seq != int64(i+1) {
				t.Errorf("event %d is %s", i, h.raw)
			}
		}
		if h := whole.follow(room, last); h.Data["mode"] != "resume" || h.Data["position"] != last {
			t.Errorf("from the end: %s", h.raw)
		}
		if h := whole.follow(room, "5-12345"); h.Data["mode"] != "snapshot" || h.Data["position"] != last {
			t.Errorf("from nowhere: %s", h.raw)
		}
		if h := whole.follow(room, "yesterday"); h.Data["mode"] != "snapshot" {
			t.Errorf("from no position: %s", h.raw)
		}

		// The rematch is cancelled, and who has unsubscribed does not hear of it.
		watcher.follow(again, "")
		whole.follow(again, "")
		whole.does("done", "room.unsubscribe", roomBody(again))
		whole.does("done", "room.unsubscribe", roomBody(again))
		w.expect(200, "POST", session+"cancel", bob.token, roomBody(again))
		if h := watcher.want("room.cancelled"); h.RoomID != again {
			t.Errorf("%s", h.raw)
		}
		if h := whole.event(); h.Type != "user.balance" { // his stake came back
			t.Errorf("heard %s of a room that is not followed", h.raw)
		}
	})
}

func TestAFollowerThatWasCutOffMissesNothing(t *testing.T) {
	eachStore(t, func(t *testing.T, w *fixture) {
		nodes := []*fixture{w, w.twin()}
		ann, bob, eve := w.guest("Ann"), w.guest("Bob"), w.guest("Eve")
		room := w.expect(201, "POST", "/api/v1/game-session/create", ann.token, `{"maxPlayers":4}`).text("roomId")
		w.expect(200, "POST", "/join", bob.token, roomBody(room))
		const turns = 60
		var changes sync.WaitGroup
		changes.Go(func() {
			for i := range turns {
				body := fmt.Sprintf(`{"roomId":%q,"ready":%t}`, room, i%2 == 0)
				if a := nodes[i%2].send("POST", "/api/v1/game-session/ready", bob.token, body); a.status != 200 {
					t.Errorf("ready: %s", a.raw)
				}
			}
		})
		defer changes.Wait()
		at, seq := "0-0", int64(0)
		for lives := 0; seq < turns+2; lives++ {
			s := nodes[lives%2].live(eve)
			if h := s.follow(room, at); h.Data["mode"] != "resume" {
				t.Fatalf("life %d begins with %s", lives, h.raw)
			}
			for range 9 { // then it is cut
				h := s.event()
				if h.Seq != seq+1 {
					t.Fatalf("after %d came %s", seq, h.raw)
				}
				if at, seq = h.Position, h.Seq; seq == turns+2 {
					break
				}
			}
			s.cut()
		}
	})
}

func TestALostPlaceIsReplacedByASnapshot(t *testing.T) {
	w := newGameFixture(t)
	ann, bob := w.guest("Ann"), w.guest("Bob")
	room := w.createRoom(ann)
	s := w.live(ann)
	s.follow(room, "")
	home, _ := keys.RoomShard(room)
	// The store has lost an event, as after a failover: nobody can tell what it was.
	if err := w.db.Client.HIncrBy(t.Context(), keys.Room(home, room), "seq", 1).Err(); err != nil {
		t.Fatal(err)
	}
	w.expect(200, "POST", "/join", bob.token, roomBody(room))
	h := s.want("room.snapshot")
	if h.Seq != 3 || len(h.Data["room"].(map[string]any)["participants"].([]any)) != 2 || h.Data["position"] != h.Position {
		t.Errorf("the snapshot is %s", h.raw)
	}
	w.expect(200, "POST", "/api/v1/game-session/leave", bob.token, roomBody(room))
	if h := s.want("room.left"); h.Seq != 4 {
		t.Errorf("after the snapshot came %s", h.raw)
	}
}

func TestMessagesGoToTheOtherParticipants(t *testing.T) {
	eachStore(t, func(t *testing.T, w *fixture) {
		far := w.twin()
		ann, bob, cid, eve := w.guest("Ann"), w.guest("Bob"), w.guest("Cid"), w.guest("Eve")
		room := w.expect(201, "POST", "/api/v1/game-session/create", ann.token, `{"maxPlayers":4}`).text("roomId")
		for _, p := range []player{bob, cid} {
			w.expect(200, "POST", "/join", p.token, roomBody(room))
		}
		a, b, c, spectator, secondScreen := w.live(ann), w.live(bob), far.live(cid), far.live(eve), far.live(ann)
		for _, s := range []*socket{a, b, c, spectator, secondScreen} {
			s.follow(room, "")
		}
		message := func(op, payload, more string) string {
			return fmt.Sprintf(`{"roomId":%q,"op":%q,"payload":%s%s}`, room, op, payload, more)
		}
		a.does("done", "room.send", message("move", `{"x":1, "y":[2]}`, ""))
		a.does("done", "room.send", message("whisper", `"hush"`, fmt.Sprintf(`,"to":[%d]`, cid.id)))
		a.does("done", "room.send", message("nobody", `1`, `,"to":[]`))
		a.does("done", "room.send", fmt.Sprintf(`{"roomId":%q,"op":"bare"}`, room))
		for i := range 40 {
			a.does("done", "room.send", message("count", strconv.Itoa(i), ""))
		}
		wantMessage := func(s *socket, op, payload string) {
			t.Helper()
			h := s.want("room.message")
			got, _ := json.Marshal(h.Data["payload"])
			if h.Data["op"] != op || string(got) != payload || h.Data["from"] != float64(ann.id) || h.RoomID != room || h.Seq != 0 {
				t.Errorf("want %s %s, got %s", op, payload, h.raw)
			}
		}
		wantMessage(b, "move", `{"x":1,"y":[2]}`)
		wantMessage(c, "move", `{"x":1,"y":[2]}`)
		wantMessage(c, "whisper", `"hush"`)
		for _, s := range []*socket{b, c} {
			wantMessage(s, "bare", "null")
			for i := range 40 {
				wantMessage(s, "count", strconv.Itoa(i))
			}
		}
		if h := spectator.refuses("not_participant", "room.send", message("boo", "1", "")); h.Error["status"] != 403. {
			t.Errorf("%s", h.raw)
		}
		h := a.refuses("not_participant", "room.send", message("psst", "1", fmt.Sprintf(`,"to":[%d,%d]`, bob.id, eve.id)))
		if fields := h.Error["errors"].([]any); len(fields) != 1 || fields[0].(map[string]any)["field"] != "to[1]" {
			t.Errorf("%s", h.raw)
		}
		// The next that those hear who are no addressees is an event.
		w.expect(200, "POST", "/api/v1/game-session/leave", bob.token, roomBody(room))
		for _, s := range []*socket{a, spectator, secondScreen} {
			s.want("room.left")
		}
		b.refuses("not_participant", "room.send", message("late", "1", ""))
	})
}

func TestAPlayerHearsOfItsMoneyAssetsAndSavesEverywhere(t *testing.T) {
	eachStore(t, func(t *testing.T, w *fixture) {
		far := w.twin()
		ann, bob := w.guest("Ann"), w.guest("Bob")
		near, tablet, other := w.live(ann), far.live(ann), far.live(bob)
		sword := w.createSword()
		room := w.createRoom(ann)
		w.expect(200, "POST", "/api/v1/game-session/leave", ann.token, roomBody(room))
		w.expect(201, "POST", fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", sword), ann.token, `{"quantity":2}`, "Idempotency-Key", "buy")
		w.expect(200, "POST", fmt.Sprintf("/api/v1/admin/users/%d/credit", ann.id), w.serverKey, `{"tokenId":"GOLD","amount":5,"reason":"quest"}`, "Idempotency-Key", "credit")

		lines := w.expect(200, "GET", "/api/v1/user-balance/ledger?tokenId=GOLD", ann.token, "").member("items").([]any)
		slices.Reverse(lines) // oldest first: the welcome was before anybody listened
		for _, s := range []*socket{near, tablet} {
			var seqs []int64
			for _, line := range lines[1:] {
				h := s.event()
				if h.Type == "user.asset" {
					if h.Data["owned"] != 2. {
						t.Errorf("%s", h.raw)
					}
					seqs = append(seqs, h.Seq)
					h = s.event()
				}
				line := line.(map[string]any)
				if h.Type != "user.balance" || h.Data["deltaAmount"] != line["deltaAmount"] || h.Data["reason"] != line["reason"] || h.Data["ref"] != line["ref"] {
					t.Errorf("the ledger says %v and the event %s", line, h.raw)
				}
				seqs = append(seqs, h.Seq)
			}
			for i, seq := range seqs {
				if seq != seqs[0]+int64(i) {
					t.Errorf("the events are numbered %v", seqs)
				}
			}
			if len(seqs) != 5 {
				t.Errorf("heard %v", seqs)
			}
		}
		w.dial(savePath, ann.token).does("saved", "save", `{"slot":"main","state":{}}`)
		for _, s := range []*socket{near, tablet} {
			if h := s.want("user.progress"); h.Data["slot"] != "main" || h.Data["version"] != 1. {
				t.Errorf("%s", h.raw)
			}
		}
		w.expect(200, "POST", fmt.Sprintf("/api/v1/admin/users/%d/credit", bob.id), w.serverKey, `{"tokenId":"GOLD","amount":1,"reason":"x"}`, "Idempotency-Key", "credit-bob")
		if h := other.event(); h.Data["reason"] != "x" {
			t.Errorf("bob hears %s", h.raw)
		}
	})
}

// Whoever loses sight of a private room hears why, and nothing after it.
func TestAPrivateRoomIsFollowedAsLongAsItIsSeen(t *testing.T) {
	eachStore(t, func(t *testing.T, w *fixture) {
		far := w.twin()
		ann, bob, eve := w.guest("Ann"), w.guest("Bob"), w.guest("Eve")
		befriend := func(a, b player) {
			w.expect(200, "POST", fmt.Sprintf("/api/v1/friends/%d", b.id), a.token, "")
			w.expect(200, "POST", fmt.Sprintf("/api/v1/friends/%d", a.id), b.token, "")
		}
		befriend(ann, bob)
		room := w.expect(201, "POST", "/api/v1/game-session/create", ann.token, `{"maxPlayers":4,"visibility":"private"}`).text("roomId")
		host, guest := w.live(ann), far.live(bob)
		far.live(eve).refuses("room_not_found", "room.subscribe", roomBody(room))
		host.follow(room, "")
		guest.follow(room, "")
		w.expect(200, "POST", "/join", bob.token, roomBody(room))
		joined := guest.want("room.joined")
		w.expect(200, "POST", "/api/v1/game-session/leave", bob.token, roomBody(room)) // a friend sees it still
		guest.want("room.left")
		w.expect(200, "POST", "/join", bob.token, roomBody(room))
		guest.want("room.joined")

		w.expect(204, "DELETE", fmt.Sprintf("/api/v1/friends/%d", bob.id), ann.token, "")
		w.expect(200, "POST", "/api/v1/game-session/kick", ann.token, fmt.Sprintf(`{"roomId":%q,"userId":%d}`, room, bob.id))
		if h := guest.want("room.left"); h.Data["reason"] != "kicked" {
			t.Errorf("%s", h.raw)
		}
		w.expect(200, "POST", "/api/v1/game-session/ready", ann.token, fmt.Sprintf(`{"roomId":%q,"ready":true}`, room))
		for _, kind := range []string{"room.joined", "room.left", "room.joined", "room.left", "room.ready"} {
			host.want(kind)
		}
		// It is not heard, and neither is what was before: bob's next event is of his own purse.
		guest.refuses("room_not_found", "room.subscribe", fmt.Sprintf(`{"roomId":%q,"after":%q}`, room, joined.Position))
		w.expect(200, "POST", fmt.Sprintf("/api/v1/admin/users/%d/credit", bob.id), w.serverKey, `{"tokenId":"GOLD","amount":1,"reason":"x"}`, "Idempotency-Key", "credit")
		guest.want("user.balance")
	})
}

func TestAConnectionFollowsSixteenRooms(t *testing.T) {
	w := newGameFixture(t)
	ann := w.guest("Ann")
	s := w.live(ann)
	var rooms []string
	for range 17 {
		rooms = append(rooms, w.expect(201, "POST", "/api/v1/game-session/create", ann.token, `{"maxPlayers":2}`).text("roomId"))
	}
	for _, room := range rooms[:16] {
		s.follow(room, "")
	}
	s.refuses("rate_limited", "room.subscribe", roomBody(rooms[16]))
	s.follow(rooms[3], "") // again
	s.does("done", "room.unsubscribe", roomBody(rooms[0]))
	s.follow(rooms[16], "")
}

func TestANodeThatGoesSaysWhenToComeBack(t *testing.T) {
	w := newGameFixture(t)
	ann := w.guest("Ann")
	live, saves := w.live(ann), w.dial(savePath, ann.token)
	ticket := w.expect(200, "POST", "/api/v1/auth/ticket", ann.token, "").text("ticket")
	w.server.Drain()
	for _, c := range [][2]string{{livePath, ann.token}, {livePath + "?ticket=" + ticket, ""}} {
		if _, a := w.dialing(c[0], c[1]); a == nil || a.status != 503 || a.code() != "draining" || a.header.Get("Retry-After") == "" {
			t.Errorf("a node that drains answers %+v", a)
		}
	}
	w.twin().dial(livePath+"?ticket="+ticket, "") // which was not spent on it
	saves.does("slots", "list", "")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	drained := make(chan error, 1)
	go func() { drained <- w.deps.Realtime.Drain(ctx) }()
	live.want("server.draining")
	saves.want("server.draining")
	for _, s := range []*socket{live, saves} {
		if code := s.code(); code != 1012 {
			t.Errorf("closed with %d", code)
		}
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
}

func TestSocketsLeaveNothingRunning(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("a node", func(t *testing.T) {
		w := newGameFixture(t)
		ann := w.guest("Ann")
		room := w.createRoom(ann)
		for range 5 {
			s := w.live(ann)
			s.follow(room, "")
			w.dial(loadPath, ann.token).does("slots", "list", "")
			s.cut()
		}
		client.CloseIdleConnections()
	})
	client.CloseIdleConnections()
	goleak.VerifyNone(t, before)
}

func TestTheHubIsMeasured(t *testing.T) {
	w := newGameFixture(t)
	w.live(w.guest("Ann"))
	families, err := w.deps.Metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			values[f.GetName()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	if values["parlor_realtime_sessions"] != 1 || values["parlor_realtime_topics"] != 2 || values["parlor_realtime_frames_total"] != 1 {
		t.Errorf("%v", values)
	}
}

// The tests above have exchanged every message of the contract, both ways.
func TestEveryMessageOfTheContractWasExchanged(t *testing.T) {
	if only := flag.Lookup("test.run").Value.String(); only != "" && only != "." {
		t.Skip("only when all tests run")
	}
	for _, name := range slices.Sorted(maps.Keys(socketSpec().Components.Messages)) {
		if _, seen := exchanged.Load(name); !seen {
			t.Errorf("no test exchanged %s", name)
		}
	}
}
