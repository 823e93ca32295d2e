package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
)

// frameMessage is an event or a reply from a node.
type frameMessage struct {
	Type     string `json:"type"`
	RoomID   string `json:"roomId"`
	Position string `json:"position"`
	Seq      int64  `json:"seq"`
	ReplyTo  string `json:"replyTo"`
	OK       bool   `json:"ok"`
	Data     struct {
		Mode     string `json:"mode"`
		Position string `json:"position"`
		SinceMS  int    `json:"sinceMs"`
	} `json:"data"`
}

// follower is a client that follows one room, as the SDK does: when its connection ends it connects
// to the next node, and subscribes after the last position that it has. It checks the order of what
// it receives.
type follower struct {
	audience *audience
	room     string
	token    string
	turn     int // of the next node
	done     chan struct{}

	mu         sync.Mutex
	conn       *websocket.Conn
	position   string           // of the last event or snapshot
	seq        int64            // in position
	sinceReset map[int64]string // positions of the events since the last snapshot, by seq
	received   int              // events
	snapshots  int              // that replaced what was received before
	connects   int
	stale      int // times that the node said that it hears nothing
	closes     map[int]int
	violations []string
	stopped    bool
}

// run follows the room until the follower is stopped.
func (f *follower) run() {
	defer close(f.done)
	_ = redistest.Poll(time.Hour, func() error {
		if f.isStopped() {
			return nil
		}
		err := f.connect()
		var closed *websocket.CloseError
		if errors.As(err, &closed) {
			f.mu.Lock()
			f.closes[closed.Code]++
			f.mu.Unlock()
		}
		return errors.New("the connection has ended")
	})
}

func (f *follower) isStopped() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stopped
}

// connect opens a socket, subscribes, and receives until the connection ends.
func (f *follower) connect() error {
	f.turn++
	node := f.audience.node(f.turn)
	dialer := websocket.Dialer{HandshakeTimeout: 5 * time.Second}
	conn, response, err := dialer.Dial("ws"+strings.TrimPrefix(node.URL, "http")+"/api/v1/realtime",
		http.Header{"Authorization": {"Bearer " + f.token}})
	if response != nil {
		_ = response.Body.Close()
	}
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	f.mu.Lock()
	f.conn = conn
	f.connects++
	after := f.position
	f.mu.Unlock()
	subscribe := map[string]any{
		"id": "1", "type": "room.subscribe", "data": map[string]any{"roomId": f.room, "after": after},
	}
	if err := conn.WriteJSON(subscribe); err != nil {
		return err
	}
	for {
		_, frame, err := conn.ReadMessage()
		if err != nil {
			return err
		}
		if err := f.receive(frame); err != nil {
			return err
		}
	}
}

func (f *follower) receive(frame []byte) error {
	many := make([]frameMessage, 1)
	var err error
	if frame[0] == '[' {
		err = wire.Unmarshal(frame, &many)
	} else {
		err = wire.Unmarshal(frame, &many[0])
	}
	if err != nil {
		return fmt.Errorf("a frame is not JSON: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range many {
		switch {
		case m.ReplyTo != "" && !m.OK:
			return errors.New("the subscription failed")
		case m.ReplyTo != "" && m.Data.Mode == "snapshot", m.Type == "room.snapshot":
			f.reset(m.Data.Position)
		case m.Type == "server.stale" && m.Data.SinceMS > 0:
			f.stale++
		case m.RoomID == f.room && m.Seq > 0:
			f.accept(m)
		}
	}
	return nil
}

// reset takes a snapshot in place of everything before. follower.mu must be held.
func (f *follower) reset(position string) {
	text, _, _ := strings.Cut(position, "-")
	seq, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		f.violations = append(f.violations, "a snapshot at "+position)
		return
	}
	f.snapshots++
	f.position, f.seq, f.sinceReset = position, seq, map[int64]string{}
}

// accept takes the next event. follower.mu must be held.
func (f *follower) accept(m frameMessage) {
	switch {
	case m.Seq > f.seq+1:
		f.violations = append(f.violations, fmt.Sprintf("lost: after %s came %s", f.position, m.Position))
	case m.Seq <= f.seq:
		f.violations = append(f.violations, fmt.Sprintf("doubled or out of order: after %s came %s", f.position, m.Position))
	}
	f.position, f.seq = m.Position, m.Seq
	f.sinceReset[m.Seq] = m.Position
	f.received++
}

// disconnect ends the connection without a close frame.
func (f *follower) disconnect() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conn != nil {
		_ = f.conn.NetConn().Close()
	}
}

func (f *follower) stop() {
	f.mu.Lock()
	f.stopped = true
	f.mu.Unlock()
	f.disconnect()
	<-f.done
}

// writer changes a room again and again, at any node, so that each change is an event.
type writer struct {
	audience *audience
	room     string
	token    string
	changes  int // that were acknowledged
}

// maxChanges is how many changes fit the list of a room with its other events: what is in the list
// then is the whole history.
const maxChanges = 240

// run changes the room until ctx ends.
func (w *writer) run(ctx context.Context, first int, pace time.Duration) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	ready := false
	for turn := first; w.changes < maxChanges; turn++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		body := map[string]any{"roomId": w.room, "ready": !ready}
		one, cancel := context.WithTimeout(ctx, 4*time.Second)
		r, err := w.audience.node(turn).Do(one, "POST", "/api/v1/game-session/ready", w.token, body)
		cancel()
		if err == nil && r.Status == 200 {
			ready = !ready
			w.changes++
		}
	}
}
