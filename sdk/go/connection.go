package parlor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

const (
	helloTimeout  = 10 * time.Second
	writeTimeout  = 10 * time.Second
	pingInterval  = 10 * time.Second
	silenceLimit  = 25 * time.Second // without a frame or a pong: the connection is dead
	maxFrameBytes = 8 << 20          // of several events in one frame
	subscribeID   = "subscribe"      // of game.subscribe; the ids of requests that wait are numbers
	watchID       = "watch"          // of a room.subscribe that is made again
)

// frame is what comes over the socket, of any type.
type frame struct {
	Event
	At      time.Time `json:"at"`
	ReplyTo *string   `json:"replyTo"`
	OK      bool      `json:"ok"`
	Error   *Problem  `json:"error"`
}

// connection is one WebSocket, from hello to its end.
type connection struct {
	server *Server
	ws     *websocket.Conn

	writing sync.Mutex
	pacer   pacer

	isBehind atomic.Bool // events are not taken until they are asked for again

	subscribing sync.Mutex
	after       map[string]string // of the last game.subscribe

	reconnect *time.Timer   // of a node that stops; of the reading goroutine
	pause     time.Duration // until the next connection, by the node's wish; of the reading goroutine
}

// connect opens a socket and reads it until it ends. pause is how long to wait before the next one,
// 0 for the usual time.
func (s *Server) connect(ctx context.Context) (pause time.Duration, err error) {
	dialer := websocket.Dialer{HandshakeTimeout: helloTimeout, Proxy: http.ProxyFromEnvironment}
	header := http.Header{"Authorization": {"Bearer " + s.options.Key}}
	ws, response, err := dialer.DialContext(ctx, s.socketURL(), header)
	if err != nil {
		return 0, handshakeError(response, err)
	}
	c := &connection{server: s, ws: ws}
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() { c.ping(ctx, done) })
	err = c.read()
	s.requests.detach(c)
	if c.reconnect != nil {
		c.reconnect.Stop()
	}
	close(done)
	_ = ws.Close()
	group.Wait()
	return c.pause, closeError(err)
}

// advices say what to do about an end that coming back does not change, by close code and status.
var advices = map[int]string{
	4001: "the server key was revoked: make a new one and start the server with it",
	4403: "the game is suspended, or the key may not connect: ask the operator",
	4426: "this library is too old for the node: take a newer version",

	http.StatusBadRequest:   "the node does not take this request: is the URL the one of a recent node?",
	http.StatusUnauthorized: "the server key is wrong or was revoked: start the server with another one",
	http.StatusForbidden:    "the key may not connect, or the game is suspended: is it a server key?",
	http.StatusNotFound:     "there is no node at this URL",
}

func closeError(err error) error {
	var closed *websocket.CloseError
	if errors.As(err, &closed) && advices[closed.Code] != "" {
		return &CloseError{closed.Code, closed.Text, advices[closed.Code]}
	}
	return err
}

// handshakeError returns why there is no socket.
func handshakeError(response *http.Response, err error) error {
	if response == nil {
		return err
	}
	problem := readProblem(response)
	if advice := advices[response.StatusCode]; advice != "" {
		return &CloseError{response.StatusCode, problem.Error(), advice}
	}
	return problem
}

// readProblem returns the problem of a response, also of one that is not from the service.
func readProblem(response *http.Response) *Problem {
	p := &Problem{}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxBodyBytes))
	if err == nil {
		err = json.Unmarshal(text, p)
	}
	if err != nil || p.Code == "" {
		p.Code, p.Detail = "unexpected_response", response.Status
		p.Retryable = response.StatusCode >= http.StatusInternalServerError
	}
	p.Status = response.StatusCode
	return p
}

// ping proves that the connection lives, and ends it with ctx.
func (c *connection) ping(ctx context.Context, done <-chan struct{}) {
	ticker := time.NewTicker(pingInterval)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ctx.Done():
			bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
			_ = c.ws.WriteControl(websocket.CloseMessage, bye, time.Now().Add(time.Second))
			_ = c.ws.Close()
			return
		case <-ticker.C:
			_ = c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTimeout))
		}
	}
}

// read handles frames until the connection ends.
func (c *connection) read() error {
	c.ws.SetReadLimit(maxFrameBytes)
	alive := func() { _ = c.ws.SetReadDeadline(time.Now().Add(silenceLimit)) }
	c.ws.SetPongHandler(func(string) error { alive(); return nil })
	pong := c.ws.PingHandler()
	c.ws.SetPingHandler(func(data string) error { alive(); return pong(data) })
	_ = c.ws.SetReadDeadline(time.Now().Add(helloTimeout))
	for {
		_, text, err := c.ws.ReadMessage()
		if err != nil {
			return err
		}
		alive()
		if err := c.handleFrames(text); err != nil {
			return err
		}
	}
}

// handleFrames handles a frame, or an array of them.
func (c *connection) handleFrames(text []byte) error {
	frames := make([]frame, 1)
	var err error
	if len(text) > 0 && text[0] == '[' {
		err = json.Unmarshal(text, &frames)
	} else {
		err = json.Unmarshal(text, &frames[0])
	}
	if err != nil {
		c.server.log.Warn("parlor: a frame that is not understood", "cause", err)
		return nil // of a newer node
	}
	for i := range frames {
		if err := c.handle(&frames[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *connection) handle(f *frame) error {
	s := c.server
	switch {
	case f.ReplyTo != nil && *f.ReplyTo == watchID:
		// A room that is gone ends in the feed.
	case f.ReplyTo != nil && *f.ReplyTo == subscribeID:
		return c.subscribed(f)
	case f.ReplyTo != nil:
		s.requests.answer(*f.ReplyTo, f.Data, f.Error)
	case f.Error != nil:
		s.log.Warn("parlor: the node reports an error", "cause", f.Error)
	case f.Type == "hello":
		return c.greet(f.Data)
	case f.Type == "server.draining":
		c.leaveLater(f.Data)
	case f.Type == "room.call":
		return c.handleCall(f)
	case c.isBehind.Load() && f.Feed != "":
		// Asked for again once there is room.
	case f.Type == "game.position":
		if place := s.feeds.hear(f.Feed, f.Position); place != nil {
			s.feeds.done(place)
		}
	case f.Type == "game.gap":
		s.handleGap([]*entry{s.feeds.begin(f.Feed, f.Position)})
	default:
		s.handleEvent(f.Event)
		if f.Feed != "" && s.lanes.isFull() {
			c.isBehind.Store(true)
			if s.lanes.isLow() { // they went while we looked
				return c.catchUp()
			}
		}
	}
	return nil
}

// catchUp asks for the events that were not taken, if there are any.
func (c *connection) catchUp() error {
	if !c.isBehind.Load() {
		return nil
	}
	return c.subscribe()
}

// greet subscribes, and sends what waits for a connection.
func (c *connection) greet(data json.RawMessage) error {
	var hello struct {
		Limits struct {
			FramesPerSecond float64 `json:"framesPerSecond"`
			Burst           float64 `json:"burst"`
		} `json:"limits"`
	}
	if err := json.Unmarshal(data, &hello); err != nil {
		return fmt.Errorf("hello: %w", err)
	}
	c.pacer.set(hello.Limits.FramesPerSecond, hello.Limits.Burst)
	if err := c.subscribe(); err != nil {
		return err
	}
	if err := c.watchAgain(); err != nil {
		return err
	}
	c.server.requests.attach(c)
	return nil
}

// subscribe asks for the events after those that came.
func (c *connection) subscribe() error {
	c.subscribing.Lock()
	defer c.subscribing.Unlock()
	c.after = c.server.feeds.heardPositions()
	return c.send(outgoing{ID: subscribeID, Type: "game.subscribe", Data: subscription{
		c.server.kinds(), c.server.options.Share, c.after, c.server.takesCalls(),
	}})
}

// subscription is the data of game.subscribe.
type subscription struct {
	Kinds []string          `json:"kinds"`
	Share *Share            `json:"share,omitempty"`
	After map[string]string `json:"after,omitempty"`
	Calls bool              `json:"calls"` // of the rooms of the share
}

// subscribed begins where the subscription does.
func (c *connection) subscribed(f *frame) error {
	if f.Error != nil {
		if !f.Error.Retryable {
			const advice = "the node does not take game.subscribe: correct Kinds and Share"
			return &CloseError{f.Error.Status, f.Error.Error(), advice}
		}
		return f.Error
	}
	var begin struct {
		Mode     string            `json:"mode"`
		Position map[string]string `json:"position"`
	}
	if err := json.Unmarshal(f.Data, &begin); err != nil {
		return fmt.Errorf("game.subscribe: %w", err)
	}
	s := c.server
	c.subscribing.Lock()
	after := c.after
	c.subscribing.Unlock()
	var places []*entry
	for name, position := range begin.Position {
		if after[name] == "" || begin.Mode == "gap" && after[name] != position {
			places = append(places, s.feeds.begin(name, position))
		}
	}
	c.isBehind.Store(false)
	if begin.Mode == "gap" || len(after) == 0 {
		s.handleGap(places)
		return nil
	}
	for _, place := range places {
		s.feeds.done(place)
	}
	return nil
}

// leaveLater ends the connection to a node that stops, when the node wishes.
func (c *connection) leaveLater(data json.RawMessage) {
	var draining struct {
		ReconnectInMS int64 `json:"reconnectInMs"`
	}
	if json.Unmarshal(data, &draining) != nil || c.reconnect != nil {
		return
	}
	c.pause = time.Millisecond // the wait is over by then
	c.reconnect = time.AfterFunc(time.Duration(draining.ReconnectInMS)*time.Millisecond, func() { _ = c.ws.Close() })
}

func (c *connection) handleCall(f *frame) error {
	var data struct {
		CallID  string          `json:"callId"`
		From    int64           `json:"from"`
		Op      string          `json:"op"`
		Payload json.RawMessage `json:"payload"`
	}
	if err := json.Unmarshal(f.Data, &data); err != nil {
		return fmt.Errorf("room.call: %w", err)
	}
	call := Call{f.RoomID, data.CallID, data.From, data.Op, data.Payload, f.At}
	c.server.handleCall(call, func(r reply) {
		// The player asked over this connection, so the answer goes over it or nowhere.
		if err := c.send(outgoing{Type: "room.reply", Data: r}); err != nil {
			c.server.log.Info("parlor: an answer was lost with the connection", "op", call.Op, "room", call.RoomID)
		}
	})
	return nil
}

// outgoing is a frame to the node.
type outgoing struct {
	ID   string `json:"id,omitempty"`
	Type string `json:"type"`
	Key  string `json:"key,omitempty"`
	Data any    `json:"data"`
}

func (c *connection) send(f outgoing) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return c.write(text)
}

// write sends a frame, not faster than the node allows. When it fails, the connection ends.
func (c *connection) write(text []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.pacer.wait()
	_ = c.ws.SetWriteDeadline(time.Now().Add(writeTimeout))
	err := c.ws.WriteMessage(websocket.TextMessage, text)
	if err != nil {
		_ = c.ws.Close()
	}
	return err
}

// pacer spreads frames in time: at most burst at once, and each interval one more.
type pacer struct {
	interval, burst time.Duration // burst is as long as its frames take
	next            time.Time     // when the next frame is due if there were no burst
}

func (p *pacer) set(perSecond, burst float64) {
	if perSecond <= 0 {
		return // the node does not say
	}
	const margin = 0.9 // the node's clock is not ours
	p.interval = time.Duration(float64(time.Second) / (perSecond * margin))
	p.burst = time.Duration(burst*margin) * p.interval
}

func (p *pacer) wait() {
	now := time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	if early := p.next.Sub(now) - p.burst; early > 0 {
		<-time.After(early)
	}
	p.next = p.next.Add(p.interval)
}
