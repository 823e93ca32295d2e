package realtime

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"github.com/olahol/melody"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"golang.org/x/time/rate"
)

// Limits are the limits of one kind of socket.
type Limits struct {
	MaxFrameBytes   int64 // bytes in one frame from the client; a larger frame closes the socket with 1009
	FramesPerSecond int   // frames from the client per second; more close the socket with 4009
	BurstFrames     int   // frames from the client at once
	SendHello       bool  // the server sends a hello frame first
	Binary          bool  // clients may speak BinarySubprotocol
	StateTopics     int   // state topics per connection
	// ConnectionsPerUser bounds the connections of this kind within Options.ConnectionsPerUser; 0: no
	// bound. For clients with a ClientOptions.GroupID it is the bound of their group.
	ConnectionsPerUser int

	TopicsPerConnection     int // topics per connection; 0: Options.TopicsPerConnection
	TopicsPerMessage        int // topics in one message, as hello has it; 0: TopicsPerConnection
	WaitingFrames           int // frames from the client that wait for their handler; 0: 128
	WaitingBytes            int // their bytes; 0: those of 4 frames of MaxFrameBytes
	OutboxFrames            int // frames for the client that wait; 0: 256
	OutboxBytes             int // their bytes; 0: 1 MiB
	EphemeralBytesPerSecond int // bytes of messages of other clients, the double at once; 0: 32 KiB
}

func (l Limits) withDefaults(o Options) Limits {
	l.TopicsPerConnection = cmp.Or(l.TopicsPerConnection, o.TopicsPerConnection)
	l.TopicsPerMessage = cmp.Or(l.TopicsPerMessage, l.TopicsPerConnection)
	l.WaitingFrames = cmp.Or(l.WaitingFrames, maxInboxFrames)
	l.WaitingBytes = cmp.Or(l.WaitingBytes, maxInboxFullFrames*int(l.MaxFrameBytes))
	l.OutboxFrames = cmp.Or(l.OutboxFrames, maxOutboxFrames)
	l.OutboxBytes = cmp.Or(l.OutboxBytes, maxOutboxBytes)
	l.EphemeralBytesPerSecond = cmp.Or(l.EphemeralBytesPerSecond, ephemeralBytesPerSecond)
	return l
}

// SocketKind is one kind of socket. Each has its own melody instance, because melody's limits are
// per instance.
type SocketKind struct {
	hub    *Hub
	limits Limits
	melody *melody.Melody

	clientCountByUser map[int64]int // of this kind, by user or by group; under Hub.mu
	deliveries        atomic.Uint64 // events handed to clients of this kind
}

// Limits returns the limits of the kind, with their defaults.
func (s *SocketKind) Limits() Limits { return s.limits }

// CountDeliveries returns how many events were handed to sockets of the kind.
func (s *SocketKind) CountDeliveries() uint64 { return s.deliveries.Load() }

// CountClients returns how many sockets of the kind are open.
func (s *SocketKind) CountClients() int {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	count := 0
	for _, n := range s.clientCountByUser {
		count += n
	}
	return count
}

// ClientOptions has the caller's values and callbacks for Socket.Serve. It lives
// as long as the socket, so it must not refer to the request.
//
// OnOpen and OnMessage of one socket are called one after the other, on the socket's own goroutine.
// Frames that arrived before the socket closed are still handled. A panic closes the socket with
// 1011. The context ends with the hub. A callback must not keep raw, because its memory is reused.
type ClientOptions struct {
	UserID int64 // the player's id, 0 for a client of a group
	// GroupID is set instead of UserID for a client that is no player, such as a game's server. The
	// Observer is not notified of it.
	GroupID   int64
	Identity  string    // JSON members of hello that say who the client is; "": the user id
	ExpiresAt time.Time // when the socket is closed with 4001, unless SetExpiry replaces it; zero: never

	// OnOpen is called before any message, and before any frame is sent; may be nil.
	OnOpen func(ctx context.Context, c *Client)
	// OnMessage is called for each text frame.
	OnMessage func(ctx context.Context, c *Client, raw []byte)
	// OnBinary is called for each binary frame of a client that speaks BinarySubprotocol. If it is
	// nil, binary frames are refused.
	OnBinary func(ctx context.Context, c *Client, raw []byte)
	// OnRefused is called for a frame that is not handled, because it is binary and must not be, or
	// because too many frames wait. It must not block.
	OnRefused func(c *Client, raw []byte, err error)
	// OnClose is called after the last message; may be nil.
	OnClose func(c *Client)
}

const (
	melodyBufferFrames     = maxFramesInFlight + 2 // per socket
	handshakeTimeout       = 5 * time.Second
	minWriteBytesPerSecond = 64 << 10  // bytes: for each of so many, a frame may take a second longer than WriteTimeout
	kernelSendBufferBytes  = 128 << 10 // bytes per socket
	maxInboxFullFrames     = 4         // frames of Limits.MaxFrameBytes bytes that may wait for their handler

	// After WriteTimeout, performCloseHandshake closes a slow client with a reason. A write that
	// fails closes it without one, so its own timeout is this many times longer.
	slowGraceFactor = 5
)

var writeBufferPool sync.Pool

// NewSocketKind returns a new kind of socket. It must be called before Run.
func (h *Hub) NewSocketKind(limits Limits) *SocketKind {
	limits = limits.withDefaults(h.options)
	m := melody.New()
	m.Config.MaxMessageSize = limits.MaxFrameBytes
	m.Config.MessageBufferSize = melodyBufferFrames
	m.Config.WriteWait = slowGraceFactor * h.options.WriteTimeout
	m.Config.PingPeriod = h.options.PingInterval
	m.Config.PongWait = h.options.PongTimeout
	m.Upgrader.ReadBufferSize = 128 // room for a control frame; most messages are read past it (directConn.Read)
	m.Upgrader.WriteBufferSize = 4096
	m.Upgrader.WriteBufferPool = &writeBufferPool
	m.Upgrader.HandshakeTimeout = handshakeTimeout
	m.Upgrader.CheckOrigin = func(*http.Request) bool { return true } // the caller has checked it: it knows the game
	if limits.Binary {
		m.Upgrader.Subprotocols = []string{BinarySubprotocol}
	}
	s := &SocketKind{hub: h, limits: limits, melody: m, clientCountByUser: map[int64]int{}}
	m.HandleConnect(func(ms *melody.Session) { s.callRecovering(ms, s.onConnect) })
	m.HandleMessage(func(ms *melody.Session, raw []byte) {
		s.callRecovering(ms, func(c *Client, _ *melody.Session) {
			s.onMessage(c, &inboundMessage{payload: raw, isText: true})
		})
	})
	m.HandleMessageBinary(func(ms *melody.Session, raw []byte) {
		s.callRecovering(ms, func(c *Client, _ *melody.Session) { s.onMessage(c, &inboundMessage{payload: raw}) })
	})
	m.HandleSentMessage(func(ms *melody.Session, _ []byte) { clientOf(ms).onFrameSent() })
	m.HandleSentMessageBinary(func(ms *melody.Session, _ []byte) { clientOf(ms).onFrameSent() })
	m.HandleError(s.onError)
	return s
}

const melodyClientKey = "client"

func clientOf(ms *melody.Session) *Client { return ms.Keys[melodyClientKey].(*Client) }

// callRecovering calls a callback of melody's. A panic in it would end the process, or leave an
// open socket that nobody reads: it closes the socket instead.
func (s *SocketKind) callRecovering(ms *melody.Session, callback func(*Client, *melody.Session)) {
	defer func() {
		if r := recover(); r != nil {
			s.hub.logPanic(r)
			_ = ms.WebsocketConnection().Close()
		}
	}()
	callback(clientOf(ms), ms)
}

// Serve upgrades a request and returns at once. The caller must have authenticated the request and
// checked its origin, and must not have written a response. After an error, the caller writes the
// response; it is invalid_request, draining or rate_limited. After nil, the connection belongs to
// the socket.
//
// The socket runs on goroutines of its own, so that the HTTP server's stack, buffers and request
// are released.
func (s *SocketKind) Serve(w http.ResponseWriter, r *http.Request, session ClientOptions) error {
	if err := CheckHandshake(r); err != nil {
		return err
	}
	c := &Client{
		hub: s.hub, socketKind: s, options: session, id: rand.Text(), done: make(chan struct{}),
		frameLimiter: rate.NewLimiter(rate.Limit(s.limits.FramesPerSecond), s.limits.BurstFrames),
		binary:       s.limits.Binary && wantsBinary(r),
	}
	c.handleInbox = c.runInbox
	if err := s.hub.addClient(c); err != nil {
		return err
	}
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.hub.removeClient(c)
		s.hub.clientGroup.Done()
		return apierror.InvalidRequest.WithReason("this connection cannot become a WebSocket: %v", err)
	}
	if tcp, ok := conn.(interface{ SetWriteBuffer(bytes int) error }); ok {
		// By default, the kernel buffers megabytes for a slow reader before a write blocks.
		_ = tcp.SetWriteBuffer(kernelSendBufferBytes)
	}
	if direct := newDirectConn(conn, c); direct != nil {
		conn = direct
		c.mu.Lock() // a hub that drains sends to every client, also to one in its upgrade
		c.directConn = direct
		c.mu.Unlock()
	}
	s.hub.setNetConn(c, conn)
	request := &http.Request{
		Method: http.MethodGet, Proto: r.Proto, Header: http.Header{}, Host: r.Host, RemoteAddr: r.RemoteAddr,
	}
	for _, name := range []string{"Connection", "Upgrade", "Sec-Websocket-Version", "Sec-Websocket-Key"} {
		request.Header[name] = r.Header[name]
	}
	if c.binary {
		request.Header["Sec-Websocket-Protocol"] = r.Header["Sec-Websocket-Protocol"]
	}
	go s.run(c, conn, &hijackedWriter{conn: conn, buf: buf, header: w.Header().Clone()}, request)
	return nil
}

func (s *SocketKind) run(c *Client, conn net.Conn, w *hijackedWriter, r *http.Request) {
	defer s.hub.clientGroup.Done()
	defer c.teardown()
	defer func() {
		if r := recover(); r != nil {
			s.hub.logPanic(r)
		}
		_ = conn.Close()
	}()
	if err := s.melody.HandleRequestWithKeys(w, r, map[string]any{melodyClientKey: c}); err != nil {
		s.hub.counters.handshakesFailed.Add(1)
	}
}

// CheckHandshake returns invalid_request for a request that the upgrade would refuse. The upgrade
// itself runs when no response can be written any more.
func CheckHandshake(r *http.Request) error {
	key, err := base64.StdEncoding.DecodeString(r.Header.Get("Sec-Websocket-Key"))
	switch {
	case r.Method != http.MethodGet || !websocket.IsWebSocketUpgrade(r):
		return apierror.InvalidRequest.WithReason("this address speaks WebSocket: the request must be an upgrade")
	case !strings.Contains(r.Header.Get("Sec-Websocket-Version"), "13"):
		return apierror.InvalidRequest.WithReason("the WebSocket version must be 13")
	case err != nil || len(key) != 16:
		return apierror.InvalidRequest.WithReason("Sec-WebSocket-Key must be 16 bytes in base64")
	}
	return nil
}

// hijackedWriter is the response writer of a connection that has been hijacked already. Its Hijack
// returns that connection. It drops everything that is written to it.
type hijackedWriter struct {
	conn   net.Conn
	buf    *bufio.ReadWriter
	header http.Header
}

func (w *hijackedWriter) Header() http.Header         { return w.header }
func (w *hijackedWriter) Write(b []byte) (int, error) { return len(b), nil }
func (w *hijackedWriter) WriteHeader(int)             {}
func (w *hijackedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf := w.conn, w.buf
	w.buf = nil
	return conn, buf, nil
}

// onConnect is called by melody before it starts to read and write.
func (s *SocketKind) onConnect(c *Client, ms *melody.Session) {
	ms.Request = nil
	conn := ms.WebsocketConnection()
	conn.SetPingHandler(func(data string) error {
		s.extendReadDeadline(c)
		if !c.frameLimiter.Allow() {
			c.Close(CloseRateLimited, "rate limited")
			return nil
		}
		err := conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(time.Second))
		if errors.Is(err, websocket.ErrCloseSent) {
			return nil
		}
		return err
	})
	c.mu.Lock()
	c.melodySession = ms
	c.setExpiryLocked(c.options.ExpiresAt)
	if c.options.OnOpen == nil {
		c.enableWrites()
	}
	if c.closeStarted {
		c.enableWrites()
		c.startCloseHandshake()
	}
	c.mu.Unlock()
	if c.options.OnOpen != nil {
		c.enqueueInbox(&inboundMessage{call: func() {
			c.options.OnOpen(s.hub.baseCtx, c)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.enableWrites()
		}})
	}
}

// extendReadDeadline makes any frame prove that the client is alive. melody accepts only pongs as
// proof.
func (s *SocketKind) extendReadDeadline(c *Client) {
	c.mu.Lock()
	closing, session := c.closeStarted, c.melodySession
	c.mu.Unlock()
	if !closing {
		_ = session.WebsocketConnection().SetReadDeadline(time.Now().Add(s.hub.options.PongTimeout))
	}
}

// onMessage is called on the goroutine that reads the socket, so it must not block. It must not
// allocate either (see directConn.Read).
func (s *SocketKind) onMessage(c *Client, m *inboundMessage) {
	s.extendReadDeadline(c)
	s.hub.counters.framesReceived.Add(1)
	switch {
	case !c.frameLimiter.Allow():
		c.Close(CloseRateLimited, "rate limited")
	case !m.isText && (c.options.OnBinary == nil || !c.binary):
		c.options.OnRefused(c, m.payload, apierror.InvalidRequest.WithReason("frames must be text"))
	case !c.enqueueInbox(m):
		c.options.OnRefused(c, m.payload, apierror.RateLimited.WithReason("too many frames wait for their turn"))
	default:
		return
	}
	m.release()
}

// onError is called by melody, sometimes in the middle of a write, so it must not close or write.
// Only a frame that is too large needs handling: closing a connection with unread bytes resets it,
// so that the client would not get the close code. Then it is called on the goroutine that reads.
// gorilla has sent 1009, but nothing for a length of 2^63 or more, which no frame may have (RFC
// 6455, section 5.2).
func (s *SocketKind) onError(ms *melody.Session, err error) {
	if errors.Is(err, websocket.ErrReadLimit) {
		closeFrame := websocket.FormatCloseMessage(websocket.CloseProtocolError, "the length is 2^63 or more")
		deadline := time.Now().Add(s.hub.options.WriteTimeout)
		_ = ms.WebsocketConnection().WriteControl(websocket.CloseMessage, closeFrame, deadline)
		conn := ms.WebsocketConnection().NetConn()
		_ = conn.SetReadDeadline(time.Now().Add(s.hub.options.CloseTimeout))
		_, _ = io.CopyN(io.Discard, conn, 64*s.limits.MaxFrameBytes)
	}
}

// timeToRead returns how long a client may take over a frame before it counts as too slow.
func (h *Hub) timeToRead(frame frame) time.Duration {
	return h.options.WriteTimeout + time.Duration(len(frame)/minWriteBytesPerSecond)*time.Second
}

// writeTimeout returns after what time the write of so many bytes fails.
func (h *Hub) writeTimeout(bytes int) time.Duration {
	return slowGraceFactor*h.options.WriteTimeout + time.Duration(bytes/minWriteBytesPerSecond)*time.Second
}

// writeThroughMelody hands a frame to melody, which must have room for it.
func (s *SocketKind) writeThroughMelody(ms *melody.Session, frame frame) {
	timeout := s.hub.writeTimeout(len(frame))
	if frame.isBinary() {
		_ = ms.WriteBinaryWithDeadline(frame.payload(), timeout)
	} else {
		_ = ms.WriteWithDeadline(frame.payload(), timeout)
	}
}

// performCloseHandshake waits for the frames in flight, sends the close frame, waits for the
// client's close frame, and closes the connection. A client that is too slow gets longer for the
// frames in flight: without the close code it would not learn that it can resume.
func (s *SocketKind) performCloseHandshake(conn *websocket.Conn, done, flushed <-chan struct{}, code int,
	reason string,
) {
	defer func() { _ = conn.Close() }()
	o := s.hub.options
	maxWait := o.WriteTimeout
	if code == CloseTooSlow {
		maxWait *= 2
	}
	timeout := time.NewTimer(maxWait)
	defer timeout.Stop()
	select {
	case <-flushed:
	case <-timeout.C:
	case <-done:
		return
	}
	closeFrame := websocket.FormatCloseMessage(code, reason)
	if conn.WriteControl(websocket.CloseMessage, closeFrame, time.Now().Add(o.WriteTimeout)) != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Now().Add(o.CloseTimeout))
	timeout.Reset(o.CloseTimeout)
	select {
	case <-done:
	case <-timeout.C:
	}
}

// enqueueInbox queues a message for its handler. It returns false when too much is queued.
func (c *Client) enqueueInbox(m *inboundMessage) bool {
	c.inboxMu.Lock()
	defer c.inboxMu.Unlock()
	limits := &c.socketKind.limits
	if c.inboxCount >= limits.WaitingFrames || c.inboxBytes > 0 && c.inboxBytes+len(m.payload) > limits.WaitingBytes {
		return false
	}
	c.inboxCount++
	c.inboxBytes += len(m.payload)
	if c.inboxLast == nil {
		c.inboxFirst = m
	} else {
		c.inboxLast.next = m
	}
	c.inboxLast = m
	if !c.inboxRunning {
		c.inboxRunning = true
		c.inboxGroup.Add(1)
		c.hub.workers.start(c.handleInbox)
	}
	return true
}

// runInbox handles what is queued and returns.
func (c *Client) runInbox() {
	defer c.inboxGroup.Done()
	handledBytes := 0
	for {
		c.inboxMu.Lock()
		c.inboxBytes -= handledBytes
		m := c.inboxFirst
		if m == nil {
			c.inboxRunning = false
			c.inboxMu.Unlock()
			return
		}
		c.inboxCount--
		if c.inboxFirst = m.next; c.inboxFirst == nil {
			c.inboxLast = nil
		}
		c.inboxMu.Unlock()
		if !c.closedByPolicy() {
			c.callHandler(func() { c.handleMessage(m) })
		}
		handledBytes = len(m.payload)
		m.release()
	}
}

func (c *Client) handleMessage(m *inboundMessage) {
	switch {
	case m.call != nil:
		m.call()
	case m.isText:
		c.options.OnMessage(c.hub.baseCtx, c, m.payload)
	default:
		c.options.OnBinary(c.hub.baseCtx, c, m.payload)
	}
}

// closedByPolicy reports whether the socket was closed with a code of the protocol's own, such as
// CloseRateLimited. What such a client has sent is not handled any more.
func (c *Client) closedByPolicy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closeStarted && c.closeCode >= 4000
}

func (c *Client) callHandler(handle func()) {
	defer func() {
		if r := recover(); r != nil {
			c.hub.logPanic(r)
			c.Close(CloseInternal, "internal")
		}
	}()
	handle()
}

// teardown releases everything that the client holds. The connection must be closed.
func (c *Client) teardown() {
	c.mu.Lock()
	c.closeStarted = true
	cursors := c.cursors.list
	for _, cur := range cursors {
		cur.removed = true
	}
	c.cursors, c.readyCursors, c.outbox, c.outboxBytes = cursorSet{}, nil, nil, 0
	c.dropStates()
	if c.expiryTimer != nil {
		c.expiryTimer.Stop()
	}
	c.mu.Unlock()
	close(c.done)
	c.cancelCalls()
	for _, cur := range cursors {
		c.hub.detachCursor(cur)
	}
	c.inboxGroup.Wait()
	c.hub.removeClient(c)
	if c.options.OnClose != nil && c.melodySession != nil {
		c.callHandler(func() { c.options.OnClose(c) })
	}
}

func (h *Hub) logPanic(r any) {
	h.counters.panics.Add(1)
	h.log.Error("a socket's handler panicked", slog.Any("panic", r), slog.String("stack", string(debug.Stack())))
}
