package handlers_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/internal/players/users"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// What a permit may cost at most.
const (
	maxCommandsPerPermit  = 100
	maxBytesOutPerPermit  = 200_000
	maxPeerBytesPerPermit = 200_000 // to each socket
)

// requestCost is what a request or a message cost.
type requestCost struct {
	permits   int64 // 0: it is not limited
	commands  int64 // of the store, those inside scripts included
	bytesOut  int64 // out of the store
	peerBytes int64 // to the socket of another player who follows the room or the tournament
}

// meter sends the requests of the table and measures them.
type meter struct {
	*fixture          // the node that is measured
	setup    *fixture // a node without limits, for what must be there before
	stats    *redis.Client
	ids      map[string]string      // of the parameters of paths
	left     map[string]int64       // permits, by class and caller
	costs    map[string]requestCost // by operation, or type of message
	players  []player

	peer                 *testSocket // of players[1]
	room                 string      // that the peer follows
	tournament           int64
	roomHeard, tourHeard int64 // numbers of the last events that the peer has
}

const (
	costBurst   = 10_000 // permits of each class, which are not refilled
	costPlayers = 256    // the seats of the largest room by default
)

func newMeter(t *testing.T) *meter {
	t.Helper()
	server := redistest.StartForTest(t)
	open := func(url string) *redisdb.DB {
		db := testkit.Must(redisdb.Open(url))(t)
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	limits := ratelimit.DefaultLimits()
	for class, limit := range limits {
		limits[class] = ratelimit.Limit{PerDay: 1, Burst: costBurst, Scope: limit.Scope}
	}
	delete(limits, ratelimit.StateBytes)                  // the table has more bytes to peers than it allows
	limiter := ratelimit.New(redistest.Single(t), limits) // elsewhere, so that it is not measured
	db := open(server.URL())
	for _, s := range scripts.All() { // else the first call of a script sends it twice
		testkit.Check(t, db.Client.ScriptLoad(t.Context(), s.Source).Err())
	}
	m := &meter{
		fixture: newFixtureOn(t, db, func(d *handlers.Deps) { d.Limiter = limiter }),
		setup:   newFixtureOn(t, open(server.URL()), nil),
		stats:   redis.NewClient(&redis.Options{Network: "unix", Addr: server.Socket}), ids: map[string]string{},
		left: map[string]int64{}, costs: map[string]requestCost{},
	}
	t.Cleanup(func() { _ = m.stats.Close() })
	m.setup.createGame()
	m.game, m.serverKey, m.gold = m.setup.game, m.setup.serverKey, m.setup.gold
	m.setup.allowState(`{"stateKeys":{"":"all"},"turnTimeout":"skip"}`)
	avatar := "https://a.example/" + strings.Repeat("x", users.MaxAvatarBytes-len("https://a.example/"))
	for i := range costPlayers {
		p := m.setup.guest(fmt.Sprintf("Player %d %s", i, strings.Repeat("x", 16)))
		testkit.Must(m.setup.deps.Users.Patch(t.Context(), m.caller(p), p.id,
			users.PatchInput{Avatar: wire.Given(&avatar)}))(t)
		m.players = append(m.players, p)
	}
	m.ids["{gameId}"], m.ids["{tokenId}"] = strconv.FormatInt(m.game, 10), "GOLD"
	return m
}

func (m *meter) caller(p player) principal.Caller {
	return principal.Caller{Role: principal.Player, UserID: p.id, GameID: m.game}
}

// setID sets what stands for a parameter in paths.
func (m *meter) setID(name string, id any) { m.ids["{"+name+"}"] = fmt.Sprint(id) }

var commandCalls = regexp.MustCompile(`(?m)^cmdstat_([^:]+):calls=([0-9]+)`)

// isOfTheMeter reports whether nobody but the meter and the clock of a node send a command.
func isOfTheMeter(command string) bool {
	return slices.Contains([]string{"info", "config|resetstat"}, command)
}

// measure measures what send does, which returns the permits that it took.
func (m *meter) measure(name string, send func() (permits int64)) {
	m.t.Helper()
	ctx := m.t.Context()
	testkit.Check(m.t, m.stats.ConfigResetStat(ctx).Err())
	c := requestCost{permits: send()}
	info := testkit.Must(m.stats.InfoMap(ctx, "commandstats", "stats").Result())(m.t)
	var names []string
	for command, stat := range info["Commandstats"] {
		found := commandCalls.FindStringSubmatch(command + ":" + stat)
		if found == nil || isOfTheMeter(found[1]) {
			continue
		}
		calls, _ := strconv.ParseInt(found[2], 10, 64)
		c.commands += calls
		names = append(names, fmt.Sprintf("%s×%d", found[1], calls))
	}
	c.bytesOut, _ = strconv.ParseInt(info["Stats"]["total_net_output_bytes"], 10, 64)
	c.peerBytes = m.peerBytes()
	slices.Sort(names)
	m.t.Logf("%-75s %3d permits %5d commands %7d out %6d peer %v", name, c.permits, c.commands, c.bytesOut, c.peerBytes,
		names)
	m.costs[name] = c.dearer(m.costs[name])
}

// dearer returns whichever costs more for each permit.
func (c requestCost) dearer(other requestCost) requestCost {
	if other.perPermit(other.commands)+other.perPermit(other.bytesOut)/1000 >
		c.perPermit(c.commands)+c.perPermit(c.bytesOut)/1000 {
		return other
	}
	return c
}

func (c requestCost) perPermit(n int64) int64 {
	permits := max(1, c.permits)
	return (n + permits - 1) / permits
}

// peerBytes returns the bytes that the peer has got since the last call, with every event until
// now.
func (m *meter) peerBytes() (size int64) {
	m.t.Helper()
	roomSeq, tourSeq := int64(0), int64(0)
	if m.room != "" {
		r := testkit.Must(m.setup.deps.Rooms.Get(m.t.Context(), principal.Caller{Role: principal.Operator}, m.room))(m.t)
		roomSeq = r.Seq
	}
	if m.tournament != 0 {
		t := testkit.Must(m.setup.deps.Tournaments.Get(m.t.Context(), principal.Caller{Role: principal.Operator}, m.game,
			m.tournament))(m.t)
		tourSeq = t.Seq
	}
	for m.roomHeard < roomSeq || m.tourHeard < tourSeq {
		size += m.nextOfPeer()
	}
	return size
}

// nextOfPeer waits for the next event of the peer and returns its bytes, 0 when nobody else has
// caused it.
func (m *meter) nextOfPeer() int64 {
	m.t.Helper()
	e := m.peer.nextEvent()
	switch {
	case strings.HasPrefix(e.Type, "room.") && e.RoomID == m.room:
		m.roomHeard = max(m.roomHeard, e.Seq)
	case strings.HasPrefix(e.Type, "tournament."):
		m.tourHeard = max(m.tourHeard, e.Seq)
	case e.Type != "room.message":
		return 0 // of the peer's own money, or of another room
	}
	return int64(len(e.raw))
}

// followRoom lets the peer follow a room.
func (m *meter) followRoom(room string) {
	m.t.Helper()
	m.peerBytes()
	start := m.peer.subscribe(room, "")
	m.room, m.roomHeard = room, seqOf(start.data("position"))
}

// seqOf returns the number of an event by its position "<seq>-<nonce>".
func seqOf(position any) int64 {
	text, _, _ := strings.Cut(position.(string), "-")
	seq, _ := strconv.ParseInt(text, 10, 64)
	return seq
}

var remainingPermits = regexp.MustCompile(`^"([a-z-]+)";r=([0-9]+)`)

// tries is how often a request is sent that the store has not done in time: on a busy machine with
// the race detector the largest batches take longer than a request lasts.
const tries = 5

// prepare sends a request that must succeed, and is not measured.
func (m *meter) prepare(method, path, bearer, body string) {
	m.t.Helper()
	resp := m.setup.send(method, path, bearer, body)
	for n := 1; resp.status == 503 && n < tries; n++ {
		resp = m.setup.send(method, path, bearer, body)
	}
	if resp.status != 200 {
		m.t.Fatalf("%s %s %.300s returned %d %s", method, path, body, resp.status, resp.raw)
	}
}

// permitsOf returns the permits that a request took, by its response.
func (m *meter) permitsOf(resp *httpResult, bearer string) int64 {
	found := remainingPermits.FindStringSubmatch(resp.header.Get("Ratelimit"))
	if found == nil {
		return 0
	}
	left, _ := strconv.ParseInt(found[2], 10, 64)
	who := found[1] + " " + bearer
	if ratelimit.DefaultLimits()[ratelimit.Class(found[1])].Scope == ratelimit.ScopeAddress {
		who = found[1]
	}
	before, known := m.left[who]
	if !known {
		before = costBurst
	}
	m.left[who] = left
	return before - left
}

// http measures a request. operation is that of routes.go; query begins with "?" or is "".
func (m *meter) http(status int, operation, bearer, query, body string, headers ...string) *httpResult {
	m.t.Helper()
	method, path, _ := strings.Cut(operation, " ")
	for name, id := range m.ids {
		path = strings.ReplaceAll(path, name, id)
	}
	var resp *httpResult
	m.measure(operation, func() (permits int64) {
		for range tries {
			resp = m.send(method, path+query, bearer, body, headers...)
			permits = m.permitsOf(resp, bearer)
			if resp.status != 503 {
				break
			}
			m.must(m.stats.ConfigResetStat(m.t.Context()).Err())
		}
		return permits
	})
	if resp.status != status {
		m.t.Fatalf("%s %.300s returned %d %s; want %d", operation, body, resp.status, resp.raw, status)
	}
	return resp
}

// message measures a message of a player.
func (m *meter) message(p player, s *testSocket, messageType, data string) received {
	m.t.Helper()
	var r received
	m.measure(messageType, func() (permits int64) {
		before := m.permitsLeft(p)
		if r = s.request(messageType, data); !*r.OK {
			m.t.Fatalf("the reply to %s is %s", messageType, r.raw)
		}
		if strings.Contains(messageType, ".subscribe") { // its reply comes before it has taken its permits
			s.expectOK("done", "board.unsubscribe", `{"board":"none"}`)
		}
		return before - m.permitsLeft(p)
	})
	return r
}

func (m *meter) permitsLeft(p player) (left int64) {
	for _, class := range []ratelimit.Class{ratelimit.Read, ratelimit.Write, ratelimit.Call} {
		left += m.deps.Limiter.Charge(class, m.caller(p).ActorID(), 0).Remaining
	}
	return left
}

func (m *meter) must(err error) {
	m.t.Helper()
	testkit.Check(m.t, err)
}

// seat gives players seats in a room.
func (m *meter) seat(room string, players []player) {
	m.t.Helper()
	for _, p := range players {
		_, err := m.setup.deps.Rooms.Join(m.t.Context(), m.caller(p), room, idempotency.Receipt{})
		m.must(err)
	}
}

func jsonList[T any](list []T, format func(i int, one T) string) string {
	parts := make([]string, len(list))
	for i, one := range list {
		parts[i] = format(i, one)
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// placements returns the results of a room in which the players come in their order.
func placements(players []player) string {
	return jsonList(players, func(i int, p player) string {
		return fmt.Sprintf(`{"userId":%d,"place":%d,"score":%d}`, p.id, i+1, 1_000_000-i)
	})
}

var (
	largeMetadata = `{"m":"` + strings.Repeat("x", 4<<10-8) + `"}`
	largeState    = strings.Repeat("x", 16<<10-11)
)

// measureRooms measures what concerns rooms, in the largest ones.
func (m *meter) measureRooms() {
	const session = "/api/v1/game-session/"
	players := m.players
	host, server := players[0], m.serverKey
	create := fmt.Sprintf(`{"entryTokenId":%d,"roomEntry":1,"maxPlayers":%d,"metadata":%s,"payout":%s%%s}`, m.gold,
		len(players), largeMetadata, jsonList(players, func(i int, _ player) string {
			if i == 0 {
				return strconv.Itoa(10_001 - len(players))
			}
			return "1"
		}))
	room := m.http(201, "POST "+session+"create", host.token, "", fmt.Sprintf(create, "")).text("roomId")
	body := roomBody(room)
	m.seat(room, players[1:len(players)-2])
	m.peer = m.dialRealtime(players[1])
	m.followRoom(room)
	m.http(200, "POST "+session+"join", players[len(players)-2].token, "", body)
	m.http(200, "POST /join", players[len(players)-1].token, "", body)
	m.http(200, "POST "+session+"ready", players[2].token, "", fmt.Sprintf(`{"roomId":%q,"ready":true}`, room))
	m.http(200, "POST "+session+"kick", host.token, "", fmt.Sprintf(`{"roomId":%q,"userId":%d,"ban":true}`, room,
		players[3].id))
	m.http(200, "POST "+session+"leave", players[4].token, "", body)
	m.http(200, "POST "+session+"transfer-host", host.token, "", fmt.Sprintf(`{"roomId":%q,"userId":%d}`, room,
		players[5].id))
	m.http(200, "POST "+session+"start", server, "", body)
	m.http(200, "POST "+session+"turn", server, "", fmt.Sprintf(`{"roomId":%q,"userId":%d,"seconds":30}`, room,
		players[1].id))
	m.http(200, "POST "+session+"state", server, "", fmt.Sprintf(`{"roomId":%q,"patch":{"a":%q}}`, room, largeState))
	m.http(200, "GET "+session+"get", players[2].token, "?roomId="+room, "")
	m.measureRoomMessages(room, players[5], players[6])
	m.measureCalls(room, players[6])
	m.http(200, "GET "+adminEvents, adminKey, "", "")
	seated := slices.Concat(players[:3], players[5:])
	m.http(200, "POST "+session+"finish", server, "", fmt.Sprintf(`{"roomId":%q,"results":%s}`, room, placements(seated)),
		"Idempotency-Key", "finish")
	m.http(201, "POST "+session+"rematch", players[5].token, "", body)

	other := m.setup.expect(201, "POST", session+"create", host.token, fmt.Sprintf(create, "")).text("roomId")
	m.seat(other, players[1:])
	m.followRoom(other)
	m.http(200, "POST "+session+"cancel", host.token, "", roomBody(other))

	players = players[:32] // that a room with consensus may have
	disputed := m.setup.expect(201, "POST", session+"create", host.token, fmt.Sprintf(
		`{"entryTokenId":%d,"roomEntry":1,"maxPlayers":32,"metadata":%s,"settlement":"consensus"}`, m.gold,
		largeMetadata)).text("roomId")
	m.seat(disputed, players[1:])
	m.followRoom(disputed)
	m.setup.expect(200, "POST", session+"start", host.token, roomBody(disputed))
	m.peerBytes()
	backwards := slices.Clone(players)
	slices.Reverse(backwards)
	for i, order := range [][]player{players, backwards} {
		m.http(200, "POST "+session+"finish", players[i].token, "", fmt.Sprintf(`{"roomId":%q,"results":%s}`, disputed,
			placements(order)), "Idempotency-Key", "report")
	}
	m.setID("roomId", disputed)
	m.http(200, "POST /api/v1/admin/rooms/{roomId}/resolve", adminKey, "", `{"results":`+placements(players)+`}`)
	m.room = ""

	for i := range 100 { // of which eight belong to one player
		_, err := m.setup.deps.Rooms.Create(m.t.Context(), m.caller(players[10+i/8]), rooms.CreateInput{
			MaxPlayers: costPlayers, Metadata: wire.RawJSON(largeMetadata),
		}, idempotency.Receipt{})
		m.must(err)
	}
	m.http(200, "GET "+session+"list", players[2].token, "?limit=100", "")
	m.http(200, "GET "+session+"list", players[10].token, "?limit=100&hasSeat=false", "")
	m.http(200, "GET /api/v1/admin/rooms", adminKey, "?limit=100", "")
}

const adminEvents = "/api/v1/admin/rooms/{roomId}/events"

// measureRoomMessages measures the messages of a socket about a room that has begun.
func (m *meter) measureRoomMessages(room string, host, p player) {
	s := m.dialRealtime(p)
	m.message(p, s, "auth.refresh", tokenBody(p.token))
	m.message(p, s, "room.subscribe", roomBody(room))
	m.message(p, s, "room.unsubscribe", roomBody(room))
	m.message(p, s, "user.subscribe", `{"after":{"money":"0-0","progress":"0-0"}}`)
	m.message(p, s, "room.subscribe", roomBody(room))
	for version := 1; version <= 10; version++ { // what a room keeps of its state's events is then at its largest
		m.message(p, s, "room.state.set", fmt.Sprintf(`{"roomId":%q,"version":%d,"patch":{"a":%q}}`, room, version,
			largeState[:15_000]))
	}
	h := m.dialRealtime(host)
	m.message(host, h, "room.turn.set", fmt.Sprintf(`{"roomId":%q,"userId":%d,"seconds":30}`, room, p.id))
	m.setID("roomId", room)
	size := int64(0)
	before := m.permitsLeft(p)
	m.measure("room.send", func() int64 {
		s.send(fmt.Sprintf(`{"type":"room.send","data":{"roomId":%q,"op":"x","payload":%q}}`, room,
			strings.Repeat("x", 8<<10-2)))
		for size == 0 {
			size = m.nextOfPeer()
		}
		return before - m.permitsLeft(p)
	})
	c := m.costs["room.send"]
	c.peerBytes = size
	m.costs["room.send"] = c
	s.disconnect()
	h.disconnect()
}

// measureCalls measures calls of a server that answers at once.
func (m *meter) measureCalls(room string, p player) {
	server := m.dialServer(m.serverKey)
	server.subscribe(room, "")
	payload := `"` + strings.Repeat("x", 8<<10-2) + `"`
	stop := server.answerAll(`"payload":` + payload)
	call := callBody(room, "x", `,"payload":`+payload)
	s := m.dialRealtime(p)
	m.message(p, s, "room.call", call)
	m.http(200, "POST /api/v1/game-session/call", p.token, "", call)
	stop()
	s.disconnect()
	server.disconnect()
}

// measureBoards measures what concerns leaderboards, on one with the most shards, whose entries
// have the largest details.
func (m *meter) measureBoards() {
	const board = "/api/v1/leaderboards/{board}"
	const adminBoards = "/api/v1/admin/games/{gameId}/leaderboards"
	const adminBoard = adminBoards + "/{board}"
	ann, server := m.players[0], m.serverKey
	definition := func(key, more string) string {
		return fmt.Sprintf(`{"board":%q,"name":"Top","shards":64,"ties":"shared","segments":["country"],"metadata":%s%s}`,
			key, largeMetadata, more)
	}
	for i := range 99 {
		m.setup.expect(201, "POST", m.gamePath()+"/leaderboards", server,
			fmt.Sprintf(`{"board":"b%d","name":"Top","metadata":%s}`, i, largeMetadata))
	}
	m.setID("board", "top")
	m.http(201, "POST "+adminBoards, server, "", definition("top", `,"writers":["server","players"]`))
	details := fmt.Sprintf(`"metadata":{"m":%q},"evidence":{"roomId":%q,"url":"https://a.example/%s","digest":%q}`,
		strings.Repeat("x", 1<<10-10), strings.Repeat("x", 500), strings.Repeat("x", 480), strings.Repeat("x", 500))
	batch := func(players []player, more string) string {
		return `{"scores":` + jsonList(players, func(i int, p player) string {
			return fmt.Sprintf(`{"userId":%d,"score":%d,"segments":{"country":"DE"}%s}`, p.id, i, more)
		}) + `}`
	}
	for part := range slices.Chunk(m.players, 20) { // so many of the largest fit into a body
		m.prepare("POST", "/api/v1/leaderboards/top/scores/batch", server, batch(part, ","+details))
	}
	m.http(200, "POST "+board+"/scores/batch", server, "", batch(m.players[100:200], ""))
	m.http(200, "POST "+board+"/scores", ann.token, "", `{"score":7,`+details+`}`)
	for _, operation := range []string{board, board + "/seasons"} {
		m.http(200, "GET "+operation, ann.token, "", "")
	}
	for _, operation := range []string{
		"/api/v1/leaderboards", board + "/entries", board + "/entries/around", board + "/entries/friends",
	} {
		m.http(200, "GET "+operation, ann.token, "?limit=100", "")
	}
	m.setID("userId", ann.id)
	m.http(200, "GET "+board+"/entries/{userId}", ann.token, "", "")
	m.http(200, "GET "+adminBoards, server, "?limit=100", "")
	m.http(200, "GET "+adminBoard, server, "", "")
	watcher := m.players[13]
	s := m.dialRealtime(watcher)
	m.message(watcher, s, "board.subscribe", `{"board":"top","top":100,"around":25}`)
	m.message(watcher, s, "board.unsubscribe", `{"board":"top"}`)
	s.disconnect()
	for _, verb := range []string{"hide", "unhide", "remove"} {
		m.http(200, "POST "+adminBoard+"/entries/{userId}/"+verb, server, "", `{"reason":"x"}`)
	}

	m.setup.expect(201, "POST", m.gamePath()+"/leaderboards", server, definition("plays",
		`,"writers":["players"],"rules":{"play":true,"max":5}`))
	m.setID("board", "plays")
	m.http(201, "POST "+board+"/plays", ann.token, "", "")
	m.setup.expect(201, "POST", m.gamePath()+"/leaderboards", server,
		`{"board":"league","name":"L","schedule":{"everySeconds":86400},"league":{"tiers":["a","b"],"size":100,`+
			`"promote":1,"relegate":1}}`)
	for part := range slices.Chunk(m.players[:100], 50) {
		m.prepare("POST", "/api/v1/leaderboards/league/scores/batch", server, `{"scores":`+jsonList(part,
			func(i int, p player) string { return fmt.Sprintf(`{"userId":%d,"score":%d}`, p.id, i) })+`}`)
	}
	m.setID("board", "league")
	m.http(200, "GET "+board+"/league", ann.token, "", "")
	m.setID("board", "b1")
	m.http(200, "PATCH "+adminBoard, server, "", `{"name":"New"}`)
	m.http(204, "DELETE "+adminBoard, server, "", "")
	for _, key := range []string{"held", "kept"} {
		m.setup.createHeldSeason(key, ann.id)
	}
	m.setID("season", 1)
	m.setID("board", "held")
	m.http(200, "POST "+adminBoard+"/seasons/{season}/approve", adminKey, "", `{"reason":"x"}`)
	m.setID("board", "kept")
	m.http(200, "POST "+adminBoard+"/seasons/{season}/void", adminKey, "", `{"reason":"x"}`)
	m.setID("board", "top")
	m.http(200, "POST "+adminBoard+"/seasons/{season}/end", adminKey, "", `{"reason":"x"}`)
}

// measureTournaments measures what concerns tournaments, with as many entrants as players.
func (m *meter) measureTournaments() {
	const tour = "/api/v1/tournaments/{tournamentId}"
	const adminTours = "/api/v1/admin/games/{gameId}/tournaments"
	const adminTour = adminTours + "/{tournamentId}"
	players, server := m.players, m.serverKey
	body := func(format, more string) string {
		return fmt.Sprintf(`{"name":"Cup","format":%q,"maxEntrants":1000,"startsAt":%q,"seeding":"joined","metadata":%s%s}`,
			format, inAnHour(), largeMetadata, more)
	}
	fee := fmt.Sprintf(`,"entryTokenId":%d,"entryFee":1`, m.gold)
	enter := func(id int64, players []player) {
		for _, p := range players {
			_, err := m.setup.deps.Tournaments.Join(m.t.Context(), m.caller(p), m.game, id, idempotency.Receipt{})
			m.must(err)
		}
	}
	made := m.http(201, "POST "+adminTours, adminKey, "", body("single_elimination", fee+
		`,"checkInOpensAt":"2026-01-01T00:00:00Z"`))
	id := made.id("tournamentId")
	m.setID("tournamentId", id)
	enter(id, players[1:])
	start := m.peer.request("tournament.subscribe", fmt.Sprintf(`{"tournamentId":%d}`, id))
	m.tournament, m.tourHeard = id, seqOf(start.data("position"))
	m.http(200, "POST "+tour+"/join", players[0].token, "", "")
	m.setup.driveTournaments()
	m.peerBytes()
	m.http(200, "POST "+tour+"/check-in", players[0].token, "", "")
	m.http(200, "POST "+tour+"/leave", players[4].token, "", "")
	m.setID("userId", players[3].id)
	m.http(200, "POST "+adminTour+"/entrants/{userId}/disqualify", server, "", "")
	s := m.dialRealtime(players[7])
	m.message(players[7], s, "tournament.subscribe", fmt.Sprintf(`{"tournamentId":%d}`, id))
	m.message(players[7], s, "tournament.unsubscribe", fmt.Sprintf(`{"tournamentId":%d}`, id))
	s.disconnect()
	m.http(200, "POST "+adminTour+"/cancel", server, "", "")
	m.tournament = 0
	m.setup.driveTournaments()
	m.http(204, "DELETE "+adminTour, server, "", "")

	running := m.setup.expect(201, "POST", m.gamePath()+"/tournaments", adminKey, body("single_elimination", fee)).
		id("tournamentId")
	m.setID("tournamentId", running)
	enter(running, players[:2])
	enter(running, players[2:])
	m.http(200, "POST "+adminTour+"/start", server, "", "")
	m.setup.driveTournaments()
	for _, list := range []string{"entrants", "matches", "standings"} {
		m.http(200, "GET "+tour+"/"+list, players[0].token, "?limit=100", "")
	}
	m.http(200, "GET "+tour, players[0].token, "", "")
	m.setID("matchId", "r1m1")
	m.http(200, "POST "+adminTour+"/matches/{matchId}/resolve", server, "", fmt.Sprintf(`{"winnerId":%d}`, players[0].id))
	for range 97 {
		m.setup.expect(201, "POST", m.gamePath()+"/tournaments", adminKey, body("swiss", ""))
	}
	m.http(200, "GET /api/v1/tournaments", players[0].token, "?limit=100", "")
	score := m.setup.startAttempts(players[:2]...)
	m.setID("tournamentId", score[strings.LastIndexByte(score, '/')+1:])
	m.http(201, "POST "+tour+"/attempts", players[0].token, "", "")
}

// befriendAll makes the first player the friend of all others.
func (m *meter) befriendAll() {
	ann := m.players[0].id
	_, err := m.stats.Pipelined(m.t.Context(), func(p redis.Pipeliner) error {
		for _, other := range m.players[1:] {
			p.HSet(m.t.Context(), keys.PlayerPair(ann, other.id), "rel", "friends", "since", "1700000000000")
			p.ZAdd(m.t.Context(), keys.Friends(ann), redis.Z{Score: float64(other.id), Member: other.id})
		}
		return nil
	})
	m.must(err)
}

// measureAccounts measures what concerns players, their saves and their money.
func (m *meter) measureAccounts() {
	const admin, user = "/api/v1/admin/", "/api/v1/admin/users/{userId}"
	ann, bob, server := m.players[0], m.players[8], m.serverKey
	guest := m.http(201, "POST /api/v1/auth/guest", "", "",
		fmt.Sprintf(`{"gameId":%d,"deviceSecret":"0123456789abcdef0123456789abcdef"}`, m.game))
	m.http(201, "POST /api/v1/auth/exchange", server, "", `{"externalId":"x"}`)
	m.http(200, "POST /api/v1/auth/refresh", "", "", fmt.Sprintf(`{"refreshToken":%q}`, guest.text("refreshToken")))
	gone := player{id: guest.id("user.id"), token: guest.text("accessToken")}
	m.http(200, "POST /api/v1/auth/link", bob.token, "", `{"deviceSecret":"0123456789abcdef0123456789abcdee"}`)
	m.http(200, "POST /api/v1/auth/ticket", m.players[12].token, "", "")
	m.http(200, "GET /api/v1/me", ann.token, "", "")
	m.http(200, "PATCH /api/v1/me", ann.token, "", `{"username":"Anna"}`)
	m.http(200, "PUT /api/v1/me/limits", ann.token, "", `{"tokenId":"GOLD","maxStake":1,"maxLoss24h":1000}`)
	m.http(200, "GET /api/v1/me/limits", ann.token, "", "")
	m.http(200, "GET /api/v1/friends", ann.token, "?limit=100", "")
	m.setID("userId", bob.id)
	m.http(200, "POST /api/v1/friends/{userId}", m.players[9].token, "", "")
	m.http(204, "DELETE /api/v1/friends/{userId}", m.players[9].token, "", "")
	m.http(200, "POST /api/v1/friends/{userId}/block", m.players[9].token, "", "")
	m.http(200, "GET /api/v1/user-balance/token-balances", ann.token, "", "")

	for i := range 100 {
		made := m.setup.expect(201, "POST", m.gamePath()+"/assets", server, fmt.Sprintf(
			`{"name":"Sword","tokenId":"GOLD","price":0,"metadata":{"m":%q}}`, strings.Repeat("x", 4096-8)))
		m.setID("gameAssetId", made.id("id"))
		m.setID("assetId", made.id("id"))
		m.setup.expect(201, "POST", fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", made.id("id")), ann.token, "",
			"Idempotency-Key", fmt.Sprint("buy-", i))
	}
	m.http(201, "POST /api/v1/user-assets/add/game-asset/{gameAssetId}", ann.token, "", "", "Idempotency-Key", "buy")
	m.http(200, "GET /api/v1/user-assets", ann.token, "?limit=100", "")
	m.http(200, "GET /api/v1/game-assets", ann.token, "?limit=100", "")
	m.http(200, "GET /api/v1/user-balance/ledger", ann.token, "?limit=100", "")
	const assets = admin + "games/{gameId}/assets"
	bow := m.http(201, "POST "+assets, server, "", `{"name":"Bow","tokenId":"GOLD","price":1}`)
	m.http(200, "GET "+assets, server, "?limit=100", "")
	m.http(200, "GET "+assets+"/{assetId}", server, "", "")
	m.http(200, "PATCH "+assets+"/{assetId}", server, "", `{"name":"Axe"}`)
	m.setID("assetId", bow.id("id"))
	m.http(204, "DELETE "+assets+"/{assetId}", server, "", "")

	m.setID("slot", "main")
	state := fmt.Sprintf(`{"s":%q}`, strings.Repeat("x", 256<<10-8))
	m.http(200, "PUT "+user+"/saves/{slot}", server, "", `{"state":`+state+`}`)
	m.http(200, "GET "+user+"/saves/{slot}", server, "", "")
	m.http(200, "GET "+user+"/saves", server, "", "")
	s := m.dial(savePath, bob.token)
	m.message(bob, s, "save", `{"slot":"main","version":1,"state":`+state+`}`)
	m.message(bob, s, "load", `{"slot":"main"}`)
	m.message(bob, s, "list", "{}")
	m.message(bob, s, "history", `{"slot":"main"}`)
	m.message(bob, s, "restore", `{"slot":"main","version":1}`)
	s.disconnect()

	m.http(200, "GET "+user, server, "", "")
	m.http(200, "GET "+admin+"users", server, "?limit=100", "")
	m.http(200, "GET "+user+"/limits", server, "", "")
	m.http(200, "PUT "+user+"/limits", adminKey, "", `{"tokenId":"GOLD","maxStake":1}`)
	for _, verb := range []string{"credit", "debit"} {
		m.http(200, "POST "+user+"/"+verb, server, "", `{"tokenId":"GOLD","amount":1,"reason":"x"}`, "Idempotency-Key", verb)
	}
	m.http(200, "GET "+user+"/ledger", server, "?limit=100", "")
	m.http(200, "GET "+user+"/sessions", adminKey, "", "")
	m.http(200, "POST "+user+"/suspend", adminKey, "", `{"reason":"x"}`)
	m.http(200, "POST "+user+"/unsuspend", adminKey, "", "")
	m.http(204, "DELETE "+user+"/sessions", adminKey, "", "")
	m.http(204, "DELETE /api/v1/me", gone.token, "", "")
	m.http(204, "POST /api/v1/auth/logout", m.players[11].token, "", "")
}

// measureSockets measures how sockets are opened.
func (m *meter) measureSockets(p player) {
	for _, path := range []string{savePath, loadPath, realtimePath} {
		m.measure("GET "+path, func() int64 {
			left := func() int64 {
				return m.deps.Limiter.Charge(ratelimit.Socket, m.caller(p).ActorID(), 0).Remaining
			}
			before := left()
			s := m.dial(path, p.token)
			if path == realtimePath {
				s.next()
			}
			return before - left()
		})
	}
}

// measureAdmin measures what operators and probes do.
func (m *meter) measureAdmin() {
	const admin = "/api/v1/admin/"
	m.http(201, "POST "+admin+"games", adminKey, "", `{"name":"New"}`)
	m.http(200, "GET "+admin+"games", adminKey, "?limit=100", "")
	m.http(200, "GET "+admin+"games/{gameId}", m.serverKey, "", "")
	m.http(200, "PATCH "+admin+"games/{gameId}", adminKey, "", `{"name":"Duels"}`)
	key := m.http(201, "POST "+admin+"games/{gameId}/server-keys", adminKey, "", "")
	m.setID("keyId", key.text("game.serverKeys.1.id"))
	m.http(200, "GET "+admin+"games/{gameId}/activity", m.serverKey, "", "")
	m.http(200, "GET "+admin+"games/{gameId}/ledger", adminKey, "?limit=100", "")
	m.http(200, "POST "+admin+"games/{gameId}/accept-audit", adminKey, "", `{"reason":"x"}`)
	m.http(201, "POST "+admin+"tokens", adminKey, "", `{"tokenId":"GEM","tokenName":"Gem","metadata":{"decimals":"0"}}`)
	m.http(200, "GET "+admin+"tokens", adminKey, "", "")
	m.http(200, "GET "+admin+"tokens/{tokenId}", adminKey, "", "")
	m.http(200, "PATCH "+admin+"tokens/{tokenId}", adminKey, "", "{}")
	m.http(200, "GET "+admin+"nodes", adminKey, "", "")
	m.http(202, "POST "+admin+"users/{userId}/messages", m.serverKey, "", `{"op":"x","payload":"`+
		strings.Repeat("x", 4<<10-2)+`"}`)
	m.http(200, "GET "+admin+"trail", adminKey, "?limit=100", "")
	m.http(200, "GET "+admin+"audit", adminKey, "", "")
	m.http(201, "POST "+admin+"console-links", adminKey, "", "")
	m.http(204, "DELETE "+admin+"console-sessions", adminKey, "", "")
	m.http(200, "DELETE "+admin+"games/{gameId}/server-keys/{keyId}", adminKey, "", "")
	for _, path := range []string{"/healthz", "/balancez", "/readyz", "/openapi.yaml", "/asyncapi.yaml"} {
		m.http(200, "GET "+path, "", "", "")
	}
}

// TestNoPermitCostsMoreThanItsCeiling sends every request and message at its largest input, and
// compares what each permit costs with the table of docs/limits.md. With -update it writes the
// table. A figure that is right stays as it is: within a quarter below what was measured, and not
// more than twice as much.
func TestNoPermitCostsMoreThanItsCeiling(t *testing.T) {
	m := newMeter(t)
	m.befriendAll()
	m.measureRooms()
	m.measureBoards()
	m.measureTournaments()
	m.measureAccounts()
	m.measureSockets(m.players[20])
	m.measureAdmin()
	names := slices.Sorted(slices.Values(slices.Concat(operations(), handlers.MessageTypes())))
	if measured := slices.Sorted(maps.Keys(m.costs)); !slices.Equal(names, measured) {
		t.Fatalf("not measured: %v; measured, but not served: %v", without(names, measured), without(measured, names))
	}
	page := testkit.Must(os.ReadFile(limitsPage))(t)
	head, rest, ok := strings.Cut(string(page), permitTableHead)
	table, tail, complete := strings.Cut(rest, "\n\n")
	if !ok || !complete {
		t.Fatalf("%s has no table that begins with %q", limitsPage, permitTableHead)
	}
	documented := map[string]string{}
	for line := range strings.Lines(table + "\n") {
		if cells := strings.Split(line, "|"); len(cells) > 1 {
			documented[strings.Trim(cells[1], " `")] = line
		}
	}
	var fresh strings.Builder
	for _, name := range names {
		c := m.costs[name]
		if c.perPermit(c.commands) > maxCommandsPerPermit || c.perPermit(c.bytesOut) > maxBytesOutPerPermit ||
			c.perPermit(c.peerBytes) > maxPeerBytesPerPermit {
			t.Errorf("%s costs too much: %d permits, %d commands, %d bytes out of the store, %d to each peer", name,
				c.permits, c.commands, c.bytesOut, c.peerBytes)
		}
		line := documented[name]
		if !c.isShownBy(line) {
			if !*update {
				t.Errorf("%s costs %s, and the table says %q; after a look, run go test ./handlers -run %s -update", name,
					c.row(name), line, t.Name())
			}
			line = c.row(name)
		}
		fresh.WriteString(line)
	}
	if *update {
		text := head + permitTableHead + strings.TrimSuffix(fresh.String(), "\n") + "\n\n" + tail
		testkit.Check(t, os.WriteFile(limitsPage, []byte(text), 0o644))
	}
}

const (
	limitsPage      = "../docs/limits.md"
	permitTableHead = "| request or message | permits | commands a permit | bytes out of the store a permit | " +
		"bytes to each peer a permit |\n|---|---|---|---|---|\n"
)

// figures returns the figures of a row: permits, and what each of them costs.
func (c requestCost) figures() [4]int64 {
	return [4]int64{c.permits, c.perPermit(c.commands), c.perPermit(c.bytesOut), c.perPermit(c.peerBytes)}
}

// ceilings are what figures may not exceed; permits have none.
var ceilings = [4]int64{1 << 30, maxCommandsPerPermit, maxBytesOutPerPermit, maxPeerBytesPerPermit}

// slack is what a figure may be off: what the nodes do by themselves meanwhile is measured as well,
// and on a slow machine what both read again of games, leaderboards and tournaments after a second.
var slack = [4]int64{1, 30, 25_000, 1_000}

// row returns the row of the table. Figures beside the permits are rounded up.
func (c requestCost) row(name string) string {
	f := c.figures()
	for i, step := range []int64{1: 1, 2: 100, 3: 100} {
		if i > 0 {
			f[i] = min(roundUp(f[i], step), max(f[i], ceilings[i]))
		}
	}
	return fmt.Sprintf("| `%s` | %d | %d | %d | %d |\n", name, f[0], f[1], f[2], f[3])
}

// roundUp returns n rounded up to two digits, or to a step.
func roundUp(n, step int64) int64 {
	if n <= step/2 {
		return 0
	}
	for step*100 <= n {
		step *= 10
	}
	return (n + step - 1) / step * step
}

// isShownBy reports whether a row of the table is right.
func (c requestCost) isShownBy(line string) bool {
	cells := strings.Split(line, "|")
	if len(cells) != 7 {
		return false
	}
	for i, figure := range c.figures() {
		shown, err := strconv.ParseInt(strings.TrimSpace(cells[i+2]), 10, 64)
		if err != nil || shown+shown/4+slack[i] < figure || shown > 2*figure+slack[i] || shown > ceilings[i] {
			return false
		}
	}
	return true
}
