package realtime

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

const stateTopic = "a state"

var stateLimits = Limits{MaxFrameBytes: 16 << 10, FramesPerSecond: 60, BurstFrames: 120, StateTopics: 2}

// subscribeState subscribes a user's client to a variant, with the reply "subscribed".
func (n *testNode) subscribeState(t *testing.T, user int64, topic string, variant any) {
	t.Helper()
	waitUntil(t, "the client is open", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return slices.ContainsFunc(n.clients, func(c *Client) bool { return c.UserID() == user })
	})
	reply := []byte(`{"type":"subscribed"}`)
	testkit.Check(t, n.clientOf(user).SubscribeState(StateSubscription{topic, variant, reply}))
}

func stateFrame(eventType string, seq int, pad string) []byte {
	return fmt.Appendf(nil, `{"type":%q,"seq":%d,"data":%q}`, eventType, seq, pad)
}

func (c *testClient) expectState(eventType string, seq int) {
	c.t.Helper()
	if e := c.next(); e.Type != eventType || e.Seq != uint64(seq) {
		c.t.Fatalf("got %s %d, want %s %d", e.Type, e.Seq, eventType, seq)
	}
}

func TestSubscribersGetTheStatesOfTheirVariant(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{}, stateLimits)
	ann, bob := dial(t, n, "user=1").listen(), dial(t, n, "user=2").listen()
	n.subscribeState(t, 1, stateTopic, 10)
	n.subscribeState(t, 2, stateTopic, 20)
	ann.expectState("subscribed", 0)
	bob.expectState("subscribed", 0)
	n.PublishState(stateTopic, 10, stateFrame("state", 1, ""))
	n.PublishState(stateTopic, 20, stateFrame("state", 2, ""))
	n.PublishState("another", 10, stateFrame("state", 3, ""))
	n.PublishStateEvent(stateTopic, stateFrame("event", 4, ""))
	ann.expectState("state", 1)
	ann.expectState("event", 4)
	bob.expectState("state", 2)
	bob.expectState("event", 4)
	if got := n.StateVariants(stateTopic); len(got) != 2 {
		t.Errorf("the variants are %v", got)
	}
	n.subscribeState(t, 1, stateTopic, 20) // instead of 10
	ann.expectState("subscribed", 0)
	n.PublishState(stateTopic, 10, stateFrame("state", 5, ""))
	n.PublishState(stateTopic, 20, stateFrame("state", 6, ""))
	ann.expectState("state", 6)
	bob.expectState("state", 6)
	if got := n.StateVariants(stateTopic); len(got) != 1 || got[0] != 20 {
		t.Errorf("the variants are %v", got)
	}
	if c := n.clientOf(1); !c.UnsubscribeState(stateTopic) || c.UnsubscribeState(stateTopic) {
		t.Error("the subscription ended not at all, or twice")
	}
	n.EndStates(stateTopic, stateFrame("end", 7, ""))
	bob.expectState("end", 7)
	n.PublishState(stateTopic, 20, stateFrame("state", 8, ""))
	if got := n.StateVariants(stateTopic); len(got) != 0 {
		t.Errorf("after the end the variants are %v", got)
	}
	bob.send(request{ID: "1", Payload: "nothing came between"})
	if e := bob.next(); e.ReplyTo != "1" {
		t.Errorf("after the end came %+v", e)
	}
}

func TestAConnectionSubscribesToAFewStates(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{}, stateLimits)
	dial(t, n, "user=1").listen()
	for i := range 2 {
		n.subscribeState(t, 1, fmt.Sprint(i), 1)
	}
	n.subscribeState(t, 1, "1", 2) // again is not one more
	err := n.clientOf(1).SubscribeState(StateSubscription{Topic: "2", Variant: 1})
	if apiErr, _ := apierror.As(err); apiErr == nil || apiErr.Code != apierror.RateLimited.Code {
		t.Errorf("the third: %v", err)
	}
}

func TestASocketThatEndsLeavesItsStates(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{}, stateLimits)
	ann := dial(t, n, "user=1").listen()
	n.subscribeState(t, 1, stateTopic, 1)
	_ = ann.conn.Close()
	waitUntil(t, "nobody is subscribed", func() bool { return len(n.StateVariants(stateTopic)) == 0 })
	err := n.clientOf(1).SubscribeState(StateSubscription{Topic: stateTopic, Variant: 1})
	if err == nil || len(n.StateVariants(stateTopic)) != 0 {
		t.Errorf("a socket that has ended subscribed: %v", err)
	}
}

// A client that reads nothing holds one state, the newest, and the events between. It holds nobody
// else.
func TestASlowClientGetsTheNewestState(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{WriteTimeout: 30 * time.Second}, stateLimits)
	fast := dial(t, n, "user=1").listen()
	slow, _ := tryDial(t, n, "user=2", &websocket.Dialer{NetDial: func(network, addr string) (net.Conn, error) {
		conn, err := net.Dial(network, addr)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(16 << 10)
		}
		return conn, err
	}})
	n.subscribeState(t, 1, stateTopic, 1)
	n.subscribeState(t, 2, stateTopic, 1)
	fast.expectState("subscribed", 0)
	pad := strings.Repeat("x", 32<<10)
	const states, eventAt = 100, 60
	for seq := 1; seq <= states; seq++ {
		n.PublishState(stateTopic, 1, stateFrame("state", seq, pad))
		fast.expectState("state", seq)
		if seq == eventAt {
			n.PublishStateEvent(stateTopic, stateFrame("event", seq, ""))
			fast.expectState("event", seq)
		}
	}
	if n.Stats().StatesReplaced == 0 {
		t.Error("no state was replaced")
	}
	slow.listen()
	var got []string
	last := uint64(0)
	for last < states {
		e := slow.next()
		if e.Seq < last {
			t.Fatalf("after %d came %d", last, e.Seq)
		}
		last = e.Seq
		got = append(got, fmt.Sprint(e.Type, e.Seq))
	}
	i := slices.Index(got, fmt.Sprint("event", eventAt))
	if len(got) > states/2 || i < 1 || got[i-1] != fmt.Sprint("state", eventAt) {
		t.Errorf("the slow client got %d frames: %v", len(got), got)
	}
}
