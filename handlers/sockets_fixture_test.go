package handlers_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

const (
	savePath     = "/api/v1/game-data/save"
	loadPath     = "/api/v1/game-data/load"
	realtimePath = "/api/v1/realtime"

	duelOrigin  = "https://duel.example"  // of createGame
	otherOrigin = "https://other.example" // of createOtherGame
)

// testSocket is the client's end of a socket. What it sends and receives is checked against
// asyncapi.yaml.
type testSocket struct {
	t      testing.TB
	conn   *websocket.Conn
	in     chan received
	events []received // that came before the expected reply
	end    chan struct{}
	err    error // why it ended

	// isServer is set by a server's hello. Its messages are not those of the contract of players.
	isServer bool
	lastID   int
}

// received is an event or a reply.
type received struct {
	raw      []byte
	Type     string         `json:"type"`
	RoomID   string         `json:"roomId"`
	Seq      int64          `json:"seq"`
	Position string         `json:"position"`
	ReplyTo  *string        `json:"replyTo"`
	OK       *bool          `json:"ok"` // nil: it is an event
	RawData  wire.RawJSON   `json:"data"`
	Error    map[string]any `json:"error"`
	Data     map[string]any `json:"-"` // data, if it is an object
	List     []any          `json:"-"` // data, if it is a list
}

func parseReceived(t testing.TB, raw []byte) received {
	t.Helper()
	r := received{raw: raw}
	err := wire.Unmarshal(raw, &r)
	switch {
	case err != nil:
	case r.RawData.Kind() == '{':
		err = wire.Unmarshal(r.RawData, &r.Data)
	case r.RawData.Kind() == '[':
		err = wire.Unmarshal(r.RawData, &r.List)
	}
	if err != nil {
		t.Errorf("a frame cannot be decoded: %v: %s", err, raw)
	}
	return r
}

// data returns a member of the data, such as "room.seq"; nil if there is none.
func (r *received) data(path string) any { return memberOf(r.Data, path) }

// problem returns a member of the error, such as "current.version"; nil if there is none.
func (r *received) problem(path string) any { return memberOf(r.Error, path) }

func memberOf(object map[string]any, path string) any {
	name, rest, nested := strings.Cut(path, ".")
	if !nested {
		return object[name]
	}
	inner, _ := object[name].(map[string]any)
	return memberOf(inner, rest)
}

// exchangedMessages is the set of the contract's messages that went over a socket in these tests.
var exchangedMessages sync.Map

func recordExchanged(t testing.TB, message string, raw []byte) {
	t.Helper()
	exchangedMessages.Store(message, true)
	checkFrame(t, message, raw)
}

// tryDial opens a socket, or returns the error response.
func (f *fixture) tryDial(path, bearer string, headers ...string) (*testSocket, *httpResult) {
	f.t.Helper()
	h := http.Header{}
	if bearer != "" {
		h.Set("Authorization", "Bearer "+bearer)
	}
	for i := 0; i < len(headers); i += 2 {
		h.Add(headers[i], headers[i+1])
	}
	dialer := websocket.Dialer{HandshakeTimeout: 10 * time.Second}
	conn, response, err := dialer.DialContext(f.t.Context(), "ws"+strings.TrimPrefix(f.url, "http")+path, h)
	if err != nil {
		if response == nil {
			f.t.Fatalf("dial %s: %v", path, err)
		}
		return nil, f.checkUpgradeError(path, response)
	}
	pathWithoutQuery, _, _ := strings.Cut(path, "?")
	// The contract test counts an operation as exchanged when it had a status below 300.
	spec.record(spec.doc.Paths.Value(pathWithoutQuery).Get.OperationID, http.StatusOK)
	if response.Header.Get("X-Request-Id") == "" {
		f.t.Errorf("the upgrade of %s has no X-Request-Id: %v", path, response.Header)
	}
	s := &testSocket{t: f.t, conn: conn, in: make(chan received, 4096), end: make(chan struct{})}
	go s.listen()
	f.t.Cleanup(func() { _ = conn.Close(); <-s.end })
	return s, nil
}

// checkUpgradeError checks the error response to an upgrade against openapi.yaml.
func (f *fixture) checkUpgradeError(path string, response *http.Response) *httpResult {
	f.t.Helper()
	defer func() { _ = response.Body.Close() }()
	r := &httpResult{t: f.t, status: response.StatusCode, header: response.Header}
	r.raw, _ = io.ReadAll(response.Body)
	if err := wire.Unmarshal(r.raw, &r.body); err != nil {
		f.t.Fatalf("the response of %s is not JSON: %s", path, r.raw)
	}
	request := testkit.Must(http.NewRequestWithContext(f.t.Context(), http.MethodGet, f.url+path, nil))(f.t)
	spec.check(f.t, request, nil, r)
	return r
}

// expectUpgradeError requires that a socket cannot be opened. A response that is worth a retry must
// have a Retry-After.
func (f *fixture) expectUpgradeError(status int, code, path, bearer string, headers ...string) {
	f.t.Helper()
	s, r := f.tryDial(path, bearer, headers...)
	if s != nil {
		f.t.Errorf("%s %v opens a socket, want %d %s", path, headers, status, code)
		return
	}
	if r.status != status || r.code() != code || r.header.Get("Content-Type") != "application/problem+json" {
		f.t.Errorf("%s %v gets %d %s, want %d %s", path, headers, r.status, r.raw, status, code)
	}
	if retry := status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable; retry !=
		(r.header.Get("Retry-After") != "") {
		f.t.Errorf("%s %v gets %d with Retry-After %q", path, headers, r.status, r.header.Get("Retry-After"))
	}
}

func (f *fixture) dial(path, bearer string, headers ...string) *testSocket {
	f.t.Helper()
	s, r := f.tryDial(path, bearer, headers...)
	if r != nil {
		f.t.Fatalf("the upgrade of %s failed: %d %s", path, r.status, r.raw)
	}
	return s
}

// dialRealtime opens a socket of events and reads its hello.
func (f *fixture) dialRealtime(p player) *testSocket {
	f.t.Helper()
	s := f.dial(realtimePath, p.token)
	hello := s.next()
	if hello.Type != "hello" || hello.Data["userId"] != float64(p.id) || hello.Data["protocol"] != 1. {
		f.t.Fatalf("the first frame is %s", hello.raw)
	}
	return s
}

// ticket returns a new ticket of a player.
func (f *fixture) ticket(p player) string {
	f.t.Helper()
	return f.expect(200, "POST", "/api/v1/auth/ticket", p.token, "").text("ticket")
}

// credit credits 1 GOLD to a player.
func (f *fixture) credit(p player, reason string) {
	f.t.Helper()
	f.expect(200, "POST", fmt.Sprintf("/api/v1/admin/users/%d/credit", p.id), f.serverKey,
		fmt.Sprintf(`{"tokenId":"GOLD","amount":1,"reason":%q}`, reason), "Idempotency-Key", "credit-"+reason)
}

func (f *fixture) makeFriends(a, b player) {
	f.t.Helper()
	f.expect(200, "POST", fmt.Sprintf("/api/v1/friends/%d", b.id), a.token, "")
	f.expect(200, "POST", fmt.Sprintf("/api/v1/friends/%d", a.id), b.token, "")
}

// newNode returns another node on the same store.
func (f *fixture) newNode() *fixture {
	f.t.Helper()
	other := newFixtureOn(f.t, f.db, nil)
	other.game, other.serverKey, other.gold = f.game, f.serverKey, f.gold
	return other
}

func (s *testSocket) listen() {
	defer close(s.end)
	for {
		_, frame, err := s.conn.ReadMessage()
		if err != nil {
			s.err = err
			return
		}
		var batch []wire.RawJSON
		if wire.Unmarshal(frame, &batch) != nil {
			batch = []wire.RawJSON{frame}
		}
		for _, raw := range batch {
			r := parseReceived(s.t, raw)
			if r.Type == "hello" && r.Data["role"] == "server" {
				s.isServer = true
			}
			switch {
			case s.isServer:
			case r.OK == nil:
				recordExchanged(s.t, r.Type, raw)
			case !*r.OK:
				recordExchanged(s.t, "refused", raw)
			}
			s.in <- r
		}
	}
}

const testTimeout = 20 * time.Second

// next returns the next event or reply.
func (s *testSocket) next() received {
	s.t.Helper()
	select {
	case r := <-s.in:
		return r
	case <-s.end:
		select {
		case r := <-s.in:
			return r
		default:
			s.t.Fatalf("the socket ended: %v", s.err)
		}
	case <-time.After(testTimeout):
		s.t.Fatal("received nothing")
	}
	return received{}
}

// nextEvent returns the next event.
func (s *testSocket) nextEvent() received {
	s.t.Helper()
	if len(s.events) > 0 {
		r := s.events[0]
		s.events = s.events[1:]
		return r
	}
	r := s.next()
	if r.OK != nil {
		s.t.Fatalf("got the reply %s, want an event", r.raw)
	}
	return r
}

// expectEvent returns the next event, which must be of a type.
func (s *testSocket) expectEvent(eventType string) received {
	s.t.Helper()
	r := s.nextEvent()
	if r.Type != eventType {
		s.t.Fatalf("got %s, want %s", r.raw, eventType)
	}
	return r
}

// nextReply returns the next reply.
func (s *testSocket) nextReply() received {
	s.t.Helper()
	for {
		r := s.next()
		if r.OK != nil {
			return r
		}
		s.events = append(s.events, r)
	}
}

// send sends a frame.
func (s *testSocket) send(frame string) {
	s.t.Helper()
	testkit.Check(s.t, s.conn.WriteMessage(websocket.TextMessage, []byte(frame)), "send")
}

// request sends a message and returns its reply. data may be "" for none.
func (s *testSocket) request(messageType, data string) received {
	s.t.Helper()
	s.lastID++
	return s.requestWithID(fmt.Sprint(s.lastID), messageType, data)
}

func (s *testSocket) requestWithID(id, messageType, data string) received {
	s.t.Helper()
	frame := fmt.Sprintf(`{"id":%q,"type":%q,"data":%s}`, id, messageType, data)
	if data == "" {
		frame = fmt.Sprintf(`{"id":%q,"type":%q}`, id, messageType)
	}
	s.send(frame)
	r := s.nextReply()
	if r.ReplyTo == nil || *r.ReplyTo != id {
		s.t.Fatalf("the reply to %s is %s", frame, r.raw)
	}
	if *r.OK && !s.isServer { // else the message may be one that the contract forbids
		name := messageType
		if messageType == "room.call" { // which is what the server gets
			name = "call"
		}
		recordExchanged(s.t, name, []byte(frame))
	}
	return r
}

// expectOK requires that a message is handled without an error. reply is the contract's name of the
// reply.
func (s *testSocket) expectOK(reply, messageType, data string) received {
	s.t.Helper()
	r := s.request(messageType, data)
	if !*r.OK {
		s.t.Fatalf("the reply to %s %s is %s", messageType, data, r.raw)
	}
	if !s.isServer {
		recordExchanged(s.t, reply, r.raw)
	}
	return r
}

// expectError requires that a message gets an error code.
func (s *testSocket) expectError(code, messageType, data string) received {
	s.t.Helper()
	r := s.request(messageType, data)
	if *r.OK || r.Error["code"] != code {
		s.t.Fatalf("the reply to %s %s is %s, want %s", messageType, data, r.raw, code)
	}
	return r
}

// subscribe subscribes to a room. after is the position to resume from, or "".
func (s *testSocket) subscribe(room, after string) received {
	s.t.Helper()
	data := roomBody(room)
	if after != "" {
		data = fmt.Sprintf(`{"roomId":%q,"after":%q}`, room, after)
	}
	r := s.request("room.subscribe", data)
	if !*r.OK {
		s.t.Fatalf("subscribe: %s", r.raw)
	}
	if s.isServer {
		return r
	}
	recordExchanged(s.t, map[any]string{"resume": "resumed", "snapshot": "anew"}[r.Data["mode"]], r.raw)
	return r
}

// waitCloseCode waits until the socket ends and returns the close code, 1006 when there was none.
func (s *testSocket) waitCloseCode() int {
	s.t.Helper()
	for {
		select {
		case <-s.in:
		case <-s.end:
			var closed *websocket.CloseError
			if errors.As(s.err, &closed) {
				return closed.Code
			}
			return websocket.CloseAbnormalClosure
		case <-time.After(testTimeout):
			s.t.Fatal("the socket is still open")
		}
	}
}

// disconnect closes the connection without a close frame.
func (s *testSocket) disconnect() { _ = s.conn.NetConn().Close() }

func eachStore(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) { test(t, newFixtureOn(t, db, nil).createGame()) })
}
