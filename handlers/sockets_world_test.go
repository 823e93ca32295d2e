package handlers_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
)

const (
	savePath = "/api/v1/game-data/save"
	loadPath = "/api/v1/game-data/load"
	livePath = "/api/v1/realtime"
)

// socket is a client's end of a socket. What it sends and hears is held against asyncapi.yaml.
type socket struct {
	t    testing.TB
	conn *websocket.Conn
	in   chan heard
	kept []heard // events that came while a reply was awaited
	end  chan struct{}
	err  error // why it ended
	ids  int
}

// heard is anything that a node says.
type heard struct {
	raw              []byte
	Type, RoomID, At string
	Seq              int64
	Position         string
	ReplyTo          *string
	OK               *bool
	Data             map[string]any
	List             []any `json:"-"` // data, where it is a list
	Error            map[string]any
}

func (h *heard) UnmarshalJSON(raw []byte) error {
	type plain heard
	var list struct{ Data []any }
	if json.Unmarshal(raw, &list) == nil && list.Data != nil {
		h.List = list.Data
		raw = []byte(strings.Replace(string(raw), `"data":[`, `"-":[`, 1))
	}
	return json.Unmarshal(raw, (*plain)(h))
}

// exchanged is every message of the contract that went over a socket in these tests.
var exchanged sync.Map

func note(t testing.TB, message string, raw []byte) {
	t.Helper()
	exchanged.Store(message, true)
	checkFrame(t, message, raw)
}

// dialing opens a socket, or answers how that was refused.
func (w *fixture) dialing(path, bearer string, headers ...string) (*socket, *httpResult) {
	w.t.Helper()
	h := http.Header{}
	if bearer != "" {
		h.Set("Authorization", "Bearer "+bearer)
	}
	for i := 0; i < len(headers); i += 2 {
		h.Add(headers[i], headers[i+1])
	}
	dialer := websocket.Dialer{HandshakeTimeout: 10 * time.Second}
	conn, response, err := dialer.DialContext(w.t.Context(), "ws"+strings.TrimPrefix(w.url, "http")+path, h)
	if err != nil {
		if response == nil {
			w.t.Fatalf("dial %s: %v", path, err)
		}
		return nil, w.refusalTo(path, response)
	}
	bare, _, _ := strings.Cut(path, "?")
	spec.record(spec.doc.Paths.Value(bare).Get.OperationID, http.StatusSwitchingProtocols-100+200) // it went well
	if response.Header.Get("X-Request-Id") == "" {
		w.t.Errorf("%s is opened without X-Request-Id: %v", path, response.Header)
	}
	s := &socket{t: w.t, conn: conn, in: make(chan heard, 4096), end: make(chan struct{})}
	go s.listen()
	w.t.Cleanup(func() { _ = conn.Close(); <-s.end })
	return s, nil
}

// refusalTo holds the refusal of an upgrade against openapi.yaml.
func (w *fixture) refusalTo(path string, response *http.Response) *httpResult {
	w.t.Helper()
	defer func() { _ = response.Body.Close() }()
	a := &httpResult{t: w.t, status: response.StatusCode, header: response.Header}
	a.raw = make([]byte, 4096)
	n, _ := response.Body.Read(a.raw)
	a.raw = a.raw[:n]
	if err := json.Unmarshal(a.raw, &a.body); err != nil {
		w.t.Fatalf("%s answers no JSON: %s", path, a.raw)
	}
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.url+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	spec.check(w.t, request, nil, a)
	return a
}

func (w *fixture) dial(path, bearer string, headers ...string) *socket {
	w.t.Helper()
	s, refused := w.dialing(path, bearer, headers...)
	if refused != nil {
		w.t.Fatalf("%s is refused: %d %s", path, refused.status, refused.raw)
	}
	return s
}

// live opens a socket of events and reads its hello.
func (w *fixture) live(p player) *socket {
	w.t.Helper()
	s := w.dial(livePath, p.token)
	if hello := s.next(); hello.Type != "hello" || hello.Data["userId"] != float64(p.id) || hello.Data["protocol"] != 1. {
		w.t.Fatalf("the first frame is %s", hello.raw)
	}
	return s
}

// twin is another node on the same store.
func (w *fixture) twin() *fixture {
	w.t.Helper()
	other := newFixtureOn(w.t, w.db, nil)
	other.game, other.serverKey, other.gold = w.game, w.serverKey, w.gold
	return other
}

func (s *socket) listen() {
	defer close(s.end)
	for {
		_, frame, err := s.conn.ReadMessage()
		if err != nil {
			s.err = err
			return
		}
		var batch []json.RawMessage
		if json.Unmarshal(frame, &batch) != nil {
			batch = []json.RawMessage{frame}
		}
		for _, raw := range batch {
			h := heard{raw: raw}
			if err := json.Unmarshal(raw, &h); err != nil {
				s.t.Errorf("a frame that is no JSON: %v: %s", err, frame)
			}
			if h.OK == nil {
				note(s.t, h.Type, raw)
			} else if !*h.OK {
				note(s.t, "refused", raw)
			}
			s.in <- h
		}
	}
}

const patience = 20 * time.Second

// next is what comes next.
func (s *socket) next() heard {
	s.t.Helper()
	select {
	case h := <-s.in:
		return h
	case <-s.end:
		select {
		case h := <-s.in:
			return h
		default:
			s.t.Fatalf("the socket ended: %v", s.err)
		}
	case <-time.After(patience):
		s.t.Fatal("nothing was heard")
	}
	return heard{}
}

// event is the next event.
func (s *socket) event() heard {
	s.t.Helper()
	if len(s.kept) > 0 {
		h := s.kept[0]
		s.kept = s.kept[1:]
		return h
	}
	h := s.next()
	if h.OK != nil {
		s.t.Fatalf("want an event, got %s", h.raw)
	}
	return h
}

// want is the next event, which must be of a type.
func (s *socket) want(kind string) heard {
	s.t.Helper()
	h := s.event()
	if h.Type != kind {
		s.t.Fatalf("want %s, got %s", kind, h.raw)
	}
	return h
}

// reply is the next reply.
func (s *socket) reply() heard {
	s.t.Helper()
	for {
		h := s.next()
		if h.OK != nil {
			return h
		}
		s.kept = append(s.kept, h)
	}
}

// send writes a frame as it is.
func (s *socket) send(frame string) {
	s.t.Helper()
	if err := s.conn.WriteMessage(websocket.TextMessage, []byte(frame)); err != nil {
		s.t.Fatalf("send: %v", err)
	}
}

// say sends a message and answers its reply.
func (s *socket) say(kind, data string) heard {
	s.t.Helper()
	s.ids++
	return s.sayAs(fmt.Sprint(s.ids), kind, data)
}

func (s *socket) sayAs(id, kind, data string) heard {
	s.t.Helper()
	frame := fmt.Sprintf(`{"id":%q,"type":%q,"data":%s}`, id, kind, data)
	if data == "" {
		frame = fmt.Sprintf(`{"id":%q,"type":%q}`, id, kind)
	}
	s.send(frame)
	h := s.reply()
	if h.ReplyTo == nil || *h.ReplyTo != id {
		s.t.Fatalf("the reply to %s is %s", frame, h.raw)
	}
	if *h.OK { // else the message may be one that the contract forbids
		note(s.t, kind, []byte(frame))
	}
	return h
}

// does expects a reply of a kind, such as "saved".
func (s *socket) does(reply, kind, data string) heard {
	s.t.Helper()
	h := s.say(kind, data)
	if !*h.OK {
		s.t.Fatalf("%s %s is refused: %s", kind, data, h.raw)
	}
	note(s.t, reply, h.raw)
	return h
}

// refuses expects a problem with a word of the vocabulary.
func (s *socket) refuses(code, kind, data string) heard {
	s.t.Helper()
	h := s.say(kind, data)
	if *h.OK || h.Error["code"] != code {
		s.t.Fatalf("%s %s: want %s, got %s", kind, data, code, h.raw)
	}
	return h
}

// follow subscribes to a room, after a position unless that is "".
func (s *socket) follow(room, after string) heard {
	s.t.Helper()
	data := roomBody(room)
	if after != "" {
		data = fmt.Sprintf(`{"roomId":%q,"after":%q}`, room, after)
	}
	h := s.say("room.subscribe", data)
	if !*h.OK {
		s.t.Fatalf("subscribe: %s", h.raw)
	}
	note(s.t, map[any]string{"resume": "resumed", "snapshot": "anew"}[h.Data["mode"]], h.raw)
	return h
}

// code waits for the end and answers the close code.
func (s *socket) code() int {
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
		case <-time.After(patience):
			s.t.Fatal("the socket is still open")
		}
	}
}

// cut ends the connection without a word.
func (s *socket) cut() { _ = s.conn.NetConn().Close() }

func eachStore(t *testing.T, play func(t *testing.T, w *fixture)) {
	t.Helper()
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) { play(t, newFixtureOn(t, db, nil).createGame()) })
}
