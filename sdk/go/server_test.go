package parlor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newNode(t *testing.T) *fakeNode {
	t.Helper()
	n := newFakeNode()
	t.Cleanup(n.close)
	return n
}

// isHeard reports whether a server has a subscription.
func (n *fakeNode) isHeard() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for s := range n.sockets {
		if s.isHeard {
			return true
		}
	}
	return false
}

// hearing is what a server has heard, by room.
type hearing struct {
	mu    sync.Mutex
	heard map[string][]int64
}

func (h *hearing) note(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.heard == nil {
		h.heard = map[string][]int64{}
	}
	h.heard[e.RoomID] = append(h.heard[e.RoomID], e.Seq)
}

func (h *hearing) count() (all int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range h.heard {
		all += len(one)
	}
	return all
}

// checkGapless fails unless each room was heard from 1 to its last event, without a repetition.
func (h *hearing) checkGapless(t failer) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for room, seqs := range h.heard {
		for i, seq := range seqs {
			if seq != int64(i)+1 {
				t.Fatalf("%s was heard as %v", room, seqs)
			}
		}
	}
}

// TestFaultsLoseNothingAndDoubleNothing makes up histories of events, cuts, repetitions, lost
// replies and restarts. Every event is heard once and in order while a process lives, and every
// change takes effect once, over all processes.
func TestFaultsLoseNothingAndDoubleNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := newFakeNode()
		defer n.close()
		positions := &keptPositions{}
		ever := map[string]bool{} // room and seq
		var everLock sync.Mutex
		var h *hearing
		begin := func() (stop func() error) {
			own := &hearing{}
			h = own
			s := newTestServer(t, n, positions)
			s.On("room.started", func(ctx context.Context, e Event) error {
				key := fmt.Sprintf("%s-%d", e.RoomID, e.Seq)
				if _, err := s.Finish(WithKey(ctx, key), e.RoomID, nil); err != nil {
					return err
				}
				own.note(e)
				everLock.Lock()
				defer everLock.Unlock()
				ever[key] = true
				return nil
			})
			return runServer(s)
		}
		stop := begin()
		waitFor(t, "the first subscription", n.isHeard)
		events := 0
		for _, step := range rapid.SliceOfN(rapid.SampledFrom([]string{
			"event", "event", "event", "cut", "repeat", "lose a reply", "refuse", "restart",
		}), 1, 30).Draw(t, "steps") {
			switch step {
			case "event":
				n.happen(fmt.Sprintf("room%d", rapid.IntRange(0, 2).Draw(t, "room")), "room.started")
				events++
			case "cut":
				n.cut()
			case "repeat":
				n.set(func() { n.repeat = rapid.IntRange(1, 3).Draw(t, "repeated") })
				n.cut()
			case "lose a reply":
				n.set(func() { n.loseReplies++ })
			case "refuse":
				n.set(func() { n.refuse = append(n.refuse, "store_unavailable") })
			case "restart":
				// Its first position is kept once the gap of the beginning was handled.
				waitFor(t, "a position", func() bool { return positions.of("e") != "" })
				if err := stop(); err != nil {
					t.Fatalf("Run returned %v", err)
				}
				if isRepeated(h) {
					t.Fatalf("heard twice by one process: %v", h.heard)
				}
				stop = begin()
			}
		}
		waitFor(t, "all events", func() bool {
			everLock.Lock()
			defer everLock.Unlock()
			return len(ever) == events
		})
		waitFor(t, "a position", func() bool { return positions.of("e") != "" })
		if err := stop(); err != nil {
			t.Fatalf("Run returned %v", err)
		}
		if isRepeated(h) {
			t.Fatalf("heard twice or out of order by one process: %v", h.heard)
		}
		if len(n.applied) != events {
			t.Fatalf("%d changes took effect for %d events: %v", len(n.applied), events, n.applied)
		}
		if got, want := positions.of("e"), fmt.Sprintf("%d-x", events); got != want {
			t.Fatalf("the position is %s, not %s", got, want)
		}
	})
}

// isRepeated reports whether a process heard an event twice, or out of order.
func isRepeated(h *hearing) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, seqs := range h.heard {
		for i := 1; i < len(seqs); i++ {
			if seqs[i] != seqs[i-1]+1 {
				return true
			}
		}
	}
	return false
}

func TestRoomsAreHandledSideBySideAndEachInOrder(t *testing.T) {
	n := newNode(t)
	s := newTestServer(t, n, nil)
	var h hearing
	slow := make(chan struct{})
	s.On("room.started", func(_ context.Context, e Event) error {
		if e.RoomID == "slow" {
			<-slow
		}
		h.note(e)
		return nil
	})
	start(t, s)
	waitFor(t, "a subscription", n.isHeard)
	for range 5 {
		n.happen("slow", "room.started")
		n.happen("fast", "room.started")
	}
	waitFor(t, "the fast room", func() bool { return h.count() == 5 })
	close(slow)
	waitFor(t, "the slow room", func() bool { return h.count() == 10 })
	h.checkGapless(t)
}

func TestAPositionIsSavedBehindHandledEventsOnly(t *testing.T) {
	n := newNode(t)
	positions := &keptPositions{}
	s := newTestServer(t, n, positions)
	release := make(chan struct{})
	s.On("room.started", func(_ context.Context, e Event) error {
		if e.RoomID == "a" {
			<-release
		}
		return nil
	})
	start(t, s)
	waitFor(t, "a subscription", n.isHeard)
	n.happen("b", "room.started")
	n.happen("a", "room.started")
	n.happen("b", "room.started")
	n.happen("b", "room.finished") // without a handler
	waitFor(t, "the first", func() bool { return positions.of("e") == "1-x" })
	close(release)
	waitFor(t, "the last", func() bool { return positions.of("e") == "4-x" })
	n.set(func() { n.publish(map[string]any{"type": "game.position", "feed": "e", "position": "700-x"}) })
	waitFor(t, "what others got", func() bool { return positions.of("e") == "700-x" })
}

func TestAHandlerThatFailsIsCalledAgain(t *testing.T) {
	n := newNode(t)
	positions := &keptPositions{}
	s := newTestServer(t, n, positions)
	var calls, others atomic.Int64
	s.On("room.started", func(_ context.Context, e Event) error {
		if e.RoomID == "other" {
			others.Add(1)
			return nil
		}
		if calls.Add(1) < 3 || e.RoomID == "hopeless" {
			return errors.New("not yet")
		}
		return nil
	})
	start(t, s)
	waitFor(t, "a subscription", n.isHeard)
	n.happen("room", "room.started")
	n.happen("other", "room.started")
	waitFor(t, "both", func() bool { return positions.of("e") == "2-x" })
	if calls.Load() != 3 || others.Load() != 1 {
		t.Errorf("called %d and %d times", calls.Load(), others.Load())
	}
	n.happen("hopeless", "room.started")
	waitFor(t, "the end of patience", func() bool { return positions.of("e") == "3-x" })
	if calls.Load() != 3+maxAttempts {
		t.Errorf("called %d times", calls.Load())
	}
}

func TestCallsAreAnswered(t *testing.T) {
	n := newNode(t)
	s := newTestServer(t, n, nil)
	s.OnCall("double", func(_ context.Context, c Call) (any, error) {
		var x int
		if err := c.Decode(&x); err != nil {
			return nil, &Error{"bad_number", "send a number"}
		}
		return map[string]int64{"x": int64(2 * x), "from": c.From}, nil
	})
	s.OnCall("break", func(context.Context, Call) (any, error) { return nil, errors.New("a secret of the server") })
	start(t, s)
	waitFor(t, "a subscription", n.isHeard)
	for _, c := range []struct{ op, payload, want string }{
		{"double", "21", `{"from":7,"x":42}`},
		{"double", `"x"`, "bad_number: send a number"},
		{"break", "1", "internal: "},
		{"fly", "1", "unknown_op: the server has no operation fly"},
	} {
		n.set(func() {
			n.publish(map[string]any{"type": "room.call", "roomId": "r", "at": time.Now(), "data": map[string]any{
				"callId": "c1", "from": 7, "op": c.op, "payload": jsonText(c.payload),
			}})
		})
		got := <-n.answered
		text := string(got.Payload)
		if got.Error != nil {
			text = got.Error.Code + ": " + got.Error.Detail
		}
		if got.CallID != "c1" || text != c.want {
			t.Errorf("%s(%s) is %s, want %s", c.op, c.payload, text, c.want)
		}
	}
}

func TestAChangeTakesEffectOnceWhateverHappens(t *testing.T) {
	n := newNode(t)
	s := newTestServer(t, n, nil)
	n.loseReplies, n.refuse = 2, []string{"store_unavailable", "rate_limited"}
	start(t, s)
	room, err := s.Start(t.Context(), "r")
	if err != nil || room.Version != 1 {
		t.Fatalf("Start returned %+v, %v", room, err)
	}
	version, err := s.SetState(WithKey(t.Context(), "mine"), "r", StateChange{Version: 1, Patch: map[string]any{"x": 1}})
	if err != nil || version != 2 {
		t.Fatalf("SetState returned %d, %v", version, err)
	}
	if again, err := s.SetState(WithKey(t.Context(), "mine"), "r", StateChange{}); err != nil || again != version {
		t.Errorf("the same key is version %d, %v", again, err)
	}
	if err := s.SetTurn(t.Context(), "r", 7, 30); err != nil {
		t.Error(err)
	}
	if _, err := s.Cancel(t.Context(), "r"); err != nil {
		t.Error(err)
	}
	if err := s.Send(t.Context(), "r", "hi", nil, 7); err != nil {
		t.Error(err)
	}
	err = s.Message(t.Context(), 7, "hi", nil)
	if err != nil || n.requests[len(n.requests)-1]["path"] != "/api/v1/admin/users/7/messages" {
		t.Errorf("Message: %v after %v", err, n.requests)
	}
	want := []string{"room.start", "room.state.set mine", "room.turn.set", "room.cancel"}
	if !slices.EqualFunc(n.applied, want, strings.HasPrefix) {
		t.Errorf("applied %v", n.applied)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Start(ctx, "r"); !errors.Is(err, context.Canceled) {
		t.Errorf("without time: %v", err)
	}
}

func TestWhatWaitsIsRefusedWhenRunEnds(t *testing.T) {
	n := newNode(t)
	s := newTestServer(t, n, nil)
	n.refuse = slices.Repeat([]string{"store_unavailable"}, maxRefusals)
	stop := runServer(s)
	problem := (*Problem)(nil)
	if _, err := s.Start(t.Context(), "r"); !errors.As(err, &problem) || problem.Code != "store_unavailable" {
		t.Errorf("refused again and again: %v", err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := s.Start(t.Context(), "r"); !errors.Is(err, ErrEnded) {
		t.Errorf("after the end: %v", err)
	}
	if s.Run(t.Context()) == nil {
		t.Error("Run can be called twice")
	}
}

func TestAfterAGapTheRoomsAreReadAnew(t *testing.T) {
	n := newNode(t)
	n.rooms[Started] = []Room{{RoomID: "a", Status: Started}, {RoomID: "b", Status: Started}}
	positions := &keptPositions{}
	s := newTestServer(t, n, positions)
	var mu sync.Mutex
	var found []string
	s.OnRoom(func(_ context.Context, room Room) error {
		mu.Lock()
		defer mu.Unlock()
		found = append(found, room.RoomID)
		return nil
	})
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(found)
	}
	start(t, s)
	waitFor(t, "the rooms at the beginning", func() bool { return count() == 2 && positions.of("e") == "0-x" })
	n.cut()
	n.happen("a", "room.started")
	waitFor(t, "a resume", func() bool { return positions.of("e") == "1-x" })
	if count() != 2 {
		t.Errorf("a resume reads rooms anew: %v", found)
	}
	n.forget()
	n.happen("b", "room.finished")
	n.forget()
	n.set(func() { n.publish(map[string]any{"type": "game.gap", "feed": "e", "position": "2-x"}) })
	waitFor(t, "the rooms after game.gap", func() bool { return count() == 4 && positions.of("e") == "2-x" })
}

func TestALostPositionIsAGap(t *testing.T) {
	n := newNode(t)
	n.rooms[Created] = []Room{{RoomID: "a"}}
	positions := &keptPositions{value: map[string]string{"e": "900-y"}} // of another store
	s := newTestServer(t, n, positions)
	var gaps, heard atomic.Int64
	s.OnGap(func(context.Context) error {
		if gaps.Add(1) == 1 {
			return errors.New("not yet")
		}
		return nil
	})
	s.On("room.started", func(context.Context, Event) error { heard.Add(1); return nil })
	start(t, s)
	waitFor(t, "the gap", func() bool { return gaps.Load() == 2 && positions.of("e") == "0-x" })
	n.happen("a", "room.started")
	waitFor(t, "an event with a lower number", func() bool { return heard.Load() == 1 && positions.of("e") == "1-x" })
}

func TestAServerThatIsFloodedAsksForTheRestLater(t *testing.T) {
	n := newNode(t)
	s := newTestServer(t, n, nil)
	var h hearing
	release := make(chan struct{})
	s.On("room.started", func(_ context.Context, e Event) error {
		<-release
		h.note(e)
		return nil
	})
	start(t, s)
	waitFor(t, "a subscription", n.isHeard)
	const many = maxWaitingTasks + 3000
	n.set(func() {
		for i := range many {
			n.entries = append(n.entries, Event{
				Type: "room.started", Feed: "e", Position: fmt.Sprintf("%d-x", i+1), RoomID: fmt.Sprint("room", i%10),
				Seq: int64(i/10) + 1, Data: []byte(`{}`),
			})
		}
	})
	n.cut() // the resume has all of them
	waitFor(t, "a full memory", s.lanes.isFull)
	close(release)
	waitFor(t, "the rest", func() bool { return h.count() == many })
	h.checkGapless(t)
}

func TestSomeEndsAreForGood(t *testing.T) {
	for code, advice := range map[int]string{4001: "make a new one", 4403: "operator", 4426: "newer version"} {
		n := newNode(t)
		n.closeWith = code
		err := newTestServer(t, n, nil).Run(t.Context())
		closed := (*CloseError)(nil)
		if !errors.As(err, &closed) || closed.Code != code || !strings.Contains(closed.Advice, advice) {
			t.Errorf("%d: %v", code, err)
		}
	}
	n := newNode(t)
	s := newTestServer(t, n, nil)
	s.options.Key = "another"
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "unauthenticated") {
		t.Errorf("a wrong key: %v", err)
	}
	n.closeWith = 1012
	start(t, newTestServer(t, n, nil))
	waitFor(t, "it came back", n.isHeard)
}

func TestANodeThatStopsIsLeft(t *testing.T) {
	n := newNode(t)
	s := newTestServer(t, n, nil)
	s.backoff = func(int) time.Duration { return time.Hour }
	start(t, s)
	waitFor(t, "a subscription", n.isHeard)
	n.set(func() {
		n.publish(map[string]any{"type": "server.draining", "data": map[string]any{"reconnectInMs": 5}})
		for one := range n.sockets {
			one.isHeard = false
		}
	})
	waitFor(t, "another connection", n.isHeard)
}

func TestAWatchedRoomIsHeardUntilItEnds(t *testing.T) {
	n := newNode(t)
	s := newTestServer(t, n, nil)
	heard := make(chan string, 8)
	for _, kind := range []string{"room.message", "room.started", "room.finished"} {
		s.On(kind, func(context.Context, Event) error { heard <- kind; return nil })
	}
	start(t, s)
	if err := s.Send(t.Context(), "r", "hi", nil); err != nil { // it waits for the connection
		t.Fatal(err)
	}
	if err := s.WatchRoom(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	n.cut()
	count := func() int {
		n.mu.Lock()
		defer n.mu.Unlock()
		return len(n.watches)
	}
	waitFor(t, "the subscription after a cut", func() bool { return count() == 2 })
	n.set(func() {
		n.publish(map[string]any{"type": "room.started", "roomId": "r", "seq": 1}) // of the room's own list
		n.publish(map[string]any{"type": "room.message", "roomId": "r", "data": map[string]any{"op": "hi"}})
	})
	waitFor(t, "an event", func() bool { return len(heard) > 0 })
	if first := <-heard; first != "room.message" {
		t.Errorf("heard %s, which the feed has", first)
	}
	n.happen("r", "room.finished")
	waitFor(t, "the end", func() bool { return count() == 3 })
	want := []string{
		`room.subscribe {"roomId":"r"}`, `room.subscribe {"rooms":[{"roomId":"r"}]}`, `room.unsubscribe {"roomId":"r"}`,
	}
	if !slices.Equal(n.watches, want) {
		t.Errorf("subscribed as %v", n.watches)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{
		{},
		{URL: "parlor.example", Key: "k"},
		{URL: "ws://parlor.example", Key: "k"},
		{URL: "http://parlor.example"},
		{URL: "http://parlor.example", Key: "k", Share: &Share{Of: 2, Index: 2}},
		{URL: "http://parlor.example", Key: "k", Share: &Share{Of: 65}},
	} {
		if _, err := NewServer(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

func TestAServerHearsTheKindsOfItsHandlers(t *testing.T) {
	s, err := NewServer(Options{URL: "http://parlor.example", Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	for _, eventType := range []string{"room.joined", "room.started", "tournament.started", "room.left"} {
		s.On(eventType, func(context.Context, Event) error { return nil })
	}
	if got := s.kinds(); !slices.Equal(got, []string{"rooms", "seats", "tournaments"}) {
		t.Errorf("it asks for %v", got)
	}
	s.options.Kinds = []string{"money"}
	if got := s.kinds(); !slices.Equal(got, []string{"money"}) {
		t.Errorf("with kinds it asks for %v", got)
	}
}

func TestSharesDivideTheRooms(t *testing.T) {
	// CRC-32C of the text, as RFC 3720 has it for "123456789".
	if got := ShareOf("123456789", 64); got != 0xE3069283%64 {
		t.Errorf("got %d", got)
	}
	n := newNode(t)
	for i := range 10 {
		n.rooms[Started] = append(n.rooms[Started], Room{RoomID: fmt.Sprint("room", i)})
	}
	all := 0
	for index := range 3 {
		s := newTestServer(t, n, nil)
		s.options.Share = &Share{3, index}
		rooms, err := s.Rooms(t.Context(), Started)
		if err != nil {
			t.Fatal(err)
		}
		all += len(rooms)
		s.client.CloseIdleConnections()
	}
	if all != 10 {
		t.Errorf("three shares have %d of 10 rooms", all)
	}
}

func TestPositionsInAFileOutliveTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "positions.json")
	positions := FilePositions(path)
	if saved, err := positions.Load(t.Context()); err != nil || len(saved) != 0 {
		t.Fatalf("a new file has %v, %v", saved, err)
	}
	for _, position := range []string{"1-a", "2-b"} {
		if err := positions.Save(t.Context(), map[string]string{"e": position}); err != nil {
			t.Fatal(err)
		}
	}
	if saved, err := positions.Load(t.Context()); err != nil || saved["e"] != "2-b" {
		t.Errorf("loaded %v, %v", saved, err)
	}
	if files, _ := os.ReadDir(filepath.Dir(path)); len(files) != 1 {
		t.Errorf("left over: %v", files)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := positions.Load(t.Context()); err == nil {
		t.Error("a broken file is read")
	}
}

type jsonText string

func (j jsonText) MarshalJSON() ([]byte, error) { return []byte(j), nil }
