package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/books"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// cupSize is a tournament of bots.
type cupSize struct {
	format  string
	players int
	rounds  int // swiss; 0: by the number of players
	noShow  int // seconds that a match waits for its players
}

// TestTournamentsEndAndPayOnceWhileNodesAreKilled kills one node after the other, every two
// seconds, while bots play tournaments of every format over HTTP. One bot in five never comes to a
// match, in the short form to none of the first round, and sends no score. Every tournament must
// end, each attempt of a match must have one room, and every unit must be where the standings say.
func TestTournamentsEndAndPayOnceWhileNodesAreKilled(t *testing.T) {
	t.Parallel() // with failovers, which mostly wait
	var small []cupSize
	for _, players := range []int{2, 3, 7, 64} {
		small = append(small, cupSize{"swiss", players, 0, 5}, cupSize{"single_elimination", players, 0, 5},
			cupSize{"score", players, 0, 0}, cupSize{"round_robin", min(players, 16), 0, 5})
	}
	durable := []string{"--appendonly", "yes", "--appendfsync", "everysec"}
	t.Run("single", func(t *testing.T) {
		store := redistest.StartForTest(t, durable...)
		playCups(t, store.URL(), pick([]cupSize{{"swiss", 7, 2, 5}, {"round_robin", 3, 0, 5}, {"score", 5, 0, 0}}, small))
	})
	if !*long {
		return
	}
	startCluster := func(t *testing.T) (url string) {
		url, servers, err := redistest.StartCluster(durable...)
		for _, s := range servers {
			t.Cleanup(s.Remove)
		}
		testkit.Check(t, err)
		return url
	}
	large := []cupSize{{"swiss", 1_000, 0, 10}}
	t.Run("cluster", func(t *testing.T) { playCups(t, startCluster(t), small) })
	t.Run("1,000 players", func(t *testing.T) { playCups(t, redistest.StartForTest(t, durable...).URL(), large) })
	t.Run("1,000 players on a cluster", func(t *testing.T) { playCups(t, startCluster(t), large) })
}

// cupFee and cupPrize are minor units: what each player pays, and what is added.
const cupFee, cupPrize = 250, 1_000

// cup is a tournament that bots play.
type cup struct {
	*installation
	cupSize
	name    string
	id      int64
	path    string
	players []httpPlayer
	calls   chan struct{} // holds a value for each match that is being played

	scores  int                 // that a node took
	matches map[string]cupMatch // by match id
	rooms   map[string]string   // of each attempt "t.<tournament>.<match>.<attempt>" that a bot was called to
	round   int
	order   []int64         // players, best first
	paid    map[int64]int64 // units by player
}

// cupMatch is a match as the nodes show it.
type cupMatch struct {
	id, status, reason, roomID string
	attempt                    int64
	players                    []int64
}

// playCups plays tournaments on one store at the same time, each with players of its own.
func playCups(t *testing.T, url string, sizes []cupSize) {
	t.Helper()
	players := 0
	for _, size := range sizes {
		players += size.players
	}
	in := newInstallation(t, url, pick(2, 3), players, nil)
	observer := openNode(t, url, nil)
	began := time.Now()
	ctx, stop := context.WithTimeout(t.Context(), pick(2*time.Minute, 10*time.Minute))
	defer stop()
	var cups []*cup
	var playing sync.WaitGroup
	for i, size := range sizes {
		c := &cup{
			installation: in, cupSize: size, name: fmt.Sprintf("cup-%d", i), players: in.players[:size.players],
			calls: make(chan struct{}, 50), matches: map[string]cupMatch{}, rooms: map[string]string{}, paid: map[int64]int64{},
		}
		in.players = in.players[size.players:]
		cups = append(cups, c)
		playing.Go(func() { c.play(ctx, newRNG(uint64(i)).IntN) })
	}
	over, kills := make(chan struct{}), 0
	go func() { playing.Wait(); close(over) }()
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for isOver := false; !isOver; {
		select {
		case <-over:
			isOver = true
		case <-tick.C:
			in.replace(kills % len(in.nodes))
			kills++
			audit := in.read(ctx, "/api/v1/admin/audit", nodetest.AdminKey)
			if ctx.Err() == nil && audit.Body["balanced"] != true {
				t.Errorf("after %d nodes were killed the audit is %s", kills, audit)
			}
		}
	}
	took := time.Since(began).Round(100 * time.Millisecond)
	if t.Failed() || ctx.Err() != nil {
		t.Fatalf("the tournaments are not over after %v and %d killed nodes", took, kills)
	}
	for i := range in.nodes {
		in.nodes[i].Kill()
	}
	b := wantLargeBooks(t, observer.db)
	deep, err := observer.audit.AuditDeep(t.Context(), gameID)
	if err != nil || !deep.Balanced || !deep.HeldCounted || len(deep.Differences) > 0 {
		t.Fatalf("the deep audit returns %+v, %v", deep, err)
	}
	rounds, scores, decided, names := 0, 0, map[string]int{}, []string(nil)
	stored := matchRooms(t, observer.db)
	for _, c := range cups {
		c.check(b, stored)
		rounds, scores = rounds+c.round, scores+c.scores
		names = append(names, fmt.Sprintf("%s of %d", c.format, len(c.players)))
		for _, m := range c.matches {
			decided[m.reason]++
		}
	}
	attempts := 0
	for _, rooms := range stored {
		attempts += len(rooms)
	}
	report(t, "%s: %d nodes killed in %v, %d rounds, %v, %d rooms for %d attempts of matches, %d scores, delta %d",
		strings.Join(names, ", "), kills, took, rounds, decided, attempts, len(stored), scores, b.Delta())
}

// play opens the tournament, lets the bots enter and play, and reads what has become of it.
func (c *cup) play(ctx context.Context, random func(n int) int) {
	c.open(ctx)
	var bots sync.WaitGroup
	defer bots.Wait()
	if c.format == "score" {
		c.playForScores(ctx)
	}
	pace := time.NewTicker(100 * time.Millisecond)
	defer pace.Stop()
	for ctx.Err() == nil {
		now := c.read(ctx, c.path, c.serverKey).Body
		c.round = int(integer(now["round"]))
		if status := now["status"]; status == "FINISHED" {
			break
		} else if status == "CANCELLED" {
			c.t.Errorf("%s was cancelled: %v", c.name, now)
			return
		}
		for _, m := range c.readRound(ctx, 0) {
			if m.roomID != "" && c.rooms[c.feeds(m)] == "" {
				c.rooms[c.feeds(m)] = m.roomID
				if m.status == "READY" {
					isDraw, winner := random(10) == 0, random(2)
					bots.Go(func() { c.playMatch(ctx, m, isDraw, winner) })
				}
			}
		}
		select {
		case <-ctx.Done():
		case <-pace.C:
		}
	}
	for round := range c.round {
		for _, m := range c.readRound(ctx, round+1) {
			c.matches[m.id] = m
		}
	}
	for _, one := range c.readList(ctx, "standings?") {
		units, _ := strconv.ParseInt(fmt.Sprint(one["amount"]), 10, 64)
		user := integer(one["user"].(map[string]any)["id"])
		c.paid[user] = units
		c.order = append(c.order, user)
	}
}

// open makes the tournament, lets every bot enter, and begins.
func (c *cup) open(ctx context.Context) {
	admin := fmt.Sprintf("/api/v1/admin/games/%d/tournaments", gameID)
	after := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	body := map[string]any{
		"name": c.name, "format": c.format, "maxEntrants": c.cupSize.players, "entryTokenId": c.tokenID, "entryFee": 2.5,
		"addedPrize": map[string]any{"amount": 10, "from": "mint"}, "rakeBps": 1_000, "startsAt": after(time.Hour),
	}
	if c.format == "score" {
		body["attempts"], body["board"] = 10, map[string]any{
			"order": "desc", "operator": "best", "writers": []string{"server", "players"},
			"rules": map[string]any{"max": 1_000_000, "play": true},
		}
		body["startsAt"], body["endsAt"] = after(pick(5*time.Second, 30*time.Second)), after(pick(9*time.Second, time.Minute))
	} else {
		body["noShowSeconds"], body["matchTimeoutSeconds"] = c.noShow, 20
	}
	if c.rounds > 0 {
		body["rounds"] = c.rounds
	}
	if c.cupSize.players > 2 {
		body["payout"] = []int{5_000, 3_000, 2_000}
	}
	made, _ := c.send(ctx, 0, admin, nodetest.AdminKey, body, c.name)
	c.id = integer(made.Body["tournamentId"])
	c.path = fmt.Sprintf("/api/v1/tournaments/%d", c.id)
	for i, p := range c.players {
		if r, _ := c.send(ctx, i, c.path+"/join", p.token, nil, c.name); r.Status != 200 && ctx.Err() == nil {
			c.t.Errorf("the join of player %d returned %s", p.id, r)
		}
	}
	// The key of a node that died may be in use for a while; to start twice is to start once.
	start, status := fmt.Sprintf("%s/%d/start", admin, c.id), http.StatusConflict
	for try := 0; status == http.StatusConflict && ctx.Err() == nil; try++ {
		r, _ := c.send(ctx, try, start, nodetest.AdminKey, nil, fmt.Sprintf("%s-%d", c.name, try))
		if status = r.Status; status != http.StatusOK && r.Body["code"] != "request_in_progress" && ctx.Err() == nil {
			c.t.Errorf("the start returned %s", r)
			return
		}
	}
}

// playForScores lets the bots who come play twice in a score tournament. The first score is the
// better one, and the last player has the best.
func (c *cup) playForScores(ctx context.Context) {
	board := fmt.Sprintf("/api/v1/leaderboards/tour-%d/scores", c.id)
	for i, p := range c.players {
		if i%5 == 2 { // does not come
			continue
		}
		for attempt := range 2 {
			var taken nodetest.Response
			for try := 0; taken.Status != http.StatusOK && ctx.Err() == nil; try++ {
				key := fmt.Sprintf("%s-%d-%d-%d", c.name, i, attempt, try)
				// The node may have died behind the play, so that its key is in use for a while.
				play, _ := c.send(ctx, i+try, c.path+"/attempts", p.token, nil, key)
				if play.Status != http.StatusCreated {
					continue
				}
				score := map[string]any{"score": 10*i + 5 - attempt, "playId": play.Body["playId"]}
				if taken, _ = c.send(ctx, i+try, board, p.token, score, key); taken.Status != http.StatusOK && ctx.Err() == nil {
					c.t.Errorf("%s: the score of player %d returned %s", c.name, p.id, taken)
					return
				}
			}
		}
		c.scores++
	}
}

// playMatch seats the bots of a match who come, and reports a result when both are there.
func (c *cup) playMatch(ctx context.Context, m cupMatch, isDraw bool, winner int) {
	c.calls <- struct{}{}
	defer func() { <-c.calls }()
	room, seated := map[string]any{"roomId": m.roomID}, 0
	var results []map[string]any
	for i, user := range m.players {
		place := 1
		if !isDraw && i != winner {
			place = 2
		}
		results = append(results, map[string]any{"userId": user, "place": place})
		at := slices.IndexFunc(c.players, func(p httpPlayer) bool { return p.id == user })
		if at%5 == 2 && (*long || strings.HasPrefix(m.id, "r1m")) { // does not come
			continue
		}
		r, _ := c.send(ctx, i, "/api/v1/game-session/join", c.players[at].token, room, m.roomID)
		if r.Status == http.StatusOK {
			seated++
		}
	}
	if seated < len(m.players) {
		return
	}
	room["results"] = results
	r, _ := c.send(ctx, 2, "/api/v1/game-session/finish", c.serverKey, room, m.roomID)
	if r.Status != http.StatusOK && ctx.Err() == nil {
		c.t.Errorf("the result of %s returned %s", m.id, r)
	}
}

// feeds names an attempt of a match as its room does.
func (c *cup) feeds(m cupMatch) string { return fmt.Sprintf("t.%d.%s.%d", c.id, m.id, m.attempt) }

// readRound returns the matches of a round, 0 for the newest.
func (c *cup) readRound(ctx context.Context, round int) (matches []cupMatch) {
	query := "matches?"
	if round > 0 {
		query += fmt.Sprintf("round=%d&", round)
	}
	for _, one := range c.readList(ctx, query) {
		m := cupMatch{attempt: integer(one["attempt"])}
		m.id, _ = one["matchId"].(string)
		m.status, _ = one["status"].(string)
		m.reason, _ = one["reason"].(string)
		m.roomID, _ = one["roomId"].(string)
		for _, p := range one["players"].([]any) {
			m.players = append(m.players, integer(p.(map[string]any)["userId"]))
		}
		matches = append(matches, m)
	}
	return matches
}

// readList returns all pages of a list of the tournament.
func (c *cup) readList(ctx context.Context, query string) (list []map[string]any) {
	for cursor := ""; ctx.Err() == nil; {
		page := c.read(ctx, c.path+"/"+query+"limit=100&cursor="+cursor, c.serverKey).Body
		items, _ := page["items"].([]any)
		for _, one := range items {
			list = append(list, one.(map[string]any))
		}
		next, ok := page["nextCursor"].(string)
		if !ok {
			break
		}
		cursor = next
	}
	return list
}

// read makes a request until a node has a response to it. It returns an empty response when ctx
// ends before.
func (in *installation) read(ctx context.Context, path, bearer string) (response nodetest.Response) {
	tries := 0
	_ = redistest.Poll(time.Hour, func() error {
		r, err := in.node(tries).Do(ctx, http.MethodGet, path, bearer, nil)
		tries++
		if ctx.Err() == nil && (err != nil || r.Status >= 500) {
			return errors.New("no node has a response")
		}
		if ctx.Err() == nil && r.Status != http.StatusOK {
			in.t.Errorf("GET %s returned %s", path, r)
		}
		response = r
		return nil
	})
	return response
}

// integer returns a number of a response, 0 for none.
func integer(v any) int64 {
	n, _ := strconv.ParseInt(fmt.Sprint(v), 10, 64)
	return n
}

// check requires that the pot is paid to the unit, that every match is decided, that nobody plays
// twice in a round, and that each attempt has the one room that the bots were called to.
func (c *cup) check(b books.Books, stored map[string][]string) {
	c.t.Helper()
	pot, sum := int64(len(c.players)*cupFee+cupPrize), int64(0)
	for _, p := range c.players {
		sum += c.paid[p.id]
		want := books.Balance{Free: startBalance*100 - cupFee + c.paid[p.id]}
		if got := b.Wallets[p.id]; got != want {
			c.t.Errorf("%s: player %d has %+v; by the standings %+v", c.name, p.id, got, want)
		}
	}
	placed := len(c.players)
	if c.format == "score" {
		placed = c.scores
		if !slices.IsSortedFunc(c.order, func(a, b int64) int { return cmp.Compare(b, a) }) {
			c.t.Errorf("%s: later players have better scores, and the standings are %v", c.name, c.order)
		}
	}
	if len(c.paid) != placed || sum != pot-pot/10 {
		c.t.Errorf("%s: %d players are in the standings, and %d of a pot of %d are paid", c.name, len(c.paid), sum, pot)
	}
	plays := map[string]bool{}
	for _, m := range c.matches {
		if m.status != "DECIDED" {
			c.t.Errorf("%s: the match %+v is not decided", c.name, m)
		}
		for _, user := range m.players {
			name := fmt.Sprint(strings.Split(m.id, "m")[0], " ", user)
			if plays[name] {
				c.t.Errorf("%s: player %d plays twice in a round: %+v", c.name, user, m)
			}
			plays[name] = true
		}
	}
	seen := maps.Clone(c.rooms)
	for _, m := range c.matches {
		if m.roomID != "" {
			seen[c.feeds(m)] = m.roomID
		}
	}
	for feeds, room := range seen {
		if !slices.Equal(stored[feeds], []string{room}) {
			c.t.Errorf("%s: the attempt %s was played in %s, and has the rooms %v", c.name, feeds, room, stored[feeds])
		}
	}
	for feeds, rooms := range stored {
		if strings.HasPrefix(feeds, fmt.Sprintf("t.%d.", c.id)) && len(rooms) != 1 {
			c.t.Errorf("%s: the attempt %s has the rooms %v", c.name, feeds, rooms)
		}
	}
}

var settingsLayout = redisdb.PackedLayout{
	Name: "the settings of a room", Separator: '|',
	Layout: scripts.RoomSettings,
}

// matchRooms returns the rooms of all matches by what they feed.
func matchRooms(t *testing.T, db *redisdb.DB) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	var names []string
	err := db.ScanKeys(t.Context(), "*}:room:*", func(some []string) {
		for _, name := range some {
			if _, isRoom := keys.RoomShard(roomOf(name)); isRoom {
				names = append(names, name)
			}
		}
	})
	for _, name := range names {
		settings, readErr := db.Client.HGet(t.Context(), name, "settings").Result()
		if err = errors.Join(err, readErr); err != nil {
			break
		}
		packed := settingsLayout.Split(settings)
		if feeds := packed.Text("feeds"); strings.HasPrefix(feeds, "t.") {
			found[feeds] = append(found[feeds], roomOf(name))
		}
	}
	testkit.Check(t, err)
	return found
}

// roomOf returns the room of a key, or another text.
func roomOf(key string) string {
	_, room, _ := strings.Cut(key, "}:room:")
	return room
}
