package handlers_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// dialServer opens a socket of the game's server and reads its hello.
func (f *fixture) dialServer(serverKey string) *testSocket {
	f.t.Helper()
	s := f.dial(realtimePath, serverKey)
	s.expectServerHello()
	return s
}

func (s *testSocket) expectServerHello() {
	s.t.Helper()
	if hello := s.next(); hello.Type != "hello" || hello.Data["role"] != "server" {
		s.t.Fatalf("the first frame is %s", hello.raw)
	}
}

// command sends an operation with an Idempotency-Key and returns its reply.
func (s *testSocket) command(key, messageType, data string) received {
	s.t.Helper()
	s.lastID++
	frame := fmt.Sprintf(`{"id":"%d","type":%q,"key":%q,"data":%s}`, s.lastID, messageType, key, data)
	s.send(frame)
	r := s.nextReply()
	if r.ReplyTo == nil || *r.ReplyTo != fmt.Sprint(s.lastID) {
		s.t.Fatalf("the reply to %s is %s", messageType, r.raw)
	}
	if *r.OK {
		recordExchanged(s.t, messageType, []byte(frame))
		reply := map[string]string{"room.state.set": "stateSet", "room.turn.set": "turnSet"}[messageType]
		recordExchanged(s.t, cmp.Or(reply, "changed"), r.raw)
	}
	return r
}

// startedRoom returns a started room of two players.
func (f *fixture) startedRoom(host, guest player) string {
	f.t.Helper()
	room := f.createRoom(host)
	f.expect(200, "POST", "/api/v1/game-session/join", guest.token, roomBody(room))
	f.expect(200, "POST", "/api/v1/game-session/start", host.token, roomBody(room))
	return room
}

func resultsBody(room string, winner, loser player) string {
	return fmt.Sprintf(`{"roomId":%q,"results":[{"userId":%d,"place":1},{"userId":%d,"place":2}]}`,
		room, winner.id, loser.id)
}

func TestServerOpensASocketByItsKeyOrByATicketOfIt(t *testing.T) {
	f := newGameFixture(t)
	s := f.dial(realtimePath, f.serverKey)
	hello := s.next()
	limits, _ := hello.Data["limits"].(map[string]any)
	for member, want := range map[string]any{
		"frameBytes": 65536., "framesPerSecond": 2000., "burst": 4000., "subscriptions": 10000.,
		"roomsPerSubscribe": 1000., "sockets": 64., "boards": 0.,
	} {
		if limits[member] != want {
			t.Errorf("the limit %s is %v, want %v", member, limits[member], want)
		}
	}
	_, hasUser := hello.Data["userId"]
	if hello.Data["gameId"] != float64(f.game) || hello.Data["role"] != "server" || hello.Data["protocol"] != 1. ||
		hasUser {
		t.Errorf("hello is %s", hello.raw)
	}
	ticket := f.expect(200, "POST", "/api/v1/auth/ticket", f.serverKey, "").text("ticket")
	f.dial(realtimePath+"?ticket="+ticket, "").expectServerHello()
	f.expectUpgradeError(401, "unauthenticated", realtimePath+"?ticket="+ticket, "")

	used := f.expect(200, "POST", "/api/v1/auth/ticket", f.serverKey, "").text("ticket")
	f.expectUpgradeError(403, "forbidden", savePath+"?ticket="+used, "")
	f.expectUpgradeError(403, "forbidden", savePath, f.serverKey)
	f.expectUpgradeError(403, "forbidden", realtimePath, adminKey)
}

func TestServerHasNoMessagesOfPlayers(t *testing.T) {
	f := newGameFixture(t)
	s := f.dialServer(f.serverKey)
	for _, messageType := range []string{"auth.refresh", "user.subscribe", "board.subscribe", "save"} {
		s.expectError("invalid_request", messageType, "{}")
	}
	player := f.dialRealtime(f.guest("Ann"))
	for _, messageType := range []string{
		"room.start", "room.finish", "room.cancel", "game.subscribe", "game.unsubscribe",
	} {
		player.expectError("invalid_request", messageType, "{}")
	}
	player.send(`{"id":"k","type":"room.turn.set","key":"a","data":{}}`)
	if r := player.nextReply(); *r.OK || r.problem("code") != "invalid_request" {
		t.Errorf("a player's message with a key gets %s", r.raw)
	}
}

func TestRevokedKeyClosesTheSocketsOfItsServersOnEveryNode(t *testing.T) {
	f := newGameFixture(t)
	other := f.newNode()
	game := fmt.Sprintf("/api/v1/admin/games/%d/server-keys", f.game)
	made := f.expect(201, "POST", game, adminKey, "")
	key, id := made.text("serverKey"), made.text("game.serverKeys.1.id")
	kept := f.dialServer(f.serverKey)
	sockets := []*testSocket{f.dialServer(key), other.dialServer(key)}
	for _, node := range []*fixture{f, other} {
		ticket := node.expect(200, "POST", "/api/v1/auth/ticket", key, "").text("ticket")
		s := node.dial(realtimePath+"?ticket="+ticket, "")
		s.expectServerHello()
		sockets = append(sockets, s)
	}
	unused := f.expect(200, "POST", "/api/v1/auth/ticket", key, "").text("ticket")
	revokedAt := time.Now()
	f.expect(200, "DELETE", game+"/"+id, adminKey, "")
	for _, s := range sockets {
		if code := s.waitCloseCode(); code != 4001 {
			t.Errorf("the socket of a revoked key is closed with %d", code)
		}
	}
	if took := time.Since(revokedAt); took > 3*time.Second { // two, and what a busy machine needs
		t.Errorf("the sockets were open for %v", took)
	}
	f.expectUpgradeError(401, "unauthenticated", realtimePath+"?ticket="+unused, "")
	f.expectUpgradeError(401, "unauthenticated", realtimePath, key)
	kept.expectError("invalid_request", "room.start", "{}") // it is still open
}

func TestServerFollowsAndChangesRoomsOfItsGameOnly(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ann, bob := f.guest("Ann"), f.guest("Bob")
		_, otherKey := f.createOtherGame()
		own, foreign := f.dialServer(f.serverKey), f.dialServer(otherKey)
		private := f.expect(201, "POST", "/api/v1/game-session/create", ann.token,
			`{"maxPlayers":2,"visibility":"private"}`).text("roomId")
		waiting, started := f.createRoom(ann), f.startedRoom(ann, bob)
		for _, room := range []string{private, waiting, started} {
			own.subscribe(room, "")
			foreign.expectError("room_not_found", "room.subscribe", roomBody(room))
			foreign.expectError("room_not_found", "room.send", fmt.Sprintf(`{"roomId":%q,"op":"x"}`, room))
			for _, operation := range []string{"room.start", "room.cancel"} {
				foreign.expectError("room_not_found", operation, roomBody(room))
			}
			foreign.expectError("room_not_found", "room.state.set", fmt.Sprintf(`{"roomId":%q,"patch":{"a":1}}`, room))
			foreign.expectError("room_not_found", "room.turn.set",
				fmt.Sprintf(`{"roomId":%q,"userId":%d,"seconds":60}`, room, ann.id))
			r := foreign.command("foreign", "room.finish", resultsBody(room, ann, bob))
			if r.problem("code") != "room_not_found" {
				t.Errorf("a server of another game finishes a room: %s", r.raw)
			}
		}
		several := own.request("room.subscribe", fmt.Sprintf(`{"rooms":[%s,%s]}`, roomBody(private), roomBody(unknownRoom)))
		if !strings.Contains(string(several.raw), "room_not_found") || !*several.OK {
			t.Errorf("the reply to a list is %s", several.raw)
		}
		f.expect(200, "POST", "/api/v1/game-session/ready", ann.token, fmt.Sprintf(`{"roomId":%q,"ready":true}`, private))
		if e := own.expectEvent("room.ready"); e.RoomID != private {
			t.Errorf("the server hears %s", e.raw)
		}
		own.expectOK("", "room.unsubscribe", roomBody(private))
	})
}

func TestServersMessageReachesPlayersOfTheRoom(t *testing.T) {
	f := newGameFixture(t)
	other := f.newNode()
	ann, bob, eve := f.guest("Ann"), f.guest("Bob"), f.guest("Eve")
	room := f.startedRoom(ann, bob)
	annSocket, bobSocket := f.dialRealtime(ann), other.dialRealtime(bob)
	annSocket.subscribe(room, "")
	bobSocket.subscribe(room, "")
	s := f.dialServer(f.serverKey)
	s.expectOK("", "room.send", fmt.Sprintf(`{"roomId":%q,"op":"deal","payload":{"cards":2}}`, room))
	for _, player := range []*testSocket{annSocket, bobSocket} {
		m := player.expectEvent("room.message")
		if from, known := m.Data["from"]; from != nil || !known || m.data("payload.cards") != 2. {
			t.Errorf("the message of a server is %s", m.raw)
		}
	}
	s.expectOK("", "room.send", fmt.Sprintf(`{"roomId":%q,"op":"7","payload":"AQID","encoding":"base64","to":[%d]}`,
		room, bob.id))
	if m := bobSocket.expectEvent("room.message"); m.Data["from"] != nil || m.Data["encoding"] != "base64" {
		t.Errorf("the bytes of a server are %s", m.raw)
	}
	s.expectError("not_participant", "room.send", fmt.Sprintf(`{"roomId":%q,"op":"x","to":[%d]}`, room, eve.id))
	alone := f.createRoom(eve)
	eveSocket := f.dialRealtime(eve)
	eveSocket.subscribe(alone, "")
	s.expectOK("", "room.send", fmt.Sprintf(`{"roomId":%q,"op":"hello"}`, alone))
	eveSocket.expectEvent("room.message")
	_, otherKey := f.createOtherGame() // the seats of the room are cached by now
	f.dialServer(otherKey).expectError("room_not_found", "room.send", fmt.Sprintf(`{"roomId":%q,"op":"x"}`, room))
}

func TestServersOfARoomHearWhatPlayersSendToAll(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		other := f.newNode()
		ann, bob := f.guest("Ann"), f.guest("Bob")
		room := f.createRoom(ann)
		annSocket := f.dialRealtime(ann)
		annSocket.subscribe(room, "")
		listeners := []*testSocket{f.dialServer(f.serverKey), other.dialServer(f.serverKey)}
		for _, s := range listeners {
			s.subscribe(room, "")
		}
		_, otherKey := f.createOtherGame()
		foreign, deaf := other.dialServer(otherKey), other.dialServer(f.serverKey)
		foreign.expectError("room_not_found", "room.subscribe", roomBody(room))
		send := func(by *testSocket, op, more string) {
			t.Helper()
			by.expectOK("done", "room.send", callBody(room, op, more))
		}
		send(annSocket, "alone", "")
		f.expect(200, "POST", "/api/v1/game-session/join", bob.token, roomBody(room))
		bobSocket := other.dialRealtime(bob)
		bobSocket.subscribe(room, "")
		send(bobSocket, "secret", fmt.Sprintf(`,"to":[%d]`, ann.id))
		send(listeners[0], "of a server", "")
		send(bobSocket, "7", `,"payload":"AQID","encoding":"base64"`)
		for _, s := range listeners {
			for _, want := range []struct {
				op   string
				from player
			}{{"alone", ann}, {"7", bob}} {
				if m := s.nextRoomMessage(); m.Data["op"] != want.op || m.Data["from"] != float64(want.from.id) {
					t.Errorf("the server hears %s, want %s", m.raw, want.op)
				}
			}
		}
		for _, want := range []string{"secret", "of a server", "7"} {
			if m := annSocket.nextRoomMessage(); m.Data["op"] != want {
				t.Errorf("the player hears %s, want %s", m.raw, want)
			}
		}
		for _, s := range []*testSocket{foreign, deaf} { // the reply comes behind what came before it
			if s.expectOK("", "game.unsubscribe", "{}"); len(s.events) > 0 {
				t.Errorf("a server that does not follow the room gets %s", s.events[0].raw)
			}
		}
	})
}

// nextRoomMessage returns the next message to the participants of a room.
func (s *testSocket) nextRoomMessage() received {
	s.t.Helper()
	for {
		if e := s.nextEvent(); e.Type == "room.message" {
			return e
		}
	}
}

func TestALargeMessageOfAServerTakesMorePermits(t *testing.T) {
	f := newFixtureOn(t, redistest.Single(t), func(d *handlers.Deps) {
		d.Limiter = ratelimit.New(redistest.Single(t), ratelimit.Limits{
			ratelimit.ServerMessages: {PerSecond: 1, Burst: 40, Scope: ratelimit.ScopeUser},
		})
	}).createGame()
	room := f.createRoom(f.guest("Ann"))
	s := f.dialServer(f.serverKey)
	large := callBody(room, "x", `,"payload":"`+strings.Repeat("x", 7<<10)+`"`)
	if n := s.rejectedBy(10, "room.send", large); n == 0 || n > 6 {
		t.Errorf("%d of 10 messages of 7 KiB do not fit 40 permits", n)
	}
}

// Every operation has the receipts of HTTP: a key that was used there is replayed here, and the
// other way round.
func TestOperationsOfAServerHaveTheReceiptsOfHTTP(t *testing.T) {
	f := newGameFixture(t)
	ann, bob := f.guest("Ann"), f.guest("Bob")
	s := f.dialServer(f.serverKey)
	waiting := func() string {
		room := f.createRoom(ann)
		f.expect(200, "POST", "/api/v1/game-session/join", bob.token, roomBody(room))
		return room
	}
	for _, c := range []struct {
		message, path string
		room          func() string
		body          func(room string) string
		other         func(room string) string
	}{
		{"room.start", "start", waiting, roomBody, nil},
		{"room.cancel", "cancel", waiting, roomBody, nil},
		{
			"room.finish", "finish", func() string { return f.startedRoom(ann, bob) },
			func(room string) string { return resultsBody(room, ann, bob) },
			func(room string) string { return resultsBody(room, bob, ann) },
		},
		{
			"room.state.set", "state", func() string { return f.startedRoom(ann, bob) },
			func(room string) string { return fmt.Sprintf(`{"roomId":%q,"version":0,"patch":{"a":1}}`, room) },
			func(room string) string { return fmt.Sprintf(`{"roomId":%q,"version":0,"patch":{"a":2}}`, room) },
		},
		{
			"room.turn.set", "turn", func() string { return f.startedRoom(ann, bob) },
			func(room string) string { return fmt.Sprintf(`{"roomId":%q,"userId":%d,"seconds":60}`, room, ann.id) },
			func(room string) string { return fmt.Sprintf(`{"roomId":%q,"userId":%d,"seconds":60}`, room, bob.id) },
		},
	} {
		t.Run(c.message, func(t *testing.T) {
			path := "/api/v1/game-session/" + c.path
			for _, first := range []string{"socket", "http"} {
				room := c.room()
				key := c.path + "-" + first
				var answer any
				if first == "http" {
					answer = f.expect(200, "POST", path, f.serverKey, c.body(room), "Idempotency-Key", key).body
				} else {
					r := s.command(key, c.message, c.body(room))
					if !*r.OK || strings.Contains(string(r.raw), `"replayed"`) {
						t.Fatalf("the reply is %s", r.raw)
					}
					answer = r.Data
				}
				again := s.command(key, c.message, c.body(room))
				if !*again.OK || !strings.Contains(string(again.raw), `"replayed":true`) {
					t.Errorf("the replay is %s", again.raw)
				}
				replayed := f.expect(200, "POST", path, f.serverKey, c.body(room), "Idempotency-Key", key)
				if replayed.header.Get("Idempotent-Replayed") != "true" {
					t.Errorf("over HTTP it is not replayed: %s", replayed.raw)
				}
				// These replies have a part of the room.
				if member := map[string]string{"room.state.set": "version", "room.turn.set": "userId"}[c.message]; member != "" {
					path := map[string]string{"version": "shared.version", "userId": "turn.userId"}[member]
					if got := fmt.Sprint(again.Data[member]); got != replayed.text(path) {
						t.Errorf("the replay is %s, the room %s", again.raw, replayed.raw)
					}
					continue
				}
				want := testkit.Must(wire.Marshal(answer))(t)
				for name, got := range map[string]any{"socket": again.Data, "HTTP": replayed.body} {
					if text := testkit.Must(wire.Marshal(got))(t); !sameJSON(t, text, want) {
						t.Errorf("the replay over %s is\n%s, want\n%s", name, text, want)
					}
				}
				if c.other != nil {
					if r := s.command(key, c.message, c.other(room)); r.problem("code") != "idempotency_key_reused" {
						t.Errorf("another input under the key gets %s", r.raw)
					}
				}
			}
		})
	}
	s.expectError("idempotency_key_required", "room.finish", resultsBody(f.startedRoom(ann, bob), ann, bob))
	for _, data := range []string{"", "[]", `{"roomId":1}`, `{"room":"x"}`} {
		s.expectError("invalid_request", "room.start", data)
	}
	if r := s.command("ü", "room.start", "{}"); r.problem("code") != "invalid_request" {
		t.Errorf("a key that is not ASCII gets %s", r.raw)
	}
	trailed := f.expect(200, "GET", "/api/v1/admin/trail?limit=100", adminKey, "")
	for _, action := range []string{"startRoom", "finishRoom", "cancelRoom"} {
		if n := strings.Count(string(trailed.raw), `"action":"`+action+`"`); n != 2 {
			t.Errorf("the trail has %s %d times, want 2", action, n)
		}
	}
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var one, two any
	testkit.Check(t, wire.Unmarshal(a, &one), "decode")
	testkit.Check(t, wire.Unmarshal(b, &two), "decode")
	return fmt.Sprint(one) == fmt.Sprint(two)
}

func TestServersOfAGameHaveSixtyFourSocketsOnANode(t *testing.T) {
	f := newGameFixture(t)
	for range 64 {
		f.dialServer(f.serverKey)
	}
	f.expectUpgradeError(429, "rate_limited", realtimePath, f.serverKey)
	_, otherKey := f.createOtherGame()
	f.dialServer(otherKey)
	f.newNode().dialServer(f.serverKey)
	for range 10 {
		f.dialRealtime(f.guest("Ann"))
	}
}
