package handlers_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/feed"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// turnFeedOn makes the rooms of a game feed its servers. Other nodes know it within a second.
func (f *fixture) turnFeedOn() *fixture {
	f.t.Helper()
	f.expect(200, "PATCH", f.gamePath(), adminKey, `{"settings":{"feed":true}}`)
	return f
}

// followGame subscribes to the feeds of the game and returns the mode and the positions.
func (s *testSocket) followGame(data string) (mode string, positions map[string]string) {
	s.t.Helper()
	r := s.request("game.subscribe", data)
	if !*r.OK {
		s.t.Fatalf("game.subscribe %s: %s", data, r.raw)
	}
	recordExchanged(s.t, "gameSubscribed", r.raw)
	positions = map[string]string{}
	for name, position := range r.Data["position"].(map[string]any) {
		positions[name] = position.(string)
	}
	return r.Data["mode"].(string), positions
}

// expectFeed requires the next events of a feed, of a room unless that is "". It keeps the last
// positions.
func (s *testSocket) expectFeed(positions map[string]string, room string, types ...string) {
	s.t.Helper()
	for _, want := range types {
		e := s.nextEvent()
		if e.Type != want || e.Feed == "" || room != "" && e.RoomID != room {
			s.t.Fatalf("got %s, want %s of the room %s", e.raw, want, room)
		}
		positions[e.Feed] = e.Position
	}
}

func afterBody(t *testing.T, kinds string, positions map[string]string) string {
	t.Helper()
	return fmt.Sprintf(`{"kinds":[%s],"after":%s}`, kinds, testkit.Must(wire.Marshal(positions))(t))
}

func TestServersHearTheRoomsOfTheirGameOnEveryNode(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		f.turnFeedOn()
		other := f.newNode()
		ann, bob := f.guest("Ann"), f.guest("Bob")
		_, otherKey := f.createOtherGame()
		foreign := f.dialServer(otherKey)
		foreign.followGame(`{"kinds":["rooms","seats","tournaments","money"]}`)
		all, roomsOnly := f.dialServer(f.serverKey), other.dialServer(f.serverKey)
		mode, allAt := all.followGame(`{"kinds":["rooms","seats","tournaments"]}`)
		_, roomsAt := roomsOnly.followGame(`{"kinds":["rooms"]}`)
		if mode != "live" || allAt["e"] != "0-0" || allAt["r0"] == "" || allAt["money"] != "" {
			t.Errorf("it begins %s at %v", mode, allAt)
		}
		paid := f.startedRoom(ann, bob)
		all.expectFeed(allAt, paid, "room.created", "room.joined", "room.started")
		roomsOnly.expectFeed(roomsAt, paid, "room.created", "room.started")
		free := f.expect(201, "POST", "/api/v1/game-session/create", ann.token, `{"maxPlayers":2}`).text("roomId")
		all.expectFeed(allAt, free, "room.created")
		if r := all.command("end", "room.finish", resultsBody(paid, ann, bob)); !*r.OK {
			t.Fatalf("finish: %s", r.raw)
		}
		all.expectFeed(allAt, paid, "room.finished")
		roomsOnly.expectFeed(roomsAt, free, "room.created")
		roomsOnly.expectFeed(roomsAt, paid, "room.finished")

		// It goes on where it was, on the other node.
		all.disconnect()
		f.expect(200, "POST", "/api/v1/game-session/join", bob.token, roomBody(free))
		resumed := other.dialServer(f.serverKey)
		mode, at := resumed.followGame(afterBody(t, `"rooms","seats"`, allAt))
		if mode != "resume" || !maps.Equal(at, allAt) {
			t.Errorf("it goes on %s at %v, want %v", mode, at, allAt)
		}
		resumed.expectFeed(at, free, "room.joined")
		f.expect(200, "POST", "/api/v1/game-session/start", ann.token, roomBody(free))
		resumed.expectFeed(at, free, "room.started")

		// A lost position in one feed is a gap; the others resume.
		lost := maps.Clone(allAt)
		lost["e"] = "1-aaaaaaaa"
		gap := f.dialServer(f.serverKey)
		if mode, at := gap.followGame(afterBody(t, `"rooms","seats"`, lost)); mode != "gap" || at["e"] != allAt["e"] {
			t.Errorf("a lost position is %s at %v", mode, at)
		}
		gap.expectFeed(at, free, "room.joined", "room.started")

		resumed.expectOK("", "game.unsubscribe", "{}")
		f.startedRoom(bob, ann)
		gap.expectFeed(at, "", "room.created")
		resumed.expectOK("", "room.unsubscribe", roomBody(free)) // no event came before the reply
		foreign.expectOK("", "room.unsubscribe", roomBody(free))
		for _, quiet := range []*testSocket{resumed, foreign} {
			if len(quiet.events) > 0 {
				t.Errorf("a server that must hear nothing heard %s", quiet.events[0].raw)
			}
		}
	})
}

func TestSharesDivideTheRoomsOfAGame(t *testing.T) {
	f := newGameFixture(t).turnFeedOn()
	ann := f.guest("Ann")
	const of = 3
	var servers []*testSocket
	for i := range of {
		s := f.dialServer(f.serverKey)
		s.followGame(fmt.Sprintf(`{"kinds":["rooms"],"share":{"of":%d,"index":%d}}`, of, i))
		servers = append(servers, s)
	}
	for range 12 {
		room := f.expect(201, "POST", "/api/v1/game-session/create", ann.token, `{"maxPlayers":2}`).text("roomId")
		servers[feed.ShareOf(room, of)].expectFeed(map[string]string{}, room, "room.created")
		f.expect(200, "POST", "/api/v1/game-session/cancel", f.serverKey, roomBody(room))
		servers[feed.ShareOf(room, of)].expectFeed(map[string]string{}, room, "room.cancelled")
	}
	for _, s := range servers {
		s.expectOK("", "game.unsubscribe", "{}")
		if len(s.events) > 0 {
			t.Errorf("a server got %s of another share", s.events[0].raw)
		}
	}
}

func TestServersHearTheMoneyOfTheirGame(t *testing.T) {
	f := newGameFixture(t)
	other := f.newNode()
	ann, bob := f.guest("Ann"), f.guest("Bob")
	s, second := f.dialServer(f.serverKey), other.dialServer(f.serverKey)
	mode, at := s.followGame(`{"kinds":["money"]}`)
	if names := slices.Collect(maps.Keys(at)); mode != "live" || !slices.Equal(names, []string{"money"}) {
		t.Errorf("it begins %s at %v", mode, at)
	}
	start := at["money"]
	second.followGame(`{"kinds":["money"]}`)
	begun := time.Now()
	f.credit(ann, "gift")
	for _, server := range []*testSocket{s, second} {
		e := server.expectEvent("ledger.entry")
		if e.Feed != "money" || e.data("reason") != "gift" || e.data("gameId") != float64(f.game) ||
			e.data("tokenId") != "GOLD" {
			t.Errorf("the entry is %s", e.raw)
		}
		at["money"] = e.Position
	}
	if took := time.Since(begun); took > 2*time.Second { // one, and what a busy machine needs
		t.Errorf("it took %v", took)
	}
	// Stakes and payouts are not among them.
	room := f.startedRoom(ann, bob)
	s.command("end", "room.finish", resultsBody(room, ann, bob))
	f.credit(bob, "bonus")
	for _, server := range []*testSocket{s, second} {
		for e := server.expectEvent("ledger.entry"); e.data("reason") != "bonus"; e = server.expectEvent("ledger.entry") {
			if reason := e.data("reason"); reason == "entry" || reason == "payout" || reason == "refund" {
				t.Errorf("got %s", e.raw)
			}
		}
	}
	third := f.newNode().dialServer(f.serverKey)
	if mode, _ := third.followGame(afterBody(t, `"money"`, map[string]string{"money": start})); mode != "resume" {
		t.Errorf("from the start it is %s", mode)
	}
	if e := third.expectEvent("ledger.entry"); e.data("reason") != "gift" {
		t.Errorf("got %s", e.raw)
	}
	for _, lost := range []string{"1-aaaaaaaa", "9999-aaaaaaaa"} {
		if mode, _ := third.followGame(afterBody(t, `"money"`, map[string]string{"money": lost})); mode != "gap" {
			t.Errorf("after %s it is %s", lost, mode)
		}
	}
}

// A share that gets few events still learns how far its feed is, and an entry that this node cannot
// read, such as one of a newer node, is a gap.
func TestFeedTellsItsPositionAndItsGaps(t *testing.T) {
	f := newGameFixture(t)
	s := f.dialServer(f.serverKey)
	s.followGame(`{"kinds":["tournaments"]}`)
	list := keys.Feed(keys.EconomyShard(f.game), f.game)
	write := func(number int, entry string) {
		t.Helper()
		text := fmt.Sprintf("%d-0k3f9zq1|%s", number, entry)
		testkit.Must(f.db.Client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			p.RPush(t.Context(), list, text)
			p.Do(t.Context(), f.db.PublishCommand, list, text)
			return nil
		}))(t)
	}
	for number := range 600 {
		write(number+1, "room.ready|1764264746123|"+unknownRoom+"|4|4|7|1")
	}
	if e := s.expectEvent("game.position"); e.Feed != "e" || e.Position < "512" {
		t.Errorf("got %s", e.raw)
	}
	write(601, "room.of_a_newer_node|1764264746123|"+unknownRoom+"|4|4|7|1")
	if e := s.expectEvent("game.gap"); e.Feed != "e" || e.Position != "601-0k3f9zq1" {
		t.Errorf("got %s", e.raw)
	}
}

func TestInvalidSubscriptionsToAGameAreRefused(t *testing.T) {
	f := newGameFixture(t)
	s := f.dialServer(f.serverKey)
	for data, field := range map[string]string{
		`{}`:                          "kinds",
		`{"kinds":[]}`:                "kinds",
		`{"kinds":["chat"]}`:          "kinds[0]",
		`{"kinds":["rooms","rooms"]}`: "kinds[1]",
		`{"kinds":["rooms"],"share":{"of":65,"index":0}}`: "share.of",
		`{"kinds":["rooms"],"share":{"of":0,"index":0}}`:  "share.of",
		`{"kinds":["rooms"],"share":{"of":2,"index":2}}`:  "share.index",
		`{"kinds":["rooms"],"share":{"of":2,"index":-1}}`: "share.index",
		`{"kinds":["rooms"],"more":1}`:                    "more",
	} {
		r := s.expectError("invalid_request", "game.subscribe", data)
		if !strings.Contains(string(r.raw), `"field":"`+field+`"`) {
			t.Errorf("%s gets %s, want the field %s", data, r.raw, field)
		}
	}
	f.dialRealtime(f.guest("Ann")).expectError("invalid_request", "game.subscribe", `{"kinds":["rooms"]}`)
}
