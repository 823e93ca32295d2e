package hostile

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// arena is an installation of two nodes with a game in which money can be won.
type arena struct {
	t         *testing.T
	nodes     [2]*nodetest.Node
	calls     int
	label     string // of the calls' keys
	serverKey string
	game      int64
	token     int64
}

// entrant is a player with 100 GOLD.
type entrant struct {
	id    int64
	token string
}

// newArena starts the nodes and makes the game. settings are those of the game, as JSON objects
// have them.
func newArena(t *testing.T, settings map[string]any) *arena {
	t.Helper()
	a := &arena{t: t}
	server := redistest.StartForTest(t, "--appendonly", "yes")
	for i := range a.nodes {
		a.nodes[i] = nodetest.Start(t, server.URL(), "PARLOR_RATE_LIMITS=off")
	}
	token := a.staff(201, "/api/v1/admin/tokens", map[string]any{
		"tokenId": "GOLD", "tokenName": "Gold",
		"metadata": map[string]any{"assetName": "676f6c64", "policyId": "ab01", "decimals": "2"},
	})
	game := a.staff(201, "/api/v1/admin/games", map[string]any{
		"name": "Duel", "welcomeGrant": map[string]any{"tokenId": "GOLD", "amount": 100, "for": "any"},
		"settings": settings,
	})
	a.token, a.game = number(t, token.Body["id"]), number(t, game.Body["game"].(map[string]any)["id"])
	a.serverKey = game.Body["serverKey"].(string)
	return a
}

// do sends a request to the nodes in turn.
func (a *arena) do(method, path, bearer string, body any) nodetest.Response {
	a.t.Helper()
	a.calls++
	return testkit.Must(a.nodes[a.calls%2].Do(a.t.Context(), method, path, bearer, body,
		"Idempotency-Key", fmt.Sprint("call-", a.label, a.calls)))(a.t)
}

// must is do with a status that the response must have.
func (a *arena) must(status int, method, path, bearer string, body any) map[string]any {
	a.t.Helper()
	r := a.do(method, path, bearer, body)
	if r.Status != status {
		a.t.Fatalf("%s %s: %s; want %d", method, path, r, status)
	}
	return r.Body
}

func (a *arena) staff(status int, path string, body any) nodetest.Response {
	a.t.Helper()
	return a.nodes[0].Must(a.t, status, http.MethodPost, path, nodetest.AdminKey, body)
}

func (a *arena) enter() entrant {
	a.t.Helper()
	in := a.must(201, http.MethodPost, "/api/v1/auth/guest", "", map[string]any{"gameId": a.game})
	return entrant{number(a.t, in["user"].(map[string]any)["id"]), in["accessToken"].(string)}
}

// money returns what a player has, with what is held, in hundredths.
func (a *arena) money(p entrant) (units int64) {
	a.t.Helper()
	body := a.must(200, http.MethodGet, "/api/v1/user-balance/token-balances", p.token, nil)
	for _, one := range body["balances"].([]any) {
		for _, member := range []string{"amount", "heldAmount"} {
			var n int64
			testkit.Must(fmt.Sscan(one.(map[string]any)[member].(string), &n))(a.t)
			units += n
		}
	}
	return units
}

// wantMoney requires what the attacker and others have after an attack, and logs the figure.
func (a *arena) wantMoney(before int64, attacker entrant, after int64, others map[entrant]int64) {
	a.t.Helper()
	others[attacker] = after
	for p, units := range others {
		redistest.Eventually(a.t, fmt.Sprintf("player %d has %d", p.id, units), func() bool { return a.money(p) == units })
	}
	a.t.Logf("the attacker had %d and has %d, which is what the rules give", before, a.money(attacker))
}

// tournament creates a tournament with a fee of 50, which ends by itself in a few seconds, and
// starts it with players. It returns the path of its resource.
func (a *arena) tournament(in map[string]any, players ...entrant) (path string) {
	a.t.Helper()
	for name, value := range map[string]any{
		"name": "Cup", "entryTokenId": a.token, "entryFee": 50, "maxEntrants": len(players), "rakeBps": 0,
		"startsAt": time.Now().Add(startsAfter).UTC().Format(time.RFC3339Nano),
	} {
		in[name] = value
	}
	admin := fmt.Sprintf("/api/v1/admin/games/%d/tournaments", a.game)
	id := number(a.t, a.must(201, http.MethodPost, admin, nodetest.AdminKey, in)["tournamentId"])
	path = fmt.Sprint("/api/v1/tournaments/", id)
	a.until(path, "REGISTRATION")
	for _, p := range players {
		a.must(200, http.MethodPost, path+"/join", p.token, nil)
	}
	a.must(200, http.MethodPost, fmt.Sprint(admin, "/", id, "/start"), nodetest.AdminKey, nil)
	a.until(path, "RUNNING")
	return path
}

const (
	startsAfter = 3 * time.Second // at the latest; staff starts a tournament before
	endsAfter   = 5 * time.Second // of a score tournament
)

// until waits for a status of a tournament.
func (a *arena) until(path, status string) {
	a.t.Helper()
	redistest.Eventually(a.t, path+" is "+status, func() bool {
		r := a.do(http.MethodGet, fmt.Sprint(path, "?gameId=", a.game), nodetest.AdminKey, nil)
		return r.Body["status"] == status
	})
}

// TestAHostileEntrantMovesNothing lets an entrant of paid tournaments, and a guest whom a prize
// attracts, try what they can. Both have what the rules give them, and not a unit more.
func TestAHostileEntrantMovesNothing(t *testing.T) {
	a := newArena(t, map[string]any{
		"rakeBps": 0, "turnTimeout": "forfeit", "boards": []any{map[string]any{"board": "wins", "from": "win"}},
	})
	for name, attack := range map[string]func(a *arena){
		"it sends a score of its own": (*arena).sendOwnScore, "it gives its opponent a second": (*arena).giveASecond,
		"it wins against nobody": (*arena).winAlone,
	} {
		t.Run(name, func(t *testing.T) {
			own := *a
			own.t, own.label = t, strings.ReplaceAll(name, " ", "-")
			attack(&own)
		})
	}
	audit := a.must(200, http.MethodGet, "/api/v1/admin/audit", nodetest.AdminKey, nil)
	if audit["balanced"] != true {
		t.Errorf("the books do not balance: %v", audit)
	}
}

// sendOwnScore sends the highest score there is to a paid score tournament.
func (a *arena) sendOwnScore() {
	ada, bob, mallory := a.enter(), a.enter(), a.enter()
	before := a.money(mallory)
	path := a.tournament(map[string]any{
		"format": "score", "endsAt": time.Now().Add(endsAfter).UTC().Format(time.RFC3339Nano), "attempts": 3,
	}, ada, bob, mallory)
	scores := strings.Replace(path, "tournaments/", "leaderboards/tour-", 1) + "/scores"
	for _, score := range []any{4503599627370495, 11, "4503599627370495"} {
		play := a.must(201, http.MethodPost, path+"/attempts", mallory.token, nil)
		for _, body := range []map[string]any{
			{"score": score, "playId": play["playId"]}, {"score": score}, {"score": score, "userId": mallory.id},
		} {
			if r := a.do(http.MethodPost, scores, mallory.token, body); r.Status < 400 {
				a.t.Errorf("the score %v counts: %s", score, r)
			}
		}
	}
	a.must(200, http.MethodPost, scores, a.serverKey, map[string]any{"userId": ada.id, "score": 10})
	a.until(path, "FINISHED")
	a.wantMoney(before, mallory, before-5000, map[entrant]int64{ada: before + 10_000, bob: before - 5000})
}

// giveASecond is the host of a match, whose room is free, and ends the turn of its opponent in a
// game in which that forfeits the seat.
func (a *arena) giveASecond() {
	ada, mallory := a.enter(), a.enter()
	before := a.money(mallory)
	path := a.tournament(map[string]any{"format": "single_elimination", "seeding": "joined"}, mallory, ada)
	var room string
	redistest.Eventually(a.t, "the room of the match is open", func() bool {
		for _, m := range a.do(http.MethodGet, path+"/matches", mallory.token, nil).Body["items"].([]any) {
			room, _ = m.(map[string]any)["roomId"].(string)
		}
		return room != ""
	})
	for _, p := range []entrant{mallory, ada} {
		a.must(200, http.MethodPost, "/join", p.token, map[string]any{"roomId": room})
	}
	conn := testkit.Must(a.nodes[1].Dial(a.t.Context(), "/api/v1/realtime", mallory.token))(a.t)
	defer func() { _ = conn.Close() }()
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	for _, message := range []string{
		fmt.Sprintf(`{"id":"1","type":"room.subscribe","data":{"roomId":%q}}`, room),
		fmt.Sprintf(`{"id":"2","type":"room.turn.set","data":{"roomId":%q,"userId":%d,"seconds":1}}`, room, ada.id),
	} {
		testkit.Check(a.t, conn.WriteMessage(websocket.TextMessage, []byte(message)))
	}
	for over := false; !over; { // until the second is over, whatever comes of it
		_, frame := testkit.Must2(conn.ReadMessage())(a.t)
		over = strings.Contains(string(frame), `"reason":"skipped"`) || strings.Contains(string(frame), "room.left") ||
			strings.Contains(string(frame), `"ok":false`)
	}
	a.must(200, http.MethodPost, "/api/v1/game-session/finish", a.serverKey, map[string]any{
		"roomId": room, "results": []map[string]any{{"userId": ada.id, "place": 1}, {"userId": mallory.id, "place": 2}},
	})
	a.until(path, "FINISHED")
	a.wantMoney(before, mallory, before-5000, map[entrant]int64{ada: before + 5000})
}

// winAlone plays private rooms with one seat for the prize of a leaderboard that wins feed, by its
// own reports and, because staff allows them then, again.
func (a *arena) winAlone() {
	admin := fmt.Sprintf("/api/v1/admin/games/%d", a.game)
	a.must(201, http.MethodPost, admin+"/leaderboards", nodetest.AdminKey, map[string]any{
		"board": "wins", "name": "Wins", "operator": "sum", "writers": []string{"rooms"},
		"prizes": map[string]any{
			"tokenId": "GOLD", "pool": 50, "from": "mint",
			"table": []any{map[string]any{"fromPlace": 1, "toPlace": 1, "prize": 50}},
		},
	})
	ada, bob, mallory := a.enter(), a.enter(), a.enter()
	before := a.money(mallory)
	open := func(settlement string) nodetest.Response {
		return a.do(http.MethodPost, "/api/v1/game-session/create", mallory.token, map[string]any{
			"maxPlayers": 1, "minPlayers": 1, "visibility": "private", "settlement": settlement,
		})
	}
	if r := open("consensus"); r.Status != http.StatusBadRequest {
		a.t.Errorf("a room by consensus: %s", r)
	}
	a.must(200, http.MethodPatch, admin, nodetest.AdminKey, map[string]any{
		"settings": map[string]any{"settlements": []string{"server", "consensus"}},
	})
	redistest.Eventually(a.t, "both nodes allow rooms by consensus", func() bool {
		first, second := open("consensus"), open("consensus") // the nodes take turns
		return first.Status == 201 && second.Status == 201
	})
	for _, settlement := range []string{"consensus", "consensus", "server"} {
		room := open(settlement)
		id := room.Body["roomId"]
		a.must(200, http.MethodPost, "/api/v1/game-session/start", mallory.token, map[string]any{"roomId": id})
		by := mallory.token
		if settlement == "server" {
			by = a.serverKey // which such a game calls for whoever plays alone
		}
		a.must(200, http.MethodPost, "/api/v1/game-session/finish", by, map[string]any{
			"roomId": id, "results": []map[string]any{{"userId": mallory.id, "place": 1}},
		})
	}
	a.walkOver(mallory, bob)
	// What counts: two who played, by the game's server. It also shows that the rooms before were
	// applied, since a node applies in order or within a second.
	made := a.must(201, http.MethodPost, "/api/v1/game-session/create", ada.token, map[string]any{"maxPlayers": 2})
	room := map[string]any{"roomId": made["roomId"]}
	a.must(200, http.MethodPost, "/join", bob.token, room)
	a.must(200, http.MethodPost, "/api/v1/game-session/start", ada.token, room)
	a.must(200, http.MethodPost, "/api/v1/game-session/finish", a.serverKey, map[string]any{
		"roomId": made["roomId"], "results": []map[string]any{{"userId": ada.id, "place": 1}, {"userId": bob.id, "place": 2}},
	})
	var entries []any
	redistest.Eventually(a.t, "the room that counts is on the leaderboard", func() bool {
		entries = a.do(http.MethodGet, "/api/v1/leaderboards/wins/entries", mallory.token, nil).Body["items"].([]any)
		return len(entries) >= 2
	})
	for _, e := range entries {
		if user := e.(map[string]any)["user"].(map[string]any); number(a.t, user["id"]) == mallory.id {
			a.t.Errorf("who met nobody has an entry: %v", e)
		}
	}
	a.must(200, http.MethodPost, admin+"/leaderboards/wins/seasons/1/end", nodetest.AdminKey,
		map[string]any{"reason": "test"})
	a.wantMoney(before, mallory, before, map[entrant]int64{ada: before + 5000})
}

// walkOver lets the second account of one person leave a paid room at once.
func (a *arena) walkOver(winner, other entrant) {
	a.t.Helper()
	made := a.must(201, http.MethodPost, "/api/v1/game-session/create", winner.token, map[string]any{
		"maxPlayers": 2, "entryTokenId": a.token, "roomEntry": 1,
	})
	room := map[string]any{"roomId": made["roomId"]}
	a.must(200, http.MethodPost, "/join", other.token, room)
	a.must(200, http.MethodPost, "/api/v1/game-session/start", winner.token, room)
	a.must(200, http.MethodPost, "/api/v1/game-session/leave", other.token, room)
	// The stakes go back to where they were, so that money shows prizes alone.
	a.must(200, http.MethodPost, fmt.Sprintf("/api/v1/admin/users/%d/debit", winner.id), nodetest.AdminKey,
		map[string]any{"tokenId": "GOLD", "amount": 1, "reason": "test"})
	a.must(200, http.MethodPost, fmt.Sprintf("/api/v1/admin/users/%d/credit", other.id), nodetest.AdminKey,
		map[string]any{"tokenId": "GOLD", "amount": 1, "reason": "test"})
}
