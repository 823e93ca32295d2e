package realtime

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"golang.org/x/time/rate"
	"pgregory.net/rapid"
)

// clientFrame returns a frame as clients send it, under a mask.
func clientFrame(firstByte byte, payload string) []byte {
	mask := [4]byte{7, 0xff, 0, 0x55}
	b := []byte{firstByte}
	switch n := len(payload); {
	case n < 126:
		b = append(b, maskBit|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, maskBit|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, maskBit|127), uint64(n))
	}
	b = append(b, mask[:]...)
	for i := range len(payload) {
		b = append(b, payload[i]^mask[i%4])
	}
	return b
}

// hugeFrame returns the header of a frame from a client, with a length that no payload has.
func hugeFrame(opcode byte, payloadBytes uint64) []byte {
	b := binary.BigEndian.AppendUint64([]byte{finalBit | opcode, maskBit | 127}, payloadBytes)
	return append(b, 7, 0xff, 0, 0x55)
}

// dialRaw opens a socket and returns its connection, for frames that no library sends.
func dialRaw(t *testing.T, n *testNode) (*testClient, net.Conn) {
	t.Helper()
	var raw net.Conn
	c, _ := tryDial(t, n, "user=1", &websocket.Dialer{NetDial: func(network, address string) (net.Conn, error) {
		var err error
		raw, err = net.Dial(network, address)
		return raw, err
	}})
	if c == nil {
		t.Fatal("no socket")
	}
	return c, raw
}

// Messages that the hub reads itself, and those that it leaves to gorilla, keep their order,
// however their bytes arrive.
func TestMessagesArriveWholeAndInOrderHoweverTheyAreCut(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{},
		Limits{MaxFrameBytes: 128 << 10, FramesPerSecond: 1 << 20, BurstFrames: 1 << 20})
	rapid.Check(t, func(rt *rapid.T) {
		c, raw := dialRaw(t, n)
		defer func() { _ = raw.Close() }()
		pongs := make(chan struct{}, 64)
		c.conn.SetPongHandler(func(string) error { pongs <- struct{}{}; return nil })
		c.listen()
		n.mu.Lock()
		n.noted = nil
		n.mu.Unlock()
		var stream []byte
		var want []string
		pings := 0
		for i := range rapid.IntRange(1, 20).Draw(rt, "frames") {
			kind := rapid.SampledFrom([]string{"small", "small", "chunk", "large", "ping", "parts"}).Draw(rt, "kind")
			size := map[string]int{
				"small": rapid.IntRange(0, 300).Draw(rt, "size"),
				"chunk": readChunkBytes - rapid.IntRange(0, 120).Draw(rt, "less"),
				"large": rapid.IntRange(readChunkBytes, 12<<10).Draw(rt, "size"),
			}[kind]
			text := fmt.Sprintf("%d%s", i, strings.Repeat("x", size))
			message := `{"type":"note","payload":"` + text + `"}`
			switch kind {
			case "ping":
				stream = append(stream, clientFrame(finalBit|9, text)...)
				pings++
				continue
			case "parts":
				stream = append(stream, clientFrame(opText, message[:9])...)
				stream = append(stream, clientFrame(finalBit|9, "between")...)
				stream = append(stream, clientFrame(finalBit, message[9:])...)
				pings++
			default:
				stream = append(stream, clientFrame(finalBit|opText, message)...)
			}
			want = append(want, text)
		}
		for len(stream) > 0 {
			size := min(len(stream), rapid.IntRange(1, 6000).Draw(rt, "cut"))
			testkit.Must(raw.Write(stream[:size]))(rt)
			stream = stream[size:]
			if rapid.Bool().Draw(rt, "pause") {
				runtime.Gosched()
			}
		}
		waitUntil(t, "all messages are handled", func() bool {
			n.mu.Lock()
			defer n.mu.Unlock()
			return len(n.noted) >= len(want)
		})
		n.mu.Lock()
		got := slices.Clone(n.noted)
		n.mu.Unlock()
		if !slices.Equal(got, want) {
			rt.Fatalf("got %.200q, want %.200q", got, want)
		}
		for range pings {
			select {
			case <-pongs:
			case <-c.end:
				rt.Fatal("the socket was closed")
			}
		}
	})
}

// What is no valid frame ends the connection, and nothing behind it is handled.
func TestNothingBehindAnInvalidFrameIsHandled(t *testing.T) {
	note := `{"type":"note","payload":"x"}`
	unmasked := append([]byte{finalBit | opText, byte(len(note))}, note...)
	for name, c := range map[string]struct {
		frame []byte
		code  int
	}{
		"a bit of an extension":     {clientFrame(finalBit|0x40|opText, note), websocket.CloseProtocolError},
		"no mask":                   {unmasked, websocket.CloseProtocolError},
		"an unknown opcode":         {clientFrame(finalBit|3, note), websocket.CloseProtocolError},
		"an unknown control frame":  {clientFrame(finalBit|11, note), websocket.CloseProtocolError},
		"a large control frame":     {clientFrame(finalBit|9, strings.Repeat("x", 126)), websocket.CloseProtocolError},
		"a control frame in parts":  {clientFrame(9, ""), websocket.CloseProtocolError},
		"a part without a first":    {clientFrame(finalBit, note), websocket.CloseProtocolError},
		"a message within another":  {slices.Concat(clientFrame(opText, note), clientFrame(finalBit|opText, note)), 1002},
		"a message above the limit": {clientFrame(finalBit|opText, strings.Repeat("x", 16<<10+1)), 1009},
		"a length of 2^63":          {hugeFrame(opText, 1<<63), websocket.CloseProtocolError},
		"the greatest length":       {hugeFrame(opBinary, math.MaxUint64), websocket.CloseProtocolError},
		"the greatest valid length": {hugeFrame(opText, math.MaxInt64), websocket.CloseMessageTooBig},
	} {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, redistest.Single(t), Options{})
			client, raw := dialRaw(t, n)
			client.listen()
			testkit.Must(raw.Write(slices.Concat(c.frame, clientFrame(finalBit|opText, note))))(t)
			if code := client.waitCloseCode(); code != c.code {
				t.Errorf("closed with %d, want %d", code, c.code)
			}
			waitUntil(t, "the socket is gone", func() bool { return n.Stats().Clients == 0 })
			n.mu.Lock()
			defer n.mu.Unlock()
			if len(n.noted) > 0 {
				t.Errorf("handled %q", n.noted)
			}
		})
	}
}

// While garbage is collected, a goroutine that allocates has to mark 64 KiB first. Thousands of
// goroutines read sockets, so none of them may allocate.
func TestReadingAMessageAllocatesNothing(t *testing.T) {
	p := newDirectPair(t, Options{})
	c := p.directConn.client
	kind := c.hub.NewSocketKind(Limits{MaxFrameBytes: 16 << 10})
	handled := make(chan int, 1)
	c.socketKind, c.handleInbox = kind, c.runInbox
	c.frameLimiter = rate.NewLimiter(rate.Inf, 1)
	c.closeStarted = true // so that no deadline is set on a session that is not there
	c.options.OnMessage = func(_ context.Context, _ *Client, raw []byte) { handled <- len(raw) }
	t.Cleanup(c.hub.workers.stop)
	// The ping makes Read return.
	frames := append(clientFrame(finalBit|opText, strings.Repeat("x", 180)), clientFrame(finalBit|9, "")...)
	var ping [64]byte
	allocations := testing.AllocsPerRun(1000, func() {
		testkit.Must(p.client.Write(frames))(t)
		if n, err := p.directConn.Read(ping[:]); n != shortHeader || err != nil {
			t.Fatalf("gorilla gets %d bytes, %v; want the ping", n, err)
		}
		if size := <-handled; size != 180 {
			t.Fatalf("a message of %d bytes was handled", size)
		}
	})
	if allocations > 0 {
		t.Errorf("%v allocations for each message", allocations)
	}
}

// A socket that waits for a message holds no memory for it.
func TestAnIdleSocketHoldsNoMemoryForReading(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{})
	_, raw := dialRaw(t, n)
	c := n.firstClient(t)
	testkit.Must(raw.Write(clientFrame(finalBit|opText, `{"type":"note","payload":"x"}`)))(t)
	waitUntil(t, "the message is handled", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return len(n.noted) == 1
	})
	_ = raw.Close()
	<-c.Done() // the goroutine that reads has ended
	if c.directConn.chunk != nil {
		t.Error("what was read is kept")
	}
}
