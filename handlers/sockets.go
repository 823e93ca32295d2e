package handlers

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/auth"
	"github.com/parlor-games/parlor/internal/players/calls"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/realtime"
)

// A socket is opened by a request like any other: its row in routes.go states who may open it and
// how often. Then the client sends messages {"id","type","data"}. Each gets one reply, in order.
// socketEndpoint.handlers lists the types, and the class of rate limits in which each counts. An
// error is the problem that an HTTP response would have. It does not close the socket.

// socketEndpoint is one kind of socket.
type socketEndpoint struct {
	socketKind *realtime.SocketKind
	handlers   map[string]messageType                                  // by message type
	onOpen     func(context.Context, *clientHandler, *realtime.Client) // before the first message; may be nil
	onClose    func(*clientHandler, *realtime.Client)                  // after the last message; may be nil
	operations map[string]*route                                       // by message type: those that HTTP has too
	// rateLimitClass is the class in which all messages count that have one; "": each in its own.
	rateLimitClass ratelimit.Class
	// onBinary handles a binary frame; nil: none may come.
	onBinary func(ctx context.Context, s *clientHandler, client *realtime.Client, raw []byte) error
}

// messageType has the handler and the rate limit class of one type of messages.
type messageType struct {
	rateLimitClass ratelimit.Class // of rate limits; "" for messages that cost no more than their frame
	handle         messageHandler
}

// messageHandler handles a message and returns the data of its reply, or noReply if there is none
// to send.
type messageHandler func(context.Context, *clientHandler, *realtime.Client, *message) (any, error)

type noReplyMarker struct{}

var noReply any = noReplyMarker{}

// clientHandler is a player, or a server of a game, on a socket.
type clientHandler struct {
	server    *Server
	endpoint  *socketEndpoint
	caller    principal.Caller
	routePath string // of the route
	address   string // of the client, as rate limits count it

	// Owned by the callbacks of the socket, which are called one after the other.
	credential auth.Authentication
	stopWatch  func()            // of the session; nil until the socket is open
	roomIDs    map[uint16]string // by the index of binary frames; nil: none
	calls      *calls.Caller     // of the player's calls; nil: none yet
	// onRelayError tells the client that messages were not published; nil: it has sent none.
	onRelayError func(error)
}

// message is a frame from the client.
type message struct {
	ID   string    `json:"id"`
	Type string    `json:"type"`
	Data rawMember `json:"data"`
	Key  *string   `json:"key"` // Idempotency-Key of an operation; nil: none

	dataJSON wire.RawJSON // a part of the frame, which is there only while the message is handled
}

// rawMember is the position of a member's value in the decoded message. It saves the copy that a
// wire.RawJSON makes of each message.
type rawMember struct{ start, end int64 }

// UnmarshalJSONFrom is called only when the member is there.
func (r *rawMember) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	value, err := d.ReadValue()
	r.end = d.InputOffset()
	r.start = r.end - int64(len(value))
	return err
}

// in returns the value in what was decoded, empty when the member is absent.
func (r rawMember) in(decoded []byte) wire.RawJSON { return wire.RawJSON(decoded[r.start:r.end]) }

// replyTo returns the id for the reply: null when the message has none.
func (m *message) replyTo() *string {
	if m.ID == "" {
		return nil
	}
	return &m.ID
}

// socketReply is the reply to a message.
type socketReply struct {
	ReplyTo *string  `json:"replyTo"` // null when the message has no id or is not JSON
	OK      bool     `json:"ok"`
	Data    any      `json:"data,omitzero"`
	Error   *problem `json:"error,omitzero"`
	// Replayed is set for the first answer to a key, sent again.
	Replayed bool `json:"replayed,omitzero"`
}

// The limits of every kind of socket.
const (
	framesPerSecond   = 60
	frameBurst        = 120
	protocolVersion   = 1
	maxMessageIDBytes = 128 // bytes
	messageTimeout    = storeTimeout
)

// upgradeHandler returns the handler of the request that opens a socket.
func (e *Server) upgradeHandler(endpoint *socketEndpoint) func(*request) (response, error) {
	return func(r *request) (response, error) { return e.openSocket(r, endpoint) }
}

func (e *Server) openSocket(r *request, endpoint *socketEndpoint) (response, error) {
	if e.refusesSockets.Load() {
		return response{}, r.setRetryAfter(apierror.Draining)
	}
	if err := r.checkOrigin(); err != nil {
		return response{}, err
	}
	q := r.query()
	protocol := q.id("protocol")
	if err := q.err(); err != nil {
		return response{}, err
	}
	s := &clientHandler{
		server: e, endpoint: endpoint, caller: r.caller, routePath: r.route.path, address: r.addressIdentity(),
		credential: r.credential,
	}
	options := socketOwner(r.caller)
	options.ExpiresAt = r.credential.ExpiresAt
	options.OnOpen, options.OnMessage, options.OnRefused, options.OnClose = s.onOpen, s.onMessage, s.onRefused, s.onClose
	if endpoint.onBinary != nil {
		options.OnBinary = s.onBinary
	}
	// Browsers do not show the response to a failed upgrade, so the page gets a close code instead.
	if protocol != 0 && protocol != protocolVersion {
		options.OnOpen = func(_ context.Context, client *realtime.Client) {
			client.Close(realtime.CloseProtocolTooOld, "this server speaks protocol 1")
		}
	}
	if err := endpoint.socketKind.Serve(r.Writer, r.Request, options); err != nil {
		return response{}, r.setRetryAfter(err)
	}
	return response{written: true}, nil
}

// setRetryAfter sets the header Retry-After if err is retryable. It returns err.
func (r *request) setRetryAfter(err error) error {
	if apiErr, ok := apierror.As(err); ok && apiErr.Retryable {
		r.Writer.Header()["Retry-After"] = []string{"1"}
	}
	return err
}

// checkOrigin returns forbidden for an origin that the game does not list. Browsers do not apply
// CORS to sockets: without this check, every page could open one. Programs send no Origin.
func (r *request) checkOrigin() error {
	origins := r.Request.Header["Origin"]
	if len(origins) == 0 {
		return nil
	}
	game, err := r.server.Games.Find(r.ctx(), r.corsGameID)
	switch {
	case err != nil:
		return err
	case len(origins) > 1 || !game.AllowsOrigin(origins[0]):
		return apierror.Forbidden.WithReason("the game does not list this origin")
	default:
		return nil
	}
}

// redeemTicket returns the credential of the ticket in the query. given is false when there is no
// ticket. A ticket can be redeemed once, so a request that would fail anyway is refused before.
func (r *request) redeemTicket() (credential auth.Authentication, given bool, err error) {
	q := r.query()
	ticket := q.text("ticket")
	if err := q.err(); err != nil || ticket == "" {
		return credential, false, err
	}
	if r.server.refusesSockets.Load() {
		return credential, true, r.setRetryAfter(apierror.Draining)
	}
	if err := realtime.CheckHandshake(r.Request); err != nil {
		return credential, true, err
	}
	credential, err = r.server.Auth.RedeemTicket(r.ctx(), ticket)
	return credential, true, err
}

func (s *clientHandler) onOpen(ctx context.Context, client *realtime.Client) {
	s.stopWatch = s.watchSession(s.credential, client)
	if s.endpoint.onOpen != nil {
		s.endpoint.onOpen(ctx, s, client)
	}
}

// watchSession closes the socket when a session ends.
func (s *clientHandler) watchSession(credential auth.Authentication, client *realtime.Client) (stop func()) {
	return s.server.Auth.WatchSession(credential, func(code int) { client.Close(code, "the session was ended") })
}

type tokenInput struct {
	AccessToken string `json:"accessToken" required:"true"`
}

// expiryData is the data of the reply to auth.refresh.
type expiryData struct {
	ExpiresAt time.Time `json:"expiresAt"`
}

// replaceToken lets the socket go on under another token of the same player: until that one
// expires, or its session ends. After an error, the socket goes on under the token that it had.
func replaceToken(
	ctx context.Context, s *clientHandler, client *realtime.Client, _ *message, in *tokenInput,
) (any, error) {
	credential, err := s.server.Auth.Authenticate(ctx, in.AccessToken)
	if err != nil {
		return nil, err
	}
	if credential.Caller != s.caller {
		return nil, apierror.Forbidden.WithReason("the token must be one of the player on this socket, in the same game")
	}
	// The new session is watched before the old one is not, so that there is no time without.
	stopWatch := s.watchSession(credential, client)
	if err := client.SetExpiry(credential.ExpiresAt); err != nil {
		stopWatch()
		return nil, err
	}
	s.stopWatch()
	s.credential, s.stopWatch = credential, stopWatch
	return expiryData{credential.ExpiresAt.UTC()}, nil
}

func (s *clientHandler) onClose(client *realtime.Client) {
	if s.stopWatch != nil {
		s.stopWatch()
	}
	if s.calls != nil {
		s.calls.Close()
	}
	if s.endpoint.onClose != nil {
		s.endpoint.onClose(s, client)
	}
}

// sharedDeadline makes contexts that the messages of a second share: a timer for each message costs
// more than many messages do.
type sharedDeadline struct {
	mu     sync.Mutex
	parent context.Context
	ctx    context.Context
	cancel context.CancelFunc // of ctx; never called, because others still use it: it ends by its deadline
	madeAt time.Time
}

const deadlineSharedFor = time.Second

// context returns a context that ends after messageTimeout, or up to deadlineSharedFor later.
func (d *sharedDeadline) context(parent context.Context) context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); d.parent != parent || now.Sub(d.madeAt) >= deadlineSharedFor {
		d.parent, d.madeAt = parent, now
		d.ctx, d.cancel = context.WithTimeout(parent, messageTimeout+deadlineSharedFor)
	}
	return d.ctx
}

// onMessage handles one frame and sends its reply.
func (s *clientHandler) onMessage(ctx context.Context, client *realtime.Client, raw []byte) {
	ctx = s.server.messageDeadline.context(ctx)
	if r := s.handleFrame(ctx, client, raw); r != nil {
		_ = client.Send(r.encode())
	}
}

// onBinary handles one binary frame, whose only reply is an error.
func (s *clientHandler) onBinary(ctx context.Context, client *realtime.Client, raw []byte) {
	ctx = s.server.messageDeadline.context(ctx)
	err := s.takeRateLimit(ctx, ratelimit.Read)
	if err == nil {
		err = s.endpoint.onBinary(ctx, s, client, raw)
	}
	if err != nil && !errors.Is(err, realtime.ErrClosed) {
		_ = client.Send(s.errorReply(&message{Type: relayMessageType}, err).encode())
	}
}

// handleFrame handles one frame and returns its reply, nil if there is none to send.
func (s *clientHandler) handleFrame(ctx context.Context, client *realtime.Client, raw []byte) *socketReply {
	m := new(message)
	err := m.parse(raw)
	var data any
	var replayed bool
	if err == nil {
		data, replayed, err = s.handleMessage(ctx, client, m)
	}
	switch {
	case errors.Is(err, realtime.ErrClosed):
		return nil
	case err != nil:
		reply := s.errorReply(m, err)
		reply.Replayed = replayed
		return reply
	case data == noReply:
		return nil
	default:
		return &socketReply{ReplyTo: m.replyTo(), OK: true, Data: data, Replayed: replayed}
	}
}

func (s *clientHandler) dispatch(ctx context.Context, client *realtime.Client, m *message) (any, error) {
	messageType, ok := s.endpoint.handlers[m.Type]
	if !ok {
		known := slices.AppendSeq(slices.Collect(maps.Keys(s.endpoint.handlers)), maps.Keys(s.endpoint.operations))
		types := strings.Join(slices.Sorted(slices.Values(known)), ", ")
		return nil, apierror.InvalidRequest.WithField("type", "unknown", "is none of "+types)
	}
	if err := s.takeRateLimit(ctx, messageType.rateLimitClass); err != nil {
		return nil, err
	}
	return messageType.handle(ctx, s, client, m)
}

// bytesPerPermit is for how many bytes of a save a message takes one more permit of its class, so
// that a player cannot move more data by messages than the limits of requests are made for.
const bytesPerPermit = 32 << 10

// takeRateLimit counts a message against the limit of a class, which it shares with requests. It
// returns rate_limited with the member retryAfterSeconds.
func (s *clientHandler) takeRateLimit(ctx context.Context, class ratelimit.Class) error {
	if class = s.countedIn(class); class == "" {
		return nil
	}
	key, limited := s.rateLimitKey(class)
	if !limited {
		return nil
	}
	_, err := s.server.Limiter.Allow(ctx, class, key)
	return err
}

// chargePermits takes more permits for a message that is worth several.
func (s *clientHandler) chargePermits(class ratelimit.Class, permits int) {
	class = s.countedIn(class)
	if key, limited := s.rateLimitKey(class); limited && permits > 0 {
		s.server.Limiter.Charge(class, key, int64(permits))
	}
}

// chargeBytes takes more permits for a message that carries, or is answered by, size bytes of a
// save.
func (s *clientHandler) chargeBytes(class ratelimit.Class, size int) {
	s.chargePermits(class, size/bytesPerPermit)
}

// countedIn returns the class in which messages of a class count on this socket.
func (s *clientHandler) countedIn(class ratelimit.Class) ratelimit.Class {
	if class == "" {
		return ""
	}
	return cmp.Or(s.endpoint.rateLimitClass, class)
}

// rateLimitKey returns by whom a message counts in a class; false when the class has no limit.
func (s *clientHandler) rateLimitKey(class ratelimit.Class) (key string, limited bool) {
	switch s.server.Limiter.ScopeOf(class) {
	case "":
		return "", false
	case ratelimit.ScopeAddress:
		return s.address, true
	default:
		return s.caller.ActorID(), true
	}
}

// parse decodes a frame strictly. If the frame is JSON, the message has its id even if there is an
// error.
func (m *message) parse(raw []byte) error {
	if err := wire.UnmarshalStrict(raw, m); err != nil {
		*m = message{ID: idOfInvalidFrame(raw)}
		return fromDecodeError(err)
	}
	m.dataJSON = m.Data.in(raw)
	var invalid error
	if m.Type == "" {
		invalid = missing("type")
	}
	if len(m.ID) > maxMessageIDBytes {
		invalid = apierror.InvalidRequest.WithField("id", "range", "may have at most 128 bytes")
		m.ID = ""
	}
	if firstJSONByte(raw) != '{' { // null would decode into any struct
		invalid = apierror.InvalidRequest.WithField("body", "type", "must be an object")
	}
	return invalid
}

// idOfInvalidFrame returns the id of a frame that cannot be decoded strictly, or "".
func idOfInvalidFrame(raw []byte) string {
	var m struct {
		ID string `json:"id"`
	}
	err := json.Unmarshal(raw, &m, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil || len(m.ID) > maxMessageIDBytes {
		return ""
	}
	return strings.ToValidUTF8(m.ID, "")
}

// decodeDataThen returns a messageHandler that decodes the message's data strictly into a T and
// calls handle.
func decodeDataThen[T any](
	handle func(context.Context, *clientHandler, *realtime.Client, *message, *T) (any, error),
) messageHandler {
	return func(ctx context.Context, s *clientHandler, client *realtime.Client, m *message) (any, error) {
		in := new(T)
		if len(m.dataJSON) > 0 {
			if m.dataJSON.Kind() != '{' {
				return nil, apierror.InvalidRequest.WithField("data", "type", "must be an object")
			}
			if err := wire.UnmarshalStrict(m.dataJSON, in); err != nil {
				return nil, fromDecodeError(err)
			}
		}
		if err := validate(in); err != nil {
			return nil, err
		}
		return handle(ctx, s, client, m, in)
	}
}

// onRefused sends the reply to a frame that is not handled. It is called on the goroutine that
// reads the socket.
func (s *clientHandler) onRefused(client *realtime.Client, raw []byte, err error) {
	var m message
	if errors.Is(err, apierror.RateLimited) {
		m.ID = idOfInvalidFrame(raw)
	}
	_ = client.Send(s.errorReply(&m, err).encode())
}

// errorReply returns the reply to a message that failed. It logs unexpected errors, and outages at
// most once a second.
func (s *clientHandler) errorReply(m *message, err error) *socketReply {
	if errors.Is(err, context.DeadlineExceeded) {
		err = apierror.StoreUnavailable
	}
	apiErr, unexpected := toAPIError(err)
	requestID := uuid.NewString()
	log := func(level slog.Level, text string) {
		s.server.log.LogAttrs(context.Background(), level, text, slog.Any("error", err), slog.String("route", s.routePath),
			slog.String("type", m.Type), slog.String("caller", s.caller.ActorID()), slog.String("requestId", requestID))
	}
	if unexpected && !errors.Is(err, context.Canceled) {
		log(slog.LevelError, "message failed")
	} else if apiErr.Status == http.StatusServiceUnavailable && !apiErr.Is(apierror.NoServer) {
		s.server.countUnavailable(apiErr)
		s.server.outageLogLimit.Do(func() { log(slog.LevelWarn, "message not served") })
	}
	return &socketReply{ReplyTo: m.replyTo(), Error: newProblem(apiErr, s.routePath, requestID)}
}

func (r *socketReply) encode() []byte {
	frame, err := wire.Marshal(r)
	if err != nil {
		panic(err) // a reply is always encodable; the panic closes the socket with 1011
	}
	return frame
}
