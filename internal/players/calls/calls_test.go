package calls_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/calls"
	"github.com/parlor-games/parlor/internal/players/servers"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/realtime"
	"github.com/parlor-games/parlor/tests/testkit"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	code := redistest.Main(m)
	// A command that its server did not answer is sent again for a while.
	const batch = "github.com/parlor-games/parlor/internal/store/redisdb.(*batchQueue).send"
	const again = "github.com/parlor-games/parlor/internal/store/redisdb.clusterPipelines.sendLost.func1"
	if err := goleak.Find(goleak.IgnoreAnyFunction(batch), goleak.IgnoreAnyFunction(again)); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// node is the calls of one node, with the servers that are connected to it.
type node struct {
	*calls.Service
	t       testing.TB
	servers *servers.Service
	refused atomic.Int64 // replies of servers
	end     func()       // stops the node as a kill does: nothing is removed from the store

	mu       sync.Mutex
	outcomes map[string]int
}

func startNode(t testing.TB, db *redisdb.DB, name string) *node {
	t.Helper()
	n := &node{t: t, outcomes: map[string]int{}}
	channel := keys.NodeChannel(name)
	hub := realtime.New(db, realtime.Options{})
	n.servers = servers.New(db, servers.Options{Channel: channel})
	n.Service = calls.New(hub, n.servers, calls.Options{
		Channel:        channel,
		ObserveRefused: func() { n.refused.Add(1) },
		Observe: func(outcome string, _ time.Duration) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.outcomes[outcome]++
		},
	})
	testkit.Check(t, hub.Receive(channel, n.Receive), "receive")
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, run := range []func(context.Context) error{hub.Run, n.servers.Run, n.Run} {
		all.Go(func() { _ = run(ctx) })
	}
	n.end = sync.OnceFunc(func() { cancel(); all.Wait() })
	t.Cleanup(n.end)
	redistest.Eventually(t, "the node receives its channel", func() bool {
		got := make(chan int64, 1)
		err := hub.Post(t.Context(), channel, []byte("nothing"), func(nodes int64, _ error) { got <- nodes })
		return err == nil && <-got == 1
	})
	return n
}

func (n *node) count(outcome string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.outcomes[outcome]
}

// idle waits until a node keeps nothing of calls.
func (n *node) idle(t testing.TB) {
	t.Helper()
	redistest.Eventually(t, "the node keeps no call", func() bool {
		s := n.Stats()
		return s.Waiting == 0 && s.Asked == 0 && s.Callers == 0
	})
}

// heard is a call as a server has got it.
type heard struct {
	Type   string `json:"type"`
	RoomID string `json:"roomId"`
	Data   struct {
		CallID  string       `json:"callId"`
		From    int64        `json:"from"`
		Op      string       `json:"op"`
		Payload wire.RawJSON `json:"payload"`
	} `json:"data"`
}

// server is a connection of a game's server.
type server struct {
	node   *node
	id     string
	answer func(heard) *calls.Answer // nil: none

	mu    sync.Mutex
	heard []heard
	full  bool // it takes nothing
}

func (s *server) ID() string { return s.id }

func (s *server) Offer(text []byte) bool {
	var h heard
	testkit.Check(s.node.t, wire.Unmarshal(text, &h), "read a call")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full {
		return false
	}
	s.heard = append(s.heard, h)
	if a := s.answer; a != nil {
		if answer := a(h); answer != nil {
			answer.CallID = h.Data.CallID
			go func() { _ = s.node.Reply(s.id, *answer) }()
		}
	}
	return true
}

func (s *server) calls() []heard {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.heard)
}

// waitFor waits until the server has got some calls, and returns them.
func (s *server) waitFor(t testing.TB, count int) []heard {
	t.Helper()
	redistest.Eventually(t, fmt.Sprint("the server has ", count, " calls"), func() bool { return len(s.calls()) >= count })
	return s.calls()
}

func (n *node) connect(gameID int64, id string, answer func(heard) *calls.Answer) *server {
	n.t.Helper()
	s := &server{node: n, id: id, answer: answer}
	n.OpenServer(s, 1_000_000, 1_000_000)
	n.servers.Open(gameID, id)
	testkit.Check(n.t, n.servers.Listen(n.t.Context(), id, servers.Share{Of: 1}), "listen")
	return s
}

func (s *server) disconnect() {
	s.node.servers.Close(s.id)
	s.node.CloseServer(s.id)
}

func echo(h heard) *calls.Answer { return &calls.Answer{Payload: h.Data.Payload} }

// result is how a call ended.
type result struct {
	payload string
	err     error
}

func (r result) String() string {
	if apiErr, ok := apierror.As(r.err); ok {
		return strings.TrimSpace(fmt.Sprint(apiErr.Code, " ", apiErr.ExtraMembers["gameCode"]))
	}
	if r.err != nil {
		return r.err.Error()
	}
	return r.payload
}

// start starts a call, and returns where it ends.
func start(t testing.TB, c *calls.Caller, call calls.Call) <-chan result {
	t.Helper()
	ended := make(chan result, 2)
	if call.Timeout == 0 {
		call.Timeout = calls.DefaultTimeout
	}
	call.RoomID, call.UserID, call.GameID = "room", 7, max(1, call.GameID)
	err := c.Start(t.Context(), call, func(payload wire.RawJSON, err error) { ended <- result{string(payload), err} })
	if err != nil {
		ended <- result{"", err}
	}
	return ended
}

func want(t testing.TB, ended <-chan result, text string) {
	t.Helper()
	select {
	case r := <-ended:
		if r.String() != text {
			t.Errorf("the call ended with %q, want %q", r, text)
		}
	case <-time.After(10 * time.Second):
		t.Errorf("the call did not end, want %q", text)
	}
}

func TestACallReachesTheServerOnAnyNodeAndItsAnswerComesBack(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		a, b := startNode(t, db, "a"), startNode(t, db, "b")
		caller := a.NewCaller("caller")
		want(t, start(t, caller, calls.Call{Op: "move"}), "no_server <nil>")
		refuse := func(h heard) *calls.Answer {
			switch h.Data.Op {
			case "refuse":
				return &calls.Answer{Code: "not_your_turn", Detail: "wait | wait"}
			case "empty":
				return &calls.Answer{}
			default:
				return echo(h)
			}
		}
		far := b.connect(1, "far", refuse)
		redistest.Eventually(t, "node a knows the server", func() bool {
			return (<-start(t, caller, calls.Call{Op: "move"})).err == nil
		})
		for range 2 {
			want(t, start(t, caller, calls.Call{Op: "move", Payload: wire.RawJSON(`{"a|b":[1,"|"]}`)}), `{"a|b":[1,"|"]}`)
			want(t, start(t, caller, calls.Call{Op: "empty"}), `null`)
			r := <-start(t, caller, calls.Call{Op: "refuse"})
			if e, ok := apierror.As(r.err); !ok || r.String() != "game_error not_your_turn" || e.Detail != "wait | wait" {
				t.Errorf("the error is %v", r.err)
			}
			far.disconnect()
			far = a.connect(1, "near", refuse) // the same on the caller's own node
			redistest.Eventually(t, "node a knows the server", func() bool {
				return (<-start(t, caller, calls.Call{Op: "move"})).err == nil
			})
		}
		first := far.calls()[0]
		if first.Type != "room.call" || first.RoomID != "room" || first.Data.From != 7 || first.Data.Op != "move" {
			t.Errorf("the server gets %+v", first)
		}
		want(t, start(t, caller, calls.Call{GameID: 2}), "no_server <nil>")
		a.idle(t)
		b.idle(t)
	})
}

func TestOneCallersCallsKeepTheirOrderAndNoneComesTwice(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		a, b := startNode(t, db, "a"), startNode(t, db, "b")
		s := b.connect(1, "server", echo)
		a.wantKnown()
		var loses atomic.Bool
		redistest.LoseReplies(db, func() bool { return loses.Swap(false) })
		const callers, count = 5, 200
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				caller := a.NewCaller(fmt.Sprint("caller", i))
				defer caller.Close()
				waiting := make(chan (<-chan result), calls.MaxPerCaller-1)
				done := make(chan struct{})
				go func() {
					defer close(done)
					for ended := range waiting {
						<-ended
					}
				}()
				for n := range count {
					if n%20 == 0 {
						loses.Store(true) // a reply is lost, so that the message is published again
					}
					waiting <- start(t, caller, calls.Call{
						Op: "n", Payload: wire.RawJSON(strconv.Itoa(i*count + n)), Timeout: calls.MinTimeout * 5,
					})
				}
				close(waiting)
				<-done
			})
		}
		all.Wait()
		last := map[int]int{}
		for _, h := range s.calls() {
			if h.Data.Op != "n" {
				continue
			}
			number := testkit.Must(strconv.Atoi(string(h.Data.Payload)))(t)
			if before, ok := last[number/count]; ok && before >= number {
				t.Fatalf("call %d came after %d", number, before)
			}
			last[number/count] = number
		}
		if len(last) != callers {
			t.Errorf("the server heard %d callers", len(last))
		}
		a.idle(t)
		b.idle(t)
	})
}

// wantKnown waits until the node has a server for the room of game 1.
func (n *node) wantKnown() {
	n.t.Helper()
	redistest.Eventually(n.t, "a server is known", func() bool {
		_, err := n.servers.Find(n.t.Context(), 1, "room")
		return err == nil
	})
}

func TestAnAnswerIsTakenOnceInTimeAndOfTheServerThatWasAsked(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		a, b := startNode(t, db, "a"), startNode(t, db, "b")
		s := b.connect(1, "asked", nil)
		other, foreign := b.connect(1, "other", nil), a.connect(2, "foreign", nil)
		a.wantKnown()
		caller := a.NewCaller("caller")
		ended := start(t, caller, calls.Call{Op: "one"})
		id := s.waitFor(t, 1)[0].Data.CallID
		reply := func(n *node, by, call string) error {
			return n.Reply(by, calls.Answer{CallID: call, Payload: wire.RawJSON(`"` + by + `"`)})
		}
		for _, forged := range []error{
			reply(b, other.id, id), reply(a, foreign.id, id), reply(b, foreign.id, id), reply(a, s.id, id),
			reply(b, s.id, id+"0"), reply(b, "nobody", id), reply(b, s.id, ""),
		} {
			if !errors.Is(forged, apierror.CallNotFound) {
				t.Errorf("a forged answer is %v", forged)
			}
		}
		testkit.Check(t, reply(b, s.id, id), "answer")
		want(t, ended, `"asked"`)
		if err := reply(b, s.id, id); !errors.Is(err, apierror.CallNotFound) {
			t.Errorf("a second answer is %v", err)
		}
		ended = start(t, caller, calls.Call{Op: "late", Timeout: calls.MinTimeout})
		late := s.waitFor(t, 2)[1].Data.CallID
		want(t, ended, "server_timeout <nil>")
		redistest.Eventually(t, "the time is over for the server, too", func() bool {
			return errors.Is(reply(b, s.id, late), apierror.CallNotFound)
		})
		if have := a.refused.Load() + b.refused.Load(); have < 9 {
			t.Errorf("%d refused answers are counted", have)
		}
		for _, invalid := range []calls.Answer{
			{Code: "Upper"},
			{Code: strings.Repeat("a", 41)},
			{Code: "a", Detail: strings.Repeat("a", 513)},
			{Payload: wire.RawJSON(`"` + strings.Repeat("a", 8<<10) + `"`)},
			{Payload: wire.RawJSON(`1e999`)},
		} {
			if err := b.Reply(s.id, invalid); err == nil || errors.Is(err, apierror.CallNotFound) {
				t.Errorf("the answer %.50v is %v", invalid, err)
			}
		}
		a.idle(t)
		b.idle(t)
	})
}

func TestCallsEndWithTheConnectionOfTheServer(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		a, b := startNode(t, db, "a"), startNode(t, db, "b")
		caller := a.NewCaller("caller")
		for _, n := range []*node{b, a} {
			s := n.connect(1, "server", nil)
			a.wantKnown()
			begun := time.Now()
			first := start(t, caller, calls.Call{Timeout: calls.MaxTimeout})
			second := start(t, caller, calls.Call{Timeout: calls.MaxTimeout})
			s.waitFor(t, 2)
			s.disconnect()
			want(t, first, "server_timeout <nil>")
			want(t, second, "server_timeout <nil>")
			if waited := time.Since(begun); waited > 5*time.Second {
				t.Errorf("the calls ended after %v", waited)
			}
			// The node may still think that it is there: then the call reaches nobody.
			want(t, start(t, caller, calls.Call{}), "no_server <nil>")
		}
		if gone := a.count("server_gone"); gone != 4 {
			t.Errorf("%d calls ended with their server", gone)
		}
		a.idle(t)
		b.idle(t)
	})
}

func TestACallToAKilledNodeEndsAtOnceAndTheNextOneReachesAnotherServer(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		a := startNode(t, db, "a")
		// The lease of a node that nobody has heard of since: it is older than the others.
		lease := fmt.Sprintf("%s|1|1|0|%d|0", keys.NodeChannel("killed"), time.Now().Add(time.Minute).UnixMilli())
		testkit.Must(db.Client.HSet(t.Context(), keys.GameServers(1), "dead", lease).Result())(t)
		a.connect(1, "alive", echo)
		caller := a.NewCaller("caller")
		begun := time.Now()
		redistest.Eventually(t, "the call reaches nobody", func() bool {
			return (<-start(t, caller, calls.Call{Timeout: calls.MaxTimeout})).String() == "no_server <nil>"
		})
		want(t, start(t, caller, calls.Call{Payload: wire.RawJSON(`1`)}), "1")
		if waited := time.Since(begun); waited > 5*time.Second {
			t.Errorf("it took %v", waited)
		}
		a.idle(t)
	})
}

func TestASlowServerRefusesCallsAndIsNotClosed(t *testing.T) {
	db := redistest.Single(t)
	a, b := startNode(t, db, "a"), startNode(t, db, "b")
	s := b.connect(1, "server", echo)
	a.wantKnown()
	caller := a.NewCaller("caller")
	s.mu.Lock()
	s.full = true
	s.mu.Unlock()
	want(t, start(t, caller, calls.Call{Op: "x"}), "no_server <nil>")
	s.mu.Lock()
	s.full = false
	s.mu.Unlock()
	want(t, start(t, caller, calls.Call{Op: "x", Payload: wire.RawJSON("2")}), "2") // it is not avoided for that
	if a.count("server_busy") != 1 {
		t.Error("the refused call is not counted as such")
	}
	b.idle(t)
}

func TestACallerHasSixteenCallsAndLeavesNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		a, b := startNode(t, db, "a"), startNode(t, db, "b")
		s := b.connect(1, "server", nil)
		a.wantKnown()
		caller := a.NewCaller("caller")
		for range calls.MaxPerCaller {
			start(t, caller, calls.Call{Timeout: calls.MaxTimeout})
		}
		want(t, start(t, caller, calls.Call{}), "rate_limited <nil>")
		want(t, start(t, a.NewCaller("other"), calls.Call{Timeout: calls.MinTimeout}), "server_timeout <nil>")
		id := s.waitFor(t, calls.MaxPerCaller+1)[0].Data.CallID
		caller.Close()
		if left := a.count("caller_left"); left != calls.MaxPerCaller || a.Stats().Waiting != 0 {
			t.Errorf("%d calls ended with their caller, %d wait", left, a.Stats().Waiting)
		}
		testkit.Check(t, b.Reply(s.id, calls.Answer{CallID: id}), "answer") // to nobody
		redistest.Eventually(t, "the answer is counted", func() bool { return a.refused.Load() == 1 })
		// A caller that is closed asks nobody, and gets nothing.
		ended := start(t, caller, calls.Call{Op: "after"})
		s.disconnect()
		b.idle(t)
		if len(ended) != 0 || a.Stats().Waiting != 0 {
			t.Error("a caller that is gone has a call")
		}
	})
}

func TestAPlayerWithoutASocketAsksTheServer(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		a, b := startNode(t, db, "a"), startNode(t, db, "b")
		var silent atomic.Bool
		s := b.connect(1, "server", func(h heard) *calls.Answer {
			if silent.Load() {
				return nil
			}
			return echo(h)
		})
		a.wantKnown()
		ask := func(ctx context.Context, n int) (string, error) {
			payload, err := a.Ask(ctx, t.Context(), calls.Call{
				GameID: 1, RoomID: "room", UserID: 9, Op: "x", Payload: wire.RawJSON(strconv.Itoa(n)),
				Timeout: calls.DefaultTimeout,
			})
			return string(payload), err
		}
		var all sync.WaitGroup
		for n := range 200 {
			if n%(calls.MaxPerCaller-1) == 0 {
				all.Wait()
			}
			all.Go(func() {
				if payload, err := ask(t.Context(), n); err != nil || payload != strconv.Itoa(n) {
					t.Errorf("the answer to %d is %s, %v", n, payload, err)
				}
			})
		}
		all.Wait()
		silent.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		before := len(s.calls())
		all.Go(func() {
			if _, err := ask(ctx, 0); !errors.Is(err, context.Canceled) {
				t.Errorf("a caller who left got %v", err)
			}
		})
		s.waitFor(t, before+1)
		cancel()
		all.Wait()
		a.asksNobody(t)
	})
}

// asksNobody checks that a node waits for nothing.
func (n *node) asksNobody(t testing.TB) {
	t.Helper()
	if s := n.Stats(); s.Waiting != 0 || s.Callers != 0 {
		t.Errorf("the node keeps %+v", s)
	}
}

// What another node sends is not of the test's own node, so it is made here.
func TestAServerIsAskedOnceInOrderAndAnswersInTime(t *testing.T) {
	db := redistest.Single(t)
	b := startNode(t, db, "b")
	s := b.connect(1, "server", nil)
	receive := func(number, timeoutMS int) (callID string) {
		callID = fmt.Sprint("id", number)
		b.Receive(fmt.Sprintf(`c|%s|server|nobody|caller|%d|%d|{"type":"room.call","data":{"op":"%d"}}`,
			callID, number, timeoutMS, number))
		return callID
	}
	for _, number := range []int{1, 1, 2, 1, 2, 5, 4, 6} {
		receive(number, 5000)
	}
	var heard []string
	for _, h := range s.calls() {
		heard = append(heard, h.Data.Op)
	}
	if !slices.Equal(heard, []string{"1", "2", "5", "6"}) {
		t.Errorf("the server heard %v", heard)
	}

	late, asked := receive(7, 1), time.Now()
	redistest.Eventually(t, "the time is over", func() bool { return time.Since(asked) > 2*time.Millisecond })
	if err := b.Reply(s.id, calls.Answer{CallID: late}); !errors.Is(err, apierror.CallNotFound) {
		t.Errorf("an answer that is late gets %v", err)
	}
}

func TestACallThatAServerDoesNotTakeIsNotItsToAnswer(t *testing.T) {
	a := startNode(t, redistest.Single(t), "a")
	caller := a.NewCaller("caller")
	defer caller.Close()
	full := a.connect(1, "full", nil)
	full.full = true
	want(t, start(t, caller, calls.Call{Op: "x"}), "no_server <nil>")
	if s := a.Stats(); s.Asked != 0 {
		t.Errorf("the server may answer %d calls that it did not get", s.Asked)
	}
	full.disconnect()

	paced := a.connect(2, "paced", echo)
	a.OpenServer(paced, 1, 2)
	for _, answer := range []string{"1", "1", "no_server <nil>"} {
		want(t, start(t, caller, calls.Call{GameID: 2, Op: "x", Payload: wire.RawJSON("1")}), answer)
	}
	if have := a.count("server_busy"); have != 2 {
		t.Errorf("%d calls found a busy server", have)
	}
}

func TestMessagesOfAnUnknownFormAreDropped(t *testing.T) {
	db := redistest.Single(t)
	a := startNode(t, db, "a")
	s := a.connect(1, "server", nil)
	for _, text := range []string{
		"", "c", "c|", "x|y", "a|b|c", "c|id|server|channel|caller|x|100|{}", "c|id|server|channel|caller|1|0|{}",
		"c|id|server|channel|caller|1|-5|{}", "a|id|answered|", "c|id|server|channel|caller|1|99999999999|{}",
	} {
		a.Receive(text)
	}
	if len(s.calls()) != 0 {
		t.Errorf("the server heard %v", s.calls())
	}
}
