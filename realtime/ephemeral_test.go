package realtime

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// parseWhole parses a payload with its recipients.
func parseWhole(payload string) (EphemeralMessage, bool) {
	m, ok := parseEphemeral(payload, new(frameMemory))
	if !ok {
		return m, false
	}
	m.Recipients, ok = parseRecipients(m.recipientsText)
	if !m.isBinary {
		m.Text = m.frame.payload()
	}
	m.frame, m.recipientsText = nil, ""
	return m, ok
}

func TestAnEphemeralMessageIsParsedAsItWasEncoded(t *testing.T) {
	for _, m := range []EphemeralMessage{
		{senderID: "abc", seq: 3, Recipients: []int64{7, 8}, Text: []byte(`{"text":"a|b"}`)},
		{senderID: "abc", seq: 3, Recipients: []int64{7, 8}, ExceptUserID: 7, Text: []byte(`{}`)},
		{senderID: "abc", seq: 1 << 63, Text: []byte(`{}`)},
		{senderID: "abc", seq: 3, Recipients: []int64{1}, Text: []byte(`{}`), Latest: true, Op: "a.b|c d,é"},
		{senderID: "abc", seq: 3, Text: []byte(`{}`), Latest: true},
		{
			senderID: "abc", seq: 3, Recipients: []int64{1, 7}, ExceptUserID: 7, SenderUserID: 7, Op: "65535",
			Bytes: []byte("\x00|.\xff"), isBinary: true, sentAt: time.UnixMilli(1795195946123),
		},
		{
			senderID: "abc", seq: 3, SenderUserID: 7, Op: "0", Bytes: []byte{}, isBinary: true, Latest: true,
			sentAt: time.UnixMilli(1),
		},
	} {
		payload := string(m.appendPayload(nil))
		if got, ok := parseWhole(payload); !ok || !reflect.DeepEqual(got, m) {
			t.Errorf("%s is parsed as %+v, %v; want %+v", payload, got, ok, m)
		}
	}
	for _, payload := range []string{
		"!", "!a", "!a|", "!a||{}", "!a.1", "!a.1|", "!a.x||{}", "!a.1|x|{}", "!a.1|7,x|{}", "!a.1|-x,7|{}",
		"!a.1.z.op||{}", "!a.1.l.%zz||{}", "!a.1.lb.1.7.1||", "!a.1.b.1.7||", "!a.1.b.01.7.1||", "!a.1.b.1.x.1||",
		"!a.1.b.1.7.x||", "!a.1.b.65536.7.1||",
	} {
		if m, ok := parseWhole(payload); ok {
			t.Errorf("%q is parsed as %+v", payload, m)
		}
	}
	if m, ok := parseWhole("!a.1|8,7|{}"); !ok || !slices.Equal(m.Recipients, []int64{7, 8}) {
		t.Errorf("the recipients are %v: a search needs them in ascending order", m.Recipients)
	}
}

// A room of the largest size sends its whole list with every message, so it is parsed once.
func TestTheSameRecipientsAreParsedOnce(t *testing.T) {
	users := make([]int64, 256)
	for i := range users {
		users[i] = int64(1000 + i)
	}
	room := newTopic(New(redistest.Single(t), Options{}), "room")
	message := EphemeralMessage{senderID: "abc", seq: 1, Recipients: users, ExceptUserID: 1007, Text: []byte("{}")}
	resolve := func() []int64 {
		m, _ := parseEphemeral(string(message.appendPayload(nil)), new(frameMemory))
		if !room.resolveRecipients(&m) {
			t.Fatal("the recipients cannot be parsed")
		}
		return m.Recipients
	}
	first := resolve()
	message.ExceptUserID = 1008 // of another sender
	if again := resolve(); !slices.Equal(first, users) || &again[0] != &first[0] {
		t.Error("the same list was parsed twice")
	}
	message.Recipients = users[1:]
	if other := resolve(); !slices.Equal(other, users[1:]) {
		t.Errorf("another list is taken for the last one: %v", other)
	}
}

// newWaitingClient returns a client that has no connection yet, so that all that is queued waits.
func newWaitingClient(t *testing.T) (*Client, *cursor) {
	h := New(redistest.Single(t), Options{})
	c := &Client{hub: h, socketKind: h.NewSocketKind(Limits{}), options: ClientOptions{UserID: 2}, id: "receiver"}
	return c, &cursor{client: c, topic: newTopic(h, "room"), active: true}
}

func TestOfWaitingMessagesOnlyTheLatestIsKept(t *testing.T) {
	c, cur := newWaitingClient(t)
	send := func(sender, op string, latest bool, text string) {
		m := EphemeralMessage{senderID: sender, Op: op, Latest: latest, frame: newFrame(opText, []byte(text))}
		c.enqueueEphemeral(cur, &m, new(ephemeralBatch))
	}
	for i := range 100 { // more than may wait
		n := fmt.Sprint(i)
		send("a", "pos", true, "a-pos-"+n)
		send("a", "aim", true, "a-aim-"+n)
		send("b", "pos", true, "b-pos-"+n)
		if i == 50 {
			send("a", "pos", false, "a-pos-kept")
			send("a", "shot", false, "a-shot")
		}
	}
	var waiting []string
	bytes := 0
	for _, out := range c.outbox {
		waiting = append(waiting, string(out.frame.payload()))
		bytes += len(out.frame)
	}
	want := "a-pos-kept a-shot a-pos-99 a-aim-99 b-pos-99"
	if got := strings.Join(waiting, " "); got != want || bytes != c.outboxBytes {
		t.Errorf("%d bytes wait, counted as %d: %s; want %s", bytes, c.outboxBytes, got, want)
	}
	if got := c.hub.Stats().EphemeralReplaced; got != 297 {
		t.Errorf("%d messages were counted as replaced, want 297", got)
	}
}

// What was replaced was not sent, so it does not count against the bytes that a socket may get.
func TestReplacedMessagesAreNotPaidFor(t *testing.T) {
	c, cur := newWaitingClient(t)
	frame := newFrame(opText, []byte(strings.Repeat("x", 8<<10)))
	for range 10 * 2 * ephemeralBytesPerSecond / len(frame) {
		c.enqueueEphemeral(cur, &EphemeralMessage{senderID: "a", Op: "pos", Latest: true, frame: frame}, new(ephemeralBatch))
	}
	if s := c.hub.Stats(); s.EphemeralLimited != 0 || len(c.outbox) != 1 {
		t.Errorf("%d messages were dropped and %d wait; want one that waits", s.EphemeralLimited, len(c.outbox))
	}
}

func TestLatestMessagesArriveOnEveryNode(t *testing.T) {
	db := redistest.Single(t)
	topic := "{r1}:room:latest:events"
	a, b := startNode(t, db, Options{}), startNode(t, db, Options{})
	sender, near, far := dial(t, a, "user=1").listen(), dial(t, a, "user=2").listen(), dial(t, b, "user=3").listen()
	for _, c := range []*testClient{sender, near, far} {
		c.subscribe(topic, "")
	}
	for i := range 20 {
		sender.send(request{Type: "broadcast", Topic: topic, Payload: fmt.Sprint(i), Latest: true})
	}
	for _, c := range []*testClient{near, far} {
		last := -1
		for last < 19 {
			var i int
			if _, err := fmt.Sscanf(string(c.next().Data), `"%d"`, &i); err != nil || i <= last {
				t.Fatalf("after %d came %d (%v)", last, i, err)
			}
			last = i
		}
	}
}

func TestWhatIsKeptEndsWithTheNextEvent(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		topic := "{r1}:room:kept:events"
		n := startNode(t, db, Options{})
		n.CacheState(topic, "0-0", "no topic")
		c := dial(t, n, "user=1").listen()
		c.subscribe(topic, "")
		if got := n.CachedState(topic); got != nil {
			t.Fatalf("without a subscriber, %v was kept", got)
		}
		first := emit(t, db, topic, "")
		c.nextEvent()
		n.CacheState(topic, first, "first")
		if got := n.CachedState(topic); got != "first" {
			t.Fatalf("kept %v", got)
		}
		emit(t, db, topic, "")
		c.nextEvent()
		if got := n.CachedState(topic); got != nil {
			t.Fatalf("after another event, %v is still there", got)
		}
		n.CacheState(topic, first, "read before the event, kept after it")
		if got := n.CachedState(topic); got != nil {
			t.Fatalf("%v is older than the newest event", got)
		}
	})
}

// A node that does not hear the room does not know whether its seats have changed.
func TestWhatIsKeptIsNotUsedWithoutTheChannel(t *testing.T) {
	server := redistest.StartForTest(t)
	direct := openAt(t, server.URL())
	proxy := startProxy(t, server.Addr)
	n := startNode(t, openAt(t, "redis://"+proxy.listener.Addr().String()), Options{
		ProbeAfter: 50 * time.Millisecond, ProbeTimeout: 100 * time.Millisecond,
	})
	topic := "{r1}:room:deaf:events"
	c := dial(t, n, "user=1").listen()
	c.subscribe(topic, "")
	pos := emit(t, direct, topic, "")
	c.nextEvent()
	n.CacheState(topic, pos, "seats")
	if got := n.CachedState(topic); got != "seats" {
		t.Fatalf("kept %v", got)
	}
	proxy.disconnect()
	waitUntil(t, "the node does not trust what it kept", func() bool { return n.CachedState(topic) == nil })
	proxy.reconnect()
	waitUntil(t, "it does again, as nothing has happened", func() bool { return n.CachedState(topic) == "seats" })
	proxy.disconnect()
	waitUntil(t, "the node does not trust what it kept", func() bool { return n.CachedState(topic) == nil })
	emit(t, direct, topic, "")
	proxy.reconnect()
	c.nextEvent()
	if got := n.CachedState(topic); got != nil {
		t.Errorf("%v is kept, though the room has changed meanwhile", got)
	}
}

// A client that does not want to know when a message is stored need not wait for it, but cannot
// fill the queue of a store that hangs.
func TestASenderWaitsForTheStoreWhenEightMessagesDo(t *testing.T) {
	db := redistest.Single(t)
	const topic, sent = "{r1}:room:relay:events", 20
	n := startNode(t, db, Options{})
	sender, other := dial(t, n, "user=1").listen(), dial(t, n, "user=2").listen()
	other.subscribe(topic, "")
	held, release := make(chan struct{}, 1), make(chan struct{})
	redistest.ObserveCommands(db, func(commands []redis.Cmder) {
		if args := commands[0].Args(); commands[0].Name() == "publish" && isTopic(args[1], topic) {
			select {
			case held <- struct{}{}:
			default:
			}
			<-release
		}
	})
	for i := range sent {
		sender.send(request{Type: "relay", Topic: topic, Payload: fmt.Sprint("m", i)})
	}
	<-held
	waitUntil(t, "eight messages were handled", func() bool { return len(n.notes()) >= maxPublishing })
	client := n.clientOf(1)
	waitUntil(t, "the ninth waits", func() bool { return client.publishing.Load() == maxPublishing+1 })
	if got := len(n.notes()); got != maxPublishing {
		t.Errorf("%d messages were handled while the store took none, want %d", got, maxPublishing)
	}
	close(release)
	for i := range sent {
		if got := string(other.next().Data); got != fmt.Sprintf(`"m%d"`, i) {
			t.Fatalf("got %s, want m%d", got, i)
		}
	}
	waitUntil(t, "nothing is under way", func() bool { return client.publishing.Load() == 0 })
	for _, note := range n.notes() {
		if strings.HasPrefix(note, "failed") {
			t.Error(note)
		}
	}
}

// A store that hangs does not keep the place of a client who has gone.
func TestTheEndOfASocketDoesNotWaitForItsMessages(t *testing.T) {
	db := redistest.Single(t)
	const topic = "{r1}:room:left:events"
	n := startNode(t, db, Options{ConnectionsPerUser: 1})
	held, released := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	t.Cleanup(release)
	redistest.ObserveCommands(db, func(commands []redis.Cmder) {
		if args := commands[0].Args(); commands[0].Name() == "publish" && isTopic(args[1], topic) {
			close(held)
			<-released
		}
	})
	sender := dial(t, n, "user=1").listen()
	sender.send(request{Type: "relay", Topic: topic, Payload: "m"})
	<-held
	client := n.clientOf(1)
	_ = sender.conn.Close()
	waitUntil(t, "the client has gone", func() bool { return n.Stats().Clients == 0 })
	if got := client.publishing.Load(); got != 1 {
		t.Errorf("%d messages are under way, want 1", got)
	}
	dial(t, n, "user=1")
	release()
	waitUntil(t, "nothing is under way", func() bool { return client.publishing.Load() == 0 })
}

func TestAPanicInOnErrorEndsNothingButTheSocket(t *testing.T) {
	server := redistest.StartForTest(t)
	n := startNode(t, openAt(t, server.URL()), Options{})
	sender := dial(t, n, "user=1").listen()
	sender.send(request{ID: "e", Payload: "echo"})
	sender.next()
	server.Kill()
	m := EphemeralMessage{Text: []byte(`{}`), OnError: func(error) { panic("on purpose") }}
	testkit.Check(t, n.BroadcastEphemeral(t.Context(), "{r1}:room:panic:events", n.clientOf(1), m))
	if code := sender.waitCloseCode(); code != CloseInternal {
		t.Errorf("the socket was closed with %d, want %d", code, CloseInternal)
	}
}

func isTopic(argument any, topic string) bool {
	channel, ok := argument.(*string)
	return ok && *channel == topic
}

func TestASenderLearnsThatTheStoreDidNotTakeAMessage(t *testing.T) {
	server := redistest.StartForTest(t)
	n := startNode(t, openAt(t, server.URL()), Options{})
	sender := dial(t, n, "user=1").listen()
	server.Kill()
	for range 2 {
		sender.send(request{Type: "relay", Topic: "{r1}:room:relay:events", Payload: "m"})
	}
	waitUntil(t, "both failed", func() bool {
		failed := 0
		for _, note := range n.notes() {
			if strings.Contains(note, apierror.StoreUnavailable.Code) {
				failed++
			}
		}
		return failed == 2
	})
	sender.send(request{ID: "e", Payload: "echo"})
	for sender.next().ReplyTo != "e" { // the socket goes on
	}
}
