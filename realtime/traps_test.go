package realtime

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// docs/traps.md lists what the tests of this file, and others, keep from coming back.

// melody's own ways to reach all sessions walk over every session under a lock, stop at the first
// that is closed, or call handlers in which the same lock is taken.
func TestMelodyCarriesSessionsAndRoutesNothing(t *testing.T) {
	entries := testkit.Must(os.ReadDir("."))(t)
	calls := 0
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file := testkit.Must(parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0))(t)
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if owner, ok := call.X.(*ast.SelectorExpr); ok && owner.Sel.Name == "melody" {
				if calls++; call.Sel.Name != "HandleRequestWithKeys" {
					t.Errorf("%s calls melody.%s", e.Name(), call.Sel.Name)
				}
			}
			if session, ok := call.X.(*ast.Ident); ok && session.Name == "ms" && strings.HasPrefix(call.Sel.Name, "Close") {
				t.Errorf("%s calls %s of a session: it returns nil when the close frame was dropped", e.Name(), call.Sel.Name)
			}
			return true
		})
	}
	if calls == 0 {
		t.Error("no call of melody was found: the test looks for the wrong name")
	}
}

// gorilla panics when two goroutines write, and a frame within a frame ends the connection.
func TestPingsRepliesAndEventsDoNotMixOnTheWire(t *testing.T) {
	t.Parallel()
	db := redistest.Single(t)
	topic := "{r1}:room:mix:events"
	n := startNode(t, db, Options{PingInterval: time.Millisecond}, Limits{
		MaxFrameBytes: 16 << 10, FramesPerSecond: 1 << 20, BurstFrames: 1 << 20, SendHello: true,
	})
	c := dial(t, n, "user=1")
	var pings atomic.Int64
	c.conn.SetPingHandler(func(data string) error {
		pings.Add(1)
		return c.conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(time.Second))
	})
	c.listen()
	c.subscribe(topic, "")
	pad := strings.Repeat("x", 6_000) // more than one write of the buffer
	for want := range uint64(60) {
		_ = c.conn.WriteControl(websocket.PingMessage, []byte("p"), time.Now().Add(time.Second))
		c.send(request{ID: "r", Payload: pad})
		emit(t, db, topic, pad)
		for events, replies := 0, 0; events < 1 || replies < 1; {
			switch e := c.next(); {
			case e.ReplyTo == "r":
				replies++
			case e.Type == testEvent && e.Seq == want+1:
				events++
			default:
				t.Fatalf("got %+v", e)
			}
		}
	}
	if pings.Load() == 0 || n.Stats().Panics != 0 {
		t.Errorf("%d pings, %d panics", pings.Load(), n.Stats().Panics)
	}
}

// melody calls HandleConnect before it reads and writes: what blocks there keeps the socket from
// returning pings.
func TestASlowOnOpenDelaysNoPongs(t *testing.T) {
	t.Parallel()
	n := startNode(t, redistest.Single(t), Options{})
	opened := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = n.socket.Serve(w, r, ClientOptions{UserID: 1, OnMessage: n.onMessage, OnRefused: n.onRefused, OnOpen: func(
			context.Context, *Client,
		) {
			<-opened
		}})
	}))
	defer server.Close()
	conn, _ := testkit.Must2(websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(server.URL, "http"), nil))(t)
	defer func() { _ = conn.Close() }()
	pong := make(chan struct{})
	conn.SetPongHandler(func(string) error { close(pong); return nil })
	read := make(chan error, 1)
	go func() {
		_, _, err := conn.ReadMessage() // hello
		read <- err
	}()
	testkit.Check(t, conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second)))
	select {
	case <-pong:
	case <-time.After(testTimeout):
		t.Error("no pong came while OnOpen ran")
	}
	close(opened)
	testkit.Report(t, <-read, "hello")
}

// A handler of melody's for close frames would take the place of gorilla's, which returns them.
func TestTheCloseFrameOfAClientIsReturned(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{})
	c := dial(t, n, "user=1").listen()
	c.next()
	_ = c.conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, "bye"))
	if code := c.waitCloseCode(); code != websocket.CloseNormalClosure {
		t.Errorf("closed with %d", code)
	}
	waitUntil(t, "the session has ended", func() bool { return n.Stats().Clients == 0 })
}

// go-redis' PubSub.Channel drops a message that nobody takes for a minute, with a line in the log.
// Here a worker that is behind blocks nobody, and what does not fit is read from the list.
func TestMessagesBeyondTheBacklogAreReadFromTheList(t *testing.T) {
	h := New(redistest.Single(t), Options{})
	topic := testkit.Must(h.acquireTopic("{r1}:room:backlog:events", nil))(t)
	sent := make(chan struct{})
	go func() { // no worker runs
		defer close(sent)
		for range workerBacklogMessages + 10 {
			h.dispatch(topic.name, "1-aaaaaaaa|room.joined|1|1|1|0|0|{}")
		}
	}()
	select {
	case <-sent:
	case <-time.After(testTimeout):
		t.Fatal("the connection to the store waits for a worker")
	}
	if got := h.counters.backlogOverflows.Load(); got != 10 {
		t.Errorf("%d messages did not fit", got)
	}
	topic.mu.Lock()
	defer topic.mu.Unlock()
	if topic.queuedJob == nil {
		t.Error("the list will not be read")
	}
}
