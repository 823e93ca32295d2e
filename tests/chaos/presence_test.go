package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
)

// announceLimit is within how long the loss of a player's last socket is announced.
const announceLimit = 20 * time.Second

// sitter is a player with a seat who opens and closes sockets.
type sitter struct {
	httpPlayer
	room *followedRoom

	isIn atomic.Bool // has a socket

	// Owned by play until it ends. The last absence has no end while there is no socket.
	absences []absence
	dials    int
}

// absence is a time without a socket, by the clock of this machine, which is that of the store.
type absence struct{ from, to time.Time }

type followedRoom struct {
	id      string
	sitters []*sitter
}

// TestEachConnectAndDisconnectIsAnnouncedOnce kills one of three nodes at random, again and again,
// while the players of many rooms open and close sockets. In the end the list of each room must
// have each change of each player once and in order, no later than it may be, and each room must
// show who is there.
func TestEachConnectAndDisconnectIsAnnouncedOnce(t *testing.T) {
	store := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "everysec")
	in := &installation{t: t, url: store.URL(), settings: []string{"PARLOR_RATE_LIMITS=off", "PARLOR_ACCESS_TTL=1h"}}
	for range 3 {
		in.nodes = append(in.nodes, in.startNode())
	}
	rooms := in.openFollowedRooms(pick(20, 1000))

	duration := pick(15*time.Second, 5*time.Minute)
	ctx, stop := context.WithTimeout(t.Context(), duration)
	defer stop()
	var playing sync.WaitGroup
	var opened atomic.Int64
	last := make(chan struct{}) // closed when all may end
	for i, room := range rooms {
		for j, s := range room.sitters {
			playing.Go(func() { s.play(ctx, in, newRNG(uint64(100+2*i+j)), last, &opened) })
		}
	}
	rng, kills := newRNG(1), 0
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-waitBetweenActs(3*time.Second + upTo(rng, 9*time.Second)):
			in.replace(rng.IntN(len(in.nodes)))
			kills++
		}
	}

	// None is stuck: each room comes to show what is so.
	var checked int
	err := redistest.Poll(announceLimit+10*time.Second, func() error {
		for ; checked < len(rooms); checked++ {
			if err := in.compareWithTruth(rooms[checked]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Errorf("%d rooms of %d are right: %v", checked, len(rooms), err)
	}
	close(last)
	playing.Wait()

	var connects, disconnects int
	var slowest time.Duration
	for _, room := range rooms {
		told := in.presenceEvents(room)
		for _, s := range room.sitters {
			connects, disconnects = connects+told[s.id].connects, disconnects+told[s.id].disconnects
			slowest = max(slowest, s.check(t, told[s.id].times))
		}
	}
	report(t, "%d rooms, %v, %d nodes killed, %d sockets opened: %d connects and %d disconnects announced, "+
		"each once and in order, the slowest disconnect after %.1f s", len(rooms), duration, kills, opened.Load(),
		connects, disconnects, slowest.Seconds())
}

// openFollowedRooms opens rooms with two seated players each.
func (in *installation) openFollowedRooms(count int) []*followedRoom {
	in.t.Helper()
	first := in.nodes[0]
	game := first.Must(in.t, 201, "POST", "/api/v1/admin/games", nodetest.AdminKey, map[string]any{"name": "Duel"})
	key := game.Body["serverKey"].(string)
	rooms := make([]*followedRoom, count)
	for i := range rooms {
		room := &followedRoom{}
		for j := range 2 {
			a := first.Must(in.t, 201, "POST", "/api/v1/auth/exchange", key, map[string]any{
				"externalId": fmt.Sprintf("sitter-%d-%d", i, j),
			})
			id := number(in.t, a.Body["user"].(map[string]any)["id"])
			room.sitters = append(room.sitters, &sitter{
				httpPlayer: httpPlayer{id, a.Body["accessToken"].(string)}, room: room,
			})
		}
		made := first.Must(in.t, 201, "POST", "/api/v1/game-session/create", room.sitters[0].token,
			map[string]any{"maxPlayers": 2})
		room.id = made.Body["roomId"].(string)
		first.Must(in.t, 200, "POST", "/join", room.sitters[1].token, map[string]any{"roomId": room.id})
		rooms[i] = room
	}
	return rooms
}

// play opens and closes sockets until ctx ends, then keeps the state that it has until last is
// closed.
func (s *sitter) play(
	ctx context.Context, in *installation, rng *rand.Rand, last <-chan struct{}, opened *atomic.Int64,
) {
	s.absences = []absence{{from: time.Now()}}
	for {
		conn := s.open(ctx, in, rng.IntN(3))
		if conn == nil { // ctx has ended
			return
		}
		opened.Add(1)
		s.absences[len(s.absences)-1].to = time.Now()
		s.isIn.Store(true)
		lost := make(chan struct{})
		go func() {
			defer close(lost)
			for {
				if _, _, err := conn.ReadMessage(); err != nil {
					return
				}
			}
		}()
		over := ctx.Done()
		select {
		case <-lost:
		case <-waitBetweenActs(upTo(rng, 20*time.Second)):
		case <-over:
			select { // stays, unless the node has died just now
			case <-lost:
			case <-last:
				_ = conn.Close()
				<-lost
				return
			}
		}
		_ = conn.Close()
		<-lost
		s.isIn.Store(false)
		s.absences = append(s.absences, absence{from: time.Now()})
		pause := upTo(rng, 500*time.Millisecond) // comes back at once
		if rng.IntN(2) == 0 {
			pause = upTo(rng, 30*time.Second)
		}
		select {
		case <-ctx.Done():
			return
		case <-waitBetweenActs(pause):
		}
	}
}

// waitBetweenActs returns what is sent on after a time in which players do something else.
func waitBetweenActs(d time.Duration) <-chan time.Time { return time.After(d) }

func upTo(rng *rand.Rand, d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }

// open opens a socket that follows the room, at any node that there is. It returns nil when ctx
// ends before.
func (s *sitter) open(ctx context.Context, in *installation, first int) (conn *websocket.Conn) {
	_ = redistest.Poll(time.Hour, func() error {
		if ctx.Err() != nil {
			return nil
		}
		s.dials++
		url := "ws" + strings.TrimPrefix(in.node(first+s.dials).URL, "http") + "/api/v1/realtime"
		c, _, err := websocket.DefaultDialer.DialContext(ctx, url, http.Header{"Authorization": {"Bearer " + s.token}})
		if err != nil {
			return err
		}
		err = c.WriteJSON(map[string]any{"id": "1", "type": "room.subscribe", "data": map[string]any{"roomId": s.room.id}})
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		for subscribed := false; err == nil && !subscribed; {
			var frame []byte
			_, frame, err = c.ReadMessage()
			subscribed = strings.Contains(string(frame), `"replyTo":"1","ok":true`)
			if err == nil && strings.Contains(string(frame), `"replyTo":"1","ok":false`) {
				err = fmt.Errorf("subscribe: %s", frame)
			}
		}
		_ = c.SetReadDeadline(time.Time{})
		if err != nil { // the node may have stored the player before it died
			_ = c.Close()
			s.absences[len(s.absences)-1].to = time.Now()
			s.absences = append(s.absences, absence{from: time.Now()})
			return err
		}
		conn = c
		return nil
	})
	return conn
}

// compareWithTruth compares what a room shows with the sockets that there are.
func (in *installation) compareWithTruth(room *followedRoom) error {
	r, err := in.node(0).Do(in.t.Context(), "GET", "/api/v1/game-session/get?roomId="+room.id, room.sitters[0].token, nil)
	if err != nil || r.Status != 200 {
		return fmt.Errorf("read a room: %s, %w", r, err)
	}
	shown, _ := r.Body["presence"].([]any)
	for i, s := range room.sitters {
		connected := len(shown) > i && shown[i].(map[string]any)["connected"].(bool)
		if isIn := s.isIn.Load(); connected != isIn {
			return fmt.Errorf("room %s shows %v; player %d is there: %v", room.id, shown, s.id, isIn)
		}
	}
	return nil
}

// announced are the events of one player.
type announced struct {
	connects, disconnects int
	times                 []time.Time // connected, disconnected, connected …
}

// presenceEvents returns the presence events of each player of a room, and fails when they are not
// in turn, or a number is missing.
func (in *installation) presenceEvents(room *followedRoom) map[int64]*announced {
	in.t.Helper()
	r := in.node(0).Must(in.t, 200, "GET", "/api/v1/admin/rooms/"+room.id+"/events", nodetest.AdminKey, nil)
	var list struct {
		Items []struct {
			Type string    `json:"type"`
			Seq  int       `json:"seq"`
			At   time.Time `json:"at"`
			Data struct {
				UserID int64 `json:"userId"`
			} `json:"data"`
		} `json:"items"`
		Complete bool `json:"complete"`
	}
	if err := wire.Unmarshal(r.Raw, &list); err != nil || !list.Complete {
		in.t.Fatalf("the events of a room: %v, %s", err, r.Raw)
	}
	told := map[int64]*announced{}
	for _, s := range room.sitters {
		told[s.id] = &announced{}
	}
	for i, e := range list.Items {
		if e.Seq != i+1 {
			in.t.Errorf("room %s: the number %d follows %d", room.id, e.Seq, i)
		}
		a := told[e.Data.UserID]
		switch {
		case e.Type == "room.connected" && a.connects == a.disconnects:
			a.connects++
		case e.Type == "room.disconnected" && a.connects == a.disconnects+1:
			a.disconnects++
		case e.Type == "room.connected" || e.Type == "room.disconnected":
			in.t.Errorf("room %s: event %d is %s of player %d, again", room.id, e.Seq, e.Type, e.Data.UserID)
			continue
		default:
			continue
		}
		a.times = append(a.times, e.At)
	}
	return told
}

// check compares the player's events with the times without a socket. It returns how long the
// slowest disconnect took.
func (s *sitter) check(t *testing.T, told []time.Time) (slowest time.Duration) {
	t.Helper()
	const early = 100 * time.Millisecond // what this machine notices later than the node
	isAnnounced := map[int]bool{}        // by the place in absences; the first one is before the first socket
	for n := 1; n < len(told); n += 2 {
		at, of := told[n], 0
		for i, a := range s.absences {
			if !a.from.After(at.Add(early)) {
				of = i
			}
		}
		took := at.Sub(s.absences[of].from)
		if of == 0 || isAnnounced[of] || took > announceLimit {
			t.Errorf("player %d left at %v, and is announced at %v; before: %v", s.id, s.absences[of].from, at, isAnnounced[of])
		}
		isAnnounced[of] = true
		slowest = max(slowest, took)
	}
	for i, a := range s.absences {
		if long := !a.to.IsZero() && a.to.Sub(a.from) > announceLimit; long && i > 0 && !isAnnounced[i] {
			t.Errorf("player %d was away from %v to %v, which is not announced", s.id, a.from, a.to)
		}
	}
	if s.isIn.Load() != (len(told)%2 == 1) {
		t.Errorf("player %d has a socket in the end: %v; announced %d times", s.id, s.isIn.Load(), len(told))
	}
	return slowest
}
