package realtime

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// Each of these tests guards against a trap of writing past gorilla/websocket. Their comments
// describe it.

// directPair is a directConn and the client's end of its connection.
type directPair struct {
	*directConn
	client *net.TCPConn
	reader *bufio.Reader
}

// newDirectPair returns a connection whose kernel buffers are small.
func newDirectPair(t *testing.T, o Options) *directPair {
	t.Helper()
	return newDirectPairOf(t, New(redistest.Single(t), o))
}

func newDirectPairOf(t *testing.T, h *Hub) *directPair {
	t.Helper()
	l := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer func() { _ = l.Close() }()
	dialled := testkit.Must(net.Dial("tcp", l.Addr().String()))(t)
	accepted := testkit.Must(l.Accept())(t)
	_ = dialled.(*net.TCPConn).SetReadBuffer(16 << 10)
	_ = accepted.(*net.TCPConn).SetWriteBuffer(16 << 10)
	c := &Client{hub: h, socketKind: h.NewSocketKind(Limits{}), done: make(chan struct{})}
	p := &directPair{directConn: newDirectConn(accepted, c), client: dialled.(*net.TCPConn)}
	p.reader = bufio.NewReader(p.client)
	c.directConn = p.directConn
	t.Cleanup(func() {
		_, _ = p.client.Close(), p.Close()
		h.taskGroup.Wait()
	})
	return p
}

// fill writes frames until one does not fit, and returns how many bytes that took.
func (p *directPair) fill(t *testing.T, payload []byte) (frames int) {
	t.Helper()
	for p.writeFrame(newFrame(opText, payload)) {
		if frames++; frames > 1000 {
			t.Fatal("the kernel takes everything")
		}
	}
	return frames + 1
}

// readFrame reads a frame with the client's end.
func (p *directPair) readFrame(t *testing.T) (opcode byte, payload []byte) {
	t.Helper()
	_ = p.client.SetReadDeadline(time.Now().Add(testTimeout))
	var head [8]byte
	_, err := io.ReadFull(p.reader, head[:2])
	opcode, size := head[0]&0x0f, uint64(head[1])
	if head[0]&0xf0 != finalBit || head[1] > 127 {
		t.Fatalf("a frame begins with %x", head[:2])
	}
	switch {
	case err == nil && size == 126:
		_, err = io.ReadFull(p.reader, head[:2])
		size = uint64(binary.BigEndian.Uint16(head[:2]))
	case err == nil && size == 127:
		_, err = io.ReadFull(p.reader, head[:8])
		size = binary.BigEndian.Uint64(head[:8])
	}
	if err == nil {
		payload = make([]byte, size)
		_, err = io.ReadFull(p.reader, payload)
	}
	testkit.Check(t, err)
	return opcode, payload
}

// waiting returns how many frames wait in the client's queue.
func (p *directPair) waiting() int {
	c := p.directConn.client
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.outbox)
}

func (p *directPair) state() (running bool, unwritten int, err error) {
	p.directConn.mu.Lock()
	defer p.directConn.mu.Unlock()
	return p.running, len(p.unwritten), p.err
}

func TestFramesOfEverySizeArrive(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{})
	c := dial(t, n, "user=1")
	client := n.firstClient(t)
	testkit.Must2(c.conn.ReadMessage())(t) // hello
	for _, size := range []int{2, 3, 125, 126, 127, 65535, 65536, 300_000} {
		payload := []byte(`"` + strings.Repeat("x", size-2) + `"`)
		testkit.Check(t, client.Send(payload))
		if kind, got, err := c.conn.ReadMessage(); kind != websocket.TextMessage || !bytes.Equal(got, payload) || err != nil {
			t.Errorf("of a frame with %d bytes, %d arrive: %v", size, len(got), err)
		}
	}
	array := newArrayFrame(3, func(i int) []byte { return fmt.Append(nil, i) })
	if string(array.payload()) != "[0,1,2]" {
		t.Errorf("the array is %s", array.payload())
	}
	if f := newFrame(opBinary, []byte{7}); !f.isBinary() || array.isBinary() {
		t.Error("a frame has the wrong opcode")
	}
}

// A write deadline that has passed makes every later write of net.Conn and of RawConn.Write fail.
// Only Control does not look at it.
func TestAWriteAfterAnOldDeadlineArrives(t *testing.T) {
	p := newDirectPair(t, Options{})
	_ = p.Conn.SetWriteDeadline(time.Unix(1, 0))
	if !p.writeFrame(newFrame(opText, []byte("late"))) {
		t.Error("the frame was not written")
	}
	testkit.Report(t, testkit.ErrorOf(p.Write(newFrame(0x9, []byte("ping")))), "the ping") // as gorilla does
	for _, want := range []string{"late", "ping"} {
		if _, got := p.readFrame(t); string(got) != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// gorilla sets a deadline for each control frame. It must not end the write of a frame that the
// client is still reading.
func TestTheDeadlineOfAPingDoesNotEndAFrameThatIsBeingRead(t *testing.T) {
	p := newDirectPair(t, Options{})
	payload := bytes.Repeat([]byte("x"), 60<<10)
	frames := p.fill(t, payload)
	_ = p.SetWriteDeadline(time.Unix(1, 0))
	testkit.Must(p.Write(newFrame(0x9, []byte("ping"))))(t)
	for range frames {
		if opcode, got := p.readFrame(t); opcode != opText || !bytes.Equal(got, payload) {
			t.Fatalf("got opcode %d with %d bytes", opcode, len(got))
		}
	}
	if opcode, got := p.readFrame(t); opcode != 0x9 || string(got) != "ping" {
		t.Errorf("got opcode %d, %q after the frames; want the ping", opcode, got)
	}
	waitUntil(t, "the goroutine has ended", func() bool {
		running, n, err := p.state()
		return !running && n == 0 && err == nil
	})
	if !p.writeFrame(newFrame(opText, []byte("next"))) {
		t.Error("the next frame was not written at once")
	}
}

// Two writers of a connection mix their bytes, unless the part of a frame that did not fit is
// finished before anything else begins.
func TestFramesAndControlFramesNeverMix(t *testing.T) {
	p := newDirectPair(t, Options{})
	const frames, pings = 400, 200
	client := p.directConn.client
	client.writesEnabled = true
	var writers sync.WaitGroup
	writers.Go(func() {
		for i := range frames {
			body := fmt.Appendf(nil, `{"n":%d,"pad":"%s"}`, i, strings.Repeat("x", i*37%9000))
			waitUntil(t, "little waits", func() bool { return p.waiting() < 50 })
			if err := client.Send(body); err != nil {
				t.Error(err)
				return
			}
		}
	})
	writers.Go(func() {
		for i := range pings {
			_, _ = p.Write(newFrame(0x9, fmt.Append(nil, i)))
		}
	})
	lastPing := -1
	for next := 0; next < frames; {
		opcode, got := p.readFrame(t)
		var n int
		switch opcode {
		case opText:
			for _, part := range bytes.Split(bytes.Trim(got, "[]"), []byte("},{")) {
				if _, err := fmt.Sscanf(strings.TrimPrefix(string(part), "{"), `"n":%d`, &n); err != nil || n != next {
					t.Fatalf("got %.60q (%v), want frame %d", part, err, next)
				}
				next++
			}
		case 0x9:
			if _, err := fmt.Sscan(string(got), &n); err != nil || n <= lastPing {
				t.Fatalf("after ping %d came %q", lastPing, got)
			}
			lastPing = n
		default:
			t.Fatalf("got opcode %d", opcode)
		}
	}
	writers.Wait()
}

// A client that sends pings and reads nothing would let the replies pile up.
func TestPongsToAClientThatDoesNotReadAreBounded(t *testing.T) {
	p := newDirectPair(t, Options{})
	p.fill(t, bytes.Repeat([]byte("x"), 60<<10))
	waitUntil(t, "the rest is being written", func() bool { _, n, _ := p.state(); return n == 0 })
	for range 10_000 {
		testkit.Must(p.Write(newFrame(0xa, bytes.Repeat([]byte("p"), 125))))(t)
	}
	if _, n, _ := p.state(); n > maxWaitingControlBytes {
		t.Errorf("%d bytes wait", n)
	}
	testkit.Must(p.Write(newFrame(opClose, nil)))(t)
	if _, n, _ := p.state(); !p.closeSent || n <= maxWaitingControlBytes-200 {
		t.Errorf("the close frame was dropped: %d bytes wait", n)
	}
}

// RFC 6455, section 5.5.1: nothing may follow a close frame.
func TestNothingFollowsACloseFrame(t *testing.T) {
	p := newDirectPair(t, Options{})
	testkit.Must(p.Write(newFrame(opClose, websocket.FormatCloseMessage(CloseRestart, "restart"))))(t)
	if p.writeFrame(newFrame(opText, []byte("late"))) {
		t.Error("a frame was written after the close frame")
	}
	if _, err := p.Write(newFrame(0x9, nil)); err == nil {
		t.Error("a ping was written after the close frame")
	}
	if opcode, _ := p.readFrame(t); opcode != opClose {
		t.Errorf("got opcode %d", opcode)
	}
	_ = p.Close()
	if b, err := io.ReadAll(p.reader); len(b) > 0 {
		t.Errorf("after the close frame came %q (%v)", b, err)
	}
}

// The goroutine that writes the rest of a frame must end with the connection, and what it could not
// write must not count as written.
func TestAConnectionMayCloseWhileAFrameIsWritten(t *testing.T) {
	for name, closeIt := range map[string]func(*directPair){
		"by the server":  func(p *directPair) { _ = p.Close() },
		"by the client":  func(p *directPair) { _ = p.client.SetLinger(0); _ = p.client.Close() },
		"by its timeout": func(*directPair) {},
	} {
		t.Run(name, func(t *testing.T) {
			p := newDirectPair(t, Options{WriteTimeout: 50 * time.Millisecond}) // and slowGraceFactor times that
			p.fill(t, bytes.Repeat([]byte("x"), 60<<10))
			p.directConn.client.inFlight = 1
			closeIt(p)
			waitUntil(t, "the goroutine has ended", func() bool { running, _, err := p.state(); return !running && err != nil })
			if _, n, _ := p.state(); n > 0 || p.directConn.client.inFlight != 1 {
				t.Errorf("%d bytes wait; %d frames are on their way, want the lost one", n, p.directConn.client.inFlight)
			}
			if p.writeFrame(newFrame(opText, []byte("late"))) {
				t.Error("a frame was written to a closed connection")
			}
			if _, err := p.Write([]byte{0x89, 0}); err == nil {
				t.Error("a ping was written to a closed connection")
			}
		})
	}
}

// A worker that waited for one client would delay all others of its rooms.
func TestAClientThatReadsNothingDelaysNobody(t *testing.T) {
	db := redistest.Single(t)
	topic := "{r1}:room:stuck:events"
	n := startNode(t, db, Options{WriteTimeout: 10 * testTimeout})
	stuck := dial(t, n, "user=1")
	stuck.send(request{ID: "s", Type: "sub", Topic: topic})
	waitUntil(t, "subscribed", func() bool { return n.firstClient(t).IsSubscribed(topic) })
	fast := dial(t, n, "user=2").listen()
	fast.subscribe(topic, "")
	client := n.clientOf(1)
	inFlight := func() int {
		client.mu.Lock()
		defer client.mu.Unlock()
		return client.inFlight
	}
	pad := strings.Repeat("x", 60<<10)
	for inFlight() == 0 {
		emit(t, db, topic, pad)
		fast.nextEvent()
	}
	for range 20 {
		emit(t, db, topic, "x")
		fast.nextEvent()
	}
	if inFlight() != 1 || n.Stats().SlowCloses != 0 {
		t.Errorf("%d frames are on their way to the stuck client", inFlight())
	}
}

// With TLS the bytes on the connection are not those of the frames: melody writes them.
func TestASocketOverTLSIsWrittenByMelody(t *testing.T) {
	db := redistest.Single(t)
	n := startNode(t, db, Options{})
	server := httptest.NewTLSServer(http.HandlerFunc(n.handleUpgrade))
	defer server.Close()
	dialer := &websocket.Dialer{TLSClientConfig: server.Client().Transport.(*http.Transport).TLSClientConfig}
	conn, _ := testkit.Must2(dialer.Dial("wss"+strings.TrimPrefix(server.URL, "https")+"/?user=1", nil))(t)
	c := &testClient{t: t, conn: conn, in: make(chan received, 4096), end: make(chan struct{})}
	c.listen()
	topic := "{r1}:room:tls:events"
	c.subscribe(topic, "")
	if n.firstClient(t).directConn != nil {
		t.Fatal("frames are written past TLS")
	}
	for range 50 {
		emit(t, db, topic, "x")
	}
	for want := range uint64(50) {
		if e := c.nextEvent(); e.Seq != want+1 {
			t.Fatalf("got %d, want %d", e.Seq, want+1)
		}
	}
}
