package story

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire/wiretest"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

const (
	weekBoard = "week"
	weekPath  = "/api/v1/leaderboards/" + weekBoard
)

// cup is a tournament and a weekly leaderboard on two nodes. Amounts are minor units of GOLD.
type cup struct {
	*fixture
	db        *redisdb.DB
	url       string // of the store
	op        installation
	admin     string // path of the game for staff
	id        int64  // of the tournament
	path      string // of the tournament for players
	players   []player
	units     map[int64]int64 // what each player can spend, by what has happened
	followers []*follower
	audits    int // after calls
	cuts      int // of sockets

	areTogether bool // Ann and Dan, in a cohort of the league
}

// TestATournamentAndAWeekOnTwoNodes plays a paid Swiss tournament of 7 with an added prize. One
// player leaves, one never checks in, one never shows up, and one match is drawn. Meanwhile rooms
// feed a weekly leaderboard with segments and a league, whose season ends by the clock and pays its
// prizes. The audit balances after every call, and sockets that move between the nodes get every
// event once and in order.
func TestATournamentAndAWeekOnTwoNodes(t *testing.T) {
	redistest.EachStoreURL(t, func(t *testing.T, url string, db *redisdb.DB) {
		t.Parallel() // both mostly wait
		c := newCup(t, url, db)
		c.enter()
		c.checkInAndStart()
		c.playRound(1)
		c.playRound(2, c.playRooms, c.wantDeepAudit) // while the match of the absent player waits
		c.wantPaid()
		c.wantWeek()
		c.endWeek()
		c.wantEnd()
	})
}

// The players by the order in which they join.
const (
	ann = iota
	bob
	cid
	dan
	eve // never comes to a match
	fay // never checks in
	gus // leaves
)

const (
	fee, addedPrize = 500, 2000
	pot             = 5*fee + addedPrize
	rake            = pot * 5 / 100
	startUnits      = 10_000
)

// newCup starts two nodes, and has staff open the leaderboard and the tournament.
func newCup(t *testing.T, url string, db *redisdb.DB) *cup {
	t.Helper()
	c := &cup{fixture: &fixture{t: t}, db: db, url: url, units: map[int64]int64{}}
	for i := range c.nodes {
		c.nodes[i] = nodetest.Start(t, url)
	}
	c.op = c.setUp(map[string]any{"boards": []map[string]any{{"board": weekBoard, "from": "score"}}})
	c.admin = fmt.Sprintf("/api/v1/admin/games/%d", c.op.game)
	for _, name := range []string{"Ann", "Bob", "Cid", "Dan", "Eve", "Fay", "Gus"} {
		p := c.known(c.op, name)
		c.players = append(c.players, p)
		c.units[p.id] = startUnits
	}
	c.call(201, "POST", c.admin+"/leaderboards", nodetest.AdminKey, map[string]any{
		"board": weekBoard, "name": "Week", "operator": "sum", "writers": []string{"server", "rooms"},
		"schedule": map[string]any{"cron": "0 0 * * 1", "timeZone": "Europe/Berlin"}, "segments": []string{"country"},
		"league": map[string]any{"size": 10, "tiers": []string{"bronze", "silver"}, "promote": 1, "relegate": 1},
		"prizes": map[string]any{"tokenId": "GOLD", "pool": 10, "from": "mint", "table": []map[string]any{
			{"fromPlace": 1, "toPlace": 1, "prize": 6}, {"fromPlace": 2, "toPlace": 3, "shareBps": 1500},
		}},
	})
	for i, p := range c.players[:gus] {
		c.call(200, "POST", weekPath+"/scores", c.op.serverKey, map[string]any{
			"userId": p.id, "score": 0, "segments": map[string]string{"country": []string{"DE", "FR"}[i%2]},
		})
	}
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339Nano) }
	opened := c.call(201, "POST", c.admin+"/tournaments", nodetest.AdminKey, map[string]any{
		"name": "Cup", "format": "swiss", "entryTokenId": c.op.tokenID, "entryFee": 5,
		"addedPrize": map[string]any{"amount": 20, "from": "mint"}, "rakeBps": 500, "payout": []int{5000, 3000, 2000},
		"minEntrants": 4, "maxEntrants": 7, "checkInOpensAt": at(time.Second), "startsAt": at(time.Hour), "rounds": 2,
		"seeding": "joined", "noShowSeconds": 7,
	})
	c.id = number(t, opened.Body["tournamentId"])
	c.path = fmt.Sprintf("/api/v1/tournaments/%d", c.id)
	for _, p := range c.players {
		c.followers = append(c.followers, c.follow(p, c.id, weekBoard))
	}
	return c
}

// call makes a request of the story. After it the audit must balance to the unit, and one of the
// sockets is cut, so that it comes back on the other node.
func (c *cup) call(status int, method, path, bearer string, body any, headers ...string) nodetest.Response {
	c.t.Helper()
	r := c.must(status, method, path, bearer, body, headers...)
	c.wantExact()
	c.audits++
	if len(c.followers) > 0 {
		c.followers[c.cuts%len(c.followers)].cut()
		c.cuts++
	}
	return r
}

// wantExact requires that what was minted is there, to the unit, and returns the totals.
func (c *cup) wantExact() map[string]int64 {
	c.t.Helper()
	totals := map[string]int64{}
	for name, text := range c.wantBalanced() {
		if kind, ok := strings.CutSuffix(name, "Amount"); ok {
			totals[kind], _ = strconv.ParseInt(text.(string), 10, 64)
		}
	}
	there := totals["wallets"] + totals["escrow"] + totals["prizes"] + totals["house"]
	if totals["minted"] < 7*startUnits || totals["minted"] != there || totals["delta"] != 0 {
		c.t.Fatalf("of %d minted there are %d: %v", totals["minted"], there, totals)
	}
	return totals
}

// wantDeepAudit runs the command that replays the ledger and recounts every wallet.
func (c *cup) wantDeepAudit() {
	c.t.Helper()
	if out, err := parlor(c.t, c.url, "audit", "--deep"); err != nil || !strings.HasSuffix(out, "\nbalanced\n") {
		c.t.Fatalf("audit --deep: %v\n%s", err, out)
	}
}

// wantUnits checks what every player can spend, and that each of some has the fee held.
func (c *cup) wantUnits(held ...int) {
	c.t.Helper()
	for i, p := range c.players {
		holds := "0"
		if slices.Contains(held, i) {
			holds = strconv.Itoa(fee)
		}
		c.wantWallet(p, strconv.FormatInt(c.units[p.id], 10), holds)
	}
}

// enter lets all seven join, and one leave.
func (c *cup) enter() {
	c.t.Helper()
	for _, p := range c.players {
		c.call(200, "POST", c.path+"/join", p.token, nil)
		c.units[p.id] -= fee
	}
	if totals := c.wantExact(); totals["escrow"] != 7*fee || totals["prizes"] != addedPrize+1000 {
		c.t.Fatalf("with seven fees the totals are %v", totals)
	}
	c.wantUnits(ann, bob, cid, dan, eve, fay, gus)
	c.call(200, "POST", c.path+"/leave", c.players[gus].token, nil)
	c.units[c.players[gus].id] += fee
}

// checkInAndStart lets five check in and staff begin. The sixth gets the fee back.
func (c *cup) checkInAndStart() {
	c.t.Helper()
	c.followers[ann].wait("check-in is open", 1, func(m socketMessage) bool {
		return m.Type == "tournament.opened" && m.Data["status"] == "CHECK_IN"
	})
	for _, p := range c.players[:fay] {
		c.call(200, "POST", c.path+"/check-in", p.token, nil)
	}
	c.call(200, "POST", fmt.Sprintf("%s/tournaments/%d/start", c.admin, c.id), nodetest.AdminKey, nil)
	c.followers[fay].wait("who did not check in is out", 1, func(m socketMessage) bool {
		isOut := m.Type == "tournament.left" && m.Data["reason"] == "no_check_in"
		return isOut && m.Data["userId"] == float64(c.players[fay].id)
	})
	c.units[c.players[fay].id] += fee
	c.wantUnits(ann, bob, cid, dan, eve)
}

// playRound plays the matches of a round. In the first round one of them is drawn; the better seed
// wins the others. meanwhile is done before the round is over.
func (c *cup) playRound(round int, meanwhile ...func()) {
	c.t.Helper()
	isOf := func(m socketMessage) bool {
		id, _ := m.Data["matchId"].(string)
		return strings.HasPrefix(id, fmt.Sprintf("r%dm", round))
	}
	ready := c.followers[bob].wait("the rooms of the round are open", 2, func(m socketMessage) bool {
		return m.Type == "tournament.match_ready" && isOf(m)
	})
	for i, m := range ready {
		c.playMatch(m, round == 1 && i == 0)
	}
	var watchers []*subscriber
	for i, m := range ready {
		watchers = append(watchers, c.subscribe(c.players[gus], m.Data["roomId"].(string)))
		watchers[i].disconnect()
	}
	for _, do := range meanwhile {
		do()
	}
	for _, f := range c.followers {
		f.wait("the matches of the round are decided", len(ready), func(m socketMessage) bool {
			return m.Type == "tournament.match_decided" && m.Data["reason"] != "bye" && isOf(m)
		})
	}
	for _, w := range watchers {
		w.wantAll(c.db)
	}
}

// playMatch plays a match of which the room is open: the better seed wins, unless it is drawn.
func (c *cup) playMatch(ready socketMessage, isDraw bool) {
	c.t.Helper()
	room := ready.Data["roomId"].(string)
	var there []map[string]any
	for place, one := range ready.Data["players"].([]any) {
		i := c.find(int64(one.(map[string]any)["userId"].(float64)))
		if i == eve {
			continue
		}
		if isDraw {
			place = 0
		}
		there = append(there, map[string]any{"userId": c.players[i].id, "place": place + 1})
		c.call(200, "POST", "/api/v1/game-session/join", c.players[i].token, map[string]any{"roomId": room})
		c.followers[i].wait("the player was called to the match", 1, func(m socketMessage) bool {
			return m.Type == "user.match" && m.Data["roomId"] == room
		})
	}
	if len(there) == 2 {
		c.call(200, "POST", "/api/v1/game-session/finish", c.op.serverKey, map[string]any{
			"roomId": room, "results": there,
		}, "Idempotency-Key", "finish-"+room)
	}
}

// find returns the place of a player in the order of joining.
func (c *cup) find(user int64) int {
	return slices.IndexFunc(c.players, func(p player) bool { return p.id == user })
}

// playRooms plays two paid rooms for all who have a score this week. The first three get 30, 20 and
// 10, the others 25, 15 and 5.
func (c *cup) playRooms() {
	c.t.Helper()
	const entry = 250
	for i, seats := range [][]player{c.players[ann:dan], c.players[dan:gus]} {
		room := c.call(201, "POST", "/api/v1/game-session/create", seats[0].token, map[string]any{
			"entryTokenId": c.op.tokenID, "roomEntry": 2.5, "maxPlayers": 3,
		}).Body["roomId"].(string)
		var results []map[string]any
		for place, p := range seats {
			if place > 0 {
				c.call(200, "POST", "/api/v1/game-session/join", p.token, map[string]any{"roomId": room})
			}
			c.units[p.id] -= entry
			results = append(results, map[string]any{"userId": p.id, "place": place + 1, "score": 30 - 10*place - 5*i})
		}
		c.call(200, "POST", "/api/v1/game-session/start", seats[0].token, map[string]any{"roomId": room})
		c.call(200, "POST", "/api/v1/game-session/finish", c.op.serverKey, map[string]any{
			"roomId": room, "results": results,
		}, "Idempotency-Key", "finish-"+room)
		c.units[seats[0].id] += 3 * entry
	}
}

// wantPaid checks places and payouts of the tournament once it is over.
func (c *cup) wantPaid() {
	c.t.Helper()
	settled := c.followers[cid].wait("the tournament is paid", 1, func(m socketMessage) bool {
		return m.Type == "tournament.settled"
	})[0]
	over := c.call(200, "GET", c.path, c.players[ann].token, nil).Body
	isPaid := over["potAmount"] == strconv.Itoa(pot) && over["rakeAmount"] == strconv.Itoa(rake)
	if over["status"] != "FINISHED" || !isPaid {
		c.t.Fatalf("the tournament is %v", over)
	}
	places := c.call(200, "GET", c.path+"/standings", c.players[ann].token, nil).Body["items"].([]any)
	draws, losses, sum := int64(0), int64(0), int64(rake)
	for _, one := range places {
		one := one.(map[string]any)
		user := number(c.t, one["user"].(map[string]any)["id"])
		units, _ := strconv.ParseInt(one["amount"].(string), 10, 64)
		draws, sum = draws+number(c.t, one["draws"]), sum+units
		if user == c.players[eve].id {
			losses = number(c.t, one["losses"])
		}
		c.units[user] += units
		if units > 0 {
			c.wantPrize(user, fmt.Sprintf("tour:%d", c.id), units)
		}
	}
	if len(places) != 5 || draws != 2 || losses != 1 || sum != pot || len(settled.Data["payouts"].([]any)) < 3 {
		c.t.Fatalf("%d draws, %d losses of who never came, %d paid of %d: %v", draws, losses, sum, pot, places)
	}
	if totals := c.wantExact(); totals["house"] != rake || totals["escrow"] != 0 || totals["prizes"] != 1000 {
		c.t.Fatalf("after the tournament the totals are %v", totals)
	}
	c.wantUnits()
}

// wantPrize waits until a player got the event of a prize.
func (c *cup) wantPrize(user int64, source string, units int64) {
	c.t.Helper()
	what := fmt.Sprintf("player %d has a prize of %s", user, source)
	c.followers[c.find(user)].wait(what, 1, func(m socketMessage) bool {
		return m.Type == "user.prize" && m.Data["source"] == source && m.Data["amount"] == strconv.FormatInt(units, 10)
	})
}

// scores returns names and scores of entries.
func scores(entries any) (list []string) {
	for _, e := range entries.([]any) {
		e := e.(map[string]any)
		list = append(list, fmt.Sprint(e["user"].(map[string]any)["username"], " ", e["score"]))
	}
	return list
}

// wantWeek checks the leaderboard, a segment of it and a cohort of the league.
func (c *cup) wantWeek() {
	c.t.Helper()
	want := []string{"Ann 30", "Dan 25", "Bob 20", "Eve 15", "Cid 10", "Fay 5"}
	for _, f := range c.followers {
		f.wait("the leaderboard has the scores of the rooms", 1, func(m socketMessage) bool {
			return m.Data["entries"] != nil && slices.Equal(scores(m.Data["entries"]), want)
		})
	}
	for query, want := range map[string][]string{
		"":                    want,
		"?segment=country:DE": {"Ann 30", "Eve 15", "Cid 10"},
		"?segment=country:FR": {"Dan 25", "Bob 20", "Fay 5"},
	} {
		page := c.call(200, "GET", weekPath+"/entries"+query, c.players[gus].token, nil).Body
		if got := scores(page["items"]); !slices.Equal(got, want) {
			c.t.Fatalf("the entries%s are %v; want %v", query, got, want)
		}
	}
	c.areTogether = c.wantTier(ann, "bronze", want...) == c.wantTier(dan, "bronze", want...)
}

// wantTier checks the tier of a player in the league, and that the entries of the cohort, which was
// drawn, are in the order of all. It returns the number of the cohort.
func (c *cup) wantTier(i int, tier string, all ...string) (number any) {
	c.t.Helper()
	cohort := c.call(200, "GET", weekPath+"/league", c.players[i].token, nil).Body
	got := scores(cohort["entries"])
	inOrder := slices.DeleteFunc(slices.Clone(all), func(entry string) bool { return !slices.Contains(got, entry) })
	isOwn := func(entry string) bool { return strings.HasPrefix(entry, c.players[i].name+" ") }
	if cohort["tier"] != tier || !slices.Equal(got, inOrder) || !slices.ContainsFunc(got, isOwn) {
		c.t.Fatalf("the cohort of %s is %v; want %s with some of %v", c.players[i].name, cohort, tier, all)
	}
	return cohort["cohort"]
}

// endWeek lets the season end by the clock: the stored end of the week is moved to a moment from
// now. No setting makes a season shorter than a minute. All else follows by itself.
func (c *cup) endWeek() {
	c.t.Helper()
	for _, f := range c.followers {
		f.waitConnected() // who is away does not hear that a season ended
	}
	board, field := keys.Board(c.op.game, weekBoard), keys.BoardSeasonField(1)
	stored := testkit.Must(c.db.Client.HGet(c.t.Context(), board, field).Result())(c.t)
	opens, rest, _ := strings.Cut(stored, "|")
	_, rest, _ = strings.Cut(rest, "|") // without the end
	ends := time.Now().Add(2 * time.Second)
	// The prizes of the season are for the time until its scheduled end.
	budgets := keys.PrizeBudgets(c.op.game)
	testkit.Check(c.t, c.db.Client.HSet(c.t.Context(), budgets, weekBoard, ends.UnixMilli()).Err())
	testkit.Must(c.db.Client.TxPipelined(c.t.Context(), func(p redis.Pipeliner) error {
		p.HSet(c.t.Context(), board, field, fmt.Sprintf("%s|%d|%s", opens, ends.UnixMilli(), rest))
		return p.HIncrBy(c.t.Context(), board, keys.BoardVersionField, 1).Err()
	}))(c.t)
	// A change by staff has the seasons to come follow, and tells the leader of the game.
	c.must(200, "PATCH", c.admin+"/leaderboards/"+weekBoard, nodetest.AdminKey, map[string]any{"name": "The week"})
	c.wantDeepAudit() // of what the tournament has left; before the season is over
	for _, f := range c.followers {
		for i, kind := range []string{"board.season_ended", "board.season_started"} {
			f.wait("a season ended, and another one began", 1, func(m socketMessage) bool {
				season, _ := m.Data["season"].(map[string]any)
				return m.Type == kind && season["season"] == float64(i+1)
			})
		}
	}
	if early := time.Until(ends); early > 0 {
		c.t.Errorf("the season ended %v before its time", early)
	}
	for i, units := range map[int]int64{ann: 600, dan: 150, bob: 150} {
		c.units[c.players[i].id] += units
		c.wantPrize(c.players[i].id, "board:"+weekBoard+":1", units)
	}
	redistest.Eventually(c.t, "the season is paid", func() bool {
		seasons := c.call(200, "GET", weekPath+"/seasons", c.players[ann].token, nil).Body["items"].([]any)
		last := seasons[len(seasons)-1].(map[string]any)
		return len(seasons) == 2 && last["season"] == wiretest.Number("1") && last["status"] == "PAID"
	})
	// In the next week the winner of a cohort begins a tier higher.
	for _, i := range []int{ann, dan} {
		body := map[string]any{"userId": c.players[i].id, "score": 1, "segments": map[string]string{"country": "DE"}}
		c.call(200, "POST", weekPath+"/scores", c.op.serverKey, body)
	}
	tier := "bronze"
	if !c.areTogether { // Dan was the best of the other cohort
		tier = "silver"
	}
	c.wantTier(ann, "silver", "Ann 1", "Dan 1")
	c.wantTier(dan, tier, "Ann 1", "Dan 1")
}

// wantEnd checks what everybody has, and what every socket has received.
func (c *cup) wantEnd() {
	c.t.Helper()
	c.wantUnits()
	c.wantDeepAudit()
	if totals := c.wantExact(); totals["escrow"] != 0 || totals["house"] != rake || totals["prizes"] != 1000 {
		c.t.Fatalf("in the end the totals are %v", totals) // the prizes are those of the second week
	}
	over := c.call(200, "GET", c.path, c.players[ann].token, nil).Body
	moves := 0
	for i, f := range c.followers {
		f.wantWholeTournament(over["position"].(string), number(c.t, over["seq"]), c.followers[0])
		lines := c.call(200, "GET", "/api/v1/user-balance/ledger?tokenId=GOLD&limit=100", c.players[i].token, nil)
		f.wantWholeLedger(lines.Body["items"].([]any))
		if f.connections() < 4 {
			c.t.Errorf("the socket of %s moved %d times", f.who.name, f.connections()-1)
		}
		moves += f.connections() - 1
	}
	c.t.Logf("an audit after each of %d calls; seven sockets moved %d times", c.audits, moves)
}
