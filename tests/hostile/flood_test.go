package hostile

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	parlor "github.com/parlor-games/parlor/sdk/go"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// floodEnv has what the process floods, as JSON.
const floodEnv = "PARLOR_HOSTILE_FLOOD"

// flooded is what the process that floods gets: a player of the game that is attacked, and servers
// that hold a key of another game, and of this one.
type flooded struct {
	Nodes       []string `json:"nodes"` // URLs
	Player      string   `json:"player"`
	Room        string   `json:"room"`
	ServerKey   string   `json:"serverKey"` // of the game that is attacked; its socket is never read
	ForeignKey  string   `json:"foreignKey"`
	ForeignRoom string   `json:"foreignRoom"`
}

// flood sends as fast as it can until it is killed: calls and messages of a player on four sockets,
// messages of a server on four, and servers that subscribe to everything and read nothing. A socket
// that is closed is opened again.
func flood(encoded string) int {
	var f flooded
	if err := wire.Unmarshal([]byte(encoded), &f); err != nil {
		fmt.Println(err)
		return 1
	}
	long := strings.Repeat("x", 7_000)
	call := fmt.Sprintf(`{"type":"room.call","data":{"roomId":%q,"op":"ask","payload":%q}}`, f.Room, long)
	message := fmt.Sprintf(`{"type":"room.send","data":{"roomId":%q,"op":"x","payload":%q}}`, f.Room, long)
	foreign := fmt.Sprintf(`{"type":"room.send","data":{"roomId":%q,"op":"x","payload":%q}}`, f.ForeignRoom, long)
	var group sync.WaitGroup
	for i := range 4 {
		node := f.Nodes[i%len(f.Nodes)]
		group.Go(func() { pour(node, f.Player, nil, call) })
		group.Go(func() { pour(node, f.Player, nil, message) })
		group.Go(func() { pour(node, f.ForeignKey, nil, foreign) })
	}
	deaf := []string{
		`{"type":"game.subscribe","data":{"kinds":["rooms","seats","tournaments","money"]}}`,
		fmt.Sprintf(`{"type":"room.subscribe","data":{"roomId":%q}}`, f.Room),
	}
	for _, node := range f.Nodes {
		group.Go(func() { pour(node, f.ServerKey, deaf, "") })
	}
	group.Wait()
	return 0
}

// pour opens a socket, again when it is closed, sends what comes first, and then the same frame as
// often as it can. Without a frame it waits, and reads nothing.
func pour(node, bearer string, first []string, frame string) {
	header := http.Header{"Authorization": {"Bearer " + bearer}, "X-Forwarded-For": {attackerAddress}}
	_ = redistest.Poll(time.Hour, func() error {
		conn, response, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(node, "http")+"/api/v1/realtime", header)
		if err != nil {
			if response != nil {
				_, _ = io.Copy(io.Discard, response.Body)
			}
			return err
		}
		defer func() { _ = conn.Close() }()
		for _, text := range first {
			if err := conn.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
				return err
			}
		}
		if frame == "" {
			for {
				if err := conn.WriteControl(websocket.PongMessage, nil, time.Now().Add(time.Second)); err != nil {
					return err
				}
			}
		}
		go func() { // what it gets is read, so that it is not found too slow
			for {
				if _, _, err := conn.ReadMessage(); err != nil {
					return
				}
			}
		}()
		for {
			if err := conn.WriteMessage(websocket.TextMessage, []byte(frame)); err != nil {
				return err
			}
		}
	})
}

// startFlood runs this test binary again, at the lowest priority. It is killed with the test.
func startFlood(t *testing.T, what flooded) *os.Process {
	t.Helper()
	cmd := exec.Command("nice", "-n", "19", os.Args[0])
	cmd.Env = append(os.Environ(), floodEnv+"="+string(testkit.Must(wire.Marshal(what))(t)))
	ended := make(chan struct{})
	testkit.Check(t, nodetest.StartProcess(cmd, ended))
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	return cmd.Process
}

// floodWindows is how often the flood is stopped and goes on. What is measured with it and without
// it is of the same minute of the same machine.
const floodWindows = 6

// TestFloodsOfCallsAndSendsHarmNobody lets a player flood calls and messages, the server of another
// game flood messages, and servers read nothing, while others ask their server, send messages and
// change a room. All of theirs is answered, and in about the same time.
func TestFloodsOfCallsAndSendsHarmNobody(t *testing.T) {
	if *attackFor < 10*time.Second {
		t.Skip("a flood fills every core of a test run: run make hostile")
	}
	store := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "everysec")
	h := &heist{t: t}
	for i := range h.nodes {
		h.nodes[i] = nodetest.Start(t, store.URL(), "PARLOR_TRUSTED_PROXIES=127.0.0.1/32", "PARLOR_DURABILITY=memory")
	}
	game, key := h.newFedGame("Duel")
	other, foreignKey := h.newFedGame("Other")
	ann, bob, thief, eve := h.guest(game), h.guest(game), h.guest(game), h.guest(other)
	room, hostileRoom, foreignRoom := h.startedRoom(ann, bob), h.startedRoom(thief), h.startedRoom(eve)

	server := testkit.Must(parlor.NewServer(parlor.Options{
		URL: h.nodes[0].URL, Key: key, Log: slog.New(slog.DiscardHandler),
	}))(t)
	server.OnCall("ask", func(_ context.Context, c parlor.Call) (any, error) { return c.Payload, nil })
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Run(ctx) }()
	t.Cleanup(func() { stop(); testkit.Report(t, <-served) })
	asking, sending := h.listen(ann, room, h.nodes[1]), h.listen(bob, room, h.nodes[0])
	foreignListener := h.listen(eve, foreignRoom, h.nodes[1])
	go foreignListener.drain()
	redistest.Eventually(t, "the server is asked", func() bool { return asking.ask(room) == nil })

	process := startFlood(t, flooded{
		Nodes: []string{h.nodes[0].URL, h.nodes[1].URL}, Player: thief.token, Room: hostileRoom,
		ServerKey: key, ForeignKey: foreignKey, ForeignRoom: foreignRoom,
	})
	redistest.Eventually(t, "the flood has begun", func() bool {
		return nodetest.Metric(t, h.nodes[0], "parlor_realtime_frames_total ") > 100
	})
	times := map[string][2][]time.Duration{}
	var cpu, wall [2]float64 // seconds, of both nodes
	cpuOf := func() (sum float64) {
		for _, n := range h.nodes {
			sum += nodetest.Metric(t, n, "process_cpu_seconds_total ")
		}
		return sum
	}
	for window := range floodWindows {
		flooding := window % 2
		if flooding == 1 {
			testkit.Check(t, redistest.ResumeProcess(process))
		} else {
			testkit.Check(t, redistest.PauseProcess(process))
		}
		beganAt, beganCPU := time.Now(), cpuOf()
		end := beganAt.Add(*attackFor / floodWindows)
		pace := time.NewTicker(50 * time.Millisecond) // a socket may send 60 frames a second
		for i := 0; time.Now().Before(end); i++ {
			<-pace.C
			for what, do := range map[string]func() error{
				"call":  func() error { return asking.ask(room) },
				"send":  func() error { return asking.sendTo(sending, room) },
				"ready": func() error { return h.toggleReady(ann, room, i) },
			} {
				began := time.Now()
				if err := do(); err != nil {
					t.Fatalf("%s, while flooding %d: %v", what, flooding, err)
				}
				both := times[what]
				both[flooding] = append(both[flooding], time.Since(began))
				times[what] = both
			}
		}
		pace.Stop()
		cpu[flooding] += cpuOf() - beganCPU
		wall[flooding] += time.Since(beganAt).Seconds()
	}
	testkit.Check(t, redistest.ResumeProcess(process))
	t.Logf("both nodes take %.2f cores, and %.2f with the flood", cpu[0]/wall[0], cpu[1]/wall[1])
	for what, both := range times {
		quiet, attacked := p99(both[0]), p99(both[1])
		ratio := float64(attacked) / float64(quiet)
		t.Logf("%-5s p99 %v of %d, with the flood %v of %d: %.2f times",
			what, quiet, len(both[0]), attacked, len(both[1]), ratio)
		if *maxRatio > 0 && ratio > *maxRatio {
			t.Errorf("%s: p99 is %.2f times that without the flood; at most %.2f are accepted", what, ratio, *maxRatio)
		}
	}
}

func p99(list []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[(len(sorted)-1)*99/100]
}

// newFedGame makes a game with a feed, and returns its id and server key.
func (h *heist) newFedGame(name string) (id int64, serverKey string) {
	made := h.must(201, "POST", "/api/v1/admin/games", nodetest.AdminKey, map[string]any{
		"name": name, "settings": map[string]any{"feed": true},
	})
	return number(h.t, made["game"].(map[string]any)["id"]), made["serverKey"].(string)
}

func (h *heist) guest(game int64) player {
	in := h.must(201, "POST", "/api/v1/auth/guest", "", map[string]any{"gameId": game})
	return player{number(h.t, in["user"].(map[string]any)["id"]), in["accessToken"].(string)}
}

// startedRoom returns a room that its players have filled; with one player it is not started.
func (h *heist) startedRoom(players ...player) string {
	room := h.must(201, "POST", "/api/v1/game-session/create", players[0].token, map[string]any{"maxPlayers": 4})["roomId"]
	for _, p := range players[1:] {
		h.must(200, "POST", "/api/v1/game-session/join", p.token, map[string]any{"roomId": room})
	}
	return room.(string)
}

func (h *heist) toggleReady(p player, room string, i int) error {
	r, err := h.nodes[i%2].Do(h.t.Context(), "POST", "/api/v1/game-session/ready", p.token,
		map[string]any{"roomId": room, "ready": i%2 == 0})
	if err == nil && r.Status != http.StatusOK {
		err = fmt.Errorf("ready returns %s", r)
	}
	return err
}

// listener is a player with a socket that follows a room.
type listener struct {
	conn   *websocket.Conn
	lastID int
}

func (h *heist) listen(p player, room string, n *nodetest.Node) *listener {
	h.t.Helper()
	conn := testkit.Must(n.Dial(h.t.Context(), "/api/v1/realtime", p.token))(h.t)
	h.t.Cleanup(func() { _ = conn.Close() })
	l := &listener{conn: conn}
	testkit.Check(h.t, l.request("room.subscribe", map[string]any{"roomId": room}))
	return l
}

// request sends a message and waits for its reply.
func (l *listener) request(messageType string, data map[string]any) error {
	l.lastID++
	id := fmt.Sprintf(`"replyTo":"%d"`, l.lastID)
	if err := l.conn.WriteJSON(map[string]any{"id": fmt.Sprint(l.lastID), "type": messageType, "data": data}); err != nil {
		return err
	}
	reply, err := l.waitFor(id)
	if err == nil && !strings.Contains(reply, `"ok":true`) {
		err = fmt.Errorf("%s gets %s", messageType, reply)
	}
	return err
}

// waitFor returns the next frame with a text.
func (l *listener) waitFor(text string) (string, error) {
	_ = l.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	for {
		_, frame, err := l.conn.ReadMessage()
		if err != nil || strings.Contains(string(frame), text) {
			return string(frame), err
		}
	}
}

func (l *listener) ask(room string) error {
	return l.request("room.call", map[string]any{"roomId": room, "op": "ask", "payload": 1})
}

// sendTo sends a message, and waits until the other player has it.
func (l *listener) sendTo(other *listener, room string) error {
	op := fmt.Sprint("m", l.lastID)
	err := l.request("room.send", map[string]any{"roomId": room, "op": op})
	if err == nil {
		_, err = other.waitFor(`"op":"` + op + `"`)
	}
	return err
}

func (l *listener) drain() {
	for {
		if _, _, err := l.conn.ReadMessage(); err != nil {
			return
		}
	}
}
