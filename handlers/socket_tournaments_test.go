package handlers_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
)

// tournamentID returns the id in the path of a tournament.
func tournamentID(path string) int64 {
	id, _ := strconv.ParseInt(path[strings.LastIndexByte(path, '/')+1:], 10, 64)
	return id
}

// followTournament subscribes to a tournament. after is the position to resume from, or "".
func (s *testSocket) followTournament(path, after string) received {
	s.t.Helper()
	data, reply := fmt.Sprintf(`{"tournamentId":%d}`, tournamentID(path)), "tournamentAnew"
	if after != "" {
		data, reply = fmt.Sprintf(`{"tournamentId":%d,"after":%q}`, tournamentID(path), after), "resumed"
	}
	return s.expectOK(reply, "tournament.subscribe", data)
}

func TestEventsOfATournamentOnAnotherNode(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		far := f.newNode()
		ann, bob, cid := f.guest("Ann"), f.guest("Bob"), f.guest("Cid")
		path := f.createTournament("single_elimination", `,"seeding":"joined","checkInOpensAt":"2026-01-01T00:00:00Z"`)
		watcher := far.dialRealtime(f.guest("Eve"))
		start := watcher.followTournament(path, "")
		if start.data("tournament.status") != "REGISTRATION" || start.data("tournament.seq") != 2. {
			t.Fatalf("the subscription begins with %s", start.raw)
		}
		annsSocket := far.dialRealtime(ann)
		for _, p := range []player{ann, bob, cid} {
			f.expect(200, "POST", path+"/join", p.token, "")
		}
		f.expect(200, "POST", path+"/leave", cid.token, "")
		f.driveTournaments()
		f.expect(200, "POST", path+"/check-in", ann.token, "")
		f.expect(200, "POST", path+"/check-in", bob.token, "")
		f.expect(200, "POST", f.staffTournament(path)+"/start", adminKey, "")
		f.driveTournaments()
		match := annsSocket.expectEvent("user.match")
		room, _ := match.data("roomId").(string)
		if match.data("tournamentId") != float64(tournamentID(path)) || match.data("matchId") != "r1m1" || room == "" {
			t.Errorf("the call to the match is %s", match.raw)
		}
		f.driveTournaments() // each player gets the call once
		f.winMatch(room, bob, ann)
		f.waitForTournament(path, ann.token, "FINISHED")
		f.credit(ann, "afterwards")
		annsSocket.expectEvent("user.balance")

		story := []string{
			"joined", "joined", "joined", "left", "opened", "checked_in", "checked_in", "started", "round_started",
			"match_ready", "match_decided", "settled",
		}
		idMember := fmt.Sprintf(`"tournamentId":%d,`, tournamentID(path))
		var middle string
		for i, kind := range story {
			got := watcher.expectEvent("tournament." + kind)
			if got.Seq != int64(i+3) || !strings.Contains(string(got.raw), idMember) {
				t.Errorf("event %d is %s", i, got.raw)
			}
			switch kind {
			case "checked_in":
				middle = got.Position
			case "match_decided":
				if got.data("winnerId") != float64(bob.id) || got.data("reason") != "played" {
					t.Errorf("the match ended as %s", got.raw)
				}
			}
		}

		// Another socket goes on from the position on another node, and gets nothing once it has left.
		again := f.dialRealtime(cid)
		again.followTournament(path, middle)
		for _, kind := range story[7:] {
			again.expectEvent("tournament." + kind)
		}
		second := f.createTournament("swiss", "")
		again.followTournament(second, "")
		f.expect(200, "POST", f.staffTournament(second)+"/cancel", f.serverKey, "")
		f.driveTournaments()
		if got := again.expectEvent("tournament.cancelled"); got.data("reason") != "server" {
			t.Errorf("it was cancelled with %s", got.raw)
		}
		third := f.createTournament("swiss", "")
		again.followTournament(third, "")
		again.expectOK("done", "tournament.unsubscribe", fmt.Sprintf(`{"tournamentId":%d}`, tournamentID(third)))
		f.expect(200, "POST", third+"/join", cid.token, "")
		f.credit(cid, "next")
		again.expectEvent("user.balance")
	})
}

func TestATournamentOfAnotherGameCannotBeFollowed(t *testing.T) {
	f := newGameFixture(t)
	otherGame, _ := f.createOtherGame()
	path := f.createTournament("swiss", "")
	s := f.dialRealtime(f.guestOf(otherGame, "Eve"))
	s.expectError("tournament_not_found", "tournament.subscribe", fmt.Sprintf(`{"tournamentId":%d}`, tournamentID(path)))
	s.expectError("invalid_request", "tournament.subscribe", `{}`)
	s.expectError("invalid_request", "tournament.subscribe", `{"tournamentId":1,"roomId":"x"}`)
}

func TestALostPositionInATournamentIsReplacedByASnapshot(t *testing.T) {
	f := newGameFixture(t)
	ann, bob := f.guest("Ann"), f.guest("Bob")
	path := f.createTournament("swiss", "")
	s := f.dialRealtime(ann)
	s.followTournament(path, "")
	// The store has lost an event, as after a failover.
	key := keys.Tour(f.game, tournamentID(path))
	live := testkit.Must(f.db.Client.HGet(t.Context(), key, "live").Result())(t)
	values := strings.Split(live, "|")
	for i, name := range scripts.TourLive.Names {
		if name == "seq" {
			values[i] = "7"
		}
	}
	testkit.Check(t, f.db.Client.HSet(t.Context(), key, "live", strings.Join(values, "|")).Err())
	f.expect(200, "POST", path+"/join", bob.token, "")
	got := s.expectEvent("tournament.snapshot")
	if got.Seq != 8 || got.data("tournament.entrants") != 1. || got.Data["position"] != got.Position {
		t.Errorf("the snapshot is %s", got.raw)
	}
	f.expect(200, "POST", path+"/leave", bob.token, "")
	if got := s.expectEvent("tournament.left"); got.Seq != 9 {
		t.Errorf("after the snapshot came %s", got.raw)
	}
}

func TestAMatchIsAmongTheEventsThatAPlayerResumes(t *testing.T) {
	f := newGameFixture(t)
	ann, bob := f.guest("Ann"), f.guest("Bob")
	f.dial(savePath, ann.token).expectOK("saved", "save", `{"slot":"main","state":{}}`)
	s := f.dialRealtime(ann)
	f.dial(savePath, ann.token).expectOK("saved", "save", `{"slot":"main","state":{"a":1},"version":1}`)
	saved := s.expectEvent("user.progress")
	s.disconnect()
	_, room := f.startMatch(ann, bob)
	again := f.dialRealtime(ann)
	again.expectOK("userAnew", "user.subscribe", fmt.Sprintf(`{"after":{"progress":%q}}`, saved.Position))
	if got := again.expectEvent("user.match"); got.Seq != saved.Seq+1 || got.data("roomId") != room {
		t.Errorf("the match is %s", got.raw)
	}
}
