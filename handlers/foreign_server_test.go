package handlers_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/tests/testkit"
	"go.yaml.in/yaml/v3"
)

// serverRequests returns the types of messages that a game's server may send, by asyncapi.yaml.
func serverRequests(t *testing.T) (types []string) {
	t.Helper()
	var doc struct {
		Operations map[string]struct {
			Action  string
			Channel struct {
				Ref string `yaml:"$ref"`
			}
			Messages []struct {
				Ref string `yaml:"$ref"`
			}
		}
	}
	testkit.Check(t, yaml.Unmarshal(handlers.AsyncAPI(), &doc))
	for _, operation := range doc.Operations {
		if operation.Action == "receive" && operation.Channel.Ref == "#/channels/server" {
			_, name, _ := strings.Cut(operation.Messages[0].Ref, "/messages/")
			types = append(types, name)
		}
	}
	return types
}

// Each message of a game's server names what belongs to another game, and nothing of it is there.
// What TestEachRoleGetsTheStatusOfTheMatrix is for routes, this is for messages.
func TestEachMessageOfAServerOfAnotherGameFindsNothing(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		f.expect(200, "PATCH", f.gamePath(), adminKey, `{"settings":{"feed":true}}`)
		otherGame, otherKey := f.createOtherGame()
		f.expect(200, "PATCH", fmt.Sprintf("/api/v1/admin/games/%d", otherGame), adminKey, `{"settings":{"feed":true}}`)
		ann, bob := f.guest("Ann"), f.guest("Bob")
		own, foreign := f.dialServer(f.serverKey), f.dialServer(otherKey)
		const all = `{"kinds":["rooms","seats","tournaments","money"]}`
		own.expectOK("gameSubscribed", "game.subscribe", all)
		begins := foreign.expectOK("gameSubscribed", "game.subscribe", all)

		waiting, started := f.createRoom(ann), f.startedRoom(ann, bob)
		_, cup, _ := strings.Cut(f.createTournament("swiss", ""), "tournaments/")
		f.credit(ann, "gift")
		own.expectOK("", "room.subscribe", roomBody(started))
		caller := f.dialRealtime(ann)
		caller.send(fmt.Sprintf(`{"id":"c","type":"room.call","data":{"roomId":%q,"op":"ask","payload":1}}`, started))
		asked := own.waitForEvent("room.call")

		for _, room := range []string{waiting, started} {
			rows := map[string][2]string{ // by the type of the message: its data, and the error
				"game.subscribe":         {`{"kinds":["rooms"],"after":{"e":"1-00000000"}}`, ""}, // see below
				"game.unsubscribe":       {`{}`, ""},
				"room.subscribe":         {roomBody(room), "room_not_found"},
				"room.unsubscribe":       {roomBody(room), ""}, // there is nothing to end
				"room.send":              {fmt.Sprintf(`{"roomId":%q,"op":"x"}`, room), "room_not_found"},
				"room.start":             {roomBody(room), "room_not_found"},
				"room.finish":            {resultsBody(room, ann, bob), "room_not_found"},
				"room.cancel":            {roomBody(room), "room_not_found"},
				"room.state.set":         {fmt.Sprintf(`{"roomId":%q,"patch":{"a":1}}`, room), "room_not_found"},
				"room.turn.set":          {fmt.Sprintf(`{"roomId":%q,"userId":%d,"seconds":60}`, room, ann.id), "room_not_found"},
				"room.reply":             {fmt.Sprintf(`{"callId":%q,"payload":666}`, asked.Data["callId"]), "call_not_found"},
				"tournament.subscribe":   {fmt.Sprintf(`{"tournamentId":%s}`, cup), "tournament_not_found"},
				"tournament.unsubscribe": {fmt.Sprintf(`{"tournamentId":%s}`, cup), ""},
			}
			if names := serverRequests(t); !slices.Equal(slices.Sorted(slices.Values(names)), slices.Sorted(maps.Keys(rows))) {
				t.Errorf("asyncapi.yaml has %v; the rows are %v", names, slices.Sorted(maps.Keys(rows)))
			}
			for _, name := range slices.Sorted(maps.Keys(rows)) {
				data, want := rows[name][0], rows[name][1]
				if strings.HasPrefix(name, "game.") {
					continue
				}
				r := foreign.request(name, data)
				if strings.HasSuffix(name, ".finish") {
					r = foreign.command("foreign-"+room, name, data)
				}
				if *r.OK != (want == "") || !*r.OK && r.problem("code") != want {
					t.Errorf("%s %s gets %s; want the error %q", name, data, r.raw, want)
				}
			}
		}

		// Nobody answered the call but the server that got it.
		own.expectOK("done", "room.reply", fmt.Sprintf(`{"callId":%q,"payload":1}`, asked.Data["callId"]))
		if r := caller.nextReply(); !*r.OK || fmt.Sprint(r.data("payload")) != "1" {
			t.Errorf("the player gets %s", r.raw)
		}
		f.expect(200, "POST", "/api/v1/game-session/finish", f.serverKey, resultsBody(started, ann, bob),
			"Idempotency-Key", "end")

		// An own room ends the wait: what the foreign server has heard until then is of its own game.
		eve := f.guestOf(otherGame, "Eve")
		mine := f.expect(201, "POST", "/api/v1/game-session/create", eve.token, `{"maxPlayers":2}`).text("roomId")
		for {
			e := foreign.nextEvent()
			if e.RoomID == mine {
				break
			}
			t.Errorf("the server of another game hears %s", e.raw)
		}
		// A position of another game's feed is not in its own feed.
		positions, _ := begins.Data["position"].(map[string]any)
		for feed := range positions {
			r := foreign.request("game.subscribe", fmt.Sprintf(`{"kinds":["rooms","money"],"after":{%q:"1-0k3f9zq1"}}`, feed))
			if !*r.OK || r.Data["mode"] != "gap" {
				t.Errorf("after a position of another game's feed %s: %s", feed, r.raw)
			}
		}
		foreign.expectOK("done", "game.unsubscribe", "{}")
	})
}

// waitForEvent returns the next event of a type and drops those before it.
func (s *testSocket) waitForEvent(eventType string) received {
	s.t.Helper()
	for {
		if e := s.nextEvent(); e.Type == eventType {
			return e
		}
	}
}
