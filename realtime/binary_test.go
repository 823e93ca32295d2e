package realtime

import (
	"fmt"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/events"
)

func TestAnOpIsANumberOnlyInOneForm(t *testing.T) {
	for text, want := range map[string]int{
		"0": 0, "7": 7, "65535": 65535, "65536": -1, "": -1, "07": -1, "+7": -1, "-1": -1, "7 ": -1, "move": -1,
	} {
		op, ok := parseOp(text)
		if ok != (want >= 0) || ok && int(op) != want {
			t.Errorf("%q is the op %d, %v; want %d", text, op, ok, want)
		}
	}
}

// A message is encoded once in each form, and each binary client gets it under its own index.
func TestAMessageIsEncodedOnceForAllClientsOfAForm(t *testing.T) {
	c, cur := newWaitingClient(t)
	c.binary, cur.number = true, 3
	other := &cursor{client: c, topic: cur.topic, number: 4}
	text := &cursor{client: &Client{hub: c.hub}, topic: cur.topic}
	m := EphemeralMessage{
		isBinary: true, Bytes: []byte("\x00\xff"), Op: "7", SenderUserID: 1 << 40, sentAt: time.UnixMilli(1795195946123),
	}
	const wantFrame = "\x82\x0f\x01\x00\x03\x00\x07\x00\x00\x01\x00\x00\x00\x00\x00\x00\xff"
	if got, want := string(m.frameFor(cur)), wantFrame; got != want {
		t.Errorf("the frame is %q, want %q", got, want)
	}
	if got := m.frameFor(other).payload(); got[2] != 4 {
		t.Errorf("the other client gets %q", got)
	}
	first := m.frameFor(text)
	want := `{"type":"room.message","at":"2026-11-20T17:32:26.123Z","data":` +
		`{"from":1099511627776,"op":"7","payload":"AP8=","encoding":"base64"}}`
	if got := string(first.payload()); got != want {
		t.Errorf("the text is %s, want %s", got, want)
	}
	if again := m.frameFor(text); &again[0] != &first[0] {
		t.Error("the text was encoded twice")
	}

	for op, kind := range map[string]byte{"7": finalBit | opBinary, "move": finalBit | opText} {
		m = EphemeralMessage{frame: newFrame(opText, events.AppendMessage(nil, events.Message{From: 9, Op: op}))}
		if got := m.frameFor(cur); got[0] != kind {
			t.Errorf("a text with the op %s is sent as %q", op, got)
		}
	}
}

// Binary frames cannot share an array. They are written together all the same, as long as the hub
// writes them itself.
func TestBinaryFramesThatWaitAreWrittenTogether(t *testing.T) {
	p := newDirectPair(t, Options{})
	c := p.directConn.client
	c.binary = true
	cur := &cursor{client: c, topic: newTopic(c.hub, "room"), active: true, number: 1}
	for i := range 10 {
		m := EphemeralMessage{isBinary: true, Bytes: fmt.Append(nil, i), Op: "1", senderID: "a"}
		c.enqueueEphemeral(cur, &m, new(ephemeralBatch))
	}
	c.outbox = append(c.outbox, outboundMessage{frame: newFrame(opText, []byte("{}")), batchable: true})
	c.writesEnabled = true
	c.flushEphemeral()
	if got := c.hub.Stats().FramesSent; got != 2 {
		t.Errorf("%d writes, want one of 10 frames and one of a text", got)
	}
	for i := range 10 {
		if opcode, got := p.readFrame(t); opcode != opBinary || string(got[binaryHeaderBytes:]) != fmt.Sprint(i) {
			t.Fatalf("got opcode %d, %q", opcode, got)
		}
	}
	if opcode, got := p.readFrame(t); opcode != opText || string(got) != "{}" {
		t.Errorf("got opcode %d, %q", opcode, got)
	}
	c.directConn = nil
	empty := outboundMessage{frame: newFrame(opBinary, nil), batchable: true}
	c.outbox = []outboundMessage{empty, empty}
	if n := c.countBatch(); n != 1 {
		t.Errorf("melody gets %d binary frames at once", n)
	}
}

func TestIndexesOfTopicsAreNotSharedAndNotUsedAgainSoon(t *testing.T) {
	c, first := newWaitingClient(t)
	c.binary = true
	first.number = c.numberFor(first.topic)
	c.cursors.put(first)
	if again := c.numberFor(first.topic); again != first.number || first.number == 0 {
		t.Errorf("a topic has the indexes %d and %d", first.number, again)
	}
	seen := map[uint16]bool{first.number: true}
	for i := range 1<<16 - 2 {
		n := c.numberFor(newTopic(c.hub, fmt.Sprint(i)))
		if n == 0 || seen[n] {
			t.Fatalf("the index %d was given twice", n)
		}
		seen[n] = true
	}
	if n := c.numberFor(newTopic(c.hub, "next")); n == first.number || n == 0 {
		t.Errorf("the index %d is in use", n)
	}
}
