package realtime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// subscribeAll subscribes a client of the node to topics. The reply has "<mode> <position>" of
// each, or the code of its error.
func (n *testNode) subscribeAll(ctx context.Context, c *Client, subscriptions ...Subscription) error {
	return c.SubscribeAll(ctx, subscriptions, func(outcomes []SubscribeOutcome) []byte {
		var texts []string
		for _, o := range outcomes {
			text := string(o.Mode) + " " + o.Position
			if e, ok := apierror.As(o.Err); ok {
				text = e.Code
			}
			texts = append(texts, text)
		}
		return fmt.Appendf(nil, `{"replyTo":"all","ok":true,"data":%q}`, strings.Join(texts, ","))
	})
}

func (n *testNode) at(topic, after string) Subscription {
	s := n.subscription(n.clientOf(1), request{Topic: topic, After: after})
	s.EncodeReply = nil
	return s
}

// openUsers returns the users whose OnOpen was called.
func (n *testNode) openUsers() (users []int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.clients {
		users = append(users, c.UserID())
	}
	return users
}

func TestOneReplyStandsBeforeTheEventsOfAllItsTopics(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		n := startNode(t, db, Options{TopicsPerConnection: 3})
		c := dial(t, n, "user=1").listen()
		client := n.firstClient(t)
		topics := []string{"{r1}:room:a:events", "{r2}:room:b:events", "{r3}:room:c:events", "{r4}:room:d:events"}
		want := []string{}
		for _, topic := range topics[:2] {
			want = append(want, emit(t, db, topic, "1"), emit(t, db, topic, "2"))
		}
		refused := n.at(topics[2], "")
		refused.Authorize = func(context.Context) error { return apierror.Forbidden }
		testkit.Check(t, n.subscribeAll(t.Context(), client,
			n.at(topics[0], "0-0"), n.at(topics[1], ""), refused, n.at(topics[3], "")))
		c.next() // hello
		if got, text := c.next(), `"resume 0-0,snapshot `+want[3]+`,forbidden,rate_limited"`; string(got.Data) != text {
			t.Fatalf("the reply is %+v (%s), want %s", got, got.Data, text)
		}
		for _, pos := range want[:2] {
			if e := c.next(); e.Position != pos {
				t.Fatalf("got %+v, want %s", e, pos)
			}
		}
		// What was refused holds nothing, and its place is free again.
		testkit.Check(t, n.subscribeAll(t.Context(), client, n.at(topics[3], ""), n.at(topics[1], "0-0")))
		if got := c.next(); string(got.Data) != `"snapshot 0-0,resume 0-0"` {
			t.Fatalf("the second reply is %+v (%s)", got, got.Data)
		}
		for _, pos := range append(want[2:], emit(t, db, topics[3], "3")) {
			if e := c.next(); e.Position != pos {
				t.Fatalf("got %+v, want %s", e, pos)
			}
		}
		references := map[string]int{}
		n.Hub.mu.Lock()
		defer n.Hub.mu.Unlock()
		for _, name := range topics {
			if v, ok := n.topics.Load(name); ok {
				references[name] = v.(*topic).refCount
			}
		}
		if fmt.Sprint(references) != fmt.Sprint(map[string]int{topics[0]: 1, topics[1]: 1, topics[2]: 0, topics[3]: 1}) {
			t.Errorf("the topics have the references %v", references)
		}
	})
}

func TestAPanicOfOneSubscriptionClosesItsSocketOnly(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{})
	other := dial(t, n, "user=2").listen()
	c := dial(t, n, "user=1").listen()
	waitUntil(t, "both are open", func() bool { return len(n.openUsers()) == 2 })
	c.next()
	client := n.clientOf(1)
	failing := n.at("{r1}:room:panic:events", "")
	failing.Authorize = func(context.Context) error { panic("requested by the test") }
	client.enqueueInbox(&inboundMessage{call: func() {
		_ = n.subscribeAll(context.Background(), client, n.at("{r1}:room:calm:events", ""), failing)
	}})
	if code := c.waitCloseCode(); code != CloseInternal {
		t.Errorf("closed with %d", code)
	}
	other.send(request{ID: "e", Payload: "alive"})
	for other.next().ReplyTo != "e" {
	}
}

func TestRepliesThatAreNotReadCloseTheSocket(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{})
	dial(t, n, "user=1") // never reads
	client := n.firstClient(t)
	s := n.at("{r1}:room:large:events", "")
	var err error
	for i := 0; i < 10 && err == nil; i++ {
		err = client.SubscribeAll(t.Context(), []Subscription{s}, func([]SubscribeOutcome) []byte {
			return fmt.Appendf(nil, `{"data":%q}`, strings.Repeat("x", maxOutboxBytes/2))
		})
	}
	if !errors.Is(err, ErrClosed) {
		t.Errorf("a client that reads nothing got ten replies of %d bytes: %v", maxOutboxBytes/2, err)
	}
}

// A client that comes back subscribes again with its position. New events must not come before
// those that it missed.
func TestHeldEventsComeAfterTheMissedOnes(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		name := "{e:1}:wallet:7:lines"
		n := startNode(t, db, Options{})
		first := emit(t, db, name, "1")
		missed := emit(t, db, name, "2")
		c := dial(t, n, "user=1").listen()
		client := n.firstClient(t)
		if hello := c.next(); hello.Type != "hello" {
			t.Fatalf("got %+v", hello)
		}
		held := Subscription{Topic: name, Implicit: true, HoldEvents: time.Hour}
		testkit.Must(client.Subscribe(t.Context(), held))(t)
		// A message has no place among the events.
		testkit.Check(t, n.BroadcastToTopic(t.Context(), name, []byte(`{"type":"message"}`)))
		if e := c.next(); e.Type != "message" {
			t.Fatalf("got %+v, want the message", e)
		}
		fresh := emit(t, db, name, "3")
		v, _ := n.topics.Load(name)
		waitUntil(t, "the node has the event", func() bool { return v.(*topic).head().String() == fresh })
		again := Subscription{Topic: name, Implicit: true, AfterPosition: first}
		testkit.Check(t, n.subscribeAll(t.Context(), client, again))
		if got := c.next(); string(got.Data) != `"resume `+first+`"` {
			t.Fatalf("before the reply came %+v", got)
		}
		for _, pos := range []string{missed, fresh, emit(t, db, name, "4")} {
			if e := c.next(); e.Position != pos {
				t.Fatalf("got %+v, want %s", e, pos)
			}
		}

		// Without such a request they come when the time is over.
		held.HoldEvents = 20 * time.Millisecond
		testkit.Must(client.Subscribe(t.Context(), held))(t)
		last := emit(t, db, name, "5")
		if e := c.next(); e.Position != last {
			t.Fatalf("got %+v, want %s", e, last)
		}
	})
}

// The events of a list may be gone while their number stays.
func TestAnEmptyListProvesNothingToAClientAtItsStart(t *testing.T) {
	db := redistest.Single(t)
	n := startNode(t, db, Options{})
	dial(t, n, "user=1").listen()
	client := n.firstClient(t)
	for seq, want := range map[int64]SubscribeMode{0: ModeResume, 7: ModeLive} {
		s := Subscription{Topic: fmt.Sprintf("{u:%d}:events", seq), AfterPosition: "0-0", NotBeforeSeq: seq, Implicit: true}
		if start, err := client.Subscribe(t.Context(), s); err != nil || start.Mode != want {
			t.Errorf("after %d events: %+v %v, want %s", seq, start, err, want)
		}
	}
}

func TestTheExpiryOfASocketCanBeMoved(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{})
	c, other := dial(t, n, "user=1&expires=500ms").listen(), dial(t, n, "user=2&expires=500ms").listen()
	waitUntil(t, "both are open", func() bool { return len(n.openUsers()) == 2 })
	client := n.clientOf(1)
	testkit.Check(t, client.SetExpiry(time.Now().Add(time.Hour)))
	if code := other.waitCloseCode(); code != CloseExpired {
		t.Errorf("closed with %d", code)
	}
	c.send(request{ID: "e", Payload: "alive"})
	for c.next().ReplyTo != "e" {
	}
	testkit.Check(t, client.SetExpiry(time.Now().Add(30*time.Millisecond)))
	if code := c.waitCloseCode(); code != CloseExpired {
		t.Errorf("closed with %d", code)
	}
	testkit.WantError(t, client.SetExpiry(time.Now().Add(time.Hour)), ErrClosed, "a closed socket got more time")
}
