package realtime

import (
	"bufio"
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
	"time"

	"github.com/gorilla/websocket"
	"github.com/olahol/melody"
	"github.com/parlor-games/parlor/internal/apierror"
	"golang.org/x/time/rate"
)

// Limits are what one kind of socket allows its clients.
type Limits struct {
	MaxFrame int64 // bytes in one frame from the client; a larger one closes the socket with 1009
	Rate     int   // frames a second from the client; more close it with 4009
	Burst    int   // frames at once
	Hello    bool  // the server greets with a hello frame
}

// Socket is one kind of socket. Each has a melody instance of its own, since melody's limits are an instance's.
type Socket struct {
	hub    *Hub
	limits Limits
	melody *melody.Melody
}

// Session is what the caller knows of a socket, and what it wants to be told. It lives as long as the socket: it must not
// hold on to the request that opened it.
//
// OnOpen and OnMessage of one socket run one after the other, on a goroutine of their own; what came in before the socket
// closed is still handled. A panic closes the socket with 1011. The context ends with the hub.
type Session struct {
	User    int64
	Expires time.Time // the socket is closed with 4001 then; zero: never
	Data    any       // the caller's own

	OnOpen    func(ctx context.Context, p *Client)             // before any message, and before anything is sent; may be nil
	OnMessage func(ctx context.Context, p *Client, raw []byte) // a text frame
	OnRefused func(p *Client, raw []byte, why error)           // a frame that is not handled: binary, or too many wait; must not block
	OnClose   func(p *Client)                                  // after the last message; may be nil
}

const (
	melodyBufferFrames = maxInFlight + 2
	handshakeTimeout    = 5 * time.Second
	minWriteRate  = 64 << 10  // bytes: a frame gets a second longer than Options.WriteWait for each of so many
	slowGrace        = 5         // times Options.WriteWait until a frame is cut off: before that, farewell has told the client why and closed
	kernelSendBuffer  = 128 << 10 // may wait in the kernel for one client
	maxInboxFullFrames   = 4         // frames of the largest size that wait for their turn
)

var writeBuffers sync.Pool

// Socket makes a kind of socket. Call it before Run.
func (h *Hub) Socket(limits Limits) *Socket {
	m := melody.New()
	m.Config.MaxMessageSize = limits.MaxFrame
	m.Config.MessageBufferSize = melodyBufferFrames
	m.Config.WriteWait = slowGrace * h.options.WriteTimeout
	m.Config.PingPeriod = h.options.PingInterval
	m.Config.PongWait = h.options.PongTimeout
	m.Upgrader.ReadBufferSize = 512 // larger frames are read past it
	m.Upgrader.WriteBufferSize = 4096
	m.Upgrader.WriteBufferPool = &writeBuffers
	m.Upgrader.HandshakeTimeout = handshakeTimeout
	m.Upgrader.CheckOrigin = func(*http.Request) bool { return true } // decided by the caller, who knows the game
	s := &Socket{hub: h, limits: limits, melody: m}
	m.HandleConnect(func(c *melody.Session) { s.recoverPanics(c, s.onConnect) })
	m.HandleMessage(func(c *melody.Session, raw []byte) {
		s.recoverPanics(c, func(p *Client, c *melody.Session) { s.onFrame(p, c, raw, true) })
	})
	m.HandleMessageBinary(func(c *melody.Session, raw []byte) {
		s.recoverPanics(c, func(p *Client, c *melody.Session) { s.onFrame(p, c, raw, false) })
	})
	m.HandleSentMessage(func(c *melody.Session, _ []byte) { clientOf(c).onFrameSent() })
	m.HandleError(s.onError)
	return s
}

const clientKey = "peer"

func clientOf(c *melody.Session) *Client { return c.Keys[clientKey].(*Client) }

// recoverPanics keeps a panic of ours from leaving a socket that nobody reads, or from ending the process.
func (s *Socket) recoverPanics(c *melody.Session, do func(*Client, *melody.Session)) {
	defer func() {
		if r := recover(); r != nil {
			s.hub.logPanic(r)
			_ = c.WebsocketConnection().Close()
		}
	}()
	do(clientOf(c), c)
}

// Serve takes a request over and returns at once; the caller has decided by then who is calling and from where, and has written
// nothing. An error is a refusal for the caller to write; after nil the response is gone.
//
// The socket runs on goroutines of its own, away from the HTTP server's deep stack, buffers and request.
func (s *Socket) Serve(w http.ResponseWriter, r *http.Request, session Session) error {
	if err := CheckHandshake(r); err != nil {
		return err
	}
	p := &Client{hub: s.hub, socket: s, session: session, id: rand.Text(), done: make(chan struct{}), limiter: rate.NewLimiter(rate.Limit(s.limits.Rate), s.limits.Burst)}
	if err := s.hub.addClient(p); err != nil {
		return err
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.hub.removeClient(p)
		s.hub.conns.Done()
		return apierror.InvalidRequest.WithReason("this connection cannot become a WebSocket: %v", err)
	}
	s.hub.setConn(p, conn)
	if tcp, ok := conn.(interface{ SetWriteBuffer(bytes int) error }); ok {
		_ = tcp.SetWriteBuffer(kernelSendBuffer) // else the kernel lets a slow reader fall megabytes behind before we learn of it
	}
	request := &http.Request{Method: http.MethodGet, Proto: r.Proto, Header: http.Header{}, Host: r.Host, RemoteAddr: r.RemoteAddr}
	for _, name := range []string{"Connection", "Upgrade", "Sec-Websocket-Version", "Sec-Websocket-Key"} {
		request.Header[name] = r.Header[name]
	}
	response := &hijackedWriter{conn: conn, buf: buffered, header: w.Header().Clone()}
	go s.run(p, conn, response, request)
	return nil
}

func (s *Socket) run(p *Client, conn net.Conn, w *hijackedWriter, r *http.Request) {
	defer s.hub.conns.Done()
	defer p.teardown()
	defer func() {
		if r := recover(); r != nil {
			s.hub.logPanic(r)
		}
		_ = conn.Close()
	}()
	if err := s.melody.HandleRequestWithKeys(w, r, map[string]any{clientKey: p}); err != nil {
		s.hub.counters.handshakesFailed.Add(1)
	}
}

// CheckHandshake finds beforehand what the upgrade would refuse when nobody can answer any more.
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

// hijackedWriter is a response that has been hijacked already.
type hijackedWriter struct {
	conn     net.Conn
	buf *bufio.ReadWriter
	header   http.Header
}

func (d *hijackedWriter) Header() http.Header         { return d.header }
func (d *hijackedWriter) Write(b []byte) (int, error) { return len(b), nil }
func (d *hijackedWriter) WriteHeader(int)             {}
func (d *hijackedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered := d.conn, d.buf
	d.buf = nil
	return conn, buffered, nil
}

// onConnect makes the peer ready: melody calls it before its pumps run.
func (s *Socket) onConnect(p *Client, c *melody.Session) {
	c.Request = nil
	conn := c.WebsocketConnection()
	conn.SetPingHandler(func(data string) error {
		s.extendReadDeadline(p, conn)
		if !p.limiter.Allow() {
			p.Close(CloseRateLimited, "rate limited")
			return nil
		}
		err := conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(time.Second))
		if errors.Is(err, websocket.ErrCloseSent) {
			return nil
		}
		return err
	})
	if !p.session.Expires.IsZero() {
		p.expiryTimer = time.AfterFunc(time.Until(p.session.Expires), func() { p.Close(CloseExpired, "token expired") })
	}
	p.mu.Lock()
	p.melodySession = c
	if p.session.OnOpen == nil {
		p.enableWrites()
	}
	if p.closing {
		p.enableWrites()
		p.startCloseHandshake()
	}
	p.mu.Unlock()
	if p.session.OnOpen != nil {
		p.enqueueInbox(0, func() {
			p.session.OnOpen(s.hub.baseCtx, p)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.enableWrites()
		})
	}
}

// extendReadDeadline lets any traffic count as a sign of life, not only pongs.
func (s *Socket) extendReadDeadline(p *Client, conn *websocket.Conn) {
	p.mu.Lock()
	shut := p.closing
	p.mu.Unlock()
	if !shut {
		_ = conn.SetReadDeadline(time.Now().Add(s.hub.options.PongTimeout))
	}
}

// onFrame takes a frame from the client; it runs on the goroutine that reads and only puts it in line.
func (s *Socket) onFrame(p *Client, c *melody.Session, raw []byte, text bool) {
	s.extendReadDeadline(p, c.WebsocketConnection())
	s.hub.counters.received.Add(1)
	switch {
	case !p.limiter.Allow():
		p.Close(CloseRateLimited, "rate limited")
	case !text:
		p.session.OnRefused(p, raw, apierror.InvalidRequest.WithReason("frames must be text"))
	case !p.enqueueInbox(len(raw), func() { p.session.OnMessage(s.hub.baseCtx, p, raw) }):
		p.session.OnRefused(p, raw, apierror.RateLimited.WithReason("too many frames wait for their turn"))
	}
}

// onError is told of errors, sometimes in the middle of a write: it must not touch the session. Only a frame that is too large
// needs care, on the goroutine that reads: gorilla has sent 1009, and closing with unread bytes would take it back.
func (s *Socket) onError(c *melody.Session, err error) {
	if errors.Is(err, websocket.ErrReadLimit) {
		conn := c.WebsocketConnection().NetConn()
		_ = conn.SetReadDeadline(time.Now().Add(s.hub.options.CloseTimeout))
		_, _ = io.CopyN(io.Discard, conn, 64*s.limits.MaxFrame)
	}
}

// writeFrame hands a frame to melody, which has room for it, and answers how long the client may take over it.
func (s *Socket) writeFrame(c *melody.Session, frame []byte) time.Duration {
	o := s.hub.options
	extra := time.Duration(len(frame)/minWriteRate) * time.Second
	_ = c.WriteWithDeadline(frame, slowGrace*o.WriteTimeout+extra)
	return o.WriteTimeout + extra
}

// closeHandshake sends the close frame when the frames in flight are written, and waits for the client's. A client that is too slow
// gets longer for those: without the close frame it would not learn that it is to come back with its position.
func (s *Socket) closeHandshake(conn *websocket.Conn, gone, drained <-chan struct{}, code int, reason string) {
	defer func() { _ = conn.Close() }()
	o := s.hub.options
	wait := o.WriteTimeout
	if code == CloseTooSlow {
		wait *= 2
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case <-drained:
	case <-late.C:
	case <-gone:
		return
	}
	if conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(o.WriteTimeout)) != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Now().Add(o.CloseTimeout))
	late.Reset(o.CloseTimeout)
	select {
	case <-gone:
	case <-late.C:
	}
}

// enqueueInbox puts work in the peer's line and answers false when too much waits.
func (p *Client) enqueueInbox(size int, work func()) bool {
	p.inboxMu.Lock()
	defer p.inboxMu.Unlock()
	if len(p.inbox) >= maxInboxFrames || p.inboxBytes > 0 && p.inboxBytes+size > maxInboxFullFrames*int(p.socket.limits.MaxFrame) {
		return false
	}
	p.inboxBytes += size
	p.inbox = append(p.inbox, func() {
		work()
		p.inboxMu.Lock()
		p.inboxBytes -= size
		p.inboxMu.Unlock()
	})
	if !p.inboxRunning {
		p.inboxRunning = true
		p.inboxTasks.Go(p.runInbox)
	}
	return true
}

// runInbox handles what is in line and ends.
func (p *Client) runInbox() {
	for {
		p.inboxMu.Lock()
		if len(p.inbox) == 0 {
			p.inboxRunning, p.inbox = false, nil
			p.inboxMu.Unlock()
			return
		}
		work := p.inbox[0]
		p.inbox = p.inbox[1:]
		p.inboxMu.Unlock()
		if !p.closedForMisuse() {
			p.callHandler(work)
		}
	}
}

// closedForMisuse tells whether the socket was closed for what its client did.
func (p *Client) closedForMisuse() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closing && p.closeCode >= 4000
}

func (p *Client) callHandler(work func()) {
	defer func() {
		if r := recover(); r != nil {
			p.hub.logPanic(r)
			p.Close(CloseInternal, "internal")
		}
	}()
	work()
}

// teardown gives everything back; the socket is closed.
func (p *Client) teardown() {
	p.mu.Lock()
	p.closing = true
	cursors := p.cursors
	for _, c := range cursors {
		c.removed = true
	}
	p.cursors, p.readyCursors, p.outbox, p.outboxBytes = nil, nil, nil, 0
	if p.expiryTimer != nil {
		p.expiryTimer.Stop()
	}
	p.mu.Unlock()
	close(p.done)
	for _, c := range cursors {
		p.hub.detachCursor(c)
	}
	p.inboxTasks.Wait()
	p.hub.removeClient(p)
	if p.session.OnClose != nil && p.melodySession != nil {
		p.callHandler(func() { p.session.OnClose(p) })
	}
}

func (h *Hub) logPanic(r any) {
	h.counters.panics.Add(1)
	h.log.Error("a socket's handler panicked", slog.Any("panic", r), slog.String("stack", string(debug.Stack())))
}
