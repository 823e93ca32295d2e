package parlor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// fakeNode speaks the protocol of a node, with faults.
type fakeNode struct {
	http *httptest.Server

	mu       sync.Mutex
	entries  []Event // of the feed "e", in order; the number of the first is lost+1
	lost     int     // entries that are gone
	sockets  map[*fakeSocket]bool
	applied  []string            // changes of rooms, in order: "<type> <key>"
	answers  map[string]string   // what each key was answered
	requests []map[string]string // of HTTP: method, path
	rooms    map[string][]Room   // by status
	answered chan reply          // of calls

	// Faults. Each happens once for each that is set.
	repeat      int      // entries before the position that a resume repeats
	loseReplies int      // verbs that are applied, and then the connection ends
	refuse      []string // codes of retryable problems with which verbs are refused before they are applied
	closeWith   int      // close code of the next connection; 0: none
}

type fakeSocket struct {
	ws      *websocket.Conn
	writing sync.Mutex
	isHeard bool // it has a subscription
}

func newFakeNode() *fakeNode {
	n := &fakeNode{
		sockets: map[*fakeSocket]bool{}, answers: map[string]string{}, rooms: map[string][]Room{},
		answered: make(chan reply, 16),
	}
	n.http = httptest.NewServer(n)
	return n
}

func (n *fakeNode) close() {
	n.cut()
	n.http.Close()
}

func (n *fakeNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer key" {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"code":"unauthenticated","detail":"no such key"}`))
		return
	}
	if r.URL.Path == "/api/v1/realtime" {
		n.serveSocket(w, r)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.requests = append(n.requests, map[string]string{"method": r.Method, "path": r.URL.Path})
	switch r.URL.Path {
	case "/api/v1/admin/rooms":
		_ = json.NewEncoder(w).Encode(map[string]any{"items": n.rooms[r.URL.Query().Get("status")], "nextCursor": nil})
	case "/api/v1/game-session/get":
		_ = json.NewEncoder(w).Encode(Room{RoomID: r.URL.Query().Get("roomId"), Status: Started})
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func (n *fakeNode) serveSocket(w http.ResponseWriter, r *http.Request) {
	ws, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
	if err != nil {
		return
	}
	s := &fakeSocket{ws: ws}
	n.mu.Lock()
	n.sockets[s] = true
	code := n.closeWith
	n.closeWith = 0
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		delete(n.sockets, s)
		n.mu.Unlock()
		_ = ws.Close()
	}()
	if code != 0 {
		text := websocket.FormatCloseMessage(code, "for a test")
		_ = ws.WriteControl(websocket.CloseMessage, text, time.Now().Add(time.Second))
		return
	}
	s.send(map[string]any{"type": "hello", "data": map[string]any{"role": "server", "limits": map[string]any{}}})
	for {
		_, text, err := ws.ReadMessage()
		if err != nil {
			return
		}
		var f struct {
			ID, Type, Key string
			Data          json.RawMessage
		}
		if json.Unmarshal(text, &f) != nil || !n.handle(s, f.ID, f.Type, f.Key, f.Data) {
			return
		}
	}
}

func (s *fakeSocket) send(f any) {
	s.writing.Lock()
	defer s.writing.Unlock()
	_ = s.ws.WriteJSON(f)
}

// handle reports whether the connection lives on.
func (n *fakeNode) handle(s *fakeSocket, id, kind, key string, data json.RawMessage) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch kind {
	case "game.subscribe":
		n.subscribe(s, id, data)
	case "room.reply":
		var r reply
		_ = json.Unmarshal(data, &r)
		n.answered <- r
	case "room.send":
		s.send(map[string]any{"replyTo": id, "ok": true})
	default:
		if len(n.refuse) > 0 {
			code := n.refuse[0]
			n.refuse = n.refuse[1:]
			s.send(map[string]any{"replyTo": id, "ok": false, "error": Problem{Code: code, Retryable: true, Status: 503}})
			return true
		}
		answer, isReplay := n.answers[key]
		if !isReplay {
			n.applied = append(n.applied, kind+" "+key)
			answer = fmt.Sprintf(`{"roomId":"r","version":%d}`, len(n.applied))
			n.answers[key] = answer
		}
		if n.loseReplies > 0 {
			n.loseReplies--
			return false
		}
		s.send(map[string]any{"replyTo": id, "ok": true, "data": json.RawMessage(answer), "replayed": isReplay})
	}
	return true
}

func (n *fakeNode) subscribe(s *fakeSocket, id string, data json.RawMessage) {
	var in subscription
	_ = json.Unmarshal(data, &in)
	after := n.lost + len(n.entries)
	mode := "live"
	if position, isGiven := in.After["e"]; isGiven {
		mode, after = "resume", int(seqOf(position))
		if after < n.lost || after > n.lost+len(n.entries) {
			mode, after = "gap", n.lost+len(n.entries)
		}
	}
	s.isHeard = true
	s.send(map[string]any{"replyTo": id, "ok": true, "data": map[string]any{
		"mode": mode, "position": map[string]string{"e": fmt.Sprintf("%d-x", after)},
	}})
	after = max(n.lost, after-n.repeat)
	n.repeat = 0
	if missed := n.entries[after-n.lost:]; len(missed) > 0 {
		s.send(missed) // as one array
	}
}

// happen appends an event of a room and publishes it.
func (n *fakeNode) happen(roomID, kind string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	seq := int64(1)
	for _, e := range n.entries {
		if e.RoomID == roomID {
			seq = e.Seq + 1
		}
	}
	number := n.lost + len(n.entries) + 1
	e := Event{
		Type: kind, Feed: "e", Position: fmt.Sprintf("%d-x", number), RoomID: roomID, Seq: seq, Time: time.Now(),
		Data: json.RawMessage(`{}`),
	}
	n.entries = append(n.entries, e)
	n.publish(e)
}

// publish sends a frame to all that have a subscription. n.mu must be held.
func (n *fakeNode) publish(f any) {
	for s := range n.sockets {
		if s.isHeard {
			s.send(f)
		}
	}
}

// forget loses all entries so far.
func (n *fakeNode) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lost, n.entries = n.lost+len(n.entries), nil
}

// cut ends all connections without a word.
func (n *fakeNode) cut() {
	n.mu.Lock()
	sockets := maps.Clone(n.sockets)
	n.mu.Unlock()
	for s := range sockets {
		_ = s.ws.UnderlyingConn().Close()
	}
}

func (n *fakeNode) set(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
}

// testing.TB or rapid.T
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

func newTestServer(t failer, n *fakeNode, positions PositionStore) *Server {
	t.Helper()
	s, err := NewServer(Options{URL: n.http.URL, Key: "key", Positions: positions, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatalf("%v", err)
	}
	s.backoff = func(int) time.Duration { return time.Millisecond }
	return s
}

// runServer runs a server until stop is called, which returns what Run returned.
func runServer(s *Server) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

func start(t *testing.T, s *Server) {
	t.Helper()
	stop := runServer(s)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
}

// waitFor waits until a condition holds.
func waitFor(t failer, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// keptPositions is a store in memory that outlives a server.
type keptPositions struct {
	mu    sync.Mutex
	value map[string]string
}

func (k *keptPositions) Load(context.Context) (map[string]string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.value), nil
}

func (k *keptPositions) Save(_ context.Context, positions map[string]string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(positions) == 0 && len(k.value) > 0 {
		return errors.New("positions are lost")
	}
	k.value = positions
	return nil
}

func (k *keptPositions) of(feed string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.value[feed]
}
