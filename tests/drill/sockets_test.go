//go:build linux

package drill

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
)

// message is an event or a reply from a node.
type message struct {
	Type     string `json:"type"`
	RoomID   string `json:"roomId"`
	Position string `json:"position"`
	Seq      int64  `json:"seq"`
	ReplyTo  string `json:"replyTo"`
	OK       *bool  `json:"ok"`
	Data     struct {
		Mode     string `json:"mode"`
		Reason   string `json:"reason"`
		Version  int64  `json:"version"`
		Position any    `json:"position"` // text of a room, {money, progress} of a player
	} `json:"data"`
	Error struct {
		Code    string `json:"code"`
		Current struct {
			Version int64 `json:"version"`
		} `json:"current"`
	} `json:"error"`
	raw string
}

func readMessages(conn *websocket.Conn) ([]message, error) {
	_, frame, err := conn.ReadMessage()
	if err != nil {
		return nil, err
	}
	if len(frame) == 0 {
		return nil, nil
	}
	many := make([]message, 1)
	if frame[0] == '[' {
		err = wire.Unmarshal(frame, &many)
	} else {
		err = wire.Unmarshal(frame, &many[0])
	}
	if err != nil {
		return nil, fmt.Errorf("a frame is not JSON: %w: %s", err, frame)
	}
	for i := range many {
		many[i].raw = string(frame)
	}
	return many, nil
}

// dial opens a socket, which is a request.
func (l *load) dial(path, source, token string) (*websocket.Conn, error) {
	dialer := websocket.Dialer{
		HandshakeTimeout: attemptTimeout, NetDialContext: dialFrom(source),
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}
	conn, response, err := dialer.Dial("wss"+strings.TrimPrefix(l.in.front.URL, "https")+path,
		http.Header{"Authorization": {"Bearer " + token}})
	if err != nil && response != nil {
		body, _ := io.ReadAll(response.Body)
		var problem struct {
			Code string `json:"code"`
		}
		_ = wire.Unmarshal(body, &problem) // of a balancer it may be HTML
		err = fmt.Errorf("%w: %s %s", err, response.Status, problem.Code)
	}
	return conn, err
}

// isMove reports whether a socket ended because its node drains.
func isMove(err error) bool { return websocket.IsCloseError(err, websocket.CloseServiceRestart) }

// countEnd counts a socket that has ended by itself.
func (l *load) countEnd(what string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if isMove(err) {
		l.r.moved++
		return
	}
	l.r.cut++
	l.note("%s was cut: %v", what, err)
}

// saver is the socket on which a player saves.
type saver struct {
	load    *load
	source  string
	player  member
	conn    *websocket.Conn
	replies chan message // closed at the end of conn
	end     error        // of conn
	version int64
	number  int
}

func (s *saver) connect(count bool) error {
	began := time.Now()
	conn, err := s.load.dial("/api/v1/game-data/save", s.source, s.player.token)
	if count {
		s.load.count("open a socket for saves", began, err)
	}
	if err != nil {
		return err
	}
	replies := make(chan message, 16)
	s.conn, s.replies = conn, replies
	go func() { // ends with the connection
		defer close(replies)
		for {
			many, err := readMessages(conn)
			if err != nil {
				s.end = err
				return
			}
			for _, m := range many {
				if m.ReplyTo != "" {
					replies <- m
				}
			}
		}
	}()
	return nil
}

// save stores the next version, and sends it again until it is acknowledged.
func (s *saver) save() error {
	l := s.load
	s.number++
	id := fmt.Sprint("save-", s.number)
	began, isCounted, isFirstDial := time.Now(), false, true
	count := func(err error) {
		if !isCounted {
			l.count("save", began, err)
		}
		isCounted = true
	}
	return redistest.Poll(time.Hour, func() error {
		if l.ctx.Err() != nil && isCounted {
			return nil
		}
		if s.conn == nil {
			err := s.connect(isFirstDial)
			isFirstDial = false
			if err != nil {
				if l.ctx.Err() != nil {
					return nil
				}
				(&worker{load: l}).pause(retryPause)
				return err
			}
		}
		data := map[string]any{"slot": "main", "state": map[string]any{"gold": s.number}, "version": s.version}
		_ = s.conn.WriteJSON(map[string]any{"id": id, "type": "save", "data": data})
		reply, err := s.reply(id)
		switch {
		case err != nil:
			s.conn = nil
			isFirstDial = true
			if !isMove(err) {
				count(err)
			}
			return err
		case *reply.OK:
			count(nil)
			s.version = reply.Data.Version
			l.mu.Lock()
			defer l.mu.Unlock()
			l.r.acknowledged++
			l.acked = append(l.acked, acknowledged{
				kind: "save", bearer: s.player.token, user: s.player.id, ref: strconv.FormatInt(s.version, 10),
			})
			return nil
		}
		err = errors.New(reply.Error.Code)
		count(err)
		if reply.Error.Code == "version_conflict" { // the store has lost the newest, or kept one whose reply was lost
			s.version = reply.Error.Current.Version
			s.number++
			id = fmt.Sprint("save-", s.number)
		}
		l.mu.Lock()
		l.last = time.Now()
		l.mu.Unlock()
		(&worker{load: l}).pause(retryPause)
		return err
	})
}

// reply waits for the reply to a message. The end of the socket is counted.
func (s *saver) reply(id string) (message, error) {
	late := time.AfterFunc(attemptTimeout, func() { _ = s.conn.NetConn().Close() })
	defer late.Stop()
	for m := range s.replies {
		if m.ReplyTo == id && m.OK != nil {
			return m, nil
		}
	}
	s.load.countEnd("a socket for saves", s.end)
	return message{}, s.end
}

func (s *saver) close() {
	if s.conn != nil {
		_ = s.conn.Close()
		for range s.replies { // until it is closed
		}
	}
}

// crowd is clients who follow rooms, and what is for themselves, over a socket each.
type crowd struct {
	rooms     []*crowdRoom
	followers []*follower
}

type crowdRoom struct {
	id   string
	host member
}

const (
	followersPerRoom = 10
	perAddress       = 50 // sockets from one address; the balancer allows 200
)

// crowdRooms returns how many rooms are followed.
func crowdRooms() int { return pick(3, 20) }

// target returns the n-th player who gets a credit, so that the player's events go on.
func (c *crowd) target(n int) int64 { return c.followers[n%len(c.followers)].player.id }

// follower is a client that follows one room and its own money, as the SDK does.
type follower struct {
	in     *installation
	number int
	source string
	room   *crowdRoom
	player member
	done   chan struct{}

	mu       sync.Mutex
	conn     *websocket.Conn
	replies  int // to the subscriptions of the newest connection
	ofRoom   stream
	ofMoney  stream
	stopped  bool
	sawReady map[int64]bool // versions of the room
	sawEnd   bool           // the credit that is made last
}

// stream is numbered events.
type stream struct {
	position      string
	seq           int64
	lost, doubled int
	wasReset      bool
}

// accept takes the next event.
func (s *stream) accept(m message) {
	switch {
	case m.Seq > s.seq+1:
		s.lost += int(m.Seq - s.seq - 1)
	case m.Seq <= s.seq:
		s.doubled++
	}
	s.position, s.seq = m.Position, m.Seq
}

// reset takes a snapshot in place of the events up to it.
func (s *stream) reset(position string, mayReplace bool) {
	text, _, _ := strings.Cut(position, "-")
	seq, _ := strconv.ParseInt(text, 10, 64)
	if seq > s.seq && !mayReplace {
		s.lost += int(seq - s.seq)
	}
	s.position, s.seq, s.wasReset = position, seq, true
}

// startCrowd opens rooms, signs players in, and has each follow a room.
func (in *installation) startCrowd() {
	in.t.Helper()
	c := &crowd{}
	in.crowd = c
	l := newLoad(in, in.t.Context())
	setup := &worker{load: l, name: "setup", client: newClient("127.0.0.1", "h2")}
	must := func(r any, err error) {
		if err != nil {
			in.t.Fatalf("set the crowd up: %v %s", r, strings.Join(l.lines, "\n"))
		}
	}
	for i := range crowdRooms() {
		host, err := setup.signIn(2 * i)
		must(host, err)
		r, err := setup.call("create", "/api/v1/game-session/create", host.token, 201, map[string]any{"maxPlayers": 2}, 0,
			noRef)
		must(r, err)
		c.rooms = append(c.rooms, &crowdRoom{id: r.Body["roomId"].(string), host: host})
	}
	var mu sync.Mutex
	var signingIn sync.WaitGroup
	for part := range 8 {
		w := &worker{load: l, name: fmt.Sprint("f", part), client: newClient("127.0.0.1", "http/1.1")}
		signingIn.Go(func() {
			for i := part; i < crowdRooms()*followersPerRoom; i += 8 {
				p, err := w.signIn(2 * i)
				mu.Lock()
				if err == nil {
					c.followers = append(c.followers, &follower{
						in: in, number: i, source: fmt.Sprintf("127.0.5.%d", 1+i/perAddress), room: c.rooms[i%crowdRooms()],
						player: p, done: make(chan struct{}), ofRoom: stream{position: "0-0"}, ofMoney: stream{position: "0-0"},
						sawReady: map[int64]bool{},
					})
				}
				mu.Unlock()
			}
		})
	}
	signingIn.Wait()
	if len(c.followers) != crowdRooms()*followersPerRoom {
		in.t.Fatalf("%d players signed in: %s", len(c.followers), strings.Join(l.lines, "\n"))
	}
	for _, f := range c.followers {
		go f.run()
	}
	in.t.Cleanup(c.stop)
	in.wait("every socket is open", func() bool { return c.open() == len(c.followers) })
}

// open returns how many clients follow all that they want to.
func (c *crowd) open() (count int) {
	for _, f := range c.followers {
		f.mu.Lock()
		if f.replies == 2 {
			count++
		}
		f.mu.Unlock()
	}
	return count
}

func (c *crowd) stop() {
	for _, f := range c.followers {
		f.mu.Lock()
		f.stopped = true
		if f.conn != nil {
			_ = f.conn.Close()
		}
		f.mu.Unlock()
	}
	for _, f := range c.followers {
		<-f.done
	}
}

// run follows until the crowd is stopped. A connection that has ended is replaced at once, and then
// each fifth of a second.
func (f *follower) run() {
	defer close(f.done)
	isFirst := true
	_ = redistest.Poll(time.Hour, func() error {
		f.mu.Lock()
		stopped := f.stopped
		f.mu.Unlock()
		if stopped {
			return nil
		}
		l := f.in.counting()
		began := time.Now()
		conn, err := l.dial("/api/v1/realtime", f.source, f.player.token)
		if isFirst {
			l.count("open a socket", began, err)
		}
		isFirst = false
		if err != nil {
			ctx, cancel := context.WithTimeout(context.Background(), 2*retryPause)
			<-ctx.Done()
			cancel()
			return err
		}
		isFirst = true
		err = f.receive(conn)
		_ = conn.Close()
		f.mu.Lock()
		f.conn, f.replies = nil, 0
		stopped = f.stopped
		f.mu.Unlock()
		if !stopped {
			f.in.counting().countEnd("a socket", err)
		}
		return errors.New("the connection has ended")
	})
}

// receive subscribes, and takes what comes until the connection ends.
func (f *follower) receive(conn *websocket.Conn) error {
	f.mu.Lock()
	if f.stopped {
		_ = conn.Close() // below, reading from it fails
	}
	f.conn, f.replies = conn, 0
	subscribe := []map[string]any{
		{"id": "user", "type": "user.subscribe", "data": map[string]any{
			"after": map[string]any{"money": f.ofMoney.position},
		}},
		{"id": "room", "type": "room.subscribe", "data": map[string]any{
			"roomId": f.room.id, "after": f.ofRoom.position,
		}},
	}
	f.mu.Unlock()
	for _, m := range subscribe {
		if err := conn.WriteJSON(m); err != nil {
			return err
		}
	}
	for {
		many, err := readMessages(conn)
		if err != nil {
			return err
		}
		f.mu.Lock()
		for _, m := range many {
			f.take(m)
		}
		f.mu.Unlock()
	}
}

// take takes what came in. follower.mu must be held.
func (f *follower) take(m message) {
	mayReplace := f.in.drill.isFailover
	switch {
	case m.ReplyTo != "" && m.OK != nil && !*m.OK:
		l := f.in.counting()
		l.mu.Lock()
		l.note("a subscription failed: %s", m.raw)
		l.mu.Unlock()
		_ = f.conn.NetConn().Close() // it is tried again, and counts as cut
	case m.ReplyTo == "user":
		f.replies++
		if positions, ok := m.Data.Position.(map[string]any); ok && m.Data.Mode == "snapshot" {
			money, _ := positions["money"].(string)
			f.ofMoney.reset(money, mayReplace)
		}
	case m.ReplyTo == "room", m.Type == "room.snapshot":
		if m.ReplyTo != "" {
			f.replies++
		}
		if m.Type == "room.snapshot" || m.Data.Mode == "snapshot" {
			position, _ := m.Data.Position.(string)
			f.ofRoom.reset(position, mayReplace)
		}
	case m.RoomID == f.room.id && m.Seq > 0:
		f.ofRoom.accept(m)
		if m.Type == "room.ready" {
			f.sawReady[m.Data.Version] = true
		}
	case m.Type == "user.balance" && m.Data.Reason == "resync": // what is true after a loss
		if m.Position != "" {
			f.ofMoney.reset(m.Position, mayReplace)
		}
	case m.Seq > 0 && (m.Type == "user.balance" || m.Type == "user.asset" || m.Type == "user.prize"):
		f.ofMoney.accept(m)
		f.sawEnd = f.sawEnd || m.Data.Reason == lastReason
	}
}

// lastReason is that of a credit which each client must hear of in the end.
const lastReason = "the last one"

// finish makes a last event of each room and each player, waits until every client has them, and
// returns how many events were lost or doubled.
func (in *installation) finish() (lost, doubled int) {
	in.t.Helper()
	l := newLoad(in, in.t.Context())
	var all sync.WaitGroup
	versions := make([]int64, len(in.crowd.rooms))
	for part := range 8 {
		w := &worker{load: l, name: fmt.Sprint("last", part), client: newClient("127.0.0.1", "http/1.1")}
		all.Go(func() {
			for i := part; i < len(in.crowd.rooms); i += 8 {
				for _, ready := range []bool{true, false} {
					r, err := w.call("ready", "/api/v1/game-session/ready", in.crowd.rooms[i].host.token, 200,
						map[string]any{"roomId": in.crowd.rooms[i].id, "ready": ready}, 0, noRef)
					if err == nil {
						versions[i] = numberOf(r.Body["version"])
					}
				}
			}
			for i := part; i < len(in.crowd.followers); i += 8 {
				_, _ = w.call("credit", fmt.Sprintf("/api/v1/admin/users/%d/credit", in.crowd.followers[i].player.id),
					in.operator(), 200, map[string]any{"tokenId": "GOLD", "amount": 0.5, "reason": lastReason}, 0, noRef)
			}
		})
	}
	all.Wait()
	_ = redistest.Poll(lastLimit, func() error {
		if slices.ContainsFunc(in.crowd.followers, func(f *follower) bool { return !f.hasLast(versions) }) {
			return errors.New("a client waits for its last event")
		}
		return nil
	})
	for _, f := range in.crowd.followers {
		if !f.hasLast(versions) {
			lost++
			in.t.Logf("a client has not received its last event: room %+v, money %+v", f.ofRoom, f.ofMoney)
		}
		f.mu.Lock()
		lost += f.ofRoom.lost + f.ofMoney.lost
		doubled += f.ofRoom.doubled + f.ofMoney.doubled
		f.mu.Unlock()
	}
	return lost, doubled
}

const lastLimit = 20 * time.Second // for the last events, far longer than they take

func (f *follower) hasLast(versions []int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sawEnd && f.sawReady[versions[f.number%crowdRooms()]]
}
