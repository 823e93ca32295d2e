package versions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/base/wire/wiretest"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// balancer sends the calls to the nodes in turn, so that each step of a player is on another one.
type balancer struct {
	mu    sync.RWMutex // held for reading while a call is under way
	nodes []*nodetest.Node
	next  atomic.Int64
}

func (b *balancer) set(nodes ...*nodetest.Node) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nodes = nodes
}

// do makes a call on the next node. The node is not stopped before the call has ended.
func (b *balancer) do(
	ctx context.Context, method, path, bearer string, body any, key string,
) (nodetest.Response, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	node := b.nodes[b.next.Add(1)%int64(len(b.nodes))]
	return node.Do(ctx, method, path, bearer, body, "Idempotency-Key", key)
}

// crowd plays rounds by way of a balancer until it is stopped: rooms with stakes, purchases,
// credits, saves, and sockets that follow the rooms.
type crowd struct {
	t    *testing.T
	to   *balancer
	stop context.CancelFunc
	work sync.WaitGroup

	game, tokenID, coin int64
	serverKey           string
	words               map[string]bool // types of events that the older release documents

	rounds  atomic.Int64
	calls   atomic.Int64
	moved   atomic.Int64 // sockets that a node closed because it drained
	events  atomic.Int64
	mu      sync.Mutex
	faults  map[string]int // what went wrong, and how often
	waiting []waitingRoom  // rooms with a stake that are still open
}

type waitingRoom struct {
	id       string
	ann, bob member
}

type member struct {
	id    int64
	token string
}

func number(v any) int64 {
	n, _ := v.(wiretest.Number)
	value, _ := n.Int64()
	return value
}

const crowdSize = 4

var typeOfMessage = regexp.MustCompile(`type: \{type: string, enum: \[([a-z_.]+)\]\}`)

// startCrowd makes a game by way of a node, and players who begin to play.
func startCrowd(t *testing.T, to *balancer, older nodetest.Release) *crowd {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	c := &crowd{t: t, to: to, stop: stop, faults: map[string]int{}, words: map[string]bool{}}
	t.Cleanup(c.end)
	contract := testkit.Must(os.ReadFile(filepath.Join(older.Sources, "handlers", "asyncapi.yaml")))(t)
	for _, m := range typeOfMessage.FindAllSubmatch(contract, -1) {
		c.words[string(m[1])] = true
	}
	if !c.words["room.finished"] {
		t.Fatalf("the contract of %s has no event: %v", older.Version, c.words)
	}
	admin := to.nodes[0]
	token := admin.Must(t, 201, "POST", "/api/v1/admin/tokens", nodetest.AdminKey, map[string]any{
		"tokenId": "GOLD", "tokenName": "Gold",
		"metadata": map[string]any{"assetName": "676f6c64", "policyId": "ab01", "decimals": "2"},
	})
	c.tokenID = number(token.Body["id"])
	game := admin.Must(t, 201, "POST", "/api/v1/admin/games", nodetest.AdminKey, map[string]any{
		"name": "Duel", "welcomeGrant": map[string]any{"tokenId": "GOLD", "amount": 100, "for": "any"},
	})
	c.game = number(game.Body["game"].(map[string]any)["id"])
	c.serverKey = game.Body["serverKey"].(string)
	coin := admin.Must(t, 201, "POST", fmt.Sprintf("/api/v1/admin/games/%d/assets", c.game), nodetest.AdminKey,
		map[string]any{"name": "Coin", "tokenId": "GOLD", "price": 0.01})
	c.coin = number(coin.Body["id"])
	c.work.Go(func() {
		if err := c.watch(ctx); err != nil {
			c.fault("the watcher: %v", err)
		}
	})
	for i := range crowdSize {
		c.work.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if err := c.round(i, n); err != nil {
					c.fault("%v", err)
				}
				c.rounds.Add(1)
			}
		})
	}
	return c
}

// watch changes the state of a room until ctx ends, and follows it on a socket that resumes on
// another node when its own drains: it misses nothing.
func (c *crowd) watch(ctx context.Context) error {
	ann, err := c.signIn("watcher")
	if err != nil {
		return err
	}
	r, err := c.call(201, "POST", "/api/v1/game-session/create", ann.token, map[string]any{"maxPlayers": 2}, "watched")
	if err != nil {
		return err
	}
	room := r.Body["roomId"].(string)
	c.work.Go(func() {
		if err := c.change(ctx, room, ann); err != nil {
			c.fault("the watched room: %v", err)
		}
	})
	f := &follower{c: c, room: room}
	for {
		if err = f.subscribe(ann); err == nil {
			err = f.read(nil)
		}
		if !errors.Is(err, errMoved) {
			return err
		}
		c.moved.Add(1)
	}
}

// change changes the state of a room until ctx ends, and then cancels the room.
func (c *crowd) change(ctx context.Context, room string, host member) error {
	for n := 0; ctx.Err() == nil; n++ {
		state := map[string]any{"roomId": room, "version": n, "patch": map[string]any{"n": n}}
		_, err := c.call(200, "POST", "/api/v1/game-session/state", c.serverKey, state, fmt.Sprint("watched", n))
		if err != nil {
			return err
		}
	}
	_, err := c.call(200, "POST", "/api/v1/game-session/cancel", host.token, map[string]any{"roomId": room}, "cancel")
	return err
}

// end stops the players.
func (c *crowd) end() {
	c.stop()
	c.work.Wait()
}

// play waits until every player has played some further rounds.
func (c *crowd) play(rounds int) {
	c.t.Helper()
	until := c.rounds.Load() + int64(rounds*crowdSize)
	redistest.Eventually(c.t, "further rounds were played", func() bool { return c.rounds.Load() >= until })
}

func (c *crowd) fault(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults[fmt.Sprintf(format, args...)]++
}

// mustBeClean fails the test for everything that went wrong.
func (c *crowd) mustBeClean() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, text := range slices.Sorted(maps.Keys(c.faults)) {
		c.t.Errorf("%d × %s", c.faults[text], text)
	}
	if c.rounds.Load() == 0 || c.events.Load() == 0 || c.moved.Load() == 0 {
		c.t.Error("nobody played, heard anything or moved")
	}
	c.t.Logf("%d rounds, %d calls, %d events, %d sockets moved", c.rounds.Load(), c.calls.Load(), c.events.Load(),
		c.moved.Load())
}

// call makes a call once: another status than the one that is wanted is an error.
func (c *crowd) call(status int, method, path, bearer string, body any, key string) (nodetest.Response, error) {
	c.calls.Add(1)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r, err := c.to.do(ctx, method, path, bearer, body, key)
	if err == nil && r.Status != status {
		err = fmt.Errorf("%d %s: %v", r.Status, r.Code(), r.Body["detail"])
	}
	if err != nil {
		err = fmt.Errorf("%s %s: %w", method, path, err)
	}
	return r, err
}

func (c *crowd) signIn(name string) (member, error) {
	r, err := c.call(201, "POST", "/api/v1/auth/guest", "", map[string]any{"gameId": c.game, "username": name}, name)
	if err != nil {
		return member{}, err
	}
	return member{number(r.Body["user"].(map[string]any)["id"]), r.Body["accessToken"].(string)}, nil
}

// round plays a room with two new players. Each step is on another node than the one before.
func (c *crowd) round(worker, n int) error {
	name := fmt.Sprintf("p%d-%d", worker, n)
	ann, err := c.signIn(name + "a")
	if err != nil {
		return err
	}
	bob, err := c.signIn(name + "b")
	if err != nil {
		return err
	}
	room, err := c.open(name, ann, bob)
	if err != nil {
		return err
	}
	if n%8 == 0 { // a room that is finished by a release that was not there when it was opened
		c.mu.Lock()
		c.waiting = append(c.waiting, waitingRoom{room, ann, bob})
		c.mu.Unlock()
		return nil
	}
	follower, err := c.follow(ann, room)
	if err != nil {
		return err
	}
	state := map[string]any{"roomId": room, "version": 0, "patch": map[string]any{"board": "x.o"}}
	if _, err = c.call(200, "POST", "/api/v1/game-session/state", c.serverKey, state, name+"s"); err != nil {
		return err
	}
	if err := c.finish(name, room, ann, bob); err != nil {
		return err
	}
	if err := follower.waitFinished(); err != nil {
		return err
	}
	buy := fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", c.coin)
	if _, err = c.call(201, "POST", buy, bob.token, map[string]any{"quantity": 2}, name+"y"); err != nil {
		return err
	}
	credit := fmt.Sprintf("/api/v1/admin/users/%d/credit", ann.id)
	gift := map[string]any{"tokenId": "GOLD", "amount": 0.5, "reason": "gift"}
	for range 2 { // the second, with the same key on the other node, is a replay
		if _, err = c.call(200, "POST", credit, nodetest.AdminKey, gift, name+"g"); err != nil {
			return err
		}
	}
	return c.save(ann)
}

// open opens a room with a stake that two players join and start.
func (c *crowd) open(name string, ann, bob member) (room string, err error) {
	r, err := c.call(201, "POST", "/api/v1/game-session/create", ann.token, map[string]any{
		"entryTokenId": c.tokenID, "roomEntry": 2.5, "maxPlayers": 2, "rakeBps": 500,
	}, name+"c")
	if err != nil {
		return "", err
	}
	room = r.Body["roomId"].(string)
	body := map[string]any{"roomId": room}
	if _, err = c.call(200, "POST", "/api/v1/game-session/join", bob.token, body, name+"j"); err != nil {
		return "", err
	}
	_, err = c.call(200, "POST", "/api/v1/game-session/start", ann.token, body, name+"t")
	return room, err
}

func (c *crowd) finish(name, room string, ann, bob member) error {
	_, err := c.call(200, "POST", "/api/v1/game-session/finish", c.serverKey, map[string]any{
		"roomId": room, "results": []map[string]any{{"userId": bob.id, "place": 1}, {"userId": ann.id, "place": 2}},
	}, name+"f")
	return err
}

// finishWaiting finishes the rooms that were left open.
func (c *crowd) finishWaiting() {
	c.t.Helper()
	c.mu.Lock()
	waiting := c.waiting
	c.mu.Unlock()
	if len(waiting) == 0 {
		c.t.Error("no room was left open")
	}
	for i, w := range waiting {
		if err := c.finish(fmt.Sprint("waiting", i), w.id, w.ann, w.bob); err != nil {
			c.fault("a room that another release opened: %v", err)
		}
	}
}

// dial opens a socket on the next node.
func (c *crowd) dial(path string, m member) (*websocket.Conn, error) {
	c.to.mu.RLock()
	defer c.to.mu.RUnlock()
	node := c.to.nodes[c.to.next.Add(1)%int64(len(c.to.nodes))]
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	conn, err := node.Dial(ctx, path, m.token)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return conn, nil
}

type message struct {
	Type     string `json:"type"`
	Position string `json:"position"` // of an event
	RoomID   string `json:"roomId"`
	Seq      int64  `json:"seq"`
	ReplyTo  string `json:"replyTo"`
	OK       *bool  `json:"ok"`
	Data     struct {
		Position any   `json:"position"`
		Version  int64 `json:"version"`
		Mode     string
	} `json:"data"`
	Error wire.RawJSON `json:"error"`
}

// read returns the messages of the next frame.
func read(conn *websocket.Conn) ([]message, error) {
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	_, frame, err := conn.ReadMessage()
	if err != nil {
		return nil, err
	}
	many := make([]message, 1)
	if len(frame) > 0 && frame[0] == '[' {
		err = wire.Unmarshal(frame, &many)
	} else {
		err = wire.Unmarshal(frame, &many[0])
	}
	return many, err
}

// follower hears the events of a room on a node.
type follower struct {
	c        *crowd
	conn     *websocket.Conn
	room     string
	last     int64  // number of the last event, 0 before any
	position string // of that event
	done     chan error
}

// errMoved means that the node of a socket drained. A client opens another one.
var errMoved = errors.New("the socket moved")

// follow follows a room from now on.
func (c *crowd) follow(m member, room string) (*follower, error) {
	f := &follower{c: c, room: room, done: make(chan error, 1)}
	if err := f.subscribe(m); err != nil {
		return nil, err
	}
	subscribed := make(chan struct{})
	go func() { f.done <- f.read(subscribed) }()
	select {
	case <-subscribed:
	case err := <-f.done:
		f.done <- err
	}
	return f, nil
}

// subscribe opens a socket and asks for the events since the last one.
func (f *follower) subscribe(m member) (err error) {
	if f.conn, err = f.c.dial("/api/v1/realtime", m); err != nil {
		return err
	}
	data := map[string]any{"roomId": f.room}
	if f.position != "" {
		data["after"] = f.position
	}
	return f.conn.WriteJSON(map[string]any{"id": "1", "type": "room.subscribe", "data": data})
}

// read reads until the room has ended. The events have no gap, and types that the older release
// documents. It closes subscribed, unless it is nil, when the node has said yes.
func (f *follower) read(subscribed chan<- struct{}) error {
	defer func() { _ = f.conn.Close() }()
	for {
		many, err := read(f.conn)
		if websocket.IsCloseError(err, websocket.CloseServiceRestart) {
			return errMoved
		}
		if err != nil {
			return fmt.Errorf("follow a room: %w", err)
		}
		for _, m := range many {
			switch {
			case m.ReplyTo != "" && (m.OK == nil || !*m.OK):
				return fmt.Errorf("follow a room: %s", m.Error)
			case m.ReplyTo != "" && subscribed != nil:
				close(subscribed)
			case m.ReplyTo == "":
				f.hear(m)
			}
			if m.Type == "room.finished" || m.Type == "room.cancelled" {
				return nil
			}
		}
	}
}

func (f *follower) hear(m message) {
	f.c.events.Add(1)
	if !f.c.words[m.Type] {
		f.c.fault("an event has the type %q, which the older release does not know", m.Type)
	}
	if m.Seq == 0 || m.RoomID != f.room {
		return
	}
	if f.last != 0 && m.Seq > f.last+1 {
		f.c.fault("a follower missed an event")
	}
	f.last, f.position = max(f.last, m.Seq), m.Position
}

// waitFinished waits until the follower has heard that the room is finished.
func (f *follower) waitFinished() error {
	err := <-f.done
	if errors.Is(err, errMoved) {
		f.c.moved.Add(1)
		return nil
	}
	return err
}

// save saves twice, and reads what was saved on another node. A socket that moves is opened anew.
func (c *crowd) save(m member) error {
	version := int64(0)
	for n := range 2 {
		data := map[string]any{"slot": "main", "state": map[string]any{"gold": n + 1}, "version": version}
		reply, err := c.ask("/api/v1/game-data/save", m, "save", data)
		if err != nil {
			return err
		}
		if reply.Data.Version <= version {
			return fmt.Errorf("save: version %d became %d", version, reply.Data.Version)
		}
		version = reply.Data.Version
	}
	reply, err := c.ask("/api/v1/game-data/load", m, "load", map[string]any{"slot": "main"})
	if err == nil && reply.Data.Version != version {
		err = fmt.Errorf("load: version %d is %d on another node", version, reply.Data.Version)
	}
	return err
}

// ask sends one message on a socket of its own and returns the reply.
func (c *crowd) ask(path string, m member, kind string, data map[string]any) (message, error) {
	for {
		reply, err := c.askOnce(path, m, kind, data)
		if !errors.Is(err, errMoved) {
			return reply, err
		}
		c.moved.Add(1)
	}
}

func (c *crowd) askOnce(path string, m member, kind string, data map[string]any) (message, error) {
	conn, err := c.dial(path, m)
	if err != nil {
		return message{}, err
	}
	defer func() { _ = conn.Close() }()
	c.calls.Add(1)
	_ = conn.WriteJSON(map[string]any{"id": "1", "type": kind, "data": data})
	for {
		many, err := read(conn)
		if websocket.IsCloseError(err, websocket.CloseServiceRestart) {
			return message{}, errMoved
		}
		if err != nil {
			return message{}, fmt.Errorf("%s: %w", kind, err)
		}
		for _, reply := range many {
			if reply.ReplyTo == "1" && reply.OK != nil && *reply.OK {
				return reply, nil
			}
			if reply.ReplyTo == "1" {
				return message{}, fmt.Errorf("%s: %s", kind, reply.Error)
			}
		}
	}
}
