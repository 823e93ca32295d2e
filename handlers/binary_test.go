package handlers_test

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/realtime"
	"github.com/parlor-games/parlor/tests/testkit"
)

// binarySocket is the client's end of a socket that speaks realtime.BinarySubprotocol.
type binarySocket struct {
	t     *testing.T
	conn  *websocket.Conn
	index uint16 // of its room
}

func (f *fixture) dialBinary(t *testing.T, p player) *binarySocket {
	t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{"other", realtime.BinarySubprotocol}}
	conn, response := testkit.Must2(dialer.Dial("ws"+strings.TrimPrefix(f.url, "http")+realtimePath,
		http.Header{"Authorization": {"Bearer " + p.token}}))(t)
	t.Cleanup(func() { _ = conn.Close() })
	if got := response.Header.Get("Sec-Websocket-Protocol"); got != realtime.BinarySubprotocol {
		t.Fatalf("the subprotocol is %q", got)
	}
	return &binarySocket{t: t, conn: conn}
}

// next returns the next frame, which must be of a kind.
func (s *binarySocket) next(kind int) []byte {
	s.t.Helper()
	_ = s.conn.SetReadDeadline(time.Now().Add(testTimeout))
	got, raw, err := s.conn.ReadMessage()
	if err != nil || got != kind {
		s.t.Fatalf("got a frame of kind %d, want %d: %q, %v", got, kind, raw, err)
	}
	return raw
}

func (s *binarySocket) subscribe(room string) {
	s.t.Helper()
	testkit.Check(s.t, s.conn.WriteMessage(websocket.TextMessage,
		fmt.Appendf(nil, `{"id":"s","type":"room.subscribe","data":{"roomId":%q}}`, room)))
	var reply struct {
		Data struct {
			RoomIndex uint16 `json:"roomIndex"`
		} `json:"data"`
	}
	for raw := s.next(websocket.TextMessage); ; raw = s.next(websocket.TextMessage) {
		if strings.Contains(string(raw), `"replyTo"`) {
			if err := wire.Unmarshal(raw, &reply); err != nil || reply.Data.RoomIndex == 0 {
				s.t.Fatalf("the reply to room.subscribe is %s", raw)
			}
			s.index = reply.Data.RoomIndex
			return
		}
	}
}

func binaryFrame(kind byte, index, op uint16, sender uint64, payload string) []byte {
	b := binary.BigEndian.AppendUint16([]byte{kind}, index)
	b = binary.BigEndian.AppendUint16(b, op)
	return append(binary.BigEndian.AppendUint64(b, sender), payload...)
}

func (s *binarySocket) send(kind byte, op uint16, payload string) {
	s.t.Helper()
	testkit.Check(s.t, s.conn.WriteMessage(websocket.BinaryMessage, binaryFrame(kind, s.index, op, 0, payload)))
}

func (s *binarySocket) expect(kind byte, op uint16, sender int64, payload string) {
	s.t.Helper()
	want := binaryFrame(kind, s.index, op, uint64(sender), payload)
	if got := s.next(websocket.BinaryMessage); string(got) != string(want) {
		s.t.Errorf("got the frame %q, want %q", got, want)
	}
}

func TestTextAndBinaryClientsOfARoomHearEachOther(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		far := f.newNode()
		ann, bob, cid, dan := f.guest("Ann"), f.guest("Bob"), f.guest("Cid"), f.guest("Dan")
		other := f.createRoom(ann)
		room := f.expect(201, "POST", "/api/v1/game-session/create", ann.token, `{"maxPlayers":4}`).text("roomId")
		for _, p := range []player{bob, cid, dan} {
			f.expect(200, "POST", "/api/v1/game-session/join", p.token, roomBody(room))
		}
		a, b := f.dialBinary(t, ann), far.dialBinary(t, bob)
		c, d := f.dialRealtime(cid), far.dialRealtime(dan)
		a.subscribe(other) // so that the index of the room differs
		a.subscribe(room)
		b.subscribe(room)
		c.subscribe(room, "")
		d.subscribe(room, "")
		if a.index == b.index {
			t.Errorf("both clients know the room as %d", a.index)
		}

		const payload = "\x00\xff|.,\n"
		for _, kind := range []byte{realtime.KindBytes, realtime.KindBytes | realtime.FlagLatest} {
			a.send(kind, 65535, payload)
			b.expect(realtime.KindBytes, 65535, ann.id, payload)
			for _, s := range []*testSocket{c, d} {
				got := s.expectEvent("room.message")
				if got.Data["from"] != float64(ann.id) || got.Data["op"] != "65535" || got.Data["payload"] != "AP98LiwK" ||
					got.Data["encoding"] != "base64" || got.RoomID != room {
					t.Errorf("the text client got %s", got.raw)
				}
			}
		}
		a.send(realtime.KindBytes, 0, "")
		b.expect(realtime.KindBytes, 0, ann.id, "")
		for _, s := range []*testSocket{c, d} {
			s.expectEvent("room.message")
		}

		// From text: an op that is a number becomes a binary frame, any other stays text.
		message := func(op, payload, more string) string {
			return fmt.Sprintf(`{"roomId":%q,"op":%q,"payload":%s%s}`, room, op, payload, more)
		}
		c.expectOK("done", "room.send", message("7", `{"x":1}`, ""))
		c.expectOK("done", "room.send", message("8", `"AP98LiwK"`, `,"encoding":"base64"`))
		c.expectOK("done", "room.send", message("07", `1`, ""))
		for _, s := range []*binarySocket{a, b} {
			s.expect(realtime.KindJSON, 7, cid.id, `{"x":1}`)
			s.expect(realtime.KindBytes, 8, cid.id, payload)
			if got := string(s.next(websocket.TextMessage)); !strings.Contains(got, `"op":"07"`) {
				t.Errorf("got %s", got)
			}
		}
		if got := d.expectEvent("room.message"); got.Data["encoding"] != nil {
			t.Errorf("JSON has an encoding: %s", got.raw)
		}
		if got := d.expectEvent("room.message"); got.Data["payload"] != "AP98LiwK" || got.Data["encoding"] != "base64" {
			t.Errorf("got %s", got.raw)
		}

		for data, field := range map[string]string{
			message("x", `"AA=="`, `,"encoding":"base64"`):     "op",
			message("65536", `"AA=="`, `,"encoding":"base64"`): "op",
			message("1", `"A"`, `,"encoding":"base64"`):        "payload",
			message("1", `7`, `,"encoding":"base64"`):          "payload",
			message("1", `"AA=="`, `,"encoding":"hex"`):        "encoding",
		} {
			got := c.expectError("invalid_request", "room.send", data)
			checkErrorReply(t, got, "room.send", *got.ReplyTo+" invalid_request "+field)
		}
		_ = b.conn.Close()
	})
}

func TestWrongBinaryFramesGetAnError(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ann, eve := f.guest("Ann"), f.guest("Eve")
		room := f.createRoom(ann)
		a, spectator := f.dialBinary(t, ann), f.dialBinary(t, eve)
		a.subscribe(room)
		spectator.subscribe(room)
		expectError := func(s *binarySocket, frame []byte, code string) {
			t.Helper()
			testkit.Check(t, s.conn.WriteMessage(websocket.BinaryMessage, frame))
			got := string(s.next(websocket.TextMessage))
			if !strings.Contains(got, `"replyTo":null,"ok":false`) || !strings.Contains(got, `"code":"`+code+`"`) {
				t.Errorf("the frame %q returns %s, want %s", frame, got, code)
			}
		}
		for _, frame := range [][]byte{
			{},
			make([]byte, 12), binaryFrame(0, a.index, 1, 0, "x"), binaryFrame(realtime.KindJSON, a.index, 1, 0, "1"),
			binaryFrame(realtime.KindBytes, a.index, 1, 7, "x"), binaryFrame(realtime.KindBytes, a.index+1, 1, 0, "x"),
		} {
			expectError(a, frame, "invalid_request")
		}
		large := strings.Repeat("x", 8<<10+1)
		expectError(a, binaryFrame(realtime.KindBytes, a.index, 1, 0, large), "payload_too_large")
		expectError(spectator, binaryFrame(realtime.KindBytes, spectator.index, 1, 0, "x"), "not_participant")
	})
}

// A client that did not ask for the subprotocol gets no binary frame and may send none.
func TestWithoutTheSubprotocolThereAreNoBinaryFrames(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ann := f.guest("Ann")
		room := f.createRoom(ann)
		s := f.dialRealtime(ann)
		if got := s.expectOK("anew", "room.subscribe", fmt.Sprintf(`{"roomId":%q}`, room)); got.Data["roomIndex"] != nil {
			t.Errorf("the reply has an index: %s", got.raw)
		}
		testkit.Check(t, s.conn.WriteMessage(websocket.BinaryMessage, binaryFrame(1, 1, 1, 0, "x")))
		if got := s.nextReply(); *got.OK || got.Error["code"] != "invalid_request" {
			t.Errorf("a binary frame returns %s", got.raw)
		}
	})
}
