package handlers_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// score submits a score for a player by the server, on the leaderboard "top".
func (f *fixture) score(p player, score int) {
	f.t.Helper()
	body := fmt.Sprintf(`{"userId":%d,"score":%d}`, p.id, score)
	f.expect(200, "POST", "/api/v1/leaderboards/top/scores", f.serverKey, body)
}

// order returns who is on a list of entries, and with how much: "7:30 8:20".
func order(list any) string {
	var all []string
	entries, _ := list.([]any)
	for i, one := range entries {
		e := one.(map[string]any)
		all = append(all, fmt.Sprintf("%v:%v", e["user"].(map[string]any)["id"], e["score"]))
		if first := entries[0].(map[string]any)["rank"].(float64); e["rank"] != first+float64(i) {
			all = append(all, fmt.Sprintf("rank %v", e["rank"]))
		}
	}
	return strings.Join(all, " ")
}

// waitShown reads changes of a leaderboard until its entries are in an order.
func (s *testSocket) waitShown(want string) received {
	s.t.Helper()
	return s.waitMember("entries", want)
}

func (s *testSocket) waitMember(member, want string) received {
	s.t.Helper()
	for {
		r := s.expectEvent("board.changed")
		if order(r.Data[member]) == want {
			return r
		}
	}
}

func TestALeaderboardIsWatchedOnTwoNodes(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ann, bob, cid := f.guest("Ann"), f.guest("Bob"), f.guest("Cid")
		f.createBoard(ann.id)
		here, there := f.dialRealtime(ann), f.newNode().dialRealtime(bob)
		first := here.expectOK("boardShown", "board.subscribe", `{"board":"top","top":2}`)
		if got := order(first.Data["entries"]); got != fmt.Sprintf("%d:10", ann.id) || first.Data["me"] != nil {
			t.Fatalf("the first state is %s", first.raw)
		}
		there.expectOK("boardShown", "board.subscribe", `{"board":"top","top":100,"around":3}`)
		f.score(bob, 30)
		f.score(cid, 20)
		all := fmt.Sprintf("%d:30 %d:20 %d:10", bob.id, cid.id, ann.id)
		here.waitShown(fmt.Sprintf("%d:30 %d:20", bob.id, cid.id))
		there.waitShown(all)
		if last := there.waitUntilMe(all); last.Data["version"].(float64) < first.Data["version"].(float64) {
			t.Errorf("the version went back: %s", last.raw)
		}
		f.expect(200, "POST", fmt.Sprintf("%s/leaderboards/top/entries/%d/hide", f.gamePath(), bob.id), f.serverKey,
			`{"reason":"cheats"}`)
		here.waitShown(fmt.Sprintf("%d:20 %d:10", cid.id, ann.id))
		here.expectOK("done", "board.unsubscribe", `{"board":"top"}`)
		here.expectOK("done", "board.unsubscribe", `{"board":"top"}`) // twice is once
		f.score(ann, 99)
		there.waitShown(fmt.Sprintf("%d:99 %d:20", ann.id, cid.id))
		here.expectOK("boardShown", "board.subscribe", `{"board":"top","top":1}`)
		if len(here.events) > 0 {
			t.Errorf("after its end the subscription had %s", here.events[0].raw)
		}
	})
}

// waitUntilMe reads changes until what is around the player is in an order.
func (s *testSocket) waitUntilMe(want string) received {
	s.t.Helper()
	return s.waitMember("me", want)
}

func TestWhatCannotBeWatched(t *testing.T) {
	f := newGameFixture(t)
	f.createBoard()
	otherGame, _ := f.createOtherGame()
	ann := f.guest("Ann")
	s, stranger := f.dialRealtime(ann), f.dialRealtime(f.guestOf(otherGame, "Zoe"))
	stranger.expectError("board_not_found", "board.subscribe", `{"board":"top","top":1}`)
	s.expectError("board_not_found", "board.subscribe", `{"board":"none","top":1}`)
	s.expectError("board_not_found", "board.subscribe", `{"board":"a{b}","top":1}`)
	for data, field := range map[string]string{
		`{}`:                                      "board",
		`{"board":"top"}`:                         "top",
		`{"board":"top","top":0}`:                 "top",
		`{"board":"top","top":-1}`:                "top",
		`{"board":"top","top":101}`:               "top",
		`{"board":"top","top":1,"around":0}`:      "around",
		`{"board":"top","top":1,"around":26}`:     "around",
		`{"board":"top","top":1,"gameId":1}`:      "gameId",
		`{"board":"top","top":1.5}`:               "top",
		`{"board":"top","top":1,"around":"five"}`: "around",
	} {
		r := s.expectError("invalid_request", "board.subscribe", data)
		errs, _ := r.Error["errors"].([]any)
		if len(errs) == 0 || errs[0].(map[string]any)["field"] != field {
			t.Errorf("%s: %s, want the field %s", data, r.raw, field)
		}
	}
	s.expectError("invalid_request", "board.unsubscribe", `{}`)
}

func TestAConnectionWatchesEightLeaderboards(t *testing.T) {
	f := newGameFixture(t)
	s := f.dialRealtime(f.guest("Ann"))
	for i := range 9 {
		f.expect(201, "POST", f.gamePath()+"/leaderboards", f.serverKey, fmt.Sprintf(`{"board":"b%d","name":"B"}`, i))
		data := fmt.Sprintf(`{"board":"b%d","top":10}`, i)
		if i == 8 {
			s.expectError("rate_limited", "board.subscribe", data)
			continue
		}
		s.expectOK("boardShown", "board.subscribe", data)
	}
	s.expectOK("boardShown", "board.subscribe", `{"board":"b0","top":20}`) // again, and not one more
	s.expectOK("done", "board.unsubscribe", `{"board":"b0"}`)
	s.expectOK("boardShown", "board.subscribe", `{"board":"b8","top":10}`)
}

func TestWatchersSeeTheNextSeason(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ann, bob := f.guest("Ann"), f.guest("Bob")
		f.createBoard(ann.id)
		s := f.newNode().dialRealtime(ann)
		s.expectOK("boardShown", "board.subscribe", `{"board":"top","top":10,"around":1}`)
		f.expect(200, "POST", f.gamePath()+"/leaderboards/top/seasons/1/end", f.serverKey, `{"reason":"a new week"}`)
		ended := s.expectEvent("board.season_ended")
		if ended.data("season.season") != 1. || ended.data("season.status") == "OPEN" || ended.data("season.entries") != 1. {
			t.Errorf("the end is %s", ended.raw)
		}
		started := s.expectEvent("board.season_started")
		if started.data("season.season") != 2. || started.data("season.status") != "OPEN" {
			t.Errorf("the beginning is %s", started.raw)
		}
		empty := s.expectEvent("board.changed")
		if empty.Data["season"] != 2. || order(empty.Data["entries"]) != "" {
			t.Errorf("the new season has %s", empty.raw)
		}
		f.score(bob, 5)
		if got := s.waitShown(fmt.Sprintf("%d:5", bob.id)); got.Data["season"] != 2. {
			t.Errorf("the score is in %s", got.raw)
		}
	})
}

func TestWatchersOfADeletedLeaderboardGetAnError(t *testing.T) {
	f := newGameFixture(t)
	f.createBoard()
	s := f.newNode().dialRealtime(f.guest("Ann"))
	s.expectOK("boardShown", "board.subscribe", `{"board":"top","top":10}`)
	f.expect(204, "DELETE", f.gamePath()+"/leaderboards/top", f.serverKey, "")
	got := s.nextReply()
	if got.ReplyTo != nil || got.problem("code") != "board_not_found" || got.problem("board") != "top" {
		t.Errorf("the watcher got %s", got.raw)
	}
	s.expectError("board_not_found", "board.subscribe", `{"board":"top","top":10}`)
}

func firstScore(r received) any {
	entries, _ := r.Data["entries"].([]any)
	if len(entries) == 0 {
		return nil
	}
	return entries[0].(map[string]any)["score"]
}

func TestWatchersKeepTheStateWhileTheStoreIsGone(t *testing.T) {
	server := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "always")
	db := testkit.Must(redisdb.Open(server.URL()))(t)
	t.Cleanup(func() { _ = db.Close() })
	f := newFixtureOn(t, db, nil).createGame()
	ann := f.guest("Ann")
	f.createBoard(ann.id)
	s := f.dialRealtime(ann)
	s.expectOK("boardShown", "board.subscribe", `{"board":"top","top":10}`)
	server.Kill()
	s.expectError("store_unavailable", "board.subscribe", `{"board":"top","top":9}`)
	testkit.Check(t, server.Restart())
	redistest.Eventually(t, "the store is back", func() bool {
		r := f.send("POST", "/api/v1/leaderboards/top/scores", f.serverKey, fmt.Sprintf(`{"userId":%d,"score":77}`, ann.id))
		return r.status == 200
	})
	r := s.nextEvent()
	for ; r.Type == "server.stale"; r = s.nextEvent() {
	}
	if r.Type != "board.changed" || firstScore(r) != 77. {
		t.Errorf("after the store was back the watcher got %s", r.raw)
	}
}
