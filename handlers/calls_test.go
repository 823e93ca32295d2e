package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/players/calls"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/testkit"
)

// callBody is the data of a call.
func callBody(room, op, more string) string {
	return fmt.Sprintf(`{"roomId":%q,"op":%q%s}`, room, op, more)
}

// nextCall returns the next call that a server gets.
func (s *testSocket) nextCall() received {
	s.t.Helper()
	for {
		if e := s.nextEvent(); e.Type == "room.call" {
			recordExchanged(s.t, "room.call", e.raw)
			return e
		}
	}
}

// reply sends the answer to a call.
func (s *testSocket) reply(call received, answer string) {
	s.t.Helper()
	frame := fmt.Sprintf(`{"type":"room.reply","data":{"callId":%q,%s}}`, call.Data["callId"], answer)
	recordExchanged(s.t, "room.reply", []byte(frame))
	s.send(frame)
}

// call sends a call, and returns its id.
func (s *testSocket) call(data string) string {
	s.t.Helper()
	s.lastID++
	id := fmt.Sprint(s.lastID)
	frame := fmt.Sprintf(`{"id":%q,"type":"room.call","data":%s}`, id, data)
	recordExchanged(s.t, "call", []byte(frame))
	s.send(frame)
	return id
}

// answerAll sends the same answer to each call that a server gets, until stop is called.
func (s *testSocket) answerAll(answer string) (stop func()) {
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case r := <-s.in:
				if r.Type == "room.call" {
					s.reply(r, answer)
				}
			case <-ended:
				return
			}
		}
	}()
	return func() { close(ended); <-done }
}

// expectAnswer requires that the next reply is the answer to a call: its payload, or the code of
// its error.
func (s *testSocket) expectAnswer(id, answer string) received {
	s.t.Helper()
	r := s.nextReply()
	if r.ReplyTo == nil || *r.ReplyTo != id {
		s.t.Fatalf("the reply to %s is %s", id, r.raw)
	}
	have := string(r.RawData)
	if *r.OK {
		recordExchanged(s.t, "answered", r.raw)
	} else {
		have = fmt.Sprint(r.Error["code"])
	}
	if have != answer {
		s.t.Fatalf("the answer is %s, want %s", r.raw, answer)
	}
	return r
}

// callFixture is a started room with two players on one node and a server on another.
type callFixture struct {
	*fixture
	other    *fixture // a second node
	ann, bob player
	room     string
	socket   *testSocket // of Ann
	server   *testSocket // on the other node; listens to the room
}

func (f *fixture) newCallFixture() *callFixture {
	f.t.Helper()
	c := &callFixture{fixture: f, other: f.newNode(), ann: f.guest("Ann"), bob: f.guest("Bob")}
	c.room = f.startedRoom(c.ann, c.bob)
	c.socket, c.server = f.dialRealtime(c.ann), c.other.dialServer(f.serverKey)
	c.server.subscribe(c.room, "")
	return c
}

func TestAPlayerCallsTheServerThroughTheRoom(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		c := f.newCallFixture()
		id := c.socket.call(callBody(c.room, "move", `,"payload":{"cell":4}`))
		call := c.server.nextCall()
		if call.RoomID != c.room || call.Data["from"] != float64(c.ann.id) || call.Data["op"] != "move" ||
			call.data("payload.cell") != 4. {
			t.Errorf("the server gets %s", call.raw)
		}
		c.server.reply(call, `"payload":{"board":"X"}`)
		c.socket.expectAnswer(id, `{"payload":{"board":"X"}}`)

		id = c.socket.call(callBody(c.room, "move", `,"timeoutMs":30000`))
		c.server.reply(c.server.nextCall(), `"error":{"code":"not_your_turn","detail":"It is the turn of Bob"}`)
		failed := c.socket.expectAnswer(id, "game_error")
		if failed.Error["gameCode"] != "not_your_turn" || failed.Error["detail"] != "It is the turn of Bob" ||
			failed.Error["status"] != 422. || failed.Error["retryable"] != false {
			t.Errorf("the error is %s", failed.raw)
		}
		// Over HTTP, by the other player.
		var http sync.WaitGroup
		for _, answer := range []struct {
			status               int
			reply, member, value string
		}{
			{200, `"payload":[1,2]`, "payload.1", "2"},
			{200, `"payload":null`, "payload", "<nil>"},
			{422, `"error":{"code":"no"}`, "gameCode", "no"},
		} {
			http.Go(func() {
				r := f.expect(answer.status, "POST", "/api/v1/game-session/call", c.bob.token, callBody(c.room, "move", ""))
				if have := fmt.Sprint(memberAt(r.body, answer.member)); have != answer.value {
					t.Errorf("the response is %s", r.raw)
				}
			})
			call := c.server.nextCall()
			if call.Data["from"] != float64(c.bob.id) || call.Data["payload"] != nil {
				t.Errorf("the server gets %s", call.raw)
			}
			c.server.reply(call, answer.reply)
			http.Wait()
		}
	})
}

// memberAt returns a member of a response; a number is the index of a list.
func memberAt(body any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		switch in := body.(type) {
		case map[string]any:
			body = in[name]
		case []any:
			var i int
			_, _ = fmt.Sscan(name, &i)
			body = in[i]
		}
	}
	return body
}

func TestWhoMayCallAndWhat(t *testing.T) {
	f := newGameFixture(t)
	c := f.newCallFixture()
	otherGame, otherKey := f.createOtherGame()
	foreigner := f.guestOf(otherGame, "Eve")
	stranger := f.guest("Sam")
	foreignServer := f.dialServer(otherKey)
	foreignServer.expectError("room_not_found", "room.subscribe", roomBody(c.room))
	foreignRoom := f.expect(201, "POST", "/api/v1/game-session/create", foreigner.token, `{"maxPlayers":2}`).text("roomId")
	for _, refused := range []struct{ code, data string }{
		{"invalid_request", `{}`},
		{"invalid_request", callBody(c.room, "", "")},
		{"invalid_request", callBody(c.room, strings.Repeat("a", 65), "")},
		{"invalid_request", callBody(c.room, "x", `,"timeoutMs":99`)},
		{"invalid_request", callBody(c.room, "x", `,"timeoutMs":30001`)},
		{"invalid_request", callBody(c.room, "x", `,"to":[1]`)},
		{"payload_too_large", callBody(c.room, "x", `,"payload":"`+strings.Repeat("a", 8<<10)+`"`)},
		{"room_not_found", callBody(foreignRoom, "x", "")},
		{"room_not_found", callBody(unknownRoom, "x", "")},
		{"invalid_request", callBody("nothing", "x", "")},
	} {
		c.socket.expectError(refused.code, "room.call", refused.data)
	}
	f.dialRealtime(stranger).expectError("not_participant", "room.call", callBody(c.room, "x", ""))
	f.dialRealtime(foreigner).expectError("room_not_found", "room.call", callBody(c.room, "x", ""))
	c.server.expectError("invalid_request", "room.call", callBody(c.room, "x", ""))
	f.expect(403, "POST", "/api/v1/game-session/call", f.serverKey, callBody(c.room, "x", ""))
	f.expect(403, "POST", "/api/v1/game-session/call", stranger.token, callBody(c.room, "x", ""))
	f.expect(404, "POST", "/api/v1/game-session/call", foreigner.token, callBody(c.room, "x", ""))
	// Nothing of it has reached a server, and no answer is taken of one that was not asked.
	id := c.socket.call(callBody(c.room, "x", ""))
	call := c.server.nextCall()
	forged := fmt.Sprintf(`{"callId":%q,"payload":1}`, call.Data["callId"])
	second := f.dialServer(f.serverKey)
	second.subscribe(c.room, "")
	for _, s := range []*testSocket{foreignServer, second} {
		s.expectError("call_not_found", "room.reply", forged)
	}
	for _, invalid := range []string{
		`{"callId":"a"}`, `{"payload":1}`, `{"callId":"a","payload":1,"error":{"code":"a"}}`, `{"callId":"a","error":{}}`,
		`{"callId":"a","error":{"code":"A"}}`, `{"callId":"a","error":{"code":"a","more":1}}`,
	} {
		c.server.expectError("invalid_request", "room.reply", invalid)
	}
	c.server.expectOK("done", "room.reply", forged) // by the one that was asked
	c.socket.expectAnswer(id, `{"payload":1}`)
	c.server.expectError("call_not_found", "room.reply", forged)
	// A player without a seat may not call.
	f.expect(200, "POST", "/api/v1/game-session/leave", c.ann.token, roomBody(c.room))
	c.socket.expectError("not_participant", "room.call", callBody(c.room, "x", ""))
}

func TestACallEndsWithoutAnAnswer(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		c := f.newCallFixture()
		id := c.socket.call(callBody(c.room, "slow", `,"timeoutMs":100`))
		late := c.server.nextCall()
		if r := c.socket.expectAnswer(id, "server_timeout"); r.Error["retryable"] != false || r.Error["status"] != 504. {
			t.Errorf("the error is %s", r.raw)
		}
		redistest.Eventually(t, "the answer is refused", func() bool {
			r := c.server.request("room.reply", fmt.Sprintf(`{"callId":%q,"payload":1}`, late.Data["callId"]))
			return !*r.OK && r.Error["code"] == "call_not_found"
		})
		// The server leaves the room: nobody listens.
		c.server.expectOK("done", "room.unsubscribe", roomBody(c.room))
		redistest.Eventually(t, "there is no server", func() bool {
			return f.tryCall(c.ann, c.room) == 503
		})
		if r := c.socket.expectError("no_server", "room.call", callBody(c.room, "x", "")); r.Error["retryable"] != true {
			t.Errorf("the error is %s", r.raw)
		}
		// It is back at once, and dies with a call.
		c.server.subscribe(c.room, "")
		redistest.Eventually(t, "the server is found", func() bool { return f.tryCall(c.ann, c.room) == 504 })
		id = c.socket.call(callBody(c.room, "last", `,"timeoutMs":30000`))
		for c.server.nextCall().Data["op"] != "last" {
		}
		c.server.disconnect()
		c.socket.expectAnswer(id, "server_timeout")
		// The caller's socket closes with calls under way; nothing of them stays.
		next := c.other.dialServer(f.serverKey)
		next.subscribe(c.room, "")
		redistest.Eventually(t, "the next server is found", func() bool { return f.tryCall(c.ann, c.room) == 504 })
		c.socket.call(callBody(c.room, "last", `,"timeoutMs":30000`))
		for next.nextCall().Data["op"] != "last" {
		}
		c.socket.disconnect()
		next.disconnect()
		for _, node := range []*fixture{f, c.other} {
			redistest.Eventually(t, "the node keeps no call", func() bool {
				return node.deps.Calls.Stats() == calls.Stats{}
			})
		}
	})
}

// tryCall calls the server, which does not answer, and returns the status.
func (f *fixture) tryCall(p player, room string) int {
	f.t.Helper()
	return f.send("POST", "/api/v1/game-session/call", p.token, callBody(room, "try", `,"timeoutMs":100`)).status
}

func TestAServerThatOnlyListensTakesNoCalls(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	room := f.startedRoom(ann, f.guest("Bob"))
	server := f.dialServer(f.serverKey)
	server.expectOK("gameSubscribed", "game.subscribe", `{"kinds":["rooms"],"calls":false}`)
	f.dialRealtime(ann).expectError("no_server", "room.call", callBody(room, "x", ""))
	server.expectOK("gameSubscribed", "game.subscribe", `{"kinds":["rooms"]}`)
	redistest.Eventually(t, "the server is asked", func() bool { return f.tryCall(ann, room) == 504 })
}

func TestCallsOfOneSocketKeepTheirOrderAndSixteenAreUnderWay(t *testing.T) {
	f := newGameFixture(t)
	c := f.newCallFixture()
	var ids []string
	for range calls.MaxPerCaller {
		ids = append(ids, c.socket.call(callBody(c.room, "x", fmt.Sprintf(`,"payload":%d,"timeoutMs":30000`, len(ids)))))
	}
	c.socket.expectAnswer(c.socket.call(callBody(c.room, "x", "")), "rate_limited")
	c.socket.expectOK("done", "room.send", callBody(c.room, "x", "")) // other messages are handled
	var asked []received
	for i := range ids {
		call := c.server.nextCall()
		if call.Data["payload"] != float64(i) {
			t.Fatalf("call %d is %s", i, call.raw)
		}
		asked = append(asked, call)
	}
	slices.Reverse(asked)
	slices.Reverse(ids)
	for i, call := range asked { // in any order
		c.server.reply(call, `"payload":true`)
		c.socket.expectAnswer(ids[i], `{"payload":true}`)
	}
}

// A server keeps what it knows of a room under its id, so a call must not have another text of it.
func TestACallHasTheIDThatEventsHave(t *testing.T) {
	for _, by := range []string{"share", "room"} {
		t.Run(by, func(t *testing.T) {
			f := newGameFixture(t)
			ann, bob := f.guest("Ann"), f.guest("Bob")
			room := f.startedRoom(ann, bob)
			upper := strings.ToUpper(room)
			socket, server := f.dialRealtime(ann), f.dialServer(f.serverKey)
			if by == "room" {
				server.subscribe(upper, "")
			} else {
				share := fmt.Sprintf(`{"kinds":["rooms"],"share":{"of":64,"index":%d}}`, rooms.ShareNumber(room)%64)
				server.expectOK("", "game.subscribe", share)
			}
			for _, id := range []string{room, upper} {
				asked := socket.call(callBody(id, "x", ""))
				call := server.nextCall()
				if call.RoomID != room {
					t.Errorf("the server gets %s", call.raw)
				}
				server.reply(call, `"payload":1`)
				socket.expectAnswer(asked, `{"payload":1}`)
			}
			if by == "room" {
				server.expectOK("", "room.unsubscribe", roomBody(upper))
				redistest.Eventually(t, "the server has left the room", func() bool {
					return socket.request("room.call", callBody(room, "x", `,"timeoutMs":100`)).Error["code"] == "no_server"
				})
			}
		})
	}
}

func TestCallsHaveARateLimitOfTheirOwn(t *testing.T) {
	f := newFixtureOn(t, redistest.Single(t), func(d *handlers.Deps) {
		d.Limiter = ratelimit.New(redistest.Single(t), ratelimit.Limits{
			ratelimit.Call: {PerSecond: 1, Burst: 3, Scope: ratelimit.ScopeUser},
		})
	}).createGame()
	ann, bob := f.guest("Ann"), f.guest("Bob")
	room := f.startedRoom(ann, bob)
	s := f.dialRealtime(ann)
	for range 2 {
		s.expectError("no_server", "room.call", callBody(room, "x", ""))
	}
	f.expect(503, "POST", "/api/v1/game-session/call", ann.token, callBody(room, "x", ""))
	f.expect(429, "POST", "/api/v1/game-session/call", ann.token, callBody(room, "x", ""))
	if r := s.expectError("rate_limited", "room.call", callBody(room, "x", "")); r.problem("retryAfterSeconds") == nil {
		t.Errorf("the error is %s", r.raw)
	}
	s.expectOK("done", "room.send", callBody(room, "x", ""))
	f.expect(503, "POST", "/api/v1/game-session/call", bob.token, callBody(room, "x", ""))
}

func TestAMessageReachesAllSocketsOfAPlayer(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		other := f.newNode()
		ann, bob := f.guest("Ann"), f.guest("Bob")
		sockets := []*testSocket{f.dialRealtime(ann), f.dialRealtime(ann), other.dialRealtime(ann)}
		others := f.dialRealtime(bob)
		for _, s := range append(slices.Clone(sockets), others) { // their events begin at once
			s.expectOK("userResumed", "user.subscribe", `{"after":{"money":"0-0","progress":"0-0"}}`)
		}
		path := fmt.Sprintf("/api/v1/admin/users/%d/messages", ann.id)
		for i, key := range []string{f.serverKey, adminKey} {
			f.expect(202, "POST", path, key, fmt.Sprintf(`{"op":"invite","payload":{"n":%d}}`, i))
			for _, s := range sockets {
				e := s.nextMessage()
				if e.Data["op"] != "invite" || e.data("payload.n") != float64(i) || e.Seq != 0 || e.Position != "" {
					t.Errorf("the event is %s", e.raw)
				}
			}
		}
		_, otherKey := f.createOtherGame()
		f.expect(404, "POST", path, otherKey, `{"op":"x"}`)
		f.expect(403, "POST", path, ann.token, `{"op":"x"}`)
		f.expect(400, "POST", path, f.serverKey, `{"op":"`+strings.Repeat("a", 65)+`"}`)
		f.expect(413, "POST", path, f.serverKey, `{"op":"x","payload":"`+strings.Repeat("a", 4<<10)+`"}`)
		f.credit(bob, "gift")
		for others.expectEvent("user.balance").Data["reason"] != "gift" { // no message comes before it
		}
		f.expect(202, "POST", path, f.serverKey, `{"op":"last"}`)
		if e := sockets[0].nextMessage(); e.Data["op"] != "last" || e.Data["payload"] != nil {
			t.Errorf("the event is %s", e.raw)
		}
	})
}

// nextMessage returns the next message to the player.
func (s *testSocket) nextMessage() received {
	s.t.Helper()
	for {
		if e := s.nextEvent(); e.Type == "user.message" {
			return e
		}
	}
}

func TestACallMayTakeLongerThanOtherRequests(t *testing.T) {
	f := newGameFixture(t)
	c := f.newCallFixture()
	server := &http.Server{Handler: f.server, ReadTimeout: 200 * time.Millisecond, WriteTimeout: 200 * time.Millisecond}
	handlers.SetConnContext(server)
	listener := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	served := make(chan error)
	go func() { served <- handlers.Serve(server, listener) }()
	t.Cleanup(func() { _ = server.Close(); <-served })
	f.url = "http://" + listener.Addr().String()
	f.expectError(504, "server_timeout", "POST", "/api/v1/game-session/call", c.ann.token,
		callBody(c.room, "x", `,"timeoutMs":600`))

	// A client that goes away gives its place back.
	ctx, cancel := context.WithCancel(t.Context())
	request := testkit.Must(http.NewRequestWithContext(ctx, "POST", f.url+"/api/v1/game-session/call",
		strings.NewReader(callBody(c.room, "left", `,"timeoutMs":30000`))))(t)
	request.Header = http.Header{"Authorization": {"Bearer " + c.ann.token}, "Content-Type": {"application/json"}}
	ended := make(chan error, 1)
	go func() {
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			err = response.Body.Close()
		}
		ended <- err
	}()
	for c.server.nextCall().Data["op"] != "left" {
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the request ended with %v", err)
	}
	left := time.Now()
	redistest.Eventually(t, "the call is over", func() bool { return f.deps.Calls.Stats().Waiting == 0 })
	if took := time.Since(left); took > 10*time.Second {
		t.Errorf("the call was over %v after its client had gone", took)
	}
}
