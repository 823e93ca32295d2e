package handlers_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/tests/testkit"
)

// wireSocket is the client's end of a socket that allocates nothing.
type wireSocket struct {
	net.Conn
	buffer [4096]byte
	unread []byte // of buffer
}

// dialWire opens a socket and subscribes it to a room.
func (f *fixture) dialWire(p player, room string) *wireSocket {
	f.t.Helper()
	s := &wireSocket{}
	dialer := websocket.Dialer{NetDial: func(network, address string) (net.Conn, error) {
		var err error
		s.Conn, err = net.Dial(network, address)
		return s.Conn, err
	}}
	url := "ws" + strings.TrimPrefix(f.url, "http") + realtimePath
	testkit.Must2(dialer.Dial(url, http.Header{"Authorization": {"Bearer " + p.token}}))(f.t)
	f.t.Cleanup(func() { _ = s.Close() })
	_ = s.SetDeadline(time.Now().Add(time.Minute))
	s.write(f.t, frameUnderZeros(`{"id":"s","type":"room.subscribe","data":`+roomBody(room)+`}`))
	s.readUntil(f.t, []byte(`"replyTo":"s"`))
	return s
}

// frameUnderZeros returns a frame of at most 64 KiB under a mask of zeros.
func frameUnderZeros(payload string) []byte {
	n := len(payload)
	return append([]byte{0x81, 0x80 | 126, byte(n >> 8), byte(n), 0, 0, 0, 0}, payload...)
}

func (s *wireSocket) write(t testing.TB, frame []byte) {
	testkit.Must(s.Write(frame))(t)
}

// readUntil reads until a text has come.
func (s *wireSocket) readUntil(t testing.TB, text []byte) {
	for {
		if i := bytes.Index(s.unread, text); i >= 0 {
			s.unread = s.unread[i+len(text):]
			return
		}
		kept := copy(s.buffer[:], s.unread[max(0, len(s.unread)-len(text)):])
		n, err := s.Read(s.buffer[kept:])
		if err != nil && err != io.EOF || n == 0 {
			t.Fatal(err)
		}
		s.unread = s.buffer[:kept+n]
	}
}

// maxRelayBytes is how much the node may allocate for a message to three players: one message at a
// time, so that nothing is shared with others. It was 3,700 when each message was read, decoded and
// published in memory of its own.
const maxRelayBytes = 2_000

// hasRaceDetector reports whether sync.Pool forgets on purpose, as it does with the race detector.
func hasRaceDetector() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// How much a relayed message allocates decides how often a node under load collects garbage, which
// delays everything else (docs/performance.md).
func TestWhatARelayedMessageAllocates(t *testing.T) {
	f := newGameFixture(t)
	players := []player{f.guest("Ann"), f.guest("Bob"), f.guest("Cid"), f.guest("Dot")}
	room := f.createRoom(players[0])
	for _, p := range players[1:] {
		f.expect(200, "POST", "/api/v1/game-session/join", p.token, roomBody(room))
	}
	var sockets []*wireSocket
	for _, p := range players {
		sockets = append(sockets, f.dialWire(p, room))
	}
	frame := frameUnderZeros(fmt.Sprintf(`{"type":"room.send","data":{"roomId":%q,"op":"m","payload":{"pad":%q}}}`,
		room, strings.Repeat("x", 90)))
	arrived := []byte(`"op":"m"`)
	relay := func(messages int) {
		for i := range messages {
			from := sockets[i%len(sockets)]
			from.write(t, frame)
			for _, s := range sockets {
				if s != from {
					s.readUntil(t, arrived)
				}
			}
		}
	}
	relay(40) // pools are filled, the seats are read
	const messages = 120
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	relay(messages)
	runtime.ReadMemStats(&after)
	perMessage := (after.TotalAlloc - before.TotalAlloc) / messages
	t.Logf("%d bytes in %d allocations", perMessage, (after.Mallocs-before.Mallocs)/messages)
	if perMessage > maxRelayBytes && !hasRaceDetector() {
		t.Errorf("a message allocates %d bytes, more than %d", perMessage, maxRelayBytes)
	}
}
