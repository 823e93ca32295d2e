package story

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
)

// follower is a player's socket. It follows a tournament, a leaderboard and what is for the player
// alone. Each time that it is cut it comes back on the other node, after the last events that it
// has.
type follower struct {
	f          *fixture
	who        player
	tournament int64
	board      string
	done       chan struct{}

	mu       sync.Mutex
	conn     *websocket.Conn
	connects int
	replies  int // to what the newest connection has asked for
	stopped  bool
	received map[stream][]socketMessage
	faults   []string
}

// stream is events that have an order.
type stream string

const (
	ofTournament stream = "tournament"
	ofMoney      stream = "money"
	ofProgress   stream = "progress" // saves and matches
	ofBoard      stream = "board"    // states, without numbers
)

// streamOf returns the stream of an event, "" for one that has no order.
func streamOf(eventType string) stream {
	kind, _, _ := strings.Cut(eventType, ".")
	switch {
	case eventType == "user.match" || eventType == "user.progress":
		return ofProgress
	case kind == "user":
		return ofMoney
	case kind == "tournament":
		return ofTournament
	case kind == "board":
		return ofBoard
	}
	return ""
}

// follow returns a follower, which is stopped when the test ends.
func (f *fixture) follow(p player, tournament int64, board string) *follower {
	f.t.Helper()
	w := &follower{
		f: f, who: p, tournament: tournament, board: board, done: make(chan struct{}),
		received: map[stream][]socketMessage{},
	}
	go w.run()
	f.t.Cleanup(func() {
		w.mu.Lock()
		w.stopped = true
		w.mu.Unlock()
		w.cut()
		<-w.done
	})
	w.waitConnected()
	return w
}

func (w *follower) run() {
	defer close(w.done)
	_ = redistest.Poll(time.Hour, func() error {
		w.mu.Lock()
		stopped := w.stopped
		w.mu.Unlock()
		if stopped {
			return nil
		}
		w.receive()
		return errors.New("the connection was lost")
	})
}

// receive connects to the next node, and receives until the connection is lost.
func (w *follower) receive() {
	conn, err := dial(context.Background(), w.f.nodes[w.connections()%len(w.f.nodes)], "/api/v1/realtime", w.who)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	w.mu.Lock()
	w.conn, w.replies = conn, 0
	w.connects++
	after := map[string]any{"money": w.position(ofMoney), "progress": w.position(ofProgress)}
	tournament := map[string]any{"tournamentId": w.tournament, "after": w.position(ofTournament)}
	w.mu.Unlock()
	for i, m := range []map[string]any{
		{"type": "user.subscribe", "data": map[string]any{"after": after}},
		{"type": "tournament.subscribe", "data": tournament},
		{"type": "board.subscribe", "data": map[string]any{"board": w.board, "top": 10, "around": 3}},
	} {
		m["id"] = fmt.Sprint(i)
		if conn.WriteJSON(m) != nil {
			return
		}
	}
	for {
		batch, err := readFrame(conn)
		if err != nil {
			return
		}
		w.mu.Lock()
		isCut := w.conn != conn
		for _, m := range batch {
			if !isCut {
				w.take(m)
			}
		}
		w.mu.Unlock()
	}
}

// position returns that of the last event of a stream. The holder of mu calls it.
func (w *follower) position(of stream) string {
	if list := w.received[of]; len(list) > 0 {
		return list[len(list)-1].Position
	}
	return "0-0"
}

// take takes what came in. The holder of mu calls it.
func (w *follower) take(m socketMessage) {
	const boardReply = "2"
	if m.OK != nil {
		w.replies++
		want := "resume"
		if m.ReplyTo == boardReply {
			want, m.Type = "snapshot", "board.subscribed"
		}
		if !*m.OK || m.Data["mode"] != want {
			w.faults = append(w.faults, "a subscription begins with "+m.raw)
		}
	}
	of := streamOf(m.Type)
	list := w.received[of]
	switch {
	case of == "":
		return
	case of == ofBoard && m.Data["entries"] != nil:
		if last := lastState(list); last != nil && isBefore(m, *last) {
			w.faults = append(w.faults, fmt.Sprintf("after %s came %s", last.raw, m.raw))
		}
	case of != ofBoard && m.Seq != int64(len(list))+1:
		w.faults = append(w.faults, fmt.Sprintf("event %d of %s is %s", len(list)+1, of, m.raw))
	}
	w.received[of] = append(list, m)
}

// lastState returns the newest state of a leaderboard, nil for none.
func lastState(list []socketMessage) *socketMessage {
	for i := range slices.Backward(list) {
		if list[i].Data["entries"] != nil {
			return &list[i]
		}
	}
	return nil
}

// isBefore reports whether a state of a leaderboard is older than another one.
func isBefore(a, b socketMessage) bool {
	season, version := a.Data["season"].(float64), a.Data["version"].(float64)
	lastSeason, lastVersion := b.Data["season"].(float64), b.Data["version"].(float64)
	return season < lastSeason || season == lastSeason && version < lastVersion
}

// cut closes the connection without a close frame.
func (w *follower) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn != nil {
		_ = w.conn.NetConn().Close()
	}
	w.conn, w.replies = nil, 0
}

func (w *follower) connections() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.connects
}

func (w *follower) waitConnected() {
	w.f.t.Helper()
	redistest.Eventually(w.f.t, w.who.name+" follows everything", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.replies == 3
	})
}

// wait waits until the follower has received so many events of a kind, and returns them.
func (w *follower) wait(what string, count int, is func(m socketMessage) bool) (found []socketMessage) {
	w.f.t.Helper()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.f.t.Failed() {
			w.f.t.Logf("%s received %v", w.who.name, w.received)
		}
	}()
	redistest.Eventually(w.f.t, what, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		found = nil
		for _, list := range w.received {
			for _, m := range list {
				if is(m) {
					found = append(found, m)
				}
			}
		}
		return len(found) >= count
	})
	return found
}

// wantWholeTournament waits until the follower has the last event of the tournament, and requires
// that it received every one, in order, byte by byte as another follower.
func (w *follower) wantWholeTournament(position string, seq int64, other *follower) {
	t := w.f.t
	t.Helper()
	w.wait("the last event of the tournament was received", 1, func(m socketMessage) bool {
		return m.Position == position
	})
	raw := func(f *follower) (list []string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, m := range f.received[ofTournament] {
			list = append(list, m.raw)
		}
		return list
	}
	if own := raw(w); int64(len(own)) != seq || !slices.Equal(own, raw(other)) {
		t.Errorf("%s received %d events of %d:\n%s", w.who.name, len(own), seq, strings.Join(own, "\n"))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, fault := range w.faults {
		t.Errorf("%s: %s", w.who.name, fault)
	}
}

// wantWholeLedger waits until the follower has an event for every line of the player's ledger, and
// requires that they are the same, in order. The lines are newest first.
func (w *follower) wantWholeLedger(lines []any) {
	t := w.f.t
	t.Helper()
	got := w.wait("every line of the ledger was told", len(lines), func(m socketMessage) bool {
		return m.Type == "user.balance"
	})
	if len(got) != len(lines) {
		t.Fatalf("%s has %d lines and received %d events", w.who.name, len(lines), len(got))
	}
	for i, m := range got {
		line := lines[len(lines)-1-i].(map[string]any)
		for _, member := range []string{"deltaAmount", "reason", "ref"} {
			if m.Data[member] != line[member] {
				t.Errorf("line %d of %s is %v, and the event is %s", i+1, w.who.name, line, m.raw)
			}
		}
	}
}
