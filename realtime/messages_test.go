package realtime

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestANodeReceivesWhatOthersPostInTheirOrder(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		const channel = "{n:a}:calls"
		var mu sync.Mutex
		var got []string
		receive := func(message string) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, strings.Clone(message))
		}
		a, b := startNode(t, db, Options{}), startNode(t, db, Options{})
		post := func(message string) int64 {
			nodes := make(chan int64, 1)
			testkit.Check(t, b.Post(t.Context(), channel, []byte(message), func(n int64, err error) {
				testkit.Report(t, err)
				nodes <- n
			}))
			return <-nodes
		}
		if n := post("early"); n != 0 {
			t.Errorf("%d nodes got a message that none receives", n)
		}
		testkit.Check(t, a.Receive(channel, receive))
		if err := a.Receive(channel, receive); !errors.Is(err, apierror.Draining) {
			t.Errorf("a second receiver gets %v", err)
		}
		waitUntil(t, "the channel is subscribed", func() bool { return post("begin") == 1 })
		for i := range 500 {
			testkit.Check(t, b.Post(t.Context(), channel, fmt.Appendf(nil, "%d|!", i), func(int64, error) {}))
		}
		post("end")
		waitUntil(t, "all messages came", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return got[len(got)-1] == "end"
		})
		if len(got) != 502 || got[1] != "0|!" || got[500] != "499|!" {
			t.Errorf("%d messages came: %.100q", len(got), got)
		}
		if s := a.Stats(); s.Topics != 0 {
			t.Errorf("the channel counts as %d topics", s.Topics)
		}
	})
}

func TestAMessageToATopicReachesEachClientOnce(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		a, b := startNode(t, db, Options{}), startNode(t, db, Options{})
		const topic = "{r0}:room:a:events"
		clients := []*testClient{
			dial(t, a, "user=1").listen(), dial(t, a, "user=2").listen(), dial(t, b, "user=1").listen(),
		}
		for _, c := range clients {
			c.subscribe(topic, "")
		}
		var sent sync.WaitGroup
		for i := range 20 { // at the same time: none is taken for an older one
			sent.Go(func() {
				testkit.Report(t, a.BroadcastToTopic(t.Context(), topic, fmt.Appendf(nil, `{"type":"%d"}`, i)))
			})
		}
		sent.Wait()
		for _, c := range clients {
			seen := map[string]int{}
			for range 20 {
				seen[c.next().Type]++
			}
			if len(seen) != 20 {
				t.Errorf("a client got %v", seen)
			}
		}
	})
}

func TestAnOfferedMessageIsDroppedBeforeTheSocketIsTooSlow(t *testing.T) {
	c, _ := newWaitingClient(t)
	taken := 0
	for c.Offer([]byte(`{"type":"room.call"}`)) {
		taken++
	}
	if most := c.socketKind.limits.OutboxFrames; taken != most/2 {
		t.Errorf("%d of %d messages may wait", taken, most)
	}
	if c.closeStarted || c.Send([]byte("{}")) != nil {
		t.Error("a message of another closed the socket")
	}
	if c.Offer(nil) {
		t.Error("a message without a byte is taken")
	}
}
