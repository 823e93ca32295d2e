//go:build linux

package story

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// The keys of the test. Those of before are nodetest's, and there is no save key before.
const (
	newAdminKey   = "operator-key-of-the-tests-d41b90c7e6"
	newSigningKey = "signing-key-of-the-tests-c2a7f0135e94"
	newSaveKey    = "saves-key-of-the-tests-7e05d3b8f61a29c4"
)

// writeKeys writes the files of keys that the nodes read, and returns the settings that name them.
// Without a save key there is no file of it.
func (in *installationInUse) writeKeys(admin, signing, save string) (settings []string) {
	in.t.Helper()
	for name, text := range map[string]string{"ADMIN": admin, "SIGNING": signing, "SAVE": save} {
		if text == "" {
			continue
		}
		path := filepath.Join(in.keyFolder, name)
		testkit.Check(in.t, os.WriteFile(path, []byte(text), 0o600))
		settings = append(settings, "PARLOR_"+name+"_KEY=", "PARLOR_"+name+"_KEY_FILE="+path)
	}
	return settings
}

const postRequests = `parlor_http_requests_total{method="POST"`

// installationInUse is two nodes behind the balancer that are restarted one after the other while
// workers use them.
type installationInUse struct {
	*fixture
	front     *balancer
	redisURL  string
	keyFolder string
	addresses [2]string
	running   [2]*nodetest.Node

	op        installation
	adminKey  atomic.Pointer[string]
	serverKey atomic.Pointer[string]

	stopping atomic.Bool
	rounds   []*atomic.Int64 // that each worker has completed
	workers  sync.WaitGroup
}

// fixedAddress returns an address for a node that is restarted. Its port is below those that the
// system gives to clients: while the node is away none of them can take it.
func fixedAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000)))
		if err == nil {
			defer func() { _ = l.Close() }()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

func startInstallation(t *testing.T, admin, signing, save string) *installationInUse {
	store := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "everysec")
	in := &installationInUse{redisURL: store.URL(), keyFolder: t.TempDir(), fixture: &fixture{t: t}}
	settings := in.writeKeys(admin, signing, save)
	for i := range in.running {
		in.addresses[i] = fixedAddress(t)
	}
	for i := range in.running {
		in.running[i] = in.start(t, in.addresses[i], settings)
	}
	in.front = startBalancer(t, in.running[0].URL, in.running[1].URL)
	in.front.WaitReady(200)
	in.fixture = &fixture{t: t, nodes: [2]*nodetest.Node{in.front.Node, in.front.Node}}
	in.op = in.setUp(nil)
	operator := nodetest.AdminKey
	in.adminKey.Store(&operator)
	in.serverKey.Store(&in.op.serverKey)
	t.Cleanup(func() { in.stop() }) // of a test that failed before its end
	return in
}

func (in *installationInUse) start(t *testing.T, address string, settings []string) *nodetest.Node {
	all := append([]string{"PARLOR_LISTEN=" + address, "PARLOR_RATE_LIMITS=off", "PARLOR_DRAIN_DELAY=500ms"}, settings...)
	return nodetest.Start(t, in.redisURL, all...)
}

// restart gives all nodes new settings: one node after the other drains and comes back.
func (in *installationInUse) restart(settings []string) {
	in.t.Helper()
	if in.t.Failed() {
		in.t.FailNow()
	}
	for i := range in.running {
		if status := in.running[i].Terminate(); status != 0 {
			in.t.Fatalf("the node exits with %d", status)
		}
		in.running[i] = in.start(in.t, in.addresses[i], settings)
		in.awaitUseOfBoth()
	}
}

// reload makes all nodes read their files again, one after the other. None of them ends.
func (in *installationInUse) reload() {
	in.t.Helper()
	for _, n := range in.running {
		n.Reload(in.t)
		in.awaitUseOfBoth()
	}
}

// awaitUseOfBoth waits until both nodes have had many requests: one has the new settings, the other
// may still have those of before.
func (in *installationInUse) awaitUseOfBoth() {
	in.t.Helper()
	var before [2]float64
	for i, n := range in.running {
		before[i] = nodetest.Metric(in.t, n, postRequests)
	}
	redistest.Eventually(in.t, "both nodes have many requests", func() bool {
		const many = 50
		return in.t.Failed() || nodetest.Metric(in.t, in.running[0], postRequests) > before[0]+many &&
			nodetest.Metric(in.t, in.running[1], postRequests) > before[1]+many
	})
}

// work runs rounds, one after the other, until the end of the test or an error.
func (in *installationInUse) work(name string, round func(n int) error) {
	completed := new(atomic.Int64)
	in.rounds = append(in.rounds, completed)
	in.workers.Go(func() {
		pace := time.NewTicker(200 * time.Millisecond) // within the limits of sockets, and of two cores
		defer pace.Stop()
		for n := 0; !in.stopping.Load(); n++ {
			<-pace.C
			if err := round(n); err != nil {
				in.t.Errorf("%s, round %d: %v", name, n, err)
				return
			}
			completed.Add(1)
		}
	})
}

// awaitRounds waits until every worker has completed a round that began after the call.
func (in *installationInUse) awaitRounds() {
	in.t.Helper()
	before := make([]int64, len(in.rounds))
	for i, completed := range in.rounds {
		before[i] = completed.Load()
	}
	redistest.Eventually(in.t, "every worker has completed a round", func() bool {
		for i, completed := range in.rounds {
			if completed.Load() < before[i]+2 && !in.t.Failed() {
				return false
			}
		}
		return true
	})
}

// stop ends the workers and returns how many rounds they have completed.
func (in *installationInUse) stop() (rounds []int64) {
	in.stopping.Store(true)
	in.workers.Wait()
	for _, completed := range in.rounds {
		rounds = append(rounds, completed.Load())
	}
	return rounds
}

// call sends a request through the balancer. It returns an error for any other status.
func (in *installationInUse) call(
	status int, path, bearer string, body map[string]any, headers ...string,
) (nodetest.Response, error) {
	r, err := in.front.Do(in.t.Context(), "POST", path, bearer, body, headers...)
	if err == nil && r.Status != status {
		err = fmt.Errorf("POST %s returned %s, not %d", path, r, status)
	}
	return r, err
}

// client is a player with a refresh token and a socket for saves. It is used by one goroutine.
type client struct {
	player
	in      *installationInUse
	refresh string
	socket  *pump
	version int64 // of the newest save
	lastID  int

	reconnects bool // each round: the balancer gives the node with fewer sockets nearly all requests
}

func (in *installationInUse) signIn(name string) *client {
	in.t.Helper()
	body := map[string]any{"gameId": in.op.game, "username": name}
	a := in.must(201, "POST", "/api/v1/auth/guest", "", body).Body
	return &client{
		player: player{
			id: number(in.t, a["user"].(map[string]any)["id"]), token: a["accessToken"].(string), name: name,
		},
		in: in, refresh: a["refreshToken"].(string),
	}
}

func (c *client) refreshTokens() error {
	r, err := c.in.call(200, "/api/v1/auth/refresh", "", map[string]any{"refreshToken": c.refresh})
	if err != nil {
		return err
	}
	c.token, c.refresh = r.Body["accessToken"].(string), r.Body["refreshToken"].(string)
	return nil
}

// pump is a socket that is always read, as a browser does.
type pump struct {
	conn     *websocket.Conn
	messages chan socketMessage // closed at the end of the socket
	err      error              // why it ended
}

// connect opens the socket. It tries again after draining, as the code asks for: the balancer finds
// out within a moment that a node drains.
func (c *client) connect() error {
	var conn *websocket.Conn
	var failed error
	err := redistest.Poll(10*time.Second, func() error {
		var err error
		conn, err = dial(c.in.t.Context(), c.in.front.Node, "/api/v1/game-data/save", c.player)
		if err != nil && strings.Contains(err.Error(), `"code":"draining"`) {
			return err
		}
		failed = err
		return nil
	})
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	c.in.t.Cleanup(func() { _ = conn.Close() })
	c.socket = &pump{conn: conn, messages: make(chan socketMessage, 100)}
	go func(p *pump) {
		defer close(p.messages)
		for {
			batch, err := readFrame(p.conn)
			if err != nil {
				p.err = err
				return
			}
			for _, m := range batch {
				p.messages <- m
			}
		}
	}(c.socket)
	return nil
}

// request sends a message and returns the data of the reply. After 1012, by which a draining node
// asks its clients to come back, the same message is sent on another socket; after 4001, by which a
// socket ends whose token was signed by a key that is gone, under a refreshed token.
func (c *client) request(messageType string, data map[string]any) (map[string]any, error) {
	c.lastID++
	id := fmt.Sprintf("%s-%d", messageType, c.lastID)
	for {
		if c.socket == nil {
			if err := c.connect(); err != nil {
				return nil, err
			}
		}
		_ = c.socket.conn.WriteJSON(map[string]any{"id": id, "type": messageType, "data": data})
		for m := range c.socket.messages {
			switch {
			case m.ReplyTo == id && *m.OK:
				return m.Data, nil
			case m.ReplyTo == id:
				return nil, fmt.Errorf("%s: %s", messageType, m.raw)
			}
		}
		var closed *websocket.CloseError
		const sessionEnded = 4001
		if !errors.As(c.socket.err, &closed) ||
			closed.Code != websocket.CloseServiceRestart && closed.Code != sessionEnded {
			return nil, fmt.Errorf("the socket ended with %w", c.socket.err)
		}
		if closed.Code == sessionEnded {
			if err := c.refreshTokens(); err != nil {
				return nil, err
			}
		}
		c.socket = nil
	}
}

// disconnect closes the socket, and returns when the node has closed it too.
func (c *client) disconnect() {
	if c.socket == nil {
		return
	}
	goodbye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = c.socket.conn.WriteControl(websocket.CloseMessage, goodbye, time.Now().Add(time.Second))
	for range c.socket.messages {
	}
	c.socket = nil
}

func (c *client) save(state int) error {
	saved, err := c.request("save", map[string]any{
		"slot": "main", "state": map[string]any{"gold": state}, "version": c.version,
	})
	if err != nil {
		return err
	}
	c.version++
	if saved["version"] != float64(c.version) {
		return fmt.Errorf("version %d was saved as %v", c.version, saved["version"])
	}
	return nil
}

func (c *client) wantLoad(state int) error {
	loaded, err := c.request("load", map[string]any{"slot": "main"})
	if err != nil {
		return err
	}
	if got, _ := loaded["state"].(map[string]any); got["gold"] != float64(state) {
		return fmt.Errorf("loaded %v, want %d", loaded, state)
	}
	return nil
}

// playRound refreshes the tokens of two players, plays a paid room that the first one wins, and
// saves.
func (in *installationInUse) playRound(ann, bob *client, n int) error {
	for _, c := range []*client{ann, bob} {
		if err := c.refreshTokens(); err != nil {
			return err
		}
		if c.reconnects {
			c.disconnect()
		}
	}
	created, err := in.call(201, "/api/v1/game-session/create", ann.token,
		map[string]any{"entryTokenId": in.op.tokenID, "roomEntry": 1, "maxPlayers": 2},
		"Idempotency-Key", fmt.Sprint("create-", n))
	if err != nil {
		return err
	}
	id := created.Body["roomId"].(string)
	room := map[string]any{"roomId": id}
	for _, step := range []struct {
		path   string
		bearer string
		body   map[string]any
	}{
		{"join", bob.token, room},
		{"ready", bob.token, map[string]any{"roomId": id, "ready": true}},
		{"start", ann.token, room},
		{"finish", *in.serverKey.Load(), map[string]any{"roomId": id, "results": []map[string]any{
			{"userId": ann.id, "place": 1}, {"userId": bob.id, "place": 2},
		}}},
	} {
		path := "/api/v1/game-session/" + step.path
		if _, err := in.call(200, path, step.bearer, step.body, "Idempotency-Key", step.path+id); err != nil {
			return err
		}
	}
	for _, c := range []*client{ann, bob} {
		if c.version > 0 { // by another node perhaps, under other keys
			if err := c.wantLoad(n - 1); err != nil {
				return err
			}
		}
		if err := c.save(n); err != nil {
			return err
		}
	}
	return nil
}

// rotateServerKey gives the game's server a second key, and revokes the first.
func (in *installationInUse) rotateServerKey() {
	in.t.Helper()
	path := fmt.Sprintf("/api/v1/admin/games/%d/server-keys", in.op.game)
	made := in.must(201, "POST", path, newAdminKey, nil).Body
	serverKey := made["serverKey"].(string)
	in.serverKey.Store(&serverKey)
	in.awaitRounds()
	first := made["game"].(map[string]any)["serverKeys"].([]any)[0].(map[string]any)["id"].(string)
	in.must(200, "DELETE", path+"/"+first, newAdminKey, nil)
	redistest.Eventually(in.t, "the revoked key is refused", func() bool {
		path := fmt.Sprintf("/api/v1/admin/games/%d", in.op.game)
		r, err := in.front.Do(in.t.Context(), "GET", path, in.op.serverKey, nil)
		return err == nil && r.Code() == "unauthenticated"
	})
}

// These are the steps of docs/deployment.md, for all kinds of keys at once.
func TestEveryKeyRotatesWhileItIsUsedAndNothingFails(t *testing.T) {
	t.Parallel()
	const oldAdminKey, oldSigningKey = nodetest.AdminKey, nodetest.SigningKey
	in := startInstallation(t, oldAdminKey, oldSigningKey, "")
	absent := in.signIn("Absent") // from before the rotation until after it
	testkit.Check(t, absent.save(7))
	absent.disconnect()

	var players []*client
	for i := range 3 {
		ann, bob := in.signIn(fmt.Sprintf("Ann %d", i)), in.signIn(fmt.Sprintf("Bob %d", i))
		ann.reconnects, bob.reconnects = i > 0, i > 0
		players = append(players, ann, bob)
		in.work(ann.name, func(n int) error {
			if n%2 == 1 {
				return in.playRound(bob, ann, n)
			}
			return in.playRound(ann, bob, n)
		})
	}
	credited := players[0]
	creditPath := fmt.Sprintf("/api/v1/admin/users/%d/credit", credited.id)
	in.work("the operator", func(n int) error {
		operator := *in.adminKey.Load()
		r, err := in.front.Do(t.Context(), "GET", "/api/v1/admin/audit", operator, nil)
		if err == nil && r.Status != 200 {
			err = fmt.Errorf("the audit returned %s", r)
		}
		if err != nil {
			return err
		}
		_, err = in.call(200, creditPath, operator,
			map[string]any{"tokenId": "GOLD", "amount": 1, "reason": "work"}, "Idempotency-Key", fmt.Sprint("credit-", n))
		return err
	})
	in.awaitRounds()

	// Every node knows the new keys before one of them signs by one.
	in.restart(in.writeKeys(oldAdminKey+","+newAdminKey, oldSigningKey+","+newSigningKey, oldSigningKey+","+newSaveKey))
	byOldKey := absent.token
	operator := newAdminKey
	in.adminKey.Store(&operator)
	in.awaitRounds()
	in.rotateServerKey()
	// They sign by the new ones.
	in.writeKeys(oldAdminKey+","+newAdminKey, newSigningKey+","+oldSigningKey, newSaveKey+","+oldSigningKey)
	in.reload()
	in.awaitRounds() // every access token in use is by the new key
	in.must(200, "GET", "/api/v1/me", byOldKey, nil)
	// The old ones are gone. What the old key signed is a save that still matters.
	in.writeKeys(newAdminKey, newSigningKey, newSaveKey+","+oldSigningKey)
	in.reload()
	in.awaitRounds()
	rounds := in.stop()
	t.Logf("rounds: %v", rounds)

	in.wantError("unauthenticated", 401, "GET", "/api/v1/me", byOldKey, nil)
	in.wantError("unauthenticated", 401, "GET", "/api/v1/admin/audit", oldAdminKey, nil)
	testkit.Report(t, errors.Join(absent.refreshTokens(), absent.wantLoad(7)), "who was away")
	in.wantWallet(absent.player, "10000", "0")
	var total int64
	for _, c := range players {
		free, held := in.wallet(c.player)
		if held != "0" {
			t.Errorf("%s has %s held", c.name, held)
		}
		var units int64
		testkit.Must(fmt.Sscan(free, &units))(t)
		total += units
	}
	minted := 10_000*int64(len(players)) + 100*rounds[len(rounds)-1]
	if total != minted {
		t.Errorf("the players have %d; want %d", total, minted)
	}
	audit := in.must(200, "GET", "/api/v1/admin/audit", newAdminKey, nil)
	if audit.Body["balanced"] != true {
		t.Errorf("the audit: %s", audit)
	}

	// Without the old key, saves are there that were written since; the other one is not.
	in.front.Node = in.start(t, "127.0.0.1:0", in.writeKeys(newAdminKey, newSigningKey, newSaveKey))
	for _, c := range append(slices.Clone(players), absent) {
		c.socket = nil
		_, err := c.request("load", map[string]any{"slot": "main"})
		if (err == nil) != (c != absent) {
			t.Errorf("%s loads without the old key: %v", c.name, err)
		}
	}
}
