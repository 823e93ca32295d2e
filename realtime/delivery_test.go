package realtime

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestEventsArriveInOrderOnEveryNode(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		a, b := startNode(t, db, Options{}), startNode(t, db, Options{})
		topics := []string{"{r1}:room:a", "{r2}:room:b", "{e:1}:room:c"}
		for i := range topics {
			topics[i] += t.Name() + ":events"
		}
		var clients []*testClient
		for i := range 12 {
			c := dial(t, []*testNode{a, b}[i%2], fmt.Sprintf("user=%d", i)).listen()
			if hello := c.next(); hello.Type != "hello" {
				t.Fatalf("the first frame is %+v, want hello", hello)
			}
			for _, topic := range topics {
				if mode, pos := c.subscribe(topic, ""); mode != "snapshot" || pos != "0-0" {
					t.Fatalf("subscribed as %s at %s", mode, pos)
				}
			}
			clients = append(clients, c)
		}
		const events = 100
		for range events {
			for _, topic := range topics {
				emit(t, db, topic, "x")
			}
		}
		for _, c := range clients {
			last := map[string]uint64{}
			for range events * len(topics) {
				e := c.next()
				if e.Seq != last[e.RoomID]+1 {
					t.Fatalf("after seq %d came %+v", last[e.RoomID], e)
				}
				last[e.RoomID] = e.Seq
			}
		}
	})
}

func TestASubscriptionResumesFromBufferOrListAndElseStartsFromASnapshot(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		topic := "{r1}:room:resume:events"
		warm := startNode(t, db, Options{})
		first := dial(t, warm, "user=1").listen()
		first.subscribe(topic, "")
		var positions []string
		for range 50 {
			positions = append(positions, emit(t, db, topic, "x"))
		}
		for range 50 {
			first.next()
		}
		check := func(n *testNode, after, mode string, missed int) {
			t.Helper()
			c := dial(t, n, "user=2").listen()
			got, from := c.subscribe(topic, after)
			if got != mode {
				t.Fatalf("after %s: %s, want %s", after, got, mode)
			}
			if mode == "snapshot" {
				missed = len(positions) - 1 - slices.Index(positions, from) // the snapshot may be a moment old
			}
			positions = append(positions, emit(t, db, topic, "y"))
			for i := range missed + 1 {
				want := positions[len(positions)-1-missed+i]
				if e := c.next(); e.Position != want {
					t.Fatalf("after %s came %s, want %s", after, e.Position, want)
				}
			}
		}
		check(warm, positions[10], "resume", len(positions)-11)
		reads := warm.Stats().BackfillReads
		check(warm, positions[30], "resume", len(positions)-31)
		if now := warm.Stats().BackfillReads; now != reads {
			t.Errorf("a topic with these events in its buffer read the list %d times", now-reads)
		}
		check(warm, positions[len(positions)-1], "resume", 0)
		cold := func() *testNode { return startNode(t, db, Options{}) }
		check(cold(), positions[20], "resume", len(positions)-21)
		check(cold(), positions[len(positions)-1], "resume", 0)
		check(cold(), "0-0", "resume", len(positions))
		check(cold(), "", "snapshot", 0)
		check(cold(), "no-position", "snapshot", 0)
		seq, nonce, _ := strings.Cut(positions[20], "-")
		check(cold(), seq+"-zzzzzzzz", "snapshot", 0) // the number of another history
		check(warm, seq+"-zzzzzzzz", "snapshot", 0)
		check(warm, seq+"-0"+nonce, "snapshot", 0) // the same number, spelled differently
		check(warm, "0"+seq+"-"+nonce, "snapshot", 0)
		check(cold(), "9999-00000001", "snapshot", 0)
		testkit.Check(t, db.Client.LTrim(t.Context(), topic, -5, -1).Err())
		check(cold(), positions[30], "snapshot", 0)
		check(cold(), positions[len(positions)-2], "resume", 1)
	})
}

func TestAForkedHistoryIsReplacedByASnapshot(t *testing.T) {
	db := redistest.Single(t)
	topic := "{r1}:room:fork:events"
	n := startNode(t, db, Options{GapCheckInterval: 100 * time.Millisecond})
	c := dial(t, n, "user=1").listen()
	c.subscribe(topic, "")
	for range 10 {
		emit(t, db, topic, "x")
		c.next()
	}
	undone, _ := parseEntry(db.Client.LIndex(t.Context(), topic, -1).Val())
	lost := undone.pos.String()
	forkHistory(t, db, topic, 7)
	e := c.next()
	if e.Type != "room.snapshot" || e.Seq != 7 {
		t.Fatalf("after the fork came %+v, want a snapshot at seq 7", e)
	}
	if got := emit(t, db, topic, "y"); c.next().Position != got {
		t.Fatal("the new eighth event did not follow")
	}
	// A client that was not connected has a position that the new history does not know.
	away := dial(t, n, "user=2").listen()
	if mode, _ := away.subscribe(topic, lost); mode != "snapshot" {
		t.Errorf("a lost position was resumed: %s", mode)
	}
	if n.Stats().RingResets == 0 {
		t.Error("no reset was counted")
	}
}

func TestAForkIsNoticedByTheNextEventToo(t *testing.T) {
	db := redistest.Single(t)
	topic := "{r1}:room:fork2:events"
	n := startNode(t, db, Options{})
	c := dial(t, n, "user=1").listen()
	c.subscribe(topic, "")
	for range 10 {
		emit(t, db, topic, "x")
		c.next()
	}
	forkHistory(t, db, topic, 7)
	want := emit(t, db, topic, "y")
	if e := c.next(); e.Type != "room.snapshot" || e.Position != want {
		t.Fatalf("after the fork came %+v, want a snapshot at %s", e, want)
	}
}

func TestALostMessageIsReadFromTheList(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		topic := "{r1}:room:gap:events"
		n := startNode(t, db, Options{GapCheckInterval: 200 * time.Millisecond})
		c := dial(t, n, "user=1").listen()
		c.subscribe(topic, "")
		emit(t, db, topic, "1")
		emitWithoutPublish(t, db, topic, testEvent)
		emitWithoutPublish(t, db, topic, testEvent)
		emit(t, db, topic, "4")                     // reveals the gap
		emitWithoutPublish(t, db, topic, testEvent) // only the comparison with the list reveals this one
		for want := range uint64(5) {
			if e := c.next(); e.Seq != want+1 {
				t.Fatalf("got %+v, want seq %d", e, want+1)
			}
		}
	})
}

func TestMembersOnTwoNodesMissNothingWhileRedisIsDisconnectedAndSubscribersAreKilled(t *testing.T) {
	t.Parallel()
	server := redistest.StartForTest(t)
	direct := openAt(t, server.URL())
	proxy := startProxy(t, server.Addr)
	url := "redis://" + proxy.listener.Addr().String()
	nodes := []*testNode{startNode(t, openAt(t, url), Options{}), startNode(t, openAt(t, url), Options{})}
	const members, events = 100, 500
	topic := "{r1}:room:chaos:events"
	var clients []*testClient
	for i := range members {
		c := dial(t, nodes[i%2], fmt.Sprintf("user=%d", i)).listen()
		c.subscribe(topic, "")
		clients = append(clients, c)
	}
	const maxAhead = 150 // fewer than the list of events keeps: on a slow machine too, the past is there
	keepUp := func(events int64) {
		for _, n := range nodes {
			waitUntil(t, "the nodes to keep up", func() bool {
				return int64(n.Stats().EventDeliveries) >= members/int64(len(nodes))*events
			})
		}
	}
	var sent atomic.Int64
	var failures sync.WaitGroup
	failures.Go(func() {
		wait := func(events int64) {
			goal := sent.Load() + events
			waitUntil(t, "more events", func() bool { return sent.Load() >= goal })
		}
		for i := range 13 {
			if i%4 != 3 {
				wait(8)
				testkit.Report(t, direct.Client.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err(), "kill")
				continue
			}
			wait(12)
			keepUp(sent.Load() - maxAhead/3) // else the sender has to wait for nodes that get nothing
			proxy.disconnect()
			wait(75)
			proxy.reconnect()
			wait(20)
		}
	})
	pace := time.NewTicker(4 * time.Millisecond)
	defer pace.Stop()
	for i := range events {
		keepUp(int64(i) - maxAhead)
		emit(t, direct, topic, strings.Repeat("x", 100))
		sent.Add(1)
		<-pace.C
	}
	failures.Wait()
	for i, c := range clients {
		for want := range uint64(events) {
			if e := c.nextEvent(); e.Seq != want+1 {
				t.Logf("%+v", nodes[i%2].Stats())
				t.Fatalf("member %d got %s %d, want seq %d", i, e.Type, e.Seq, want+1)
			}
		}
	}
	for _, n := range nodes {
		s := n.Stats()
		if s.LostPubSubConns < 8 {
			t.Errorf("only %d reconnects: the failures did not reach the node", s.LostPubSubConns)
		}
		t.Logf("%+v", s)
	}
}

func TestEphemeralMessagesReachTheOthersInOrderOnce(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		topic := "{r1}:room:relay:events"
		a, b := startNode(t, db, Options{}), startNode(t, db, Options{})
		sender, near := dial(t, a, "user=1").listen(), dial(t, a, "user=2").listen()
		far, other := dial(t, b, "user=3").listen(), dial(t, b, "user=1").listen()
		stranger := dial(t, b, "user=4").listen()
		for _, c := range []*testClient{sender, near, far, other} {
			c.subscribe(topic, "")
		}
		for i := range 50 {
			sender.send(request{Type: "broadcast", Topic: topic, Payload: fmt.Sprint("all", i)})
			sender.send(request{Type: "broadcast", Topic: topic, Payload: fmt.Sprint("one", i), To: []int64{3, 4}})
		}
		for i := range 50 {
			for _, c := range []*testClient{near, far, other} {
				if got := string(c.next().Data); got != fmt.Sprintf(`"all%d"`, i) {
					t.Fatalf("got %s, want all%d", got, i)
				}
				if c != far {
					continue
				}
				if got := string(c.next().Data); got != fmt.Sprintf(`"one%d"`, i) {
					t.Fatalf("got %s, want one%d", got, i)
				}
			}
		}
		// A message that was published twice is delivered once, and not to clients without the
		// subscription.
		duplicate := EphemeralMessage{senderID: "elsewhere", seq: 1, Text: []byte(`{"type":"room.message","data":"twice"}`)}
		for range 2 {
			testkit.Check(t, a.db.Client.Do(t.Context(), a.db.PublishCommand, topic, duplicate.appendPayload(nil)).Err())
		}
		last := emit(t, db, topic, "end")
		for _, c := range []*testClient{sender, near, far, other} {
			if got := string(c.next().Data); got != `"twice"` {
				t.Fatalf("got %s, want twice", got)
			}
			if e := c.next(); e.Position != last {
				t.Fatalf("got %+v, want the event", e)
			}
		}
		stranger.send(request{ID: "e", Payload: "echo"})
		stranger.next() // hello
		if e := stranger.next(); e.ReplyTo != "e" {
			t.Errorf("a client without the subscription got %+v", e)
		}
	})
}

func TestASocketGetsFewBytesOfOthersMessages(t *testing.T) {
	db := redistest.Single(t)
	topic := "{r1}:room:flood:events"
	n := startNode(t, db, Options{})
	receiver := dial(t, n, "user=2").listen()
	receiver.subscribe(topic, "")
	frame := []byte(`{"type":"room.message","data":"` + strings.Repeat("x", 8<<10) + `"}`)
	const sent = 50
	started := time.Now()
	for i := range sent { // of different senders
		m := EphemeralMessage{senderID: fmt.Sprint("elsewhere", i%5), seq: uint64(i + 1), Text: frame}
		testkit.Check(t, n.db.Client.Do(t.Context(), n.db.PublishCommand, topic, m.appendPayload(nil)).Err())
	}
	waitUntil(t, "all messages are handled", func() bool {
		stats := n.Stats()
		return stats.EphemeralDeliveries+stats.EphemeralLimited+stats.EphemeralDropped == sent
	})
	allowed := 2*ephemeralBytesPerSecond + int(time.Since(started).Seconds()*ephemeralBytesPerSecond)
	stats := n.Stats()
	if got := int(stats.EphemeralDeliveries) * len(frame); got > allowed || got < 2*ephemeralBytesPerSecond/2 {
		t.Errorf("a socket was sent %d bytes, at most %d are allowed", got, allowed)
	}
	if stats.EphemeralLimited == 0 {
		t.Error("no message was counted as dropped")
	}
	last := emit(t, db, topic, "an event is not dropped")
	for e := receiver.next(); e.Position != last; e = receiver.next() {
		if e.Type != "room.message" && e.Type != "hello" {
			t.Fatalf("got %+v", e)
		}
	}
}

func TestQueuedEventsShareFrames(t *testing.T) {
	db := redistest.Single(t)
	topic := "{r1}:room:batch:events"
	n := startNode(t, db, Options{})
	c := dial(t, n, "user=1").listen()
	_, start := c.subscribe(topic, "")
	for range 200 {
		emit(t, db, topic, "x")
	}
	for range 200 {
		c.next()
	}
	back := dial(t, n, "user=1").listen()
	back.subscribe(topic, start)
	frames := map[int]int{}
	for want := range uint64(200) {
		e := back.next()
		if e.Seq != want+1 {
			t.Fatalf("got seq %d, want %d", e.Seq, want+1)
		}
		frames[e.frame]++
	}
	if len(frames) > 3 {
		t.Errorf("200 queued events came in %d frames", len(frames))
	}
}

func TestASlowReaderIsClosedAndResumes(t *testing.T) {
	t.Parallel()
	db := redistest.Single(t)
	topic := "{r1}:room:slow:events"
	n := startNode(t, db, Options{WriteTimeout: 10 * time.Second})
	slow, _ := tryDial(t, n, "user=1", &websocket.Dialer{NetDial: func(network, addr string) (net.Conn, error) {
		conn, err := net.Dial(network, addr)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(128 << 10)
		}
		return conn, err
	}})
	slow.send(request{ID: "s", Type: "sub", Topic: topic})
	waitUntil(t, "subscribed", func() bool { return n.firstClient(t).IsSubscribed(topic) })
	fast := dial(t, n, "user=2").listen()
	fast.subscribe(topic, "")
	pad := strings.Repeat("x", 8000)
	last, seen := "", uint64(0)
	sent := 0
	read := func() bool { // one frame
		_, raw, err := slow.conn.ReadMessage()
		if err != nil {
			slow.err = err
			return false
		}
		for _, e := range parseFrame(t, raw) {
			switch e.Type {
			case testEvent:
				if e.Seq != seen+1 {
					t.Fatalf("a gap: after seq %d came %d", seen, e.Seq)
				}
				seen, last = e.Seq, e.Position
			case "room.snapshot":
				if e.Seq <= seen {
					t.Fatalf("an old snapshot: after seq %d came %d", seen, e.Seq)
				}
				seen, last = e.Seq, e.Position
			}
		}
		return true
	}
	closed := false
	for n.Stats().SlowCloses == 0 {
		emit(t, db, topic, pad)
		if e := fast.nextEvent(); e.Seq != uint64(sent+1) {
			t.Fatalf("the fast reader got seq %d, want %d", e.Seq, sent+1)
		}
		if sent++; sent > 20000 {
			t.Fatal("the slow reader is still connected")
		}
		if sent%10 == 0 && !read() {
			closed = true
			break
		}
	}
	for !closed && read() {
	}
	close(slow.end)
	if code := slow.waitCloseCode(); code != CloseTooSlow {
		t.Fatalf("closed with %d (%v)", code, slow.err)
	}
	back := dial(t, n, "user=1").listen()
	mode, _ := back.subscribe(topic, last)
	want := emit(t, db, topic, "y")
	for seen != uint64(sent+1) {
		e := back.next()
		if mode == "resume" && e.Seq != seen+1 {
			t.Fatalf("after seq %d came %d", seen, e.Seq)
		}
		seen, last = e.Seq, e.Position
	}
	if last != want {
		t.Errorf("ended at %s, want %s", last, want)
	}
	t.Logf("%d events, %s, %+v", sent, mode, n.Stats())
}

func TestAReaderThatStopsStillGetsTheCloseCode(t *testing.T) {
	t.Parallel()
	db := redistest.Single(t)
	topic := "{r1}:room:still:events"
	n := startNode(t, db, Options{WriteTimeout: 2 * time.Second})
	stalled := dial(t, n, "user=1")
	stalled.send(request{ID: "s", Type: "sub", Topic: topic})
	waitUntil(t, "subscribed", func() bool { return n.firstClient(t).IsSubscribed(topic) })
	pad := strings.Repeat("x", 4_000)
	// Events go on until it is closed: the kernel's buffers grow, and a snapshot skips what waits.
	waitUntil(t, "it is closed as too slow", func() bool {
		for range 20 {
			emit(t, db, topic, pad)
		}
		return n.Stats().SlowCloses == 1
	})
	last := uint64(0)
	for {
		_, raw, err := stalled.conn.ReadMessage()
		if err != nil {
			stalled.err = err
			break
		}
		for _, e := range parseFrame(t, raw) {
			if e.Type == testEvent && e.Seq != last+1 {
				t.Fatalf("a gap: after seq %d came %d", last, e.Seq)
			}
			last = max(last, e.Seq)
		}
	}
	close(stalled.end)
	if code := stalled.waitCloseCode(); code != CloseTooSlow {
		t.Errorf("closed with %d (%v)", code, stalled.err)
	}
	waitUntil(t, "the session has ended", func() bool { return n.Stats().Clients == 0 })
}

func TestTopicsWithoutASnapshotBeginWithTheNextEvent(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		topic := "{e:1}:wallet:7:lines"
		db.Client.HSet(t.Context(), stateKey(topic), "seq", 16) // its list has expired
		n := startNode(t, db, Options{})
		c := dial(t, n, "user=7").listen()
		c.subscribeLive(topic)
		for want := uint64(17); want < 20; want++ {
			emit(t, db, topic, "x")
			if e := c.next(); e.Seq != want {
				t.Fatalf("got %+v, want seq %d", e, want)
			}
		}
	})
}

func TestSubscribingAgainReplacesAndUnsubscribingEnds(t *testing.T) {
	db := redistest.Single(t)
	topic, other := "{r1}:room:again:events", "{r1}:room:other:events"
	n := startNode(t, db, Options{TopicsPerConnection: 2, TopicLinger: 100 * time.Millisecond})
	c := dial(t, n, "user=1").listen()
	_, start := c.subscribe(topic, "")
	pos := emit(t, db, topic, "1")
	if e := c.next(); e.Position != pos {
		t.Fatalf("got %+v, want the first event", e)
	}
	if mode, _ := c.subscribe(topic, start); mode != "resume" {
		t.Fatalf("subscribed again as %s", mode)
	}
	if e := c.next(); e.Position != pos {
		t.Fatalf("got %+v, want the first event again", e)
	}
	c.subscribe(other, "")
	c.send(request{ID: "t", Type: "sub", Topic: "{r1}:room:third:events"})
	if e := c.next(); e.OK {
		t.Fatalf("a third topic was allowed: %+v", e)
	}
	c.send(request{ID: "u", Type: "unsub", Topic: topic})
	if e := c.next(); e.ReplyTo != "u" {
		t.Fatalf("got %+v, want the reply to u", e)
	}
	emit(t, db, topic, "2")
	pos = emit(t, db, other, "1")
	if e := c.next(); e.Position != pos {
		t.Fatalf("got %+v, want the event of the other topic", e)
	}
	waitUntil(t, "the topic is evicted", func() bool { return n.Stats().Topics == 1 })
	waitUntil(t, "the channel is unsubscribed", func() bool {
		m, _ := db.Client.PubSubNumSub(t.Context(), topic).Result()
		return m[topic] == 0
	})
	if mode, _ := c.subscribe(topic, start); mode != "resume" {
		t.Fatalf("after the eviction: subscribed as %s", mode)
	}
	for want := range uint64(2) {
		if e := c.next(); e.Seq != want+1 {
			t.Fatalf("got %+v, want seq %d", e, want+1)
		}
	}
}
