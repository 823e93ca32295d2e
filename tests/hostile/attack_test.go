package hostile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/base/wire/wiretest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// target is what the attacker's process gets.
type target struct {
	Nodes   []string `json:"nodes"` // URLs
	Game    int64    `json:"game"`
	Token   int64    `json:"token"`
	Asset   int64    `json:"asset"`
	Victims []int64  `json:"victims"` // user ids of honest players
	For     int64    `json:"for"`     // ms
}

// attackEnv has the target, as JSON, in the environment of the attacker's process.
const attackEnv = "PARLOR_HOSTILE_TARGET"

// attackerAddress is the one address from which everything hostile comes.
const attackerAddress = "203.0.113.66"

// startAttack runs this test binary again, at the lowest priority, as the attacker. wait returns
// what it reports.
func startAttack(t *testing.T, what target) (wait func() string) {
	t.Helper()
	encoded := testkit.Must(wire.Marshal(what))(t)
	cmd := exec.Command("nice", "-n", "19", os.Args[0])
	cmd.Env = append(os.Environ(), attackEnv+"="+string(encoded))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	testkit.Check(t, cmd.Start(), "start the attacker")
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return func() string {
		testkit.Report(t, <-ended, "the attacker ended")
		return out.String()
	}
}

// attacker is one guest at one address.
type attacker struct {
	target
	ctx      context.Context
	client   *http.Client
	calls    atomic.Int64
	guest    session // who does everything
	friend   session // a second account of the same person
	mu       sync.Mutex
	statuses map[string]map[string]int // way → code of the response → how often
}

type session struct {
	id             int64
	token, refresh string
}

const (
	workers     = 4         // goroutines for each way
	workerCalls = 1_000_000 // more than one of them makes: their keys differ
)

// attack does every way at once until the time is over, and prints what came back.
func attack(encoded string) int {
	a := &attacker{
		client:   &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 200}, Timeout: 20 * time.Second},
		statuses: map[string]map[string]int{},
	}
	if err := wire.Unmarshal([]byte(encoded), &a.target); err != nil {
		fmt.Println(err)
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(a.For)*time.Millisecond)
	defer cancel()
	a.ctx = ctx
	a.guest, a.friend = a.signUp("secret-of-the-hostile-guest-000001"), a.signUp("secret-of-the-hostile-guest-000002")
	if a.guest.token == "" || a.friend.token == "" {
		fmt.Println("no account:", a.statuses)
		return 1
	}
	var group sync.WaitGroup
	for worker := range workers {
		for name, way := range a.ways(worker) {
			group.Go(func() {
				for i := worker * workerCalls; ctx.Err() == nil; i++ {
					way(name, i)
				}
			})
		}
	}
	group.Wait()
	for _, name := range slices.Sorted(maps.Keys(a.statuses)) {
		fmt.Printf("%-34s", name)
		for _, code := range slices.Sorted(maps.Keys(a.statuses[name])) {
			fmt.Printf(" %s %d", code, a.statuses[name][code])
		}
		fmt.Println()
	}
	return 0
}

func (a *attacker) signUp(secret string) session {
	body := a.post("sign up", "", "/api/v1/auth/guest", map[string]any{"gameId": a.Game, "deviceSecret": secret})
	token, _ := body["accessToken"].(string)
	refresh, _ := body["refreshToken"].(string)
	user, _ := body["user"].(map[string]any)
	number, _ := user["id"].(wiretest.Number)
	id, _ := number.Int64()
	return session{id, token, refresh}
}

// ways returns what the attacker does, each over and over in goroutines of its own.
func (a *attacker) ways(worker int) map[string]func(way string, i int) {
	const room, session = "/api/v1/game-session/", "/api/v1/auth/"
	metadata := map[string]any{"x": strings.Repeat("y", 4000)}
	paid := map[string]any{"entryTokenId": a.Token, "roomEntry": 0.01, "maxPlayers": 8, "metadata": metadata}
	free := map[string]any{"maxPlayers": 200, "metadata": metadata}
	mine := a.roomOf("its own room", a.friend, paid)
	refresh := a.signUp(fmt.Sprintf("secret-of-the-hostile-guest-1%05d", worker)).refresh // a token used twice ends it
	saves, realtime := &floodSocket{a: a, path: "/api/v1/game-data/save"}, &floodSocket{a: a, path: "/api/v1/realtime"}
	reads := &floodSocket{a: a, path: "/api/v1/game-data/load"}
	state := `{"a":"` + strings.Repeat("s", 255<<10) + `"}`
	newKey := func(way string, i int) string { return fmt.Sprint(strings.ReplaceAll(way, " ", "-"), "-", i) }
	cursor := ""
	return map[string]func(string, int){
		"new guests": func(way string, _ int) {
			a.post(way, "", session+"guest", map[string]any{"gameId": a.Game})
		},
		"new guests with new keys": func(way string, i int) {
			a.post(way, "", session+"guest", map[string]any{
				"gameId": a.Game, "deviceSecret": fmt.Sprintf("secret-of-the-hostile-device-%08d", i),
			}, "Idempotency-Key", newKey(way, i))
		},
		"sign-ins of one guest": func(way string, _ int) { a.signIn(way) },
		"refresh": func(way string, i int) {
			body := a.post(way, "", session+"refresh", map[string]any{"refreshToken": refresh})
			if next, ok := body["refreshToken"].(string); ok && i%4 != 3 {
				refresh = next
			}
		},
		"tickets": func(way string, _ int) { a.post(way, a.guest.token, session+"ticket", nil) },
		"rooms": func(way string, i int) {
			a.post(way, a.guest.token, room+"create", []map[string]any{paid, free}[i%2])
		},
		"rooms with new keys, cancelled": func(way string, i int) {
			body := a.post(way, a.friend.token, room+"create", []map[string]any{paid, free}[i%2],
				"Idempotency-Key", newKey(way, i))
			if id, ok := body["roomId"].(string); ok {
				a.post(way, a.friend.token, room+"cancel", map[string]any{"roomId": id})
			}
		},
		"join and leave": func(way string, _ int) {
			a.post(way, a.guest.token, "/join", map[string]any{"roomId": mine})
			a.post(way, a.guest.token, room+"leave", map[string]any{"roomId": mine})
		},
		"leave with new keys": func(way string, i int) {
			a.post(way, a.guest.token, room+"leave", map[string]any{"roomId": mine}, "Idempotency-Key", newKey(way, i))
		},
		"ready with new keys": func(way string, i int) {
			a.post(way, a.friend.token, room+"ready", map[string]any{"roomId": mine, "ready": i%2 == 0},
				"Idempotency-Key", newKey(way, i))
		},
		"purchases with new keys": func(way string, i int) {
			a.post(way, a.guest.token, fmt.Sprint("/api/v1/user-assets/add/game-asset/", a.Asset+int64(i%2)),
				map[string]any{"quantity": 1 + i%5*1000}, "Idempotency-Key", newKey(way, i))
		},
		"friend requests": func(way string, i int) {
			a.post(way, a.guest.token, fmt.Sprint("/api/v1/friends/", a.Victims[i%len(a.Victims)]), nil,
				"Idempotency-Key", newKey(way, i))
			a.post(way, a.friend.token, fmt.Sprint("/api/v1/friends/", i), nil)
		},
		"blocks": func(way string, i int) { a.post(way, a.friend.token, fmt.Sprintf("/api/v1/friends/%d/block", i), nil) },
		"lists": func(way string, i int) {
			path := []string{
				room + "list?limit=100", room + "list?limit=100&hasSeat=true&maxEntry=0.01&entryTokenId=" +
					strconv.FormatInt(a.Token, 10), room + "list?limit=100&mine=true", room + "list?cursor=" + cursor,
				"/api/v1/user-balance/ledger?limit=100", "/api/v1/friends", "/api/v1/user-assets",
			}[i%7]
			cursor, _ = a.send(way, a.guest.token, http.MethodGet, path, nil)["nextCursor"].(string)
		},
		"rooms that do not exist": func(way string, i int) {
			id := fmt.Sprintf("01a20335-9385-8800-8003-%012x", i)
			a.post(way, a.guest.token, "/join", map[string]any{"roomId": id}, "Idempotency-Key", newKey(way, i))
			a.send(way, a.guest.token, http.MethodGet, room+"get?roomId="+id, nil)
		},
		"unknown server keys": func(way string, i int) {
			a.post(way, fmt.Sprintf("psk_%d_%040d", a.Game, i), room+"finish", map[string]any{"roomId": mine})
		},
		"forged tokens": func(way string, i int) {
			a.send(way, a.guest.token+strconv.Itoa(i), http.MethodGet, "/api/v1/me", nil)
		},
		"huge bodies": func(way string, _ int) {
			a.post(way, a.guest.token, room+"create", map[string]any{"metadata": strings.Repeat("z", 1<<20)})
		},
		"slow bodies":  func(way string, i int) { a.sendSlowly(way, i) },
		"many sockets": func(way string, i int) { a.holdSockets(way, i) },
		"saves of 255 KiB": func(way string, i int) {
			saves.send(way, fmt.Sprintf(`{"id":"%d","type":"save","data":{"slot":"s%d","version":%d,"state":%s}}`,
				i, i%16, i%workerCalls/16, state))
		},
		"reads of saves": func(way string, i int) {
			kind := []string{"history", "load", "list"}[i%3]
			reads.send(way, fmt.Sprintf(`{"id":"%d","type":%q,"data":{"slot":"s%d"}}`, i, kind, i%16))
		},
		"messages and subscriptions": func(way string, i int) {
			kind := []string{
				`"room.subscribe","data":{"roomId":%q,"after":"0-0"}`, `"room.send","data":{"roomId":%q,"data":"` +
					strings.Repeat("w", 8000) + `"}`, `"room.unsubscribe","data":{"roomId":%q}`,
			}[i%3]
			realtime.send(way, fmt.Sprintf(`{"id":"%d","type":`+fmt.Sprintf(kind, mine)+`}`, i))
		},
		"profiles": func(way string, i int) {
			a.send(way, a.guest.token, http.MethodPatch, "/api/v1/me", map[string]any{"username": fmt.Sprint("Eve", i)})
		},
	}
}

func (a *attacker) signIn(way string) {
	a.post(way, "", "/api/v1/auth/guest", map[string]any{
		"gameId": a.Game, "deviceSecret": "secret-of-the-hostile-guest-000001",
	})
}

func (a *attacker) roomOf(way string, s session, in map[string]any) string {
	id, _ := a.post(way, s.token, "/api/v1/game-session/create", in)["roomId"].(string)
	return id
}

func (a *attacker) post(way, token, path string, body any, headers ...string) map[string]any {
	return a.send(way, token, http.MethodPost, path, body, headers...)
}

// send sends a request to the nodes in turn, counts the response and returns its body.
func (a *attacker) send(way, token, method, path string, body any, headers ...string) map[string]any {
	var reader io.Reader
	if body != nil {
		encoded, _ := wire.Marshal(body)
		reader = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(a.ctx, method, a.node()+path, reader)
	if err != nil {
		a.count(way, "not sent")
		return nil
	}
	request.Header.Set("X-Forwarded-For", attackerAddress)
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := a.client.Do(request)
	if err != nil {
		if a.ctx.Err() == nil {
			a.count(way, "no response")
		}
		return nil
	}
	defer func() { _ = response.Body.Close() }()
	raw, _ := io.ReadAll(response.Body)
	var decoded map[string]any
	_ = wiretest.Unmarshal(raw, &decoded)
	code := strconv.Itoa(response.StatusCode)
	if text, ok := decoded["code"].(string); ok && response.StatusCode >= 400 {
		code = text
	}
	a.count(way, code)
	return decoded
}

func (a *attacker) node() string { return a.Nodes[int(a.calls.Add(1))%len(a.Nodes)] }

func (a *attacker) count(way, code string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.statuses[way] == nil {
		a.statuses[way] = map[string]int{}
	}
	a.statuses[way][code]++
}

// sendSlowly opens a connection and sends a body byte by byte until the node closes it.
func (a *attacker) sendSlowly(way string, i int) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.node(), "http://"))
	if err != nil {
		a.count(way, "no connection")
		return
	}
	_, _ = fmt.Fprintf(conn, "POST /api/v1/game-session/create HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: %s\r\n"+
		"Authorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n{",
		attackerAddress, a.guest.token)
	go func() {
		defer func() { _ = conn.Close() }()
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-a.ctx.Done():
				return
			case <-tick.C:
				if _, err := conn.Write([]byte{' '}); err != nil {
					a.count(way, "closed")
					return
				}
			}
		}
	}()
	if i%50 == 49 {
		a.pause(time.Second)
	}
}

// pause waits, or until the attack ends.
func (a *attacker) pause(d time.Duration) {
	ctx, cancel := context.WithTimeout(a.ctx, d)
	defer cancel()
	<-ctx.Done()
}

func (a *attacker) dial(path string) (*websocket.Conn, int) {
	header := http.Header{"Authorization": {"Bearer " + a.guest.token}, "X-Forwarded-For": {attackerAddress}}
	url := "ws" + strings.TrimPrefix(a.node(), "http") + path
	conn, response, err := websocket.DefaultDialer.DialContext(a.ctx, url, header)
	if err != nil {
		if response != nil {
			return nil, response.StatusCode
		}
		return nil, 0
	}
	return conn, http.StatusSwitchingProtocols
}

// holdSockets opens a socket more and never reads from it.
func (a *attacker) holdSockets(way string, i int) {
	conn, status := a.dial("/api/v1/realtime")
	a.count(way, strconv.Itoa(status))
	if conn != nil {
		context.AfterFunc(a.ctx, func() { _ = conn.Close() })
	}
	if i%20 == 19 {
		a.pause(100 * time.Millisecond)
	}
}

var codeInFrame = regexp.MustCompile(`"code":"([a-z_]+)"`)

// floodSocket is a socket that is opened again whenever the node closes it.
type floodSocket struct {
	a    *attacker
	path string
	conn *websocket.Conn
}

// send sends a message and counts the reply, or another message, that comes first.
func (f *floodSocket) send(way, message string) {
	if f.conn == nil {
		var status int
		if f.conn, status = f.a.dial(f.path); f.conn == nil {
			f.a.count(way, strconv.Itoa(status))
			f.a.pause(50 * time.Millisecond)
			return
		}
		conn := f.conn
		context.AfterFunc(f.a.ctx, func() { _ = conn.Close() })
	}
	var frame []byte
	err := f.conn.WriteMessage(websocket.TextMessage, []byte(message))
	if err == nil {
		_, frame, err = f.conn.ReadMessage()
	}
	if err != nil {
		_ = f.conn.Close()
		f.conn = nil
		if f.a.ctx.Err() == nil {
			f.a.count(way, "closed")
		}
		return
	}
	code := "ok"
	if m := codeInFrame.FindSubmatch(frame); m != nil {
		code = string(m[1])
	}
	f.a.count(way, code)
}
