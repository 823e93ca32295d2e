package handlers_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/players/auth"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// dialFor opens a socket that lasts as long as its ticket says, and reads its hello, if it has one.
func (f *fixture) dialFor(p player, path string, lasts time.Duration) *testSocket {
	f.t.Helper()
	ticket := testkit.Must(f.deps.Auth.IssueTicket(f.t.Context(), auth.Authentication{
		Caller:    principal.Caller{Role: principal.Player, UserID: p.id, GameID: f.game},
		ExpiresAt: time.Now().Add(lasts),
	}))(f.t)
	s := f.dial(path+"?ticket="+ticket.Secret, "")
	if path == realtimePath {
		s.next()
	}
	return s
}

func tokenBody(token string) string { return fmt.Sprintf(`{"accessToken":%q}`, token) }

// expectAlive sends a message of the path and gets its reply.
func (s *testSocket) expectAlive(path string) {
	s.t.Helper()
	if path == savePath {
		s.expectOK("slots", "list", "{}")
		return
	}
	s.expectError("room_not_found", "room.subscribe", roomBody(unknownRoom))
}

func TestASocketGoesOnUnderANewToken(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	for _, path := range []string{realtimePath, savePath} {
		const lasts = 500 * time.Millisecond
		s, other := f.dialFor(ann, path, lasts), f.dialFor(ann, path, lasts)
		got := s.expectOK("refreshed", "auth.refresh", tokenBody(ann.token))
		until, err := time.Parse(time.RFC3339, got.data("expiresAt").(string))
		if rest := time.Until(until); err != nil || rest < 14*time.Minute || rest > 15*time.Minute+time.Second {
			t.Errorf("the socket lasts until %v", got.data("expiresAt"))
		}
		if code := other.waitCloseCode(); code != 4001 {
			t.Errorf("the other socket was closed with %d", code)
		}
		s.expectAlive(path)

		short := testkit.Must(f.deps.Auth.IssueAccessToken(t.Context(), f.game, ann.id, 2*time.Second))(t)
		got = s.expectOK("refreshed", "auth.refresh", tokenBody(short))
		end, err := time.Parse(time.RFC3339, got.data("expiresAt").(string))
		if code := s.waitCloseCode(); code != 4001 || err != nil || time.Now().Before(end) {
			t.Errorf("closed with %d at %v, want 4001 after %v: %v", code, time.Now(), end, err)
		}
	}
}

func TestASocketTakesNoTokenButItsPlayers(t *testing.T) {
	f := newGameFixture(t)
	ann, bob := f.guest("Ann"), f.guest("Bob")
	game, _ := f.createOtherGame()
	expired := testkit.Must(f.deps.Auth.IssueAccessToken(t.Context(), f.game, ann.id, -time.Minute))(t)
	ended := f.expect(201, "POST", "/api/v1/auth/guest", "",
		fmt.Sprintf(`{"gameId":%d,"deviceSecret":%q}`, f.game, deviceSecret))
	f.expect(204, "POST", "/api/v1/auth/logout", ended.text("accessToken"), "")
	for _, path := range []string{realtimePath, savePath} {
		s := f.dialFor(ann, path, 3*time.Second)
		for _, c := range []struct{ name, code, data string }{
			{"another player's", "forbidden", tokenBody(bob.token)},
			{"one of another game", "forbidden", tokenBody(f.guestOf(game, "Ann").token)},
			{"a server key", "forbidden", tokenBody(f.serverKey)},
			{"the admin key", "forbidden", tokenBody(adminKey)},
			{"none of ours", "unauthenticated", tokenBody("no token")},
			{"one of an ended session", "unauthenticated", tokenBody(ended.text("accessToken"))},
			{"an expired one", "token_expired", tokenBody(expired)},
			{"none", "invalid_request", `{}`},
			{"a number", "invalid_request", `{"accessToken":7}`},
			{"too much", "invalid_request", `{"accessToken":"x","refreshToken":"y"}`},
		} {
			got := s.request("auth.refresh", c.data)
			if *got.OK || got.Error["code"] != c.code {
				t.Errorf("%s: with %s: %s, want %s", path, c.name, got.raw, c.code)
			}
		}
		s.expectAlive(path)
		if code := s.waitCloseCode(); code != 4001 { // at the end of the token that it had
			t.Errorf("%s was closed with %d", path, code)
		}
	}
}

func TestTheSessionOfTheNewTokenEndsTheSocket(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		far := f.newNode()
		signIn := func() *httpResult {
			return f.expect(201, "POST", "/api/v1/auth/guest", "",
				fmt.Sprintf(`{"gameId":%d,"deviceSecret":%q}`, f.game, deviceSecret))
		}
		first, second := signIn(), signIn()
		for _, path := range []string{realtimePath, savePath} {
			s := far.dial(path, first.text("accessToken"))
			if path == realtimePath {
				s.next()
			}
			left := far.dial(path, first.text("accessToken"))
			s.expectOK("refreshed", "auth.refresh", tokenBody(second.text("accessToken")))
			f.expect(204, "POST", "/api/v1/auth/logout", first.text("accessToken"), "")
			if code := left.waitCloseCode(); code != 4001 {
				t.Errorf("a socket of the ended session was closed with %d", code)
			}
			s.expectAlive(path)
			f.expect(204, "POST", "/api/v1/auth/logout", second.text("accessToken"), "")
			if code := s.waitCloseCode(); code != 4001 {
				t.Errorf("after the logout of its session: closed with %d", code)
			}
			first, second = signIn(), signIn()
		}
		// A suspension ends it too.
		known := f.expect(201, "POST", "/api/v1/auth/exchange", f.serverKey, `{"externalId":"cat"}`)
		cat := player{id: known.id("user.id"), token: known.text("accessToken")}
		s := far.dialFor(cat, realtimePath, time.Hour)
		s.expectOK("refreshed", "auth.refresh", tokenBody(cat.token))
		f.expect(200, "POST", fmt.Sprintf("/api/v1/admin/users/%d/suspend", cat.id), adminKey, `{"reason":"a bot"}`)
		if code := s.waitCloseCode(); code != 4403 {
			t.Errorf("after the suspension: closed with %d", code)
		}
	})
}

// roomsBody returns the data of room.subscribe for several rooms, which may have positions after
// a blank.
func roomsBody(rooms ...string) string {
	items := make([]string, len(rooms))
	for i, room := range rooms {
		id, after, _ := strings.Cut(room, " ")
		items[i] = fmt.Sprintf(`{"roomId":%q}`, id)
		if after != "" {
			items[i] = fmt.Sprintf(`{"roomId":%q,"after":%q}`, id, after)
		}
	}
	return `{"rooms":[` + strings.Join(items, ",") + `]}`
}

func (f *fixture) createFreeRooms(host player, count int) (rooms []string) {
	f.t.Helper()
	for range count {
		created := f.expect(201, "POST", "/api/v1/game-session/create", host.token, `{"maxPlayers":2}`)
		rooms = append(rooms, created.text("roomId"))
	}
	return rooms
}

func TestThirtyRoomsInOneSubscribe(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		far := f.newNode()
		ann, bob := f.guest("Ann"), f.guest("Bob")
		otherGame, _ := f.createOtherGame()
		rooms := f.createFreeRooms(ann, 29)
		foreign := f.createFreeRooms(f.guestOf(otherGame, "Eve"), 1)[0]
		hidden := f.expect(201, "POST", "/api/v1/game-session/create", ann.token,
			`{"maxPlayers":4,"visibility":"private"}`).text("roomId")
		f.expect(200, "POST", "/join", bob.token, roomBody(rooms[1]))

		s := far.dialRealtime(bob)
		wanted := slices.Insert(slices.Clone(rooms), 7, foreign)
		wanted[1] += " 0-0" // resumes
		got := s.expectOK("roomsSubscribed", "room.subscribe", roomsBody(wanted...))
		items, _ := got.data("rooms").([]any)
		if len(items) != 30 {
			t.Fatalf("the reply is %s", got.raw)
		}
		for i, item := range items {
			item := item.(map[string]any)
			mode := "snapshot"
			if i == 1 {
				mode = "resume"
			}
			id, _, _ := strings.Cut(wanted[i], " ")
			switch {
			case item["roomId"] != id:
				t.Errorf("item %d is %v", i, item)
			case i == 7:
				if memberOf(item, "error.code") != "room_not_found" || item["mode"] != nil {
					t.Errorf("the foreign room is %v", item)
				}
			case item["mode"] != mode || item["position"] == nil || item["error"] != nil:
				t.Errorf("item %d is %v", i, item)
			case mode == "snapshot" && memberOf(item, "room.roomId") != id:
				t.Errorf("item %d has the room %v", i, item["room"])
			}
		}
		for _, kind := range []string{"room.created", "room.joined"} {
			if got := s.expectEvent(kind); got.RoomID != rooms[1] {
				t.Errorf("got %s", got.raw)
			}
		}
		for _, room := range rooms { // of all of them the events follow
			f.expect(200, "POST", "/api/v1/game-session/ready", ann.token, fmt.Sprintf(`{"roomId":%q,"ready":true}`, room))
			if got := s.expectEvent("room.ready"); got.RoomID != room {
				t.Errorf("got %s, want the event of %s", got.raw, room)
			}
		}

		// What is wrong with a room is the error of that room alone; a connection has 32.
		more := f.createFreeRooms(ann, 4)
		got = s.expectOK("roomsSubscribed", "room.subscribe", roomsBody(
			strings.ToUpper(more[0]), "", "", "no id", hidden, rooms[0], more[1], more[2], more[3]))
		var codes []any
		items, _ = got.data("rooms").([]any)
		for _, item := range items {
			codes = append(codes, memberOf(item.(map[string]any), "error.code"))
		}
		want := []any{
			nil, "invalid_request", "invalid_request", "invalid_request", "room_not_found", nil, nil, nil,
			"rate_limited",
		}
		if !slices.Equal(codes, want) {
			t.Errorf("the errors are %v, want %v", codes, want)
		}
		for _, data := range []string{
			`{"rooms":[]}`, `{"rooms":null,"after":"0-0"}`, `{"rooms":{}}`, `{"rooms":[1]}`, `{"rooms":[{"room":"x"}]}`,
			`{"roomId":"` + rooms[0] + `","rooms":[{"roomId":"` + rooms[1] + `"}]}`, roomsBody(make([]string, 33)...),
		} {
			s.expectError("invalid_request", "room.subscribe", data)
		}
	})
}

func TestARoomThatIsTwiceInOneSubscribeRefusesAll(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	rooms := f.createFreeRooms(ann, 2)
	s := f.dialRealtime(ann)
	got := s.expectError("invalid_request", "room.subscribe", roomsBody(rooms[0], rooms[1], strings.ToUpper(rooms[0])))
	if field := memberOf(got.Error["errors"].([]any)[0].(map[string]any), "field"); field != "rooms[2].roomId" {
		t.Errorf("the error names %v: %s", field, got.raw)
	}
	f.expect(200, "POST", "/api/v1/game-session/ready", ann.token, fmt.Sprintf(`{"roomId":%q,"ready":true}`, rooms[0]))
	s.subscribe(rooms[1], "")
	f.expect(200, "POST", "/api/v1/game-session/ready", ann.token, fmt.Sprintf(`{"roomId":%q,"ready":true}`, rooms[1]))
	if got := s.expectEvent("room.ready"); got.RoomID != rooms[1] {
		t.Errorf("the refused message has subscribed: %s", got.raw)
	}
}

// The reply stands before the first event of each room, whatever happens meanwhile.
func TestNoEventOfARoomComesBeforeTheReplyForAll(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		nodes := []*fixture{f, f.newNode()}
		ann, bob := f.guest("Ann"), f.guest("Bob")
		rooms := f.createFreeRooms(ann, 8)
		stop := make(chan struct{})
		var changes sync.WaitGroup
		changes.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				body := fmt.Sprintf(`{"roomId":%q,"ready":%t}`, rooms[i%8], i/8%2 == 0)
				if a := nodes[i%2].send("POST", "/api/v1/game-session/ready", ann.token, body); a.status != 200 {
					t.Errorf("ready: %s", a.raw)
					return
				}
			}
		})
		defer changes.Wait()
		defer close(stop)
		last := map[string]received{} // by room; kept from connection to connection
		for round := range 12 {
			s := nodes[round%2].dialRealtime(bob)
			wanted := slices.Clone(rooms)
			for i, room := range rooms {
				if pos := last[room].Position; pos != "" && i%2 == 0 {
					wanted[i] += " " + pos
				}
			}
			got := s.expectOK("roomsSubscribed", "room.subscribe", roomsBody(wanted...))
			if len(s.events) > 0 {
				t.Fatalf("before the reply came %s", s.events[0].raw)
			}
			for i, item := range got.data("rooms").([]any) {
				item := item.(map[string]any)
				begins := last[rooms[i]]
				if item["mode"] == "snapshot" {
					seq, _ := memberOf(item, "room.seq").(float64)
					if int64(seq) < begins.Seq {
						t.Errorf("the snapshot of seq %v is older than %d", seq, begins.Seq)
					}
					begins.Seq = int64(seq)
				} else if item["position"] != begins.Position {
					t.Errorf("room %d resumes at %v, want %s", i, item["position"], begins.Position)
				}
				last[rooms[i]] = begins
			}
			for range 20 {
				e := s.nextEvent()
				if e.Seq != last[e.RoomID].Seq+1 {
					t.Fatalf("after seq %d came %s", last[e.RoomID].Seq, e.raw)
				}
				last[e.RoomID] = e
			}
			s.disconnect()
		}
	})
}

func TestASubscribeCountsForEachOfItsRooms(t *testing.T) {
	_, s := newNodeWithLimits(t, realtimePath, ratelimit.Limits{
		ratelimit.Read: {PerSecond: 1, Burst: 20, Scope: ratelimit.ScopeUser},
	})
	if n := s.rejectedBy(15, "room.subscribe", roomsBody(make([]string, 10)...)); n < 10 {
		t.Errorf("%d of 15 messages with ten rooms each were refused by a limit of 20", n)
	}
}

func TestHelloHasTheLimitsOfTheConnection(t *testing.T) {
	f := newGameFixture(t)
	hello := f.dial(realtimePath, f.guest("Ann").token).next()
	want := map[string]float64{
		"frameBytes": 16384, "framesPerSecond": 60, "burst": 120, "subscriptions": 32, "roomsPerSubscribe": 32, "sockets": 10,
		"boards": 8,
	}
	for name, figure := range want {
		if got := hello.data("limits." + name); got != figure {
			t.Errorf("%s is %v, want %v", name, got, figure)
		}
	}
}

// userFollower receives a player's own events over many connections.
type userFollower struct {
	t     *testing.T
	after map[string]received // the last event of "money" and of "progress"
}

func (u *userFollower) body() string {
	var members []string
	for _, list := range []string{"money", "progress"} {
		if pos := u.after[list].Position; pos != "" {
			members = append(members, fmt.Sprintf("%q:%q", list, pos))
		}
	}
	return `{"after":{` + strings.Join(members, ",") + `}}`
}

// take takes the next event, which must be the next one of its list.
func (u *userFollower) take(e received) {
	u.t.Helper()
	list := "money"
	if e.Type == "user.progress" {
		list = "progress"
	}
	if e.Position == "" || e.Seq != u.after[list].Seq+1 {
		u.t.Fatalf("after seq %d of %s came %s", u.after[list].Seq, list, e.raw)
	}
	u.after[list] = e
}

func TestAPlayersEventsResumeOnAnyNode(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		nodes := []*fixture{f, f.newNode()}
		ann := f.guest("Ann")
		const turns = 40
		var changes sync.WaitGroup
		changes.Go(func() {
			saves := nodes[1].dial(savePath, ann.token)
			for i := range turns {
				nodes[i%2].credit(ann, fmt.Sprint("quest-", i))
				saves.expectOK("saved", "save", fmt.Sprintf(`{"slot":"main","state":{"turn":%d},"version":%d}`, i, i))
			}
		})
		defer changes.Wait()
		u := &userFollower{t, map[string]received{}}
		// Before the first event the position is 0-0. The sign-up grant was the first of the money.
		u.after["money"], u.after["progress"] = received{Position: "0-0"}, received{Position: "0-0"}
		for conns := 0; u.after["money"].Seq < turns+1 || u.after["progress"].Seq < turns; conns++ {
			s := nodes[conns%2].dialRealtime(ann)
			got := s.expectOK("userResumed", "user.subscribe", u.body())
			if got.data("position.money") != u.after["money"].Position ||
				got.data("position.progress") != u.after["progress"].Position {
				t.Errorf("%v resumes at %s", u.body(), got.raw)
			}
			for range 9 { // events, then it is disconnected
				u.take(s.nextEvent())
				if u.after["money"].Seq == turns+1 && u.after["progress"].Seq == turns {
					break
				}
			}
			s.disconnect()
		}
	})
}

func TestAPlayersEventsThatAreGoneMustBeRead(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ann := f.guest("Ann")
		s := f.dialRealtime(ann)
		expect := func(s *testSocket, data, mode string, read ...any) received {
			t.Helper()
			reply := map[string]string{"resume": "userResumed", "snapshot": "userAnew"}[mode]
			got := s.expectOK(reply, "user.subscribe", data)
			list, _ := got.data("read").([]any)
			if got.data("mode") != mode || !slices.Equal(list, read) {
				t.Errorf("%s: %s, want %s %v", data, got.raw, mode, read)
			}
			return got
		}
		expect(s, `{}`, "snapshot", "wallet", "saves")
		expect(s, `{"after":{}}`, "snapshot", "wallet", "saves")
		got := expect(s, `{"after":{"progress":"0-0"}}`, "snapshot", "wallet")
		money := got.data("position.money").(string)
		expect(s, fmt.Sprintf(`{"after":{"money":%q}}`, money), "snapshot", "saves")
		expect(s, fmt.Sprintf(`{"after":{"money":%q,"progress":"0-0"}}`, money), "resume")
		for _, lost := range []string{"1-00000001", "99-00000001", "nonsense"} { // of a history that a failover undid
			expect(s, fmt.Sprintf(`{"after":{"money":%q,"progress":"0-0"}}`, lost), "snapshot", "wallet")
		}
		// After a snapshot the events go on with the next one.
		f.credit(ann, "quest")
		if e := s.expectEvent("user.balance"); e.Data["reason"] != "quest" {
			t.Errorf("got %s", e.raw)
		}
		f.dial(savePath, ann.token).expectOK("saved", "save", `{"slot":"main","state":{}}`)
		saved := s.expectEvent("user.progress")
		expect(s, fmt.Sprintf(`{"after":{"money":%q,"progress":%q}}`, money, saved.Position), "resume")
		s.expectEvent("user.balance") // again: what came after the position

		// The events of saves go after an hour. A list that is empty proves nothing.
		testkit.Check(t, f.db.Client.Del(t.Context(), keys.UserEvents(ann.id)).Err())
		far := f.newNode()
		after := fmt.Sprintf(`{"after":{"money":%q,"progress":"0-0"}}`, money)
		expect(far.dialRealtime(ann), after, "snapshot", "saves")

		for _, data := range []string{`{"after":1}`, `{"after":{"money":1}}`, `{"after":{"rooms":"0-0"}}`, `{"since":{}}`} {
			s.expectError("invalid_request", "user.subscribe", data)
		}
	})
}

func TestUserEventsCannotResumeWithoutTheStore(t *testing.T) {
	store := redistest.StartForTest(t)
	db := testkit.Must(redisdb.Open(store.URL()))(t)
	t.Cleanup(func() { _ = db.Close() })
	f := newFixtureOn(t, db, nil).createGame()
	ann := f.guest("Ann")
	s, room := f.dialRealtime(ann), f.createFreeRooms(ann, 1)[0]
	store.Kill()
	s.expectError("store_unavailable", "user.subscribe", `{"after":{"money":"0-0","progress":"0-0"}}`)
	got := s.expectOK("roomsSubscribed", "room.subscribe", roomsBody(room))
	if code := memberOf(got.data("rooms").([]any)[0].(map[string]any), "error.code"); code != "store_unavailable" {
		t.Errorf("got %s", got.raw)
	}
}

// A message without an id is not acknowledged, and nobody waits for it. If it was not sent, its
// sender gets an error all the same.
func TestAMessageWithoutAnIDThatTheStoreDoesNotTakeIsAnError(t *testing.T) {
	store := redistest.StartForTest(t)
	db := testkit.Must(redisdb.Open(store.URL()))(t)
	t.Cleanup(func() { _ = db.Close() })
	f := newFixtureOn(t, db, nil).createGame()
	ann, bob := f.guest("Ann"), f.guest("Bob")
	room := f.createRoom(ann)
	f.expect(200, "POST", "/api/v1/game-session/join", bob.token, roomBody(room))
	s, other := f.dialRealtime(ann), f.dialRealtime(bob)
	s.subscribe(room, "")
	other.subscribe(room, "")
	send := fmt.Sprintf(`{"type":"room.send","data":{"roomId":%q,"op":"m"}}`, room)
	s.send(send)
	if got := other.expectEvent("room.message"); got.Data["op"] != "m" {
		t.Errorf("got %s", got.raw)
	}
	store.Kill()
	s.send(send)
	if got := s.nextReply(); got.ReplyTo != nil || got.Error["code"] != "store_unavailable" {
		t.Errorf("got %s", got.raw)
	}
}
