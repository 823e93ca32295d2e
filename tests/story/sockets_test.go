package story

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
)

// told is anything that a node says on a socket.
type told struct {
	Type, RoomID, Position string
	Seq                    int64
	ReplyTo                string
	OK                     *bool
	Data                   map[string]any
	Error                  map[string]any
	raw                    string
}

// dial opens a socket on a node.
func dial(ctx context.Context, n *nodetest.Node, path string, p player) (*websocket.Conn, error) {
	dialer := websocket.Dialer{HandshakeTimeout: 10 * time.Second}
	conn, _, err := dialer.DialContext(ctx, "ws"+strings.TrimPrefix(n.URL, "http")+path, http.Header{"Authorization": {"Bearer " + p.token}})
	return conn, err
}

// hear reads one frame, which may be several events.
func hear(conn *websocket.Conn) ([]told, error) {
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	_, frame, err := conn.ReadMessage()
	if err != nil {
		return nil, err
	}
	var raws []json.RawMessage
	if json.Unmarshal(frame, &raws) != nil {
		raws = []json.RawMessage{frame}
	}
	batch := make([]told, len(raws))
	for i, raw := range raws {
		if err := json.Unmarshal(raw, &batch[i]); err != nil {
			return nil, fmt.Errorf("%w: %s", err, frame)
		}
		batch[i].raw = string(raw)
	}
	return batch, nil
}

// follower follows a room as a good client does: when its connection is lost it comes back, to the next node, with its position.
type follower struct {
	w     *world
	who   player
	room  string
	ended chan struct{}

	mu    sync.Mutex
	conn  *websocket.Conn
	seen  []told
	lives int
	stop  bool
}

func (w *world) follow(p player, room string) *follower {
	w.t.Helper()
	f := &follower{w: w, who: p, room: room, ended: make(chan struct{})}
	go f.run()
	w.t.Cleanup(func() {
		f.mu.Lock()
		f.stop = true
		f.mu.Unlock()
		f.cut()
		<-f.ended
	})
	w.until("a follower has begun", func() bool { return len(f.events()) > 0 })
	return f
}

func (f *follower) run() {
	defer close(f.ended)
	for after := "0-0"; ; {
		f.mu.Lock()
		stop := f.stop
		f.mu.Unlock()
		if stop {
			return
		}
		after = f.live(after)
		<-time.After(time.Millisecond) // a node that is gone refuses at once
	}
}

// live is one connection; it answers the position of the last event.
func (f *follower) live(after string) string {
	conn, err := dial(context.Background(), f.w.node(), "/api/v1/realtime", f.who)
	if err != nil {
		return after
	}
	defer func() { _ = conn.Close() }()
	f.mu.Lock()
	f.conn = conn
	f.lives++
	f.mu.Unlock()
	if conn.WriteJSON(map[string]any{"id": "1", "type": "room.subscribe", "data": map[string]any{"roomId": f.room, "after": after}}) != nil {
		return after
	}
	for {
		batch, err := hear(conn)
		if err != nil {
			return after
		}
		for _, e := range batch {
			switch {
			case e.OK != nil && (!*e.OK || e.Data["mode"] != "resume"):
				f.w.t.Errorf("%s cannot go on after %s: %s", f.who.name, after, e.raw)
			case e.OK == nil && e.RoomID == f.room:
				after = e.Position
				f.mu.Lock()
				f.seen = append(f.seen, e)
				f.mu.Unlock()
			}
		}
	}
}

// cut ends the connection without a word.
func (f *follower) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conn != nil {
		_ = f.conn.NetConn().Close()
	}
}

func (f *follower) connections() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lives
}

func (f *follower) events() []told {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.seen)
}

// wantAll waits until the follower has heard the stream's last event, and wants every event once, in order, to the byte.
func (f *follower) wantAll(db *redisdb.DB) {
	f.w.t.Helper()
	home, _ := keys.RoomShard(f.room)
	entries, err := db.Client.XRange(f.w.t.Context(), keys.RoomEvents(home, f.room), "-", "+").Result()
	if err != nil {
		f.w.t.Fatal(err)
	}
	f.w.until("the last event has come", func() bool {
		seen := f.events()
		return len(seen) > 0 && seen[len(seen)-1].Position == entries[len(entries)-1].ID
	})
	seen := f.events()
	if len(seen) != len(entries) {
		f.w.t.Fatalf("%s heard %d events of %d", f.who.name, len(seen), len(entries))
	}
	for i, entry := range entries {
		if seen[i].raw != entry.Values["e"] || seen[i].Seq != int64(i+1) {
			f.w.t.Fatalf("event %d is %v and %s heard %s", i+1, entry.Values["e"], f.who.name, seen[i].raw)
		}
	}
}

func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for deadline := time.Now().Add(30 * time.Second); !ok(); <-look.C {
		if time.Now().After(deadline) {
			w.t.Fatalf("still not: %s", what)
		}
	}
}

// asker is a socket on which one message is asked at a time; events are kept.
type asker struct {
	t    *testing.T
	conn *websocket.Conn
	kept []told
	ids  int
}

func (w *world) asker(path string, p player) *asker {
	w.t.Helper()
	conn, err := dial(w.t.Context(), w.node(), path, p)
	if err != nil {
		w.t.Fatalf("%s: %v", path, err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	return &asker{t: w.t, conn: conn}
}

func (a *asker) ask(kind string, data map[string]any) told {
	a.t.Helper()
	a.ids++
	id := fmt.Sprint(a.ids)
	if err := a.conn.WriteJSON(map[string]any{"id": id, "type": kind, "data": data}); err != nil {
		a.t.Fatal(err)
	}
	for {
		for _, e := range a.hear() {
			if e.ReplyTo == id {
				return e
			}
			a.kept = append(a.kept, e)
		}
	}
}

func (a *asker) hear() []told {
	a.t.Helper()
	batch, err := hear(a.conn)
	if err != nil {
		a.t.Fatal(err)
	}
	return batch
}

// event is the next event.
func (a *asker) event() told {
	a.t.Helper()
	for len(a.kept) == 0 {
		a.kept = a.hear()
	}
	e := a.kept[0]
	a.kept = a.kept[1:]
	return e
}

func TestAGameIsFollowedOnBothNodes(t *testing.T) {
	each(t, func(t *testing.T, w *world, db *redisdb.DB) {
		op := w.setUp(map[string]any{"progressRules": []map[string]any{{"path": "gold", "maxGainPerMinute": 60, "initial": 100}}})
		ann, bob, eve := w.guest(op.game, "Ann"), w.guest(op.game, "Bob"), w.guest(op.game, "Eve")
		purse := w.asker("/api/v1/realtime", bob)
		if hello := purse.event(); hello.Type != "hello" {
			t.Fatalf("the first frame is %s", hello.raw)
		}
		room := w.must(201, "POST", "/api/v1/game-session/create", ann.token, map[string]any{
			"entryTokenId": op.tokenID, "roomEntry": 2.5, "maxPlayers": 3, "rakeBps": 500,
		}).Body["roomId"].(string)
		body := map[string]any{"roomId": room}

		// Two who follow are cut off again and again, while players come, go and end the game.
		followers := []*follower{w.follow(eve, room), w.follow(ann, room)}
		const turns = 20
		for turn := range turns {
			w.must(200, "POST", "/join", bob.token, body)
			w.must(200, "POST", "/api/v1/game-session/ready", bob.token, map[string]any{"roomId": room, "ready": true})
			if turn%3 == 0 {
				followers[turn%2].cut()
			}
			w.must(200, "POST", "/api/v1/game-session/leave", bob.token, body)
		}
		w.must(200, "POST", "/join", bob.token, body)
		w.must(200, "POST", "/api/v1/game-session/start", ann.token, body)
		w.must(200, "POST", "/api/v1/game-session/finish", op.serverKey, map[string]any{"roomId": room, "results": []map[string]any{
			{"userId": bob.id, "place": 1}, {"userId": ann.id, "place": 2},
		}}, "Idempotency-Key", "end")
		for _, f := range followers {
			f.wantAll(db)
			if n := f.connections(); n < 3 {
				t.Errorf("%s was cut off %d times", f.who.name, n-1)
			}
		}
		if events := followers[0].events(); len(events) != 3*turns+4 || events[len(events)-1].Type != "room.finished" {
			t.Errorf("%d events end with %s", len(events), events[len(events)-1].raw)
		}

		// Bob heard of every line of his ledger, in order, and of nothing else.
		var lines []map[string]any
		for cursor := ""; ; {
			page := w.must(200, "GET", "/api/v1/user-balance/ledger?tokenId=GOLD&limit=100&cursor="+cursor, bob.token, nil).Body
			for _, line := range page["items"].([]any) {
				lines = append(lines, line.(map[string]any))
			}
			if page["nextCursor"] == nil {
				break
			}
			cursor = page["nextCursor"].(string)
		}
		slices.Reverse(lines)
		if len(lines) != 1+2*turns+2 { // the welcome was before he listened
			t.Fatalf("the ledger has %d lines", len(lines))
		}
		for i, line := range lines[1:] {
			e := purse.event()
			if e.Type != "user.balance" || e.Data["deltaAmount"] != line["deltaAmount"] || e.Data["reason"] != line["reason"] || e.Data["ref"] != line["ref"] {
				t.Fatalf("line %d is %v and bob heard %s", i, line, e.raw)
			}
		}

		// Bob saves on two devices at once: one of them is refused, sees the other's state, and settles it.
		phone, laptop := w.asker("/api/v1/game-data/save", bob), w.asker("/api/v1/game-data/load", bob)
		save := func(on *asker, gold, version int) told {
			return on.ask("save", map[string]any{"slot": "main", "state": map[string]any{"gold": gold}, "version": version})
		}
		if first := save(phone, 50, 0); !*first.OK {
			t.Fatalf("the first save: %s", first.raw)
		}
		if second := save(laptop, 60, 1); !*second.OK {
			t.Fatalf("the second save: %s", second.raw)
		}
		conflict := save(phone, 55, 1)
		current, _ := conflict.Error["current"].(map[string]any)
		if conflict.Error["code"] != "version_conflict" || current["version"] != 2. {
			t.Fatalf("the third save: %s", conflict.raw)
		}
		if settled := save(phone, 65, 2); !*settled.OK {
			t.Fatalf("the save that settles it: %s", settled.raw)
		}
		if greedy := save(laptop, 1_000_000, 3); greedy.Error["code"] != "save_rejected" {
			t.Fatalf("a million: %s", greedy.raw)
		}
		loaded := laptop.ask("load", map[string]any{"slot": "main"})
		if state, _ := loaded.Data["state"].(map[string]any); loaded.Data["version"] != 3. || state["gold"] != 65. {
			t.Fatalf("loaded %s", loaded.raw)
		}
		for version := 1.; version <= 3; version++ {
			if e := purse.event(); e.Type != "user.progress" || e.Data["version"] != version {
				t.Errorf("version %v is told as %s", version, e.raw)
			}
		}
		w.wantBalanced()
	})
}

func TestANodeKilledUnderLoadIsFollowedOnTheOther(t *testing.T) {
	store := redistest.StartFor(t, "--appendonly", "yes", "--appendfsync", "always")
	db, err := redisdb.Open(store.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	w := &world{t: t}
	for i := range w.nodes {
		w.nodes[i] = nodetest.Start(t, store.URL())
	}
	op := w.setUp(nil)
	doomed, survivor := w.nodes[0], w.nodes[1]
	var followers []*follower
	var hosts []player
	var rooms []string
	for i := range 4 {
		host := w.guest(op.game, fmt.Sprintf("Host %d", i))
		room := w.must(201, "POST", "/api/v1/game-session/create", host.token, map[string]any{"maxPlayers": 2}).Body["roomId"].(string)
		for j := range 6 { // half of them on each node
			followers = append(followers, w.follow(w.guest(op.game, fmt.Sprintf("Follower %d of %d", j, i)), room))
		}
		hosts, rooms = append(hosts, host), append(rooms, room)
	}
	// The hosts change their minds all the time, on the node that dies as long as it lives.
	const turns = 50
	half := make(chan struct{}, len(hosts))
	var all sync.WaitGroup
	for i, host := range hosts {
		all.Go(func() {
			for turn := range turns {
				body := map[string]any{"roomId": rooms[i], "ready": turn%2 == 0}
				a, err := doomed.Do(t.Context(), "POST", "/api/v1/game-session/ready", host.token, body)
				if err != nil {
					a, err = survivor.Do(t.Context(), "POST", "/api/v1/game-session/ready", host.token, body)
				}
				if err != nil || a.Status != 200 {
					t.Errorf("ready: %v %s", err, a)
					return
				}
				if turn == turns/2 {
					half <- struct{}{}
				}
			}
		})
	}
	<-half
	doomed.Kill()
	all.Wait()
	moved := 0
	for _, f := range followers {
		f.wantAll(db)
		if n := len(f.events()); n != turns+1 {
			t.Errorf("%s heard %d events", f.who.name, n)
		}
		if f.connections() > 1 {
			moved++
		}
	}
	if moved == 0 {
		t.Error("nobody was on the node that died")
	}
}
