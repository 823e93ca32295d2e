package handlers_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/auth"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/realtime"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

func TestSavesAndTheirConflicts(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ann, bob := f.guest("Ann"), f.guest("Bob")
		phone, laptop := f.dial(savePath, ann.token), f.newNode().dial(loadPath, ann.token)

		phone.expectError("slot_not_found", "load", `{"slot":"main"}`)
		if got := laptop.expectOK("slots", "list", ""); len(got.List) != 0 {
			t.Errorf("a new player has slots: %s", got.raw)
		}
		saved := phone.expectOK("saved", "save", `{"slot":"main","state":{"level":1}}`)
		if saved.Data["version"] != 1. || saved.Data["slot"] != "main" {
			t.Errorf("the first save: %s", saved.raw)
		}
		laptop.expectOK("saved", "save", `{"slot":"main","state":{"level":2},"version":1}`)
		conflict := phone.expectError("version_conflict", "save", `{"slot":"main","state":{"level":3},"version":1}`)
		if conflict.problem("current.version") != 2. || conflict.problem("current.state.level") != 2. {
			t.Errorf("the conflict does not have the server's copy: %s", conflict.raw)
		}
		phone.expectOK("saved", "save", `{"slot":"main","state":{"level":3},"version":2}`)
		first := phone.requestWithID("once", "save", `{"slot":"main","state":{"level":4},"version":3}`)
		second := laptop.requestWithID("once", "save", `{"slot":"main","state":{"level":4},"version":3}`)
		if string(first.raw) != string(second.raw) || first.Data["version"] != 4. {
			t.Errorf("the same message was saved twice:\n%s\n%s", first.raw, second.raw)
		}
		got := laptop.expectOK("loaded", "load", `{"slot":"main"}`)
		if got.data("version") != 4. || got.data("state.level") != 4. {
			t.Errorf("loaded %s", got.raw)
		}
		got = phone.expectOK("versions", "history", `{"slot":"main"}`)
		if len(got.List) != 4 || got.List[0].(map[string]any)["version"] != 4. {
			t.Errorf("the history is %s", got.raw)
		}
		phone.expectError("save_version_not_found", "restore", `{"slot":"main","version":9}`)
		if got := phone.expectOK("saved", "restore", `{"slot":"main","version":2}`); got.Data["version"] != 5. {
			t.Errorf("restored %s", got.raw)
		}
		if got := laptop.expectOK("loaded", "load", `{"slot":"main"}`); got.data("state.level") != 2. {
			t.Errorf("after the restore: %s", got.raw)
		}
		f.dial(loadPath, bob.token).expectError("slot_not_found", "load", `{"slot":"main"}`)

		large := strings.Repeat("x", 250<<10)
		phone.expectOK("saved", "save", fmt.Sprintf(`{"slot":"large","state":{"x":%q}}`, large))
		if got := laptop.expectOK("loaded", "load", `{"slot":"large"}`); got.data("state.x") != large {
			t.Error("a large save came back as another one")
		}
		tooLarge := large + strings.Repeat("y", 10<<10)
		phone.expectError("payload_too_large", "save", fmt.Sprintf(`{"slot":"large","state":{"x":%q},"version":1}`, tooLarge))
		if got := laptop.expectOK("slots", "list", "{}"); len(got.List) != 2 {
			t.Errorf("the slots are %s", got.raw)
		}
	})
}

func TestASaveThatBreaksARuleChangesNothing(t *testing.T) {
	f := newGameFixture(t)
	f.expect(200, "PATCH", fmt.Sprintf("/api/v1/admin/games/%d", f.game), f.serverKey,
		`{"settings":{"progressRules":[`+
			`{"path":"hero.gold","maxGainPerMinute":60,"initial":100},{"path":"hero.level","monotonic":"up"}]}}`)
	s := f.dial(savePath, f.guest("Ann").token)
	s.expectOK("saved", "save", `{"slot":"a","state":{"hero":{"gold":100,"level":3}}}`)
	got := s.expectError("save_rejected", "save", `{"slot":"a","state":{"hero":{"gold":99999,"level":3}},"version":1}`)
	if got.Error["rule"] != "maxGainPerMinute" || got.Error["path"] != "hero.gold" {
		t.Errorf("the error is %s", got.raw)
	}
	s.expectError("save_rejected", "save", `{"slot":"a","state":{"hero":{"gold":100,"level":2}},"version":1}`)
	if got := s.expectOK("loaded", "load", `{"slot":"a"}`); got.Data["version"] != 1. {
		t.Errorf("a rejected save changed the slot: %s", got.raw)
	}
}

// An invalid frame gets an error reply, and the socket stays open.
func TestInvalidFrames(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	saves, events := f.dial(savePath, ann.token), f.dialRealtime(ann)
	deeplyNested := `{"id":"7","type":"list","data":` + strings.Repeat(`[`, 20_000) + strings.Repeat(`]`, 20_000) + `}`
	longID := `{"id":"` + strings.Repeat("x", 129) + `","type":"list"}`
	subscribe := func(room string) string {
		return `{"id":"7","type":"room.subscribe","data":` + roomBody(room) + `}`
	}
	longOp := `{"id":"7","type":"room.send","data":{"roomId":"x","op":"` + strings.Repeat("o", 65) + `"}}`
	for frame, want := range map[string]string{ // the id, the code, and the first field
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
		`{"id":"7","type":"list","data":{"x":1}}`:                               "7 invalid_request x",
		`{"id":"7","type":"load"}`:                                              "7 invalid_request slot",
		`{"id":"7","type":"load","data":{}}`:                                    "7 invalid_request slot",
		`{"id":"7","type":"load","data":{"slot":"a b"}}`:                        "7 invalid_request slot",
		`{"id":"7","type":"load","data":{"slot":5}}`:                            "7 invalid_request slot",
		`{"id":"7","type":"save","data":{"slot":"a"}}`:                          "7 invalid_request state",
		`{"id":"7","type":"save","data":{"slot":"a","state":[]}}`:               "7 invalid_request state",
		`{"id":"7","type":"save","data":{"slot":"a","state":{},"version":-1}}`:  "7 invalid_request version",
		`{"id":"7","type":"save","data":{"slot":"a","state":{},"version":1.5}}`: "7 invalid_request version",
		`{"id":"7","type":"save","data":{"slot":"a","state":{"x":1,"x":2}}}`:    "7 invalid_request data.state.x",
		`{"id":"7","type":"restore","data":{"slot":"a"}}`:                       "7 invalid_request version",
		`{"id":"7","type":"room.subscribe","data":{"roomId":"x"}}`:              "7 invalid_request type",
		longID:       "- invalid_request id",
		deeplyNested: "- invalid_json data" + strings.Repeat("[0]", 41) + "[…",
	} {
		saves.send(frame)
		checkErrorReply(t, saves.nextReply(), frame, want)
	}
	for frame, want := range map[string]string{
		`{"id":"7","type":"save","data":{"slot":"a","state":{}}}`:                 "7 invalid_request type",
		`{"id":"7","type":"room.subscribe"}`:                                      "7 invalid_request roomId",
		`{"id":"7","type":"room.subscribe","data":{"roomId":"x"}}`:                "7 invalid_request roomId",
		subscribe(unknownRoom):                                                    "7 room_not_found",
		`{"id":"7","type":"room.subscribe","data":{"roomId":"x","seq":3}}`:        "7 invalid_request seq",
		`{"id":"7","type":"room.unsubscribe","data":{"roomId":"x"}}`:              "7 invalid_request roomId",
		`{"id":"7","type":"room.send","data":{"roomId":"x","op":""}}`:             "7 invalid_request op",
		`{"id":"7","type":"room.send","data":{"roomId":"x","op":"m","to":[1.5]}}`: "7 invalid_request to[0]",
		`{"id":"7","type":"room.send","data":{"roomId":"x","op":"m"}}`:            "7 invalid_request roomId",
		longOp: "7 invalid_request op",
	} {
		events.send(frame)
		checkErrorReply(t, events.nextReply(), frame, want)
	}
	for _, s := range []*testSocket{saves, events} {
		testkit.Check(t, s.conn.WriteMessage(websocket.BinaryMessage, []byte(`{"id":"7","type":"list"}`)))
		checkErrorReply(t, s.nextReply(), "binary", "- invalid_request")
	}
	saves.send(`{"type":"list"}`) // the id is optional
	if got := saves.nextReply(); got.ReplyTo != nil || got.OK == nil || !*got.OK {
		t.Errorf("the reply to a message without an id is %s", got.raw)
	}
	saves.expectOK("slots", "list", "")
	events.expectError("invalid_request", "room.subscribe", `{"roomId":"nowhere"}`)
}

// checkErrorReply compares "<id> <code> <first field>" of an error reply.
func checkErrorReply(t *testing.T, reply received, frame, want string) {
	t.Helper()
	got := "-"
	if reply.ReplyTo != nil {
		got = *reply.ReplyTo
	}
	got += fmt.Sprint(" ", reply.Error["code"])
	if fields, _ := reply.Error["errors"].([]any); len(fields) > 0 {
		got += fmt.Sprint(" ", fields[0].(map[string]any)["field"])
	}
	if got != want {
		t.Errorf("the reply to %.120q is %q, want %q: %s", frame, got, want, reply.raw)
	}
	if instance := reply.Error["instance"]; instance != savePath && instance != realtimePath {
		t.Errorf("the problem's instance is %v: %s", instance, reply.raw)
	}
}

func TestWhoOpensASocket(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	for _, path := range []string{savePath, loadPath, realtimePath} {
		f.dial(path, ann.token)
		once := f.ticket(ann)
		f.dial(path+"?ticket="+once, "")
		f.expectUpgradeError(401, "unauthenticated", path+"?ticket="+once, "")
		f.expectUpgradeError(401, "unauthenticated", path+"?ticket=guessed", "")
		f.expectUpgradeError(401, "unauthenticated", path, "")
		f.expectUpgradeError(401, "unauthenticated", path, "no token")
		f.expectUpgradeError(400, "invalid_request", path+"?token="+ann.token, "")
		f.expectUpgradeError(400, "invalid_request", path+"?access_token="+ann.token, ann.token)
		if path != realtimePath {
			f.expectUpgradeError(403, "forbidden", path, f.serverKey)
		}
		f.expectUpgradeError(403, "forbidden", path, adminKey)
		f.expectUpgradeError(400, "invalid_request", path+"?protocol=one", ann.token)
	}
	// A request that is no upgrade does not use up the ticket.
	kept := f.ticket(ann)
	f.expectError(400, "invalid_request", "GET", realtimePath+"?ticket="+kept, "", "")
	f.expectError(405, "method_not_allowed", "POST", realtimePath+"?ticket="+kept, "", "")
	f.dial(realtimePath+"?ticket="+kept, "")
}

// A browser sends the origin of the page. A program sends none.
func TestTheOriginOfASocketMustBeOneOfThePlayersGame(t *testing.T) {
	f := newGameFixture(t)
	otherGame, _ := f.createOtherGame()
	otherPlayer := f.guestOf(otherGame, "Bob")
	const evil = "https://evil.example"
	for _, path := range []string{savePath, loadPath, realtimePath} {
		ann := f.guest("Ann") // a player has few sockets
		f.dial(path, ann.token)
		f.dial(path, ann.token, "Origin", duelOrigin)
		f.dial(path+"?ticket="+f.ticket(ann), "", "Origin", duelOrigin)
		f.dial(path, otherPlayer.token, "Origin", otherOrigin)
		for _, origin := range []string{
			evil, otherOrigin, "null", "http://duel.example", duelOrigin + ":8443", duelOrigin + ".evil.example",
		} {
			f.expectUpgradeError(403, "forbidden", path, ann.token, "Origin", origin)
			f.expectUpgradeError(403, "forbidden", path+"?ticket="+f.ticket(ann), "", "Origin", origin)
		}
		f.expectUpgradeError(403, "forbidden", path, ann.token, "Origin", duelOrigin, "Origin", evil)
		f.expectUpgradeError(403, "forbidden", path, ann.token, "Origin", duelOrigin, "Origin", duelOrigin)
		f.expectUpgradeError(403, "forbidden", path, otherPlayer.token, "Origin", duelOrigin)
	}
}

func TestATicketCanBeRedeemedOnceByManyRequests(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	other := f.newNode()
	ticket := f.ticket(ann)
	var mu sync.Mutex
	opened := 0
	var tries sync.WaitGroup
	for i := range 16 {
		tries.Go(func() {
			node := []*fixture{f, other}[i%2]
			if s, _ := node.tryDial(realtimePath+"?ticket="+ticket, ""); s != nil {
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

func TestTheNumberOfSocketsIsLimited(t *testing.T) {
	f := newFixtureOn(t, redistest.Single(t), func(d *handlers.Deps) {
		limits := ratelimit.Limits{ratelimit.Socket: {PerSecond: 1, Burst: 3, Scope: ratelimit.ScopeUser}}
		d.Limiter = ratelimit.New(redistest.Single(t), limits)
	}).createGame()
	ann, bob := f.guest("Ann"), f.guest("Bob")
	for range 3 {
		f.dial(savePath, ann.token)
	}
	f.expectUpgradeError(429, "rate_limited", savePath, ann.token)
	f.dial(savePath, bob.token)

	unlimited := newGameFixture(t) // but for the connections of one player to a node
	cid := unlimited.guest("Cid")
	for range 10 {
		unlimited.dial(realtimePath, cid.token)
	}
	unlimited.expectUpgradeError(429, "rate_limited", realtimePath, cid.token)

	dan := unlimited.guest("Dan")
	for _, path := range []string{savePath, loadPath, savePath, loadPath} {
		unlimited.dial(path, dan.token)
	}
	unlimited.expectUpgradeError(429, "rate_limited", loadPath, dan.token)
	unlimited.dial(realtimePath, dan.token)
}

// newNodeWithLimits returns a game on a node with limits, and the socket of a player.
func newNodeWithLimits(t *testing.T, path string, limits ratelimit.Limits) (*fixture, *testSocket) {
	t.Helper()
	f := newFixtureOn(t, redistest.Single(t), func(d *handlers.Deps) {
		d.Limiter = ratelimit.New(redistest.Single(t), limits)
	}).createGame()
	return f, f.dial(path, f.guest("Ann").token)
}

// rejectedBy returns how many of n messages are answered rate_limited. Each of these must say when
// to try again.
func (s *testSocket) rejectedBy(n int, messageType, data string) (rejected int) {
	s.t.Helper()
	for range n {
		r := s.request(messageType, data)
		if *r.OK || r.Error["code"] != "rate_limited" {
			continue
		}
		rejected++
		if seconds, _ := r.problem("retryAfterSeconds").(float64); seconds < 1 || r.problem("retryable") != true {
			s.t.Errorf("%s is refused without saying for how long: %s", messageType, r.raw)
		}
	}
	return rejected
}

func TestMessagesCountAgainstTheLimitsOfRequests(t *testing.T) {
	limit := ratelimit.Limit{PerSecond: 1, Burst: 20, Scope: ratelimit.ScopeUser}
	const roomID = `"0190a1b2-c3d4-8000-8000-000000000001"`
	for _, c := range []struct {
		class                   ratelimit.Class
		path, messageType, data string
	}{
		{ratelimit.Write, savePath, "save", `{"slot":"main","state":{}}`},
		{ratelimit.Write, savePath, "restore", `{"slot":"main","version":1}`},
		{ratelimit.Read, savePath, "load", `{"slot":"main"}`},
		{ratelimit.Read, savePath, "list", `{}`},
		{ratelimit.Read, savePath, "history", `{"slot":"main"}`},
		{ratelimit.Read, realtimePath, "room.subscribe", `{"roomId":` + roomID + `}`},
		{ratelimit.Read, realtimePath, "user.subscribe", `{}`},
		{ratelimit.Read, realtimePath, "board.subscribe", `{"board":"top","top":10}`},
		{ratelimit.Read, realtimePath, "auth.refresh", `{"accessToken":"x"}`},
		{ratelimit.Read, savePath, "auth.refresh", `{"accessToken":"x"}`},
		{ratelimit.Write, realtimePath, "room.state.set", `{"roomId":` + roomID + `,"patch":{"a":1}}`},
		{ratelimit.Write, realtimePath, "room.turn.set", `{"roomId":` + roomID + `}`},
		{ratelimit.Read, realtimePath, "room.send", `{"roomId":` + roomID + `,"op":"x"}`},
	} {
		t.Run(c.messageType, func(t *testing.T) {
			_, s := newNodeWithLimits(t, c.path, ratelimit.Limits{c.class: limit})
			if n := s.rejectedBy(60, c.messageType, c.data); n < 30 || n > 40 {
				t.Errorf("%d of 60 messages were refused by a limit of 20", n)
			}
			other := ratelimit.Read
			if c.class == other {
				other = ratelimit.Write
			}
			_, s = newNodeWithLimits(t, c.path, ratelimit.Limits{other: limit})
			if n := s.rejectedBy(60, c.messageType, c.data); n != 0 {
				t.Errorf("%d of 60 messages were refused by the limit of the class %s", n, other)
			}
		})
	}
}

func TestALimitOfMessagesIsSharedWithRequests(t *testing.T) {
	f := newFixtureOn(t, redistest.Single(t), func(d *handlers.Deps) {
		d.Limiter = ratelimit.New(redistest.Single(t), ratelimit.Limits{
			ratelimit.Read: {PerSecond: 1, Burst: 20, Scope: ratelimit.ScopeUser},
		})
	}).createGame()
	ann := f.guest("Ann")
	f.dial(savePath, ann.token).rejectedBy(40, "list", "{}")
	f.expectError(429, "rate_limited", "GET", "/api/v1/me", ann.token, "")
}

func TestALargeSaveTakesMorePermits(t *testing.T) {
	limits := ratelimit.Limits{ratelimit.Read: {PerSecond: 1, Burst: 40, Scope: ratelimit.ScopeUser}}
	large := fmt.Sprintf(`{"slot":"main","state":{"x":%q}}`, strings.Repeat("x", 250<<10))
	t.Run("load", func(t *testing.T) {
		_, s := newNodeWithLimits(t, savePath, limits)
		s.expectOK("saved", "save", large)
		if n := s.rejectedBy(12, "load", `{"slot":"main"}`); n == 0 {
			t.Error("12 loads of 250 KiB took no more than 40 permits")
		}
	})
	t.Run("conflict", func(t *testing.T) {
		_, s := newNodeWithLimits(t, savePath, ratelimit.Limits{
			ratelimit.Write: {PerSecond: 1, Burst: 60, Scope: ratelimit.ScopeUser},
		})
		s.expectOK("saved", "save", large)
		if n := s.rejectedBy(12, "save", `{"slot":"main","state":{}}`); n == 0 {
			t.Error("12 conflicts that carry 250 KiB took no more than 60 permits")
		}
	})
	t.Run("save", func(t *testing.T) {
		_, s := newNodeWithLimits(t, savePath, ratelimit.Limits{ratelimit.Write: limits[ratelimit.Read]})
		if n := s.rejectedBy(12, "save", large); n == 0 {
			t.Error("12 saves of 250 KiB took no more than 40 permits")
		}
	})
}

func TestASocketEndsWithItsToken(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	expires := time.Now().Add(300 * time.Millisecond).Truncate(time.Millisecond) // as precise as the stored ticket
	caller := principal.Caller{Role: principal.Player, UserID: ann.id, GameID: f.game}
	ticket := testkit.Must(
		f.deps.Auth.IssueTicket(t.Context(), auth.Authentication{Caller: caller, ExpiresAt: expires}),
	)(t)
	s := f.dial(realtimePath+"?ticket="+ticket.Secret, "")
	if code := s.waitCloseCode(); code != 4001 || time.Now().Before(expires) {
		t.Errorf("closed with %d at %v, want 4001 after %v", code, time.Now(), expires)
	}
}

func TestCloseCodes(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	for name, c := range map[string]struct {
		path string
		do   func(*testSocket)
		want int
	}{
		"an unknown protocol": {realtimePath + "?protocol=2", func(*testSocket) {}, 4426},
		"and for saves":       {savePath + "?protocol=2", func(*testSocket) {}, 4426},
		"a large frame":       {realtimePath, func(s *testSocket) { s.send(strings.Repeat("x", 16<<10+1)) }, 1009},
		"a large save":        {savePath, func(s *testSocket) { s.send(strings.Repeat("x", 320<<10+1)) }, 1009},
		"too many frames": {realtimePath, func(s *testSocket) {
			for range 130 {
				_ = s.conn.WriteMessage(websocket.TextMessage, []byte(`{}`))
			}
		}, 4009},
	} {
		t.Run(name, func(t *testing.T) {
			s := f.dial(c.path, ann.token)
			c.do(s)
			if code := s.waitCloseCode(); code != c.want {
				t.Errorf("closed with %d, want %d: %v", code, c.want, s.err)
			}
		})
	}
	s := f.dial(realtimePath+"?protocol=1", ann.token)
	s.next()
	head, tail := `{"id":"1","type":"room.send","data":{"op":"x","roomId":"`+unknownRoom+`","payload":`, `1}}`
	s.send(head + strings.Repeat(" ", 16<<10-len(head)-len(tail)) + tail) // the largest frame
	if got := s.nextReply(); got.Error["code"] != "room_not_found" {
		t.Errorf("the reply to the largest frame is %s", got.raw)
	}
}

// A room from its creation to its rematch, changed on one node and observed on another.
func TestEventsOfARoomOnAnotherNode(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		far := f.newNode()
		ann, bob, cid := f.guest("Ann"), f.guest("Bob"), f.guest("Cid")
		const session = "/api/v1/game-session/"
		room := f.createRoom(ann)
		body := roomBody(room)
		watcher := far.dialRealtime(f.guest("Eve"))
		start := watcher.subscribe(room, "")
		if start.data("mode") != "snapshot" || start.data("room.seq") != 1. {
			t.Fatalf("the subscription begins with %s", start.raw)
		}
		f.expect(200, "POST", session+"join", bob.token, body)
		f.expect(200, "POST", session+"ready", bob.token, fmt.Sprintf(`{"roomId":%q,"ready":true}`, room))
		f.expect(200, "POST", session+"join", cid.token, body)
		f.expect(200, "POST", session+"kick", ann.token, fmt.Sprintf(`{"roomId":%q,"userId":%d}`, room, cid.id))
		f.expect(200, "POST", session+"transfer-host", ann.token, fmt.Sprintf(`{"roomId":%q,"userId":%d}`, room, bob.id))
		f.expect(200, "POST", session+"start", bob.token, body)
		results := fmt.Sprintf(`[{"userId":%d,"place":1},{"userId":%d,"place":2}]`, ann.id, bob.id)
		f.expect(200, "POST", session+"finish", f.serverKey, fmt.Sprintf(`{"roomId":%q,"results":%s}`, room, results),
			"Idempotency-Key", "end")
		rematch := f.expect(201, "POST", session+"rematch", bob.token, body).text("roomId")
		story := []string{
			"room.joined", "room.ready", "room.joined", "room.left",
			"room.host_changed", "room.started", "room.finished", "room.rematch",
		}
		var last string
		for i, kind := range story {
			got := watcher.expectEvent(kind)
			if got.Seq != int64(i+2) || got.RoomID != room {
				t.Errorf("event %d is %s", i, got.raw)
			}
			last = got.Position
		}

		disputed := f.disputedRoom(ann, bob)
		kept := f.expect(200, "GET", "/api/v1/admin/rooms/"+disputed+"/events", adminKey, "")
		watcher.subscribe(disputed, kept.text("items.2.position"))
		f.expect(200, "POST", "/api/v1/admin/rooms/"+disputed+"/resolve", adminKey, `{"refund":true}`)
		for _, kind := range []string{"room.result", "room.result", "room.disputed", "room.cancelled"} {
			watcher.expectEvent(kind)
		}

		// A subscription resumes from any position on any node, and begins with a snapshot from an
		// unknown one.
		reader := f.dialRealtime(bob)
		if got := reader.subscribe(room, "0-0"); got.Data["mode"] != "resume" {
			t.Errorf("from the beginning: %s", got.raw)
		}
		for i, kind := range slices.Concat([]string{"room.created"}, story) {
			if got := reader.expectEvent(kind); got.Seq != int64(i+1) {
				t.Errorf("event %d is %s", i, got.raw)
			}
		}
		if got := reader.subscribe(room, last); got.Data["mode"] != "resume" || got.Data["position"] != last {
			t.Errorf("from the end: %s", got.raw)
		}
		if got := reader.subscribe(room, "5-12345"); got.Data["mode"] != "snapshot" || got.Data["position"] != last {
			t.Errorf("from an unknown position: %s", got.raw)
		}
		if got := reader.subscribe(room, "no-position"); got.Data["mode"] != "snapshot" {
			t.Errorf("from an invalid position: %s", got.raw)
		}

		// A client that has unsubscribed gets no event of the room any more.
		watcher.subscribe(rematch, "")
		reader.subscribe(rematch, "")
		reader.expectOK("done", "room.unsubscribe", roomBody(rematch))
		reader.expectOK("done", "room.unsubscribe", roomBody(rematch))
		f.expect(200, "POST", session+"cancel", bob.token, roomBody(rematch))
		if got := watcher.expectEvent("room.cancelled"); got.RoomID != rematch {
			t.Errorf("%s", got.raw)
		}
		if got := reader.nextEvent(); got.Type != "user.balance" { // the stake came back
			t.Errorf("got %s of a room without a subscription", got.raw)
		}
	})
}

func TestASubscriberThatReconnectsMissesNothing(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		nodes := []*fixture{f, f.newNode()}
		ann, bob, eve := f.guest("Ann"), f.guest("Bob"), f.guest("Eve")
		room := f.expect(201, "POST", "/api/v1/game-session/create", ann.token, `{"maxPlayers":4}`).text("roomId")
		f.expect(200, "POST", "/join", bob.token, roomBody(room))
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
		pos, seq := "0-0", int64(0)
		for conns := 0; seq < turns+2; conns++ {
			s := nodes[conns%2].dialRealtime(eve)
			if got := s.subscribe(room, pos); got.Data["mode"] != "resume" {
				t.Fatalf("connection %d begins with %s", conns, got.raw)
			}
			for range 9 { // events, then it is disconnected
				got := s.nextEvent()
				if got.Seq != seq+1 {
					t.Fatalf("after seq %d came %s", seq, got.raw)
				}
				if pos, seq = got.Position, got.Seq; seq == turns+2 {
					break
				}
			}
			s.disconnect()
		}
	})
}

func TestALostPositionIsReplacedByASnapshot(t *testing.T) {
	f := newGameFixture(t)
	ann, bob := f.guest("Ann"), f.guest("Bob")
	room := f.createRoom(ann)
	s := f.dialRealtime(ann)
	s.subscribe(room, "")
	shard, _ := keys.RoomShard(room)
	// The store has lost an event, as after a failover.
	live := testkit.Must(f.db.Client.HGet(t.Context(), keys.Room(shard, room), "live").Result())(t)
	values := strings.Split(live, "|")
	values[slices.Index(scripts.RoomLive.Names, "seq")] = "2"
	testkit.Check(t, f.db.Client.HSet(t.Context(), keys.Room(shard, room), "live", strings.Join(values, "|")).Err())
	f.expect(200, "POST", "/join", bob.token, roomBody(room))
	got := s.expectEvent("room.snapshot")
	participants, _ := got.data("room.participants").([]any)
	if got.Seq != 3 || len(participants) != 2 || got.Data["position"] != got.Position {
		t.Errorf("the snapshot is %s", got.raw)
	}
	f.expect(200, "POST", "/api/v1/game-session/leave", bob.token, roomBody(room))
	if got := s.expectEvent("room.left"); got.Seq != 4 {
		t.Errorf("after the snapshot came %s", got.raw)
	}
}

// The node shares a snapshot among all who subscribe within a moment. It must not be shared with a
// client that was answered a later change already.
func TestASnapshotIsNeverOlderThanWhatItsClientWasAnswered(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		for name, changed := range map[string]*fixture{"changed on this node": f, "changed on another node": f.newNode()} {
			t.Run(name, func(t *testing.T) {
				ann, bob := f.guest("Ann"), f.guest("Bob")
				room := f.expect(201, "POST", "/api/v1/game-session/create", ann.token, `{"maxPlayers":4}`).text("roomId")
				f.expect(200, "POST", "/join", bob.token, roomBody(room))
				follower, subscriber := f.dialRealtime(ann), f.dialRealtime(bob)
				follower.subscribe(room, "")
				const rounds = 40
				outdated := 0
				for i := range rounds {
					body := fmt.Sprintf(`{"roomId":%q,"ready":%t}`, room, i%2 == 0)
					answered := changed.expect(200, "POST", "/api/v1/game-session/ready", bob.token, body).id("seq")
					got := subscriber.subscribe(room, "")
					if seq, _ := got.data("room.seq").(float64); int64(seq) < answered {
						outdated++
					}
				}
				if outdated > 0 {
					t.Errorf("%d of %d snapshots are older than the change before them", outdated, rounds)
				}
			})
		}
	})
}

func TestMessagesGoToTheOtherParticipants(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		far := f.newNode()
		ann, bob, cid, eve := f.guest("Ann"), f.guest("Bob"), f.guest("Cid"), f.guest("Eve")
		room := f.expect(201, "POST", "/api/v1/game-session/create", ann.token, `{"maxPlayers":4}`).text("roomId")
		for _, p := range []player{bob, cid} {
			f.expect(200, "POST", "/join", p.token, roomBody(room))
		}
		a, b, c := f.dialRealtime(ann), f.dialRealtime(bob), far.dialRealtime(cid)
		spectator, secondScreen := far.dialRealtime(eve), far.dialRealtime(ann)
		for _, s := range []*testSocket{a, b, c, spectator, secondScreen} {
			s.subscribe(room, "")
		}
		message := func(op, payload, more string) string {
			return fmt.Sprintf(`{"roomId":%q,"op":%q,"payload":%s%s}`, room, op, payload, more)
		}
		a.expectOK("done", "room.send", message("move", `{"x":1, "y":[2]}`, ""))
		a.expectOK("done", "room.send", message("secret", `"hush"`, fmt.Sprintf(`,"to":[%d]`, cid.id)))
		a.expectOK("done", "room.send", message("nobody", `1`, `,"to":[]`))
		// Without an id it is not acknowledged: the next reply is that to the message after it, as
		// requestWithID checks.
		a.send(fmt.Sprintf(`{"type":"room.send","data":{"roomId":%q,"op":"bare"}}`, room))
		for i := range 40 {
			a.expectOK("done", "room.send", message("count", strconv.Itoa(i), ""))
		}
		expectMessage := func(s *testSocket, op, payload string) {
			t.Helper()
			got := s.expectEvent("room.message")
			gotPayload, _ := wire.Marshal(got.Data["payload"])
			if got.Data["op"] != op || string(gotPayload) != payload || got.Data["from"] != float64(ann.id) ||
				got.RoomID != room || got.Seq != 0 {
				t.Errorf("want %s %s, got %s", op, payload, got.raw)
			}
		}
		expectMessage(b, "move", `{"x":1,"y":[2]}`)
		expectMessage(c, "move", `{"x":1,"y":[2]}`)
		expectMessage(c, "secret", `"hush"`)
		for _, s := range []*testSocket{b, c} {
			expectMessage(s, "bare", "null")
			for i := range 40 {
				expectMessage(s, "count", strconv.Itoa(i))
			}
		}
		spectator.send(`{"type":"room.send","data":` + message("boo", "1", "") + `}`)
		if got := spectator.nextReply(); *got.OK || got.ReplyTo != nil || got.Error["code"] != "not_participant" {
			t.Errorf("the reply to a refused message without an id is %s", got.raw)
		}
		got := spectator.expectError("not_participant", "room.send", message("boo", "1", ""))
		checkErrorReply(t, got, "room.send", *got.ReplyTo+" not_participant")
		to := fmt.Sprintf(`,"to":[%d,%d]`, bob.id, eve.id)
		got = a.expectError("not_participant", "room.send", message("psst", "1", to))
		checkErrorReply(t, got, "room.send", *got.ReplyTo+" not_participant to[1]")
		// The clients that got no message get the next event.
		f.expect(200, "POST", "/api/v1/game-session/leave", bob.token, roomBody(room))
		for _, s := range []*testSocket{a, spectator, secondScreen} {
			s.expectEvent("room.left")
		}
		b.expectError("not_participant", "room.send", message("late", "1", ""))
	})
}

// The seats are kept beside the room's events, so a message costs the store its publish alone.
func TestAMessageDoesNotReadTheRoom(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ann, bob := f.guest("Ann"), f.guest("Bob")
		room := f.createRoom(ann)
		f.expect(200, "POST", "/api/v1/game-session/join", bob.token, roomBody(room))
		a, b := f.dialRealtime(ann), f.dialRealtime(bob)
		a.subscribe(room, "")
		b.subscribe(room, "")
		send := func(op, more string) {
			a.expectOK("done", "room.send", fmt.Sprintf(`{"roomId":%q,"op":%q%s}`, room, op, more))
			if got := b.expectEvent("room.message"); got.Data["op"] != op {
				t.Errorf("want the message %s, got %s", op, got.raw)
			}
		}
		send("first", "")
		var mu sync.Mutex
		sent := map[string]int{}
		redistest.ObserveCommands(f.db, func(commands []redis.Cmder) {
			mu.Lock()
			defer mu.Unlock()
			for _, command := range commands {
				sent[command.Name()]++
			}
		})
		for i := range 20 {
			send(strconv.Itoa(i), "")
			send("to one", fmt.Sprintf(`,"to":[%d]`, bob.id))
			send("latest", `,"latest":true`)
		}
		mu.Lock()
		published, read := sent["publish"]+sent["spublish"], sent["hgetall"]
		mu.Unlock()
		if published < 60 || read > 2 { // a silent second probes the channel, and its list may be read
			t.Errorf("60 messages sent %v", sent)
		}
		f.expect(200, "POST", "/api/v1/game-session/leave", bob.token, roomBody(room))
		for b.nextEvent().Type != "room.left" { // the node knows; the refund is in another list and may come before
		}
		b.expectError("not_participant", "room.send", fmt.Sprintf(`{"roomId":%q,"op":"late"}`, room))
	})
}

func TestAWinnerGetsThePrizeOfASeason(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ann := f.guest("Ann")
		socket := f.dialRealtime(ann)
		f.createHeldSeason("held", ann.id)
		f.expect(200, "POST", f.gamePath()+"/leaderboards/held/seasons/1/approve", f.serverKey, `{"reason":"checked"}`)
		balance, prize := socket.nextEvent(), socket.nextEvent()
		if balance.Type != "user.balance" || balance.Data["deltaAmount"] != "500" || balance.Data["reason"] != "prize" ||
			balance.Data["ref"] != "board:held:1" {
			t.Errorf("%s", balance.raw)
		}
		if prize.Type != "user.prize" || prize.Seq != balance.Seq+1 || prize.Data["amount"] != "500" ||
			prize.Data["place"] != 1. || prize.Data["source"] != "board:held:1" || prize.Data["assetId"] != nil {
			t.Errorf("%s", prize.raw)
		}
		f.expect(200, "POST", f.gamePath()+"/leaderboards/held/seasons/1/approve", f.serverKey, `{"reason":"again"}`)
		f.expectBalancedAudit()
		seasons := f.expect(200, "GET", "/api/v1/leaderboards/held/seasons", ann.token, "")
		if seasons.text("items.1.status") != "PAID" {
			t.Errorf("%s", seasons.raw)
		}
	})
}

func TestAPlayerGetsItsUserEventsOnEveryConnection(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		far := f.newNode()
		ann, bob := f.guest("Ann"), f.guest("Bob")
		near, tablet, other := f.dialRealtime(ann), far.dialRealtime(ann), far.dialRealtime(bob)
		sword := f.createSword()
		room := f.createRoom(ann)
		f.expect(200, "POST", "/api/v1/game-session/leave", ann.token, roomBody(room))
		f.expect(201, "POST", fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", sword), ann.token,
			`{"quantity":2}`, "Idempotency-Key", "buy")
		f.credit(ann, "quest")

		lines := f.expect(200, "GET", "/api/v1/user-balance/ledger?tokenId=GOLD", ann.token, "").member("items").([]any)
		slices.Reverse(lines) // oldest first; the first line is the signup grant, before the connections
		for _, s := range []*testSocket{near, tablet} {
			var seqs []int64
			for _, line := range lines[1:] {
				got := s.nextEvent()
				if got.Type == "user.asset" { // after the user.balance of its purchase
					if got.Data["owned"] != 2. {
						t.Errorf("%s", got.raw)
					}
					seqs = append(seqs, got.Seq)
					got = s.nextEvent()
				}
				line := line.(map[string]any)
				if got.Type != "user.balance" || got.Data["deltaAmount"] != line["deltaAmount"] ||
					got.Data["reason"] != line["reason"] || got.Data["ref"] != line["ref"] {
					t.Errorf("the event %s differs from the ledger line %v", got.raw, line)
				}
				seqs = append(seqs, got.Seq)
			}
			for i, seq := range seqs {
				if seq != seqs[0]+int64(i) {
					t.Errorf("the events have the numbers %v", seqs)
				}
			}
			if len(seqs) != 5 {
				t.Errorf("got %d events, want 5", len(seqs))
			}
		}
		f.dial(savePath, ann.token).expectOK("saved", "save", `{"slot":"main","state":{}}`)
		for _, s := range []*testSocket{near, tablet} {
			if got := s.expectEvent("user.progress"); got.Data["slot"] != "main" || got.Data["version"] != 1. {
				t.Errorf("%s", got.raw)
			}
		}
		f.credit(bob, "bonus")
		if got := other.nextEvent(); got.Data["reason"] != "bonus" {
			t.Errorf("the other player got %s", got.raw)
		}
	})
}

// A player who may no longer see a private room gets the event that is the reason, and none after
// it.
func TestASubscriptionToAPrivateRoomEndsWithTheRightToSeeIt(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		far := f.newNode()
		ann, bob, eve := f.guest("Ann"), f.guest("Bob"), f.guest("Eve")
		f.makeFriends(ann, bob)
		room := f.expect(201, "POST", "/api/v1/game-session/create", ann.token,
			`{"maxPlayers":4,"visibility":"private"}`).text("roomId")
		host, guest := f.dialRealtime(ann), far.dialRealtime(bob)
		far.dialRealtime(eve).expectError("room_not_found", "room.subscribe", roomBody(room))
		host.subscribe(room, "")
		guest.subscribe(room, "")
		f.expect(200, "POST", "/join", bob.token, roomBody(room))
		joined := guest.expectEvent("room.joined")
		f.expect(200, "POST", "/api/v1/game-session/leave", bob.token, roomBody(room)) // a friend may still see it
		guest.expectEvent("room.left")
		f.expect(200, "POST", "/join", bob.token, roomBody(room))
		guest.expectEvent("room.joined")

		f.expect(204, "DELETE", fmt.Sprintf("/api/v1/friends/%d", bob.id), ann.token, "")
		f.expect(200, "POST", "/api/v1/game-session/kick", ann.token, fmt.Sprintf(`{"roomId":%q,"userId":%d}`, room, bob.id))
		if got := guest.expectEvent("room.left"); got.Data["reason"] != "kicked" {
			t.Errorf("%s", got.raw)
		}
		f.expect(200, "POST", "/api/v1/game-session/ready", ann.token, fmt.Sprintf(`{"roomId":%q,"ready":true}`, room))
		for _, kind := range []string{"room.joined", "room.left", "room.joined", "room.left", "room.ready"} {
			host.expectEvent(kind)
		}
		// The next event of the former guest is one of the player's own wallet.
		guest.expectError("room_not_found", "room.subscribe", fmt.Sprintf(`{"roomId":%q,"after":%q}`, room, joined.Position))
		f.credit(bob, "bonus")
		guest.expectEvent("user.balance")
	})
}

func TestAFormerFriendStopsHearingAPrivateRoom(t *testing.T) {
	db := redistest.Single(t)
	f := newFixtureOn(t, db, func(d *handlers.Deps) {
		d.RealtimeHub = realtime.New(db, realtime.Options{ReauthorizeInterval: 50 * time.Millisecond})
	}).createGame()
	ann, bob := f.guest("Ann"), f.guest("Bob")
	f.makeFriends(ann, bob)
	room := f.expect(201, "POST", "/api/v1/game-session/create", ann.token,
		`{"maxPlayers":4,"visibility":"private"}`).text("roomId")
	host, spectator := f.dialRealtime(ann), f.dialRealtime(bob)
	host.subscribe(room, "")
	spectator.subscribe(room, "")
	ready := func(value bool) {
		f.expect(200, "POST", "/api/v1/game-session/ready", ann.token, fmt.Sprintf(`{"roomId":%q,"ready":%v}`, room, value))
		host.expectEvent("room.ready")
	}
	ready(true)
	spectator.expectEvent("room.ready")
	f.expect(200, "POST", fmt.Sprintf("/api/v1/friends/%d/block", bob.id), ann.token, "")
	got := spectator.nextReply()
	if *got.OK || got.ReplyTo != nil || got.Error["code"] != "room_not_found" || got.Error["roomId"] != room {
		t.Errorf("the end of the subscription is %s", got.raw)
	}
	ready(false)
	f.credit(bob, "bonus")
	spectator.expectEvent("user.balance")
}

func TestAPayloadHasAtMostEightKiB(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	room := f.createRoom(ann)
	s := f.dialRealtime(ann)
	message := func(bytes int) string {
		return fmt.Sprintf(`{"roomId":%q,"op":"x","payload":%q}`, room, strings.Repeat("x", bytes-2))
	}
	s.expectOK("done", "room.send", message(8<<10))
	s.expectError("payload_too_large", "room.send", message(8<<10+1))
}

// A reserved seat lets a player see a private room until the start.
func TestASubscriptionByAReservedSeatEndsAtTheStart(t *testing.T) {
	f := newGameFixture(t)
	ann, bob := f.guest("Ann"), f.guest("Bob")
	f.makeFriends(ann, bob)
	const session = "/api/v1/game-session/"
	room := f.expect(201, "POST", session+"create", ann.token, `{"maxPlayers":2,"visibility":"private"}`).text("roomId")
	f.expect(200, "POST", session+"join", bob.token, roomBody(room))
	f.expect(200, "POST", session+"start", ann.token, roomBody(room))
	results := fmt.Sprintf(`[{"userId":%d,"place":1},{"userId":%d,"place":2}]`, ann.id, bob.id)
	f.expect(200, "POST", session+"finish", f.serverKey, fmt.Sprintf(`{"roomId":%q,"results":%s}`, room, results),
		"Idempotency-Key", "end")
	rematch := f.expect(201, "POST", session+"rematch", ann.token, roomBody(room)).text("roomId")
	f.expect(204, "DELETE", fmt.Sprintf("/api/v1/friends/%d", bob.id), ann.token, "")

	host, reserved := f.dialRealtime(ann), f.dialRealtime(bob)
	host.subscribe(rematch, "")
	reserved.subscribe(rematch, "")
	f.expect(200, "POST", session+"start", ann.token, roomBody(rematch))
	f.expect(200, "POST", session+"cancel", f.serverKey, roomBody(rematch))
	for _, eventType := range []string{"room.started", "room.cancelled"} {
		host.expectEvent(eventType)
	}
	reserved.expectEvent("room.started")
	f.credit(bob, "bonus")
	reserved.expectEvent("user.balance")
}

func TestAConnectionSubscribesToThirtyTwoRooms(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	s := f.dialRealtime(ann)
	var rooms []string
	for range 33 {
		created := f.expect(201, "POST", "/api/v1/game-session/create", ann.token, `{"maxPlayers":2}`)
		rooms = append(rooms, created.text("roomId"))
	}
	for _, room := range rooms[:32] {
		s.subscribe(room, "")
	}
	s.expectError("rate_limited", "room.subscribe", roomBody(rooms[32]))
	s.subscribe(rooms[3], "") // a second time
	s.expectOK("done", "room.unsubscribe", roomBody(rooms[0]))
	s.subscribe(rooms[32], "")
}

func TestADrainingNodeAsksItsClientsToReconnect(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	events, saves := f.dialRealtime(ann), f.dial(savePath, ann.token)
	ticket := f.ticket(ann)
	f.server.Drain()
	f.dialRealtime(ann).disconnect() // the balancer may not have noticed yet
	f.server.RefuseSockets()
	f.expectUpgradeError(503, "draining", realtimePath, ann.token)
	f.expectUpgradeError(503, "draining", realtimePath+"?ticket="+ticket, "")
	f.newNode().dial(realtimePath+"?ticket="+ticket, "") // the ticket has not been redeemed
	saves.expectOK("slots", "list", "")
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	drained := make(chan error, 1)
	go func() { drained <- f.deps.RealtimeHub.Drain(ctx) }()
	events.expectEvent("server.draining")
	saves.expectEvent("server.draining")
	for _, s := range []*testSocket{events, saves} {
		if code := s.waitCloseCode(); code != 1012 {
			t.Errorf("closed with %d", code)
		}
	}
	testkit.Report(t, <-drained)
}

func TestClientsOfANodeWithoutAStoreAreToldSo(t *testing.T) {
	// Without probes, a store in which nothing happens is as silent as one that is gone.
	silent := realtime.Options{StaleAfter: 50 * time.Millisecond, ProbeAfter: time.Hour}
	db := redistest.Single(t)
	f := newFixtureOn(t, db, func(d *handlers.Deps) { d.RealtimeHub = realtime.New(db, silent) }).createGame()
	ann := f.guest("Ann")
	s := f.dialRealtime(ann)
	room := f.createRoom(ann)
	s.expectEvent("server.stale")
	s.subscribe(room, "")
	f.expect(200, "POST", "/api/v1/game-session/ready", ann.token, `{"roomId":"`+room+`","ready":true}`)
	for e := s.nextEvent(); e.Type != "room.ready"; e = s.nextEvent() {
		if e.Type != "server.stale" {
			t.Fatalf("got %s", e.raw)
		}
	}
}

func TestSocketsLeaveNothingRunning(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("a node", func(t *testing.T) {
		f := newGameFixture(t)
		ann := f.guest("Ann")
		room := f.createRoom(ann)
		for range 4 {
			s := f.dialRealtime(ann)
			s.subscribe(room, "")
			f.dial(loadPath, ann.token).expectOK("slots", "list", "")
			s.disconnect()
		}
		client.CloseIdleConnections()
	})
	client.CloseIdleConnections()
	goleak.VerifyNone(t, before)
}

func TestTheHubExportsItsMetrics(t *testing.T) {
	f := newGameFixture(t)
	f.dialRealtime(f.guest("Ann"))
	families := testkit.Must(f.deps.MetricsRegistry.Gather())(t)
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			values[f.GetName()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	for name, want := range map[string]float64{"sessions": 1, "topics": 2, "frames_total": 1} {
		if got := values["parlor_realtime_"+name]; got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

// The tests above have exchanged every message of the contract, in both directions.
func TestEveryMessageOfTheContractWasExchanged(t *testing.T) {
	if only := flag.Lookup("test.run").Value.String(); only != "" && only != "." {
		t.Skip("only when all tests run")
	}
	for _, name := range slices.Sorted(maps.Keys(socketSpec().Components.Messages)) {
		if _, ok := socketSpec().Channels["webhook"].Messages[name]; ok {
			continue // webhooks go by HTTP
		}
		if _, seen := exchangedMessages.Load(name); !seen {
			t.Errorf("no test exchanged %s", name)
		}
	}
}
