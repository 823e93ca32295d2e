package handlers_test

import (
	"fmt"
	"testing"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// Each of two entrants of a bracket claims to have won, on a node of its own. The better seed does
// not advance by that: the match waits for staff, and nobody is paid.
func TestASeedThatContradictsTheWinnerDoesNotWinTheTournament(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		far := f.newNode()
		ann, bob := f.guest("Ann"), f.guest("Bob")
		path := f.createTournament("single_elimination", `,"seeding":"joined","room":{"settlement":"consensus"},`+
			`"disputeSeconds":60`)
		for _, p := range []player{ann, bob} {
			f.expect(200, "POST", path+"/join", p.token, "")
		}
		f.expect(200, "POST", f.staffTournament(path)+"/start", adminKey, "")
		f.driveTournaments()
		room := f.expect(200, "GET", path+"/matches", ann.token, "").text("items.0.roomId")
		say := func(node *fixture, p, other player) *httpResult {
			return node.expect(200, "POST", "/api/v1/game-session/finish", p.token, fmt.Sprintf(
				`{"roomId":%q,"results":[{"userId":%d,"place":1},{"userId":%d,"place":2}]}`, room, p.id, other.id),
				"Idempotency-Key", "result-of-"+room)
		}
		f.expect(200, "POST", "/join", ann.token, roomBody(room))
		far.expect(200, "POST", "/join", bob.token, roomBody(room))
		if r := say(far, bob, ann); r.text("reportUntil") == "null" || r.text("status") != "STARTED" {
			t.Errorf("after the first report: %s", r.raw)
		}
		if r := say(f, ann, bob); r.text("status") != "DISPUTED" || r.text("refundAt") == "null" {
			t.Errorf("after the second report: %s", r.raw)
		}
		f.driveTournaments()
		if m := f.expect(200, "GET", path+"/matches", bob.token, ""); m.text("items.0.status") == "DECIDED" {
			t.Fatalf("the match is decided: %s", m.raw)
		}
		shard, _ := keys.RoomShard(room) // the time of staff is over
		testkit.Must(f.db.Client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			p.HSet(t.Context(), keys.Room(shard, room), "disputed", 1)
			p.ZAdd(t.Context(), keys.RoomsDue(shard), redis.Z{Score: 1, Member: room})
			return nil
		}))(t)
		f.driveTournaments()
		f.waitForTournament(path, bob.token, "CANCELLED")
		m := f.expect(200, "GET", path+"/matches", bob.token, "")
		if m.text("items.0.reason") != "refunded" || m.text("items.0.winnerId") != "null" {
			t.Errorf("the match ended as %s", m.raw)
		}
	})
}
