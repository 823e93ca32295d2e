package chaos

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	parlor "github.com/parlor-games/parlor/sdk/go"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

var serverRooms = flag.Int("rooms", 0, "rooms that game servers end; 0: the size of the form")

// The game of these tests: four players move in turns, twice each, and who has the largest sum
// wins.
const (
	seatsOfMatch = 4
	movesOfMatch = 2 * seatsOfMatch
)

// move is what a player asks the game's server for. N names it: a move that is sent again is the
// same move.
type move struct {
	N     int   `json:"n"` // from 1
	Value int64 `json:"value"`
}

// match is what the game keeps of a room.
type match struct {
	moves   []move
	players []int64          // of the moves
	sums    map[int64]int64  // by player
	heard   map[int64]string // types of the room's events, by seq
	lastSeq int64
}

// gameRecords is the database of the game: it outlives every process of its servers.
type gameRecords struct {
	mu        sync.Mutex
	matches   map[string]*match
	positions map[int]map[string]string // by share, as its server saved them
	faults    []string
	repeated  int // events that came again, which the records knew
	gaps      int
	mayGap    bool // a primary was killed last: its newest events may be lost
}

func newGameRecords() *gameRecords {
	return &gameRecords{matches: map[string]*match{}, positions: map[int]map[string]string{}}
}

func (g *gameRecords) fault(format string, args ...any) {
	if len(g.faults) < 20 {
		g.faults = append(g.faults, fmt.Sprintf(format, args...))
	}
}

func (g *gameRecords) match(room string) *match {
	m := g.matches[room]
	if m == nil {
		m = &match{sums: map[int64]int64{}, heard: map[int64]string{}}
		g.matches[room] = m
	}
	return m
}

// gameServer is one process of the game's server. When it is killed it can neither write records
// nor reach a node, whatever it is doing.
type gameServer struct {
	records *gameRecords
	share   parlor.Share
	front   *balancer
	lib     *parlor.Server
	isDead  atomic.Bool
	stop    context.CancelFunc
	done    chan struct{}
}

var errDead = errors.New("this process is dead")

func startGameServer(t *testing.T, in *installation, records *gameRecords, share parlor.Share) *gameServer {
	t.Helper()
	s := &gameServer{records: records, share: share, front: startBalancer(t, in), done: make(chan struct{})}
	s.lib = testkit.Must(parlor.NewServer(parlor.Options{
		URL: s.front.url(), Key: in.serverKey, Share: &share, Positions: s, Log: slog.New(slog.DiscardHandler),
	}))(t)
	for _, event := range []string{"room.started", "room.finished", "room.cancelled"} {
		s.lib.On(event, s.hear)
	}
	s.lib.OnCall("move", s.move)
	s.lib.OnGap(func(context.Context) error {
		return s.write(func(g *gameRecords) {
			if len(g.matches) == 0 {
				return // it begins
			}
			g.gaps++
			if !g.mayGap {
				g.fault("the server %d has a gap, and no primary was killed", share.Index)
			}
		})
	})
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	go func() {
		defer close(s.done)
		testkit.Report(t, s.lib.Run(ctx))
	}()
	t.Cleanup(s.kill)
	return s
}

// kill ends the process at once.
func (s *gameServer) kill() {
	s.records.mu.Lock()
	s.isDead.Store(true)
	s.records.mu.Unlock()
	s.front.cut()
	s.stop()
	<-s.done
}

// write is a transaction of the records.
func (s *gameServer) write(change func(*gameRecords)) error {
	s.records.mu.Lock()
	defer s.records.mu.Unlock()
	if s.isDead.Load() {
		return errDead
	}
	change(s.records)
	return nil
}

// Load returns the positions that the server before this one saved.
func (s *gameServer) Load(context.Context) (saved map[string]string, err error) {
	err = s.write(func(g *gameRecords) { saved = maps.Clone(g.positions[s.share.Index]) })
	return saved, err
}

// Save keeps positions.
func (s *gameServer) Save(_ context.Context, positions map[string]string) error {
	return s.write(func(g *gameRecords) { g.positions[s.share.Index] = maps.Clone(positions) })
}

// hear records an event. A server that was killed hears the last ones again, which have the seq of
// the record.
func (s *gameServer) hear(_ context.Context, e parlor.Event) error {
	return s.write(func(g *gameRecords) {
		if parlor.ShareOf(e.RoomID, s.share.Of) != s.share.Index {
			g.fault("the server %d heard %s of room %s, which is of another share", s.share.Index, e.Type, e.RoomID)
		}
		m := g.match(e.RoomID)
		if known := m.heard[e.Seq]; known != "" {
			g.repeated++
			if known != e.Type {
				g.fault("the event %d of room %s was %s and is %s", e.Seq, e.RoomID, known, e.Type)
			}
			return
		}
		if e.Seq < m.lastSeq {
			g.fault("%s of room %s, its event %d, came after event %d", e.Type, e.RoomID, e.Seq, m.lastSeq)
		}
		m.heard[e.Seq], m.lastSeq = e.Type, e.Seq
	})
}

// move applies a move of a player, shows it in the shared state, and ends the room after the last
// one. All of it is named by the move, so that a repeated call finishes what was begun.
func (s *gameServer) move(ctx context.Context, c parlor.Call) (any, error) {
	var asked move
	if err := c.Decode(&asked); err != nil {
		return nil, err
	}
	var results []parlor.Result
	rejected := (*parlor.Error)(nil)
	err := s.write(func(g *gameRecords) {
		m := g.match(c.RoomID)
		switch {
		case asked.N == len(m.moves)+1:
			m.moves, m.players = append(m.moves, asked), append(m.players, c.From)
			m.sums[c.From] += asked.Value
		case asked.N != len(m.moves) || m.moves[asked.N-1] != asked || m.players[asked.N-1] != c.From:
			rejected = &parlor.Error{Code: "wrong_turn", Detail: fmt.Sprintf("move %d was the last one", len(m.moves))}
		}
		if len(m.moves) == movesOfMatch {
			results = resultsOf(m.sums)
		}
	})
	if rejected != nil {
		err = rejected
	}
	if err != nil {
		return nil, err
	}
	_, err = s.lib.SetState(parlor.WithKey(ctx, fmt.Sprintf("move-%s-%d", c.RoomID, asked.N)), c.RoomID,
		parlor.StateChange{Version: int64(asked.N - 1), Patch: map[string]any{"moves": asked.N}})
	if err == nil && results != nil {
		_, err = s.lib.Finish(parlor.WithKey(ctx, "finish-"+c.RoomID), c.RoomID, results)
	}
	if err != nil && ctx.Err() == nil {
		_ = s.write(func(g *gameRecords) { g.fault("move %d of room %s: %v", asked.N, c.RoomID, err) })
	}
	return map[string]int{"n": asked.N}, err
}

// resultsOf places players by their sums.
func resultsOf(sums map[int64]int64) (results []parlor.Result) {
	players := slices.SortedFunc(maps.Keys(sums), func(a, b int64) int { return cmp.Compare(sums[b], sums[a]) })
	for i, player := range players {
		score := sums[player]
		results = append(results, parlor.Result{UserID: player, Place: i + 1, Score: &score})
	}
	return results
}

// callingPlayer is a player with a socket, who asks one thing at a time.
type callingPlayer struct {
	httpPlayer
	front   *nodetest.Node
	conn    *websocket.Conn
	lastID  int
	retries map[string]int // by the code of the error
}

const callTimeout = 3 * time.Second

// ask makes a move, again until it is answered.
func (p *callingPlayer) ask(ctx context.Context, room string, m move) error {
	return redistest.Poll(2*time.Minute, func() error {
		code, err := p.tryCall(ctx, room, m)
		if code == "" && err == nil || ctx.Err() != nil {
			return nil
		}
		p.retries[code]++
		return fmt.Errorf("move %d: %s %w", m.N, code, err)
	})
}

// tryCall makes a move once. It returns the code of the error, or why there was no answer.
func (p *callingPlayer) tryCall(ctx context.Context, room string, m move) (code string, err error) {
	if p.conn == nil {
		if p.conn, err = p.front.Dial(ctx, "/api/v1/realtime", p.token); err != nil {
			p.conn = nil
			return "offline", err
		}
	}
	p.lastID++
	id := fmt.Sprint(p.lastID)
	err = p.conn.WriteJSON(map[string]any{"id": id, "type": "room.call", "data": map[string]any{
		"roomId": room, "op": "move", "payload": m, "timeoutMs": callTimeout.Milliseconds(),
	}})
	for err == nil {
		var r struct {
			ReplyTo string `json:"replyTo"`
			OK      bool   `json:"ok"`
			Data    struct {
				Payload move `json:"payload"`
			} `json:"data"`
			Error struct {
				Code     string `json:"code"`
				GameCode string `json:"gameCode"`
			} `json:"error"`
		}
		_ = p.conn.SetReadDeadline(time.Now().Add(4 * callTimeout))
		var frame []byte
		if _, frame, err = p.conn.ReadMessage(); err != nil {
			break
		}
		if wire.Unmarshal(frame, &r) != nil || r.ReplyTo != id {
			continue // an event, or a batch of them
		}
		if r.OK && r.Data.Payload.N != m.N {
			return "other_move", fmt.Errorf("the answer is %s", frame)
		}
		if r.Error.GameCode != "" {
			return r.Error.GameCode, nil
		}
		return r.Error.Code, nil
	}
	_ = p.conn.Close()
	p.conn = nil
	return "offline", err
}

// playByCalls lets four players play a room from its creation to its end. It returns the room, and
// the sums of the players.
func (in *installation) playByCalls(
	ctx context.Context, number int, seats []*callingPlayer,
) (roomID string, sums map[int64]int64, err error) {
	sums = map[int64]int64{}
	do := func(verb string, p httpPlayer, body map[string]any) error {
		r, _ := in.send(ctx, number, "/api/v1/game-session/"+verb, p.token, body, fmt.Sprintf("%s-%d", verb, number))
		if r.Status >= 300 {
			return fmt.Errorf("%s of room %d returned %s", verb, number, r)
		}
		if roomID == "" {
			roomID, _ = r.Body["roomId"].(string)
		}
		return ctx.Err()
	}
	create := map[string]any{"maxPlayers": seatsOfMatch}
	if number%2 == 0 {
		create["entryTokenId"], create["roomEntry"], create["rakeBps"] = in.tokenID, 0.01, 0
	}
	if err := do("create", seats[0].httpPlayer, create); err != nil {
		return roomID, nil, err
	}
	for _, p := range seats[1:] {
		if err := do("join", p.httpPlayer, map[string]any{"roomId": roomID}); err != nil {
			return roomID, nil, err
		}
	}
	if err := do("start", seats[0].httpPlayer, map[string]any{"roomId": roomID}); err != nil {
		return roomID, nil, err
	}
	places := newRNG(uint64(number)).Perm(seatsOfMatch)
	for n := range movesOfMatch {
		seat := n % seatsOfMatch
		m := move{N: n + 1, Value: int64(10*places[seat] + n)} // the sums are all different
		sums[seats[seat].id] += m.Value
		if err := seats[seat].ask(ctx, roomID, m); err != nil {
			return roomID, nil, fmt.Errorf("room %s: %w", roomID, err)
		}
	}
	return roomID, sums, ctx.Err()
}

// TestGameServersEndEveryRoomOnceWhoeverIsKilled lets players of three nodes play rooms by calls to
// two game servers with a share each. The servers, the nodes and the store's primary are killed by
// turns. Each room ends once with the right result, no move counts twice, and the servers hear each
// start and each end once, in order. It takes the CPU of a minute, so make test leaves it out.
//
//	go test ./tests/chaos -run GameServersEndEveryRoom -v -rooms 100            # 5 kills
//	go test ./tests/chaos -run GameServersEndEveryRoom -v -long                   # 1,000
//	go test ./tests/chaos -run GameServersEndEveryRoom -v -long -rooms 100000 -timeout 6h
func TestGameServersEndEveryRoomOnceWhoeverIsKilled(t *testing.T) {
	if !*long && *serverRooms == 0 {
		t.Skip("in the long form, or with -rooms, only")
	}
	t.Parallel()
	t.Run("sentinels", func(t *testing.T) {
		servers := startSentinels(t, deliveryStore)
		endEveryRoom(t, servers.url(), func() {
			servers.wait()
			primary := testkit.Must(servers.primary())(t)
			primary.Kill()
			testkit.Check(t, primary.Restart())
		})
	})
	t.Run("cluster", func(t *testing.T) {
		if !*long {
			t.Skip("in the long form only")
		}
		url, servers := startReplicatedCluster(t, deliveryStore)
		waitForCluster(t, servers)
		db := openStoreOf(t, url)
		endEveryRoom(t, url, func() {
			waitForCluster(t, servers)
			primary := clusterPrimary(t, db, servers)
			primary.Kill()
			waitForTakeover(t, servers, primary)
			testkit.Check(t, primary.Restart())
		})
	})
}

// endEveryRoom is the test on a store. killPrimary kills the primary that has the rooms with an
// entry.
func endEveryRoom(t *testing.T, url string, killPrimary func()) {
	t.Helper()
	total := cmp.Or(*serverRooms, pick(100, 1_000))
	tables, kills := min(total, pick(20, 50)), pick(5, 20)
	in := newInstallation(t, url, 3, seatsOfMatch*tables, nil, "PARLOR_DURABILITY=replica")
	in.node(0).Must(t, 200, "PATCH", fmt.Sprintf("/api/v1/admin/games/%d", gameID), nodetest.AdminKey, map[string]any{
		"settings": map[string]any{"feed": true, "matchTimeoutSeconds": 3600, "idleTimeoutSeconds": 3600},
	})
	observer := openNode(t, url, nil)
	records := newGameRecords()
	var processes [2]*gameServer
	for i := range processes {
		processes[i] = startGameServer(t, in, records, parlor.Share{Of: len(processes), Index: i})
	}

	ctx := t.Context()
	front := nodetest.Remote(t, startBalancer(t, in).url())
	var next, ended atomic.Int64
	var mu sync.Mutex
	expected, retries := map[string]map[int64]int64{}, map[string]int{}
	var players sync.WaitGroup
	began := time.Now()
	for table := range tables {
		seats := make([]*callingPlayer, seatsOfMatch)
		for i := range seats {
			seats[i] = &callingPlayer{
				httpPlayer: in.players[table*seatsOfMatch+i], front: front, retries: map[string]int{},
			}
		}
		players.Go(func() {
			for number := next.Add(1); number <= int64(total); number = next.Add(1) {
				room, sums, err := in.playByCalls(ctx, int(number), seats)
				ended.Add(1)
				testkit.Report(t, err)
				mu.Lock()
				expected[room] = sums
				mu.Unlock()
			}
			mu.Lock()
			defer mu.Unlock()
			for _, p := range seats {
				for code, n := range p.retries {
					retries[code] += n
				}
				if p.conn != nil {
					_ = p.conn.Close()
				}
			}
		})
	}

	for kill := range kills {
		share := int64(total * (kill + 1) / (kills + 2))
		testkit.Check(t, redistest.Poll(time.Hour, func() error {
			if ended.Load() < share && !t.Failed() {
				return errors.New("rooms go on")
			}
			return nil
		}))
		records.mu.Lock()
		records.mayGap = kill%5 == 2
		records.mu.Unlock()
		switch kill % 5 {
		case 0, 3:
			i := kill % 2
			processes[i].kill()
			processes[i] = startGameServer(t, in, records, parlor.Share{Of: len(processes), Index: i})
		case 1, 4:
			in.replace(kill % len(in.nodes))
		default:
			killPrimary()
		}
	}
	players.Wait()
	took := time.Since(began)

	redistest.Eventually(t, "the servers have heard every end", func() bool {
		records.mu.Lock()
		defer records.mu.Unlock()
		for _, m := range records.matches {
			if m.heard[m.lastSeq] != "room.finished" && records.gaps == 0 {
				return false
			}
		}
		return true
	})
	for i := range processes {
		processes[i].kill()
	}
	records.wantEach(t, in, expected)
	wantLargeBooks(t, observer.db)
	report(t, "%d rooms of %d players by calls in %v, %d kills of servers, nodes and primaries by turns; calls sent "+
		"again: %v; events that came again: %d; gaps: %d", total, seatsOfMatch, took.Round(time.Second), kills, retries,
		records.repeated, records.gaps)
}

// wantEach requires that each room has ended once, with the result of the moves of its players.
func (g *gameRecords) wantEach(t *testing.T, in *installation, expected map[string]map[int64]int64) {
	t.Helper()
	for _, fault := range g.faults {
		t.Error(fault)
	}
	for roomID, sums := range expected {
		m := g.matches[roomID]
		if m == nil || len(m.moves) != movesOfMatch || !maps.Equal(m.sums, sums) {
			t.Errorf("room %s: the game has %+v, and the players have %v", roomID, m, sums)
			continue
		}
		room := in.room(roomID)
		if version := room["shared"].(map[string]any)["version"]; fmt.Sprint(version) != fmt.Sprint(movesOfMatch) {
			t.Errorf("room %s: the shared state was changed %v times by %d moves", roomID, version, movesOfMatch)
		}
		var results []parlor.Result
		for _, r := range room["results"].([]any) {
			r := r.(map[string]any)
			score := number(t, r["score"])
			results = append(results, parlor.Result{
				UserID: number(t, r["userId"]), Place: int(number(t, r["place"])), Score: &score,
			})
		}
		if want := resultsOf(sums); room["status"] != "FINISHED" || printed(results) != printed(want) {
			t.Errorf("room %s is %v with %s; want %s", roomID, room["status"], printed(results), printed(want))
		}
		var heard []string
		for _, seq := range slices.Sorted(maps.Keys(m.heard)) {
			heard = append(heard, m.heard[seq])
		}
		if !slices.Equal(heard, []string{"room.started", "room.finished"}) && g.gaps == 0 {
			t.Errorf("room %s: its server heard %v", roomID, heard)
		}
	}
}

// printed returns results as a text.
func printed(results []parlor.Result) (text string) {
	for _, r := range results {
		text += fmt.Sprintf("%d: player %d with %d; ", r.Place, r.UserID, *r.Score)
	}
	return text
}

// room returns a room as staff sees it.
func (in *installation) room(roomID string) map[string]any {
	in.t.Helper()
	return in.node(0).Must(in.t, 200, "GET", "/api/v1/game-session/get?roomId="+roomID, nodetest.AdminKey, nil).Body
}
